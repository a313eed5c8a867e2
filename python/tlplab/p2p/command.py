"""`tlplab p2p`: the matrices of traffic between devices, on the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import click

from tlplab import _core, outline
from tlplab.errors import ExperimentError
from tlplab.options import SEEDS, experiment_argument
from tlplab.outputs import check_outputs, write_text
from tlplab.p2p import picture, tables
from tlplab.p2p.flows import OPS, Device, Flow, Op
from tlplab.p2p.measure import QUICK, Settings, check_loads
from tlplab.p2p.survey import PARTS, devices_of, named, plan, survey
from tlplab.plotting import check_ending

MOST_OUTSTANDING = 65536


@click.command("p2p", short_help="Measure transfers between the devices of an experiment.")
@experiment_argument
@click.option(
    "--set", "overrides", metavar="KEY=VALUE", multiple=True,
    help="Override one key, as in --set defaults.link.mps=256B. May be given again.",
)  # fmt: skip
@click.option("--devices", metavar="A,B,…", help='Only these, in this order (default: all with model = "dma").')
@click.option(
    "--flow", "flow_texts", metavar="FROM:TO[:read]", multiple=True,
    help="Only this flow, alone and together with the other flows given: writes by FROM, or reads by TO. May be given again.",
)  # fmt: skip
@click.option("--only", metavar="PARTS", help=f"Only these parts of {','.join(PARTS)}.")
@click.option("--size", default="4KiB", show_default=True, metavar="SIZE", help="Bytes of a transaction.")
@click.option(
    "--outstanding", type=click.IntRange(1, MOST_OUTSTANDING), default=64, show_default=True, metavar="N",
    help="Transactions of a flow under way.",
)  # fmt: skip
@click.option("--quick", is_flag=True, help="Measure for a third of the time, even if rates are not steady yet.")
@click.option("--seed", type=SEEDS, metavar="N", help="Seed of the random streams.")
@click.option(
    "--threads", type=click.IntRange(1, 256), metavar="N",
    help="At most N runs at once (default: one per processor).",
)  # fmt: skip
@click.option("--json", "json_file", metavar="FILE|-", help="Write matrices, pairs and flows as JSON; - is the standard output.")  # fmt: skip
@click.option("--plot", metavar="FILE.png", help="Draw the matrices as heat maps, the flows as bars.")
@click.option("-o", "output", metavar="FILE", help="Write the tables to FILE instead of the terminal.")
@click.option("--quiet", is_flag=True, help="No tables, no progress bar.")
def p2p_command(
    experiment: str, overrides: Sequence[str], devices: str | None, flow_texts: Sequence[str], only: str | None,
    size: str, outstanding: int, quick: bool, seed: int | None, threads: int | None, json_file: str | None,
    plot: str | None, output: str | None, quiet: bool,
) -> None:  # fmt: skip
    """Measure peer-to-peer transfers between the devices of an experiment.

    Measures each pair alone: writes (the source pushes), reads (the target pulls), both ways at once, and the latency of
    a small read; then all devices at once, in rings and all to all; then from one switch to others. Each figure is a run
    of the experiment with these flows in place of its loads, in the steady state. Rates are payload in 10^9 bytes per second.

    \b
    Examples:
      tlplab p2p experiments/p2p/flat.toml
      tlplab p2p experiments/p2p/flat.toml --only ring,all --plot out/ring.png
      tlplab p2p experiments/p2p/flat.toml --devices gpu0,gpu1,gpu4 --json out/p2p.json
      tlplab p2p experiments/p2p/flat.toml --flow gpu0:gpu4 --flow gpu1:gpu5
    """
    check_outputs(
        {"--json": json_file, "--plot": plot, "-o": output}, to_stdout={"--json", "-o"}, inputs={"the experiment": experiment}
    )  # fmt: skip
    if plot is not None:
        check_ending("--plot", plot)
    settings = replace(QUICK if quick else Settings(), size=bytes_of(size), outstanding=outstanding, seed=seed)
    read = outline.read(experiment, overrides=overrides, loads_follow=True)
    flows = [flow_of(text) for text in flow_texts]
    if flows:
        if only is not None or devices is not None:
            raise click.UsageError("--flow cannot be combined with --only and --devices; leave these out")
        taking = devices_of(read, experiment, list(dict.fromkeys(name for f in flows for name in (f.source, f.target))))
        listed = named(flows)
    else:
        wanted = None if devices is None else [name.strip() for name in devices.split(",")]
        taking = devices_of(read, experiment, wanted)
        listed = plan(taking, parts_of(only))
    if not listed:
        raise click.UsageError(nothing_of(only, taking))
    try:
        check_loads(experiment, overrides, settings, listed[0])
    except ExperimentError as error:
        raise click.UsageError(f"--size {size}: {error.message}") from None
    found = survey(experiment, overrides, settings, read["title"], taking, listed, quiet=quiet, at_once=threads)
    if json_file is not None:
        write_text(json_file, json.dumps(found.as_json(), indent=1, ensure_ascii=False) + "\n")
    if plot is not None:
        picture.draw(plot, found)
    if output is not None:
        write_text(output, tables.as_text(found))
    elif not quiet and json_file != "-":
        tables.show(found, sys.stdout)


def bytes_of(text: str) -> int:
    """The size of a transaction."""
    try:
        size = _core.size(text)
    except ValueError as error:
        raise click.UsageError(f"--size: {error}") from None
    if size == 0:
        raise click.UsageError("--size: give at least one byte")
    return size


def parts_of(only: str | None) -> list[str]:
    """The parts that are asked for."""
    wanted = list(PARTS) if only is None else [part.strip() for part in only.split(",")]
    for part in wanted:
        if part not in PARTS:
            raise click.UsageError(f"--only: there is no part {part!r}; the parts are {', '.join(PARTS)}")
    return wanted


def nothing_of(only: str | None, devices: Sequence[Device]) -> str:
    """The reason why there is nothing to measure."""
    return f"--only {only}: no measurement is left for {len(devices)} devices under {devices[0].under}; a fan needs two switches"


def flow_of(text: str) -> Flow:
    """`gpu0:gpu4`, `gpu0:gpu4:read`."""
    source, _, rest = text.partition(":")
    target, _, op = rest.partition(":")
    if not source or not target or (op or "write") not in OPS:
        raise click.UsageError(f"--flow {text}: write FROM:TO, or FROM:TO:read for reads by TO, as in gpu0:gpu4")
    if source == target:
        raise click.UsageError(f"--flow {text}: a flow goes from one device to another")
    return Flow(source, target, cast(Op, op or "write"))
