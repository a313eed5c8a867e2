"""A ring of descriptors in host memory: the driver rings a doorbell, the device fetches descriptors in batches, moves
their data, marks them done and interrupts once for each doorbell that it has caught up with.

A descriptor is 32 bytes: source (8), destination (8), length (4), done (4), and 8 that are not used.
"""

import struct

import tlplab as tl

DESCRIPTOR = struct.Struct("<QQII8x")
DONE_OFFSET = 20


class Ring(tl.Device):
    ids, msix = tl.Ids(0x71AB, 3), 1

    class regs(tl.Bar, size="4KiB"):
        base = tl.Reg64(0x00)
        entries = tl.Reg32(0x08)
        tail = tl.Reg32(0x0C)  # the doorbell: descriptors before this one are the device's

    def __init__(self, batch=8):
        self.batch = batch
        self.head = 0
        self.busy = False

    def reset(self):
        self.head, self.busy = 0, False

    @regs.tail.on_write
    async def work(self, cx, _tail):
        if self.busy:
            return  # the handler that is at work will see the new tail
        self.busy = True
        while self.head != self.regs.tail:
            await self.do_batch(cx)
        self.busy = False
        cx.msix(0)

    async def do_batch(self, cx):
        """Fetches the ready descriptors, up to the end of the ring, and moves their data: all reads are under way together."""
        end = self.regs.tail if self.regs.tail > self.head else self.regs.entries
        count = min(end - self.head, self.batch)
        first = self.regs.base + self.head * DESCRIPTOR.size
        fetched = await cx.dma_read(first, count * DESCRIPTOR.size)
        jobs = [(dst, cx.dma_read(src, length)) for src, dst, length, _ in DESCRIPTOR.iter_unpack(fetched)]
        for number, (dst, read) in enumerate(jobs):
            cx.dma_write(dst, await read)
            # Posted writes keep their order, so whoever sees the mark sees the data.
            await cx.dma_write(first + number * DESCRIPTOR.size + DONE_OFFSET, struct.pack("<I", 1))
        self.head = (self.head + count) % self.regs.entries


async def driver(host, dev):
    entries, length, rounds = 16, 1500, 3
    ring = host.alloc(entries * DESCRIPTOR.size)
    await dev.regs.write(base=ring, entries=entries)
    tail = 0
    for turn in range(rounds):
        posted = []
        for _ in range(entries - 1):
            data = bytes((turn + tail + i) % 251 for i in range(length))
            src, dst = host.alloc(data), host.alloc(length)
            host.write(ring + tail * DESCRIPTOR.size, DESCRIPTOR.pack(src, dst, length, 0))
            posted.append((tail, dst, data))
            tail = (tail + 1) % entries
        await dev.regs.write(tail=tail)
        await dev.irq(0)
        for number, dst, data in posted:
            assert DESCRIPTOR.unpack(host.read(ring + number * DESCRIPTOR.size, DESCRIPTOR.size))[3] == 1
            assert host.read(dst, length) == data


if __name__ == "__main__":
    print(tl.simulate(Ring(), driver).sentence)
