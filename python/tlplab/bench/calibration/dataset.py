"""A data set: the folder of one machine's measurements, as series of points."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Literal

from tlplab.bench import Case
from tlplab.bench.calibration.machine import Machine, Setting, read_machine, setting_of
from tlplab.bench.calibration.table import Record, Table, distributions_by_row, file_of_rows, read_table
from tlplab.bench.sweep import bytes_text
from tlplab.errors import DatasetError

# Averages that are so much above medians are those of rare stalls, not of what usually happens.
TAILED = 0.1
# What takes longer is a stall, not an access; in ns.
STALL_NS = 1e5
Swept = Literal["size", "window", "host offset", "device offset", "nothing"]
Quantity = Literal["bandwidth", "latency"]


@dataclass(frozen=True)
class Point:
    """A case and its result: the bandwidth in Gb/s, or the latency in ns."""

    case: Case
    line: int
    value: float
    """Gb/s (of one direction), or the median in ns."""
    average: float
    """Of a latency, in ns; otherwise as `value`."""
    shortest: float
    """Of a latency, in ns; otherwise as `value`."""


@dataclass(frozen=True)
class Series:
    """Points of one file that differ in one thing: a curve."""

    file: str
    quantity: Quantity
    swept: Swept
    points: tuple[Point, ...]

    @property
    def name(self) -> str:
        """The file and the common part of all points, as in `bw_dma_off_rd 64 B host-warm`."""
        case = self.points[0].case
        parts = name_parts(self.file.removesuffix(".csv"), case)
        if self.swept != "size":
            parts.append(f"{case.size} B")
        if self.swept != "window":
            parts.append(bytes_text(case.window))
        if self.swept.endswith("offset"):
            parts.append(f"by {self.swept}")
        return " ".join([*parts, case.cache])

    def positions(self) -> list[float]:
        """The positions of the points on the swept axis, in bytes."""
        key = {"host offset": "host_offset", "device offset": "device_offset", "nothing": "window"}.get(
            self.swept, self.swept
        )
        return [float(getattr(point.case, key)) for point in self.points]


@dataclass(frozen=True)
class Distribution:
    """Latencies of one case in full: (ns, fraction of the samples up to there)."""

    file: str
    case: Case
    steps: tuple[tuple[float, float], ...]

    @property
    def name(self) -> str:
        """As a series' name."""
        case = self.case
        parts = name_parts(self.file.removesuffix(".csv"), case)
        return " ".join([*parts, f"{case.size} B", bytes_text(case.window), case.cache])

    def quantile(self, fraction: float) -> float:
        """The latency in ns that `fraction` of the samples do not pass."""
        return next((ns for ns, up_to in self.steps if up_to >= fraction), self.steps[-1][0])

    def without_stalls(self) -> Distribution:
        """The same of those samples that met no stall."""
        kept = [step for step in self.steps if step[0] <= STALL_NS]
        most = kept[-1][1] if kept else 0.0
        return replace(self, steps=tuple((ns, up_to / most) for ns, up_to in kept)) if most > 0 else self

    def stalls(self) -> tuple[tuple[float, float], ...]:
        """Of the stalls how long each is, in ns, and its share of all samples."""
        before = max((up_to for ns, up_to in self.steps if ns <= STALL_NS), default=0.0)
        found = []
        for ns, up_to in self.steps:
            if ns > STALL_NS:
                found.append((ns, up_to - before))
                before = up_to
        return tuple(found)


@dataclass(frozen=True)
class DataSet:
    """Everything that was measured on one machine in one setting."""

    path: str
    name: str
    """Of the folder."""
    machine_name: str
    """The folder's name without the setting."""
    machine: Machine
    setting: Setting
    series: tuple[Series, ...]
    distributions: tuple[Distribution, ...]
    tick: float | None
    """The grid of the latencies, in ns, by their greatest common divisor."""

    @cached_property
    def tailed(self) -> bool:
        """True if rare stalls distort averages so much that these do not show the usual value."""
        ratios = [p.average / p.value for one in self.series if one.quantity == "latency" for p in one.points]
        return bool(ratios) and median(ratios) > 1 + TAILED

    def typical(self, point: Point) -> float:
        """The usual value of a point: its average, which is finer than the clock's step, or its median if stalls distort averages."""
        return point.value if self.tailed else point.average

    def only(self, quantity: Quantity) -> DataSet:
        """The same with one kind of series; distributions are of latencies."""
        kept = tuple(one for one in self.series if one.quantity == quantity)
        return replace(self, series=kept, distributions=self.distributions if quantity == "latency" else ())

    def points(self, file: str | None = None) -> list[Point]:
        """All points, or those of one file (its name without `.csv`)."""
        return [p for one in self.series if file in (None, one.file.removesuffix(".csv")) for p in one.points]

    def files(self) -> list[str]:
        """The names of its tables."""
        return list(dict.fromkeys(one.file for one in self.series))


