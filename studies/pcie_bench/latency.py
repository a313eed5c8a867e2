"""Figure 2: the latency of a NIC in loop-back and PCIe's part of it; and the consequences of that latency for a NIC."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from studies.pcie_bench.section import compared, judged
from tlplab import model
from tlplab.reproduce import Outcomes, Row
from tlplab.reproduce.curves import Curves
from tlplab.reproduce.markdown import table
from tlplab.reproduce.section import Section

# "The round trip latency for a 128B payload is around 1000 ns with PCIe contributing around 900 ns."
FITTED_AT, TOTAL_NS, PCIE_NS = 128, 1000, 900
SIZES = np.arange(64, 1501)
ETHERNET = 40e9


@dataclass(frozen=True)
class Nic:
    """The loop-back NIC: `crates/analytic/src/loopback.rs`. Its link is gen3 x8, the host stores 64 B at once."""

    pcie_ns: float
    """The time of host, root complex and PCIe core for any packet, ns; fitted."""
    nic_ns: float
    """The time of the rest of the NIC for any packet, ns; fitted."""
    ethernet: float
    """Bits per second."""

    def parts(self, sizes: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Latency in all, and PCIe's share of it in per cent."""
        grid = model.loopback(sizes, pcie_ns=self.pcie_ns, nic_ns=self.nic_ns, ethernet=self.ethernet)
        total = grid["pcie_ns"] + grid["nic_ns"]
        return total, 100 * grid["pcie_ns"] / total

    def at(self, size: int) -> tuple[float, float]:
        """The same of one size."""
        total, share = self.parts(size)
        return float(total), float(share)


def fitted(ethernet: float = ETHERNET) -> Nic:
    """The NIC whose two constants give the published figures of packets of 128 B."""
    bare = model.loopback(FITTED_AT, pcie_ns=0, nic_ns=0, ethernet=ethernet)
    return Nic(PCIE_NS - float(bare["pcie_ns"]), TOTAL_NS - PCIE_NS - float(bare["nic_ns"]), ethernet)


def under_way() -> float:
    """Transfers under way for frames of 128 B at 40 Gb/s."""
    line_rate = float(model.nic(FITTED_AT, ethernet=ETHERNET)["ethernet_frames_per_s"])
    found = model.in_flight(FITTED_AT, latency_ns=PCIE_NS, wanted=line_rate)
    return next(use["needed"] for use in found["resources"] if use["resource"] == "transfers")


def where(nic: Nic, share: float) -> int:
    """The first size at which PCIe's share is no more than so much."""
    return int(SIZES[nic.parts(SIZES)[1] <= share][0])


def rows(_outcomes: Outcomes) -> list[Row]:
    """Figure 2 and the paragraph on it."""
    nic = fitted()
    (total, share), (longest, least) = nic.at(FITTED_AT), nic.at(1500)
    frame_ns = 1e9 / float(model.nic(FITTED_AT, ethernet=ETHERNET)["ethernet_frames_per_s"])
    # 512 B is our choice, and so reproduces nothing.
    place = f"the text does not say at which size the figure has it; here {where(nic, 84.4)} B"
    return [
        compared("figure 2, 128 B", TOTAL_NS, total, "ns", 0.02, "fitted: the NIC's constant"),
        compared("figure 2, 128 B: PCIe's part", PCIE_NS, total * share / 100, "ns", 0.02, "fitted: PCIe's constant"),
        compared("figure 2, 64 B: PCIe's share", 90.6, nic.at(64)[1], "%", 0.02),
        judged("figure 2, between (ours: 512 B): PCIe's share", 84.4, nic.at(512)[1], "%", False, place),
        compared("figure 2, 1500 B: PCIe's share", 77.2, least, "%", 0.02),
        judged("figure 2, 1500 B", None, longest, "ns", 400 <= longest <= 2400, remark="within the figure's axis"),
        compared("a packet of 128 B each, at 40 Gb/s", 30, frame_ns, "ns", 0.02),
        compared("DMAs under way for that, at least", 30, under_way(), "", 0.02, "900 ns / 29.6 ns"),
    ]  # fmt: skip


def text(_outcomes: Outcomes) -> str:
    """The section of the page."""
    sizes = (64, 128, 256, 512, 1024, 1500)
    nic = fitted()
    total, share = nic.parts(sizes)
    lines = [["latency, ns", *(f"{one:.0f}" for one in total)], ["PCIe's share, %", *(f"{one:.1f}" for one in share)]]
    return TEXT.format(
        nic=nic, table=table(["packet, B", *map(str, sizes)], lines), slow=fitted(10e9).at(1500)[1],
        pcie_slope=slope(0), nic_slope=slope(1),
    )  # fmt: skip


def slope(part: int) -> float:
    """Nanoseconds that each byte between 128 and 1500 takes, of PCIe (0) or the NIC (1)."""
    name = ("pcie_ns", "nic_ns")[part]
    found = model.loopback([128, 1500], pcie_ns=0, nic_ns=0, ethernet=ETHERNET)[name]
    return float(found[1] - found[0]) / (1500 - 128)


TEXT = """## Figure 2: a NIC in loop-back

The host stores the packet into the NIC's memory, the NIC sends it to itself and writes it to the host's memory: each packet crosses the link
twice and the Ethernet once, one after the other. Two constants are fitted, both to the text's figures for 128 B (around 1000 ns, around 900 of
them PCIe):

* `pcie_ns` = {nic.pcie_ns:.1f} ns: host, root complex and PCIe core, for any packet;
* `nic_ns` = {nic.nic_ns:.1f} ns: the rest of the NIC, for any packet.

The time of a byte is not fitted: {pcie_slope:.3f} ns for stores of 64 B down and writes of up to 256 B up a gen3 x8 link, {nic_slope:.3f} ns at 40 Gb/s. The
paper does not name the model of ExaNIC; at 10 Gb/s PCIe's share of 1500 B could not be more than {slow:.0f} %, so a NIC of that rate is excluded. The shares
other than that of 128 B follow:

{table}
"""


def drawings(_outcomes: Outcomes) -> tuple[Curves, ...]:
    """Figure 2."""
    total, share = fitted().parts(SIZES)
    lines = (("NIC", SIZES, total), ("PCIe's part", SIZES, total * share / 100))
    return (Curves("Figure 2: a NIC in loop-back", "packet, bytes", "ns", lines),)


SECTION = Section(rows, text, drawings)
