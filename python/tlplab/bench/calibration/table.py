"""One CSV file of a data set: columns, units and rows are checked before anything is believed."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tlplab import _core
from tlplab.errors import DatasetError

Kind = Literal["bandwidth", "latency", "cdf"]

LATENCY, BANDWIDTH, CDF = (tuple(header.split(",")) for header in _core.bench_columns())
COLUMNS: dict[Kind, tuple[str, ...]] = {"bandwidth": BANDWIDTH, "latency": LATENCY, "cdf": CDF}
"""The columns of pcie-bench's three kinds of file. `BW (GB/s)` is its name for Gb/s, `Time` is in nanoseconds."""

TESTS: dict[Kind, tuple[str, ...]] = {
    "bandwidth": ("BW_DMA_RD", "BW_DMA_WR", "BW_DMA_RW"),
    "latency": ("LAT_CMD_RD", "LAT_CMD_WRRD", "LAT_DMA_RD", "LAT_DMA_WRRD"),
}
WORDS = {"PAT": ("Seq", "Rand"), "Cache": ("Cold", "HWarm", "DWarm", "DThrash")}
COUNTS = {"HO", "DO", "WinSZ", "SZ", "Bytes", "Trans", "#outliers", "#samples"}
NOT_ZERO = {
    "WinSZ",
    "SZ",
    "Time(cyc)",
    "Time",
    "Bytes",
    "Trans",
    "BW (GB/s)",
    "Trans/s",
    "Avg",
    "Med",
    "Avg(ns)",
    "Med(ns)",
    "cycles",
    "ns",
}
# Two columns that say the same may differ by so much: they were written with all their digits.
SAME = 1e-3
# Clocks of timestamps, in cycles per nanosecond; beyond that the columns do not mean what they say.
CLOCKS = (0.05, 10.0)

CDF_ENDING = "_cdf.csv"

Cell = float | str
Record = dict[str, Cell]


@dataclass(frozen=True)
class Table:
    """A file: its rows by column name, and the line each came from."""

    path: str
    kind: Kind
    rows: list[Record]
    lines: list[int]


@dataclass
class Mistakes:
    """The mistakes in one file."""

    path: str
    found: list[DatasetError] = field(default_factory=list)

    def add(self, line: int | None, column: str, message: str, hint: str | None = None) -> None:
        """Notes one mistake; `line` counts from 1."""
        self.found.append(DatasetError(self.path, line, None, f"column {column}" if column else "", message, hint))

    def complain(self) -> None:
        """Raises the first mistake, with the others."""
        if self.found:
            first, *rest = self.found
            first.others = tuple(rest)
            raise first


def read_table(path: Path) -> Table:
    """Reads one CSV file. Raises `DatasetError` with every mistake in it."""
    mistakes = Mistakes(str(path))
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        mistakes.add(None, "", f"byte {error.start} is not ASCII", "a table of pcie-bench is CSV in ASCII")
        mistakes.complain()
        raise
    try:
        lines = list(csv.reader(text.splitlines(), skipinitialspace=True))
    except csv.Error as error:
        mistakes.add(None, "", f"this is not CSV: {error}", "the file is damaged; copy it again")
        mistakes.complain()
        raise
    if not any(lines):
        mistakes.add(None, "", "the file is empty", "it should begin with a line of column names")
        mistakes.complain()
    header = [name.strip() for name in lines[0]]
    kind = kind_of(header, mistakes)
    mistakes.complain()
    table = Table(str(path), kind, [], [])
    for number, cells in enumerate(lines[1:], 2):
        if cells and (record := record_of(header, cells, number, kind, mistakes)) is not None:
            table.rows.append(record)
            table.lines.append(number)
    if not table.rows and not mistakes.found:
        mistakes.add(1, "", "there is no row below the column names", "the file is truncated; copy it again")
    if not mistakes.found:
        check_distributions(table, mistakes)
    mistakes.complain()
    return table


