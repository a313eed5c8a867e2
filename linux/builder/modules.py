"""Modules of ours, built against a kernel's own build or against a distribution's headers."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from .report import BuildError, run

LINUX = Path(__file__).resolve().parent.parent
DRIVERS = LINUX.parent / "driver"
# Each has a Kbuild.
FOLDERS = (LINUX / "modules", DRIVERS / "tlpdma", DRIVERS / "simple_nic")


def sources_in(folder: Path) -> list[Path]:
    """The sources of the modules of a folder."""
    return sorted(path for path in folder.iterdir() if path.suffix in (".c", ".h") or path.name == "Kbuild")


def sources() -> list[Path]:
    """The sources of all modules."""
    return [path for folder in FOLDERS for path in sources_in(folder)]


def build_all(make: Sequence[str], work: Path, environment: Mapping[str, str]) -> list[Path]:
    """Builds all of them in `work`, by the command `make` and its words for a kernel."""
    made: list[Path] = []
    for folder in FOLDERS:
        copy = work / folder.name
        copy.mkdir(parents=True)
        for path in sources_in(folder):
            shutil.copyfile(path, copy / path.name)
        done = subprocess.run(
            [*make, "-s", f"M={copy.resolve()}", "modules"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BuildError(f"the modules in {folder} do not compile:\n{done.stdout}{done.stderr}")
        made += sorted(copy.glob("*.ko"))
    # Of a distribution's configuration most of a module is for debuggers.
    run(["strip", "--strip-debug", *made])
    return made
