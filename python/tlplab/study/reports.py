"""The reports of a study's points, packed so that they go into its page."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from tlplab import _core
from tlplab import quantities as q
from tlplab.errors import ExperimentError, RunError
from tlplab.loader import forget
from tlplab.processes import side_by_side
from tlplab.session import finish, judged
from tlplab.study.running import Asked, Done

# What the reports of a page take at most: with more, browsers take long to open it.
MOST_BYTES = 64 * 2**20
MARK = "/*RESULT*/"


@dataclass
class Reports:
    """The results of points by their numbers, packed."""

    results: dict[int, str] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)
    """The reason why a point has no report."""

    def document(self) -> dict[str, Any]:
        """The reports in the page of the study: the page of a run, and the content for it."""
        before, after = _core.report_page(MARK).split(MARK)
        results = {str(point): self.results[point] for point in sorted(self.results)}
        return {"viewer": [pack(before), pack(after)], "results": results}

    def told(self) -> str:
        """The number of reports, and their size."""
        whole = sum(map(len, self.results.values()))
        if not self.results:
            return "reports: none, since no point was run successfully"
        one = whole / len(self.results)
        count = f"{len(self.results)} report{'' if len(self.results) == 1 else 's'}"
        missing = f"; {len(self.failed)} could not be made" if self.failed else ""
        return f"{count} in the page, {q.size(round(one), 3)} each, {q.size(whole, 3)} in all{missing}"


@dataclass(frozen=True)
class Task:
    """A run whose report is wanted."""

    point: int
    experiment: str
    overrides: Sequence[str]
    load: str | None
    seed: int

    @property
    def name(self) -> str:
        """The number of its point."""
        return str(self.point)


def make(asked: Asked, done: Done) -> Reports:
    """Makes the first run of each point again, with all that a report tells. Raises `click.UsageError` if they are too large together."""
    experiment, load, common, own = done.sweep.inputs
    if experiment is None:
        raise click.UsageError("--reports: only experiments have reports; leave it out")
    table = done.swept.table().to_numpy()
    tasks: dict[int, Task] = {}
    for point, seed, kind in zip(*(table[name].tolist() for name in ("point", "seed", "kind")), strict=True):
        if kind == "done" and point not in tasks:
            tasks[point] = Task(point, experiment, [*common, *own[point]], load, seed)
    reports = Reports()
    todo = list(tasks.values())

    def keep(name: str, came: tuple[str, str]) -> None:
        kind, text = came
        (reports.results if kind == "ran" else reports.failed)[int(name)] = text
        whole = sum(map(len, reports.results.values()))
        expected = whole if len(reports.results) > 1 else whole * len(todo)
        if expected > MOST_BYTES:
            count = max(1, MOST_BYTES * len(reports.results) // whole)
            raise click.UsageError(
                f"--reports: the report of a point takes {q.size(whole // len(reports.results), 3)}, and a page holds {q.size(MOST_BYTES)} of them:"
                f" about {count} points, not {len(todo)}. Choose points by --where; without --reports the page shows the command for each report"
            )

    # The first one tells whether all of them fit.
    for part in (todo[:1], todo[1:]):
        side_by_side(run_point, part, "reports", quiet=asked.quiet, at_once=asked.threads, each=keep)
    return reports


def run_point(task: Task) -> tuple[str, str]:
    """Makes a run as `tlplab run --report` does: `ran` and its result, packed, or `failed` and why."""
    forget()  # what the runs before have left in the modules of devices
    try:
        simulation = _core.Simulation(task.experiment, overrides=task.overrides, load=task.load, seed=task.seed)
        return "ran", pack(judged(simulation, finish(simulation), threads=1).text)
    except (ExperimentError, RunError) as error:
        return "failed", str(error)


def pack(text: str) -> str:
    """Text by gzip in base64: the same text makes the same."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode("ascii")
