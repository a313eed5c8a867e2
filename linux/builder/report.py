"""Messages for the user: phases with their times, and problems in one sentence."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class BuildError(Exception):
    """A problem and its fix, for the user."""


def say(sentence: str) -> None:
    """Prints a line for the user; the output for other programs, the folder of the result, is on the other stream."""
    print(f"linux: {sentence}", file=sys.stderr, flush=True)


@contextmanager
def phase(what: str, estimate: str = "") -> Iterator[None]:
    """Prints a phase's name, and its time."""
    say(f"{what}{f' (about {estimate})' if estimate else ''}")
    start = time.monotonic()
    yield
    say(f"{what}: {time.monotonic() - start:.1f} s")


def run(command: Sequence[str | Path], **options: object) -> str:
    """Runs a command; its output. A failure is a problem that ends with the command's last line."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise BuildError(f"{Path(command[0]).name} failed: {said[-1] if said else f'status {done.returncode}'}")
    output: str = done.stdout
    return output


def need_space(folder: Path, gigabytes: float) -> None:
    """A full disk shows as odd failures of other programs, so it is looked for first."""
    free = shutil.disk_usage(folder).free / 1e9
    if free < gigabytes:
        raise BuildError(
            f"{folder} has {free:.1f} GB free, the build takes {gigabytes} GB; "
            "make room or name another folder with XDG_CACHE_HOME"
        )


def told(problem: OSError) -> str:
    """An error of the operating system in one sentence."""
    if problem.errno == errno.ENOSPC:
        return "the disk is full; make room or name another folder with XDG_CACHE_HOME"
    return f"{problem.filename or ''}: {problem.strerror}".removeprefix(": ")


def fail(sentence: str) -> int:
    """The exit status after a problem."""
    say(sentence)
    return 2
