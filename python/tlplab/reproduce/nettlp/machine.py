"""Figures 7 to 11 and Table 2, measured on this machine between two network namespaces."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from tlplab.progress import Bar
from tlplab.reproduce import Beside, Row
from tlplab.reproduce.curves import Curves
from tlplab.reproduce.nettlp.card import MEDIANS, MRRS, PUBLISHED_SINGLE, TABLE_2, timed
from tlplab.reproduce.nettlp.rows import absent, compared, ranged, shape
from tlplab.reproduce.nettlp.wire import ADAPTER, BAR4, MEMORY, SOFTWARE, NoWireError, Wire, laid

SECONDS, BRIEFLY, ROUNDS = "0.5", "0.2", 3
LANES = (1, 2, 4)
SIZES = (256, 512, 1024)
# Each is followed by the size 16 B behind it.
TEETH = (256, 512, 768, 1024)
LATENCIES = (1, 256, 1024)
# What is less deep is noise.
TOOTH = 0.97
READS = "10000"
# The completion timeout's range A is from here to 10 ms.
RANGE_A_US = 50
TAGS = "24"

Answer = dict[str, Any]


@dataclass
class Measured:
    """What `tlplab perf` said, by what was asked."""

    reads: dict[tuple[int, int], Answer] = field(default_factory=dict)
    teeth: dict[int, Answer] = field(default_factory=dict)
    latency: dict[int, Answer] = field(default_factory=dict)
    writes: dict[tuple[int, int], Answer] = field(default_factory=dict)
    software: dict[int, Answer] = field(default_factory=dict)
    table: dict[int, Answer] = field(default_factory=dict)


Job = tuple[Callable[[Answer], None], tuple[str, ...]]


def jobs(found: Measured) -> list[Job]:
    """What is measured, and where it goes."""
    listed: list[Job] = []

    def ask(into: dict[Any, Answer], key: Any, *arguments: str) -> None:
        listed.append((partial(into.__setitem__, key), arguments))

    for size in SIZES:
        for lanes in LANES:
            ask(found.reads, (size, lanes), "-L", f"{size}B", "-N", f"{lanes}", "--time", SECONDS)
    # Other work of the machine must not make a tooth: each is measured several times in turn, and the best is kept.
    for size in (size + more for _ in range(ROUNDS) for size in TEETH for more in (0, 16)):
        arguments = ("-L", f"{size}B", "-N", "2", "-P", "fix", "--time", BRIEFLY)
        listed.append((partial(keep_best, found.teeth, size), arguments))
    for size in LATENCIES:
        ask(found.latency, size, "-L", f"{min(size, MRRS)}B", "-P", "fix", "-c", READS)
    for size in (256, 512):
        for lanes in LANES:
            ask(found.writes, (size, lanes), "-d", "write", "-L", f"{size}B", "-N", f"{lanes}", "--time", SECONDS)
    behind = ("-a", BAR4, "-P", "fix")
    for size in (256, 272, 512, 528, 1024):
        ask(found.software, size, *behind, "-L", f"{size}B", "-q", TAGS, "--time", SECONDS)
    for size in TABLE_2:
        ask(found.table, size, *behind, "-L", f"{size}B", "-c", READS)
    return listed


def keep_best(into: dict[int, Answer], size: int, answer: Answer) -> None:
    """Keeps the faster of two."""
    if size not in into or gbps(answer) > gbps(into[size]):
        into[size] = answer


def measure(wire: Wire, *, quiet: bool) -> Measured:
    """Measures all of it."""
    adapter = ("adapter", "--local", ADAPTER, "--peer", MEMORY, "--peer", SOFTWARE, "--allow-remote", "--quiet")
    wire.start(wire.host, *adapter)
    wire.wait()
    wire.start(wire.device, "device", "psmem", "-l", MEMORY, "-r", ADAPTER, "--allow-remote", "--quiet")
    found = Measured()
    listed = jobs(found)
    with Bar(quiet=quiet) as bar:
        for number, (keep, arguments) in enumerate(listed):
            bar.show(number / len(listed), f"{number} of {len(listed)} measurements")
            keep(wire.perf(*arguments))
    return found


def gbps(answer: Answer) -> float:
    """Goodput."""
    return float(answer["bits_per_second"]) / 1e9


def microseconds(answer: Answer, what: str) -> float:
    """Of the distribution of latency."""
    return float(answer["latency_ns"][what]) / 1e3


def beside(*, quiet: bool) -> Beside:
    """The rows and figures; rows that say why, if there can be no namespaces here."""
    here = Surroundings(os.cpu_count() or 1, os.getloadavg()[0])
    try:
        with laid() as wire:
            found = measure(wire, quiet=quiet)
    except NoWireError as why:
        return Beside([absent("measured, figures 7 to 11 and table 2", None, "", str(why))], [], "")
    return Beside(rows(found, here), drawings(found), TEXT.format(processors=here.processors))


@dataclass(frozen=True)
class Surroundings:
    """What else there is to say of this machine."""

    processors: int
    load: float
    """The load average before the measurement: of what else ran."""

    @property
    def other(self) -> str:
        """Why absolute figures differ."""
        return f"another machine: both ends on {self.processors} processors, 16 threads and a card there"

    def claimed(self, row: Row) -> Row:
        """On a machine that does other things meanwhile neither what comes out nor what does not says anything."""
        if self.load < self.processors / 2:
            return row
        why = f"not to be told here, the machine was busy with other work: load {self.load:.1f}"
        return replace(row, verdict="not reproducible", note="; ".join(filter(None, (row.note, why))))


def rows(found: Measured, here: Surroundings) -> list[Row]:
    """The paper's results in its order."""
    single = found.reads[256, 1]["operations_per_second"] / 1e3
    most = max(gbps(answer) for (size, _), answer in found.reads.items() if size == 512)
    more = found.reads[256, 2]["operations_per_second"] / 1e3 / single
    long, short = gbps(found.writes[512, 1]), gbps(found.writes[256, 1])
    software = max(map(gbps, found.software.values()))
    few = f"both ends share {here.processors} processors" if here.processors < 8 else ""
    listed = [
        compared("measured, figure 7, 256 B, 1 thread", PUBLISHED_SINGLE, single, "k/s", 0.2, excuse=here.other),
        compared("measured, figure 7, 512 B, most", 3.59, most, "Gb/s", 0.2, excuse=here.other),
        shape("measured, figure 7, 256 B: 2 threads to 1", more, "times", 1.5 < more < 2.5, "throughput grows with threads", few),
        *teeth({size: gbps(answer) for size, answer in found.teeth.items()}),
        *(ranged(f"measured, figure 9, {size} B: median", MEDIANS, microseconds(found.latency[size], "p50"), "us",
                 timed(size), here.other) for size in LATENCIES),
        *(bounded(f"measured, figure 9, {size} B: p99", found.latency[size], timed(size)) for size in LATENCIES),
        shape("measured, figure 10: 512 B to 256 B, 1 thread", long / short, "times", 0.8 < long / short < 1.5,
              "writes are cut at the largest payload: twice the data are twice the datagrams"),
        compared("measured, figure 11: most", 4.7, software, "Gb/s", 0.2, excuse=here.other),
        *(compared(f"measured, table 2, {size} B: median", median, microseconds(found.table[size], "p50"), "us", 0.2,
                   "from one software to another by way of the adapter", here.other)
          for size, median in TABLE_2.items()),
        *(bounded(f"measured, table 2, {size} B: p99", found.table[size]) for size in TABLE_2),
    ]  # fmt: skip
    return [here.claimed(row) for row in listed]


