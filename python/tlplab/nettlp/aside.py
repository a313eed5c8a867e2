"""Work that Ctrl-C need not wait for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Aside(Generic[Result]):
    """Work in a thread of its own, which begins at once.

    The thread tells by a queue that it is over: unlike events and joins, which are written in Python, that holds no lock where Ctrl-C can strike.
    """

    def __init__(self, work: Callable[..., Result], *arguments: object) -> None:
        """Begins `work`."""
        self._told: SimpleQueue[None] = SimpleQueue()
        self._results: list[Result] = []
        self._failures: list[BaseException] = []

        def run() -> None:
            try:
                self._results.append(work(*arguments))
            except BaseException as error:
                self._failures.append(error)
            self._told.put(None)

        threading.Thread(target=run, name="aside", daemon=True).start()

    def over(self, within: float | None = None) -> bool:
        """True if the work has ended; waits for `within` seconds, or without a limit."""
        if not (self._results or self._failures):
            try:
                self._told.get(timeout=within)
            except Empty:
                return False
        return True

    def result(self) -> Result:
        """The work's result, after its end. Raises its exception."""
        self.over()
        if self._failures:
            raise self._failures.pop()  # or it would keep itself, and the sockets, alive
        return self._results[0]
