"""A part of the study: what it runs, what comes out, what is said about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tlplab.reproduce import Drawing, Outcomes, Row, Run, Verdict

PAPER = "pcie-bench"


@dataclass(frozen=True)
class Section:
    """One of them."""

    rows: Callable[[Outcomes], list[Row]]
    text: Callable[[Outcomes], str]
    """What the page says beside the rows, in Markdown; it starts with a heading."""
    drawings: Callable[[Outcomes], Sequence[Drawing]] = lambda _: ()
    runs: Callable[[], list[Run]] = list
    """Experiments of the fabric, if it has any."""


def judged(
    result: str, published: float | None, ours: float, unit: str, good: bool, note: str = "", *, remark: str = ""
) -> Row:
    """A row that is reproduced if `good`, otherwise explained by its note, if it has one; a remark explains nothing."""
    verdict: Verdict = "reproduced" if good else "explained" if note else "not reproducible"
    return Row(PAPER, result, published, ours, unit, verdict, "; ".join(filter(None, (remark, note))))


def compared(result: str, published: float, ours: float, unit: str, within: float, note: str = "") -> Row:
    """A row that is reproduced if the error is at most `within`."""
    return judged(result, published, ours, unit, abs(ours / published - 1) <= within, note)
