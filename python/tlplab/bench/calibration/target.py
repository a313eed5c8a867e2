"""Targets, which run the cases of a measurement for comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tlplab.bench import Case

Progress = Callable[[int, int], None]
"""Called with how many of how many cases are done."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case: Gb/s, or the median and the average in ns, and the distribution if it was requested."""

    value: float
    average: float
    steps: tuple[tuple[float, float], ...] = ()
    shortest: float = 0.0
    """Of a latency, in ns."""

    def quantile(self, fraction: float) -> float:
        """The latency in ns that `fraction` of the samples do not pass."""
        return next((ns for ns, up_to in self.steps if up_to >= fraction), self.steps[-1][0])


class Target(Protocol):
    """A machine that runs cases: the simulator with some host, or a stand-in for it in a test."""

    def run(self, cases: Sequence[Case], *, distributions: bool = False, progress: Progress) -> Mapping[Case, Outcome]:
        """Runs the cases; with `distributions`, latencies come with all their steps."""
        ...
