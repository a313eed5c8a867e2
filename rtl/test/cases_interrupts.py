# SPDX-License-Identifier: MIT OR Apache-2.0
"""MSI-X with masks, pending bits and moderation; the level of INTx with its status register."""

from __future__ import annotations

import itertools
from typing import Any

import card
import cocotb
from bench import LOW, Bench, bench
from card import INTERRUPT
from cocotb.triggers import Timer
from cocotb.utils import get_sim_time
from cocotbext.pcie.core.dllp import FcType
from scoreboard import Scoreboard, both_rings, fill, run, settle

#: The vectors' addresses: in memory of ours, where the writes can be seen.
DOOR = LOW + 0x20000


class Interrupts:
    """The posted writes that are interrupts, with the time of each in microseconds."""

    def __init__(self, b: Bench) -> None:
        self.seen: list[tuple[int, int, float]] = []
        b.device.on_sent.append(self._watch)

    def _watch(self, tlp: Any) -> None:
        if tlp.is_posted() and DOOR <= tlp.address < DOOR + 0x1000:
            self.seen.append(
                ((tlp.address - DOOR) // 16, int.from_bytes(tlp.data, "little"), get_sim_time("ns") / 1000)
            )

    def vectors(self) -> list[int]:
        return [vector for vector, _, _ in self.seen]


async def with_msix(b: Bench, masked: frozenset[int] = frozenset()) -> Interrupts:
    """Vectors 0 to 2 at their places, enabled."""
    for vector in range(4):
        await b.card.msix(vector, DOOR + 16 * vector, 0xCAFE0000 + vector, vector in masked)
    b.function.msix_cap.msix_enable = True
    b.device.show_configuration()
    await b.card.write(card.IRQ_ENABLE, 7)
    return Interrupts(b)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def each_channel_has_its_vector(dut: Any) -> None:
    """One vector for a flagged descriptor, after its data and its record; none without the flag."""
    b = await bench(dut)
    board = Scoreboard(b, 8 << 10)
    irq = await with_msix(b)
    h2c, c2h = await both_rings(b)
    await fill(board, h2c)
    assert await b.card.read(card.STATUS) & 4, "STATUS says that MSI-X is on"
    assert irq.seen == []
    heads = []

    def at_interrupt(tlp: Any) -> None:
        if tlp.is_posted() and DOOR <= tlp.address < DOOR + 0x1000:
            heads.append((h2c.done()[0], c2h.done()[0]))

    b.device.on_sent.append(at_interrupt)
    assert await run(c2h, [board.from_card(0, 3000), board.from_card(100, 700, flags=INTERRUPT)]) == 0
    await Timer(2, "us")
    assert [(vector, data) for vector, data, _ in irq.seen] == [(1, 0xCAFE0001)]
    assert await run(h2c, [board.to_card(100, 100, flags=INTERRUPT)]) == 0
    await Timer(2, "us")
    assert irq.vectors() == [1, 0]
    assert await b.card.read(card.IRQ_STATUS) == 0, "with MSI-X a bit clears itself"
    await settle(b, board)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def masked_ones_wait(dut: Any) -> None:
    """A masked vector is pending, and sent once when the mask goes; so with the function's mask."""
    b = await bench(dut)
    board = Scoreboard(b, 8 << 10)
    irq = await with_msix(b, masked=frozenset({1}))
    h2c, c2h = await both_rings(b)
    await fill(board, h2c)
    for _ in range(3):
        assert await run(c2h, [board.from_card(0, 64, flags=INTERRUPT)]) == 0
    await Timer(1, "us")
    assert irq.seen == []
    assert await b.card.read(card.MSIX_PBA) == 0b10
    await b.card.write(card.MSIX_TABLE + 16 + 12, 0)
    await Timer(1, "us")
    assert irq.vectors() == [1]
    assert await b.card.read(card.MSIX_PBA) == 0
    b.function.msix_cap.msix_function_mask = True
    b.device.show_configuration()
    await Timer(200, "ns")
    assert await run(h2c, [board.to_card(0, 64, flags=INTERRUPT)]) == 0
    await Timer(1, "us")
    assert irq.vectors() == [1]
    assert await b.card.read(card.MSIX_PBA) == 0b01
    b.function.msix_cap.msix_function_mask = False
    b.device.show_configuration()
    await Timer(1, "us")
    assert irq.vectors() == [1, 0]
    # The table reads back as it was written.
    entry = [await b.card.read(card.MSIX_TABLE + 16 + 4 * word) for word in range(4)]
    assert entry == [DOOR + 16, 0, 0xCAFE0001, 0]
    await settle(b, board)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def a_message_is_as_the_table_was(dut: Any) -> None:
    """A message in line for its turn keeps its address and data while the table changes; the next one is as the table is then."""
    b = await bench(dut)
    board = Scoreboard(b, 64 << 10)
    irq = await with_msix(b)
    h2c, c2h = await both_rings(b)
    await fill(board, h2c)
    await b.card.write(card.IRQ_ENABLE, 0)
    assert await run(h2c, [board.to_card(0, 64, flags=INTERRUPT)]) == 0
    # Writes without credits fill the line; then the interrupt is enabled.
    await c2h.submit([board.from_card(1024 * number, 1000) for number in range(64)])
    await Timer(1500, "ns")
    b.device.no_credit = {FcType.P}
    await Timer(3, "us")
    await b.card.write(card.IRQ_ENABLE, 7)
    await Timer(500, "ns")
    await b.card.write(card.MSIX_TABLE + 12, 1)
    await b.card.write(card.MSIX_TABLE, DOOR + 16 * 9)
    await Timer(500, "ns")
    b.device.no_credit = set()
    assert await c2h.finished() == 0
    assert [(vector, data) for vector, data, _ in irq.seen] == [(0, 0xCAFE0000)]
    await b.card.write(card.MSIX_TABLE + 8, 0xCAFE0009)
    await b.card.write(card.MSIX_TABLE + 12, 0)
    assert await run(h2c, [board.to_card(0, 64, flags=INTERRUPT)]) == 0
    await Timer(2, "us")
    assert [(vector, data) for vector, data, _ in irq.seen] == [(0, 0xCAFE0000), (9, 0xCAFE0009)]
    await settle(b, board)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def without_bus_master_messages_wait(dut: Any) -> None:
    """An interrupt that is due while Bus Master Enable is off is sent when it is on again."""
    b = await bench(dut)
    board = Scoreboard(b, 8 << 10)
    irq = await with_msix(b)
    h2c, _ = await both_rings(b)
    await fill(board, h2c)
    await b.card.write(card.IRQ_ENABLE, 0)
    assert await run(h2c, [board.to_card(0, 64, flags=INTERRUPT)]) == 0
    found = b.rc.find_device(b.function.pcie_id)
    await found.set_master(False)
    await Timer(500, "ns")
    await b.card.write(card.IRQ_ENABLE, 7)
    await Timer(1, "us")
    assert await b.card.read(card.IRQ_STATUS) == 1
    assert irq.seen == []
    await found.set_master()
    await Timer(1, "us")
    assert irq.vectors() == [0]
    await settle(b, board)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def moderated(dut: Any) -> None:
    """With a least gap of 5.12 us interrupts are few, and the last is not lost; a count raises at once."""
    b = await bench(dut)
    board = Scoreboard(b, 8 << 10)
    irq = await with_msix(b)
    h2c, c2h = await both_rings(b)
    await fill(board, h2c)
    await b.card.write(card.IRQ_MODERATION, 16)  # 1024 cycles of 5 ns
    start = get_sim_time("ns") / 1000
    for _ in range(6):
        assert await run(c2h, [board.from_card(16 * number, 16, flags=INTERRUPT) for number in range(10)]) == 0
    end = get_sim_time("ns") / 1000
    await Timer(6, "us")
    times = [time for _, _, time in irq.seen]
    assert 1 <= len(times) <= 2 + (end - start) / 5.12, f"{len(times)} interrupts in {end - start} us"
    gaps = [later - sooner for sooner, later in itertools.pairwise(times)]
    # The first of two may have waited for the ten writes before it, 40 bytes each at 2 GB/s, and their record: three beats,
    # and six cycles of the user's clock in `posts`.
    assert not gaps or min(gaps) >= 5.12 - 0.2 - 0.012 - 0.03, f"gaps {gaps}"
    assert times[-1] > end - 0.5, "the last completion is told"
    # After 10 descriptors at once, however short the gap.
    await b.card.write(card.IRQ_MODERATION, 10 << 16 | 0xFFFF)
    count = len(irq.seen)
    assert await run(c2h, [board.from_card(16 * number, 16, flags=INTERRUPT) for number in range(30)]) == 0
    await Timer(2, "us")
    assert 1 <= len(irq.seen) - count <= 4
    await settle(b, board)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def intx_is_a_level(dut: Any) -> None:
    """Without MSI-X: high while an enabled bit of IRQ_STATUS is set, low when the driver cleared it."""
    b = await bench(dut)
    board = Scoreboard(b, 8 << 10)
    h2c, c2h = await both_rings(b)
    await fill(board, h2c)
    assert await run(c2h, [board.from_card(0, 64, flags=INTERRUPT)]) == 0
    await Timer(300, "ns")
    assert not b.device.intx, "nothing is enabled"
    assert await b.card.read(card.IRQ_STATUS) == 0b010
    await b.card.write(card.IRQ_ENABLE, 0b011)
    await Timer(300, "ns")
    assert b.device.intx
    b.function.interrupt_disable = True
    b.device.show_configuration()
    await Timer(300, "ns")
    assert not b.device.intx, "Interrupt Disable of the command register"
    b.function.interrupt_disable = False
    b.device.show_configuration()
    await b.card.write(card.IRQ_STATUS, 0b101)
    await Timer(300, "ns")
    assert b.device.intx, "only the bits that are written as 1 are cleared"
    await b.card.write(card.IRQ_STATUS, 0b010)
    await Timer(300, "ns")
    assert not b.device.intx
    await settle(b, board)
