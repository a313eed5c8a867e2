"""What a torture begins with: the boots without a fault, and what is to be tried."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from tlplab import outline
from tlplab.errors import RunError
from tlplab.guest import kernel
from tlplab.guest.initramfs import SCRIPT
from tlplab.guest.options import script_of as work_of
from tlplab.torture import memory
from tlplab.torture.boot import WORK, Machine, Told, boot, discover
from tlplab.torture.cases import Case, Numbers, References, boot_with, plan, plan_allocations
from tlplab.torture.classes import TlpClass, read, sort
from tlplab.torture.coverage import Coverage
from tlplab.torture.faults import FAULTS
from tlplab.torture.memory import Allocation


def choose_faults(names: Sequence[str]) -> dict[str, str]:
    """The faults of these names, or all, and what each does. Raises `click.UsageError`."""
    known = {**{fault.name: fault.doc for fault in FAULTS}, memory.FAULT: memory.DOC}
    for name in names:
        if name not in known:
            raise click.UsageError(f'--fault: there is no fault "{name}"; there are {", ".join(known)}')
    return {name: doc for name, doc in known.items() if not names or name in names}


def choose_devices(machine: Machine, names: Sequence[str]) -> dict[str, int]:
    """The devices with a link of these names, or all, and the lanes of their links. Raises `click.UsageError`."""
    components = outline.read(machine.experiment, overrides=machine.overrides)["components"]
    known = {
        one["name"]: lanes(one["link"]) for one in components if one["link"] is not None and one["model"] != "switch"
    }
    for name in names:
        if name not in known:
            raise click.UsageError(f'--device: there is no device "{name}" with a link; there are {", ".join(known)}')
    return {name: known[name] for name in names or known}


def lanes(link: str) -> int:
    """Of a link such as `gen3 x4`."""
    return int(link.rsplit("x", 1)[1])


def machine_of(experiment: str, overrides: Sequence[str], folder: str | None) -> Machine:
    """What is booted. Raises `click.UsageError` where there is no script or no kernel."""
    guest = outline.read(experiment, overrides=overrides)["guest"]
    if guest is None or guest["run"] is None:
        raise click.UsageError(
            f"{experiment}: it has no guest that runs a script (guest.run): there is no driver to torture"
        )
    found = kernel.find(folder)
    files = {Path(file).name: Path(file).read_bytes() for file in guest["files"]}
    for taken in (WORK, SCRIPT):
        if taken in files:
            raise click.UsageError(f"guest.files: {taken} in /tlplab is the script's; give the file another name")
    return Machine(experiment, tuple(overrides), folder, found, {**files, WORK: work_of(None, guest["run"])})


@dataclass(frozen=True)
class Plan:
    """What is tried, and the boots without a fault."""

    references: References
    classes: list[TlpClass]
    cases: list[Case]


def prepare(
    machine: Machine, devices: Sequence[str], faults: Sequence[str], name: str | None, tried: Coverage | None, *, every: bool
) -> Plan:  # fmt: skip
    """Boots without a fault, and plans. Raises `RunError` if the work fails by itself, `click.UsageError` for names of nothing."""
    chosen = choose_devices(machine, devices)
    with tempfile.TemporaryDirectory(prefix="tlplab-torture-") as folder:
        capture = Path(folder) / "reference.pcapng"
        share = None if tried is None else Path(tempfile.mkdtemp(dir=folder))
        plain = boot(machine, pcap=capture, share=share)
        if tried is not None and share is not None:
            tried.counters.add(share)
            tried.before = tried.counters.lines(tried.build)
        succeeds(plain)
        bars, drivers = discover(machine)
        classes = sort(read(capture, chosen, bars), plain.phases())
    # Of all that has a name only a few cases are like the one that is wanted.
    named = [of for of in classes if name is None or name.startswith(of.name)]
    wanted = [fault for fault in FAULTS if fault.name in faults and (name is None or f": {fault.name}" in name)]
    cases = plan(named, wanted, Numbers(classes), every=every or name is not None)
    ranges = {driver: of for driver, of in memory.ranges(machine.kernel.build).items() if driver in drivers}
    if memory.FAULT not in faults or devices:
        ranges = {}
    elif not ranges and len(faults) == 1:
        raise click.UsageError(
            f"--fault '{memory.FAULT}': the kernel cannot do that; take --linux coverage or --linux debug"
        )
    again = {
        driver: boot_with(machine, Allocation(driver, first, last, "probe", "slab", 0))
        for driver, (first, last) in ranges.items()
    }
    for told in again.values():
        succeeds(told)
    if name is not None:
        cases = [one for one in (*cases, *memory_case(name, ranges)) if one.name == name]
        if not cases:
            raise click.UsageError(f'--case: there is no case "{name}"; --list shows the classes and the faults')
    else:
        cases += plan_allocations(machine, ranges, every=every)
    return Plan(References(plain, again), classes, cases)


def memory_case(name: str, ranges: Mapping[str, tuple[str, str]]) -> list[Case]:
    """The case of this name, if it is that of an allocation: it has not to be planned."""
    found = memory.IS_CASE.fullmatch(name)
    if found is None or found["driver"] not in ranges:
        return []
    one = Allocation(
        found["driver"], *ranges[found["driver"]], found["phase"], found["kind"], int(found["number"] or 1)
    )
    return [Case(one.group, memory.FAULT, one, one.number)]


def succeeds(told: Told) -> None:
    """Raises `RunError` if the work fails."""
    if told.boot.status != 0 or not told.boot.removed:
        last = "".join(f"\n  {line}" for line in told.boot.console[-5:])
        raise RunError(f"without a fault the guest's work does not succeed; nothing can be judged by it{last}")
