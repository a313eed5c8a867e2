"""The simple NIC of the NetTLP paper, with rings: Linux has a driver for it (docs/simple-nic-driver.md). A loop-back plug leads every frame back.

Registers are in BAR 4. A doorbell has the number of descriptors ever posted, modulo 2^32; a descriptor is the address of a frame (or buffer) and
its length. The NIC writes how many of both rings it is done with, and then interrupts: vector 0 for frames sent, 1 for frames received.
"""

import struct
from collections import deque

import tlplab as tl

DESCRIPTOR = struct.Struct("<QQ")
BATCH, WAITING = 16, 64  # descriptors that one read fetches, and frames that wait for a buffer, at most
SENT, RECEIVED = 0, 1


class Ring:
    def __init__(self, base, size):
        self.base, self.size, self.done, self.busy = base, size, 0, False

    async def fetch(self, cx, posted):
        """The next descriptors, up to the end of the ring, and where each is."""
        first = self.done % self.size
        count = min((posted - self.done) % 2**32, self.size - first, BATCH)
        address = self.base + first * DESCRIPTOR.size
        fetched = await cx.dma_read(address, count * DESCRIPTOR.size)
        return [
            (address + number * DESCRIPTOR.size, *fields)
            for number, fields in enumerate(DESCRIPTOR.iter_unpack(fetched))
        ]

    def advance(self):
        self.done = (self.done + 1) % 2**32


class SimpleNic(tl.Device):
    ids, msix = tl.Ids(0x71AB, 4, revision=1, class_code=0x02_00_00), 2

    class regs(tl.Bar, size="4KiB", number=4):
        tx_base = tl.Reg64(0x00)
        rx_base = tl.Reg64(0x08)
        tx_posted = tl.Reg32(0x10)
        rx_posted = tl.Reg32(0x14)
        enabled = tl.Reg32(0x18)
        tx_size = tl.Reg32(0x20)
        rx_size = tl.Reg32(0x24)
        heads = tl.Reg64(0x28)
        moderation = tl.Reg32(0x30)  # not heeded: interrupts come as they come
        max_frame = tl.Reg32(0x34, ro=True, reset=1518)
        mac = tl.Reg64(0x40, ro=True, reset=int.from_bytes(bytes.fromhex("021de5000004"), "little"))
        tx_frames = tl.Reg64(0x48, ro=True)
        rx_frames = tl.Reg64(0x58, ro=True)

    def __init__(self):
        self.reset()

    def reset(self):
        self.tx, self.rx, self.line = Ring(0, 1), Ring(0, 1), deque(maxlen=WAITING)

    @regs.tx_base.on_write
    def start_sending(self, cx, base):
        self.tx = Ring(base, self.regs.tx_size or 1)

    @regs.rx_base.on_write
    def start_receiving(self, cx, base):
        self.rx = Ring(base, self.regs.rx_size or 1)

    @regs.tx_posted.on_write
    async def send(self, cx, _posted):
        ring = self.tx
        if ring.busy:
            return  # the handler that is at work sees the new count
        ring.busy = True
        while self.regs.enabled and ring.done != self.regs.tx_posted:
            reads = [cx.dma_read(frame, length) for _, frame, length in await ring.fetch(cx, self.regs.tx_posted)]
            frames = [await read for read in reads]
            if ring is not self.tx:
                return  # the driver has begun anew
            for frame in frames:
                self.line.append(frame)
                self.regs.tx_frames += 1
                ring.advance()
            await self.tell(cx, SENT)
            await self.receive(cx, None)
        ring.busy = False

    @regs.rx_posted.on_write
    async def receive(self, cx, _posted):
        ring = self.rx
        if ring.busy:
            return
        ring.busy = True
        while self.line and self.regs.enabled and ring.done != self.regs.rx_posted:
            for place, buffer, length in await ring.fetch(cx, self.regs.rx_posted):
                if ring is not self.rx:
                    return
                while self.line and len(self.line[0]) > length:
                    self.line.popleft()
                if not self.line:
                    break
                frame = self.line.popleft()
                cx.dma_write(buffer, frame)
                # Posted writes keep their order, so whoever sees the length sees the frame.
                cx.dma_write(place, DESCRIPTOR.pack(buffer, len(frame)))
                self.regs.rx_frames += 1
                ring.advance()
            await self.tell(cx, RECEIVED)
        ring.busy = False

    async def tell(self, cx, vector):
        if self.regs.heads:
            await cx.dma_write(self.regs.heads, struct.pack("<II", self.tx.done, self.rx.done))
        cx.msix(vector)
