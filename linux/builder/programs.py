"""Programs of ours for the guest, linked statically: they need none of its libraries."""

from __future__ import annotations

import os
from pathlib import Path

from .report import run

# The same bytes from the same sources, wherever they are.
FIXED = ("-O2", "-Wall", "-Wextra", "-Werror")
LINKED = ("-static", "-s", "-Wl,--build-id=none")


def build_all(linux: Path, driver: Path, work: Path) -> list[Path]:
    """Builds `linux/programs` and the driver's test programs."""
    work.mkdir(parents=True)
    made = []
    for source in sorted((linux / "programs").glob("*.c")):
        made.append(work / source.stem.replace("_", "-"))
        run(["gcc", "-std=gnu11", *FIXED, *LINKED, "-o", made[-1], source, "-lm"])
    run(
        ["make", "-s", "-C", driver, "programs", "SIM=0", f"OUT={(work / 'driver').resolve()}", "CC=gcc", "CXX=g++",
         "CFLAGS=-O2", "CXXFLAGS=-O2", f"LDFLAGS={' '.join(LINKED)}"],
        env={name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS")},
    )  # fmt: skip
    for name, called in (
        ("tlpdma-test", "tlpdma-test"),
        ("device-test", "tlpdma-device-test"),
        ("compare", "tlpdma-compare"),
    ):
        made.append(work / called)
        (work / "driver" / name).rename(made[-1])
    return made


def sources(linux: Path, driver: Path) -> list[Path]:
    """The sources of the programs, without those of the driver's module."""
    return [
        driver / "Makefile",
        *linux.glob("programs/*.c"),
        *(
            path
            for folder in ("test", "user")
            for path in (driver / folder).iterdir()
            if path.suffix in (".c", ".cpp", ".h", ".hpp")
        ),
    ]
