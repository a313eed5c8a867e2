"""A device that is only memory, and a driver that fills and checks it by MMIO."""

import tlplab as tl


class Memory(tl.Device):
    ids = tl.Ids(0x71AB, 2, class_code=0x05_00_00)  # memory controller: RAM

    class ram(tl.Bar, size="64KiB", memory=True):
        pass


async def driver(host, dev):
    words = range(0, 1024, 64)
    for offset in words:
        await dev.ram.poke(offset, offset.to_bytes(64, "little"))
    reads = [dev.ram.peek(offset, 64) for offset in words]  # all under way at once
    for offset, read in zip(words, reads, strict=True):
        assert await read == offset.to_bytes(64, "little")
    assert await dev.ram.peek(1024, 64) == bytes(64)


if __name__ == "__main__":
    print(tl.simulate(Memory(), driver).sentence)
