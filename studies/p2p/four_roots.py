"""Sixteen GPUs under four switches, each on a root port of its own."""

from __future__ import annotations

from studies.p2p import published as p
from studies.p2p.rows import LATENCIES, PAIRS, PREDICTED, Pairs, judged, latency, mean_ns, run, total
from tlplab.reproduce import Outcomes, Row, Run
from tlplab.reproduce.section import Section

EXPERIMENT = "../../experiments/p2p/four-roots.toml"
WAYS = {"in a switch": (0, 1), "across": (0, 4)}
SEVERAL: dict[str, Pairs] = {
    "two pairs to one switch": [(0, 4), (1, 5)],
    "two pairs in one switch": [(0, 2), (1, 3)],
    "four independent pairs": [(0, 4), (4, 8), (8, 12), (12, 0)],
    "SW1 → SW2 + SW3": [(0, 4), (1, 8)],
    "SW1 → SW2 + SW4": [(0, 4), (1, 12)],
    "SW1 → SW3 + SW4": [(0, 8), (1, 12)],
    "SW1 → SW2 + SW3 + SW4": [(0, 4), (1, 8), (2, 12)],
    "SW1 → 2×SW2 + SW3 + SW4": [(0, 4), (1, 5), (2, 8), (3, 12)],
}
# With TLPs of 256 B, and with nothing else changed.
LARGE = "defaults.link.mps=256B"
LARGER = ("two pairs to one switch", "two pairs in one switch")
# The GPUs of two of its switches are a machine like flat.toml's.
NEAR, FAR = 3, 4


def runs() -> list[Run]:
    """Pairs and latencies, then flows together."""
    listed = []
    for way, pair in WAYS.items():
        listed += [
            run(f"roots pair {way}", EXPERIMENT, [pair], kind="pair"),
            latency(f"roots latency {way}", EXPERIMENT, *pair),
        ]
    listed.append(run("roots gen2", EXPERIMENT, [WAYS["across"]], "switch.sw1.link=gen2 x16"))
    listed += [run(f"roots {name}", EXPERIMENT, pairs) for name, pairs in SEVERAL.items()]
    return listed + [run(f"roots 256 B, {name}", EXPERIMENT, SEVERAL[name], LARGE) for name in LARGER]


def rows(outcomes: Outcomes) -> list[Row]:
    """Fitted rows first."""
    found = []
    for way in WAYS:
        rate, ns = total(outcomes, f"roots pair {way}"), mean_ns(outcomes, f"roots latency {way}")
        found.append(judged(f"{p.ROOTS}: a pair {way}", p.ROOTS_PAIR[way], rate, "GB/s", PAIRS, "fitted, as the other machine; published 52 to 54"))  # fmt: skip
        spread = {"in a switch": "0.72 to 0.80 µs", "across": "1.40 to 1.63 µs"}[way]
        found.append(judged(f"{p.ROOTS}: a read of 128 B {way}", p.ROOTS_LATENCY[way], ns, "ns", LATENCIES, f"fitted; published {spread}, on the cabling with three roots"))  # fmt: skip
    for name, value in p.ROOTS_SEVERAL.items():
        note = "predicted"
        if name in LARGER:
            note += f"; TLPs of 256 B would carry {total(outcomes, f'roots 256 B, {name}'):.1f}"
        found.append(judged(f"{p.ROOTS}: {name}", value, total(outcomes, f"roots {name}"), "GB/s", PREDICTED, note))
    found.append(judged(f"{p.ROOTS}: one uplink at Gen2, a pair across", p.ROOTS_GEN2, total(outcomes, "roots gen2"), "GB/s", PREDICTED, "predicted"))  # fmt: skip
    near, far = (mean_ns(outcomes, f"roots latency {way}") for way in WAYS)
    found.append(judged(f"{p.ROOTS}: all of two switches read all, of a GPU", p.ROOTS_LOADED, NEAR * near + FAR * far, "ns", PREDICTED, "predicted, if a GPU reads its seven peers one after the other", "the latencies of single reads that it is the sum of were published as ranges, whose middles are 6 % above their lower ends"))  # fmt: skip
    return found


def text(outcomes: Outcomes) -> str:
    """What the two software stacks differ in."""
    return TEXT.format(two=total(outcomes, "roots 256 B, two pairs to one switch"))


TEXT = """## Sixteen GPUs under four switches

`experiments/p2p/four-roots.toml` has the same links, switches and GPUs; its latencies are fitted again. What was published of it comes from two states of firmware,
kernel and driver: single pairs of 52 to 54 GB/s and four independent ones from the older, 56.4 GB/s over an uplink from the newer. An uplink that carries 56.4 GB/s cannot do so with TLPs
of 128 B, which make 52.9 at most; with 256 B the simulated one carries {two:.1f}. So the newer state may write larger TLPs, or mixed ones. One set of parameters for both is off by 6 % there.

All four roots are alike here: nothing is published of the root complex's inside, and none is made up (`host.domain` could). Writes to one, two or three of them are the source's uplink. The published dips to 51.8 GB/s (8 %) have no cause in this model."""

SECTION = Section(rows=rows, text=text, runs=runs)
