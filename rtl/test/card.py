# SPDX-License-Identifier: MIT OR Apache-2.0
"""The card as its driver sees it: registers, descriptor rings, interrupts; and the host's memory that it works on."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from cocotb.triggers import First, Timer
from cocotb.utils import get_sim_time

# Registers of BAR 0.
ID, VERSION, CONTROL, STATUS, CONFIG = 0x000, 0x004, 0x008, 0x00C, 0x010
IRQ_STATUS, IRQ_ENABLE, IRQ_MODERATION = 0x014, 0x018, 0x01C
ERRORS, UNEXPECTED, TIMEOUT, MAX_TAGS = 0x020, 0x024, 0x028, 0x02C
CYCLES, H2C_BYTES, C2H_BYTES, SCRATCH, WINDOW, MEM_MIB = 0x030, 0x038, 0x03C, 0x040, 0x044, 0x048
H2C, C2H = 0x100, 0x180
BASE, LOG2, TAIL, HEAD, FETCHED, WB, CH_CONTROL, CH_STATUS = 0x00, 0x08, 0x0C, 0x10, 0x14, 0x18, 0x20, 0x24
PIO_DESCRIPTOR, PIO_ROOM = 0x30, 0x40
MSIX_TABLE, MSIX_PBA = 0x8000, 0x9000

# CONTROL and CH_CONTROL.
ENABLE, RESET = 1, 2
RUN, CH_RESET, PIO_MODE = 1, 2, 4
# Flags of a descriptor.
INTERRUPT, WRITE_BACK = 1, 2
# CH_STATUS and the record: an error code in bits 0-2 and
HALTED, PIO_OVERRUN = 8, 1 << 8
# Error codes.
UR, CA, POISONED, MISMATCH, TIMED_OUT, NO_MASTER, WAS_RESET = 1, 2, 3, 4, 5, 6, 7


@dataclass(frozen=True)
class Descriptor:
    host: int
    local: int
    length: int
    flags: int = 0

    def pack(self) -> bytes:
        return struct.pack("<QII", self.host, self.local, self.length | self.flags << 24)


class Card:
    """Registers and memory window through the root complex."""

    def __init__(self, rc: Any, bar0: int, bar2: int) -> None:
        self.rc = rc
        self.bar0 = bar0
        self.bar2 = bar2

    async def read(self, register: int) -> int:
        return int(await self.rc.mem_read_dword(self.bar0 + register, timeout=30, timeout_unit="us"))

    async def write(self, register: int, value: int) -> None:
        await self.rc.mem_write_dword(self.bar0 + register, value)

    async def until(self, register: int, mask: int, value: int, limit: str = "register", polls: int = 200) -> int:
        for _ in range(polls):
            seen = await self.read(register)
            if seen & mask == value:
                return seen
        raise AssertionError(
            f"{limit}: register {register:#x} is {seen:#x} after {polls} reads, not {value:#x} in {mask:#x}"
        )

    async def reset(self) -> None:
        await self.write(CONTROL, RESET)
        await self.until(CONTROL, RESET, 0, "reset ends")

    async def msix(self, vector: int, address: int, data: int, masked: bool = False) -> None:
        entry = MSIX_TABLE + 16 * vector
        for place, value in enumerate((address & 0xFFFFFFFF, address >> 32, data, int(masked))):
            await self.write(entry + 4 * place, value)


class Ring:
    """One channel with its ring and write-back record in host memory."""

    def __init__(self, card: Card, memory: Any, channel: int, base: int, log2: int, record: int) -> None:
        self.card = card
        self.memory = memory
        self.channel = channel
        self.base = base
        self.log2 = log2
        self.record = record
        self.tail = 0

    async def start(self, control: int = RUN) -> None:
        card, at = self.card, self.channel
        self.tail = 0
        if self.record:
            self.memory[self.record : self.record + 8] = b"\0" * 8
        await card.write(at + BASE, self.base & 0xFFFFFFFF)
        await card.write(at + BASE + 4, self.base >> 32)
        await card.write(at + LOG2, self.log2)
        await card.write(at + WB, self.record & 0xFFFFFFFF)
        await card.write(at + WB + 4, self.record >> 32)
        await card.write(at + CH_CONTROL, control)

    async def reset(self) -> None:
        await self.card.write(self.channel + CH_CONTROL, CH_RESET)
        await self.card.until(self.channel + CH_CONTROL, CH_RESET, 0, "channel reset ends")

    def put(self, descriptors: list[Descriptor]) -> None:
        """Into the ring, without telling the card."""
        for descriptor in descriptors:
            slot = self.base + 16 * (self.tail % (1 << self.log2))
            self.memory[slot : slot + 16] = descriptor.pack()
            self.tail = (self.tail + 1) & 0xFFFFFFFF

    async def doorbell(self) -> None:
        await self.card.write(self.channel + TAIL, self.tail)

    async def submit(self, descriptors: list[Descriptor]) -> None:
        self.put(descriptors)
        await self.doorbell()

    def done(self) -> tuple[int, int]:
        """Head and status, as the card wrote them back."""
        head, status = struct.unpack("<II", self.memory[self.record : self.record + 8])
        return head, status

    async def finished(self, head: int | None = None, limit_us: float = 200.0) -> int:
        """Wait for the record to say `head` (the tail, if not given) or for a halt; its status."""
        head = self.tail if head is None else head
        end = get_sim_time("ns") + 1000 * limit_us
        while True:
            at, status = self.done()
            if at == head or status & HALTED:
                return status
            assert get_sim_time("ns") < end, (
                f"channel {self.channel:#x} is at {at} of {head} after {limit_us} us, status {status:#x}"
            )
            await Timer(200, "ns")

    async def status(self) -> int:
        return await self.card.read(self.channel + CH_STATUS)


async def within(task: Any, limit_us: float, what: str) -> Any:
    """The task's result, or an assertion that names the missing event."""
    result = await First(task, Timer(int(limit_us * 1000), "ns"))
    assert not isinstance(result, Timer), f"{what} did not come within {limit_us} us"
    return result
