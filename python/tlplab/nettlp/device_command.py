"""`tlplab device`: devices served over NetTLP."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tlplab import _core
from tlplab import quantities as q
from tlplab.errors import INTERRUPTED
from tlplab.loader import LoadError, load_device, parameter, told
from tlplab.nettlp.end import (
    ACKNOWLEDGE,
    ADDRESSES,
    NETWORK,
    PATIENCE,
    REQUESTER,
    SECONDS,
    TAGS,
    Decorator,
    End,
    Quantity,
    address_of,
    check_interface,
    check_remote,
    mps_option,
    mrrs_option,
    number_of,
    size_of,
    with_options,
)
from tlplab.nettlp.serve import Builtin, Server, Site, watch
from tlplab.outputs import check_outputs, write_text
from tlplab.progress import Line
from tlplab.vfio import options_of_qemu

LANES = min(16, len(os.sched_getaffinity(0)))
SMALLEST, LARGEST = 4096, 1 << 40
# What a frame of the published application's memory can have.
FRAME_BYTES = (60, 2048)
# The driver gives buffers of 2 KiB, for a frame with its header, a VLAN tag and what it holds.
LARGEST_MTU = 2030
# What is shown while a device is served.
LIVE = ("host_reads", "host_writes", "completions", "interrupts")
LIVE_ON_SOCKET = ("clients", "bytes_read", "bytes_written", "interrupts")
Options = dict[str, Any]


class Devices(click.Group):
    """The built-in devices, and those of a Python file or a library."""

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """A device by its name, by `FILE.py:CLASS`, or by `lib:FILE.so`."""
        known = super().get_command(ctx, name)
        if known is not None or ":" not in name:
            return known
        return library_command(name) if name.startswith("lib:") else python_command(name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Lists the devices, if there is no such device."""
        if self.get_command(ctx, args[0]) is None:
            names = ", ".join(self.list_commands(ctx))
            raise click.UsageError(
                f"there is no device {args[0]!r}; the devices are {names}, FILE.py:CLASS and lib:FILE.so", ctx
            )
        return super().resolve_command(ctx, args)


@click.group(
    "device",
    short_help="Serve a device in software behind a NetTLP adapter.",
    cls=Devices,
    subcommand_metavar="NAME|FILE.py:CLASS|lib:FILE.so [OPTIONS]",
)
def device_group() -> None:
    """Serve a device in software behind a NetTLP adapter, or in a virtual machine, until Ctrl-C.

    If the function at the adapter has the device's vendor and device IDs, each BAR is at the address in its configuration
    space. Otherwise the function is the adapter's card, and the device's BARs are in its window (BAR 4), one after another.

    \b
    Examples:
      tlplab device psmem
      tlplab device nic --tap tap0
      tlplab device examples/python/copier.py:Copier -l 127.0.0.1 -r 127.0.0.2
      tlplab device examples/python/copier.py:Copier --vfio-user copier.sock
    """


# When it ends, and what is told of it.
END = [
    click.option("--seconds", metavar="N", type=SECONDS, help="End after N seconds instead of at Ctrl-C."),
    click.option("--json", "json_file", metavar="FILE|-", help="Write the counters as JSON at the end."),
    click.option("-S", "--quiet", is_flag=True, help="Print nothing."),
]


def with_end(command: Any) -> Any:
    """Adds `END`."""
    return with_options(command, END)


def site_options(*, issues: bool) -> Decorator:
    """The options for the place of a device; `issues` states that it issues requests."""
    options = [
        *ADDRESSES,
        click.option("-R", "--host", metavar="IP", callback=address_of, help="Address that answers requests for BAR 4, ID and interrupts; that of the adapter by default."),
        click.option("-a", "--bar4", "window", metavar="ADDRESS", callback=number_of, help="Start of the window; read from the adapter by default."),
        REQUESTER,
        mps_option("--mps"),
        *NETWORK,
        ACKNOWLEDGE,
        *END,
    ]  # fmt: skip
    if issues:
        options += [mrrs_option("--mrrs", "-m"), *PATIENCE]

    return lambda command: with_options(command, options)


