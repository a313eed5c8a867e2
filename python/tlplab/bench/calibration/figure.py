"""Measured and simulated, as small multiples: one panel for each file and its swept parameter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tlplab import plotting
from tlplab.bench.calibration.compare import Comparison
from tlplab.plotting import COLOURS

COLUMNS = 5
# Room for a legend above the data.
LEGEND = 0.25
PANEL_INCHES = (4.2, 3.1)
AXES = {"size": "size, B", "window": "window, B", "host offset": "host offset, B", "device offset": "device offset, B",
        "nothing": "window, B", "quantile": "latency, ns"}  # fmt: skip
UNITS = {"bandwidth": "Gb/s", "latency": "median, ns", "distribution": "quantile"}


def panels(comparisons: Sequence[Comparison]) -> list[list[Comparison]]:
    """The curves of each panel: the series of one file that sweep the same parameter; distributions of one operation and size.

    Single points of which there is a distribution are left out.
    """
    groups: dict[tuple[str, str, str], list[Comparison]] = {}
    for one in comparisons:
        if one.swept != "nothing":
            operation = " ".join(glued(one.series).split(" ")[1:3]) if one.kind == "distribution" else ""
            groups.setdefault((one.file, one.swept, operation), []).append(one)
    return list(groups.values()) or [list(comparisons)]


def labels(drawn: Sequence[Comparison]) -> list[str]:
    """The series' names, without the words that all of a panel share."""
    words = [[w.replace("\N{NO-BREAK SPACE}", " ") for w in glued(one.series).split(" ")] for one in drawn]
    common = set(words[0]).intersection(*words)
    return [" ".join(word for word in one if word not in common) for one in words]


def glued(name: str) -> str:
    """A series' name with figures and their units kept together."""
    return re.sub(r"(\d) (B|KiB|MiB)\b", "\\1\N{NO-BREAK SPACE}\\2", name)


def write_figure(path: str, comparisons: Sequence[Comparison], title: str) -> None:
    """Draws all comparisons; the ending of `path` is the kind (.png, .svg, .pdf)."""
    from matplotlib.figure import Figure

    groups = panels(comparisons)
    columns = min(COLUMNS, len(groups))
    rows = -(-len(groups) // columns)
    figure = Figure(figsize=(PANEL_INCHES[0] * columns, PANEL_INCHES[1] * rows + 0.6), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for ax, group in zip(axes.flat, groups, strict=False):
        draw(ax, group)
    for ax in list(axes.flat)[len(groups) :]:
        ax.set_axis_off()
    figure.suptitle(f"{title}: measured (dots) and simulated (lines)", fontsize=13)
    plotting.write_figure(path, figure)


def draw(ax: Any, group: Sequence[Comparison]) -> None:
    """One panel."""
    first = group[0]
    for number, (one, label) in enumerate(zip(group, labels(group), strict=True)):
        colour = COLOURS[number % len(COLOURS)]
        pairs = sorted(zip(one.positions, one.measured, one.simulated, strict=True))
        xs, measured, simulated = ([p[k] for p in pairs] for k in range(3))
        if one.kind == "distribution":
            ax.plot(measured, xs, "o", color=colour, markersize=3)
            ax.plot(simulated, xs, "-", color=colour, linewidth=1, label=label)
        else:
            ax.plot(xs, measured, "o", color=colour, markersize=2.6)
            ax.plot(xs, simulated, "-", color=colour, linewidth=1, label=label)
    if first.kind == "distribution":
        ax.set_yscale("logit")
        ax.set_yticks(
            [0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999], ["5 %", "25 %", "50 %", "75 %", "95 %", "99 %", "99.9 %"]
        )
        ax.minorticks_off()
    else:
        if first.swept in ("window", "nothing"):
            ax.set_xscale("log", base=2)
            ax.set_xticks([2.0**k for k in range(10, 27, 4)], ["1 KiB", "16 KiB", "256 KiB", "4 MiB", "64 MiB"])
        if first.kind == "bandwidth":
            ax.set_ylim(0, 1.08 * max(max(one.measured + one.simulated) for one in group))
    name = first.file.removesuffix(".csv")
    operation = " ".join(glued(first.series).split(" ")[1:3]).replace("\N{NO-BREAK SPACE}", " ")
    ax.set_title(f"{name} {operation}" if first.kind == "distribution" else f"{name} by {first.swept}", fontsize=9)
    ax.set_xlabel(AXES[first.swept], fontsize=8)
    ax.set_ylabel(UNITS[first.kind], fontsize=8)
    ax.tick_params(labelsize=7)
    ax.grid(alpha=0.25, linewidth=0.5)
    if len(group) > 1:
        if first.kind != "distribution":
            low, high = ax.get_ylim()
            ax.set_ylim(low, high + LEGEND * (high - low))
        ax.legend(fontsize=6, framealpha=0.6, ncols=1 + (len(group) > 4))
