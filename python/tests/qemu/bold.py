"""A device that copies between any two addresses and reports the result."""

from __future__ import annotations

import tlplab as tl


class Bold(tl.Device):
    ids, msix = tl.Ids(0x71AB, 0xB01D), 1

    class regs(tl.Bar, size="4KiB"):
        src = tl.Reg64(0x00)
        dst = tl.Reg64(0x08)
        go = tl.Reg32(0x10)
        done = tl.Reg32(0x14, ro=True)
        refused = tl.Reg32(0x18, ro=True)

    @regs.go.on_write
    async def copy(self, cx: tl.Context, n: int) -> None:
        try:
            data = await cx.dma_read(self.regs.src, n)
            await cx.dma_write(self.regs.dst, data)
            self.regs.done += 1
        except tl.DmaError:
            self.regs.refused += 1
        cx.msix(0)


class Bad(tl.Device):
    """It raises when it is told to go."""

    ids = tl.Ids(0x71AB, 0xBAD)

    class regs(tl.Bar, size="4KiB"):
        go = tl.Reg32(0x10)

    @regs.go.on_write
    async def copy(self, cx: tl.Context, n: int) -> None:
        raise ValueError("this device is broken")
