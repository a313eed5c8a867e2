# SPDX-License-Identifier: MIT OR Apache-2.0
"""The model of an UltraScale+ hard IP (rtl/cosim) around a module that sends all TLPs back (usp_mirror.sv), at each width."""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from test_hard_ip import ALL, COMPLETION, NON_POSTED, NS, POSTED, ROOT, Library, Model, without_make

#: In one process, as they share what is built.
pytestmark = pytest.mark.xdist_group("usp hard IP")

ID, HOST = 0x0300, 0x0008
STREAMS = {64: "", 128: "", 256: "rc", 512: "rq rc cq cc"}
Build = Callable[..., Library]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    verilator = shutil.which("verilator")
    if verilator is None:
        pytest.skip("needs Verilator: make rtl-tools")
    folder = tmp_path_factory.mktemp("usp")

    def make(width: int, straddle: str = "") -> Library:
        most = {"rq": 2, "cq": 2, "cc": 2, "rc": 4 if width == 512 else 2}
        values = {"W": width, "STALLS": 1}
        values |= {f"{name.upper()}_STARTS": most[name] for name in straddle.split()}
        out = folder / f"mirror{len(list(folder.glob('*.so')))}.so"
        options = [
            "HARD_IP=usp",
            f"STRADDLE={straddle}",
            "TOP=usp_mirror",
            "SOURCES=rtl/test/usp_mirror.sv rtl/cosim/scratch_identity.cpp",
            f"OUT={out}",
            "PARAMETERS=" + " ".join(f"-G{name}={value}" for name, value in values.items()),
            f"RTL_BIN={Path(verilator).parent}",
            "TRACE=0",
            "FAST=-O0",
            "HARNESS=-O0",
        ]
        done = subprocess.run(
            ["make", "-s", "-f", "rtl/cosim/module.mk", *options],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            env=without_make(),
        )
        if done.returncode != 0:
            raise ValueError(done.stderr)
        return Library(out, halved=False)

    return make


def header(fmt_type: int, length: int, *, poisoned: bool = False, traffic_class: int = 0, attributes: int = 0) -> int:
    high, low = attributes >> 2, attributes & 3
    return fmt_type << 24 | traffic_class << 20 | high << 18 | poisoned << 14 | low << 12 | length & 0x3FF


def pack(*dws: int, data: bytes = b"") -> bytes:
    return struct.pack(f">{len(dws)}I", *dws) + data


def request(
    write: bool, requester: int, tag: int, address: int, bes: tuple[int, int], data: bytes | int, dw0: int = 0
) -> bytes:
    """A memory request; of a read `data` is its length in DWs."""
    length = len(data) // 4 if isinstance(data, bytes) else data
    far = address >> 32 != 0
    fmt_type = (0x40 if write else 0) | (0x20 if far else 0)
    place = (address >> 32, address & 0xFFFFFFFF) if far else (address,)
    dws = (header(fmt_type, length) | dw0, requester << 16 | tag << 8 | bes[1] << 4 | bes[0], *place)
    return pack(*dws, data=data if isinstance(data, bytes) else b"")


