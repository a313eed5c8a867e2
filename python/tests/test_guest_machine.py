"""QEMU as a process: its console and its end."""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path

import pytest

from tlplab.guest.machine import Running


def test_a_closed_console_pipe_ends_the_guest(tmp_path: Path) -> None:
    errors = tmp_path / "errors"
    errors.touch()

    def closed(_time: float, _line: str) -> None:
        raise BrokenPipeError

    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as process:
        running = Running(process, errors, time.monotonic())
        with pytest.raises(BrokenPipeError):
            running.wait(threading.Event(), closed, until=time.monotonic() + 30)
    assert process.returncode == -9
