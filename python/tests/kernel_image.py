"""A memory made by hand, which looks like a running Linux to a reader: tasks, address spaces, page tables, text.

It is not a memory of a machine. It holds the content of the kernel's own structures: the ring of tasks, the
mm of each, page tables as the processor reads them, pages scattered over memory. Everything written is remembered, so
that tests can ask for it without reading it by the code under test.
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tlplab.introspect.structures import Layout, ListHead, Mm, Task, as_profile

MIB = 1 << 20
SIZE = 64 * MIB
PAGE = 4096
# Linux 6.1 of a distribution, more or less.
LAYOUT = Layout(
    Task(state=24, flags=44, tasks=2192, mm=2272, exit_state=2308, pid=2416, real_parent=2432, comm=2976),
    Mm(pgd=72, start_code=256, end_code=264),
    ListHead(next=0, prev=8),
)
TASK_BYTES = 16384
# As System.map has it, and how far the kernel was moved from there: in virtual memory, and in physical memory.
SYMBOL = 0xFFFF_FFFF_8240_AA40
MOVED = 0x1D40_0000
PHYSICAL = 0x0160_AA40
DIRECT_MAP = 0xFFFF_9C5A_4000_0000
DIRECT_MAP_5 = 0xFF25_A4CA_C000_0000

PRESENT, WRITE, USER, ACCESSED, DIRTY, LARGE, NX = 1, 2, 4, 1 << 5, 1 << 6, 1 << 7, 1 << 63
TEXT = PRESENT | USER | ACCESSED
DATA = TEXT | WRITE | DIRTY | NX


@dataclass
class Made:
    """A process as it was made."""

    pid: int
    name: str
    task: int
    """Physical address."""
    pages: dict[int, int] = field(default_factory=dict)
    """Physical address of each page by its virtual address."""
    root: int = 0


class Memory:
    """A memory of 64 MiB."""

    def __init__(self, layout: Layout = LAYOUT, *, levels: int = 4) -> None:
        """With the first task alone."""
        self.layout = layout
        self.levels = levels
        self.direct_map = DIRECT_MAP if levels == 4 else DIRECT_MAP_5
        self.bytes = bytearray(SIZE)
        self.next_task = 0x00A0_0000
        # Pages come from here, each far from the last: nothing is contiguous by chance.
        self.free = [0x0200_0000 + (n * 1237 % 6144) * PAGE for n in range(6144)]
        self.made: list[Made] = []
        self.init = SYMBOL + MOVED
        self.write_task(PHYSICAL, 0, "swapper/0", 0, self.init, kernel=True)
        self.link([PHYSICAL])

    def put(self, at: int, value: int, size: int = 8) -> None:
        """Writes a number."""
        self.bytes[at : at + size] = value.to_bytes(size, "little")

    def get(self, at: int) -> int:
        """Reads a number of 8 bytes."""
        return int(struct.unpack_from("<Q", self.bytes, at)[0])

    def virtual(self, physical: int) -> int:
        """The kernel's pointer to a place in memory."""
        return self.init if physical == PHYSICAL else self.direct_map + physical

    def write_task(self, at: int, pid: int, name: str, state: int, parent: int, *, kernel: bool, mm: int = 0) -> None:
        """Writes a task's fields."""
        task = self.layout.task_struct
        self.put(at + task.state, state & 0xFFF, 4)
        self.put(at + task.exit_state, state & 0x30, 4)
        self.put(at + task.flags, 0x0020_0000 if kernel else 0x0040_0000, 4)
        self.put(at + task.pid, pid, 4)
        self.put(at + task.real_parent, parent)
        self.put(at + task.mm, mm)
        self.bytes[at + task.comm : at + task.comm + 16] = name.encode("latin-1").ljust(16, b"\0")[:16]

    def link(self, ring: list[int]) -> None:
        """Links the tasks at these physical addresses in a ring."""
        tasks, links = self.layout.task_struct.tasks, self.layout.list_head
        for number, at in enumerate(ring):
            self.put(at + tasks + links.next, self.virtual(ring[(number + 1) % len(ring)]) + tasks)
            self.put(at + tasks + links.prev, self.virtual(ring[number - 1]) + tasks)

    def ring(self) -> list[int]:
        """The tasks that were made, and the first."""
        return [PHYSICAL, *(made.task for made in self.made)]

    def page(self, data: bytes = b"") -> int:
        """A page with these bytes at its start."""
        at = self.free.pop(0)
        self.bytes[at : at + PAGE] = data.ljust(PAGE, b"\0")
        return at

    def add(self, pid: int, name: str, state: int = 1, *, kernel: bool = False, parent: int = PHYSICAL) -> Made:
        """Adds a process at the end of the list, with an address space unless it is the kernel's."""
        made = Made(pid, name, self.next_task)
        self.next_task += TASK_BYTES
        mm = 0
        if not kernel:
            mm_at = self.page()
            made.root = self.page()
            self.put(mm_at + self.layout.mm_struct.pgd, self.virtual(made.root))
            mm = self.virtual(mm_at)
        self.write_task(made.task, pid, name, state, self.virtual(parent), kernel=kernel, mm=mm)
        self.made.append(made)
        self.link(self.ring())
        return made

    def mm(self, made: Made) -> int:
        """Physical address of a process's mm."""
        return self.get(made.task + self.layout.task_struct.mm) - self.direct_map

    def entry(self, made: Made, virtual: int, level: int) -> int:
        """Physical address of the entry for an address at a level; tables on the way are made."""
        table = made.root
        for at_level in range(self.levels, level, -1):
            at = table + 8 * (virtual >> 12 + 9 * (at_level - 1) & 511)
            if not self.get(at):
                # As with page-table isolation: the kernel's tables do not let user code execute, in their uppermost level.
                self.put(at, self.page() | PRESENT | WRITE | USER | ACCESSED | (NX if at_level == self.levels else 0))
            table = self.get(at) & 0x000F_FFFF_FFFF_F000
        return table + 8 * (virtual >> 12 + 9 * (level - 1) & 511)

    def map(self, made: Made, virtual: int, data: bytes, flags: int) -> int:
        """Maps a page of 4 KiB; its physical address."""
        at = self.page(data)
        self.put(self.entry(made, virtual, 1), at | flags)
        made.pages[virtual] = at
        return at

    def map_text(self, made: Made, start: int, text: bytes, *, absent: tuple[int, ...] = ()) -> None:
        """Maps a program's text page by page but for the pages whose numbers are `absent`, and writes its bounds."""
        first = start & -PAGE
        padded = bytes(start - first) + text
        for number in range(-(-len(padded) // PAGE)):
            if number not in absent:
                self.map(made, first + number * PAGE, padded[number * PAGE :][:PAGE], TEXT)
        self.put(self.mm(made) + self.layout.mm_struct.start_code, start)
        self.put(self.mm(made) + self.layout.mm_struct.end_code, start + len(text))

    def write(self, path: Path) -> str:
        """Writes a raw image; its name."""
        path.write_bytes(self.bytes)
        return str(path)


def program(size: int, *, header: bool = True) -> bytes:
    """Something like the beginning of an ELF file, of bytes that differ from page to page."""
    body = b"".join(struct.pack("<I", n * 2654435761 & 0xFFFF_FFFF) for n in range(size // 4))
    identity = struct.pack(
        "<4sBBBB8xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, 3, 62, 1, 0x1040, 64, 0, 0, 64, 56, 0, 0, 0, 0
    )
    return identity + body[len(identity) :] if header else body


def a_machine(layout: Layout = LAYOUT, *, levels: int = 4) -> Memory:
    """A memory with a few processes, one of which has text in scattered pages."""
    memory = Memory(layout, levels=levels)
    init = memory.add(1, "systemd")
    kthreadd = memory.add(2, "kthreadd", kernel=True)
    memory.add(3, "kworker/0:0", 0x402, kernel=True, parent=kthreadd.task)
    cron = memory.add(647, "cron", parent=init.task)
    memory.map_text(cron, 0x5555_5555_4000, program(5 * PAGE + 0xDB0), absent=(2,))
    memory.map(cron, 0x7FFF_F7A0_0000, b"a stack", DATA)
    memory.add(655, "a b\x1b[2J", 0x02, parent=init.task)
    memory.add(662, "gone", 0x20, parent=cron.task)
    return memory


def write_profile(path: Path, layout: Layout = LAYOUT) -> str:
    """The layout as a profile."""
    path.write_text(as_profile(layout, "a test"))
    return str(path)


def write_symbols(path: Path) -> str:
    """A System.map."""
    path.write_text(f"ffffffff81000000 T _stext\nffffffff81000010 t init_task_of_others\n{SYMBOL:016x} D init_task\n")
    return str(path)


def main() -> None:
    """Writes a memory with its profile and its symbols into a folder: `python kernel_image.py FOLDER`."""
    folder = Path(sys.argv[1])
    for name in (
        a_machine().write(folder / "memory.raw"),
        write_profile(folder / "host.toml"),
        write_symbols(folder / "System.map"),
    ):
        print(f"wrote {name}")


if __name__ == "__main__":
    main()
