"""Reads the output of lspci, of any version and with any of `-v` to `-vvvv`, `-n`, `-nn`, `-D`, `-PP`, `-k`, `-x` to `-xxxx`.

Every line is accounted for: as a function's first line, a field, a capability, a register or its continuation, bytes, or as a
line that tlplab does not know, which is kept with its function.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from tlplab.scan.facts import Address, Capability, Function, Register, from_registers
from tlplab.scan.words import READERS, first_line, of_capability, of_field

# What stands before the colon of a field of a function. Some have no colon: what follows is told apart by `AT`.
FIELDS = frozenset((
    "DeviceName", "Subsystem", "Physical Slot", "Device tree node", "Control", "Status", "Latency", "Interrupt",
    "NUMA node", "IOMMU group", "Flags", "Bus", "I/O behind bridge", "Memory behind bridge",
    "Prefetchable memory behind bridge", "Secondary status", "BridgeCtl", "BIST result", "Kernel driver in use",
    "Kernel modules", "I/O window 0", "I/O window 1", "Memory window 0", "Memory window 1",
    *(f"Region {number}" for number in range(6)),
))  # fmt: skip
AT = (
    "Expansion ROM at",
    "Memory at",
    "I/O ports at",
    "[virtual] ",
    "16-bit legacy interface ports at",
    "BIST is running",
)
# Fields that come after the capabilities; the names of the others are also names of registers.
AFTER = frozenset(("Kernel driver in use", "Kernel modules"))
# What stands before the colon of a register, or is told of a capability.
REGISTERS = frozenset((
    *READERS,
    # PCI Express
    "DevCap2", "LnkCap2", "LnkSta2", "LnkCap3", "LnkCtl3", "SltCap", "SltCtl", "SltSta", "RootCtl", "RootCap", "RootSta",
    "AtomicOpsCap", "AtomicOpsCtl", "LaneErrStat", "DevCap3", "DevCtl3", "DevSta3",
    # Power management, MSI and MSI-X, PCI-X, others below 100h
    "Flags", "Bridge", "Address", "Masking", "Vector table", "PBA", "Command", "BAR", "VPD", "AFCap", "AFCtrl",
    "AFStatus", "Product Name", "Read-only fields", "Read/write fields", "Secondary Status", "Upstream", "Downstream",
    "Entry 0", "Entry 1", "Entry 2", "Entry 3",
    # Extended
    "UEMsk", "UESvrt", "CEMsk", "AERCap", "HeaderLog", "RootCmd", "ErrorSrc", "TLPPrefixLog", "ARICap", "ARICtl", "ATSCap", "ATSCtl",
    "PRICtl", "PRISta", "PASIDCap", "PASIDCtl", "IOVCap", "IOVCtl", "IOVSta", "Initial VFs", "VF offset",
    "Supported Page Size", "VF Migration", "Caps", "Ctrl", "Arb", "VC0", "VC1", "VC2", "VC3", "VC4", "VC5", "VC6", "VC7",
    "Max snoop latency", "Max no snoop latency", "L1SubCap", "L1SubCtl1", "L1SubCtl2", "PTMCap", "PTMControl", "PTMClockGranularity",
    "DpcCap", "DpcCtl", "DpcSta", "Source", "RP PIO", "Desc", "Link0", "LinkPortNumber", "CXLCap", "CXLCtl", "CXLSta", "PhyLayer",
    "McastCap", "McastCtl", "TPHCap", "Data", "DOECap", "DOECtl", "DOESta", "IDECap", "IDECtl", "PhyCap", "PhySta", "Phy16Sta",
    *(f"Region {number}" for number in range(6)), *(f"BAR {number}" for number in range(6)),
))  # fmt: skip
# How lines go on that lost their indentation.
CONTINUED = (
    "ExtTag", "RlxdOrd", "MaxPayload", "ClockPM", "ExtSynch", "TrErr", "Slot #", "Changed:", "Transmit Margin", "Compliance",
    "Equalization", "10BitTag", "EmergencyPower", "FRS", "AtomicOps", "IDOReq", "Retimer", "PriDiscTmr", "MultHdrRec",
)  # fmt: skip
# What is told of a capability without a name.
PLAIN = (
    "End", "No end tag found", "Not readable", "Device specific mode supported", "Interrupt vector mode supported",
    "No steering table available", "Steering table in ", "Extended requester support", "BAR=", "multiplier=",
)  # fmt: skip
PLACE = r"(?:(?P<domain>[0-9a-f]{4,8}):)?(?P<bus>[0-9a-f]{2}):(?P<device>[01][0-9a-f])\.(?P<function>[0-7])"
BRIDGE = re.compile(PLACE)
FIRST = re.compile(rf"(?P<path>(?:[0-9a-f:.]+/)*){PLACE} (?P<rest>[^ \"].*: .*)$")
BYTES = re.compile(r"([0-9a-f]{2,3}):((?: [0-9a-f]{2}){1,16}) *$")
CAPABILITY = re.compile(r"\[([0-9a-f]{2,3})(?: v(\d+))?\] ?(.*)")
MOST_BYTES = 4096
# Outputs of lspci that say too little, and what gives them away.
OTHERS = (
    (re.compile(r"[ \\|]*[-+\\]-?\[[0-9a-f:]+(?:-[0-9a-f]+)?\]-"), "the tree of lspci -t, which has no links and no registers"),
    (re.compile(r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[01][0-9a-f]\.[0-7] \""), "the output of lspci -m, which has no registers"),
    (re.compile(r"(?:Slot|Device):\t[0-9a-f:]+\.[0-7]$"), "the output of lspci -vm, which has no registers"),
    (re.compile(r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[01][0-9a-f]\.[0-7]/[01][0-9a-f]\.[0-7]"), "the output of lspci -P, which has no bus numbers"),
)  # fmt: skip
WANTED = "make a dump with: sudo lspci -vvv -nn -xxxx > dump.txt"


class NoDumpError(ValueError):
    """A text that is not a dump: its kind, and the expected one."""


@dataclass
class Dump:
    """The functions of a dump in its order, and the fate of its lines."""

    functions: list[Function]
    lines: Counter[str]
    """The number of lines of each kind: `function`, `field`, `capability`, `register`, `continued`, `bytes`, `blank`, `unread`,
    and `outside` for those before the first function."""
    outside: list[str]


@dataclass
class Reading:
    """A function whose lines are being read."""

    function: Function
    dumped: bytearray = field(default_factory=bytearray)
    capability: Capability | None = None
    register: Register | None = None
    """The register that the next line may continue."""
    depth: int = 0
    """Its indentation."""
    detailed: bool = False
    """More than its first line was seen."""
    denied: bool = False


def read(text: str) -> Dump:
    """Reads a dump. Raises `NoDumpError`."""
    lines: Counter[str] = Counter()
    outside: list[str] = []
    readings: dict[Address, Reading] = {}
    reading: Reading | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.rstrip()
        if not line:
            lines["blank"] += 1
            continue
        # Function's first lines and bytes are never indented.
        if line[0] in "0123456789abcdef" and (begun := begin(line, number, reading)):
            if isinstance(begun, Reading):
                if begun.function.address in readings:
                    raise NoDumpError(f"line {number}: {begun.function.address} appears twice; give one dump at a time")
                reading = readings[begun.function.address] = begun
                lines["function"] += 1
            else:
                lines["bytes"] += 1
        elif reading is None:
            outside.append(line)
            lines["outside"] += 1
        else:
            lines[take(reading, line)] += 1
    if not readings:
        raise NoDumpError(refusal(outside))
    for reading in readings.values():
        finish(reading)
    return Dump([reading.function for reading in readings.values()], lines, outside)


def refusal(lines: list[str]) -> str:
    """The reason why a text without functions is not a dump."""
    for pattern, what in OTHERS:
        if any(pattern.match(line) for line in lines[:100]):
            return f"this is {what}; {WANTED}"
    what = "no line begins with the address of a function such as 00:1c.0" if lines else "it is empty"
    return f"this is not output of lspci: {what}; {WANTED}"


def begin(line: str, number: int, reading: Reading | None) -> Reading | bool:
    """A function's first line, or bytes (true), or neither (false)."""
    if line[2:4] == ": " or line[3:5] == ": ":
        match = BYTES.match(line)
        if match is None:
            return False
        if reading is None:
            raise NoDumpError(f"line {number}: bytes without a function above them")
        if int(match[1], 16) != len(reading.dumped):
            raise NoDumpError(f"line {number}: the bytes at {match[1]} do not follow those before them; {WANTED}")
        reading.dumped += bytes.fromhex(match[2])
        if len(reading.dumped) > MOST_BYTES:
            raise NoDumpError(f"line {number}: configuration space ends after {MOST_BYTES} bytes")
        return True
    match = FIRST.match(line)
    if match is None:
        return False
    places = (int(match[name] or "0", 16) for name in ("domain", "bus", "device", "function"))
    function = Function(Address(*places))
    if match["path"]:
        above = BRIDGE.fullmatch(match["path"].split("/")[-2])
        if above is None:
            return False
        bus = int(above["bus"], 16), int(above["device"], 16), int(above["function"], 16)
        function.above = Address(function.address.domain, *bus)
    first_line(function, match["rest"])
    return Reading(function)


