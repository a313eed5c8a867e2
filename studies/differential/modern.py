"""Links of today: the cost of each stage of the paper's pipeline at the clocks of each generation, and a check that the method finds it."""

from __future__ import annotations

from typing import Any, cast

from studies.differential.rows import PAPER
from tlplab.reproduce import Outcomes, Row, Run
from tlplab.reproduce.markdown import table
from tlplab.reproduce.section import Section

SAMPLES = 500
FIRST, LAST = 1, 6
STAGES = {
    "transaction layer": ("tx_transaction", "rx_transaction"),
    "data link layer": ("tx_data_link", "rx_data_link"),
    "physical layer": ("tx_physical", "rx_physical"),
    "transceivers": ("tx_transceiver", "rx_transceiver"),
}
LINKS = ("switch.sw", "device.nic", "device.direct")


def overrides(generation: int) -> tuple[str, ...]:
    """All links of this generation, with a pipeline of at most 1 GHz."""
    link = f"gen{generation} x8" + (" flit" if generation == LAST else "")
    path = "512b" if generation == LAST else "256b"
    ends = (f"defaults.link.{end}.stages.data_path={path}" for end in ("upper", "lower"))
    return (*(f"{name}.link={link}" for name in LINKS), *ends)


def runs() -> list[Run]:
    """By the method, and one read with the places where its time goes."""
    listed = []
    for generation in range(FIRST, LAST + 1):
        listed.append(Run(f"links, gen{generation}", "modern.toml", overrides(generation), samples=SAMPLES))
        listed.append(Run(f"stages, gen{generation}", "modern.toml", overrides(generation)))
    return listed


def measured(outcomes: Outcomes, generation: int) -> dict[str, Any]:
    """The link of the card without a switch, by the method."""
    document = cast("dict[str, Any]", outcomes[f"links, gen{generation}"])
    return next(one for one in document["links"] if one["far"] == "direct")


def stages(outcomes: Outcomes, generation: int) -> dict[str, float]:
    """The parts of the time of one read over that link, ns; the rest is on the wire."""
    flow = next(one for one in outcomes[f"stages, gen{generation}"]["flows"] if one["name"] == "direct")
    found = dict.fromkeys([*STAGES, "on the wire"], 0.0)
    for part in flow["attribution"]:
        stage = part["place"].rpartition(": ")[2]
        name = next((layer for layer, names in STAGES.items() if stage in names), "on the wire")
        found[name] += part["total_ns"]
    return found


def rows(outcomes: Outcomes) -> list[Row]:
    """The method compared with the parts."""
    listed = []
    for generation in range(FIRST, LAST + 1):
        link, parts = measured(outcomes, generation), stages(outcomes, generation)
        off = abs(link["latency_ns"] - sum(parts.values()))
        note = f"by differences of minima; the parts add up to {sum(parts.values()):.0f} ns, and the method resolves {link['resolution_ns']:.0f} ns"
        good = off <= link["resolution_ns"]
        title = f"gen{generation} x8, the paper's pipeline at its clock"
        listed.append(Row(PAPER, title, None, link["latency_ns"], "ns", "reproduced" if good else "explained", note))
    return listed


def text(outcomes: Outcomes) -> str:
    """The parts of each generation."""
    lines = []
    for generation in range(FIRST, LAST + 1):
        parts = stages(outcomes, generation)
        whole = sum(parts.values())
        shares = [f"{part:.0f} ({100 * part / whole:.0f} %)" for part in parts.values()]
        lines.append([f"gen{generation}" + (", flits" if generation == LAST else ""), f"{whole:.0f}", *shares])
    return TEXT.format(table=table(("x8", "there and back, ns", *STAGES, "on the wire"), lines))


TEXT = """## The pipeline at later generations

The paper's pipeline is of 2009. `studies/differential/modern.toml` has the FPGA's stages, in clocks, at both ends of links
of each generation, with a clock of one tick for 32 bits of each lane (gen6: 64), and with the transceivers of table 5 unchanged. This is an assumption, not a measurement
of a current chip; replace the stages by those of your own. There is no user logic and no host behind the link. A read of one doubleword takes:

{table}

Clocks shrink with the rate, and the time on the wire nearly vanishes. Most of the rest is in the transceivers, which the protocol does not affect, and in a
transaction layer that buffers whole packets. Each switch on the way adds another row of this table. The shares assume transceivers of 2009; the paper's
observation holds today as far as that assumption does."""

SECTION = Section(rows=rows, text=text, runs=runs)
