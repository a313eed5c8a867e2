# SPDX-License-Identifier: MIT OR Apache-2.0
"""Faults of the root: the channel halts and gives the reason, no byte of another transfer suffers, and a reset mends it."""

from __future__ import annotations

from typing import Any

import card
import cocotb
from bench import HIGH, LOW, ULTRASCALE_PLUS, Bench, bench, every_case, long_run
from card import C2H, CA, H2C, HALTED, MISMATCH, POISONED, TIMED_OUT, UR, WRITE_BACK, Descriptor
from cocotb.triggers import Event, Timer
from cocotb.utils import get_sim_time
from cocotbext.pcie.core.dllp import FcType
from cocotbext.pcie.core.tlp import CplStatus, TlpType
from scoreboard import SOURCE, TARGET, Scoreboard, both_rings, fill, read_back, run, settle
from shape import (
    Fault,
    changed,
    longer,
    lost,
    off_boundary,
    poisoned,
    poisoned_within,
    status,
    twice,
    with_other_requester,
    with_other_tag,
    within,
)
from usp import USP_FAULTS

#: Code in the record, bit of ERRORS.
FAULTS: dict[str, tuple[Fault, int, int]] = {
    "unsupported request": (status(CplStatus.UR), UR, 0),
    "completer abort": (status(CplStatus.CA), CA, 1),
    "retry status": (status(CplStatus.CRS), CA, 1),
    "poisoned": (poisoned, POISONED, 2),
    "other lower address": (changed(lower_address=lambda was: was ^ 0x40), MISMATCH, 3),
    "byte count too large": (changed(byte_count=lambda was: was + 64), MISMATCH, 3),
    "byte count too small": (changed(byte_count=lambda was: was - 64), MISMATCH, 3),
    "more data than asked for": (longer, MISMATCH, 3),
    "ends off a boundary": (off_boundary, MISMATCH, 3),
    "of a locked read": (changed(fmt_type=lambda _: TlpType.CPL_LOCKED_DATA), MISMATCH, 3),
    "lost": (lost, TIMED_OUT, 4),
}
SHORT = [
    "unsupported request",
    "poisoned",
    "other lower address",
    "byte count too large",
    "ends off a boundary",
    "of a locked read",
    "lost",
]
if ULTRASCALE_PLUS:
    FAULTS |= USP_FAULTS
    SHORT += ["hard IP's time-out", "cut in the middle", "broken off when all has come"]

#: Where the victim's source lies, and the part of local memory that only it writes.
VICTIM = HIGH + SOURCE + 0x1000
PART = 0x1800

#: Until all has left that was in line when Bus Master Enable was cleared, the write of the configuration included.
IN_LINE_NS = 3000


async def one_fault(b: Bench, name: str) -> None:
    fault, code, bit = FAULTS[name]
    board = Scoreboard(b, 12 << 10)
    h2c, c2h = await both_rings(b)
    await fill(board, h2c)
    await b.card.write(card.TIMEOUT, 8)  # 2048 cycles
    b.completions.latency, b.completions.jitter = 5e-7, 5e-7
    b.completions.fault, b.completions.victim = fault, within(VICTIM, 0x1000)

    # The card reads this one, good ones before and behind it; the other channel works all the while.
    out = cocotb.start_soon(run(c2h, [board.from_card(0, 3000) for _ in range(3)]))
    first = h2c.tail
    before = [board.to_card(0xC00 + 600 * number, 600) for number in range(3)]
    await h2c.submit([*before, Descriptor(VICTIM, PART, 2000), Descriptor(LOW + SOURCE, PART, 1000)])
    seen = await h2c.finished()
    assert seen & 7 == code, f"{name}: the record says {seen:#x}, not {code}"
    assert seen & HALTED
    assert h2c.done()[0] == first + 3, "HEAD stays at the descriptor that failed"
    assert await h2c.status() & 0xF == code | HALTED
    assert await b.card.read(H2C + card.HEAD) == first + 3
    assert await b.card.read(card.ERRORS) & 1 << bit, f"{name}: ERRORS is without bit {bit}"
    assert await out == 0, "the other channel does not notice"

    # After a reset of the channel the same descriptors pass.
    await Timer(1, "us")
    b.completions.fault = None
    await h2c.reset()
    if fault is lost or name in USP_FAULTS:
        for tag in b.checker.reads:
            b.device.forget(tag)
        b.checker.reads.clear()
    await h2c.start()
    assert await run(h2c, [board.to_card(PART, 2000, host=VICTIM), board.to_card(PART + 2000, 900)]) == 0
    # PART is written anew, all other bytes are what they were.
    await read_back(b, board, c2h)
    b.checker.reads.clear()
    await settle(b, board)


