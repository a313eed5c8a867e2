"""Eight GPUs under two switches: fitted to pairs and latencies, flows together predicted."""

from __future__ import annotations

from studies.p2p import published as p
from studies.p2p.rows import (
    LATENCIES,
    PAIRS,
    PREDICTED,
    Pairs,
    judged,
    latency,
    mean_ns,
    rates,
    run,
    total,
)
from tlplab.reproduce import Outcomes, Row, Run
from tlplab.reproduce.chart import Chart
from tlplab.reproduce.section import Section

EXPERIMENT = "../../experiments/p2p/flat.toml"
GPUS, HALF = 8, 4
WAYS = {"in a switch": (0, 1), "across": (0, 4)}
SEVERAL: dict[str, Pairs] = {
    "two pairs in one switch": [(0, 1), (2, 3)],
    "two pairs across, one source switch": [(0, 4), (1, 5)],
    "four pairs across, 1:1": [(n, n + HALF) for n in range(HALF)],
    "16 flows across": [(a, b) for a in range(HALF) for b in range(HALF, GPUS)],
}
TWO: dict[str, Pairs] = {"(0,4) + (1,6)": [(0, 4), (1, 6)], "(0,4) + (1,5)": [(0, 4), (1, 5)]}
IN_ONE = [(a, b) for a in range(HALF) for b in range(HALF) if a != b]
ALL = [(a, b) for a in range(GPUS) for b in range(GPUS) if a != b]
DISTANCES = range(1, GPUS)
GEN2 = "switch.sw1.link=gen2 x16"
# Room at a switch's port for TLPs of a GPU, where little is left of it; a fourth of it bounds single flows by round trips.
ROOM = 64
SMALL = tuple(f"link.gpu{n}.upper.buffers.posted_headers={ROOM}" for n in range(HALF))

ELSEWHERE = (
    "four GPUs each to each reach 121 to 130 GB/s by p2pmark on this machine, on one with another maker's switches and on one without any switch, its GPUs on root ports of "
    "their own: the limit of three quarters of their links is in the GPUs, not between them, and GPUs have no such limit here"
)


def ring(by: int) -> Pairs:
    """All GPUs at once, each from the one so far behind it, as p2pmark pulls: the pairs are from, to."""
    return [((n + by) % GPUS, n) for n in range(GPUS)]


def runs() -> list[Run]:
    """Pairs and latencies, then flows together."""
    listed = []
    for way, pair in WAYS.items():
        listed += [
            run(f"flat pair {way}", EXPERIMENT, [pair], kind="pair"),
            latency(f"flat latency {way}", EXPERIMENT, *pair),
        ]
        listed.append(run(f"flat both {way}", EXPERIMENT, [pair, pair[::-1]], kind="both"))
        listed.append(run(f"flat gen2 {way}", EXPERIMENT, [pair], GEN2))
    listed += [run(f"flat {name}", EXPERIMENT, pairs) for name, pairs in {**SEVERAL, **TWO}.items()]
    for by in DISTANCES:
        listed.append(run(f"flat ring +{by}", EXPERIMENT, ring(by), op="read"))
        listed.append(run(f"flat pushed ring +{by}", EXPERIMENT, [pair[::-1] for pair in ring(by)]))
    listed += [run("flat in one", EXPERIMENT, IN_ONE), run("flat in one, small", EXPERIMENT, IN_ONE, *SMALL)]
    listed.append(run("flat all", EXPERIMENT, ALL))
    return listed


