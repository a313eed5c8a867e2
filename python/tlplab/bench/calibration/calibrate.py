"""A host profile from measurements: first guesses, then as much more or less as the simulator says."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from tlplab import _core
from tlplab.bench import Case
from tlplab.bench.calibration import generation, observe
from tlplab.bench.calibration.dataset import DataSet
from tlplab.bench.calibration.observe import Observable
from tlplab.bench.calibration.pauses import Pauses
from tlplab.bench.calibration.profile import FIXED, Profile, Quantiles, Value
from tlplab.bench.calibration.states import Labels
from tlplab.bench.calibration.target import Outcome, Target
from tlplab.bench.running import IOMMU
from tlplab.errors import DatasetError

MakeTarget = Callable[[Profile, str], Target]
"""A target with this host, whose IOMMU is set as said (`off`, `on`, `nosp`)."""

ROUNDS = 5
# Nanoseconds, or a share of the figure, within which it is met.
CLOSE_NS = 0.3
CLOSE_SHARE = 1e-4
# Ways of the last-level caches of servers, those of the measured machines first.
WAYS = (20, 16, 12, 11, 8, 4, 2, 1)
LINE = 64
MIB = 1024**2


@dataclass(frozen=True)
class Fitted:
    """A parameter and its derivation."""

    key: str
    value: Value
    figure: str
    source: str
    measured: float | None = None
    simulated: float | None = None

    def as_json(self) -> dict[str, Any]:
        """As `--json` writes it."""
        return {"parameter": self.key, "value": self.value.number, "unit": self.value.unit, "figure": self.figure,
                "source": self.source, "measured": self.measured, "simulated": self.simulated}  # fmt: skip

    @property
    def residual(self) -> str:
        """The difference of the simulated and the measured value, as text."""
        if self.measured is None or self.simulated is None:
            return "–"
        return f"{self.simulated - self.measured:+.2f}"


@dataclass(frozen=True)
class Device:
    """The properties of the measuring device that a calibration needs."""

    slots: int
    """Reads of a line that it keeps under way, for data without latencies."""
    between_ns: float
    """From the end of one latency to the beginning of the next."""
    mps: int
    alone: Callable[[Sequence[Case]], Mapping[Case, Outcome]]
    """Runs cases with this device on a host that costs nothing."""
    walks: Mapping[str, Value] = field(default_factory=dict)
    """Figures of page walks (`iommu.interval`) that are lent where the data do not show them."""


@dataclass(frozen=True)
class Calibration:
    """A profile and how it came about."""

    profile: Profile
    fitted: tuple[Fitted, ...]


def calibrate(
    sets: Sequence[tuple[DataSet, Labels]], make_target: MakeTarget, device: Device, step: Callable[[int, int], None]
) -> Calibration:
    """Fits a host to data sets of one machine, each in another setting; `step` hears how far it is."""
    profile, observables = start(sets, device)
    simulated: dict[str, float] = {}
    for turn in range(ROUNDS):
        step(turn, ROUNDS)
        simulated = simulate(observables, profile, {id(data): labels for data, labels in sets}, make_target)
        if turn == ROUNDS - 1 or all(is_close(one, simulated[one.key], profile) for one in observables):
            break
        for one in observables:
            profile = profile.with_value(one.key, better(one, profile.values[one.key], simulated[one.key]))
    step(ROUNDS, ROUNDS)
    fitted = [explain(one, profile.values[one.key], simulated[one.key]) for one in observables]
    for known in fitted:
        profile = profile.with_value(known.key, known.value)
    return Calibration(profile, (*given(profile, observables), *fitted, *spread(profile)))


def base_of(sets: Sequence[tuple[DataSet, Labels]]) -> DataSet:
    """The data set that shows the latency of memory and cache: local, and with the IOMMU off if there is such a one."""
    local = [data for data, _ in sets if data.setting.node == "local"]
    if not local:
        data = sets[0][0]
        raise DatasetError(data.path, None, None, "", "it is of remote memory alone, which does not separate the memory from the path to it",
                           "add the machine's data set of local memory, or one of another machine with the same processor")  # fmt: skip
    return min(local, key=lambda data: ("off", "on", "nosp").index(data.setting.iommu))


def start(sets: Sequence[tuple[DataSet, Labels]], device: Device) -> tuple[Profile, list[Observable]]:
    """The profile of first guesses, and the observables that will correct it. Only the device alone is simulated."""
    base = base_of(sets)
    labels = next(labels for data, labels in sets if data is base)
    observables = observe.latency_of(base, labels)
    notes: list[str] = []
    if not observables:
        observables = observe.from_bandwidth(base, labels, device.slots)
        notes.append(
            "The data sets lack latencies of 64 B reads: the parameters follow from bandwidths, by Little's law."
        )
    observables += observe.writes_of(base, labels, device.mps, device.alone)
    for data, its_labels in sets:
        if data.setting.node == "remote":
            observables += observe.node_of(base, labels, data, its_labels)
        elif data.setting.iommu == "nosp":
            observables += observe.iommu_of(data, its_labels)
    if not observables:
        raise DatasetError(base.path, None, None, "", "no measurement determines a parameter of the host",
                           "add random 64 B reads in windows of 256 KiB or less: lat_dma_sweep_rd_rnd_64.csv")  # fmt: skip
    once = {one.key: one for one in reversed(observables)}
    observables = list(reversed(once.values()))
    names = ", ".join(data.name for data, _ in sets)
    others = [data.machine_name for data, _ in sets if data.machine_name != base.machine_name]
    if others:
        notes.append(f"Local memory is that of {base.machine_name}, another machine with the same processor.")
    profile = Profile(
        title=f"{processor_of(base)}, as measured ({others[0] if others else base.machine_name})",
        source=f"Measured with pcie-bench; data sets: {names}",
        completions=completions_of(base),
        notes=tuple(notes),
        iommu=IOMMU[base.setting.iommu],
    )
    size = cache_size_of(base, labels)
    ways = ways_of(base, size)
    far, near = ([one for one in observables if one.key == key] for key in ("memory.latency", "cache.hit"))
    if near and not far:
        # What is nearest is all that is known.
        observables = [replace(near[0], key="memory.latency"), *observables]
        profile = replace(
            profile,
            notes=(
                *profile.notes,
                "No read was cold: memory is as far as warm lines were, and this host has no cache.",
            ),
        )
    if size is not None and ways is not None and near and far:
        profile = profile.with_value("cache.size", size)
        profile = profile.with_value("cache.ways", ways)
        if not any(one.key == "cache.ddio_ways" for one in observables):
            few = min(2.0, ways.number)
            profile = profile.with_value("cache.ddio_ways", Value(few, "", "Intel's default; not in the data"))
        observables = [replace(o, high=ways.number) if o.key == "cache.ddio_ways" else o for o in observables]
    else:
        observables = [one for one in observables if not one.key.startswith("cache.")]
        if far:
            unknown = (
                "The size of the cache is neither in sys-cpuinfo.txt nor visible in host-warm reads"
                if size is None
                else "No warm read took less than a cold one"
            )
            profile = replace(
                profile,
                notes=(*profile.notes, f"{unknown}: this host has no cache, and warm lines take as long as cold ones."),
            )
    for one in observables:
        first = one.bounded(one.first(one.measured(), profile.number))
        profile = profile.with_value(one.key, Value(first, one.unit, one.source))
    profile = with_walks(profile, sets, device)
    return with_pauses(profile, base, labels, device), observables


def with_walks(profile: Profile, sets: Sequence[tuple[DataSet, Labels]], device: Device) -> Profile:
    """The profile of a host with an IOMMU has all figures of page walks: those without data are lent, or the generation's."""
    walking = [data for data, _ in sets if data.setting.iommu != "off"]
    if not walking:
        return profile
    missing = [key for key in generation.WALKS if key not in profile.values]
    for key in missing:
        why = f"{', '.join(data.name for data in walking)}: not in the data"
        profile = profile.with_value(key, device.walks.get(key) or generation.walk(key, walking[0].machine, why))
    if missing:
        names = ", ".join(key.removeprefix("iommu.") for key in missing)
        profile = replace(
            profile,
            notes=(
                *profile.notes,
                f"The data do not show these parameters of page walks: {names}. [host.iommu] names their source.",
            ),
        )
    return profile


