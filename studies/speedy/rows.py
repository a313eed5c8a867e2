"""Judgement of the rows of this study, and figures of a run."""

from __future__ import annotations

from tlplab.reproduce import Row, Verdict
from tlplab.result import Calls, Document, Measured

PAPER = "speedy"
MIB = 1 << 20


def judged(result: str, published: float | None, ours: float, unit: str, good: bool, note: str = "") -> Row:
    """A row that is reproduced if `good`, otherwise explained by its note, if it has one."""
    verdict: Verdict = "reproduced" if good else "explained" if note else "not reproducible"
    return Row(PAPER, result, published, ours, unit, verdict, note)


def goal(result: str, ours: float, unit: str, good: bool, note: str) -> Row:
    """A figure that tlplab's core has to reach, with or without a published one: a miss is not reproduced."""
    return Row(PAPER, result, None, ours, unit, "reproduced" if good else "not reproducible", note)


def absent(result: str, published: float | None, ours: float | None, unit: str, why: str) -> Row:
    """A row for a figure that is not available here, with the part that is."""
    return Row(PAPER, result, published, ours, unit, "not reproducible", why)


def load(result: Document, name: str = "core") -> Measured:
    """The measurement of a load."""
    return next(one for one in result["measured"] if one["name"] == name)


def calls(result: Document, name: str = "core") -> Calls:
    """Its calls."""
    found = load(result, name)["calls"]
    assert found is not None
    return found


def rate(result: Document, name: str = "core") -> float:
    """GB/s of a load, from its first call to the end of its last."""
    return load(result, name)["payload_bps"] / 8e9


def size_of(size: int) -> str:
    """As an experiment and people write it."""
    for unit, factor in (("MiB", MIB), ("KiB", 1024)):
        if size >= factor and size % factor == 0:
            return f"{size // factor}{unit}"
    return f"{size}B"
