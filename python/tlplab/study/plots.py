"""Pictures of a study: lines with bands, maps of two axes, fronts, distributions of latency."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from tlplab import _core
from tlplab.plotting import COLOURS, write_figure
from tlplab.study.columns import Columns, Numbers, means
from tlplab.study.running import Done
from tlplab.study.scales import Figures, is_wide, logarithmic, name_ticks, place_axis
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
    """The drawing that the command line requests."""

    x: str | None = None
    y: str | None = None
    colour: str | None = None
    beside: str | None = None
    ecdf: str | None = None
    where: str | None = None
    """Draws only points for which this holds."""

    def options(self) -> dict[str, str]:
        """The options that name it."""
        return self.scales() | ({"--plot-where": self.where} if self.where is not None else {})

    def scales(self) -> dict[str, str]:
        """The options that choose the kind of picture and its axes."""
        named = {"--x": self.x, "--y": self.y, "--colour": self.colour, "--beside": self.beside, "--ecdf": self.ecdf}
        return {option: value for option, value in named.items() if value is not None}

    def check(self, plot: str | None) -> None:
        """Refuses options that do not go together. Raises `click.UsageError`."""
        if plot is None and self.options():
            raise click.UsageError(
                "--x, --y, --colour, --beside, --ecdf and --plot-where choose the picture; name its file with --plot"
            )
        if self.ecdf is not None and len(self.scales()) > 1:
            raise click.UsageError(
                "--ecdf draws one line per point; --x, --y, --colour and --beside are for other pictures"
            )
        if self.colour is not None and self.beside is not None:
            raise click.UsageError("--beside is for lines; a map is one picture: choose its points by --plot-where")


def draw_study(path: str, done: Done, figures: str, wanted: Wanted) -> None:
    """Writes a picture of a study: lines, with `colour` a map of two axes, with `ecdf` distributions. Raises `click.UsageError` for impossible drawings."""
    with as_written():
        write_figure(path, study_figure(done, figures, wanted))


def as_written() -> AbstractContextManager[None]:
    """Texts that are drawn as they are written: a $ in a title is not a formula."""
    import matplotlib

    return matplotlib.rc_context({"text.parse_math": False})


def study_figure(done: Done, figures: str, wanted: Wanted) -> Figure:
    """The picture of a study that shows these figures. Raises `click.UsageError`."""
    if wanted.ecdf is not None:
        return distributions(done, wanted.ecdf)
    names = [name for name, _, _ in done.sweep.axes]
    if not names:
        raise click.UsageError("--plot: this study has no axis to draw over")
    across = axis(names, "--x", wanted.x) if wanted.x is not None else usual(done)
    if wanted.colour is None:
        beside = axis(names, "--beside", wanted.beside) if wanted.beside is not None else None
        return lines_of(done, across, wanted.y or done.swept.figures(figures)[0][0], beside)
    others = [name for name in names if name != across]
    if wanted.y is None and not others:
        raise click.UsageError("--colour: this study has only one axis; leave the option out to draw lines")
    return map_of(done, across, axis(names, "--y", wanted.y) if wanted.y is not None else others[0], wanted.colour)


def axis(names: Sequence[str], option: str, name: str) -> str:
    """The axis of this name. Raises `click.UsageError`."""
    if name not in names:
        raise click.UsageError(f"{option} {name}: there is no such axis; the axes are {', '.join(names)}")
    return name


def usual(done: Done) -> str:
    """The axis of numbers that has most of them, or the first."""
    axes = [axis for axis in done.sweep.axes if axis[1] is not None and len(set(axis[2])) > 1]
    return max(axes, key=lambda axis: len(set(axis[2])))[0] if axes else done.sweep.axes[0][0]


def empty(title: str, pictures: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure with some plots next to each other, of the same scale upwards."""
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


def lines_of(done: Done, x: str, y: str, beside: str | None = None) -> Figure:
    """A figure along one axis: a line for each combination of the other axes, with a band where there are repeats; with `beside` a picture for each value of another axis."""
    written, name, unit = figure_of(done, "--y", y, "the vertical axis shows one figure")
    if x == beside:
        raise click.UsageError(f"--beside {beside}: this is the horizontal axis; name another one")
    summaries = done.swept.summaries(written)
    up, half = means(summaries, 0)
    known = ~np.isnan(up)
    if not known.any():
        raise click.UsageError(f"--plot: no point has {name}")
    points, up, half = Columns.of(done, summaries).only(known), up[known], half[known]
    across = points.number(x)
    pictures = [points.number(beside)] if beside is not None else []
    others = [axis for axis in range(len(points.names)) if axis not in (across, *pictures) and points.vary(axis)]
    # What goes along with the axis tells no lines apart.
    along = [points.names[axis] for axis in others if points.tied(axis, across)]
    vary = [axis for axis in others if points.names[axis] not in along]
    lines, groups = points.groups(vary), points.groups(pictures)
    check_many(len(lines), len(groups))
    shown = Figures.of(name, unit, up)
    figure, plots = empty(done.sweep.title, len(groups))
    present = np.unique(points.at[across])
    for plot, group in zip(plots, groups, strict=True):
        plot.set_title(label_of(points, pictures, int(group[0]), always=True), fontsize=10)
        place = place_axis(plot, x, points.units[across], [points.values[across][at] for at in present])
        places = np.full(len(points.values[across]), np.nan)
        places[present] = [place(points.values[across][at]) for at in present]
        if along:
            plot.set_xlabel(f"{plot.get_xlabel()} with {', '.join(along)}")
        for number, line in enumerate(lines):
            here = np.intersect1d(line, group, assume_unique=True)
            here = here[np.argsort(places[points.at[across][here]], kind="stable")]
            label = label_of(points, vary, int(line[0]))
            draw_line(
                plot,
                label,
                places[points.at[across][here]],
                up[here] / shown.factor,
                half[here] / shown.factor,
                number,
                len(lines),
            )
        plot.grid(alpha=0.3)
    for plot in plots[::2]:
        plot.set_ylabel(shown.label)
    upwards(plots, up)
    legend(figure, plots, len(lines))
    return figure


