"""Options of every guest: its script, and a shared folder."""

from __future__ import annotations

from pathlib import Path

import click

SHEBANG = b"#!"


def check_share(given: str) -> str:
    """The folder that a guest shares, with its whole path. Raises `click.UsageError` for a path that cannot be on a command line."""
    folder = Path(given)
    if not folder.is_dir():
        raise click.UsageError(f"--share {folder}: there is no such folder")
    if any(character.isspace() or character in ',"' for character in str(folder.resolve())):
        raise click.UsageError(f"--share {folder}: the path may not contain spaces, commas or quotes; rename it")
    return str(folder.resolve())


def script_of(given: str | None, of_experiment: str | None) -> bytes:
    """The script that the guest runs: the file or the command line that is given, or else the experiment's file."""
    if given is not None and not Path(given).is_file():
        return f"#!/bin/sh\n{given}\n".encode()
    file = given or of_experiment
    if file is None:
        raise click.UsageError("the experiment has no script (guest.run); give one with --run, or use --shell")
    text = Path(file).read_bytes()
    return text if text.startswith(SHEBANG) else b"#!/bin/sh\n" + text
