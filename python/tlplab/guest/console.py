"""The output of a guest, and the terminal that it may have."""

from __future__ import annotations

import hashlib
import sys
import termios
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

# In femtoseconds of a simulation, or in seconds.
Time = TypeVar("Time", int, float)
# Lines of the console that are kept, to be shown where a guest ends badly: as many as a kernel that dies may need to say why.
REMEMBERED = 100


@dataclass
class Console(Generic[Time]):
    """The output of a guest, as lines with the time at which each began."""

    show: Callable[[Time, str], None]
    """Called with each line and its time."""
    hash: hashlib._Hash = field(default_factory=hashlib.sha256)
    """Of every byte."""
    last: list[str] = field(default_factory=list)
    """The last lines."""
    _line: bytes = b""
    _begun: Time | None = None

    def hear(self, time: Time, data: bytes) -> None:
        """The guest printed `data`."""
        self.hash.update(data)
        for piece in data.splitlines(keepends=True):
            if not self._line:
                self._begun = time
            self._line += piece
            if piece.endswith(b"\n"):
                self.end()

    def end(self) -> None:
        """The line that was begun is over."""
        if self._line and self._begun is not None:
            text = self._line.decode(errors="replace").rstrip("\r\n")
            self.last = [*self.last[-REMEMBERED + 1 :], text]
            self._line = b""
            self.show(self._begun, text)


def last_lines(lines: Sequence[str], *, silent: bool) -> str:
    """The last lines of a console that was not shown, below the message about its end."""
    return "".join(f"\n  {text}" for text in lines) if silent else ""


@contextmanager
def terminal_kept(interactive: bool) -> Iterator[None]:
    """An interactive guest sets the terminal to its liking; afterwards it is as it was."""
    if not interactive or not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
