"""`tlplab adapter`: the NetTLP adapter in software."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any, TypedDict

import click
from rich.console import Console

from tlplab import _core
from tlplab import quantities as q
from tlplab.errors import INTERRUPTED
from tlplab.nettlp.end import (
    ADAPTER_ADDRESS,
    ALLOW_REMOTE,
    NETWORK,
    SECONDS,
    Command,
    address_of,
    bdf_of,
    check_interface,
    check_remote,
    limit_of,
    number_of,
    size_of,
    with_options,
)
from tlplab.nettlp.live import DROPPED, Served, check_options, serve_experiment, served_of, taps_of
from tlplab.outputs import check_outputs, write_text
from tlplab.progress import Line
from tlplab.sheet import NOTHING, Column, Sheet
from tlplab.summary import console_for

# How often Ctrl-C is looked for, and how often the line of figures changes.
SLICE_SECONDS = 0.1
LINE_SECONDS = 1.0
# Requester IDs of devices that are given none: 1b:00.0, 1c:00.0 and so on, as in the published examples.
FIRST_BUS = 0x1B
BUSES = 256
# Reading a larger image takes so long that it is said.
LARGE_IMAGE = 256 << 20

# Vendor and device ID of the published card, and what its BARs are.
CARD = [0x3776, 0x8022]
BAR_MEANS = {0: "registers", 2: "MSI-X table", 4: "device"}
# What is told at the end even if it never happened, and what only if it did.
TRAFFIC = ("reads", "bytes_read", "writes", "bytes_written", "interrupts", "peer_requests", "mmio", "control")
WORDS = {
    "malformed": "malformed",
    "duplicates": "duplicates",
    "lost": "lost",
    "throttled": "beyond the rate limit",
    "overflows": "queue full",
    "refused": "refused (UR, CA)",
    "lost_writes": "writes outside memory",
    "poisoned": "poisoned writes",
    "oversized": "payload above MPS",
    "ignored": "ignored",
    "unexpected": "unexpected completions",
    "failed": "failed host requests",
    "timeouts": "host requests not answered",
    "undeliverable": "not delivered",
}


class Window(TypedDict):
    """The address and size of a BAR."""

    bar: int
    base: int
    size: int


class Device(TypedDict):
    """A device that is served."""

    peer: str
    bdf: str
    ids: list[int]
    bars: list[Window]
    counters: dict[str, int]


class Report(TypedDict):
    """The devices and counters of an adapter."""

    local: str
    devices: list[Device]
    foreign: int
    other_ports: int
    kernel_drops: int | None


@dataclass(frozen=True)
class Peer:
    """A device's address and requester ID."""

    address: str
    bdf: int


def peers_of(context: click.Context, parameter: click.Parameter, given: Sequence[str]) -> list[Peer]:
    """`127.0.0.1`, or `127.0.0.1=1b:00.0`."""
    peers = []
    for number, text in enumerate(given or ["127.0.0.1"]):
        address, separator, bdf = text.partition("=")
        bus = FIRST_BUS + number
        if not separator and bus >= BUSES:
            raise click.BadParameter("these many devices need IDs: give each as --peer IP=BB:DD.F", param=parameter)
        identity = bdf_of(context, parameter, bdf) if separator else bus << 8
        peers.append(Peer(str(address_of(context, parameter, address)), int(identity or 0)))
    return peers


def images_of(context: click.Context, parameter: click.Parameter, given: Sequence[str]) -> list[tuple[str, int]]:
    """`memory.bin`, or `memory.bin@0x100000`."""
    images = []
    for text in given:
        path, separator, address = text.rpartition("@")
        # A name may have the sign, too.
        if not separator or os.path.exists(text):
            path, address = text, "0"
        images.append((path, int(number_of(context, parameter, address) or 0)))
    return images


def power_of_two_of(context: click.Context, parameter: click.Parameter, given: str) -> int:
    """A size that a BAR can have."""
    size = size_of(context, parameter, given)
    if size & (size - 1) or size < 1 << 12:
        raise click.BadParameter(f"{given!r} is not a power of two of at least 4KiB", param=parameter)
    return size


def latency_of(_context: click.Context, parameter: click.Parameter, given: str) -> int:
    """A time in femtoseconds."""
    try:
        return _core.duration_fs(given)
    except ValueError as error:
        raise click.BadParameter(str(error), param=parameter) from None


