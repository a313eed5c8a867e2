"""The host's side of a device, in Python: drivers and tests.

async def driver(host, dev):
    a, b = host.alloc(b"x" * 4096), host.alloc(4096)
    await dev.regs.write(src=a, dst=b, go=4096)
    await dev.irq(0)
    assert host.read(b, 4096) == b"x" * 4096
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, Protocol

from tlplab.device import Device
from tlplab.identity import bar_numbers
from tlplab.registers import Register
from tlplab.reset import reset
from tlplab.tasks import Action, Operation, Party

PAGE = 4096
CONFIG_BYTES = 4096


class Memory(Protocol):
    """Host memory. Accesses by the program take no simulated time."""

    def read(self, address: int, length: int) -> bytes: ...
    def write(self, address: int, data: bytes) -> None: ...
    def alloc(self, length: int, align: int) -> int: ...


class Host:
    """The host, for a driver."""

    def __init__(self, party: Party, memory: Memory) -> None:
        self._party = party
        self._memory = memory

    @property
    def now_fs(self) -> int:
        """Simulated time, femtoseconds."""
        return self._party.now_fs

    def alloc(self, content: int | bytes, *, align: int = PAGE) -> int:
        """Allocates memory, by size or for `content`, which is copied there. Returns the address."""
        if isinstance(content, int):
            return self._memory.alloc(content, align)
        address = self._memory.alloc(len(content), align)
        self._memory.write(address, content)
        return address

    def read(self, address: int, length: int) -> bytes:
        """Reads memory."""
        return self._memory.read(address, length)

    def write(self, address: int, data: bytes) -> None:
        """Writes memory."""
        self._memory.write(address, data)

    def sleep(self, duration: int | str) -> Operation[None]:
        """Waits: `await host.sleep("1.5us")`. An integer is femtoseconds."""
        return self._party.sleep(duration)


class BarHandle:
    """A BAR of a device, reached by MMIO."""

    def __init__(self, party: Party, base: int, size: int, registers: dict[str, Register]) -> None:
        self._party, self.base, self.size, self._registers = party, base, size, registers

    def _register(self, name: str) -> Register:
        if name not in self._registers:
            raise AttributeError(
                f"there is no register {name!r}; the registers are {', '.join(self._registers) or 'none'}"
            )
        return self._registers[name]

    def write(self, **values: int) -> Operation[None]:
        """Writes registers in the order given; awaiting it waits until the last write has left the processor."""
        operation = None
        for name, value in values.items():
            register = self._register(name)
            operation = self.poke(register.offset, value.to_bytes(register.size, "little"))
        if operation is None:
            raise TypeError("write() needs at least one register, as in write(go=1)")
        return operation

    async def read(self, name: str) -> int:
        """Reads a register."""
        register = self._register(name)
        return int.from_bytes(await self.peek(register.offset, register.size), "little")

    def poke(self, offset: int, data: bytes) -> Operation[None]:
        """Writes bytes."""
        self._check(offset, len(data))
        return self._party.begin("mmio_write", 0, self.base + offset, bytes(data))

    def peek(self, offset: int, length: int) -> Operation[bytes]:
        """Reads bytes; await it for them."""
        self._check(offset, length)
        return self._party.begin("mmio_read", 0, self.base + offset, length)

    def _check(self, offset: int, length: int) -> None:
        if not 0 <= offset <= self.size - length:
            raise ValueError(f"{length} B at {offset:#x} are outside the BAR of {self.size:#x} B")


class ConfigHandle:
    """The configuration space of a device, reached by configuration requests of a doubleword each."""

    def __init__(self, party: Party, base: int) -> None:
        self._party, self._base = party, base

    async def read(self, offset: int, length: int) -> bytes:
        """Reads bytes; all ones if no function completes the request."""
        parts = [self._party.begin("mmio_read", 0, self._base + at, n) for at, n in self._parts(offset, length)]
        return b"".join([await part for part in parts])

    async def write(self, offset: int, data: bytes) -> None:
        """Writes bytes, and waits until the device has taken them."""
        parts = [(at, data[at - offset : at - offset + n]) for at, n in self._parts(offset, len(data))]
        for part in [self._party.begin("mmio_write", 0, self._base + at, piece) for at, piece in parts]:
            await part

    def _parts(self, offset: int, length: int) -> list[tuple[int, int]]:
        if not (offset >= 0 and 0 < length <= CONFIG_BYTES - offset):
            raise ValueError(
                f"{length} B at {offset:#x} are outside configuration space, which has {CONFIG_BYTES:#x} B"
            )
        starts = [offset, *range(offset // 4 * 4 + 4, offset + length, 4)]
        return [(at, min(at // 4 * 4 + 4, offset + length) - at) for at in starts]


class DeviceHandle:
    """A device, for its driver; BARs named in Python are attributes with the same names."""

    def __init__(
        self,
        party: Party,
        name: str,
        ids: tuple[int, int],
        bars: dict[int, tuple[int, int]],
        config: int,
        device: Device | None,
    ) -> None:
        """`bars` maps a BAR's number to its address and size; `config` is where its configuration space is."""
        self._party = party
        self.name, self.ids = name, ids
        self.config = ConfigHandle(party, config)
        self._interrupts: dict[int, int] = defaultdict(int)
        self._waiting: dict[int, deque[Operation[None]]] = defaultdict(deque)
        self._bars = {number: BarHandle(party, base, size, {}) for number, (base, size) in bars.items()}
        if device is not None:
            for bar, number in bar_numbers(device.bars).items():
                base, size = bars[number]
                self._bars[number] = BarHandle(party, base, size, device.bars[bar].registers)
                setattr(self, bar, self._bars[number])

    def __getattr__(self, name: str) -> BarHandle:
        raise AttributeError(f"device {self.name} has no {name!r}; its BARs are bar(n) or have the names of its class")

    def bar(self, number: int) -> BarHandle:
        """A BAR by its number."""
        if number not in self._bars:
            raise ValueError(f"device {self.name} has no BAR {number}; it has {sorted(self._bars)}")
        return self._bars[number]

    def irq(self, vector: int) -> Operation[None]:
        """Waits for an interrupt. An earlier interrupt is kept until a driver waits for it."""
        operation: Operation[None] = Operation("irq", f"irq {vector}")
        if self._interrupts[vector]:
            self._interrupts[vector] -= 1
            operation.over = True
        else:
            self._waiting[vector].append(operation)
        return operation

    async def reset(self) -> None:
        """Resets the function (function-level reset, 100 ms) and restores its configuration."""
        await reset(self, self._party.sleep)

    def interrupt(self, vector: int) -> None:
        """The device raised an interrupt."""
        if self._waiting[vector]:
            self._party.complete(self._waiting[vector].popleft(), None)
        else:
            self._interrupts[vector] += 1


