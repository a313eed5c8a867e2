"""The measurement that shows each parameter of a host.

An `Observable` is a figure that can be taken from measured and from simulated latencies alike, and that one parameter moves: one by one
(a nanosecond more of the parameter is a nanosecond more of the figure) or in proportion. That is all that fitting needs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Literal

from tlplab.bench import Case
from tlplab.bench.calibration.dataset import DataSet, Point
from tlplab.bench.calibration.pauses import Pauses, short_reads
from tlplab.bench.calibration.profile import Quantiles
from tlplab.bench.calibration.states import SMALL, Labels
from tlplab.bench.calibration.target import Outcome

Look = Callable[[Point], float]
"""Gives a point's average in ns (or its bandwidth in Gb/s), measured or simulated."""

# Windows of which next to nothing is in a cache of a few MiB, or in an IO-TLB.
LARGE = 32 * 1024**2
PAGE = 4096
# Between such shares of misses a capacity can be read off a curve.
SHARES = (0.15, 0.97)
# A host that takes writes so much more slowly than the device sends them is what limits them.
SLOWER = 1.1
# Of a long tail of latencies these ranks are kept.
TAIL = (0.95, 0.96, 0.97, 0.98, 0.985, 0.99, 0.993, 0.996, 0.998, 0.999, 0.9995, 0.9999, 0.99999)


@dataclass(frozen=True)
class Observable:
    """A figure, the parameter that it shows, and how it is moved by it."""

    key: str
    """Of the profile, as in `cache.hit`."""
    unit: str
    law: Literal["add", "scale", "fixed"]
    figure: str
    """The compared figure, for people, with its unit."""
    source: str
    """The data set and the file."""
    data: DataSet
    points: tuple[Point, ...]
    read: Callable[[Look], float]
    first: Callable[[float, Callable[[str], float]], float]
    """A first guess from the measured figure and the parameters known by then."""
    low: float = 0.0
    high: float = 1e5
    of: Literal["typical", "shortest"] = "typical"
    """Of a host that sleeps between requests, only the shortest latencies show the host awake."""

    def measured(self) -> float:
        """The figure of the data set."""
        return self.read(lambda point: point.shortest if self.of == "shortest" else self.data.typical(point))

    def simulated(self, outcome: Callable[[Point], Outcome]) -> float:
        """The same figure of a simulated host."""
        if self.of == "shortest":
            return self.read(lambda point: outcome(point).shortest)
        return self.read(lambda point: outcome(point).value if self.data.tailed else outcome(point).average)

    def corrected(self, value: float, simulated: float) -> float:
        """A better value of the parameter, given the simulator's figure with this one."""
        measured = self.measured()
        if self.law == "fixed" or (self.law == "scale" and simulated <= 0):
            return value  # the figure cannot be seen in what was simulated, so that it does not tell anything
        better = value + measured - simulated if self.law == "add" else value * measured / simulated
        return self.bounded(better)

    def bounded(self, value: float) -> float:
        """The nearest value that the parameter can have."""
        return min(max(value, self.low), self.high)


