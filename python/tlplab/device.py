"""PCI Express devices written in Python.

    class Copier(tl.Device):
        ids, msix = tl.Ids(0x71AB, 1), 1

        class regs(tl.Bar, size="4KiB"):
            src = tl.Reg64(0x00)
            dst = tl.Reg64(0x08)
            go = tl.Reg32(0x10)
            done = tl.Reg32(0x14, ro=True)

        @regs.go.on_write
        async def copy(self, cx, n):
            await cx.dma_write(self.regs.dst, await cx.dma_read(self.regs.src, n))
            self.regs.done += 1
            cx.msix(0)

Handlers start in the order in which writes arrive and run without interruption to their first `await`. A reset of
the function, or of all functions below a link that went down, ends waiting handlers.
"""

from __future__ import annotations

import inspect
from collections.abc import Coroutine
from typing import Any, ClassVar

from tlplab import _core
from tlplab.capabilities import Capability
from tlplab.identity import Identity, Ids, bar_numbers, fits, identity
from tlplab.registers import Bar, Register
from tlplab.tasks import Action, Operation, Party


class UnsupportedRequest(Exception):  # noqa: N818 (a completion status, PCIe 5.0 §2.2.9)
    """Raised by an `on_read` handler: completes the read with Unsupported Request."""


class CompleterAbort(Exception):  # noqa: N818
    """Raised by an `on_read` handler: completes the read with Completer Abort."""


class Device:
    """A PCI Express function. Subclass it with `ids`, kinds of interrupts, and BARs as inner classes."""

    ids: ClassVar[Ids] = Ids(0x71AB, 0)
    msix: ClassVar[int] = 0
    """Number of MSI-X vectors, up to 2048. Their table has its own BAR, the last free one."""
    msi: ClassVar[int] = 0
    """Number of MSI vectors: 0, 1, 2, 4, 8, 16 or 32."""
    intx: ClassVar[bool] = False
    """True if the device has an interrupt pin."""
    capabilities: ClassVar[tuple[Capability, ...]] = ()
    """Further capabilities; see `tlplab.capabilities`."""
    bars: ClassVar[dict[str, type[Bar]]] = {}

    def __init_subclass__(cls, **rest: Any) -> None:
        """Raises `ValueError` for a device that cannot be, such as one whose BARs overlap."""
        super().__init_subclass__(**rest)
        own = {name: bar for name, bar in vars(cls).items() if isinstance(bar, type) and issubclass(bar, Bar)}
        cls.bars = {**cls.bars, **own}
        try:
            _core.check_device(identity(cls))
        except ValueError as error:
            raise ValueError(f"{cls.__name__}: {error}") from None

    def __new__(cls, *args: Any, **parameters: Any) -> Device:
        # Here and not in __init__, so that subclasses need not call it.
        device = super().__new__(cls)
        if cls.__init__ is object.__init__ and (args or parameters):
            named = ", ".join([*map(repr, args), *parameters])
            raise TypeError(f"{cls.__name__} takes no parameters, but was given {named}; to take some, write __init__")
        for name, bar in cls.bars.items():
            setattr(device, name, bar())
        return device

    def start(self, cx: Context) -> Any:
        """Called when the device has been configured, also after a reset, or may do DMA again after it was refused; may be a coroutine."""

    def reset(self) -> None:
        """Called after a reset has cleared the registers and ended all handlers."""


