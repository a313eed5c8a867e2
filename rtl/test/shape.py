# SPDX-License-Identifier: MIT OR Apache-2.0
"""Between the root's completions and the card: their delay, order, pieces and faults."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field

import cocotb
from checker import first_address
from cocotb.triggers import Event, Timer
from cocotb.utils import get_sim_time
from cocotbext.pcie.core.tlp import CplStatus, Tlp, TlpType

Fault = Callable[[Tlp], list[Tlp]]


@dataclass
class Completions:
    """Takes the root's completions and gives them to the card, each tag's in their order."""

    deliver: Callable[[Tlp], None]
    random: random.Random
    #: Seconds that each waits, at least, and how much longer by chance: what mixes the tags.
    latency: float = 0.0
    jitter: float = 0.0
    #: Cut at read completion boundaries of this many bytes with this chance.
    boundary: int = 64
    split: float = 0.0
    #: Keeps back completions of requests that it says yes to, until `withhold` is taken away and `release` called.
    withhold: Callable[[Tlp], bool] | None = None
    #: What to make of a completion of the read `victim` chooses; used up after one read.
    fault: Fault | None = None
    victim: Callable[[Tlp], bool] = lambda _: True
    #: The request that the fault hit.
    hit: Tlp | None = None
    requests: dict[int, Tlp] = field(default_factory=dict)
    _heap: list[tuple[int, int, Tlp]] = field(default_factory=list)
    _kept: list[Tlp] = field(default_factory=list)
    _last: dict[int, int] = field(default_factory=dict)
    _count: int = 0

    def __post_init__(self) -> None:
        self._event = Event()
        cocotb.start_soon(self._run())

    def saw_request(self, tlp: Tlp) -> None:
        """Takes note of each request that the card sends."""
        if tlp.fmt_type in {TlpType.MEM_READ, TlpType.MEM_READ_64}:
            self.requests[tlp.tag] = tlp

    def __call__(self, tlp: Tlp) -> None:
        request = self.requests.get(tlp.tag)
        if (
            self.fault is not None
            and request is not None
            and (request is self.hit or (self.hit is None and self.victim(request)))
        ):
            self.hit = request
            for made in self.fault(tlp):
                self._add(made)
            return
        if self.withhold is not None and request is not None and self.withhold(request):
            self._kept.append(tlp)
            return
        for part in self._pieces(tlp):
            self._add(part)

    def release(self) -> None:
        kept, self._kept = self._kept, []
        for tlp in kept:
            for part in self._pieces(tlp):
                self._add(part)

    @property
    def kept(self) -> int:
        return len(self._kept)

    def _add(self, tlp: Tlp) -> None:
        now = int(get_sim_time("ps"))
        due = now + int((self.latency + self.jitter * self.random.random()) * 1e12)
        due = max(due, self._last.get(tlp.tag, 0))
        self._last[tlp.tag] = due
        self._count += 1
        heapq.heappush(self._heap, (due, self._count, tlp))
        self._event.set()

    async def _run(self) -> None:
        while True:
            while self._heap:
                now = int(get_sim_time("ps"))
                due = self._heap[0][0]
                if due > now:
                    self._event.clear()
                    # A later arrival may be due earlier: look again every 100 ns.
                    await Timer(min(due - now, 100_000), "ps")
                else:
                    self.deliver(heapq.heappop(self._heap)[2])
            self._event.clear()
            await self._event.wait()

    def _pieces(self, tlp: Tlp) -> list[Tlp]:
        """A completion in pieces, as a root complex might cut it."""
        if not self.split or not tlp.has_data() or tlp.ep:
            return [tlp]
        made = []
        rest = tlp
        place = 0
        data = bytes(tlp.data)
        # Words from the first to the next boundary.
        at = self.boundary - (tlp.lower_address & (self.boundary - 1) & ~3)
        while at < len(data):
            if self.random.random() < self.split:
                first, rest = cut(rest, at - place)
                made.append(first)
                place = at
            at += self.boundary
        return [*made, rest]


def cut(tlp: Tlp, at: int) -> tuple[Tlp, Tlp]:
    """A completion in two, the first with `at` bytes of payload (a multiple of 4)."""
    first, second = copy(tlp), copy(tlp)
    first.set_data(tlp.data[:at])
    second.set_data(tlp.data[at:])
    carried = at - (tlp.lower_address & 3)
    second.byte_count = tlp.byte_count - carried
    second.lower_address = tlp.lower_address + carried & 0x7F
    return first, second


# --- faults: each makes of a completion what the card gets instead ------------------------------------------------------


def strange(tlp: Tlp) -> Tlp:
    """Mark a TLP that the checker must not count as the answer to a request of the card."""
    tlp.strange = True
    return tlp


def status(code: CplStatus) -> Fault:
    """One completion without data in place of all of a read's."""
    answered: set[int] = set()

    def fault(tlp: Tlp) -> list[Tlp]:
        if tlp.tag in answered:
            return []
        answered.add(tlp.tag)
        made = copy(tlp)
        made.fmt_type = TlpType.CPL
        made.status = code
        made.set_data(b"")
        made.length = 0
        return [made]

    return fault


def changed(**fields: Callable[[int], int]) -> Fault:
    """Fields of the header, each by a function of its value."""

    def fault(tlp: Tlp) -> list[Tlp]:
        made = copy(tlp)
        for name, change in fields.items():
            setattr(made, name, change(getattr(made, name)))
        return [made]

    return fault


def poisoned(tlp: Tlp) -> list[Tlp]:
    made = copy(tlp)
    made.ep = True
    return [made]


def poisoned_within(size: int) -> Fault:
    """The second 64 bytes of a read of so many, which begins at such a boundary, in a completion of their own that is poisoned."""

    def fault(tlp: Tlp) -> list[Tlp]:
        if tlp.byte_count != size:
            return [tlp]
        first, rest = cut(tlp, 64)
        second, rest = cut(rest, 64)
        second.ep = True
        return [first, second, rest]

    return fault


def longer(tlp: Tlp) -> list[Tlp]:
    """More data than the request asked for, with a byte count that pretends it is right."""
    made = copy(tlp)
    made.set_data(bytes(tlp.data) + b"\xde\xad\xbe\xef" * 8)
    return [made]


def off_boundary(tlp: Tlp) -> list[Tlp]:
    """In two, each right in all its fields, but the first ends where none but the last one of a read may."""
    # A DW before the boundary of 64 bytes, or after it if there is no DW before it.
    at = 64 - (tlp.lower_address & 0x3C) - 4 or 8
    return list(cut(tlp, at)) if at < len(tlp.data) else [tlp]


def lost(_: Tlp) -> list[Tlp]:
    return []


def twice(tlp: Tlp) -> list[Tlp]:
    return [tlp, strange(copy(tlp))]


def with_other_tag(free: Callable[[], int]) -> Fault:
    """The right one, and before it one of a tag that is not in use."""

    def fault(tlp: Tlp) -> list[Tlp]:
        made = copy(tlp)
        made.tag = free()
        return [strange(made), tlp]

    return fault


def with_other_requester(tlp: Tlp) -> list[Tlp]:
    made = copy(tlp)
    made.requester_id = tlp.requester_id._replace(function=5)
    made.data = bytearray(len(tlp.data))
    return [strange(made), tlp]


def within(start: int, size: int) -> Callable[[Tlp], bool]:
    """Reads of host memory from `start`."""
    return lambda request: start <= first_address(request) < start + size
