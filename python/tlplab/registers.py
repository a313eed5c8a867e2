"""Base address registers of a device in Python: named registers, or plain memory.

    class regs(tl.Bar, size="4KiB"):
        src = tl.Reg64(0x00)
        go = tl.Reg32(0x10)

The class defines the layout; each device has an object of it, in which `self.regs.src` is an integer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, ClassVar, TypeVar, overload

from tlplab import _core

Handler = Callable[..., Any]
AnyHandler = TypeVar("AnyHandler", bound=Handler)
# Everything a 32-bit BAR can hold is below 4 GiB; half of it is the largest power of two that leaves room.
LARGEST_32_BIT = 1 << 31
# Of a BAR's class.
KEYWORDS = ("size", "memory", "wide", "prefetchable", "io", "number")


class Register:
    """A little-endian register at a byte offset. Read-only registers ignore writes from the host."""

    def __init__(self, offset: int, size: int, *, ro: bool = False, reset: int = 0) -> None:
        """`size` is in bytes, `reset` the value after start and reset."""
        self.offset, self.size, self.ro, self.reset = offset, size, ro, reset
        self.name, self.line = "", line_of_user()
        self.write_handler: Handler | None = None
        self.read_handler: Handler | None = None

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, bar: None, owner: type) -> Register: ...
    @overload
    def __get__(self, bar: Bar, owner: type) -> int: ...
    def __get__(self, bar: Bar | None, owner: type) -> Register | int:
        return self if bar is None else bar.values[self.name]

    def __set__(self, bar: Bar, value: int) -> None:
        self.check(value)
        bar.values[self.name] = value

    def check(self, value: int) -> None:
        """Raises `TypeError` or `OverflowError` for a value that does not fit."""
        if not isinstance(value, int):
            raise TypeError(f"{self.name} holds an integer, not {value!r}")
        if not 0 <= value < 1 << (8 * self.size):
            raise OverflowError(f"{self.name} holds {8 * self.size} bits; {value:#x} does not fit")

    def on_write(self, handler: AnyHandler) -> AnyHandler:
        """Decorates the device's method `method(cx, value)`, called after each write by the host."""
        self.write_handler = handler
        return handler

    def on_read(self, handler: AnyHandler) -> AnyHandler:
        """Decorates the device's method `method(cx)`, which returns the value for a read by the host.

        A coroutine may complete the read later. It may raise `UnsupportedRequest` or `CompleterAbort`.
        """
        self.read_handler = handler
        return handler


# The factories say Any: type checkers take `self.regs` for the class, in which a register is no number.
def Reg32(offset: int, *, ro: bool = False, reset: int = 0) -> Any:  # noqa: N802 (reads as a type)
    """A `Register` of 32 bits."""
    return Register(offset, 4, ro=ro, reset=reset)


def Reg64(offset: int, *, ro: bool = False, reset: int = 0) -> Any:  # noqa: N802
    """A `Register` of 64 bits."""
    return Register(offset, 8, ro=ro, reset=reset)


def of_keyword(name: str) -> str:
    """The message about a keyword that `Bar` does not have."""
    near = get_close_matches(name, KEYWORDS, 1)
    return f'unknown keyword "{name}"; ' + (f'did you mean "{near[0]}"?' if near else f"expected {', '.join(KEYWORDS)}")


