"""Results on the terminal."""

from __future__ import annotations

from typing import TextIO

from tlplab import quantities as q
from tlplab.bench.against import Reference
from tlplab.bench.case import Case
from tlplab.bench.result import Result, Results
from tlplab.bench.sweep import Sweep, bytes_text, text_of
from tlplab.sheet import Column, Sheet
from tlplab.summary import console_for

NAMES = {
    "lat_rd": "Latency of reads",
    "lat_wrrd": "Latency of a write followed by a read",
    "bw_rd": "Bandwidth of reads",
    "bw_wr": "Bandwidth of writes",
    "bw_rdwr": "Bandwidth in each direction of reads and writes in turn",
}
HEADINGS = {
    "size": "size",
    "window": "window",
    "host_offset": "offset",
    "device_offset": "device\noffset",
    "at_once": "at\nonce",
}
# More rows than this are thinned out on the terminal; files get all.
ROWS_SHOWN = 40


def show(results: Results, sweep: Sweep, place: str, reference: Reference | None, file: TextIO) -> None:
    """Prints a table of results; `place` names the target, `reference` has measurements of another machine."""
    if not results:
        return
    first = results[0].case
    columns = [Column(HEADINGS.get(name, name), name=name not in HEADINGS) for name in sweep.axes]
    sheet = Sheet(heading(sweep, place), [*columns, *figures(first), *beside(first)])
    step = -(-len(results) // ROWS_SHOWN)
    for result in results[::step]:
        cells = [text_of(name, getattr(result.case, name)) for name in sweep.axes]
        sheet.add(*cells, *row(result), *compared(result, reference))
    console = console_for(file)
    sheet.print(console)
    for remark in results.remarks:
        console.print(remark, style="dim")
    if step > 1:
        console.print(f"{len(results[::step])} of {len(results)} cases; --json, -o and --plot have all.")


def heading(sweep: Sweep, place: str) -> str:
    """The measured quantity, its circumstances and its place: the title of tables and plots."""
    first = sweep.cases[0]
    return f"{NAMES[first.test]}, {about(first, sweep)}\n{place}"


def about(case: Case, sweep: Sweep) -> str:
    """The circumstances that all cases have in common, in words."""
    parts = {
        "size": bytes_text(case.size),
        "window": f"window {bytes_text(case.window)}",
        "host_offset": f"offset {bytes_text(case.host_offset)}" if case.host_offset else "",
        "device_offset": f"device offset {bytes_text(case.device_offset)}" if case.device_offset else "",
        "pattern": case.pattern,
        "cache": case.cache,
        "node": "remote node" if case.node == "remote" else "",
        "interface": "command interface" if case.interface == "command" else "",
        "at_once": f"{case.at_once} at once" if case.at_once else "",
    }
    return ", ".join(text for name, text in parts.items() if text and name not in sweep.axes)


def figures(case: Case) -> list[Column]:
    """The columns of the measurement."""
    if case.is_latency:
        return [Column(f"{name}\nns") for name in ("average", "median", "min", "p95", "p99", "p99.9", "max")]
    return [Column("bandwidth\nGb/s"), Column("transfers\nM/s"), Column("each\nns")]


def row(result: Result) -> list[str]:
    """The measurement in the columns of `figures`."""
    if result.latency is not None:
        of = result.latency
        return [
            q.significant(value, 5)
            for value in (of.average_ns, of.median_ns, of.min_ns, of.p95_ns, of.p99_ns, of.p999_ns, of.max_ns)
        ]
    each = result.transfers_per_second or 0.0
    return [q.significant(result.gbps), q.significant(each / 1e6), q.significant(1e9 / each if each else 0.0)]


def beside(case: Case) -> list[Column]:
    """The columns of the other machine's measurement; they are empty, and left out, without one."""
    return [Column("median\ndata set" if case.is_latency else "Gb/s\ndata set"), Column("error\nhere")]


def compared(result: Result, reference: Reference | None) -> list[str]:
    """The measurement of another machine, and its difference from the result, in the columns of `beside`."""
    there = reference.value(result.case) if reference is not None else None
    if there is None:
        return ["", ""]
    here = result.gbps if result.latency is None else result.latency.median_ns
    off = round(100 * (here / there - 1), 1) + 0.0  # no negative zero
    return [q.significant(there, 5), f"{off:+.1f} %"]
