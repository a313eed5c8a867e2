"""Scales of the pictures of studies: units that keep numbers short, marks that are round, and where a scale is logarithmic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tlplab.study.show import setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# From so many times the smallest value on, the scale of a figure is logarithmic.
WIDE = 50
SCALES = {
    "b/s": [(1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1.0, "b/s")],
    "ns": [(1e6, "ms"), (1e3, "µs"), (1.0, "ns")],
    "B": [(2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B")],
    "1/s": [(1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")],
}
# So many marks have room.
MARKS = 8


@dataclass(frozen=True)
class Figures:
    """Numbers of one figure, in a unit that keeps them short."""

    label: str
    factor: float

    @staticmethod
    def of(name: str, unit: str | None, values: npt.ArrayLike) -> Figures:
        """Of a figure called `name` in `unit`."""
        if unit in (None, "1"):
            return Figures(name, 1.0)
        most = float(np.abs(values).max(initial=0.0))
        scales = SCALES.get(unit or "", [(1.0, unit or "")])
        factor, shown = next(((f, u) for f, u in scales if most >= f), scales[-1])
        return Figures(f"{name}, {shown}", factor)


def is_wide(values: npt.NDArray[np.float64]) -> bool:
    """True if values are so far apart that only a logarithmic scale shows them all."""
    return bool(values.size) and bool(values.min() > 0) and bool(values.max() >= WIDE * values.min())


def by_factors(values: Sequence[float]) -> bool:
    """True if values, in their order, are rather a factor apart than a difference: 32, 64, 128, but not 5, 10, 15."""
    if len(values) < 3 or values[0] <= 0 or values[-1] < 4 * values[0]:
        return False

    def uneven(of: Sequence[float]) -> float:
        gaps = [(b - a) / (of[-1] - of[0]) for a, b in pairwise(of)]
        return sum((gap - 1 / len(gaps)) ** 2 for gap in gaps)

    return uneven([math.log(value) for value in values]) < uneven(values)


def logarithmic(axis: Any, factor: float = 1.0) -> None:
    """Makes the scale of an axis logarithmic, with numbers at its marks: as powers of ten only where they are large."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.axes.set_xscale("log") if axis.axis_name == "x" else axis.axes.set_yscale("log")
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / factor:g}"))
    axis.set_minor_formatter(NullFormatter())


def place_axis(axes: Axes, name: str, unit: str | None, values: Sequence[Any]) -> Callable[[Any], float]:
    """Labels the axis from left to right with an axis of the study; where a value is on it."""
    if unit is None:
        order = list(dict.fromkeys(str(value) for value in values))
        axes.set_xlabel(name)
        name_ticks(axes.xaxis, order)
        return lambda value: order.index(str(value))
    ticks = sorted(set(values))
    log = by_factors(ticks)
    if log:
        axes.set_xscale("log", base=2)
    shown = ticks if len(ticks) <= 2 * MARKS else round_marks(ticks[0], ticks[-1], unit, log=log)
    shown = apart(shown, log=log)
    if unit == "B":
        label, texts = name, [setting(value, unit) for value in shown]
    else:
        figures = Figures.of(name, unit, ticks)
        label, texts = figures.label, [f"{value / figures.factor:g}" for value in shown]
    axes.set_xlabel(label)
    axes.set_xticks(shown, texts)
    axes.minorticks_off()
    return float


def name_ticks(axis: Any, names: Sequence[str]) -> None:
    """Marks an axis of names: as many as have room, turned if they are long."""
    every = 1 if len(names) <= 4 * MARKS else -(-len(names) // (2 * MARKS))
    at = range(0, len(names), every)
    axis.set_ticks(at, [names[place] for place in at])
    if axis.axis_name == "x" and sum(len(names[place]) + 2 for place in at) > 60:
        axis.set_tick_params(rotation=35)
        for label in axis.get_ticklabels():
            label.set_horizontalalignment("right")


def round_marks(low: float, high: float, unit: str, *, log: bool) -> list[float]:
    """Round numbers from one end to the other: of sizes multiples of a power of two, which payloads and requests are cut at."""
    if log:
        powers = [2.0**n for n in range(math.floor(math.log2(low)), math.ceil(math.log2(high)) + 1)]
        return [value for value in powers if low <= value <= high]
    step = (high - low) / MARKS
    if unit == "B" and step >= 1:
        step = 2.0 ** math.ceil(math.log2(step))
    else:
        power = 10.0 ** math.floor(math.log10(step))
        step = next(many * power for many in (1, 2, 5, 10) if many * power >= step * (1 - 1e-9))
    return [count * step for count in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def apart(ticks: Sequence[float], *, log: bool) -> list[float]:
    """The values whose labels do not overlap."""
    scale = math.log2 if log else float
    kept = list(ticks[:1])
    for tick in ticks[1:]:
        if scale(tick) - scale(kept[-1]) >= 0.075 * (scale(ticks[-1]) - scale(ticks[0])):
            kept.append(tick)
    return kept
