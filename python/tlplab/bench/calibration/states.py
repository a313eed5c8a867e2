"""Labels that contradict the measurement.

The suite's older version left the cache cold in some runs that it calls warm, and measured local memory by the command interface where
the DMA engine was given remote memory. The latencies show it: such runs are compared under their true labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import fmean

from tlplab.bench import Case
from tlplab.bench.calibration.dataset import DataSet, Point

WARM = ("host-warm", "device-warm")
# Windows that any last-level cache holds, and all of whose pages an IO-TLB reaches.
SMALL = 256 * 1024
# A hit is some 50 ns faster than a miss on every machine; below a tick and a bit of noise there is no difference.
NO_DIFFERENCE_NS = 5.0


@dataclass(frozen=True)
class Labels:
    """The actual circumstances of the runs, if they differ from the labels of a data set."""

    cold: frozenset[tuple[str, str]] = frozenset()
    """(interface, cache state) of runs that were called warm and were not."""
    local: frozenset[str] = frozenset()
    """Interfaces whose runs were at local memory though the data set is of remote memory."""

    def meant(self, case: Case) -> Case:
        """The case that was measured when `case` was written down."""
        if (case.interface, case.cache) in self.cold:
            case = replace(case, cache="cold")
        return replace(case, node="local") if case.interface in self.local else case

    def notes(self) -> list[str]:
        """In words."""
        said = [f"runs of the {interface} interface labelled {cache} count as cold: they take as long as cold runs"
                for interface, cache in sorted(self.cold)]  # fmt: skip
        return said + [
            f"runs of the {interface} interface were at local memory, by their latency"
            for interface in sorted(self.local)
        ]


def labels_of(data: DataSet, interface_gap_ns: float | None = None) -> Labels:
    """Finds runs whose latencies deny their label.

    `interface_gap_ns` is by how much the device's DMA engine is slower than its command interface for 64 B, which no host changes.
    """
    points = [
        p for p in data.points() if p.case.test == "lat_rd" and p.case.window <= SMALL and p.case.host_offset == 0
    ]
    local = local_interfaces(data, points, interface_gap_ns)
    found = set()
    for interface in ("command", "dma"):
        # What a remote processor warmed is in its own cache, which shortens nothing.
        far = data.setting.node == "remote" and interface not in local
        for cache in ("device-warm",) if far else WARM:
            differences = [data.typical(c) - data.typical(w) for w in points for c in points if w.case.interface == interface
                           and w.case.cache == cache and c.case == replace(w.case, cache="cold")]  # fmt: skip
            if differences and fmean(differences) < NO_DIFFERENCE_NS:
                found.add((interface, cache))
    return Labels(frozenset(found), local)


def local_interfaces(data: DataSet, points: list[Point], interface_gap_ns: float | None) -> frozenset[str]:
    """The interfaces whose runs were local, in a data set of remote memory: the command interface if it is nearer than the DMA engine."""
    by_interface = {which: [data.typical(p) for p in points if is_plain(p, which)] for which in ("command", "dma")}
    if data.setting.node == "local" or interface_gap_ns is None or not all(by_interface.values()):
        return frozenset()
    gap = fmean(by_interface["dma"]) - fmean(by_interface["command"])
    return frozenset({"command"} if gap > interface_gap_ns + 4 * NO_DIFFERENCE_NS else ())


def is_plain(point: Point, interface: str) -> bool:
    """True if the case has 64 B, a cold cache and random addresses."""
    case = point.case
    return case.interface == interface and case.size == 64 and case.cache == "cold" and case.pattern == "random"
