"""Runs a study: in threads of the simulator, in processes if it has devices or drivers in Python, or all of it by workers of a cluster."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tlplab import _core
from tlplab.errors import ExperimentError, RunError
from tlplab.loader import forget
from tlplab.processes import side_by_side

# Runs over, runs in all, runs whose results were known.
Watch = Callable[[tuple[int, int, int]], None]
# `ran` and what a run came to, or `refused` or `differs` and why.
Came = tuple[str, bytes | str]
SLICE_EVENTS = 100_000


@dataclass(frozen=True)
class Asked:
    """A study, and how it is to be run."""

    study: str
    overrides: Sequence[str] = ()
    load: str | None = None
    where: Sequence[str] = ()
    store: str | None = None
    threads: int | None = None
    shard: tuple[int, int] = (0, 1)
    verdict: bool = False
    engine: str = "local"
    """`local`, or `dask`: workers of a cluster make the runs."""
    address: str | None = None
    """The address of the cluster's scheduler; without one, a cluster is started on this machine."""
    quiet: bool = False
    chosen: _core.Chosen | None = None
    """Points other than all that the axes cross to."""

    def changes(self) -> list[str]:
        """The options that make another study of the written one, as words of the command."""
        part, parts = self.shard
        return [
            *(word for one in self.overrides for word in ("--set", one)),
            *(["--load", self.load] if self.load is not None else []),
            *(word for one in self.where for word in ("--where", one)),
            *(["--shard", f"{part + 1}/{parts}"] if parts > 1 else []),
        ]


@dataclass
class Done:
    """A study that was run, to its end or until Ctrl-C."""

    sweep: _core.Sweep
    swept: _core.Swept
    interrupted: bool
    in_processes: int = 0
    """Runs that were made in processes, or by workers."""
    not_counted: int = 0
    """The runs among them that `swept` does not know of."""


@dataclass(frozen=True)
class Task:
    """A run that is made in a process of its own."""

    run: _core.Elsewhere

    @property
    def name(self) -> str:
        """Its key."""
        return self.run[0]