class Reader:
    """Finds points in a data set by their properties."""

    def __init__(self, data: DataSet, labels: Labels) -> None:
        """`labels` names the runs with wrong labels."""
        self.data = data
        self.labels = labels
        pauses = Pauses(data, labels)
        self.asleep, self.awake = pauses.asleep, pauses.awake

    def reads(self, test: str, interface: str, cache: str, size: int = 64) -> list[Point]:
        """Random accesses without offsets, whose label holds, by window."""
        found = []
        for one in self.data.series:
            for point in one.points:
                case = point.case
                alike = (case.test, case.interface, case.cache, case.size, case.pattern) == (
                    test,
                    interface,
                    cache,
                    size,
                    "random",
                )
                if alike and case.host_offset == case.device_offset == 0 and self.labels.meant(case) == case:
                    found.append(point)
        return sorted(found, key=lambda p: p.case.window)

    def first_of(self, test: str, cache: str) -> list[Point]:
        """The same by whichever interface was measured: the DMA engine, which bandwidths need, else commands.

        Of a host that sleeps, by the interface that finds it awake first; and without random accesses of 64 B, short ones of any kind.
        """
        order = ("command", "dma") if self.asleep == "dma" else ("dma", "command")
        for interface in order:
            if found := self.reads(test, interface, cache):
                return found
        return next((found for one in order if (found := self.short(test, one, cache))), [])

    def short(self, test: str, interface: str, cache: str) -> list[Point]:
        """Accesses of a line or less whose label holds, in whichever order and wherever in their line."""
        every = [p for one in self.data.series if one.quantity == "latency" for p in one.points]
        return [p for p in every if (p.case.test, p.case.interface) == (test, interface) and p.case.size <= 64
                and self.labels.meant(p.case).cache == cache and self.labels.meant(p.case).node == p.case.node]  # fmt: skip

    def of(self, points: Sequence[Point]) -> Literal["typical", "shortest"]:
        """The statistic of these latencies that shows the host awake."""
        return "shortest" if points and points[0].case.interface == self.asleep else "typical"


def small(points: Sequence[Point]) -> list[Point]:
    """The points whose window fits everywhere."""
    return [p for p in points if p.case.window <= SMALL]


def large(points: Sequence[Point]) -> list[Point]:
    """The points whose window fits nowhere."""
    return [p for p in points if p.case.window >= LARGE]


def mean(points: Sequence[Point], look: Look) -> float:
    """The average of averages."""
    return fmean(look(point) for point in points)


def capacity(points: Sequence[Point], look: Look) -> float | None:
    """The kept amount, in bytes, if random accesses to a window of w bytes miss with a share of 1 - capacity/w."""
    low, high = mean(small(points), look), mean(large(points), look)
    if high <= low:
        return None
    shares = [(point.case.window, (look(point) - low) / (high - low)) for point in points if point.case.window > SMALL]
    usable = [(window, share) for window, share in shares if SHARES[0] < share < SHARES[1] and window < LARGE]
    if not usable:
        return None
    # The largest windows miss almost always, not always; what is left over corrects the first estimate.
    kept = median((1 - share) * window for window, share in usable)
    top = fmean(1 - kept / p.case.window for p in large(points))
    return float(median((1 - share * top) * window for window, share in usable))


def flip(points: Sequence[Point], look: Look) -> float | None:
    """The kept amount, in bytes, from medians alone: they turn from hit to miss when half of a window is kept."""
    low, high = mean(small(points), look), mean(large(points), look)
    kept = [p.case.window for p in points if look(p) < (low + high) / 2]
    gone = [p.case.window for p in points if look(p) >= (low + high) / 2]
    return math.sqrt(max(kept) * min(gone)) / 2 if kept and gone and high > low else None


def mostly_kept(points: Sequence[Point], look: Look) -> float | None:
    """The most that is kept of a window, in bytes, among those of which more than half is."""
    if not small(points) or not large(points):
        return None
    low, high = mean(small(points), look), mean(large(points)[-1:], look)
    if high <= low:
        return None
    shares = [(point.case.window, (look(point) - low) / (high - low)) for point in points]
    return max((1 - share) * window for window, share in shares if share < 0.5)


def where(points: Sequence[Point], data: DataSet) -> str:
    """The file of some points of a data set."""
    files = dict.fromkeys(one.file for one in data.series for point in one.points if point in set(points))
    return f"{data.name}: {', '.join(files)}"


