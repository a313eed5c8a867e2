"""`make bench`: the speed and memory of the simulator, compared with its peer on the same topology in the same run.

One process at a time on one core, CPU seconds of the system's own accounting (getrusage), the median of several runs that take
turns with the peer's. Prints a table and writes results.json: a list of {name, unit, ours, peer, peer_name, ratio, command},
with the least and greatest of the runs, the target, and a note where one is needed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PEER_PYTHON = HERE / ".venv/bin/python"
PEER = "cocotbext-pcie 0.2.16"
FABRIC = "end point – switch – root, gen3 x8"
# The peer's operations per run; the peer takes some seconds for them.
LOADS = {"write": ("saturated DMA writes of 256 B", 8_000), "read": ("saturated DMA reads of 512 B", 2_500)}
FIDELITIES = {"payload": ("payload-carrying", 1e6), "length": ("length-only", 2e6)}
MIB = 1 << 20


@dataclass
class Result:
    """One line of results.json."""

    name: str
    unit: str
    ours: float
    peer: float | None
    peer_name: str | None
    ratio: float | None
    command: str
    runs: list[float]
    target: str | None = None
    met: bool | None = None
    note: str | None = None


@dataclass
class Run:
    """The figures that a program printed, and the CPU seconds that it took."""

    output: dict[str, float]
    cpu: float


def run(command: list[str]) -> Run:
    """Runs a program that prints one line of JSON."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, cwd=ROOT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"bench: {' '.join(command)}: exit status {process.returncode}")
        out.seek(0)
        return Run(json.loads(out.read()), usage.ru_utime + usage.ru_stime)


def build() -> dict[str, str]:
    """Builds the programs that are measured; where each of them is."""
    command = ["cargo", "build", "--release", "--quiet", "--message-format=json-render-diagnostics"]
    command += ["-p", "tlplab-fabric", "-p", "tlplab-wire"]
    for name in ("hops", "queue", "codec"):
        command += ["--example", name]
    lines = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    built = [message for message in map(json.loads, lines) if message.get("executable")]
    return {message["target"]["name"]: message["executable"] for message in built}


def why_no_peer() -> str | None:
    """The reason why the peer cannot run here; None if it can."""
    if not PEER_PYTHON.exists():
        return "the peer is not installed: `make bench` does it"
    if not shutil.which("iverilog"):
        return "the peer needs an HDL simulator: apt-get install iverilog"
    return None


def peer(*arguments: str) -> Callable[[], Run]:
    """A run of the peer, which reports its CPU time without the start of the simulator and the enumeration."""

    def go() -> Run:
        done = run([str(PEER_PYTHON), *arguments])
        return Run(done.output, done.output["cpu"])

    return go


def take_turns(
    ours: Callable[[], float], theirs: Callable[[], float] | None, repeats: int
) -> tuple[list[float], float | None]:
    """The figures of our runs, sorted, and the median of the peer's."""
    mine, other = [], []
    for i in range(repeats):
        mine.append(ours())
        if theirs and i < 3:
            other.append(theirs())
    return sorted(mine), statistics.median(other) if other else None


def compare(
    name: str, unit: str, runs: list[float], other: float | None, other_name: str | None, command: str
) -> Result:
    """A line with a ratio, where there is a peer."""
    ours = statistics.median(runs)
    ratio = ours / other if other else None
    return Result(name, unit, ours, other, other_name if other else None, ratio, command, [runs[0], runs[-1]])


def hops(programs: dict[str, str], repeats: int, no_peer: str | None) -> list[Result]:
    """TLP hops per CPU-second: a hop is a TLP that goes over a link for the first time."""
    results: list[Result] = []
    for op, (load, operations) in LOADS.items():
        slower = peer("bench/peer/run.py", op, str(operations)) if not no_peer else None
        theirs = None
        for fidelity, (words, target) in FIDELITIES.items():
            arguments = [op, fidelity, "2000000"]

            def ours(arguments: list[str] = arguments) -> float:
                done = run([programs["hops"], *arguments])
                return done.output["hops"] / done.cpu

            def peers(slower: Callable[[], Run] | None = slower) -> float:
                assert slower
                done = slower()
                return done.output["hops"] / done.cpu

            runs, measured = take_turns(ours, peers if slower and theirs is None else None, repeats)
            # The peer has one fidelity only; it is measured once.
            theirs = theirs if theirs is not None else measured
            command = f"cargo run --release -p tlplab-fabric --example hops -- {' '.join(arguments)}"
            result = compare(f"{load}, {words}, {FABRIC}", "TLP hops/CPU-s", runs, theirs, PEER, command)
            fast = result.ours >= target
            result.target = f"≥ {target / 1e6:.0f} M/CPU-s, ≥ 200 x the peer"
            result.met = fast and result.ratio >= 200 if result.ratio else None if fast else False
            result.note = no_peer
            results.append(result)
    return results


