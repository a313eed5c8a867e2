"""`tlplab measure`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import click

from tlplab import _core, outline
from tlplab.bench.differential import table
from tlplab.bench.differential.document import Document, member
from tlplab.errors import INTERRUPTED
from tlplab.options import SEEDS
from tlplab.outputs import check_outputs, write_text
from tlplab.plotting import check_ending
from tlplab.progress import Bar

SAMPLES = 1_000_000
SECONDS = 20.0
SIMULATED_SAMPLES = 1_000
SYSFS = "/sys"


@dataclass(frozen=True)
class Request:
    """The reads of this machine that are requested, as `tlplab._core` takes them."""

    sysfs: str
    own: bool
    devices: list[str]
    registers: list[str]
    core: int | None
    samples: int
    seconds: float


@click.command("measure")
@click.option(
    "-d",
    "--device",
    "devices",
    metavar="BDF",
    multiple=True,
    help="Read this function and every bridge above it, as in 02:00.0. May be given again.  [default: all functions]",
)
@click.option(
    "--register",
    "registers",
    metavar="BDF:BAR+OFFSET",
    multiple=True,
    help="Also read this mapped register, as in 02:00.0:0+0x8. Needs root and --reads-are-safe. May be given again.",
)
@click.option(
    "--reads-are-safe",
    is_flag=True,
    help="Confirms that, by the device's manual, reading these registers has no side effects such as clearing a status or popping a queue.",
)
@click.option(
    "--samples",
    type=click.IntRange(1, 10**9),
    metavar="N",
    help=f"Reads of each target.  [default: {SAMPLES}; {SIMULATED_SAMPLES} with --on]",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.01, max=86_400),
    metavar="S",
    default=SECONDS,
    show_default=True,
    help="Stop after this time in total.",
)
@click.option(
    "--core", type=click.IntRange(min=0), metavar="N", help="Measure on this core.  [default: the current one]"
)
@click.option("--on", "experiment", metavar="EXPERIMENT.toml", help="Measure a simulated topology, not this machine.")
@click.option(
    "--compare",
    metavar="MACHINE.toml",
    help="Compare with the simulated topology, idle, that `tlplab scan -o` wrote.",
)
@click.option(
    "--idle", is_flag=True, help="With --on, leave out the experiment's loads, which are cross traffic otherwise."
)
@click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Override one key of the experiment.")
@click.option("--seed", type=SEEDS, metavar="N", help="Seed of the simulated reads.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the measurements; - is the standard output.")
@click.option("--plot", metavar="FILE", help="Draw the distributions and the links (.png, .svg, .pdf).")
@click.option("--quiet", is_flag=True, help="No table, no progress bar.")
@click.option("--sysfs", metavar="DIR", default=SYSFS, hidden=True)
def measure_command(
    devices: Sequence[str],
    registers: Sequence[str],
    reads_are_safe: bool,
    samples: int | None,
    seconds: float,
    core: int | None,
    experiment: str | None,
    compare: str | None,
    idle: bool,
    overrides: Sequence[str],
    seed: int | None,
    json_file: str | None,
    plot: str | None,
    quiet: bool,
    sysfs: str,
) -> int:
    """Measure the latency of each link by the differential method.

    Reads one doubleword of a bridge and one of each function below it, many times, one read at a time. The shortest read of the
    function minus the shortest read of the bridge is the latency of the link between them. Nothing is written. Configuration reads
    need no privilege and no kernel module. In a virtual machine the hypervisor answers these reads, so no link latency is reported.

    \b
    Examples:
      tlplab measure
      tlplab measure --device 02:00.0 --plot out/link.png
      tlplab measure --register 02:00.0:0+0x8 --reads-are-safe --json out/link.json
      tlplab measure --compare machine.toml --plot out/both.png
      tlplab measure --on experiments/quickstart.toml
    """
    if experiment is not None and (devices or registers or core is not None or compare is not None):
        raise click.UsageError(
            "--device, --register, --core and --compare are for this machine, --on is for a simulated topology; give one or the other"
        )
    if experiment is None and idle:
        raise click.UsageError("--idle needs an experiment: name one with --on")
    if experiment is None and compare is None and (overrides or seed is not None):
        raise click.UsageError("--set and --seed need an experiment: name one with --on or --compare")
    if registers and not reads_are_safe:
        raise click.UsageError(
            "reading a register can change the device (clear a status, pop a queue, start an operation); give --reads-are-safe "
            "if its manual allows reads of these registers"
        )
    named = {"--on": experiment, "--compare": compare}
    check_outputs({"--json": json_file, "--plot": plot}, to_stdout={"--json"}, inputs=named)
    if plot is not None:
        check_ending("--plot", plot)
    simulated = None
    if experiment is not None:
        document = simulate(experiment, overrides, samples, seed, idle=idle, quiet=quiet)
    else:
        if compare is not None:  # before the long part, so that a mistake in the file is found at once
            simulated = simulate(compare, overrides, None, seed, idle=True, quiet=quiet)
        request = Request(
            sysfs=sysfs,
            own=sysfs == SYSFS,
            devices=list(devices),
            registers=list(registers),
            core=core,
            samples=samples or SAMPLES,
            seconds=seconds,
        )
        document = read(request, quiet=quiet)
    if json_file is not None:
        whole = document if simulated is None else {**document, "simulated": simulated}
        write_text(json_file, json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
    if plot is not None:
        from tlplab.bench.differential.plot import draw

        draw(plot, document, simulated)
    if not quiet and json_file != "-":
        table.show(document, simulated, sys.stdout)
    return INTERRUPTED if member(document, "interrupted") else 0


def read(request: Request, *, quiet: bool) -> Document:
    """Measures this machine; until Ctrl-C, if that comes first."""
    with Bar(quiet=quiet) as bar:
        try:
            text = _core.probe(request, lambda part: bar.show(part, "reading"))
        except ValueError as error:
            raise click.UsageError(str(error)) from error
    return cast(Document, json.loads(text))


def simulate(
    experiment: str, overrides: Sequence[str], samples: int | None, seed: int | None, *, idle: bool, quiet: bool
) -> Document:
    """Measures a simulated topology by the same method."""
    with Bar(quiet=quiet) as bar:
        text = _core.measure_on(
            experiment,
            list(overrides),
            samples or SIMULATED_SAMPLES,
            seed,
            lambda part: bar.show(part, "simulating"),
            idle=idle,
        )
    document = cast(Document, json.loads(text))
    if not idle and outline.read(experiment, overrides=overrides)["loads"]:
        cast(dict[str, Any], document)["notes"] = [
            "The experiment's loads ran during the measurement, and waits behind them are part of a link's latency (--idle leaves them out)"
        ]
    return document