def kind_of(header: Sequence[str], mistakes: Mistakes) -> Kind:
    """The kind of file that has these columns: the kind that shares the most with them."""
    kind = max(COLUMNS, key=lambda k: len(set(COLUMNS[k]) & set(header)))
    shared = set(COLUMNS[kind]) & set(header)
    if len(shared) < 2:
        mistakes.add(1, "", f"these are not columns of pcie-bench: {shorten(','.join(header))}",
                     f"a bandwidth file begins with {','.join(COLUMNS['bandwidth'][:8])},…")  # fmt: skip
        return kind
    for name in header:
        if header.count(name) > 1:
            mistakes.add(1, name, "appears twice")
            return kind
    missing = [name for name in COLUMNS[kind] if name not in header]
    for name in missing:
        foreign = next((other for other in header if other not in COLUMNS[kind] and stem(other) == stem(name)), None)
        if foreign is not None:
            mistakes.add(1, foreign, "has a unit that pcie-bench does not use", f"it should be {unit_of(name)}")
        else:
            mistakes.add(1, name, "is missing", f"a {kind} file has {','.join(COLUMNS[kind])}")
    return kind


def stem(column: str) -> str:
    """A column's name without its unit."""
    return column.split("(")[0].split("[")[0].strip().lower()


def unit_of(column: str) -> str:
    """The right name of a column, with its unit."""
    if column == "BW (GB/s)":
        return "“BW (GB/s)”, pcie-bench's name for gigabits per second"
    return f"“{column}”"


def record_of(header: Sequence[str], cells: Sequence[str], line: int, kind: Kind, mistakes: Mistakes) -> Record | None:
    """One row, with numbers as numbers; nothing if it is wrong."""
    before = len(mistakes.found)
    if len(cells) != len(header):
        many = f"{len(cells)} value{'s' if len(cells) != 1 else ''} for {len(header)} columns"
        mistakes.add(line, "", many, "the line is truncated; copy the file again" if len(cells) < len(header) else None)
        return None
    record: Record = {}
    for name, raw in zip(header, cells, strict=True):
        if name in COLUMNS[kind]:
            record[name] = cell_of(name, raw.strip(), line, kind, mistakes)
    if len(mistakes.found) == before:
        check_record(record, line, kind, mistakes)
    return record if len(mistakes.found) == before else None


def cell_of(name: str, raw: str, line: int, kind: Kind, mistakes: Mistakes) -> Cell:
    """One value."""
    words = TESTS[kind] if name == "Test" else WORDS.get(name)
    if words is not None:
        if raw not in words:
            mistakes.add(line, name, f"“{shorten(raw)}” is unknown", f"one of {', '.join(words)}")
        return raw
    try:
        value = float(raw)
    except ValueError:
        mistakes.add(line, name, f"“{shorten(raw)}” is not a number", number_hint(name, raw))
        return 0.0
    if not math.isfinite(value) or value < 0 or (value == 0 and name in NOT_ZERO):
        mistakes.add(
            line, name, f"{raw} is out of range", "a number above 0" if name in NOT_ZERO else "a number of 0 or more"
        )
    elif name in COUNTS and value != int(value):
        mistakes.add(line, name, f"{raw} is not a whole number")
    return value


def number_hint(name: str, raw: str) -> str:
    """The right form of a value, in place of `raw`."""
    if not raw:
        return "the value is missing"
    if raw[0].isdigit():
        return f"a number without a unit; the column is in {unit_of(name)}"
    return "a number such as 64 or 32.617"


def check_record(record: Record, line: int, kind: Kind, mistakes: Mistakes) -> None:
    """Columns that say the same twice must agree; that finds foreign units and figures that were cut off."""

    def value(name: str) -> float:
        return float(record[name])

    if kind != "cdf":
        if value("SZ") > value("WinSZ"):
            mistakes.add(line, "SZ", f"{value('SZ'):.0f} bytes do not fit in a window of {value('WinSZ'):.0f}")
        if "_CMD_" in str(record["Test"]) and value("SZ") > 64:
            mistakes.add(line, "SZ", f"{value('SZ'):.0f} bytes by the command interface", "it moves at most 64 bytes")
    if kind == "bandwidth":
        agree(record, line, "Bytes", value("SZ") * value("Trans"), "SZ times Trans", mistakes)
        agree(record, line, "BW (GB/s)", value("Bytes") * 8 / value("Time"), "Bytes and Time, in Gb/s,", mistakes)
        agree(record, line, "Trans/s", value("Trans") * 1e9 / value("Time"), "Trans and Time", mistakes)
        check_clock(line, value("Time(cyc)"), value("Time"), "Time", mistakes)
    elif kind == "latency":
        check_clock(line, value("Avg"), value("Avg(ns)"), "Avg(ns)", mistakes)
        for name in ("Med", "Min", "Max", "95%", "99.9%"):
            in_ns = value(name) * value("Avg(ns)") / value("Avg")
            agree(record, line, f"{name}(ns)", in_ns, f"{name}, at the clock of Avg,", mistakes)
        order = ("Min(ns)", "Med(ns)", "95%(ns)", "99.9%(ns)", "Max(ns)")
        for low, high in itertools.pairwise(order):
            if value(low) > value(high):
                mistakes.add(line, low, f"{value(low):g} is above {high}, {value(high):g}")
    elif value("cdf") > 1:
        mistakes.add(line, "cdf", f"{value('cdf'):g} is above 1", "a fraction of the samples")


