"""A process's text, put together from wherever its pages lie."""

from __future__ import annotations

from dataclasses import dataclass

from tlplab.errors import RunError
from tlplab.introspect import elf
from tlplab.introspect.kernel import Kernel
from tlplab.introspect.pages import frames_between, mapped
from tlplab.introspect.paging import PAGE_BITS, Paging
from tlplab.introspect.processes import Process, TaskReader, described
from tlplab.introspect.source import Unreadable

PAGE = 1 << PAGE_BITS
# The largest text that is believed; browsers have 200 MiB.
LARGEST = 1 << 30
# How far before its code the headers of a program are looked for.
HEADER_BEFORE = 16 << 20
BATCH = 256


@dataclass(frozen=True)
class AddressSpace:
    """The fields of a process's `mm_struct`."""

    root: int
    """Physical address of the uppermost page table."""
    start_code: int
    end_code: int


@dataclass(frozen=True)
class Dump:
    """The bytes of a part of an address space."""

    first: int
    data: bytes
    missing: list[tuple[int, int, str]]
    """(first, end, why) of missing data, zero in `data`."""
    physical: int | None
    """Of the first byte, if it is there."""

    @property
    def end(self) -> int:
        """The address behind the last byte."""
        return self.first + len(self.data)

    @property
    def absent(self) -> int:
        """Bytes that are missing."""
        return sum(stop - start for start, stop, _ in self.missing)


def address_space(kernel: Kernel, process: Process) -> AddressSpace:
    """Reads a process's `mm_struct`. Raises `RunError` if it has none, or none that can be read."""
    if not process.mm:
        what = "is a kernel thread" if process.kernel_thread else "has ended or never started"
        raise RunError(f"{described(process)} has no memory of its own: it {what}")
    at = kernel.physical(process.mm)
    if at is None:
        raise RunError(f"{described(process)}: its pointer to mm_struct, {process.mm:#x}, is invalid")
    mm = kernel.layout.mm_struct
    values = []
    for answer in kernel.source.read_many([(at + offset, 8) for offset in (mm.pgd, mm.start_code, mm.end_code)]):
        if isinstance(answer, Unreadable):
            raise RunError(f"{described(process)}: its mm_struct could not be read: {answer}")
        values.append(int.from_bytes(answer, "little"))
    root = kernel.physical(values[0])
    if root is None or root % PAGE:
        raise RunError(f"{described(process)}: its pointer to page tables, {values[0]:#x}, is invalid")
    return AddressSpace(root, values[1], values[2])


def dump_code(kernel: Kernel, paging: Paging, process: Process, *, with_header: bool) -> Dump:
    """The text of a process, from the program's ELF header on if asked. Raises `RunError`."""
    space = address_space(kernel, process)
    if not 0 < space.end_code - space.start_code <= LARGEST or space.end_code > paging.user_end:
        raise RunError(f"{described(process)}: no code lies from {space.start_code:#x} to {space.end_code:#x}")
    first = space.start_code
    if with_header:
        header = find_header(kernel, paging, space)
        if header is None:
            raise RunError(
                f"{described(process)}: no ELF header is in memory before its code at {first:#x}; "
                "leave --with-header out to dump only the code"
            )
        first = header
    dump = dump_range(kernel, paging, space.root, first, space.end_code)
    now = TaskReader(kernel).at(process.virtual)
    if isinstance(now, str) or (now.pid, now.mm) != (process.pid, process.mm):
        raise RunError(f"{described(process)} ended or executed another program while it was read")
    return dump


def find_header(kernel: Kernel, paging: Paging, space: AddressSpace) -> int | None:
    """The address of a program's ELF header: at its code, or in a page before, as in most programs of today."""
    end = (space.start_code & -PAGE) + PAGE
    frames = frames_between(mapped(kernel.source, paging, space.root, max(end - HEADER_BEFORE, 0), end), 0, end)
    # From the code down, as long as the program's own pages go on.
    places = sorted(frames, reverse=True)
    for start in range(0, len(places), BATCH):
        some = places[start : start + BATCH]
        answers = kernel.source.read_many([(frames[place], len(elf.MAGIC)) for place in some])
        for place, answer in zip(some, answers, strict=True):
            if answer == elf.MAGIC:
                return place
    return None


def dump_range(kernel: Kernel, paging: Paging, root: int, first: int, end: int) -> Dump:
    """The bytes of an address space from `first` up to `end`; missing ones are zero, and reported."""
    space = mapped(kernel.source, paging, root, first & -PAGE, end)
    frames = frames_between(space, first, end)
    data = bytearray(end - first)
    missing: list[tuple[int, int, str]] = []
    pages = [(max(page, first), min(page + PAGE, end), frames.get(page)) for page in range(first & -PAGE, end, PAGE)]
    for begin in range(0, len(pages), BATCH):
        some = pages[begin : begin + BATCH]
        here = [(frame + start % PAGE, stop - start) for start, stop, frame in some if frame is not None]
        answers = iter(kernel.source.read_many(here))
        for start, stop, frame in some:
            answer = next(answers) if frame is not None else None
            if isinstance(answer, bytes):
                data[start - first : stop - first] = answer
            else:
                add_missing(missing, start, stop, "not in memory" if answer is None else f"unreadable: {answer.why}")
    at_first = frames.get(first & -PAGE)
    return Dump(first, bytes(data), missing, None if at_first is None else at_first + first % PAGE)


def add_missing(missing: list[tuple[int, int, str]], start: int, stop: int, why: str) -> None:
    """Adds a hole, or lengthens the last one."""
    if missing and missing[-1][1:] == (start, why):
        missing[-1] = (missing[-1][0], stop, why)
    else:
        missing.append((start, stop, why))


def described_code(dump: Dump) -> str:
    """A description of the dumped bytes: an ELF file's beginning, or code alone."""

    def read_at(offset: int, size: int) -> bytes:
        return dump.data[offset : offset + size]

    if not dump.data.startswith(elf.MAGIC):
        return "code without an ELF header; --with-header includes the program's header"
    try:
        header, order = elf.read_header(read_at)
    except elf.ElfError as error:
        return f"a damaged ELF header: {error}"
    found = elf.Elf(header[0], header[1], header[3], [], [])
    return f"{found.described}, entry {found.entry:#x}, {'little' if order == '<' else 'big'}-endian"
