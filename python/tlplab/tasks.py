"""Handlers that wait: coroutines which start operations and go on when these are over.

A `Party` is a device or a host program. It receives one event at a time and answers with actions; no clock and no
thread is involved, so its carrier (the simulator, a socket) decides when things happen.
"""

from __future__ import annotations

import inspect
from collections.abc import Coroutine, Generator
from pathlib import Path
from typing import Any, Generic, TypeVar

from tlplab import _core

Result = TypeVar("Result")
Action = tuple[Any, ...]


# What can be waited for, in documents and for people.
WHAT = {
    "timer": "a sleep",
    "mmio_read": "an MMIO read",
    "mmio_write": "an MMIO write",
    "dma_read": "a DMA read",
    "dma_write": "a DMA write",
    "irq": "an interrupt",
}


class DmaError(RuntimeError):
    """A read that failed: unsupported request, completer abort, poisoned data, timeout."""


class Operation(Generic[Result]):
    """Something under way. Await it for its result; it goes on with or without a waiting task."""

    def __init__(self, kind: str, what: str | None = None) -> None:
        self.kind = kind
        self.what = WHAT[kind] if what is None else what
        self.over = False
        self.result: Any = None
        self.error: Exception | None = None
        self.waiting: list[Task] = []

    def __await__(self) -> Generator[Operation[Any], None, Result]:
        if not self.over:
            yield self
        if self.error is not None:
            raise self.error
        result: Result = self.result
        return result


class Task:
    """A handler that has begun."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self.coroutine = coroutine
        self.waits_for: Operation[Any] | None = None

    @property
    def place(self) -> str:
        """`file:line` of the wait, in the user's own code."""
        awaited: Any = self.coroutine
        frames = []
        while inspect.iscoroutine(awaited):
            if awaited.cr_frame is not None:
                frames.append(awaited.cr_frame)
            awaited = awaited.cr_await
        own = str(Path(__file__).parent)
        places = [f"{f.f_code.co_filename}:{f.f_lineno}" for f in frames if not f.f_code.co_filename.startswith(own)]
        return places[-1] if places else "?"


class Party:
    """Runs handlers, and keeps the tasks that they started until they are over."""

    def __init__(self) -> None:
        self.now_fs = 0
        self.actions: list[Action] = []
        self.under_way: dict[int, Operation[Any]] = {}
        self.tasks: dict[int, Task] = {}
        self.next_key = 0

    def begin(self, kind: str, *details: Any) -> Operation[Any]:
        """Starts an operation: an action whose key comes back when it is over."""
        key = self.next_key
        self.next_key += 1
        operation: Operation[Any] = Operation(kind)
        self.under_way[key] = operation
        self.actions.append((kind, key, *details))
        return operation

    def sleep(self, duration: int | str) -> Operation[None]:
        """A wait of `duration`: `"1.5us"`, or femtoseconds."""
        femtoseconds = duration if isinstance(duration, int) else _core.duration_fs(duration)
        return self.begin("timer", self.now_fs + femtoseconds)

    def end(self, key: int, result: Any, error: str | None) -> None:
        """An operation is over: the tasks that wait for it go on."""
        operation = self.under_way.pop(key, None)
        if operation is not None:
            self.complete(operation, result, None if error is None else DmaError(error))

    def complete(self, operation: Operation[Any], result: Any, error: Exception | None = None) -> None:
        """Gives an operation its result."""
        operation.over, operation.result, operation.error = True, result, error
        waiting, operation.waiting = operation.waiting, []
        for task in waiting:
            self.go_on(task)

    def start(self, called: Any) -> None:
        """Begins the return value of a handler: a coroutine runs to its first wait, anything else is over already."""
        if inspect.iscoroutine(called):
            task = Task(called)
            self.tasks[id(task)] = task
            self.go_on(task)

    def go_on(self, task: Task) -> None:
        """Runs a task to its next wait or to its end."""
        if id(task) not in self.tasks:
            return  # cancelled by a reset meanwhile
        try:
            operation = task.coroutine.send(None)
        except StopIteration:
            del self.tasks[id(task)]
            return
        except BaseException:
            del self.tasks[id(task)]
            raise
        if not isinstance(operation, Operation):
            raise TypeError(
                f"a handler awaited {operation!r}, which belongs to another event loop; await operations of its context"
            )
        operation.waiting.append(task)
        task.waits_for = operation

    def cancel(self) -> None:
        """Ends every task where it waits, as a reset does."""
        tasks, self.tasks = list(self.tasks.values()), {}
        self.under_way.clear()
        for task in tasks:
            task.coroutine.close()

    def take_actions(self) -> list[Action]:
        """The actions since the last call."""
        actions, self.actions = self.actions, []
        return actions