@cocotb.test(timeout_time=800, timeout_unit="us")
@cocotb.parametrize(name=list(FAULTS) if long_run() else SHORT)
async def a_bad_completion(dut: Any, name: str) -> None:
    b = await bench(dut)
    await one_fault(b, name)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def poison_keeps_its_own_data_out_alone(dut: Any) -> None:
    """Poisoned data are not written; the read continues, and its other data are written."""
    b = await bench(dut)
    h2c, _ = await both_rings(b)
    was, sent = bytes([0x5A]) * 512, bytes(number * 7 & 0xFF for number in range(512))
    b.memory[VICTIM : VICTIM + 512] = was
    assert await run(h2c, [Descriptor(VICTIM, PART, 512)]) == 0
    b.memory[VICTIM : VICTIM + 512] = sent
    b.completions.fault, b.completions.victim = poisoned_within(512), within(VICTIM, 512)
    await h2c.submit([Descriptor(VICTIM, PART, 512, WRITE_BACK)])
    assert await h2c.finished() & 7 == POISONED
    assert await b.card.read(card.UNEXPECTED) == 0, "the read had ended before its last completion"
    left = await b.rc.mem_read(b.card.bar2 + PART, 512)
    assert bytes(left[:64]) == sent[:64]
    assert bytes(left[64:128]) == was[64:128], "poisoned data were written"
    assert bytes(left[128:]) == sent[128:], "data behind the poison are missing"
    b.checker.reads.clear()


@cocotb.test(timeout_time=800, timeout_unit="us")
@cocotb.parametrize(kind=["other tag", "other requester", "twice"])
async def a_completion_for_nobody(dut: Any, kind: str) -> None:
    """It is counted and dropped; the transfer ends well."""
    b = await bench(dut)
    board = Scoreboard(b, 16 << 10)
    h2c, c2h = await both_rings(b)
    await fill(board, h2c)
    before = await b.card.read(card.UNEXPECTED)

    def free() -> int:
        return next(tag for tag in range(31, -1, -1) if tag not in b.checker.reads)

    b.completions.fault = {"other tag": with_other_tag(free), "other requester": with_other_requester, "twice": twice}[
        kind
    ]
    b.completions.victim = within(HIGH + SOURCE, 0x200000)
    # One completion only: one that is doubled in the middle of a read is a wrong one of that read.
    assert await run(h2c, [board.to_card(5, 100, host=HIGH + SOURCE + 64)]) == 0
    await Timer(1, "us")
    # The UltraScale+ hard IP keeps to itself what is for another requester.
    seen = not (ULTRASCALE_PLUS and kind == "other requester")
    assert (await b.card.read(card.UNEXPECTED) > before) == seen
    assert await b.card.read(card.ERRORS) == seen << 5
    await read_back(b, board, c2h)
    await settle(b, board)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def a_late_completion(dut: Any) -> None:
    """After the timeout the tag is kept back: a late completion is dropped, and meets no other read."""
    b = await bench(dut)
    board = Scoreboard(b, 16 << 10)
    h2c, c2h = await both_rings(b)
    await fill(board, h2c)
    await b.card.write(card.TIMEOUT, 4)
    b.completions.withhold = within(VICTIM, 0x1000)
    await h2c.submit([Descriptor(VICTIM, 0, 512)])
    assert await h2c.finished() & 0xF == TIMED_OUT | HALTED
    assert b.completions.kept
    await h2c.reset()
    await h2c.start()
    b.completions.withhold = None
    # New reads run while the old answers come.
    again = cocotb.start_soon(run(h2c, [board.to_card(600 * number, 600) for number in range(8)]))
    b.completions.release()
    assert await again == 0
    assert await b.card.read(card.UNEXPECTED) >= 1
    await read_back(b, board, c2h)
    await settle(b, board)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def a_bad_descriptor_read(dut: Any) -> None:
    """Errors of descriptor reads halt the channel as those of data do."""
    b = await bench(dut)
    board = Scoreboard(b, 8 << 10)
    h2c, c2h = await both_rings(b)
    await fill(board, h2c)
    b.completions.fault, b.completions.victim = status(CplStatus.UR), within(c2h.base, 4096)
    await c2h.submit([board.from_card(0, 64)])
    assert await c2h.finished() & 0xF == UR | HALTED
    board.expected = {base: bytearray(len(part)) for base, part in board.expected.items()}
    b.completions.fault = None
    await c2h.reset()
    await c2h.start()
    assert await run(c2h, [board.from_card(100, 200)]) == 0
    await settle(b, board)


