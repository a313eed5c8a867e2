"""A part of a study: what it runs, what comes out, what is said about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tlplab.reproduce import Drawing, Outcomes, Row, Run


@dataclass(frozen=True)
class Section:
    """One of them."""

    rows: Callable[[Outcomes], list[Row]]
    text: Callable[[Outcomes], str]
    """What the page says beside the rows, in Markdown; it starts with a heading."""
    drawings: Callable[[Outcomes], Sequence[Drawing]] = lambda _: ()
    runs: Callable[[], list[Run]] = list
    """Experiments of the fabric, if it has any."""
