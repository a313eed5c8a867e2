"""A program on a terminal of its own, as a user has it."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import time
from collections.abc import Sequence
from pathlib import Path


class Terminal:
    """A command that runs on a terminal."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        """Starts it in a folder."""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execv(command[0], list(command))
        self.printed = b""

    def hear(self, text: bytes, seconds: float = 60) -> None:
        """Waits until it prints this."""
        deadline = time.monotonic() + seconds
        while text not in self.printed and time.monotonic() < deadline:
            if select.select([self.terminal], [], [], 0.2)[0]:
                with contextlib.suppress(OSError):
                    self.printed += os.read(self.terminal, 4096)
        assert text in self.printed, self.printed[-2000:]
        self.printed = self.printed.split(text, 1)[1]

    def type(self, keys: bytes) -> None:
        """Presses keys."""
        os.write(self.terminal, keys)

    def end(self) -> int:
        """Waits until it ends; its exit status."""
        with contextlib.suppress(OSError):
            while os.read(self.terminal, 4096):
                pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
