"""Introspection of a memory that the tests made: the judge is the record of the written data, not a second reading."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_image import (
    DATA,
    DIRECT_MAP,
    DIRECT_MAP_5,
    LARGE,
    LAYOUT,
    MOVED,
    NX,
    PAGE,
    PHYSICAL,
    PRESENT,
    SIZE,
    SYMBOL,
    TASK_BYTES,
    TEXT,
    USER,
    WRITE,
    Memory,
    a_machine,
    program,
    write_profile,
    write_symbols,
)  # fmt: skip
from test_introspect_files import LIVE, a_kernel

from tlplab import _core
from tlplab.cli import status
from tlplab.errors import RunError
from tlplab.introspect.btf import read_btf
from tlplab.introspect.code import dump_code
from tlplab.introspect.kernel import Kernel, Known, find_kernel
from tlplab.introspect.pages import Space, follow, frames_between, mapped
from tlplab.introspect.paging import X86, Aarch64, Rights
from tlplab.introspect.processes import GONE, list_processes
from tlplab.introspect.source import Unreadable
from tlplab.introspect.structures import layout_from_btf
from tlplab.nettlp.end import End
from tlplab.nettlp.loopback import own_address

# For the test that damages one a hundred times, and mends it.
MACHINE = a_machine()


class Held:
    """A memory in this process, that counts requests and may change between two of them."""

    def __init__(self, memory: Memory, holes: Sequence[tuple[int, int]] = ()) -> None:
        self.memory = memory
        self.holes = holes
        self.rounds = 0
        self.read = 0
        self.meanwhile: Callable[[int], None] = lambda _: None

    @property
    def extent(self) -> int:
        return SIZE

    def has(self, address: int) -> bool:
        return address < SIZE

    def read_many(self, requests: Sequence[tuple[int, int]]) -> list[bytes | Unreadable]:
        self.rounds += 1
        self.read += sum(size for _, size in requests)
        assert len(requests) <= 512, "a batch is bounded"
        answers = [self.answer(address, size) for address, size in requests]
        self.meanwhile(self.rounds)
        return answers

    def answer(self, address: int, size: int) -> bytes | Unreadable:
        outside = address + size > SIZE or any(first < address + size and address < end for first, end in self.holes)
        return (
            Unreadable(address, size, "nobody answers")
            if outside
            else bytes(self.memory.bytes[address : address + size])
        )


def kernel_of(source: Held, **known: int) -> Kernel:
    return find_kernel(source, LAYOUT, Known(**{"init_task": SYMBOL, **known}))


def names(memory: Memory, holes: Sequence[tuple[int, int]] = ()) -> tuple[list[str], list[str]]:
    walk = list_processes(kernel_of(Held(memory, holes)))
    return [process.name.decode("latin-1") for process in walk.processes], walk.problems


# --- the kernel -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("levels", "direct_map"), [(4, DIRECT_MAP), (5, DIRECT_MAP_5)])
def test_a_moved_kernel_is_found_among_others_that_look_like_it(levels: int, direct_map: int) -> None:
    memory = a_machine(levels=levels)
    comm = LAYOUT.task_struct.comm
    for number, decoy in enumerate((b"swapper/1", b"swapper/0", b"swapper/0")):
        # Another processor's idle task; a task that is not its own parent; one that has a process id.
        at = PHYSICAL % (2 << 20) + (2 << 20) * number
        memory.bytes[at + comm : at + comm + 9] = decoy
    memory.put(PHYSICAL % (2 << 20) + (4 << 20) + LAYOUT.task_struct.real_parent, SYMBOL + MOVED)
    memory.put(PHYSICAL % (2 << 20) + (4 << 20) + LAYOUT.task_struct.pid, 7, 4)
    source = Held(memory)
    kernel = kernel_of(source)
    assert (kernel.init_task, kernel.init_task_physical) == (SYMBOL + MOVED, PHYSICAL)
    assert (kernel.moved, kernel.direct_map) == (MOVED, direct_map)
    assert source.read < 32 * 16 + 1024, "one name for each 2 MiB, and little else"


def test_given_offsets_are_not_searched_for() -> None:
    memory = a_machine()
    source = Held(memory)
    phys_base = PHYSICAL - (SYMBOL + MOVED - 0xFFFF_FFFF_8000_0000)
    kernel = kernel_of(source, kaslr_offset=MOVED, phys_base=phys_base % 2**64, direct_map=DIRECT_MAP)
    assert (kernel.init_task_physical, kernel.direct_map, source.rounds) == (PHYSICAL, DIRECT_MAP, 2)
    with pytest.raises(RunError, match=r"where --kaslr-offset and --phys-base put init_task \(1 searched\)"):
        kernel_of(source, kaslr_offset=0)


def test_symbols_of_another_kernel_fail_with_the_options_to_check() -> None:
    with pytest.raises(RunError, match=r"32 searched\); check that --symbols and --btf"):
        kernel_of(Held(a_machine()), init_task=SYMBOL + 64)


def test_a_direct_map_that_nothing_proves_is_not_guessed() -> None:
    memory = a_machine()
    memory.put(memory.made[0].task + LAYOUT.task_struct.tasks + LAYOUT.list_head.prev, 0)
    with pytest.raises(RunError, match="does an entry point back"):
        kernel_of(Held(memory))


def test_the_kernels_own_variable_spares_the_search_for_the_direct_map() -> None:
    memory = a_machine()
    memory.put(PHYSICAL + 0x2000, DIRECT_MAP)
    source = Held(memory)
    # Process 1 is above what is searched: without the variable it is not found.
    known = {"search": PHYSICAL + 1, "init_task": SYMBOL}
    source.has = lambda address: address == PHYSICAL  # type: ignore[method-assign]
    with pytest.raises(RunError, match="does an entry point back"):
        kernel_of(source, **known)
    assert kernel_of(source, **known, page_offset_base=SYMBOL + 0x2000).direct_map == DIRECT_MAP


def test_unreadable_memory_is_reported_as_unreadable() -> None:
    with pytest.raises(RunError, match=r"none of the 32 possible addresses of init_task is readable.*nobody answers"):
        kernel_of(Held(a_machine(), [(0, SIZE)]))


# --- processes --------------------------------------------------------------------------------------------------------


def test_the_list_holds_all_processes_in_memory() -> None:
    memory = a_machine()
    source = Held(memory)
    kernel = kernel_of(source)
    before = source.rounds, source.read
    walk = list_processes(kernel)
    assert walk.problems == []
    assert [(p.pid, p.physical) for p in walk.processes] == [(0, PHYSICAL), *((m.pid, m.task) for m in memory.made)]
    assert [p.letter for p in walk.processes] == list("RSSISDZ")
    assert [p.kernel_thread for p in walk.processes] == [True, False, True, True, False, False, False]
    assert walk.processes[5].shown == "a b\\x1b[2J", "a name cannot command the terminal"
    assert source.rounds - before[0] == len(walk.processes), "one round trip for each"
    assert source.read - before[1] < 600 * len(walk.processes), "of its fields alone"


@pytest.mark.parametrize(
    ("state", "letter"),
    [(0, "R"), (1, "S"), (2, "D"), (4, "T"), (8, "t"), (0x10, "X"), (0x20, "Z"), (0x40, "P"), (0x402, "I"), (0x102, "D"), (0x8000, "D")],
)  # fmt: skip
def test_states_are_shown_as_ps_does(state: int, letter: str) -> None:
    kernel = kernel_of(Held(a_machine()))
    process = list_processes(kernel).processes[1]
    assert dataclasses.replace(process, state=state).letter == letter


def test_a_ring_that_never_closes_ends() -> None:
    memory = a_machine()
    tasks = LAYOUT.task_struct.tasks
    memory.put(memory.made[4].task + tasks, memory.virtual(memory.made[1].task) + tasks)
    found, problems = names(memory)
    assert found == ["swapper/0", "systemd", "kthreadd", "kworker/0:0", "cron", "a b\x1b[2J", "gone"]
    assert problems == ["the list is broken after process 655 (a b\\x1b[2J): it leads back to process 2 (kthreadd)"]


@pytest.mark.parametrize(
    "wrong", [0, 0x6B6B6B6B6B6B6B6B, 0xFFFF_FFFF_FFFF_FFF8, DIRECT_MAP + SIZE, DIRECT_MAP + 0x40_0000]
)
def test_one_bad_pointer_hides_no_process(wrong: int) -> None:
    memory = a_machine()
    memory.put(memory.made[2].task + LAYOUT.task_struct.tasks, wrong)
    found, problems = names(memory)
    assert len(found) == 7, "the others are reached from the end"
    assert len(problems) == 1
    assert "broken after process 3 (kworker/0:0)" in problems[0]


def test_two_torn_places_are_both_reported() -> None:
    memory = a_machine()
    hole = memory.made[3].task
    found, problems = names(memory, [(hole, hole + TASK_BYTES)])
    assert found == ["swapper/0", "systemd", "kthreadd", "kworker/0:0", "a b\x1b[2J", "gone"]
    assert len(problems) == 2
    assert "nobody answers" in problems[0]
    assert "before process 655" in problems[1]


def unlink(memory: Memory, number: int) -> None:
    """Unlink a process as the kernel does when it ends: its neighbours forget it, it still knows the next."""
    ring = memory.ring()
    memory.link([at for at in ring if at != memory.made[number].task])
    memory.put(memory.made[number].task + LAYOUT.task_struct.tasks + LAYOUT.list_head.prev, GONE)


@pytest.mark.parametrize("after", range(1, 7))
@pytest.mark.parametrize("number", range(1, 5))
def test_a_process_that_ends_meanwhile_takes_no_other_with_it(number: int, after: int) -> None:
    memory = a_machine()
    source = Held(memory)
    kernel = kernel_of(source)
    begun = source.rounds
    source.meanwhile = lambda rounds: unlink(memory, number) if rounds == begun + after else None
    walk = list_processes(kernel)
    expected = {0, *(made.pid for made in memory.made)}
    assert expected - {p.pid for p in walk.processes} <= {memory.made[number].pid}
    assert len({p.pid for p in walk.processes}) == len(walk.processes)
    assert walk.problems == []


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_damaged_memory_is_walked_to_an_end(data: st.DataObject) -> None:
    memory = MACHINE
    kept = bytes(memory.bytes[: 24 << 20])
    tasks = memory.ring()
    fields = [getattr(LAYOUT.task_struct, f.name) for f in dataclasses.fields(LAYOUT.task_struct)]
    words = [0, 1, GONE, *(memory.virtual(at) + LAYOUT.task_struct.tasks for at in tasks), 2**64 - 8]
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.sampled_from(tasks)) + data.draw(st.sampled_from([*fields, LAYOUT.task_struct.tasks + 8]))
        memory.put(at, data.draw(st.sampled_from(words) | st.integers(0, 2**64 - 1)))
    source = Held(memory)
    with contextlib.suppress(RunError):
        kernel = kernel_of(source)
        for process in list_processes(kernel).processes:
            with contextlib.suppress(RunError):
                dump_code(kernel, X86(4), process, with_header=False)
    memory.bytes[: len(kept)] = kept
    assert source.rounds < 500


# --- pages ------------------------------------------------------------------------------------------------------------


def space_of(memory: Memory, number: int, paging: X86) -> Space:
    return mapped(Held(memory), paging, memory.made[number].root, 0, 1 << (paging.bits - 1))


@pytest.mark.parametrize("levels", [4, 5])
def test_every_page_that_was_mapped_is_found_where_it_lies(levels: int) -> None:
    memory = a_machine(levels=levels)
    made = memory.made[3]
    paging = X86(levels)
    space = space_of(memory, 3, paging)
    assert frames_between(space, 0, 1 << 47) == made.pages
    assert space.problems == []
    for virtual, physical in made.pages.items():
        way = follow(Held(memory), paging, made.root, virtual + 0x123)
        assert (way.physical, way.size, len(way.steps)) == (physical + 0x123, PAGE, levels)
        # The NX that page-table isolation sets in the uppermost level is not the page's.
        assert way.rights == Rights(write=virtual > 7 << 44, user=True, execute=virtual < 7 << 44)
    hole = follow(Held(memory), paging, made.root, 0x5555_5555_6000)
    assert (hole.physical, hole.problem, hole.size) == (None, "not present", PAGE)


def test_large_pages_swapped_pages_and_forbidden_pages() -> None:
    memory = a_machine()
    made = memory.made[3]
    two, giga, swapped, none = 0x7000_0020_0000, 0x6000_4000_0000, 0x5555_5556_0000, 0x5555_5556_1000
    pat = 1 << 12  # in a large page this is no bit of the address
    memory.put(memory.entry(made, two, 2), 0x0340_0000 | pat | LARGE | DATA)
    memory.put(memory.entry(made, giga, 3), 0x8000_0000 | pat | LARGE | PRESENT | USER)
    # As the kernel makes them: the type above, the offset inverted below it; a forbidden page's address inverted.
    memory.put(memory.entry(made, swapped, 1), 3 << 59 | (~0x1234 << 9 & (1 << 59) - 1) & ~(1 << 8))
    memory.put(memory.entry(made, none, 1), ~0x0203_4000 & 0x000F_FFFF_FFFF_F000 | 1 << 8)
    source, paging = Held(memory), X86(4)
    large = follow(source, paging, made.root, two + 0x12345)
    assert (large.physical, large.size, str(large.rights)) == (0x0341_2345, 2 << 20, "rw- user")
    huge = follow(source, paging, made.root, giga + 0x1234_5678)
    assert (huge.physical, huge.size, str(huge.rights)) == (0x9234_5678, 1 << 30, "r-x user")
    assert follow(source, paging, made.root, swapped).problem == "swapped out or moving (type 3, offset 0x1234)"
    assert follow(source, paging, made.root, none).problem == "no access allowed (PROT_NONE), page at 0x2034000"
    space = space_of(memory, 3, paging)
    shown = [(m.virtual, m.page, m.frames is None, m.notes) for m in space.mappings]
    assert (swapped, PAGE, True, "swapped out or moving") in shown
    assert (none, PAGE, True, "no access allowed") in shown
    assert (two, 2 << 20, False, "") in shown
    assert (giga, 1 << 30, False, "") in shown
    frames = frames_between(space, two + 3 * PAGE, two + 5 * PAGE)
    assert frames == {two + 3 * PAGE: 0x0340_3000, two + 4 * PAGE: 0x0340_4000}


def test_rights_combine_all_levels() -> None:
    memory = a_machine()
    made = memory.made[3]
    virtual = memory.made[3].pages.copy().popitem()[0]
    at = memory.entry(made, virtual, 2)
    memory.put(at, memory.get(at) & ~WRITE | NX)
    assert str(follow(Held(memory), X86(4), made.root, virtual).rights) == "r-- user"


def test_tables_that_lead_to_themselves_are_read_once() -> None:
    memory = a_machine()
    made = memory.made[3]
    for index in range(256):
        if not memory.get(made.root + 8 * index):
            memory.put(made.root + 8 * index, made.root | PRESENT | WRITE | USER)
    space = space_of(memory, 3, X86(4))
    assert space.tables == 7
    assert "254 entries lead to tables that were already read" in space.problems[0]
    assert frames_between(space, 0, 1 << 47) == made.pages
    assert follow(Held(memory), X86(4), made.root, 0).physical == made.root


def test_an_unreadable_page_table_is_reported_and_others_are_read() -> None:
    memory = a_machine()
    made = memory.made[3]
    at = memory.get(memory.entry(made, 0x7FFF_F7A0_0000, 2)) & 0x000F_FFFF_FFFF_F000
    source = Held(memory, [(at, at + PAGE)])
    space = mapped(source, X86(4), made.root, 0, 1 << 47)
    assert space.problems == [f"PT at {at:#x}, for 0x7ffff7a00000 and on, could not be read: nobody answers"]
    assert len(frames_between(space, 0, 1 << 47)) == 5


def test_aarch64_pages_and_blocks() -> None:
    memory = Memory()
    tables = [memory.page() for _ in range(4)]
    virtual = 0x0000_AAAA_BBBB_C000
    indices = [virtual >> shift & 511 for shift in (39, 30, 21, 12)]
    for table, following, index in zip(tables, tables[1:], indices, strict=False):
        memory.put(table + 8 * index, following | 3)
    # Read-only and clean by bit 7, but writable by DBM; not executable for the user.
    memory.put(tables[3] + 8 * indices[3], 0x0234_5000 | 3 | 1 << 6 | 1 << 7 | 1 << 10 | 1 << 51 | 1 << 53 | 1 << 54)
    memory.put(tables[2] + 8 * (indices[2] + 1), 0x0240_0000 | 1 | 1 << 6 | 1 << 7 | 1 << 10 | 1 << 53)
    way = follow(Held(memory), Aarch64(4), tables[0], virtual + 8)
    assert (way.physical, str(way.rights)) == (0x0234_5008, "rw- user")
    block = follow(Held(memory), Aarch64(4), tables[0], (virtual & -(2 << 20)) + (2 << 20) + 0x4567)
    assert (block.physical, block.size, str(block.rights)) == (0x0240_4567, 2 << 20, "r-x user")
    assert not Aarch64(4).canonical(0xFFFF_8000_0000_0000)


@pytest.mark.parametrize(
    ("levels", "address", "right"),
    [
        (4, 0x7FFF_FFFF_FFFF, True), (4, 0x8000_0000_0000, False), (4, 0xFFFF_8000_0000_0000, True), (4, 0xFF11_0000_0000_0000, False),
        (5, 0x8000_0000_0000, True), (5, 0xFF11_0000_0000_0000, True), (5, 1 << 56, False),
    ],
)  # fmt: skip
def test_canonical_addresses(levels: int, address: int, right: bool) -> None:
    assert X86(levels).canonical(address) == right


# --- code -------------------------------------------------------------------------------------------------------------


def code_of(memory: Memory, pid: int, *, with_header: bool = False) -> tuple[bytes, list[tuple[int, int, str]]]:
    kernel = kernel_of(Held(memory))
    process = next(p for p in list_processes(kernel).processes if p.pid == pid)
    dump = dump_code(kernel, X86(4), process, with_header=with_header)
    return dump.data, dump.missing


def test_code_is_joined_from_scattered_pages_with_holes_listed() -> None:
    memory = a_machine()
    places = [memory.made[3].pages[0x5555_5555_4000 + n * PAGE] for n in (0, 1, 3)]
    assert places[1] != places[0] + PAGE, "who reads on in physical memory reads something else"
    data, missing = code_of(memory, 647)
    wanted = program(5 * PAGE + 0xDB0)
    assert data == wanted[: 2 * PAGE] + bytes(PAGE) + wanted[3 * PAGE :]
    assert missing == [(0x5555_5555_6000, 0x5555_5555_7000, "not in memory")]


def test_code_that_begins_within_a_page_and_behind_its_header() -> None:
    memory = Memory()
    made = memory.add(9, "daemon")
    memory.map(made, 0x40_0000, program(PAGE), PRESENT | USER | NX)
    text = program(PAGE + 100, header=False)
    memory.map_text(made, 0x40_1100, text)
    assert code_of(memory, 9)[0] == text
    data, missing = code_of(memory, 9, with_header=True)
    assert data == program(PAGE) + bytes(0x100) + text
    assert missing == []


@pytest.mark.parametrize(
    ("start", "end"), [(0x5000, 0x5000), (0x6000, 0x5000), (0x1000, 0x1000 + (2 << 30)), (2**64 - PAGE, 2**64 - 1)]
)
def test_bounds_that_cannot_be_are_refused(start: int, end: int) -> None:
    memory = a_machine()
    mm = memory.mm(memory.made[3])
    memory.put(mm + LAYOUT.mm_struct.start_code, start)
    memory.put(mm + LAYOUT.mm_struct.end_code, end)
    with pytest.raises(RunError, match=f"no code lies from {start:#x} to {end:#x}"):
        code_of(memory, 647)


def test_a_process_that_began_another_program_meanwhile_is_not_dumped() -> None:
    memory = a_machine()
    source = Held(memory)
    kernel = kernel_of(source)
    cron = next(p for p in list_processes(kernel).processes if p.pid == 647)
    page = memory.made[3].pages[0x5555_5555_4000]

    def exec_(_: int) -> None:
        memory.put(memory.made[3].task + LAYOUT.task_struct.mm, memory.virtual(page))

    source.meanwhile = exec_
    with pytest.raises(RunError, match="ended or executed another program"):
        dump_code(kernel, X86(4), cron, with_header=False)


# --- the command line -------------------------------------------------------------------------------------------------


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    """The options that lead to a machine's memory."""
    image = a_machine().write(tmp_path / "memory.raw")
    profile, symbols = write_profile(tmp_path / "host.toml"), write_symbols(tmp_path / "System.map")
    return ["--image", image, "--profile", profile, "-s", symbols]


