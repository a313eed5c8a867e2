"""Line plots of the closed forms, with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy.typing as npt
from matplotlib.figure import Figure

from tlplab.plotting import COLOURS, write_figure

Line = tuple[str, npt.NDArray[Any], npt.NDArray[Any]]
"""The name of a line, the positions of its points, and their values."""


DASHES = ("-", "--", ":", "-.")
"""Of the lines of each turn through the colours."""


def figure(
    title: str, axis: str, unit: str, lines: Sequence[Line], scale: Literal["linear", "log"] = "linear"
) -> Figure:
    """A figure; lines of few points show them, and lines that have to share a colour differ in their dashes. The `scale` is that of its axis."""
    drawn = Figure(figsize=(8, 5), layout="constrained")
    axes = drawn.add_subplot()
    for number, (label, points, values) in enumerate(lines):
        turn, colour = divmod(number, len(COLOURS))
        axes.plot(
            points, values, label=label, color=COLOURS[colour], linestyle=DASHES[turn % len(DASHES)],
            marker="" if len(points) > 40 else ".",
        )  # fmt: skip
    axes.set_title(title, fontsize="medium", wrap=True)
    axes.set(xlabel=axis, ylabel=unit, ylim=(0, None), xscale=scale)
    axes.grid(alpha=0.3)
    axes.legend()
    return drawn


def draw(path: str, title: str, axis: str, lines: Sequence[Line]) -> None:
    """Writes a figure of bandwidths in Gb/s; the ending of `path` is its kind."""
    write_figure(path, figure(title, axis, "Gb/s", lines))
