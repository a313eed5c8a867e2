"""Lists and sweeps from the command line: which cases they make."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tlplab.bench.case import Case

# More cases than this are a slip of the finger.
MOST_CASES = 100_000
COUNTS = {"lat": 2 << 20, "bw": 8 << 20}
"""Operations of a run in the paper: 2 Mi samples of a latency, 8 Mi transfers of a bandwidth."""


@dataclass(frozen=True)
class Sweep:
    """The values of each parameter that has several, by the names of `Case`, and the cases they make."""

    axes: dict[str, list[Any]]
    cases: list[Case]

    @property
    def axis(self) -> str | None:
        """The parameter along which a plot goes: the number with the most values; None if none has two."""
        numbers = [name for name in self.axes if all(isinstance(value, int) for value in self.axes[name])]
        return max(numbers, key=lambda name: len(self.axes[name]), default=None)

    def label(self, case: Case, *, without: str | None = None) -> str:
        """The parameters that distinguish a case, without that of the axis."""
        return ", ".join(words(name, getattr(case, name)) for name in self.axes if name != without)


def sweep(fixed: dict[str, Any], **swept: list[Any]) -> Sweep:
    """Every combination of the values. Raises ValueError for a case that cannot be."""
    axes = {name: values for name, values in swept.items() if len(values) > 1}
    number = 1
    for values in swept.values():
        number *= len(values)
    if number > MOST_CASES:
        raise ValueError(f"{number:,} cases; at most {MOST_CASES:,} are allowed: sweep fewer values")
    cases = [Case(**fixed, **dict(zip(swept, values, strict=True))) for values in itertools.product(*swept.values())]
    for case in cases:
        case.check()
    return Sweep(axes, cases)


def choices(text: str, known: Sequence[str]) -> list[str]:
    """Words with commas between, each of which is known. Raises ValueError."""
    found = [word.strip() for word in text.split(",")]
    for word in found:
        if word not in known:
            raise ValueError(f"{word!r} is not one of {', '.join(known)}")
    return list(dict.fromkeys(found))


def text_of(name: str, value: int | str) -> str:
    """A value of a parameter, where the parameter's name stands elsewhere."""
    return bytes_text(value) if isinstance(value, int) and name != "at_once" else str(value)


def words(name: str, value: Any) -> str:
    """A parameter as people say it: `64 B`, `window 8 KiB`, `cold`."""
    if not isinstance(value, int):
        return str(value)
    if name == "at_once":
        return f"{value} at once"
    text = bytes_text(value)
    return text if name == "size" else f"{name.replace('_', ' ')} {text}"


def bytes_text(value: int) -> str:
    """`64 B`, `8 KiB`, `1.5 MiB`: exact."""
    for factor, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= factor and value * 4 % factor == 0:
            return f"{value / factor:g} {unit}"
    return f"{value} B"
