"""Captures as the paper draws them: tags over time, link by link (figures 13 and 14), and lines (figure 15)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy.typing as npt

from tlplab.nettlp import capture_plot
from tlplab.reproduce import chart

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Inches: two of them stand beside each other on a page.
WIDTH, LINK, REST = 5.2, 1.5, 0.8
# Of a line of figure 15, in pixels; of a letter of it.
LINE, LETTER, SIZE = 15, 6.1, 10


@dataclass(frozen=True)
class Tags:
    """The tags of a capture's TLPs over time, an axis for each link."""

    title: str
    document: dict[str, Any]
    points: dict[str, npt.NDArray[Any]]

    def figure(self) -> Figure:
        """The plot."""
        from matplotlib.figure import Figure

        links: dict[frozenset[str], list[int]] = {}
        # In the order of their first TLPs, whose time is 0.
        for number in dict.fromkeys(self.points["direction"].tolist()):
            direction = self.document["directions"][number]
            links.setdefault(frozenset((direction["from"], direction["to"])), []).append(number)
        times = self.points["time_ns"] - self.points["time_ns"].min(initial=float("inf"))
        unit, factor = capture_plot.scale(float(times.max(initial=0)))
        drawn = Figure(figsize=(WIDTH, REST + LINK * max(len(links), 1)), layout="constrained")
        rows = drawn.subplots(max(len(links), 1), 1, sharex=True, squeeze=False)[:, 0]
        for axes, directions in zip(rows, links.values(), strict=False):
            capture_plot.tags(axes, self.points, times / factor, directions)
            first = self.document["directions"][directions[0]]
            axes.set_title(f"{first['from']} – {first['to']}", fontsize="small", loc="left")
        rows[-1].set_xlabel(f"time ({unit})")
        drawn.suptitle(self.title, fontsize="medium")
        return drawn

    def svg(self) -> str:
        """The plot; the same capture gives the same text."""
        text = io.StringIO()
        with matplotlib.rc_context({"svg.hashsalt": self.title}):
            self.figure().savefig(text, format="svg", metadata={"Date": None}, dpi=130)
        return text.getvalue()[text.getvalue().index("<svg") :]


@dataclass(frozen=True)
class Lines:
    """Lines of `tlplab dump`."""

    title: str
    lines: Sequence[str]

    def svg(self) -> str:
        """The lines, as on a terminal."""
        wide = round(max((len(line) for line in self.lines), default=0) * LETTER) + 16
        high = 40 + LINE * len(self.lines)
        parts = [chart.text(8, 17, self.title, size=13, weight="bold")]
        parts += [
            f'<text x="8" y="{40 + LINE * number}" font-size="{SIZE}" font-family="monospace" fill="#222" xml:space="preserve">{escape(line)}</text>'
            for number, line in enumerate(self.lines)
        ]
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(self.title)}" '
            f'viewBox="0 0 {wide} {high}" width="{wide}" height="{high}">{"".join(parts)}</svg>'
        )
