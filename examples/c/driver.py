"""The driver of `copier.toml`: it copies, and looks at the copied data."""


async def driver(host, dev):
    a, b = host.alloc(b"x" * 4096), host.alloc(4096)
    registers = dev.bar(0)
    await registers.poke(0x00, a.to_bytes(8, "little"))
    await registers.poke(0x08, b.to_bytes(8, "little"))
    await registers.poke(0x10, (4096).to_bytes(4, "little"))
    await dev.irq(0)
    assert host.read(b, 4096) == b"x" * 4096
    assert await registers.peek(0x14, 4) == bytes([1, 0, 0, 0])
