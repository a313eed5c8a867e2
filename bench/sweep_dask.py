"""A study whose runs are made by workers of dask: two workers, one, as many threads, and a worker that is killed.

250 points of `bench/sweep.toml`, so long that each takes 100 ms or more, on a cluster that stands on this machine before the clock starts: wall time of `tlplab sweep`, from its
start to its end, each time with a store of its own. Everything takes turns, and the figures are medians. Then a worker is killed in the middle by signal 9, and the bytes of the
data set are compared with those of threads. `make bench-sweep` runs it; alone, it replaces its figures in sweep.json.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
STUDY = ["sweep", str(HERE / "sweep.toml"), "--shard", "1/4", "--set", "stop=4ms", "--quiet"]
POINTS = 250
SPEEDUP, NEAR, SHORTEST = 1.6, 1.1, 0.1


def start(*arguments: str) -> subprocess.Popen[bytes]:
    """The study."""
    return subprocess.Popen([sys.executable, "-m", "tlplab", *STUDY, *arguments])


def seconds(*arguments: str) -> float:
    """Wall time of the study."""
    begun = time.perf_counter()
    if start(*arguments).wait() != 0:
        raise SystemExit("the study failed")
    return time.perf_counter() - begun


@contextlib.contextmanager
def cluster(workers: int) -> Iterator[tuple[list[str], list[int]]]:
    """Options that name a cluster with so many workers, and the numbers of their processes."""
    from distributed import Client, LocalCluster

    from tlplab.study.dask_engine import silence

    with (
        silence(),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address=None,
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        ) as started,
        Client(started) as client,
    ):
        numbers = list(client.run(os.getpid).values())
        yield ["--engine", "dask", "--address", started.scheduler_address], numbers


def is_the_same_without_a_worker(folder: str) -> bool:
    """True if the data set equals that of threads, though a worker was killed when a third of its runs were over."""
    with cluster(2) as (options, workers):
        begun = time.perf_counter()
        seconds("--store", f"{folder}/whole", "-o", f"{folder}/whole.csv", *options)
        third = (time.perf_counter() - begun) / 3
        process = start("--store", f"{folder}/killed", "-o", f"{folder}/killed.csv", *options)
        time.sleep(third)
        os.kill(workers[0], signal.SIGKILL)
        ended = process.wait()
    seconds("--store", f"{folder}/threads", "-o", f"{folder}/threads.csv")
    files = [Path(folder, f"{name}.csv") for name in ("whole", "killed", "threads")]
    return ended == 0 and len({file.read_bytes() for file in files}) == 1


def results(repeats: int) -> list[dict[str, object]]:
    """Measures; the figures, in the form of results.json."""
    took: dict[str, list[float]] = {name: [] for name in ("thread", "threads", "worker", "workers")}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(repeats):
            for name, count in (("thread", 1), ("worker", 1), ("threads", 2), ("workers", 2)):
                store = ["--store", f"{folder}/{turn}-{name}"]
                if name.startswith("thread"):
                    took[name].append(seconds(*store, "--threads", str(count)))
                else:
                    with cluster(count) as (options, _):
                        took[name].append(seconds(*store, *options))
        same = is_the_same_without_a_worker(folder)
    median = {name: statistics.median(runs) for name, runs in took.items()}
    each = median["thread"] / POINTS
    if each < SHORTEST:
        print(f"a point takes {each * 1000:.0f} ms only: set a later stop in {Path(__file__).name}", file=sys.stderr)
    note = (
        f"{POINTS} points of {each * 1000:.0f} ms; load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    )
    more = [one / two for one, two in zip(took["worker"], took["workers"], strict=True)]
    beside = [dask / local for dask, local in zip(took["workers"], took["threads"], strict=True)]

    def result(
        name: str, unit: str, ours: float, target: str, met: bool | None, runs: list[float]
    ) -> dict[str, object]:
        print(f"{name}: {ours:.3g} {unit}")
        return {
            "name": name, "unit": unit, "ours": ours, "peer": None, "peer_name": None, "ratio": None,
            "command": "make bench-sweep", "runs": [min(runs), max(runs)], "target": target, "met": met, "note": note,
        }  # fmt: skip

    speedup, near = statistics.median(more), statistics.median(beside)
    return [
        result("dask, one worker", "s", median["worker"], "", None, took["worker"]),
        result("dask, two workers", "s", median["workers"], "", None, took["workers"]),
        result("dask, two workers, times one", "1", speedup, f"≥ {SPEEDUP}", speedup >= SPEEDUP, more),
        result(
            "dask, two workers, time as a part of that of two threads", "1", near, f"≤ {NEAR}", near <= NEAR, beside
        ),
        result("dask, a worker killed: data sets that are the same", "1", float(same), "1", same, [float(same)]),
    ]


def main() -> None:
    """Measures, and replaces its figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--repeats", type=int, default=3, metavar="N")
    parser.add_argument("-o", dest="output", type=Path, default=HERE / "sweep.json", metavar="FILE")
    arguments = parser.parse_args()
    found = results(arguments.repeats)
    names = {one["name"] for one in found}
    known = json.loads(arguments.output.read_text(encoding="utf-8")) if arguments.output.exists() else []
    text = json.dumps([one for one in known if one["name"] not in names] + found, indent=2, ensure_ascii=False)
    arguments.output.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