def with_pauses(profile: Profile, base: DataSet, labels: Labels, device: Device) -> Profile:
    """The profile with its variations: jitter, or sleep between requests; and stalls."""
    pauses = Pauses(base, labels)
    if stall := pauses.stall(device.between_ns):
        for key, value in zip(("stall.every", "stall.lasts"), stall, strict=True):
            profile = profile.with_value(key, value)
    thresholds = pauses.thresholds(idle_times(device), device.between_ns, write_time(device))
    if thresholds is None:
        return replace(profile, tables=jitter_from(base, labels))
    for key, value in zip(("sleep.doze_after", "sleep.after"), thresholds, strict=True):
        profile = profile.with_value(key, value)
    flat: Quantiles = ((0.0, 0.0), (1.0, 0.0))
    tables = {"sleep.wake": pauses.spread(pauses.asleep) or (flat, "no distribution was given")}
    if doze := pauses.spread(pauses.awake):
        tables["sleep.doze"] = doze
    return replace(profile, tables=tables)


def write_time(device: Device) -> float:
    """By how much a write of 8 B by command before a read of 8 B makes both take longer than the read, in ns."""
    both, read = (Case(test, 8, interface="command") for test in ("lat_wrrd", "lat_rd"))
    outcomes = device.alone([both, read])
    return outcomes[both].average - outcomes[read].average


