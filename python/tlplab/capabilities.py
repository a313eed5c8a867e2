"""Further capabilities of a function in configuration space.

    class Accelerator(tl.Device):
        capabilities = (tl.SerialNumber(0x71AB_0000_0000_0001), tl.Vendor(b"tlplab", at=0x80), tl.Ltr())

A capability is placed in free space, or `at` an offset: from 0x40 below 0x100, or for extended ones from 0x100, a
multiple of 4. Its bits respond to writes as specified (PCIe 5.0 §7.6 to §7.9); they have no other effect:
a device with ATS sends no translation requests automatically.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Vendor:
    """Vendor-specific capability: up to 189 bytes after the header of three, read-only for the host."""

    data: bytes
    at: int | None = None


@dataclass(frozen=True)
class VendorExtended:
    """Vendor-specific extended capability: the bytes after the two headers, read-only for the host."""

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
    """BARs whose size software may choose, as in `ResizableBar({"mem": ("1MiB", "16MiB")})`."""

    bars: Mapping[str, Sequence[int | str]]
    """The possible sizes of a BAR, by the name of its class in the device: powers of two from 1 MiB."""
    at: int | None = None


Capability = Vendor | VendorExtended | SerialNumber | Acs | Ats | Pasid | Ltr | ResizableBar
"""Any capability. Every device has power management, MSI, MSI-X, PCI Express and AER."""

Piece = tuple[str, int | None, tuple[Any, ...]]
"""Its name, its place, and its fields in order, as the simulator takes them."""
