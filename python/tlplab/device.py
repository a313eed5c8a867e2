"""PCI Express devices written in Python.

    class Copier(tl.Device):
        ids, msix = tl.Ids(0x1DE5, 1), 1

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

Handlers start in the order in which writes arrive and run without interruption to their first `await`. A function-level
reset ends those that wait.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from tlplab.registers import LARGEST_32_BIT, Bar, Register
from tlplab.tasks import Action, Operation, Party


class Ids(NamedTuple):
    """What configuration space says about who a device is."""

    vendor: int
    device: int
    revision: int = 0
    class_code: int = 0xFF_00_00
    """Base class, subclass, programming interface; `0xFF_00_00` fits no other class."""


class Device:
    """A function. Subclass it; give it `ids`, how many `msix` vectors it has, and BARs as inner classes."""

    ids: ClassVar[Ids] = Ids(0x1DE5, 0)
    msix: ClassVar[int] = 0
    bars: ClassVar[dict[str, type[Bar]]] = {}

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        own = {name: bar for name, bar in vars(cls).items() if isinstance(bar, type) and issubclass(bar, Bar)}
        cls.bars = {**cls.bars, **own}

    def __new__(cls, *_args: Any, **_parameters: Any) -> Device:
        # Here and not in __init__, so that subclasses need not call it.
        device = super().__new__(cls)
        for name, bar in cls.bars.items():
            setattr(device, name, bar())
        return device

    def start(self, cx: Context) -> Any:
        """Called once, when the device has been configured; may be a coroutine."""

    def reset(self) -> None:
        """Called after a function-level reset has cleared the registers and ended all handlers."""


class Context:
    """What a handler can do to the world outside its device."""

    def __init__(self, party: Party, vectors: int) -> None:
        self._party = party
        self._vectors = vectors

    @property
    def now_fs(self) -> int:
        """Simulated time, femtoseconds."""
        return self._party.now_fs

    def dma_read(self, address: int, length: int, *, stream: int = 0) -> Operation[bytes]:
        """Reads host memory or a peer's BAR; await it for the bytes. Raises `DmaError` there.

        It begins at once, so several can be under way. Operations of one `stream` leave the device in their order.
        """
        return self._party.begin("dma_read", stream, address, length)

    def dma_write(self, address: int, data: bytes, *, stream: int = 0) -> Operation[None]:
        """Writes; posted, so awaiting it only waits until its last TLP was accepted for sending."""
        return self._party.begin("dma_write", stream, address, bytes(data))

    def msix(self, vector: int, *, stream: int = 0) -> None:
        """Raises an interrupt, which stays behind the earlier writes of its stream."""
        if not 0 <= vector < self._vectors:
            raise ValueError(f"there is no MSI-X vector {vector}; the device has {self._vectors}: msix = {vector + 1}")
        self._party.actions.append(("msix", stream, vector))

    def sleep(self, duration: int | str) -> Operation[None]:
        """Waits: `await cx.sleep("1.5us")`. An integer is femtoseconds."""
        return self._party.sleep(duration)


class DeviceParty(Party):
    """Carries a device: events in, actions out."""

    def __init__(self, device: Device) -> None:
        super().__init__()
        self.device = device
        self.context = Context(self, device.msix)
        self.bars = {index: getattr(device, name) for name, index in bar_numbers(type(device)).items()}

    def identity(self) -> tuple[Ids, int, list[tuple[int, int, bool, bool]]]:
        """The IDs, the number of MSI-X vectors, and (index, size, prefetchable, 64-bit) of each BAR."""
        bars = [(index, bar.size, bar.memory, wide(type(bar))) for index, bar in self.bars.items()]
        return Ids(*self.device.ids), self.device.msix, bars

    def handle(self, now_fs: int, event: tuple[Any, ...]) -> list[Action]:
        """One event, and what the device does about it."""
        self.now_fs = now_fs
        kind, *details = event
        if kind == "start":
            self.start(self.device.start(self.context))
        elif kind == "read":
            bar, offset, length, token = details
            self.actions.append(("reply", token, self.bars[bar].read(offset, length, self.computed)))
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
        return self.take_actions()

    def computed(self, register: Register) -> int | None:
        """The value of a register that the device computes when it is read."""
        if register.read_handler is None:
            return None
        return int(register.read_handler(self.device, self.context))


def wide(bar: type[Bar]) -> bool:
    """Whether a BAR takes two registers: memory may lie above 4 GiB, registers stay below for old drivers."""
    return bar.memory or bar.size > LARGEST_32_BIT


def bar_numbers(device: type[Device]) -> dict[str, int]:
    """The number of each BAR, in the order of declaration; a 64-bit one takes two."""
    numbers = {}
    number = 0
    for name, bar in device.bars.items():
        numbers[name] = number
        number += 2 if wide(bar) else 1
    return numbers
