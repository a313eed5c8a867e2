"""`make bench-rtl`: how many cycles of the co-simulated DMA core one second of a processor runs; writes bench/rtl-speed.json.

Under load the whole process counts (getrusage): the core as Verilator compiled it, the hard IP's model and a host that keeps both
directions full and checks every byte, but not the start, in which the card's memory is made. At rest, cycles are left out
as long as the core says that nothing is under way: simulated time goes on in steps of a microsecond, as it would at a fabric's events.
In the fabric the core is the card of an experiment, which moves data to the card: the cycles of the simulated time
over the CPU time of the whole process, links and host included.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from scan import cpu
from stress import git

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = {64: "out/rtl/tlpdma-trn64.so", 128: "out/rtl/tlpdma-trn128.so"}
USER_CLOCK = 200e6
GOAL = 1e6  # cycles per CPU second
SHORT, LONG = 1_000, 60_000  # transfers; the difference of two runs has no start in it
EXPERIMENTS = {64: "studies/speedy/gen1-x8.toml", 128: "studies/speedy/gen2-x8.toml"}
FEW, MANY = 4, 64  # transfers of an experiment, 1 MiB each


class Output(ctypes.Structure):
    """tlplab_rtl_output of rtl/include/tlplab_rtl.h."""

    _fields_ = [
        ("time", ctypes.c_uint64),
        ("taken", ctypes.c_uint32 * 3),
        ("intx", ctypes.c_uint8),
        ("idle", ctypes.c_uint8),
        ("tlp_bytes", ctypes.c_uint16),
        ("tlp", ctypes.c_uint8 * 4132),
        ("error", ctypes.c_char * 512),
    ]


def load_command(width: int, transfers: int) -> list[str]:
    """The command that keeps both directions full."""
    return ["out/rtl/stress", LIBRARIES[width], "--quick", "--json", "--devices", "1", "--transfers", str(transfers)]


def under_load(width: int) -> float:
    """User cycles per CPU second, both directions full."""
    reports = []
    for transfers in (SHORT, LONG):
        done = subprocess.run(load_command(width, transfers), cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stderr)
        reports.append(json.loads(done.stdout))
    cycles, seconds = (reports[1][key] - reports[0][key] for key in ("user_cycles", "cpu_seconds"))
    return float(cycles / seconds)


def at_rest(width: int) -> float:
    """User cycles per CPU second while nothing is under way."""
    library = ctypes.CDLL(str(ROOT / LIBRARIES[width]))
    library.tlplab_rtl_open.restype = ctypes.c_void_p
    identity, error, output = ctypes.create_string_buffer(4096), ctypes.create_string_buffer(512), Output()
    model = ctypes.c_void_p(library.tlplab_rtl_open(2, b"", identity, error))
    if not model:
        sys.exit(error.value.decode())
    microsecond, begin, steps = 10**9, 10, 200_000

    def run(until: int) -> None:
        while output.time < until:
            if library.tlplab_rtl_run(model, ctypes.c_uint64(until), 7, ctypes.byref(output)) != 0:
                sys.exit(output.error.decode())

    run(begin * microsecond)
    start = time.process_time()
    for step in range(begin, begin + steps):
        run((step + 1) * microsecond)
    seconds = time.process_time() - start
    library.tlplab_rtl_close(model)
    return steps * 1e-6 * USER_CLOCK / seconds


def fabric_command(width: int, transfers: int) -> list[str]:
    """The command that simulates a machine with the core in it."""
    chosen = [EXPERIMENTS[width], "--set", f"load.core.count={transfers}", "--quiet", "--json", "-"]
    return ["python", "-m", "tlplab", "run", *chosen]


def in_the_fabric(width: int) -> float:
    """User cycles of simulated time per CPU second of the process that simulates all of it."""
    cycles, seconds = [], []
    for transfers in (FEW, MANY):
        begun = cpu()
        command = [sys.executable, *fabric_command(width, transfers)[1:]]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stderr)
        seconds.append(cpu() - begun)
        result = json.loads(done.stdout)
        cycles.append((result["end_fs"] - result["start_fs"]) * 1e-15 * USER_CLOCK)
    return (cycles[1] - cycles[0]) / (seconds[1] - seconds[0])


def main() -> int:
    """Measures, prints a table, and writes the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "bench/rtl-speed.json")
    options = parser.parse_args()
    tree = git("rev-parse", "HEAD:rtl")
    results = []
    for width in LIBRARIES:
        for state, measure, goal, command in (
            ("under load", under_load, GOAL, " ".join(load_command(width, LONG))),
            ("at rest", at_rest, GOAL, "bench/cosim.py"),
            ("in the fabric", in_the_fabric, None, " ".join(fabric_command(width, MANY))),
        ):
            runs = sorted(measure(width) for _ in range(options.repeats))
            ours = statistics.median(runs)
            met = None if goal is None else ours >= goal
            results.append(
                {
                    "name": f"co-simulation of tlpdma, {width}-bit shim, {state}",
                    "unit": "user clock cycles/CPU-s",
                    "ours": round(ours),
                    "runs": [round(runs[0]), round(runs[-1])],
                    "target": None if goal is None else "≥ 1 M/CPU-s",
                    "met": met,
                    "command": command,
                    "load_average": round(os.getloadavg()[0], 1),
                    "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
                    "rtl": tree,
                }
            )
            judgement = {None: "", True: "met", False: "not met"}[met]
            print(f"{results[-1]['name']:<52} {ours / 1e6:8.2f} M/CPU-s  {judgement}", flush=True)
    options.output.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
