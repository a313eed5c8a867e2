"""The TLPs of an NVMe command: of the model under Linux, and of the real drives in the captures of the NetTLP paper (docs/nvme.md)."""

from __future__ import annotations

import csv
import json
import os
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from guest import ROOT, needs_guest, run

from tlplab import _core
from tlplab.nettlp import capture

CAPTURES = Path(os.environ.get("TLPLAB_DATA", "/nonexistent")) / "captures"
needs_captures = pytest.mark.skipif(not CAPTURES.is_dir(), reason="needs TLPLAB_DATA with the published captures")
EXPERIMENT = ROOT / "experiments/linux/nvme-captured.toml"
PAGE = (ROOT / "docs/nvme.md").read_text(encoding="utf-8")

# Where the guest's kernel puts the drive's BAR 0; in it, the doorbells of the first pair of I/O queues.
BAR = 0xF000_0000
SUBMISSION, COMPLETION = BAR + 0x1008, BAR + 0x100C
# The interrupt controller of the guest.
MESSAGES = range(0xA_0000, 0xA_1000)
WRITE, READ = 1, 2


@dataclass(frozen=True)
class Moved:
    """The data of one command on the link."""

    requests: int
    size: int
    tags: int = 0
    """Different ones."""
    waiting: int = 0
    """Reads under way, at most."""
    completions: int = 0
    """To each read."""
    which: str = field(default="–", compare=False)
    """The tags, in the page's words."""

    def row(self) -> str:
        """The cells of the page's table."""
        kind = "MRd" if self.completions else "MWr"
        sent = f"{self.requests} {kind} of {self.size} B"
        if not self.completions:
            return f"{sent} | – | – | – | – |"
        answers = f"{self.completions} of {self.size // self.completions} B"
        return f"{sent} | {answers} | {self.tags} | {self.which} | {self.waiting} |"


@dataclass(frozen=True)
class Drive:
    """A transfer of a real drive, and how the model is made to do the same."""

    capture: str
    title: str
    """In the page's table."""
    opcode: int
    blocks: int
    block: int
    theirs: Moved
    ours: Moved
    base: int
    """The first address of the drive's data."""
    relaxed: bool

    @property
    def size(self) -> int:
        return self.blocks * self.block


ROUND = "one after the other"
P4600 = [
    Drive("p4600-write-32blk", "P4600 writes 32 blocks, 16 KiB", WRITE, 32, 512, Moved(32, 512, 16, 16, 2, "0–15, low ones first"), Moved(32, 512, 16, 16, 2, ROUND), 0xA000_0000, relaxed=True),
    Drive("p4600-write-4blk", "P4600 writes 4 blocks, 2 KiB", WRITE, 4, 512, Moved(4, 512, 4, 4, 2, "0–3"), Moved(4, 512, 4, 4, 2, ROUND), 0xA000_0000, relaxed=True),
    Drive("p4600-read-32blk", "P4600 reads 32 blocks, 16 KiB", READ, 32, 512, Moved(64, 256), Moved(64, 256), 0xA000_0000, relaxed=True),
]  # fmt: skip
PM1725A = [
    Drive("pm1725-write-4blk", "PM1725a writes 4 blocks, 16 KiB", WRITE, 4, 4096, Moved(32, 512, 32, 32, 2, "of 0–63, shuffled"), Moved(32, 512, 32, 32, 2, ROUND), 0xB000_0000, relaxed=False),
    # 121 of the writes are whole in the capture.
    Drive("pm1725-read-8blk", "PM1725a reads 8 blocks, 32 KiB", READ, 8, 4096, Moved(121, 256), Moved(128, 256), 0xA000_0000, relaxed=False),
]  # fmt: skip
DRIVES = [*P4600, *PM1725A]
AS_PM1725A = (
    "--set", "device.nvme0.block=4KiB", "--set", "device.nvme0.tags=64",
    "--set", "device.nvme0.link=gen3 x8", "--set", "switch.sw0.link=gen3 x8",
)  # fmt: skip
names = pytest.mark.parametrize("drive", DRIVES, ids=lambda drive: drive.capture)

# MPS and MRRS; MRd, completions and MWr for 16 KiB.
SIZES = [(128, 128, 128, 128, 128), (128, 512, 32, 128, 128), (256, 512, 32, 64, 64), (512, 4096, 4, 32, 32)]


@dataclass(frozen=True)
class Tlp:
    """A TLP of the link above the drive."""

    by_drive: bool
    kind: str
    address: int
    """Of requests."""
    size: int
    tag: int
    """Of no meaning in posted requests."""
    attributes: tuple[str, ...]
    data: bytes

    def beside(self) -> tuple[bool, str, int]:
        """The sender, the kind and the size."""
        return self.by_drive, self.kind, self.size


