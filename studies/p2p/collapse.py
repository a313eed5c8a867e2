"""The collapse of writes to several roots: hypotheses as mechanisms, the prediction of each, and the measurement that decides. Nothing is fitted."""

from __future__ import annotations

from studies.p2p import published as p
from studies.p2p.four_roots import EXPERIMENT
from studies.p2p.rows import Pairs, rates, run
from tlplab.reproduce import Outcomes, Row, Run
from tlplab.reproduce.markdown import table
from tlplab.reproduce.section import Section

PATTERNS: dict[str, Pairs] = {
    "SW1 → SW2 alone": [(0, 4)],
    "SW1 → SW3 alone": [(1, 8)],
    "SW1 → SW2, two pairs": [(0, 4), (1, 5)],
    "SW1 → SW2 + SW3": [(0, 4), (1, 8)],
    "SW1 → SW2 + SW3 + SW4": [(0, 4), (1, 8), (2, 12)],
    "GPU 0 → SW2 + SW3": [(0, 4), (0, 8)],
}
# One destination is slow, and what waits for it fills the buffer in which all of a source's writes wait.
SLOW = "a slow destination"
# As much as a Gen2 link carries, that is.
SLOW_OVERRIDES = ("switch.sw3.link=gen2 x16",)
# Few posted writes may be on their way to a switch.
FEW = "few credits at each egress"
CREDITS = 16
FEW_OVERRIDES = tuple(f"link.sw{n}.lower.buffers.posted_headers={CREDITS}" for n in (2, 3, 4))
SMALL = "a small buffer at the source's root port"
SMALL_OVERRIDES = (f"link.sw1.upper.buffers.posted_headers={CREDITS}",)
# No measured value: how long it would be is not known.
TURNAROUND_NS = 20
TURN = f"{TURNAROUND_NS} ns for each change of destination"
TURN_OVERRIDES = (f"host.write_turnaround={TURNAROUND_NS}ns",)
MECHANISMS = {
    "none": (),
    SLOW: SLOW_OVERRIDES,
    FEW: FEW_OVERRIDES,
    SMALL: SMALL_OVERRIDES,
    TURN: TURN_OVERRIDES,
}
TLP = 128
# Nanoseconds that a TLP of a pair takes on its link, with what frames it.
PITCH_NS = 2.42
RUNS = (1, 2, 4, 8, 32, 128)


def runs() -> list[Run]:
    """Every pattern with every mechanism."""
    return [
        run(f"collapse, {mechanism}: {pattern}", EXPERIMENT, pairs, *overrides)
        for mechanism, overrides in MECHANISMS.items()
        for pattern, pairs in PATTERNS.items()
    ]


def rows(_: Outcomes) -> list[Row]:
    """None: nothing that was measured is reproduced."""
    return []


def switchover(rate: float) -> float:
    """Nanoseconds from one TLP to the next at a rate in GB/s."""
    return TLP / rate


def in_runs(count: int) -> float:
    """GB/s of one GPU that writes so many TLPs to one root and as many to another, in turn: each run but its first TLP goes at the link's pace."""
    return count * TLP / (TURNAROUND_NS + (count - 1) * PITCH_NS)


def text(outcomes: Outcomes) -> str:
    """The table of hypotheses, and the simulated ones."""
    lines = []
    for pattern in PATTERNS:
        cells = [pattern]
        for mechanism in MECHANISMS:
            each = rates(outcomes, f"collapse, {mechanism}: {pattern}")
            cells.append(
                f"{sum(each):.1f}" + (f" ({' + '.join(f'{rate:.1f}' for rate in each)})" if len(each) > 1 else "")
            )
        lines.append(cells)
    return TEXT.format(
        simulated=table(("writes, GB/s", *MECHANISMS), lines), turnaround=TURNAROUND_NS,
        runs=table(("TLPs in a run", *map(str, RUNS)), [["GB/s", *(f"{in_runs(count):.1f}" for count in RUNS)]]), credits=CREDITS, two=p.COLLAPSE_TWO, three=p.COLLAPSE_THREE, broadcom=p.COLLAPSE_BROADCOM,
        between_two=f"{switchover(p.COLLAPSE_TWO):.1f}", between_three=f"{switchover(p.COLLAPSE_THREE):.1f}", between_broadcom=f"{switchover(p.COLLAPSE_BROADCOM):.0f}",
    )  # fmt: skip


