"""Judgement of the rows of this study."""

from __future__ import annotations

from studies.differential.published import TSC_STEP_NS
from tlplab.reproduce import Row, Verdict

PAPER = "differential"


def judged(result: str, published: float | None, ours: float, unit: str, good: bool, note: str) -> Row:
    """A row that is reproduced if `good`, and explained by its note otherwise."""
    verdict: Verdict = "reproduced" if good else "explained"
    return Row(PAPER, result, published, ours, unit, verdict, note)


def nanoseconds(result: str, published: float, ours: float, note: str) -> Row:
    """A latency that is reproduced if it is within a step of the published clock."""
    return judged(result, published, ours, "ns", abs(ours - published) <= TSC_STEP_NS, note)


def absent(result: str, published: float | None, unit: str, why: str) -> Row:
    """A row for a figure that is not available here."""
    return Row(PAPER, result, published, None, unit, "not reproducible", why)
