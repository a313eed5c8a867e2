"""Makes the runs of a study on workers of dask.distributed: those of a cluster, or some that are started for it on this machine.

The client hands out runs in batches and keeps each result as soon as its batch is over: it alone writes. A worker sees the folders of
the client (a shared file system), makes each run ready itself, and holds its key against the client's: with another build of tlplab, or
with another file under the same name, it refuses. Runs of a worker that is lost are made by another one.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import queue
import signal
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tlplab import _core
from tlplab.errors import ExperimentError

if TYPE_CHECKING:  # imported where it is used: it is an extra
    from distributed import Client, Future

    # Hears of a run and what came of it; runs that follow from that come back.
    Keep = Callable[[_core.Elsewhere, "Came"], list[_core.Elsewhere]]

# What came of a run: `ran` and its record, `refused` and why, or `differs` and why.
Came = tuple[str, bytes | str]
# What a batch takes, about: less, and messages take longer than runs; more, and much is lost with a worker.
BATCH_SECONDS = 0.5
MOST_IN_A_BATCH = 500
# Batches for each thread of the workers: while one is made, the next is there.
AHEAD = 2
# How often the number of threads is asked for, and progress is shown.
LOOK_SECONDS = 0.5
CONNECT_SECONDS = 10


@dataclass(frozen=True)
class Batch:
    """Runs for a worker."""

    folder: str
    """Paths are meant from here."""
    runs: list[_core.Elsewhere]


@dataclass(frozen=True)
class Made:
    """The result of a batch."""

    worker: str
    seconds: float
    came: list[Came]


def check() -> None:
    """Raises `click.UsageError` where dask is missing."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise click.UsageError("--engine dask: dask.distributed is missing: pip install 'tlplab[dask]'") from None


def make(
    runs: list[_core.Elsewhere], keep: Keep, look: Callable[[], None], *, address: str | None, threads: int | None, quiet: bool
) -> None:  # fmt: skip
    """Makes runs; `look` is called now and then. Raises ExperimentError for a cluster that cannot do it, OSError, KeyboardInterrupt."""
    with connected(address, threads) as client:
        Hands(client, runs, keep, look, quiet=quiet).work()


@contextlib.contextmanager
def connected(address: str | None, threads: int | None) -> Iterator[Client]:
    """A client of the cluster at an address; of a cluster that is started here, with a process for each of `threads`, if there is none."""
    from distributed import Client, LocalCluster

    with contextlib.ExitStack() as stack:
        stack.enter_context(silence())
        if address is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tlplab-dask-"))
            with uncollected():
                cluster = LocalCluster(
                    n_workers=threads or os.cpu_count() or 1, threads_per_worker=1, processes=True, host="127.0.0.1",
                    dashboard_address="127.0.0.1:0", worker_dashboard_address=None, memory_limit=0, silence_logs=logging.CRITICAL,
                    preload=[__name__], local_directory=folder,
                )  # fmt: skip
                client = Client(stack.enter_context(cluster), set_as_default=False)
            yield stack.enter_context(client)
            return
        try:
            with uncollected():
                client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            why = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise mistake(f"--address {address}", f"no dask scheduler answers at this address: {why}") from None
        yield stack.enter_context(client)


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Collects garbage, and none meanwhile. A client that was never closed closes itself when it is collected; that takes the lock which another client
    holds while it starts, and one thread would wait for itself.
    """
    gc.collect()
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def dask_setup(_worker: object) -> None:
    """In each worker that is started here: Ctrl-C is for the client, which ends its workers."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Silence dask's log: workers that come and go are normal for this engine."""
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


