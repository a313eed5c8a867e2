# SPDX-License-Identifier: MIT OR Apache-2.0
"""The model of the card's memory alone: bytes that one port writes, the other leaves alone."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from bench import quiet_logs
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge

WORDS = 3  # so few that both ports often write the same one


async def until(dut: Any, signal: Any) -> None:
    """To the middle of the first cycle in which the signal is set."""
    await FallingEdge(dut.clk)
    while not signal.value:
        await FallingEdge(dut.clk)


async def put(dut: Any, port: str, word: int, data: bytes, strobe: int) -> None:
    """Writes one word through a port."""
    getattr(dut, f"{port}_addr").value = 32 * word
    getattr(dut, f"{port}_data").value = int.from_bytes(data, "little")
    getattr(dut, f"{port}_strobe").value = strobe
    getattr(dut, f"{port}_valid").value = 1
    await until(dut, getattr(dut, f"{port}_ready"))
    await RisingEdge(dut.clk)
    getattr(dut, f"{port}_valid").value = 0


async def write(dut: Any, port: str, lanes: range, source: random.Random, copy: bytearray, writes: int) -> None:
    """Writes words through a port, of which only these bytes are its own, and keeps a copy of them."""
    for _ in range(writes):
        word, data = source.randrange(WORDS), source.randbytes(32)
        strobe = sum(1 << lane for lane in lanes if source.random() < 0.8)
        await put(dut, port, word, data, strobe)
        for lane in lanes:
            if strobe >> lane & 1:
                copy[32 * word + lane] = data[lane]
        if source.random() < 0.3:
            await ClockCycles(dut.clk, source.randrange(1, 4))


async def read(dut: Any, word: int) -> bytes:
    dut.win_rd_addr.value = 32 * word
    dut.win_rd_valid.value = 1
    await until(dut, dut.win_rd_ready)
    await RisingEdge(dut.clk)
    dut.win_rd_valid.value = 0
    await until(dut, dut.win_rd_data_valid)
    data = int(dut.win_rd_data.value).to_bytes(32, "little")
    await RisingEdge(dut.clk)
    return data


@cocotb.test(timeout_time=800, timeout_unit="us")
async def both_ports_write_one_word(dut: Any) -> None:
    """Writes of a DMA transfer and through the window that meet in a word, each with bytes of its own."""
    quiet_logs()
    for port in ("mem_wr", "mem_rd", "win_wr", "win_rd"):
        getattr(dut, f"{port}_valid").value = 0
    dut.mem_rd_data_ready.value = dut.win_rd_data_ready.value = 1
    dut.rst.value = 1
    Clock(dut.clk, 5000, "ps").start()
    await ClockCycles(dut.clk, 4)
    dut.rst.value = 0
    copy = bytearray(32 * WORDS)
    for word in range(WORDS):  # all bytes once
        await put(dut, "mem_wr", word, bytes(32), (1 << 32) - 1)
    source = random.Random(1)
    for _ in range(20):
        split = source.randrange(1, 32)
        tasks = [
            cocotb.start_soon(write(dut, "mem_wr", range(split), source, copy, 20)),
            cocotb.start_soon(write(dut, "win_wr", range(split, 32), source, copy, 20)),
        ]
        for task in tasks:
            await task
        for word in range(WORDS):
            assert await read(dut, word) == copy[32 * word : 32 * word + 32], f"word {word}"