def enabled(data: bytes, bes: tuple[int, int]) -> bytes:
    """The data behind the mirror: bytes that are not enabled are 0."""
    enables = [bes[0], *[0xF] * (len(data) // 4 - 2), *([bes[1]] if len(data) > 4 else [])]
    return bytes(byte if enables[i // 4] >> i % 4 & 1 else 0 for i, byte in enumerate(data))


def enables_of(chance: random.Random, length: int) -> tuple[int, int]:
    first = chance.choice([0xF, 0xE, 0xC, 0x8])
    last = chance.choice([0xF, 0x7, 0x3, 0x1])
    if length == 1:
        return (first & last or 0x4, 0)
    return (first, last)


def open_model(library: Library, parameters: str = "receive_stall=30\ntransmit_stall=30\n", **registers: int) -> Model:
    model = library.open(parameters)
    model.configure(id=ID, bus_master=1, mps=3, mrrs=5, **registers)
    model.all(1000 * NS)
    return model


def completions(chance: random.Random, read: tuple[int, int, int, tuple[int, int]]) -> list[tuple[bytes, bytes]]:
    """Of a read (tag, address, DWs, enables): TLPs, and the mirror's version of each."""
    tag, address, length, bes = read
    skip = (bes[0] & -bes[0]).bit_length() - 1
    end = 4 * length - 4 + (bes[1] or bes[0]).bit_length()
    start, left, made = address + skip, end - skip, []
    while left > 0:
        # Read Completion Boundary.
        most = (64 * chance.randint(1, 4)) - start % 64
        count = min(left, most)
        dws = (start % 4 + count + 3) // 4
        data = chance.randbytes(4 * dws)
        dw0, dw1 = header(0x4A, dws, traffic_class=3), HOST << 16 | left & 0xFFF
        tlp = pack(dw0, dw1, ID << 16 | tag << 8 | start & 0x7F, data=data)
        low = bytes(start % 4) + data[start % 4 : start % 4 + count] + bytes(4 * dws - start % 4 - count)
        told = ID ^ (start >> 7 & 0x1F)
        made.append((tlp, pack(dw0, ID << 16 | left & 0xFFF, told << 16 | tag << 8 | start & 0x7F, data=low)))
        start, left = start + count, left - count
    return made


@pytest.fixture(scope="module", params=STREAMS if os.environ.get("TLPDMA_LONG") else (64, 256, 512))
def library(build: Build, request: pytest.FixtureRequest) -> Library:
    built = build(request.param, STREAMS[request.param])
    built.straddles = "rq" in STREAMS[request.param]
    return built


@pytest.mark.parametrize("seed", range(3))
def test_mirrored_tlps_come_back_field_by_field(library: Library, seed: int) -> None:
    """Requests and completions of all lengths and enables, with pauses on all streams: field by field as they were given."""
    chance = random.Random(seed)
    model = open_model(library, f"receive_stall={30 * seed}\ntransmit_stall={20 * seed}\nseed={seed}\n")
    now, sent, expected, reads = 1000 * NS, [], [], []
    for tag in range(150):
        length = chance.choice([1, 1, 2, 3, chance.randint(1, 40), chance.randint(1, 256)])
        address = chance.choice([0x1000, 0x12_3456_7000]) + 4 * chance.randint(0, 300)
        bes, dw0 = enables_of(chance, length), chance.randint(0, 7) << 20 | chance.randint(0, 3) << 12
        if chance.random() < 0.5:
            data = chance.randbytes(4 * length)
            sent.append(request(True, HOST, tag, address, bes, data, dw0))
            expected.append(request(True, ID, tag, address, bes, enabled(data, bes), dw0))
        else:
            sent.append(request(False, HOST, tag, address, bes, length, dw0))
            expected.append(request(False, ID, tag, address, bes, length, dw0))
            reads.append((tag, address, length, bes))
    for tlp in sent:
        model.receive(tlp)
    now += 200_000 * NS
    tlps, taken = model.all(now)
    posted = [tlp for tlp in expected if tlp[0] & 0x40]
    assert [tlp for tlp in tlps if tlp[0] & 0x40] == posted, "posted requests keep their order"
    assert [tlp for tlp in tlps if not tlp[0] & 0x40] == [tlp for tlp in expected if not tlp[0] & 0x40]
    assert taken == [len(posted), len(reads), 0]
    pairs = [pair for read in reads for pair in completions(chance, read)]
    for tlp, _ in pairs:
        model.receive(tlp)
    tlps, taken = model.all(now + 200_000 * NS)
    assert tlps == [mirrored for _, mirrored in pairs]
    assert taken == [0, 0, len(pairs)]
    assert model.run(now + 210_000 * NS).intx == 0, "sequence numbers come back in order"
    model.close()


def test_a_mismatched_completion_gets_its_error_code(library: Library) -> None:
    model = open_model(library)
    now = 1000 * NS

    def judged(dw0: int, dw1: int, dw2: int, data: bytes = b"") -> int:
        nonlocal now
        model.receive(request(False, HOST, 5, 0x1000, (0xF, 0), 1))
        model.all(now + 2000 * NS)
        model.receive(pack(dw0, dw1, dw2, data=data))
        now += 4000 * NS
        (tlp,), _ = model.all(now)
        return int.from_bytes(tlp[8:10], "big") ^ dw2 >> 16

    good = header(0x4A, 1), HOST << 16 | 4, ID << 16 | 5 << 8, b"abcd"
    assert judged(*good) == 0
    assert judged(header(0x4A, 1, poisoned=True), *good[1:]) == 1 << 5
    assert judged(header(0x0A, 0), HOST << 16 | 1 << 13 | 4, ID << 16 | 5 << 8) == 2 << 5
    assert judged(good[0], HOST << 16 | 8, *good[2:]) == 3 << 5
    assert judged(good[0], good[1], 0x0301 << 16 | 5 << 8, good[3]) == 4 << 5
    assert judged(good[0], good[1], good[2] | 4, good[3]) == 5 << 5
    assert judged(good[0], good[1], ID << 16 | 9 << 8, good[3]) == 6 << 5
    model.close()


def test_a_completion_waits_for_posted_requests_before_it(library: Library) -> None:
    """Unless it is relaxed-ordered. A ring that is full takes no more requests."""
    model = open_model(library, "")
    model.receive(request(False, HOST, 1, 0x1000, (0xF, 0), 1))
    model.all(2000 * NS)
    for relaxed, now in ((False, 2000), (True, 102_000)):
        for _ in range(24):
            model.receive(request(True, HOST, 0, 0x1000, (0xF, 0xF), bytes(1024)))
        model.receive(
            pack(header(0x4A, 1, attributes=2 if relaxed else 0), HOST << 16 | 4, ID << 16 | 1 << 8, data=b"abcd")
        )
        assert len(model.all((now + 30_000) * NS, room=COMPLETION)[0]) == relaxed
        assert len(model.all((now + 100_000) * NS)[0]) == 24 + (not relaxed)
    model.close()


def test_requests_without_bus_mastering_are_dropped(library: Library) -> None:
    model = open_model(library)
    model.configure(bus_master=0)
    model.receive(request(True, HOST, 1, 0x1000, (0xF, 0), b"lost"))
    assert model.all(5000 * NS)[0] == []
    model.configure(bus_master=1)
    model.receive(request(True, HOST, 1, 0x1000, (0xF, 0), b"sent"))
    assert len(model.all(9000 * NS)[0]) == 1
    model.close()


def test_room_is_kept_for_each_class(library: Library) -> None:
    model = open_model(library)
    model.receive(request(True, HOST, 1, 0x1000, (0xF, 0), b"post"))
    model.receive(request(False, HOST, 2, 0x1000, (0xF, 0), 1))
    model.receive(request(True, HOST, 3, 0x1000, (0xF, 0), b"more"))
    assert [tlp[6] for tlp in model.all(4000 * NS, room=POSTED | COMPLETION)[0]] == [1], "RQ is in order"
    assert [tlp[6] for tlp in model.all(4100 * NS, room=NON_POSTED)[0]] == [2]
    assert [tlp[6] for tlp in model.all(6000 * NS, room=ALL)[0]] == [3]
    # A poisoned write is discontinued on CQ, and so is what the mirror makes of it.
    model.receive(request(True, HOST, 1, 0x1000, (0xF, 0), b"bad!", dw0=1 << 14))
    model.receive(request(True, HOST, 1, 0x1000, (0xF, 0), b"good"))
    assert [tlp[-4:] for tlp in model.all(9000 * NS)[0]] == [b"good"]
    model.close()


def test_completions_beyond_the_buffer_are_dropped(library: Library) -> None:
    model = open_model(library, "completion_headers=3\ncompletion_bytes=160\n")
    tlp = pack(header(0x4A, 1), HOST << 16 | 4, ID << 16, data=b"abcd")
    large = pack(header(0x4A, 31), HOST << 16 | 124, ID << 16, data=bytes(124))
    give = model.calls.tlplab_rtl_receive
    assert [give(model.handle, one, len(one), 255) for one in (tlp, tlp, tlp, tlp)] == [0, 0, 0, 1]
    assert model.all(5000 * NS)[1] == [0, 0, 3]
    assert [give(model.handle, one, len(one), 255) for one in (large, large, tlp, tlp)] == [0, 1, 0, 0]
    assert model.all(9000 * NS)[1] == [0, 0, 3]
    model.close()


def test_interrupts_by_its_ports_are_memory_writes(library: Library) -> None:
    model = open_model(library, msi_enable=1, msi_vectors=4, msi_data=0x40, msi_address=0xFEE0_0000, msi_mask=8)

    def ask(offset: int, data: int, until: int) -> list[bytes]:
        tlp = request(True, HOST, 0, 0x1000 + offset, (0xF, 0), struct.pack("<I", data))
        model.calls.tlplab_rtl_receive(model.handle, tlp, len(tlp), 5)
        mirrored = request(True, ID, 0, 0x1000 + offset, (0xF, 0), struct.pack("<I", data))
        return [tlp for tlp in model.all(until * NS)[0] if tlp != mirrored]

    message = request(True, ID, 0, 0xFEE0_0000, (0xF, 0), struct.pack("<I", 0x42))
    assert ask(0, 1 << 2, 3000) == [message]
    assert ask(0, 1 << 6, 5000) == [message], "vectors that were not granted"
    assert ask(0, 1 << 3, 7000) == [], "masked"
    assert ask(0x800, 7, 9000) == [], "MSI-X is not enabled"
    model.configure(msi_enable=0, msix_enable=1)
    assert ask(0, 1, 11000) == []
    assert ask(0x800, 0xABCD, 13000) == [request(True, ID, 0, 0x1_FEE0_1230, (0xF, 0), struct.pack("<I", 0xABCD))]
    model.close()


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (1, "RQ: a request of 6 DWs, 7 by its descriptor"),
        (2, "RQ: byte enables 0 .first. and 1 .last. of a request of 2 DWs"),
        (3, "RQ: tkeep has holes"),
        (4, "RQ: addr_offset is not 0"),
    ],
)
def test_a_malformed_request_of_the_core_ends_the_run(library: Library, fault: int, says: str) -> None:
    if fault == 3 and library.straddles:
        return  # there tkeep says nothing
    model = open_model(library, "")
    model.receive(request(True, HOST, 1, 0xF000_1000 | fault << 24, (0xF, 0xF), bytes(8)))
    with pytest.raises(AssertionError, match=r"at \d+\.\d+ ns: " + says):
        model.all(5000 * NS)
    model.close()


def test_an_unattachable_module_is_refused(build: Build) -> None:
    for width, straddle, says in [
        (128, "rc", "STRADDLE=rc cannot be with streams of 128 bits"),
        (96, "", "its m_axis_rq_tdata has 96 bits; it must have 64 or 128 or 256 or 512 bits"),
    ]:
        with pytest.raises(ValueError, match=f"module usp_mirror cannot be attached with HARD_IP=usp: {says}"):
            build(width, straddle)
