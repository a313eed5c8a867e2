"""The measured points, and the simulator's results for the same cases."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tlplab import bench
from tlplab.bench.case import Case

NAME = "gpu-host"
HERE = Path(__file__).parent
LINK = "gen5 x16"
MACHINES = ("first", "second", "third")
FIGURES = {"median_ns", "p99_ns", "gbps"}


@dataclass(frozen=True)
class Point:
    """A row of a measured machine: Gb/s, or the median in ns."""

    machine: str
    case: Case
    measured: float
    ours: float

    @property
    def error(self) -> float:
        """Relative."""
        return self.ours / self.measured - 1


class Measured(NamedTuple):
    """A row of a file: Gb/s, or the median in ns."""

    machine: str
    case: Case
    value: float


def measured() -> list[Measured]:
    """All of both machines."""
    return [
        Measured(
            name,
            Case(**{key: value for key, value in row.items() if key not in FIGURES}),
            row.get("gbps") or row["median_ns"],
        )
        for name in MACHINES
        for row in json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))["rows"]
    ]


@cache
def points() -> tuple[Point, ...]:
    """The same, each simulated."""
    listed = measured()
    cases = [one.case for one in listed]
    results = bench.run(cases, device=str(HERE / "h200.toml"), host=str(HERE / "host.toml"), link=LINK)
    return tuple(
        Point(*one, result.latency.median_ns if result.latency else result.gbps)
        for one, result in zip(listed, results, strict=True)
    )
