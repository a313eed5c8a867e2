"""Reads beyond the uplink: the rate of the link, and the harness's figure for it. An inference; nothing is fitted to it."""

from __future__ import annotations

from studies.p2p import published as p
from studies.p2p.four_roots import EXPERIMENT, LARGE
from studies.p2p.rows import PAPER, PREDICTED, Pairs, by_harness, judged, rates, run, total
from tlplab.reproduce import Outcomes, Row, Run
from tlplab.reproduce.markdown import table
from tlplab.reproduce.section import Section

# "Reads" by the GPU of the first switch: the data come from the second, and PyTorch lets the source push.
READS: dict[str, Pairs] = {
    "SW1 → SW2 + SW3": [(4, 0), (8, 1)],
    "SW1 → SW2 + SW3 + SW4": [(4, 0), (8, 1), (12, 2)],
    "SW1 → 2×SW2 + SW3 + SW4": [(4, 0), (5, 1), (8, 2), (12, 3)],
}
# The cabling with three roots, where the last source is the only one on the reader's own root.
SIBLING = "SW3 → SW1 + SW2 + SW4"
SIBLING_PAIRS: Pairs = [(0, 8), (4, 9), (12, 10)]
# A root complex that lets two inputs of a root port take turns: one has one root behind it, the other has all others.
TURNS = "an input for the last root, one for the others"
EQUAL = "an input for each root"


# Root ports of one domain come in together: those of SW2 and SW3; for the other pattern, of SW1 and SW2.
JOINED = 'host.domain={ joined = { ports = ["host.rp1", "host.rp2"] } }'
SIBLING_JOINED = 'host.domain={ joined = { ports = ["host.rp0", "host.rp1"] } }'


def runs() -> list[Run]:
    """Each pattern with both kinds of turns."""
    listed = []
    for name, pairs in READS.items():
        listed.append(run(f"{EQUAL}: {name}", EXPERIMENT, pairs, *LARGE))
        listed.append(run(f"{TURNS}: {name}", EXPERIMENT, pairs, *LARGE, JOINED))
    return [*listed, run(f"{TURNS}: {SIBLING}", EXPERIMENT, SIBLING_PAIRS, *LARGE, SIBLING_JOINED)]


INFERENCE = (
    "inference, not a data rate: the harness waits for the last pair's GPU only and multiplies its rate by the number of pairs; the last pair has half of the "
    "link where the root port's two inputs take turns"
)


def rows(outcomes: Outcomes) -> list[Row]:
    """The data rates, then the harness's figures."""
    found = []
    for name in READS:
        rate = total(outcomes, f"{EQUAL}: {name}")
        told = p.READS[name]
        if told <= p.UPLINK:
            found.append(judged(f"{p.NEWER}: reads, {name}", told, rate, "GB/s", PREDICTED, "predicted"))
        else:
            note = f"predicted, the data rate: a link of 63 GB/s bounds it; published with other figures of the same pattern is {told:g}, which no such link carries"
            if name == "SW1 → SW2 + SW3 + SW4":
                found.append(judged(f"{p.NEWER}: reads, {name}, repeated with 50 to 2000 iterations", p.READS_AGAIN, rate, "GB/s", PREDICTED, note))  # fmt: skip
            else:
                found.append(
                    Row(PAPER, f"{p.NEWER}: reads, {name}, the data rate", None, rate, "GB/s", "explained", note)
                )
    for name, told in p.READS.items():
        if told > p.UPLINK:
            figure = by_harness(rates(outcomes, f"{TURNS}: {name}"))
            found.append(judged(f"{p.NEWER}: reads, {name}, as the harness prints it", told, figure, "GB/s", PREDICTED, INFERENCE))  # fmt: skip
    figure = by_harness(rates(outcomes, f"{TURNS}: {SIBLING}"))
    found.append(judged(f"{p.NEWER}, three roots: reads, {SIBLING}, as the harness prints it", p.SIBLING_READS, figure, "GB/s", PREDICTED, INFERENCE))  # fmt: skip
    return found


def text(outcomes: Outcomes) -> str:
    """The reasoning, with its evidence."""
    lines = []
    for name in READS:
        for kind in (EQUAL, TURNS):
            each = rates(outcomes, f"{kind}: {name}")
            told = f"{p.READS[name]:g}"
            lines.append(
                [
                    name,
                    kind,
                    " + ".join(f"{rate:.1f}" for rate in each),
                    f"{sum(each):.1f}",
                    f"{by_harness(each):.1f}",
                    told,
                ]
            )
    half = p.UPLINK / 2
    by_hand = [
        [f"{SIBLING}, three roots", f"3 · {p.UPLINK} / 2", f"{3 * half:.1f}", f"{p.SIBLING_READS:g}"],
        ["SW1 → SW2 + SW3 + SW4", f"3 · {p.UPLINK} / 2", f"{3 * half:.1f}", f"{p.READS['SW1 → SW2 + SW3 + SW4']:g}"],
        [
            "SW1 → 2×SW2 + SW3 + SW4",
            f"4 · {p.UPLINK} / 2",
            f"{4 * half:.1f}",
            f"{p.READS['SW1 → 2×SW2 + SW3 + SW4']:g}",
        ],
    ]
    return TEXT.format(
        simulated=table(("reads", "turns at the root port", "each, GB/s", "data rate", "harness", "published"), lines),
        by_hand=table(("pattern", "pairs · rate of the last", "GB/s", "published"), by_hand),
        writes=" and ".join(f"{rate:g}" for rate in p.IMPOSSIBLE_WRITES),
    )


TEXT = """## Reads beyond the uplink

81.1 and 108.1 GB/s were published for reads by the GPUs of one switch, whose uplink carries 63 GB/s at most in a direction. They cannot be rates of data. The published harness
(`collapse-report.md`, method 1) starts copies of all pairs, calls `torch.cuda.synchronize()` without a device, which waits for the current device only, and divides the bytes of all pairs by
that time. The current device is that of the last pair. So it prints **the number of pairs times the rate of the last pair**, independently of the others: the sum if all share alike, more if the last pair is the fastest.
(PyTorch moreover runs a copy on a stream of its source, which pushes: a "read" is a write of the other side.) This is an inference from its text. Evidence: the same table has {writes} GB/s
for *writes* of GPUs of one switch, which its uplink cannot carry, either; where the source repeats the pattern of 81.1 GB/s with more iterations, it prints 56.4; and the figures result if the last pair
has half of the uplink, independently of the others:

{by_hand}

Round robin among three roots gives the last pair a third or less. A root port with two inputs that take turns gives it half, if the
last root is alone behind one of them. The root complex of `four-roots.toml` has one input for each root; with two root ports in one domain (`host.domain`) these come in together:

{simulated}

A measurement would decide it: time each pair by events of its own stream, or synchronise every device. If the sum is then below 63 GB/s, the harness is the cause; the rates of the single pairs, half, a quarter and a quarter against thirds, show how
the root port's inputs take turns."""

SECTION = Section(rows=rows, text=text, runs=runs)
