"""Line plots of the closed forms, with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt
from matplotlib.figure import Figure

Line = tuple[str, npt.NDArray[Any], npt.NDArray[Any]]
"""What it is called, where its points are, and what they are."""


def figure(title: str, axis: str, unit: str, lines: Sequence[Line]) -> Figure:
    """A figure; lines of few points show them."""
    drawn = Figure(figsize=(8, 5), layout="constrained")
    axes = drawn.add_subplot()
    for label, points, values in lines:
        axes.plot(points, values, label=label, marker="" if len(points) > 40 else ".")
    axes.set_title(title, fontsize="medium", wrap=True)
    axes.set(xlabel=axis, ylabel=unit, ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend()
    return drawn


def draw(path: str, title: str, axis: str, lines: Sequence[Line]) -> None:
    """Writes a figure of bandwidths in Gb/s; the end of `path` says of what kind. A file is replaced whole or stays as it was."""
    target = Path(path)
    part = target.with_name(f".{target.name}.part")
    try:
        figure(title, axis, "Gb/s", lines).savefig(part, format=target.suffix[1:].lower())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
