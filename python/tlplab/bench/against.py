"""Measurements of another machine next to results: a CSV file in the columns of the published data sets."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from tlplab.bench.calibration.table import Table, distributions_by_row, file_of_rows, read_table
from tlplab.bench.case import Case
from tlplab.bench.sweep import Sweep
from tlplab.errors import DatasetError


@dataclass(frozen=True)
class Curve:
    """Points of a data set along a sweep's axis: Gb/s, or medians in ns."""

    label: str
    points: list[tuple[float, float]]


@dataclass(frozen=True)
class Reference:
    """A file: the value of each of its cases (Gb/s, or the median in ns), and distributions, if it holds some."""

    path: str
    values: dict[Case, float] = field(default_factory=dict)
    distributions: dict[Case, list[tuple[float, float]]] = field(default_factory=dict)

    def value(self, case: Case) -> float | None:
        """The measured value in a case's circumstances; None without one."""
        return self.values.get(plain(case))

    def curves(self, sweep: Sweep) -> list[Curve]:
        """The measured values along a sweep's axis, all other parameters being those of the sweep. Raises DatasetError if there are none."""
        axis = sweep.axis
        if axis is None:
            raise ValueError(
                "--against compares a data set with a sweep or a distribution; sweep a size, a window or an offset"
            )
        found: dict[str, dict[float, float]] = {}
        for case in sweep.cases:
            label = sweep.label(case, without=axis)
            if label in found:
                continue
            alike = {
                float(getattr(other, axis)): value
                for other, value in self.values.items()
                if replace(other, **{axis: getattr(case, axis)}) == plain(case)
            }
            found[label] = alike
        curves = [Curve(label, sorted(points.items())) for label, points in found.items() if points]
        if not curves:
            raise self.nothing(sweep.cases[0], except_for=axis)
        return curves

    def cdfs(self, sweep: Sweep) -> list[Curve]:
        """The distributions of a sweep's cases. Raises DatasetError if there is none."""
        cases = [case for case in sweep.cases if plain(case) in self.distributions]
        if not cases:
            raise self.nothing(sweep.cases[0], except_for=None)
        return [Curve(sweep.label(case), self.distributions[plain(case)]) for case in cases]

    def nothing(self, case: Case, except_for: str | None) -> DatasetError:
        """No row fits: the differences of the row that fits best."""
        known = list(self.values or self.distributions)
        names = [f.name for f in fields(Case) if f.name not in ("node", "count", "seed", except_for)]

        def differences(other: Case) -> list[str]:
            return [name for name in names if getattr(other, name) != getattr(case, name)]

        nearest = min(known, key=lambda other: len(differences(other)))
        what = ", ".join(
            f"{name} {getattr(nearest, name)} (here {getattr(case, name)})" for name in differences(nearest)
        )
        message = "no row was measured with these settings"
        return DatasetError(self.path, None, None, "", message, f"the nearest has {what}")


def plain(case: Case) -> Case:
    """A case with the keys that a file has: without node, count and seed."""
    return replace(case, node="local", count=None, seed=1)


def read(path: str) -> Reference:
    """Reads a file of bandwidths or latencies; or of distributions, whose cases are in the file next to it.

    Raises DatasetError or OSError.
    """
    table = read_table(Path(path))
    if table.kind == "cdf":
        return Reference(path, distributions=by_case(table, path))
    column = "BW (GB/s)" if table.kind == "bandwidth" else "Med(ns)"
    return Reference(path, {Case.from_row(row): float(row[column]) for row in table.rows})


def by_case(table: Table, path: str) -> dict[Case, list[tuple[float, float]]]:
    """The distributions in `X_cdf.csv`, which are of the rows of `X.csv`."""
    beside = Path(file_of_rows(path))
    rows = read_table(beside) if beside.is_file() else None
    return {Case.from_row(row): steps for row, steps in distributions_by_row(table, rows)}
