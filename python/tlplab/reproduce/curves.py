"""Line plots as SVG, for the page of `--report`."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Literal

import matplotlib

from tlplab.analytic.plot import Line, figure


@dataclass(frozen=True)
class Curves:
    """Lines over one axis."""

    title: str
    axis: str
    unit: str
    lines: tuple[Line, ...]
    scale: Literal["linear", "log"] = "linear"
    """Of the axis."""

    def svg(self) -> str:
        """The plot; the same figures give the same text."""
        text = io.StringIO()
        with matplotlib.rc_context({"svg.hashsalt": self.title}):
            drawn = figure(self.title, self.axis, self.unit, self.lines, self.scale)
            drawn.savefig(text, format="svg", metadata={"Date": None})
        return text.getvalue()[text.getvalue().index("<svg") :]
