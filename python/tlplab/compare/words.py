"""Changes for people: signs, units, and parts that still add up when they are rounded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tlplab import quantities as q
from tlplab.compare.difference import Change
from tlplab.sheet import NOTHING
from tlplab.study.show import written

MINUS = "−"
UNITS = [(10**15, "s"), (10**12, "ms"), (10**9, "µs"), (10**6, "ns"), (10**3, "ps"), (1, "fs")]
# Of the largest change so many digits are shown.
DIGITS = 4
# Less than this, in per cent, is shown as about nothing.
LEAST = 0.05


@dataclass(frozen=True)
class Steps:
    """Times in steps of one size, which add up as they are shown."""

    unit: str
    fs: int
    """The unit."""
    decimals: int

    @property
    def step(self) -> Fraction:
        """The size of one step, femtoseconds."""
        return Fraction(self.fs, 10**self.decimals)

    def rounded(self, parts: Sequence[Fraction]) -> list[int]:
        """Parts in whole steps that add up to their sum in whole steps: each is at most one step off."""
        exact = [part / self.step for part in parts]
        found = [math.floor(part) for part in exact]
        left = round(sum(exact, Fraction(0))) - sum(found)
        nearest = sorted(range(len(parts)), key=lambda at: found[at] - exact[at])
        for at in nearest[: max(left, 0)]:
            found[at] += 1
        return found

    def text(self, steps: int, *, sign: bool = False) -> str:
        """So many steps, without the unit."""
        mark = MINUS if steps < 0 else "+" if sign and steps > 0 else ""
        value = abs(steps) * self.step / self.fs
        return f"{mark}{float(value):.{self.decimals}f}"


def steps_for(changes: Sequence[Fraction], values: Sequence[Fraction] = ()) -> Steps:
    """Steps in which the largest change has four digits, and the largest value is not too long."""
    most = max((abs(change) for change in changes), default=Fraction(0)) or max(values, default=Fraction(0))
    longest = max((most, *values))
    fs, unit = next(((fs, unit) for fs, unit in UNITS if longest >= fs), UNITS[-1])
    whole = math.floor(math.log10(most / fs)) if most else 0
    finest = len(str(fs)) - 1
    return Steps(unit, fs, min(max(DIGITS - 1 - whole, 0), finest))


def sum_of(mean: Fraction, causes: Sequence[tuple[str, Fraction]]) -> str:
    """`mean +280 ns = queueing +250, tag wait +40, serialisation −10`; the parts add up as they stand there."""
    steps = steps_for([part for _, part in causes])
    shown = steps.rounded([part for _, part in causes])
    told = [f"{name} {steps.text(n, sign=True)}" for (name, _), n in zip(causes, shown, strict=True) if n]
    total = f"mean {steps.text(sum(shown), sign=True)} {steps.unit}"
    assert sum(shown) == round(mean / steps.step), "the causes add up to the mean"
    return f"{total} = {', '.join(told)}" if told else "mean 0"


def figure(value: float | None, unit: str) -> str:
    """A figure; a dash for none."""
    if value is None:
        return NOTHING
    if unit == "%":
        return f"{q.significant(100 * value, 4)} %"
    return written(value, unit)


def by_how_much(change: Change) -> str:
    """A change as a part of the former value, or absolute if that part has no meaning."""
    if change.before is None or change.after is None:
        return "only before" if change.after is None else "only after"
    if not change.seen:
        return "0"
    if change.unit == "%":
        return f"{signed(100 * (change.after - change.before))} points"
    if change.share is None:
        return f"+{figure(change.after, change.unit)}"
    return percent(change.share)


def percent(share: float) -> str:
    """A share with its sign: `+43.5 %`, `×12.3`; `0` for none at all."""
    if share == 0:
        return "0"
    if share >= 9.995:
        return f"×{q.significant(1 + share, 3)}"
    return f"{signed(100 * share)} %" if abs(100 * share) >= LEAST else f"{MINUS if share < 0 else '+'}0.0 %"


def signed(value: float) -> str:
    """A number of one decimal with its sign, of a small one with two digits."""
    text = f"{abs(value):.1f}" if abs(value) >= LEAST else q.significant(abs(value), 1)
    return f"{MINUS if value < 0 else '+'}{text}"


def difference(change: Change) -> str:
    """A change in the figure's unit: `+312 ns`."""
    if change.difference is None:
        return by_how_much(change)
    sign = MINUS if change.difference < 0 else "+"
    return f"{sign}{figure(abs(change.difference), change.unit)}" if change.difference else "0"
