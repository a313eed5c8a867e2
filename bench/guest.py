"""`make bench-guest`: the time of a Linux guest, from the start of the command to its end, and a check that its runs are the same.

Prints the figures and writes guest.json, in the form of results.json. Seconds by the clock, the median of several runs; the machine should be quiet.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXPERIMENTS = HERE.parent / "experiments/linux"
MEGABYTE = (
    "dd if=/dev/urandom of=/tmp/a bs=1M count=1 2>/dev/null; dd if=/tmp/a of=/dev/nvme0n1 bs=1M oflag=direct 2>/dev/null;"
    " dd if=/dev/nvme0n1 of=/tmp/b bs=1M count=1 iflag=direct 2>/dev/null; cmp /tmp/a /tmp/b"
)
HALF_GIGABYTE = (
    *("--set", "guest.memory=640MiB", "--set", "device.nvme0.size=512MiB"),
    *("--run", "/usr/bin/dd if=/dev/nvme0n1 of=/dev/null bs=512M count=1 iflag=direct"),
)


def boot(environment: dict[str, str], *arguments: str) -> tuple[float, dict[str, str]]:
    """Seconds of one guest, and the hashes of its run."""
    with tempfile.TemporaryDirectory() as folder:
        document = Path(folder) / "result.json"
        command = [sys.executable, "-m", "tlplab", "guest", "uml", *arguments, "--json", str(document), "--quiet"]
        begun = time.perf_counter()
        subprocess.run(command, check=True, env=environment, stdin=subprocess.DEVNULL)
        seconds = time.perf_counter() - begun
        result = json.loads(document.read_text(encoding="utf-8"))
    return seconds, {"trace": result["trace_hash"], "console": result["guest"]["console"]}


def record(name: str, runs: Sequence[float], target_s: float) -> dict[str, object]:
    """A result, printed."""
    median, load = statistics.median(runs), os.getloadavg()[0]
    print(f"{name}: {median:.3f} s ({min(runs):.3f} to {max(runs):.3f})", flush=True)
    return {
        "name": name, "unit": "s", "ours": median, "peer": None, "peer_name": None, "ratio": None, "command": "make bench-guest",
        "runs": [min(runs), max(runs)], "target": f"< {target_s:g} s", "met": median < target_s, "note": f"load average {load:.1f}",
    }  # fmt: skip


def main() -> None:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--repeats", type=int, default=9, metavar="N")
    parser.add_argument("--same", type=int, default=100, metavar="N", help="runs that have to be the same")
    parser.add_argument("-o", dest="output", type=Path, default=HERE / "guest.json", metavar="FILE")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        # A user has compiled modules; make asks for none, so that the tree stays clean.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = folder
        nvme, dd = str(EXPERIMENTS / "nvme.toml"), str(EXPERIMENTS / "dd.toml")

        def seconds(*given: str) -> list[float]:
            return [boot(environment, *given)[0] for _ in range(arguments.repeats + 1)][
                1:
            ]  # the first one fills caches

        results = [
            record("boot, nvme probe, 1 MiB written, read back and compared", seconds(nvme, "--run", MEGABYTE), 1),
            record("dd of 512 MiB from the drive in one block", seconds(dd, *HALF_GIGABYTE), 60),
        ]
        awake, asleep = (statistics.median(seconds(nvme, "--run", f"sleep {n}")) for n in (1, 61))
        results.append(record("60 s in which the guest sleeps", [asleep - awake], 0.05))
        runs = [boot(environment, nvme)[1] for _ in range(arguments.same)]
    kinds = {part: len({run[part] for run in runs}) for part in ("trace", "console")}
    print(f"{arguments.same} runs of nvme.toml: {kinds['trace']} trace hash, {kinds['console']} console")
    results.append(
        {
            "name": f"different traces of {arguments.same} runs of experiments/linux/nvme.toml", "unit": "traces", "ours": kinds["trace"],
            "peer": None, "peer_name": None, "ratio": None, "command": "make bench-guest", "runs": [kinds["console"]], "target": "1",
            "met": set(kinds.values()) == {1}, "note": "runs: different consoles",
        }
    )  # fmt: skip
    arguments.output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
