"""`make bench-scan`: how long `tlplab scan` takes for a large machine, from its start to its end.

The dump is the one in examples/dumps, as many times as gives 1000 devices, once as lspci lists them and once without counting ports,
each copy in a domain of its own; the report goes to a file. CPU seconds of the process (getrusage), the median of several runs. Prints the figure and writes scan.json, in the form of results.json.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
DUMP = HERE.parent / "examples" / "dumps" / "workstation.txt"
# What lspci lists as devices, ports of bridges and all functions; and those with a link that are no bridge.
FUNCTIONS, CARDS = 15, 6
TARGET_S = 1.0


def machine(copies: int) -> str:
    """A dump of so many of them."""
    one = DUMP.read_text(encoding="utf-8")
    first_lines = re.compile(r"^(\w\w:\w\w\.\w) ", re.MULTILINE)
    return "\n".join(first_lines.sub(rf"{domain:04x}:\1 ", one) for domain in range(1, copies + 1))


def cpu() -> float:
    """CPU seconds of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def scanned(copies: int, repeats: int) -> list[float]:
    """CPU seconds of each run, sorted."""
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "dump.txt"
        dump.write_text(machine(copies), encoding="utf-8")
        command = [sys.executable, "-m", "tlplab", "scan", "--from", str(dump)]
        # A user has compiled modules; make asks for none, so that the tree stays clean.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = folder
        spent = []
        for _ in range(repeats + 1):
            begun = cpu()
            with (Path(folder) / "report.txt").open("w") as report:
                subprocess.run(command, stdout=report, check=True, env=environment)
            spent.append(cpu() - begun)
    return sorted(spent[1:])  # the first one fills caches


def main() -> None:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--devices", type=int, default=1000, metavar="N")
    parser.add_argument("--repeats", type=int, default=9, metavar="N")
    parser.add_argument("-o", dest="output", type=Path, default=HERE / "scan.json", metavar="FILE")
    arguments = parser.parse_args()
    results = []
    for what, of_dump in (("devices as lspci lists them", FUNCTIONS), ("cards, and the ports above them", CARDS)):
        runs = scanned(-(-arguments.devices // of_dump), arguments.repeats)
        median, load = statistics.median(runs), os.getloadavg()[0]
        result = {
            "name": f"tlplab scan of a dump with {arguments.devices} {what}", "unit": "CPU-s", "ours": median, "peer": None,
            "peer_name": None, "ratio": None, "command": "make bench-scan", "runs": [runs[0], runs[-1]],
            "target": f"< {TARGET_S:g} s", "met": median < TARGET_S, "note": f"the whole process, start included; load average {load:.1f}",
        }  # fmt: skip
        results.append(result)
        print(f"{result['name']}: {median:.3f} CPU-s ({runs[0]:.3f} to {runs[-1]:.3f})")
    arguments.output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
