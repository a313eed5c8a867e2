"""Hosts that save power: which measurement shows that they sleep, how long they wake, and how often they are away.

The latencies show a machine that sleeps between requests: the usual ones are far above the shortest. One interface of the
device may come back soon enough to find the host awake while the other, which leaves it alone for longer, does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from tlplab.bench.calibration.dataset import DataSet, Distribution, Point
from tlplab.bench.calibration.profile import Quantiles, Value
from tlplab.bench.calibration.states import SMALL, Labels

# A median that is so much above the shortest latency is not the same event.
ASLEEP = 0.25
# Ranks at which the tables of what a request waits for are kept.
RANKS = (0.01, 0.05, 0.25, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995)  # fmt: skip
INTERFACES = ("dma", "command")
LINE = 64
WORD = 8


def short_reads(data: DataSet, labels: Labels, interface: str) -> list[Point]:
    """Reads of a line or less in windows that fit everywhere, by an interface, with any content of the cache."""
    return [p for one in data.series if one.quantity == "latency" for p in one.points
            if p.case.test == "lat_rd" and p.case.interface == interface and p.case.size <= LINE and p.case.window <= SMALL
            and p.case.node == labels.meant(p.case).node]  # fmt: skip


def is_asleep(points: Sequence[Point]) -> bool:
    """True if these reads usually wait for the host to wake."""
    return bool(points) and median(p.value / p.shortest for p in points) > 1 + ASLEEP


@dataclass(frozen=True)
class Pauses:
    """The facts about pauses in a data set: the interfaces that find the host awake and asleep."""

    data: DataSet
    labels: Labels

    @property
    def asleep(self) -> str | None:
        """The interface that does not come back soon enough."""
        return next((one for one in INTERFACES if is_asleep(short_reads(self.data, self.labels, one))), None)

    @property
    def awake(self) -> str | None:
        """The interface that does."""
        points = {one: short_reads(self.data, self.labels, one) for one in INTERFACES}
        return next((one for one, reads in points.items() if reads and not is_asleep(reads)), None)

    @property
    def awake_behind_writes(self) -> bool:
        """True if a read behind a short write, which comes later by the device's time for that write, finds the host awake, too."""
        points = [p for one in self.data.series if one.quantity == "latency" for p in one.points
                  if p.case.test == "lat_wrrd" and p.case.interface == self.awake and p.case.size <= WORD and p.case.window <= SMALL]  # fmt: skip
        return bool(points) and not is_asleep(points)

    def distributions(self, interface: str | None) -> list[Distribution]:
        """The distributions of short reads in small windows by an interface."""
        return [d for d in self.data.distributions if d.case.test == "lat_rd" and d.case.interface == interface
                and d.case.size <= LINE and d.case.window <= SMALL]  # fmt: skip

    def spread(self, interface: str | None) -> tuple[Quantiles, str] | None:
        """The spread of latencies about their median, which is 0, and the file; of shorter latencies, only that they are shorter is known."""
        found = self.distributions(interface)
        if not found:
            return None
        usual = found[0].without_stalls()
        middle = usual.quantile(0.5)
        quantiles = [(0.0, round(usual.steps[0][0] - middle, 1))]
        quantiles += [(rank, round(usual.quantile(rank) - middle, 1)) for rank in RANKS]
        return (*quantiles, (1.0, round(usual.steps[-1][0] - middle, 1))), f"{self.data.name}: {usual.file}"

    def thresholds(self, idle: Mapping[str, float], between_ns: float, write_ns: float) -> tuple[Value, Value] | None:
        """After which pause the host dozes, and after which it sleeps, where an interface leaves it alone for `idle` ns between reads.

        A write by command before a read takes the device `write_ns`, by which that pause is longer. Under load, a request follows an answer without the device's time between two measured reads.
        """
        if self.asleep is None:
            return None
        deep = idle[self.asleep]
        if self.awake is None or idle[self.awake] >= deep:
            why = f"not known: pauses of {deep:.0f} ns are longer ({self.asleep} interface)"
            return Value((deep + deep - between_ns) / 2, "ns", why), Value((deep + deep - between_ns) / 2, "ns", why)
        near = idle[self.awake]
        loaded = near - between_ns
        doze = f"between pauses of {loaded:.0f} ns under load and of {near:.0f} ns ({self.awake} interface)"
        doze_after = Value((loaded + near) / 2, "ns", doze)
        behind = ""
        if self.awake == "command" and self.awake_behind_writes and near + write_ns < deep:
            near, behind = near + write_ns, " and short writes before them"
        why = f"between pauses of {near:.0f} ns, after which reads find it awake ({self.awake} interface{behind}), and of {deep:.0f} ns, after which they do not ({self.asleep})"
        return doze_after, Value((near + deep) / 2, "ns", why)

    def stall(self, between_ns: float) -> tuple[Value, Value] | None:
        """The interval of stalls, and the length of one, from the distributions of short reads."""
        every, lasts = [], []
        for one in (d for interface in INTERFACES for d in self.distributions(interface)):
            stalls, usual = one.stalls(), one.without_stalls()
            share = sum(part for _, part in stalls)
            if share > 0:
                lasts.append(sum(ns * part for ns, part in stalls) / share)
                mean = sum(
                    ns * (up_to - before)
                    for (ns, up_to), (_, before) in zip(usual.steps, ((0.0, 0.0), *usual.steps), strict=False)
                )
                every.append((mean * (1 - share) + between_ns) / share)
        if not every:
            return None
        why = f"{self.data.name}: {self.distributions('dma' if self.distributions('dma') else 'command')[0].file}; "
        return (Value(median(every), "ns", f"{why}the time of the reads between two that take more than 100 µs"),
                Value(median(lasts), "ns", f"{why}reads that take more than 100 µs, on average"))  # fmt: skip
