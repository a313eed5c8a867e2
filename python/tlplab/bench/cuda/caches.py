"""The processor's caches before a measurement, brought there as a program can: by reading and writing other memory."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from tlplab.bench.cuda.driver import Bytes

SYSFS = Path("/sys/devices/system/cpu/cpu0/cache")
# Of a processor that does not tell its caches.
USUAL = 64 << 20
LINE = 64
FACTORS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def last_level(folder: Path = SYSFS) -> int:
    """Bytes of the largest cache."""
    sizes = [USUAL] if not folder.is_dir() else []
    for path in folder.glob("index*/size"):
        match = re.fullmatch(r"(\d+)([KMG])", path.read_text(encoding="ascii").strip())
        if match:
            sizes.append(int(match[1]) * FACTORS[match[2]])
    return max(sizes, default=USUAL)


class Thrasher:
    """Memory twice as large as the last-level cache, which is read to drive everything else out."""

    def __init__(self, size: int | None = None) -> None:
        self._bytes: Bytes | None = None
        self._size = 2 * (size or last_level())

    def thrash(self) -> None:
        """Reads a byte of each line."""
        if self._bytes is None:
            self._bytes = np.ones(self._size, np.uint8)
        self._bytes[::LINE].sum()
