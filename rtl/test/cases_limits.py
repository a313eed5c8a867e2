# SPDX-License-Identifier: MIT OR Apache-2.0
"""Rates, bounds and resets: one direction never waits for the other, the host always gets its answer, nothing wedges."""

from __future__ import annotations

import itertools
from typing import Any

import card
import cocotb
from bench import HIGH, LOW, TAGS, ULTRASCALE_PLUS, WIDTH, Bench, bench, chance, every_case, long_run
from card import C2H, H2C, HALTED, Descriptor, Ring
from cases_slave import raw_read
from cocotb.triggers import Event, Timer, with_timeout
from cocotb.utils import get_sim_time
from cocotbext.pcie.core.dllp import FcType
from cocotbext.pcie.core.tlp import TlpType
from scoreboard import SOURCE, TARGET, Scoreboard, both_rings, fill, read_back, run, settle
from shape import within


class Rate:
    """Payload bytes in each direction, counted at the hard IP."""

    def __init__(self, b: Bench) -> None:
        self.read = self.written = 0
        b.device.on_sent.append(self._sent)
        b.device.on_received.append(self._received)

    def _sent(self, tlp: Any) -> None:
        if tlp.is_posted() and tlp.length > 8:
            self.written += tlp.length * 4

    def _received(self, tlp: Any) -> None:
        if tlp.is_completion():
            self.read += tlp.length * 4

    async def over(self, us: float) -> tuple[float, float]:
        """GB/s in each direction over the next so many microseconds."""
        before = self.read, self.written
        await Timer(int(us * 1000), "ns")
        return (self.read - before[0]) / us / 1000, (self.written - before[1]) / us / 1000


def pages(ring: Ring, count: int, base: int) -> list[Descriptor]:
    """4 KiB pages of the host from `base`, to or from 4 KiB pages of local memory of the channel's own."""
    local = 0 if ring.channel == H2C else 0x100000
    return [Descriptor(base + 4096 * number, local + 4096 * (number % 64), 4096) for number in range(count)]


async def running(h2c: Ring | None, c2h: Ring | None, count: int = 64) -> None:
    if h2c:
        await h2c.submit(pages(h2c, count, LOW + SOURCE))
    if c2h:
        await c2h.submit(pages(c2h, count, LOW + TARGET))


#: GB/s into the card and out of it, of each case that ran.
RATES: dict[str, tuple[float, float]] = {}


@cocotb.test(timeout_time=800, timeout_unit="us")
@cocotb.parametrize(case=["h2c", "c2h", "both", "h2c stalled", "c2h stalled"])
async def each_direction_at_its_rate(dut: Any, case: str) -> None:
    """Gen1 x8, 4 KiB pages: each direction alone, both at once, and each while the other one stalls."""
    b = await bench(dut)
    b.completions.latency = 8e-7
    h2c, c2h = await both_rings(b)
    if case == "h2c":
        await c2h.reset()
    rate = Rate(b)
    if case == "h2c stalled":
        # The root keeps back all data that H2C asked for; its own descriptors come.
        b.completions.withhold = within(LOW + SOURCE, TARGET - SOURCE)
    if case == "c2h stalled":
        # C2H's second batch of descriptors does not come: after 32 pages at most it stands still.
        b.completions.withhold = within(c2h.base + 512, 4096)
    await running(h2c if case not in {"c2h", "c2h stalled"} else None, c2h if case != "h2c" else None)
    # Until the first reads of all tags have left the hard IP, which lets one go with two writes of 256 bytes.
    settling = 4 + 2 * TAGS // 5
    await Timer(settling, "us")
    if case == "c2h stalled":
        while (await rate.over(1))[1] > 0:
            pass
        await running(h2c, None)
        await Timer(settling, "us")
    RATES[case] = await rate.over(20 if long_run() else 10)
    cocotb.log.warning("%s: %.3f GB/s in, %.3f out", case, *RATES[case])
    if case == "h2c":
        # Completions of 256 bytes with 20 of header and frame at 2 GB/s are 1.855; the model's link has its own packets.
        assert RATES[case][0] >= 0.96 * 1.855
    if case == "c2h":
        assert RATES[case][1] >= 0.98 * 1.855
    if case == "both":
        # Read requests take a little of the way out, 24 bytes for 512 that come in, and Acks of these 16 at most.
        assert RATES[case][0] >= 0.97 * RATES["h2c"][0]
        assert RATES[case][1] >= 0.92 * RATES["c2h"][1]
    if case == "h2c stalled":
        assert RATES[case][0] < 0.05
        assert RATES[case][1] >= 0.98 * RATES["c2h"][1], "C2H suffers from a host that does not answer H2C"
    if case == "c2h stalled":
        assert RATES[case][1] == 0
        assert RATES[case][0] >= 0.98 * RATES["h2c"][0], "H2C suffers from a C2H that stands still"


