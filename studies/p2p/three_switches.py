"""Eight GPUs under leaf switches and one above: nothing is fitted to this machine, its parameters are those of the one with two switches."""

from __future__ import annotations

from studies.p2p import published as p
from studies.p2p.rows import LATENCIES, PAIRS, PREDICTED, Pairs, judged, latency, mean_ns, run, total
from tlplab.reproduce import Outcomes, Row, Run
from tlplab.reproduce.section import Section

EXPERIMENT = "three-switches.toml"
GPUS = 8
WAYS = {"in a leaf": (0, 1), "across the upper switch": (0, 4)}
SEVERAL: dict[str, Pairs] = {
    "two flows, two leaves": [(0, 4), (2, 6)],
    "four flows across, 1:1": [(0, 4), (1, 5), (2, 6), (3, 7)],
    "16 flows across": [(a, b) for a in range(4) for b in range(4, GPUS)],
    "(0,4) + (1,6), one leaf": [(0, 4), (1, 6)],
    "(0,4) + (0,2), one GPU": [(0, 4), (0, 2)],
}
BESIDE: Pairs = [(0, 4), (1, 2)]
DISTANCES = range(1, GPUS)
# Rings whose flows between leaves of one chip would meet others on uplinks, if the leaves were chips of their own.
INSIDE = (2, 3, 5, 6)


def ring(by: int) -> Pairs:
    """As p2pmark pulls."""
    return [((n + by) % GPUS, n) for n in range(GPUS)]


def runs() -> list[Run]:
    """Pairs, latencies, flows."""
    listed = []
    for way, pair in WAYS.items():
        listed += [
            run(f"tree pair {way}", EXPERIMENT, [pair], kind="pair"),
            latency(f"tree latency {way}", EXPERIMENT, *pair),
        ]
    listed.append(run("tree both", EXPERIMENT, [(0, 4), (4, 0)], kind="both"))
    listed.append(latency("tree latency leaves of one chip", EXPERIMENT, 0, 2))
    listed += [run(f"tree {name}", EXPERIMENT, pairs) for name, pairs in SEVERAL.items()]
    listed.append(run("tree beside", EXPERIMENT, BESIDE))
    listed += [run(f"tree ring +{by}", EXPERIMENT, ring(by), op="read") for by in DISTANCES]
    apart = [f"switch.leaf{n}.chip=of leaf{n}" for n in range(1, 5)]
    return listed + [run(f"tree apart, ring +{by}", EXPERIMENT, ring(by), *apart, op="read") for by in INSIDE]


def inside(outcomes: Outcomes, by: int) -> float:
    """A ring by hand, if leaves of one chip exchange TLPs inside of it: each flow's fair share of the uplinks, GB/s each.

    A flow within a chip has its GPUs' links alone, as in the ring of distance 1. Of those across, each shares the uplink of its leaf or that of the other
    with one more at distances 2 to 6; none shares one with two.
    """
    alone = total(outcomes, "tree ring +1") / GPUS
    within = [pair for pair in ring(by) if pair[0] // 4 == pair[1] // 4]
    return (len(within) * alone + (GPUS - len(within)) * alone / 2) / GPUS


def rows(outcomes: Outcomes) -> list[Row]:
    """All predicted."""
    found = []
    for way in WAYS:
        found.append(judged(f"{p.TREE}: a pair {way}", p.TREE_PAIR[way], total(outcomes, f"tree pair {way}"), "GB/s", PAIRS, "predicted from the machine with two switches", "its pairs were measured 1.5 % faster than those of the machine with two switches, with the same GPUs, switches and driver: so far does the measurement spread"))  # fmt: skip
    found.append(judged(f"{p.TREE}: a pair both ways", p.TREE_BOTH, total(outcomes, "tree both"), "GB/s", PAIRS, "predicted; published 103 to 105", "as its pairs one way"))  # fmt: skip
    for way in p.TREE_LATENCY:
        note = (
            "the switch's latency is fitted to this and the row above"
            if way == "across the upper switch"
            else "predicted"
        )
        found.append(judged(f"{p.TREE}: a read of 128 B {way}", p.TREE_LATENCY[way], mean_ns(outcomes, f"tree latency {way}"), "ns", LATENCIES, note))  # fmt: skip
    for name, value in p.TREE_SEVERAL.items():
        found.append(
            judged(f"{p.TREE}: {name}", value, total(outcomes, f"tree {name}"), "GB/s", PREDICTED, "predicted")
        )
    found.append(judged(f"{p.TREE}: (0,4) + (1,2)", p.TREE_BESIDE, total(outcomes, "tree beside"), "GB/s", PREDICTED, "predicted"))  # fmt: skip
    for by in DISTANCES:
        ours = total(outcomes, f"tree ring +{by}") / GPUS
        note = f"predicted; by hand {inside(outcomes, by):.1f}" if by in INSIDE else "predicted"
        found.append(judged(f"{p.TREE}: ring +{by}, each", p.TREE_RING[by], ours, "GB/s", PREDICTED, note))
    return found


def text(outcomes: Outcomes) -> str:
    """The topology that the rings indicate, of two, as the text of the page."""

    def of(name: str) -> str:
        return ", ".join(f"{total(outcomes, f'{name} ring +{by}') / GPUS:.1f}" for by in INSIDE)

    told = ", ".join(f"{p.TREE_RING[by]:.1f}" for by in INSIDE)
    return TEXT.format(inside=of("tree"), tree=of("tree apart,"), told=told)


TEXT = """## Eight GPUs under three switches

Nothing is fitted to this machine: `studies/p2p/three-switches.toml` has the parameters of the one with two switches. (Its latencies give the time of a switch, as they differ by
four passages.) Two leaf switches each are one chip with a way between them inside. Rings show it: at distances 2, 3, 5 and 6 each flow gets {inside} GB/s here (by hand: each flow across has half of
an uplink, each within a chip a whole link), and {tree} if each leaf is a chip of its own; measured were {told}. So the inside is there, as the latencies show, too. Distances 1, 4 and 7 do not depend on it."""

SECTION = Section(rows=rows, text=text, runs=runs)
