"""The figures of the paper: Miller, Watts, Moore, "Motivating Future Interconnects: A Differential Measurement Analysis of PCI Latency" (ANCS 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TSC_STEP_NS = 3
"""Every published minimum is a multiple of it: the counter of the machine advances nine or ten steps of its 3 GHz clock at a time."""

Bus = Literal["PCI Express", "parallel"]


@dataclass(frozen=True)
class Link:
    """A row of table 4."""

    name: str
    description: str
    near: str
    near_ns: int
    far: str
    far_ns: int
    bus: Bus
    lanes: int = 0
    """Of PCI Express."""
    cycle_ns: float = 0
    """Of a parallel bus."""
    clocks: int = 0
    """Bus clocks, as published."""
    on_board_ns: float | None = None
    """"Time on PCB": serialisation, or the clocks of the bus transaction."""

    @property
    def latency_ns(self) -> int:
        """The latency of the link according to the row, ns."""
        return self.far_ns - self.near_ns


def _express(name: str, description: str, near: str, near_ns: int, far: str, far_ns: int, lanes: int) -> Link:
    return Link(name, description, near, near_ns, far, far_ns, "PCI Express", lanes, on_board_ns=176 / lanes)


def _parallel(
    name: str, description: str, far: str, far_ns: int, cycle_ns: float, clocks: int, on_board_ns: float | None = None
) -> Link:
    return Link(name, description, "Bb", 315, far, far_ns, "parallel", 0, cycle_ns, clocks, on_board_ns)


TABLE_4 = (
    _express("E_a", "MCH to PCI-X hub, x8", "Ma", 63, "Bb", 315, 8),
    _express("D", "MCH to ICH, DMI, x4", "M", 63, "I", 429, 4),
    Link("Tb_v", "VGA on PCI 33", "Ib", 423, "Tb_v", 711, "parallel", 0, 30, 10, 180),
    _parallel("Tb di", "PCI 33, data, immediate", "Tb di", 639, 30, 11, 210),
    _parallel("Tb c", "PCI 33, configuration", "Tb c", 639, 30, 11, 210),
    _parallel("Tx_l di", "PCI-X 66, data, immediate", "Tx_l di", 489, 15, 11, 105),
    _parallel("Tx_l ds", "PCI-X 66, data, split", "Tx_l ds", 633, 15, 20),
    _parallel("Tx_l c", "PCI-X 66, configuration", "Tx_l c", 549, 15, 15),
    _parallel("Tx_h di", "PCI-X 133, data, immediate", "Tx_h di", 399, 7.5, 11, 53),
    _parallel("Tx_h ds", "PCI-X 133, data, split", "Tx_h ds", 468, 7.5, 20),
    _parallel("Tx_h c", "PCI-X 133, configuration", "Tx_h c", 429, 7.5, 15),
    _express("Te_e", "NIC 82573 on ICH, x1", "I5", 429, "Te_e c", 1737, 1),
    _express("Te_d", "NIC 82571 on ICH, x4", "I0", 429, "Te_d c", 927, 4),
    _express("Te_r", "RAID card on MCH, x8", "Mb", 63, "Te_r c", 315, 8),
    _express("Te_m ds", "FPGA on MCH, x1, data", "Mb", 63, "Te_m ds", 2169, 1),
    _express("Te_m c", "FPGA on MCH, x1, configuration", "Mb", 63, "Te_m c", 2331, 1),
    _express("Te_i ds", "FPGA on ICH, x1, data", "I0", 429, "Te_i ds", 2535, 1),
    _express("Te_i c", "FPGA on ICH, x1, configuration", "I0", 429, "Te_i c", 2679, 1),
)
"""The main results: minima of a million reads each, and their differences."""

BY_NAME = {link.name: link for link in TABLE_4}


@dataclass(frozen=True)
class Spread:
    """A column of table 2, as its user program measured it; ns."""

    target: str
    minimum: float
    mean: float
    deviation: float


TABLE_2 = (
    Spread("Tx_h di", 399, 403.7, 3.734),
    Spread("Tx_h ds", 477, 493.6, 4.001),
    Spread("Te_m ds", 2169, 2193, 13.13),
)
"""Table 4 has 468 ns for the second."""

TABLE_3 = (
    ("1", ("Tx_h di", "Tx_h di"), (399, 399)),
    ("2a", ("Tx_h ds", "Tx_h ds"), (477, 489)),
    ("2b", ("Tx_h ds", "Tx_h ds"), (486, 489)),
    ("3a", ("Te_m ds", "Te_m ds"), (2169, 2169)),
    ("3b", ("Te_m ds", "Te_m ds"), (2169, 2169)),
    ("4", ("Tx_h di", "Te_m ds"), (399, 2169)),
)
"""Minima of two targets that are read in turn, ns."""

TABLE_5 = (
    ("transmit, transaction layer", 1056),
    ("transmit, data link layer", 336),
    ("transmit, physical layer", 32),
    ("transmit, transceiver", 72),
    ("receive, transceiver", 183),
)
"""The FPGA's core at x1, ns."""

HANDLING_NS = 160
"""The FPGA's user logic: five cycles of 31.25 MHz."""

INFINIBAND = (("PCI-X 133", 84, 4800, 7), ("PCI Express x8", 252, 3800, 27))
"""A ping passes the host's interface four times: latency of one passage, best published ping (ns), share in percent."""
