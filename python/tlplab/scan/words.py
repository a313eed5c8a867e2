"""The meaning of lspci's words: the fields of a function, and the registers of its capabilities."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tlplab.scan.facts import (
    ACCESS_CONTROLS,
    CORRECTABLE,
    RATES,
    UNCORRECTABLE,
    Capability,
    Function,
    Register,
)

PORTS = {
    "Endpoint": "end point",
    "Legacy Endpoint": "legacy end point",
    "Root Port": "root port",
    "Upstream Port": "upstream port",
    "Downstream Port": "downstream port",
    "PCI-Express to PCI/PCI-X Bridge": "PCIe-to-PCI bridge",
    "PCI/PCI-X Bridge": "PCIe-to-PCI bridge",
    "PCI/PCI-X to PCI-Express Bridge": "PCI-to-PCIe bridge",
    "Root Complex Integrated Endpoint": "integrated end point",
    "Root Complex Event Collector": "event collector",
}
EXPRESS = re.compile(r"Express (?:\(v(\d+)\) )?(.*?)(?: \(Slot([+-])\))?(?:, (?:MSI|IntMsgNum) .*)?$")
SPEED = re.compile(r"Speed ([\d.]+)GT/s")
WIDTH = re.compile(r"Width x(\d+)")
PORT_NUMBER = re.compile(r"Port #(\d+)")
UNIT = re.compile(r"Smallest Translation Unit: ([0-9a-f]{2})")
PAYLOAD = re.compile(r"MaxPayload (\d+) bytes")
READ_REQUEST = re.compile(r"MaxReadReq (\d+) bytes")
ASPM_SUPPORTED = re.compile(r"ASPM (not supported|L0s L1|L0s|L1)\b")
ASPM_ENABLED = re.compile(r"ASPM (Disabled|(L0s L1|L0s|L1) Enabled)")
BOUNDARY = re.compile(r"RCB (\d+) bytes")
TARGET = re.compile(r"Target Link Speed: ([\d.]+)GT/s")
BUSES = re.compile(r"primary=([0-9a-f]{2}), secondary=([0-9a-f]{2}), subordinate=([0-9a-f]{2})")
IDS = re.compile(r"(?:\[|\bDevice |^)([0-9a-f]{4}):([0-9a-f]{4})\]?(?: |$)")
CLASS = re.compile(r"(?:(.*?) )?\[([0-9a-f]{4})\]$")
VIRTUAL_COUNT = re.compile(r"Number of VFs: (\d{1,5})")
VIRTUAL_PLACE = re.compile(r"VF offset: (\d{1,5}), stride: (\d{1,5})")
REVISION = re.compile(r" \(rev ([0-9a-f]{2})\)")
LARGEST = 4096


def first_line(function: Function, rest: str) -> None:
    """Class, name, IDs, revision: `PCI bridge [0604]: Intel Corporation Device [8086:3c02] (rev 07) (prog-if 00 [Normal decode])`."""
    kind, colon, name = rest.partition(": ")
    if not colon:
        kind, name = "", rest
    revision = REVISION.search(name)
    if revision:
        function.revision = int(revision[1], 16)
    name = name.partition(" (rev ")[0].partition(" (prog-if ")[0]
    found = list(IDS.finditer(name))
    if found:
        function.vendor, function.device = int(found[-1][1], 16), int(found[-1][2], 16)
        # Where there is no name, lspci says the IDs again.
        name = "" if found[-1][0].startswith("Device") or found[-1].start() == 0 else name[: found[-1].start()].rstrip()
        if name == "Device":
            name = ""
        elif name.endswith(" Device"):
            name += f" {function.device:04x}"  # so lspci names what it has no name for
    number = CLASS.match(kind)
    if number:
        kind, function.class_code = number[1] or "", int(number[2], 16)
    elif re.fullmatch(r"(?:Class )?[0-9a-f]{4}", kind):
        function.class_code, kind = int(kind[-4:], 16), ""
    function.class_name = printable(kind) or None
    function.name = printable(name.strip()) or None


def printable(text: str) -> str:
    """Without characters that would move the cursor."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def flag(text: str, name: str) -> bool | None:
    """`Name+` or `Name-`."""
    at = text.find(name)
    while at >= 0:
        sign = text[at + len(name) : at + len(name) + 1]
        if sign in ("+", "-") and (at == 0 or not text[at - 1].isalnum()):
            return sign == "+"
        at = text.find(name, at + 1)
    return None


