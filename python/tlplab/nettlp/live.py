"""`tlplab adapter EXPERIMENT.toml --serve DEVICE=IP`: a simulated machine in wall time, whose devices are elsewhere."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any, cast

import click

from tlplab import _core, outline, summary
from tlplab import quantities as q
from tlplab.errors import INTERRUPTED, RunError
from tlplab.nettlp.end import address_of
from tlplab.outputs import write_text
from tlplab.result import Document

# How often Ctrl-C is looked for.
SLICE_SECONDS = 0.1
# Datagrams that …, and nobody has seen.
DROPPED = "were dropped by the kernel, because the sockets were full"
# From this lag on, in nanoseconds, the machine is not in real time.
WORTH_TELLING = 1e6
# Of a machine that is only memory.
MEMORY_ONLY = {
    "peers": "--peer",
    "images": "--load-memory",
    "memory": "--memory",
    "latency": "--latency",
    "window": "--window",
    "mps": "--mps",
    "mrrs": "--mrrs",
    "p2p": "--p2p",
    "msix_table": "--msix-table",
    "rate": "--rate",
}


@dataclass(frozen=True)
class Served:
    """A device that is elsewhere, and its address."""

    device: str
    address: str


def served_of(context: click.Context, parameter: click.Parameter, given: Sequence[str]) -> list[Served]:
    """`nic=127.0.0.1`."""
    found: list[Served] = []
    for text in given:
        device, separator, address = text.partition("=")
        if not separator or not device:
            raise click.BadParameter(f"{text!r} is not DEVICE=IP, such as nic=127.0.0.1", param=parameter)
        if any(device == one.device for one in found):
            raise click.BadParameter(f"{device} is given twice", param=parameter)
        found.append(Served(device, str(address_of(context, parameter, address))))
    return found


def taps_of(_context: click.Context, parameter: click.Parameter, given: Sequence[str]) -> list[tuple[str, str]]:
    """`nic=tap0`."""
    found = []
    for text in given:
        device, _, interface = text.partition("=")
        if not device or not interface:
            raise click.BadParameter(f"{text!r} is not DEVICE=IF, such as nic=tap0", param=parameter)
        found.append((device, interface))
    return found


def check_options(experiment: str | None, served: Sequence[Served], taps: Sequence[tuple[str, str]]) -> None:
    """Check that an experiment and devices go together: both, or neither. Raises `click.UsageError`."""
    if experiment is None:
        if taps:
            raise click.UsageError(
                "--tap is for the driver of a device in an experiment: also name the experiment's file"
            )
        if served:
            raise click.UsageError("--serve is for a device of an experiment: also name the experiment's file")
        return
    if not served:
        raise click.UsageError(f"no device of {experiment} is served: name one with --serve DEVICE=IP")
    context = click.get_current_context()
    for key, option in MEMORY_ONLY.items():
        if context.get_parameter_source(key) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option} is for an adapter without an experiment; {experiment} defines the host")


def serve_experiment(
    experiment: str, overrides: Sequence[str], served: Sequence[Served], taps: Sequence[tuple[str, str]], local: str, *,
    seconds: float | None, pcap: str | None, json_file: str | None, quiet: bool, options: dict[str, Any],
) -> int:  # fmt: skip
    """Runs the experiment until it has ended, or for so many seconds, or until Ctrl-C; the exit status."""
    models = {
        one["name"]: one["model"] for one in outline.read(experiment, overrides=overrides)["components"] if one["model"]
    }
    names = list(models)
    for one in served:
        if one.device not in names:
            raise click.UsageError(f"{experiment} has no device {one.device!r}; its devices: {', '.join(names)}")
    for device, _ in taps:
        if models.get(device) != "simple-nic":
            nics = [name for name in names if models[name] == "simple-nic"]
            raise click.UsageError(
                f"--tap {device}: {experiment} has no such simple-nic; its simple-nics: {', '.join(nics) or 'none'}"
            )
    try:
        service = _core.LiveService(
            experiment, [(one.device, int(IPv4Address(one.address))) for one in served], int(IPv4Address(local)),
            taps=list(taps), overrides=list(overrides), transport=options["transport"], interface=options["interface"],
            spin=options["spin"], pcap=pcap,
        )  # fmt: skip
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    interrupted, ended = False, None
    try:
        ended = watch(service, seconds, quiet=quiet)
    except KeyboardInterrupt:
        interrupted = True
    absent = service.absent()
    text = service.finish(None if ended else "interrupted" if interrupted else "time-limit")
    report = json.loads(service.report())
    lost = service.lost_frames()
    report["taps"] = [{"device": device, "interface": tap, "lost_frames": frames} for device, tap, frames in lost]
    text = json.dumps({**json.loads(text), "adapter": report}) + "\n"
    if json_file is not None:
        write_text(json_file, text)
    if not quiet:
        out = sys.stderr if json_file == "-" else sys.stdout
        summary.show(cast(Document, json.loads(text)), out)
        show_lag(service.lag())
        if report["kernel_drops"]:
            click.echo(f"{report['kernel_drops']} datagrams {DROPPED}", err=True)
        for device, tap, frames in lost:
            if frames:
                click.echo(
                    f"{frames} frames between {device} and {tap} were lost: {tap} is down, or the queue is full",
                    err=True,
                )
    if interrupted:
        return INTERRUPTED
    if absent:
        raise RunError(
            f"{', '.join(absent)} did not connect, so the simulation never started; start it with tlplab device"
        )
    return 0


def watch(service: _core.LiveService, seconds: float | None, *, quiet: bool) -> str | None:
    """Serves; the reason for its end, if it has ended on its own."""
    waiting: list[str] = []
    begun = time.monotonic()
    while True:
        if not quiet and (absent := service.absent()) != waiting:
            waiting = absent
            said = f"waiting for {', '.join(absent)}" if absent else "every device is connected; simulated time starts"
            click.echo(said, err=True)
        left = SLICE_SECONDS if seconds is None else begun + seconds - time.monotonic()
        if left <= 0:
            return None
        if (ended := service.serve(min(left, SLICE_SECONDS))) is not None:
            return ended


def show_lag(lag: tuple[float, float, int]) -> None:
    """Reports the lag of a simulated machine behind the wall clock, by its `lag`."""
    _, most, times = lag
    if most > WORTH_TELLING:
        click.echo(
            f"simulated time was up to {q.time(most)} behind the wall clock, {times} times by more than 1 ms: the simulated machine is "
            "too large for this computer to simulate in real time",
            err=True,
        )
