"""The space that a study's axes span, for searches: its parameters, and the results of chosen points."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import click

from tlplab import _core
from tlplab.study import alone, running
from tlplab.study.running import Asked, Done
from tlplab.study.show import setting

# A step of each parameter.
Steps: TypeAlias = tuple[int, ...]
# Told how many runs of a batch are over, and of how many.
Tell: TypeAlias = Callable[[int, int], None]


class SearchInterruptedError(Exception):
    """Ctrl-C came; finished runs are kept."""


@dataclass(frozen=True)
class Parameter:
    """An axis of a study."""

    name: str
    ordered: bool
    """A range: a value between two steps is between them."""
    labels: tuple[str, ...]
    """The setting of each step, for people."""

    @property
    def size(self) -> int:
        """The number of steps."""
        return len(self.labels)

    def find(self, label: str) -> int | None:
        """The step that is called so."""
        plain = label.replace(" ", "").casefold()
        return next((at for at, one in enumerate(self.labels) if one.replace(" ", "").casefold() == plain), None)


@dataclass(frozen=True)
class Point:
    """The result of a point."""

    steps: Steps
    kind: str
    """`done`, `failed`, `refused`, `left out` by a filter, or `without` one of the figures."""
    message: str | None
    means: tuple[_core.Mean, ...]
    """Of each figure, if it is done."""

    @property
    def values(self) -> tuple[float, ...]:
        """The means of the figures."""
        return tuple(mean for mean, _ in self.means)


@dataclass
class Counts:
    """Runs that a search made, and runs that were known."""

    made: int = 0
    known: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    """Points by the filter that left them out."""


class Space:
    """The parameters of a study, and its points."""

    def __init__(self, asked: Asked) -> None:
        """Reads the study; nothing is run. Raises ExperimentError."""
        self.asked = replace(asked, quiet=True)
        self.sweep = self.open([])
        self.parameters = tuple(
            parameter(at, ordered, columns) for at, (ordered, columns) in enumerate(self.sweep.parameters, 1)
        )
        self.counts = Counts()
        self._known: dict[tuple[str, Steps], Point] = {}

    @property
    def size(self) -> int:
        """The number of points, with points that filters leave out."""
        return math.prod(one.size for one in self.parameters)

    def open(self, chosen: _core.Chosen | None) -> _core.Sweep:
        """The study with chosen points, or with its own."""
        return running.opened(replace(self.asked, chosen=chosen))

    def steps(self, number: int) -> Steps:
        """The point of a number among all, as studies count them: the first axis changes slowest."""
        steps = []
        for one in reversed(self.parameters):
            number, step = divmod(number, one.size)
            steps.append(step)
        return tuple(reversed(steps))

    def labels(self, steps: Steps) -> list[str]:
        """The setting of each parameter, for people."""
        return [one.labels[step] for one, step in zip(self.parameters, steps, strict=True)]

    def run(self, chosen: _core.Chosen | None, tell: Tell) -> Done:
        """Runs the unknown ones of chosen points. Raises `SearchInterruptedError`."""
        done = running.run(replace(self.asked, chosen=chosen), lambda far: tell(far[0], far[1]))
        if done.interrupted:
            raise SearchInterruptedError
        _, _, known, made = done.swept.progress
        self.counts.made += made + done.in_processes
        self.counts.known += known - done.in_processes
        return done

    def points(self, wanted: Sequence[Steps], figures: str, tell: Tell = lambda *_: None) -> list[Point]:
        """The results of points; none is looked up twice. Raises `SearchInterruptedError`, ExperimentError for a figure that no point has."""
        new = list(dict.fromkeys(steps for steps in wanted if (figures, steps) not in self._known))
        if new:
            done = self.run([list(steps) for steps in new], tell)
            self.counts.left_out.update(dict(done.sweep.left_out))
            found = {one["point"]: one for one in done.swept.summaries(figures)}
            for number, steps in enumerate(new):
                self._known[figures, steps] = as_point(steps, found.get(number))
        return [self._known[figures, steps] for steps in wanted]

    def front(self, wanted: Sequence[Steps], objectives: str) -> list[Steps]:
        """The points, of some that have been run, that no other of them beats by these objectives."""
        if not wanted:
            return []
        swept = running.run(replace(self.asked, chosen=[list(steps) for steps in wanted])).swept
        _, summaries, front = swept.front(objectives)
        return [wanted[one["point"]] for one, best in zip(summaries, front, strict=True) if best]

    def command(self, steps: Steps) -> str:
        """The command that runs a point which no filter leaves out."""
        sweep = self.open([list(steps)])
        experiment, load, common, own = sweep.inputs
        sets = [*common, *own[0]]
        if experiment is None:
            return " ".join(sets)
        return shlex.join(alone.words(experiment, sets, load, sweep.first_seed))


def parameter(number: int, ordered: bool, columns: Sequence[_core.ColumnOf]) -> Parameter:
    """An axis as a parameter."""
    name = ", ".join(name for name, _, _ in columns) or f"axis {number}"
    rows = zip(*([setting(value, unit) for value in values] for _, unit, values in columns), strict=True)
    labels = [", ".join(row) for row in rows]
    # Texts that are cut short, or numbers that are rounded alike, are told apart by their places.
    counts = Counter(labels)
    told = [label if counts[label] == 1 else f"{label} (#{at})" for at, label in enumerate(labels, 1)]
    return Parameter(name, ordered, tuple(told))


def as_point(steps: Steps, summary: _core.Summary | None) -> Point:
    """A point with its result."""
    if summary is None:
        return Point(steps, "left out", None, ())
    if summary["trouble"] is not None and not summary["runs"]:
        kind, message = summary["trouble"]
        return Point(steps, kind, message, ())
    means = [mean for mean in summary["means"] if mean is not None]
    if len(means) < len(summary["means"]):
        return Point(steps, "without", "the point lacks some of the figures", ())
    return Point(steps, "done", None, tuple(means))


def open_space(asked: Asked) -> Space:
    """The space of a study that has something to vary. Raises `click.UsageError`."""
    space = Space(asked)
    if space.size < 2:
        raise click.UsageError(f"{asked.study}: its axes form only one point; give an axis two values or more")
    return space


def trouble(points: Sequence[Point]) -> list[tuple[str, str, int]]:
    """Kind and message of the points without figures, and how many there are, the most first."""
    said = Counter((one.kind, one.message) for one in points if one.message is not None)
    return [(kind, message or "", count) for (kind, message), count in said.most_common()]
