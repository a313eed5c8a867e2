"""Physical memory to read from: image files, and the interface of every memory."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from io import FileIO
from typing import Protocol

from tlplab.errors import ExperimentError
from tlplab.introspect import elf

# A header of a LiME dump: magic, version, first and last address, reserved.
LIME = struct.Struct("<IIQQQ")
LIME_MAGIC = 0x4C694D45
# More headers than any machine has ranges of memory.
MOST_RANGES = 65_536
# Files that look like memory to someone who has not read them.
COMPRESSED = {
    b"KDUMP   ": "a compressed kdump",
    b"\x28\xb5\x2f\xfd": "compressed by zstd",
    b"\x1f\x8b": "compressed by gzip",
}


@dataclass(frozen=True)
class Unreadable:
    """Memory that gave no bytes."""

    address: int
    size: int
    why: str

    def __str__(self) -> str:
        return f"{self.size} bytes at {self.address:#x}: {self.why}"


class Source(Protocol):
    """Physical memory."""

    def read_many(self, requests: Sequence[tuple[int, int]]) -> list[bytes | Unreadable]:
        """The data at each (address, bytes), whole, or the error. One slow round trip for all, if the source has one."""

    def has(self, address: int) -> bool:
        """True if the source may be asked for this address."""

    @property
    def extent(self) -> int:
        """The address behind the last one worth asking for."""


class Watched:
    """A memory that counts the bytes read of it."""

    def __init__(self, source: Source, tell: Callable[[int], None]) -> None:
        """`tell` gets the bytes so far."""
        self._source = source
        self._tell = tell
        self._read = 0

    @property
    def extent(self) -> int:
        """See `Source`."""
        return self._source.extent

    def has(self, address: int) -> bool:
        """See `Source`."""
        return self._source.has(address)

    def read_many(self, requests: Sequence[tuple[int, int]]) -> list[bytes | Unreadable]:
        """See `Source`."""
        answers = self._source.read_many(requests)
        self._read += sum(size for _, size in requests)
        self._tell(self._read)
        return answers


@dataclass(frozen=True)
class Range:
    """Memory from `first` up to, but without, `end`, which stands in a file from `offset` on."""

    first: int
    end: int
    file: int
    offset: int


class Image:
    """Memory in files: raw, ELF cores (of QEMU's `dump-guest-memory`, of `/proc/kcore`) and LiME dumps."""

    def __init__(self, names: Sequence[str]) -> None:
        """Each name may end in `@ADDRESS`, where a raw image begins (0 otherwise).

        Raises `OSError`, and `ExperimentError` for a file of which no address is known.
        """
        self._files = ExitStack()
        self.ranges: list[Range] = []
        for name in names:
            path, at = split_address(name)
            file = self._files.enter_context(opened(path))
            self.ranges += ranges_of(path, file.fileno(), at)

    def close(self) -> None:
        """Closes the files."""
        self._files.close()

    @property
    def extent(self) -> int:
        """The address behind the last range."""
        return max((r.end for r in self.ranges), default=0)

    def has(self, address: int) -> bool:
        """True if the image holds this byte."""
        return self._range(address) is not None

    def read_many(self, requests: Sequence[tuple[int, int]]) -> list[bytes | Unreadable]:
        """See `Source`."""
        return [self._read(address, size) for address, size in requests]

    def _range(self, address: int) -> Range | None:
        return next((r for r in self.ranges if r.first <= address < r.end), None)

    def _read(self, address: int, size: int) -> bytes | Unreadable:
        parts = []
        at, end = address, address + size
        while at < end:
            place = self._range(at)
            if place is None:
                return Unreadable(address, size, "not in the image")
            wanted = min(end, place.end) - at
            try:
                part = os.pread(place.file, wanted, place.offset + at - place.first)
            except OSError as error:
                return Unreadable(address, size, error.strerror or str(error))
            if len(part) != wanted:
                return Unreadable(address, size, "the image ends early")
            parts.append(part)
            at += wanted
        return b"".join(parts)


def opened(path: str) -> FileIO:
    """The file, unbuffered: its memory may change."""
    return open(path, "rb", buffering=0)


def split_address(name: str) -> tuple[str, int | None]:
    """`FILE@ADDRESS` in its parts; a file whose own name holds an @ is itself."""
    path, at, address = name.rpartition("@")
    if at and not os.path.exists(name):
        try:
            return path, int(address, 0)
        except ValueError:
            pass
    return name, None


def ranges_of(path: str, file: int, at: int | None) -> list[Range]:
    """The physical addresses that a file holds, and their offsets in it."""
    magic = os.pread(file, 8, 0)
    for start, what in COMPRESSED.items():
        if magic.startswith(start):
            raise ExperimentError(
                path, None, None, "", f"this is {what}", "unpack it to a raw image or an ELF core first"
            )
    if magic.startswith(elf.MAGIC):
        ranges = core_ranges(path, file)
    elif magic[:4] == LIME_MAGIC.to_bytes(4, "little"):
        ranges = lime_ranges(path, file)
    else:
        size = os.fstat(file).st_size
        if not size:
            raise ExperimentError(path, None, None, "", "the image is empty")
        return [Range(at or 0, (at or 0) + size, file, 0)]
    if at is not None:
        raise ExperimentError(
            path, None, None, "", "the file defines the addresses of its memory", f"leave @{at:#x} out"
        )
    return ranges


def core_ranges(path: str, file: int) -> list[Range]:
    """The segments of an ELF core that know their physical address."""
    try:
        found = elf.read_elf(lambda offset, size: os.pread(file, size, offset))
    except elf.ElfError as error:
        raise ExperimentError(path, None, None, "", str(error)) from None
    if found.kind != elf.CORE:
        raise ExperimentError(path, None, None, "", "this ELF file is a program, not a core", "give an image of memory")
    loads = [s for s in found.segments if s.kind == elf.LOAD and s.physical != elf.NO_ADDRESS and s.file_size]
    if len(loads) > 1 and all(s.physical == 0 for s in loads):
        raise ExperimentError(
            path, None, None, "", "this core has no physical addresses", "make it with QEMU's dump-guest-memory -p"
        )
    return [Range(s.physical, s.physical + s.file_size, file, s.offset) for s in loads]


def lime_ranges(path: str, file: int) -> list[Range]:
    """The ranges of a LiME dump, each behind a header of its own."""
    ranges: list[Range] = []
    offset = 0
    while header := os.pread(file, LIME.size, offset):
        if len(header) < LIME.size or len(ranges) >= MOST_RANGES:
            raise ExperimentError(path, None, None, f"byte {offset}", "the LiME dump ends within a header")
        magic, version, first, last, _ = LIME.unpack(header)
        if magic != LIME_MAGIC or version != 1 or last < first:
            raise ExperimentError(path, None, None, f"byte {offset}", "the next LiME header is missing")
        ranges.append(Range(first, last + 1, file, offset + LIME.size))
        offset += LIME.size + last + 1 - first
    return ranges
