"""`tlplab torture`: every fault on every class of TLPs, on the unmodified drivers of a guest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from os import cpu_count
from pathlib import Path

import click

from tlplab.errors import FAILED, INTERRUPTED
from tlplab.options import experiment_argument, quiet_option
from tlplab.outputs import check_outputs, write_text
from tlplab.progress import Bar
from tlplab.torture import page, verdict
from tlplab.torture.boot import Machine
from tlplab.torture.cases import judge, judge_all, sample
from tlplab.torture.coverage import Coverage
from tlplab.torture.document import document_of
from tlplab.torture.prepare import Plan, Wanted, choose_faults, machine_of, prepare
from tlplab.torture.tables import list_all, show, show_coverage


@click.command("torture", short_help="Boot a guest many times, each with another fault.")
@experiment_argument
@click.option(
    "--device", "devices", metavar="NAME", multiple=True, help="Only TLPs of this device (default: all devices)."
)
@click.option("--fault", "faults", metavar="FAULT", multiple=True, help="Only this fault; --list shows them.")
@click.option("--all", "every", is_flag=True, help="All TLPs instead of the first one of each class.")
@click.option("--sample", "size", type=click.IntRange(1), metavar="N", help="Only N cases, a fixed sample of all.")
@click.option("--case", "name", metavar="NAME", help="Only this case, with its console.")
@click.option(
    "--first", "firsts", metavar="NAME", multiple=True,
    help="Pairs of faults: the fault of this case in every boot, and a second fault while the drivers recover from it.",
)  # fmt: skip
@click.option("--list", "listed", is_flag=True, help="List the faults and the classes after one boot without faults.")
@click.option("--jobs", type=click.IntRange(1, 256), metavar="N", help="N boots at once (default: one per processor).")
@click.option(
    "--linux",
    "folder",
    metavar="DIR",
    help="Use the kernel in DIR, or `debug` or `coverage`, instead of the last build of `make linux`.",
)
@click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Override one key. May be given again.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the verdicts; - is the standard output.")
@click.option("--report", metavar="FILE.html", help="Write a page with the matrix; with --case, the page of that run.")
@quiet_option
def torture_command(
    experiment: str, devices: Sequence[str], faults: Sequence[str], every: bool, size: int | None, name: str | None,
    firsts: Sequence[str], listed: bool, jobs: int | None, folder: str | None, overrides: Sequence[str], json_file: str | None, report: str | None,
    quiet: bool,
) -> int:  # fmt: skip
    """Boot a guest many times, each time with one fault on one TLP, and report how its drivers handle the fault.

    A boot without faults gives the classes of TLPs: by phase (probe, the script's work, removal), direction, kind, and
    register or memory. Each applicable fault is injected into the first TLP of each class. With the kernels of
    `make linux DEBUG=1` and `COVERAGE=1`, allocations of the drivers fail as well (`no memory`). With `--first`, each
    boot has a fault from which the driver recovers automatically, and each case adds a second one during the recovery.
    The verdicts:

    \b
      recovered  the work is done
      degraded   the work fails with an error in the script; the kernel continues
      corrupted  data differ from the data written
      leaked     DMA mappings remain (detected by the kernel of `make linux DEBUG=1`: --linux debug)
      hung       no progress for 120 s of simulated time
      oops       the kernel reports an oops, a warning or a bug
      missed     the fault did not occur
      undecided  the guest loops without advancing simulated time

    \b
    Examples:
      tlplab torture experiments/linux/nvme.toml --sample 60
      tlplab torture experiments/linux/nvme.toml --fault lost --json out/torture.json --report out/torture.html
      tlplab torture experiments/linux/nvme.toml --linux coverage --fault 'no memory'
      tlplab torture experiments/linux/nvme.toml --first 'nvme0 work up MRd memory 64 B: lost'
    """
    check_outputs(
        {"--json": json_file, "--report": report}, to_stdout={"--json"}, inputs={"the experiment": experiment}
    )
    chosen = choose_faults(faults)
    machine = machine_of(experiment, overrides, folder)
    tried = Coverage.of(machine.kernel)
    if name is not None and firsts:
        raise click.UsageError(
            "--first: the name in --case already includes the first fault; leave one of the options out"
        )
    planned = prepare(machine, Wanted(devices, list(chosen), name, firsts, every), tried)
    if listed:
        list_all(chosen, planned.classes, planned.cases)
        return 0
    if name is not None:
        return show_one(machine, planned, report)
    cases = planned.cases if size is None else sample(planned.cases, size)
    judged = []
    counters = None if tried is None else tried.counters
    interrupted = False
    try:
        with Bar(quiet=quiet) as bar:
            for one in judge_all(machine, cases, planned.references, jobs or cpu_count() or 1, counters):
                judged.append(one)
                bar.show(len(judged) / len(cases), f"{len(judged)} of {len(cases)} boots")
    except KeyboardInterrupt:
        interrupted = True
    order = {case: at for at, case in enumerate(cases)}
    judged.sort(key=lambda one: order[one.case])
    document = document_of(machine, chosen, planned.references.plain, judged, interrupted=interrupted)
    document |= tried.document() if tried else {}
    if json_file != "-" and not quiet:
        show(judged, chosen)
        if tried is not None:
            show_coverage(tried.rows())
    if json_file is not None:
        write_text(json_file, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    if report is not None:
        Path(report).write_text(page.render(document), encoding="utf-8")
    if interrupted:
        click.echo(f"interrupted: {len(judged)} of {len(cases)} boots have a verdict", err=True)
        return INTERRUPTED
    return 0


def show_one(machine: Machine, planned: Plan, report: str | None) -> int:
    """Boots the only case of a plan and shows its console."""
    (case,) = planned.cases
    judged = judge(machine, case, planned.references.of(case), report=report)
    for line in judged.console:
        click.echo(line)
    click.echo(f"{case.name}: {judged.verdict.word}" + (f": {judged.verdict.why}" if judged.verdict.why else ""))
    return FAILED if judged.verdict.word in verdict.FINDINGS else 0
