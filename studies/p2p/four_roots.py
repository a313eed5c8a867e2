"""Sixteen GPUs under four switches, each on a root port of its own."""

from __future__ import annotations

from studies.p2p import published as p
from studies.p2p.rows import LATENCIES, PAIRS, PREDICTED, Pairs, judged, latency, mean_ns, run, total
from tlplab.reproduce import Outcomes, Row, Run
from tlplab.reproduce.section import Section

EXPERIMENT = "../../experiments/p2p/four-roots.toml"
WAYS = {"in a switch": (0, 1), "across": (0, 4)}
INDEPENDENT: Pairs = [(0, 4), (4, 8), (8, 12), (12, 0)]
SEVERAL: dict[str, Pairs] = {
    "both ways, two pairs": [(0, 4), (4, 0), (1, 5), (5, 1)],
    "two pairs to one switch": [(0, 4), (1, 5)],
    "two pairs in one switch": [(0, 2), (1, 3)],
    "four pairs to one switch": [(n, n + 4) for n in range(4)],
    "SW1 → SW2 + SW3": [(0, 4), (1, 8)],
    "SW1 → SW2 + SW4": [(0, 4), (1, 12)],
    "SW1 → SW3 + SW4": [(0, 8), (1, 12)],
    "SW1 → SW2 + SW3 + SW4": [(0, 4), (1, 8), (2, 12)],
    "SW1 → 2×SW2 + SW3 + SW4": [(0, 4), (1, 5), (2, 8), (3, 12)],
    "56 flows, each to each in two switches": [(a, b) for a in range(8) for b in range(8) if a != b],
}
# The newer state of the machine: TLPs of 256 B with four bytes more, as a digest adds, and nothing else changed.
LARGE = ("defaults.link.mps=256B", "host.ecrc=true")
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
        listed.append(run(f"newer pair {way}", EXPERIMENT, [pair], *LARGE, kind="pair"))
    listed.append(run("roots gen2", EXPERIMENT, [WAYS["across"]], "switch.sw1.link=gen2 x16"))
    listed.append(run("roots independent", EXPERIMENT, INDEPENDENT))
    listed.append(run("newer without digests", EXPERIMENT, [WAYS["across"]], LARGE[0], kind="pair"))
    listed.append(run("newer both", EXPERIMENT, [(0, 1), (1, 0)], *LARGE, kind="both"))
    return listed + [run(f"newer {name}", EXPERIMENT, pairs, *LARGE) for name, pairs in SEVERAL.items()]


def rows(outcomes: Outcomes) -> list[Row]:
    """The older state, then the newer; fitted rows first."""
    found = []
    for way in WAYS:
        rate, ns = total(outcomes, f"roots pair {way}"), mean_ns(outcomes, f"roots latency {way}")
        found.append(judged(f"{p.ROOTS}: a pair {way}", p.ROOTS_PAIR[way], rate, "GB/s", PAIRS, "fitted: 128 B, as the other machine; published 52 to 54"))  # fmt: skip
        spread = {"in a switch": "0.72 to 0.80 µs", "across": "1.40 to 1.63 µs"}[way]
        found.append(judged(f"{p.ROOTS}: a read of 128 B {way}", p.ROOTS_LATENCY[way], ns, "ns", LATENCIES, f"fitted; published {spread}, on the cabling with three roots"))  # fmt: skip
    found.append(judged(f"{p.ROOTS}: four independent pairs", p.ROOTS_INDEPENDENT, total(outcomes, "roots independent"), "GB/s", PREDICTED, "predicted"))  # fmt: skip
    found.append(judged(f"{p.ROOTS}: one uplink at Gen2, a pair across", p.ROOTS_GEN2, total(outcomes, "roots gen2"), "GB/s", PREDICTED, "predicted"))  # fmt: skip
    near, far = (mean_ns(outcomes, f"roots latency {way}") for way in WAYS)
    found.append(judged(f"{p.ROOTS}: all of two switches read all, of a GPU", p.ROOTS_LOADED, NEAR * near + FAR * far, "ns", PREDICTED, "predicted, if a GPU reads its seven peers one after the other", "the latencies of single reads that it is the sum of were published as ranges, whose middles are 6 % above their lower ends"))  # fmt: skip
    for way in WAYS:
        found.append(judged(f"{p.NEWER}: a pair {way}", p.NEWER_PAIR[way], total(outcomes, f"newer pair {way}"), "GB/s", PAIRS, "fitted: 256 B and four bytes more in each TLP, as a digest adds"))  # fmt: skip
    found.append(judged(f"{p.NEWER}: a pair both ways, in a switch", p.NEWER_BOTH, total(outcomes, "newer both"), "GB/s", PREDICTED, "predicted; published of another machine in that state, with the same switches and GPUs"))  # fmt: skip
    for name, value in p.NEWER_SEVERAL.items():
        found.append(judged(f"{p.NEWER}: {name}", value, total(outcomes, f"newer {name}"), "GB/s", PREDICTED, "predicted", DIPS if value < p.UPLINK - 1 else ""))  # fmt: skip
    return found


def text(outcomes: Outcomes) -> str:
    """The differences of the two states, as the text of the page."""
    return TEXT.format(
        small=f"{total(outcomes, 'roots pair across'):.1f}",
        large=f"{total(outcomes, 'newer without digests'):.1f}",
        digests=f"{total(outcomes, 'newer pair across'):.1f}",
    )


DIPS = "the source itself has 52 to 56 GB/s for patterns like this one, and does not know why; the root complex simulated here has no inside in which two destinations could meet"

TEXT = """## Sixteen GPUs under four switches

`experiments/p2p/four-roots.toml` has the same links, switches and GPUs; its latencies are fitted again. The published figures are from two states of firmware, kernel and driver: single
pairs of 52 to 54 GB/s and four independent ones from an older, pairs and uplinks of 56.3 GB/s from a newer. A link that carries 56.3 GB/s cannot do so with TLPs of 128 B, which make {small} at most,
with 256 B it carries {large}, and with four bytes more in each TLP {digests}. So the newer state is simulated with `--set defaults.link.mps=256B --set host.ecrc=true`, as a digest has four bytes. That its TLPs are larger and have digests is
inferred from its pairs alone; no capture has been published. The machine with two switches was measured in the older state.

All four roots are alike here, since nothing is published of the root complex's inside, and none is made up (`host.domain` could be): writes to one, two or three of them are the source's uplink. The published dips to 51.8 GB/s have no cause in this model."""

SECTION = Section(rows=rows, text=text, runs=runs)
