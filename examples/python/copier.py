"""A device that copies host memory: four registers and an interrupt. Run it with `tlplab run copier.toml`."""

import tlplab as tl


class Copier(tl.Device):
    ids, msix = tl.Ids(0x71AB, 1), 1

    class regs(tl.Bar, size="4KiB"):
        src = tl.Reg64(0x00)
        dst = tl.Reg64(0x08)
        go = tl.Reg32(0x10)  # length
        done = tl.Reg32(0x14, ro=True)

    @regs.go.on_write
    async def copy(self, cx, n):
        await cx.dma_write(self.regs.dst, await cx.dma_read(self.regs.src, n))  # posted: awaits acceptance
        self.regs.done += 1
        cx.msix(0)  # ordered behind the write


async def driver(host, dev):
    a, b = host.alloc(b"x" * 4096), host.alloc(4096)
    await dev.regs.write(src=a, dst=b, go=4096)
    await dev.irq(0)
    assert host.read(b, 4096) == b"x" * 4096
    assert await dev.regs.read("done") == 1


if __name__ == "__main__":
    print(tl.simulate(Copier(), driver).sentence)