def take(reading: Reading, line: str) -> str:
    """Takes a line of a function; the kind that it is counted as."""
    stripped = line.lstrip()
    depth = len(line) - len(stripped)
    key, colon, rest = stripped.partition(":")
    if key == "Capabilities" and colon:
        return capability(reading, rest.strip())
    inside = reading.capability
    if colon and (key in FIELDS if inside is None else key in AFTER):
        reading.capability = None
        return new_field(reading, key, rest.strip(), depth)
    if inside is None and stripped.startswith(AT):
        return new_field(reading, "", stripped, depth)
    known = inside is not None and colon and key in REGISTERS
    deeper = reading.register is not None and depth > reading.depth
    if inside is not None and known and not deeper:
        reading.register, reading.depth = Register(key, rest.strip()), depth
        inside.registers.append(reading.register)
        return "register"
    if reading.register is not None and (deeper or stripped.startswith(CONTINUED) or only_flags(stripped)):
        reading.register.text += "\n" + stripped
        return "continued"
    if inside is not None and stripped.startswith(PLAIN):
        inside.registers.append(Register("", stripped))
        return "register"
    reading.function.unread.append(stripped)
    reading.register = None  # what is deeper belongs to what nobody knows
    return "unread"


def only_flags(line: str) -> bool:
    """`ECRC- UnsupReq+ ACSViol-`"""
    return all(word.rstrip(",")[-1:] in ("+", "-") for word in line.split())