def bounded(result: str, answer: Answer, note: str = "") -> Row:
    """The paper's own criterion: a root complex does not give up on the device."""
    p99 = microseconds(answer, "p99")
    limit = f"below {RANGE_A_US} us, where the completion timeout's range A begins"
    return shape(result, p99, "us", p99 < RANGE_A_US, "; ".join(filter(None, (limit, note))))


def teeth(found: dict[int, float]) -> list[Row]:
    """The saw-tooth: less behind a multiple than at it."""

    def most(*sizes: int) -> float:
        return max(found[size + 16] / found[size] for size in sizes)

    request, completion = most(512, 1024), most(256, 768)
    return [
        shape("measured, figure 8: 16 B behind 512 and 1024 B", request, "times", request < TOOTH, "the rate falls: one request more"),
        shape("measured, figure 8: 16 B behind 256 and 768 B", completion, "times", completion < TOOTH,
              "the rate falls: one completion more"),
    ]  # fmt: skip


def drawings(found: Measured) -> list[Curves]:
    """Figures 7 and 8."""
    lanes = np.array(LANES)
    lines = tuple((f"{size} B", lanes, np.array([gbps(found.reads[size, n]) for n in LANES])) for size in SIZES)
    sizes = np.array(sorted(found.teeth))
    rates = np.array([gbps(found.teeth[int(size)]) for size in sizes])
    return [
        Curves("Figure 7, measured here", "threads", "Gb/s", lines),
        Curves("Figure 8, measured here: 2 threads", "read, bytes", "Gb/s", (("2 threads", sizes, rates),)),
    ]


TEXT = """## Measured on this machine

`tlplab perf`, `tlplab adapter` and `tlplab device psmem` between two network namespaces joined by a virtual cable, on {processors} processors for both ends.
These figures are of the machine and the moment at which this page was written.
"""
