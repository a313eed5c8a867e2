"""The matrices and the flows, for a terminal."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TextIO

from rich.console import Console
from rich.text import Text

from tlplab import quantities as q
from tlplab.p2p.flows import Device, Kind, Together
from tlplab.p2p.measure import Outcome, Rate
from tlplab.p2p.survey import MATRICES, Survey
from tlplab.sheet import NOTHING, Column, Sheet
from tlplab.summary import console_for

# A page of a document is as wide.
FILE_WIDTH = 80
TITLES: dict[Kind, str] = {
    "ring": "Rings: all at once, each device to the one at this distance",
    "all": "All to all",
    "fan": "From one switch to others, a flow from each device",
    "named": "The flows together",
}
UNSTEADY, FAILED = "~", "✗"
REASONS_SHOWN = 6


def show(survey: Survey, stream: TextIO) -> None:
    """Prints everything."""
    write(survey, console_for(stream))


def as_text(survey: Survey) -> str:
    """The same, for a file."""
    stream = io.StringIO()
    write(survey, Console(file=stream, width=FILE_WIDTH, highlight=False, emoji=False))
    return stream.getvalue()


def write(survey: Survey, console: Console) -> None:
    """The title, the pairs by their way, the matrices, the flows."""
    console.print(Text(survey.title, style="bold"))
    tables = [ways(survey), *(matrix(survey, name) for name in survey.matrices)]
    tables += [several(survey, kind) for kind in TITLES]
    for table in tables:
        if table is not None and table.rows:
            console.print()
            table.print(console)
    notes(survey, console)


def ways(survey: Survey) -> Sheet | None:
    """The pairs, those together whose data meet as far up."""
    if not survey.matrices:
        return None
    sheet = Sheet("Pairs", [
        Column("", name=True), Column("pairs"), Column("write"), Column("read"), Column("both ways"), Column("latency"),
    ])  # fmt: skip
    alike: list[tuple[str, Callable[[Device, Device], bool]]] = [
        ("functions of one device", lambda a, b: a.device == b.device),
        ("below the same port or switch", lambda a, b: a.device != b.device and a.under == b.under),
        ("below different ones", lambda a, b: a.under != b.under),
    ]
    for name, fits in alike:
        places = [
            (row, column)
            for row, a in enumerate(survey.devices)
            for column, b in enumerate(survey.devices)
            if row != column and fits(a, b)
        ]
        cells = []
        for what in MATRICES:
            values = [survey.matrices[what][r][c] for r, c in places] if what in survey.matrices else []
            known = [value for value in values if value is not None]
            failed = len(known) < len(values) or any((what, *place) in survey.partly for place in places)
            unsteady = any((what, *place) in survey.unsteady for place in places)
            marks = mark(failed=failed, unsteady=unsteady)
            cells.append(marks if values and not known else marks + span(known, MATRICES[what][1]))
        if places:
            sheet.add(name, str(len(places)), *cells)
    return sheet


def span(values: list[float], unit: str) -> str:
    """The least and the most of these."""
    if not values:
        return NOTHING
    least, most = figure(min(values), unit), figure(max(values), unit)
    return f"{least} {unit}" if least == most else f"{least}–{most} {unit}"


def figure(value: float, unit: str) -> str:
    """A rate with a tenth of a GB/s, a time in whole nanoseconds."""
    return f"{value:.0f}" if unit == "ns" else f"{value:.1f}"


def matrix(survey: Survey, name: str) -> Sheet:
    """A matrix, with the names of the devices."""
    words, unit = MATRICES[name]
    names = [device.name for device in survey.devices]
    sheet = Sheet(f"{words} ({unit})", [Column("", name=True), *(Column(one) for one in names)])
    for at, (one, row) in enumerate(zip(names, survey.matrices[name], strict=True)):
        sheet.add(
            one,
            *(
                NOTHING if at == to else FAILED if value is None else marked(survey, name, at, to) + figure(value, unit)
                for to, value in enumerate(row)
            ),
        )
    return sheet


def marked(survey: Survey, name: str, row: int, column: int) -> str:
    """The marks of a figure of a matrix."""
    place = (name, row, column)
    return mark(failed=place in survey.partly, unsteady=place in survey.unsteady)


def mark(*, failed: bool, unsteady: bool) -> str:
    """The marks before a figure: requests failed, or the rate was not steady."""
    return (FAILED if failed else "") + (UNSTEADY if unsteady else "")


def total(found: Outcome) -> str:
    """The sum of the rates of flows, with its marks."""
    return mark(failed=any(rate.failed for rate in found.rates), unsteady=not found.steady) + figure(found.total, "")


def several(survey: Survey, kind: Kind) -> Sheet | None:
    """The flows of a pattern, a line each; if the user named them, a line for each flow."""
    listed = [(one, found) for one, found in survey.several if one.kind == kind]
    if kind == "named":
        return together(survey, listed)
    sheet = Sheet(f"{TITLES[kind]} (GB/s)", [
        Column("flows", name=True), Column("total"), Column("each"), Column("lowest"), Column("highest"), Column("mostly limited by", name=True),
    ])  # fmt: skip
    for one, found in listed:
        lowest, highest = (choose(found.rates, key=lambda rate: rate.gbps) for choose in (min, max))
        sheet.add(
            one.name, total(found), figure(found.total / len(found.rates), ""), carried(lowest, steady=True), carried(highest, steady=True),
            common([rate.limit for rate in found.rates]),
        )  # fmt: skip
    return sheet


def together(survey: Survey, listed: list[tuple[Together, Outcome]]) -> Sheet:
    """Each named flow alone and together with the others."""
    alone = {one.flows[0]: found for one, found in survey.outcomes.items() if one.kind == "pair"}
    sheet = Sheet(f"{TITLES['named']} (GB/s)", [
        Column("flow", name=True), Column("by", name=True, fold=False), Column("alone"), Column("together", style="bold"), Column("limited by", name=True),
    ])  # fmt: skip
    for _, found in listed:
        for rate in found.rates:
            sheet.add(
                str(rate.flow),
                rate.flow.op,
                carried(alone[rate.flow].rates[0], alone[rate.flow].steady),
                carried(rate, found.steady),
                rate.limit,
            )
        sheet.add("total", "", "", total(found), "", ends_section=True)
    return sheet


def carried(rate: Rate, steady: bool) -> str:
    """A rate with its marks, or the mark of a flow of which every request failed."""
    if rate.carried is None:
        return FAILED
    return mark(failed=rate.failed is not None, unsteady=not steady) + figure(rate.gbps, "")


def common(limits: list[str]) -> str:
    """The most frequent, and how many others there are."""
    counted = {limit: limits.count(limit) for limit in limits}
    most = max(counted, key=lambda limit: counted[limit])
    return most if len(counted) == 1 else f"{most} and {len(counted) - 1} more"


def notes(survey: Survey, console: Console) -> None:
    """Print remarks for readers of the figures."""
    failed = {rate.failed for found in survey.outcomes.values() for rate in found.rates if rate.failed}
    if failed:
        count = sum(any(rate.failed for rate in found.rates) for found in survey.outcomes.values())
        console.print()
        console.print(
            f"in {count} of {len(survey.outcomes)} measurements, requests failed ({FAILED}): {', '.join(sorted(failed))}",
            style="dim",
        )
        told = sorted({reason for found in survey.outcomes.values() for rate in found.rates for reason in rate.reasons})
        for reason in told[:REASONS_SHOWN]:
            console.print(Text(f"  {reason}", style="dim"))
        if len(told) > REASONS_SHOWN:
            console.print(Text(f"  {len(told) - REASONS_SHOWN} more reasons: --json lists all", style="dim"))
    unsteady = sum(not found.steady for found in survey.outcomes.values())
    if unsteady:
        console.print()
        what = "measurement was" if unsteady == 1 else "measurements were"
        console.print(f"{UNSTEADY}: {q.significant(unsteady)} {what} not steady at the end", style="dim")
