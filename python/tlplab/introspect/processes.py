"""The list of processes: from the first task along `tasks`, the ring of all processes.

The ring is read while its owner may change it. Each step looks whether the neighbour points back; the next of the one before is
read again where it does not; and where the way forward is lost, the ring is walked backwards from its end, so that a single torn
place hides only itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from tlplab.introspect.kernel import KERNEL_HALF, Kernel
from tlplab.introspect.source import Unreadable
from tlplab.introspect.structures import COMM_BYTES, Task

# The kernel's own limit on process ids, PID_MAX_LIMIT.
LARGEST_PID = 1 << 22
# What list_del writes into the `prev` of an entry that has left its list: LIST_POISON2.
GONE = 0xDEAD_0000_0000_0122
# How often a step is tried again when the list moved under it.
RETRIES = 4
KERNEL_THREAD = 0x0020_0000
# Fields that are no further apart are read at once: a completion costs more than these bytes.
NEAR = 64
LETTERS = "RSDTtXZPI"
UNINTERRUPTIBLE, IDLE, EXITED, REPORTED = 0x02, 0x402, 0x30, 0x7F
RTLOCK_WAIT, FROZEN = 0x1000, 0x8000


@dataclass(frozen=True)
class Process:
    """A process, as its `task_struct` says."""

    virtual: int
    physical: int
    pid: int
    parent: int
    """Virtual address of the parent's task."""
    name: bytes
    """Up to 15 bytes, of any value."""
    state: int
    """`__state` and `exit_state` together."""
    flags: int
    mm: int
    """Virtual address of the `mm_struct`; 0 for threads of the kernel and for zombies."""
    following: int
    """Virtual address of the next task's `tasks`."""
    before: int

    @property
    def letter(self) -> str:
        """The state as `ps` shows it."""
        if self.state & IDLE == IDLE and not self.state & EXITED:
            return "I"
        shown = self.state & REPORTED
        if self.state & (RTLOCK_WAIT | FROZEN):
            shown |= UNINTERRUPTIBLE
        return LETTERS[shown.bit_length()]

    @property
    def kernel_thread(self) -> bool:
        """True for a process that runs in the kernel only."""
        return bool(self.flags & KERNEL_THREAD)

    @property
    def shown(self) -> str:
        """The name, with escapes in place of unprintable characters."""
        return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in self.name.decode("latin-1"))


@dataclass
class Walk:
    """The processes found, in the order of the list, and its faults."""

    processes: list[Process]
    problems: list[str]
    notes: list[str]
    """Remarks about changes during the walk that lost no process."""


class TaskReader:
    """Reads tasks, each by one batch of as few reads as its fields allow."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        task = kernel.layout.task_struct
        sizes = {
            "state": 4,
            "flags": 4,
            "tasks": 16,
            "mm": 8,
            "exit_state": 4,
            "pid": 4,
            "real_parent": 8,
            "comm": COMM_BYTES,
        }
        self.spans = spans([(getattr(task, name), size) for name, size in sizes.items()])

    def at(self, virtual: int) -> Process | str:
        """The task at a virtual address, or why there is none."""
        physical = self.kernel.physical(virtual)
        if physical is None:
            return f"{virtual % 2**64:#x} is not an address of a task"
        answers = self.kernel.source.read_many([(physical + offset, size) for offset, size in self.spans])
        parts = []
        for answer in answers:
            if isinstance(answer, Unreadable):
                return f"the task at {physical:#x} could not be read: {answer.why}"
            parts.append(answer)
        process = self.decode(virtual, physical, parts)
        if not 0 <= process.pid <= LARGEST_PID or process.parent < KERNEL_HALF:
            return f"the data at {physical:#x} are not a task"
        return process

    def decode(self, virtual: int, physical: int, parts: list[bytes]) -> Process:
        """A task from the bytes of its spans."""

        def at(offset: int, size: int) -> bytes:
            for (start, length), part in zip(self.spans, parts, strict=True):
                if start <= offset < start + length:
                    return part[offset - start : offset - start + size]
            raise AssertionError("every field is in a span")

        def number(offset: int, size: int) -> int:
            return int.from_bytes(at(offset, size), "little")

        task: Task = self.kernel.layout.task_struct
        links = self.kernel.layout.list_head
        return Process(
            virtual=virtual,
            physical=physical,
            pid=number(task.pid, 4),
            parent=number(task.real_parent, 8),
            name=at(task.comm, COMM_BYTES)[: COMM_BYTES - 1].split(b"\0")[0],
            state=number(task.state, 4) | number(task.exit_state, 4),
            flags=number(task.flags, 4),
            mm=number(task.mm, 8),
            following=number(task.tasks + links.next, 8),
            before=number(task.tasks + links.prev, 8),
        )


def spans(fields: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Reads (offset, size) that cover the fields (offset, size); near ones are joined."""
    found: list[tuple[int, int]] = []
    for offset, size in sorted(fields):
        if found and offset <= found[-1][0] + found[-1][1] + NEAR:
            start, length = found[-1]
            found[-1] = (start, max(length, offset + size - start))
        else:
            found.append((offset, size))
    return found


