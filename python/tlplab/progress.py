"""A progress bar on stderr, for runs that take more than a moment."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from tlplab import _core
from tlplab import quantities as q

# A run is watched this long before a bar appears; the bar then appears only if two seconds will be passed.
SILENT_SECONDS = 0.5
WORTH_SECONDS = 2.0


class Line:
    """A line on stderr about the present work, which changes; on anything but a terminal, nothing."""

    def __init__(self, *, quiet: bool) -> None:
        """`quiet` shows nothing even on a terminal."""
        self.shown = not quiet and sys.stderr.isatty()

    def show(self, text: str) -> None:
        """Replaces the shown line, by no more than fits: a wrapped line could not be taken away."""
        if self.shown:
            width = shutil.get_terminal_size().columns - 1
            with contextlib.suppress(OSError):  # the terminal has gone; what is to be written elsewhere still is
                sys.stderr.write(f"\r\x1b[K{text[:width]}")
                sys.stderr.flush()

    def clear(self) -> None:
        """Takes the line away."""
        self.show("")


class Bar:
    """Shows how far a run is; on anything but a terminal, nothing."""

    def __init__(self, *, quiet: bool) -> None:
        """`quiet` shows nothing even on a terminal."""
        self._shown: Progress | None = None
        self._task: TaskID | None = None
        self._silent = quiet or not sys.stderr.isatty()
        self._begun = time.perf_counter()

    def __enter__(self) -> Bar:
        self._begun = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown is not None:
            with contextlib.suppress(OSError):  # as in `Line`
                self._shown.stop()

    def update(self, progress: _core.Progress) -> None:
        """Called after each slice of a run."""
        rate = progress.events / max(time.perf_counter() - self._begun, 1e-9)
        text = f"{q.time_fs(progress.now_fs, 3)} simulated, {q.significant(rate / 1e6, 3)} M events/s"
        self.show(progress.fraction, text)

    def show(self, fraction: float | None, text: str) -> None:
        """Shows that `fraction` of the work is done, and a few words about it."""
        if self._silent:
            return
        if self._shown is None:
            if not worth_showing(time.perf_counter() - self._begun, fraction):
                return
            self._start(fraction)
        assert self._shown is not None
        assert self._task is not None
        with contextlib.suppress(OSError):
            self._shown.update(self._task, completed=fraction or 0.0, text=text)

    def _start(self, fraction: float | None) -> None:
        columns = [
            BarColumn(bar_width=None),
            TextColumn("{task.fields[text]}"),
            TimeRemainingColumn(compact=True),
        ]
        self._shown = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._shown.add_task("run", total=None if fraction is None else 1.0, text="")
        self._shown.start()


def worth_showing(elapsed: float, fraction: float | None) -> bool:
    """True if a run that did `fraction` of its work in `elapsed` seconds will take more than two seconds in all."""
    if elapsed < SILENT_SECONDS:
        return False
    if not fraction:
        return elapsed >= WORTH_SECONDS
    return elapsed / fraction >= WORTH_SECONDS
