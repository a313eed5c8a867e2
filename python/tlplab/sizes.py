"""Sizes on the command line: one, several, ranges."""

from __future__ import annotations

import re
from collections.abc import Callable

from tlplab import _core

MOST_SIZES = 1_000_000
RANGE = re.compile(r"\s*(?P<first>.+?)\s*\.\.\s*(?P<last>.+?)\s*(?:/\s*(?P<step>.+?)\s*)?")
HELP = "64B,1500B; a range 1B..1500B (every byte), 64B..4KiB/64B (in steps), 64B..2KiB/x2 (doubling)"


def sizes(text: str) -> list[int]:
    """`64B`; `64B,1500B`; `1B..1500B`, every byte; `64B..4KiB/64B`, in steps; `64B..2KiB/x2`, doubling. Raises ValueError."""
    return values(text, _core.size)


def counts(text: str) -> list[int]:
    """Numbers of things in the same way: `4`; `1,8`; `1..16`; `1..256/x2`. Raises ValueError."""
    return values(text, count)


def count(text: str) -> int:
    """One number. Raises ValueError."""
    if not text.strip().isdecimal():
        raise ValueError(f"{text.strip()!r} is not a number such as 16")
    return int(text)


def values(text: str, read: Callable[[str], int]) -> list[int]:
    """The common part of `sizes` and `counts`."""
    found: list[int] = []
    for part in text.split(","):
        match = RANGE.fullmatch(part)
        if match is None:
            found.append(read(part))
        else:
            found.extend(of_range(part.strip(), match["first"], match["last"], match["step"], read))
    return found


def of_range(
    text: str, first_text: str, last_text: str, step_text: str | None, read: Callable[[str], int]
) -> list[int]:
    """The values of a range, both ends among them."""
    first, last = read(first_text), read(last_text)
    if last < first:
        raise ValueError(f"{text!r}: a range must increase, as {last_text}..{first_text}")
    if step_text is not None and (times := re.fullmatch(r"x(\d+)", step_text)):
        factor = int(times[1])
        if factor < 2 or first == 0:
            raise ValueError(f"{text!r} is endless; start at 1 or more, and multiply by 2 or more")
        found = [first]
        while found[-1] * factor <= last:
            found.append(found[-1] * factor)
        return found
    step = 1 if step_text is None else read(step_text)
    if step == 0 or (last - first) // step >= MOST_SIZES:
        raise ValueError(
            f"{text!r} has more than {MOST_SIZES:,} values; give a step, as in {first_text}..{last_text}/x2"
        )
    return list(range(first, last + 1, step))