def check_many(lines: int, pictures: int) -> None:
    """Refuses a picture that is too full to be read. Raises `click.UsageError`."""
    if lines > MOST_LINES:
        raise click.UsageError(
            f"--plot: there would be {lines} lines; choose points by --plot-where, make a picture for each value of an axis by --beside, or draw a map of two axes with --colour"
        )
    if pictures > MOST_PICTURES:
        raise click.UsageError(f"--beside: there would be {pictures} pictures; choose points by --plot-where")


def draw_line(plot: Axes, label: str, across: Numbers, up: Numbers, half: Numbers, number: int, of: int) -> None:
    """Draws a line, one of so many, and its band."""
    if not across.size:
        return
    colour = COLOURS[number % len(COLOURS)]
    # Lines that lie on each other are seen all the same.
    style = STYLES[number % len(STYLES)]
    marks: dict[str, Any] = {
        "marker": MARKS[number % len(MARKS)], "markersize": 8 - 4 * number / of, "markerfacecolor": "none",
    }  # fmt: skip
    dense = across.size > MARKED
    plot.plot(
        across, up, "-" if dense else style, color=colour, label=label,
        linewidth=1.1 if dense else 1.5, **({} if dense else marks),
    )  # fmt: skip
    if half.any():
        plot.fill_between(across, up - half, up + half, color=colour, alpha=0.2, linewidth=0)


def upwards(plots: Sequence[Axes], values: Numbers) -> None:
    """The scale upwards: from 0, or logarithmic where values are wide apart."""
    if is_wide(values):
        logarithmic(plots[0].yaxis)
    elif values.min() >= 0:
        plots[0].set_ylim(0, ROOM * max(plot.dataLim.y1 for plot in plots) or 1)


def legend(figure: Figure, plots: Sequence[Axes], lines: int) -> None:
    """Names lines below the data, where they cover none of them."""
    if lines < 2:
        return
    found = {text: handle for plot in plots for handle, text in zip(*plot.get_legend_handles_labels(), strict=True)}
    longest = max(map(len, found))
    columns = max(1, min(len(found), int(figure.get_figwidth() * 13 / (longest + 6))))
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=columns, fontsize=9, frameon=False)


def label_of(points: Columns, axes: Sequence[int], point: int, *, always: bool = False) -> str:
    """The label of a line or a picture: values of a point, with the names of axes whose values do not explain themselves."""
    told = []
    for axis in axes:
        value, unit = points.values[axis][points.at[axis][point]], points.units[axis]
        named = always or unit is not None or isinstance(value, bool)
        told.append(f"{points.names[axis]} {setting(value, unit)}" if named else str(value))
    return ", ".join(told)


def map_of(done: Done, x: str, y: str, colour: str) -> Figure:
    """A map of two axes, coloured by a figure. Other axes may not vary, but with one of these two."""
    from matplotlib.colors import LogNorm, Normalize

    if x == y:
        raise click.UsageError(f"--y {y}: this is the horizontal axis; name another one")
    written, name, unit = figure_of(done, "--colour", colour, "a map shows one figure")
    summaries = done.swept.summaries(written)
    points, (cells, _) = Columns.of(done, summaries), means(summaries, 0)
    if np.isnan(cells).all():
        raise click.UsageError(f"--plot: no point has {name}")
    across, up = points.number(x), points.number(y)
    others = [
        points.names[axis]
        for axis in range(len(points.names))
        if axis not in (across, up) and points.vary(axis) and not (points.tied(axis, across) or points.tied(axis, up))
    ]
    if others:
        raise click.UsageError(f"--colour: points also differ in {', '.join(others)}; choose them by --where")
    columns, column = np.unique(points.at[across], return_inverse=True)
    rows, row = np.unique(points.at[up], return_inverse=True)
    shown = Figures.of(name, unit, cells[~np.isnan(cells)])
    figure, (axes,) = empty(done.sweep.title)
    grid = np.full((len(rows), len(columns)), np.nan)
    grid[row, column] = cells / shown.factor
    low, high = np.nanmin(grid), np.nanmax(grid)
    norm = LogNorm(low, high) if is_wide(grid[~np.isnan(grid)]) else Normalize(low, high)
    image = axes.imshow(grid, aspect="auto", origin="lower", cmap="viridis", norm=norm)
    for ticks, present, axis in ((axes.xaxis, columns, across), (axes.yaxis, rows, up)):
        name_ticks(ticks, [setting(points.values[axis][at], points.units[axis]) for at in present])
    axes.set(xlabel=x, ylabel=y)
    if grid.size <= MOST_FIGURES:
        for (at_row, at_column), value in np.ndenumerate(grid):
            if not np.isnan(value):
                dark = "white" if norm(value) < 0.6 else "black"
                axes.text(at_column, at_row, f"{value:.3g}", ha="center", va="center", fontsize=8, color=dark)
    bar = figure.colorbar(image, ax=axes, label=shown.label)
    if isinstance(norm, LogNorm):
        logarithmic(bar.ax.yaxis)
    return figure


