"""Work that is spread over processes, so that a person can watch it and stop it."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Protocol, TypeVar

from tlplab.progress import Bar


class Named(Protocol):
    """Something to do that has a name."""

    @property
    def name(self) -> str: ...


Task = TypeVar("Task", bound=Named)
Done = TypeVar("Done")


def side_by_side(
    do: Callable[[Task], Done], tasks: Sequence[Task], what: str, *, quiet: bool, at_once: int | None = None,
    each: Callable[[str, Done], None] | None = None,
) -> dict[str, Done]:  # fmt: skip
    """Does the tasks, each in a process, `at_once` at a time (default: on all processors); the result of each, by its name.

    `what` they are, for the progress bar. `each` receives a task's name and result as soon as it is done.
    """
    found: dict[str, Done] = {}
    if not tasks:
        return found
    pool = ProcessPoolExecutor(min(len(tasks), at_once or os.cpu_count() or 1), initializer=end_at_once)
    try:
        with Bar(quiet=quiet) as bar:
            under_way = {pool.submit(do, one): one for one in tasks}
            for future in as_completed(under_way):
                name = under_way[future].name
                found[name] = future.result()
                if each is not None:
                    each(name, found[name])
                bar.show(len(found) / len(tasks), f"{len(found)} of {len(tasks)} {what}")
    except BaseException:
        # Nobody waits for what is under way, and what has ended is not in the way of Python's own end.
        for worker in multiprocessing.active_children():
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return found


def end_at_once() -> None:
    """A process that simulates has nothing to bring in order."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
