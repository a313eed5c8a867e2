"""The files that introspection reads: BTF, ELF, symbols, profiles, images of memory."""

from __future__ import annotations

import contextlib
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_image import LAYOUT, write_profile, write_symbols

from tlplab.errors import ExperimentError
from tlplab.introspect import elf
from tlplab.introspect.btf import Btf, Member, read_btf
from tlplab.introspect.source import Image, Range, Unreadable
from tlplab.introspect.structures import as_profile, layout_from_btf, read_profile
from tlplab.introspect.symbols import find_symbols

LIVE = Path("/sys/kernel/btf/vmlinux")


class BtfWriter:
    """Writes BTF by the kernel's description of the format, from the other side."""

    def __init__(self, order: str = "<") -> None:
        self.order = order
        self.strings = b"\0"
        self.types = b""
        self.count = 0

    def pack(self, *words: int) -> bytes:
        """Words of 32 bits."""
        return struct.pack(f"{self.order}{len(words)}I", *words)

    def name(self, text: str) -> int:
        """The offset of a name in the strings, to which it is added."""
        if not text:
            return 0
        at = len(self.strings)
        self.strings += text.encode() + b"\0"
        return at

    def type(self, kind: int, name: str, more: int, body: bytes = b"", members: int = 0, *, flag: bool = False) -> int:
        """A type; its number."""
        self.types += self.pack(self.name(name), flag << 31 | kind << 24 | members, more) + body
        self.count += 1
        return self.count

    def struct(self, name: str, size: int, members: list[tuple[str, int, int]], *, flag: bool = False) -> int:
        """A structure of (name, type, offset in bits) members."""
        body = b"".join(self.pack(self.name(label), kind, bits) for label, kind, bits in members)
        return self.type(4, name, size, body, len(members), flag=flag)

    def done(self) -> bytes:
        """The file."""
        head = struct.pack(self.order + "HBBI", 0xEB9F, 1, 0, 24)
        return head + self.pack(0, len(self.types), len(self.types), len(self.strings)) + self.types + self.strings


def a_kernel(order: str = "<") -> bytes:
    """The structures that a layout needs, with the difficulties of a real kernel's: nesting, typedefs, bit fields."""
    write = BtfWriter(order)
    integer = write.type(1, "int", 4, write.pack(32))
    char = write.type(1, "char", 1, write.pack(8))
    pid_t = write.type(8, "pid_t", write.type(8, "__kernel_pid_t", integer))
    long = write.type(1, "unsigned long", 8, write.pack(64))
    pgd_t = write.struct("", 8, [("pgd", long, 0)])
    head = write.count + 1
    write.struct("list_head", 16, [("next", head + 1, 0), ("prev", head + 1, 64)])
    write.type(2, "", head)  # a pointer, which the structure names before it stands
    mm_inner = write.struct(
        "", 96, [("pgd", write.type(2, "", pgd_t), 40 * 8), ("start_code", long, 64 * 8), ("end_code", long, 72 * 8)]
    )
    mm = write.struct("mm_struct", 96, [("", write.type(10, "", mm_inner), 0)])
    comm = write.type(3, "", 0, write.pack(char, integer, 16))
    task = write.count + 2
    inner = write.struct(
        "",
        200,
        [
            ("tasks", head, 0),
            ("mm", write.count + 4, 16 * 8),
            ("exit_state", integer, 24 * 8),
            ("pid", pid_t, 28 * 8),
            ("real_parent", write.count + 3, 32 * 8),
            ("comm", comm, 40 * 8),
        ],
    )
    members = [
        ("__state", integer, 24 * 8),
        ("flags", integer, 44 * 8),
        ("on_rq", integer, 1 << 24 | 388),
        ("", inner, 64 * 8),
    ]
    assert write.struct("task_struct", 264, members, flag=True) == task
    write.type(2, "", task)
    write.type(2, "", mm)
    return write.done()


