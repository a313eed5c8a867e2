"""What a function says of itself in configuration space, piece by piece, besides what every device here has.

    class Accelerator(tl.Device):
        capabilities = (tl.SerialNumber(0x71AB_0000_0000_0001), tl.Vendor(b"tlplab", at=0x80), tl.Ltr())

A piece is placed where there is room, or `at` an offset: from 0x40 below 0x100, or for the extended ones from 0x100, a
multiple of 4. What its bits do when software writes them is as specified (PCIe 5.0 §7.6 to §7.9); nothing else follows from
them: a device with ATS sends no translation requests by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Vendor:
    """The maker's own capability: up to 189 bytes behind the header of three, which the host can only read."""

    data: bytes
    at: int | None = None


@dataclass(frozen=True)
class VendorExtended:
    """The maker's own extended capability: what follows the two headers, which the host can only read."""

    id: int
    data: bytes
    revision: int = 0
    at: int | None = None


@dataclass(frozen=True)
class SerialNumber:
    """The serial number of the card, 64 bits."""

    number: int
    at: int | None = None


@dataclass(frozen=True)
class Acs:
    """Access control between peers."""

    controls: int
    """The controls there are, as bits 0 to 6 of the capability register: source validation, translation blocking, request
    redirect, completion redirect, upstream forwarding, (bit 5, egress control, is of ports only), direct translated."""
    at: int | None = None


@dataclass(frozen=True)
class Ats:
    """Address translation services."""

    queue_depth: int = 32
    """Invalidations that can be queued, 1 to 32."""
    at: int | None = None


@dataclass(frozen=True)
class Pasid:
    """Process address spaces."""

    width: int = 20
    """Bits of identifier, at most 20."""
    at: int | None = None


@dataclass(frozen=True)
class Ltr:
    """Latency tolerance reporting: software writes the limits."""

    at: int | None = None


@dataclass(frozen=True)
class ResizableBar:
    """BARs of which software may choose the size, as in `ResizableBar({"mem": ("1MiB", "16MiB")})`."""

    bars: Mapping[str, Sequence[int | str]]
    """By the name of its class in the device, the sizes that a BAR can have: powers of two from 1 MiB."""
    at: int | None = None


Capability = Vendor | VendorExtended | SerialNumber | Acs | Ats | Pasid | Ltr | ResizableBar
"""Any of them. Power management, MSI, MSI-X, PCI Express and AER are there without being asked for."""

Piece = tuple[str, int | None, tuple[Any, ...]]
"""Its name, its place, and its fields in order, as the simulator takes them."""
