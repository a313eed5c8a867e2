"""A driver of verilog-pcie's example design: its memory is read and written, and its DMA engine moves data there and back."""

from __future__ import annotations

import random

from tlplab.driver import DeviceHandle, Host

TO_CARD, FROM_CARD = 0x100, 0x200


async def driver(host: Host, dev: DeviceHandle) -> None:
    """DMA of all lengths and alignments, each way with an interrupt and a status."""
    registers, memory = dev.bar(0), dev.bar(2)
    chance = random.Random(1)

    async def write(offset: int, value: int) -> None:
        await registers.poke(offset, value.to_bytes(4, "little"))

    async def move(way: int, address: int, local: int, length: int, tag: int) -> None:
        await write(way, address & 0xFFFFFFFF)
        await write(way + 0x04, address >> 32)
        await write(way + 0x08, local)
        await write(way + 0x10, length)
        await write(way + 0x14, tag)
        await dev.irq(0)
        status = int.from_bytes(await registers.peek(way + 0x18, 4), "little")
        assert status == 0x8000_0000 | tag, hex(status)

    await memory.poke(0, b"\x11\x22\x33\x44")
    assert await memory.peek(0, 4) == b"\x11\x22\x33\x44"
    await write(0x000, 1)  # DMA
    await write(0x008, 3)  # interrupts
    for tag in range(1, 41):
        length = chance.choice([1, 4, chance.randint(1, 300), chance.randint(300, 8192)])
        data = chance.randbytes(length)
        source, target, skip = host.alloc(length + 64), host.alloc(length + 64), chance.randint(0, 63)
        local = chance.randint(0, 4096)
        host.write(source + skip, data)
        await move(TO_CARD, source + skip, local, length, tag)
        await move(FROM_CARD, target + skip, local, length, tag)
        assert host.read(target + skip, length) == data
    print("verilog-pcie: 40 transfers each way, every byte as it was")
