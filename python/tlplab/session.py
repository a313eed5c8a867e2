"""Runs an experiment to its end, in slices, so that a person can watch it and stop it."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeAlias, cast

from tlplab import _core, quantities, tlps
from tlplab.catalog import find_experiment
from tlplab.errors import ExperimentError, RunError
from tlplab.experiment import Experiment
from tlplab.result import Document, Result

# A slice takes about this long: often enough to move a bar and to answer Ctrl-C, seldom enough to cost nothing.
SLICE_SECONDS = 0.05
# An event may be 10 us of the clock of a device made of RTL, thousands of cycles.
FIRST_SLICE_EVENTS = 1_000
SMALLEST_SLICE_EVENTS = 20
# So long nothing ends before a run without a stop says what goes on.
PATIENCE_SECONDS = 3.0
# TLPs in the message of a run that failed.
LAST_TLPS = 12

Watch: TypeAlias = "Callable[[_core.Progress], None]"
Tried: TypeAlias = "Callable[[int, int], None]"


class Running(Protocol):
    """The methods of a simulation that `finish` needs."""

    def advance(self, events: int) -> _core.Progress: ...
    def restless(self) -> list[str]: ...
    def finish(self, stopped_by: str | None = None) -> str: ...


@dataclass(frozen=True)
class Finished:
    """The result of a run."""

    text: str
    """The result document, JSON."""
    interrupted: bool
    """True if the run was stopped before its end; the document then holds the measurements until that moment."""
    untried: bool = False
    """True if the search for the limit was stopped: the verdict is then of the figures of the run."""

    def result(self) -> Document:
        """The result document."""
        return cast(Document, json.loads(self.text))

    def failures(self) -> list[str]:
        """The reasons why the run failed, in lines; none if it did not."""
        return failures(self.result())


class Patience:
    """Says once why a run does not end: nothing goes on but the clock of a device that never says that it is idle."""

    def __init__(self) -> None:
        self._said = False
        self._ended, self._since = -1, 0.0

    def look(self, simulation: Running, progress: _core.Progress) -> None:
        """Called after each slice of a run."""
        now = time.perf_counter()
        if progress.transactions != self._ended:
            self._ended, self._since = progress.transactions, now
        if self._said or now - self._since < PATIENCE_SECONDS:
            return
        self._since = now
        if names := simulation.restless():
            self._said = True
            print(
                f"note: at {quantities.time_fs(progress.now_fs, 3)} only the clock of {' and '.join(names)} still runs: the module"
                " never reports that it is idle. The run ends when no transaction has ended within the longest time limit of a request. Give the"
                " experiment a `stop`, or the module an `idle`.",
                file=sys.stderr,
            )


def finish(simulation: Running, watch: Watch | None = None) -> Finished:
    """Runs `simulation` to its end, or until Ctrl-C; calls `watch` after each slice."""
    events = FIRST_SLICE_EVENTS
    interrupted = False
    patience = Patience()
    try:
        while True:
            begun = time.perf_counter()
            progress = simulation.advance(events)
            if watch is not None:
                watch(progress)
            if progress.done:
                break
            patience.look(simulation, progress)
            elapsed = max(time.perf_counter() - begun, 1e-6)
            # At most fourfold a time: one slow or quick slice says little about the next.
            wanted = int(events * min(max(SLICE_SECONDS / elapsed, 0.25), 4.0))
            events = max(wanted, SMALLEST_SLICE_EVENTS)
    except KeyboardInterrupt:
        interrupted = True
    return Finished(simulation.finish("interrupted" if interrupted else None), interrupted)


def failures(result: Document) -> list[str]:
    """The reasons why a run that came to its end failed: bus numbers or addresses ran out, or drivers wait for an event that never comes."""
    exhausted = [problem["message"] for problem in result["problems"] if problem["exhausted"]]
    waits = [f"driver of {one['device']} still waits for {one['what']} ({one['place']})" for one in result["waiting"]]
    return [*exhausted, *waits]


def succeed(finished: Finished) -> None:
    """Raises `KeyboardInterrupt` for a run that was interrupted, `RunError` for a failed run."""
    if finished.interrupted:
        raise KeyboardInterrupt
    if failed := finished.failures():
        raise RunError("; ".join(failed))


def succeeded(simulation: _core.Simulation) -> Finished:
    """A run that came to its end. Raises `KeyboardInterrupt` where it was interrupted, `RunError` with the run up to there where it failed."""
    with failure_told(simulation):
        finished = finish(simulation)
    try:
        succeed(finished)
    except RunError as error:
        tell_failure(error, simulation, finished.text)
        raise
    return finished


@contextmanager
def failure_told(simulation: _core.Simulation) -> Iterator[None]:
    """Gives a `RunError` the run up to there and its last TLPs."""
    try:
        yield
    except RunError as error:
        tell_failure(error, simulation, simulation.finish("failed"))
        raise


def tell_failure(error: RunError, simulation: _core.Simulation, text: str) -> None:
    """Gives an error the run that failed, and its last TLPs."""
    error.run = Result(text)
    _, error.tlps = tlps.of_run(simulation)


def judged(
    simulation: _core.Simulation, finished: Finished, *, full: bool = False, threads: int | None = None,
    watch: Tried | None = None,
) -> Finished:  # fmt: skip
    """`finished`, with the verdict by runs; with that of its figures, if the experiment cannot be run again or Ctrl-C comes.

    In `full`, more of every resource is tried on the whole run, at any cost. `threads` is how many runs go on at once, as many as there are processors if it is not given. `watch` receives the number of finished
    runs, and of all.
    """
    if finished.interrupted:
        return finished
    try:
        judge = simulation.judge(full=full)
    except ValueError:
        return finished  # part of what takes part is outside of the simulation, or nothing was carried
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        try:
            make_runs(judge, pool, threads or os.cpu_count() or 1, watch)
        except KeyboardInterrupt:
            judge.cancel()
            return replace(finished, untried=True)
    return Finished(judge.document(), interrupted=False)


def make_runs(judge: _core.Judge, pool: ThreadPoolExecutor, at_once: int, watch: Tried | None) -> None:
    """Makes the runs that `judge` asks for, so many at once."""
    under_way: dict[Future[None], _core.Task] = {}
    while not judge.is_over():
        while len(under_way) < at_once and (task := judge.next_task()) is not None:
            under_way[pool.submit(task.run)] = task
        done, _ = wait(under_way, return_when=FIRST_COMPLETED)
        for future in done:
            future.result()
            judge.tell(under_way.pop(future))
        if watch is not None:
            watch(*judge.progress())


def simulation_of(
    experiment: str | os.PathLike[str] | Experiment,
    *,
    overrides: Sequence[str] = (),
    load: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    trace: str | os.PathLike[str] | None = None,
    pcap: str | os.PathLike[str] | None = None,
    latest: int = LAST_TLPS,
) -> _core.Simulation:
    """A run that is about to begin, which keeps so many of its latest TLPs. Raises `ExperimentError`."""
    start = partial(
        _core.Simulation, overrides=list(overrides), load=None if load is None else os.fspath(load), seed=seed,
        trace=None if trace is None else os.fspath(trace), pcap=None if pcap is None else os.fspath(pcap), latest=latest,
    )  # fmt: skip
    try:
        if not isinstance(experiment, Experiment):
            return start(find_experiment(os.fspath(experiment)))
        with experiment.places():
            return start(experiment.path, text=experiment.to_toml(), objects=experiment.objects())
    except ExperimentError as error:
        raise error.of_overrides("overrides") from None


def run(
    experiment: str | os.PathLike[str] | Experiment,
    *,
    overrides: Sequence[str] = (),
    load: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    report: str | os.PathLike[str] | None = None,
    trace: str | os.PathLike[str] | None = None,
    pcap: str | os.PathLike[str] | None = None,
    verdict: bool = True,
) -> Result:
    """Runs an experiment: a file, one of tlplab's own by name (`quickstart`), or one made of objects. Returns its result document.

    `overrides` are `"key=value"` strings as the command line's `--set` takes them. `report`, `trace` and `pcap` name
    files to write: the page, a Perfetto trace, a capture. Further runs, each with one relaxed resource, find the limit;
    without `verdict` the figures of this run alone name it. Raises `ExperimentError` for a mistake in the experiment,
    `RunError` when the run fails, and `KeyboardInterrupt` when it is interrupted.
    """
    simulation = simulation_of(experiment, overrides=overrides, load=load, seed=seed, trace=trace, pcap=pcap)
    finished = succeeded(simulation)
    if verdict:
        finished = judged(simulation, finished)
        if finished.untried:
            raise KeyboardInterrupt
    if report is not None:
        _core.write_report(os.fspath(report), finished.text)
    return Result(finished.text)
