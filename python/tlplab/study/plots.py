"""Pictures of a study: lines with bands, maps of two axes, fronts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tlplab import _core
from tlplab.plotting import COLOURS, write_figure
from tlplab.study.running import Done
from tlplab.study.show import setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LINES = 12
MARKS = "os^Dv"
STYLES = ("-", "--")
# Cells of a map have their figures in them up to so many.
MOST_FIGURES = 120
# From so many times the smallest value on, an axis is logarithmic.
WIDE = 16
ROOM = 1.08
SCALES = {
    "b/s": [(1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1.0, "b/s")],
    "ns": [(1e6, "ms"), (1e3, "µs"), (1.0, "ns")],
    "B": [(2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B")],
    "1/s": [(1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")],
}


@dataclass(frozen=True)
class Figures:
    """Numbers of one figure, in a unit that keeps them short."""

    label: str
    factor: float

    @staticmethod
    def of(name: str, unit: str | None, values: Sequence[float]) -> Figures:
        """Of a figure called `name` in `unit`."""
        if unit in (None, "1"):
            return Figures(name, 1.0)
        most = max((abs(value) for value in values), default=0.0)
        scales = SCALES.get(unit or "", [(1.0, unit or "")])
        factor, shown = next(((f, u) for f, u in scales if most >= f), scales[-1])
        return Figures(f"{name}, {shown}", factor)


def draw_study(path: str, done: Done, wanted: str, *, x: str | None, y: str | None, colour: str | None) -> None:
    """Writes a picture of a study: lines, or with `colour` a map of two axes. Raises `click.UsageError` for what cannot be drawn."""
    names = [name for name, _, _ in done.sweep.axes]
    if not names:
        raise click.UsageError("--plot: this study has no axis to draw along")
    across = axis(names, "--x", x) if x is not None else usual(done)
    if colour is not None:
        others = [name for name in names if name != across]
        if y is None and not others:
            raise click.UsageError("--colour: this study has but one axis; leave it out, and lines are drawn")
        figure = map_of(done, across, axis(names, "--y", y) if y is not None else others[0], colour)
    else:
        figure = lines_of(done, across, y or done.swept.figures(wanted)[0][0])
    write_figure(path, figure)


def axis(names: Sequence[str], option: str, name: str) -> str:
    """The axis of this name. Raises `click.UsageError`."""
    if name not in names:
        raise click.UsageError(f"{option} {name}: no axis is called so; there are {', '.join(names)}")
    return name


def usual(done: Done) -> str:
    """The first axis that has numbers, or the first."""
    axes = done.sweep.axes
    return next((name for name, unit, values in axes if unit is not None and len(set(values)) > 1), axes[0][0])


def empty(title: str) -> tuple[Figure, Axes]:
    """A figure with one plot."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, fontsize=10)
    return figure, axes