class Context:
    """Access of a handler to the system outside its device."""

    def __init__(self, party: Party, msix: int, msi: int, intx: bool) -> None:
        self._party = party
        self._msix, self._msi = msix, msi
        self._intx = intx
        self.interrupt_mode = "msi-x"
        """The kind of interrupt that software has enabled for this function: "msi-x", "msi", "intx" or "disabled"."""

    @property
    def now_fs(self) -> int:
        """Simulated time, femtoseconds."""
        return self._party.now_fs

    def dma_read(self, address: int, length: int, *, stream: int = 0) -> Operation[bytes]:
        """Reads host memory or a peer's BAR. Await the result for the bytes; the await may raise `DmaError`.

        The read starts immediately, so several can be under way. Operations of one `stream` leave the device in order.
        """
        details = fits("stream", stream, 16), fits("address", address, 64), fits("length", length, 64)
        return self._party.begin("dma_read", *details)

    def dma_write(self, address: int, data: bytes, *, stream: int = 0) -> Operation[None]:
        """Writes. The write is posted: await waits only until its last TLP was accepted for sending."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"data is {data!r}; it must be bytes")
        return self._party.begin("dma_write", fits("stream", stream, 16), fits("address", address, 64), bytes(data))

    def msix(self, vector: int, *, stream: int = 0) -> None:
        """Raises a message signalled interrupt, which does not pass earlier writes of its stream.

        If software chose MSI, the vector is taken modulo the number granted; without MSI and MSI-X the call has no effect.
        """
        vectors = max(self._msix, self._msi)
        if not 0 <= vector < vectors:
            kind, key = ("MSI", "msi") if self._msi > self._msix else ("MSI-X", "msix")
            have = f"it has {vectors}, from 0 to {vectors - 1}" if vectors else "it has none"
            raise ValueError(f"the device has no {kind} vector {vector}: {have}; for more, {key} = {vector + 1}")
        self._party.actions.append(("msix", fits("stream", stream, 16), vector))

    def intx(self, asserted: bool, *, stream: int = 0) -> None:
        """Sets the level of the interrupt pin, after the earlier writes of the stream.

        The level stays until it is changed; no message is sent while software uses MSI or MSI-X.
        """
        if not self._intx:
            raise ValueError("the device has no interrupt pin; give it one: intx = True")
        self._party.actions.append(("intx", fits("stream", stream, 16), bool(asserted)))

    def set_config(self, offset: int, data: bytes) -> None:
        """Changes the function's configuration space for software, from `offset` on: IDs, class, fields of capabilities.

        Bits that software writes or clears stay as they are, and the functions behind the registers work as before: a device that shows another
        size of its MSI-X table has the same. Bytes that are software's alone (Command, the address in a BAR) end the run with a
        message; so does NetTLP, whose card keeps its own configuration space.
        """
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"data is {data!r}; it must be bytes")
        self._party.actions.append(("set_config", fits("offset", offset, 12), bytes(data)))

    def spawn(self, handler: Coroutine[Any, Any, Any]) -> None:
        """Starts a concurrent handler, which runs to its first wait immediately. A reset ends it."""
        self._party.start(handler)

    def sleep(self, duration: int | str) -> Operation[None]:
        """Waits: `await cx.sleep("1.5us")`. An integer is femtoseconds."""
        return self._party.sleep(duration)


class DeviceParty(Party):
    """Carries a device: events in, actions out."""

    def __init__(self, device: Device) -> None:
        super().__init__()
        self.device = device
        self.context = Context(self, device.msix, device.msi, device.intx)
        self.bars = {index: getattr(device, name) for name, index in bar_numbers(device.bars).items()}

    def identity(self) -> Identity:
        """The device's identity, for the simulator."""
        return identity(self.device)

    def handle(self, now_fs: int, event: tuple[Any, ...]) -> list[Action]:
        """Handles one event."""
        self.now_fs = now_fs
        kind, *details = event
        if kind == "start":
            self.start(self.device.start(self.context))
        elif kind == "interrupts":
            (self.context.interrupt_mode,) = details
        elif kind == "read":
            bar, offset, length, token = details
            self.start(self.answer(self.bars[bar], offset, length, token))
        elif kind == "write":
            bar, offset, data = details
            for register, value in self.bars[bar].write(offset, data):
                if register.write_handler is not None:
                    self.start(register.write_handler(self.device, self.context, value))
        elif kind == "over":
            self.end(*details)
        elif kind == "reset":
            self.cancel()
            for bar in self.bars.values():
                bar.clear()
            self.device.reset()
        else:
            raise ValueError(f"there is no event {kind!r}")
        return self.take_actions()

    async def answer(self, bar: Bar, offset: int, length: int, token: int) -> None:
        """Answers a read, at once unless a register takes its time."""
        try:
            computed = {
                r.name: await self.compute(r) for r in bar.touched(offset, length) if r.read_handler is not None
            }
        except UnsupportedRequest:
            self.actions.append(("refuse", token, "ur"))
        except CompleterAbort:
            self.actions.append(("refuse", token, "ca"))
        else:
            self.actions.append(("reply", token, bar.read(offset, length, computed)))

    async def compute(self, register: Register) -> int:
        """The value of a register that the device computes when it is read."""
        assert register.read_handler is not None
        value = register.read_handler(self.device, self.context)
        if inspect.isawaitable(value):
            value = await value
        register.check(value)
        return int(value)
