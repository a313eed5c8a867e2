"""Single transactions with the causes of their latency: all of a run that is made for this, or the sample that a saved result has."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import click
import numpy as np
import numpy.typing as npt

from tlplab import _core
from tlplab.compare.figures import Cause, femtoseconds
from tlplab.result import Document

# So many around a percentile are looked at.
HANDFUL = 5


@dataclass(frozen=True)
class Transaction:
    """A transaction that ended well; the parts of its latency add up to it."""

    start_fs: int
    latency_fs: int
    what: str | None
    parts: tuple[tuple[Cause, int], ...]
    """Causes in the order of time, and femtoseconds."""

    @property
    def causes(self) -> dict[Cause, int]:
        """The same, each cause once."""
        found: dict[Cause, int] = defaultdict(int)
        for cause, fs in self.parts:
            found[cause] += fs
        return dict(found)


@dataclass(frozen=True)
class Known:
    """The transactions of a flow that are known."""

    flow: str
    latencies: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    get: Callable[[int], Transaction]
    """Returns a transaction by its index."""
    of: int
    """The number of transactions."""

    @property
    def complete(self) -> bool:
        """True if all transactions are known."""
        return len(self.latencies) == self.of

    @property
    def order(self) -> npt.NDArray[np.int64]:
        """Their indices from the shortest to the longest, of equal ones the first to start before."""
        return np.lexsort((self.starts, self.latencies))

    def rank(self, percentile: float) -> int:
        """The position, in order, of the smallest latency that at least so many per cent of the transactions do not exceed."""
        return max(0, math.ceil(Fraction(str(percentile)) * len(self.latencies) / 100) - 1)

    def latency(self, percentile: float) -> int:
        """The latency at that rank, femtoseconds."""
        return int(self.latencies[self.order[self.rank(percentile)]])

    def around(self, percentile: float) -> list[Transaction]:
        """A handful around it, the one at the percentile in the middle: fewer near an end, and the longest or shortest alone."""
        count, rank = len(self.latencies), self.rank(percentile)
        beside = min(HANDFUL // 2, (max(1, count // 2) - 1) // 2, rank, count - 1 - rank)
        return [self.get(int(index)) for index in self.order[rank - beside : rank + beside + 1]]


def kept_by(simulation: _core.Simulation) -> dict[str, Known]:
    """The transactions of a run that kept them, by flow; none, if they were too many."""
    names, _, table = simulation.transactions()
    columns = table.to_numpy()
    found = {}
    for number, name in enumerate(names):
        rows = np.flatnonzero(columns["flow"] == number)
        if len(rows):
            found[name] = known(simulation, name, rows, columns["latency_fs"][rows], columns["start_fs"][rows])
    return found


def known(
    simulation: _core.Simulation, name: str, rows: npt.NDArray[np.intp], latencies: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
) -> Known:  # fmt: skip
    """The transactions of one flow."""

    def get(index: int) -> Transaction:
        what, parts = simulation.transaction(int(rows[index]))
        told = tuple((Cause(cause, place, behind or ""), fs) for cause, place, behind, fs in parts)
        return Transaction(int(starts[index]), int(latencies[index]), what, told)

    return Known(name, latencies, starts, get, len(rows))


def sampled_in(result: Document, name: str) -> dict[str, Known]:
    """The transactions in the sample of a result that is called `name`, by flow. Raises `click.UsageError` for a sample that does not add up."""
    flows = [flow["name"] for flow in result["flows"]]
    by_flow: dict[int, list[Transaction]] = defaultdict(list)
    for sample in result["samples"]:
        parts = []
        for cause, place, behind, ns in sample["parts"]:
            front = flows[behind] if behind >= 0 else ""
            parts.append((Cause(result["causes"][cause], result["places"][place], front), femtoseconds(ns)))
        one = Transaction(sample["start_fs"], femtoseconds(sample["latency_ns"]), None, tuple(parts))
        if sum(fs for _, fs in parts) != one.latency_fs:
            raise click.UsageError(
                f"{name}: the causes of the transaction of {flows[sample['flow']]} that starts at {one.start_fs} fs do not add up to its latency:"
                " the document was changed; save the run anew with tlplab run --json"
            )
        by_flow[sample["flow"]].append(one)
    return {flows[flow]: of_sample(flows[flow], ones, result["flows"][flow]["transactions"])
            for flow, ones in sorted(by_flow.items())}  # fmt: skip


def of_sample(name: str, ones: Sequence[Transaction], count: int) -> Known:
    """The sampled transactions of one flow."""
    latencies = np.array([one.latency_fs for one in ones], np.int64)
    starts = np.array([one.start_fs for one in ones], np.int64)
    return Known(name, latencies, starts, lambda index: ones[index], count)
