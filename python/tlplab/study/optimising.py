"""Searches the points of a study for the best one: Optuna proposes points, the study's store has or runs them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import operator
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from tlplab import _core
from tlplab.outputs import check_file
from tlplab.study.space import Counts, Point, SearchInterruptedError, Space, Steps

if TYPE_CHECKING:
    import optuna

# What a point is away from a constraint that it cannot be judged by: further than any that ran.
FAR = 1000.0
# What misses a constraint by nothing, as 4 misses `> 4`, misses it all the same.
NEAR = 1e-12
# A journal is locked for milliseconds; a lock that is older is that of a process that was killed.
LOCK_SECONDS = 5
COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip

# Trials that are over, and how many there will be.
Watch = Callable[[int, int], None]


@dataclass(frozen=True)
class Objective:
    """A figure, and which way it is better."""

    text: str
    name: str
    unit: str
    more: bool


@dataclass(frozen=True)
class Constraint:
    """A comparison that has to hold."""

    text: str
    left: str
    sign: str
    right: str
    unit: str

    def distance(self, left: float, right: float) -> float:
        """The distance of a point from fulfilling the constraint, as a share of the larger figure; 0 if it is fulfilled."""
        if COMPARE[self.sign](left, right):
            return 0.0
        return max(abs(left - right) / (max(abs(left), abs(right)) or 1.0), NEAR)


@dataclass(frozen=True)
class Aim:
    """The aim of a search."""

    objectives: tuple[Objective, ...]
    constraints: tuple[Constraint, ...]

    @property
    def figures(self) -> str:
        """The figures that are needed of each point: the objectives, then both sides of each constraint."""
        sides = [side for one in self.constraints for side in (one.left, one.right)]
        return ", ".join([*(one.text for one in self.objectives), *sides])

    def values(self, point: Point) -> list[float]:
        """The objectives at a point that ran."""
        return list(point.values[: len(self.objectives)])

    def sides(self, point: Point) -> list[tuple[float, float]]:
        """Both sides of each constraint at a point that ran."""
        sides = point.values[len(self.objectives) :]
        return list(zip(sides[::2], sides[1::2], strict=True))

    def distances(self, point: Point) -> list[float]:
        """The distances of a point that ran from the constraints."""
        sides = self.sides(point)
        return [one.distance(*pair) for one, pair in zip(self.constraints, sides, strict=True)]

    def is_feasible(self, point: Point) -> bool:
        """True if a point ran and fulfils all constraints."""
        return point.kind == "done" and not any(self.distances(point))

    def nearest(self, points: Sequence[Point]) -> Point | None:
        """The point that ran which is the least away from the constraints."""
        ran = [point for point in points if point.kind == "done"]
        return min(ran, key=lambda point: sum(self.distances(point)), default=None)


def read_aim(minimise: Sequence[str], maximise: Sequence[str], subject_to: Sequence[str]) -> Aim:
    """The aim in the command's options. Raises ExperimentError and `click.UsageError`."""
    objectives = []
    for texts, more in ((minimise, False), (maximise, True)):
        for text in texts:
            for name, unit in _core.figures(text):
                objectives.append(Objective(text, name, unit, more))
            if len(_core.figures(text)) > 1:
                raise click.UsageError(f"{text!r} is a list; give each figure an option of its own")
    if not objectives:
        raise click.UsageError("an objective is missing: give --minimise 'nic.latency.p99' or --maximise 'throughput'")
    constraints = [Constraint(text.strip(), *_core.comparison(text)) for text in subject_to]
    return Aim(tuple(objectives), tuple(constraints))


@dataclass
class Searched:
    """The points and counts of a search."""

    points: list[Point]
    """Each once, in the order in which they were tried; none of a search that was interrupted."""
    trials: int
    again: int
    """Trials whose point had been tried before."""
    interrupted: bool
    whole: bool
    """Every point of the space was tried."""
    counts: Counts