def set_flags(text: str) -> list[str]:
    """The names that are followed by a plus."""
    return [word[:-1] for word in text.replace(",", " ").split() if word[-1] == "+"]


def number_in(pattern: re.Pattern[str], text: str) -> int | None:
    """The number that a pattern finds; None also for numbers that only a broken register gives."""
    match = pattern.search(text)
    return int(match[1]) if match and len(match[1]) <= 6 else None


def payload(pattern: re.Pattern[str], text: str) -> int | None:
    """A payload or request size; the registers can name reserved ones."""
    value = number_in(pattern, text)
    return value if value is not None and 128 <= value <= LARGEST and not value & (value - 1) else None


def speed(pattern: re.Pattern[str], text: str) -> int | None:
    """A generation; unknown speeds have none."""
    match = pattern.search(text)
    return RATES.get(match[1]) if match else None


def of_field(function: Function, found: Register) -> None:
    """Takes over the facts of a field."""
    name, text = found.name, found.text
    if name == "Control":
        function.bus_master = flag(text, "BusMaster")
    elif name == "Flags":
        flags = text.split(", ")
        function.bus_master = "bus master" in flags
        for part in flags:
            word, _, last = part.rpartition(" ")
            if word in ("NUMA node", "IOMMU group"):
                setattr(function, word.lower().replace(" ", "_"), integer(last))
    elif name == "Bus":
        match = BUSES.search(text)
        if match:
            function.header = 2 if any("window" in other.name for other in function.fields) else 1
            function.primary, function.secondary, function.subordinate = (int(bus, 16) for bus in match.groups())
    elif name == "NUMA node":
        function.numa_node = integer(text)
    elif name == "IOMMU group":
        function.iommu_group = integer(text)
    elif name == "Kernel driver in use":
        function.driver = printable(text) or None
    elif name == "Subsystem":
        function.subsystem = printable(text) or None


