"""`python bench/nettlp.py`: how fast NetTLP is between two network namespaces, beside the kernel's own limit in the same run.

`tlplab perf` in one namespace reads from `tlplab adapter` in the other; each end is bound to a processor. Beside it runs bench/peer/bare.c: the
same datagrams in the same pattern, with nothing done to them, which is as fast as this kernel can be. With `--library FOLDER`, where
the published library was built, its tlpperf reads from the same adapter. Every row is the best of several turns, which tells least about whoever
else uses the machine. Needs root; prints a table and writes a list like that of run.py.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from run import ROOT, Result, show

HERE = Path(__file__).resolve().parent
TLPLAB = [sys.executable, "-m", "tlplab"]
# A NetTLP header and the header of a CplD, which a read of N bytes is answered with.
ANSWER_HEADERS = 6 + 12
# What the published library reaches on a machine of this kind with its completer's needless sleep removed, thousand reads per second.
PUBLISHED = {256: 54.0, 512: 28.0, 1024: 19.0}
BARE = "bare datagrams"
LIBRARY = "published library"


@dataclass(frozen=True)
class Case:
    """One measurement."""

    name: str
    length: int
    outstanding: int = 1
    transport: str = "udp"
    spin: bool = False
    processors: tuple[int, int] = (0, 0)
    rate: float = 0.0
    """Thousand reads per second that are wanted."""
    p50: float | None = None
    p99: float | None = None
    cpu: float | None = None


CASES = [
    *(
        Case(f"one outstanding, asleep, one processor, {length} B", length, rate=rate, p50=15.0 if length == 256 else None, p99=25.0 if length == 256 else None)
        for length, rate in PUBLISHED.items()
    ),
    Case("one outstanding, busy-polling, two processors, 256 B", 256, spin=True, processors=(0, 1), rate=110.0, p50=9.0),
    Case("64 outstanding, UDP sockets, two processors, 256 B", 256, 64, processors=(0, 1), rate=200.0),
    Case("64 outstanding, packet sockets, two processors, 256 B", 256, 64, "packet", processors=(0, 1), rate=400.0, cpu=2.5),
    Case("64 outstanding, packet sockets, two processors, 1024 B", 1024, 64, "packet", processors=(0, 1), rate=200.0, cpu=2.5),
]  # fmt: skip


@dataclass(frozen=True)
class Figures:
    """What was measured: thousand per second, microseconds."""

    rate: float
    cpu: float
    other_cpu: float
    p50: float | None = None
    p99: float | None = None


class Cable:
    """Two namespaces with a cable between them."""

    addresses = ("10.77.0.1", "10.77.0.2")
    interfaces = ("tlp0", "tlp1")

    def __init__(self) -> None:
        """Lays it."""
        self.names = [f"tlpbench{os.getpid()}{end}" for end in "ab"]

    def __enter__(self) -> Cable:
        (a, b), (here, there) = self.names, self.interfaces
        for name in self.names:
            self.ip("netns", "add", name)
        self.ip("link", "add", here, "netns", a, "type", "veth", "peer", "name", there, "netns", b)
        for name, interface, address in zip(self.names, self.interfaces, self.addresses, strict=True):
            self.ip("-n", name, "address", "add", f"{address}/24", "dev", interface)
            self.ip("-n", name, "link", "set", interface, "up")
            self.ip("-n", name, "link", "set", "lo", "up")
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    @staticmethod
    def ip(*arguments: str) -> None:
        """Runs `ip`."""
        subprocess.run(["ip", *arguments], check=True)

    def command(self, end: int, processor: int, command: list[str]) -> list[str]:
        """A command at one end, bound to a processor."""
        return ["ip", "netns", "exec", self.names[end], "taskset", "-c", str(processor), *command]

    def ask(self, end: int, processor: int, command: list[str]) -> str:
        """Runs a command; what it printed."""
        done = subprocess.run(
            self.command(end, processor, command), cwd=ROOT, check=False, capture_output=True, text=True, timeout=120
        )
        if done.returncode:
            raise SystemExit(f"bench: {' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
        return done.stdout

    @contextlib.contextmanager
    def serving(self, processor: int, command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
        """A command that goes on at the other end."""
        process = subprocess.Popen(
            self.command(1, processor, command), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
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


def ours(cable: Cable, case: Case, seconds: float) -> tuple[Figures, str]:
    """Our end points."""
    here, there = cable.addresses
    limits = ["--mps", f"{max(case.length, 256)}B", "--mrrs", f"{max(case.length, 512)}B"]
    way = ["--transport", case.transport, "--allow-remote", *limits, *(["--spin"] if case.spin else [])]
    adapter = [*TLPLAB, "adapter", "-l", there, "--peer", f"{here}=1b:00.0", "--memory", "16MiB", "--rate", "100000000", "--quiet", *way]  # fmt: skip
    perf = [*TLPLAB, "perf", "-l", here, "-r", there, "-b", "1b:00.0", "-L", f"{case.length}B", "-q", str(case.outstanding), "--json", "-", "--quiet", *way]  # fmt: skip
    with cable.serving(case.processors[1], adapter) as serving:
        wait_for_adapter(cable, case)
        before = processor_time(serving.pid)
        report = json.loads(cable.ask(0, case.processors[0], [*perf, "--time", str(seconds)]))
        spent = processor_time(serving.pid) - before
    latency = report["latency_ns"]
    figures = Figures(
        report["operations_per_second"] / 1e3, report["cpu_ns_per_operation"] / 1e3, spent * 1e6 / report["operations"],
        latency["p50"] / 1e3, latency["p99"] / 1e3,
    )  # fmt: skip
    return figures, " ".join(["tlplab", *perf[3:]])


def wait_for_adapter(cable: Cable, case: Case) -> None:
    """Until it answers."""
    here, there = cable.addresses
    question = [*TLPLAB, "cfg", "read", "-l", here, "-r", there, "-a", "0", "--allow-remote"]
    for _ in range(20):
        command = cable.command(0, case.processors[0], question)
        if subprocess.run(command, cwd=ROOT, check=False, capture_output=True).returncode == 0:
            return
        time.sleep(0.2)
    raise SystemExit("bench: the adapter does not answer")


def bare(cable: Cable, case: Case, program: str, seconds: float) -> Figures:
    """The same datagrams with nothing done to them."""
    (here, there), ends = cable.addresses, cable.interfaces
    ports = min(case.outstanding, 64)
    what = [case.transport, "spin" if case.spin else "sleep", str(case.length + ANSWER_HEADERS), str(ports), str(case.outstanding), str(seconds)]  # fmt: skip
    with cable.serving(case.processors[1], [program, "serve", *what, there, here, ends[1]]) as serving:
        time.sleep(0.2)
        before = processor_time(serving.pid)
        report = json.loads(cable.ask(0, case.processors[0], [program, "ask", *what, here, there, ends[0]]))
        spent = processor_time(serving.pid) - before
    return Figures(report["rate"] / 1e3, report["cpu_us"], spent * 1e6 / max(report["done"], 1))


def library(cable: Cable, case: Case, folder: Path, seconds: float) -> Figures | None:
    """The published library's reads from our adapter; it has one under way, sleeps, and asks for 512 bytes at most."""
    if case.outstanding > 1 or case.spin or case.length > 512:
        return None
    here, there = cable.addresses
    adapter = [*TLPLAB, "adapter", "-l", there, "--peer", f"{here}=1b:00.0", "--memory", "16MiB", "--rate", "100000000", "--quiet", "--allow-remote"]  # fmt: skip
    perf = [str(folder / "tlpperf"), "-r", there, "-l", here, "-b", "1b:00", "-d", "read", "-a", "0x1000", "-s", "1048576", "-L", str(case.length), "-N", "1", "-t", str(max(2, round(seconds)))]  # fmt: skip
    with cable.serving(case.processors[1], adapter):
        wait_for_adapter(cable, case)
        done = subprocess.run(cable.command(0, case.processors[0], perf), check=False, capture_output=True, text=True, timeout=60)  # fmt: skip
    rates = [float(rate) for rate in re.findall(r"([\d.]+) *tps", done.stdout)]
    return Figures(max(rates) / 1e3, 0, 0) if rates else None


