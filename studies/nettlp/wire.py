"""The device's machine and the adapter's, on this one: commands of tlplab at the two ends of a cable."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import tlplab
from tlplab.nettlp.cable import End, cable

SOFTWARE, MEMORY, ADAPTER = "10.77.0.1", "10.77.0.3", "10.77.0.2"
# Where the adapter puts BAR 4 of its first device.
BAR4 = "0xa0000000"
# Seconds: how long the other end may take to be there, and to end; how long a measurement may take.
PATIENCE, LONGEST = 20.0, 120.0


class CommandError(Exception):
    """The message of a command that failed."""


class Wire:
    """The two ends: each command runs at one of them. Started commands are ended with `stack`."""

    def __init__(self, device: End, host: End, stack: ExitStack) -> None:
        self.device, self.host, self.stack = device, host, stack
        self.started: list[subprocess.Popen[bytes]] = []

    def command(self, end: End, *arguments: str) -> list[str]:
        """A command line of tlplab at an end."""
        return end.command([sys.executable, "-m", "tlplab", *arguments])

    def start(self, end: End, *arguments: str) -> None:
        """Starts a server."""
        process = subprocess.Popen(
            self.command(end, *arguments), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment(),
        )  # fmt: skip
        self.stack.callback(ended, process)
        self.started.append(process)

    def perf(self, *arguments: str) -> dict[str, Any]:
        """`tlplab perf` by the software. Raises `CommandError`."""
        own = ("perf", "-l", SOFTWARE, "-r", ADAPTER, "--allow-remote", "--quiet", "--json", "-")
        return answer_of(self.command(self.device, *own, *arguments), arguments)

    def wait(self) -> None:
        """Until the adapter answers. Raises `CommandError`."""
        end = time.monotonic() + PATIENCE
        while True:
            for process in self.started:
                if process.poll() is not None:
                    _, errors = process.communicate()
                    raise CommandError(f"tlplab adapter: {said(errors, process.returncode)}")
            try:
                self.perf("-c", "1")
            except CommandError:
                if time.monotonic() > end:
                    raise
            else:
                return


def answer_of(command: Sequence[str], asked: Sequence[str]) -> dict[str, Any]:
    """The answer of a command of `tlplab perf`. Raises `CommandError`."""
    try:
        done = subprocess.run(command, capture_output=True, check=False, env=environment(), timeout=LONGEST)
    except subprocess.TimeoutExpired:
        raise CommandError(f"tlplab perf {' '.join(asked)}: no end in {LONGEST:g} s") from None
    if done.returncode != 0:
        raise CommandError(f"tlplab perf {' '.join(asked)}: {said(done.stderr, done.returncode)}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def said(errors: bytes, status: int) -> str:
    """The reason why a command failed: its last line."""
    lines = errors.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"exit status {status}, without a word"


def ended(process: subprocess.Popen[bytes]) -> None:
    """Asks a command to end, and kills it if it does not."""
    process.terminate()
    try:
        process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def environment() -> dict[str, str]:
    """The environment in which the commands find this tlplab."""
    here = str(Path(tlplab.__file__).resolve().parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))}


@contextmanager
def laid() -> Iterator[Wire]:
    """Lays the cable, and takes it away again when the commands at its ends have ended. Raises `NoNamespacesError`."""
    with cable((SOFTWARE, MEMORY), (ADAPTER,)) as (device, host), ExitStack() as stack:
        yield Wire(device, host, stack)
