"""The copier, grown: identity, capabilities, kinds of BARs, three ways to interrupt, errors, slow answers, reset.

Run it with `tlplab run engine.toml`, or with `--set host.interrupts=msi` and `intx`.
"""

import tlplab as tl

IDLE, BUSY, FAILED = 0, 1, 2
COPIED, FAULT = 1, 2  # causes of an interrupt


class Engine(tl.Device):
    ids = tl.Ids(0x71AB, 0x10, revision=2, class_code=0x12_00_00, subsystem=(0x71AB, 0x0042))
    msix, msi, intx = 1, 1, True
    capabilities = (
        tl.Vendor(b"tlplab", at=0xA0),
        tl.SerialNumber(0x71AB_0000_0000_0001),
        tl.Ltr(),
        tl.Ats(queue_depth=16),
        tl.ResizableBar({"sram": ("1MiB", "2MiB", "4MiB")}),
        tl.VendorExtended(id=0x42, data=b"by hand", at=0x200),
    )

    class regs(tl.Bar, size="4KiB"):  # 32-bit, reads may have side effects
        src = tl.Reg64(0x00)
        dst = tl.Reg64(0x08)
        go = tl.Reg32(0x10)
        status = tl.Reg32(0x14, ro=True)
        cause = tl.Reg32(0x18)
        temperature = tl.Reg32(0x1C, ro=True)
        fuse = tl.Reg32(0x20, ro=True)

    class ports(tl.Bar, size=16, io=True):  # I/O space
        doorbell = tl.Reg32(0x00)

    class sram(tl.Bar, size="1MiB", memory=True, number=2):  # 64-bit and prefetchable, as memory is: BARs 2 and 3
        pass

    def __init__(self):
        self.causes = 0

    @regs.go.on_write
    async def copy(self, cx, n):
        self.regs.status = BUSY
        try:
            data = await cx.dma_read(self.regs.src, n)
        except tl.DmaError:  # UR, CA, poisoned data, completion timeout
            self.regs.status = FAILED
            return self.interrupt(cx, FAULT)
        await cx.dma_write(self.regs.dst, data)
        self.regs.status = IDLE
        return self.interrupt(cx, COPIED)

    @ports.doorbell.on_write
    async def ring(self, cx, n):
        await self.copy(cx, n)

    def interrupt(self, cx, cause):
        self.causes |= cause
        if cx.interrupt_mode in ("msi-x", "msi"):
            cx.msix(0)
        else:
            cx.intx(True)  # until the driver has cleared all causes; waits while software keeps the pin off

    @regs.cause.on_read
    def pending(self, cx):
        return self.causes

    @regs.cause.on_write
    def acknowledge(self, cx, bits):
        self.causes &= ~bits  # write one to clear
        cx.intx(self.causes != 0)

    @regs.temperature.on_read
    async def measure(self, cx):
        await cx.sleep("2us")  # the sensor is slow; other requests are answered meanwhile
        return 42

    @regs.fuse.on_read
    def blown(self, cx):
        raise tl.CompleterAbort

    def reset(self):  # registers are as at first, handlers and DMA have ended
        self.causes = 0


async def driver(host, dev):
    assert await dev.config.read(0xA3, 6) == b"tlplab"
    a, b = host.alloc(b"x" * 4096), host.alloc(4096)
    await copy(dev, a, b, 4096, COPIED)
    assert host.read(b, 4096) == b"x" * 4096

    await copy(dev, 1 << 60, b, 64, FAULT)  # nobody is there
    assert await dev.regs.read("status") == FAILED

    assert await dev.regs.read("temperature") == 42
    try:
        await dev.regs.read("fuse")
    except tl.DmaError as error:
        print(f"as it should be: {error}")
    else:
        raise AssertionError("the fuse must not be read")

    await dev.reset()  # function-level, 100 ms
    assert await dev.regs.read("src") == 0
    await dev.regs.write(src=a, dst=b)
    await dev.ports.write(doorbell=64)  # an I/O request
    assert await acknowledge(dev) == COPIED


async def copy(dev, src, dst, length, ends_with):
    await dev.regs.write(src=src, dst=dst, go=length)
    assert await acknowledge(dev) == ends_with


async def acknowledge(dev):
    cause = 0
    while not cause:  # a pin is shared: the interrupt may be another's
        await dev.irq(0)
        cause = await dev.regs.read("cause")
    await dev.regs.write(cause=cause)
    return cause


if __name__ == "__main__":
    print(tl.simulate(Engine(), driver).sentence)