def adapter_options(command: Command) -> Command:
    """The options of `tlplab adapter`."""
    return with_options(command, (
        click.argument("experiment", metavar="[EXPERIMENT.toml]", required=False),
        click.option("--serve", "served", metavar="DEVICE=IP", multiple=True, callback=served_of, help="The device DEVICE of the experiment is another process, at IP. May be given again."),
        click.option("--tap", "taps", metavar="DEVICE=IF", multiple=True, callback=taps_of, help="Connect the TAP interface IF to the driver of this simple-nic. May be given again."),
        click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Override one key of the experiment, as for tlplab run."),
        click.option("-l", "--local", metavar="IP", default=ADAPTER_ADDRESS, show_default=True, callback=address_of, help="The adapter's address."),
        click.option("--peer", "peers", metavar="IP[=BB:DD.F]", multiple=True, callback=peers_of, help="A device: its address, and the ID under which it issues requests. May be given again.  [default: 127.0.0.1=1b:00.0]"),
        click.option("--memory", metavar="SIZE", default="1GiB", show_default=True, callback=size_of, help="Size of the host's memory; only written pages take space."),
        click.option("--load-memory", "images", metavar="FILE[@ADDR]", multiple=True, callback=images_of, help="Initial contents of memory: FILE at ADDR (0). May be given again."),
        click.option("--latency", metavar="TIME", default="0ns", show_default=True, callback=latency_of, help="Time from a read to its completion at the host."),
        click.option("--window", metavar="SIZE", default="256MiB", show_default=True, callback=power_of_two_of, help="Size of BAR 4, the window to the device."),
        click.option("--mps", metavar="SIZE", default="256B", show_default=True, callback=limit_of, help="Maximum payload size: of completions and of the host's writes."),
        click.option("-m", "--mrrs", metavar="SIZE", default="512B", show_default=True, callback=limit_of, help="Maximum read request size of the host."),
        click.option("--p2p", type=click.Choice(["switch", "root-complex"]), default="switch", show_default=True, help="Component between two devices: a switch forwards TLPs unchanged; a root complex splits reads into 64 bytes."),
        click.option("--msix-table", type=click.Choice(["bar2", "bar4"]), default="bar2", show_default=True, help="Location of the MSI-X table: the card (bar2) or the device (bar4)."),
        click.option("--rate", metavar="N", type=click.IntRange(1), help="Process at most N datagrams per second from each device.  [default: 1000000]"),
        *NETWORK,
        ALLOW_REMOTE,
        click.option("--seconds", metavar="N", type=SECONDS, help="End after N seconds instead of at Ctrl-C."),
        click.option("--pcap", metavar="FILE", help="Write all datagrams to FILE (pcapng)."),
        click.option("--json", "json_file", metavar="FILE|-", help="Write the counters as JSON at the end."),
        click.option("--quiet", is_flag=True, help="No tables, no status line."),
    ))  # fmt: skip


@click.command("adapter", short_help="Serve NetTLP devices with memory behind them.")
@adapter_options
def adapter_command(
    experiment: str | None, served: list[Served], taps: list[tuple[str, str]], overrides: Sequence[str], local: str, peers: list[Peer], images: list[tuple[str, int]], allow_remote: bool, seconds: float | None,
    pcap: str | None, json_file: str | None, quiet: bool, **options: Any,
) -> int:  # fmt: skip
    """Serve NetTLP devices: a software version of the FPGA card, with memory behind it.

    The card completes the device's reads and writes of memory, forwards accesses of other devices and of programs to
    its BAR 4 to the device, takes interrupts, and answers requests for configuration space (port 0x5001), registers
    (0x5002) and the MSI-X table (12287). It serves until Ctrl-C. Each device on this machine needs its own address.

    With an experiment, its host is behind the card: its drivers run on the simulated host in wall time, and the
    devices that --serve names are other processes (tlplab device). Time starts when all of them are connected.

    \b
    Examples:
      tlplab adapter --seconds 1
      tlplab adapter --load-memory image.bin@0x100000 --pcap out/seen.pcapng
      tlplab adapter --peer 127.0.0.1 --peer 127.0.0.3=1c:00.0 --p2p root-complex
      tlplab adapter examples/python/copier.toml --serve copier=127.0.0.1
    """
    check_options(experiment, served, taps)
    check_interface(options["interface"], options["transport"])
    elsewhere = [one.address for one in served] or [peer.address for peer in peers]
    check_remote(local, *elsewhere, allowed=allow_remote)
    check_outputs(
        {"--json": json_file, "--pcap": pcap},
        to_stdout={"--json"},
        inputs={"the experiment": experiment, **{f"--load-memory {path}": path for path, _ in images}},
    )
    if experiment is not None:
        return serve_experiment(
            experiment, overrides, served, taps, local, seconds=seconds, pcap=pcap, json_file=json_file, quiet=quiet, options=options,
        )  # fmt: skip
    service = open_service(local, peers, images, pcap, options)
    out = console_for(sys.stderr if json_file == "-" else sys.stdout)
    if not quiet:
        show_devices(out, report_of(service))
    begun = time.monotonic()
    interrupted = False
    try:
        serve(service, begun, seconds, quiet=quiet)
    except KeyboardInterrupt:
        interrupted = True
    elapsed = time.monotonic() - begun
    service.finish()
    report = report_of(service)
    if json_file is not None:
        write_text(json_file, json.dumps({"seconds": elapsed, **report}, indent=2) + "\n")
    if not quiet:
        show_counts(out, report, elapsed)
    return INTERRUPTED if interrupted else 0


