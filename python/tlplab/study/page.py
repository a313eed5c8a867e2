"""The page of a study, in Markdown: its question, its finding, and its points. It is the same for the same rows."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from tlplab import _core
from tlplab.outputs import write_text
from tlplab.study import show
from tlplab.study.running import Asked, Done

POINTS = 200


@dataclass(frozen=True)
class Picture:
    """A picture of the study in a file, and its options."""

    path: str
    options: Mapping[str, str]


def write(
    path: str, asked: Asked, done: Done, figures: Sequence[tuple[str, str]], summaries: _core.Summaries,
    asks: Mapping[str, str], picture: Picture | None,
) -> None:  # fmt: skip
    """Writes the page of a study that was run; `asks` are options of the command besides those of the study and of the picture."""
    lines = [f"# {done.sweep.title}", ""]
    lines += [head(Path(asked.study).read_text(encoding="utf-8")), ""]
    # The finding is of the study as it is written.
    if not asked.changes() and (found := done.swept.finding()) is not None:
        lines += [f"**{show.sentence(found)}**", ""]
    if picture is not None:
        lines += [link(path, picture.path, done.sweep.title), ""]
    study = Path(asked.study)
    lines += [f"This page is generated from [{study.name}]({study.name}): `{command(asked, asks, picture)}`.", ""]
    write_text(path, "\n".join([*lines, *table(done, figures, summaries)]))


def link(page: str, picture: str, title: str) -> str:
    """A picture in a page, from where the page is; a document, which no page shows, as a link."""
    where = quote(Path(os.path.relpath(picture, Path(page).parent)).as_posix())
    return f"[The picture]({where})" if picture.lower().endswith(".pdf") else f"![{title}]({where})"


def command(asked: Asked, asks: Mapping[str, str], picture: Picture | None) -> str:
    """The command that writes the page next to its study."""
    study = Path(asked.study)
    words = ["tlplab", "sweep", asked.study, *asked.changes(), *flat(asks), "--markdown", f"{study.with_suffix('.md')}"]
    if picture is not None:
        words += ["--plot", f"{study.with_suffix(Path(picture.path).suffix)}", *flat(picture.options)]
    return shlex.join(words)


def flat(options: Mapping[str, str]) -> list[str]:
    """Options as words; one without a value has an empty one."""
    return [word for pair in options.items() for word in pair if word]


def table(done: Done, figures: Sequence[tuple[str, str]], summaries: _core.Summaries) -> list[str]:
    """The points, and how many there are."""
    lines = []
    axes = done.sweep.axes
    lines.append(row([*(name for name, _, _ in axes), *(name for name, _ in figures)]))
    lines.append(row(["---"] * len(axes) + ["---:"] * len(figures)))
    step = thinned(len(summaries))
    for one in summaries[step - 1 :: step]:
        told = [show.mean(figure, unit) for figure, (_, unit) in zip(one["means"], figures, strict=True)]
        if one["trouble"] is not None and not one["runs"]:
            told = [one["trouble"][0], *[""] * (len(figures) - 1)]
        lines.append(
            row([*(show.setting(value, unit) for value, (_, unit, _) in zip(one["values"], axes, strict=True)), *told])
        )
    if step > 1:
        lines += ["", f"These are one in {step}."]
    out = [f"{name} ({count})" for name, count in done.sweep.left_out if count]
    return [*lines, "", f"{show.points(len(summaries))}{'; left out: ' + ', '.join(out) if out else ''}.", ""]


def thinned(points: int) -> int:
    """One in how many points is shown: an odd number, so that sizes are not all of one kind."""
    return 1 if points <= POINTS else -(-points // POINTS) | 1


def row(cells: Sequence[str]) -> str:
    """A line of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def head(written: str) -> str:
    """The question of the study: the comment at the head of its file."""
    lines = []
    for line in written.splitlines():
        if not line.startswith("#"):
            break
        if not line.startswith("#:"):
            lines.append(line.removeprefix("#").strip())
    return " ".join(lines)
