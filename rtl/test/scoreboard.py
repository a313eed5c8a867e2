# SPDX-License-Identifier: MIT OR Apache-2.0
"""The right content of host memory and the card's memory, byte by byte, in every order of events."""

from __future__ import annotations

import itertools
from typing import Any

from bench import HIGH, LOW, SIZE, Bench
from card import C2H, H2C, HALTED, INTERRUPT, WRITE_BACK, Descriptor, Ring

#: Sources lie from here on in both regions, destinations from there on; rings and records before.
SOURCE, TARGET = 0x040000, 0x200000


class Scoreboard:
    """Makes descriptors of both directions and keeps the expected contents."""

    def __init__(self, b: Bench, size: int = 64 << 10) -> None:
        self.b = b
        self.size = size
        self.local = bytearray(size)
        for base in (LOW, HIGH):
            b.memory[base + SOURCE : base + TARGET] = b.random.randbytes(TARGET - SOURCE)
            b.memory[base + TARGET : base + SIZE] = bytes(SIZE - TARGET)
        self.expected = {base: bytearray(SIZE - TARGET) for base in (LOW, HIGH)}
        self.next_target = {LOW: 0, HIGH: 0}

    def to_card(self, local: int, length: int, host: int | None = None, flags: int = 0) -> Descriptor:
        """A descriptor that brings random bytes of the host to `local`."""
        source = self.b.random
        if host is None:
            host = source.choice([LOW, HIGH]) + SOURCE + source.randrange(TARGET - SOURCE - length)
        self.local[local : local + length] = self.b.memory[host : host + length]
        return Descriptor(host, local, length, flags)

    def from_card(
        self, local: int, length: int, align: int | None = None, flags: int = 0, base: int | None = None
    ) -> Descriptor:
        """A descriptor that brings `local` to bytes of the host that no other one has, gaps between them."""
        source = self.b.random
        base = source.choice([LOW, HIGH]) if base is None else base
        at = self.next_target[base] + (source.randrange(70) if align is None else -self.next_target[base] % align)
        assert at + length <= SIZE - TARGET, "no room for more targets"
        self.next_target[base] = at + length
        self.expected[base][at : at + length] = self.local[local : local + length]
        return Descriptor(base + TARGET + at, local, length, flags)

    def length(self, most: int) -> int:
        """Lengths at which something happens: short ones, around words, payloads and pages."""
        source = self.b.random
        around = source.choice([8, 32, 64, 128, 256, 512, 1024, 4096]) + source.randint(-5, 5)
        return max(1, min(source.choice([source.randint(1, 40), around, source.randint(1, most)]), most))

    def check(self) -> None:
        """Host memory is as expected: only the expected bytes were written."""
        for base, expected in self.expected.items():
            seen = self.b.memory[base + TARGET : base + SIZE]
            if seen != bytes(expected):
                at = next(place for place in range(len(expected)) if seen[place] != expected[place])
                raise AssertionError(
                    f"host memory at {base + TARGET + at:#x} is {seen[at : at + 16].hex()}, not {bytes(expected[at : at + 16]).hex()}"
                )


async def run(ring: Ring, descriptors: list[Descriptor], limit_us: float = 300) -> int:
    """Submits all with a write-back at the last, waits for them; the status."""
    last = descriptors[-1]
    flagged = (
        last
        if last.flags & (WRITE_BACK | INTERRUPT)
        else Descriptor(last.host, last.local, last.length, last.flags | WRITE_BACK)
    )
    await ring.submit([*descriptors[:-1], flagged])
    return await ring.finished(limit_us=limit_us)


async def fill(board: Scoreboard, ring: Ring) -> None:
    """Known bytes all over the part of the local memory that the test uses."""
    step = 8192
    status = await run(ring, [board.to_card(at, min(step, board.size - at)) for at in range(0, board.size, step)])
    assert not status & HALTED, f"status {status:#x}"


async def both_rings(b: Bench, log2: int = 8) -> tuple[Ring, Ring]:
    """The card enabled, both channels running."""
    await b.card.write(0x008, 1)
    rings = b.ring(H2C, log2), b.ring(C2H, log2)
    for ring in rings:
        await ring.start()
    return rings


async def read_back(b: Bench, board: Scoreboard, ring: Ring, parts: int = 6) -> None:
    """Brings the whole local memory in use to the host, in pieces at random places, and compares."""
    cuts = sorted({0, board.size, *(b.random.randrange(board.size) for _ in range(parts))})
    descriptors = [board.from_card(start, end - start) for start, end in itertools.pairwise(cuts)]
    status = await run(ring, descriptors)
    assert not status & HALTED, f"status {status:#x}"
    board.check()


async def settle(b: Any, board: Scoreboard) -> None:
    await b.finish()
    board.check()
