"""The parameters of the simulated machine: fitted to all rows of table 4 together, and to all but one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studies.differential.published import HANDLING_NS, TABLE_4, TABLE_5, Link

PARAMETERS = {
    "ports of the chipset, there and back": "ns",
    "chips of eight lanes, there and back": "ns",
    "the ICH's end of DMI, there and back": "ns",
    "NIC, its own clock, there and back": "ns",
    "NIC, the link's clock, there and back": "clocks",
    "FPGA, configuration space after registers": "clocks",
    "PCI-X hub, a bus transaction": "clocks",
    "the same, at 133 MHz": "ns",
    "the same, at 66 and 33 MHz": "ns",
}
"""All fitted parameters, with their units. None may be negative."""

PORT, CHIP, DMI, NIC_OWN, NIC_LINK, CONFIG, HUB, HUB_FAST, HUB_SLOW = range(9)
LINK_CLOCK_NS = 32.0
"""64 bits of one lane of Gen1."""
TRANSMIT_AND_RECEIVE = sum(delay for _, delay in TABLE_5)


@dataclass(frozen=True)
class Expected:
    """A link's latency: its known part, and its amount of each parameter."""

    known_ns: float
    of: Mapping[int, float]


def expected(link: Link) -> Expected:
    """The composition of a row of table 4 in the simulated machine."""
    if link.bus == "parallel":
        return on_bus(link)
    wire = 176 / link.lanes
    match link.name:
        case "E_a" | "Te_r":
            return Expected(wire, {PORT: 1, CHIP: 1})
        case "D":
            return Expected(wire, {PORT: 1, DMI: 1})
        case "Te_e" | "Te_d":
            return Expected(wire, {PORT: 1, NIC_OWN: 1, NIC_LINK: LINK_CLOCK_NS / link.lanes})
    fpga = {PORT: 1.0, CONFIG: LINK_CLOCK_NS} if link.name.endswith(" c") else {PORT: 1.0}
    return Expected(wire + TRANSMIT_AND_RECEIVE + HANDLING_NS, fpga)


def on_bus(link: Link) -> Expected:
    """Transactions of a parallel bus: clocks of their phases, and the hub's addition to each."""
    medium, split = link.name == "Tb_v", link.name.endswith("ds")
    address_before = 4 if link.name.endswith(" c") and link.cycle_ns < 30 else 0
    # Address, attributes or turnaround, select, data, idle; the second transaction of a split read is the hub's, which claims two clocks sooner.
    phases = (6 if medium else 7) + address_before + (5 if split else 0)
    transactions = 2 if split else 1
    own = HUB_FAST if link.cycle_ns < 10 else HUB_SLOW
    return Expected(phases * link.cycle_ns, {HUB: transactions * link.cycle_ns, own: transactions})


def system(links: Sequence[Link]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The sum that parameters have to make up in each row, and the row's share of each parameter."""
    made = [expected(link) for link in links]
    left = np.array([link.latency_ns - one.known_ns for link, one in zip(links, made, strict=True)])
    shares = np.array([[one.of.get(index, 0.0) for index in range(len(PARAMETERS))] for one in made])
    return left, shares


def fitted(links: Sequence[Link] = TABLE_4) -> NDArray[np.float64]:
    """Least squares of the parameters; the smallest ones where the rows leave some open."""
    left, shares = system(links)
    return np.asarray(np.linalg.lstsq(shares, left, rcond=None)[0], dtype=np.float64)


def left_out(link: Link) -> float | None:
    """The machine's value of a row if all others fit it, less the published one; None if they do not determine it."""
    others = [one for one in TABLE_4 if one is not link]
    _, shares = system(others)
    (missing,), (mine,) = system([link])
    if np.linalg.matrix_rank(np.vstack([shares, mine])) > np.linalg.matrix_rank(shares):
        return None
    return float(mine @ fitted(others) - missing)
