"""The page of a study, in Markdown: what it asks, what it found, and its points. It is the same for the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tlplab import _core
from tlplab.outputs import write_text
from tlplab.study import show
from tlplab.study.running import Done

POINTS = 200


def write(
    path: str, study: str, done: Done, figures: Sequence[tuple[str, str]], summaries: _core.Summaries
) -> None:  # fmt: skip
    """Writes the page of a study that was run."""
    write_text(path, text(study, done, figures, summaries))


def text(study: str, done: Done, figures: Sequence[tuple[str, str]], summaries: _core.Summaries) -> str:
    """The page."""
    lines = [f"# {done.sweep.title}", ""]
    lines += [asked(Path(study).read_text(encoding="utf-8")), ""]
    if (found := done.swept.finding()) is not None:
        lines += [f"**{show.sentence(found)}**", ""]
    lines += [
        f"This page is generated from [{Path(study).name}]({Path(study).name}): `tlplab sweep {study} --markdown {Path(study).with_suffix('.md')}`.",
        "",
    ]
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
    lines += ["", f"{show.points(len(summaries))}{'; left out: ' + ', '.join(out) if out else ''}.", ""]
    return "\n".join(lines)


def thinned(points: int) -> int:
    """One in how many points is shown: an odd number, so that sizes are not all of one kind."""
    return 1 if points <= POINTS else -(-points // POINTS) | 1


def row(cells: Sequence[str]) -> str:
    """A line of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def asked(written: str) -> str:
    """What the study asks: the comment at the head of its file."""
    head = []
    for line in written.splitlines():
        if not line.startswith("#"):
            break
        if not line.startswith("#:"):
            head.append(line.removeprefix("#").strip())
    return " ".join(head)