@device_group.command("psmem", short_help="Pseudo memory, like the published program.")
@site_options(issues=False)
@click.option(
    "--size",
    metavar="SIZE",
    default="256MiB",
    show_default=True,
    callback=size_of,
    help="Size of the memory, a power of two from 4KiB.",
)
@click.option(
    "-m",
    "--delay",
    metavar="US",
    type=Quantity("microseconds", 1e6),
    default=0.0,
    help="Microseconds from a read to its completion.",
)
@click.option(
    "-n",
    "--frames",
    metavar="N",
    type=click.IntRange(1),
    help="Fill the memory with N UDP datagrams in Ethernet frames, one every 2 KiB.",
)
@click.option(
    "-s",
    "--frame-size",
    metavar="SIZE",
    default="1500B",
    show_default=True,
    callback=size_of,
    help="Bytes of a frame, 60B to 2KiB.",
)
@click.option(
    "--lanes",
    metavar="N",
    type=click.IntRange(1, 16),
    default=LANES,
    show_default="one per processor",
    help="Threads that complete reads.",
)
@click.option("-H", "hexdump", is_flag=True, hidden=True, help="Without effect; the published application has it.")
def psmem_command(
    *, size: int, delay: float, frames: int | None, frame_size: int, lanes: int, hexdump: bool, **given: Any
) -> int:  # fmt: skip
    """Pseudo memory behind the adapter's window, like the published psmem.

    \b
    Examples:
      tlplab device psmem
      tlplab device psmem -m 20 --lanes 1
      tlplab device psmem -a 0xa0000000 -b 1b:00.0 -n 1000 -s 98B
    """
    del hexdump
    low, high = FRAME_BYTES
    if not low <= frame_size <= high:
        raise click.BadParameter("a frame has 60B to 2KiB", param_hint="--frame-size")
    if frames is not None and frames * high > memory_size(size):
        raise click.BadParameter(f"no more than {size // high} frames fit", param_hint="--frames")
    filled = None if frames is None else (frames, frame_size)
    device = Builtin("psmem", lanes=lanes, bytes=memory_size(size), delay_ns=round(delay * 1e3), frames=filled)
    return serve_builtin(device, given)


@device_group.command("nic")
@site_options(issues=True)
@click.option("--tap", metavar="IF", help="TAP interface that is the NIC's port; a loop-back plug by default.")
@click.option(
    "--mtu",
    metavar="N",
    type=click.IntRange(68, LARGEST_MTU),
    default=1500,
    show_default=True,
    help="Maximum bytes of a packet; a buffer of the driver has 2 KiB.",
)
def nic_command(*, tap: str | None, mtu: int, **given: Any) -> int:
    """The simple NIC of the NetTLP paper, with rings. It needs its driver on the adapter's host.

    \b
    Examples:
      tlplab device nic
      tlplab device nic --tap tap0
    """
    return serve_builtin(Builtin("nic", tap=tap, mtu=mtu), given)


@device_group.command("memory")
@site_options(issues=False)
@click.option(
    "--size",
    metavar="SIZE",
    default="1MiB",
    show_default=True,
    callback=size_of,
    help="Size of the memory, a power of two from 4KiB.",
)
def memory_command(*, size: int, **given: Any) -> int:
    """The model memory: a BAR of memory, as in an experiment.

    \b
    Example:
      tlplab device memory --size 64KiB
    """
    return serve_builtin(Builtin("memory", bytes=memory_size(size)), given)


def model_command(name: str, summary: str, rest: str) -> None:
    """A command for a model that has nothing to be chosen."""

    text = f"The model {name}: {summary}{rest}.\n\n\b\nExample:\n  tlplab device {name}"

    @device_group.command(name, help=text, short_help=f"The model {name}: {summary}.")
    @site_options(issues=True)
    def serve_it(**given: Any) -> int:
        return serve_builtin(Builtin(name), given)


model_command("copier", "copies memory of the host", ", commanded by its driver")
model_command("ring", "processes a ring of descriptors", " in the host's memory")
model_command("storage", "a block device with commands", " in the host's memory")


