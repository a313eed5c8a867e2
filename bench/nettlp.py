"""`make bench-nettlp`: the rate of NetTLP between two network namespaces, compared with the kernel's own limit in the same run.

`tlplab perf` in one namespace reads from `tlplab adapter` in the other; each end is bound to a processor. With it, turn by turn, run
bench/peer/bare.c and bare_xdp.c: the same datagrams in the same pattern, with nothing done to them, which is as fast as this kernel can be.
With `--library FOLDER`, a checkout of the published library (or `TLPLAB_LIBTLP`), its tlpperf is built and reads from the same adapter, with 1, 2 and 4 threads, too.
Needs root; every figure is the median of the turns. Prints a table and writes nettlp.json, a list like that of run.py.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from run import ROOT, Result, show

from studies.nettlp import library as published
from studies.nettlp.wire import CommandError
from tlplab.nettlp.cable import End, cable

HERE = Path(__file__).resolve().parent
TLPLAB = [sys.executable, "-m", "tlplab"]
# A NetTLP header and the header of a CplD, which a read of N bytes is answered with.
ANSWER_HEADERS = 6 + 12
# What the published library reaches on a machine of this kind with its completer's needless sleep removed, thousand reads per second.
PUBLISHED = {256: 54.0, 512: 28.0, 1024: 19.0}
BARE = "bare datagrams"
PROGRAMS = ("bare", "bare_xdp")
LIBRARY = "published library"
# Of the adapter: what is read, and that it looks at everything that comes.
MEMORY = ["--memory", "16MiB", "--rate", "100000000", "--quiet"]
# What both programs read, one address behind the other.
REGION = ("0x1000", 1 << 20)
Ends = tuple[End, End]


@dataclass(frozen=True)
class Case:
    """One measurement."""

    name: str
    length: int
    outstanding: int = 1
    transport: str = "udp"
    spin: bool = False
    processors: tuple[int | str, int | str] = (0, 0)
    """Of the reader and of the adapter, as taskset has them."""
    threads: int = 1
    library_only: bool = False
    """True if the case is measured only together with the published library."""
    rate: float = 0.0
    """Thousand reads per second that are wanted."""
    p50: float | None = None
    p99: float | None = None
    cpu: float | None = None


THREADS = (1, 2, 4)
CASES = [
    *(
        Case(f"one outstanding in each of {threads} threads, asleep, UDP sockets, 256 B", 256, threads=threads, processors=("0,1", "0,1"), library_only=True)
        for threads in THREADS
    ),
    *(
        Case(f"one outstanding, asleep, one processor, UDP sockets, {length} B", length, rate=rate, p50=15.0 if length == 256 else None, p99=25.0 if length == 256 else None)
        for length, rate in PUBLISHED.items()
    ),
    Case("one outstanding, busy-polling, two processors, UDP sockets, 256 B", 256, spin=True, processors=(0, 1), rate=110.0, p50=9.0),
    Case("one outstanding, busy-polling, two processors, XDP sockets, 256 B", 256, transport="xdp", spin=True, processors=(0, 1), rate=110.0, p50=9.0),
    Case("128 outstanding, two processors, UDP sockets, 256 B", 256, 128, processors=(0, 1), rate=200.0),
    Case("128 outstanding, two processors, UDP sockets, 1024 B", 1024, 128, processors=(0, 1), rate=200.0),
    Case("128 outstanding, two processors, packet sockets, 256 B", 256, 128, "packet", processors=(0, 1)),
    Case("128 outstanding, two processors, packet sockets, 1024 B", 1024, 128, "packet", processors=(0, 1)),
    Case("128 outstanding, two processors, XDP sockets, 256 B", 256, 128, "xdp", processors=(0, 1), rate=400.0, cpu=2.5),
    Case("128 outstanding, two processors, XDP sockets, 1024 B", 1024, 128, "xdp", processors=(0, 1), rate=200.0, cpu=2.5),
]  # fmt: skip


@dataclass(frozen=True)
class Figures:
    """The figures of one measurement: thousands per second, microseconds."""

    rate: float
    cpu: float
    other_cpu: float
    p50: float | None = None
    p99: float | None = None


def at(end: End, processor: int | str, command: list[str]) -> list[str]:
    """A command at one end, bound to a processor."""
    return end.command(["taskset", "-c", str(processor), *command])


def ask(command: list[str]) -> str:
    """Runs a command; its output."""
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise SystemExit(f"bench: {' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


@contextlib.contextmanager
def serving(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A command that goes on."""
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def processor_time(process: int) -> float:
    """Seconds that a process and its threads were on a processor."""
    times = [task.read_text().split()[0] for task in Path(f"/proc/{process}/task").glob("*/schedstat")]
    return sum(map(int, times)) / 1e9