class Hands:
    """Hands runs out, and takes their results."""

    def __init__(
        self, client: Client, runs: list[_core.Elsewhere], keep: Keep, look: Callable[[], None], *, quiet: bool
    ) -> None:
        self._client = client
        self._waiting = deque(runs)
        self._keep, self._look, self._quiet = keep, look, quiet
        self._under_way: dict[Future, Batch] = {}
        self._over: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self._threads, self._asked = 0, -LOOK_SECONDS
        self._seconds_each: float | None = None
        self._told_of_no_workers = False
        # Runs that are handed out one at a time, as a worker was lost with the batch that they were in.
        self._alone: set[str] = set()

    def work(self) -> None:
        """Until all runs are over."""
        begun = time.monotonic()
        while self._waiting or self._under_way:
            self._hand_out(begun)
            try:
                future = self._over.get(timeout=LOOK_SECONDS / 5)
            except queue.Empty:
                pass
            else:
                self._take(future)
            self._look()

    def _hand_out(self, begun: float) -> None:
        now = time.monotonic()
        if now - self._asked >= LOOK_SECONDS:
            self._asked = now
            self._threads = sum(self._client.nthreads().values())
            if not self._threads and now - begun > 3 and not (self._told_of_no_workers or self._quiet):
                self._told_of_no_workers = True
                print("note: the cluster has no workers yet; waiting for them", file=sys.stderr)
        # Without workers nothing is handed out: whoever comes first would get all.
        while self._waiting and len(self._under_way) < AHEAD * self._threads:
            batch = Batch(os.getcwd(), self._next())
            future = self._client.submit(make_batch, batch, pure=False)
            self._under_way[future] = batch
            future.add_done_callback(self._over.put)

    def _next(self) -> list[_core.Elsewhere]:
        """A batch: as many runs as take about the time of a batch, and not so many that none are left for the others."""
        count = 1
        if self._seconds_each is not None:
            fair = -(-len(self._waiting) // (AHEAD * self._threads))
            count = max(1, min(int(BATCH_SECONDS / max(self._seconds_each, 1e-6)), MOST_IN_A_BATCH, fair))
        first = self._waiting.popleft()
        runs = [first]
        while len(runs) < count and self._waiting and not {first[0], self._waiting[0][0]} & self._alone:
            runs.append(self._waiting.popleft())
        return runs

    def _take(self, future: Future) -> None:
        from distributed import KilledWorker

        batch = self._under_way.pop(future)
        try:
            made = future.result()
        except KilledWorker:
            if len(batch.runs) == 1:
                raise lost(batch.runs[0]) from None
            # One of them ends whoever makes it: it is found, and the others are made.
            self._alone |= {run[0] for run in batch.runs}
            self._waiting.extend(batch.runs)
            return
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] != "tlplab":
                raise
            raise mistake("dask", "a worker lacks this version of tlplab", "install the client's wheel on it") from None
        each = made.seconds / len(made.came)
        self._seconds_each = each if self._seconds_each is None else (self._seconds_each + each) / 2
        for run, came in zip(batch.runs, made.came, strict=False):  # a batch ends with a run that differs
            if came[0] == "differs":
                raise mistake(f"worker {made.worker}", came[1], NEEDED)
            self._waiting.extend(self._keep(run, came))


NEEDED = "workers need the client's build of tlplab and its files at the same paths"


def mistake(place: str, message: str, hint: str | None = None) -> ExperimentError:
    """A mistake that the user of the study has to correct."""
    return ExperimentError(place, None, None, "", message, hint)


def lost(run: _core.Elsewhere) -> OSError:
    """A run with which workers were lost. Dask counts a loss against all that the worker had, so another of its runs may be the cause."""
    return OSError(
        f"several workers were lost, one after the other, with run {run[0][:12]}… or another run of the same worker; results that had come back are stored"
    )


def make_batch(batch: Batch) -> Made:
    """On a worker: makes the runs of a batch, until one is another here than the client means."""
    from distributed import get_worker

    from tlplab.study import running

    begun = time.perf_counter()
    worker: Any = get_worker()
    came: list[Came] = []
    with FOLDERS.within(batch.folder) as missing:
        maker = _core.RunMaker(running.builds())
        for run in batch.runs:
            came.append(("differs", missing) if missing else running.make(maker, run))
            if came[-1][0] == "differs":
                break
    return Made(str(worker.address), time.perf_counter() - begun, came)


class Folders:
    """The folder that a process works in, which its threads share: a batch that means another waits."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._users = 0
        self._folder, self._before = "", ""

    @contextlib.contextmanager
    def within(self, folder: str) -> Iterator[str | None]:
        """Works in a folder; why that cannot be, if so."""
        with self._changed:
            self._changed.wait_for(lambda: self._users == 0 or self._folder == folder)
            missing = self._enter(folder) if self._users == 0 else None
            self._users += missing is None
        try:
            yield missing
        finally:
            with self._changed:
                self._users -= missing is None
                if self._users == 0 and missing is None:
                    os.chdir(self._before)
                    self._changed.notify_all()

    def _enter(self, folder: str) -> str | None:
        try:
            before = os.getcwd()
            os.chdir(folder)
        except OSError as error:
            return f"{folder}: {error.strerror}"
        self._folder, self._before = folder, before
        return None


FOLDERS = Folders()
