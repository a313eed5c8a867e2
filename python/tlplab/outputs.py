"""Files that a command writes: checked before the work begins, whole or not at all when it ends."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import click

from tlplab import _core, summary
from tlplab.session import Finished

PAGES = (".html", ".htm")


def check_outputs(
    outputs: Mapping[str, str | None], *, to_stdout: Collection[str], inputs: Mapping[str, str | None]
) -> None:
    """Refuses output files that cannot be written, before a long run finds out.

    `outputs` maps options to their values; those in `to_stdout` may be `-`. Raises `click.UsageError`.
    """
    taken: dict[str, str] = {}
    for name, path in inputs.items():
        if path is not None:
            taken[os.path.realpath(path)] = name
    for option, path in outputs.items():
        if path is None:
            continue
        if path == "-" and option not in to_stdout:
            raise click.UsageError(f"{option} cannot go to the standard output; name a file")
        place = path if path == "-" else os.path.realpath(path)
        if place in taken:
            raise click.UsageError(f"{option} and {taken[place]} both name {path}")
        taken[place] = option
        if path != "-":
            check_file(option, Path(path))


def check_ending(option: str, path: str, endings: Sequence[str]) -> None:
    """Refuses a file whose name does not have the ending of its content. Raises `click.UsageError`."""
    if Path(path).suffix.lower() not in endings:
        names = " or ".join(part for part in (", ".join(endings[:-1]), endings[-1]) if part)
        raise click.UsageError(f"{option} {path}: name a file that ends in {names}")


def check_file(option: str, path: Path) -> None:
    """Refuses a path that is a folder, or in a folder that is missing or closed to us."""
    folder = path.parent
    if path.is_dir():
        raise click.UsageError(f"{option} {path}: this is a folder; name a file")
    if not folder.is_dir():
        raise click.UsageError(f"{option} {path}: the folder {folder} does not exist; make it with: mkdir -p {folder}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise click.UsageError(f"{option} {path}: no permission to write there")


def write_text(path: str, text: str) -> None:
    """Writes `text` to `path`, or to the standard output for `-`. A file is replaced whole or stays as it was."""
    if path == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        _core.write_text(path, text)


def write_bytes(path: str, data: bytes) -> None:
    """Writes a file whole, or leaves it as it was."""
    with whole_file(path) as file:
        file.write(data)


@contextlib.contextmanager
def whole_file(path: str) -> Iterator[_core.Output]:
    """A file to be written bit by bit. It is whole when the block ends, and stays as it was if that is by an exception."""
    file = _core.Output(path)
    try:
        yield file
        file.commit()
    finally:
        file.drop()


def write_results(
    finished: Finished, json_file: str | None, report: str | None, output: str | None, *, quiet: bool
) -> None:
    """Writes the files that were asked for, then the summary unless the standard output is taken."""
    if json_file is not None:
        write_text(json_file, finished.text if finished.text.endswith("\n") else finished.text + "\n")
    if report is not None:
        _core.write_report(report, finished.text)
    if output is not None:
        write_text(output, summary.as_text(finished.result()))
    elif not quiet and json_file != "-":
        summary.show(finished.result(), sys.stdout)
