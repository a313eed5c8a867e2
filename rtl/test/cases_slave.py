# SPDX-License-Identifier: MIT OR Apache-2.0
"""Requests of the host: enumeration, registers, the window into the local memory, and forbidden ones."""

from __future__ import annotations

from typing import Any

import card
import cocotb
from bench import TAGS, ULTRASCALE_PLUS, bench, chance
from cocotb.triggers import Timer
from cocotbext.pcie.core.tlp import CplStatus, Tlp, TlpAttr, TlpTc, TlpType
from cocotbext.pcie.core.utils import PcieId
from cocotbext.pcie.xilinx.us.tlp import Tlp_us
from usp import HEADER, ended_early


@cocotb.test(timeout_time=800, timeout_unit="us")
async def it_is_found(dut: Any) -> None:
    """The root enumerates it, and its registers identify it."""
    b = await bench(dut)
    found = b.rc.find_device(b.function.pcie_id)
    assert (found.vendor_id, found.device_id) == (0x71AB, 0x7D0A)
    assert b.card.bar0 % (64 << 10) == 0
    assert b.card.bar2 % (1 << 20) == 0
    assert await b.card.read(card.ID) == 0x544C5044
    assert await b.card.read(card.VERSION) == 0x00010000
    status = await b.card.read(card.STATUS)
    assert status & 0b110 == 0b010, f"bus master, no MSI-X: {status:#b}"
    config = await b.card.read(card.CONFIG)
    assert 1 << (config & 0xFF) == TAGS
    assert config >> 8 & 0xF == 1, "Max Payload Size 256"
    assert config >> 12 & 0xF == 2, "Max Read Request Size 512"
    assert await b.card.read(card.TIMEOUT) == 0xC35
    await b.finish()


@cocotb.test(timeout_time=800, timeout_unit="us")
async def registers_keep_what_is_written(dut: Any) -> None:
    """Read-write registers hold their bits, read-only ones their value, a neighbour is left alone."""
    b = await bench(dut, pcie_mhz=125, user_mhz=250)
    at = b.card
    for register, mask in {
        card.SCRATCH: 0xFFFFFFFF,
        card.IRQ_ENABLE: 0x7,
        card.IRQ_MODERATION: 0xFFFFFFFF,
        card.TIMEOUT: 0xFFFF,
        card.H2C + card.BASE + 4: 0xFFFFFFFF,
        card.C2H + card.WB + 4: 0xFFFFFFFF,
    }.items():
        value = b.random.getrandbits(32)
        await at.write(register, value)
        assert await at.read(register) & mask == value & mask, f"register {register:#x}"
    before = await at.read(card.ID)
    await at.write(card.ID, 0)
    assert await at.read(card.ID) == before
    first = await at.read(card.CYCLES)
    assert await at.read(card.CYCLES) != first
    await b.finish()


@cocotb.test(timeout_time=800, timeout_unit="us")
async def a_write_behind_a_reset_is_kept(dut: Any) -> None:
    """One of the MSI-X table, which a reset by CONTROL leaves alone, right behind that reset or a little later."""
    b = await bench(dut)
    for pause in range(0, 240, 4):
        mask = pause >> 2 & 1
        await b.card.write(card.CONTROL, card.RESET)
        if pause:
            await Timer(pause, "ns")
        await b.card.write(card.MSIX_TABLE + 12, mask)
        assert await b.card.read(card.MSIX_TABLE + 12) == mask, f"{pause} ns"
    await b.finish()


# That model ends the reset itself.
@cocotb.test(skip=ULTRASCALE_PLUS, timeout_time=800, timeout_unit="us")
@cocotb.parametrize(clocks=[(62.5, 250), (250, 150)])
async def a_write_right_after_reset(dut: Any, clocks: tuple[float, float]) -> None:
    """The reset of the other clock takes its time: a write meanwhile is not lost."""
    b = await bench(dut, pcie_mhz=clocks[0], user_mhz=clocks[1], after_reset_ns=1)
    await b.card.write(card.SCRATCH, 0x12345678)
    await b.card.write(card.CONTROL, card.ENABLE)
    assert await b.card.read(card.SCRATCH) == 0x12345678
    assert await b.card.read(card.CONTROL) == card.ENABLE
    await b.finish()