def list_processes(kernel: Kernel) -> Walk:
    """Walks the ring of processes, the first task among them."""
    reader = TaskReader(kernel)
    first = reader.at(kernel.init_task)
    if isinstance(first, str):
        return Walk([], [first], [])
    forward = Way(reader, first, forward=True)
    problem = forward.walk(set())
    if problem is None:
        return Walk(forward.found, [], forward.notes)
    backward = Way(reader, first, forward=False)
    other = backward.walk({process.virtual for process in forward.found})
    problems = [f"the list is broken after {described(forward.found[-1])}: {problem}"]
    if other is not None:
        problems.append(f"and before {described(backward.found[-1])}, from its end: {other}")
    rest = backward.found[:0:-1]
    return Walk(forward.found + rest, problems, forward.notes + backward.notes)


class Way:
    """A walk around the ring in one direction."""

    def __init__(self, reader: TaskReader, first: Process, *, forward: bool) -> None:
        self.reader = reader
        self.forward = forward
        self.found = [first]
        self.notes: list[str] = []
        self.offset = reader.kernel.layout.task_struct.tasks
        self.head = first.virtual + self.offset

    def onward(self, process: Process) -> int:
        """The next list entry this way."""
        return process.following if self.forward else process.before

    def back(self, process: Process) -> int:
        """The one before, this way."""
        return process.before if self.forward else process.following

    def walk(self, known: set[int]) -> str | None:
        """Goes on until the ring closes or meets a task in `known`; reports the fault if neither can be reached."""
        seen = {self.found[0].virtual}
        while True:
            step = self.step(seen, known)
            if step is None or isinstance(step, str):
                return step
            seen.add(step.virtual)
            self.found.append(step)

    def step(self, seen: set[int], known: set[int]) -> Process | str | None:
        """The next process; None where the ring closes; the fault where it leads nowhere."""
        why = ""
        for _ in range(RETRIES):
            last = self.found[-1]
            entry = self.onward(last)
            if entry == self.head or entry - self.offset in known:
                return None
            process = self.reader.at(entry - self.offset)
            if isinstance(process, str):
                why = process
            elif process.virtual in seen:
                why = f"it leads back to {described(process)}"
            elif self.agrees(process, seen):
                return process
            else:
                why = f"{described(process)} does not point back"
            # The last one may have left the list, or got another neighbour, since it was read.
            again = self.reader.at(last.virtual)
            if isinstance(again, str):
                return why
            self.found[-1] = again
        return why

    def agrees(self, process: Process, seen: set[int]) -> bool:
        """True if the process points back to the last one, or past it because the last one ended meanwhile."""
        back = self.back(process)
        if back == self.found[-1].virtual + self.offset:
            return True
        if self.forward and self.found[-1].before == GONE and back - self.offset in seen:
            self.notes.append(f"{described(self.found[-1])} ended while the list was read")
            return True
        return self.forward and process.before == GONE


def described(process: Process) -> str:
    """`process 17 (cron)`"""
    return f"process {process.pid} ({process.shown})"
