# SPDX-License-Identifier: MIT OR Apache-2.0
"""Both directions through the rings, with a scoreboard; the checker watches every TLP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import card
import cocotb
from bench import HIGH, LOW, TAGS, ULTRASCALE_PLUS, Bench, bench, chance, every_case, long_run
from card import C2H, H2C, WB, WRITE_BACK, Descriptor, Ring
from cocotb.triggers import Timer
from scoreboard import Scoreboard, both_rings, fill, read_back, run, settle


async def random_transfers(b: Bench, rounds: int, most: int = 5000, each: int = 8) -> None:
    """Rounds of random descriptors in both directions at once, on the halves of the local memory by turns."""
    board = Scoreboard(b, 32 << 10)
    h2c, c2h = await both_rings(b)
    await fill(board, h2c)
    half = board.size // 2
    for number in range(rounds):
        into, out_of = (0, half) if number % 2 else (half, 0)

        out = []
        for _ in range(each):
            length = board.length(most)
            out.append(board.from_card(out_of + b.random.randrange(half - length + 1), length))
        # Reads end in any order, so what they bring must not overlap.
        inward, at = [], into + b.random.randrange(70)
        while len(inward) < each and at < into + half:
            length = min(board.length(most), into + half - at)
            inward.append(board.to_card(at, length))
            at += length + b.random.choice([0, 0, 1, 5, 40])
        b.random.shuffle(inward)
        out_task = cocotb.start_soon(run(c2h, out))
        assert await run(h2c, inward) == 0
        assert await out_task == 0
    await read_back(b, board, c2h)
    await settle(b, board)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def random_offsets_and_lengths(dut: Any) -> None:
    """Any alignment on both sides, completions cut at random and mixed between tags."""
    b = await bench(dut)
    b.completions.jitter, b.completions.split = 1e-6, 0.4
    await random_transfers(b, 40 if long_run() else 3)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def one_to_seventy_bytes(dut: Any) -> None:
    """Short transfers, whose first and last bytes share words."""
    b = await bench(dut, rcb=128)
    b.completions.jitter = 3e-7
    await random_transfers(b, 20 if long_run() else 2, most=70, each=30)


@cocotb.test(skip=not every_case(), timeout_time=3, timeout_unit="ms")
@cocotb.parametrize(sizes=[(128, 128), (128, 512), (256, 256), (512, 512), (512, 4096), (256, 128)])
async def payload_and_request_sizes(dut: Any, sizes: tuple[int, int]) -> None:
    """The sizes that the root configures are kept, and used."""
    mps, mrrs = sizes
    b = await bench(dut, mps=mps, mrrs=mrrs)
    b.completions.split = 0.3
    await random_transfers(b, 2)
    used = {kind: max(words for what, words in b.checker.sizes if what == kind) * 4 for kind in ("read", "write")}
    assert used == {"read": min(mrrs, 512), "write": min(mps, 512)}


@cocotb.test(timeout_time=800, timeout_unit="us")
async def sizes_beyond_the_parameters(dut: Any) -> None:
    """The host allows 1024 and 4096 bytes: requests are as large as the core was built for, and its user is told that."""
    b = await bench(dut, mrrs=4096)
    b.function.pcie_cap.max_payload_size = 3
    b.device.show_configuration()
    await Timer(1, "us")
    core, most = dut.device.core, {"read": int(dut.MRRS_MAX.value), "write": int(dut.MPS_MAX.value)}
    told = {"read": 128 << int(core.user_mrrs.value), "write": 128 << int(core.user_mps.value)}
    assert told == most
    board = Scoreboard(b, 8 << 10)
    h2c, c2h = await both_rings(b)
    await fill(board, h2c)
    await read_back(b, board, c2h)
    assert {kind: max(words for what, words in b.checker.sizes if what == kind) * 4 for kind in most} == most
    await settle(b, board)


@cocotb.test(skip=not every_case(), timeout_time=3, timeout_unit="ms")
@cocotb.parametrize(pcie_mhz=[125, 250] if ULTRASCALE_PLUS else [62.5, 125, 250], user_mhz=[150, 200, 250])
async def clock_ratios(dut: Any, pcie_mhz: float, user_mhz: float) -> None:
    """The crossings hold at every ratio of the clocks."""
    b = await bench(dut, pcie_mhz=pcie_mhz, user_mhz=user_mhz, seed=int(pcie_mhz + user_mhz))
    b.completions.jitter, b.completions.split = 5e-7, 0.2
    b.device.rx_pause, b.device.tx_pause = chance(0.1, 7), chance(0.1, 8)
    await random_transfers(b, 2)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def back_pressure_everywhere(dut: Any) -> None:
    """The hard IP pauses at random on both sides, and gives credits now and then."""
    b = await bench(dut, pcie_mhz=62.5, user_mhz=250)
    b.device.rx_pause, b.device.tx_pause = chance(0.5, 3), chance(0.5, 4)
    b.completions.split = 0.5

    async def credits_come_and_go() -> None:
        kinds = b.device.credit_classes()
        while True:
            b.device.no_credit = {kind for kind in kinds if b.random.random() < 0.4}
            await Timer(b.random.randint(100, 900), "ns")

    cocotb.start_soon(credits_come_and_go())
    await random_transfers(b, 10 if long_run() else 1, most=2000)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def pages_of_a_buffer(dut: Any) -> None:
    """A buffer that begins in the middle of a page, 4 KiB pages scattered over the host."""
    b = await bench(dut)
    board = Scoreboard(b, 40 << 10)
    h2c, c2h = await both_rings(b)
    offset = 0xA35
    pages = [page << 12 for page in b.random.sample(range(0x40, 0x1FF), 10)]
    inward, local = [], 3
    for number, page in enumerate(pages):
        start = offset if number == 0 else 0
        length = (4096 if number < 9 else 777) - start
        inward.append(board.to_card(local, length, host=(LOW, HIGH)[number % 2] + page + start))
        local += length
    assert await run(h2c, inward) == 0
    out, at = [], 3
    while at < local:
        length = min(4096, local - at)
        out.append(board.from_card(at, length, align=4096))
        at += length
    assert await run(c2h, out) == 0
    await settle(b, board)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def a_small_ring_wraps(dut: Any) -> None:
    """16 places: filled to the last, run empty, wrapped many times, the doorbell at any moment; both rings at once."""
    b = await bench(dut)
    board = Scoreboard(b, 8 << 10)
    await b.card.write(card.CONTROL, card.ENABLE)
    # One of them, with its record, above 4 GiB.
    h2c, c2h = b.ring(H2C, 4, HIGH, HIGH + 0x100), b.ring(C2H, 4)
    await h2c.start()
    await c2h.start()
    await fill(board, h2c)
    total = 150 if long_run() else 60

    def into(number: int) -> Descriptor:
        # Of the reads under way no two write the same bytes, and C2H reads the other half.
        return board.to_card(4096 + 100 * (number % 40), b.random.randint(1, 90), flags=WRITE_BACK)

    def out_of(_: int) -> Descriptor:
        return board.from_card(b.random.randrange(4000), b.random.randint(1, 90), flags=WRITE_BACK)

    async def keep_busy(ring: Ring, make: Callable[[int], Descriptor]) -> None:
        left = total
        while left:
            # As a driver does: never more than the ring holds, told in random portions; sometimes all of it at once.
            room = 16 - (ring.tail - ring.done()[0])
            count = min(left, room if b.random.random() < 0.3 else b.random.randint(0, room))
            if count:
                ring.put([make(left - number) for number in range(count)])
                left -= count
                await ring.doorbell()
            await Timer(b.random.choice([0, 10, 100, 700]) + 1, "ns")
        assert await ring.finished() == 0
        assert await b.card.read(ring.channel + card.HEAD) == ring.tail
        assert await b.card.read(ring.channel + card.FETCHED) == ring.tail

    inward = cocotb.start_soon(keep_busy(h2c, into))
    await keep_busy(c2h, out_of)
    await inward
    await read_back(b, board, c2h)
    await settle(b, board)


@cocotb.test(timeout_time=800, timeout_unit="us")
@cocotb.parametrize(channel=[H2C, C2H])
async def a_doorbell_too_far(dut: Any, channel: int) -> None:
    """More descriptors than the ring has: the channel refuses, fetches nothing, and works after a reset."""
    b = await bench(dut)
    board = Scoreboard(b, 8 << 10)
    rings = dict(zip((H2C, C2H), await both_rings(b, 4), strict=True))
    await fill(board, rings[H2C])
    ring = rings[channel]
    fetched = await b.card.read(channel + card.FETCHED)
    await b.card.write(channel + card.TAIL, ring.done()[0] + 17)
    await b.card.until(channel + card.CH_STATUS, 0xF, card.NO_MASTER | card.HALTED, "refused")
    assert await b.card.read(channel + card.FETCHED) == fetched
    await ring.reset()
    await ring.start()
    make = board.to_card if channel == H2C else board.from_card
    assert await run(ring, [make(100 * number, 100) for number in range(16)]) == 0
    await read_back(b, board, rings[C2H])
    await settle(b, board)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def a_full_ring_at_once(dut: Any) -> None:
    """A doorbell for all 2^n descriptors: full is not empty."""
    b = await bench(dut)
    board = Scoreboard(b, 8 << 10)
    h2c, c2h = await both_rings(b, 4)
    await fill(board, h2c)
    for _ in range(2):
        assert await run(c2h, [board.from_card(64 * number + 3, 50) for number in range(16)]) == 0
    await settle(b, board)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def records_are_coalesced(dut: Any) -> None:
    """Without flags the record is written seldom, but at last it says the truth."""
    b = await bench(dut)
    board = Scoreboard(b, 8 << 10)
    h2c, c2h = await both_rings(b)
    await fill(board, h2c)
    records = 0

    def watch(tlp: Any) -> None:
        nonlocal records
        records += tlp.is_posted() and tlp.address == c2h.record

    b.device.on_sent.append(watch)
    await c2h.submit([board.from_card(64 * number, 64) for number in range(100)])
    assert await c2h.finished() == 0
    assert records <= 10, f"{records} records for 100 descriptors"
    await settle(b, board)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def a_record_is_written_to_a_multiple_of_8(dut: Any) -> None:
    """Bit 2 of the record's address has no effect: the record crosses no multiple of 8."""
    b = await bench(dut)
    board = Scoreboard(b, 8 << 10)
    h2c, _ = await both_rings(b)
    await b.card.write(h2c.channel + WB, (h2c.record & 0xFFFFFFFF) | 4)
    await fill(board, h2c)
    await settle(b, board)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def descriptors_by_pio(dut: Any) -> None:
    """The design that the paper rejects, as a mode: four words pushed for each descriptor."""
    b = await bench(dut)
    board = Scoreboard(b, 8 << 10)
    await b.card.write(card.CONTROL, card.ENABLE)
    h2c = b.ring(H2C)
    await h2c.start()
    await fill(board, h2c)
    c2h = b.ring(C2H)
    await c2h.start(card.RUN | card.PIO_MODE)
    room = await b.card.read(C2H + card.PIO_ROOM)
    assert room >= 16

    async def push(number: int) -> None:
        raw = board.from_card(100 * number + 1, 77, flags=WRITE_BACK).pack()
        for word in range(4):
            await b.card.write(
                C2H + card.PIO_DESCRIPTOR + 4 * word, int.from_bytes(raw[4 * word : 4 * word + 4], "little")
            )
        c2h.tail += 1

    for number in range(12):
        await push(number)
    assert await c2h.finished() & 0xF == 0
    # alone, as soon as it is there, at any phase of the channels' turns at the buffer
    for number in range(12, 24):
        await Timer(5 * number, "ns")
        await push(number)
        assert await c2h.finished() & 0xF == 0
    assert await b.card.read(C2H + card.PIO_ROOM) == room
    await settle(b, board)


