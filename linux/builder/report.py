"""What the user is told: phases with their times, and problems in one sentence."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class Problem(Exception):
    """What is wrong and what to do, for the user."""


@contextmanager
def phase(what: str, estimate: str = "") -> Iterator[None]:
    """Says what begins, and how long it took."""
    print(f"linux: {what}{f' (about {estimate})' if estimate else ''}", file=sys.stderr, flush=True)
    start = time.monotonic()
    yield
    print(f"linux: {what}: {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)


def run(command: Sequence[str | Path], **options: object) -> str:
    """Runs a command; its output. A failure is a problem that ends with what the command said last."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise Problem(f"{Path(command[0]).name} failed: {said[-1] if said else f'status {done.returncode}'}")
    output: str = done.stdout
    return output


def need_space(folder: Path, gigabytes: float) -> None:
    """A full disk shows as odd failures of other programs, so it is looked for first."""
    free = shutil.disk_usage(folder).free / 1e9
    if free < gigabytes:
        raise Problem(
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
    print(f"linux: {sentence}", file=sys.stderr)
    return 2