def idle_times(device: Device) -> dict[str, float]:
    """The time that each interface leaves the host alone between two latencies, in ns: the device's part of a read, and the time between reads."""
    cases = {interface: Case("lat_rd", 64, interface=interface) for interface in ("command", "dma")}
    outcomes = device.alone(list(cases.values()))
    latency = _core.duration_fs(str(FIXED[""]["latency"][0])) / 1e6
    return {interface: outcomes[case].average + device.between_ns + latency for interface, case in cases.items()}


def processor_of(data: DataSet) -> str:
    """`Intel Xeon E5-2620 v3`."""
    name = re.sub(r"\((R|TM)\)|\bCPU\b|@.*", " ", data.machine.processor or "a host of an unknown processor")
    return " ".join(name.split()).removesuffix(" 0")


def cache_size_of(data: DataSet, labels: Labels) -> Value | None:
    """The cache's size: as the machine says, else as many MiB of a window that the processor has touched as random reads find there."""
    if data.machine.cache_size is not None:
        return Value(data.machine.cache_size, "B", "sys-cpuinfo.txt")
    warm = observe.Reader(data, labels).first_of("lat_rd", "host-warm")
    kept = observe.mostly_kept(warm, data.typical)
    if kept is None:
        return None
    source = f"the part of a window that host-warm reads find there; no sys-cpuinfo.txt ({observe.where(warm, data)})"
    return Value(max(round(kept / MIB), 1) * MIB, "B", source)


def ways_of(data: DataSet, size: Value | None) -> Value | None:
    """The cache's ways, which no file of a data set says: as many as its size can be made of."""
    ways = next((one for one in WAYS if size is not None and size.number % (LINE * one) == 0), None)
    if ways is None:
        return None
    known = ways == WAYS[0] and "Xeon E5-" in processor_of(data)
    return Value(ways, "", "Intel Xeon E5: slices of 20 ways" if known else "the size divides by it; not in the data")


def completions_of(data: DataSet) -> tuple[str, str]:
    """The cuts of completions by the root complex, from the processor's generation; bandwidths of all four known machines confirm them."""
    if re.search(r"E5-\d+( 0| v2)?$", processor_of(data)):
        return "split-ends", "Sandy and Ivy Bridge: partial lines at either end come alone"
    if re.search(r"E5-\d+ v3$", processor_of(data)):
        return "split-head", "Haswell: a partial line at the start comes alone"
    return "split-head", "not known of this processor; as Haswell"


def jitter_from(base: DataSet, labels: Labels) -> dict[str, tuple[Quantiles, str]]:
    """The tables of jitter that the distributions give."""
    warm, cold = (observe.jitter_of(base, labels, cache) for cache in ("host-warm", "cold"))
    if warm is None or cold is None:
        known = warm or cold
        return {"jitter.quantiles": known} if known else {}
    return {"jitter.quantiles": warm, "jitter.memory": (observe.above_core(cold[0]), cold[1])}


def simulate(
    observables: Sequence[Observable], profile: Profile, labels: dict[int, Labels], make_target: MakeTarget
) -> dict[str, float]:
    """Each figure, from a simulated host with this profile."""
    found = {}
    for _, group in groupby(sorted(observables, key=lambda o: o.data.path), key=lambda o: o.data.path):
        alike = list(group)
        data = alike[0].data
        meant = labels[id(data)].meant
        cases: dict[Case, None] = dict.fromkeys(meant(point.case) for one in alike for point in one.points)
        outcomes = make_target(profile, data.setting.iommu).run(list(cases), progress=lambda _, __: None)
        for one in alike:
            found[one.key] = one.simulated(lambda point, o=outcomes, m=meant: o[m(point.case)])  # type: ignore[misc]
    return found


def better(one: Observable, value: Value, simulated: float) -> Value:
    """A value corrected once; counts stay whole."""
    number = one.corrected(value.number, simulated)
    return replace(value, number=float(round(number)) if not one.unit else number)


def is_close(one: Observable, simulated: float, profile: Profile) -> bool:
    """True if no better value can be expected."""
    if not one.unit:
        return better(one, profile.values[one.key], simulated) == profile.values[one.key]
    return abs(simulated - one.measured()) < max(CLOSE_NS, CLOSE_SHARE * abs(one.measured()))


def explain(one: Observable, value: Value, simulated: float) -> Fitted:
    """A parameter with its comment."""
    measured = one.measured()
    why = f"{one.source}; {one.figure}: measured {measured:.4g}, simulated {simulated:.4g}"
    return Fitted(one.key, replace(value, why=why), one.figure, one.source, measured, simulated)


def given(profile: Profile, observables: Sequence[Observable]) -> list[Fitted]:
    """Parameters that were not fitted."""
    fitted = {one.key for one in observables}
    return [Fitted(key, value, "not fitted", value.why) for key, value in profile.values.items() if key not in fitted]


def spread(profile: Profile) -> list[Fitted]:
    """The tables of quantiles, by their end."""
    return [Fitted(key, Value(profile.quantiles(key)[-1][1], "ns", why), f"{len(quantiles)} quantiles, the largest", why)
            for key, (quantiles, why) in profile.tables.items() if key not in profile.values]  # fmt: skip
