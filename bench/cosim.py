"""`make bench-rtl`: how many cycles of the co-simulated DMA core one second of a processor runs; writes bench/rtl-speed.json.

Under load the whole process counts (getrusage): the core as Verilator compiled it, the hard IP's model and a host that keeps both
directions full and checks every byte, but not the start, in which the card's memory is made. At rest, cycles are left out
as long as the core says that nothing is under way: simulated time goes on in steps of a microsecond, as it would at a fabric's events.
In the fabric the core is the card of an experiment, which moves data to the card: the cycles of the simulated time
over the CPU time of the whole process, links and host included. Behind UltraScale+ the rate of data in that experiment is one more
figure: of the smaller of the link's rate with only its TLPs on it, and the rate of the hard IP's streams, whose beats
hold one TLP each.
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

from tlplab import model

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = {
    "64-bit shim": "out/rtl/tlpdma-trn64.so",
    "128-bit shim": "out/rtl/tlpdma-trn128.so",
    "256-bit UltraScale+ shim": "out/rtl/tlpdma-usp256.so",
}
USP = "256-bit UltraScale+ shim"
USER_CLOCK = 200e6  # at rest and under load, of the library's own accord
GOAL, GOAL_IN_THE_FABRIC = 1e6, 4e5  # cycles per CPU second
SHORT, LONG = 1_000, 60_000  # transfers; the difference of two runs has no start in it
EXPERIMENTS = {
    "64-bit shim": ("studies/speedy/gen1-x8.toml", 200e6),
    "128-bit shim": ("studies/speedy/gen2-x8.toml", 200e6),
    "256-bit UltraScale+ shim": ("studies/speedy/gen3-x8.toml", 250e6),
}
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


def load_command(shim: str, transfers: int) -> list[str]:
    """The command that keeps both directions full."""
    return ["out/rtl/stress", LIBRARIES[shim], "--quick", "--json", "--devices", "1", "--transfers", str(transfers)]


def under_load(shim: str) -> float:
    """User cycles per CPU second, both directions full."""
    reports = []
    for transfers in (SHORT, LONG):
        done = subprocess.run(load_command(shim, transfers), cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stderr)
        reports.append(json.loads(done.stdout))
    cycles, seconds = (reports[1][key] - reports[0][key] for key in ("user_cycles", "cpu_seconds"))
    return float(cycles / seconds)


def at_rest(shim: str) -> float:
    """User cycles per CPU second while nothing is under way."""
    library = ctypes.CDLL(str(ROOT / LIBRARIES[shim]))
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


def fabric_command(shim: str, transfers: int) -> list[str]:
    """The command that simulates a machine with the core in it."""
    chosen = [EXPERIMENTS[shim][0], "--set", f"load.core.count={transfers}", "--quiet", "--json", "-"]
    return ["python", "-m", "tlplab", "run", *chosen]


def in_the_fabric(shim: str) -> float:
    """User cycles of simulated time per CPU second of the process that simulates all of it."""
    cycles, seconds = [], []
    for transfers in (FEW, MANY):
        begun = cpu()
        command = [sys.executable, *fabric_command(shim, transfers)[1:]]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stderr)
        seconds.append(cpu() - begun)
        result = json.loads(done.stdout)
        cycles.append((result["end_fs"] - result["start_fs"]) * 1e-15 * EXPERIMENTS[shim][1])
    return (cycles[1] - cycles[0]) / (seconds[1] - seconds[0])


def rate(way: str) -> tuple[float, str]:
    """Per cent of the bound that the core behind UltraScale+ reaches on Gen3 x8, and the command that shows its rate."""
    command = fabric_command(USP, 1)
    command[-3:-3] = ["--set", f"load.core.op={way}", "--set", "load.core.size=4MiB"]
    done = subprocess.run([sys.executable, *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    measured = next(one for one in json.loads(done.stdout)["measured"] if one["name"] == "core")
    size, mps, descriptor = 4096, 256, 12 if way == "to-card" else 16
    operation = "read" if way == "to-card" else "write"
    grid = model.bandwidth(size, op=operation, generation=3, width=8, mps=mps, mrrs=512, address_bits=32)
    link = size * grid["raw_bps"] / max(grid["up_bytes"], grid["down_bytes"])
    beats = -(-(descriptor + mps) // 32)
    streams = mps * 8 / beats * 250e6
    return 100 * measured["payload_bps"] / min(link, streams), " ".join(command)


def main() -> int:
    """Measures, prints a table, and writes the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "bench/rtl-speed.json")
    options = parser.parse_args()
    tree = git("rev-parse", "HEAD:rtl")
    results = []
    for shim in LIBRARIES:
        for state, measure, goal, command in (
            ("under load", under_load, GOAL_IN_THE_FABRIC if shim == USP else GOAL, " ".join(load_command(shim, LONG))),
            ("at rest", at_rest, GOAL, "bench/cosim.py"),
            (
                "in the fabric",
                in_the_fabric,
                GOAL_IN_THE_FABRIC if shim == USP else None,
                " ".join(fabric_command(shim, MANY)),
            ),
        ):
            runs = sorted(measure(shim) for _ in range(options.repeats))
            ours = statistics.median(runs)
            met = None if goal is None else ours >= goal
            results.append(
                {
                    "name": f"co-simulation of tlpdma, {shim}, {state}",
                    "unit": "user clock cycles/CPU-s",
                    "ours": round(ours),
                    "runs": [round(runs[0]), round(runs[-1])],
                    "target": None if goal is None else f"≥ {goal / 1e6:g} M/CPU-s",
                    "met": met,
                    "command": command,
                    "load_average": round(os.getloadavg()[0], 1),
                    "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
                    "rtl": tree,
                }
            )
            judgement = {None: "", True: "met", False: "not met"}[met]
            print(f"{results[-1]['name']:<52} {ours / 1e6:8.2f} M/CPU-s  {judgement}", flush=True)
    for way in ("to-card", "from-card"):
        share, command = rate(way)
        results.append(
            {
                "name": f"tlpdma, {USP}, Gen3 x8, {way}, of its bound",
                "unit": "%",
                "ours": round(share, 1),
                "target": "≥ 98 %",
                "met": share >= 98,
                "command": command,
                "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
                "rtl": tree,
            }
        )
        print(f"{results[-1]['name']:<68} {share:6.1f} %  {'met' if share >= 98 else 'not met'}", flush=True)
    options.output.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
