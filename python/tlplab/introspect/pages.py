"""Page tables of a memory: the way of one address through them, or all that they map."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tlplab.introspect.paging import ALL, ENTRY_BYTES, PAGE_BITS, TABLE_BYTES, Entry, Paging, Rights, entries
from tlplab.introspect.source import Source, Unreadable

# Tables of one address space that are read at most: they map 128 GiB in pages of 4 KiB.
MOST_TABLES = 65_536
BATCH = 256


@dataclass(frozen=True)
class Step:
    """One level of the way of an address."""

    table: str
    index: int
    at: int
    """Physical address of the entry."""
    entry: Entry


@dataclass(frozen=True)
class Way:
    """The way of an address through the tables."""

    steps: list[Step]
    physical: int | None
    size: int
    """Bytes of the page, or of the hole."""
    rights: Rights
    problem: str | None
    """The reason why there is no physical address."""


def follow(source: Source, paging: Paging, root: int, virtual: int) -> Way:
    """Translates one address as the processor does, with one read of 8 bytes at each level."""
    steps: list[Step] = []
    rights, table = ALL, root
    for level in range(paging.levels, 0, -1):
        index = paging.index(virtual, level)
        at = table + ENTRY_BYTES * index
        (answer,) = source.read_many([(at, ENTRY_BYTES)])
        if isinstance(answer, Unreadable):
            return Way(
                steps, None, 0, rights, f"the {paging.name(level)} at {table:#x} could not be read: {answer.why}"
            )
        entry = paging.decode(int.from_bytes(answer, "little"), level)
        steps.append(Step(paging.name(level), index, at, entry))
        size = 1 << paging.shift(level)
        if entry.kind in ("empty", "away"):
            return Way(steps, None, size, rights, entry.notes)
        rights = rights & entry.rights
        if entry.kind == "page":
            return Way(steps, entry.address + virtual % size, size, rights, None)
        table = entry.address
    raise AssertionError("the last level has no tables")


@dataclass(frozen=True)
class Mapping:
    """Neighbouring pages of one size with the same rights."""

    virtual: int
    size: int
    page: int
    """Bytes of each page."""
    rights: Rights
    frames: tuple[int, ...] | None
    """Physical address of each page; None for pages that are not here."""
    notes: str = ""

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.virtual + self.size


@dataclass
class Space:
    """An address space, or the part of it that was asked for."""

    mappings: list[Mapping] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    tables: int = 0


@dataclass(frozen=True)
class Table:
    """A table that waits to be read."""

    at: int
    level: int
    virtual: int
    rights: Rights


def mapped(source: Source, paging: Paging, root: int, first: int, end: int) -> Space:
    """All mappings from `first` up to, but without, `end`; tables are read whole, many of a level at a time."""
    space = Space()
    leaves: list[Mapping] = []
    waiting = [Table(root, paging.levels, 0, ALL)]
    seen = {root}
    again = 0
    while waiting:
        some, waiting = waiting[:BATCH], waiting[BATCH:]
        if space.tables + len(some) > MOST_TABLES:
            space.problems.append(f"more than {MOST_TABLES} tables; the rest was not read")
            break
        space.tables += len(some)
        answers = source.read_many([(table.at, TABLE_BYTES) for table in some])
        for table, answer in zip(some, answers, strict=True):
            if isinstance(answer, Unreadable):
                what = f"{paging.name(table.level)} at {table.at:#x}, for {table.virtual:#x} and on"
                space.problems.append(f"{what}, could not be read: {answer.why}")
                continue
            for found in within(paging, table, answer, first, end):
                if isinstance(found, Mapping):
                    leaves.append(found)
                elif found.at in seen:
                    again += 1
                else:
                    seen.add(found.at)
                    waiting.append(found)
    if again:
        # No process of Linux uses a table twice; damaged ones may without end.
        space.problems.append(f"{again} entries lead to tables that were already read")
    space.mappings = joined(sorted(leaves, key=lambda leaf: leaf.virtual))
    return space


def within(paging: Paging, table: Table, data: bytes, first: int, end: int) -> Iterator[Table | Mapping]:
    """The tables and mappings to which a table's entries lead, between the two addresses."""
    size = 1 << paging.shift(table.level)
    for index, value in enumerate(entries(data)):
        virtual = paging.extended(table.virtual + index * size)
        if not value or virtual + size <= first or virtual >= end:
            continue
        entry = paging.decode(value, table.level)
        if entry.kind == "table":
            yield Table(entry.address, table.level - 1, virtual, table.rights & entry.rights)
        elif entry.kind == "page":
            yield Mapping(virtual, size, size, table.rights & entry.rights, (entry.address,))
        else:
            yield Mapping(virtual, size, size, entry.rights, None, entry.notes.split(" (")[0])


def joined(leaves: list[Mapping]) -> list[Mapping]:
    """Neighbours that differ only in their place as one."""
    runs: list[list[Mapping]] = []
    for leaf in leaves:
        if runs and follows(runs[-1][-1], leaf):
            runs[-1].append(leaf)
        else:
            runs.append([leaf])
    return [whole(run) for run in runs]


def follows(last: Mapping, leaf: Mapping) -> bool:
    """True if the two belong to one mapping."""
    same = (last.page, last.rights, last.notes) == (leaf.page, leaf.rights, leaf.notes)
    return last.end == leaf.virtual and same and (last.frames is None) == (leaf.frames is None)


def whole(run: list[Mapping]) -> Mapping:
    """The run as one mapping."""
    first = run[0]
    frames = None if first.frames is None else tuple(frame for leaf in run for frame in leaf.frames or ())
    return Mapping(first.virtual, len(run) * first.page, first.page, first.rights, frames, first.notes)


def frames_between(space: Space, first: int, end: int) -> dict[int, int]:
    """Physical address of each page of 4 KiB that is here, by its virtual address."""
    step = 1 << PAGE_BITS
    found = {}
    for mapping in space.mappings:
        if mapping.frames is None:
            continue
        start = max(mapping.virtual, first & -step)
        for virtual in range(start, min(mapping.end, end), step):
            number, offset = divmod(virtual - mapping.virtual, mapping.page)
            found[virtual] = mapping.frames[number] + offset
    return found
