"""Pictures of a study: lines with bands, maps of two axes, fronts, distributions of latency."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

from tlplab import _core
from tlplab.plotting import COLOURS, write_figure
from tlplab.study.running import Done
from tlplab.study.scales import Figures, by_factors, is_wide, logarithmic, name_ticks, place_axis
from tlplab.study.show import setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LINES = 12
MOST_PICTURES = 12
MARKS = "os^Dv"
STYLES = ("-", "--")
# A line with more points than this has no marks: what it shows are its steps.
MARKED = 40
# Cells of a map have their figures in them up to so many.
MOST_FIGURES = 60
ROOM = 1.08
# Inches: so small that the letters can be read on a page of 390 pixels.
WIDTH, HEIGHT = 5.6, 4.0
# What a point keeps of a distribution, and where that stands on a scale of nines.
NINES = {"min": 0.0, "p50": 0.301, "p90": 1.0, "p99": 2.0, "p999": 3.0, "max": 4.0}
NINES_TOLD = ("min", "50 %", "90 %", "99 %", "99.9 %", "max")


@dataclass(frozen=True)
class Wanted:
    """What is to be drawn, as the command line names it."""

    x: str | None = None
    y: str | None = None
    colour: str | None = None
    beside: str | None = None
    ecdf: str | None = None

    def options(self) -> dict[str, str]:
        """The options that name it."""
        named = {"--x": self.x, "--y": self.y, "--colour": self.colour, "--beside": self.beside, "--ecdf": self.ecdf}
        return {option: value for option, value in named.items() if value is not None}

    def check(self, plot: str | None) -> None:
        """Refuses options that do not go together. Raises `click.UsageError`."""
        if plot is None and self.options():
            raise click.UsageError("--x, --y, --colour, --beside and --ecdf say what is drawn; name a file with --plot")
        if self.ecdf is not None and len(self.options()) > 1:
            raise click.UsageError(
                "--ecdf draws a line for each point; --x, --y, --colour and --beside are of other pictures"
            )
        if self.colour is not None and self.beside is not None:
            raise click.UsageError("--beside is of lines; a map is one picture: choose its points by --where")


@dataclass(frozen=True)
class Line:
    """A line, as it is drawn."""

    label: str
    across: list[float]
    up: list[float]
    half: list[float]


def draw_study(path: str, done: Done, figures: str, wanted: Wanted) -> None:
    """Writes a picture of a study: lines, with `colour` a map of two axes, with `ecdf` distributions. Raises `click.UsageError` for what cannot be drawn."""
    with as_written():
        write_figure(path, study_figure(done, figures, wanted))


def as_written() -> AbstractContextManager[None]:
    """Texts that are drawn as they are written: a $ in a title is no formula."""
    import matplotlib

    return matplotlib.rc_context({"text.parse_math": False})


def study_figure(done: Done, figures: str, wanted: Wanted) -> Figure:
    """The picture of a study that shows these figures. Raises `click.UsageError`."""
    if wanted.ecdf is not None:
        return distributions(done, wanted.ecdf)
    names = [name for name, _, _ in done.sweep.axes]
    if not names:
        raise click.UsageError("--plot: this study has no axis to draw along")
    across = axis(names, "--x", wanted.x) if wanted.x is not None else usual(done)
    if wanted.colour is None:
        beside = axis(names, "--beside", wanted.beside) if wanted.beside is not None else None
        return lines_of(done, across, wanted.y or done.swept.figures(figures)[0][0], beside)
    others = [name for name in names if name != across]
    if wanted.y is None and not others:
        raise click.UsageError("--colour: this study has but one axis; leave it out, and lines are drawn")
    return map_of(done, across, axis(names, "--y", wanted.y) if wanted.y is not None else others[0], wanted.colour)


def axis(names: Sequence[str], option: str, name: str) -> str:
    """The axis of this name. Raises `click.UsageError`."""
    if name not in names:
        raise click.UsageError(f"{option} {name}: no axis is called so; there are {', '.join(names)}")
    return name


def usual(done: Done) -> str:
    """The axis of numbers that has most of them, or the first."""
    axes = [axis for axis in done.sweep.axes if axis[1] is not None and len(set(axis[2])) > 1]
    return max(axes, key=lambda axis: len(set(axis[2])))[0] if axes else done.sweep.axes[0][0]


def empty(title: str, pictures: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure with some plots beside each other, of the same scale upwards."""
    from matplotlib.figure import Figure

    columns = min(pictures, 2)
    rows = -(-pictures // columns)
    size = (WIDTH, HEIGHT) if pictures == 1 else (WIDTH + 0.8, 1.4 + 2.3 * rows)
    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle(title, fontsize=11, wrap=True)
    plots = figure.subplots(rows, columns, sharey=True, squeeze=False).flatten().tolist()
    for plot in plots[pictures:]:
        plot.remove()
    return figure, plots[:pictures]


def figure_of(done: Done, option: str, name: str, says: str) -> tuple[str, str, str]:
    """A figure: how it is written, its name and unit. Raises `click.UsageError` for several."""
    written = next((one for one in done.sweep.metrics if one.split("=")[0].strip() == name), name)
    (named, unit), *more = done.swept.figures(written)
    if more:
        raise click.UsageError(f"{option} {name}: {says}")
    return written, named, unit


def tied(points: Sequence[Sequence[Any]], at: int, to: int) -> bool:
    """Whether an axis follows from another, as those of zipped axes do: it has one value for each value of the other, and goes along with it.

    Numbers go one way only, anything else has each value in one stretch; a random sample has neither.
    """
    found: dict[Any, Any] = {}
    if any(found.setdefault(values[to], values[at]) != values[at] for values in points):
        return False
    if not all(is_number(value) for value in found):
        return True
    along = [found[value] for value in sorted(found)]
    steps = [(a, b) for a, b in pairwise(along) if a != b]
    if all(is_number(value) for value in along):
        return len({a < b for a, b in steps}) <= 1
    return len(steps) == len(set(along)) - 1


def is_number(value: Any) -> bool:
    """Whether it is a number; what is true or false is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def lines_of(done: Done, x: str, y: str, beside: str | None = None) -> Figure:
    """A figure along one axis: a line for each combination of the other axes, with a band where there are repeats; with `beside` a picture for each value of another axis."""
    written, name, unit = figure_of(done, "--y", y, "one figure goes up")
    named = done.sweep.axes
    names = [one for one, _, _ in named]
    if x == beside:
        raise click.UsageError(f"--beside {beside}: this axis goes from left to right; name another one")
    summaries = [one for one in done.swept.summaries(written) if one["means"][0] is not None]
    if not summaries:
        raise click.UsageError(f"--plot: no point has {name}")
    values = [one["values"] for one in summaries]
    column = {axis: number for number, axis in enumerate(names)}
    # What follows from the axis that goes along tells no lines apart.
    vary = [
        at
        for axis, at in column.items()
        if axis not in (x, beside) and len({str(of[at]) for of in values}) > 1 and not tied(values, at, column[x])
    ]
    along = [
        axis
        for axis, at in column.items()
        if axis not in (x, beside) and len({str(of[at]) for of in values}) > 1 and at not in vary
    ]
    groups: dict[str, dict[str, list[tuple[Any, float, float]]]] = {}
    for one in summaries:
        mean = one["means"][0]
        assert mean is not None
        label = ", ".join(label_of(*named[at][:2], one["values"][at]) for at in vary)
        heading = label_of(*named[column[beside]][:2], one["values"][column[beside]], always=True) if beside else ""
        groups.setdefault(heading, {}).setdefault(label, []).append((one["values"][column[x]], mean[0], mean[1] or 0.0))
    labels = list(dict.fromkeys(label for lines in groups.values() for label in lines))
    check_many(len(labels), len(groups))
    heights = [value for lines in groups.values() for of in lines.values() for _, value, _ in of]
    shown = Figures.of(name, unit, heights)
    figure, plots = empty(done.sweep.title, len(groups))
    for plot, (heading, lines) in zip(plots, groups.items(), strict=True):
        plot.set_title(heading, fontsize=10)
        place = place_axis(plot, x, named[column[x]][1], [of[column[x]] for of in values])
        if along:
            plot.set_xlabel(f"{plot.get_xlabel()} with {', '.join(along)}")
        for label, points in lines.items():
            points = sorted(points, key=lambda point: place(point[0]))
            line = Line(
                label, [place(at) for at, _, _ in points], [value / shown.factor for _, value, _ in points],
                [half / shown.factor for _, _, half in points],
            )  # fmt: skip
            draw_line(plot, line, labels.index(label), len(labels))
        plot.grid(alpha=0.3)
    for plot in plots[::2]:
        plot.set_ylabel(shown.label)
    upwards(plots, heights)
    legend(figure, plots, len(labels))
    return figure


def check_many(lines: int, pictures: int) -> None:
    """Refuses a picture that nobody could read. Raises `click.UsageError`."""
    if lines > MOST_LINES:
        raise click.UsageError(
            f"--plot: there would be {lines} lines; choose points by --where, make a picture for each value of an axis by --beside, or draw a map of two axes with --colour"
        )
    if pictures > MOST_PICTURES:
        raise click.UsageError(f"--beside: there would be {pictures} pictures; choose points by --where")


def draw_line(plot: Axes, line: Line, number: int, of: int) -> None:
    """Draws a line and its band."""
    colour = COLOURS[number % len(COLOURS)]
    # Lines that lie on each other are seen all the same.
    style = STYLES[number % len(STYLES)]
    marks: dict[str, Any] = {
        "marker": MARKS[number % len(MARKS)],
        "markersize": 8 - 4 * number / of,
        "markerfacecolor": "none",
    }
    dense = len(line.across) > MARKED
    plot.plot(
        line.across, line.up, "-" if dense else style, color=colour, label=line.label,
        linewidth=1.1 if dense else 1.5, **({} if dense else marks),
    )  # fmt: skip
    if any(line.half):
        low, high = zip(*((u - h, u + h) for u, h in zip(line.up, line.half, strict=True)), strict=True)
        plot.fill_between(line.across, low, high, color=colour, alpha=0.2, linewidth=0)


def upwards(plots: Sequence[Axes], values: Sequence[float]) -> None:
    """The scale upwards: from 0, or logarithmic where values are wide apart."""
    if is_wide(values):
        logarithmic(plots[0].yaxis)
    elif min(values) >= 0:
        plots[0].set_ylim(0, ROOM * max(plot.dataLim.y1 for plot in plots) or 1)


def legend(figure: Figure, plots: Sequence[Axes], lines: int) -> None:
    """Names lines below the data, where they cover none of them."""
    if lines < 2:
        return
    found = {text: handle for plot in plots for handle, text in zip(*plot.get_legend_handles_labels(), strict=True)}
    longest = max(map(len, found))
    columns = max(1, min(len(found), int(figure.get_figwidth() * 13 / (longest + 6))))
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=columns, fontsize=9, frameon=False)


def label_of(axis: str, unit: str | None, value: Any, *, always: bool = False) -> str:
    """What a line is of."""
    return f"{axis} {setting(value, unit)}" if always or unit is not None or isinstance(value, bool) else str(value)


def map_of(done: Done, x: str, y: str, colour: str) -> Figure:
    """A map of two axes, coloured by a figure. Other axes may not vary, but with one of these two."""
    from matplotlib.colors import LogNorm, Normalize

    if x == y:
        raise click.UsageError(f"--y {y}: this axis goes from left to right; name another one")
    written, name, unit = figure_of(done, "--colour", colour, "one figure is shown")
    named = done.sweep.axes
    at = {axis: number for number, (axis, _, _) in enumerate(named)}
    summaries = done.swept.summaries(written)
    values = [one["values"] for one in summaries]
    others = [
        axis
        for axis, number in at.items()
        if axis not in (x, y)
        and len({str(of[number]) for of in values}) > 1
        and not (tied(values, number, at[x]) or tied(values, number, at[y]))
    ]
    if others:
        raise click.UsageError(f"--colour: points differ by {', '.join(others)}, too; choose them by --where")
    cells = {(one["values"][at[x]], one["values"][at[y]]): mean[0] for one in summaries if (mean := one["means"][0])}
    if not cells:
        raise click.UsageError(f"--plot: no point has {name}")
    columns, rows = (list(dict.fromkeys(of[at[axis]] for of in values)) for axis in (x, y))
    shown = Figures.of(name, unit, list(cells.values()))
    figure, (axes,) = empty(done.sweep.title)
    grid = [[cells.get((column, row), math.nan) / shown.factor for column in columns] for row in rows]
    low, high = min(cells.values()) / shown.factor, max(cells.values()) / shown.factor
    norm = LogNorm(low, high) if is_wide(list(cells.values())) else Normalize(low, high)
    image = axes.imshow(grid, aspect="auto", origin="lower", cmap="viridis", norm=norm)
    for ticks, of, axis in ((axes.xaxis, columns, x), (axes.yaxis, rows, y)):
        name_ticks(ticks, [setting(value, named[at[axis]][1]) for value in of])
    axes.set(xlabel=x, ylabel=y)
    if len(columns) * len(rows) <= MOST_FIGURES:
        for row, column, value in cells_of(grid):
            dark = "white" if norm(value) < 0.6 else "black"
            axes.text(column, row, f"{value:.3g}", ha="center", va="center", fontsize=8, color=dark)
    bar = figure.colorbar(image, ax=axes, label=shown.label)
    if isinstance(norm, LogNorm):
        logarithmic(bar.ax.yaxis)
    return figure


def cells_of(grid: Sequence[Sequence[float]]) -> Iterator[tuple[int, int, float]]:
    """Row, column and value of the cells that have one."""
    for row, line in enumerate(grid):
        for column, value in enumerate(line):
            if not math.isnan(value):
                yield row, column, value


def distributions(done: Done, flow: str) -> Figure:
    """How a flow's latency is distributed in each point, drawn through what a point keeps of it, on a scale of nines."""
    summaries = done.swept.summaries(", ".join(f"{flow}.latency.{one}" for one in NINES))
    whole = [one for one in summaries if all(mean is not None for mean in one["means"])]
    if not whole:
        raise click.UsageError(f"--ecdf: no point has the latency of {flow}")
    check_many(len(whole), 1)
    axes = done.sweep.axes
    vary = [at for at in range(len(axes)) if len({str(one["values"][at]) for one in whole}) > 1]
    means = [[mean for mean in one["means"] if mean is not None] for one in whole]
    values = [mean for of in means for mean, _ in of]
    shown = Figures.of(f"latency of {flow}", "ns", values)
    figure, (plot,) = empty(done.sweep.title)
    places = list(NINES.values())
    for number, (one, of) in enumerate(zip(whole, means, strict=True)):
        colour = COLOURS[number % len(COLOURS)]
        label = ", ".join(label_of(*axes[at][:2], one["values"][at]) for at in vary)
        plot.plot(
            [mean / shown.factor for mean, _ in of], places, STYLES[number % len(STYLES)], label=label, color=colour,
            marker=MARKS[number % len(MARKS)], markersize=8 - 4 * number / len(whole), markerfacecolor="none",
        )  # fmt: skip
        if any(half for _, half in of):
            low, high = ([(mean + sign * (half or 0.0)) / shown.factor for mean, half in of] for sign in (-1, 1))
            plot.fill_betweenx(places, low, high, color=colour, alpha=0.2, linewidth=0)
    plot.set_yticks(places, NINES_TOLD)
    plot.set(xlabel=shown.label, ylabel="share of transactions")
    if by_factors(sorted(values)) or is_wide(values):
        logarithmic(plot.xaxis)
    else:
        plot.set_xlim(left=0)
    plot.grid(alpha=0.3)
    plot.set_title("through min, p50, p90, p99, p99.9 and max of each point", fontsize=9)
    legend(figure, [plot], len(whole))
    return figure


def draw_front(
    path: str, done: Done, objectives: Sequence[tuple[str, str, bool]], summaries: Sequence[_core.Summary],
    front: Sequence[bool],
) -> None:  # fmt: skip
    """Writes a picture of the points by two figures. Raises `click.UsageError` for what cannot be drawn."""
    with as_written():
        write_figure(path, front_figure(done, objectives, summaries, front))


def front_figure(
    done: Done, objectives: Sequence[tuple[str, str, bool]], summaries: Sequence[_core.Summary], front: Sequence[bool]
) -> Figure:
    """The points by two figures, those marked that nothing beats; a third figure is their colour. Raises `click.UsageError`."""
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
    figure, (axes,) = empty(done.sweep.title)
    rest = [at for at, on_front in enumerate(best) if not on_front]
    kept = sorted((at for at, on_front in enumerate(best) if on_front), key=lambda at: (across[at], up[at]))
    axes.scatter([across[at] for at in rest], [up[at] for at in rest], s=18, color="#bbbbbb", label="beaten")
    places = [across[at] for at in kept], [up[at] for at in kept]
    if len(objectives) == 2:
        axes.plot(*places, "o--", markersize=6, linewidth=1.2, color=COLOURS[0], label="beaten by none")
    else:
        third, values = of(2)
        points = axes.scatter(
            *places, s=42, c=[values[at] for at in kept], cmap="viridis", edgecolors="black", linewidths=0.6,
            label="beaten by none", zorder=3,
        )  # fmt: skip
        figure.colorbar(points, ax=axes, label=third.label)
    axes.set(xlabel=x.label, ylabel=y.label)
    for scale, values in ((axes.xaxis, across), (axes.yaxis, up)):
        if is_wide(values):
            logarithmic(scale)
    axes.grid(alpha=0.3)
    legend(figure, [axes], 2)
    return figure
