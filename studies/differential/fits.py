"""The paper's model of a PCI Express link, T = 2 (T_proc + T_serdes / n + T_flight) = a + b / n, fitted to classes of links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from studies.differential.published import BY_NAME, TABLE_4, Link

EXPRESS = tuple(link for link in TABLE_4 if link.bus == "PCI Express")


def named(*names: str) -> tuple[Link, ...]:
    """Rows of table 4."""
    return tuple(BY_NAME[name] for name in names)


CLASSES: dict[str, tuple[Link, ...]] = {
    "all nine links": EXPRESS,
    "without DMI and the on-board NIC (the paper's)": tuple(one for one in EXPRESS if one.name not in ("D", "Te_e")),
    "the paper's, of the FPGA only data": named("E_a", "Te_r", "Te_d", "Te_m ds", "Te_i ds"),
    "chipset ports and ASICs": named("E_a", "Te_r", "D", "Te_d", "Te_e"),
    "the Intel NICs": named("Te_e", "Te_d"),
}
"""Sets of links that are fitted together. The paper's choice is the second; the third has one kind of register, the last two are by the maker of the
logic."""


@dataclass(frozen=True)
class Fit:
    """a + b / n, ns."""

    a: float
    b: float

    def of(self, link: Link) -> float:
        """The fit's value for a link."""
        return self.a + self.b / link.lanes

    def rms(self, links: Sequence[Link]) -> float:
        """Root of the mean square of its errors, ns."""
        return float(np.sqrt(np.mean([(self.of(link) - link.latency_ns) ** 2 for link in links])))

    def r2(self, links: Sequence[Link]) -> float:
        """Share of the variance that it explains."""
        latencies = np.array([link.latency_ns for link in links], dtype=float)
        return 1 - len(links) * self.rms(links) ** 2 / float(((latencies - latencies.mean()) ** 2).sum())


def least_squares(links: Sequence[Link], *, physical: bool) -> Fit | None:
    """The best fit, with neither part negative if it is to be physical; None if all links are of one width."""
    if len({link.lanes for link in links}) < 2:
        return None
    inverse = np.array([1 / link.lanes for link in links])
    latencies = np.array([link.latency_ns for link in links], dtype=float)
    b, a = np.polyfit(inverse, latencies, 1)
    if physical and a < 0:
        a, b = 0.0, float(inverse @ latencies / (inverse @ inverse))
    if physical and b < 0:
        a, b = float(latencies.mean()), 0.0
    return Fit(float(a), float(b))


def left_out(links: Sequence[Link]) -> list[tuple[Link, float | None]]:
    """The error of a physical fit to all other links, for each link, ns; None if the others do not determine it."""
    found: list[tuple[Link, float | None]] = []
    for link in links:
        fit = least_squares([other for other in links if other is not link], physical=True)
        found.append((link, None if fit is None else fit.of(link) - link.latency_ns))
    return found
