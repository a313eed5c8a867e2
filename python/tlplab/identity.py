"""The identity of a device written in Python, as the simulator takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, get_args

from tlplab import _core
from tlplab.capabilities import Acs, Capability, Piece, ResizableBar
from tlplab.registers import Bar

if TYPE_CHECKING:
    from tlplab.device import Device


class Ids(NamedTuple):
    """The identification registers of configuration space."""

    vendor: int
    device: int
    revision: int = 0
    class_code: int = 0xFF_00_00
    """Base class, subclass, programming interface; `0xFF_00_00` is for devices without a class."""
    subsystem: tuple[int, int] | None = None
    """Subsystem vendor and subsystem ID; the same as `vendor` and `device` if None."""


class Identity(TypedDict):
    """The function's identity; every integer fits its register."""

    ids: tuple[int, int, int, int]
    """Vendor, device, revision, class code."""
    subsystem: tuple[int, int]
    msix: int
    msi: int
    intx: bool
    bars: list[tuple[int, int, bool, bool, bool]]
    """Number, size, prefetchable, 64-bit, I/O."""
    capabilities: list[Piece]


def identity(device: Device | type[Device]) -> Identity:
    """The identity of `device`. Raises `ValueError` for values that no register holds."""
    if not isinstance(device.ids, tuple) or not 2 <= len(device.ids) <= 5:
        raise ValueError(f"ids is {device.ids!r}; it must be Ids(vendor, device, …)")
    vendor, product, revision, class_code, subsystem = Ids(*device.ids)
    subsystem = (vendor, product) if subsystem is None else subsystem
    if not isinstance(device.capabilities, (tuple, list)):
        raise ValueError(f"capabilities is {device.capabilities!r}; it must be a tuple: ({device.capabilities!r},)")
    numbers = bar_numbers(device.bars)
    return {
        "ids": (
            fits("ids.vendor", vendor, 16),
            fits("ids.device", product, 16),
            fits("ids.revision", revision, 8),
            fits("ids.class_code", class_code, 24),
        ),
        "subsystem": (fits("ids.subsystem[0]", subsystem[0], 16), fits("ids.subsystem[1]", subsystem[1], 16)),
        "msix": fits("msix", device.msix, 16),
        "msi": fits("msi", device.msi, 8),
        "intx": bool(device.intx),
        "bars": [
            (fits(f"the number of BAR {name}", numbers[name], 8), bar.size, bar.prefetchable, bar.wide, bar.io)
            for name, bar in device.bars.items()
        ],
        "capabilities": [piece(capability, device.bars) for capability in device.capabilities],
    }


def bar_numbers(bars: Mapping[str, type[Bar]]) -> dict[str, int]:
    """The number of each BAR: its own, or the next free one in the order of declaration; a wide one takes two."""
    numbers = {}
    following = 0
    for name, bar in bars.items():
        numbers[name] = following if bar.number is None else bar.number
        following = numbers[name] + (2 if bar.wide else 1)
    return numbers


def fits(what: str, value: Any, bits: int) -> int:
    """`value`, if it is an integer of so many bits."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{what} is {value!r}; it must be an integer")
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{what} is {value:#x}; it has {bits} bits")
    return value


# The fields of each capability that are integers, with their bits.
BITS = {
    "VendorExtended": {"id": 16, "revision": 8},
    "SerialNumber": {"number": 64},
    "Acs": {"controls": 8},
    "Ats": {"queue_depth": 8},
    "Pasid": {"width": 8},
}

# Egress control is of ports and of functions that have a vector of them.
ACS_OF_DEVICES = 0x5F

SIZES = [1 << (20 + exponent) for exponent in range(28)]


def piece(capability: Capability, bars: Mapping[str, type[Bar]]) -> Piece:
    """A capability with its place and its fields, checked."""
    if not isinstance(capability, Capability):
        raise ValueError(
            f"{capability!r} is not a capability; the capabilities are {', '.join(k.__name__ for k in get_args(Capability))}"
        )
    name = type(capability).__name__
    at = None if capability.at is None else fits(f"{name}: at", capability.at, 16)
    if isinstance(capability, ResizableBar):
        return name, at, (resizable(capability.bars, bars),)
    fields = {key: value for key, value in vars(capability).items() if key != "at"}
    for key, bits in BITS.get(name, {}).items():
        fits(f"{name}: {key}", fields[key], bits)
    if isinstance(capability, Acs) and capability.controls & ~ACS_OF_DEVICES:
        raise ValueError(
            f"Acs: controls is {capability.controls:#x}; it must be of {ACS_OF_DEVICES:#x}, without egress control"
        )
    if not isinstance(fields.get("data", b""), bytes):
        raise ValueError(f"{name}: data is {fields['data']!r}; it must be bytes")
    return name, at, tuple(fields.values())


def resizable(sizes: Mapping[str, Sequence[int | str]], bars: Mapping[str, type[Bar]]) -> list[tuple[int, int, int]]:
    """Of each resizable BAR its number, its sizes as a set of bits (0: 1 MiB), and which of them it has now."""
    unknown = next((name for name in sizes if name not in bars), None)
    if unknown is not None:
        raise ValueError(f"ResizableBar: there is no BAR {unknown!r}; the BARs are {', '.join(bars) or 'none'}")
    numbers = bar_numbers(bars)
    found = []
    for name, each in sizes.items():
        exponents = {exponent(size) for size in each}
        now = exponent(bars[name].size)
        if now not in exponents:
            raise ValueError(f"ResizableBar: {name} has {bars[name].size} B, which is missing from its sizes; add it")
        found.append((numbers[name], sum(1 << e for e in exponents), now))
    return found


def exponent(size: int | str) -> int:
    """0 for 1 MiB, 1 for 2 MiB, up to 27 for 128 TiB."""
    size = size if isinstance(size, int) else _core.size(size)
    if size not in SIZES:
        raise ValueError(f"ResizableBar: {size} B is invalid; sizes are powers of two from 1 MiB to 128 TiB")
    return SIZES.index(size)
