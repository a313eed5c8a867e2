"""An NVMe drive that lies, to see the reactions of a driver and an operating system: docs/lying-devices.md shows Linux.

Its `lie` is one of `page-size` (a register with a wrong value), `never-ready`, `command` (completions of commands that were never given), `nonsense` (in all
it says of itself), `elsewhere` (data written to `address` instead of where they were wanted), `storm` (interrupts without a reason), and of a
configuration space that changes `gone` (it reads as that of an empty slot) and `other` (it becomes a network adapter's). In all else it is a
drive with an admin queue and nothing on it.
"""

import struct

import tlplab as tl

LIES = ("page-size", "never-ready", "command", "nonsense", "elsewhere", "storm", "gone", "other")
IDENTIFY = 6
READY = 1
# Controller Capabilities (NVMe 1.4 §3.1.1): 64 entries, contiguous, ready within a second, NVM commands; the least page size is 4 KiB << MPSMIN.
CAPABILITIES = 63 | 1 << 16 | 2 << 24 | 1 << 37
MPSMIN = 48
# What configuration space says from the second time on that the drive is enabled (firmware has done so once): nothing, as of an empty slot, or IDs
# and class of an Ethernet controller (82574L).
CHANGES = {
    "gone": [(0x00, b"\xff\xff\xff\xff")],
    "other": [(0x00, struct.pack("<HH", 0x8086, 0x10D3)), (0x09, b"\x00\x00\x02")],
}


class Drive(tl.Device):
    ids, msix = tl.Ids(0x71AB, 0x11A2, class_code=0x01_08_02), 1

    class regs(tl.Bar, size="16KiB"):
        cap = tl.Reg64(0x00, ro=True)
        version = tl.Reg32(0x08, ro=True, reset=0x0001_0400)
        cc = tl.Reg32(0x14)
        csts = tl.Reg32(0x1C, ro=True)
        aqa = tl.Reg32(0x24)
        asq = tl.Reg64(0x28)
        acq = tl.Reg64(0x30)
        tail = tl.Reg32(0x1000)
        head = tl.Reg32(0x1004)

    def __init__(self, lie, address=0):
        if lie not in LIES:
            raise ValueError(f"lie {lie!r}: it is one of {', '.join(LIES)}")
        self.lie, self.address, self.busy, self.times = lie, int(str(address), 0), False, 0

    def reset(self):
        self.busy = False

    @regs.cap.on_read
    def capabilities_register(self, cx):
        return CAPABILITIES | (15 << MPSMIN if self.lie == "page-size" else 0)

    @regs.cc.on_write
    def enable(self, cx, value):
        enabled, was = bool(value & 1) and self.lie != "never-ready", self.regs.csts & READY
        self.regs.csts = READY if enabled else 0
        if enabled and not was:
            self.taken, self.given = 0, 0
            if self.lie == "storm":
                cx.spawn(self.storm(cx))
            self.times += 1
            for offset, data in CHANGES.get(self.lie, ()) if self.times > 1 else ():
                cx.set_config(offset, data)

    async def storm(self, cx):
        while self.regs.csts & READY:
            cx.msix(0)
            await cx.sleep("50us")

    @regs.tail.on_write
    async def work(self, cx, _tail):
        if self.busy:
            return  # the handler that is at work sees the new tail
        self.busy = True
        entries = (self.regs.aqa & 0xFFF) + 1
        while self.taken != self.regs.tail % entries:
            command = await cx.dma_read(self.regs.asq + 64 * self.taken, 64)
            self.taken = (self.taken + 1) % entries
            opcode, number = struct.unpack_from("<BxH", command)
            (data,) = struct.unpack_from("<Q", command, 24)
            if opcode == IDENTIFY:
                await cx.dma_write(self.address if self.lie == "elsewhere" else data, self.identify())
            await self.complete(cx, number ^ 0xFF if self.lie == "command" else number)
        self.busy = False

    def identify(self):
        """The answer to Identify: nothing, or nonsense."""
        return b"\xa5" * 64 if self.lie in ("nonsense", "elsewhere") else bytes(4096)

    async def complete(self, cx, number):
        """An entry of the completion queue, whose phase says in which round it was written (NVMe 1.4 §4.6)."""
        entries = (self.regs.aqa >> 16 & 0xFFF) + 1
        lap, place = divmod(self.given, entries)
        self.given += 1
        entry = struct.pack("<QHHHH", 0, self.taken, 0, number, 1 - lap % 2)
        await cx.dma_write(self.regs.acq + 16 * place, entry)
        cx.msix(0)
