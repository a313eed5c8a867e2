"""A function-level reset as an operating system does it: registers are saved, the function is reset, registers are restored."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tlplab.tasks import Operation

if TYPE_CHECKING:
    from tlplab.driver import DeviceHandle

CAPABILITIES = 0x34
PCIE, MSIX = 0x10, 0x11
FLR_CAPABLE = 1 << 28
INITIATE_FLR = 1 << 15
RESET_TIME = "100ms"
"""The time that software leaves a function alone after a reset (PCIe 5.0 §6.6.2)."""


async def reset(device: DeviceHandle, sleep: Callable[[int | str], Operation[None]]) -> None:
    """Resets the function and gives it back its BARs, its interrupts and the bus.

    Raises `RuntimeError` for a function without function-level reset.
    """
    config = device.config
    places = await capabilities(device)
    pcie = places.get(PCIE)
    if pcie is None or not int.from_bytes(await config.read(pcie + 4, 4), "little") & FLR_CAPABLE:
        raise RuntimeError(f"device {device.name} has no function-level reset")
    saved = await config.read(0, 0x100)
    table = None
    if MSIX in places:
        table = await msix_table(device, places[MSIX])
    control = int.from_bytes(await config.read(pcie + 8, 2), "little")
    await config.write(pcie + 8, (control | INITIATE_FLR).to_bytes(2, "little"))
    await sleep(RESET_TIME)
    # From the top, so that the BARs are there before the command register switches them on.
    for offset in reversed(range(0x04, 0x100, 4)):
        await config.write(offset, saved[offset : offset + 4])
    if table is not None:
        bar, start, entries = table
        for at in range(0, len(entries), 4):
            await device.bar(bar).poke(start + at, entries[at : at + 4])


async def capabilities(device: DeviceHandle) -> dict[int, int]:
    """The offset of each capability below 0x100, by its ID."""
    places: dict[int, int] = {}
    (at,) = await device.config.read(CAPABILITIES, 1)
    while at:
        name, following = await device.config.read(at, 2)
        places.setdefault(name, at)
        at = following if following not in places.values() else 0
    return places


async def msix_table(device: DeviceHandle, capability: int) -> tuple[int, int, bytes]:
    """The BAR that holds the table, its offset there, and its content."""
    vectors = (int.from_bytes(await device.config.read(capability + 2, 2), "little") & 0x7FF) + 1
    place = int.from_bytes(await device.config.read(capability + 4, 4), "little")
    bar, start = place & 7, place & ~7
    words = [device.bar(bar).peek(start + at, 4) for at in range(0, 16 * vectors, 4)]
    return bar, start, b"".join([await word for word in words])
