"""The preparation of a torture: the boots without a fault, and the list of cases."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from tlplab import outline
from tlplab.errors import RunError
from tlplab.guest import kernel
from tlplab.guest.initramfs import SCRIPT
from tlplab.guest.options import script_of as work_of
from tlplab.torture import memory
from tlplab.torture.boot import WORK, Machine, Told, boot, discover
from tlplab.torture.cases import FOLDER, THEN, Case, Numbers, References, boot_with, plan, plan_allocations
from tlplab.torture.classes import RECOVERY, Bar, TlpClass, read, sort
from tlplab.torture.coverage import Coverage
from tlplab.torture.faults import FAULTS
from tlplab.torture.memory import Allocation


def choose_faults(names: Sequence[str]) -> dict[str, str]:
    """The faults of these names, or all, and the meaning of each. Raises `click.UsageError`."""
    known = {**{fault.name: fault.doc for fault in FAULTS}, memory.FAULT: memory.DOC}
    for name in names:
        if name not in known:
            raise click.UsageError(f'--fault: there is no fault "{name}"; the faults are {", ".join(known)}')
    return {name: doc for name, doc in known.items() if not names or name in names}


def choose_devices(machine: Machine, names: Sequence[str]) -> dict[str, int]:
    """The devices with a link of these names, or all, and the lanes of their links. Raises `click.UsageError`."""
    components = outline.read(machine.experiment, overrides=machine.overrides)["components"]
    known = {
        one["name"]: lanes(one["link"]) for one in components if one["link"] is not None and one["model"] != "switch"
    }
    for name in names:
        if name not in known:
            raise click.UsageError(
                f'--device: there is no device "{name}" with a link; the devices are {", ".join(known)}'
            )
    return {name: known[name] for name in names or known}


def lanes(link: str) -> int:
    """Of a link such as `gen3 x4`."""
    return int(link.rsplit("x", 1)[1])


def machine_of(experiment: str, overrides: Sequence[str], folder: str | None) -> Machine:
    """The machine that is booted. Raises `click.UsageError` without a script or a kernel."""
    guest = outline.read(experiment, overrides=overrides)["guest"]
    if guest is None or guest["run"] is None:
        raise click.UsageError(f"{experiment}: it has no guest with a script (guest.run), and so no driver to test")
    found = kernel.find(folder)
    files = {Path(file).name: Path(file).read_bytes() for file in guest["files"]}
    for taken in (WORK, SCRIPT):
        if taken in files:
            raise click.UsageError(f"guest.files: the script uses the name {taken} in /tlplab; rename the file")
    return Machine(experiment, tuple(overrides), folder, found, {**files, WORK: work_of(None, guest["run"])})


@dataclass(frozen=True)
class Plan:
    """The cases, and the boots with which they are compared."""

    references: References
    classes: list[TlpClass]
    cases: list[Case]


@dataclass(frozen=True)
class Wanted:
    """The user's choice."""

    devices: Sequence[str] = ()
    """Their TLPs; none are all."""
    faults: Sequence[str] = ()
    """By their names."""
    case: str | None = None
    """The only case."""
    firsts: Sequence[str] = ()
    """The first cases of pairs; if there are any, only pairs are tried."""
    every: bool = False
    """Every TLP and allocation, not the first ones."""

    def alone(self) -> tuple[str | None, list[str]]:
        """The only case without the fault before it, and all first cases."""
        first, then, second = (self.case or "").rpartition(THEN)
        return (second, [first]) if then else (self.case, list(self.firsts))


def prepare(machine: Machine, wanted: Wanted, tried: Coverage | None) -> Plan:
    """Boots without a fault, and plans. Raises `RunError` if the work fails without one, `click.UsageError` for unknown names."""
    chosen = choose_devices(machine, wanted.devices)
    name, firsts = wanted.alone()
    plain, capture = reference(machine, tried, [])
    if tried is not None:
        tried.before = tried.counters.lines(tried.build)
    bars, drivers = discover(machine)
    classes = sort(read(capture.file, chosen, bars), plain.phases())
    if firsts:
        if memory.FAULT in wanted.faults and len(wanted.faults) == 1:
            raise click.UsageError(f"--fault '{memory.FAULT}': it cannot follow another fault; leave --first out")
        return pairs(machine, wanted, tried, classes, plain, chosen, bars)
    cases = of_tlps(classes, wanted.faults, name, Numbers(classes), every=wanted.every)
    ranges = {driver: of for driver, of in memory.ranges(machine.kernel.build).items() if driver in drivers}
    if memory.FAULT not in wanted.faults or wanted.devices:
        ranges = {}
    elif not ranges and len(wanted.faults) == 1:
        raise click.UsageError(
            f"--fault '{memory.FAULT}': this kernel does not support it; use --linux coverage or --linux debug"
        )
    again = {
        driver: boot_with(machine, Allocation(driver, first, last, "probe", "slab", 0))
        for driver, (first, last) in ranges.items()
    }
    for told in again.values():
        succeeds(told)
    if name is None:
        cases += plan_allocations(machine, ranges, every=wanted.every)
    else:
        cases += memory_case(name, ranges)
        exists(cases, name, "--case")
    return Plan(References(plain, again), classes, cases)


