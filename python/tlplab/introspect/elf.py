"""The part of ELF that memory images, BTF files and dumped programs need: 64-bit headers, segments, sections by name."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

MAGIC = b"\x7fELF"
CORE = 4
LOAD = 1
# What a segment without a physical address says.
NO_ADDRESS = 2**64 - 1
TYPES = {1: "relocatable", 2: "executable", 3: "shared object", CORE: "core"}
MACHINES = {3: "i386", 40: "arm", 62: "x86-64", 183: "aarch64", 243: "riscv"}

# Behind the 16 bytes that say what kind of ELF this is.
HEADER = "HHIQQQIHHHHHH"
SEGMENT = "IIQQQQQQ"
SECTION = "IIQQQQIIQQ"
IDENTITY = 16
# In files of Linux; a core has a segment for each range of memory.
MOST_HEADERS = 65_536
LONGEST_NAMES = 1 << 20

ReadAt = Callable[[int, int], bytes]
"""(offset, size) to at most that many bytes."""


class ElfError(ValueError):
    """Not the ELF file that was expected, and why."""


@dataclass(frozen=True)
class Segment:
    """A program header."""

    kind: int
    offset: int
    physical: int
    file_size: int


@dataclass(frozen=True)
class Section:
    """A section header, with its name."""

    name: str
    offset: int
    size: int


@dataclass(frozen=True)
class Elf:
    """The headers of a file."""

    kind: int
    machine: int
    entry: int
    segments: list[Segment]
    sections: list[Section]

    @property
    def described(self) -> str:
        """`ELF 64-bit shared object, x86-64`"""
        kind = TYPES.get(self.kind, f"type {self.kind}")
        return f"ELF 64-bit {kind}, {MACHINES.get(self.machine, f'machine {self.machine}')}"


def read_elf(read_at: ReadAt) -> Elf:
    """Reads the headers. Raises `ElfError`."""
    header, order = read_header(read_at)
    kind, machine, _, entry, segments_at, sections_at, _, _, segment_size, segments, section_size, sections, names = (
        header
    )
    rows = table(read_at, order + SEGMENT, segments_at, segment_size, segments)
    loads = [Segment(row[0], row[2], row[4], row[5]) for row in rows]
    return Elf(kind, machine, entry, loads, read_sections(read_at, order, sections_at, section_size, sections, names))


def read_header(read_at: ReadAt) -> tuple[tuple[int, ...], str]:
    """The first header, and the order of bytes as `struct` writes it."""
    identity = read_at(0, IDENTITY)
    if not identity.startswith(MAGIC) or len(identity) < IDENTITY:
        raise ElfError("not an ELF file")
    if identity[4] != 2:
        raise ElfError("a 32-bit ELF file; only 64-bit machines are read")
    if identity[5] not in (1, 2):
        raise ElfError(f"an ELF file of unknown byte order {identity[5]}")
    order = "<" if identity[5] == 1 else ">"
    data = read_at(IDENTITY, struct.calcsize(order + HEADER))
    if len(data) < struct.calcsize(order + HEADER):
        raise ElfError("the ELF file ends in its header")
    return struct.unpack(order + HEADER, data), order


def read_sections(read_at: ReadAt, order: str, at: int, size: int, count: int, names: int) -> list[Section]:
    """The sections, which a stripped or dumped file may lack."""
    if not at:
        return []
    rows = table(read_at, order + SECTION, at, size, count)
    if names >= len(rows):
        return []
    text = read_at(rows[names][4], min(rows[names][5], LONGEST_NAMES))
    return [Section(name_at(text, row[0]), row[4], row[5]) for row in rows]


def name_at(names: bytes, offset: int) -> str:
    """The name that begins there."""
    end = names.find(b"\0", offset)
    return names[offset : end if end >= 0 else len(names)].decode("ascii", "replace")


def table(read_at: ReadAt, row: str, at: int, size: int, count: int) -> list[tuple[int, ...]]:
    """`count` headers of `size` bytes each."""
    if not count:
        return []
    if size < struct.calcsize(row):
        raise ElfError(f"headers of {size} bytes where {struct.calcsize(row)} are needed")
    data = read_at(at, size * count)
    if count > MOST_HEADERS or len(data) < size * count:
        raise ElfError(f"the ELF file ends in its headers, at byte {at + len(data)}")
    return [struct.unpack_from(row, data, number * size) for number in range(count)]
