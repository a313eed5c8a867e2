"""The distributions of the reads, and the differences of their minima."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from tlplab.bench.differential.document import Document, Target, address_of, machine_of
from tlplab.bench.differential.table import by_far_end, heading
from tlplab.plotting import COLOURS, write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Lines in one picture; of more targets, those that are slowest are left out of the picture, not of the table.
MOST = 2 * len(COLOURS)
# The axis of times ends here: what came later is the system's doing.
LAST_SHOWN = 0.95
HEIGHT = 0.62


def draw(path: str, document: Document, simulated: Document | None) -> None:
    """Writes the picture: distributions on the left, links on the right; simulated values are dashed and hollow."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5), layout="constrained")
    reads, links = figure.subplots(1, 2)
    distributions(reads, document, simulated)
    differences(links, document, simulated)
    figure.suptitle(heading(document), fontsize=10)
    write_figure(path, figure)


def distributions(axes: Axes, document: Document, simulated: Document | None) -> None:
    """Draw the share of each target's reads that took so long or less."""
    targets = sorted((one for one in document["targets"] if one["samples"]), key=lambda one: one["min_ns"] or 0.0)
    beside = {address_of(one["name"]): one for one in simulated["targets"]} if simulated is not None else {}
    ends = []
    for number, target in enumerate(targets[:MOST]):
        colour = COLOURS[number % len(COLOURS)]
        line = "-" if number < len(COLOURS) else ":"
        label = f"{target['name']}, {target['register'].replace('configuration', 'config')}"
        ends.append(step(axes, target, colour, line, label))
        other = beside.get(address_of(target["name"]))
        if other is not None and other["samples"]:
            ends.append(step(axes, other, colour, "--", f"{target['name']}, simulated"))
    if ends:
        first = min(low for low, _ in ends)
        last = max(high for _, high in ends)
        room = 0.03 * max(last - first, document["clock"]["step_ns"])
        axes.set_xlim(first - room, last + room)
    axes.set_ylim(0.0, 1.02)
    axes.set_xlabel("time of a read, ns")
    axes.set_ylabel("share of reads at or below this time")
    axes.grid(alpha=0.3)
    if ends:
        axes.legend(fontsize=7, loc="lower right")


def step(axes: Axes, target: Target, colour: str, line: str, label: str) -> tuple[float, float]:
    """One distribution; from where to where it is worth showing."""
    times, parts, seen = [target["histogram_ns"][0][0]], [0.0], 0
    last = times[0]
    for time, count in target["histogram_ns"]:
        if seen < LAST_SHOWN * target["samples"]:
            last = time
        seen += count
        times.append(time)
        parts.append(seen / target["samples"])
    axes.step(times, parts, line, where="post", color=colour, label=label, linewidth=1.2)
    return times[0], last


def differences(axes: Axes, document: Document, simulated: Document | None) -> None:
    """The latency of each link, with its resolution; or why there is none."""
    links = [link for link in document["links"] if link["latency_ns"] is not None]
    machine = machine_of(document)
    if not links:
        refusal = None if machine is None else machine["refusal"]
        why = f"Link latencies are not available here: {refusal}" if refusal else "No link has a target at both ends"
        axes.text(0.5, 0.5, textwrap.fill(why, 52), ha="center", va="center", transform=axes.transAxes, fontsize=10)
        axes.set_axis_off()
        return
    beside = by_far_end(simulated) if simulated is not None else {}
    places = range(len(links))
    good = [link["verdict"] == "measured" for link in links]
    axes.barh(
        places,
        [link["latency_ns"] or 0.0 for link in links],
        height=HEIGHT,
        xerr=[link["resolution_ns"] for link in links],
        color=[COLOURS[0] if one else COLOURS[6] for one in good],
        capsize=3,
        label="measured" if machine is not None else "simulated",
    )
    found = [
        (at, beside[address_of(link["far"])]) for at, link in enumerate(links) if address_of(link["far"]) in beside
    ]
    told = [(at, other["latency_ns"]) for at, other in found if other["latency_ns"] is not None]
    if told:
        axes.plot(
            [ns for _, ns in told], [at for at, _ in told], "D", color=COLOURS[1], fillstyle="none", label="simulated"
        )
        axes.legend(fontsize=8)
    axes.set_yticks(places, [f"{link['near']}\n{link['far']}" for link in links], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("latency of the link, round trip, ns; grey: not distinguishable from zero")
    axes.grid(alpha=0.3, axis="x")
