"""A case: the measured quantity, and its circumstances."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tlplab import _core

# The words of the published data sets for ours.
TESTS = {"lat_rd": "RD", "lat_wrrd": "WRRD", "bw_rd": "RD", "bw_wr": "WR", "bw_rdwr": "RW"}
INTERFACES = {"command": "CMD", "dma": "DMA"}
PATTERNS = {"sequential": "Seq", "random": "Rand"}
CACHES = {"cold": "Cold", "host-warm": "HWarm", "device-warm": "DWarm", "device-thrash": "DThrash"}
NODES = ("local", "remote")


@dataclass(frozen=True)
class Case:
    """One measurement: a row of a data set. Sizes and offsets are in bytes."""

    test: str
    """`lat_rd`, `lat_wrrd`, `bw_rd`, `bw_wr`, `bw_rdwr`."""
    size: int
    """Bytes of a transfer."""
    window: int = 8192
    """Bytes of the buffer in host memory."""
    host_offset: int = 0
    """First byte of a transfer in its unit of the buffer, which is whole cache lines."""
    device_offset: int = 0
    """First byte of a transfer in the device's memory."""
    pattern: str = "sequential"
    """`sequential`, `random`."""
    cache: str = "host-warm"
    """The content of the host's cache: `cold`, `host-warm`, `device-warm`, `device-thrash`."""
    interface: str = "dma"
    """`dma`, or `command` for latencies of small transfers."""
    node: str = "local"
    """The node of the buffer: `local`, `remote`."""
    count: int | None = None
    """Operations that are measured; None for as many as give a steady figure."""
    seed: int = 1
    """Seeds the random order, and the random parts of the host."""
    at_once: int | None = None
    """Transfers at once, of a bandwidth; None for as many as the device can."""

    @classmethod
    def from_row(cls, row: Mapping[str, str | float], **rest: Any) -> Case:
        """The case of a row in the columns of the published data sets. Raises ValueError."""
        kind, interface, what = str(row["Test"]).split("_")
        return cls(
            test=word(f"{kind} {what}", {f"{name.split('_')[0].upper()} {word}": name for name, word in TESTS.items()}),
            size=int(float(row["SZ"])),
            window=int(float(row["WinSZ"])),
            host_offset=int(float(row["HO"])),
            device_offset=int(float(row["DO"])),
            pattern=word(str(row["PAT"]), turned(PATTERNS)),
            cache=word(str(row["Cache"]), turned(CACHES)),
            interface=word(interface, turned(INTERFACES)),
            **rest,
        )

    @property
    def is_latency(self) -> bool:
        """True for a test of latency; False for one of bandwidth."""
        return self.test.startswith("lat")

    def to_json(self) -> str:
        """As the core reads it."""
        return json.dumps(asdict(self))

    def check(self) -> None:
        """Raises ValueError for a case that cannot be measured, with the mistake and the expected value."""
        for name, value, known in (
            ("test", self.test, TESTS), ("pattern", self.pattern, PATTERNS), ("cache", self.cache, CACHES),
            ("interface", self.interface, INTERFACES), ("node", self.node, NODES),
        ):  # fmt: skip
            if value not in known:
                raise ValueError(f"{name} is {value!r}; it is one of {', '.join(known)}")
        _core.check_case(self.to_json())


def turned(names: dict[str, str]) -> dict[str, str]:
    """Our words by those of the data sets."""
    return {theirs: ours for ours, theirs in names.items()}


def word(theirs: str, names: dict[str, str]) -> str:
    """Our word for one of the data sets'. Raises ValueError."""
    if theirs not in names:
        raise ValueError(f"{theirs!r} is not one of {', '.join(names)}")
    return names[theirs]