VFIO_USER = click.option(
    "--vfio-user",
    "socket",
    metavar="PATH",
    help="Serve the device on a Unix socket to a virtual machine of QEMU (10.1 or later) instead of behind an adapter.",
)
# What may be said of a device on a socket.
SAYS_OF_SOCKET = {"socket", "size", "parameters", "seconds", "json_file", "quiet"}


@device_group.command("nvme", short_help="An NVMe drive in a virtual machine.")
@click.option(
    "--size", metavar="SIZE", default="64MiB", show_default=True, callback=size_of, help="Size of its namespace."
)
@click.option(
    "--vfio-user",
    "socket",
    metavar="PATH",
    required=True,
    help="The Unix socket, for a virtual machine of QEMU (10.1 or later).",
)
@with_end
def nvme_command(*, size: int, socket: str, **given: Any) -> int:
    """An NVMe drive in a virtual machine, for ordinary drivers; its data are in memory and lost at the end.

    \b
    Example:
      tlplab device nvme --vfio-user drive.sock --size 1GiB
    """
    try:
        return serve_on_socket("nvme", socket, lambda: _core.VfioServer.nvme(socket, size), given)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--size") from error


def python_command(name: str) -> click.Command:
    """Serves the device `FILE.py:CLASS`."""

    @click.command(name, help=f"The device {name}: a class as `tl.simulate` and `tlplab run` take it.")
    @site_options(issues=True)
    @click.option(
        "--set",
        "parameters",
        metavar="KEY=VALUE",
        multiple=True,
        help="A keyword argument of the class; VALUE is JSON or a string.",
    )
    @VFIO_USER
    def command(*, parameters: tuple[str, ...], socket: str | None, **given: Any) -> int:
        path, _, wanted = name.rpartition(":")
        try:
            party = load_device(path, wanted, json.dumps(parameters_of(parameters)))
        except LoadError as error:
            raise click.UsageError(f"{path}: {error}") from error
        if socket is not None:
            return serve_on_socket(wanted, socket, lambda: _core.VfioServer.python(socket, party), given)
        return serve_behind_adapter(wanted, lambda site: _core.Server.python(site, party), given)

    return command


def library_command(name: str) -> click.Command:
    """Serves the device `lib:FILE.so`."""

    @click.command(name, help=f"The device {name}: a library as `model` in an experiment takes it.")
    @site_options(issues=True)
    @click.option(
        "--set", "parameters", metavar="KEY=VALUE", multiple=True, help="A parameter, as a further key of the device."
    )
    @VFIO_USER
    def command(*, parameters: tuple[str, ...], socket: str | None, **given: Any) -> int:
        pairs = {key: told(value) for key, value in parameters_of(parameters).items()}
        path = name.removeprefix("lib:")
        try:
            if socket is not None:
                start = partial(_core.VfioServer.library, socket, path, pairs)
                return serve_on_socket(Path(path).stem, socket, start, given)
            return serve_behind_adapter(Path(path).stem, lambda site: _core.Server.library(site, path, pairs), given)
        except ValueError as error:
            raise click.UsageError(str(error)) from error

    return command


def parameters_of(texts: Sequence[str]) -> dict[str, Any]:
    """The values of `--set`. Raises `click.BadParameter`."""
    try:
        return dict(map(parameter, texts))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--set") from None


def memory_size(size: int) -> int:
    """Bytes of a memory."""
    if size & (size - 1) or not SMALLEST <= size <= LARGEST:
        raise click.BadParameter("the size must be a power of two from 4KiB to 1TiB", param_hint="--size")
    return size


def serve_builtin(device: Builtin, given: Options) -> int:
    """Serves a built-in device where the options say."""
    return serve_behind_adapter(device.name, lambda site: _core.Server.builtin(site, device), given)


def serve_behind_adapter(name: str, start: Callable[[Site], _core.Server], given: Options) -> int:
    """Serves the device of `start` at the place in the options."""
    return serve_server(name, lambda: start(site_of(given)), introduce, Live(LIVE, "datagrams_in"), given)