class DriverParty(Party):
    """Carries a driver: events in, actions out."""

    def __init__(self, driver: Callable[[Host, DeviceHandle], Any], memory: Memory) -> None:
        super().__init__()
        self.driver = driver
        self.host = Host(self, memory)
        self.handle_of: DeviceHandle | None = None

    def attach(
        self,
        name: str,
        ids: tuple[int, int],
        bars: dict[int, tuple[int, int]],
        config: int,
        device: Device | None,
    ) -> None:
        """Receives the place of the device."""
        self.handle_of = DeviceHandle(self, name, ids, bars, config, device)

    def handle(self, now_fs: int, event: tuple[Any, ...]) -> list[Action]:
        """Handles one event."""
        self.now_fs = now_fs
        assert self.handle_of is not None, "attach() comes first"
        kind, *details = event
        begun = bool(self.tasks)
        if kind == "start":
            self.start(self.driver(self.host, self.handle_of))
            begun = True
        elif kind == "interrupt":
            self.handle_of.interrupt(*details)
        elif kind == "over":
            self.end(*details)
        else:
            raise ValueError(f"there is no event {kind!r}")
        if begun and not self.tasks:
            self.actions.append(("finished",))
        return self.take_actions()

    def waits(self) -> list[tuple[str, str, str]]:
        """The operations for which the driver still waits: the kind, the same for people, and the place in its file; empty when it has returned."""
        waiting = [(task.waits_for, task.place) for task in self.tasks.values() if task.waits_for is not None]
        return [(operation.kind, operation.what, place) for operation, place in waiting]
