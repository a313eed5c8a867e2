# SPDX-License-Identifier: MIT OR Apache-2.0
"""The bench: cocotbext-pcie's root complex, a model of the hard IP, and one of our tops as the device under test."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from card import Card, Ring
from checker import Checker
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, Timer
from cocotbext.axi import MemoryRegion
from cocotbext.pcie.core import RootComplex
from cocotbext.pcie.core.endpoint import Endpoint
from completion_buffer import CompletionBuffer
from shape import Completions
from trn import TrnDevice
from usp import UspDevice

#: Bits of the hard IP's interface, 256 behind UltraScale+, and the core's tags.
WIDTH, TAGS = (int(os.environ.get(f"TLPDMA_{name}", default)) for name, default in (("WIDTH", "64"), ("TAGS", "32")))
ULTRASCALE_PLUS = WIDTH == 256

#: Host memory that the tests use: one region below 4 GiB, one that needs 64-bit addresses.
LOW, HIGH, SIZE = 0x0040_0000, 0x12_3460_0000, 4 << 20


class Memory:
    """Both regions, by address."""

    def __init__(self, rc: Any) -> None:
        self.parts = {}
        # Below 4 GiB addresses belong to the root's pool.
        for base, space in ((LOW, rc.mem_pool), (HIGH, rc.mem_address_space)):
            region = MemoryRegion(SIZE)
            space.register_region(region, base)
            self.parts[base] = region.mem

    def _at(self, key: slice) -> tuple[Any, slice]:
        base = LOW if key.start < HIGH else HIGH
        return self.parts[base], slice(key.start - base, key.stop - base)

    def __getitem__(self, key: slice) -> bytes:
        part, place = self._at(key)
        return bytes(part[place])

    def __setitem__(self, key: slice, data: bytes) -> None:
        part, place = self._at(key)
        part[place] = bytes(data)


@dataclass
class Bench:
    dut: Any
    rc: RootComplex
    device: Any
    card: Card
    memory: Memory
    checker: Checker
    completions: Completions
    random: random.Random
    function: Endpoint

    def ring(self, channel: int, log2: int = 8, base: int | None = None, record: int | None = None) -> Ring:
        """A ring at the start of the low memory, 64 KiB a channel."""
        room = LOW + (0x10000 if channel == 0x180 else 0)
        return Ring(
            self.card,
            self.memory,
            channel,
            room if base is None else base,
            log2,
            room + 0x8000 if record is None else record,
        )

    async def finish(self) -> None:
        """Wait until all work under way has ended, and check that nothing is missing."""
        await Timer(3, "us")
        self.checker.quiet()
        self.nothing_lost()

    def nothing_lost(self) -> None:
        """Of the completions, for want of room in the hard IP."""
        assert not self.device.buffer.lost, f"{self.device.buffer.lost} completions found no room in the hard IP"


def chance(of: float, seed: int) -> Iterator[bool]:
    """True with that chance, forever."""
    source = random.Random(seed)
    while True:
        yield source.random() < of


def every_case() -> bool:
    """True in `make rtl-test-long`."""
    return bool(os.environ.get("TLPDMA_LONG"))


def long_run() -> bool:
    """True in long tests on Verilator, with many rounds; Icarus, ten to twenty times as slow, runs every case with few."""
    return os.environ.get("TLPDMA_LONG") == "1"


def quiet_logs() -> None:
    for name in ("cocotb.pcie", "cocotb.tlpdma"):
        logging.getLogger(name).setLevel(logging.ERROR)


async def bench(
    dut: Any,
    *,
    pcie_mhz: float = 250,
    user_mhz: float = 200,
    mps: int = 256,
    mrrs: int = 512,
    rcb: int = 64,
    seed: int = 1,
    generation: int = 1,
    lanes: int = 8,
    extended_tags: bool = True,
    bus_master: bool = True,
    after_reset_ns: int = 1000,
) -> Bench:
    """A card that came out of reset and is enumerated and enabled.

    Behind a TRN hard IP the clocks stand still while the root enumerates; the other model makes its own.
    """
    quiet_logs()
    dut.pcie_rst.value = 1
    dut.pcie_clk.value = 0
    dut.user_clk.value = 0
    trn = not ULTRASCALE_PLUS
    if not trn:
        Clock(dut.user_clk, period(user_mhz), "ps").start()
        # That model runs clock and reset, but begins with no reset: what a test before left under way would reach it.
        clock = Clock(dut.pcie_clk, 4000, "ps")
        clock.start()
        await ClockCycles(dut.pcie_clk, 30)
        clock.stop()
    rc = RootComplex()
    rc.max_payload_size = (mps // 128).bit_length() - 1
    rc.read_completion_boundary = rcb == 128
    memory = Memory(rc)
    buffer = CompletionBuffer(int(dut.CPL_HEADERS.value), int(dut.CPL_DATA.value))
    if trn:
        device = TrnDevice(dut, WIDTH, generation, lanes, buffer=buffer)
    else:
        device = UspDevice(dut, buffer, pcie_mhz, generation, lanes)
    rc.make_port().connect(device)
    function = device.function
    checker = Checker(function, room=min(buffer.headers, buffer.data // 64))
    completions = Completions(device.deliver, random.Random(seed), boundary=rcb)
    device.on_sent += [checker.sent, completions.saw_request]
    device.on_received.append(checker.received)
    device.filter = completions

    await rc.enumerate()
    found = rc.find_device(function.pcie_id)
    await found.enable_device()
    await found.set_readrq((mrrs // 128).bit_length() - 1)
    function.pcie_cap.extended_tag_field_enable = extended_tags
    device.show_configuration()
    if bus_master:
        await found.set_master()
    # The ends of a period are whole picoseconds.
    if trn:
        Clock(dut.user_clk, period(user_mhz), "ps").start()
        Clock(dut.pcie_clk, period(pcie_mhz), "ps").start()
        await ClockCycles(dut.pcie_clk, 10)
        dut.pcie_rst.value = 0
    await Timer(after_reset_ns, "ns")
    card = Card(rc, found.bar_addr[0], found.bar_addr[2])
    return Bench(dut, rc, device, card, memory, checker, completions, random.Random(seed), function)


def period(mhz: float) -> int:
    return 2 * round(500_000 / mhz)
