"""`tlplab model`: the closed forms on the command line."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tlplab import _core, quantities
from tlplab.analytic.options import RATE, SIZE, TIME_NS, connection, connection_options, output_options, sizes_of
from tlplab.errors import ExperimentError
from tlplab.options import complete_listed
from tlplab.outputs import check_outputs, write_text
from tlplab.plotting import check_ending
from tlplab.sheet import Column, Sheet
from tlplab.summary import console_for

if TYPE_CHECKING:  # numpy takes a while to import: no other command waits for it
    from tlplab.model import Grid

OPERATIONS = ("write", "read", "rdwr")
# The options of the model's numbers.
OPTIONS = {
    **{name: f"--{name}" for name in ("size", "offset", "mps", "mrrs", "rcb", "ethernet")},
    "latency_ns": "--latency", "wanted": "--rate", "generation": "the generation of --link", "width": "the width of --link", "flit": "flit in --link",
}  # fmt: skip
# Bytes of Ethernet's shortest frame, with its check sequence.
SHORTEST_FRAME = 64
# Its check sequence, which NICs do not transfer.
FCS = 4
# More rows than this are thinned out on the terminal; files get all.
ROWS_SHOWN = 24


def wrong(error: ValueError) -> click.UsageError:
    """A number that the model refuses, by its option."""
    name, verb, rest = str(error).partition(" is ")
    option = OPTIONS.get(name)
    return click.UsageError(f"{option}{verb}{rest}" if option else str(error))


def check_files(json_file: str | None, output: str | None, plot: str | None, inputs: dict[str, str | None]) -> None:
    """Refuses files that cannot be written."""
    check_outputs({"--json": json_file, "-o": output, "--plot": plot}, to_stdout={"--json"}, inputs=inputs)
    if plot is not None:
        check_ending("--plot", plot)


def write_rows(rows: list[dict[str, Any]], json_file: str | None, output: str | None) -> None:
    """Writes the rows where they are wanted."""
    if json_file is not None:
        write_text(json_file, json.dumps(rows, indent=1) + "\n")
    if output is not None:
        text = io.StringIO()
        writer = csv.DictWriter(text, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_text(output, text.getvalue())


def rows_of(grid: Grid, **extra: str) -> list[dict[str, Any]]:
    """A grid as rows."""
    columns = {name: values.tolist() for name, values in grid.to_numpy().items()}
    return [{**extra, **dict(zip(columns, row, strict=True))} for row in zip(*columns.values(), strict=True)]


def shown(count: int) -> tuple[range, str]:
    """The rows of a table that are shown, and a remark if some are not."""
    step = 1
    while count > ROWS_SHOWN * step:
        step *= 2
    some = f"{quantities.count(-(-count // step))} of {quantities.count(count)} sizes; --json, -o and --plot have all."
    return range(0, count, step), "" if step == 1 else some


def headline(grid: Grid) -> str:
    """The link, in a sentence."""
    first = {name: values[0] for name, values in grid.to_numpy().items()}
    flit = " flit" if first["flit"] else ""
    where = f"gen{first['generation']} x{first['width']}{flit}, MPS {first['mps']} B, MRRS {first['mrrs']} B"
    raw, tlps = (quantities.rate(float(first[name])) for name in ("raw_bps", "tlp_bps"))
    return f"{where}: {raw} after line coding, {tlps} for TLPs, each way"


@click.group("model", short_help="Closed forms of links, NICs and latency.")
def model_group() -> None:
    """Closed forms: the payload rate of a link, the share that a NIC gets, the requests that must be under way.

    \b
    Examples:
      tlplab model bw --link 'gen4 x16' --size 64B --size 4KiB
      tlplab model nic --nic dpdk --ethernet 100Gb/s --link 'gen4 x8'
      tlplab model lat --size 124B --latency 900ns --ethernet 40Gb/s
    """


@model_group.command("bw")
@click.option(
    "--size",
    "sizes",
    metavar="SIZES",
    multiple=True,
    callback=sizes_of,
    default=["64B", "128B", "256B", "512B", "1KiB", "1500B", "4KiB"],
    help="Bytes of a transfer, or a range: 1B..1500B, 64B..4KiB/64B. May be given again.",
)
@click.option(
    "--op",
    "operations",
    type=click.Choice(OPERATIONS),
    multiple=True,
    default=OPERATIONS,
    help="DMA writes, reads, or as many of each (rdwr). [default: all]",
)
@connection_options
@output_options
def bw(
    sizes: list[int], operations: Sequence[str], json_file: str | None, output: str | None, plot: str | None, quiet: bool,
    **given: Any
) -> None:  # fmt: skip
    """Bandwidth of DMA writes and reads that only the link limits.

    Includes the overhead of headers, framing, Acks, UpdateFCs and skips, and of cuts at MPS, MRRS, the read completion
    boundary and 4 KiB. Reads and writes together are given for each direction.

    \b
    Examples:
      tlplab model bw --link 'gen3 x8' --mps 256B --size 64B
      tlplab model bw --size 1B..1500B -o out/bw.csv --plot out/bw.png
      tlplab model bw --size 64B --offset 4064B
      tlplab model bw --compat pcie-model --json -
    """
    from tlplab import model

    check_files(json_file, output, plot, {})
    try:
        grids = {op: model.bandwidth(sizes, op=op, **connection({**given})) for op in dict.fromkeys(operations)}
    except ValueError as error:
        raise wrong(error) from None
    rows = [row for op, grid in grids.items() for row in rows_of(grid, op=op)]
    write_rows(rows, json_file, output)
    first = next(iter(grids.values()))
    if plot is not None:
        from tlplab.analytic import plot as drawing

        # Between the sizes asked for is the saw-tooth: the curve has them all.
        step = -(-(max(sizes) - min(sizes) + 1) // CURVE_POINTS)
        between = sorted({*range(min(sizes), max(sizes), step), *sizes})
        curves = {op: model.bandwidth(between, op=op, **connection({**given})) for op in grids}
        lines = [(LABELS[op], curve["size"], curve["bandwidth_bps"] / 1e9) for op, curve in curves.items()]
        drawing.draw(plot, headline(first), "transfer, bytes", lines)
    if quiet or json_file == "-":
        return
    console = console_for(sys.stdout)
    columns = [Column("size", name=True, fold=False)]
    for op in grids:
        columns += [Column(f"{LABELS[op]}\nGb/s", style="bold"), Column("\nM/s")]
    sheet = Sheet(headline(first), columns)
    picked, remark = shown(len(sizes))
    for point in picked:
        cells = [f"{sizes[point]} B"]
        for grid in grids.values():
            cells += [f"{grid['bandwidth_bps'][point] / 1e9:.2f}", f"{grid['transfers_per_s'][point] / 1e6:.2f}"]
        sheet.add(*cells)
    sheet.print(console)
    if remark:
        console.print(remark, style="dim")


CURVE_POINTS = 65_536
LABELS = {"write": "write", "read": "read", "rdwr": "read and write"}


def nic_text(name: str) -> str:
    """The file of a NIC: a shipped one, or the user's."""
    shipped = dict(_core.nics())
    if name in shipped:
        return shipped[name]
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise click.UsageError(f"--nic {name}: {why}; give a file or one of {', '.join(shipped)}") from None


