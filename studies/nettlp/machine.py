"""Figures 7 to 11 and Table 2, measured on this machine between two network namespaces."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from studies.nettlp.card import MEDIANS, MRRS, PUBLISHED_SINGLE, TABLE_2, timed
from studies.nettlp.rows import absent, bounded, compared, ranged, shape, teeth
from studies.nettlp.wire import ADAPTER, BAR4, MEMORY, SOFTWARE, CommandError, laid
from tlplab.analytic.plot import Line
from tlplab.nettlp.cable import NoNamespacesError
from tlplab.progress import Bar
from tlplab.reproduce import Beside, Row
from tlplab.reproduce.curves import Curves

SECONDS, BRIEFLY, ROUNDS = "0.5", "0.2", 3
LANES = (1, 2, 4)
SIZES = (256, 512, 1024)
# Each is followed by the size 16 B behind it.
TEETH = (256, 512, 768, 1024)
LATENCIES = (1, 256, 1024)
# What is less deep is noise.
TOOTH = 0.97
# As many as there, of figure 9 and of Table 2.
READS, TABLE_READS = "10000", "100000"
# Of figure 9, µs: nearly all are below the one, all below the other.
P99, LONGEST = 27, 45
# The completion timeout's range A is from here to 10 ms.
RANGE_A_US = 50
TAGS = "24"
# Shares of the processors' time that others take, and of operations that fail, from which on nothing is claimed.
OTHERS, FAILURES = 0.25, 0.001

Answer = dict[str, Any]


@dataclass
class Measured:
    """The results of `tlplab perf`, by request."""

    reads: dict[tuple[int, int], Answer] = field(default_factory=dict)
    teeth: dict[int, Answer] = field(default_factory=dict)
    latency: dict[int, Answer] = field(default_factory=dict)
    writes: dict[tuple[int, int], Answer] = field(default_factory=dict)
    software: dict[int, Answer] = field(default_factory=dict)
    """Figure 11."""
    table: dict[int, Answer] = field(default_factory=dict)


Job = tuple[Callable[[Answer], None], tuple[str, ...]]


def jobs(found: Measured, *, memory: str = "0", bar4: str = BAR4) -> list[Job]:
    """The measurements, of `memory` and of the pseudo memory at `bar4`, and the places of their results."""
    listed: list[Job] = []

    def ask(into: dict[Any, Answer], key: Any, *arguments: str) -> None:
        place = () if "-a" in arguments else ("-a", memory)
        listed.append((partial(into.__setitem__, key), (*arguments, *place)))

    for size in SIZES:
        for lanes in LANES:
            ask(found.reads, (size, lanes), "-L", f"{size}B", "-N", f"{lanes}", "--time", SECONDS)
    # Other work of the machine must not make a tooth: each is measured several times in turn, and the best is kept.
    for size in (size + more for _ in range(ROUNDS) for size in TEETH for more in (0, 16)):
        arguments = ("-L", f"{size}B", "-N", "2", "-P", "fix", "--time", BRIEFLY, "-a", memory)
        listed.append((partial(keep_best, found.teeth, size), arguments))
    for size in LATENCIES:
        ask(found.latency, size, "-L", f"{min(size, MRRS)}B", "-P", "fix", "-c", READS)
    for size in (256, 512):
        for lanes in LANES:
            ask(found.writes, (size, lanes), "-d", "write", "-L", f"{size}B", "-N", f"{lanes}", "--time", SECONDS)
    behind = ("-a", bar4, "-P", "fix")
    for size in (size + more for _ in range(ROUNDS) for size in TEETH for more in (0, 16)):
        of_software = (*behind, "-L", f"{size}B", "-q", TAGS, "--time", BRIEFLY)
        listed.append((partial(keep_best, found.software, size), of_software))
    for size in TABLE_2:
        ask(found.table, size, *behind, "-L", f"{size}B", "-c", TABLE_READS)
    return listed


def keep_best(into: dict[int, Answer], size: int, answer: Answer) -> None:
    """Keeps the faster of two."""
    if size not in into or gbps(answer) > gbps(into[size]):
        into[size] = answer


def measure(*, quiet: bool) -> tuple[Measured, Surroundings]:
    """Measures all of it. Raises `NoNamespacesError`, `CommandError`."""
    found = Measured()
    listed = jobs(found)
    before = Clocks.now()
    with laid() as wire, Bar(quiet=quiet) as bar:
        wire.start(
            wire.host, "adapter", "--local", ADAPTER, "--peer", MEMORY, "--peer", SOFTWARE, "--allow-remote", "--quiet"
        )
        wire.wait()
        wire.start(wire.device, "device", "psmem", "-l", MEMORY, "-r", ADAPTER, "--allow-remote", "--quiet")
        operations, failures = carry_out(listed, wire.perf, bar)
    # What served has ended, too, and its time is counted.
    processors = os.cpu_count() or 1
    return found, Surroundings(
        processors, Clocks.now().others_since(before) / processors, failures / max(operations, 1)
    )


def carry_out(listed: Sequence[Job], perf: Callable[..., Answer], bar: Bar) -> tuple[int, int]:
    """Measures it all; how many operations there were, and how many failed besides."""
    operations = failures = 0
    for number, (keep, arguments) in enumerate(listed):
        bar.show(number / len(listed), f"{number} of {len(listed)} measurements")
        answer = perf(*arguments)
        keep(answer)
        operations += answer["operations"]
        failures += sum(answer["errors"].values())
    return operations, failures


def gbps(answer: Answer) -> float:
    """Goodput."""
    return float(answer["bits_per_second"]) / 1e9


def microseconds(answer: Answer, what: str) -> float:
    """Of the distribution of latency."""
    return float(answer["latency_ns"][what]) / 1e3


def beside(*, quiet: bool) -> Beside:
    """The rows and figures; rows with the reason, if there can be no namespaces here, or a part fails."""
    title = "Measured on this machine"
    try:
        found, here = measure(quiet=quiet)
    except (NoNamespacesError, CommandError) as why:
        return Beside(
            title, [absent("measured, figures 7 to 11 and table 2", None, "", str(why))], [], f"Left out: {why}."
        )
    text = TEXT.format(processors=here.processors, others=100 * here.others, failures=100 * here.failures)
    return Beside(title, rows(found, here), drawings(found), text)


@dataclass(frozen=True)
class Clocks:
    """Seconds that have passed, that all processors together have worked, and those of this process and its children."""

    passed: float
    worked: float
    own: float

    @classmethod
    def now(cls) -> Clocks:
        """The present clocks. Interrupts are left out: their cause is not known."""
        user, nice, system, _, _, _, _, steal = map(int, Path("/proc/stat").read_text("ascii").split()[1:9])
        own = os.times()
        worked = (user + nice + system + steal) / os.sysconf("SC_CLK_TCK")
        return cls(time.monotonic(), worked, own.user + own.system + own.children_user + own.children_system)

    def others_since(self, before: Clocks) -> float:
        """The number of processors that worked for other programs meanwhile."""
        return max((self.worked - before.worked) - (self.own - before.own), 0.0) / (self.passed - before.passed)


@dataclass(frozen=True)
class Surroundings:
    """The circumstances on this machine."""

    processors: int
    others: float = 0.0
    """The share of the processors' time that other work took meanwhile."""
    failures: float = 0.0
    """The share of operations that failed."""

    @property
    def other(self) -> str:
        """The reason why absolute figures differ."""
        return f"another machine: both ends on {self.processors} processors, 16 threads and a card there"

    def claimed(self, row: Row) -> Row:
        """On a machine with other work meanwhile neither a reproduced nor a missed figure has a meaning; nor with failed operations."""
        if self.others > OTHERS:
            why = f"not to be told here: other work took {100 * self.others:.0f} % of the processors"
        elif self.failures > FAILURES:
            why = f"not to be told here: {100 * self.failures:.2g} % of the operations failed"
        else:
            return row
        return replace(row, verdict="not reproducible", note=why)


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
        *teeth("measured, figure 8", {size: gbps(answer) for size, answer in found.teeth.items()}, TOOTH),
        *(row for size in LATENCIES for row in latency(size, found.latency[size], here)),
        shape("measured, figure 10: 512 B to 256 B, 1 thread", long / short, "times", 0.8 < long / short < 1.5,
              "writes are cut at the largest payload: twice the data are twice the datagrams"),
        compared("measured, figure 11: most", 4.7, software, "Gb/s", 0.2, excuse=here.other),
        *teeth("measured, figure 11", {size: gbps(answer) for size, answer in found.software.items()}, TOOTH),
        *(row for size in TABLE_2 for row in line(size, found.table[size], here)),
    ]  # fmt: skip
    return [here.claimed(row) for row in listed]


