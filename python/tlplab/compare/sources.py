"""Sources of a comparison: experiments, saved results, captures."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import click

from tlplab.catalog import find_experiment
from tlplab.result import SCHEMA, Document

Kind = Literal["experiment", "result", "capture"]
CALLED: dict[Kind, str] = {"experiment": "an experiment", "result": "a saved result", "capture": "a capture"}
# The first bytes of pcapng, and of pcap in either byte order, with micro- or nanoseconds, or as old Linux wrote it.
MAGIC = tuple(bytes.fromhex(text) for text in ("0a0d0d0a", "d4c3b2a1", "a1b2c3d4", "4d3cb2a1", "a1b23c4d", "34cdb2a1"))


@dataclass(frozen=True)
class Source:
    """Something that was named on the command line."""

    given: str
    path: str
    kind: Kind

    @property
    def stem(self) -> str:
        """The name of the file, without folder and ending."""
        return Path(self.path).stem


def source_of(given: str) -> Source:
    """The kind of a file, by its first bytes. Raises OSError, `click.UsageError`."""
    path = find_experiment(given)
    if path == "-":
        raise click.UsageError("the standard input can be read only once; name a file")
    if not os.path.isfile(path) and os.path.exists(path) and not os.path.isdir(path):
        raise click.UsageError(f"there is no file {given}")
    with open(path, "rb") as file:
        begins = file.read(64)
    if begins.startswith(MAGIC):
        return Source(given, path, "capture")
    return Source(given, path, "result" if begins.lstrip().startswith(b"{") else "experiment")


def read_result(source: Source) -> Document:
    """A result that `tlplab run --json` has written. Raises OSError, `click.UsageError`."""
    try:
        document = json.loads(Path(source.path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise click.UsageError(f"{source.given} is not valid JSON: {error}") from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        what = f"has the schema {schema!r}" if schema is not None else "has no schema"
        raise click.UsageError(f"{source.given} {what}; it must have {SCHEMA}, as tlplab run --json writes it")
    return cast(Document, document)


@contextmanager
def reading(source: Source) -> Iterator[None]:
    """Says of a result in which something is missing, or is something else than it should be, that it is none. Raises `click.UsageError`."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"
        raise click.UsageError(
            f"{source.given} is not a complete result of a run ({what}); write it again with tlplab run --json"
        ) from error


def names_of(sources: list[Source]) -> list[str]:
    """Short names that tell them apart: of their files, or A, B, C where these are alike."""
    stems = [source.stem for source in sources]
    return stems if len(set(stems)) == len(stems) else [chr(ord("A") + at) for at in range(len(stems))]


def legend(sources: list[Source]) -> list[str]:
    """The meanings of letters that stand for names."""
    return [
        f"{name} is {source.given}"
        for name, source in zip(names_of(sources), sources, strict=True)
        if name != source.stem
    ]