def integer(text: str) -> int | None:
    """A number of a few digits, if it is one."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,6}", text) else None


def of_capability(function: Function, found: Capability) -> None:
    """Takes over the facts of a capability."""
    name = found.name or ""
    if name.startswith("Express "):
        match = EXPRESS.match(name)
        if match:
            function.express_version = integer(match[1]) if match[1] else None
            function.port = PORTS.get(match[2])
            function.slot = {"+": True, "-": False}.get(match[3])
    elif name.startswith("Single Root I/O Virtualization"):
        function.virtual_functions = virtual_functions(found.registers)
    elif name.startswith("#") and re.fullmatch(r"#[0-9a-f]{2,4}", name):
        found.id = int(name[1:], 16)
    reports_active = True
    for register in found.registers:
        reader = READERS.get(register.name)
        if reader is not None and (register.name != "Status" or name.startswith("Power Management")):
            function.learn(reader(register.text))
        if register.name == "LnkCap" and not flag(register.text, "LLActRep"):
            reports_active = False
    if not reports_active:
        function.link_active = None


def device_capabilities(text: str) -> dict[str, Any]:
    return {"mps_supported": payload(PAYLOAD, text), "extended_tags_supported": flag(text, "ExtTag")}


def device_control(text: str) -> dict[str, Any]:
    return {
        "mps": payload(PAYLOAD, text), "mrrs": payload(READ_REQUEST, text), "extended_tags": flag(text, "ExtTag"),
        "relaxed_ordering": flag(text, "RlxdOrd"), "no_snoop": flag(text, "NoSnoop"),
    }  # fmt: skip


def device_control_2(text: str) -> dict[str, Any]:
    return {"ten_bit_tags": flag(text, "10BitTagReq")}


# Versions of lspci differ in their names.
DETECTED = {
    "CorrErr": "correctable", "UncorrErr": "non-fatal", "NonFatalErr": "non-fatal", "FatalErr": "fatal",
    "UnsuppReq": "unsupported request", "UnsupReq": "unsupported request",
}  # fmt: skip


def device_status(text: str) -> dict[str, Any]:
    return {"detected": [DETECTED[name] for name in set_flags(text) if name in DETECTED]}


def link_capabilities(text: str) -> dict[str, Any]:
    aspm = ASPM_SUPPORTED.search(text)
    supported = None if aspm is None else [] if aspm[1] == "not supported" else aspm[1].split()
    return {
        "port_number": number_in(PORT_NUMBER, text), "speed_possible": speed(SPEED, text), "width_possible": number_in(WIDTH, text),
        "aspm_supported": supported,
    }  # fmt: skip


def link_control(text: str) -> dict[str, Any]:
    aspm = ASPM_ENABLED.search(text)
    on = None if aspm is None else [] if aspm[2] is None else aspm[2].split()
    return {"aspm": on, "rcb": number_in(BOUNDARY, text), "link_disabled": flag(text, "Disabled")}


def link_status(text: str) -> dict[str, Any]:
    return {
        "speed": speed(SPEED, text), "width": number_in(WIDTH, text), "training": flag(text, "Train"),
        "link_active": flag(text, "DLActive"), "bandwidth_changed": flag(text, "BWMgmt"),
        "autonomous_changed": flag(text, "ABWMgmt"),
    }  # fmt: skip


def link_control_2(text: str) -> dict[str, Any]:
    return {"target_speed": speed(TARGET, text)}


def power(text: str) -> dict[str, Any]:
    return {"power_state": text[:2] if re.match(r"D[0-3]\b", text) else None}


def address_translation(text: str) -> dict[str, Any]:
    unit = UNIT.search(text)
    return {"ats_enabled": flag(text, "Enable"), "ats_unit": None if unit is None else int(unit[1], 16)}


def access_control(text: str) -> list[str]:
    return [name for name in set_flags(text) if name in ACCESS_CONTROLS]


def errors(text: str, names: dict[int, str]) -> list[str]:
    """The errors that are noted, by the names of newer versions."""
    noted = ("AdvNonFatalErr" if name == "NonFatalErr" else name for name in set_flags(text))
    return [name for name in noted if name in names.values()]


def virtual_functions(registers: list[Register]) -> list[int] | None:
    """The enabled virtual functions according to the registers of SR-IOV."""
    text = "\n".join(f"{register.name}: {register.text}" for register in registers)
    on = flag(text, "Enable")
    count, place = VIRTUAL_COUNT.search(text), VIRTUAL_PLACE.search(text)
    if on is None or count is None or place is None:
        return None
    return [int(count[1]) if on else 0, int(place[1]), int(place[2])]


READERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "DevCap": device_capabilities,
    "DevCtl": device_control,
    "DevCtl2": device_control_2,
    "DevSta": device_status,
    "LnkCap": link_capabilities,
    "LnkCtl": link_control,
    "LnkSta": link_status,
    "LnkCtl2": link_control_2,
    "Status": power,
    "ACSCap": lambda text: {"access_control_supported": access_control(text)},
    "ATSCtl": address_translation,
    "ACSCtl": lambda text: {"access_control": access_control(text)},
    "UESta": lambda text: {"uncorrectable": errors(text, UNCORRECTABLE)},
    "CESta": lambda text: {"correctable": errors(text, CORRECTABLE)},
}