def open_service(
    local: str, peers: list[Peer], images: list[tuple[str, int]], pcap: str | None, options: dict[str, Any]
) -> _core.AdapterService:
    """The adapter on its ports."""
    if not options["memory"]:
        raise click.UsageError("--memory: a host needs memory; give a size such as 1MiB")
    for path, _ in images:
        if os.path.exists(path) and os.path.getsize(path) > LARGE_IMAGE and sys.stderr.isatty():
            click.echo(f"reading {path} …", err=True)
    try:
        return _core.AdapterService(
            int(IPv4Address(local)),
            [(int(IPv4Address(peer.address)), peer.bdf) for peer in peers],
            memory=options["memory"],
            images=images,
            latency_fs=options["latency"],
            window=options["window"],
            mps=options["mps"],
            mrrs=options["mrrs"],
            root_complex=options["p2p"] == "root-complex",
            msix_in_window=options["msix_table"] == "bar4",
            rate=options["rate"],
            transport=options["transport"],
            interface=options["interface"],
            spin=options["spin"],
            pcap=pcap,
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def serve(service: _core.AdapterService, begun: float, seconds: float | None, *, quiet: bool) -> None:
    """Serves for `seconds`, or until Ctrl-C; on a terminal with a line about the traffic."""
    line = Line(quiet=quiet)
    before, then = report_of(service), begun
    try:
        while (left := SLICE_SECONDS if seconds is None else begun + seconds - time.monotonic()) > 0:
            service.serve(min(left, SLICE_SECONDS))
            now = time.monotonic()
            if line.shown and now - then >= LINE_SECONDS:
                report = report_of(service)
                line.show(rates(before, report, now - then))
                before, then = report, now
    finally:
        line.clear()


def report_of(service: _core.AdapterService) -> Report:
    """The present devices and counters of an adapter."""
    report: Report = json.loads(service.report())
    return report


def total(report: Report, name: str) -> int:
    """A counter, of all devices."""
    return sum(device["counters"][name] for device in report["devices"])


def rates(before: Report, after: Report, seconds: float) -> str:
    """The traffic between two reports, in a line."""

    def rate(name: str) -> float:
        return (total(after, name) - total(before, name)) / seconds

    bad = (
        sum(total(after, name) for name in WORDS)
        + after["foreign"]
        + after["other_ports"]
        + (after["kernel_drops"] or 0)
    )
    data = 8 * (rate("bytes_read") + rate("bytes_written"))
    parts = [f"{q.significant(rate(name) / 1e3, 3)} k {name}/s" for name in ("reads", "writes")]
    parts += [q.rate(data, 3) if data else "0 b/s", f"{total(after, 'interrupts')} interrupts"]
    return ", ".join(parts) + (f", {bad} dropped or refused" if bad else "")


def show_devices(console: Console, report: Report) -> None:
    """Print the devices and their addresses."""
    sheet = Sheet(
        f"NetTLP adapter at {report['local']}; Ctrl-C ends",
        [Column("device", name=True, fold=False), Column("ID"), Column("BAR"), Column("address"), Column("size"), Column("contents")],
    )  # fmt: skip
    for device in report["devices"]:
        card = device["ids"] == CARD
        for number, bar in enumerate(device["bars"]):
            what = BAR_MEANS.get(bar["bar"], NOTHING) if card else "device"
            first = number == 0
            place = [device["peer"], device["bdf"]] if first else ["", ""]
            size = q.size(bar["size"])
            last = number == len(device["bars"]) - 1
            sheet.add(*place, str(bar["bar"]), f"{bar['base']:#x}", size, what, ends_section=last)
    sheet.print(console)


def show_counts(console: Console, report: Report, seconds: float) -> None:
    """Print counters of traffic and of errors."""
    sheet = Sheet(
        f"In {q.significant(seconds, 3)} s",
        [Column("device", name=True, fold=False), *(Column(name.replace("_", " ")) for name in TRAFFIC)],
    )
    for device in report["devices"]:
        sheet.add(device["peer"], *(q.count(device["counters"][name]) for name in TRAFFIC))
    if any(total(report, name) for name in TRAFFIC):
        sheet.print(console)
    else:
        console.print(f"In {q.significant(seconds, 3)} s no request arrived.")
    for device in report["devices"]:
        wrong = [
            f"{q.count(device['counters'][name])} {words}" for name, words in WORDS.items() if device["counters"][name]
        ]
        if wrong:
            console.print(f"{device['peer']}: {', '.join(wrong)}")
    if report["foreign"]:
        console.print(f"{q.count(report['foreign'])} datagrams came from addresses of no device")
    if report["other_ports"]:
        console.print(f"{q.count(report['other_ports'])} datagrams came to unused ports")
    if report["kernel_drops"]:
        console.print(f"{q.count(report['kernel_drops'])} datagrams {DROPPED}")