def large_fabric(programs: dict[str, str], repeats: int) -> list[Result]:
    """The rate of hops of 224 devices, 14 below each of 16 switches, in turns with that of two devices below one."""

    def rate(devices: int) -> float:
        done = run([programs["hops"], "write", "length", "1000000", str(devices)])
        return done.output["hops"] / done.cpu

    runs, two = take_turns(lambda: rate(224), lambda: rate(2), repeats)
    command = "cargo run --release -p tlplab-fabric --example hops -- write length 1000000 224"
    name = "saturated DMA writes of 256 B, length-only, 224 end points below 16 switches"
    result = compare(name, "TLP hops/CPU-s", runs, two, "2 end points below 1 switch", command)
    result.target = "≥ 0.7 x the rate of 2"
    result.met = result.ratio is not None and result.ratio >= 0.7
    return [result]


def instructions(programs: dict[str, str], op: str, fidelity: str, hop_count: int) -> tuple[float, float, str]:
    """(hops, instructions in user mode, counter): the processor's counter, or valgrind where a machine has none."""
    command = [programs["hops"], op, fidelity, str(hop_count)]
    if shutil.which("perf"):
        done = subprocess.run(
            ["perf", "stat", "-x,", "-e", "instructions:u", *command], cwd=ROOT, capture_output=True, text=True
        )
        if done.returncode == 0 and (match := re.match(r"(\d+),", done.stderr)):
            return json.loads(done.stdout)["hops"], float(match[1]), "perf stat -e instructions:u"
    if not shutil.which("valgrind"):
        raise LookupError("neither hardware counters nor valgrind: apt-get install valgrind")
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    done = subprocess.run([*valgrind, *command], cwd=ROOT, capture_output=True, text=True, check=True)
    match = re.search(r"Collected : (\d+)", done.stderr)
    if not match:
        raise LookupError(f"callgrind printed no count: {done.stderr[-300:]}")
    return json.loads(done.stdout)["hops"], float(match[1]), "valgrind --tool=callgrind"


def instructions_per_hop(programs: dict[str, str]) -> list[Result]:
    """Two runs of different length, so that the start is not counted."""
    results: list[Result] = []
    for op, (load, _) in LOADS.items():
        for fidelity, (words, _) in FIDELITIES.items():
            try:
                short, long = (instructions(programs, op, fidelity, n) for n in (20_000, 120_000))
            except LookupError as why:
                print(f"bench: no instructions per hop: {why}", file=sys.stderr)
                return results
            figure = (long[1] - short[1]) / (long[0] - short[0])
            command = f"{long[2]} hops {op} {fidelity} 120000, less the same with 20000"
            name = f"{load}, {words}: instructions per hop"
            results.append(Result(name, "instructions", figure, None, None, None, command, [figure], note=long[2]))
    return results


def codec(programs: dict[str, str], repeats: int) -> list[Result]:
    """Reading and writing a memory write of 256 B, and its LCRC."""
    results: list[Result] = []
    lines = {
        "parse": ("parse a MWr of 256 B", 20_000),
        "emit": ("emit a MWr of 256 B", 40_000),
        "lcrc": ("LCRC of a MWr of 256 B", 1_000_000),
    }
    for what, (name, count) in lines.items():
        unit, key, scale = ("GB/CPU-s", "bytes", 1e-9) if what == "lcrc" else ("TLPs/CPU-s", "count", 1.0)

        def ours(what: str = what, key: str = key, scale: float = scale) -> float:
            done = run([programs["codec"], what, "10000000"])
            return done.output[key] * scale / done.cpu

        def theirs(what: str = what, count: int = count, key: str = key, scale: float = scale) -> float:
            done = peer("bench/peer/codec.py", what, str(count))()
            return done.output[key] * scale / done.cpu

        runs, other = take_turns(ours, theirs if PEER_PYTHON.exists() else None, repeats)
        command = f"cargo run --release -p tlplab-wire --example codec -- {what} 10000000"
        other_name = "zlib.crc32 (Python)" if what == "lcrc" else PEER
        result = compare(name, unit, runs, other, other_name, command)
        if what == "lcrc" and other:
            result.note = "the peer's figure includes a call from Python for every TLP"
        results.append(result)
    return results


def event_queue(programs: dict[str, str], repeats: int) -> list[Result]:
    """Pop the next event and push another, with so many pending."""
    results: list[Result] = []
    for pending in (16, 1_000, 100_000):

        def speed(which: str, pending: int = pending) -> float:
            done = run([programs["queue"], which, str(pending), "10000000"])
            return done.output["count"] / done.cpu

        runs, other = take_turns(lambda: speed("ours"), lambda: speed("std"), repeats)
        command = f"cargo run --release -p tlplab-fabric --example queue -- ours {pending} 10000000"
        name = f"event queue, {pending} pending"
        results.append(compare(name, "events/CPU-s", runs, other, "std::collections::BinaryHeap", command))
    return results


