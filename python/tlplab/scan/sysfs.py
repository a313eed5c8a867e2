"""Reads /sys/bus/pci, or a copy of it. Nothing is written, and only small files are read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tlplab.scan import names
from tlplab.scan.facts import RATES, Address, Function, from_registers
from tlplab.scan.text import NoDumpError

HERE = Path("/sys/bus/pci")
NAME = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}):([01][0-9a-f])\.([0-7])$")
# The counters of a kind of error; the last line of each file is their sum.
COUNTERS = ("correctable", "nonfatal", "fatal")
CONFIG_BYTES = 4096


def read(folder: Path) -> list[Function]:
    """The functions below `devices` in `folder`. Raises `NoDumpError`."""
    devices = folder / "devices"
    if not devices.is_dir():
        raise NoDumpError("it has no folder devices, as /sys/bus/pci has")
    found = sorted((address, entry) for entry in devices.iterdir() if (address := address_of(entry.name)) is not None)
    if not found:
        raise NoDumpError("its folder devices holds no PCI function")
    functions = [function(address, entry) for address, entry in found]
    names.give(functions)
    return functions


def address_of(name: str) -> Address | None:
    """`0000:00:1c.0`"""
    match = NAME.match(name)
    return Address(*(int(part, 16) for part in match.groups())) if match else None


def function(address: Address, entry: Path) -> Function:
    """A function. How it sleeps is read first: to read its registers may wake it."""
    found = Function(address)
    state, status = line(entry / "power_state"), line(entry / "power" / "runtime_status")
    found.runtime_suspended = None if status is None else status == "suspended"
    found.learn(from_files(entry))
    found.learn(from_registers(dumped(entry)))
    # The kernel knows more than the register: D3cold, and what it was before it was read.
    if state is not None and re.fullmatch(r"D[0-3](?:hot|cold)?", state):
        found.power_state = state
    return found


def from_files(entry: Path) -> dict[str, Any]:
    """The facts that any user may read, with or without registers."""
    code = hexadecimal(line(entry / "class"))
    subsystem = (hexadecimal(line(entry / f"subsystem_{part}")) for part in ("vendor", "device"))
    ids = [f"{part:04x}" for part in subsystem if part is not None]
    counts = {kind: errors(entry / f"aer_dev_{kind}") for kind in COUNTERS}
    return {
        "vendor": hexadecimal(line(entry / "vendor")),
        "device": hexadecimal(line(entry / "device")),
        "subsystem": ":".join(ids) if len(ids) == 2 and ids != ["0000", "0000"] else None,
        "class_code": None if code is None else code >> 8,
        "revision": hexadecimal(line(entry / "revision")),
        "driver": target(entry / "driver"),
        "numa_node": decimal(line(entry / "numa_node")),
        "iommu_group": decimal(target(entry / "iommu_group")),
        "iommu_domain": line(entry / "iommu_group" / "type"),
        "physical_function": address_of(target(entry / "physfn") or ""),
        "speed": speed(line(entry / "current_link_speed")),
        "speed_possible": speed(line(entry / "max_link_speed")),
        "width": width(line(entry / "current_link_width")),
        "width_possible": width(line(entry / "max_link_width")),
        "secondary": decimal(line(entry / "secondary_bus_number")),
        "subordinate": decimal(line(entry / "subordinate_bus_number")),
        "error_counts": {kind: count for kind, count in counts.items() if count is not None} or None,
    }


def line(path: Path) -> str | None:
    """The first line of a small file; None if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(CONFIG_BYTES).split(b"\n", 1)[0].decode("utf-8", "replace").strip()
    except OSError:
        return None


def dumped(entry: Path) -> bytes:
    """The registers that may be read: 64 bytes for all users, all for root."""
    try:
        return (entry / "config").read_bytes()[:CONFIG_BYTES]
    except OSError:
        return b""


def target(path: Path) -> str | None:
    """The last part of where a link leads."""
    try:
        return path.readlink().name
    except OSError:
        return None


def errors(path: Path) -> int | None:
    """The sum of a file of counters: `TOTAL_ERR_COR 3`, or without such a line that of its lines."""
    try:
        rows = [row.split() for row in path.read_text(encoding="utf-8", errors="replace").splitlines()]
    except OSError:
        return None
    counts = {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdecimal()}
    totals = [count for name, count in counts.items() if name.startswith("TOTAL")]
    return totals[0] if totals else sum(counts.values()) if counts else None


def hexadecimal(text: str | None) -> int | None:
    """`0x8086`"""
    return int(text, 16) if text and re.fullmatch(r"0x[0-9a-f]{1,8}", text) else None


def decimal(text: str | None) -> int | None:
    """`-1`"""
    return int(text) if text and re.fullmatch(r"-?[0-9]{1,9}", text) else None


def speed(text: str | None) -> int | None:
    """`8.0 GT/s PCIe`, or `Unknown`."""
    return RATES.get(text.split(" ")[0]) if text else None


def width(text: str | None) -> int | None:
    """Lanes; the kernel has 255 for unknown."""
    lanes = decimal(text)
    return lanes if lanes is not None and 0 <= lanes <= 32 else None
