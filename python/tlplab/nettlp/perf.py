"""`tlplab perf`: how fast DMA over NetTLP is."""

from __future__ import annotations

import json
import math
import secrets
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import click

from tlplab import _core
from tlplab import quantities as q
from tlplab.errors import INTERRUPTED, RunError
from tlplab.nettlp.aside import Aside
from tlplab.nettlp.end import (
    DAY,
    SECONDS,
    TAGS,
    End,
    Quantity,
    end_of,
    end_options,
    instead,
    number_of,
    size_of,
)
from tlplab.outputs import check_outputs, write_text
from tlplab.plotting import check_ending
from tlplab.progress import Bar

DEFAULT_SECONDS = 5.0
MOST_LANES = 16
# Places that are not as they were written, one by one.
RANGES_SHOWN = 4
LATENCIES = ("min", "p50", "p90", "p99", "p99.9", "max")


@dataclass(frozen=True)
class Plan:
    """The plan of a measurement, as `tlplab._core` takes it."""

    direction: str
    address: int
    region: int
    length: int
    lanes: int = 1
    outstanding: int = 1
    divided: bool = False
    pattern: str = "seq"
    count: int | None = None
    duration_ns: int | None = None
    paced: bool = True
    interval_ns: int = 0
    verify: bool = False
    each: bool = False
    seed: int = 0


@click.command("perf", short_help="Measure DMA over NetTLP: rate, latency, processor time.")
@click.option(
    "-d",
    "--direction",
    type=click.Choice(["read", "write"]),
    default="read",
    show_default=True,
    help="DMA reads or writes.",
)
@click.option(
    "-a",
    "--address",
    metavar="ADDRESS",
    default="0",
    show_default=True,
    callback=number_of,
    help="First byte of the region.",
)
@click.option(
    "-s", "--size", metavar="SIZE", default="8MiB", show_default=True, callback=size_of, help="Size of the region."
)
@click.option(
    "-L",
    "--length",
    metavar="SIZE",
    default="256B",
    show_default=True,
    callback=size_of,
    help="Bytes of one operation.",
)
@click.option(
    "-N",
    "--lanes",
    type=click.IntRange(1, MOST_LANES),
    default=1,
    show_default=True,
    metavar="N",
    help="Threads, each with its own tags and sockets.",
)
@click.option(
    "-q",
    "--outstanding",
    type=click.IntRange(1, 4096),
    default=1,
    show_default=True,
    metavar="N",
    help="Operations under way in each thread.",
)
@click.option(
    "-R",
    "--split",
    type=click.Choice(["same", "diff"]),
    default="same",
    show_default=True,
    help="The threads use the same region (same) or different parts of it (diff).",
)
@click.option(
    "-P",
    "--pattern",
    type=click.Choice(["fix", "seq", "seq512", "random"]),
    default="seq",
    show_default=True,
    help="Order of addresses: one address (fix), consecutive (seq), every 512 bytes (seq512), or random pages (random).",
)
@click.option("-c", "--count", type=click.IntRange(1), metavar="N", help="Operations of each thread.")
@click.option(
    "-t",
    "--time",
    "seconds",
    type=SECONDS,
    metavar="SECONDS",
    help="Seconds to measure; 5 without --count.",
)
@click.option(
    "-i",
    "--interval",
    type=Quantity("milliseconds", DAY * 1e3),
    default=0.0,
    metavar="MS",
    help="Pause after each operation, in milliseconds.",
)
@click.option(
    "--no-pace",
    is_flag=True,
    help="Send writes at full speed, even if the receiver loses some of them.",
)
@click.option(
    "--tag",
    type=click.IntRange(0, TAGS - 1),
    default=0,
    show_default=True,
    metavar="TAG",
    help="The first tag of the first thread.",
)
@click.option(
    "-M",
    "--latencies",
    "each",
    is_flag=True,
    help="Report the latency of each operation as well: one per line, or in --json; at most 10 million per thread.",
)
@instead("-D", "for the TLPs sent, use tlplab adapter --pcap FILE and tlplab dump FILE", flag=True)
@instead("-S", "the target is the adapter's memory: tlplab adapter --memory SIZE", flag=False)
@click.option(
    "--verify",
    is_flag=True,
    help="Check the data: fill the region before reads, read written data back. OVERWRITES THE REGION.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**64 - 1),
    metavar="N",
    help="Seed of random addresses and of the data; a new one each time by default.",
)
@click.option("--json", "json_file", metavar="FILE|-", help="Write all results; - is the standard output.")
@click.option("--plot", metavar="FILE", help="Draw the distribution of the latency.")
@click.option("--quiet", is_flag=True, help="No table, no progress bar.")
@end_options
def perf_command(
    direction: str, address: int, size: int, length: int, lanes: int, outstanding: int, split: str, pattern: str,
    count: int | None, seconds: float | None, interval: float, no_pace: bool, tag: int, each: bool, verify: bool, seed: int | None,
    json_file: str | None, plot: str | None, quiet: bool, **given: Any,
) -> int:  # fmt: skip
    """Measure DMA over NetTLP: rate, latency, processor time at this end.

    A read ends when its data arrive, a write when it is sent, since it is posted. A flush after each 32 KiB or 128 TLPs
    keeps writes from overflowing the adapter's socket. The rate of writes is that of the data that arrived, if the
    adapter counts them. Ctrl-C ends the measurement and keeps its results; a second Ctrl-C ends it at once.

    \b
    Examples:
      tlplab perf -L 256B --time 2
      tlplab perf -L 1KiB -N 2 -q 16 --verify --json perf.json --plot latency.png
      tlplab perf -d write -L 256B -c 100000
    """
    check_outputs({"--json": json_file, "--plot": plot}, to_stdout={"--json"}, inputs={})
    if plot is not None:
        check_ending("--plot", plot)
    if not 1 <= length < 1 << 32:
        raise click.UsageError("--length: give at least one byte and less than 4 GiB")
    if count is None and seconds is None:
        seconds = DEFAULT_SECONDS
    end = end_of(given, (tag, TAGS - 1))
    if end.transport == "xdp" and lanes > 1:
        raise click.UsageError("--transport xdp: an interface has one XDP socket; use one thread (-N 1)")
    plan = Plan(
        direction, address, size, length, lanes, outstanding, split == "diff", pattern, count,
        None if seconds is None else round(seconds * 1e9), not no_pace, round(interval * 1e6), verify, each,
        secrets.randbits(64) if seed is None else seed,
    )  # fmt: skip
    try:
        perf = _core.Perf(end, plan)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    with Bar(quiet=quiet) as bar:
        measured, interrupted = watch(perf, plan, bar)
    report = describe(end, plan, measured)
    if json_file is not None:
        write_text(json_file, json.dumps(report, indent=1) + "\n")
    if plot is not None:
        draw(plot, report, measured["histogram_ns"])
    if json_file != "-" and not quiet:
        sys.stdout.writelines(each_latency(report))
        click.echo("\n".join(lines(report)))
    if interrupted:
        click.echo("interrupted", err=True)
        return INTERRUPTED
    check(report)
    return 0


