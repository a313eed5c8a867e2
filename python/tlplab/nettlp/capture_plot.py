"""Captures as plots: which tags are used when, as in figures 13 and 14 of the NetTLP paper, and how many requests wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tlplab.plotting import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = (("MRd", "o"), ("MWr", "s"), ("CplD", "^"), ("Cpl", "v"), ("other", "x"))
# More dots than this are drawn as an image even in a vector file.
VECTOR_DOTS = 5000


def figure(name: str, document: dict[str, Any], points: dict[str, npt.NDArray[Any]]) -> Figure:
    """A row of axes for each direction that has TLPs: tags over time, and below how many requests wait."""
    from matplotlib.figure import Figure

    shown = [n for n, direction in enumerate(document["directions"]) if direction["kinds"]]
    unit, factor = scale(float(points["time_ns"].max()) if len(points["time_ns"]) else 0.0)
    times = points["time_ns"] / factor
    drawn = Figure(figsize=(9, 1 + 2.1 * (len(shown) + 1)), layout="constrained")
    rows = np.atleast_1d(drawn.subplots(len(shown) + 1, 1, sharex=True))
    for axes, number in zip(rows, shown, strict=False):
        direction = document["directions"][number]
        tags(axes, points, times, [number])
        axes.set_title(f"{direction['from']} → {direction['to']}", fontsize="medium", loc="left")
    waiting(rows[-1], document, points, times)
    rows[-1].set_xlabel(f"time ({unit})")
    drawn.suptitle(name)
    return drawn


def scale(nanoseconds: float) -> tuple[str, float]:
    """The unit in which so much time is shown, and its nanoseconds."""
    if nanoseconds >= 2e9:
        return "s", 1e9
    return ("ms", 1e6) if nanoseconds >= 2e6 else ("µs", 1e3)


def tags(axes: Axes, points: dict[str, npt.NDArray[Any]], times: npt.NDArray[Any], directions: Sequence[int]) -> None:
    """Each TLP of these directions as a dot: its time, its tag, its kind."""
    for code, (label, marker) in enumerate(KINDS):
        chosen = np.isin(points["direction"], directions) & (points["kind"] == code)
        if chosen.any():
            axes.plot(
                times[chosen], points["tag"][chosen], marker, color=COLOURS[code], markersize=4, label=label,
                linestyle="none", fillstyle="none", rasterized=bool(chosen.sum() > VECTOR_DOTS),
            )  # fmt: skip
    low, high = axes.get_ylim()
    if high - low < 1:
        # A single tag.
        axes.set_ylim(round(low) - 0.5, round(low) + 0.5)
    axes.set_ylabel("tag")
    whole_numbers(axes)
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))


def whole_numbers(axes: Axes) -> None:
    """Both figures are counted."""
    from matplotlib.ticker import MaxNLocator

    axes.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def waiting(axes: Axes, document: dict[str, Any], points: dict[str, npt.NDArray[Any]], times: npt.NDArray[Any]) -> None:
    """Draw the number of requests that wait for completions, for each direction with requests."""
    ends = [(direction["from"], direction["to"]) for direction in document["directions"]]
    for number, (sender, receiver) in enumerate(ends):
        # A completion that comes back changes it, too.
        back = ends.index((receiver, sender)) if (receiver, sender) in ends else -1
        asks = (points["direction"] == number) & np.isin(points["kind"], (0, 4))
        answers = (points["direction"] == back) & np.isin(points["kind"], (2, 3))
        chosen = asks | answers
        if asks.any():
            axes.step(
                times[chosen], points["outstanding"][chosen], where="post", color=COLOURS[number % len(COLOURS)],
                label=f"{sender} → {receiver}", rasterized=bool(chosen.sum() > VECTOR_DOTS),
            )  # fmt: skip
    axes.set_ylabel("outstanding requests")
    axes.set_ylim(bottom=0)
    whole_numbers(axes)
    if axes.lines:
        axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
