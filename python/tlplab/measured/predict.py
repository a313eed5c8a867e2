"""Predictions: what profiles make of measurements that they never saw.

Two kinds. *Bandwidth*: the device is fitted on the other machines' bandwidths, the host on its latencies, and its bandwidths are
predicted. *IOMMU*: the IOMMU's parameters come from another machine's runs without super-pages, all else from the machine's own runs with the
IOMMU off, and its runs without super-pages are predicted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tlplab.measured.compare import Comparison, compare, unique
from tlplab.measured.dataset import DataSet
from tlplab.measured.device import as_file, fit_device
from tlplab.measured.hosts import Card, Fresh, fit
from tlplab.measured.profile import Profile
from tlplab.measured.target import Progress


@dataclass(frozen=True)
class Prediction:
    """What is predicted, and from what."""

    data: DataSet
    """What it is laid beside."""
    kind: str
    """`bandwidth` or `IOMMU`."""
    basis: str
    """For people: where device and host come from."""
    others: tuple[DataSet, ...]
    """Whose bandwidths fit the device."""
    own: tuple[DataSet, ...]
    """That the host is calibrated from."""
    lender: tuple[DataSet, ...] = ()
    """Whose runs give the IOMMU's parameters."""


def planned(sets: Sequence[DataSet]) -> list[Prediction]:
    """Every prediction that these data sets allow, each machine left out in turn; there may be none."""
    plans = [bandwidth_plan(data, sets) for data in sets if data.setting.iommu == "off"]
    plans += [iommu_plan(data, lender, sets) for data in sets for lender in sets
              if data.setting.iommu == lender.setting.iommu == "nosp" and data.machine_name != lender.machine_name]  # fmt: skip
    return [plan for plan in plans if plan is not None]


def bandwidth_plan(data: DataSet, sets: Sequence[DataSet]) -> Prediction | None:
    """A machine's bandwidth, from its latencies and the others' bandwidths."""
    others = [
        one
        for one in sets
        if one.machine_name != data.machine_name and one.setting.iommu == "off" and one.only("bandwidth").series
    ]
    latencies, bandwidths = data.only("latency"), data.only("bandwidth")
    if not others or not latencies.series or not bandwidths.series:
        return None
    # What is remote cannot be told from one data set.
    local = [one.only("latency") for one in sets if is_local(one, data) and data.setting.node == "remote"]
    if data.setting.node == "remote" and not local:
        return None
    basis = f"host: its latencies; device: writes of {', '.join(unique(one.machine_name for one in others))}"
    return Prediction(bandwidths, "bandwidth", basis, tuple(others), (*local, latencies))


def iommu_plan(data: DataSet, lender: DataSet, sets: Sequence[DataSet]) -> Prediction | None:
    """A machine's runs without super-pages, with the page walks of another."""
    own = [one for one in sets if is_local(one, data)]
    lent = [one for one in sets if is_local(one, lender)]
    others = [
        one
        for one in sets
        if one.machine_name != data.machine_name and one.setting.iommu == "off" and one.only("bandwidth").series
    ]
    if not own or not lent or not others:
        return None
    basis = f"host: its runs with the IOMMU off; IOMMU: {lender.name}"
    return Prediction(
        data, "IOMMU", basis, tuple(others), tuple(one.only("latency") for one in own[:1]), (*lent[:1], lender)
    )


def is_local(one: DataSet, data: DataSet) -> bool:
    """Whether `one` is of the same machine, local and without an IOMMU."""
    return one.machine_name == data.machine_name and one.setting.node == "local" and one.setting.iommu == "off"


def predict(plan: Prediction, card: Card, progress: Progress) -> list[Comparison]:
    """Fits what the plan says, and compares."""
    link = card.link_for(plan.data)
    text, _ = fit_device(plan.others, card.device, link)
    with as_file(text) as device:
        fitted = replace(card, device=device)
        profile = fit(plan.own, fitted, quietly).profile
        if plan.lender:
            profile = borrow_iommu(profile, fit(plan.lender, fitted, quietly).profile)
        target = Fresh(profile, fitted, link, plan.data.setting.iommu)
        return compare(
            plan.data, target, card.labels(plan.own[-1] if plan.kind == "bandwidth" else plan.data), progress
        )


def borrow_iommu(profile: Profile, lender: Profile) -> Profile:
    """The profile with the other's IOMMU."""
    for key, value in lender.values.items():
        if key.startswith("iommu."):
            profile = profile.with_value(key, value)
    return profile


quietly: Callable[[int, int], None] = lambda _, __: None  # noqa: E731
