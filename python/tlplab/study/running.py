"""Runs a study: in threads of the simulator, and in processes what has devices or drivers in Python."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tlplab import _core
from tlplab.errors import ExperimentError, RunError
from tlplab.loader import forget
from tlplab.processes import side_by_side

# Runs over, runs in all, runs whose results were known.
Watch = Callable[[tuple[int, int, int]], None]
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
    quiet: bool = False

    def changes(self) -> list[str]:
        """What makes it another study than the one that is written, as words of the command."""
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
    """Runs that were made in processes."""
    not_counted: int = 0
    """Those of them that `swept` does not know of."""


@dataclass(frozen=True)
class Task:
    """A run that is made in a process of its own."""

    run: _core.Elsewhere

    @property
    def name(self) -> str:
        """Its key."""
        return self.run[0]


def store_folder() -> Path:
    """Where results are kept if nobody says."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tlplab" / "points"


@cache
def builds() -> tuple[str, str]:
    """Hashes of what runs points: of the simulator, and of it with the package, which carries devices in Python."""
    simulator = hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()
    package = hashlib.sha256(simulator.encode())
    for path in sorted(Path(__file__).parents[1].glob("*.py")):
        package.update(path.read_bytes())
    package.update(sys.version.encode())
    return simulator, package.hexdigest()


def run(asked: Asked, watch: Watch = lambda _: None) -> Done:
    """Runs what is not known of a study. Ctrl-C ends it, and what was done is kept."""
    refused: dict[str, str] = {}
    made = 0
    while True:
        sweep = _core.Sweep(
            asked.study, str(asked.store or store_folder()), builds(), overrides=list(asked.overrides), load=asked.load,
            where=list(asked.where), shard=asked.shard, verdict=asked.verdict, refused=refused,
        )  # fmt: skip
        swept = sweep.run(asked.threads or os.cpu_count() or 1, watch)
        if swept.interrupted or not swept.elsewhere:
            return Done(sweep, swept, swept.interrupted, made)
        if not refused and not made and not asked.quiet:
            one = len(swept.elsewhere) == 1
            what = "1 run has" if one else f"{len(swept.elsewhere)} runs have"
            how = "it is made in a process, not in a thread" if one else "they are made in processes, not in threads"
            print(f"note: {what} a device or driver in Python: {how}", file=sys.stderr)
        kept: list[str] = []
        try:
            refused |= run_in_processes(sweep, swept.elsewhere, asked, kept)
        except KeyboardInterrupt:
            return Done(sweep, swept, True, made + len(kept), len(kept))
        made += len(kept)


def run_in_processes(
    sweep: _core.Sweep, runs: Sequence[_core.Elsewhere], asked: Asked, kept: list[str]
) -> dict[str, str]:  # fmt: skip
    """Makes runs in processes, and keeps what each came to as soon as it is there: then its key is in `kept`. Why runs cannot be, by their keys."""
    by_key = {run[0]: run for run in runs}

    def keep(key: str, came: tuple[str, str]) -> None:
        kind, text = came
        if kind == "ran":
            sweep.keep(by_key[key], text)
            kept.append(key)

    found = side_by_side(
        run_point, [Task(run) for run in runs], "runs", quiet=asked.quiet, at_once=asked.threads, each=keep
    )
    return {key: text for key, (kind, text) in found.items() if kind == "refused"}


def run_point(task: Task) -> tuple[str, str]:
    """Makes a run: `ran` and what it came to, or `refused` and why."""
    _, experiment, overrides, load, seed, _ = task.run
    forget()  # what the runs before have left in the modules of devices
    try:
        simulation = _core.Simulation(experiment, overrides=overrides, load=load, seed=seed, all_details=True)
        while not simulation.advance(SLICE_EVENTS).done:
            pass
        return "ran", simulation.record()
    except ExperimentError as error:
        return "refused", str(error)
    except RunError as error:
        return "ran", _core.failed_record(str(error))


def sweep(
    study: str | os.PathLike[str],
    *,
    overrides: Sequence[str] = (),
    where: Sequence[str] = (),
    store: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    verdict: bool = False,
) -> _core.Table:
    """Runs a study and returns its data set, a row for each run: Arrow by the PyCapsule interface, which pandas, polars, DuckDB and pyarrow read.

    `overrides` are `"key=value"` strings for all points, `where` expressions that points have to fulfil. Results that are known are not
    made again; `store` is the folder with them. With `verdict`, what limits each point is found by runs. Raises `ExperimentError` for a
    mistake in the study, and `KeyboardInterrupt` when it is interrupted; what was done then is kept.
    """
    done = run(
        Asked(
            os.fspath(study), overrides=overrides, where=where, store=None if store is None else os.fspath(store),
            threads=threads, verdict=verdict, quiet=True,
        )
    )  # fmt: skip
    if done.interrupted:
        raise KeyboardInterrupt
    return done.swept.table()