def name_parts(file: str, case: Case) -> list[str]:
    """The file, and the operation unless the file is named after it."""
    operation = case.test.partition("_")[2]
    return [file] if operation in file.split("_") else [file, operation]


def read_dataset(path: str | Path) -> DataSet:
    """Reads every CSV file in a folder. Raises `DatasetError` with all mistakes in all files."""
    folder = Path(path)
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise DatasetError(str(path), None, None, "", what, "name the folder of one machine, with its CSV files")
    files = sorted(folder.glob("*.csv"))
    if not files:
        inside = [one.name for one in sorted(folder.iterdir()) if one.is_dir() and any(one.glob("*.csv"))]
        hint = (
            f"its subfolders have some: {', '.join(inside[:3])}, …"
            if inside
            else "bw_dma_sz_sweep.csv is one, for example"
        )
        raise DatasetError(str(path), None, None, "", "this folder has no CSV file of pcie-bench", hint)
    tables: list[Table] = []
    mistakes: list[DatasetError] = []
    for file in files:
        try:
            tables.append(read_table(file))
        except DatasetError as error:
            mistakes.extend([error, *(one for one in error.others if isinstance(one, DatasetError))])
    if mistakes:
        first, *rest = mistakes
        first.others = tuple(rest)
        raise first
    name = folder.resolve().name
    machine_name, setting = setting_of(name)
    by_name = {Path(table.path).name: table for table in tables}
    return DataSet(
        path=str(path),
        name=name,
        machine_name=machine_name,
        machine=read_machine(folder),
        setting=setting,
        series=tuple(
            one
            for file, table in by_name.items()
            if table.kind != "cdf"
            for one in series_of(file, table, setting.node)
        ),
        distributions=tuple(distributions_in(by_name, setting.node)),
        tick=tick_of(tables),
    )


def tick_of(tables: list[Table]) -> float | None:
    """The step of the timestamps in ns: all latencies, in cycles of the device's clock, are multiples of it.

    Medians do not tell: that of an even number of samples may lie half-way between two steps.
    """
    rows = [record for table in tables if table.kind == "latency" for record in table.rows]
    step = math.gcd(*(int(float(record[key])) for record in rows for key in ("Min", "Max")))
    return step * float(rows[0]["Avg(ns)"]) / float(rows[0]["Avg"]) if rows else None


def case_of(record: Record, node: str) -> Case:
    """A row's case; the setting of the data set gives the memory's node."""
    row = {name: value if isinstance(value, str) else str(int(value)) for name, value in record.items()}
    return Case.from_row(row, node=node)


def point_of(record: Record, line: int, node: str) -> Point:
    """A row."""
    if "BW (GB/s)" in record:
        bandwidth = float(record["BW (GB/s)"])
        return Point(case_of(record, node), line, bandwidth, bandwidth, bandwidth)
    median_ns, average, shortest = (float(record[key]) for key in ("Med(ns)", "Avg(ns)", "Min(ns)"))
    return Point(case_of(record, node), line, median_ns, average, shortest)


def series_of(file: str, table: Table, node: str) -> list[Series]:
    """The curves of a file: the varying parameter is their axis."""
    quantity: Quantity = "bandwidth" if table.kind == "bandwidth" else "latency"
    points = [point_of(record, line, node) for record, line in zip(table.rows, table.lines, strict=True)]
    found = []
    for alike in grouped(points, lambda p: (p.case.test, p.case.interface, p.case.pattern, p.case.cache)):
        swept = swept_in(alike)
        if swept == "size":
            parts = grouped(alike, lambda p: p.case.window)
        elif swept == "window":
            parts = grouped(alike, lambda p: p.case.size)
        else:
            parts = grouped(alike, lambda p: (p.case.size, p.case.window, p.case.device_offset > 0))
        for part in parts:
            moved = "device offset" if swept == "host offset" and part[0].case.device_offset else swept
            found.append(Series(file, quantity, moved, tuple(part)))
    return found


def swept_in(points: list[Point]) -> Swept:
    """The parameter that these points of one test sweep."""
    sizes, windows = ({getattr(p.case, key) for p in points} for key in ("size", "window"))
    offsets = {(p.case.host_offset, p.case.device_offset) for p in points}
    if len(offsets) > 1:
        return "host offset"
    if max(len(sizes), len(windows)) <= 2:
        return "nothing"
    return "window" if len(windows) > len(sizes) else "size"


def grouped(points: Iterable[Point], key: Callable[[Point], object]) -> list[list[Point]]:
    """The points by `key`, in the order in which it appears."""
    groups: dict[object, list[Point]] = {}
    for point in points:
        groups.setdefault(key(point), []).append(point)
    return list(groups.values())


def distributions_in(tables: dict[str, Table], node: str) -> list[Distribution]:
    """The distributions in `X_cdf.csv`, which are of the rows of `X.csv`."""
    return [
        Distribution(file, case_of(record, node), tuple(steps))
        for file, table in tables.items()
        if table.kind == "cdf"
        for record, steps in distributions_by_row(table, tables.get(file_of_rows(file)))
    ]