@cocotb.test(timeout_time=800, timeout_unit="us")
@cocotb.parametrize(bad=["length 0", "unknown flag", "beyond the memory"])
async def a_bad_descriptor(dut: Any, bad: str) -> None:
    """It is refused by its channel; nothing is read or written for it."""
    b = await bench(dut)
    h2c, _ = await both_rings(b)
    memory = await b.card.read(card.MEM_MIB)
    good = Descriptor(LOW + SOURCE, 0, 64)
    await h2c.submit([good, {"length 0": Descriptor(LOW + SOURCE, 0, 0), "unknown flag": Descriptor(LOW + SOURCE, 0, 64, 0x40),
                             "beyond the memory": Descriptor(LOW + SOURCE, (memory << 20) - 32, 64)}[bad]])  # fmt: skip
    assert await h2c.finished() & 0xF == 6 | HALTED
    assert h2c.done()[0] == 1
    await h2c.reset()
    await h2c.start()
    assert await run(h2c, [good]) == 0
    await b.finish()


@cocotb.test(timeout_time=800, timeout_unit="us")
@cocotb.parametrize(channel=[H2C, C2H])
async def without_bus_master(dut: Any, channel: int) -> None:
    """Bus Master Enable off: no request leaves, the channel halts, its reset ends, and it runs again when it is on."""
    b = await bench(dut)
    board = Scoreboard(b, 8 << 10)
    rings = dict(zip((H2C, C2H), await both_rings(b), strict=True))
    await fill(board, rings[H2C])
    found = b.rc.find_device(b.function.pcie_id)
    await found.set_master(False)
    await Timer(200, "ns")
    # The checker fails at any request that leaves now.
    ring = rings[channel]
    make = board.to_card if channel == H2C else board.from_card
    descriptors = [make(0, 500)]
    await ring.submit(descriptors)
    await b.card.until(channel + card.CH_STATUS, 0xF, 6 | HALTED, "refused without bus mastering")
    # The record of the halt was dropped: kept until now it would be taken for one of the new ring.
    await ring.reset()
    await ring.start()
    await found.set_master()
    assert await run(ring, descriptors) == 0
    await read_back(b, board, rings[C2H])
    await settle(b, board)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def a_reset_is_behind_its_record(dut: Any) -> None:
    """No earlier record comes after the end of a channel's reset: it would be taken for one of the new ring."""
    b = await bench(dut, lanes=1, pcie_mhz=62.5)
    h2c, c2h = await both_rings(b)
    # The way out is full, so that records wait for it.
    await c2h.submit([Descriptor(LOW + TARGET, 0, 4000) for _ in range(15)])
    stale, read = b"\xee" * 8, Event()
    b.device.on_sent.append(lambda tlp: read.set() if tlp.address == LOW + SOURCE else None)
    for _ in range(8):
        read.clear()
        await h2c.submit([Descriptor(LOW + SOURCE, 0, 64, WRITE_BACK)])
        await read.wait()
        await Timer(b.random.randint(0, 4000), "ns")
        await h2c.reset()
        h2c.memory[h2c.record : h2c.record + 8] = stale
        await Timer(4, "us")
        assert h2c.memory[h2c.record : h2c.record + 8] == stale, "a record after the reset"
        await h2c.start()
    assert await c2h.finished() == 0
    await b.finish()


