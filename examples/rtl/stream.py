"""The driver of `stream.toml`: the card's memory is read and written, and its DMA moves data there and back."""

from __future__ import annotations

from tlplab.driver import DeviceHandle, Host

HOST, GO, BYTES = 0xF00, 0xF08, 0xF10
FROM_HOST, TO_HOST = 1, 2


async def driver(host: Host, dev: DeviceHandle) -> None:
    memory = dev.bar(0)

    async def move(way: int, address: int, size: int) -> int:
        await memory.poke(HOST, address.to_bytes(8, "little"))
        await memory.poke(BYTES, size.to_bytes(4, "little"))
        await memory.poke(GO, way.to_bytes(4, "little"))
        await dev.irq(0)
        return int.from_bytes(await memory.peek(GO, 4), "little")

    for again in range(2):
        for offset, data in [(0x200, b"tlplab!!"), (0x323, b"odd"), (0x5FC, bytes(range(64)))]:
            await memory.poke(offset, data)
            assert await memory.peek(offset, len(data)) == data
        for size in (4, 8, 12, 64, 100, 128):
            data = bytes((again + size + i) % 256 for i in range(size))
            source, target = host.alloc(data), host.alloc(size)
            assert await move(FROM_HOST, source, size) == 0
            assert await memory.peek(0, size) == data
            assert await move(TO_HOST, target, size) == 0
            assert host.read(target, size) == data
        assert await move(FROM_HOST, 0x7_0000_0000_0000, 64) == 0x8000_0002, "no component claims the address"
        await dev.reset()
    print("stream: the data came back from the card")