def meets(grid: Grid) -> str:
    """The frames that are sent at line rate, in words."""
    met = (grid["packets_per_s"] >= grid["ethernet_frames_per_s"]).tolist()
    frames = grid["size"].tolist()
    if not any(met):
        return "never at line rate"
    if all(met):
        return "always at line rate"
    first, last = (
        frames[met.index(True)],
        next((f for f, good in reversed(list(zip(frames, met, strict=True))) if not good)),
    )
    if not met[-1]:
        return f"at line rate first with {first} B, but not with {last} B"
    return (
        f"at line rate from {first} B on" if first > last else f"at line rate with {first} B, and always above {last} B"
    )


@model_group.command("nic", short_help="The throughput of a NIC and its driver over a link.")
@click.option(
    "--nic",
    "nics",
    metavar="NAME|FILE.toml",
    shell_complete=complete_listed("nics"),
    multiple=True,
    default=["simple", "kernel", "dpdk"],
    help="A NIC that comes with tlplab, or FILE.toml. May be given again.  [default: all that come with tlplab]",
)
@click.option("--ethernet", metavar="RATE", default="40Gb/s", show_default=True, callback=RATE, help="Line rate.")
@click.option(
    "--frame",
    "frames",
    metavar="SIZES",
    multiple=True,
    callback=sizes_of,
    default=["64B..1518B"],
    show_default=True,
    help="Bytes of a frame with its check sequence, or a range.",
)
@click.option(
    "--ways",
    type=click.Choice(["both", "transmit", "receive"]),
    default="both",
    show_default=True,
    help="Direction of the packets.",
)
@connection_options
@output_options
def nic(
    nics: Sequence[str], ethernet: int, frames: list[int], ways: str, json_file: str | None, output: str | None,
    plot: str | None, quiet: bool,
    **given: Any,
) -> None:  # fmt: skip
    """The throughput of a NIC and its driver over the link, compared with Ethernet's line rate.

    A NIC is a list of the transactions per packet: descriptors, data, pointers, interrupts. Your own NIC is a
    TOML file; docs/model.md shows one.

    \b
    Examples:
      tlplab model nic
      tlplab model nic --compat pcie-model --frame 64B..1499B -o out/nic.csv --plot out/nic.png
      tlplab model nic --nic mine.toml --nic dpdk --ethernet 100Gb/s --link 'gen4 x8'
    """
    from tlplab import model

    check_files(json_file, output, plot, {f"--nic {name}": name for name in nics})
    if min(frames) < SHORTEST_FRAME:
        raise click.UsageError(
            f"--frame is {min(frames)} B; expected {SHORTEST_FRAME} B or more, check sequence included"
        )
    texts = {name: nic_text(name) for name in nics}
    options = connection(given)
    try:
        grids = {
            name: model.nic(frames, file=name, text=text, ways=ways, ethernet=ethernet, **options)
            for name, text in texts.items()
        }
    except ExperimentError:
        raise
    except ValueError as error:
        raise wrong(error) from None
    write_rows([row for name, grid in grids.items() for row in rows_of(grid, nic=name, ways=ways)], json_file, output)
    first = next(iter(grids.values()))
    titles = {name: _core.nic_title(name, text) for name, text in texts.items()}
    title = f"gen{options['generation']} x{options['width']} and {quantities.rate(ethernet)} Ethernet, {WAYS[ways]}"
    if plot is not None:
        from tlplab.analytic import plot as drawing

        lines = [(titles[name], grid["size"], grid["bandwidth_bps"] / 1e9) for name, grid in grids.items()]
        lines.append(("Ethernet", first["size"], first["ethernet_bps"] / 1e9))
        drawing.draw(plot, title, "frame, bytes", lines)
    if quiet or json_file == "-":
        return
    console = console_for(sys.stdout)
    names = [Column(f"{Path(name).stem}\nGb/s", style="bold") for name in grids]
    sheet = Sheet(
        f"{title}: packets without check sequence",
        [Column("frame", name=True, fold=False), Column("Ethernet\nGb/s"), *names],
    )
    picked, remark = shown(len(frames))
    for point in picked:
        cells = [grid["bandwidth_bps"][point] / 1e9 for grid in grids.values()]
        sheet.add(f"{frames[point]} B", f"{first['ethernet_bps'][point] / 1e9:.2f}", *(f"{cell:.2f}" for cell in cells))
    sheet.print(console)
    if remark:
        console.print(remark, style="dim")
    console.print()
    for name, grid in grids.items():
        console.print(f"{titles[name]}: {meets(grid)}", soft_wrap=True)