@cocotb.test(timeout_time=800, timeout_unit="us")
@cocotb.parametrize(after_ns=[2000, 5000] if every_case() else [2000], late=[False, True])
async def bus_master_off_in_mid_stream(dut: Any, after_ns: int, late: bool) -> None:
    """Bus mastering ends in mid-stream: UltraScale+ drops the transfers in line, and none of them is reported as done. The host's reads are answered all the
    same; all is well after a reset."""
    b = await bench(dut)
    board = Scoreboard(b, 64 << 10)
    h2c, c2h = await both_rings(b)
    await fill(board, h2c)
    # A read that is dropped ends by its time-out: 2048 cycles.
    await b.card.write(card.TIMEOUT, 8)
    found = b.rc.find_device(b.function.pcie_id)
    descriptors = [board.from_card(1024 * number, 1000) for number in range(64)]
    await c2h.submit(descriptors)
    await Timer(after_ns, "ns")
    if late:
        # The hard IP is full of writes; those that it keeps leave when mastering is on again.
        b.device.no_credit = {FcType.P}
        await Timer(1, "us")
    b.checker.in_line_until = get_sim_time("ns") + IN_LINE_NS
    await found.set_master(False)
    if not late:
        assert await b.card.read(card.ID) == 0x544C5044
        await b.card.until(C2H + card.CH_STATUS, 0xF, 6 | HALTED, "refused without bus mastering")
        await Timer(IN_LINE_NS, "ns")
    await found.set_master()
    b.device.no_credit = set()
    for _ in range(10):
        assert await b.card.read(card.ID) == 0x544C5044
    # TRN has no word for what the hard IP has sent: rtl/README.md.
    for done in descriptors[: await b.card.read(C2H + card.HEAD) if ULTRASCALE_PLUS else 0]:
        there = b.memory[done.host : done.host + done.length]
        assert there == board.local[done.local : done.local + done.length], f"{done} is told as done"
    await c2h.reset()
    await c2h.start()
    assert await run(c2h, descriptors) == 0
    await settle(b, board)


@cocotb.test(timeout_time=900, timeout_unit="us", skip=ULTRASCALE_PLUS)
async def bus_master_off_for_a_moment(dut: Any) -> None:
    """A write of which some TLPs were refused is not told as good, although its last one left."""
    b = await bench(dut, lanes=1, pcie_mhz=62.5)
    board = Scoreboard(b, 4 << 10)
    h2c, c2h = await both_rings(b)
    await fill(board, h2c)
    last_came = 0
    for _ in range(24):
        b.memory[LOW + TARGET : LOW + TARGET + 4096] = bytes(4096)
        await c2h.submit([Descriptor(LOW + TARGET, 0, 4096)])
        # Some time between the descriptor's read and the last TLP's making.
        await Timer(b.random.randint(0, 4000), "ns")
        dut.cfg_bus_master.value = 0
        await Timer(b.random.randint(300, 1500), "ns")
        dut.cfg_bus_master.value = 1
        while await b.card.read(C2H + card.HEAD) != c2h.tail and not await c2h.status() & HALTED:
            pass
        await Timer(20, "us")
        status, came = await c2h.status(), b.memory[LOW + TARGET : LOW + TARGET + 4096]
        assert status & 0xF == (0 if came == bytes(board.local) else 6 | HALTED), f"status {status:#x}"
        if status & HALTED:
            last_came += came[-256:] == bytes(board.local[-256:])
            await c2h.reset()
            await c2h.start()
    assert last_came, "no write was refused in its middle"
    await b.finish()


@cocotb.test(timeout_time=3, timeout_unit="ms", skip=not ULTRASCALE_PLUS)
async def dropped_for_a_moment(dut: Any) -> None:
    """The hard IP drops the middle of a write, whose last TLPs are in line or not made yet and leave: it is not told as good."""
    b = await bench(dut, lanes=1)
    board = Scoreboard(b, 4 << 10)
    h2c, c2h = await both_rings(b)
    await fill(board, h2c)
    await b.card.write(card.TIMEOUT, 8)
    holes = 0
    for _ in range(12):
        b.memory[LOW + TARGET : LOW + TARGET + 4096] = bytes(4096)
        await c2h.submit([Descriptor(LOW + TARGET, 0, 4096)])
        # 16 us on this link.
        await Timer(b.random.randint(2000, 12000), "ns")
        b.checker.in_line_until = get_sim_time("ns") + IN_LINE_NS
        b.device.master(False)
        await Timer(b.random.randint(220, 400), "ns")
        b.device.master(True)
        # What was taken in between is not waited for, so nothing is answered until it has left.
        await Timer(25, "us")
        while await b.card.read(C2H + card.HEAD) != c2h.tail and not await c2h.status() & HALTED:
            pass
        halted = await c2h.status() & HALTED
        came = b.memory[LOW + TARGET : LOW + TARGET + 4096]
        assert halted or came == bytes(board.local), "a write of which TLPs were dropped is told as good"
        holes += came[-64:] == bytes(board.local[-64:]) and came != bytes(board.local)
        if halted:
            await c2h.reset()
            await c2h.start()
    assert holes, "no write lost its middle"
    b.checker.reads.clear()
    await b.finish()
