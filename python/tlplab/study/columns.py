"""The points of a study as columns, for pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tlplab import _core
from tlplab.study.running import Done

Places: TypeAlias = npt.NDArray[np.int64]
Numbers: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Columns:
    """The axes of a study: for each point the place of its value among those of the axis, in the order in which the study has them."""

    names: list[str]
    units: list[str | None]
    values: list[list[Any]]
    at: list[Places]

    @staticmethod
    def of(done: Done, summaries: _core.Summaries) -> Columns:
        """Of the points that a study came to."""
        names, units, values, at = [], [], [], []
        for number, (name, unit, written) in enumerate(done.sweep.axes):
            # An axis may have a value twice; and `True` and 1 are the same key.
            places: dict[tuple[type, Any], int] = {}
            of_step = [places.setdefault((type(value), value), len(places)) for value in written]
            names.append(name)
            units.append(unit)
            values.append([value for _, value in places])
            at.append(np.array(of_step, dtype=np.int64)[summaries.steps(number)])
        return Columns(names, units, values, at)

    def only(self, kept: npt.NDArray[np.bool_]) -> Columns:
        """Of some points."""
        return Columns(self.names, self.units, self.values, [at[kept] for at in self.at])

    def number(self, name: str) -> int:
        """The number of the axis with this name."""
        return self.names.index(name)

    def vary(self, axis: int) -> bool:
        """True if points differ by this axis."""
        at = self.at[axis]
        return bool(at.size) and bool((at != at[0]).any())

    def tied(self, axis: int, to: int) -> bool:
        """True if an axis follows from another, as those of zipped axes do: it has one value for each value of the other, and goes along with it.

        Numbers go one way only, anything else has each value in one stretch; a random sample has neither.
        """
        own, other = self.at[axis], self.at[to]
        present, first, inverse = np.unique(other, return_index=True, return_inverse=True)
        if (own[first][inverse] != own).any():
            return False
        if not is_number(self.values[to][0]):
            return True
        order = sorted(range(len(present)), key=lambda n: self.values[to][present[n]])
        along = own[first][order]
        if is_number(self.values[axis][0]):
            steps = np.diff([self.values[axis][place] for place in along])
            return bool((steps >= 0).all() or (steps <= 0).all())
        return int((np.diff(along) != 0).sum()) == len(set(along.tolist())) - 1

    def groups(self, axes: Sequence[int]) -> list[Places]:
        """Points in groups that have the same values of these axes, in the order of the values."""
        count = len(self.at[0])
        key = np.zeros(count, dtype=np.int64)
        for axis in axes:
            key = key * len(self.values[axis]) + self.at[axis]
        order = np.argsort(key, kind="stable")
        cuts = np.flatnonzero(np.diff(key[order])) + 1
        return [group for group in np.split(order, cuts) if group.size]


def is_number(value: object) -> bool:
    """True for a number; booleans are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def means(summaries: _core.Summaries, figure: int) -> tuple[Numbers, Numbers]:
    """The mean of a figure at each point, and half of its confidence interval; NaN and 0 where there is none."""
    values, halves = summaries.means(figure)
    return values, np.nan_to_num(halves)
