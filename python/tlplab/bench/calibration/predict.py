"""Predictions: results of profiles for measurements that they never saw.

Three kinds. *Bandwidth*: the device is fitted on the other machines' bandwidths, the host on its latencies, and its bandwidths are
predicted; how soon page walks follow each other, which latencies do not show, comes from another machine. *IOMMU*: the IOMMU's parameters come
from another machine's runs without super-pages, all else from the machine's own runs with the IOMMU off, and its runs without super-pages are
predicted. *Halves*: of a machine that sleeps between requests, which no other is like, half of the series make the host, and the rest is predicted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tlplab.bench.calibration.compare import Comparison, compare, unique
from tlplab.bench.calibration.dataset import DataSet
from tlplab.bench.calibration.device import as_file, fit_device
from tlplab.bench.calibration.generation import same_processor
from tlplab.bench.calibration.hosts import Card, Fresh, fit, lacks
from tlplab.bench.calibration.profile import Profile, Value
from tlplab.bench.calibration.target import Progress
from tlplab.errors import DatasetError


@dataclass(frozen=True)
class Prediction:
    """A prediction: its subject and its basis."""

    data: DataSet
    """The data set to which the prediction is compared."""
    kind: str
    """`bandwidth`, `IOMMU` or `halves`."""
    basis: str
    """For people: where device and host come from."""
    others: tuple[DataSet, ...]
    """The data sets whose bandwidths fit the device."""
    own: tuple[DataSet, ...]
    """The data sets from which the host is calibrated."""
    lender: tuple[DataSet, ...] = ()
    """The data sets whose runs give the IOMMU's parameters."""


def planned(sets: Sequence[DataSet]) -> list[Prediction]:
    """Every prediction that these data sets allow, each machine left out in turn; there may be none."""
    plans = [halves_plan(data) if data.tailed else bandwidth_plan(data, sets) for data in sets]
    plans += [iommu_plan(data, lender, sets) for data in sets for lender in sets
              if data.setting.iommu == lender.setting.iommu == "nosp" and data.machine_name != lender.machine_name
              and not data.tailed and not lender.tailed]  # fmt: skip
    return [plan for plan in plans if plan is not None]


def fitting_device(data: DataSet, sets: Sequence[DataSet]) -> list[DataSet]:
    """Other machines whose writes the device can be fitted on: those whose hosts slow none down."""
    return [
        one
        for one in sets
        if one.machine_name != data.machine_name
        and one.setting.iommu == "off"
        and not one.tailed
        and one.only("bandwidth").series
    ]


def bandwidth_plan(data: DataSet, sets: Sequence[DataSet]) -> Prediction | None:
    """A machine's bandwidth, from its latencies and the others' bandwidths."""
    others = fitting_device(data, sets)
    latencies, bandwidths = data.only("latency"), data.only("bandwidth")
    if not others or not latencies.series or not bandwidths.series:
        return None
    own: list[DataSet] = []
    if data.setting.node == "remote":
        # What is remote cannot be told from one data set.
        near = [one for one in sets if is_local(one, data)] or [one for one in sets if is_twin(one, data)]
        if not near:
            return None
        own = [near[0].only("latency")]
    elif data.setting.iommu == "nosp":
        # How much of the cache devices fill is hidden behind the IO-TLB.
        own = [one.only("latency") for one in sets if is_local(one, data)][:1]
    lender = [
        one for one in sets if one.setting.iommu == "nosp" and one.machine_name != data.machine_name and not one.tailed
    ]
    lender = lender[:1] if data.setting.iommu == "nosp" else []
    basis = f"host: its latencies; device: writes of {', '.join(unique(one.machine_name for one in others))}"
    if own and own[0].machine_name != data.machine_name:
        basis += f"; local memory: {own[0].name}"
    if data.setting.iommu == "nosp":
        basis += (
            f"; page walks follow each other as on {lender[0].name}"
            if lender
            else "; page walks follow each other as on Haswell servers"
        )
    return Prediction(bandwidths, "bandwidth", basis, tuple(others), (*own, latencies), tuple(lender))


def halves_plan(data: DataSet) -> Prediction | None:
    """Every other series of a machine, from those between."""
    if len(data.series) < 2:
        return None
    half, rest = (
        replace(data, series=data.series[first::2], distributions=data.distributions[first::2]) for first in (0, 1)
    )
    return Prediction(rest, "halves", "host: the other half of its series; device: as shipped", (), (half,))


def iommu_plan(data: DataSet, lender: DataSet, sets: Sequence[DataSet]) -> Prediction | None:
    """A machine's runs without super-pages, with the page walks of another."""
    own = [one for one in sets if is_local(one, data)]
    lent = [one for one in sets if is_local(one, lender)]
    others = fitting_device(data, sets)
    if not own or not lent or not others:
        return None
    basis = f"host: its runs with the IOMMU off; IOMMU: {lender.name}"
    return Prediction(
        data, "IOMMU", basis, tuple(others), tuple(one.only("latency") for one in own[:1]), (*lent[:1], lender)
    )


def is_local(one: DataSet, data: DataSet) -> bool:
    """True if `one` is of the same machine, local and without an IOMMU."""
    return one.machine_name == data.machine_name and one.setting.node == "local" and one.setting.iommu == "off"


def is_twin(one: DataSet, data: DataSet) -> bool:
    """True if `one` is of another machine with the same processor, local and without an IOMMU."""
    return same_processor(one.machine, data.machine) and one.setting.node == "local" and one.setting.iommu == "off"


def predict(plan: Prediction, card: Card, progress: Progress) -> list[Comparison]:
    """Fits according to the plan, and compares."""
    if not plan.others:
        return compared(plan, card, progress)
    text, _ = fit_device(plan.others, card.device, card.link_for(plan.data))
    with as_file(text) as device:
        return compared(plan, replace(card, device=device), progress)


def compared(plan: Prediction, card: Card, progress: Progress) -> list[Comparison]:
    """The same with the device that is to be used."""
    lent = fit(plan.lender, card, quietly).profile.values if plan.lender else {}
    if plan.kind == "IOMMU":
        profile = borrow_iommu(fit(plan.own, card, quietly).profile, lent)
    else:
        profile = fit(
            plan.own, card, quietly, {key: replace(value, why=f"lent: {value.why}") for key, value in lent.items()}
        ).profile
    labels = card.labels(plan.own[-1] if plan.kind == "bandwidth" else plan.data)
    return compare(plan.data, Fresh(profile, card, plan.data, plan.data.setting.iommu), labels, progress)


def obstacle(plan: Prediction, card: Card) -> str | None:
    """The reason why a plan cannot be carried out, found without a simulation; None if it can."""
    try:
        return lacks(plan.own, card, plan.data)
    except DatasetError as error:
        return str(error)


def borrow_iommu(profile: Profile, lent: Mapping[str, Value]) -> Profile:
    """The profile with the other's IOMMU."""
    for key, value in lent.items():
        if key.startswith("iommu."):
            profile = profile.with_value(key, value)
    return profile


quietly: Callable[[int, int], None] = lambda _, __: None  # noqa: E731
