"""A running kernel in a memory of which nothing is known: where its first task and its direct map are.

A kernel with address randomisation (KASLR) has moved in three ways that do not depend on each other: its image in physical memory, its
image in virtual memory, and the direct map, where all physical memory stands in virtual memory one to one. All three follow from
contents that can be checked:

1. The image moves by multiples of 2 MiB, so that `init_task` of the symbols is at one of the physical addresses that agree with the
   symbol in the lower 21 bits. The right one holds a task named `swapper` with process id 0.
2. That task is its own parent: the pointer shows the image's place in virtual memory.
3. `init_task.tasks.next` is a pointer into the direct map, to the `tasks` of process 1. The direct map moves by multiples of 1 GiB,
   so that this list head is at one of few physical addresses; the right one points back to `init_task.tasks`. Where the symbols know
   `page_offset_base`, the kernel's own variable is asked first.

Every step proves itself: a candidate that does not agree is passed over, and nothing is guessed. Options replace each search by a value.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tlplab.errors import RunError
from tlplab.introspect.source import Source, Unreadable
from tlplab.introspect.structures import COMM_BYTES, Layout

IMAGE_STEP = 2 << 20
DIRECT_MAP_STEP = 1 << 30
# The virtual address at which an x86-64 kernel's image begins if nothing moved it: `__START_KERNEL_map`.
X86_IMAGE = 0xFFFF_FFFF_8000_0000
KERNEL_HALF = 1 << 63
LONGEST_PHYSICAL = 1 << 52
# Addresses that are asked for at once in a search.
BATCH = 512
SWAPPER = (b"swapper/0\0", b"swapper\0")


@dataclass(frozen=True)
class Kernel:
    """The facts of a kernel that following its pointers takes."""

    source: Source
    layout: Layout
    init_task: int
    """Virtual address, as the running kernel has it."""
    init_task_physical: int
    direct_map: int
    """Virtual address of physical address 0."""
    moved: int
    """By how much KASLR moved the image in virtual memory, from where the symbols say."""

    def physical(self, virtual: int) -> int | None:
        """The physical address to which a kernel pointer to a task, an mm or a page table leads; None if it cannot be such a pointer."""
        if virtual == self.init_task:
            return self.init_task_physical
        address = virtual - self.direct_map
        return address if 0 <= address < LONGEST_PHYSICAL and virtual % 8 == 0 else None


@dataclass(frozen=True)
class Known:
    """The user's facts about the addresses; a value of None is searched for."""

    init_task: int
    """As in the symbols."""
    page_offset_base: int | None = None
    """The variable, as in the symbols; not all kernels and lists of symbols have it."""
    kaslr_offset: int | None = None
    phys_base: int | None = None
    direct_map: int | None = None
    search: int | None = None
    """Bytes of physical memory that are searched; None searches all."""

    @property
    def is_placed(self) -> bool:
        """True if the user states the displacement of the image."""
        return self.kaslr_offset is not None or self.phys_base is not None


def find_kernel(source: Source, layout: Layout, known: Known) -> Kernel:
    """Finds the first task and the direct map. Raises `RunError` with the extent of the search."""
    at, virtual, following = find_init_task(source, layout, known)
    head = virtual + layout.task_struct.tasks
    if known.direct_map is not None:
        direct_map = known.direct_map
    elif following == head:
        direct_map = 0  # there is no other task, and nothing to follow
    else:
        direct_map = find_direct_map(source, layout, known, at, following, head)
    return Kernel(source, layout, virtual, at, direct_map, virtual - known.init_task)


def find_init_task(source: Source, layout: Layout, known: Known) -> tuple[int, int, int]:
    """(physical address, virtual address, `tasks.next`) of the first task."""
    places = (at for at in candidates(source, known) if source.has(at))
    looked = 0
    failures: list[Unreadable] = []
    while some := list(islice(places, BATCH)):
        looked += len(some)
        names = source.read_many([(at + layout.task_struct.comm, COMM_BYTES) for at in some])
        for at, name in zip(some, names, strict=True):
            if isinstance(name, Unreadable):
                failures.append(name)
            elif name.startswith(SWAPPER):
                found = check_init_task(source, layout, at, known)
                if found is not None:
                    return at, *found
    if failures and len(failures) == looked:
        raise RunError(f"none of the {looked} possible addresses of init_task is readable; {failures[0]}")
    where = (
        "where --kaslr-offset and --phys-base put init_task"
        if known.is_placed
        else f"that agrees with init_task {known.init_task:#x} in the lower 21 bits"
    )
    raise RunError(
        f"no task named swapper/0 at any physical address {where} ({looked} searched); check that --symbols and --btf or --profile "
        "are of exactly this kernel, or extend the search with --search"
    )


def candidates(source: Source, known: Known) -> Iterator[int]:
    """Physical addresses where the first task can be: at first where it is if nothing was moved."""
    if known.is_placed:
        # The kernel's phys_base is often negative.
        yield (known.init_task + (known.kaslr_offset or 0) - X86_IMAGE + (known.phys_base or 0)) % (1 << 64)
        return
    first = known.init_task - X86_IMAGE
    if first >= 0:
        yield first
    places = range(known.init_task % IMAGE_STEP, known.search or source.extent, IMAGE_STEP)
    yield from (at for at in places if at != first)


def check_init_task(source: Source, layout: Layout, at: int, known: Known) -> tuple[int, int] | None:
    """(virtual address, `tasks.next`) if this is the first task, which is its own parent."""
    task, links = layout.task_struct, layout.list_head
    fields = source.read_many(
        [
            (at + task.pid, 4),
            (at + task.real_parent, 8),
            (at + task.tasks + links.next, 8),
            (at + task.tasks + links.prev, 8),
        ]
    )
    if any(isinstance(field, Unreadable) for field in fields):
        return None
    pid, virtual, following, before = (int.from_bytes(field, "little") for field in fields if isinstance(field, bytes))
    moved = virtual - known.init_task
    right_offset = moved == known.kaslr_offset if known.kaslr_offset is not None else moved % IMAGE_STEP == 0
    pointers = min(virtual, following, before) >= KERNEL_HALF
    return (virtual, following) if pid == 0 and right_offset and pointers else None


def find_direct_map(source: Source, layout: Layout, known: Known, first_task: int, following: int, head: int) -> int:
    """The virtual address of physical address 0, from the list head of process 1, which points back to `head`.

    `first_task` is the physical address of the first task.
    """
    end = known.search or source.extent
    candidates = [at for at in range(following % DIRECT_MAP_STEP, end, DIRECT_MAP_STEP) if source.has(at)]
    if known.page_offset_base is not None:
        # The image is in one piece, in virtual and in physical memory.
        (base,) = source.read_many([(first_task + known.page_offset_base - known.init_task, 8)])
        if isinstance(base, bytes) and 0 <= following - int.from_bytes(base, "little") < LONGEST_PHYSICAL:
            candidates.insert(0, following - int.from_bytes(base, "little"))
    for some in batches(candidates):
        answers = source.read_many([(at + layout.list_head.prev, 8) for at in some])
        for at, answer in zip(some, answers, strict=True):
            if answer == struct.pack("<Q", head):
                return following - at
    raise RunError(
        f"init_task's list continues at {following:#x}, but at none of the {len(candidates)} possible physical addresses below {end:#x} "
        "does an entry point back; the image may be damaged or incomplete; give --direct-map, or extend the search with --search"
    )


def batches(items: list[int]) -> Iterator[list[int]]:
    """The items, some at a time."""
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]
