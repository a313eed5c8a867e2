"""`make bench-driver`: the cost of the ways to the DMA core in a guest: calls that wait, a queue, VFIO with a buffer mapped each time or once.

Prints a table, writes driver.json. The card is a process whose DMA is a copy of memory, so that the figures are the software's share. The ways take turns
in a guest with an IOMMU, and the driver's also in one without. Processor time is that of the guest, both processors together, and under TCG many times that
of hardware: compare the ways.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from tlplab.guest import tools
from tlplab.guest.devices import SingleDevices, device_of
from tlplab.guest.initramfs import SCRIPT
from tlplab.guest.machine import Machine, boot
from tlplab.quantities import size

HERE = Path(__file__).resolve().parent
DEPTH = 16
DRIVER = {"call": "/dev/tlpdma0", "queue": f"--queue {DEPTH} /dev/tlpdma0"}
VFIO = {"vfio": "vfio:0000:01:00.0", "registered": "--register vfio:0000:01:00.0"}
# What is written above a column, of a guest with and without an IOMMU.
TITLES = {
    (False, "call"): "read/write",
    (False, "queue"): f"queue of {DEPTH}",
    (True, "call"): "r/w, IOMMU",
    (True, "queue"): "q., IOMMU",
    (True, "vfio"): "VFIO",
    (True, "registered"): "registered",
}
GUEST = """#!/bin/sh
set -e
device=/sys/bus/pci/devices/0000:01:00.0
insmod /lib/modules-tlplab/tlpdma.ko
modprobe vfio_iommu_type1
modprobe vfio-pci
driver() {
  [ ! -e $device/driver ] || echo 0000:01:00.0 >$device/driver/unbind
  echo $1 >$device/driver_override
  echo 0000:01:00.0 >/sys/bus/pci/drivers_probe
}
turn() {
  echo "way $1"
  shift
  tlpdma-compare --seconds SECONDS --sizes 4096:4194304 "$@"
}
"""
Found = dict[tuple[int, str, bool, str], tuple[list[float], list[float]]]


def turns_of(ways: dict[str, str]) -> str:
    """Lines of the guest's script."""
    return "".join(f"turn {way} {words}\n" for way, words in ways.items())


def measure(found: Found, *, iommu: bool, turns: int, seconds: float) -> None:
    """Of each size, direction and way: MB/s, and microseconds of the guest's processors for a transfer."""
    ways = DRIVER | VFIO if iommu else DRIVER
    with_vfio = f"driver vfio-pci\n{turns_of(VFIO)}" if iommu else ""
    loop = f"for turn in $(seq {turns}); do\ndriver tlpdma\n{turns_of(DRIVER)}{with_vfio}done\n"
    script = GUEST.replace("SECONDS", f"{seconds:g}") + loop
    lines: list[str] = []
    machine = Machine(tools.find(None), {SCRIPT: script.encode()}, processors=2, iommu=iommu)
    off = boot(machine, SingleDevices([device_of("tlpdma")]), show=lambda _, line: lines.append(line))
    way, seen = "", set()
    for line in lines:
        if heading := re.search(r"\bway (\w+)$", line):
            way = heading[1]
        elif row := re.search(r"\b(\d+) (to-card|from-card) \d+ ([\d.]+) ([\d.]+)$", line):
            rates, times = found[int(row[1]), row[2], iommu, way]
            rates.append(float(row[3]))
            times.append(float(row[4]))
            seen.add(way)
    if off.status != 0 or seen != set(ways):
        sys.exit("\n".join([*lines[-20:], f"the guest has ended with status {off.status}"]))


def main() -> None:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--turns", type=int, default=3, metavar="N")
    parser.add_argument("--seconds", type=float, default=1.0, metavar="S")
    parser.add_argument("-o", dest="output", type=Path, default=HERE / "driver.json", metavar="FILE")
    arguments = parser.parse_args()
    found: Found = defaultdict(lambda: ([], []))
    for iommu in (False, True):
        measure(found, iommu=iommu, turns=arguments.turns, seconds=arguments.seconds)
    results = []
    for direction in ("to-card", "from-card"):
        print(f"{direction}: MB/s, and us of the processors for a transfer\n")
        print("size    " + "".join(f"{title:>12}" for title in TITLES.values()))
        for bytes_ in sorted({bytes_ for bytes_, *_ in found}):
            cells = []
            for (iommu, way), title in TITLES.items():
                rate, time = (statistics.median(values) for values in found[bytes_, direction, iommu, way])
                cells.append(f"{rate:12.0f}{time:7.0f}"[-12:])
                results += [
                    {
                        "name": f"{direction}, {size(bytes_)}, {title}: {what}",
                        "unit": unit,
                        "ours": value,
                        "command": "make bench-driver",
                    }
                    for what, unit, value in (("throughput", "MB/s", rate), ("processors", "us", time))
                ]
            print(f"{size(bytes_):<8}" + "".join(cells))
        print()
    arguments.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