def latency_of(data: DataSet, labels: Labels) -> list[Observable]:
    """The latencies of reads from memory and from the cache, and the part of the cache that devices may fill."""
    reader = Reader(data, labels)
    found: list[Observable] = []
    cold = small(reader.first_of("lat_rd", "cold")) or small(reader.first_of("lat_rd", "device-thrash"))
    if cold:
        found.append(Observable("memory.latency", "ns", "add", f"{name_of(cold)}, cold, ns", where(cold, data), data, tuple(cold),
                                lambda look: mean(cold, look), lambda _, __: 100.0, of=reader.of(cold)))  # fmt: skip
    device, host = (small(reader.first_of("lat_rd", cache)) for cache in ("device-warm", "host-warm"))
    warm, name = (device, "device-warm") if device else (host, "host-warm")
    if warm:
        found.append(Observable("cache.hit", "ns", "add", f"{name_of(warm)}, {name}, ns", where(warm, data), data, tuple(warm),
                                lambda look: mean(warm, look), lambda _, __: 50.0, of=reader.of(warm)))  # fmt: skip
    both = [
        (h, d) for h in host for d in device if (h.case.window, h.case.interface) == (d.case.window, d.case.interface)
    ]
    if both:
        pairs = tuple(point for pair in both for point in pair)
        found.append(Observable("cache.snoop", "ns", "add", "64 B read, host-warm less device-warm, ns", where(pairs, data), data, pairs,
                                lambda look: fmean(look(h) - look(d) for h, d in both), lambda measured, _: max(measured, 0.0)))  # fmt: skip
    elif device and host:
        # By different interfaces: the hit is known from one, what is more in the other is the snoop.
        found.append(
            Observable(
                "cache.snoop",
                "ns",
                "add",
                "64 B read, host-warm, ns",
                where(host, data),
                data,
                tuple(host),
                lambda look: mean(host, look),
                lambda _, __: 10.0,
            )
        )
    return found + allocation_of(reader) + sleep_of(reader)


def name_of(points: Sequence[Point]) -> str:
    """The name of these reads, for people."""
    sizes = sorted({p.case.size for p in points})
    return f"{sizes[0]} B read" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} B read"


def sleep_of(reader: Reader) -> list[Observable]:
    """The usual wait of a request that finds the host asleep."""
    if reader.asleep is None:
        return []
    data = reader.data
    points = small(reader.reads("lat_rd", reader.asleep, "cold"))
    points = points or small(short_reads(data, reader.labels, reader.asleep))
    return [Observable("sleep.wake", "ns", "add", f"{name_of(points)} ({reader.asleep} interface), which find the host asleep, ns", where(points, data),
                       data, tuple(points), lambda look: mean(points, look),
                       lambda measured, _: measured - fmean(p.shortest for p in points))]  # fmt: skip


def allocation_of(reader: Reader) -> list[Observable]:
    """The number of ways of the cache that devices may fill, and the cost of a write that finds no room in them."""
    data = reader.data
    found: list[Observable] = []
    warm = reader.reads("lat_rd", "command", "device-warm") or reader.reads("lat_rd", "dma", "device-warm")
    # With pages of 4 KiB the IO-TLB fades with larger windows, too.
    fades = data.setting.iommu == "nosp"
    share = capacity(warm, data.typical) if small(warm) and large(warm) and not fades else None
    size = data.machine.cache_size
    if share is not None and size is not None:
        found.append(Observable("cache.ddio_ways", "", "scale", "bytes that devices keep in the cache, MiB", where(warm, data), data, tuple(warm),
                                lambda look: (capacity(warm, look) or 0.0) / 1024**2,
                                lambda measured, number: measured * 1024**2 / size * number("cache.ways"), low=1))  # fmt: skip
    writes = reader.reads("lat_wrrd", "command", "cold")
    ends = (*small(writes), *large(writes))
    # A write and a read together take longer than a read, which may be long enough to fall asleep.
    of: Literal["typical", "shortest"] = "shortest" if reader.asleep else "typical"
    if small(writes):
        found.append(Observable("commit", "ns", "add", "64 B write and read by commands, 256 KiB and less, ns", where(writes, data), data,
                                tuple(small(writes)), lambda look: mean(small(writes), look), lambda _, __: 50.0, of=of))  # fmt: skip
    if small(writes) and large(writes) and not fades:
        found.append(Observable("cache.write_allocate", "ns", "add", "64 B write and read by commands, 32 MiB and more, ns",
                                where(ends, data), data, tuple(large(writes)), lambda look: mean(large(writes), look),
                                lambda _, __: 10.0, of=of))  # fmt: skip
    return found


