"""Pictures of the effects of parameters on a figure: the largest on top."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tlplab.plotting import COLOURS, write_figure
from tlplab.study.scales import Figures
from tlplab.study.sensing import Effect, Sensed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAR = 0.62
MOST_BARS = 24


def draw(path: str, title: str, name: str, unit: str, sensed: Sensed, method: str) -> None:
    """Writes the picture; of many parameters, the first ones."""
    from matplotlib.figure import Figure

    effects = sensed.effects[:MOST_BARS]
    figure = Figure(figsize=(8, 1.6 + 0.5 * max(len(effects), 3)), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, fontsize=10)
    if method == "one-at-a-time":
        draw_ends(axes, name, unit, sensed, effects)
    elif method == "morris":
        draw_morris(axes, name, unit, effects)
    else:
        draw_sobol(axes, name, effects)
    axes.set_yticks(range(len(effects)), [one.name for one in effects])
    axes.invert_yaxis()
    axes.grid(alpha=0.3, axis="x")
    axes.set_axisbelow(True)
    if method != "one-at-a-time":
        figure.legend(fontsize=8, loc="outside lower center", ncols=2)
    write_figure(path, figure)


def draw_ends(axes: Axes, name: str, unit: str, sensed: Sensed, effects: tuple[Effect, ...]) -> None:
    """Bars from the least to the greatest, around the base."""
    assert sensed.base is not None
    base = sensed.base[0]
    shown = Figures.of(name, unit, [base, *(end.value for one in effects for end in (one.low, one.high) if end)])
    for at, one in enumerate(effects):
        assert one.low is not None
        assert one.high is not None
        low, high = one.low.value / shown.factor, one.high.value / shown.factor
        middle = min(max(base / shown.factor, low), high)
        axes.barh(at, low - middle, BAR, left=middle, color=COLOURS[0])
        axes.barh(at, high - middle, BAR, left=middle, color=COLOURS[1])
        for end, value, side, gap in ((one.low, low, "right", -4), (one.high, high, "left", 4)):
            if one.size:
                axes.annotate(
                    end.label, (value, at), (gap, 0), textcoords="offset points", ha=side, va="center", fontsize=8
                )
        if not one.size:
            axes.annotate("no difference", (high, at), (4, 0), textcoords="offset points", va="center", fontsize=8)
    axes.axvline(base / shown.factor, color="black", linewidth=1)
    axes.set_xlabel(f"{shown.label} (the line is the base)")
    # Room for what stands beside the bars; a latency is never below 0.
    axes.use_sticky_edges = False
    axes.margins(x=0.25)
    left, right = axes.get_xlim()
    least = min(base, *(one.low.value for one in effects if one.low))
    axes.set_xticks([tick for tick in axes.get_xticks() if left <= tick <= right and (tick >= 0 or least < 0)])


def draw_morris(axes: Axes, name: str, unit: str, effects: tuple[Effect, ...]) -> None:
    """A bar for the mean effect with its interval, a mark for how it differs from place to place."""
    shown = Figures.of(f"effect on {name}", unit, [one.size for one in effects])
    sizes = [one.size / shown.factor for one in effects]
    halves = [(one.half or 0.0) / shown.factor for one in effects]
    places = range(len(effects))
    axes.barh(places, sizes, BAR, xerr=halves, capsize=3, color=COLOURS[0], label="mean over the range, μ*")
    sigmas = [(one.other or 0.0) / shown.factor for one in effects]
    axes.plot(sigmas, places, "D", color=COLOURS[1], markersize=6, label="differs by place, σ")
    axes.set_xlabel(shown.label)
    axes.set_xlim(left=0)


def draw_sobol(axes: Axes, name: str, effects: tuple[Effect, ...]) -> None:
    """Two bars for each parameter, with their intervals."""
    total = [one.size for one in effects]
    first = [one.other or 0.0 for one in effects]
    up = [at - BAR / 4 for at in range(len(effects))]
    down = [at + BAR / 4 for at in range(len(effects))]
    halves = [one.half or 0.0 for one in effects]
    axes.barh(up, total, BAR / 2, xerr=halves, capsize=3, color=COLOURS[0], label="with all that it takes part in, ST")
    halves = [one.other_half or 0.0 for one in effects]
    axes.barh(down, first, BAR / 2, xerr=halves, capsize=3, color=COLOURS[4], label="alone, S1")
    axes.set_xlabel(f"share of the variance of {name}")