@cocotb.test(timeout_time=800, timeout_unit="us")
@cocotb.parametrize(extended=[True, False])
async def all_tags_are_used(dut: Any, extended: bool) -> None:
    """While completions are long in coming all reads that may be are under way, never more; extended tags are for the host to allow."""
    b = await bench(dut, extended_tags=extended)
    tags = TAGS if extended else min(TAGS, 32)
    # Reads of 512 bytes whose completions the hard IP can hold.
    most = min(tags, b.checker.room // 8)
    board = Scoreboard(b, 1280 * most)
    h2c, c2h = await both_rings(b)
    b.completions.latency, b.completions.jitter, b.completions.split = most * 1e-7, 1e-6, 0.2
    await b.card.write(card.MAX_TAGS, 0)
    # Page by page, as a tag for C2H's descriptors is kept back while C2H runs.
    await c2h.reset()
    pages = [board.to_card(at, min(4096, board.size - at)) for at in range(0, board.size, 4096)]
    assert await run(h2c, pages) == 0
    used = b.checker.most_tags
    # A short one needs less room.
    assert used == tags if most == tags else most <= used <= tags
    # The register has 8 bits.
    assert await b.card.read(card.MAX_TAGS) == min(used, 255)
    b.completions.latency = b.completions.jitter = 0
    await c2h.start()
    await read_back(b, board, c2h)
    await settle(b, board)