def watch(perf: _core.Perf, plan: Plan, bar: Bar) -> tuple[dict[str, Any], bool]:
    """Runs a measurement in a thread, until it is over or Ctrl-C; the measurement, and True if Ctrl-C came. A second Ctrl-C goes through."""
    work = Aside(perf.run)
    begun, interrupted = time.perf_counter(), False
    over = False
    while not over:
        try:
            over = work.over(within=0.1)
            operations, moved = perf.progress()
            elapsed = max(time.perf_counter() - begun, 1e-9)
            bar.show(
                fraction(plan, operations, elapsed),
                f"{q.significant(operations / elapsed / 1e3, 3)} k/s, {moved >> 20} MiB",
            )
        except KeyboardInterrupt:
            if interrupted:
                raise
            interrupted = True
            perf.stop()
    return work.result(), interrupted


def fraction(plan: Plan, operations: int, elapsed: float) -> float:
    """The finished fraction of the plan."""
    parts = [0.0]
    if plan.count is not None:
        parts.append(operations / (plan.count * plan.lanes))
    if plan.duration_ns is not None:
        parts.append(elapsed / (plan.duration_ns / 1e9))
    return min(max(parts), 1.0)


def describe(end: End, plan: Plan, measured: dict[str, Any]) -> dict[str, Any]:
    """The measurement and its circumstances, as `--json` writes them."""
    operations, seconds = measured["operations"], measured["seconds"] or float("inf")
    # Somebody else may have written under the same address.
    came = None if measured["arrived_bytes"] is None else min(measured["arrived_bytes"], measured["bytes"])
    measured["arrived_bytes"] = came
    figures = {
        "operations_per_second": (operations if came is None else came / plan.length) / seconds,
        "bits_per_second": (measured["bytes"] if came is None else came) * 8 / seconds,
        "sent_operations_per_second": operations / seconds,
        "sent_bits_per_second": measured["bytes"] * 8 / seconds,
        "arrived_operations": None if came is None else came // plan.length,
        "cpu_ns_per_operation": measured["cpu_seconds"] * 1e9 / operations if operations else None,
    }
    rest = {key: value for key, value in measured.items() if key != "histogram_ns"}
    rest["latency_ns"] = {**measured["latency_ns"], "stddev": deviation(measured["histogram_ns"])}
    return {"end": asdict(end), "plan": asdict(plan), **figures, **rest}