async def check_window(b: Any, size: int, accesses: int, longest: int) -> None:
    """Random writes and reads of the memory window against a copy."""
    copy = bytearray(b.random.randbytes(size))
    await b.rc.mem_write(b.card.bar2, bytes(copy))
    for _ in range(accesses):
        length = min(b.random.choice([1, 2, 3, 4, 5, 7, 8, 16, 31, 33, 64, longest]), size)
        at = b.random.randrange(size - length + 1)
        if b.random.random() < 0.5:
            data = b.random.randbytes(length)
            copy[at : at + length] = data
            await b.rc.mem_write(b.card.bar2 + at, data)
        else:
            seen = await b.rc.mem_read(b.card.bar2 + at, length)
            assert seen == copy[at : at + length], f"{length} bytes at {at:#x}"
    assert await b.rc.mem_read(b.card.bar2, size) == bytes(copy)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def window_all_sizes_and_offsets(dut: Any) -> None:
    """Every length to 9 bytes at every offset in two words, then longer ones."""
    b = await bench(dut)
    copy = bytearray(b.random.randbytes(96))
    await b.rc.mem_write(b.card.bar2, bytes(copy))
    for length in range(1, 10):
        for at in range(b.random.randrange(3), 40, 3):
            data = b.random.randbytes(length)
            copy[at : at + length] = data
            await b.rc.mem_write(b.card.bar2 + at, data)
    assert await b.rc.mem_read(b.card.bar2, 96) == bytes(copy)
    for at in range(0, 36):
        length = 1 + at % 9
        assert await b.rc.mem_read(b.card.bar2 + at, length) == copy[at : at + length], f"{length} bytes at {at}"
    await check_window(b, 1500, 20, 600)
    await b.finish()


@cocotb.test(timeout_time=800, timeout_unit="us")
async def window_under_back_pressure(dut: Any) -> None:
    """Pauses on both sides of the interface lose and double nothing."""
    b = await bench(dut, user_mhz=150, mps=128)
    b.device.rx_pause, b.device.tx_pause = chance(0.5, 1), chance(0.5, 2)
    await check_window(b, 700, 25, 300)
    await b.finish()


@cocotb.test(timeout_time=800, timeout_unit="us")
async def window_moves(dut: Any) -> None:
    """WINDOW chooses the MiB of local memory."""
    b = await bench(dut)
    for window in (0, 3):
        await b.card.write(card.WINDOW, window)
        await b.rc.mem_write(b.card.bar2 + 0x40, bytes([window + 1]) * 32)
    assert await b.rc.mem_read(b.card.bar2 + 0x40, 32) == bytes([4]) * 32
    await b.card.write(card.WINDOW, 0)
    assert await b.rc.mem_read(b.card.bar2 + 0x40, 32) == bytes([1]) * 32
    await b.finish()


def raw_read(address: int, words: int, first: int, last: int, tag: int) -> Tlp:
    tlp = Tlp()
    tlp.fmt_type = TlpType.MEM_READ_64 if address >> 32 else TlpType.MEM_READ
    tlp.requester_id = PcieId(0, 0, 0)
    tlp.tag = tag
    tlp.address, tlp.length, tlp.first_be, tlp.last_be = address, words, first, last
    return tlp


@cocotb.test(timeout_time=800, timeout_unit="us")
async def byte_enables_as_they_come(dut: Any) -> None:
    """Reads with every legal pattern, none of the bytes included; writes of single bytes with holes. Class and attributes come back."""
    b = await bench(dut)
    await b.rc.mem_write(b.card.bar2, bytes(range(64)))
    for first in range(16):
        # The checker compares byte count, lower address and length of the answer with the request.
        read = raw_read(b.card.bar2 + 12, 1, first, 0, 0)
        read.tc, read.attr = TlpTc(first & 7), TlpAttr(first >> 1 & 3)
        answers = await b.rc.perform_nonposted_operation(read, 5, "us")
        assert len(answers) == 1
        assert (answers[0].tc, answers[0].attr) == (read.tc, read.attr)
        for byte in range(4):
            if first >> byte & 1:
                assert answers[0].data[byte] == 12 + byte
    for first in (0b1001, 0b1010, 0b0000, 0b1101):
        write = raw_read(b.card.bar2 + 32, 1, first, 0, 0)
        write.fmt_type = TlpType.MEM_WRITE_64
        write.set_data(b"\xf1\xf2\xf3\xf4")
        await b.rc.send(write)
        expected = bytes(0xF1 + byte if first >> byte & 1 else 32 + byte for byte in range(4))
        assert await b.rc.mem_read(b.card.bar2 + 32, 4) == expected, f"byte enables {first:#06b}"
        await b.rc.mem_write(b.card.bar2 + 32, bytes(range(32, 36)))
    # Two words, enables with holes: legal where the address is a multiple of 8.
    write = raw_read(b.card.bar2 + 40, 2, 0b0101, 0b1010, 0)
    write.fmt_type = TlpType.MEM_WRITE_64
    write.set_data(b"\xe0\xe1\xe2\xe3\xe4\xe5\xe6\xe7")
    await b.rc.send(write)
    assert await b.rc.mem_read(b.card.bar2 + 40, 8) == bytes([0xE0, 41, 0xE2, 43, 44, 0xE5, 46, 0xE7])
    await b.finish()


