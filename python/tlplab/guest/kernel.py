"""The user-mode kernel and the initial file system that `make linux` builds."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

MANIFEST = "manifest.json"
# Kernels that are built besides, and how.
VARIANTS = {"debug": "DEBUG=1", "coverage": "COVERAGE=1"}


@dataclass(frozen=True)
class Kernel:
    """A kernel and the initial file system that goes with it."""

    path: Path
    """The kernel, a program."""
    initramfs: Path
    """An archive for its initial file system."""
    sha256: str
    """Of the kernel."""

    @property
    def build(self) -> Path:
        """The folder against which modules are built; for a kernel that measures coverage, its drivers' sources and notes, too."""
        return self.path.parent / "build"


def built(variant: str | None = None) -> Path:
    """The folder in which `make linux` leaves the latest result, or that of a variant of `VARIANTS`."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "tlplab/linux" / (variant or "current")


def find(folder: str | None) -> Kernel:
    """The kernel in `folder`, a variant of `VARIANTS`, or the newest one. Raises `click.UsageError`."""
    # What is built meanwhile is for the next run.
    place = (Path(folder) if folder is not None and folder not in VARIANTS else built(folder)).resolve()
    if not (place / MANIFEST).is_file():
        if folder in VARIANTS:
            raise click.UsageError(
                f"--linux {folder}: this kernel is not built; build it with `make linux {VARIANTS[folder]}`"
            )
        if folder is None:
            raise click.UsageError(
                "the guest's kernel is not built; build it with `make linux` (10 minutes), or name a folder with --linux"
            )
        raise click.UsageError(f"--linux {folder}: it has no {MANIFEST}; name a folder made by `make linux`")
    manifest = json.loads((place / MANIFEST).read_text(encoding="utf-8"))
    path, initramfs = (checked(place, manifest, part, "make linux") for part in ("kernel", "initramfs"))
    return Kernel(path, initramfs, manifest["kernel"]["sha256"])


def checked(place: Path, manifest: dict[str, Any], part: str, command: str) -> Path:
    """A file of a manifest that `command` has made. Raises `click.UsageError` if it is another: a run would be of something else than its result says."""
    file: Path = place / manifest[part]["file"]
    if not file.is_file() or digest(file.read_bytes()) != manifest[part]["sha256"]:
        raise click.UsageError(f"{file} differs from {MANIFEST}; build it again with `{command}`")
    return file


def digest(data: bytes) -> str:
    """SHA-256, hexadecimal."""
    return hashlib.sha256(data).hexdigest()
