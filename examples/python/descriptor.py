"""A DMA engine that fetches a descriptor from host memory before each transfer. Measure it with `tlplab bench`."""

import tlplab as tl


class DescriptorDma(tl.Device):
    ids = tl.Ids(0x71AB, 6)
    bench_slots = 16  # transfers at once, when bandwidth is measured

    ring = 0x1_0000_0000  # 16-byte descriptors
    fetched = 0

    async def descriptor(self, cx):
        self.fetched += 1
        await cx.dma_read(self.ring + 16 * (self.fetched % 256), 16)

    async def bench_read(self, cx, address, length):
        await self.descriptor(cx)
        await cx.dma_read(address, length)

    async def bench_write(self, cx, address, length):
        await self.descriptor(cx)
        await cx.dma_write(address, bytes(length))  # posted: awaits acceptance