TEXT = """## The unexplained collapse

On an older state of the machine with four switches, GPUs of one switch that wrote to GPUs behind two other roots carried {two} GB/s together, behind three {three}; one destination alone was as it should
be, and so was the reverse direction. On a server with switches of another maker and two EPYC processors it was {broadcom} GB/s. No parameter here is fitted to that. These are mechanisms that could make it, the predictions of
each, and the measurements that contradict them:

| mechanism | predicts | against the measurements | deciding measurement |
| --- | --- | --- | --- |
| **Head-of-line blocking**: writes of one root port wait in one buffer; one destination takes them slowly, and all others wait behind | all flows get the rate of the slowest; in all, the number of flows times that rate; the slow destination is slow alone, too | each destination alone was fast; three flows carried less in all than two, where more was to be expected | the same pattern with one flow at a time stopped: if one destination is the cause, the others recover as soon as its flow stops |
| **Few posted credits at an egress**: a destination's port takes few writes at a time | single flows are slow as well: the data on their way at a time, over a round trip; more destinations carry more in all | single flows were fast, and more destinations carried less | the rate of a single pair against the size of its writes: the credits for headers bind with small ones first |
| **A small buffer at the source's root port**: few writes of the source may be in the root complex | single flows are slow as well, and by as much | single flows were fast | as above |
| **A round trip for each change of destination**: a root complex that keeps writes in order across its root ports sends none to another one before those before it have been accepted there | in all payload of a run to one destination over that round trip, for two flows as for three, and for 16; one GPU that writes to two roots in long runs is fast; reads are not affected; host memory, interleaved over the quadrants, is | no published figure contradicts it. A round trip would be {between_two} to {between_three} ns for each TLP of 128 B, {between_broadcom} ns on the other server | one GPU that writes to two roots in turn, with a run of 128 B, 1 KiB, 8 KiB, … to each: only here does the rate grow with the run; and the same with Relaxed Ordering allowed for the GPUs' writes, which need not be kept in order |
| **An arbiter of the switch** that stalls between writes for several root ports | the same as the last, but not if the switch is another maker's or if the destinations are under one root | both makers' switches showed it, and a switch does not see which root port is meant, as all of it goes up | a GPU on a root port of its own next to one under the switch, each to another root: no switch is between them and the root complex |

The first four are simulated on `experiments/p2p/four-roots.toml`: SW3's uplink at Gen2, which takes 6.7 GB/s; {credits} posted headers at the switches of the destinations;
{credits} at the root port of the source; `host.write_turnaround` of {turnaround} ns, which is not a measured value:

{simulated}

Head-of-line blocking makes the total out of a slow destination, and its {two} GB/s out of 6.7 are a coincidence: with three flows it predicts half as much again, and less was measured. Credits make every flow slow, or none, and with credits at each egress two destinations carry twice as much as one. So the first three are not the cause, unless they come and
go with the pattern. With a round trip for each change of destination single flows and those to one root are as fast as without, and several carry a TLP's payload in each, {turnaround} ns here, whether there are two or three:
that is the published pattern, at another rate. It has not been shown, since the length of the round trip is free; one GPU that writes to two roots in turn would show it. By hand, with {turnaround} ns:

{runs}

No other mechanism here depends on the run, and with Relaxed Ordering, which spares writes that wait, this one vanishes."""

SECTION = Section(rows=rows, text=text, runs=runs)