def pairs(
    machine: Machine, wanted: Wanted, tried: Coverage | None, classes: Sequence[TlpClass], plain: Told,
    chosen: Mapping[str, int], bars: Sequence[Bar],
) -> Plan:  # fmt: skip
    """Boots with each first fault, and plans the faults of later TLPs. Raises as `prepare` does."""
    name, firsts = wanted.alone()
    names = [fault.name for fault in FAULTS]
    after, found, cases = {}, [], []
    for of in firsts:
        first = exists(of_tlps(classes, names, of, Numbers(classes), every=True), of, "--case" if name else "--first")
        told, capture = reference(machine, tried, first.entries())
        if told.boot.struck == 0:
            raise RunError(f"{of}: the fault did not occur, so no second fault can follow")
        after[of] = told
        seen = sort(read(capture.file, chosen, bars), replace(told.phases(), fault=first.before[1]))
        recovery = [one for one in seen if one.phase == RECOVERY]
        second = of_tlps(recovery, wanted.faults, name, Numbers(seen), every=wanted.every)
        found += [replace(one, name=f"{one.name} after {of}") for one in recovery]
        cases += [replace(one, first=first) for one in second]
    if name is not None:
        exists(cases, f"{firsts[0]}{THEN}{name}", "--case")
    return Plan(References(plain, {}, after), found, cases)


def of_tlps(
    classes: Sequence[TlpClass], faults: Sequence[str], name: str | None, numbers: Numbers, *, every: bool
) -> list[Case]:  # fmt: skip
    """The cases of faults on TLPs, or the one of a name."""
    # Of all that has a name only a few cases are like the one that is wanted.
    named = [of for of in classes if name is None or name.startswith(of.name)]
    wanted = [fault for fault in FAULTS if fault.name in faults and (name is None or f": {fault.name}" in name)]
    cases = plan(named, wanted, numbers, every=every or name is not None)
    return [one for one in cases if name in (None, one.name)]


def exists(cases: Sequence[Case], name: str, option: str) -> Case:
    """The only case. Raises `click.UsageError` if there is none."""
    if not cases:
        raise click.UsageError(f'{option}: there is no case "{name}"; --list shows the classes and the faults')
    return cases[0]


@dataclass(frozen=True)
class Capture:
    """A capture in a folder that goes when this does."""

    folder: tempfile.TemporaryDirectory[str]

    @property
    def file(self) -> Path:
        """The path of the capture."""
        return Path(self.folder.name) / "reference.pcapng"


def reference(machine: Machine, tried: Coverage | None, faults: Sequence[str]) -> tuple[Told, Capture]:
    """A boot that others are compared with. Raises `RunError` if its work fails."""
    capture = Capture(tempfile.TemporaryDirectory(prefix=FOLDER))
    share = None if tried is None else Path(tempfile.mkdtemp(dir=capture.folder.name))
    told = boot(machine, faults=faults, pcap=capture.file, share=share)
    if tried is not None and share is not None:
        tried.counters.add(share)
    succeeds(told, "with the first fault" if faults else "without a fault")
    return told, capture


def memory_case(name: str, ranges: Mapping[str, tuple[str, str]]) -> list[Case]:
    """The case of this name, if it is that of an allocation: it has not to be planned."""
    found = memory.IS_CASE.fullmatch(name)
    if found is None or found["driver"] not in ranges:
        return []
    one = Allocation(
        found["driver"], *ranges[found["driver"]], found["phase"], found["kind"], int(found["number"] or 1)
    )
    return [Case(one.group, memory.FAULT, one, one.number)]


def succeeds(told: Told, when: str = "without a fault") -> None:
    """Raises `RunError` if the work fails."""
    if told.boot.status != 0 or not told.boot.removed:
        last = "".join(f"\n  {line}" for line in told.boot.console[-5:])
        raise RunError(f"{when} the guest's work fails, so no case can be judged{last}")
