"""Machines at random, and the output of several versions of lspci for them: the other direction of `tlplab.scan.text`, for its tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tlplab.scan.facts import ACCESS_CONTROLS, CORRECTABLE, UNCORRECTABLE, Address, Function

SPEEDS = {1: "2.5", 2: "5", 3: "8", 4: "16", 5: "32", 6: "64"}
WIDTHS = [1, 2, 4, 8, 16]
SIZES = [128, 256, 512, 1024, 2048, 4096]
PORTS = {
    "end point": "Endpoint", "legacy end point": "Legacy Endpoint", "root port": "Root Port", "upstream port": "Upstream Port",
    "downstream port": "Downstream Port", "PCIe-to-PCI bridge": "PCI-Express to PCI/PCI-X Bridge",
    "integrated end point": "Root Complex Integrated Endpoint",
}  # fmt: skip


@dataclass(frozen=True)
class Style:
    """The layout of a version of lspci, and of the tools through which its output was copied."""

    judged: bool
    """From 3.6 on: "(ok)" or "(downgraded)" next to speed and width."""
    commas: bool
    """Flags of Link Status are separated from the text before them by a comma (before 3.6)."""
    split: bool
    """Device Capabilities are on two lines."""
    domains: bool
    numbers: bool
    """-nn"""
    indent: str
    """The replacement of a tab: "" if all indentation was lost."""
    newline: str


styles = st.builds(
    Style, judged=st.booleans(), commas=st.booleans(), split=st.booleans(), domains=st.booleans(),
    numbers=st.booleans(), indent=st.sampled_from(["\t", "        ", ""]), newline=st.sampled_from(["\n", "\r\n"]),
)  # fmt: skip
bits = st.booleans()


def some_of(names: Iterable[str]) -> st.SearchStrategy[list[str]]:
    """Some names, in their order."""
    all_of = list(names)
    return st.integers(0, (1 << len(all_of)) - 1).map(
        lambda mask: [one for n, one in enumerate(all_of) if mask >> n & 1]
    )


@st.composite
def expresses(draw: st.DrawFn, port: str) -> dict[str, Any]:
    """The facts of a PCI Express capability."""
    told: dict[str, Any] = {
        "port": port, "express_version": draw(st.sampled_from([1, 2])), "mps_supported": draw(st.sampled_from(SIZES)),
        "mps": draw(st.sampled_from(SIZES)), "mrrs": draw(st.sampled_from(SIZES)), "extended_tags_supported": draw(bits),
        "extended_tags": draw(bits), "relaxed_ordering": draw(bits), "no_snoop": draw(bits),
        "detected": draw(some_of(["correctable", "fatal"])),
    }  # fmt: skip
    if port in ("root port", "downstream port"):
        told["slot"] = draw(bits)
    if port == "integrated end point":
        return told
    told |= {
        "port_number": draw(st.integers(0, 255)), "speed_possible": draw(st.sampled_from(list(SPEEDS))), "width_possible": draw(st.sampled_from(WIDTHS)),
        "speed": draw(st.none() | st.sampled_from(list(SPEEDS))), "width": draw(st.sampled_from([0, *WIDTHS])),
        "aspm_supported": draw(st.sampled_from([[], ["L0s"], ["L1"], ["L0s", "L1"]])),
        "aspm": draw(st.sampled_from([[], ["L0s"], ["L1"], ["L0s", "L1"]])), "link_disabled": draw(bits), "training": draw(bits),
        "bandwidth_changed": draw(bits), "autonomous_changed": draw(bits), "link_active": draw(st.none() | bits),
        "rcb": draw(st.sampled_from([64, 128])) if port in ("root port", "end point", "legacy end point") else None,
        "target_speed": draw(st.sampled_from(list(SPEEDS))) if told["express_version"] == 2 else None,
    }  # fmt: skip
    return told


@st.composite
def functions(draw: st.DrawFn, address: Address, port: str | None, *, secondary: int | None = None) -> Function:
    """A function with a port of that kind; None: without PCI Express."""
    function = Function(address, bus_master=draw(bits), header=0, capabilities_known=True)
    function.vendor, function.device = draw(st.integers(0, 0xFFFF)), draw(st.integers(0, 0xFFFF))
    function.class_name = "PCI bridge" if secondary else draw(st.sampled_from(["Ethernet controller", "3D controller"]))
    function.class_code = {"PCI bridge": 0x0604, "Ethernet controller": 0x0200, "3D controller": 0x0302}[
        function.class_name
    ]
    function.name = draw(st.sampled_from(["Example: a card (of two parts)", "Vendor", "Größe & Söhne [X/540]"]))
    function.revision = draw(st.integers(1, 255))
    function.numa_node, function.iommu_group = draw(st.none() | st.integers(0, 7)), draw(st.none() | st.integers(0, 99))
    function.driver = draw(st.none() | st.sampled_from(["nvme", "pcieport"]))
    function.power_state = draw(st.sampled_from(["D0", "D3"]))
    if secondary is not None:
        function.header, function.primary, function.secondary, function.subordinate = (
            1,
            address.bus,
            secondary,
            secondary,
        )
    if port is not None:
        function.learn(draw(expresses(port)))
    if draw(bits):
        function.extended_known = True
        function.access_control = draw(some_of(ACCESS_CONTROLS))
        function.access_control_supported = list(ACCESS_CONTROLS)
        function.uncorrectable = draw(some_of(UNCORRECTABLE.values()))
        function.correctable = draw(some_of(CORRECTABLE.values()))
        function.ats_enabled = draw(st.none() | bits)
        function.ats_unit = None if function.ats_enabled is None else draw(st.integers(0, 31))
    return function


@st.composite
def machines(draw: st.DrawFn) -> list[Function]:
    """Root ports with end points, switches and bridges to parallel buses below them, in one or two domains."""
    found: list[Function] = []
    for domain in range(draw(st.integers(1, 2))):
        bus = 0
        root = draw(st.sampled_from([None, "integrated end point"]))
        found.append(draw(functions(Address(domain, 0, 0, 0), root)))
        for slot in range(1, draw(st.integers(1, 3)) + 1):
            bus += 1
            port = draw(functions(Address(domain, 0, slot, 0), "root port", secondary=bus))
            found.append(port)
            kind = draw(st.sampled_from(["nothing", "end point", "legacy end point", "switch", "PCIe-to-PCI bridge"]))
            first = bus
            if kind in ("end point", "legacy end point"):
                found += [draw(functions(Address(domain, bus, 0, n), kind)) for n in range(draw(st.integers(1, 2)))]
            elif kind == "PCIe-to-PCI bridge":
                bus += 1
                found.append(draw(functions(Address(domain, first, 0, 0), kind, secondary=bus)))
                found.append(draw(functions(Address(domain, bus, 4, 0), None)))
            elif kind == "switch":
                bus += 1
                inside = bus
                upstream = draw(functions(Address(domain, first, 0, 0), "upstream port", secondary=inside))
                found.append(upstream)
                for number in range(draw(st.integers(0, 3))):
                    bus += 1
                    found.append(draw(functions(Address(domain, inside, number, 0), "downstream port", secondary=bus)))
                    found.append(draw(functions(Address(domain, bus, 0, 0), "end point")))
                upstream.subordinate = bus
            port.subordinate = bus
    return found


def flags(**named: object) -> str:
    """`A+ B-`"""
    return " ".join(f"{name.strip('_')}{'+' if on else '-'}" for name, on in named.items())


def listed(names: list[str], on: list[str] | None) -> str:
    """All names, each with its sign."""
    return " ".join(f"{name}{'+' if name in (on or []) else '-'}" for name in names)


def lines_of(function: Function, style: Style) -> list[tuple[int, str]]:
    """A function as lspci -vvv shows it: depth and text of each line."""
    at = function.address
    local = f"{at.bus:02x}:{at.device:02x}.{at.function:x}"
    place = f"{at.domain:04x}:{local}" if style.domains or at.domain else local
    numbers = f" [{function.class_code:04x}]" if style.numbers else ""
    ids = f" [{function.vendor:04x}:{function.device:04x}]" if style.numbers else ""
    lines = [(0, f"{place} {function.class_name}{numbers}: {function.name}{ids} (rev {function.revision:02x})")]
    lines.append((1, f"Control: I/O- Mem+ {flags(BusMaster=function.bus_master)} SpecCycle-"))
    lines.append(
        (1, "Status: Cap+ 66MHz- UDF- FastB2B- ParErr- DEVSEL=fast >TAbort- <TAbort- <MAbort- >SERR- <PERR- INTx-")
    )
    if function.numa_node is not None:
        lines.append((1, f"NUMA node: {function.numa_node}"))
    if function.iommu_group is not None:
        lines.append((1, f"IOMMU group: {function.iommu_group}"))
    if function.secondary is not None:
        buses = f"primary={function.primary:02x}, secondary={function.secondary:02x}, subordinate={function.subordinate:02x}"
        lines += [(1, f"Bus: {buses}, sec-latency=0"), (1, "BridgeCtl: Parity- SERR+"), (2, "PriDiscTmr- SecDiscTmr-")]
    lines.append((1, "Capabilities: [40] Power Management version 3"))
    lines.append((2, "Flags: PMEClk- DSI- D1- D2- AuxCurrent=0mA PME(D0+,D1-,D2-,D3hot+,D3cold+)"))
    lines.append((2, f"Status: {function.power_state} NoSoftRst+ PME-Enable- DSel=0 DScale=0 PME-"))
    if function.port is not None:
        lines += express(function, style)
    if function.extended_known:
        lines += extended(function)
    if function.driver is not None:
        lines += [(1, f"Kernel driver in use: {function.driver}"), (1, f"Kernel modules: {function.driver}")]
    return lines


def express(function: Function, style: Style) -> list[tuple[int, str]]:
    """The PCI Express capability."""
    slot = "" if function.slot is None else f" ({flags(Slot=function.slot)})"
    name = f"Capabilities: [90] Express (v{function.express_version}) {PORTS[function.port or '']}{slot}, MSI 00"
    payload = f"DevCap:\tMaxPayload {function.mps_supported} bytes, PhantFunc 0"
    tags = flags(ExtTag=function.extended_tags_supported) + " RBE+"
    lines = [(1, name), *([(2, payload), (3, tags)] if style.split else [(2, f"{payload} {tags}")])]
    detected = {
        "CorrErr": "correctable",
        "UncorrErr": "non-fatal",
        "FatalErr": "fatal",
        "UnsuppReq": "unsupported request",
    }
    noted = [name for name, meaning in detected.items() if meaning in (function.detected or [])]
    lines += [
        (2, "DevCtl:\tReport errors: Correctable- Non-Fatal- Fatal+ Unsupported-"),
        (3, flags(RlxdOrd=function.relaxed_ordering, ExtTag=function.extended_tags, NoSnoop=function.no_snoop)),
        (3, f"MaxPayload {function.mps} bytes, MaxReadReq {function.mrrs} bytes"),
        (2, f"DevSta:\t{listed(list(detected), noted)} AuxPwr- TransPend-"),
    ]
    if function.width_possible is not None:
        lines += link(function, style)
    return lines


def link(function: Function, style: Style) -> list[tuple[int, str]]:
    """The registers of the link."""
    supported = f"ASPM {' '.join(function.aspm_supported or []) or 'not supported'}"
    judged = [" (ok)" if style.judged else ""] * 2
    if style.judged and (function.speed or 0) < (function.speed_possible or 0):
        judged[0] = " (downgraded)"
    if style.judged and (function.width or 0) > (function.width_possible or 0):
        judged[1] = " (strange)"
    speed = "unknown" if function.speed is None else f"{SPEEDS[function.speed]}GT/s"
    on = f"ASPM {' '.join(function.aspm or [])} Enabled" if function.aspm else "ASPM Disabled"
    boundary = "" if function.rcb is None else f" RCB {function.rcb} bytes{',' * style.judged}"
    state = flags(
        TrErr=False, Train=function.training, SlotClk=True, DLActive=function.link_active,
        BWMgmt=function.bandwidth_changed, ABWMgmt=function.autonomous_changed,
    )  # fmt: skip
    status = f"Speed {speed}{judged[0]}, Width x{function.width}{judged[1]}"
    cap = f"Port #{function.port_number}, Speed {SPEEDS[function.speed_possible or 1]}GT/s, Width x{function.width_possible}, {supported}"
    reports = flags(ClockPM=False, Surprise=False, LLActRep=function.link_active is not None)
    lines = [
        (2, f"LnkCap:\t{cap}, Exit Latency L0s <512ns, L1 <16us"),
        (3, f"{reports} BwNot+"),
        (2, f"LnkCtl:\t{on};{boundary} {flags(Disabled=function.link_disabled)} CommClk-"),
        (3, "ExtSynch- ClockPM- AutWidDis- BWInt- AutBWInt-"),
        *([(2, f"LnkSta:\t{status}, {state}")] if style.commas else [(2, f"LnkSta:\t{status}"), (3, state)]),
    ]
    if function.target_speed is not None:
        lines.append(
            (2, f"LnkCtl2: Target Link Speed: {SPEEDS[function.target_speed]}GT/s, EnterCompliance- SpeedDis-")
        )
        lines.append((3, " Transmit Margin: Normal Operating Range, EnterModifiedCompliance- ComplianceSOS-"))
    return lines


def extended(function: Function) -> list[tuple[int, str]]:
    """Extended capabilities."""
    unit = function.ats_unit or 0
    translation = [
        (1, "Capabilities: [180 v1] Address Translation Service (ATS)"),
        (2, "ATSCap:\tInvalidate Queue Depth: 00"),
        (2, f"ATSCtl:\t{flags(Enable=function.ats_enabled)}, Smallest Translation Unit: {unit:02x}"),
    ]
    return [
        *(translation if function.ats_enabled is not None else []),
        (1, "Capabilities: [100 v1] Access Control Services"),
        (2, f"ACSCap:\t{listed(list(ACCESS_CONTROLS), function.access_control_supported)}"),
        (2, f"ACSCtl:\t{listed(list(ACCESS_CONTROLS), function.access_control)}"),
        (1, "Capabilities: [140 v2] Advanced Error Reporting"),
        (2, f"UESta:\t{listed(list(UNCORRECTABLE.values()), function.uncorrectable)}"),
        (2, f"UEMsk:\t{listed(list(UNCORRECTABLE.values()), [])}"),
        (2, f"CESta:\t{listed(list(CORRECTABLE.values()), function.correctable)}"),
        (2, "AERCap:\tFirst Error Pointer: 00, ECRCGenCap- ECRCGenEn- ECRCChkCap- ECRCChkEn-"),
        (3, "MultHdrRecCap- MultHdrRecEn- TLPPfxPres- HdrLogCap-"),
        (2, "HeaderLog: 00000000 00000000 00000000 00000000"),
    ]


def text_of(machine: list[Function], style: Style) -> str:
    """The whole output."""
    blocks = []
    for function in machine:
        lines = lines_of(function, style)
        blocks.append("".join(f"{style.indent * depth}{line}{style.newline}" for depth, line in lines))
    return style.newline.join(blocks)
