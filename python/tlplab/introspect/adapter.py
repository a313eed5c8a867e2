"""The memory of an adapter's host, by DMA."""

from __future__ import annotations

from collections.abc import Sequence

from tlplab import _core
from tlplab.introspect.kernel import LONGEST_PHYSICAL
from tlplab.introspect.source import Unreadable
from tlplab.nettlp.end import End

# Below this address a PC has nothing but memory; above it may have devices, whose registers may change when they are read.
SAFE = 2 << 30


class AdapterMemory:
    """Memory that is read through a NetTLP adapter, many places at once."""

    def __init__(self, end: End) -> None:
        """Raises `RunError` if the adapter cannot be reached."""
        self._dma = _core.Dma(end)

    @property
    def extent(self) -> int:
        """As far as a search goes unless told otherwise."""
        return SAFE

    def has(self, address: int) -> bool:
        """True if this can be an address."""
        return 0 <= address < LONGEST_PHYSICAL

    def read_many(self, requests: Sequence[tuple[int, int]]) -> list[bytes | Unreadable]:
        """See `Source`."""
        answers = iter(self._dma.read_many([request for request in requests if self.has(request[0])]))
        return [
            self._answer(address, size, next(answers) if self.has(address) else "no physical address")
            for address, size in requests
        ]

    def _answer(self, address: int, size: int, answer: bytes | str) -> bytes | Unreadable:
        return answer if isinstance(answer, bytes) else Unreadable(address, size, answer)