def latency(size: int, answer: Answer, here: Surroundings) -> list[Row]:
    """Figure 9, of a size: its median, its tail, and the longest of the largest."""
    name, note, p99 = f"measured, figure 9, {size} B", timed(size), microseconds(answer, "p99")
    # The paper's own criterion: a root complex does not give up on the device.
    patient = (
        f"{here.other}; below {RANGE_A_US} us, where the completion timeout's range A begins"
        if p99 < RANGE_A_US
        else ""
    )
    found = [
        ranged(f"{name}: median", MEDIANS, microseconds(answer, "p50"), "us", note, here.other),
        bounded(f"{name}: p99", P99, p99, "us", note, patient),
    ]
    if size == max(LATENCIES):
        found.append(compared(f"{name}: max", LONGEST, microseconds(answer, "max"), "us", 0.2, note, here.other))
    return found


def line(size: int, answer: Answer, here: Surroundings) -> list[Row]:
    """A line of Table 2, and whether a root complex would wait so long."""
    name, p99 = f"measured, table 2, {size} B", microseconds(answer, "p99")
    asked = {"min": "min", "median": "p50", "max": "max", "stddev": "stddev"}
    return [
        *(
            compared(f"{name}: {what}", published, microseconds(answer, asked[what]), "us", 0.2, excuse=here.other)
            for what, published in TABLE_2[size].items()
        ),
        shape(f"{name}: p99", p99, "us", p99 < RANGE_A_US, f"below {RANGE_A_US} us, where the completion timeout's range A begins"),
    ]  # fmt: skip