WAYS = {"both": "both ways", "transmit": "the host sends", "receive": "the host receives"}


@model_group.command("lat", short_help="Little's law: transfers with a given latency.")
@click.option("--size", metavar="SIZE", default="128B", show_default=True, callback=SIZE, help="Bytes of a transfer.")
@click.option(
    "--op",
    type=click.Choice(OPERATIONS),
    default="read",
    show_default=True,
    help="DMA reads, writes, or as many of each.",
)
@click.option(
    "--latency",
    metavar="TIME",
    default="900ns",
    show_default=True,
    callback=TIME_NS,
    help="From a transfer's start to its end.",
)
@click.option(
    "--flight",
    metavar="TIME",
    default="5ns",
    show_default=True,
    callback=TIME_NS,
    help="From one end of the link to the other.",
)
@click.option(
    "--drain",
    metavar="TIME",
    default="100ns",
    show_default=True,
    callback=TIME_NS,
    help="From the arrival of a request at the host until its credit is free again.",
)
@click.option("--rate", metavar="RATE", callback=RATE, help="Payload rate to reach.  [default: that of the link]")
@click.option(
    "--ethernet",
    metavar="RATE",
    callback=RATE,
    help="Instead of --rate: one transfer per frame at this line rate, without the check sequence.",
)
@click.option("--tags", type=click.IntRange(1), metavar="N", help="Read requests under way at once.")
@click.option("--nonposted-headers", type=click.IntRange(1), metavar="N", help="Credits for read requests.")
@click.option("--posted-headers", type=click.IntRange(1), metavar="N", help="Credits for writes.")
@click.option("--posted-data", type=click.IntRange(1), metavar="N", help="Credits for their payload, of 16 B each.")
@click.option("--replay", metavar="SIZE", callback=SIZE, help="The device's replay buffer.")
@click.option("--transfers", type=click.IntRange(1), metavar="N", help="Transfers that the device tracks at once.")
@connection_options
@click.option("--json", "json_file", metavar="FILE|-", help="Write the answer as JSON; - is the standard output.")
@click.option("--quiet", is_flag=True, help="No table.")
def lat(
    size: int, op: str, latency: float, flight: float, drain: float, rate: int | None, ethernet: int | None,
    json_file: str | None, quiet: bool, **given: Any,
) -> None:  # fmt: skip
    """Little's law: the limit of transfers with a given latency, and the amount of each resource that they need.

    The amount needed is a mean: the number in use at the wanted rate. A resource that is not given has no limit.

    \b
    Examples:
      tlplab model lat --size 124B --latency 900ns --ethernet 40Gb/s
      tlplab model lat --size 512B --latency 1us --tags 32 --link 'gen4 x8'
      tlplab model lat --op write --size 4KiB --posted-headers 32 --posted-data 512 --replay 4KiB
    """
    from tlplab import model

    check_outputs({"--json": json_file}, to_stdout={"--json"}, inputs={})
    options = connection(given)
    keys = ("transfers", "tags", "nonposted_headers", "posted_headers", "posted_data", "replay")
    available = {
        name: float(given[key]) for key, name in zip(keys, model.RESOURCES, strict=True) if given[key] is not None
    }
    try:
        wanted = wanted_of(size, rate, ethernet)
        found = model.in_flight(
            size, op=op, latency_ns=latency, flight_ns=flight, drain_ns=drain, available=available,
            wanted=wanted, **options,
        )  # fmt: skip
    except ValueError as error:
        raise wrong(error) from None
    if json_file is not None:
        write_text(json_file, json.dumps({"size": size, "op": op, **found}, indent=1) + "\n")
    if quiet or json_file == "-":
        return
    bits = size * 8
    sheet = Sheet(f"{LABELS[op].capitalize()} of {quantities.size(size)}, {quantities.time(latency)} each", [
        Column("resource", name=True), Column("per transfer"), Column("held for"), Column("needed", style="bold"),
        Column("available"), Column("limit"),
    ])  # fmt: skip
    for use in found["resources"]:
        there, allows = use["available"], use["transfers_per_s"]
        sheet.add(
            use["resource"], quantities.significant(use["each"]), quantities.time(use["held_ns"]),
            quantities.significant(use["needed"], 3), "–" if there is None else quantities.significant(there),
            "–" if allows is None else quantities.rate(allows * bits),
        )  # fmt: skip
    console = console_for(sys.stdout)
    sheet.print(console)
    console.print()
    reached, most = (quantities.rate(found[key] * bits) for key in ("transfers_per_s", "link_transfers_per_s"))
    why = {"demand": "the wanted rate", "link": "the limit of the link"}.get(found["limit"])
    beside = "" if found["limit"] == "link" else f" The link carries {most}."
    console.print(f"{reached}: {why or 'limited by ' + found['limit']}.{beside}", soft_wrap=True)
    if wanted is not None and wanted > found["link_transfers_per_s"]:
        console.print(
            f"{quantities.rate(wanted * bits)} is more than the link carries; the table shows the amounts for {most}.",
            soft_wrap=True,
        )