def deviation(histogram: list[tuple[int, int]]) -> float:
    """The standard deviation of a histogram; 0 if it is empty."""
    total = sum(count for _, count in histogram)
    if not total:
        return 0.0
    mean = sum(value * count for value, count in histogram) / total
    return math.sqrt(sum((value - mean) ** 2 * count for value, count in histogram) / total)


def each_latency(report: dict[str, Any]) -> Iterator[str]:
    """A line for each operation that succeeded, in the order of each thread, if that was asked for."""
    for number, lane in enumerate(report["lanes"]):
        for nanoseconds in lane.get("latencies_ns", ()):
            yield f"latency: thread {number}, {nanoseconds / 1e3:.3f} µs\n"


def lines(report: dict[str, Any]) -> list[str]:
    """The measurement in lines, for a terminal."""
    plan, latency = report["plan"], report["latency_ns"]
    threads = "1 thread" if plan["lanes"] == 1 else f"{plan['lanes']} threads"
    what = f"{plan['direction']}s of {q.size(plan['length'])}, {threads}, {plan['outstanding']} outstanding each"
    shown = [f"{what}, {report['end']['transport']}", *rates(report)]
    if report["operations"]:
        said = [f"{name} {q.time(latency[name], 3)}" for name in LATENCIES]
        shown += [f"  latency: {'   '.join(said[:3])}", f"           {'   '.join(said[3:])}"]
        shown.append(f"  processor time at this end: {q.time(report['cpu_ns_per_operation'], 3)} each")
    shown += [f"  failed: {count} × {kind}" for kind, count in report["errors"].items()]
    if report["kernel_drops"]:
        shown.append(f"  dropped by the kernel at this end: {report['kernel_drops']} datagrams")
    if plan["verify"] and plan["direction"] == "read":
        right = "all as written" if report["operations"] else "nothing was read"
        shown.append(f"  data: {right if not report['wrong'] else str(report['wrong']) + ' reads are WRONG'}")
    elif plan["verify"]:
        first, *rest = lacking(report) or ["everything arrived"]
        shown += [f"  data: {first}", *(f"        {line}" for line in rest)]
    return shown


def rates(report: dict[str, Any]) -> list[str]:
    """The rates: of reads, or of writes that arrived and that were sent."""

    def line(before: str, count: int, prefix: str = "") -> str:
        operations, bits = (report[f"{prefix}{name}_per_second"] for name in ("operations", "bits"))
        return (
            f"  {before}{q.significant(operations / 1e3)} k/s   {q.rate(bits)}   {count} in {report['seconds']:.2f} s"
        )

    if report["plan"]["direction"] == "read":
        return [line("", report["operations"])]
    sent = line("sent:    ", report["operations"], "sent_")
    if report["arrived_operations"] is None:
        return [sent, "  arrived: unknown, since this adapter does not count"]
    return [line("arrived: ", report["arrived_operations"]), sent]


def lacking(report: dict[str, Any]) -> list[str]:
    """The writes that did not arrive, if any, and the missing addresses."""
    said = []
    came, sent = report["arrived_bytes"], report["bytes"]
    if came is not None and came < sent:
        lost = report["operations"] - report["arrived_operations"]
        said.append(f"{lost} of {report['operations']} writes did not arrive ({sent - came} B)")
    if missing := report["missing_bytes"]:
        said.append(f"{missing} B in memory differ from the last write there")
        shown = report["missing_ranges"][:RANGES_SHOWN]
        said += [f"{begin:#x} to {begin + length - 1:#x}" for begin, length in shown]
        if more := report["missing_range_count"] - len(shown):
            said.append(f"and {more} more ranges")
    return said


def check(report: dict[str, Any]) -> None:
    """Wrong data are a failure with any other result, and so are verified writes that did not arrive; so is a measurement that is mostly
    of failures."""
    if report["wrong"]:
        raise RunError(f"{report['wrong']} reads returned data that were never written there")
    if report["plan"]["verify"] and report["plan"]["direction"] == "write" and (said := lacking(report)):
        raise RunError("; ".join(said))
    if (failed := sum(report["errors"].values())) > report["operations"]:
        raise RunError(f"{failed} operations failed and only {report['operations']} succeeded")


def draw(path: str, report: dict[str, Any], histogram: list[tuple[int, int]]) -> None:
    """Draws the share of operations that took at most so long."""
    import numpy as np
    from matplotlib.figure import Figure

    from tlplab.plotting import COLOURS, write_figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    if histogram:
        values, counts = np.array(histogram, dtype=float).T
        axes.step(values / 1e3, np.cumsum(counts) / counts.sum(), where="post", color=COLOURS[0])
    axes.set(xscale="log", xlabel="latency (µs)", ylabel="share of operations", ylim=(0, 1))
    axes.set_title(lines(report)[0], fontsize="medium", wrap=True)
    axes.grid(alpha=0.3, which="both")
    write_figure(path, figure)
