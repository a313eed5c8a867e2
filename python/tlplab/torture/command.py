"""`tlplab torture`: every fault on every class of TLPs, on the unmodified drivers of a guest."""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from os import cpu_count
from pathlib import Path
from typing import Any

import click

from tlplab import outline
from tlplab.errors import FAILED, RunError
from tlplab.guest import kernel
from tlplab.guest.command import script_of
from tlplab.guest.initramfs import SCRIPT
from tlplab.outputs import check_outputs, write_text
from tlplab.progress import Bar
from tlplab.sheet import NOTHING, Column, Sheet
from tlplab.summary import console_for
from tlplab.torture import coverage, page, verdict
from tlplab.torture.boot import WORK, Machine, Told, boot, discover
from tlplab.torture.cases import Case, Judged, findings, judge, judge_all, plan, sample
from tlplab.torture.classes import PHASES, TlpClass, read, sort
from tlplab.torture.coverage import Counters, Lines
from tlplab.torture.document import document_of
from tlplab.torture.faults import FAULTS, Fault


@click.command("torture")
@click.argument("experiment", metavar="EXPERIMENT.toml")
@click.option(
    "--device", "devices", metavar="NAME", multiple=True, help="Only TLPs of this device (default: all devices)."
)
@click.option("--fault", "faults", metavar="FAULT", multiple=True, help="Only this fault; --list shows them.")
@click.option("--all", "every", is_flag=True, help="Every TLP, not the first one of each class.")
@click.option(
    "--sample", "size", type=click.IntRange(1), metavar="N", help="Only N cases, from all over; the same each time."
)
@click.option("--case", "name", metavar="NAME", help="Only this case, and its console.")
@click.option(
    "--list", "listed", is_flag=True, help="List the faults and the classes, and boot nothing but the reference."
)
@click.option(
    "--jobs", type=click.IntRange(1, 256), metavar="N", help="N boots at once (default: one for each processor)."
)
@click.option(
    "--linux",
    "folder",
    metavar="DIR",
    help="The kernel in DIR, or `debug` or `coverage`, instead of what `make linux` built last.",
)
@click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Override one key. May be given again.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the verdicts; - is the standard output.")
@click.option("--report", metavar="FILE.html", help="Write a page with the matrix; with --case, the page of that run.")
def torture_command(
    experiment: str, devices: Sequence[str], faults: Sequence[str], every: bool, size: int | None, name: str | None,
    listed: bool, jobs: int | None, folder: str | None, overrides: Sequence[str], json_file: str | None, report: str | None,
) -> int:  # fmt: skip
    """Boot a guest again and again, each time with one fault on one TLP, and judge how its drivers take it.

    A boot without faults shows what TLPs there are: by phase (probe, the script's work, removal), direction, kind, and
    register or memory. The first of each class is hit by every fault that can be done to it. The verdicts:

    \b
      recovered  the work is done
      degraded   the work fails, with an error that the script saw; the kernel goes on
      corrupted  data differ from what was written
      leaked     memory or mappings for DMA are left behind (seen by the kernel of `make linux DEBUG=1`: --linux debug)
      hung       no end for 120 s of simulated time
      oops       the kernel says so

    \b
    Examples:
      tlplab torture experiments/linux/nvme.toml --sample 60
      tlplab torture experiments/linux/nvme.toml --fault lost --json out/torture.json --report out/torture.html
    """
    check_outputs(
        {"--json": json_file, "--report": report}, to_stdout={"--json"}, inputs={"the experiment": experiment}
    )
    chosen = choose_faults(faults)
    machine = machine_of(experiment, overrides, folder)
    tried = Coverage.of(machine)
    reference, classes = refer(machine, choose_devices(machine, devices), tried)
    cases = plan(classes, chosen, every=every or name is not None)
    if listed:
        list_all(chosen, classes, cases)
        return 0
    if name is not None:
        return show_one(machine, cases, name, reference, report)
    if size is not None:
        cases = sample(cases, size)
    judged = []
    counters = None if tried is None else tried.counters
    with Bar(quiet=False) as bar:
        for one in judge_all(machine, cases, reference, jobs or cpu_count() or 1, counters):
            judged.append(one)
            bar.show(len(judged) / len(cases), f"{len(judged)} of {len(cases)} boots")
    order = {case: at for at, case in enumerate(cases)}
    judged.sort(key=lambda one: order[one.case])
    document = document_of(machine, chosen, classes, reference, judged) | (tried.document() if tried else {})
    if json_file != "-":
        show(judged, chosen)
        if tried is not None:
            show_coverage(tried)
    if json_file is not None:
        write_text(json_file, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    if report is not None:
        Path(report).write_text(page.render(document), encoding="utf-8")
    return 0


def choose_faults(names: Sequence[str]) -> list[Fault]:
    """The faults of these names, or all. Raises `click.UsageError`."""
    known = [fault.name for fault in FAULTS]
    for name in names:
        if name not in known:
            raise click.UsageError(f'--fault: there is no fault "{name}"; there are {", ".join(known)}')
    return [fault for fault in FAULTS if not names or fault.name in names]


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
    kernel.find(folder)
    files = {Path(file).name: Path(file).read_bytes() for file in guest["files"]}
    for taken in (WORK, SCRIPT):
        if taken in files:
            raise click.UsageError(f"guest.files: {taken} in /tlplab is the script's; give the file another name")
    return Machine(experiment, tuple(overrides), folder, {**files, WORK: script_of(None, guest["run"])})


@dataclass
class Coverage:
    """What has run of the drivers: without a fault, and with all cases so far."""

    build: Path
    counters: Counters
    before: dict[str, dict[int, int]]

    @classmethod
    def of(cls, machine: Machine) -> Coverage | None:
        """Nothing has run; None, if the kernel does not count."""
        build = coverage.build_of(kernel.find(machine.linux).path)
        return None if build is None else cls(build, Counters(), {})

    def rows(self) -> list[tuple[Lines, Lines]]:
        """Of each driver: without a fault, and with all cases. The functions are those that have run in any boot."""
        now = self.counters.lines(self.build)
        rows = zip(*(coverage.by_driver(of, now, self.build) for of in (self.before, now)), strict=True)
        return [(before, after) for before, after in rows if after.errors]

    def document(self) -> dict[str, Any]:
        """For the document of verdicts."""
        return {"coverage": [{"before": asdict(before), "after": asdict(after)} for before, after in self.rows()]}


def refer(machine: Machine, devices: Mapping[str, int], tried: Coverage | None) -> tuple[Told, list[TlpClass]]:
    """The boot without a fault, and the classes of its TLPs. Raises `RunError` if the work fails by itself."""
    with tempfile.TemporaryDirectory(prefix="tlplab-torture-") as folder:
        capture = Path(folder) / "reference.pcapng"
        share = None if tried is None else Path(tempfile.mkdtemp(dir=folder))
        told = boot(machine, pcap=capture, share=share)
        if tried is not None and share is not None:
            tried.counters.add(share)
            tried.before = tried.counters.lines(tried.build)
        if told.boot.status != 0 or not told.boot.removed:
            last = "".join(f"\n  {line}" for line in told.boot.console[-5:])
            raise RunError(f"without a fault the guest's work does not succeed; nothing can be judged by it{last}")
        return told, sort(read(capture, devices, discover(machine)), told.phases())


def list_all(faults: Sequence[Fault], classes: Sequence[TlpClass], cases: Sequence[Case]) -> None:
    """Prints what could be tried."""
    console = console_for(sys.stdout)
    shown = Sheet("Faults", [Column("fault", name=True), Column("what happens", name=True)])
    for fault in faults:
        shown.add(fault.name, fault.doc)
    shown.print(console)
    shown = Sheet("Classes of TLPs", [Column("class", name=True), Column("TLPs"), Column("cases")])
    of_class = Counter(case.tlp_class for case in cases)
    for one in classes:
        shown.add(one.name, str(len(one.tlps)), str(of_class[one.name]))
    shown.print(console)


def show_one(machine: Machine, cases: Sequence[Case], name: str, reference: Told, report: str | None) -> int:
    """Boots one case and shows its console. Raises `click.UsageError` if there is none of this name."""
    case = next((case for case in cases if case.name == name), None)
    if case is None:
        raise click.UsageError(f'--case: there is no case "{name}"; --list shows the classes and the faults')
    judged = judge(machine, case, reference, report=report)
    for line in judged.console:
        click.echo(line)
    click.echo(f"{case.name}: {judged.verdict.word}" + (f": {judged.verdict.why}" if judged.verdict.why else ""))
    return FAILED if judged.verdict.word in verdict.FINDINGS else 0


def show(judged: Sequence[Judged], faults: Sequence[Fault]) -> None:
    """The verdicts by phase and fault, and those that are findings."""
    console = console_for(sys.stdout)
    shown = Sheet("Verdicts by phase and fault", [
        Column("phase", name=True), Column("fault", name=True), Column("cases"), *(Column(word) for word in verdict.VERDICTS),
    ])  # fmt: skip
    for phase in PHASES:
        for fault in faults:
            words = Counter(
                one.verdict.word
                for one in judged
                if one.case.fault == fault.name and one.case.tlp_class.split()[1] == phase
            )
            if words:
                counts = [str(words[word]) if words[word] else NOTHING for word in verdict.VERDICTS]
                shown.add(phase, fault.name, str(words.total()), *counts)
    shown.print(console)
    found = findings(judged)
    if found:
        shown = Sheet("What the drivers did not take, and the case with the fewest TLPs before its fault", [
            Column("verdict", name=True), Column("cases"), Column("minimal case", name=True), Column("told by", name=True),
        ])  # fmt: skip
        for one in found:
            of = one.minimal
            shown.add(of.verdict.word, str(len(one.cases)), of.case.name, of.verdict.why)
        shown.print(console)


def show_coverage(tried: Coverage) -> None:
    """What the faults have reached of the drivers."""
    shown = Sheet("Lines that ran, of functions that ran in any boot", [
        Column("driver", name=True), Column("lines"), Column("no fault"), Column("all"),
        Column("for errors"), Column("no fault"), Column("all"), Column("all %"),
    ])  # fmt: skip
    for before, after in tried.rows():
        share = f"{100 * after.errors_reached / max(after.errors, 1):.0f}"
        shown.add(
            after.driver, str(after.known), str(before.reached), str(after.reached),
            str(after.errors), str(before.errors_reached), str(after.errors_reached), share,
        )  # fmt: skip
    shown.print(console_for(sys.stdout))
