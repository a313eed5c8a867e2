"""The driver of `memory.toml`: it writes to the card and reads the data back."""

from __future__ import annotations

from tlplab.driver import DeviceHandle, Host


async def driver(host: Host, dev: DeviceHandle) -> None:
    memory = dev.bar(0)
    for offset, data in [(0, b"tlplab!!"), (0x123, b"odd"), (0xFF8, bytes(range(8)))]:
        await memory.poke(offset, data)
        assert await memory.peek(offset, len(data)) == data
    assert await memory.peek(0x120, 8) == b"\0\0\0odd\0\0"