def distributions(done: Done, flow: str) -> Figure:
    """The distributions of a flow's latency, one for each point, drawn through the kept percentiles, on a scale of nines."""
    summaries = done.swept.summaries(", ".join(f"{flow}.latency.{one}" for one in NINES))
    told = [means(summaries, number) for number in range(len(NINES))]
    values, halves = (np.array([column[which] for column in told]).T for which in (0, 1))
    whole = ~np.isnan(values).any(axis=1)
    if not whole.any():
        raise click.UsageError(f"--ecdf: no point has the latency of {flow}")
    check_many(int(whole.sum()), 1)
    values, halves, points = values[whole], halves[whole], Columns.of(done, summaries).only(whole)
    vary = [axis for axis in range(len(points.names)) if points.vary(axis)]
    shown = Figures.of(f"latency of {flow}", "ns", values.ravel())
    figure, (plot,) = empty(done.sweep.title)
    places = list(NINES.values())
    for number, (of, half) in enumerate(zip(values / shown.factor, halves / shown.factor, strict=True)):
        colour = COLOURS[number % len(COLOURS)]
        plot.plot(
            of, places, STYLES[number % len(STYLES)], label=label_of(points, vary, number), color=colour,
            marker=MARKS[number % len(MARKS)], markersize=8 - 4 * number / len(values), markerfacecolor="none",
        )  # fmt: skip
        if half.any():
            plot.fill_betweenx(places, of - half, of + half, color=colour, alpha=0.2, linewidth=0)
    plot.set_yticks(places, NINES_TOLD)
    plot.set(xlabel=shown.label, ylabel="share of transactions")
    if is_wide(values.ravel()):
        logarithmic(plot.xaxis)
    else:
        plot.set_xlim(left=0)
    plot.grid(alpha=0.3)
    plot.set_title("through min, p50, p90, p99, p99.9 and max of each point", fontsize=9)
    legend(figure, [plot], len(whole))
    return figure


def draw_front(
    path: str, done: Done, objectives: Sequence[tuple[str, str, bool]], summaries: _core.Summaries,
    front: Sequence[bool],
) -> None:  # fmt: skip
    """Writes a picture of the points by two figures. Raises `click.UsageError` for impossible drawings."""
    with as_written():
        write_figure(path, front_figure(done, objectives, summaries, front))


def front_figure(
    done: Done, objectives: Sequence[tuple[str, str, bool]], summaries: _core.Summaries, front: Sequence[bool]
) -> Figure:
    """The points by two figures, those marked that nothing beats; a third figure is their colour. Raises `click.UsageError`."""
    if len(objectives) < 2:
        raise click.UsageError("--plot: a front needs two or three figures; name another one")
    told = np.array([means(summaries, number)[0] for number in range(len(objectives))])
    whole = ~np.isnan(told).any(axis=0)
    if not whole.any():
        raise click.UsageError("--plot: no point has all of these figures")
    told, best = told[:, whole], np.array(front, dtype=bool)[whole]
    scales = []
    for number, (name, unit, more) in enumerate(objectives):
        shown = Figures.of(name, unit, told[number])
        told[number] /= shown.factor
        scales.append(f"{shown.label} ({'more' if more else 'less'} is better)")
    across, up = told[0], told[1]
    figure, (axes,) = empty(done.sweep.title)
    kept = np.flatnonzero(best)
    kept = kept[np.lexsort((up[kept], across[kept]))]
    axes.scatter(across[~best], up[~best], s=18, color="#bbbbbb", label="beaten")
    if len(objectives) == 2:
        axes.plot(across[kept], up[kept], "o--", markersize=6, linewidth=1.2, color=COLOURS[0], label="Pareto front")
    else:
        points = axes.scatter(
            across[kept], up[kept], s=42, c=told[2][kept], cmap="viridis", edgecolors="black", linewidths=0.6,
            label="Pareto front", zorder=3,
        )  # fmt: skip
        figure.colorbar(points, ax=axes, label=scales[2])
    axes.set(xlabel=scales[0], ylabel=scales[1])
    for scale, values in ((axes.xaxis, across), (axes.yaxis, up)):
        if is_wide(values):
            logarithmic(scale)
    axes.grid(alpha=0.3)
    legend(figure, [axes], 2)
    return figure