def agree(record: Record, line: int, name: str, other: float, how: str, mistakes: Mistakes) -> None:
    """`name` must agree with other columns."""
    value = float(record[name])
    if abs(value - other) > SAME * max(value, other):
        hint = f"{how} give {other:.6g}; check the unit, or copy the file again"
        mistakes.add(line, name, f"{value:.6g} does not agree with the other columns", hint)


def check_clock(line: int, cycles: float, nanoseconds: float, name: str, mistakes: Mistakes) -> None:
    """Cycles and nanoseconds must belong to some clock that a timestamp can have."""
    clock = cycles / nanoseconds
    if not CLOCKS[0] <= clock <= CLOCKS[1]:
        mistakes.add(line, name, f"{nanoseconds:g} ns for {cycles:g} cycles is a clock of {clock:g} GHz",
                     "the column is in nanoseconds")  # fmt: skip


def check_distributions(table: Table, mistakes: Mistakes) -> None:
    """Distributions follow each other in one file: each rises from 0 to 1."""
    if table.kind != "cdf":
        return
    last = float(table.rows[0]["cdf"])
    if last != 0:
        mistakes.add(table.lines[0], "cdf", f"the first distribution begins at {last:g}", "at 0; copy the file again")
        return
    for record, line in zip(table.rows, table.lines, strict=True):
        now = float(record["cdf"])
        if now < last:
            if now != 0:
                mistakes.add(
                    line, "cdf", f"{now:g} comes after {last:g}", "a distribution rises, and a new one begins at 0"
                )
                return
            if last != 1:
                mistakes.add(line, "cdf", f"the distribution before ends at {last:g}", "at 1; the file is truncated")
                return
        last = now
    if last != 1:
        mistakes.add(table.lines[-1], "cdf", f"the last distribution ends at {last:g}", "at 1; the file is truncated")


def distributions(table: Table) -> list[list[tuple[float, float]]]:
    """The distributions of a `cdf` file, each as (ns, fraction of the samples up to there)."""
    found: list[list[tuple[float, float]]] = []
    last = 1.0
    for record in table.rows:
        now = float(record["cdf"])
        if now == 0 and last == 1:
            found.append([])
        else:
            found[-1].append((float(record["ns"]), now))
        last = now
    return found


def file_of_rows(name: str) -> str:
    """The name of the file whose rows the distributions of `X_cdf.csv` are of: `X.csv`."""
    return f"{name.removesuffix(CDF_ENDING)}.csv" if name.endswith(CDF_ENDING) else ""


def distributions_by_row(table: Table, rows: Table | None) -> list[tuple[Record, list[tuple[float, float]]]]:
    """The distributions of a `cdf` file with the rows of the file next to it, in their order."""
    if rows is None or rows.kind != "latency":
        hint = f"it belongs in the same folder as the file of distributions, whose name ends in {CDF_ENDING}"
        raise DatasetError(
            table.path, None, None, "", "the file with the cases of these distributions is missing", hint
        )
    steps = distributions(table)
    if len(steps) != len(rows.rows):
        many = f"there are {len(steps)} distributions here and {len(rows.rows)} rows in {Path(rows.path).name}"
        raise DatasetError(table.path, None, None, "", many, "one per row; copy the file again if it is truncated")
    return list(zip(rows.rows, steps, strict=True))


def shorten(text: str, most: int = 60) -> str:
    """`text`, cut where it would fill the line."""
    return text if len(text) <= most else text[: most - 1] + "…"
