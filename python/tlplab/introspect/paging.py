"""Page tables as the processor reads them: x86-64 with four or five levels, AArch64 with a granule of 4 KiB.

Sources: Intel SDM volume 3, section 4.5; Arm ARM, section D8.3. The values that Linux writes into entries that are not present are in the
kernel's arch/x86/include/asm/pgtable_64.h.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

TABLE_BYTES = 4096
ENTRY_BYTES = 8
INDEX_BITS = 9
PAGE_BITS = 12
# Bits 51 to 12 of an entry.
FRAME = (1 << 52) - (1 << PAGE_BITS)


@dataclass(frozen=True)
class Rights:
    """The permitted uses of a page, or of all pages behind a table."""

    write: bool
    user: bool
    execute: bool

    def __and__(self, other: Rights) -> Rights:
        return Rights(self.write and other.write, self.user and other.user, self.execute and other.execute)

    def __str__(self) -> str:
        return f"r{'w' if self.write else '-'}{'x' if self.execute else '-'} {'user' if self.user else 'kernel'}"


ALL = Rights(write=True, user=True, execute=True)


@dataclass(frozen=True)
class Entry:
    """An entry of a page table, decoded."""

    value: int
    kind: str
    """`table`, `page`, or `empty`; `away` for a page that is elsewhere, as in swap."""
    address: int
    """Physical address of the table or the page."""
    rights: Rights
    notes: str
    """The flags by the processor's names, or the kind of an absent page."""


class Paging(ABC):
    """The layout of page tables of one kind of processor."""

    def __init__(self, levels: int) -> None:
        """`levels` of tables."""
        self.levels = levels

    @property
    def bits(self) -> int:
        """Bits of a virtual address that are translated."""
        return PAGE_BITS + INDEX_BITS * self.levels

    @property
    @abstractmethod
    def user_end(self) -> int:
        """The address behind the last that user code can have."""

    def shift(self, level: int) -> int:
        """Bits of the address below the index at this level; 1 is the level of single pages."""
        return PAGE_BITS + INDEX_BITS * (level - 1)

    def index(self, virtual: int, level: int) -> int:
        """The index of the entry in a table at this level."""
        return virtual >> self.shift(level) & 511

    @abstractmethod
    def canonical(self, virtual: int) -> bool:
        """True if the processor accepts this as an address."""

    @abstractmethod
    def extended(self, virtual: int) -> int:
        """The whole address, of the bits that are translated."""

    @abstractmethod
    def name(self, level: int) -> str:
        """The name of a table at this level."""

    @abstractmethod
    def decode(self, value: int, level: int) -> Entry:
        """An entry of a table at this level."""


class X86(Paging):
    """x86-64."""

    FLAGS = (
        (1, "RW"), (2, "US"), (3, "PWT"), (4, "PCD"), (5, "A"), (6, "D"), (8, "G"), (63, "NX"),
    )  # fmt: skip
    LARGE = 1 << 7
    PROT_NONE = 1 << 8

    @property
    def user_end(self) -> int:
        """The lower half."""
        return 1 << (self.bits - 1)

    def canonical(self, virtual: int) -> bool:
        """True if the bits above the translated ones repeat the highest of these."""
        return virtual >> (self.bits - 1) in (0, (1 << (65 - self.bits)) - 1)

    def extended(self, virtual: int) -> int:
        """The upper bits repeat the highest that is translated."""
        return virtual | (1 << 64) - (1 << self.bits) if virtual >> (self.bits - 1) else virtual

    def name(self, level: int) -> str:
        return ("PT", "PD", "PDPT", "PML4", "PML5")[level - 1]

    def decode(self, value: int, level: int) -> Entry:
        rights = Rights(write=bool(value & 2), user=bool(value & 4), execute=not value >> 63)
        if not value & 1:
            return self.absent(value, level)
        large = level in (2, 3) and bool(value & self.LARGE)
        flags = [name for bit, name in self.FLAGS if value >> bit & 1 and (bit not in (6, 8) or large or level == 1)]
        if large:
            flags.append("PS")
        if level == 1 or large:
            return Entry(value, "page", value & FRAME & -(1 << self.shift(level)), rights, " ".join(flags))
        # Page-table isolation lets the kernel's tables not execute the user's half, by NX in the uppermost level alone.
        isolated = level == self.levels and rights.user
        return Entry(
            value, "table", value & FRAME, replace(rights, execute=rights.execute or isolated), " ".join(flags)
        )

    def absent(self, value: int, level: int) -> Entry:
        """An entry that is not present."""
        nothing = Rights(write=False, user=False, execute=False)
        if not value:
            return Entry(value, "empty", 0, nothing, "not present")
        if value & self.PROT_NONE:
            # Linux inverts the address, so that no processor speculates on it.
            frame = (~value if level == 1 else ~value & -(1 << self.shift(level))) & FRAME
            return Entry(value, "away", frame, nothing, f"no access allowed (PROT_NONE), page at {frame:#x}")
        kind, offset = value >> 59, (~value & (1 << 59) - 1) >> 9
        return Entry(value, "away", 0, nothing, f"swapped out or moving (type {kind}, offset {offset:#x})")


class Aarch64(Paging):
    """AArch64 with pages of 4 KiB, and as Linux writes them."""

    FLAGS = ((6, "EL0"), (7, "RO"), (10, "AF"), (11, "nG"), (51, "DBM"), (53, "PXN"), (54, "UXN"), (55, "dirty"))
    FRAME = (1 << 48) - (1 << PAGE_BITS)

    @property
    def user_end(self) -> int:
        """The end of the addresses that a process's own tables translate."""
        return 1 << self.bits

    def canonical(self, virtual: int) -> bool:
        """True if the upper bits are zeros: a process's own tables are for the user's half alone."""
        return virtual >> self.bits == 0

    def extended(self, virtual: int) -> int:
        return virtual

    def name(self, level: int) -> str:
        return f"level {4 - level}"

    def decode(self, value: int, level: int) -> Entry:
        if not value & 1:
            nothing = Rights(write=False, user=False, execute=False)
            kind = "away" if value else "empty"
            return Entry(
                value, kind, 0, nothing, f"swapped out or moving (entry {value:#x})" if value else "not present"
            )
        page = value & 2 == 0 or level == 1
        if not page:
            return Entry(value, "table", value & self.FRAME, ALL, "")
        flags = " ".join(name for bit, name in self.FLAGS if value >> bit & 1)
        user = bool(value >> 6 & 1)
        # Writable and clean is read-only with DBM: the first write makes it dirty.
        writable = not value >> 7 & 1 or bool(value >> 51 & 1)
        executable = not value >> (54 if user else 53) & 1
        rights = Rights(write=writable, user=user, execute=executable)
        return Entry(value, "page", value & self.FRAME & -(1 << self.shift(level)), rights, flags)


def entries(table: bytes) -> Sequence[int]:
    """The entries of a table."""
    return struct.unpack("<512Q", table)


def paging_of(machine: str, levels: int) -> Paging:
    """By the names of the command line."""
    return {"x86-64": X86, "aarch64": Aarch64}[machine](levels)