def node_of(local: DataSet, local_labels: Labels, remote: DataSet, remote_labels: Labels) -> list[Observable]:
    """The time of the way to the other node."""
    # The program runs on the other node and cannot empty this one's cache; what devices write can.
    near, far = (small(Reader(data, labels).reads("lat_rd", "dma", cache))
                 for data, labels, cache in ((local, local_labels, "cold"), (remote, remote_labels, "device-thrash")))  # fmt: skip
    if not near or not far:
        return []
    gap = mean(near, local.typical)
    found = [Observable("numa.hop", "ns", "add", "64 B read, cold, remote less local, ns", where(far, remote), remote, tuple(far),
                        lambda look: mean(far, look) - gap, lambda measured, _: max(measured, 0.0))]  # fmt: skip
    writes = Reader(remote, remote_labels).reads("lat_wrrd", "dma", "cold")
    ends = (*small(writes), *large(writes))
    if small(writes) and large(writes):
        found.append(Observable("numa.write_allocate", "ns", "add", "64 B write and read, remote, 32 MiB and more less 256 KiB and less, ns",
                                where(ends, remote), remote, ends, lambda look: mean(large(writes), look) - mean(small(writes), look),
                                lambda measured, _: max(measured, 0.0)))  # fmt: skip
    return found


def iommu_of(data: DataSet, labels: Labels) -> list[Observable]:
    """The number of translations that are kept, the time of a page walk, and the interval at which walks begin."""
    reader = Reader(data, labels)
    # Of a host that sleeps, all windows are to find it asleep: where a walk makes the difference, it is not the walk alone that is seen.
    order = ("dma", "command") if reader.asleep == "dma" else ("command", "dma")
    cold = reader.reads("lat_rd", order[0], "cold") or reader.reads("lat_rd", order[1], "cold")
    ends = (*small(cold), *large(cold))
    share = flip if data.tailed else capacity
    if not small(cold) or not large(cold) or share(cold, data.typical) is None:
        return []
    found = [
        Observable("iommu.walk", "ns", "add", "64 B read, cold, 32 MiB and more less 256 KiB and less, ns", where(ends, data), data, ends,
                   lambda look: mean(large(cold), look) - mean(small(cold), look), lambda measured, _: max(measured, 0.0)),
        Observable("iommu.entries", "", "fixed" if data.tailed else "scale", "pages of 4 KiB that are kept", where(cold, data), data, tuple(cold),
                   lambda look: (share(cold, look) or 0.0) / PAGE, lambda measured, _: measured, low=1, high=4096),
    ]  # fmt: skip
    many = list(large(reader.reads("bw_rd", "dma", "cold")))
    if many:
        found.append(Observable("iommu.interval", "ns", "add", "64 B reads, cold, 32 MiB and more, ns for each", where(many, data), data,
                                tuple(many), lambda look: 512 / mean(many, look), lambda measured, _: measured))  # fmt: skip
    return found


def writes_of(
    data: DataSet, labels: Labels, mps: int, alone: Callable[[Sequence[Case]], Mapping[Case, Outcome]]
) -> list[Observable]:
    """The interval of posted writes, of hosts that take them more slowly than the device sends them."""
    points = [p for one in data.series for p in one.points if p.case.test == "bw_wr" and p.case.size % mps == 0 and p.case.window <= SMALL
              and p.case.host_offset == p.case.device_offset == 0]  # fmt: skip
    if not points:
        return []

    def each(look: Look) -> float:
        return median(mps * 8 / look(p) for p in points)

    cases = {p: replace(labels.meant(p.case), node="local") for p in points}
    outcomes = alone(list(dict.fromkeys(cases.values())))
    device = each(lambda p: outcomes[cases[p]].value)
    if each(data.typical) < SLOWER * device:
        return []
    return [Observable("write_interval", "ns", "add", f"writes, for each {mps} B, ns", where(points, data), data, tuple(points), each,
                       lambda measured, _: measured)]  # fmt: skip