def tlps(path: Path, *filters: str, drive: str) -> list[Tlp]:
    """The TLPs of a capture."""
    dump = _core.Dump(
        str(path), ["type=tlp", *filters], json=True, time=1, verbose=True, limit=None, copy=None, quiet=False
    )
    text = ""
    while (some := dump.step()) is not None:
        text += some
    return [of(json.loads(line), drive) for line in text.splitlines()]


def of(frame: dict[str, Any], drive: str) -> Tlp:
    """The TLP of a frame."""
    tlp = frame["tlp"]
    return Tlp(
        frame["from"] == drive, tlp["kind"], int(tlp.get("address", "0"), 16), 4 * tlp.get("length", 0), tlp.get("tag", 0),
        tuple(tlp.get("attr", ())), bytes.fromhex(frame.get("data") or ""),
    )  # fmt: skip


@dataclass(frozen=True)
class Command:
    """An I/O command and all TLPs from its doorbell to that of its completion."""

    tlps: tuple[Tlp, ...]

    @property
    def entry(self) -> bytes:
        """The 64 bytes that were fetched."""
        return self.tlps[2].data

    @property
    def opcode(self) -> int:
        return self.entry[0]

    @property
    def blocks(self) -> int:
        return int.from_bytes(self.entry[48:50], "little") + 1

    def list_address(self, size: int) -> int | None:
        """Of the list with the data's addresses, if there is one."""
        first, second = struct.unpack_from("<QQ", self.entry, 24)
        if self.entry[1] >> 6:
            return int(first) if self.entry[39] >> 4 == 3 else None
        return int(second) if size > 8192 - first % 4096 else None

    def pieces(self, size: int) -> Iterator[tuple[int, int]]:
        """Addresses and bytes of the data, in their order."""
        place = self.list_address(size)
        listed = b"" if place is None else self.answer(place)
        if self.entry[1] >> 6:
            for at in range(0, len(listed), 16):
                yield struct.unpack_from("<QI", listed, at)
            if not listed:
                yield struct.unpack_from("<QI", self.entry, 24)
            return
        first, second = struct.unpack_from("<QQ", self.entry, 24)
        others = [one[0] for one in struct.iter_unpack("<Q", listed)] or [second]
        for address in (first, *others):
            part = min(4096 - address % 4096, size)
            if part:
                yield address, part
            size -= part

    def answer(self, address: int) -> bytes:
        """The data that were read at that address."""
        (read,) = [number for number, tlp in enumerate(self.tlps) if (tlp.kind, tlp.address) == ("MRd", address)]
        tag = self.tlps[read].tag
        return next(tlp.data for tlp in self.tlps[read:] if tlp.kind == "CplD" and tlp.tag == tag)

    def data(self, size: int) -> list[Tlp]:
        """The requests that move the data."""
        pieces = list(self.pieces(size))
        return [
            tlp for tlp in self.tlps
            if tlp.by_drive and tlp.kind in ("MRd", "MWr") and any(at <= tlp.address < at + part for at, part in pieces)
        ]  # fmt: skip


def commands(path: Path) -> list[Command]:
    """The I/O commands of a guest that gives one at a time."""
    found: list[Command] = []
    under_way: list[Tlp] | None = None
    for tlp in tlps(path, "host=nvme0", drive="nvme0"):
        if tlp.kind == "MWr" and tlp.address == SUBMISSION:
            assert under_way is None
            under_way = []
        if under_way is not None:
            under_way.append(tlp)
            if tlp.kind == "MWr" and tlp.address == COMPLETION:
                found.append(Command(tuple(under_way)))
                under_way = None
    return found


def cut(pieces: Sequence[tuple[int, int]], limit: int) -> list[tuple[int, int]]:
    """Pieces cut at multiples of a limit."""
    requests = []
    for address, part in pieces:
        end = address + part
        while address < end:
            size = min(limit - address % limit, end - address)
            requests.append((address, size))
            address += size
    return requests


