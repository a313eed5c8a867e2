"""The results of a study in a terminal: a line for each point, and the points that could not run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from tlplab import _core
from tlplab import quantities as q
from tlplab.sheet import NOTHING, Column, Sheet
from tlplab.study.running import Done
from tlplab.summary import wrapped

POINTS_SHOWN = 40
MESSAGES_SHOWN = 5
# A spread below this share of the mean is none.
LEAST_SPREAD = 0.0005

# Sizes below this are written in bytes where they are no whole KiB: 1518 B says more than 1.482 KiB.
LEAST_ROUNDED = 16 * 1024


def sized(value: float) -> str:
    """A size."""
    if value != int(value):
        return q.significant(value) + " B"
    return f"{int(value)} B" if value % 1024 and abs(value) < LEAST_ROUNDED else q.size(int(value))


WRITE: dict[str, Callable[[float], str]] = {
    "b/s": q.rate,
    "ns": q.time,
    "B": sized,
    "1/s": lambda value: q.scaled(value, [(1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")], 4),
    "1": q.significant,
}


def written(value: float, unit: str) -> str:
    """A figure for people."""
    return WRITE[unit](value) if unit in WRITE else f"{q.significant(value)} {unit}"


def mean(figure: _core.Mean | None, unit: str) -> str:
    """The mean of a figure, and how far it may be off."""
    if figure is None:
        return NOTHING
    value, half = figure
    if half is None or half <= LEAST_SPREAD * abs(value):
        return written(value, unit)
    return (
        f"{written(value, unit)} ±{q.significant(100 * half / abs(value), 2)} %"
        if value
        else f"0 ±{written(half, unit)}"
    )


def setting(value: object, unit: str | None) -> str:
    """A value of an axis for people."""
    if isinstance(value, bool) or unit in (None, "1") or not isinstance(value, int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return written(value, unit or "1")


def show(
    console: Console, done: Done, figures: Sequence[tuple[str, str]], summaries: _core.Summaries,
    chosen: Mapping[int, str] | None = None,
) -> None:  # fmt: skip
    """A line for each of the first points; or for chosen ones, with a mark before each."""
    axes, limits = done.sweep.axes, summaries.limited
    marked = chosen is not None and any(chosen.values())
    sheet = Sheet(done.sweep.title, [
        *([Column("", name=True)] if marked else []),
        *(Column(name, name=True) for name, _, _ in axes),
        *(Column(name, style="bold" if at == 0 else "") for at, (name, _) in enumerate(figures)),
        *([Column("limit", name=True)] if limits else []),
    ])  # fmt: skip
    for at, mark in (dict.fromkeys(range(min(len(summaries), POINTS_SHOWN)), "") if chosen is None else chosen).items():
        one = summaries[at]
        told = [mean(figure, unit) for figure, (_, unit) in zip(one["means"], figures, strict=True)]
        if one["trouble"] is not None and not one["runs"] and told:
            told[0] = one["trouble"][0]
        sheet.add(
            *([mark] if marked else []),
            *(setting(value, unit) for value, (_, unit, _) in zip(one["values"], axes, strict=True)),
            *told,
            *([one["limit"] or NOTHING] if limits else []),
        )
    if sheet.columns and sheet.rows:
        sheet.print(console)
    if chosen is None and len(summaries) > POINTS_SHOWN:
        more = len(summaries) - POINTS_SHOWN
        console.print(Text(f"… and {more} more points: -o FILE.parquet or FILE.csv has them all", style="dim"))
    show_trouble(console, summaries.troubles)
    console.print(Text(counted(done, len(summaries)), style="dim"))


def sentence(found: tuple[str, dict[str, tuple[float, str]], bool]) -> str:
    """The sentence of a finding, with its figures."""
    text, figures, _ = found
    for name, (value, unit) in figures.items():
        text = text.replace(f"{{{name}}}", written(value, unit))
        text = text.replace(f"{{{name} %}}", f"{q.significant(100 * value, 3)} %")
    return text


def say(console: Console, text: str) -> None:
    """A sentence, in lines that fit."""
    console.print()
    console.print(Text(wrapped(console, text), style="bold cyan"))


def note(console: Console, text: str, style: str = "") -> None:
    """A sentence below a table, in lines that fit."""
    console.print(Text(wrapped(console, text), style=style))


def show_trouble(console: Console, troubles: Sequence[tuple[str, str, int]]) -> None:
    """Print the refusals and failures, each message once."""
    for kind, message, count in troubles[:MESSAGES_SHOWN]:
        console.print(Text(f"{points(count)} {kind}: {message}", style="red"))
    if len(troubles) > MESSAGES_SHOWN:
        console.print(Text(f"… and {len(troubles) - MESSAGES_SHOWN} other messages", style="dim"))


def points(count: int) -> str:
    """`1 point`, `12 points`."""
    return "1 point" if count == 1 else f"{q.count(count)} points"


def counted(done: Done, count: int) -> str:
    """The number of points, of runs that were made and known, and of points that were left out."""
    _, _, known, made = done.swept.progress
    refused = done.swept.counts()[2]
    # What was made elsewhere was found when the threads looked again.
    made, known = made + done.in_processes, known - done.in_processes
    runs = "1 run" if made == 1 else f"{q.count(made) if made else 0} runs"
    text = f"{points(count)}: {runs} made, {q.count(known) if known else 0} known"
    if refused:
        text += f", {refused} refused"
    out = [f"{name} ({number})" for name, number in done.sweep.left_out if number]
    return f"{text}; left out: {', '.join(out)}" if out else text
