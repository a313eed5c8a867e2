"""Runs a study on all processors and shows its rows."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import cast

import click

from tlplab import _core
from tlplab.guest import kernel, tools
from tlplab.p2p.measure import Settings, measure
from tlplab.processes import side_by_side
from tlplab.reproduce import HEADING, Beside, ByGuest, GuestOptions, Outcomes, Row, Run, Study, chart
from tlplab.reproduce import study as load_study
from tlplab.result import Document
from tlplab.session import run
from tlplab.sheet import Column, Sheet
from tlplab.summary import console_for

# The studies that `--guest` is for.
WITH_GUEST = ("gem5", "nettlp", "pcie-bench", "speedy")


def find_study(name: str, folder: str) -> Study:
    """The study; a usage error if it is not in the folder of studies."""
    try:
        return load_study(name, Path(folder))
    except FileNotFoundError as missing:
        raise absent(missing.args[0]) from None


def experiments_of(study: Study, folder: str) -> Path:
    """The folder of the study's experiments; a usage error if it is not there."""
    place = Path(folder) / study.folder
    missing = sorted({one.experiment for one in study.runs() if not (place / one.experiment).is_file()})
    if missing:
        raise absent(place / missing[0])
    return place


def absent(file: Path) -> click.UsageError:
    """A file of the studies is not where they were said to be."""
    return click.UsageError(
        f"{file} is missing; run this in tlplab's folder, or name the folder of the studies with --experiments"
    )


def check_built(study: Study, place: Path) -> None:
    """A usage error if something has to be made first."""
    for made, how in study.built:
        if not (place / made).is_file():
            path = os.path.normpath(place / made)
            raise click.UsageError(f"{path} is missing; make it with `{how}` in tlplab's folder")


def one_run(place: str, one: Run) -> Document:
    """Runs one simulation; in a process of its own."""
    path = os.path.join(place, one.experiment)
    if one.samples:
        document = _core.measure_on(path, list(one.overrides), one.samples, None, lambda _: None)
        return cast(Document, json.loads(document))
    if one.together is not None:
        result, _ = measure(path, one.overrides, Settings(), one.together)
    else:
        result = cast(Document, dict(run(path, overrides=one.overrides, verdict=False)))
    for large in ("series", "samples", "ladder"):
        result.pop(large)  # type: ignore[misc]
    return result


def outcomes_of(study: Study, place: Path, *, quiet: bool) -> dict[str, Document]:
    """Runs the study."""
    return side_by_side(partial(one_run, str(place)), study.runs(), "runs", quiet=quiet)


def by_guest(study: Study, folder: str, options: GuestOptions, *, quiet: bool) -> ByGuest:
    """Runs the study under Linux; a usage error if it has no such part, or there is no kernel."""
    if study.under_linux is None:
        raise click.UsageError(f"{study.name} does not run under Linux: --guest is for {', '.join(WITH_GUEST)}")
    if options.block is not None and not study.has_block:
        raise click.UsageError(f"{study.name} reads no blocks: --block is for gem5")
    if options.library is not None and not study.has_library:
        raise click.UsageError(f"{study.name} has no published library: --library is for nettlp")
    (tools.find if study.in_machine else kernel.find)(None)
    return study.under_linux(experiments_of(study, folder), options, quiet=quiet)


def show(rows: list[Row]) -> None:
    """Prints the rows as a table, and the notes below it."""
    console = console_for(sys.stdout)
    sheet = Sheet("Published and reproduced", [
        Column("result", name=True), Column("published"), Column("ours", style="bold"), Column("error"),
        Column("verdict", name=True, fold=False),
    ])  # fmt: skip
    for row in rows:
        sheet.add(*row.cells()[:-1])
    sheet.print(console)
    console.print()
    noted: dict[str, list[str]] = {}
    for row in rows:
        noted.setdefault(row.note, []).append(row.result)
    noted.pop("", None)
    for note, (first, *more) in noted.items():
        others = f", and {len(more)} more" if more else ""
        console.print(f"{first}{others}: {note}", style="dim", soft_wrap=False)


def report(study: Study, outcomes: Outcomes, rows: list[Row], more: Sequence[Beside] = ()) -> str:
    """The page of `--report`."""
    sections = [chart.Section("Simulated" if more else "", "", study.charts(outcomes))]
    sections += [chart.Section(one.title, one.text, one.drawings) for one in more]
    return chart.page(study.title, sections, HEADING, [row.cells() for row in rows])


def guest_report(study: Study, under: ByGuest) -> str:
    """The page of `--report` with `--guest`."""
    sections = [chart.Section("", "", under.drawings)] if under.drawings else []
    return chart.page(f"{study.title}, under Linux", sections, HEADING, [row.cells() for row in under.rows])


def texts(study: Study, outcomes: Outcomes, rows: list[Row], more: Sequence[Beside] = ()) -> str:
    """The page of `--markdown`."""
    return "\n".join([study.page(outcomes, rows), *(f"## {one.title}\n\n{one.text}\n" for one in more if one.text)])


def as_json(rows: list[Row]) -> str:
    """The rows, as `--json` writes them."""
    return json.dumps([row.as_json() for row in rows], indent=1, ensure_ascii=False) + "\n"