def ours(ends: Ends, case: Case, seconds: float) -> tuple[Figures, str]:
    """Our end points."""
    here, there = ends
    limits = ["--mps", f"{max(case.length, 256)}B", "--mrrs", f"{max(case.length, 512)}B"]
    way = ["--transport", case.transport, "--allow-remote", *limits, *(["--spin"] if case.spin else [])]
    adapter = [*TLPLAB, "adapter", "-l", there.address, "--peer", f"{here.address}=1b:00.0", *MEMORY, *way]
    perf = [*TLPLAB, "perf", "-l", here.address, "-r", there.address, "-b", "1b:00.0", "-a", REGION[0], "-s", f"{REGION[1]}", "-L", f"{case.length}B", "-N", str(case.threads), "-q", str(case.outstanding), "--json", "-", "--quiet", *way]  # fmt: skip
    with serving(at(there, case.processors[1], adapter)) as process:
        wait_for_adapter(ends, case, adapter)
        before = processor_time(process.pid)
        report = json.loads(ask(at(here, case.processors[0], [*perf, "--time", str(seconds)])))
        spent = processor_time(process.pid) - before
    latency = report["latency_ns"]
    figures = Figures(
        report["operations_per_second"] / 1e3, report["cpu_ns_per_operation"] / 1e3, spent * 1e6 / report["operations"],
        latency["p50"] / 1e3, latency["p99"] / 1e3,
    )  # fmt: skip
    return figures, " ".join(["tlplab", *perf[len(TLPLAB) :]])


def wait_for_adapter(ends: Ends, case: Case, adapter: list[str]) -> None:
    """Until it answers."""
    here, there = ends
    question = [*TLPLAB, "cfg", "read", "-l", here.address, "-r", there.address, "-a", "0", "--allow-remote"]
    for _ in range(20):
        command = at(here, case.processors[0], question)
        if subprocess.run(command, cwd=ROOT, check=False, capture_output=True).returncode == 0:
            return
        time.sleep(0.2)
    raise SystemExit(f"bench: the adapter does not answer; its command shows the reason: {' '.join(adapter)}")


def bare(ends: Ends, case: Case, folder: str, seconds: float) -> Figures:
    """The same datagrams with nothing done to them."""
    here, there = ends
    ports = min(case.outstanding, 64)
    what = ["spin" if case.spin else "sleep", str(case.length + ANSWER_HEADERS), str(ports), str(case.outstanding), str(seconds)]  # fmt: skip
    xdp = case.transport == "xdp"
    program, kind = f"{folder}/{PROGRAMS[xdp]}", [] if xdp else [case.transport]
    serve = [program, "serve", *kind, *what, there.address, here.address, there.interface]
    with serving(at(there, case.processors[1], serve)) as process:
        time.sleep(0.2)
        before = processor_time(process.pid)
        asking = [program, "ask", *kind, *what, here.address, there.address, here.interface]
        report = json.loads(ask(at(here, case.processors[0], asking)))
        spent = processor_time(process.pid) - before
    return Figures(report["rate"] / 1e3, report["cpu_us"], spent * 1e6 / max(report["done"], 1))


def library(ends: Ends, case: Case, program: Path, seconds: float) -> Figures | None:
    """The published library's reads from our adapter; it has one under way, sleeps, and asks for 512 bytes at most."""
    if case.outstanding > 1 or case.spin or case.length > 512:
        return None
    here, there = ends
    adapter = [*TLPLAB, "adapter", "-l", there.address, "--peer", f"{here.address}=1b:00.0", *MEMORY, "--allow-remote"]
    read = published.arguments(here.address, there.address, "1b:00", "read", REGION, case.length)
    perf = [str(program), *read, "-N", str(case.threads), "-t", str(max(3, round(seconds) + 1))]
    with serving(at(there, case.processors[1], adapter)):
        wait_for_adapter(ends, case, adapter)
        # The mean of its seconds, as our rate is one over all of the time.
        return Figures(published.run(at(here, case.processors[0], perf)).rate / 1e3, 0, 0)


