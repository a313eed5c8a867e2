"""Names for numbers, from the list that comes with pciutils, if it is installed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tlplab.scan.facts import Function
from tlplab.scan.words import printable

LISTS = (Path("/usr/share/hwdata/pci.ids"), Path("/usr/share/misc/pci.ids"), Path("/usr/share/pci.ids"))


def give(functions: Iterable[Function], lists: Iterable[Path] = LISTS) -> None:
    """Names the functions that have none."""
    wanted = [found for found in functions if found.vendor is not None or found.class_code is not None]
    path = next((path for path in lists if path.is_file()), None)
    if path is None or not wanted:
        return
    vendors, devices, classes = look_up(
        path,
        {f"{found.vendor:04x}" for found in wanted if found.vendor is not None},
        {f"{found.class_code:04x}" for found in wanted if found.class_code is not None},
    )
    for found in wanted:
        if found.name is None and found.vendor is not None:
            vendor = vendors.get(f"{found.vendor:04x}")
            device = devices.get(found.ids() or "")
            if vendor is not None:
                found.name = printable(f"{vendor} {device}" if device else f"{vendor} Device {found.device or 0:04x}")
        name = classes.get(f"{found.class_code or 0:04x}")
        if name is not None:
            found.class_name = printable(name)


def look_up(path: Path, vendors: set[str], codes: set[str]) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """The names of vendors, of their devices (`8086:3c02`), and of classes (`0604`)."""
    names: tuple[dict[str, str], dict[str, str], dict[str, str]] = ({}, {}, {})
    above = ""
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        if not line or line[0] == "#" or line.startswith("\t\t"):
            continue
        number, _, name = line.strip().partition("  ")
        if line[0] != "\t":
            above = number
            if number in vendors:
                names[0][number] = name
        elif above in vendors:
            names[1][f"{above}:{number}"] = name
        elif above.startswith("C ") and above[2:] + number in codes:
            names[2][above[2:] + number] = name
    return names
