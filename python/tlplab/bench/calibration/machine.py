"""The machine's description in `sys-cpuinfo.txt`, `sys-lstopo.txt` and `sys-lspci.txt` of a data set, if these are present."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tlplab.scan.facts import RATES

KIB = 1024
UNITS = {"KB": KIB, "MB": KIB**2}
# The settings that pcie-bench's authors put at the end of a folder's name.
NODES = re.compile(r"-s(\d+)-s(\d+)-s(\d+)$")


@dataclass(frozen=True)
class Machine:
    """A measured machine; None where nothing says it."""

    processor: str | None = None
    cache_size: int | None = None
    """Of the last-level cache, in bytes."""
    nodes: int | None = None
    """NUMA nodes."""
    link: str | None = None
    """Of the device that measured, as in `gen3 x8`."""
    max_payload: int | None = None
    max_read_request: int | None = None


@dataclass(frozen=True)
class Setting:
    """The machine's setting for these runs, by the name of the folder."""

    iommu: str = "off"
    """`off`, `on` (with super-pages) or `nosp` (without: pages of 4 KiB)."""
    node: str = "local"
    """`local` or `remote`: where the buffer was, seen from the device."""


def read_machine(folder: Path) -> Machine:
    """Reads the texts in `folder`; missing or strange parts are left out, as only a profile's notes need them."""
    cpuinfo, lstopo, lspci = (text_of(folder / f"sys-{name}.txt") for name in ("cpuinfo", "lstopo", "lspci"))
    device = device_of(lspci)
    return Machine(
        processor=first(r"^model name\s*:\s*(.+?)\s*$", cpuinfo),
        cache_size=size(first(r"^cache size\s*:\s*(\d+ [KM]B)", cpuinfo) or first(r"\bL3 L#0 \((\d+[KM]B)\)", lstopo)),
        nodes=len(re.findall(r"^\s*NUMANode ", lstopo, re.MULTILINE)) or (1 if lstopo else None),
        link=link_of(device),
        max_payload=number(first(r"DevCtl:[\s\S]*?MaxPayload (\d+) bytes", device)),
        max_read_request=number(first(r"DevCtl:[\s\S]*?MaxReadReq (\d+) bytes", device)),
    )


def text_of(path: Path) -> str:
    """A file's text; nothing if there is none."""
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def first(pattern: str, text: str) -> str | None:
    """The group of the first match of `pattern`; None without a match."""
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else None


def number(text: str | None) -> int | None:
    """A whole number, if there is one."""
    return int(text) if text else None


def size(text: str | None) -> int | None:
    """`15360 KB` or `15MB` in bytes."""
    if text is None:
        return None
    return int(text[:-2]) * UNITS[text[-2:]]


def device_of(lspci: str) -> str:
    """The part of `lspci -vv` about the device that measured: a Netronome or Xilinx card."""
    parts = re.split(r"\n(?=[0-9a-f]{2,4}:[0-9a-f]{2}[.:])", lspci)
    return next((part for part in parts if re.search(r"Netronome|Xilinx", part.split("\n", 1)[0])), "")


def link_of(device: str) -> str | None:
    """The link as it was trained."""
    found = re.search(r"LnkSta:\s*Speed ([\d.]+)GT/s[^,]*, Width x(\d+)", device)
    if found is None or found[1] not in RATES:
        return None
    return f"gen{RATES[found[1]]} x{found[2]}"


def setting_of(name: str) -> tuple[str, Setting]:
    """The machine's part of a folder's name, and the setting that the rest of it stands for.

    `-iommu` is an IOMMU with super-pages, `-iommu-nosp` one with pages of 4 KiB, `-sA-sB-sC` the sockets of the device, of the
    buffer and of the program.
    """
    iommu, node = "off", "local"
    for ending, mode in (("-iommu-nosp", "nosp"), ("-iommu", "on")):
        if name.endswith(ending):
            name, iommu = name.removesuffix(ending), mode
            break
    if found := NODES.search(name):
        name = name[: found.start()]
        node = "local" if found[1] == found[2] else "remote"
    return name, Setting(iommu, node)
