"""`tlplab bench`: the benchmarks on the command line."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

import click

from tlplab.bench import against as against_file
from tlplab.bench import plots, table
from tlplab.bench.case import TESTS
from tlplab.bench.options import case_options, output_options, target_options
from tlplab.bench.result import Result, Results
from tlplab.bench.running import DEVICE, TARGETS, run
from tlplab.bench.sweep import COUNTS, Sweep, sweep
from tlplab.errors import INTERRUPTED, ExperimentError
from tlplab.outputs import check_outputs, write_text
from tlplab.plotting import check_ending
from tlplab.progress import Bar


@click.command("bench")
@click.argument("test", metavar="TEST", type=click.Choice(list(TESTS)))
@target_options
@case_options
@output_options
@click.option("--quiet", is_flag=True, help="No table, no progress bar.")
def bench_command(
    test: str,
    target: str,
    host: str,
    device: str | None,
    link: str,
    iommu: str | None,
    count: int | str | None,
    json_file: str | None,
    output: str | None,
    cdf_file: str | None,
    plot: str | None,
    plot_kind: str | None,
    against: str | None,
    threads: int | None,
    quiet: bool,
    **given: Any,
) -> int:
    """Measure latency or bandwidth as pcie-bench does.

    TEST is lat_rd, lat_wrrd (a write followed by a read), bw_rd, bw_wr or bw_rdwr (reads and writes in turn). SIZES
    are sizes and ranges, separated by commas: 64B..2KiB/x2 doubles, 64B..512B/64B has steps of 64 B, 64B..80B of 1 B.
    Every combination is measured. In CSV files the column "BW (GB/s)" holds gigabits per second, as in the published
    data sets. Ctrl-C keeps the cases measured so far.

    \b
    Examples:
      tlplab bench bw_wr --size 64B..2KiB/x2 --plot out/bw.png
      tlplab bench lat_rd --host xeon-e5-2620v3 --window 4KiB..64MiB/x4 --pattern random --cache cold,host-warm -o out/lat.csv
      tlplab bench bw_rd --on model --link 'gen4 x16' --device ideal --size 64B,256B,1KiB
      tlplab bench lat_rd --on mydev.py:MyDma --plot out/cdf.png
      tlplab bench bw_rd --on cuda --at-once 1..4096/x2 --size 128B --window 2MiB
    """
    try:
        whole = cases_of(test, count, given)
        if cdf_file is not None and not test.startswith("lat"):
            raise ValueError("--cdf: a bandwidth has no distribution; -o writes its rows")
        picture = picture_of(test, whole, target, plot, plot_kind)
        if output is not None and whole.cases[0].at_once:
            raise ValueError("-o: the published data sets have no column for --at-once; use --json")
        reference = None if against is None else reference_of(against, whole, picture)
    except ExperimentError:
        raise
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    check_outputs(
        {"--json": json_file, "--csv": output, "--cdf": cdf_file, "--plot": plot},
        to_stdout={"--json", "--csv", "--cdf"},
        inputs={"--against": against},
    )
    with Bar(quiet=quiet) as bar:
        try:
            results = run(
                whole.cases,
                target,
                host=host,
                device=device,
                link=link,
                iommu=iommu,
                threads=threads,
                progress=lambda done, total: bar.show(done / total, f"{int(done)} of {total} cases"),
            )
        except ExperimentError:
            raise
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    where = f"on {results.machine}" if results.machine else place(target, host, device, link, iommu)
    write(results, json_file, output, cdf_file)
    if picture is not None and results:
        plots.draw(picture, results, whole, table.heading(whole, where), reference)
    if not quiet and "-" not in (json_file, output, cdf_file):
        table.show(results, whole, where, reference, sys.stdout)
    if results.interrupted:
        click.echo(
            f"interrupted: {len(results)} of {len(whole.cases)} cases were measured, the last one only partly", err=True
        )
        return INTERRUPTED
    return 0


def picture_of(test: str, whole: Sweep, target: str, plot: str | None, kind: str | None) -> plots.Picture | None:
    """The plot that is wanted. Raises ValueError."""
    latency = test.startswith("lat")
    if kind in plots.DISTRIBUTIONS and not latency:
        raise ValueError(f"--plot-kind {kind}: a bandwidth has no distribution; draw a curve or a series")
    if plot is None:
        if kind is not None:
            raise ValueError(f"--plot-kind {kind} needs a file: name one with --plot")
        return None
    check_ending("--plot", plot)
    kind = kind or plots.usual(whole, latency)
    if target == "model" and kind == "series":
        raise ValueError("--plot: closed forms have no time, so there is no series to draw; sweep a size for a curve")
    return plots.Picture(plot, kind)


def reference_of(path: str, whole: Sweep, picture: plots.Picture | None) -> against_file.Reference:
    """The file that is compared with the results, if it has a row about them. Raises ExperimentError, OSError."""
    reference = against_file.read(path)
    if picture is not None and picture.kind == "cdf":
        reference.cdfs(whole)
    elif picture is not None and picture.kind == "curve":
        reference.curves(whole)
    elif not any(reference.value(case) is not None for case in whole.cases):
        raise reference.nothing(whole.cases[0], except_for=None)
    return reference


def cases_of(test: str, count: int | str | None, given: dict[str, Any]) -> Sweep:
    """The cases that the options make. Raises ValueError."""
    interface = given["interface"]
    fixed = {
        "test": test,
        "interface": "command" if interface == "cmd" else interface,
        "count": COUNTS[test.split("_")[0]] if count == "paper" else count,
        "seed": given["seed"],
    }
    return sweep(
        fixed,
        node=given["node"], cache=given["cache"], pattern=given["pattern"], window=given["window"],
        size=given["size"], host_offset=given["offset"], device_offset=given["device_offset"],
        at_once=given["at_once"],
    )  # fmt: skip


def place(target: str, host: str, device: str | None, link: str, iommu: str | None) -> str:
    """The place of the measurement, in words."""
    more = "" if iommu is None else f", IOMMU {iommu}"
    if target not in TARGETS:
        return f"on the device {target}: host {host}{more}, {link}"
    return f"on the {target}: host {host}{more}, {link}, device {device or DEVICE}"


def write(results: Results, json_file: str | None, output: str | None, cdf_file: str | None) -> None:
    """Writes the files that were asked for."""
    if json_file is not None:
        write_text(json_file, json.dumps([as_json(result) for result in results], indent=1) + "\n")
    if output is not None and results:
        lines = [results[0].columns, *(result.csv for result in results)]
        write_text(output, "".join(line + "\r\n" for line in lines))
    if cdf_file is not None and results:
        lines = [results[0].cdf_columns, *(line for result in results for line in result.cdf_csv)]
        write_text(cdf_file, "".join(line + "\r\n" for line in lines))


def as_json(result: Result) -> dict[str, Any]:
    """A result for `--json`: without the rows of the other files."""
    return {name: value for name, value in asdict(result).items() if not name.endswith("csv")}
