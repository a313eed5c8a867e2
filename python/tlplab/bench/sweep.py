"""Lists and sweeps from the command line: which cases they make."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tlplab import _core
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
        """What distinguishes a case, without the parameter of the axis."""
        return ", ".join(words(name, getattr(case, name)) for name in self.axes if name != without)


def sweep(fixed: dict[str, Any], **swept: list[Any]) -> Sweep:
    """Every combination of the values. Raises ValueError for a case that cannot be."""
    axes = {name: values for name, values in swept.items() if len(values) > 1}
    number = 1
    for values in swept.values():
        number *= len(values)
    if number > MOST_CASES:
        raise ValueError(f"these are {number:,} cases; {MOST_CASES:,} are the most; sweep fewer values")
    cases = [Case(**fixed, **dict(zip(swept, values, strict=True))) for values in itertools.product(*swept.values())]
    for case in cases:
        case.check()
    return Sweep(axes, cases)


def sizes(text: str) -> list[int]:
    """`64B`, `64B,1KiB`, `64B..2KiB` (doubling), `64B..512B/64B` (in steps). Raises ValueError."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(.+?)\s*\.\.\s*(.+?)\s*(?:/\s*(.+?)\s*)?", part)
        if match is None:
            found.append(_core.size(part))
            continue
        first, last = _core.size(match[1]), _core.size(match[2])
        if last < first:
            raise ValueError(f"{part!r} goes down; write {match[2]}..{match[1]}")
        if match[3] is not None:
            step = _core.size(match[3])
            if step == 0 or (last - first) // step >= MOST_CASES:
                raise ValueError(f"{part!r}: a step of {match[3]} makes too many values")
            found.extend(range(first, last + 1, step))
        elif first == 0:
            raise ValueError(f"{part!r} doubles from 0 on for ever; give a step, as in 0B..64B/8B")
        else:
            found.extend(first << n for n in range((last // first).bit_length()))
    return list(dict.fromkeys(found))


def choices(text: str, known: Sequence[str]) -> list[str]:
    """Words with commas between, each of which is known. Raises ValueError."""
    found = [word.strip() for word in text.split(",")]
    for word in found:
        if word not in known:
            raise ValueError(f"{word!r} is none of {', '.join(known)}")
    return list(dict.fromkeys(found))


def words(name: str, value: Any) -> str:
    """A parameter as people say it: `64 B`, `window 8 KiB`, `cold`."""
    if not isinstance(value, int):
        return str(value)
    text = bytes_text(value)
    return text if name == "size" else f"{name.replace('_', ' ')} {text}"


def bytes_text(value: int) -> str:
    """`64 B`, `8 KiB`, `1.5 MiB`: exact."""
    for factor, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= factor and value * 4 % factor == 0:
            return f"{value / factor:g} {unit}"
    return f"{value} B"