def moved(tlps: Sequence[Tlp], data: Sequence[Tlp]) -> Moved:
    """The requests, sizes and tags of the data on the link. Fails if the data come in several sizes."""
    ((kind, size),) = {(tlp.kind, tlp.size) for tlp in data}
    if kind == "MWr":
        return Moved(len(data), size)
    addresses = {tlp.address for tlp in data}
    open_reads: dict[int, int] = {}
    waiting = 0
    answers: Counter[int] = Counter()
    for tlp in tlps:
        if tlp.kind == "MRd" and tlp.address in addresses:
            open_reads[tlp.tag] = size
            waiting = max(waiting, len(open_reads))
        elif tlp.kind == "CplD" and tlp.tag in open_reads:
            answers[tlp.size] += 1
            open_reads[tlp.tag] -= tlp.size
            if open_reads[tlp.tag] == 0:
                del open_reads[tlp.tag]
    assert not open_reads
    assert len(answers) == 1
    return Moved(len(data), size, len({tlp.tag for tlp in data}), waiting, answers.total() // len(data))


# The real drives.


@names
def test_the_page_shows_both(drive: Drive) -> None:
    assert f"| {drive.title} | captured | {drive.theirs.row()}" in PAGE
    assert f"| | model | {drive.ours.row()}" in PAGE.split(drive.title, 1)[1].split("captured", 2)[1]


@pytest.mark.parametrize("drive", [drive for drive in DRIVES if drive.capture != "pm1725-read-8blk"], ids=lambda drive: drive.capture)  # fmt: skip
def test_the_traces_of_tlplab_match_the_page(drive: Drive) -> None:
    lines = (ROOT / f"experiments/traces/{drive.capture}.csv").read_text().splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    expected = cut([(drive.base, drive.size)], drive.theirs.size)
    assert [(int(row["address"], 16), int(row["bytes"])) for row in rows] == expected
    assert {row["op"] for row in rows} == {"read" if drive.opcode == WRITE else "write"}
    assert {row["attributes"] for row in rows} == {"RO" if drive.relaxed else ""}
    if drive.opcode == WRITE:
        assert len({row["tag"] for row in rows}) == drive.theirs.tags


def test_the_p4600_asks_in_batches_and_the_pm1725a_shuffles_its_tags() -> None:
    def column(name: str, what: str) -> list[int]:
        lines = (ROOT / f"experiments/traces/{name}.csv").read_text().splitlines()
        return [int(row[what]) for row in csv.DictReader(line for line in lines if not line.startswith("#"))]

    times = column("p4600-write-32blk", "time_ns")
    begins = [0, *(number + 1 for number, (one, next_) in enumerate(pairwise(times)) if next_ - one > 50_000), 32]
    assert [end - begin for begin, end in pairwise(begins)] == [16, 3, 13]
    tags = column("p4600-write-32blk", "tag")
    assert tags == [*range(16), 0, 1, 2, 0, 1, 3, 4, 5, 6, 7, 8, 2, 9, 10, 11, 12]
    tags = column("pm1725-write-4blk", "tag")
    assert (tags[:6], min(tags), max(tags)) == ([5, 24, 6, 22, 48, 19], 0, 63)
    # From one request to the next: what the adapter takes, whatever the device and the request.
    for name in ("p4600-read-32blk", "p4600-write-4blk", "pm1725-write-4blk"):
        gaps = sorted(two - one for one, two in pairwise(column(name, "time_ns")))
        assert 1350 < gaps[len(gaps) // 2] < 1500, name


@needs_captures
@names
def test_the_captures_match_the_page(drive: Drive) -> None:
    found = tlps(CAPTURES / f"{drive.capture}.pcap", drive="192.168.10.1")
    requests = [tlp for tlp in found if tlp.kind in ("MRd", "MWr")]
    assert moved(found, requests) == drive.theirs
    expected = cut([(drive.base, drive.size)], drive.theirs.size)
    assert [(tlp.address, tlp.size) for tlp in requests] == expected[: drive.theirs.requests]
    assert {tlp.attributes for tlp in requests} == {("RO",) if drive.relaxed else ()}
    # Neither queues nor interrupts: those went to the host's memory.
    assert {tlp.kind for tlp in found} == ({"MRd", "CplD"} if drive.opcode == WRITE else {"MWr"})


@needs_captures
def test_the_damaged_frames_are_the_end_of_the_32_kib() -> None:
    path = CAPTURES / "pm1725-read-8blk.pcap"
    assert len(capture.summarise(str(path))["malformed"]) == 46
    # The headers that are left among them lead to the last 256 bytes.
    assert bytes.fromhex("40000040190000ffa0007f00") in path.read_bytes()


# The model under Linux.


@pytest.fixture(scope="module")
def guests(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[Command]]:
    """The commands of guests with drives of these bytes a block, one like each real drive."""
    needs_guest()
    found = {}
    for block, options in ((512, ()), (4096, AS_PM1725A)):
        folder = tmp_path_factory.mktemp("guest")
        guest = run(folder, *options, "--pcap", folder / "nvme.pcapng", experiment=EXPERIMENT)
        assert guest.status == 0, guest.errors
        found[block] = commands(folder / "nvme.pcapng")
    return found


def only(commands: Sequence[Command], opcode: int, blocks: int) -> Command:
    """The last command that does this; before them come those with which Linux looks for partitions."""
    return [command for command in commands if (command.opcode, command.blocks) == (opcode, blocks)][-1]


@pytest.mark.full
@names
def test_the_model_moves_the_same_data_by_the_same_tlps(guests: dict[int, list[Command]], drive: Drive) -> None:
    command = only(guests[drive.block], drive.opcode, drive.blocks)
    data = command.data(drive.size)
    assert moved(command.tlps, data) == drive.ours
    # Each page from its beginning, the pages in their order, nothing twice.
    assert [(tlp.address, tlp.size) for tlp in data] == cut(list(command.pieces(drive.size)), drive.ours.size)
    assert {tlp.attributes for tlp in command.tlps} == {()}
    if drive.opcode == WRITE:
        tags = 16 if drive.block == 512 else 64
        assert [tlp.tag for tlp in data] == [(data[0].tag + number) % tags for number in range(len(data))]


@pytest.mark.full
@names
def test_nothing_else_is_on_the_link(guests: dict[int, list[Command]], drive: Drive) -> None:
    command = only(guests[drive.block], drive.opcode, drive.blocks)
    check_queues(command, drive.size)


def check_queues(command: Command, size: int) -> None:
    """A command's TLPs besides its data: doorbell, entry, list, completion, interrupt, doorbell."""
    data = set(command.data(size))
    others = [tlp for tlp in command.tlps if tlp not in data and not is_answer(tlp, command, data)]
    place = command.list_address(size)
    listed = [] if place is None else [(True, "MRd", len(command.answer(place))), (False, "CplD", len(command.answer(place)))]  # fmt: skip
    assert [tlp.beside() for tlp in others] == [
        (False, "MWr", 4), (True, "MRd", 64), (False, "CplD", 64), *listed, (True, "MWr", 16), (True, "MWr", 4), (False, "MWr", 4),
    ]  # fmt: skip
    completion, message = others[-3:-1]
    assert completion.data[12:14] == command.entry[2:4]
    assert message.address in MESSAGES
    # Behind all of the data.
    assert command.tlps[-3:] == (completion, message, others[-1])


def is_answer(tlp: Tlp, command: Command, data: set[Tlp]) -> bool:
    """True if a completion carries data, and not an entry or a list."""
    if tlp.kind != "CplD":
        return False
    asked = [one for one in command.tlps[: command.tlps.index(tlp)] if one.kind == "MRd" and one.tag == tlp.tag]
    return asked[-1] in data


@pytest.mark.full
@pytest.mark.parametrize(("mps", "mrrs", "reads", "completions", "writes"), SIZES)
def test_payload_and_read_request_sizes_decide_how_many(
    tmp_path: Path, mps: int, mrrs: int, reads: int, completions: int, writes: int
) -> None:
    assert f"| {mps} B | {mrrs} B | {reads} of {mrrs} B | {completions} of {16384 // completions} B | {writes} of {mps} B |" in PAGE  # fmt: skip
    needs_guest()
    options = [f"defaults.link.mps={mps}B", f"device.nvme0.mps={mps}B", f"device.nvme0.mrrs={mrrs}B"]
    script = "set -e; dd if=/dev/zero of=/dev/nvme0n1 bs=16k count=1 oflag=direct; dd if=/dev/nvme0n1 of=/dev/null bs=16k count=1 iflag=direct"
    sets = [word for option in options for word in ("--set", option)]
    guest = run(tmp_path, *sets, "--pcap", tmp_path / "nvme.pcapng", "--run", script)
    assert guest.status == 0, guest.errors
    found = commands(tmp_path / "nvme.pcapng")
    write, read = (only(found, opcode, 32) for opcode in (WRITE, READ))
    # The block layer's commands come with a list of pages.
    assert (write.entry[1] >> 6, read.entry[1] >> 6) == (0, 0)
    got = moved(write.tlps, write.data(16384))
    assert (got.requests, got.size, got.completions * got.requests) == (reads, mrrs, completions)
    assert moved(read.tlps, read.data(16384)) == Moved(writes, mps)
    for command, limit in ((write, mrrs), (read, mps)):
        assert [(tlp.address, tlp.size) for tlp in command.data(16384)] == cut(list(command.pieces(16384)), limit)
        check_queues(command, 16384)


@pytest.mark.full
def test_only_commands_beyond_two_pages_read_a_prp_list(tmp_path: Path) -> None:
    needs_guest()
    sizes = {"4k": 0, "8k": 0, "16k": 24, "64k": 120}
    script = "; ".join(f"dd if=/dev/zero of=/dev/nvme0n1 bs={size} count=1 oflag=direct" for size in sizes)
    guest = run(tmp_path, "--pcap", tmp_path / "nvme.pcapng", "--run", script)
    assert guest.status == 0, guest.errors
    found = [command for command in commands(tmp_path / "nvme.pcapng") if command.opcode == WRITE]
    listed = []
    for command, kibibytes in zip(found, (4, 8, 16, 64), strict=True):
        place = command.list_address(kibibytes << 10)
        listed.append(0 if place is None else len(command.answer(place)))
        check_queues(command, kibibytes << 10)
    assert listed == list(sizes.values())
