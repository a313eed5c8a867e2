# SPDX-License-Identifier: MIT OR Apache-2.0
"""The TRN shim alone: all TLPs come back, and at the full rate."""

from __future__ import annotations

import itertools
import random
from typing import Any

import cocotb
from bench import chance
from cases_model import request, start
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.pcie.core.tlp import CplStatus, Tlp, TlpType
from cocotbext.pcie.core.utils import PcieId

WRITES = [TlpType.MEM_WRITE, TlpType.MEM_WRITE_64]
READS = [TlpType.MEM_READ, TlpType.MEM_READ_64]


def completion(lower: int, words: int, tag: int, source: random.Random) -> Tlp:
    tlp = Tlp()
    tlp.fmt_type = TlpType.CPL_DATA
    tlp.status = CplStatus.SC
    tlp.requester_id = PcieId(4, 5, 6)
    tlp.tag = tag
    tlp.lower_address = lower
    tlp.byte_count = 4 * words
    tlp.set_data(source.randbytes(4 * words))
    return tlp


async def check(dut: Any, device: Any, tlps: list[Tlp], cycles: int) -> None:
    """All come back as they were, reads among themselves and the others among themselves in their order."""
    back: list[Tlp] = []
    device.on_sent.append(back.append)
    for tlp in tlps:
        device.deliver(tlp)
    for _ in range(cycles):
        if len(back) == len(tlps):
            break
        await RisingEdge(dut.pcie_clk)
    device.on_sent.remove(back.append)
    for reads in (False, True):
        seen = [bytes(tlp.pack()) for tlp in back if (tlp.fmt_type in READS) == reads]
        assert seen == [bytes(tlp.pack()) for tlp in tlps if (tlp.fmt_type in READS) == reads]


@cocotb.test(timeout_time=800, timeout_unit="us")
async def all_comes_back(dut: Any) -> None:
    """Every first lane and number of words, both header sizes, with and without pauses."""
    dut.loop_cpl.value = 0
    dut.hold.value = 0
    device = await start(dut)
    source = random.Random(1)
    every = [
        request(source.choice(WRITES), 0x4000_0000 + 4 * lane, words, lane, source)
        for lane in range(8)
        for words in range(1, 18)
    ]
    for tlp in every:
        if tlp.fmt_type == TlpType.MEM_WRITE_64:
            tlp.address += 0x7_0000_0000
    await check(dut, device, every, 6000)
    device.rx_pause, device.tx_pause = chance(0.4, 2), chance(0.4, 3)
    mixed = every + [request(READS[tag % 2], (tag % 2) << 33 | 4 * tag, tag + 1, tag, source) for tag in range(40)]
    source.shuffle(mixed)
    await check(dut, device, mixed[:90], 9000)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def completions_come_back(dut: Any) -> None:
    """Completions come back for reads from every lane."""
    dut.loop_cpl.value = 0
    dut.hold.value = 0
    device = await start(dut)
    source = random.Random(1)
    await check(dut, device, [request(READS[0], 0x100, 1, tag, source) for tag in range(32)], 500)
    dut.loop_cpl.value = 1
    every = [
        completion(4 * lane, words, source.randrange(32), source)
        for lane in range(8)
        for words in (1, 2, 3, 8, 9, 15, 16)
    ]
    every += [completion(4 * lane, 5, tag, source) for lane in range(8) for tag in range(8)]
    bare = completion(0, 1, 3, source)
    bare.fmt_type, bare.status, bare.data, bare.length = TlpType.CPL, CplStatus.UR, bytearray(), 0
    await check(dut, device, [*every, bare, every[0]], 4000)


@cocotb.test(timeout_time=800, timeout_unit="us")
@cocotb.parametrize(cpl=[0, 1])
async def a_beat_in_each_cycle(dut: Any, cpl: int) -> None:
    """256-byte writes and completions pass at the rate of the interface, both directions at once, without a bubble."""
    dut.loop_cpl.value = cpl
    dut.hold.value = 0
    device = await start(dut)
    source = random.Random(1)
    back: list[Tlp] = []
    device.on_sent.append(back.append)
    for tag in range(40):
        device.deliver(
            completion(4 * (tag % 8), 64, tag, source) if cpl else request(WRITES[0], 0x100 + 4 * tag, 64, tag, source)
        )
    while len(back) < 4:
        await RisingEdge(dut.pcie_clk)
    beats = device.beats_in, device.beats_out
    await ClockCycles(dut.pcie_clk, 300)
    passed = device.beats_in - beats[0], device.beats_out - beats[1]
    assert min(passed) == 300, f"{passed} beats in 300 cycles"


@cocotb.test(timeout_time=800, timeout_unit="us")
async def a_class_without_room_holds_no_other(dut: Any) -> None:
    """Reads wait for room of theirs while writes pass, and the other way."""
    dut.loop_cpl.value = 0
    dut.hold.value = 0
    device = await start(dut)
    device._room[1] = 0
    source = random.Random(1)
    tlps = [request(kind, 0x100, 8, tag, source) for tag in range(8) for kind in (WRITES[0], READS[0])]
    back: list[Tlp] = []
    device.on_sent.append(back.append)
    for tlp in tlps:
        device.deliver(tlp)
    await ClockCycles(dut.pcie_clk, 300)
    assert [tlp.fmt_type for tlp in back] == [WRITES[0]] * 8
    device._room[1] = 64
    await ClockCycles(dut.pcie_clk, 100)
    assert [tlp.tag for tlp in back[8:]] == list(range(8))


@cocotb.test(timeout_time=800, timeout_unit="us")
async def completions_wait_for_their_queue(dut: Any) -> None:
    """More headers than the queue behind has places for, without data that would hold them: none is lost."""
    dut.loop_cpl.value = 1
    dut.hold.value = 1
    device = await start(dut)
    source = random.Random(1)
    bare = [completion(0, 1, number % 32, source) for number in range(80)]
    for number, tlp in enumerate(bare):
        tlp.fmt_type, tlp.status, tlp.data, tlp.length = TlpType.CPL, CplStatus.UR, bytearray(), 0
        tlp.byte_count = number + 1
    task = cocotb.start_soon(check(dut, device, bare, 2000))
    await ClockCycles(dut.pcie_clk, 500)
    assert device.pending(), "the queue has room for all of them"
    dut.hold.value = 0
    await task


@cocotb.test(timeout_time=800, timeout_unit="us")
async def idle_says_that_nothing_is_inside(dut: Any) -> None:
    """Not before the last beat of a TLP on its way out was taken, however long the hard IP waits in its middle."""
    dut.loop_cpl.value = 0
    dut.hold.value = 0
    device = await start(dut)
    source = random.Random(1)
    back: list[Tlp] = []
    device.on_sent.append(back.append)
    for stopped in (0, 1, 3):  # beats that the hard IP takes
        await ClockCycles(dut.pcie_clk, 100)
        assert dut.idle.value == 1
        seen, device.beats_out = len(back), 0
        device.tx_pause = (device.beats_out == stopped for _ in itertools.count())
        device.deliver(request(WRITES[0], 0x100, 12, 1, source))
        await ClockCycles(dut.pcie_clk, 100)
        assert (device.beats_out, len(back)) == (stopped, seen)
        assert dut.idle.value == 0, f"idle after {stopped} beats of a TLP"
        device.tx_pause = None
