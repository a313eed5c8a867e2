"""Tables 1 to 3 and figure 2: the paper's validation of its method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from studies.differential.machine import RUN, TARGETS, minima
from studies.differential.published import TABLE_2, TABLE_3
from studies.differential.rows import absent, judged
from tlplab.analytic.plot import Line
from tlplab.reproduce import Drawing, Outcomes, Row
from tlplab.reproduce.curves import Curves
from tlplab.reproduce.section import Section

CROSSINGS = (
    "the simulated machine waits only for edges of the bus's clock; the paper's chipset and cards also wait for edges of their own clocks, which spreads "
    "its reads"
)
KERNEL = "measured by a program in the kernel; `tlplab measure` runs in user space"


def target(outcomes: Outcomes, name: str) -> dict[str, Any]:
    """The target at the far end of a link of table 4, as it was read."""
    document = cast("dict[str, Any]", outcomes[RUN])
    return next(one for one in document["targets"] if one["name"] == TARGETS[name][1])


def from_near(outcomes: Outcomes, name: str, near_ns: float) -> float:
    """Minimum at a target, ns, from the paper's starting point: its own near end stands for the part before it."""
    near, far = TARGETS[name]
    found = minima(outcomes)
    return near_ns + found[far] - found[near]


NEAR = {"Tx_h di": 315, "Tx_h ds": 315, "Te_m ds": 63}


def rows(outcomes: Outcomes) -> list[Row]:
    """Means and deviations, and reads in turn."""
    why = "cores under a vendor's licence, of which only the sizes are published; the area of tlplab's core is in `tlplab reproduce speedy`"
    listed = [absent("table 1, PCI Express against PCI-X, registers", 6, "times", why)]
    for column in TABLE_2:
        found = target(outcomes, column.target)
        over, ours = column.mean - column.minimum, found["mean_ns"] - found["min_ns"]
        listed += [
            judged(f"table 2, {column.target}: mean over minimum", over, ours, "ns", abs(ours - over) <= 3, CROSSINGS),
            judged(
                f"table 2, {column.target}: deviation", column.deviation, found["std_ns"], "ns",
                abs(found["std_ns"] - column.deviation) <= 3, CROSSINGS,
            ),
        ]  # fmt: skip
        listed.append(absent(f"table 2, {column.target}, in the kernel: minimum", column.minimum, "ns", KERNEL))
    for case, targets, published in TABLE_3:
        for address, (name, latency) in enumerate(zip(targets, published, strict=True), 1):
            ours = from_near(outcomes, name, NEAR[name])
            listed.append(
                judged(
                    f"table 3, case {case}, address {address}: {name}",
                    latency,
                    ours,
                    "ns",
                    abs(ours - latency) <= 3,
                    said(name),
                )
            )
    return listed


def said(name: str) -> str:
    """About a row of table 3."""
    turn = "all targets are read in turn, so each read follows reads of other targets"
    return f"{turn}; tables 2 and 3 have 477 to 489 ns where table 4 has 468" if name == "Tx_h ds" else turn


def drawings(outcomes: Outcomes) -> Sequence[Drawing]:
    """Figure 2, ours."""
    lines: list[Line] = []
    for label, name in (("MCH, configuration", "E_a"), ("Tx_h di", "Tx_h di"), ("Te_m ds", "Te_m ds")):
        latencies, counts = np.array(target(outcomes, name)["histogram_ns"]).T
        lines.append((label, latencies - latencies[0], 100 * counts.cumsum() / counts.sum()))
    return [Curves("Figure 2: how much of a target's reads took how long", "over the minimum, ns", "%", tuple(lines))]


def text(_: Outcomes) -> str:
    """The section without a text: only the rows."""
    return ""


SECTION = Section(rows=rows, text=text, drawings=drawings)
