"""`make rtl-stress`: random transfers of the DMA core by the million, in batches with seeds of their own.

Runs out/rtl/stress on the core's libraries, several at a time, and writes the totals to a record after each batch, so that a
run that is stopped loses little. A batch that fails prints the command that repeats it, and ends the run with status 1.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STRESS = "out/rtl/stress"
# Of twenty transfers so many with each library: both widths of TRN and UltraScale+, some with more tags.
SHARES = {
    "tlpdma-trn64": 7,
    "tlpdma-trn128": 7,
    "tlpdma-usp256": 4,
    "tlpdma-trn64-tags64": 1,
    "tlpdma-trn128-tags256": 1,
}
SEEDS_OF_A_BATCH = 1000  # a device has 20 000 transfers and a seed of its own, so that a batch needs less
SUMS = (
    "transfers",
    "good",
    "failed",
    "dropped",
    "bytes",
    "tlps",
    "small_accesses",
    "interrupts",
    "user_cycles",
    "cpu_seconds",
)


def batches(transfers: int, size: int, seed: int) -> Iterator[list[str]]:
    """Commands that make so many transfers in all; next is the library with the most left."""
    left = {name: transfers * share // sum(SHARES.values()) for name, share in SHARES.items()}
    first = seed * 1_000_000
    while (count := min(max(left.values()), size)) > 0:
        name = max(left, key=lambda name: left[name])
        left[name] -= count
        extra = ["--drops"] if "usp" in name else []
        yield [STRESS, f"out/rtl/{name}.so", *extra, "--json", "--seed", str(first), "--transfers", str(count)]
        first += SEEDS_OF_A_BATCH


def git(*arguments: str) -> str:
    """The output of git, or nothing without a repository."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


class Record:
    """The work done so far, as the file that keeps it holds it."""

    def __init__(self, path: Path, asked: int, seed: int) -> None:
        self.path = path
        self.sums: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.libraries: Counter[str] = Counter()
        self.slowest = 0.0
        self.head: dict[str, Any] = {
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "commit": git("describe", "--always", "--dirty", "--abbrev=12"),
            "rtl": git("rev-parse", "HEAD:rtl"),
            "asked": asked,
            "command": f"make rtl-stress STRESS_TRANSFERS={asked} STRESS_SEED={seed}",
        }

    def add(self, report: dict[str, Any]) -> None:
        """One more batch."""
        self.sums.update({name: report[name] for name in SUMS})
        self.faults.update(report["faults"])
        self.libraries[Path(report["library"]).stem] += report["transfers"]
        self.slowest = max(self.slowest, report["slowest_answer_us"])

    def write(self, failures: list[str]) -> None:
        """Replaces the file."""
        sums = {name: round(self.sums[name], 1) for name in SUMS}
        record = {
            **self.head,
            **sums,
            "libraries": dict(sorted(self.libraries.items())),
            "injected_faults": sum(self.faults.values()),
            "faults": dict(self.faults),
            "slowest_answer_us": self.slowest,
            "failures": failures,
        }
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(record, indent=2) + "\n")
        new.replace(self.path)


def run_all(commands: list[list[str]], jobs: int, record: Record) -> list[str]:
    """Runs the commands until one fails; returns the failures."""
    failures: list[str] = []
    start = time.monotonic()
    waiting = list(reversed(commands))
    running: dict[Future[subprocess.CompletedProcess[str]], list[str]] = {}
    with ThreadPoolExecutor(jobs) as pool:
        while running or (waiting and not failures):
            while waiting and not failures and len(running) < jobs:
                command = waiting.pop()
                done = pool.submit(subprocess.run, command, cwd=ROOT, capture_output=True, text=True, check=False)
                running[done] = command
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                command, result = running.pop(done), done.result()
                if result.returncode == 0:
                    record.add(json.loads(result.stdout))
                else:
                    failures.append(
                        f"{' '.join(command)}: {result.stderr.strip() or f'ended by signal {-result.returncode}'}"
                    )
                record.write(failures)
                good, seconds = record.sums["transfers"], time.monotonic() - start
                print(
                    f"{good:>10,} transfers in {seconds / 60:.1f} min, {len(waiting) + len(running)} batches left",
                    flush=True,
                )
    return failures


def main() -> int:
    """Reads the arguments, runs, and reports."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--transfers", type=int, default=10_000_000, help="in all")
    parser.add_argument("--seed", type=int, default=1, help="another one for other transfers")
    parser.add_argument("--batch", type=int, default=200_000, help="transfers of a process")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "out/rtl/stress.json", help="the record")
    options = parser.parse_args()
    record = Record(options.output, options.transfers, options.seed)
    try:
        failures = run_all(list(batches(options.transfers, options.batch, options.seed)), options.jobs, record)
    except KeyboardInterrupt:
        print(f"stopped after {record.sums['transfers']:,} transfers: {options.output}", file=sys.stderr)
        return 130
    for failure in failures:
        print(f"stress: {failure}", file=sys.stderr)
    sums = record.sums
    print(
        f"{sums['transfers']:,} transfers, {sum(record.faults.values()):,} faults injected, {sums['user_cycles'] / 1e6:,.0f} M cycles"
        f" in {sums['cpu_seconds'] / 60:.0f} CPU-min: {len(failures) or 'no'} batch{'es' if len(failures) > 1 else ''} failed"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