def test_processes_prints_the_published_table(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["introspect", "processes", *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "PhyAddr              PID STAT COMMAND",
        "0x0000000160aa40       0 R    swapper/0",
        "0x00000000a00000       1 S    systemd",
    ]
    assert lines[3].endswith("2 S    [kthreadd]")
    assert status(["introspect", "processes", *options, "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["kernel"]["kaslr_offset"] == hex(MOVED)
    assert [(p["pid"], p["ppid"]) for p in document["processes"]][-2:] == [(655, 1), (662, 647)]


@pytest.mark.parametrize("kernel", ["made", "this"])
def test_the_layout_of_a_kernels_btf_leads_through_a_memory_of_that_layout(
    kernel: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = LIVE
    if kernel == "made":
        file = tmp_path / "made.btf"
        file.write_bytes(a_kernel())
    elif not LIVE.exists():
        pytest.skip("this kernel has no /sys/kernel/btf/vmlinux")
    memory = a_machine(layout_from_btf(read_btf(str(file)), str(file)))
    image, symbols = memory.write(tmp_path / "memory.raw"), write_symbols(tmp_path / "System.map")
    there = ["--image", image, "--btf", str(file), "-s", symbols]
    assert status(["introspect", "processes", *there]) == 0
    assert [line.split()[1:3] for line in capsys.readouterr().out.splitlines()[1:]] == [
        [str(pid), letter] for pid, letter in zip((0, 1, 2, 3, 647, 655, 662), "RSSISDZ", strict=True)
    ]
    assert status(["introspect", "code", *there, "-p", "647", "-o", str(tmp_path / "code")]) == 0
    assert (tmp_path / "code").read_bytes()[: 2 * PAGE] == program(2 * PAGE)


def test_a_torn_list_prints_its_part_with_exit_status_1(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memory = a_machine()
    memory.put(memory.made[2].task + LAYOUT.task_struct.tasks, 0)
    memory.write(tmp_path / "memory.raw")
    assert status(["introspect", "processes", *options]) == 1
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 8
    assert "broken after process 3" in said.err


def test_code_writes_the_file_whole_or_not_at_all(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "code.dump"
    assert status(["introspect", "code", *options, "-p", "647", "-o", str(output)]) == 0
    said = capsys.readouterr().out
    first = a_machine().made[3].pages[0x5555_5555_4000]
    assert (
        f"code area of process 647 (cron): 0x555555554000-0x555555559db0, from {first:#x} on in physical memory" in said
    )
    assert "ELF 64-bit shared object, x86-64, entry 0x1040, little-endian" in said
    assert "missing: 0x555555556000-0x555555557000, not in memory; zero in the file" in said
    kept = output.read_bytes()
    assert len(kept) == 5 * PAGE + 0xDB0
    for pid, message in (
        ("2", "is a kernel thread"),
        ("999", "there is no process 999"),
        ("655", "no code lies"),
    ):
        assert status(["introspect", "code", *options, "-p", pid, "-o", str(output)]) == 1
        assert message in capsys.readouterr().err
    assert output.read_bytes() == kept
    assert sorted(path.name for path in tmp_path.iterdir()) == ["System.map", "code.dump", "host.toml", "memory.raw"]


def test_pages_shows_one_way_and_all_that_is_mapped(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["introspect", "pages", *options, "-p", "647"]) == 0
    table = capsys.readouterr().out
    assert "555555554000-555555556000" in table
    assert "24 KiB in memory, found by reading 7 tables" in table
    assert all(len(line) <= 80 for line in table.splitlines())
    assert status(["introspect", "pages", *options, "-p", "647", "-a", "0x7ffff7a00000"]) == 0
    way = capsys.readouterr().out
    stack = a_machine().made[3].pages[0x7FFF_F7A0_0000]
    assert f"0x7ffff7a00000 is {stack:#x} in physical memory, in a page of 4 KiB, rw- user" in way
    assert "61 20 73 74 61 63 6b" in way
    assert all(len(line) <= 80 for line in way.splitlines())
    assert status(["introspect", "pages", *options, "-p", "647", "-a", "0x1000"]) == 1
    assert "has no physical address: not present" in capsys.readouterr().out
    root = a_machine().made[3].root
    assert status(["introspect", "pages", *options[:2], "--root", hex(root), "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert sum(len(mapping["frames"]) for mapping in document["mappings"]) == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["processes", "--image", "{image}"], "give either --btf FILE"),
        (["processes", "--image", "{image}", "--profile", "{profile}"], "give either --symbols FILE"),
        (["processes"], "give the memory to read: either --image FILE or --adapter IP"),
        (
            ["processes", "--image", "{image}", "--adapter", "127.0.0.2"],
            "give the memory to read: either --image FILE or --adapter IP",
        ),
        (
            ["processes", "--adapter", "10.0.0.1", "--profile", "{profile}", "--init-task", "1"],
            "--allow-remote permits it",
        ),
        (["processes", "--init-task", "task"], "is not a number such as"),
        (["processes", "--search", "lots"], "lots"),
        (["pages", "--image", "{image}"], "give the process (-p PID) or the root of its page tables"),
        (["pages", "--image", "{image}", "--root", "0", "-a", "0x800000000000"], "no address has these upper bits"),
        (["code", "--image", "{image}", "-p", "1", "-o", "{image}"], "both name"),
    ],
)
def test_bad_input_is_exit_status_2(
    options: list[str], arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    named = {"image": options[1], "profile": options[3]}
    assert status(["introspect", *(argument.format(**named) for argument in arguments)]) == 2
    assert message in capsys.readouterr().err


@pytest.fixture
def adapter(tmp_path: Path) -> Iterator[list[str]]:
    """An adapter in another process, with a machine's memory behind it; the options that lead there."""
    image = a_machine().write(tmp_path / "memory.raw")
    local, remote = own_address(), own_address()
    serve = [
        "adapter",
        "-l",
        remote,
        "--peer",
        local,
        "--memory",
        "64MiB",
        "--load-memory",
        image,
        "--seconds",
        "60",
        "--quiet",
    ]
    process = subprocess.Popen([sys.executable, "-m", "tlplab", *serve])
    try:
        until = time.monotonic() + 30
        while True:
            try:
                _core.config_read(End(local, remote), 0)
                break
            except RunError:
                assert process.poll() is None, "the adapter ended"
                assert time.monotonic() < until, "the adapter does not answer"
        yield ["-l", local, "-r", remote]
    finally:
        process.kill()
        process.wait()


def test_dma_through_an_adapter_shows_the_processes_of_the_image(
    options: list[str], adapter: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for number, memory in enumerate((options[:2], adapter)):
        there = [*memory, *options[2:]]
        assert status(["introspect", "processes", *there]) == 0
        assert status(["introspect", "pages", *there, "-p", "647"]) == 0
        assert status(["introspect", "pages", *there, "-p", "647", "-a", "0x7ffff7a00000"]) == 0
        assert status(["introspect", "code", *there, "-p", "647", "-o", str(tmp_path / f"{number}.dump")]) == 0
        said.append(capsys.readouterr().out.replace(f"{number}.dump", "N.dump"))
    assert said[0] == said[1]
    assert (tmp_path / "0.dump").read_bytes() == (tmp_path / "1.dump").read_bytes()
    # Behind the end of memory the adapter refuses, and says so.
    assert status(["introspect", "pages", *adapter, "--root", "0x7000000"]) == 1
    assert "unsupported request (UR)" in capsys.readouterr().err


def test_an_absent_adapter_is_reported(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = ["-l", own_address(), "-r", own_address(), "-b", "1b:00.0"]
    assert status(["introspect", "processes", *nowhere, *options[2:], "--search", "4MiB"]) == 1
    assert "none of the 3 possible addresses of init_task is readable" in capsys.readouterr().err


def test_a_missing_file_is_named(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["introspect", "processes", "--image", "/nowhere/memory", *options[2:]]) == 2
    assert "/nowhere/memory: No such file or directory" in capsys.readouterr().err


def test_the_tables_have_the_size_that_the_processor_reads() -> None:
    assert struct.calcsize("<512Q") == PAGE
    assert TEXT & (PRESENT | USER) == PRESENT | USER