def serve_on_socket(name: str, path: str, start: Callable[[], _core.VfioServer], given: Options) -> int:
    """Serves the device of `start` on a Unix socket."""
    context = click.get_current_context()
    said = [key for key in context.params if context.get_parameter_source(key) is ParameterSource.COMMANDLINE]
    for option in context.command.params:
        if option.name in said and option.name not in SAYS_OF_SOCKET:
            raise click.UsageError(f"{option.opts[-1]} is for a device behind an adapter, not for --vfio-user")

    def introduce_socket(name: str, server: _core.VfioServer) -> None:
        del server
        click.echo(f"{name} at {path}; Ctrl-C ends it. For QEMU:")
        click.echo(f"  {shlex.join(options_of_qemu(path, 'BUS'))}")
        click.echo("with BUS a root port, and shared memory: -object memory-backend-memfd,share=on,…")
        sys.stdout.flush()

    return serve_server(name, start, introduce_socket, Live(LIVE_ON_SOCKET, None), given)


def serve_server(
    name: str, start: Callable[[], Server], say_where: Callable[[str, Server], None], live: Live, given: Options
) -> int:  # fmt: skip
    """Serves the device of `start`; prints its place, the traffic, and at the end the totals."""
    json_file, quiet, seconds = given.pop("json_file"), given.pop("quiet"), given.pop("seconds")
    check_outputs({"--json": json_file}, to_stdout={"--json"}, inputs={})
    server = start()
    say = not quiet and json_file != "-"
    live.begin(quiet=not say)
    status = 0
    try:
        if say:
            say_where(name, server)
        counters = watch(server, seconds=seconds, tick=live)
    except KeyboardInterrupt:
        status, counters = INTERRUPTED, dict(server.counters())
    finally:
        live.line.clear()
    if json_file is not None:
        write_text(json_file, json.dumps({"device": name, "counters": counters}) + "\n")
    if say:
        click.echo(
            "".join(f"{counter.replace('_', ' '):<24} {n:>12}\n" for counter, n in counters.items() if n), nl=False
        )
    return status


def site_of(given: Options) -> Site:
    """The place that the options of `site_options` describe."""
    local, adapter, host = given["local"], given["adapter"], given["host"]
    check_remote(local, adapter, host or adapter, allowed=given["allow_remote"])
    check_interface(given["interface"], given["transport"])
    end = End(
        local=local, adapter=adapter, requester=given["requester"], transport=given["transport"],
        interface=given["interface"], first_tag=0, last_tag=TAGS - 1, mps=given["mps"], mrrs=given.get("mrrs", 512),
        timeout_ns=round(given.get("timeout", 50.0) * 1e6), retries=given.get("retry", 0), spin=given["spin"],
        ecrc=given.get("ecrc", False), acknowledge=given.get("acknowledge", False),
    )  # fmt: skip
    return Site(end, host, given["window"])


def introduce(name: str, server: _core.Server) -> None:
    """Prints the place of the device."""
    bdf = server.id
    click.echo(f"{name} at {bdf >> 8:02x}:{bdf >> 3 & 31:02x}.{bdf & 7}; Ctrl-C ends it")
    for bar, base, size in server.bars:
        click.echo(f"  BAR {bar} at {base:#x}, {q.size(size)}")
    sys.stdout.flush()


class Live:
    """A line on the terminal with the amount of traffic."""

    def __init__(self, names: Sequence[str], rated: str | None) -> None:
        """Shows these counters, and the rate of one."""
        self.names = names
        self.rated = rated
        self.line = Line(quiet=True)
        self.before = (time.monotonic(), 0)

    def begin(self, *, quiet: bool) -> None:
        """From now on it is shown, if it is to be."""
        self.line = Line(quiet=quiet)

    def __call__(self, server: _core.Server | _core.VfioServer) -> None:
        """Shows how much has passed by now."""
        if not self.line.shown:
            return
        counters = dict(server.counters())
        parts = [f"{counters[name]} {name.replace('_', ' ')}" for name in self.names]
        if self.rated is not None:
            now, count = time.monotonic(), counters[self.rated]
            then, before = self.before
            rate = q.significant((count - before) / max(now - then, 1e-9), 3)
            self.before = (now, count)
            parts.insert(0, f"{rate} datagrams/s")
        self.line.show(", ".join(parts))