def drawings(found: Measured) -> list[Curves]:
    """Figures 7, 8, 10 and 11."""
    threads = np.array(LANES)

    def by_threads(measured: dict[tuple[int, int], Answer]) -> tuple[Line, ...]:
        sizes = sorted({size for size, _ in measured})
        return tuple((f"{size} B", threads, np.array([gbps(measured[size, n]) for n in LANES])) for size in sizes)

    def by_size(name: str, measured: dict[int, Answer]) -> tuple[Line, ...]:
        return ((name, np.array(sorted(measured)), np.array([gbps(measured[size]) for size in sorted(measured)])),)

    return [
        Curves("Figure 7, measured here: reads", "threads", "Gb/s", by_threads(found.reads)),
        Curves("Figure 8, measured here", "read, bytes", "Gb/s", by_size("2 threads", found.teeth)),
        Curves("Figure 10, measured here: writes", "threads", "Gb/s", by_threads(found.writes)),
        Curves("Figure 11, measured here: reads of software", "read, bytes", "Gb/s", by_size(f"{TAGS} tags", found.software)),
    ]  # fmt: skip


TEXT = (
    "tlplab perf, tlplab adapter and tlplab device psmem between two network namespaces joined by a virtual cable, on {processors} processors for both "
    "ends. Meanwhile other work took {others:.0f} % of the processors, and {failures:.2f} % of the operations failed. These figures are of the machine "
    "and the moment."
)
