"""Boots of Linux guests side by side, and their results: for studies that run under Linux (`--guest`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import click

from tlplab import _core
from tlplab.errors import RunError
from tlplab.guest.initramfs import SCRIPT
from tlplab.guest.kernel import Kernel
from tlplab.guest.running import run
from tlplab.processes import side_by_side
from tlplab.result import Document

LARGEST = 512 * 2**20
PAGE = 4096


class Block(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A size of a block, as experiments have sizes."""

    name = "size"

    def convert(self, value: str | int, param: click.Parameter | None, context: click.Context | None) -> int:
        """The bytes."""
        if isinstance(value, int):
            return value
        try:
            size = _core.size(value)
        except ValueError as problem:
            self.fail(str(problem), param, context)
        if size % PAGE or not 0 < size <= LARGEST:
            self.fail(f"{value}: give a multiple of 4KiB, 512MiB at most", param, context)
        return size


@dataclass(frozen=True)
class GuestRun:
    """One boot."""

    name: str
    experiment: str
    script: str
    """A file next to the experiment, which the guest runs."""
    variables: tuple[tuple[str, str], ...] = ()
    """Of the shell, set before the script."""
    overrides: tuple[str, ...] = ()


@dataclass(frozen=True)
class Told:
    """The result of a boot."""

    result: Document
    console: tuple[str, ...]
    """The lines that the guest printed."""


GuestOutcomes = Mapping[str, Told]


def boot_all(place: Path, linux: Kernel, listed: Sequence[GuestRun], *, quiet: bool) -> GuestOutcomes:
    """Boots guests on all processors, in their order."""
    # Processes that are ended leave theirs.
    with TemporaryDirectory(prefix="tlplab-guests-", ignore_cleanup_errors=True) as within:
        return side_by_side(partial(boot, str(place), linux, within), listed, "guests", quiet=quiet)


def boot(place: str, linux: Kernel, within: str, one: GuestRun) -> Told:
    """Boots one guest, whose files are in a folder in `within` until it is off."""
    settings = "".join(f"{name}={value}\n" for name, value in one.variables)
    script = f"#!/bin/sh\n{settings}".encode() + (Path(place) / one.script).read_bytes()
    console: list[str] = []
    ended = run(
        str(Path(place) / one.experiment), linux, {SCRIPT: script}, show=lambda _, text: console.append(text),
        overrides=one.overrides, within=within,
    )  # fmt: skip
    if ended.status != 0 or ended.finished.failures():
        raise RunError("; ".join([f"{one.name}: {ended.end}", *ended.finished.failures(), *ended.last[-5:]]))
    result = cast(Document, json.loads(ended.finished.text))
    for large in ("series", "samples", "ladder"):
        result.pop(large, None)  # type: ignore[misc]
    return Told(result, tuple(console))
