"""The residuals of a fitted host, against the data that it was fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tlplab.bench.calibration.compare import Comparison, compare, summarise, totals
from tlplab.bench.calibration.dataset import DataSet, Series
from tlplab.bench.calibration.hosts import Card, Fresh
from tlplab.bench.calibration.profile import Profile
from tlplab.bench.calibration.target import Progress

# A host that is further off than that, over the points of a kind, is a bad fit.
BAD = 0.1
# Points of a series that are looked at, and series that are named.
POINTS = 4
NAMED = 8


def thinned(series: Series) -> Series:
    """Some points of a series, from its first to its last."""
    last = len(series.points) - 1
    chosen = sorted({round(number * last / (POINTS - 1)) for number in range(POINTS)})
    return replace(series, points=tuple(series.points[number] for number in chosen))


def miss(data: DataSet, profile: Profile, card: Card, progress: Progress) -> list[Comparison]:
    """A data set, some points of each series, compared with its host."""
    few = replace(data, series=tuple(thinned(one) for one in data.series), distributions=())
    return compare(few, Fresh(profile, card, data, data.setting.iommu), card.labels(data), progress)


def verdict(left: Sequence[Comparison]) -> list[str]:
    """Nothing, or in words that the fit is bad, and the series that it misses most."""
    off = [line for line in totals(left) if line.median_error > BAD]
    if not off:
        return []
    said = [f"This fit is bad: {line.host}, {line.series.removeprefix('all ')}: off by {100 * line.median_error:.0f} % "
            f"(median of {line.points} points of its own data)." for line in off]  # fmt: skip
    kinds = {(line.host, line.kind) for line in off}
    worst = sorted(
        (summarise(one.host, one.series, [one]) for one in left if (one.host, one.kind) in kinds),
        key=lambda line: -line.median_error,
    )
    missed = [line for line in worst if line.median_error > BAD]
    said += [f"  {line.host}: {line.series}: off by {100 * line.median_error:.0f} %" for line in missed[:NAMED]]
    if len(missed) > NAMED:
        said.append(f"  and {len(missed) - NAMED} series more")
    return said
