"""Writes that are followed up: flushed, read back, and written again where they did not arrive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, Protocol

import click

from tlplab.errors import RequestTimeoutError, RunError
from tlplab.nettlp.aside import Aside

# What is read back in one piece: one that cannot be read is no reason to read all again.
PIECE = 4096
# What is named of what is not there.
MOST_NAMED = 8

Flush = Literal["zero", "read", "never"]
# First byte, and the byte behind the last.
Range = tuple[int, int]


class Memory(Protocol):
    """The methods of `tlplab._core.Dma` that writes need."""

    def write(self, address: int, data: bytes) -> None:
        """Writes. Raises RunError."""

    def flush(self, address: int) -> None:
        """Waits until the written data are there. Raises RunError."""

    def flush_by(self, how: Flush) -> None:
        """Set the way of flushing."""

    def read_many(self, places: list[tuple[int, int]]) -> list[bytes | str]:
        """Reads places (address, bytes); a text where it cannot."""


class Writer:
    """Writes to `memory`; with `verify` all is read back, and missing data are written again at most `tries` times."""

    def __init__(self, memory: Memory, *, flush: Flush, verify: bool, tries: int) -> None:
        """`verify` and `tries` say that reads have no side effects: then another flush may be tried, too."""
        self.memory, self.how, self.tries = memory, flush, tries
        self.verify = verify
        self.may_read = verify or tries > 0
        self.wrong: list[Range] = []
        self.unknown: list[Range] = []
        self.why = ""
        memory.flush_by(flush)

    def write(self, address: int, data: bytes) -> None:
        """Writes, and keeps the ranges that are missing then. Raises RunError without an answer."""
        self.send(address, data)
        if not self.verify:
            return
        wrong, unknown = self.compare([(address, address + len(data))], address, data)
        for _ in range(self.tries):
            if not wrong:
                break
            for start, end in wrong:
                self.send(start, data[start - address : end - address])
            wrong, more = self.compare(wrong, address, data)
            unknown += more
        self.wrong += wrong
        self.unknown += unknown
        if unknown == [(address, address + len(data))]:
            raise RunError(f"{address:#x} to {unknown[0][1] - 1:#x} cannot be read back: {self.why}")

    def finish(self) -> None:
        """Raises RunError, with the ranges, if something is not there, or cannot be read back."""
        said = []
        if self.wrong:
            count, after = size(self.wrong), f" after {self.tries} more tries" if self.tries else ""
            said.append(f"{count} bytes differ from the data written{after}: {named(self.wrong)}")
        if self.unknown:
            said.append(f"{size(self.unknown)} bytes cannot be read back ({self.why}): {named(self.unknown)}")
        if said:
            raise RunError("; ".join(said))

    def send(self, address: int, data: bytes) -> None:
        """Writes and flushes."""
        try:
            self.attempt(address, data)
        except RunError as error:
            self.flush_otherwise(error, address + len(data) - 1)
            self.attempt(address, data)

    def attempt(self, address: int, data: bytes) -> None:
        """Writes and flushes as it is agreed now."""
        Aside(self.memory.write, address, data).result()
        Aside(self.memory.flush, address + len(data) - 1).result()

    def flush_otherwise(self, error: RunError, last: int) -> None:
        """A flush was not answered: perhaps another one is. Raises RunError if it is not, or must not be tried."""
        if self.how != "zero" or not isinstance(error, RequestTimeoutError):
            raise error
        if not self.may_read:
            raise RunError(
                f"{error}. The data may be in memory: a peer that does not answer reads of no bytes (the published psmem "
                "does not) needs --flush read, where reads have no side effects, or --no-flush"
            ) from None
        self.memory.flush_by("read")
        try:
            Aside(self.memory.flush, last).result()
        except RunError:
            self.memory.flush_by("zero")
            raise error from None
        self.how = "read"
        click.echo(
            "The peer does not answer reads of no bytes: from now on the last doubleword written is read instead.",
            err=True,
        )

    def compare(self, ranges: Iterable[Range], address: int, data: bytes) -> tuple[list[Range], list[Range]]:
        """Reads ranges back: which of their bytes are not those of `data`, which begins at `address`, and which cannot be read."""
        pieces = list(cut(ranges))
        wrong: list[Range] = []
        for _ in range(self.tries + 1):
            if not pieces:
                break
            places = [(start, end - start) for start, end in pieces]
            found = Aside(self.memory.read_many, places).result()
            left = []
            for (start, end), piece in zip(pieces, found, strict=True):
                if isinstance(piece, bytes):
                    wrong += differing(piece, data[start - address : end - address], start)
                else:
                    self.why = piece
                    left.append((start, end))
            pieces = left
        return joined(wrong), joined(pieces)


def cut(ranges: Iterable[Range]) -> Iterator[Range]:
    """The same in pieces, at multiples of their size."""
    for start, end in ranges:
        while start < end:
            next_start = min(start - start % PIECE + PIECE, end)
            yield start, next_start
            start = next_start


def differing(found: bytes, written: bytes, address: int) -> list[Range]:
    """The ranges that differ, by doublewords."""
    if found == written:
        return []
    words = range(0, len(written), 4)
    return joined((address + at, address + min(at + 4, len(written))) for at in words if found[at : at + 4] != written[at : at + 4])  # fmt: skip


def joined(ranges: Iterable[Range]) -> list[Range]:
    """In order, with neighbours as one."""
    result: list[Range] = []
    for start, end in sorted(ranges):
        if result and result[-1][1] >= start:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result


def size(ranges: Iterable[Range]) -> int:
    """Bytes."""
    return sum(end - start for start, end in ranges)


def named(ranges: list[Range]) -> str:
    """For people."""
    ranges = joined(ranges)
    shown = [f"{start:#x} to {end - 1:#x}" for start, end in ranges[:MOST_NAMED]]
    more = len(ranges) - len(shown)
    return ", ".join(shown) + (f" and {more} more ranges" if more else "")
