"""Comparison of measured and simulated: errors of every series."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tlplab.bench import Case
from tlplab.bench.calibration.dataset import DataSet
from tlplab.bench.calibration.states import Labels
from tlplab.bench.calibration.target import Outcome, Progress, Target

Kind = Literal["bandwidth", "latency", "distribution"]
# At which distributions are compared.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999)
# Latencies are on a grid: one step, and what is lost in writing it down.
ROUNDING_NS = 0.01


@dataclass(frozen=True)
class Comparison:
    """A series, measured and simulated."""

    host: str
    series: str
    kind: Kind
    file: str
    swept: str
    positions: tuple[float, ...]
    """Of the points on the swept axis; of a distribution the quantiles."""
    measured: tuple[float, ...]
    """Gb/s or ns."""
    simulated: tuple[float, ...]
    tick: float | None = None
    """Of latencies, in ns."""

    @property
    def errors(self) -> list[float]:
        """Relative, without sign."""
        return [abs(ours / theirs - 1) for ours, theirs in zip(self.simulated, self.measured, strict=True)]

    @property
    def within_tick(self) -> list[bool]:
        """Of each latency, whether it is within one step of the timestamps."""
        if self.tick is None:
            return []
        pairs = zip(self.simulated, self.measured, strict=True)
        return [abs(ours - theirs) <= self.tick + ROUNDING_NS for ours, theirs in pairs]


@dataclass(frozen=True)
class Summary:
    """A line of `tlplab validate`."""

    host: str
    series: str
    kind: str
    points: int
    median_error: float
    p95_error: float
    max_error: float
    within_tick: float | None
    """The share of latencies within one step of the timestamps."""

    def as_json(self) -> dict[str, Any]:
        """As `--json` writes it."""
        return {**vars(self)}


def summarise(host: str, series: str, comparisons: Sequence[Comparison]) -> Summary:
    """All points of some comparisons of one kind, as one line."""
    errors = [error for one in comparisons for error in one.errors]
    near = [one for comparison in comparisons for one in comparison.within_tick]
    median, p95, most = (quantile(sorted(errors), q) for q in (0.5, 0.95, 1.0))
    within = sum(near) / len(near) if near else None
    return Summary(host, series, comparisons[0].kind, len(errors), median, p95, most, within)


def quantile(rising: Sequence[float], rank: float) -> float:
    """Of sorted values, linear between them."""
    at = rank * (len(rising) - 1)
    below = int(at)
    above = min(below + 1, len(rising) - 1)
    return rising[below] + (at - below) * (rising[above] - rising[below])


def summaries(comparisons: Sequence[Comparison]) -> list[Summary]:
    """A line for each series, then one for all of a kind on each host."""
    lines = [summarise(one.host, one.series, [one]) for one in comparisons]
    return lines + totals(comparisons)


def totals(comparisons: Sequence[Comparison], host: str | None = None) -> list[Summary]:
    """A line for all of a kind, on each host or, with `host`, on all of them under that name."""
    lines = []
    for name in [host] if host else unique(one.host for one in comparisons):
        of_host = [one for one in comparisons if host or one.host == name]
        for kind in unique(one.kind for one in of_host):
            lines.append(summarise(str(name), f"all {kind}", [one for one in of_host if one.kind == kind]))
    return lines


def unique(names: Iterable[str]) -> list[str]:
    """In the order in which they appear."""
    return list(dict.fromkeys(names))


def cases_of(data: DataSet, labels: Labels) -> tuple[list[Case], list[Case]]:
    """The cases of a comparison, without and with distributions, each once."""
    full = dict.fromkeys(labels.meant(one.case) for one in data.distributions)
    plain = dict.fromkeys(labels.meant(point.case) for point in data.points())
    return [case for case in plain if case not in full], list(full)


def compare(data: DataSet, target: Target, labels: Labels, progress: Progress) -> list[Comparison]:
    """Runs every case of a data set once and compares the results with the measurements."""
    plain, full = cases_of(data, labels)
    many = len(plain) + len(full)
    outcomes = dict(target.run(plain, progress=lambda done, _: progress(done, many)))
    outcomes.update(target.run(full, distributions=True, progress=lambda done, _: progress(len(plain) + done, many)))
    return [*series_comparisons(data, labels, outcomes), *distribution_comparisons(data, labels, outcomes)]


def series_comparisons(data: DataSet, labels: Labels, outcomes: dict[Case, Outcome]) -> list[Comparison]:
    """The curves."""
    return [
        Comparison(
            host=data.name,
            series=one.name,
            kind=one.quantity,
            file=one.file,
            swept=one.swept,
            positions=tuple(one.positions()),
            measured=tuple(point.value for point in one.points),
            simulated=tuple(outcomes[labels.meant(point.case)].value for point in one.points),
            tick=data.tick if one.quantity == "latency" else None,
        )
        for one in data.series
    ]


def distribution_comparisons(data: DataSet, labels: Labels, outcomes: dict[Case, Outcome]) -> list[Comparison]:
    """The distributions, at some quantiles."""
    return [
        Comparison(
            host=data.name,
            series=one.name,
            kind="distribution",
            file=one.file,
            swept="quantile",
            positions=QUANTILES,
            measured=tuple(one.quantile(q) for q in QUANTILES),
            simulated=tuple(outcomes[labels.meant(one.case)].quantile(q) for q in QUANTILES),
            tick=data.tick,
        )
        for one in data.distributions
    ]