def memory(programs: dict[str, str], tlps: int) -> Result:
    """Growth of the resident memory over a run; every TLP makes two hops."""
    done = run([programs["hops"], "write", "length", str(2 * tlps)])
    grown = (done.output["resident_at_end"] - done.output["resident_at_start"]) / MIB
    command = f"cargo run --release -p tlplab-fabric --example hops -- write length {2 * tlps}"
    name = f"memory at the end of {tlps:.0e} TLPs, less memory at the start"
    result = Result(name, "MiB", grown, None, None, None, command, [grown], "≤ 64 MiB", grown <= 64)
    result.note = f"{done.output['transactions']:.0f} transactions in {done.cpu:.0f} CPU-s"
    return result


def dd() -> list[Result]:
    """512 MiB of dd without credits, run once: 4.2 million writes, each answered, over two links."""
    program = ROOT / ".venv/bin/tlplab"
    if not program.exists():
        print("bench: no dd: `make build` makes the program", file=sys.stderr)
        return []
    arguments = [
        "run",
        "studies/gem5/dd.toml",
        "--set",
        "load.dd.size=512MiB",
        "--no-verdict",
        "--quiet",
        "--json",
        "-",
    ]
    cpu = run([str(program), *arguments]).cpu
    name = "512 MiB of dd in drop-and-replay, length-only"
    command = f"tlplab {' '.join(arguments)}"
    return [Result(name, "CPU-s", cpu, None, None, None, command, [cpu], "< 20 CPU-s", cpu < 20)]


def grid() -> list[Result]:
    """The closed forms over a million points, from numpy to numpy."""
    program = ROOT / ".venv/bin/python"
    if not program.exists():
        print("bench: no grid: `make build` makes the program", file=sys.stderr)
        return []
    seconds = run([str(program), "bench/grid.py"]).output["seconds"]
    name = "closed forms: bandwidth at 10^6 points"
    command = "python bench/grid.py"
    return [Result(name, "s", seconds, None, None, None, command, [seconds], "< 1 s", seconds < 1)]


def points() -> list[Result]:
    """Bandwidths of reads and writes on the simulator."""
    program = ROOT / ".venv/bin/python"
    if not program.exists():
        print("bench: no points: `make build` makes the program", file=sys.stderr)
        return []
    rate = run([str(program), "bench/points.py"]).output["points_per_second"]
    name = "tlplab bench: bandwidth points, 64 B to 2 KiB, gen3 x8, NFP-6000"
    command = "python bench/points.py"
    return [Result(name, "points/CPU-s", rate, None, None, None, command, [rate], "≥ 10 points/CPU-s", rate >= 10)]


def number(value: float | None) -> str:
    """Four figures, in millions or thousands where there are many."""
    if value is None:
        return "–"
    if value >= 1e6:
        return f"{value / 1e6:.4g} M"
    return f"{value / 1e3:.4g} k" if value >= 1e4 else f"{value:.4g}"


def show(results: list[Result]) -> None:
    """The table."""
    for result in results:
        verdict = "" if result.met is None else "  met" if result.met else "  MISSED"
        print(f"{result.name}")
        line = f"    {number(result.ours)} {result.unit}"
        if result.peer is not None:
            line += f"; {result.peer_name}: {number(result.peer)}; ratio {number(result.ratio)}"
        if result.target:
            line += f"; target {result.target}:{verdict}"
        print(line + (f" ({result.note})" if result.note else ""))


def main() -> int:
    """Measures everything."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5, help="runs of each program (the peer: 3 at most)")
    parser.add_argument("--tlps", type=int, default=10**8, help="TLPs of the memory run")
    parser.add_argument("-o", "--output", type=Path, default=HERE / "results.json")
    options = parser.parse_args()
    programs = build()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    no_peer = why_no_peer()
    if no_peer:
        print(f"bench: {no_peer}", file=sys.stderr)
    results: list[Result] = []
    parts: list[Callable[[], list[Result]]] = [
        lambda: hops(programs, options.repeats, no_peer),
        lambda: large_fabric(programs, options.repeats),
        lambda: instructions_per_hop(programs),
        lambda: codec(programs, options.repeats),
        lambda: event_queue(programs, options.repeats),
        lambda: [memory(programs, options.tlps)],
        dd,
        grid,
        points,
    ]
    for part in parts:
        some = part()
        show(some)
        results += some
    options.output.write_text(
        json.dumps([asdict(r) for r in results], indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    print(f"written to {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
