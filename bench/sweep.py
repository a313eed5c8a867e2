"""`make bench-sweep`: a thousand points on one processor and on two, the size of their file, and how long it takes when all are known; a million known points.

Wall time of `tlplab sweep bench/sweep.toml`, from its start to its end, each time with a store of its own; one and two threads take turns, and the figures are
medians. Two threads are twice as fast only on two processors that do nothing else: the load average is written with it, and the processor time of both, which shows
the cost of threads to each other. Prints the figures and writes sweep.json, in the form of results.json.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import sweep_dask

HERE = Path(__file__).resolve().parent
STUDY, MILLION = HERE / "sweep.toml", HERE / "million.toml"
SPEEDUP, MEGABYTES, SECONDS = 1.9, 20, 5


def seconds(*arguments: str, study: Path = STUDY) -> tuple[float, float]:
    """Wall time and processor time of the command."""
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "tlplab", "sweep", str(study), *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def million(folder: str, repeats: int) -> list[float]:
    """Wall times of listing and drawing a million points that are all known."""
    store = ("--store", f"{folder}/million")
    seconds(*store, "--quiet", study=MILLION)
    drawn = ("--plot", f"{folder}/map.png", "--x", "offered", "--y", "memory", "--colour", "throughput")
    return [seconds(*store, *drawn, study=MILLION)[0] for _ in range(repeats)]


def main() -> None:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--repeats", type=int, default=5, metavar="N")
    parser.add_argument("-o", dest="output", type=Path, default=HERE / "sweep.json", metavar="FILE")
    arguments = parser.parse_args()
    took: dict[int, list[float]] = {1: [], 2: []}
    worked: dict[int, list[float]] = {1: [], 2: []}
    known = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "points.parquet"
        for turn in range(arguments.repeats):
            for threads, all_of in took.items():
                store = f"{folder}/{turn}-{threads}"
                wall, processor = seconds("--threads", str(threads), "--store", store, "--quiet")
                all_of.append(wall)
                worked[threads].append(processor)
            known.append(seconds("--store", store, "-o", str(file), "--quiet")[0])
        megabytes = file.stat().st_size / 1e6
        all_known = million(folder, arguments.repeats)
    one, two = (statistics.median(took[threads]) for threads in (1, 2))
    note = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"

    def result(
        name: str, unit: str, ours: float, target: str, met: bool | None, runs: list[float]
    ) -> dict[str, object]:
        print(f"{name}: {ours:.3g} {unit}")
        return {
            "name": name, "unit": unit, "ours": ours, "peer": None, "peer_name": None, "ratio": None,
            "command": "make bench-sweep", "runs": [min(runs), max(runs)], "target": target, "met": met, "note": note,
        }  # fmt: skip

    more = [b / a for a, b in zip(worked[1], worked[2], strict=True)]
    ratios = [a / b for a, b in zip(took[1], took[2], strict=True)]
    results = [
        result("1000 points of the quickstart, one thread", "s", one, "", None, took[1]),
        result("1000 points of the quickstart, two threads", "s", two, "", None, took[2]),
        result("two threads, times one thread", "1", one / two, f"≥ {SPEEDUP}", one / two >= SPEEDUP, ratios),
        result("processor time of two threads, times that of one", "1", statistics.median(more), "", None, more),
        result("1000 known points, with Parquet written", "s", statistics.median(known), "", None, known),
        result("a file of 1000 points", "MB", megabytes, f"< {MEGABYTES}", megabytes < MEGABYTES, [megabytes]),
        result(
            "a million known points, listed and drawn",
            "s",
            statistics.median(all_known),
            f"< {SECONDS}",
            statistics.median(all_known) < SECONDS,
            all_known,
        ),
        *sweep_dask.results(max(1, arguments.repeats // 2)),
    ]
    arguments.output.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