def new_field(reading: Reading, key: str, rest: str, depth: int) -> str:
    """A field of a function."""
    reading.register, reading.depth, reading.detailed = Register(key, rest), depth, True
    reading.function.fields.append(reading.register)
    return "field"


def capability(reading: Reading, rest: str) -> str:
    """The first line of a capability, or that they may not be read."""
    reading.detailed = True
    reading.register = None
    match = CAPABILITY.match(rest)
    if match is None:
        reading.denied = reading.denied or rest == "<access denied>"
        reading.function.fields.append(Register("Capabilities", rest))
        return "capability"
    offset = int(match[1], 16)
    version = None if match[2] is None else int(match[2])
    reading.capability = Capability(offset, offset >= 0x100, version=version, name=match[3])
    reading.function.capabilities.append(reading.capability)
    return "capability"


def finish(reading: Reading) -> None:
    """Reads the meaning of the lines, once all are there."""
    function = reading.function
    for told in function.fields:
        of_field(function, told)
    if reading.detailed:
        function.capabilities_known = not reading.denied
        function.extended_known = any(found.extended for found in function.capabilities)
        if function.header is None and not function.unread:
            function.header = 0  # lspci tells the buses of every bridge
    for found in function.capabilities:
        of_capability(function, found)
    if reading.dumped:
        merge(function, from_registers(bytes(reading.dumped)))


def merge(function: Function, told: dict[str, object]) -> None:
    """Registers have the last word, but lspci's names stay, and the facts that only the text has."""
    chain = told.pop("capabilities", None)
    text = {found.offset: found for found in function.capabilities}
    if isinstance(chain, list):
        for found in chain:
            known = text.pop(found.offset, None)
            if known is not None:
                found.name, found.registers = known.name, known.registers
                found.version = known.version if found.version is None else found.version
        function.capabilities = [*chain, *text.values()]
    for name in ("class_name",):
        if getattr(function, name) is not None:
            told.pop(name, None)
    for name in ("capabilities_known", "extended_known"):
        told[name] = bool(told.get(name)) or getattr(function, name)
    function.learn(told)