def from_bandwidth(data: DataSet, labels: Labels, slots: int) -> list[Observable]:
    """Latencies by Little's law, where no latency was measured: the device keeps `slots` small reads under way."""
    reader = Reader(data, labels)
    found = []
    for key, cache in (("memory.latency", "cold"), ("cache.hit", "host-warm")):
        points = [p for p in reader.reads("bw_rd", "dma", cache) if p.case.window <= SMALL]
        if points:
            found.append(Observable(key, "ns", "add", f"{slots} reads of 64 B under way, {cache}: latency, ns", where(points, data), data, tuple(points),
                                    lambda look, points=points: slots * 512 / mean(points, look),  # type: ignore[misc]
                                    lambda _, __: 100.0))  # fmt: skip
    return found


def above_core(quantiles: Quantiles) -> Quantiles:
    """The tail alone: the part above the step at which most values are."""
    core = max(itertools.pairwise(quantiles), key=lambda pair: pair[1][0] - pair[0][0])[1]
    return ((0.0, 0.0), *((rank, round(max(ns - core[1], 0.0), 1)) for rank, ns in quantiles if rank >= core[0]))


def jitter_of(data: DataSet, labels: Labels, cache: str) -> tuple[Quantiles, str] | None:
    """The variation of the latency of a 64 B read: quantiles of its excess over the shortest, and the file.

    A timestamp is cut to its tick at a random phase, so the share of samples up to tick k is the mean of the distribution over the tick
    that begins there. The core of the distribution is narrower than a tick: it is put where those means say; all else is linear.
    """
    which = [d for d in data.distributions if d.case.test == "lat_rd" and d.case.cache == cache and d.case.window <= SMALL
             and d.case.size <= 64 and labels.meant(d.case) == d.case]  # fmt: skip
    if not which or data.tick is None:
        return None
    chosen = max(which, key=lambda d: d.case.interface == "dma").without_stalls()
    tick = data.tick
    grid = [0.0, *(up_to for _, up_to in chosen.steps), 1.0]
    times = [chosen.steps[0][0] - tick, *(ns for ns, _ in chosen.steps), chosen.steps[-1][0] + tick]
    core = max(range(1, len(grid) - 1), key=lambda k: grid[k + 1] - grid[k - 1])
    before, after = grid[core - 1], grid[core + 1]
    begins = times[core] + (times[core + 1] - times[core]) * (after - grid[core]) / (after - before)
    shortest = begins - tick / 2 if before > 0.001 else begins
    quantiles = [(0.0, 0.0)]
    if before > 0.001:
        quantiles.append((before, begins - shortest))
    for up_to, ns in zip(grid[core + 1 :], times[core + 1 :], strict=True):
        later = (up_to, max(ns + tick / 2 - shortest, quantiles[-1][1]))
        quantiles.append((later[0], begins - shortest) if len(quantiles) < 2 + (before > 0.001) else later)
    return thinned(quantiles), f"{data.name}: {chosen.file}"


def thinned(quantiles: list[tuple[float, float]], most: int = 12) -> Quantiles:
    """Rising quantiles up to rank 1, and of a long tail only some."""
    rising: list[tuple[float, float]] = []
    for rank, ns in quantiles:
        rank = min(round(rank, 6), 1.0)
        if not rising or rank > rising[-1][0]:
            rising.append((rank, round(ns, 1)))
    if rising[-1][0] < 1:
        rising.append((1.0, rising[-1][1]))
    if len(rising) <= most:
        return tuple(rising)
    tail = [max(k for k, (rank, _) in enumerate(rising) if rank <= wanted) for wanted in TAIL if wanted >= rising[3][0]]
    return tuple(rising[k] for k in sorted({0, 1, 2, 3, *tail, len(rising) - 1}))