def lines_of(done: Done, x: str, y: str) -> Figure:
    """A figure along one axis: a line for each combination of the other axes, with a band where there are repeats."""
    written = next((one for one in done.sweep.metrics if one.split("=")[0].strip() == y), y)
    (name, unit), *more = done.swept.figures(written)
    if more:
        raise click.UsageError(f"--y {y}: one figure goes up")
    lines: dict[str, list[tuple[Any, float, float]]] = {}
    named = done.sweep.axes
    summaries = [one for one in done.swept.summaries(written) if one["means"][0] is not None]
    vary = {axis for at, (axis, _, _) in enumerate(named) if len({str(one["values"][at]) for one in summaries}) > 1}
    for one in summaries:
        mean = one["means"][0]
        assert mean is not None
        values = list(zip(named, one["values"], strict=True))
        at = next(value for (axis, _, _), value in values if axis == x)
        others = [label_of(axis, of, value) for (axis, of, _), value in values if axis != x and axis in vary]
        lines.setdefault(", ".join(others), []).append((at, mean[0], mean[1] or 0.0))
    if not lines:
        raise click.UsageError(f"--plot: no point has {name}")
    if len(lines) > MOST_LINES:
        raise click.UsageError(
            f"--plot: there would be {len(lines)} lines; choose points by --where, or draw a map of two axes with --colour"
        )
    shown = Figures.of(name, unit, [value for points in lines.values() for _, value, _ in points])
    figure, axes = empty(done.sweep.title)
    places = [at for points in lines.values() for at, _, _ in points]
    place = scale_x(axes, done, x, places)
    for number, (label, points) in enumerate(lines.items()):
        points = sorted(points, key=lambda point: place(point[0]))
        across = [place(at) for at, _, _ in points]
        up = [value / shown.factor for _, value, _ in points]
        half = [wide / shown.factor for _, _, wide in points]
        colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
        # Lines that lie on each other are seen all the same.
        style, size = STYLES[number % len(STYLES)], 8 - 4 * number / len(lines)
        axes.plot(across, up, style, marker=mark, markersize=size, markerfacecolor="none", color=colour, label=label)
        if any(half):
            low, high = zip(*((u - h, u + h) for u, h in zip(up, half, strict=True)), strict=True)
            axes.fill_between(across, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.set_ylabel(shown.label)
    axes.set_ylim(0, ROOM * axes.dataLim.y1)
    axes.grid(alpha=0.3)
    if len(lines) > 1:
        axes.legend(fontsize=8)
    return figure


def label_of(axis: str, unit: str | None, value: Any) -> str:
    """What a line is of."""
    return f"{axis} {setting(value, unit)}" if unit is not None or isinstance(value, bool) else str(value)


def scale_x(axes: Axes, done: Done, name: str, values: Sequence[Any]) -> Any:
    """Labels the axis from left to right; where a value is on it."""
    unit = next(unit for axis, unit, _ in done.sweep.axes if axis == name)
    if unit is None:
        order = list(dict.fromkeys(str(value) for value in values))
        axes.set_xticks(range(len(order)), order, rotation=30 if len(order) > 5 else 0, fontsize=8)
        axes.set_xlabel(name)
        return lambda value: order.index(str(value))
    axes.set_xlabel(name)
    ticks = sorted(set(values))
    if ticks[0] > 0 and ticks[-1] >= WIDE * ticks[0]:
        axes.set_xscale("log", base=2)
    shown = apart(ticks, logarithmic=axes.get_xscale() == "log")
    axes.set_xticks(shown, [setting(value, unit) for value in shown], rotation=30, ha="right", fontsize=8)
    axes.minorticks_off()
    return lambda value: value


def apart(ticks: Sequence[float], *, logarithmic: bool) -> list[float]:
    """Those of the values whose labels do not lie on each other."""
    scale = math.log2 if logarithmic else float
    kept = list(ticks[:1])
    for tick in ticks[1:]:
        if scale(tick) - scale(kept[-1]) >= 0.045 * (scale(ticks[-1]) - scale(ticks[0])):
            kept.append(tick)
    return kept


def map_of(done: Done, x: str, y: str, colour: str) -> Figure:
    """A map of two axes, coloured by a figure. Other axes may not vary."""
    if x == y:
        raise click.UsageError(f"--y {y}: this axis goes from left to right; name another one")
    written = next((one for one in done.sweep.metrics if one.split("=")[0].strip() == colour), colour)
    (name, unit), *more = done.swept.figures(written)
    if more:
        raise click.UsageError(f"--colour {colour}: one figure is shown")
    named = done.sweep.axes
    at = {axis: number for number, (axis, _, _) in enumerate(named)}
    cells: dict[tuple[Any, Any], float] = {}
    columns, rows, others = [], [], set()
    for one in done.swept.summaries(written):
        place = (one["values"][at[x]], one["values"][at[y]])
        columns.append(place[0])
        rows.append(place[1])
        others.add(tuple(str(value) for axis, value in zip(at, one["values"], strict=True) if axis not in (x, y)))
        if (mean := one["means"][0]) is not None:
            cells[place] = mean[0]
    if len(others) > 1:
        vary = [axis for axis in at if axis not in (x, y)]
        raise click.UsageError(f"--colour: points differ by {', '.join(vary)}, too; choose them by --where")
    if not cells:
        raise click.UsageError(f"--plot: no point has {name}")
    columns, rows = list(dict.fromkeys(columns)), list(dict.fromkeys(rows))
    shown = Figures.of(name, unit, list(cells.values()))
    figure, axes = empty(done.sweep.title)
    grid = [[cells.get((column, row), math.nan) / shown.factor for column in columns] for row in rows]
    image = axes.imshow(grid, aspect="auto", origin="lower", cmap="viridis")
    for ticks, values, axis in ((axes.set_xticks, columns, x), (axes.set_yticks, rows, y)):
        of = named[at[axis]][1]
        ticks(range(len(values)), [setting(value, of) for value in values], fontsize=8)
    axes.tick_params(axis="x", rotation=30 if len(columns) > 6 else 0)
    axes.set(xlabel=x, ylabel=y)
    if len(columns) * len(rows) <= MOST_FIGURES:
        middle = (min(cells.values()) + max(cells.values())) / 2 / shown.factor
        for row, line in enumerate(grid):
            for column, value in enumerate(line):
                if not math.isnan(value):
                    dark = "white" if value < middle else "black"
                    axes.text(column, row, f"{value:.3g}", ha="center", va="center", fontsize=7, color=dark)
    figure.colorbar(image, ax=axes, label=shown.label)
    return figure


def draw_front(
    path: str, done: Done, objectives: Sequence[tuple[str, str, bool]], summaries: _core.Summaries,
    front: Sequence[bool],
) -> None:  # fmt: skip
    """Writes a picture of the points by two figures, those marked that nothing beats; a third figure is their colour."""
    if len(objectives) < 2:
        raise click.UsageError("--plot: a front is drawn of two figures or three; name another one")
    whole = [
        (one, best) for one, best in zip(summaries, front, strict=True) if all(m is not None for m in one["means"])
    ]
    if not whole:
        raise click.UsageError("--plot: no point has all of these figures")

    def of(number: int) -> tuple[Figures, list[float]]:
        name, unit, more = objectives[number]
        values = [mean[0] for one, _ in whole if (mean := one["means"][number]) is not None]
        shown = Figures.of(name, unit, values)
        return Figures(f"{shown.label} ({'more' if more else 'less'} is better)", shown.factor), [
            value / shown.factor for value in values
        ]

    (x, across), (y, up) = of(0), of(1)
    best = [best for _, best in whole]
    figure, axes = empty(done.sweep.title)
    rest = [at for at, on_front in enumerate(best) if not on_front]
    kept = sorted((at for at, on_front in enumerate(best) if on_front), key=lambda at: across[at])
    axes.scatter([across[at] for at in rest], [up[at] for at in rest], s=18, color="#bbbbbb", label="beaten")
    if len(objectives) == 2:
        axes.plot(
            [across[at] for at in kept],
            [up[at] for at in kept],
            "o-",
            markersize=6,
            color=COLOURS[0],
            label="beaten by none",
        )
    else:
        third, values = of(2)
        points = axes.scatter(
            [across[at] for at in kept], [up[at] for at in kept], s=42, c=[values[at] for at in kept], cmap="viridis",
            edgecolors="black", linewidths=0.6, label="beaten by none", zorder=3,
        )  # fmt: skip
        figure.colorbar(points, ax=axes, label=third.label)
    axes.set(xlabel=x.label, ylabel=y.label)
    if min(up) > 0 and max(up) >= WIDE * min(up):
        axes.set_yscale("log")
    if min(across) > 0 and max(across) >= WIDE * min(across):
        axes.set_xscale("log")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    write_figure(path, figure)