@pytest.mark.parametrize("order", ["<", ">"])
def test_btf_gives_the_offsets_of_members_within_members(order: str) -> None:
    btf = Btf(a_kernel(order), "made")
    layout = layout_from_btf(btf, "made")
    assert layout.task_struct.tasks == 64
    assert layout.task_struct.pid == 64 + 28
    assert layout.task_struct.comm == 64 + 40
    assert layout.task_struct.state == 24
    assert (layout.mm_struct.pgd, layout.mm_struct.start_code, layout.mm_struct.end_code) == (40, 64, 72)
    assert (layout.list_head.next, layout.list_head.prev) == (0, 8)
    assert "on_rq" not in btf.members("task_struct"), "a bit field has no offset in bytes"
    assert btf.members("task_struct")["comm"] == Member(104, 16)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), min_size=1, max_size=4), st.integers(0, 5000))
def test_damaged_btf_is_refused_or_read_and_never_more(changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(a_kernel())
    for at, value in changes:
        data[at % len(data)] = value
    with contextlib.suppress(ExperimentError):
        layout_from_btf(Btf(bytes(data[: cut or None]), "damaged"), "damaged")


def test_types_that_refer_to_themselves_are_refused() -> None:
    write = BtfWriter()
    write.type(8, "loop", 1)
    write.struct("task_struct", 8, [("tasks", 1, 0)])
    write.struct("mm_struct", 8, [("", 3, 0)])
    btf = Btf(write.done(), "loops")
    with pytest.raises(ExperimentError, match="refers to itself"):
        btf.members("task_struct")
    with pytest.raises(ExperimentError, match="has no end"):
        btf.members("mm_struct")


@pytest.mark.skipif(not LIVE.exists(), reason="this kernel has no /sys/kernel/btf/vmlinux")
def test_this_kernels_btf_agrees_with_pahole() -> None:
    if shutil.which("pahole") is None:
        pytest.skip("pahole is not installed (apt-get install dwarves)")
    btf = read_btf(str(LIVE))
    for name in ("task_struct", "mm_struct", "list_head"):
        text = subprocess.run(["pahole", "-C", name, str(LIVE)], capture_output=True, text=True, check=True).stdout
        told = {m[1]: (int(m[2]), int(m[3])) for m in re.finditer(r"(\w+)(?:\[\d+\])*; +/\* +(\d+) +(\d+) ", text)}
        ours = {label: (member.offset, member.size) for label, member in btf.members(name).items()}
        both = told.keys() & ours.keys()
        assert len(both) > len(told) * 0.7, name
        assert {label: told[label] for label in both} == {label: ours[label] for label in both}


@pytest.mark.skipif(not LIVE.exists(), reason="this kernel has no /sys/kernel/btf/vmlinux")
def test_btf_is_found_in_the_section_of_an_elf_file(tmp_path: Path) -> None:
    objcopy = shutil.which("objcopy")
    if objcopy is None:
        pytest.skip("objcopy is not installed (apt-get install binutils)")
    (tmp_path / "made.btf").write_bytes(a_kernel())
    file = tmp_path / "vmlinux"
    run = [objcopy, "-I", "binary", "-O", "elf64-x86-64", "--rename-section", ".data=.BTF"]
    subprocess.run([*run, str(tmp_path / "made.btf"), str(file)], check=True)
    assert layout_from_btf(read_btf(str(file)), "elf") == layout_from_btf(Btf(a_kernel(), "made"), "made")


def test_a_profile_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_profile(write_profile(tmp_path / "host.toml")) == LAYOUT


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("pid = 2416", ""), "task_struct.pid: missing"),
        (("pid = 2416", "pidd = 2416"), "task_struct.pidd: there is no such key; did you mean pid?"),
        (("pid = 2416", "pid = -4"), "task_struct.pid: -4 is not an offset"),
        (("pid = 2416", "pid = true"), "task_struct.pid: True is not an offset"),
        (("[mm_struct]", "[mm]"), "mm: there is no such key; the keys are task_struct, mm_struct, list_head"),
        (("[mm_struct]", "[mm_struct"), "line 13"),
    ],
)
def test_a_mistake_in_a_profile_has_its_place(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    text = as_profile(LAYOUT, "a test")
    assert change[0] in text
    file = tmp_path / "host.toml"
    file.write_text(text.replace(*change))
    with pytest.raises(ExperimentError, match=re.escape(message)):
        read_profile(str(file))


def test_a_symbol_is_its_whole_name_with_any_type(tmp_path: Path) -> None:
    assert find_symbols(write_symbols(tmp_path / "System.map"), "init_task", "absent") == {
        "init_task": 0xFFFF_FFFF_8240_AA40
    }
    (tmp_path / "k").write_text("0000000000000000 T _stext\n0000000000000000 B init_task\n")
    with pytest.raises(ExperimentError, match="as root"):
        find_symbols(str(tmp_path / "k"), "init_task")
    (tmp_path / "n").write_text("no symbols here\n")
    with pytest.raises(ExperimentError, match="ADDRESS TYPE NAME"):
        find_symbols(str(tmp_path / "n"), "init_task")


def core(ranges: list[tuple[int, bytes]], *, kind: int = 4) -> bytes:
    """An ELF core with these (physical address, bytes), and a segment that knows no physical address."""
    header = struct.pack(
        "<4sBBBB8xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, kind, 62, 1, 0, 64, 0, 0, 64, 56, len(ranges) + 1, 0, 0, 0
    )
    offset = 64 + 56 * (len(ranges) + 1)
    rows, data = struct.pack("<IIQQQQQQ", 1, 4, offset, 0, 2**64 - 1, 16, 16, 0), b""
    for physical, part in ranges:
        at = offset + len(data)
        rows += struct.pack("<IIQQQQQQ", 1, 4, at, 2**64 - 4096, physical, len(part), len(part), 0)
        data += part
    return header + rows + data


def lime(ranges: list[tuple[int, bytes]]) -> bytes:
    """A LiME dump of the same."""
    return b"".join(struct.pack("<IIQQQ", 0x4C694D45, 1, at, at + len(part) - 1, 0) + part for at, part in ranges)


PARTS = [(0x1000, bytes(range(256)) * 16), (0x2000, b"\xaa" * 4096), (0x1_0000_0000, b"high" * 1024)]


@pytest.mark.parametrize("kind", ["core", "lime", "raw"])
def test_all_formats_give_the_same_bytes_at_the_same_addresses(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "image"
    if kind == "raw":
        (tmp_path / "high").write_bytes(PARTS[2][1])
        file.write_bytes(PARTS[0][1] + PARTS[1][1])
        image = Image([f"{file}@0x1000", f"{tmp_path / 'high'}@0x100000000"])
    else:
        file.write_bytes(core(PARTS) if kind == "core" else lime(PARTS))
        image = Image([str(file)])
    assert image.extent == 0x1_0000_1000
    asked = [(0x1FF0, 32), (0x1_0000_0004, 8), (0x0FFF, 2), (0x2FFF, 2), (0x1_0000_0FFF, 1)]
    answers = image.read_many(asked)
    assert answers[0] == PARTS[0][1][-16:] + b"\xaa" * 16, "a read goes on where two ranges meet"
    assert answers[1] == b"highhigh"
    assert answers[2:4] == [Unreadable(0x0FFF, 2, "not in the image"), Unreadable(0x2FFF, 2, "not in the image")]
    assert answers[4] == b"h"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (core(PARTS, kind=2), "a program, not a core"),
        (core([(0, b"a" * 16), (0, b"b" * 16)]), "no physical addresses"),
        (core(PARTS)[:100], "ends in its headers"),
        (lime(PARTS)[:-1] + lime(PARTS), "the next LiME header is missing"),
        (b"KDUMP   " + bytes(64), "compressed kdump"),
        (b"\x1f\x8b" + bytes(64), "gzip"),
    ],
)
def test_unreadable_images_are_refused_with_a_reason(tmp_path: Path, data: bytes, message: str) -> None:
    file = tmp_path / "image"
    file.write_bytes(data)
    with pytest.raises(ExperimentError, match=message):
        Image([str(file)])


def test_a_truncated_image_is_unreadable_behind_its_end(tmp_path: Path) -> None:
    file = tmp_path / "image"
    file.write_bytes(core(PARTS)[:-100])
    image = Image([str(file)])
    assert image.read_many([(0x1_0000_0FF0, 8)]) == [Unreadable(0x1_0000_0FF0, 8, "the image ends early")]
    assert image.ranges[0] == Range(0x1000, 0x2000, image.ranges[0].file, 64 + 56 * 4)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=6), st.integers(0, 400))
def test_damaged_elf_is_refused_or_read_and_never_more(changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(core(PARTS))
    for at, value in changes:
        data[at] = value
    whole = bytes(data[: cut or None])
    with contextlib.suppress(elf.ElfError):
        elf.read_elf(lambda offset, size: whole[offset : offset + size])
