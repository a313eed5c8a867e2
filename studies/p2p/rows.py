"""Judgement of the rows of this study, and figures of a run."""

from __future__ import annotations

from collections.abc import Sequence

from tlplab.p2p.flows import Flow, Kind, Together
from tlplab.reproduce import Outcomes, Row, Run, Verdict

PAPER = "p2p"
# Relative: what was fitted, and what follows from it.
PAIRS, LATENCIES, PREDICTED = 0.02, 0.05, 0.10
Pairs = Sequence[tuple[int, int]]


def flows(pairs: Pairs, op: str = "write") -> tuple[Flow, ...]:
    """Flows between GPUs, by their numbers: from, to."""
    return tuple(Flow(f"gpu{a}", f"gpu{b}", "read" if op == "read" else "write") for a, b in pairs)


def run(name: str, experiment: str, pairs: Pairs, *overrides: str, op: str = "write", kind: Kind = "named") -> Run:
    """A run of these flows together."""
    return Run(name, experiment, overrides, together=Together(name, kind, flows(pairs, op)))


def latency(name: str, experiment: str, reader: int, target: int) -> Run:
    """Reads of 128 B, one at a time."""
    return run(name, experiment, [(target, reader)], op="read", kind="latency")


def rates(outcomes: Outcomes, name: str) -> list[float]:
    """GB/s of each flow of a run, in their order."""
    found = {flow["name"]: flow["payload_bps"] / 8e9 for flow in outcomes[name]["flows"]}
    return [found[f"flow{number}"] for number in range(len(found))]


def total(outcomes: Outcomes, name: str) -> float:
    """GB/s of all flows of a run."""
    return sum(rates(outcomes, name))


def mean_ns(outcomes: Outcomes, name: str) -> float:
    """The mean latency of the reads of a run."""
    found = outcomes[name]["flows"][0]["latency_ns"]
    assert found is not None
    return found["mean"]


def judged(result: str, published: float, ours: float, unit: str, within: float, note: str, why: str = "") -> Row:
    """A row that is reproduced within a relative error, and explained by `why` otherwise."""
    good = abs(ours / published - 1) <= within
    verdict: Verdict = "reproduced" if good else "explained" if why else "not reproducible"
    return Row(PAPER, result, published, ours, unit, verdict, "; ".join(filter(None, [note, "" if good else why])))


def by_harness(each: Sequence[float]) -> float:
    """The harness's figure for flows with these steady rates: it waits for the last one only, and multiplies.

    Flows move as many bytes each. The last one is over after its own bytes if no other is faster; if it is the slowest of flows that share one link,
    the link is full until it ends, and the printed figure is the link's rate.
    """
    last, fastest = each[-1], max(each)
    return len(each) * last if last >= 0.98 * fastest else sum(each)
