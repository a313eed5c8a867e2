"""What the paper proposes and what it leaves open: a checksum of the header's own, and reads behind posted writes that have taken all credits."""

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
    "hardly a write": ("load.writes.rate=1Mb/s",),
    "writes, credits without end": ("link.card.lower.buffers.posted_headers=0",),
    "writes, two posted header credits": (),
}
ALONE, ENDLESS, EXHAUSTED = STARVED


def runs() -> list[Run]:
    """One write of each size through each kind of switches; a register read beside writes of three kinds."""
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
    """Nothing of this was measured by the paper: it says what it expects."""
    listed = []
    for size in SIZES:
        stored, checked, cut = (forwarded(outcomes, how, size) for how in FORWARDING)
        note = f"expected: less latency; without the checksum {stored:.0f} ns, and {cut:.0f} ns where switches forward what may be bad"
        title = f"section 6.1, a checksum of the header's own: {size} B through three x4 switches"
        listed.append(judged(title, None, checked, "ns", cut < checked < stored, note))
    alone, endless, exhausted = (read(outcomes, beside) for beside in STARVED)
    note = f'expected: credit starvation "will introduce latency"; {alone:.0f} ns with hardly a write, {endless:.0f} ns with writes and credits without end'
    title = "section 5, a register read behind posted writes that wait for credits, median"
    listed.append(judged(title, None, exhausted, "ns", max(alone, endless) < exhausted, note))
    return listed


def text(outcomes: Outcomes) -> str:
    """Both tables."""
    forwarding = [[f"{size} B", *(f"{forwarded(outcomes, how, size):.0f}" for how in FORWARDING)] for size in SIZES]
    starved = [[beside, f"{read(outcomes, beside):.0f} ns"] for beside in STARVED]
    return TEXT.format(
        forwarding=table(("payload", *FORWARDING), forwarding),
        starved=table(("beside it", "median register read"), starved),
    )


TEXT = """## What would be faster, and what is slower

A switch that forwards before it has seen the LCRC sends on what may be bad; one that waits pays for the payload once more. With
`forwarding = "header-checked"` the header has a checksum of its own behind it, 4 bytes on each framed link of the switch, as section 6.1
proposes: what is routed is known to be good, and a payload that turns out bad is marked as such at its end. One write through three
switches, all links Gen1 x4 (`studies/differential/header-checksum.toml`), in ns:

{forwarding}

With cut-through, every damaged TLP goes on and is nullified; with a checked header, those whose header is good.

Single reads never meet what other traffic does to credits. In `studies/differential/starvation.toml` the processor writes to a card at half of the
link's rate and reads a register of it meanwhile; the card needs 400 ns for a write:

{starved}"""

SECTION = Section(rows=rows, text=text, runs=runs)
