"""Judgement of the rows of this study."""

from __future__ import annotations

from tlplab.reproduce import Row, Verdict

PAPER = "pcie-bench"


def judged(
    result: str, published: float | None, ours: float, unit: str, good: bool, note: str = "", *, remark: str = ""
) -> Row:
    """A row that is reproduced if `good`, otherwise explained by its note, if it has one; a remark explains nothing."""
    verdict: Verdict = "reproduced" if good else "explained" if note else "not reproducible"
    return Row(PAPER, result, published, ours, unit, verdict, "; ".join(filter(None, (remark, note))))


def compared(result: str, published: float, ours: float, unit: str, within: float, note: str = "") -> Row:
    """A row that is reproduced if the error is at most `within`."""
    return judged(result, published, ours, unit, abs(ours / published - 1) <= within, note)
