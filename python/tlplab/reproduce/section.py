"""A part of a study: its runs, results and text; and studies that are made of such parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tlplab.reproduce import HEADING, Drawing, Measure, Outcomes, Row, Run, Study, UnderLinux
from tlplab.reproduce.markdown import table


@dataclass(frozen=True)
class Section:
    """A section of a study's page."""

    rows: Callable[[Outcomes], list[Row]]
    text: Callable[[Outcomes], str]
    """The text of the page next to the rows, in Markdown; it starts with a heading."""
    drawings: Callable[[Outcomes], Sequence[Drawing]] = lambda _: ()
    runs: Callable[[], list[Run]] = list
    """Experiments of the fabric, if it has any."""


def made_of(
    sections: Sequence[Section],
    *,
    name: str,
    title: str,
    page: str,
    beside: Measure | None = None,
    built: tuple[tuple[str, str], ...] = (),
    under_linux: UnderLinux | None = None,
) -> Study:
    """A study of these, in their order; `page` is its page, with places for `{rows}` and for the texts, `{sections}`."""

    def written(outcomes: Outcomes, listed: list[Row]) -> str:
        texts = [section.text(outcomes).strip() for section in sections]
        told = "\n".join(text + "\n" for text in texts if text)
        return page.format(rows=table(HEADING, [row.cells() for row in listed]), sections=told)

    return Study(
        name,
        title,
        name.replace("-", "_"),
        lambda: [run for section in sections for run in section.runs()],
        lambda outcomes: [row for section in sections for row in section.rows(outcomes)],
        written,
        lambda outcomes: [drawing for section in sections for drawing in section.drawings(outcomes)],
        beside,
        built,
        under_linux,
    )