@cocotb.test(timeout_time=800, timeout_unit="us")
async def what_is_not_supported(dut: Any) -> None:
    """A locked read is answered with Unsupported Request, as one, and an I/O read; a poisoned write changes nothing; all are reported."""
    b = await bench(dut)
    await b.rc.mem_write(b.card.bar2, b"\x11" * 32)
    assert await b.card.read(card.ERRORS) == 0
    locked = raw_read(b.card.bar2, 1, 0xF, 0, 200)  # a tag that the root does not use
    locked.fmt_type = TlpType.MEM_READ_LOCKED_64
    seen: list[Tlp] = []
    b.device.on_sent.remove(b.checker.sent)
    b.device.on_sent.append(seen.append)
    b.device.deliver(locked, 2)
    port = raw_read(b.card.bar0 & 0xFFFF, 1, 0xF, 0, 201)
    port.fmt_type = TlpType.IO_READ
    b.device.deliver(port, 0)
    write = raw_read(b.card.bar2, 8, 0xF, 0xF, 0)
    write.fmt_type = TlpType.MEM_WRITE_64
    write.set_data(b"\x22" * 32)
    write.ep = True
    b.device.deliver(write, 2)
    await Timer(2, "us")
    assert [(tlp.fmt_type, tlp.status, tlp.tag, tlp.requester_id, tlp.byte_count) for tlp in seen] == [
        (TlpType.CPL_LOCKED, CplStatus.UR, 200, PcieId(0, 0, 0), 4),
        (TlpType.CPL, CplStatus.UR, 201, PcieId(0, 0, 0), 4),
    ]
    b.device.on_sent.append(b.checker.sent)
    assert await b.rc.mem_read(b.card.bar2, 32) == b"\x11" * 32
    assert await b.card.read(card.ERRORS) == 0xC0
    await b.card.write(card.ERRORS, 0xC0)
    assert await b.card.read(card.ERRORS) == 0
    await b.finish()


@cocotb.test(skip=not ULTRASCALE_PLUS, timeout_time=800, timeout_unit="us")
async def a_write_that_ends_early(dut: Any) -> None:
    """A write that the hard IP breaks off, after any number of DWs, changes nothing; the writes behind it are whole."""
    b = await bench(dut)
    copy = bytearray(b.random.randbytes(256))
    await b.rc.mem_write(b.card.bar2, bytes(copy))
    for lane, dws in ((lane, dws) for lane in (0, 5) for dws in (0, 1, 4, 5, 12, 30, 31)):
        write = raw_read(b.card.bar2 + 4 * lane, 32, 0xF, 0xF, 0)
        write.fmt_type = TlpType.MEM_WRITE_64
        write.set_data(b"\x22" * 128)
        made = Tlp_us(write)
        made.bar_id = 2
        write.frame = ended_early(made.pack_us_cq(), HEADER + dws)
        b.device.deliver(write)
        copy[8 * dws : 8 * dws + 8] = b.random.randbytes(8)
        await b.rc.mem_write(b.card.bar2 + 8 * dws, bytes(copy[8 * dws : 8 * dws + 8]))
        assert await b.rc.mem_read(b.card.bar2, 256) == bytes(copy), f"{dws} DWs from lane {lane}"
    assert await b.card.read(card.ERRORS) == 0x80
    await b.finish()
