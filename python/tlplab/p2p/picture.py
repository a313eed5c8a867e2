"""The heat map of `--plot`: the matrices side by side, the flows below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tlplab.p2p.survey import MATRICES, Survey
from tlplab.p2p.tables import FAILED, carried, marked, total
from tlplab.plotting import COLOURS, write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A cell of a matrix and a bar, in inches; more devices than this get no figures in their cells.
CELL, BAR, LEAST = 0.42, 0.19, 3.2
MOST_FIGURES = 24
COLUMNS = 2
DARK = 0.55


def draw(path: str, survey: Survey) -> None:
    """Writes the picture."""
    from matplotlib.figure import Figure

    names = list(survey.matrices)
    several = survey.several
    rows = -(-len(names) // COLUMNS)
    side = max(LEAST, CELL * len(survey.devices) + 1.2)
    bars = (
        max(1.6, BAR * sum(len(one.flows) if one.kind == "named" else 1 for one, _ in several) + 0.9) if several else 0
    )
    heights = [side] * rows + ([bars] if several else [])
    figure = Figure(figsize=(COLUMNS * (side + 0.6), sum(heights) + 0.4), layout="constrained")
    grid = figure.add_gridspec(len(heights), COLUMNS, height_ratios=heights)
    for number, name in enumerate(names):
        heat(figure.add_subplot(grid[number // COLUMNS, number % COLUMNS]), survey, name)
    if several:
        totals(figure.add_subplot(grid[rows, :]), survey)
    figure.suptitle(survey.title, fontsize=11)
    write_figure(path, figure)


def heat(axes: Axes, survey: Survey, name: str) -> None:
    """A matrix, with its figures in the cells."""
    import numpy as np

    words, unit = MATRICES[name]
    matrix = survey.matrices[name]
    labels = [device.name for device in survey.devices]
    values = np.array([[np.nan if value is None else value for value in row] for row in matrix])
    known = values[~np.isnan(values)] if any(value is not None for row in matrix for value in row) else np.zeros(1)
    # Rates from zero, so that half as much looks like half; times from their least, which is never near zero.
    low = float(known.min()) * 0.8 if unit == "ns" else 0.0
    image = axes.imshow(values, cmap="viridis_r" if unit == "ns" else "viridis", vmin=low, vmax=float(known.max()))
    axes.set_xticks(range(len(labels)), labels, rotation=90, fontsize=7)
    axes.set_yticks(range(len(labels)), labels, fontsize=7)
    axes.set_title(f"{words}, {unit}", fontsize=8)
    axes.figure.colorbar(image, ax=axes, shrink=0.8).ax.tick_params(labelsize=7)
    if len(labels) <= MOST_FIGURES:
        write_cells(axes, survey, name, low, float(known.max()))


def write_cells(axes: Axes, survey: Survey, name: str, low: float, high: float) -> None:
    """The figures with their marks, dark where the cell is light."""
    _, unit = MATRICES[name]
    for row, line in enumerate(survey.matrices[name]):
        for column, value in enumerate(line):
            if value is None:
                if row != column:
                    axes.text(column, row, FAILED, ha="center", va="center", fontsize=7)
                continue
            share = (value - low) / (high - low or 1)
            light = share > DARK if unit != "ns" else share < 1 - DARK
            text = marked(survey, name, row, column)
            text += f"{value:.0f}" if unit == "ns" or value >= 99.95 else f"{value:.1f}"
            axes.text(column, row, text, ha="center", va="center", fontsize=6, color="black" if light else "white")


def totals(axes: Axes, survey: Survey) -> None:
    """Draw the total rate of flows, a bar each; writes and reads have colours of their own. Flows that the user named have a bar each."""
    lines = [
        line
        for one, found in survey.several
        for line in (
            [
                (f"{rate.flow}, {rate.flow.op}", rate.gbps, carried(rate, found.steady), rate.flow.op)
                for rate in found.rates
            ]
            if one.kind == "named"
            else [(one.name, found.total, total(found), one.op)]
        )
    ]
    bars = axes.barh(
        range(len(lines)), [gbps for _, gbps, *_ in lines], color=[COLOURS[op != "write"] for *_, op in lines]
    )
    axes.bar_label(bars, [label for *_, label, _ in lines], fontsize=7, padding=2)
    axes.set_yticks(range(len(lines)), [name for name, *_ in lines], fontsize=7)
    axes.invert_yaxis()
    axes.margins(x=0.08)
    axes.set_xlabel("GB/s of flows together", fontsize=8)
    axes.tick_params(axis="x", labelsize=7)
    axes.grid(axis="x", alpha=0.3)
