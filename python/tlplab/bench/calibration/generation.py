"""Facts of a processor's generation that a machine's own data do not show."""

from __future__ import annotations

import re

from tlplab.bench.calibration.machine import Machine
from tlplab.bench.calibration.profile import Value

# Figures of page walks on the measured machines of pcie-bench: two Haswell servers, with pages of 4 KiB.
WALKS = {
    "iommu.walk": (251.0, "ns", "229 and 274 ns"),
    "iommu.entries": (119.0, "", "119 and 119"),
    "iommu.interval": (47.1, "ns", "46.9 and 47.4 ns"),
}
MEASURED = "E5-2620 v3 and E5-2637 v3, Haswell servers"


def walk(key: str, machine: Machine, why: str) -> Value:
    """A figure of page walks, `iommu.walk`, `iommu.entries` or `iommu.interval`, which `why` a machine's data do not show."""
    number, unit, figures = WALKS[key]
    same = re.search(r"E5-\d+ v3\b", machine.processor or "")
    whose = MEASURED if same else f"not known of this processor; as {MEASURED}"
    return Value(number, unit, f"{why}; {figures} were measured ({whose})")


def same_processor(one: Machine, other: Machine) -> bool:
    """True if two machines have the same processor."""
    return one.processor is not None and one.processor == other.processor
