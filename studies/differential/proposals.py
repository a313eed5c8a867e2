"""The paper's proposals and open questions: a checksum of the header's own, and reads behind posted writes that have taken all credits."""

from __future__ import annotations

from studies.differential.rows import judged
from tlplab.reproduce import Outcomes, Row, Run
from tlplab.reproduce.markdown import table
from tlplab.reproduce.section import Section
from tlplab.result import Latency

SIZES = (64, 128, 256)
FORWARDING = ("store-and-forward", "header-checked", "cut-through")
SWITCHES = ("a", "b", "c")
STARVED = {
    "few writes": ("load.writes.rate=1Mb/s",),
    "writes, unlimited credits": ("link.card.lower.buffers.posted_headers=0",),
    "writes, two posted header credits": (),
}
ALONE, ENDLESS, EXHAUSTED = STARVED


def runs() -> list[Run]:
    """One write of each size through each kind of switches; a register read during writes of three kinds."""
    listed = []
    for size in SIZES:
        for how in FORWARDING:
            ways = (f"switch.{name}.forwarding={how}" for name in SWITCHES)
            listed.append(Run(f"{how}, {size} B", "header-checksum.toml", (*ways, f"load.card.size={size}B")))
    listed += [Run(name, "starvation.toml", changes) for name, changes in STARVED.items()]
    return listed


def latency(outcomes: Outcomes, run: str, flow: str) -> Latency:
    """Of a flow of a run."""
    found = next(one for one in outcomes[run]["flows"] if one["name"] == flow)["latency_ns"]
    assert found is not None
    return found


def forwarded(outcomes: Outcomes, how: str, size: int) -> float:
    """The shortest of one write through three switches, ns."""
    return latency(outcomes, f"{how}, {size} B", "card")["min"]


def read(outcomes: Outcomes, beside: str) -> float:
    """The median of a register read, ns."""
    return latency(outcomes, beside, "probe")["p50"]


def rows(outcomes: Outcomes) -> list[Row]:
    """The paper measured nothing of this: its rows are expectations."""
    listed = []
    for size in SIZES:
        stored, checked, cut = (forwarded(outcomes, how, size) for how in FORWARDING)
        note = f"expected: less latency; without the checksum {stored:.0f} ns, and {cut:.0f} ns with cut-through"
        title = f"section 6.1, a checksum of the header's own: {size} B through three x4 switches"
        listed.append(judged(title, None, checked, "ns", cut < checked < stored, note))
    alone, endless, exhausted = (read(outcomes, beside) for beside in STARVED)
    note = f'expected: credit starvation "will introduce latency"; {alone:.0f} ns with few writes, {endless:.0f} ns with writes and unlimited credits'
    title = "section 5, a register read behind posted writes that wait for credits, median"
    listed.append(judged(title, None, exhausted, "ns", max(alone, endless) < exhausted, note))
    return listed


def text(outcomes: Outcomes) -> str:
    """Both tables."""
    forwarding = [[f"{size} B", *(f"{forwarded(outcomes, how, size):.0f}" for how in FORWARDING)] for size in SIZES]
    starved = [[beside, f"{read(outcomes, beside):.0f} ns"] for beside in STARVED]
    return TEXT.format(
        forwarding=table(("payload", *FORWARDING), forwarding),
        starved=table(("other traffic", "median register read"), starved),
    )


TEXT = """## Checked headers and used-up credits

A switch that forwards a TLP before its LCRC may forward a damaged TLP; a switch that waits for the LCRC adds the time of the whole payload. With
`forwarding = "header-checked"` the header is followed by a checksum of its own, 4 bytes on each framed link of the switch, as section 6.1
proposes. The switch then routes only by correct headers, and marks a TLP at its end if the payload is damaged. One write through three
switches, all links Gen1 x4 (`studies/differential/header-checksum.toml`), takes in ns:

{forwarding}

With cut-through, every damaged TLP is forwarded and nullified; with a checked header, only those with a correct header.

Single reads do not show the effect of other traffic on credits. In `studies/differential/starvation.toml` the processor writes to a card at half of the
link's rate and reads one of its registers at the same time; the card needs 400 ns for a write:

{starved}"""

SECTION = Section(rows=rows, text=text, runs=runs)
