"""QEMU, the kernel and the initial file system that `make guest-tools` fetches."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import click

from tlplab.guest import kernel

# The link in the cache that points to the last result.
LINK = "machine"


@dataclass(frozen=True)
class Tools:
    """The programs and files that an ordinary guest needs."""

    qemu: tuple[str, ...]
    """The command."""
    kernel: Path
    initramfs: Path


def find(qemu: str | None) -> Tools:
    """The programs and files that were fetched last, with the user's own QEMU if there is one. Raises `click.UsageError`."""
    place = kernel.built(LINK).resolve()
    if not (place / kernel.MANIFEST).is_file():
        raise click.UsageError("QEMU and its guest are not installed; fetch them with `make guest-tools` (a minute)")
    manifest = json.loads((place / kernel.MANIFEST).read_text(encoding="utf-8"))
    image, initramfs = (kernel.checked(place, manifest, part, "make guest-tools") for part in ("kernel", "initramfs"))
    command = [qemu] if qemu is not None else manifest["qemu"]
    return Tools(tuple(absolute(place, part) for part in command), image, initramfs)


def absolute(place: Path, part: str) -> str:
    """A part of the command, whose paths are relative to the folder of the manifest."""
    paths = part.split(":")
    return ":".join(str(place / path) for path in paths) if all((place / path).exists() for path in paths) else part
