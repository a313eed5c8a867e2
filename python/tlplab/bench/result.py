"""Results of measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tlplab import _core
from tlplab.bench.case import Case

LATENCY_COLUMNS, BANDWIDTH_COLUMNS, CDF_COLUMNS = _core.bench_columns()
"""Headers of the published data sets, byte for byte. Their `BW (GB/s)` is gigabits per second."""


@dataclass(frozen=True)
class Latency:
    """Latencies, in nanoseconds, on the grid of the device's timestamps."""

    average_ns: float
    median_ns: float
    min_ns: float
    max_ns: float
    p95_ns: float
    p99_ns: float
    p999_ns: float
    histogram: list[tuple[float, int]]
    """Each latency that came with the number of times, smallest first."""

    def cdf(self) -> list[tuple[float, float]]:
        """Each latency that came, with the part of the samples that do not exceed it."""
        total, seen, points = sum(n for _, n in self.histogram), 0, []
        for value, count in self.histogram:
            seen += count
            points.append((value, seen / total))
        return points


@dataclass(frozen=True)
class Result:
    """The measurement of a case."""

    case: Case
    complete: bool
    """True if the whole case was measured; False if it was interrupted."""
    operations: int
    """Measured operations; of reads and writes in turn, those of one direction."""
    elapsed_ns: float
    """From the beginning of the first to the end of the last, or for bandwidth from end to end."""
    tick_ns: float
    """From one timestamp of the device to the next."""
    latency: Latency | None
    """None for bandwidth."""
    bits_per_second: float | None
    """Payload in one direction; None for latency."""
    transfers_per_second: float | None
    """None for latency."""
    series: list[tuple[float, float]]
    """Over time: nanoseconds, and the average latency (ns) or the bandwidth (b/s) about then."""
    csv: str
    """The row of the published data sets' columns, without a line end."""
    cdf_csv: list[str]
    """The rows of a file of distributions."""

    @property
    def gbps(self) -> float:
        """Payload bandwidth in one direction, Gb/s; 0 for latency."""
        return (self.bits_per_second or 0.0) / 1e9

    @property
    def columns(self) -> str:
        """The header of `csv`."""
        return LATENCY_COLUMNS if self.case.is_latency else BANDWIDTH_COLUMNS

    @property
    def cdf_columns(self) -> str:
        """The header of `cdf_csv`."""
        return CDF_COLUMNS

    def row(self) -> dict[str, str]:
        """The row as the published data sets have it."""
        return dict(zip(self.columns.split(","), self.csv.split(","), strict=True))

    @classmethod
    def of(cls, document: dict[str, Any]) -> Result:
        """A result from the core's document of a measurement."""
        latency, bandwidth = document["latency"], document["bandwidth"]
        if latency is not None:
            latency = Latency(**{**latency, "histogram": [(value, count) for value, count in latency["histogram"]]})
        return cls(
            case=Case(**document["case"]),
            complete=document["complete"],
            operations=document["operations"],
            elapsed_ns=document["elapsed_ns"],
            tick_ns=document["tick_ns"],
            latency=latency,
            bits_per_second=bandwidth and bandwidth["bits_per_second"],
            transfers_per_second=bandwidth and bandwidth["transfers_per_second"],
            series=[(at, value) for at, value in document["series"]],
            csv=document["csv"],
            cdf_csv=document["cdf_csv"],
        )


class Results(list[Result]):
    """Results in the order of their cases."""

    remarks: Sequence[str] = ()
    """Remarks for readers of the results."""
    machine: str | None = None
    """The machine that was measured, in words; None if it was simulated."""
    interrupted: bool = False
    """True if Ctrl-C ended the measurement: cases that had not begun are missing, cases that ran are not `complete`."""