class Bar:
    """A base address register. Subclass it inside a device, with a size and registers or `memory=True`."""

    size: ClassVar[int] = 0
    memory: ClassVar[bool] = False
    wide: ClassVar[bool] = False
    prefetchable: ClassVar[bool] = False
    io: ClassVar[bool] = False
    number: ClassVar[int | None] = None
    registers: ClassVar[dict[str, Register]] = {}

    def __init_subclass__(
        cls,
        *,
        size: int | str | None = None,
        memory: bool = False,
        wide: bool | None = None,
        prefetchable: bool | None = None,
        io: bool = False,
        number: int | None = None,
        **rest: Any,
    ) -> None:
        """`size` is a power of two such as `"4KiB"`. With `memory=True` the host reads back the data that it wrote.

        `wide` BARs may lie above 4 GiB and take two numbers, `prefetchable` ones have no side effects when they are read;
        both hold for memory and not for registers unless said otherwise (registers of 4 GiB and more are always wide). `io`
        is I/O space. `number`, 0 to 5, counts on from the BAR before.
        """
        try:
            super().__init_subclass__(**rest)
        except TypeError:
            raise TypeError(f"{cls.__name__}: {of_keyword(next(iter(rest)))}") from None
        if size is None:
            raise TypeError(
                f'{cls.__name__}: the size of the BAR is missing; for example class {cls.__name__}(tl.Bar, size="4KiB")'
            )
        check_names(cls)
        cls.size = size if isinstance(size, int) else _core.size(size)
        cls.memory, cls.io, cls.number = memory, io, number
        cls.wide = ((memory and not io) or cls.size > LARGEST_32_BIT) if wide is None else wide
        cls.prefetchable = (memory and not io) if prefetchable is None else prefetchable
        least = 4 if io else 16
        if cls.size < least or cls.size & (cls.size - 1):
            nearest = max(least, 1 << (cls.size - 1).bit_length())
            raise ValueError(
                f"{cls.__name__}: a BAR of {cls.size} B is invalid; the size must be a power of two of at least {least} B: "
                f"size={nearest}"
            )
        cls.registers = {name: r for name, r in vars(cls).items() if isinstance(r, Register)}
        check_places(cls)

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self.bytes = bytearray()
        self.clear()

    def clear(self) -> None:
        """As after power-on."""
        self.values = {name: register.reset for name, register in self.registers.items()}
        self.bytes = bytearray(self.size if self.memory else 0)

    def read(self, offset: int, length: int, computed: dict[str, int]) -> bytes:
        """The data of a host's read, with registers that the device computed; bytes that are neither memory nor a register are zero."""
        if self.memory and not self.registers:
            return bytes(self.bytes[offset : offset + length])
        data = bytearray(self.bytes[offset : offset + length] if self.memory else length)
        for register in self.touched(offset, length):
            value = computed.get(register.name, self.values[register.name])
            whole = value.to_bytes(register.size, "little")
            start, end = max(offset, register.offset), min(offset + length, register.offset + register.size)
            data[start - offset : end - offset] = whole[start - register.offset : end - register.offset]
        return bytes(data)

    def write(self, offset: int, data: bytes) -> list[tuple[Register, int]]:
        """Takes a write of the host; the registers with handlers that it touched, with their new values."""
        if self.memory:
            self.bytes[offset : offset + len(data)] = data
        told = []
        for register in self.touched(offset, len(data)):
            if register.ro:
                continue
            whole = bytearray(self.values[register.name].to_bytes(register.size, "little"))
            start, end = max(offset, register.offset), min(offset + len(data), register.offset + register.size)
            whole[start - register.offset : end - register.offset] = data[start - offset : end - offset]
            value = int.from_bytes(whole, "little")
            self.values[register.name] = value
            told.append((register, value))
        return told

    def touched(self, offset: int, length: int) -> list[Register]:
        """The registers that an access meets, in the order of their offsets."""
        met = [r for r in self.registers.values() if r.offset < offset + length and offset < r.offset + r.size]
        return sorted(met, key=lambda register: register.offset)


def line_of_user() -> int | None:
    """The line outside this file that is being executed."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return None if frame is None else frame.f_lineno


def check_names(bar: type[Bar]) -> None:
    """Refuses registers with names that every BAR has for something else."""
    taken = {*vars(Bar), "values", "bytes"}
    for name, register in vars(bar).items():
        if isinstance(register, Register) and name in taken:
            raise ValueError(
                f"{bar.__name__}: line {register.line}: a register cannot have the name {name}, which every BAR uses "
                f"for an attribute; name it {name}_reg"
            )


def check_places(bar: type[Bar]) -> None:
    """Refuses registers that are not aligned, overlap or stick out."""
    end = 0
    previous = ""
    for register in sorted(bar.registers.values(), key=lambda register: register.offset):
        here = f"{bar.__name__}: line {register.line}: {register.name} at {register.offset:#x}"
        if register.offset % register.size:
            raise ValueError(
                f"{here} is not aligned; put a register of {register.size} B at a multiple of {register.size}"
            )
        if register.offset < end:
            raise ValueError(f"{here} overlaps {previous}")
        end, previous = register.offset + register.size, register.name
    if end > bar.size:
        line = bar.registers[previous].line
        raise ValueError(
            f"{bar.__name__}: line {line}: {previous} ends at {end:#x}, outside the BAR of {bar.size:#x} B"
        )
