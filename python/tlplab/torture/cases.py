"""A fault on a TLP, or an allocation that fails, and the driver's reaction."""

from __future__ import annotations

import shlex
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from tlplab.torture import memory, verdict
from tlplab.torture.boot import Machine, Told, boot, script_of
from tlplab.torture.classes import PROBE, WORD, Tlp, TlpClass
from tlplab.torture.coverage import Counters
from tlplab.torture.evidence import Hop
from tlplab.torture.faults import FAULTS, Change, Fault, ns
from tlplab.torture.memory import Allocation

# Packets of the ladder that the page with the matrix shows, those of the data link layer among them.
PACKETS = 80
# Places in the data of a class after the probe, if not all are wanted.
FIRST = 128
# Between the names of the two cases of a pair.
THEN = ", then "
# Where guests share folders.
FOLDER = "tlplab-torture-"


@dataclass(frozen=True)
class Case:
    """A fault on a TLP, or an allocation that fails."""

    group: str
    """The class of TLPs or allocations."""
    fault: str
    target: Tlp | Allocation
    number: int
    """The number in its class, from 1."""
    change: Change | None = None
    """Of a fault in data: the change."""
    first: Case | None = None
    """The fault on a TLP that happens before, of a pair."""

    @property
    def name(self) -> str:
        """`nvme0 probe down MRd BAR0+0x1c: lost`."""
        which = "" if self.number == 1 else f" #{self.number}"
        own = f"{self.group}{which}: {self.fault}" + ("" if self.change is None else f" at {self.change.byte}")
        return own if self.first is None else f"{self.first.name}{THEN}{own}"

    @property
    def row(self) -> str:
        """The row of the matrix that it is in: its class, and of a pair the first fault."""
        return self.group if self.first is None else f"{self.group} after {self.first.name}"

    @property
    def before(self) -> tuple[bool, int]:
        """A key that orders cases by their earlier events: a fault, if it is the second; for a TLP its time, for an allocation its number."""
        return self.first is not None, self.target.time if isinstance(self.target, Tlp) else self.target.number

    def entries(self) -> list[str]:
        """The values of an experiment's `fault` for faults on TLPs; the last is that of the case."""
        if isinstance(self.target, Allocation):
            return []
        fault = next(fault for fault in FAULTS if fault.name == self.fault)
        return [*([] if self.first is None else self.first.entries()), fault.entry(self.target, self.change)]

    def ladder(self, *, packets: int | None) -> list[str]:
        """The settings of the ladder for a fault on a TLP, with so many packets, or the default number."""
        if isinstance(self.target, Allocation):
            return []
        ladder = [] if packets is None else [f"ladder.packets={packets}"]
        at = ns(max(self.target.begin, 0))
        return [f'ladder.at="{at}"', *ladder]


@dataclass(frozen=True)
class Judged:
    """A case, and the verdict about the driver."""

    case: Case
    verdict: verdict.Verdict
    console: tuple[str, ...]
    ladder: tuple[Hop, ...]
    """The TLPs around the faulty one; none of an allocation."""
    struck: int | None
    """The number of times that the fault has happened, if it is counted."""


@dataclass(frozen=True)
class References:
    """The boots without a fault."""

    plain: Told
    again: Mapping[str, Told]
    """The boots in which a driver is bound again, by driver."""
    after: Mapping[str, Told] = field(default_factory=dict)
    """The boots with the first fault of pairs, by its name."""

    def of(self, case: Case) -> Told:
        """The boot with which a case is compared."""
        if case.first is not None:
            return self.after[case.first.name]
        return self.plain if isinstance(case.target, Tlp) else self.again[case.target.driver]


