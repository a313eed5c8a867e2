"""`tlplab validate` and `tlplab calibrate`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from tlplab.bench.calibration import hosts
from tlplab.bench.calibration.calibrate import Calibration
from tlplab.bench.calibration.compare import Comparison, Summary, compare, summaries, totals, unique
from tlplab.bench.calibration.dataset import DataSet, read_dataset
from tlplab.bench.calibration.device import DeviceValue, fit_device
from tlplab.bench.calibration.generation import same_processor
from tlplab.bench.calibration.hosts import Card, Fresh
from tlplab.bench.calibration.leftover import miss, verdict
from tlplab.bench.calibration.machine import Setting
from tlplab.bench.calibration.page import page
from tlplab.bench.calibration.predict import Prediction, obstacle, planned
from tlplab.bench.calibration.predict import predict as predict_one
from tlplab.bench.calibration.target import Target
from tlplab.errors import FAILED, DatasetError, ExperimentError, RunError
from tlplab.options import complete_listed
from tlplab.outputs import check_outputs, write_text
from tlplab.plotting import check_ending
from tlplab.progress import Bar
from tlplab.sheet import Column, Sheet
from tlplab.summary import console_for

device_option = click.option(
    "--device",
    default=hosts.DEVICE,
    show_default=True,
    metavar="DEVICE",
    shell_complete=complete_listed("bench-devices"),
    help="Profile of the device that made the measurements.",
)
link_option = click.option(
    "--link", metavar="LINK", help="The device's link, as in 'gen3 x8', if the lspci output of the data set lacks it."
)


def read_all(paths: Sequence[str]) -> list[DataSet]:
    """All data sets; raises one error with the mistakes of all of them."""
    sets, mistakes = [], []
    for path in paths:
        try:
            sets.append(read_dataset(path))
        except ExperimentError as error:
            mistakes.extend([error, *error.others])
    if mistakes:
        first, *rest = mistakes
        first.others = tuple(rest)
        raise first
    return sets


@contextmanager
def refusing() -> Iterator[None]:
    """Turn errors of cases that cannot be simulated, such as an unknown device, into mistakes of the command line."""
    try:
        yield
    except ExperimentError:
        raise
    except ValueError as error:
        raise click.UsageError(str(error)) from None


@click.command(short_help="Simulate all measurements of a machine.")
@click.argument("datasets", metavar="DATASET...", nargs=-1, required=True)
@click.option(
    "--host",
    metavar="HOST",
    shell_complete=complete_listed("hosts"),
    help="A host profile, by name or file. By default the shipped profile of the machine, or a newly calibrated one.",
)
@device_option
@link_option
@click.option(
    "--iommu",
    type=click.Choice(["off", "on", "nosp"]),
    help="Setting of the IOMMU. By default the ending of the folder's name: -iommu, -iommu-nosp.",
)
@click.option("--predict", is_flag=True, help="Compare with profiles made without the measurements under comparison.")
@click.option(
    "--json", "json_file", metavar="FILE|-", help="Write the errors of each series; - is the standard output."
)
@click.option(
    "--plot",
    metavar="FILE",
    help="Draw measured and simulated figures (.png, .svg, .pdf), one file per data set.",
)
@click.option(
    "--markdown",
    metavar="FILE|-",
    help="Write a page like studies/pcie_bench/hosts.md: fitted and, with several machines, predicted figures.",
)
@click.option("--quiet", is_flag=True, help="No table, no progress bar.")
def validate(datasets: Sequence[str], host: str | None, device: str, link: str | None, iommu: str | None, predict: bool,
             json_file: str | None, plot: str | None, markdown: str | None, quiet: bool) -> None:  # fmt: skip
    """Simulate all measurements of a machine, and report the error of the simulator.

    DATASET is a folder of pcie-bench: CSV files of one machine, and its output of lspci, lstopo and /proc/cpuinfo. Every
    point of every file is simulated. A folder's name may end in -iommu or -iommu-nosp, and in -sA-sB-sC: sockets of device,
    memory and program.

    With --predict, profiles come from other measurements: a machine's bandwidth is predicted from its own latencies and a
    device fitted on the other machines; its runs with page walks from its runs without them and another machine's walks.

    \b
    Examples:
      tlplab validate data/hsw-Xeon-E5-2620v3_dell-t630 --plot out/t630.png
      tlplab validate data/new-machine --host new-machine.toml --json -
      tlplab validate data/* --predict
    """
    check_outputs(
        {"--json": json_file, "--plot": plot, "--markdown": markdown}, to_stdout={"--json", "--markdown"}, inputs={}
    )
    if host is not None and predict:
        raise click.UsageError("--predict makes its own host profiles; leave --host out")
    sets = read_all(datasets)
    if iommu is not None:
        sets = [replace(data, setting=Setting(iommu, data.setting.node)) for data in sets]
    plots = plot_files(plot, sets)
    card = Card(device, link)
    plans = planned(sets) if predict or markdown is not None else []
    if predict and not plans:
        raise DatasetError(sets[0].path, None, None, "", "these data sets allow no prediction",
                           "give data sets of two machines or more, at least one of them with bandwidths and one with latencies")  # fmt: skip
    plans = possible(plans, card)
    if predict and not plans:
        raise click.exceptions.Exit(FAILED)
    predicted, failed = predict_all(plans, card, quiet=quiet)
    chosen: dict[str, str] = {}
    fitted = [] if predict and markdown is None else fit_all(sets, host, card, chosen, quiet=quiet)
    found = [one for _, comparisons in predicted for one in comparisons] if predict else fitted
    for data in sets:
        of_set = [one for one in found if one.host == data.name]
        if data.path in plots and of_set:
            from tlplab.bench.calibration.figure import write_figure

            write_figure(plots[data.path], of_set, data.name)
    lines = summaries(found)
    if len(sets) > 1:
        lines += totals(found, "all")
    if markdown is not None:
        write_text(markdown, page(sets, fitted, chosen, predicted, calibrated=host is None))
    if json_file is not None:
        write_text(json_file, as_json(lines))
    if not quiet and "-" not in (json_file, markdown):
        show(lines)
    if failed:
        raise click.exceptions.Exit(FAILED)


def possible(plans: Sequence[Prediction], card: Card) -> list[Prediction]:
    """The plans that can be carried out; of the others it is said why not, before the first of them takes its minutes."""
    found = []
    for plan in plans:
        with refusing():
            why = obstacle(plan, card)
        if why is None:
            found.append(plan)
        else:
            click.echo(f"{plan.data.name}, {plan.kind}: not predicted: {why}", err=True)
    return found


def fit_all(
    sets: Sequence[DataSet], host: str | None, card: Card, chosen: dict[str, str], *, quiet: bool
) -> list[Comparison]:
    """Compares every data set with its host; `chosen` gets the hosts."""
    found = []
    for data in sets:
        with refusing():
            found += validate_one(data, host, card, sets, chosen, quiet=quiet)
    return found


def predict_all(
    plans: Sequence[Prediction], card: Card, *, quiet: bool
) -> tuple[list[tuple[Prediction, list[Comparison]]], bool]:
    """The predictions with their measurements, and True if one failed: a failure is reported, and the other predictions continue."""
    found, failed = [], False
    for plan in plans:
        if not quiet:
            click.echo(f"{plan.data.name}, {plan.kind} predicted: {plan.basis}", err=True)
        try:
            with Bar(quiet=quiet) as bar:
                step = partial(follow, bar, f"{plan.data.name}, predicted")
                found.append((plan, predict_one(plan, card, step)))
        except (ValueError, RunError) as error:
            failed = True
            click.echo(f"Error: {plan.data.name}, {plan.kind}: not predicted: {error}", err=True)
    return found, failed


def follow(bar: Bar, name: str, done: int, many: int) -> None:
    """Tells a progress bar how far it is."""
    bar.show(done / many if many else None, f"{name}: {done} of {many}")


def plot_files(plot: str | None, sets: Sequence[DataSet]) -> dict[str, str]:
    """The file to draw each data set in."""
    if plot is None:
        return {}
    path = Path(plot)
    check_ending("--plot", plot)
    if len(sets) == 1:
        return {sets[0].path: plot}
    return {data.path: str(path.with_name(f"{path.stem}-{data.name}{path.suffix}")) for data in sets}


def validate_one(
    data: DataSet, host: str | None, card: Card, sets: Sequence[DataSet], chosen: dict[str, str], *, quiet: bool
) -> list[Comparison]:
    """Compares one data set with its host."""
    labels = card.labels(data)
    target: Target
    name = host or hosts.shipped_for(data)
    with Bar(quiet=quiet) as bar:
        step = partial(follow, bar, data.name)
        if name is not None:
            target = card.on(name, data, data.setting.iommu if has_iommu(name, data) else None)
        else:
            same = [one for one in sets if one.machine_name == data.machine_name]
            target = Fresh(hosts.fit(same, card, step).profile, card, data, data.setting.iommu)
            name = f"calibrated from {', '.join(one.name for one in same)}"
        chosen[data.name] = name
        if not quiet:
            for said in (f"host {name}", *labels.notes()):
                click.echo(f"{data.name}: {said}", err=True)
        return compare(data, target, labels, step)


def has_iommu(host: str, data: DataSet) -> bool:
    """True if the host's IOMMU is to be set; False if the host has none and the data need none."""
    return data.setting.iommu != "off" or hosts.has_iommu(host)


def as_json(lines: Sequence[Summary]) -> str:
    """The lines, as `--json` writes them."""
    return json.dumps([line.as_json() for line in lines], indent=1, ensure_ascii=False) + "\n"


def show(lines: Sequence[Summary]) -> None:
    """Prints the lines as tables, one for each host."""
    console = console_for(sys.stdout)
    for number, host in enumerate(unique(line.host for line in lines)):
        if number:
            console.print()
        sheet = Sheet(f"{host}: simulated against measured", [
            Column("series", name=True), Column("points"), Column("median"), Column("95 %"), Column("largest"),
            Column("within\na tick"),
        ])  # fmt: skip
        of_host = [line for line in lines if line.host == host]
        curves = sum(not line.series.startswith("all ") for line in of_host)
        for row, line in enumerate(of_host, 1):
            within = "–" if line.within_tick is None else f"{100 * line.within_tick:.0f} %"
            errors = [f"{100 * error:.2f} %" for error in (line.median_error, line.p95_error, line.max_error)]
            sheet.add(line.series, str(line.points), *errors, within, ends_section=row == curves)
        sheet.print(console)


@click.command()
@click.argument("datasets", metavar="DATASET...", nargs=-1, required=True)
@click.option("-o", "output", metavar="HOST.toml", required=True, help="Write the profile; - is the standard output.")
@device_option
@link_option
@click.option(
    "--json", "json_file", metavar="FILE|-", help="Write each parameter with its measurement; - is the standard output."
)
@click.option(
    "--fit",
    "what",
    type=click.Choice(["host", "device"]),
    default="host",
    show_default=True,
    help="The profile to fit.",
)
@click.option("--quiet", is_flag=True, help="No table, no progress bar.")
def calibrate(
    datasets: Sequence[str], output: str, device: str, link: str | None, what: str, json_file: str | None, quiet: bool
) -> None:
    """Fit a host profile to measurements of a machine.

    The data sets are of one machine in different settings: IOMMU off, and on with pages of 4 KiB; local and remote memory.
    Each latency determines one parameter. Bandwidth determines the interval of page walks, which latencies do not show, and
    replaces missing latencies. The table and the profile's comments name the measurement behind each parameter and the residual.
    For remote memory alone, local memory may be that of another machine with the same processor.

    At the end the host is compared with its own data. If the error exceeds 10 % (median over the points), a warning is printed and
    written into the profile, and the exit status is 1.

    With --fit device the data sets may be of any machines; the times of writes determine the device profile, which is that of
    --device with other figures.

    \b
    Examples:
      tlplab calibrate data/hsw-Xeon-E5-2620v3_dell-t630 -o t630.toml
      tlplab calibrate data/hsw-Xeon-E5-2620v3_dell-t630{,-iommu-nosp} -o t630.toml
      tlplab validate data/hsw-Xeon-E5-2620v3_dell-t630 --host t630.toml
    """
    check_outputs({"-o": output, "--json": json_file}, to_stdout={"-o", "--json"}, inputs={})
    sets = read_all(datasets)
    if what == "device":
        with refusing():
            text, values = fit_device(sets, device, Card(device, link).link_for(sets[0]))
        write_text(output, text)
        if json_file is not None:
            write_text(json_file, json.dumps([one.as_json() for one in values], indent=1, ensure_ascii=False) + "\n")
        if not quiet and "-" not in (output, json_file):
            show_device(values)
        return
    check_machines(sets)
    card = Card(device, link)
    with refusing(), Bar(quiet=quiet) as bar:
        found = hosts.fit(sets, card, partial(follow, bar, f"calibrating {sets[0].machine_name}"))
        left = [
            one
            for data in sets
            for one in miss(data, found.profile, card, partial(follow, bar, f"checking {data.name}"))
        ]
    bad = verdict(left)
    profile = replace(found.profile, notes=(*found.profile.notes, *bad))
    write_text(output, profile.toml())
    if json_file is not None:
        write_text(json_file, json.dumps([one.as_json() for one in found.fitted], indent=1, ensure_ascii=False) + "\n")
    if not quiet and "-" not in (output, json_file):
        show_fitted(found)
    if bad:
        click.echo("\n".join(["", *bad]), err=True)
        raise click.exceptions.Exit(FAILED)


def check_machines(sets: Sequence[DataSet]) -> None:
    """The data sets are of one machine; only local memory may be that of another with the same processor, if its own was not measured."""
    names = unique(data.machine_name for data in sets)
    if len(names) == 1:
        return
    remote = [data for data in sets if data.setting.node == "remote"]
    local = [data for data in sets if data.setting.node == "local"]
    if (
        not {data.machine_name for data in remote} & {data.machine_name for data in local}
        and all(same_processor(data.machine, sets[0].machine) for data in sets)
        and len({data.machine_name for data in remote}) == len({data.machine_name for data in local}) == 1
    ):
        return
    hint = "calibrate one machine at a time; only if all its data sets are of remote memory, local memory may be that of another machine with the same processor"
    raise click.UsageError(f"the data sets are of different machines: {', '.join(names)}; {hint}")


def show_device(values: Sequence[DeviceValue]) -> None:
    """Prints the source of each parameter of a device."""
    sheet = Sheet("Parameters of the device", [
        Column("parameter", name=True, fold=False), Column("value", style="bold"), Column("determined by", name=True), Column("measured"),
        Column("residual"),
    ])  # fmt: skip
    for one in values:
        left = f"{one.simulated - one.measured:+.2f}"
        sheet.add(one.key, one.text, f"{one.source}; {one.figure}", f"{one.measured:.4g}", left)
    sheet.print(console_for(sys.stdout))


def show_fitted(found: Calibration) -> None:
    """Prints the source of each parameter."""
    sheet = Sheet(f"Parameters of {found.profile.title}", [
        Column("parameter", name=True, fold=False), Column("value", style="bold"), Column("determined by", name=True), Column("measured"),
        Column("residual"),
    ])  # fmt: skip
    for one in found.fitted:
        measured = "–" if one.measured is None else f"{one.measured:.4g}"
        sheet.add(one.key, one.value.text().strip('"'), f"{one.source}; {one.figure}", measured, one.residual)
    sheet.print(console_for(sys.stdout))
    for note in found.profile.notes:
        click.echo(f"\n{note}")
