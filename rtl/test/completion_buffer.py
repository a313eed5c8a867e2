# SPDX-License-Identifier: MIT OR Apache-2.0
"""A buffer in which a hard IP keeps completions until the card takes them. Credits for them are infinite: a completion that does not fit is lost."""

from __future__ import annotations

import logging
from collections import deque

from cocotb.triggers import Event
from cocotbext.pcie.core.tlp import Tlp

#: Bytes of one credit for data.
CREDIT = 16


class CompletionBuffer:
    """Room for so many completions and bytes of their data, in whole credits."""

    def __init__(self, headers: int, data: int) -> None:
        self.headers, self.data = headers, data
        #: The most that were there at once, and how many were lost.
        self.most_headers = self.most_data = self.lost = 0
        #: Set while there are completions.
        self.filled = Event()
        self._held: deque[int] = deque()
        self._bytes = 0

    def arrives(self, tlp: Tlp) -> bool:
        """True if the completion is kept."""
        size = -(-len(tlp.data) // CREDIT) * CREDIT
        if len(self._held) == self.headers or self._bytes + size > self.data:
            self.lost += 1
            logging.getLogger("cocotb").warning("a completion of %d bytes is lost: no room", len(tlp.data))
            return False
        self._held.append(size)
        self._bytes += size
        self.most_headers = max(self.most_headers, len(self._held))
        self.most_data = max(self.most_data, self._bytes)
        self.filled.set()
        return True

    def leaves(self) -> None:
        """The first one was taken."""
        self._bytes -= self._held.popleft()
        if not self._held:
            self.filled.clear()

    def clear(self) -> None:
        self._held.clear()
        self._bytes = 0
        self.filled.clear()