@dataclass
class Turns:
    """The measurements of a case, turn by turn."""

    case: Case
    command: str
    ours: list[Figures]
    bare: list[Figures]
    library: list[Figures]

    def rows(self) -> Iterator[Result]:
        """All rows."""
        case = self.case
        yield self.row("reads", "k/s", "rate", case.rate or None, least=True)
        if self.library:
            mine, theirs = (statistics.median(f.rate for f in of) for of in (self.ours, self.library))
            name = f"{case.name}: reads from the same adapter"
            # Neighbours in time, so that what else the machine did meanwhile is in both.
            ratios = sorted(a.rate / b.rate for a, b in zip(self.ours, self.library, strict=False))
            ratio = statistics.median(ratios)
            said = f"ratios of neighbouring turns from {ratios[0]:.2f} to {ratios[-1]:.2f}"
            rates = sorted(figures.rate for figures in self.ours)
            yield Result(
                name, "k/s", mine, theirs, LIBRARY, ratio, self.command, [rates[0], rates[-1]], "ratio at least 1", ratio >= 1, said
            )  # fmt: skip
        if case.library_only:
            return
        if case.p50:
            yield self.row("p50", "µs", "p50", case.p50)
        if case.p99:
            yield self.row("p99", "µs", "p99", case.p99)
        if not case.spin:
            yield self.row("processor time of the reader", "µs", "cpu", case.cpu)
            yield self.row("processor time of the adapter", "µs", "other_cpu", case.cpu)

    def row(self, what: str, unit: str, figure: str, target: float | None, least: bool = False) -> Result:
        """One of the figures, as the medians of both sides."""
        runs = sorted(getattr(figures, figure) for figures in self.ours)
        limits = [limit for figures in self.bare if (limit := getattr(figures, figure)) is not None]
        mine, limit = statistics.median(runs), statistics.median(limits) if limits else None
        said = None if target is None else f"{'at least' if least else 'at most'} {target:g}"
        met = None if target is None else (mine >= target if least else mine <= target)
        ratio = mine / limit if limit else None
        peer = BARE if limit else None
        return Result(
            f"{self.case.name}: {what}", unit, mine, limit, peer, ratio, self.command, [runs[0], runs[-1]], said, met
        )


def measure(ends: Ends, case: Case, programs: str, folder: Path | None, turns: int, seconds: float) -> Turns:
    """The turns of a case: each program once in each."""
    done = Turns(case, "", [], [], [])
    for _ in range(turns):
        figures, done.command = ours(ends, case, seconds)
        done.ours.append(figures)
        if not case.library_only:
            done.bare.append(bare(ends, case, programs, seconds))
        if folder is not None and (found := library(ends, case, folder, seconds)):
            done.library.append(found)
    return done


def main() -> int:
    """Measures everything."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=5, help="turns of each program; the median counts")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a turn")
    parser.add_argument("--only", metavar="WORD", default="", help="only the cases with WORD in their name")
    known = os.environ.get("TLPLAB_LIBTLP")
    parser.add_argument(
        "--library",
        type=Path,
        metavar="FOLDER",
        default=known and Path(known),
        help="a checkout of the published library; TLPLAB_LIBTLP by default",
    )
    parser.add_argument("-o", "--output", type=Path, default=HERE / "nettlp.json")
    options = parser.parse_args()
    if os.geteuid() or shutil.which("ip") is None or shutil.which("taskset") is None:
        print("bench: needs root, `ip` and `taskset`", file=sys.stderr)
        return 2
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as folder, cable() as ends:
        for program in PROGRAMS:
            source = str(HERE / f"peer/{program}.c")
            subprocess.run(["cc", "-O2", "-o", f"{folder}/{program}", source], check=True)
        try:
            built = None if options.library is None else published.build(options.library, Path(folder))
        except CommandError as error:
            raise SystemExit(f"bench: --library {error}") from None
        for case in CASES:
            if options.only in case.name and not (case.library_only and built is None):
                done = measure(ends, case, folder, built, options.turns, options.seconds)
                rows = list(done.rows())
                show(rows)
                results += rows
    text = json.dumps([asdict(r) for r in results], indent=2, ensure_ascii=False) + "\n"
    options.output.write_text(text, encoding="utf-8")
    print(f"written to {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