def rows(outcomes: Outcomes) -> list[Row]:
    """Fitted rows first."""
    fitted = []
    for way in WAYS:
        rate, ns = total(outcomes, f"flat pair {way}"), mean_ns(outcomes, f"flat latency {way}")
        fitted.append(
            judged(f"{p.FLAT}: a pair {way}", p.FLAT_PAIR[way], rate, "GB/s", PAIRS, "fitted: the payload of a TLP")
        )
        fitted.append(judged(f"{p.FLAT}: a pair both ways, {way}", p.FLAT_BOTH, total(outcomes, f"flat both {way}"), "GB/s", PAIRS, "fitted: an Ack for each TLP; published 100 to 102"))  # fmt: skip
        fitted.append(judged(f"{p.FLAT}: a read of 128 B {way}", p.FLAT_LATENCY[way], ns, "ns", LATENCIES, "fitted"))
    found = [*fitted]
    for name, value in {**p.FLAT_SEVERAL, **p.FLAT_TWO}.items():
        found.append(
            judged(f"{p.FLAT}: {name}", value, total(outcomes, f"flat {name}"), "GB/s", PREDICTED, "predicted")
        )
    for by in DISTANCES:
        pulled, pushed = (total(outcomes, f"flat {kind} +{by}") / GPUS for kind in ("ring", "pushed ring"))
        found.append(judged(f"{p.FLAT}: ring +{by}, each", p.FLAT_RING[by], pulled, "GB/s", PREDICTED, f"predicted; pulled, as p2pmark does; pushed {pushed:.1f}"))  # fmt: skip
    for way in WAYS:
        found.append(judged(f"{p.FLAT}: one uplink at Gen2, a pair {way}", p.FLAT_GEN2[way], total(outcomes, f"flat gen2 {way}"), "GB/s", PREDICTED, "predicted"))  # fmt: skip
    found.append(judged(f"{p.FLAT}: all read all, of a GPU", p.FLAT_LOADED, in_turn(outcomes), "ns", PREDICTED, "predicted, if a GPU reads its seven peers one after the other: the time that p2pmark takes for all seven is their sum, not the longest"))  # fmt: skip
    found.append(judged(f"{p.FLAT}: 12 flows, each to each in one switch", p.FLAT_IN_ONE, total(outcomes, "flat in one"), "GB/s", PREDICTED, "predicted, nothing is fitted to it", ELSEWHERE))  # fmt: skip
    found.append(judged(f"{p.FLAT}: 56 flows, each to each", p.FLAT_ALL, total(outcomes, "flat all"), "GB/s", PREDICTED, "predicted, nothing is fitted to it; 16 flows over each uplink bound it"))  # fmt: skip
    return found


def in_turn(outcomes: Outcomes) -> float:
    """Reads of all seven peers, one after the other."""
    near, far = (mean_ns(outcomes, f"flat latency {way}") for way in WAYS)
    return (HALF - 1) * near + HALF * far


def drawings(outcomes: Outcomes) -> list[Chart]:
    """The rings, and the flows."""
    names = [*SEVERAL, "12 in one", "56, all"]
    ours = [total(outcomes, f"flat {name}") for name in SEVERAL]
    ours += [total(outcomes, "flat in one"), total(outcomes, "flat all")]
    short = ("2 in one", "2 across", "4 across", "16 across", "12 in one", "56, all")
    assert len(short) == len(names)
    return [
        Chart(
            "Rings of eight GPUs under two switches", "distance", "GB/s each",
            tuple(f"+{by}" for by in DISTANCES),
            (("published", tuple(p.FLAT_RING.values())), ("ours", tuple(total(outcomes, f"flat ring +{by}") / GPUS for by in DISTANCES))),
        ),
        Chart(
            "Flows together, two switches", "flows", "GB/s in all", short,
            (("published", (*p.FLAT_SEVERAL.values(), p.FLAT_IN_ONE, p.FLAT_ALL)), ("ours", tuple(ours))),
        ),
    ]  # fmt: skip


def text(outcomes: Outcomes) -> str:
    """The bounds of each pattern, as the text of the page."""
    fast, slow = (f(rates(outcomes, "flat ring +2")) for f in (max, min))
    small = total(outcomes, "flat in one, small")
    return TEXT.format(
        fast=f"{fast:.1f}",
        slow=f"{slow:.1f}",
        room=ROOM,
        small=f"{small:.1f}",
        ring=p.FLAT_RING[1],
        through=5 * p.FLAT_RING[1],
    )


TEXT = """## Eight GPUs under two switches

`experiments/p2p/flat.toml` has five fitted figures: the payload of a TLP (128 B: of the powers of two, the one with which a pair's rate is right), an Ack for each TLP (both
ways at once), and three latencies. Everything of several flows then follows from links that are full: at distance 2 of the rings two of four flows that leave
a switch share its uplink ({slow} GB/s each), the others have a GPU's link for themselves ({fast}).

Twelve flows within a switch are the only pattern here that no link bounds: the simulated GPUs fill their links, the real ones do not, on any machine of that
source, with or without switches; and two harnesses differ by a fifth on this one (149 and 121 GB/s). Head-of-line blocking at the switch does not make it, either: with room for {room} TLPs
at each of its ports the simulated GPUs carry {small} GB/s. Nor does a limit of all that passes a switch (`core` with a `rate`): the ring of distance 1 was measured, too, and sends five flows of {ring:.1f} GB/s through each
switch at once, {through:.0f} GB/s, which a switch of 149 GB/s does not carry. So the limit is in the GPUs or their driver, as machines without a switch have it, too."""

SECTION = Section(rows=rows, text=text, drawings=drawings, runs=runs)
