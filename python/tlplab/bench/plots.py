"""Plots of results: curves by the swept parameter, distributions, time series."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tlplab.bench.against import Curve, Reference
from tlplab.bench.result import Result
from tlplab.bench.sweep import Sweep, text_of, words
from tlplab.plotting import COLOURS, write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = ("curve", "cdf", "histogram", "series")
DISTRIBUTIONS = ("cdf", "histogram")
# How high an axis goes above what is highest, and what a label takes of an axis.
ROOM = 1.08
LABEL = 0.05
HERE, THERE = "here", "data set"
AXES = {
    "size": "transfer size", "window": "window", "host_offset": "offset in host memory",
    "device_offset": "offset in device memory",
}  # fmt: skip


@dataclass(frozen=True)
class Picture:
    """A plot that is wanted: where, and one of `KINDS`."""

    path: str
    kind: str


def usual(sweep: Sweep, latency: bool) -> str:
    """The default kind of plot for a sweep."""
    if sweep.axis is not None:
        return "curve"
    return "cdf" if latency else "series"


def value_of(result: Result) -> float:
    """The value of a result in a curve: the bandwidth in Gb/s, or the median in ns."""
    return result.latency.median_ns if result.latency is not None else result.gbps


def curves(results: Sequence[Result], sweep: Sweep) -> list[Curve]:
    """The results by the swept parameter, one line for each combination of everything else."""
    lines: dict[str, list[tuple[float, float]]] = {}
    axis = sweep.axis
    for number, result in enumerate(results):
        at = getattr(result.case, axis) if axis is not None else number
        lines.setdefault(sweep.label(result.case, without=axis), []).append((at, value_of(result)))
    return [Curve(label, sorted(points)) for label, points in lines.items()]


def draw(picture: Picture, results: Sequence[Result], sweep: Sweep, title: str, reference: Reference | None) -> None:
    """Writes a plot; a data set's series are drawn as dots, its distributions dotted."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes: Axes = figure.add_subplot()
    if picture.kind == "curve":
        curve(axes, results, sweep, reference.curves(sweep) if reference is not None else [])
    elif picture.kind == "cdf":
        cdf(axes, results, sweep, reference.cdfs(sweep) if reference is not None else [])
    elif picture.kind == "histogram":
        histogram(axes, results, sweep)
    else:
        series(axes, results, sweep)
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.3)
    if len(axes.get_legend_handles_labels()[1]) > 1:
        axes.legend(fontsize=8)
    write_figure(picture.path, figure)


def curve(axes: Axes, results: Sequence[Result], sweep: Sweep, measured: Sequence[Curve]) -> None:
    """Bandwidth or median latency by the swept parameter; dots are measured."""
    colours: dict[str, str] = {}
    for line in curves(results, sweep):
        colour = colour_of(line.label, colours)
        axes.plot(*columns(line), "-" if len(line.points) > 30 else ".-", color=colour, label=line.label or HERE)
    for line in measured:
        label = f"{line.label}, {THERE}" if line.label else THERE
        axes.plot(
            *columns(line), "o", markersize=5, markerfacecolor="none", color=colour_of(line.label, colours), label=label
        )
    axis = sweep.axis or "case"
    latency = results[0].latency is not None
    axes.set(xlabel=AXES.get(axis, axis), ylabel="median latency, ns" if latency else "bandwidth, Gb/s")
    axes.set_ylim(0, ROOM * axes.dataLim.y1)
    places = [value for value in sweep.axes.get(axis, []) if isinstance(value, int)]
    if places and min(places) > 0 and max(places) >= 16 * min(places):
        axes.set_xscale("log", base=2)
    spread = apart(places, logarithmic=axes.get_xscale() == "log")
    axes.set_xticks(spread, [text_of(axis, value) for value in spread], rotation=30, ha="right", fontsize=8)
    axes.minorticks_off()


def apart(places: Sequence[int], *, logarithmic: bool) -> list[int]:
    """The places whose labels do not overlap."""
    scale = math.log2 if logarithmic else float
    ordered = sorted(set(places))
    kept = ordered[:1]
    for place in ordered[1:]:
        if scale(place) - scale(kept[-1]) >= LABEL * (scale(ordered[-1]) - scale(ordered[0])):
            kept.append(place)
    return kept


def colour_of(label: str, colours: dict[str, str]) -> str:
    """The colour of a line, independent of the order of drawing."""
    return colours.setdefault(label, COLOURS[len(colours) % len(COLOURS)])


def cdf(axes: Axes, results: Sequence[Result], sweep: Sweep, measured: Sequence[Curve]) -> None:
    """The part of the samples that do not exceed a latency."""
    colours: dict[str, str] = {}
    for result in results:
        assert result.latency is not None
        points = result.latency.cdf()
        line = Curve(sweep.label(result.case), [(points[0][0], 0.0), *points])
        colour = colour_of(line.label, colours)
        axes.step(*columns(line), where="post", color=colour, label=line.label or HERE)
    for line in measured:
        label = f"{line.label}, {THERE}" if line.label else THERE
        axes.step(
            *columns(line), where="post", linestyle=":", linewidth=2, color=colour_of(line.label, colours), label=label
        )
    axes.set(xlabel="latency, ns", ylabel="part of the samples", ylim=(0, 1.02))


def histogram(axes: Axes, results: Sequence[Result], sweep: Sweep) -> None:
    """Draw the frequency of each latency."""
    for number, result in enumerate(r for r in results if r.latency is not None):
        assert result.latency is not None
        places, counts = zip(*result.latency.histogram, strict=True)
        label = sweep.label(result.case) or words("size", result.case.size)
        axes.bar(places, counts, width=result.tick_ns, alpha=0.6, color=COLOURS[number % len(COLOURS)], label=label)
    axes.set(xlabel="latency, ns", ylabel="samples", yscale="log")


def series(axes: Axes, results: Sequence[Result], sweep: Sweep) -> None:
    """Latency or bandwidth over the time of the run."""
    for number, result in enumerate(results):
        scale = 1.0 if result.latency is not None else 1e-9
        points = [(at / 1e3, value * scale) for at, value in result.series]
        line = Curve(sweep.label(result.case) or words("size", result.case.size), points)
        axes.plot(*columns(line), color=COLOURS[number % len(COLOURS)], linewidth=1, label=line.label)
    latency = results[0].latency is not None
    axes.set(xlabel="simulated time, µs", ylabel="latency, ns" if latency else "bandwidth, Gb/s", ylim=(0, None))


def columns(line: Curve) -> tuple[list[Any], list[Any]]:
    """The points of a line as matplotlib takes them."""
    return [at for at, _ in line.points], [value for _, value in line.points]