def measure(cable: Cable, case: Case, program: str, folder: Path | None, turns: int, seconds: float) -> list[Result]:
    """All rows of a case."""
    mine, limits, theirs, command = [], [], [], ""
    for _ in range(turns):
        figures, command = ours(cable, case, seconds)
        mine.append(figures)
        limits.append(bare(cable, case, program, seconds))
        if folder is not None and (found := library(cable, case, folder, seconds)):
            theirs.append(found)
    best, limit = max(mine, key=lambda f: f.rate), max(limits, key=lambda f: f.rate)

    def row(what: str, unit: str, ours: float, peer: float | None, target: float | None, most: bool) -> Result:
        met = None if target is None else (ours <= target if most else ours >= target)
        said = None if target is None else f"{'at most' if most else 'at least'} {target:g}"
        ratio = None if not peer else ours / peer
        runs = [f.rate for f in mine] if unit == "k/s" else []
        return Result(f"{case.name}: {what}", unit, ours, peer, BARE if peer else None, ratio, command, runs, said, met)

    rows = [row("reads", "k/s", best.rate, limit.rate, case.rate or None, most=False)]
    if theirs:
        other = max(figures.rate for figures in theirs)
        rows.append(
            Result(
                f"{case.name}: reads from the same adapter",
                "k/s",
                best.rate,
                other,
                LIBRARY,
                best.rate / other,
                command,
                [],
            )
        )
    fastest = min(mine, key=lambda f: f.p50 or 0)
    for what, value, target in (("p50", fastest.p50, case.p50), ("p99", fastest.p99, case.p99)):
        if target is not None and value is not None:
            rows.append(row(what, "µs", value, None, target, most=True))
    if not case.spin:
        rows.append(row("processor time of the reader", "µs", min(f.cpu for f in mine), limit.cpu, case.cpu, most=True))
        spent = min(f.other_cpu for f in mine)
        rows.append(row("processor time of the adapter", "µs", spent, limit.other_cpu, case.cpu, most=True))
    return rows


def main() -> int:
    """Measures everything."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=5, help="turns of each program; the best counts")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a turn")
    parser.add_argument("--only", metavar="WORD", default="", help="only the cases with WORD in their name")
    parser.add_argument("--library", type=Path, metavar="FOLDER", help="where the published library was built: tlpperf")
    parser.add_argument("-o", "--output", type=Path, default=HERE / "nettlp.json")
    options = parser.parse_args()
    if os.geteuid() or shutil.which("ip") is None or shutil.which("taskset") is None:
        print("bench: needs root, `ip` and `taskset`", file=sys.stderr)
        return 2
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as folder, Cable() as cable:
        program = f"{folder}/bare"
        subprocess.run(["cc", "-O2", "-o", program, str(HERE / "peer/bare.c")], check=True)
        for case in CASES:
            if options.only in case.name:
                rows = measure(cable, case, program, options.library, options.turns, options.seconds)
                show(rows)
                results += rows
    text = json.dumps([asdict(r) for r in results], indent=2, ensure_ascii=False) + "\n"
    options.output.write_text(text, encoding="utf-8")
    print(f"written to {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
