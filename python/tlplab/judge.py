"""What limits a run, found by runs in which one resource is relaxed; on several threads, with the same result on any number of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from tlplab import _core
from tlplab.session import Finished

Watch = Callable[[int, int], None]


def judged(simulation: _core.Simulation, finished: Finished, *, threads: int | None = None, watch: Watch | None = None) -> Finished:
    """`finished`, with the verdict by runs; as it is, if the experiment cannot be run again or Ctrl-C comes.

    `threads` is how many runs go on at once, as many as there are processors if it is not given. `watch` is told how many runs were
    made, and of how many.
    """
    if finished.interrupted:
        return finished
    try:
        judge = simulation.judge()
    except ValueError:
        return finished  # part of what takes part is outside of the simulation, or nothing was carried
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        try:
            make_runs(judge, pool, threads or os.cpu_count() or 1, watch)
        except KeyboardInterrupt:
            judge.cancel()
            return finished
    return Finished(judge.document(), interrupted=False)


def make_runs(judge: _core.Judge, pool: ThreadPoolExecutor, at_once: int, watch: Watch | None) -> None:
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