class Numbers:
    """The number of a TLP among those of its kind and direction with a certain byte, which `tlp` of a fault in data counts."""

    def __init__(self, classes: Iterable[TlpClass]) -> None:
        """Of all TLPs, by kind and length."""
        self.by_length: dict[tuple[str, str, str], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for tlp in (tlp for of in classes for tlp in of.tlps):
            insort(self.by_length[tlp.device, tlp.direction, tlp.kind][len(tlp.data)], tlp.number)

    def of(self, tlp: Tlp, byte: int) -> int:
        """From 1."""
        lengths = self.by_length[tlp.device, tlp.direction, tlp.kind]
        return sum(bisect_right(numbers, tlp.number) for length, numbers in lengths.items() if length > byte)


def plan(classes: Sequence[TlpClass], faults: Sequence[Fault], numbers: Numbers, *, every: bool) -> list[Case]:
    """The cases: of each class the first TLP, or every one."""
    cases = []
    for of in classes:
        for number, tlp in enumerate(of.tlps if every else of.tlps[:1], 1):
            whole = [fault for fault in faults if fault.changes is None and fault.hits(tlp)]
            cases += [Case(of.name, fault.name, tlp, number) for fault in whole]
        for fault in faults:
            cases += changes(of, fault, numbers, every=every)
    return cases


def changes(of: TlpClass, fault: Fault, numbers: Numbers, *, every: bool) -> Iterator[Case]:
    """The cases of a fault in data: of a class each place with a content that no other TLP has had there, or really all.

    After the probe, in which devices describe themselves, only the first ones: data are of users then.
    """
    tried: set[tuple[int, bytes]] = set()
    if fault.changes is None:
        return
    for number, tlp in enumerate(of.tlps, 1):
        for change in fault.changes(tlp) if fault.hits(tlp) else ():
            word = change.byte - change.byte % WORD
            content = change.byte, tlp.data[word : word + WORD]
            if every or (content not in tried and (of.phase == PROBE or len(tried) < FIRST)):
                tried.add(content)
                target = replace(tlp, number=numbers.of(tlp, change.byte))
                yield Case(of.name, fault.name, target, number, change)


def plan_allocations(machine: Machine, drivers: Mapping[str, tuple[str, str]], *, every: bool) -> list[Case]:
    """The cases in which an allocation of a driver fails."""

    def strikes(allocation: Allocation) -> bool:
        return bool(boot_with(machine, allocation).boot.struck)

    found = memory.all_of(drivers, strikes, every=every)
    return [Case(one.group, memory.FAULT, one, one.number) for one in found]


def boot_with(machine: Machine, allocation: Allocation, *, silence: int = 0, share: Path | None = None) -> Told:
    """Boots with an allocation that fails; the kernel reports whether it has."""
    with TemporaryDirectory(prefix=FOLDER) as folder:
        # What a kernel allocates differs with a file system that it mounts, so it always has this one.
        told = boot(
            machine, script=script_of(allocation), more=[f"ladder.packets={PACKETS}"], silence=silence,
            share=share or Path(mkdtemp(dir=folder)),
        )  # fmt: skip
    return replace(told, boot=replace(told.boot, struck=memory.struck(told.boot.console)), ladder=())


def sample(cases: Sequence[Case], size: int) -> list[Case]:
    """So many of the cases, from all over them; the same each time."""
    if size >= len(cases):
        return list(cases)
    return [cases[at * len(cases) // size] for at in range(size)]


def judge(
    machine: Machine, case: Case, reference: Told, *, report: str | None = None, share: Path | None = None
) -> Judged:
    """Boots a case; `report` is where the page of the run goes, `share` a folder for the counters of drivers."""
    silence = reference.longest_silence()
    if isinstance(case.target, Allocation):
        told = boot_with(machine, case.target, silence=silence, share=share)
    else:
        more = case.ladder(packets=PACKETS if report is None else None)
        told = boot(machine, faults=case.entries(), more=more, silence=silence, report=report, share=share)
    return Judged(case, verdict.judge(told.boot, reference.boot), told.boot.console, told.ladder, told.boot.struck)


def judge_all(
    machine: Machine, cases: Sequence[Case], references: References, jobs: int, counters: Counters | None = None
) -> Iterator[Judged]:
    """The verdict of each case, in the order in which they end, with so many boots at once; `counters` adds up the executed lines of drivers."""
    with ProcessPoolExecutor(jobs) as pool, TemporaryDirectory(prefix=FOLDER) as folder:
        left = iter(cases)
        under_way: dict[Future[Judged], Path | None] = {}
        try:
            while True:
                # No more than are soon run: what has not begun can be given up.
                while len(under_way) < 2 * jobs and (case := next(left, None)) is not None:
                    share = None if counters is None else Path(mkdtemp(dir=folder))
                    under_way[pool.submit(judge, machine, case, references.of(case), share=share)] = share
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


@dataclass(frozen=True)
class Finding:
    """Cases that end alike: by the same verdict, told by the same line."""

    minimal: Judged
    """The case with the fewest TLPs, or allocations, before its fault."""
    cases: tuple[Judged, ...]


def findings(judged: Sequence[Judged]) -> list[Finding]:
    """The faults that drivers did not survive, in the order of the minimal cases."""
    alike: dict[tuple[str, str], list[Judged]] = {}
    for one in sorted(judged, key=lambda one: one.case.before):
        if one.verdict.word in verdict.FINDINGS:
            alike.setdefault((one.verdict.word, verdict.comparable(one.verdict.why)), []).append(one)
    return [Finding(of[0], tuple(of)) for of in alike.values()]


def command(machine: Machine, case: Case) -> str:
    """The command that repeats a case."""
    words = ["tlplab", "torture", machine.experiment, "--case", case.name]
    if machine.linux is not None:
        words += ["--linux", machine.linux]
    for override in machine.overrides:
        words += ["--set", override]
    return shlex.join(words)
