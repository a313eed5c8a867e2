"""The folder of results and packages, and the beginning and end of every build."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from . import debian
from .report import BuildError, fail, phase, say, told

MANIFEST = "manifest.json"


def cache() -> Path:
    """The folder of results and packages."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tlplab/linux"


def check_machine() -> None:
    """UML is for x86-64, and our packages too."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise BuildError(
            f"the guest needs Linux on x86-64, this is {platform.system()} on {platform.machine()}; use QEMU there"
        )


def check_tools(tools: dict[str, str]) -> None:
    """Installs the missing tools, each named with its package, where this machine lets us, as .ci/install-peers does."""
    missing = debian.lacking(tools)
    if not missing:
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        with phase(f"installing {' '.join(missing)}"):
            quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            for command in (["update"], ["install", "--no-install-recommends", *missing]):
                subprocess.run(["apt-get", "-qq", *command], env=quiet, capture_output=True, check=False)
        missing = debian.lacking(tools)
    if missing:
        raise BuildError(f"missing: {' '.join(missing)}; on Debian, as root: apt-get install {' '.join(missing)}")


def named(*content: object) -> str:
    """The name in the cache of a result that depends on this."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


@contextmanager
def made(folder: Path) -> Iterator[Path]:
    """A folder next to its place, which is moved there when it is whole, and removed if that fails."""
    work = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        yield work
        shutil.rmtree(folder, ignore_errors=True)
        work.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def alone() -> Iterator[None]:
    """One build at a time: a second one waits, and finds the result of the first. The remains of a killed one are removed."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another build is under way; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in cache().glob("*.partial"):
            left.unlink() if left.is_symlink() else shutil.rmtree(left, ignore_errors=True)
        yield


def is_there(result: Path, otherwise: str) -> Path:
    """The result. Raises `BuildError` with a sentence if it is not there."""
    if not (result / MANIFEST).exists():
        raise BuildError(otherwise)
    return result


def build_once(result: Path, build: Callable[[], None], *, again: bool) -> None:
    """Builds a missing result, or `again`; the result of another build meanwhile is used."""
    if again or not (result / MANIFEST).exists():
        with alone():
            if again or not (result / MANIFEST).exists():
                build()


def exit_status(obtain: Callable[[], Path]) -> int:
    """Prints the folder that `obtain` gives: 0, or 2 and a sentence."""
    try:
        print(obtain())
    except BuildError as problem:
        return fail(str(problem))
    except OSError as problem:
        return fail(told(problem))
    except KeyboardInterrupt:
        return 130
    return 0


def point_to(result: Path, name: str) -> None:
    """Makes `result` the folder that `tlplab guest` takes by this name."""
    # A folder of its own: another build may point here at the same moment, and removes what a killed one left.
    with tempfile.TemporaryDirectory(prefix="link-", dir=cache()) as own:
        fresh = Path(own) / name
        fresh.symlink_to(result.name)
        fresh.replace(cache() / name)