def store_folder() -> Path:
    """The default folder of results."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tlplab" / "points"


@cache
def builds() -> tuple[str, str]:
    """Hashes of the code that runs points: of the simulator, and of it with the package, which carries devices in Python."""
    simulator = hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()
    package = hashlib.sha256(simulator.encode())
    folder = Path(__file__).parents[1]
    for path in sorted([*folder.glob("*.py"), *(folder / "bench").glob("*.py")]):
        package.update(path.read_bytes())
    package.update(sys.version.encode())
    return simulator, package.hexdigest()


def opened(asked: Asked, refused: Mapping[str, str] | None = None) -> _core.Sweep:
    """A study that is read; `refused` are runs that cannot be made in processes, and why. Raises ExperimentError."""
    return _core.Sweep(
        asked.study, str(asked.store or store_folder()), builds(), overrides=list(asked.overrides), load=asked.load,
        where=list(asked.where), shard=asked.shard, verdict=asked.verdict, all_elsewhere=asked.engine == "dask",
        refused=refused or {}, chosen=asked.chosen,
    )  # fmt: skip


def run(asked: Asked, watch: Watch = lambda _: None) -> Done:
    """Runs the unknown points of a study. Ctrl-C ends it, and finished points are kept."""
    refused: dict[str, str] = {}
    made = 0
    while True:
        sweep = opened(asked, refused)
        swept = sweep.run(asked.threads or os.cpu_count() or 1, watch)
        if swept.interrupted or not swept.elsewhere:
            return Done(sweep, swept, swept.interrupted, made)
        kept: list[str] = []
        try:
            if asked.engine == "dask":
                run_by_workers(sweep, swept, asked, refused, kept, watch)
            else:
                if not refused and not made and not asked.quiet:
                    tell_of_processes(len(swept.elsewhere))
                run_in_processes(sweep, swept.elsewhere, asked, refused, kept)
        except KeyboardInterrupt:
            return Done(sweep, swept, True, made + len(kept), len(kept))
        made += len(kept)


def tell_of_processes(count: int) -> None:
    """Says that runs are not made in threads, and why."""
    what = "1 run has" if count == 1 else f"{count} runs have"
    how = "it runs in a process, not in a thread" if count == 1 else "they run in processes, not in threads"
    print(f"note: {what} a device or driver in Python: {how}", file=sys.stderr)


def run_in_processes(
    sweep: _core.Sweep, runs: Sequence[_core.Elsewhere], asked: Asked, refused: dict[str, str], kept: list[str]
) -> None:
    """Makes runs in processes, and keeps the result of each as soon as it is there: then its key is in `kept`. The reasons of refused ones are in `refused`."""
    by_key = {run[0]: run for run in runs}

    def keep(key: str, came: Came) -> None:
        take(sweep, by_key[key], came, refused, kept)

    side_by_side(make_alone, [Task(run) for run in runs], "runs", quiet=asked.quiet, at_once=asked.threads, each=keep)


def run_by_workers(
    sweep: _core.Sweep, swept: _core.Swept, asked: Asked, refused: dict[str, str], kept: list[str], watch: Watch
) -> None:
    """The same by workers of dask."""
    from tlplab.study import dask_engine

    done, of, known, _ = swept.progress
    before = len(refused)

    def keep(run: _core.Elsewhere, came: Came) -> list[_core.Elsewhere]:
        following = take(sweep, run, came, refused, kept)
        return [] if following is None else [following]

    def look() -> None:
        watch((done + len(kept) + len(refused) - before, of, known))

    dask_engine.make(swept.elsewhere, keep, look, address=asked.address, threads=asked.threads, quiet=asked.quiet)


def take(
    sweep: _core.Sweep, run: _core.Elsewhere, came: Came, refused: dict[str, str], kept: list[str]
) -> _core.Elsewhere | None:
    """Keeps the result of a run, and returns the run that follows from it, if any. Raises OSError."""
    kind, told = came
    if isinstance(told, bytes):
        following = sweep.keep(run[2], told)
        kept.append(run[0])
        return following
    if kind == "differs":
        raise OSError(f"{told}; it changed while the study ran: run it again")
    refused[run[0]] = told
    return None


def make_alone(task: Task) -> Came:
    """Makes a run in a process."""
    return make(_core.RunMaker(builds()), task.run)


# Devices in Python share the modules that they are in.
ONE_AT_A_TIME = threading.Lock()


def make(maker: _core.RunMaker, run: _core.Elsewhere) -> Came:
    """Makes a run: `ran` and its result, `refused` and why, or `differs` and why: here it would be another run."""
    _, in_python, text = run
    if not in_python:
        return maker.make(text)
    with ONE_AT_A_TIME:
        if (why := maker.differs(text)) is not None:
            return "differs", why
        forget()  # what the runs before have left in the modules of devices
        part = json.loads(maker.in_python(text))
        try:
            return "ran", measured(part["bench"]) if "bench" in part else simulated(part["experiment"])
        except (ExperimentError, ValueError) as error:
            return "refused", str(error)
        except RunError as error:
            return "ran", _core.failed_record(str(error))


def simulated(run: dict[str, Any]) -> bytes:
    """The result of a run of an experiment."""
    simulation = _core.Simulation(
        run["path"], overrides=run["set"], load=run["load"], seed=run["seed"], all_details=True
    )
    while not simulation.advance(SLICE_EVENTS).done:
        pass
    return simulation.record()


def measured(run: dict[str, Any]) -> bytes:
    """The result of a benchmark of a device in Python."""
    from tlplab.bench import software
    from tlplab.bench.case import Case

    device = software.load(run["target"])
    target = software.SoftwareTarget(device, host=run["host"], link=run["link"], host_keys=dict(run["host_keys"]))
    return target.measure(Case(**run["case"])).record(run["lanes"])


def sweep(
    study: str | os.PathLike[str],
    *,
    overrides: Sequence[str] = (),
    where: Sequence[str] = (),
    store: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    verdict: bool = False,
    engine: str = "local",
    address: str | None = None,
) -> _core.Table:
    """Runs a study and returns its data set, a row for each run: Arrow by the PyCapsule interface, which pandas, polars, DuckDB and pyarrow read.

    `overrides` are `"key=value"` strings for all points, `where` expressions that points must fulfil. Stored results are not
    computed again; `store` is their folder. With `verdict`, further runs find the limit of each point. `engine` is `local`, or `dask`: then
    workers of the cluster at `address` make the runs, or some that are started on this machine (from a script, behind `if __name__ ==
    "__main__"`, as they are processes). Raises `ExperimentError` for a
    mistake in the study, and `KeyboardInterrupt` when it is interrupted; finished runs are stored.
    """
    done = run(
        Asked(
            os.fspath(study), overrides=overrides, where=where, store=None if store is None else os.fspath(store),
            threads=threads, verdict=verdict, engine=engine, address=address, quiet=True,
        )
    )  # fmt: skip
    if done.interrupted:
        raise KeyboardInterrupt
    return done.swept.table()
