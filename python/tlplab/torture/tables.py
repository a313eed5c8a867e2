"""The output of torture."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tlplab.sheet import NOTHING, Column, Sheet
from tlplab.summary import console_for
from tlplab.torture import verdict
from tlplab.torture.cases import Case, Judged, findings
from tlplab.torture.classes import PHASES, RECOVERY, TlpClass
from tlplab.torture.coverage import Lines


def list_all(faults: Mapping[str, str], classes: Sequence[TlpClass], cases: Sequence[Case]) -> None:
    """Prints the possible cases."""
    console = console_for(sys.stdout)
    shown = Sheet("Faults", [Column("fault", name=True), Column("effect", name=True)])
    for name, doc in faults.items():
        shown.add(name, doc)
    shown.print(console)
    shown = Sheet("Classes of TLPs", [Column("class", name=True), Column("TLPs"), Column("cases")])
    of_class = Counter(case.row for case in cases)
    for one in classes:
        shown.add(one.name, str(len(one.tlps)), str(of_class.pop(one.name, 0)))
    shown.print(console)
    if of_class:
        shown = Sheet("Classes of allocations", [Column("class", name=True), Column("cases")])
        for group, number in of_class.items():
            shown.add(group, str(number))
        shown.print(console)


def show(judged: Sequence[Judged], faults: Iterable[str]) -> None:
    """The verdicts by phase and fault, and the findings."""
    console = console_for(sys.stdout)
    shown = Sheet("Verdicts by phase and fault", [
        Column("phase", name=True), Column("fault", name=True), Column("cases"), *(Column(word) for word in verdict.VERDICTS),
    ])  # fmt: skip
    for phase in (*PHASES, RECOVERY):
        for fault in faults:
            words = Counter(
                one.verdict.word for one in judged if one.case.fault == fault and one.case.group.split()[1] == phase
            )
            if words:
                counts = [str(words[word]) if words[word] else NOTHING for word in verdict.VERDICTS]
                shown.add(phase, fault, str(words.total()), *counts)
    shown.print(console)
    found = findings(judged)
    if found:
        shown = Sheet("Failures of the drivers, with the earliest case of each", [
            Column("verdict", name=True), Column("cases"), Column("minimal case", name=True), Column("reported by", name=True),
        ])  # fmt: skip
        for one in found:
            of = one.minimal
            shown.add(of.verdict.word, str(len(one.cases)), of.case.name, of.verdict.why)
        shown.print(console)


def show_coverage(rows: Iterable[tuple[Lines, Lines]]) -> None:
    """Print the lines of the drivers that the faults have reached."""
    shown = Sheet("Lines executed, in functions executed in any boot", [
        Column("driver", name=True), Column("lines"), Column("no fault"), Column("all"),
        Column("for errors"), Column("no fault"), Column("all"), Column("all %"),
    ])  # fmt: skip
    for before, after in rows:
        share = f"{100 * after.errors_reached / max(after.errors, 1):.0f}"
        shown.add(
            after.driver, str(after.known), str(before.reached), str(after.reached),
            str(after.errors), str(before.errors_reached), str(after.errors_reached), share,
        )  # fmt: skip
    shown.print(console_for(sys.stdout))
