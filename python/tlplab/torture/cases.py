"""A fault on a TLP, and what a driver makes of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from tlplab.torture import verdict
from tlplab.torture.boot import Machine, Told, boot
from tlplab.torture.classes import Tlp, TlpClass
from tlplab.torture.coverage import Counters
from tlplab.torture.faults import FAULTS, Fault


@dataclass(frozen=True)
class Case:
    """A fault on a TLP."""

    tlp_class: str
    fault: str
    tlp: Tlp
    number: int
    """Which of its class, from 1."""

    @property
    def name(self) -> str:
        """`nvme0 probe down MRd BAR0+0x1c: lost`."""
        return (
            f"{self.tlp_class}: {self.fault}" if self.number == 1 else f"{self.tlp_class} #{self.number}: {self.fault}"
        )

    def entry(self) -> Fault:
        """The fault."""
        return next(fault for fault in FAULTS if fault.name == self.fault)


@dataclass(frozen=True)
class Judged:
    """A case, and what became of the driver."""

    case: Case
    verdict: verdict.Verdict
    console: tuple[str, ...]
    struck: int | None
    """How often the fault has happened, where that is told."""


def plan(classes: Sequence[TlpClass], faults: Sequence[Fault], *, every: bool) -> list[Case]:
    """The cases: of each class the first TLP, or every one."""
    return [
        Case(of.name, fault.name, tlp, number)
        for of in classes
        for number, tlp in enumerate(of.tlps if every else of.tlps[:1], 1)
        for fault in faults
        if fault.hits(tlp)
    ]


def sample(cases: Sequence[Case], size: int) -> list[Case]:
    """So many of the cases, from all over them; the same each time."""
    if size >= len(cases):
        return list(cases)
    return [cases[at * len(cases) // size] for at in range(size)]


def judge(
    machine: Machine, case: Case, reference: Told, *, report: str | None = None, share: Path | None = None
) -> Judged:
    """Boots a case; `report` is where the page of the run goes, `share` a folder for the counters of drivers."""
    fault = f"fault=[{case.entry().to_toml(case.tlp)}]"
    told = boot(machine, more=[fault], silence=reference.longest_silence(), report=report, share=share)
    return Judged(case, verdict.judge(told.boot, reference.boot), told.boot.console, told.boot.struck)


def judge_all(
    machine: Machine, cases: Sequence[Case], reference: Told, jobs: int, counters: Counters | None = None
) -> Iterator[Judged]:
    """What became of each case, as they end, so many boots at once; `counters` adds up what has run of drivers."""
    with ProcessPoolExecutor(jobs) as pool, TemporaryDirectory(prefix="tlplab-torture-") as folder:
        left = iter(cases)
        under_way: dict[Future[Judged], Path | None] = {}
        try:
            while True:
                # No more than are soon run: what has not begun can be given up.
                while len(under_way) < 2 * jobs and (case := next(left, None)) is not None:
                    share = None if counters is None else Path(mkdtemp(dir=folder))
                    under_way[pool.submit(judge, machine, case, reference, share=share)] = share
                if not under_way:
                    return
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    share = under_way.pop(future)
                    if counters is not None and share is not None:
                        counters.add(share)
                    yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def command(experiment: str, machine: Machine, case: Case) -> str:
    """The command that repeats a case."""
    words = ["tlplab", "torture", experiment, "--case", case.name]
    for override in machine.overrides:
        words += ["--set", override]
    return shlex.join(words)