@cocotb.test(timeout_time=800, timeout_unit="us")
async def descriptors_do_not_wait_for_the_other_direction(dut: Any) -> None:
    """H2C has all tags but one, for data that the host keeps back, and wants descriptors, too: those of C2H come."""
    b = await bench(dut)
    h2c, c2h = await both_rings(b)
    b.completions.withhold = within(LOW + SOURCE, TARGET - SOURCE)
    await running(h2c, None, TAGS // 8 + 1)
    await Timer(4, "us")
    await running(h2c, None, 1)
    await Timer(1, "us")
    rate = Rate(b)
    await running(None, c2h)
    await Timer(8, "us")
    assert (await rate.over(6))[1] >= 0.9 * 1.855
    await stop(b)


@cocotb.test(timeout_time=800, timeout_unit="us")
@cocotb.parametrize(channel=[H2C, C2H])
async def the_interface_is_full(dut: Any, channel: int) -> None:
    """Behind a faster link the interface is the limit: a header and 256 bytes of payload in whole beats, no other."""
    b = await bench(dut, generation=3, lanes=16 if ULTRASCALE_PLUS else 8, user_mhz=250 if ULTRASCALE_PLUS else 200)
    rings = dict(zip((H2C, C2H), await both_rings(b), strict=True))
    rate = Rate(b)
    await running(rings[H2C] if channel == H2C else None, rings[C2H] if channel == C2H else None)
    await Timer(4, "us")
    seen = (await rate.over(10))[channel == C2H]
    width = WIDTH // 8
    # UltraScale+ has descriptors of 16 bytes for requests; those of completions, 12, make no fewer beats.
    beats = -(-(256 + (16 if ULTRASCALE_PLUS else 12)) // width)
    limit = 256 / beats / 4
    cocotb.log.warning("%s: %.3f GB/s of %.3f", "in" if channel == H2C else "out", seen, limit)
    assert seen >= 0.98 * limit


@cocotb.test(timeout_time=800, timeout_unit="us")
@cocotb.parametrize(lanes=[1, 8])
async def reads_of_a_narrow_link_go_in_pairs(dut: Any, lanes: int) -> None:
    """On x1, where a tag comes back every 2 us, two reads go at once, so that one Ack is for both; on x8 none waits."""
    b = await bench(dut, lanes=lanes, pcie_mhz=62.5 if lanes == 1 else 250)
    h2c, c2h = await both_rings(b)
    await c2h.reset()
    sent: list[int] = []

    def count(tlp: Any) -> None:
        if tlp.is_nonposted() and tlp.length == 128:
            sent.append(int(get_sim_time("ns")))

    b.device.on_sent.append(count)
    await running(h2c, None)
    await Timer(100 if lanes == 1 else 20, "us")
    # As many as there are tags went at once.
    later = sent[TAGS + 2 :]
    paused = [after - before > 1280 for before, after in itertools.pairwise(later)]
    cocotb.log.warning("%d of %d reads after a pause", sum(paused), len(paused))
    if lanes == 1:
        assert len(paused) >= 8
        assert all(one != other for one, other in itertools.pairwise(paused)), "not in pairs"
    else:
        assert not any(paused)
    await stop(b)


@cocotb.test(timeout_time=800, timeout_unit="us")
@cocotb.parametrize(aligned=[True, False])
async def what_comes_back_has_room(dut: Any, aligned: bool) -> None:
    """The host answers late, then all reads that left at once, in pieces of 64 bytes: the hard IP holds all of it, and hardly more."""
    largest = int(dut.MRRS_MAX.value)
    b = await bench(dut, mrrs=largest)
    board = Scoreboard(b, 256 * largest)
    h2c, c2h = await both_rings(b)
    # A tag and its room are kept for C2H's descriptors while C2H runs.
    await c2h.reset()
    b.completions.split = 1.0
    asked = 0

    def count(tlp: Any) -> None:
        nonlocal asked
        asked += tlp.is_nonposted()

    b.device.on_sent.append(count)
    for _ in range(3 if every_case() else 1):
        b.completions.withhold = lambda request: request.address >= LOW + SOURCE
        at, descriptors = 0, []
        while at < board.size:
            length = 4096 if aligned else min(b.random.randint(1, 9000), board.size - at)
            source = LOW + SOURCE + 4096 * b.random.randrange(300) if aligned else None
            descriptors.append(board.to_card(at, length, host=source))
            at += length
        task = cocotb.start_soon(run(h2c, descriptors))
        before = None
        while before != (asked, b.completions.kept):
            before = asked, b.completions.kept
            await Timer(2, "us")
        b.completions.withhold = None
        b.completions.release()
        assert await task == 0
        # Most of what follows finds the buffer full, too: the card stands still while its memory is refreshed.
        b.nothing_lost()
    if aligned:
        buffer, room = b.device.buffer, b.checker.room
        cocotb.log.warning(
            "%d completions and %d bytes at once, room for %d and %d",
            buffer.most_headers, buffer.most_data, buffer.headers, buffer.data,
        )  # fmt: skip
        assert b.checker.most_pieces > room - largest // 64
        assert buffer.most_headers > room - largest // 64 - 2
    b.completions.split = 0
    await c2h.start()
    await read_back(b, board, c2h)
    await settle(b, board)


@cocotb.test(timeout_time=800, timeout_unit="us")
@cocotb.parametrize(kind=[FcType.P, FcType.NP, FcType.CPL])
async def a_class_without_credits(dut: Any, kind: FcType) -> None:
    """It waits alone, except for TLPs that may not pass it: completions and reads may not pass writes. With credits again all ends well."""
    b = await bench(dut)
    board = Scoreboard(b, 64 << 10)
    h2c, c2h = await both_rings(b)
    await fill(board, h2c)
    await c2h.submit([board.from_card(1024 * number, 1000) for number in range(64)])
    await Timer(1500, "ns")  # its descriptors have come
    b.device.no_credit = {kind}
    rate = Rate(b)
    if kind == FcType.NP:
        # More reads than there may be credits left; their data go where nobody looks.
        await h2c.submit([Descriptor(LOW + SOURCE, 0x100000, 32 * 512)])
    answer = cocotb.start_soon(b.card.read(card.ID))
    await Timer(3, "us")  # the hard IP's buffer is full
    written = (await rate.over(6))[1] > 0
    assert written == (kind != FcType.P), "writes"
    assert answer.done() == (kind == FcType.NP), "the answer to a register's read"
    b.device.no_credit = set()
    assert await answer == 0x544C5044
    assert await c2h.finished() == 0
    assert await run(h2c, [board.to_card(0, 5000)]) == 0
    await settle(b, board)


@cocotb.test(skip=not ULTRASCALE_PLUS, timeout_time=800, timeout_unit="us")
async def few_credits_for_reads(dut: Any) -> None:
    """Many reads wait when a few credits come, which the card sees late: as many leave, and not one more."""
    b = await bench(dut)
    h2c, _ = await both_rings(b)
    b.device.no_credit = {FcType.NP}
    await h2c.submit([Descriptor(LOW + SOURCE, 0, 128 * 512)])
    await Timer(3, "us")
    for few in (1, 3, 2, 8, 10, 9, 12):
        assert b.device.np_credits == 0
        b.device.more_reads(few)
        await Timer(1, "us")
    b.device.no_credit = set()
    assert await h2c.finished() == 0
    await b.finish()


@cocotb.test(timeout_time=800, timeout_unit="us")
async def writes_pass_reads_that_wait(dut: Any) -> None:
    """More reads of the host than the card has place for, which it cannot answer: requests behind them are taken all the same."""
    b = await bench(dut)
    h2c, _ = await both_rings(b)
    answered, pushed = [], Event()
    b.device.on_sent.append(lambda tlp: answered.append(tlp.tag) if tlp.is_completion() else None)
    b.device.on_received.append(lambda tlp: pushed.set() if tlp.is_posted() else None)
    b.device.no_credit = {FcType.CPL}
    tags = list(range(110, 256))  # which the root does not use; the way out has place for some 40, the slave for 50
    for tag in tags:
        b.device.deliver(raw_read(b.card.bar0 + card.ID, 1, 0xF, 0, tag), 0)
    await Timer(2, "us")
    await h2c.submit([Descriptor(LOW + SOURCE, 0, 64)])
    await with_timeout(pushed.wait(), 20, "us")
    b.device.no_credit = set()
    assert await h2c.finished() == 0
    await Timer(5, "us")
    # The root gives no credit back for an answer that it did not ask for, so that not all of them leave.
    assert [tag for tag in answered if tag in tags][:60] == tags[:60]
    await stop(b)


async def stop(b: Bench) -> None:
    """The card and the link fall silent."""
    b.completions.withhold = None
    b.completions.latency = 0
    b.completions.release()
    b.nothing_lost()
    b.dut.pcie_rst.value = 1
    await Timer(1, "us")


@cocotb.test(timeout_time=800, timeout_unit="us")
async def the_host_gets_its_answer(dut: Any) -> None:
    """Reads of registers and of the window while both directions run at full rate, within the stated bound."""
    # A link that takes what is sent at the rate of the interface, as the bound presumes.
    b = await bench(dut, generation={64: 1, 128: 2, 256: 3}[WIDTH], lanes=16 if ULTRASCALE_PLUS else 8)
    b.completions.latency = 8e-7
    h2c, c2h = await both_rings(b)
    arrived: dict[int, float] = {}
    waits: list[float] = []

    def received(tlp: Any) -> None:
        if tlp.fmt_type in {TlpType.MEM_READ, TlpType.MEM_READ_64}:
            arrived[tlp.tag] = get_sim_time("ns")

    def sent(tlp: Any) -> None:
        if tlp.is_completion():
            waits.append(get_sim_time("ns") - arrived[tlp.tag])

    b.device.on_received.append(received)
    b.device.on_sent.append(sent)
    await running(h2c, c2h)
    await Timer(3, "us")
    for number in range(60 if long_run() else 12):
        if number % 2:
            assert await b.card.read(card.ID) == 0x544C5044
        else:
            await b.rc.mem_read(b.card.bar2 + 64 * number, 4)
    assert await c2h.finished() & HALTED == 0
    cocotb.log.warning(
        "PIO reads under full load: %d, %.0f ns on the average, %.0f ns at most",
        len(waits),
        sum(waits) / len(waits),
        max(waits),
    )
    # As rtl/README.md has it: what may be queued before it with its headers and one TLP at the interface's rate, 60 cycles
    # of the user's clock and those of the answer, 20 of the other; the window's memory answers late, and refreshes.
    ahead = (2048 + 32 * 16 + 256 + 16) / (4 * b.device.dws) * 4
    for number, wait in enumerate(waits):
        bound = ahead + (60 + (10 if number % 2 else 100)) * 5 + 20 * 4
        assert wait <= bound, f"{wait} ns, the bound is {bound} ns"
    await stop(b)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def a_reset_in_the_middle(dut: Any) -> None:
    """CONTROL's reset drains and clears at any time; the card works as new. So does a channel's reset."""
    b = await bench(dut)
    board = Scoreboard(b, 16 << 10)
    b.completions.latency, b.completions.jitter = 1e-6, 1e-6
    for how in ("card", "h2c", "c2h") * (4 if long_run() else 1):
        h2c, c2h = await both_rings(b)
        await running(h2c, c2h, 20)
        await Timer(b.random.randint(1000, 6000), "ns")
        if how == "card":
            await b.card.reset()
            for channel in (H2C, C2H):
                assert [await b.card.read(channel + at) for at in (card.TAIL, card.HEAD, card.FETCHED)] == [0, 0, 0]
            b.checker.quiet()
        else:
            ring, other = (h2c, c2h) if how == "h2c" else (c2h, h2c)
            await ring.reset()
            assert await other.finished() == 0, "the other channel goes on"
            await other.reset()
        quiet = Rate(b)
        assert await quiet.over(1) == (0, 0), "nothing moves after a reset"
    for base in (LOW, HIGH):
        b.memory[base + TARGET : base + TARGET + 0x20000] = bytes(0x20000)
    h2c, c2h = await both_rings(b)
    await fill(board, h2c)
    await read_back(b, board, c2h)
    await settle(b, board)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def a_fundamental_reset_in_the_middle(dut: Any) -> None:
    """pcie_rst at any moment: registers are as at the start, and the card works."""
    b = await bench(dut)
    for _ in range(6 if long_run() else 2):
        h2c, c2h = await both_rings(b)
        await running(h2c, c2h, 20)
        await Timer(b.random.randint(500, 5000), "ns")
        await b.device.between_tlps()
        dut.pcie_rst.value = 1
        b.device.reset_interface()
        b.checker.reads.clear()
        b.checker.owed.clear()
        # What the root had to send before the reset is lost with the link.
        await Timer(15, "us")
        b.device.reset_interface()
        dut.pcie_rst.value = 0
        await Timer(1, "us")
        assert await b.card.read(card.CONTROL) == 0
        assert await b.card.read(C2H + card.HEAD) == 0
    board = Scoreboard(b, 8 << 10)
    h2c, c2h = await both_rings(b)
    await fill(board, h2c)
    await read_back(b, board, c2h)
    await settle(b, board)


@cocotb.test(timeout_time=800, timeout_unit="us")
async def widths(dut: Any) -> None:
    """256 bits inside, 64, 128 or 256 at the hard IP."""
    ports = (dut.m_axis_rq_tdata, dut.s_axis_rc_tdata) if ULTRASCALE_PLUS else (dut.trn_td, dut.trn_rd)
    assert {len(port) for port in ports} == {WIDTH}
    core = dut.device.core
    for name in ("tlp_data", "stx_data", "cpl_data", "req_data"):
        assert len(getattr(core, name)) == 256, name
    await Timer(1, "ns")


@cocotb.test(skip=not every_case(), timeout_time=3, timeout_unit="ms")
async def local_memory_that_stalls(dut: Any) -> None:
    """Refresh and random pauses of the memory's ports hold the channels and lose nothing."""
    b = await bench(dut, user_mhz=150)
    board = Scoreboard(b, 32 << 10)
    b.device.tx_pause = chance(0.05, 5)
    h2c, c2h = await both_rings(b)
    await fill(board, h2c)
    for _ in range(3):
        assert await run(h2c, [board.to_card(7, 20000)]) == 0
        await read_back(b, board, c2h)
    await settle(b, board)
