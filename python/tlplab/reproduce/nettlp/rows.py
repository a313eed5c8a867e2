"""How the rows of this study are judged."""

from __future__ import annotations

from tlplab.reproduce import Row, Verdict

PAPER = "nettlp"


def compared(result: str, published: float, ours: float, unit: str, within: float, note: str = "") -> Row:
    """A row that is reproduced if the error is at most `within`, and explained by its note otherwise."""
    good = abs(ours / published - 1) <= within
    verdict: Verdict = "reproduced" if good else "explained" if note else "not reproducible"
    return Row(PAPER, result, published, ours, unit, verdict, note)


def shape(result: str, ours: float, unit: str, good: bool, note: str, excuse: str = "") -> Row:
    """A shape that the paper describes without a figure: the note says what it is. An excuse explains why it does not come out."""
    verdict: Verdict = "reproduced" if good else "explained" if excuse else "not reproducible"
    return Row(PAPER, result, None, ours, unit, verdict, note if good or not excuse else f"{note}; {excuse}")


def absent(result: str, published: float | None, unit: str, why: str) -> Row:
    """What could not be had here."""
    return Row(PAPER, result, published, None, unit, "not reproducible", why)
