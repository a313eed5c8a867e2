"""A function, as far as its source tells: every field that it does not tell is None."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tlplab import _core

# Transfers per second and lane, in GT/s as lspci and the kernel write it, by generation.
RATES = {text: number for number, rate, _ in _core.generations() for text in (f"{rate:g}", f"{rate:.1f}")}
# What lspci calls the bits of registers, by their places.
ACCESS_CONTROLS = ("SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")
UNCORRECTABLE = {
    4: "DLP", 5: "SDES", 12: "TLP", 13: "FCP", 14: "CmpltTO", 15: "CmpltAbrt", 16: "UnxCmplt", 17: "RxOF",
    18: "MalfTLP", 19: "ECRC", 20: "UnsupReq", 21: "ACSViol", 22: "UncorrIntErr", 23: "BlockedTLP",
    24: "AtomicOpBlocked", 25: "TLPBlockedErr", 26: "PoisonTLPBlocked", 27: "DMWrReqBlocked", 28: "IDECheck",
    29: "MisIDETLP", 30: "PCRC_CHECK", 31: "TLPXlatBlocked",
}  # fmt: skip
CORRECTABLE = {
    0: "RxErr", 6: "BadTLP", 7: "BadDLLP", 8: "Rollover", 12: "Timeout", 13: "AdvNonFatalErr", 14: "CorrIntErr",
    15: "HeaderOF",
}  # fmt: skip
DETECTED = ("correctable", "non-fatal", "fatal", "unsupported request")
ASPM = ("L0s", "L1")
# Ports from which a link leads down, and those from which it leads up.
DOWNSTREAM = ("root port", "downstream port", "PCI-to-PCIe bridge")
UPSTREAM = ("end point", "legacy end point", "upstream port", "PCIe-to-PCI bridge")


class Address(NamedTuple):
    """The address of a function."""

    domain: int
    bus: int
    device: int
    function: int

    def __str__(self) -> str:
        local = f"{self.bus:02x}:{self.device:02x}.{self.function:x}"
        return f"{self.domain:04x}:{local}" if self.domain else local


@dataclass
class Register:
    """A register, or another detail of a capability, in the words of lspci."""

    name: str
    text: str


@dataclass
class Capability:
    """A capability; of some sources only its number, of others only its name is known."""

    offset: int
    extended: bool
    id: int | None = None
    version: int | None = None
    name: str | None = None
    registers: list[Register] = field(default_factory=list)


@dataclass
class Function:
    """The known facts of a function. Sizes are bytes, speeds generations, widths lanes (0: nothing is there)."""

    address: Address
    above: Address | None = None
    """The bridge above it, if the source states it."""
    vendor: int | None = None
    device: int | None = None
    subsystem: str | None = None
    class_code: int | None = None
    class_name: str | None = None
    name: str | None = None
    revision: int | None = None
    header: int | None = None
    bus_master: bool | None = None
    primary: int | None = None
    secondary: int | None = None
    subordinate: int | None = None
    driver: str | None = None
    numa_node: int | None = None
    """-1: it belongs to none."""
    iommu_group: int | None = None
    iommu_domain: str | None = None
    """Of the group, as the kernel writes it: `identity` passes addresses through; `DMA`, `DMA-FQ` and `unmanaged` translate them."""
    physical_function: Address | None = None
    """Of a virtual function: whose."""
    virtual_functions: list[int] | None = None
    """The number of enabled virtual functions, the offset of the first one, and the stride, in functions."""
    runtime_suspended: bool | None = None
    power_state: str | None = None
    capabilities_known: bool = False
    """True if all capabilities below 100h are listed."""
    extended_known: bool = False
    """True if all extended capabilities are listed."""
    capabilities: list[Capability] = field(default_factory=list)
    # PCI Express.
    express_version: int | None = None
    port: str | None = None
    slot: bool | None = None
    mps_supported: int | None = None
    mps: int | None = None
    mrrs: int | None = None
    extended_tags_supported: bool | None = None
    extended_tags: bool | None = None
    ten_bit_tags: bool | None = None
    relaxed_ordering: bool | None = None
    no_snoop: bool | None = None
    detected: list[str] | None = None
    """Errors in Device Status, of `DETECTED`."""
    # Its link.
    port_number: int | None = None
    """Its bit in the egress control vectors of its sibling ports."""
    speed_possible: int | None = None
    width_possible: int | None = None
    speed: int | None = None
    width: int | None = None
    target_speed: int | None = None
    aspm_supported: list[str] | None = None
    aspm: list[str] | None = None
    rcb: int | None = None
    link_disabled: bool | None = None
    training: bool | None = None
    link_active: bool | None = None
    """None if the port does not report it."""
    bandwidth_changed: bool | None = None
    autonomous_changed: bool | None = None
    # Extended.
    access_control: list[str] | None = None
    """The controls of access between peers that are on."""
    access_control_supported: list[str] | None = None
    egress_forbidden: list[int] | None = None
    """The port numbers in the egress control vector; only registers have it."""
    ats_enabled: bool | None = None
    """None also without address translation services."""
    ats_unit: int | None = None
    """The smallest translation unit: pages of 4 KiB, as a power of two."""
    uncorrectable: list[str] | None = None
    """Errors in the registers of advanced error reporting."""
    correctable: list[str] | None = None
    error_counts: dict[str, int] | None = None
    """Errors that the operating system has counted, by kind: `correctable`, `nonfatal`, `fatal`."""
    # What else the source says.
    fields: list[Register] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    """Lines that tlplab does not know."""

    def virtual_addresses(self) -> list[Address]:
        """The addresses of its virtual functions."""
        count, offset, stride = self.virtual_functions or (0, 0, 0)
        own = self.address.bus << 8 | self.address.device << 3 | self.address.function
        places = (own + offset + stride * number for number in range(count))
        return [Address(self.address.domain, at >> 8, at >> 3 & 31, at & 7) for at in places if own < at <= 0xFFFF]

    def learn(self, told: dict[str, Any]) -> None:
        """Takes over the facts of a source; None counts as unknown."""
        for name, value in told.items():
            if value is not None:
                setattr(self, name, value)

    def ids(self) -> str | None:
        """`8086:3c00`"""
        return None if self.vendor is None or self.device is None else f"{self.vendor:04x}:{self.device:04x}"

    @property
    def is_bridge(self) -> bool:
        """True if buses are below it, as far as is known."""
        if self.header is not None:
            return self.header in (1, 2)  # the host bridge may call itself a root port
        return self.secondary is not None or self.port in ("upstream port", *DOWNSTREAM)

    @property
    def has_link(self) -> bool:
        """True if it is an end of a link, as far as is known."""
        return self.port in (*DOWNSTREAM, *UPSTREAM) or (self.port is None and self.width is not None)


def from_registers(dumped: bytes) -> dict[str, Any]:
    """The facts in registers that were dumped from 0 on, for `Function.learn`."""
    found = _core.registers(dumped)
    if found is None:
        return {}
    chains = [(False, found.pop("capabilities")), (True, found.pop("extended"))]
    found["capabilities"] = [
        Capability(offset, extended, id=number, version=version if extended else None)
        for extended, chain in chains
        for offset, version, number in chain
    ]
    for name, bits, names in (
        ("aspm_supported", "aspm_supported_bits", ASPM),
        ("aspm", "aspm_bits", ASPM),
        ("detected", "detected_bits", DETECTED),
    ):
        found[name] = named(found.pop(bits, None), dict(enumerate(names)))
    errors = found.pop("error_bits", (None, None))
    found["uncorrectable"], found["correctable"] = map(named, errors, (UNCORRECTABLE, CORRECTABLE))
    controls = found.pop("access_control_bits", (None, None))
    there, on = (named(bits, dict(enumerate(ACCESS_CONTROLS))) for bits in controls)
    found["access_control_supported"], found["access_control"] = there, on
    return found


def named(bits: int | None, names: dict[int, str]) -> list[str] | None:
    """The names of the bits that are set."""
    return None if bits is None else [name for place, name in names.items() if bits >> place & 1]


def as_document(function: Function) -> dict[str, Any]:
    """A function as JSON has it: its address as text; null is unknown."""
    document = dataclasses.asdict(function)
    for name in ("address", "above", "physical_function"):
        value = getattr(function, name)
        document[name] = None if value is None else str(value)
    return document