def wanted_of(size: int, rate: int | None, ethernet: int | None) -> float | None:
    """Transfers per second that are wanted."""
    from tlplab import model

    if rate is not None and ethernet is not None:
        raise click.UsageError("--rate and --ethernet both set the wanted rate; give one of them")
    if ethernet is not None:
        return float(model.nic(size + FCS, ethernet=ethernet)["ethernet_frames_per_s"])
    return None if rate is None else rate / 8 / size


@model_group.command("nettlp", short_help="The payload rate of TLPs in UDP datagrams.")
@click.option(
    "--size",
    "sizes",
    metavar="SIZES",
    multiple=True,
    callback=sizes_of,
    default=["64B", "128B", "256B", "512B", "1KiB", "4KiB"],
    help="Bytes of a transfer, or a range: 1B..1500B, 64B..4KiB/64B. May be given again.",
)
@click.option(
    "--ethernet", metavar="RATE", default="10Gb/s", show_default=True, callback=RATE, help="The link, each way."
)
@click.option("--mps", metavar="SIZE", default="256B", show_default=True, callback=SIZE, help="Maximum payload size.")
@click.option(
    "--mrrs", metavar="SIZE", default="512B", show_default=True, callback=SIZE, help="Maximum read request size."
)
@click.option(
    "--address-bits",
    type=click.Choice(["64", "32"]),
    default="32",
    show_default=True,
    help="Bits of an address: 32 for requests below 4 GiB.",
)
@output_options
def nettlp(
    sizes: list[int], ethernet: int, mps: int, mrrs: int, address_bits: str, json_file: str | None, output: str | None,
    plot: str | None, quiet: bool,
) -> None:  # fmt: skip
    """The payload rate of TLPs in UDP datagrams over Ethernet, with 72 bytes of overhead per TLP.

    Software and PCI Express may limit it further: the model nettlp-card of experiments includes both.

    \b
    Examples:
      tlplab model nettlp
      tlplab model nettlp --size 16B..2KiB/16B --plot out/nettlp.png
      tlplab model nettlp --ethernet 100Gb/s --mps 512B --json -
    """
    check_files(json_file, output, plot, {})
    header = 12 if address_bits == "32" else 16
    try:
        found = _core.model_nettlp(sizes, ethernet, int(mps), int(mrrs), header)
    except ValueError as error:
        raise wrong(error) from None
    rows = [
        {"size": size, "write_bps": write, "read_bps": read} for size, (write, read) in zip(sizes, found, strict=True)
    ]
    write_rows(rows, json_file, output)
    title = f"NetTLP on {quantities.rate(ethernet)} Ethernet, MPS {mps} B, MRRS {mrrs} B, headers of {header} B"
    if plot is not None:
        import numpy as np

        from tlplab.analytic import plot as drawing

        lines = [
            (way, np.array(sizes), np.array([row[f"{way}_bps"] for row in rows]) / 1e9) for way in ("write", "read")
        ]
        drawing.draw(plot, title, "transfer, bytes", lines)
    if quiet or json_file == "-":
        return
    console = console_for(sys.stdout)
    columns = [
        Column("size", name=True, fold=False),
        Column("write\nGb/s", style="bold"),
        Column("read\nGb/s", style="bold"),
    ]
    sheet = Sheet(title, columns)
    picked, remark = shown(len(sizes))
    for point in picked:
        write, read = found[point]
        sheet.add(f"{sizes[point]} B", f"{write / 1e9:.2f}", f"{read / 1e9:.2f}")
    sheet.print(console)
    if remark:
        console.print(remark, style="dim")
