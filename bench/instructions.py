"""`make check-instructions`: instructions per hop, compared with the record; more than one per cent above is refused.

Counted by callgrind on `crates/fabric/examples/hops.rs` in the profile of `cargo test`, as the difference of two runs, so that the start is not in it. Another
compiler makes other code, so its counts are only shown. A change that needs more gives the reason in its commit, and keeps the new record with --write.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "bench/instructions.json"
RUNS = ("write length", "write payload", "read payload")
HOPS = (2_000, 12_000)
ALLOWED = 1.01
# Incremental builds cut code into other pieces, which take a fifth more: its own folder, and always the same way.
FOLDER = ROOT / "target/instructions"
BUILD = ("cargo", "build", "--quiet", "--profile", "test", "--package", "tlplab-fabric", "--example", "hops")


def counted(program: Path, run: str, hops: int) -> tuple[int, int]:
    """Hops of a run, and its instructions."""
    with tempfile.NamedTemporaryFile() as unwanted:
        valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={unwanted.name}"]
        command = [*valgrind, str(program), *run.split(), str(hops)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if found is None:
        sys.exit(f"callgrind printed no count: {done.stderr[-300:]}")
    return json.loads(done.stdout)["hops"], int(found[1])


def per_hop(program: Path, run: str) -> float:
    """Instructions of a hop."""
    (few, start), (many, end) = (counted(program, run, hops) for hops in HOPS)
    return round((end - start) / (many - few), 1)


def main() -> None:
    """Counts, compares, and writes if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--write", action="store_true", help="keep the counts as the record")
    arguments = parser.parse_args()
    if not shutil.which("valgrind"):
        sys.exit("instructions are counted by valgrind: apt-get install valgrind")
    command = [*BUILD, "--target-dir", str(FOLDER)]
    subprocess.run(command, cwd=ROOT, check=True, env=os.environ | {"CARGO_INCREMENTAL": "0"})
    compiler = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    now = {run: per_hop(FOLDER / "debug/examples/hops", run) for run in RUNS}
    if arguments.write:
        RECORD.write_text(json.dumps({"compiler": compiler, "per_hop": now}, indent=2) + "\n", encoding="utf-8")
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    comparable = record["compiler"] == compiler
    failed = []
    for run, count in now.items():
        before = record["per_hop"][run]
        print(f"{run}: {count:.1f} instructions per hop, {before:.1f} on record ({count / before - 1:+.2%})")
        if comparable and count > before * ALLOWED:
            failed.append(run)
    if not comparable:
        print(f"not compared: the record is of {record['compiler']}, this is {compiler}")
    if failed:
        sys.exit(
            f"{', '.join(failed)}: more than {ALLOWED - 1:.0%} above the record. Look for the cause (valgrind --tool=callgrind);"
            " if it is worth it, keep the new record: python bench/instructions.py --write"
        )


if __name__ == "__main__":
    main()