class Search:
    """A search, in its storage: trials in there are not asked for again."""

    def __init__(self, space: Space, aim: Aim, *, trials: int, batch: int, seed: int, storage: str | None) -> None:
        self.space, self.aim = space, aim
        self.batch, self.seed = batch, seed
        self.whole = space.size <= trials
        self.trials = space.size if self.whole else trials
        self.study = self._open(storage)

    @cached_property
    def name(self) -> str:
        """A name for this search alone: of its space, its aim and the origin of its trials."""
        asked = self.space.asked
        told: list[object] = [
            self.space.sweep.title, [(one.name, one.ordered, one.labels) for one in self.space.parameters],
            [(one.text, one.more) for one in self.aim.objectives], [one.text for one in self.aim.constraints],
            list(asked.overrides), asked.load, list(asked.where), self.batch, self.seed, self.whole,
        ]  # fmt: skip
        return "tlplab " + hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]

    def _open(self, storage: str | None) -> optuna.Study:
        library()
        import optuna

        directions: list[Literal["maximize", "minimize"]] = [
            "maximize" if one.more else "minimize" for one in self.aim.objectives
        ]
        with storage_errors(storage):
            study: optuna.Study = optuna.create_study(
                storage=open_storage(storage), study_name=self.name, directions=directions, load_if_exists=True
            )
            if not study.trials:
                study.set_user_attr("tlplab", {
                    "study": self.space.asked.study, "title": self.space.sweep.title,
                    "objectives": [one.text for one in self.aim.objectives],
                    "constraints": [one.text for one in self.aim.constraints],
                })  # fmt: skip
        return study

    @cached_property
    def distributions(self) -> dict[str, Any]:
        """The space as Optuna knows it: a range by its steps, other values by their names."""
        from optuna.distributions import CategoricalDistribution, IntDistribution

        return {
            one.name: IntDistribution(0, one.size - 1) if one.ordered else CategoricalDistribution(one.labels)
            for one in self.space.parameters
            if one.size > 1
        }

    def steps(self, parameters: dict[str, Any]) -> Steps:
        """The point of a trial."""
        steps = []
        for one in self.space.parameters:
            told = parameters.get(one.name, 0)
            steps.append(one.labels.index(told) if isinstance(told, str) else int(told))
        return tuple(steps)

    def parameters(self, steps: Steps) -> dict[str, Any]:
        """The trial of a point."""
        pairs = zip(self.space.parameters, steps, strict=True)
        return {one.name: step if one.ordered else one.labels[step] for one, step in pairs if one.size > 1}

    def run(self, watch: Watch) -> Searched:
        """Searches until there are as many trials as were asked for, or until Ctrl-C. Raises `click.ClickException` if the storage fails."""
        from optuna.exceptions import StorageInternalError

        try:
            self._check()
            while self._step(watch):
                pass
            return self._searched()
        except (KeyboardInterrupt, SearchInterruptedError):
            return Searched([], len(self._over()), 0, True, False, self.space.counts)
        except StorageInternalError as error:
            why = str(error.__cause__ or error).splitlines()[0]
            raise click.ClickException(
                f"--storage: {why}; the finished runs are stored, and the same command resumes"
            ) from error

    def _over(self) -> list[optuna.trial.FrozenTrial]:
        """The trials that are over."""
        return [trial for trial in self.study.get_trials(deepcopy=False) if trial.state.is_finished()]

    def _searched(self) -> Searched:
        """The result of all trials."""
        tried = [self.steps(trial.params) for trial in self._over()]
        points = self.space.points(list(dict.fromkeys(tried)), self.aim.figures)
        again, whole = len(tried) - len(points), len(points) == self.space.size
        return Searched(points, len(tried), again, False, whole, self.space.counts)

    def _check(self) -> None:
        """Looks at the trials of this search in the storage: they still are the results of its points. Raises `click.UsageError`."""
        over = self._over()
        points = self.space.points([self.steps(trial.params) for trial in over], self.aim.figures)
        for trial, point in zip(over, points, strict=True):
            told = trial.values if trial.state.name == "COMPLETE" else None
            if told != (self.aim.values(point) if point.kind == "done" else None):
                where = ", ".join(self.space.labels(point.steps))
                raise click.UsageError(
                    f"--storage has a search with other results, such as {where}: the experiment, one of its files"
                    " or tlplab has changed; name another storage"
                )

    def _step(self, watch: Watch) -> bool:
        """Makes the trials of a batch, first unfinished ones; True if there may be more."""
        over = len(self._over())
        watch(over, self.trials)
        if over >= self.trials:
            return False
        batch = self._ask()
        wanted = [self.steps(trial.params) for trial in batch]
        tell = lambda done, of: watch(over + (len(batch) * done // of if of else 0), self.trials)  # noqa: E731
        for trial, point in zip(batch, self.space.points(wanted, self.aim.figures, tell), strict=True):
            self._tell(trial, point)
        return True

    def _ask(self) -> list[optuna.Trial]:
        """The trials of a batch. Batches are the same wherever a search was interrupted."""
        from optuna.trial import Trial

        trials = [trial for trial in self.study.get_trials(deepcopy=False) if trial.state.name != "WAITING"]
        left = [trial for trial in trials if not trial.state.is_finished()]
        begun = left[0].number if left else len(trials)
        batch = []
        for frozen in left:
            self._sample_as(frozen.number)
            trial = Trial(self.study, frozen._trial_id)
            for name, distribution in self.distributions.items():
                trial._suggest(name, distribution)  # what was not yet, if it was killed just then
            batch.append(trial)
        for number in range(len(trials), min((begun // self.batch + 1) * self.batch, self.trials)):
            self._sample_as(number)
            if self.whole:
                self.study.enqueue_trial(self.parameters(self.space.steps(number)), skip_if_exists=True)
            batch.append(self.study.ask(self.distributions))
        return batch

    def _sample_as(self, number: int) -> None:
        """Gives a trial random numbers of its own, so that a search that goes on is the search that was interrupted."""
        from optuna.samplers import TPESampler

        self.study.sampler = TPESampler(seed=seed_of(self.seed, number), warn_independent_sampling=False)

    def _tell(self, trial: optuna.Trial, point: Point) -> None:
        """Keeps the result of a trial's point."""
        from optuna.trial import TrialState

        names = (one.name for one in self.space.parameters)
        trial.set_user_attr("sets", dict(zip(names, self.space.labels(point.steps), strict=True)))
        trial.set_user_attr("kind", point.kind)
        if point.kind != "done":
            trial.set_constraint("the point has figures", FAR)
            self.study.tell(trial, state=TrialState.PRUNED)
            return
        for number, (one, distance) in enumerate(zip(self.aim.constraints, self.aim.distances(point), strict=True), 1):
            trial.set_constraint(f"{number}: {one.text}", distance)
        self.study.tell(trial, self.aim.values(point))


def library() -> None:
    """Makes Optuna silent. Raises `click.UsageError` where it is not installed."""
    try:
        import optuna
    except ImportError:
        raise click.UsageError("the search is Optuna's: pip install 'tlplab[studies]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", module="optuna")
    # Of a trial that was interrupted while it was told: it says the same.
    warnings.filterwarnings("ignore", message=".*this constraint.*is already set")
    logging.getLogger("alembic").setLevel(logging.ERROR)


def open_storage(storage: str | None) -> Any:
    """Optuna's storage: a database, a journal in a file, or nothing that stays. Raises `click.UsageError`."""
    if storage is None:
        return None
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

    if "://" in storage:
        if storage.startswith("sqlite:///"):
            check_file("--storage", Path(storage.removeprefix("sqlite:///")))
        return RDBStorage(storage)
    check_file("--storage", Path(storage))
    return JournalStorage(
        JournalFileBackend(storage, lock_obj=JournalFileSymlinkLock(storage, grace_period=LOCK_SECONDS))
    )


@contextlib.contextmanager
def storage_errors(storage: str | None) -> Iterator[None]:
    """Reports a storage's fault, in a line. Raises `click.UsageError`."""
    try:
        yield
    except (click.ClickException, KeyboardInterrupt):
        raise
    except Exception as error:  # whatever the database's library raises
        said = str(error).strip().splitlines() or [type(error).__name__]
        hint = "a file for a journal, or a database such as sqlite:///search.db"
        raise click.UsageError(f"--storage {storage}: {said[0]}; name {hint}") from error


def seed_of(seed: int, number: int) -> int:
    """The seed of a trial's random numbers."""
    return int.from_bytes(hashlib.sha256(f"{seed} {number}".encode()).digest()[:4], "little")
