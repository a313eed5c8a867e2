"""The paper's figures with a simulated host: the runs, the results, and the study's page."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tlplab.reproduce import HEADING, Outcomes, Row, Run, Verdict
from tlplab.reproduce.chart import Chart
from tlplab.reproduce.markdown import table
from tlplab.result import Document

PAPER = "gem5"
SECTOR_BITS = 4096 * 8
# The counter that the paper's guest reads: 0x01800000 Hz.
TICK_NS = 1e9 / 0x01800000
TABLE_2 = {50: 318, 75: 358, 100: 398, 125: 438, 150: 517}
UNLISTED = (30, 60, 110, 140)
HARDWARE = ("defaults.link.flow_control=credits", "device.disk.posted_writes=true")
# Throughput does not depend on the block's size beyond the first request; so many bytes show the steady state.
BLOCK = "load.dd.size=8MiB"
# At x8 with a replay buffer of 1: 148 B of a write and 8 B of its Ack, at 0.25 ns each.
ONE_BY_ONE_NS = (148 + 8) * 0.25
# From the acceptance of a write by the switch to its response leaving it: twice switch and root complex (150 ns), 37 ns and 5 ns on the
# wire between them, 115 ns of memory.
FIRST_RESPONSE_NS = 4 * 150 + 37 + 5 + 115
# Replays as the paper's text has them, without the slips of its code.
AS_WRITTEN = ("defaults.link.flow_control=drop-and-replay",)
# The operating system's part of 4 KiB that 5.08 Gb/s needs if it does nothing ahead.
NOTHING_AHEAD = ("load.dd.host_ahead=0s", "load.dd.host_cost=2.7us")


def wide(lanes: int) -> tuple[str, ...]:
    """Both links so many lanes wide."""
    return f"switch.sw.link=gen2 x{lanes}", f"device.disk.link=gen2 x{lanes}"


def replay(tlps: int) -> tuple[str, ...]:
    """Replay buffers of so many packets."""
    return f"defaults.link.upper.replay_tlps={tlps}", f"defaults.link.lower.replay_tlps={tlps}"


def ports(packets: int) -> tuple[str, ...]:
    """Port buffers of so many packets."""
    return f"switch.sw.port_buffer={packets}", f"host.port_buffer={packets}"


SWEEPS: dict[str, dict[int, tuple[str, ...]]] = {
    "block": {mebibytes: (f"load.dd.size={mebibytes}MiB",) for mebibytes in (64, 128, 256, 512)},
    "switch": {ns: (f"switch.sw.latency={ns}ns",) for ns in (50, 100, 150)},
    "width": {lanes: wide(lanes) for lanes in (1, 2, 4, 8)},
    "replay": {tlps: (*wide(8), *replay(tlps)) for tlps in (1, 2, 3, 4)},
    "port": {packets: (*wide(8), *ports(packets)) for packets in (16, 20, 24, 28)},
}


# What a line takes in I/O cache and on the memory bus, there and back, ns: as the code has it (115), and around that.
MEMORY_NS = (105, 110, 113, 115, 117, 120, 125)


def memory(ns: int) -> tuple[str, ...]:
    """I/O cache and memory bus, which takes 10 ns of it, need so long for a line; both links x8."""
    return (*wide(8), f"host.io_cache.latency={(ns - 10) / 2}ns")


def runs() -> list[Run]:
    """Every simulation of the study."""
    listed = [Run("crossbar", "crossbar.toml", (BLOCK,))]
    listed.extend(Run(f"memory {ns}", "dd.toml", (BLOCK, *memory(ns))) for ns in MEMORY_NS)
    for latency in (*TABLE_2, *UNLISTED):
        listed.append(Run(f"read {latency}", "table2.toml", (f"host.latency={latency}ns",)))
    listed.append(Run("read 150 credits", "table2.toml", ("defaults.link.flow_control=credits",)))
    for mode, extra in (("", ()), (" credits", HARDWARE)):
        listed.append(Run(f"sector{mode}", "sector.toml", extra))
        for sweep, points in SWEEPS.items():
            for point, overrides in points.items():
                listed.append(Run(f"{sweep} {point}{mode}", "dd.toml", (BLOCK, *overrides, *extra)))
    for lanes in (1, 2):
        listed.append(Run(f"serial width {lanes}", "dd.toml", (BLOCK, *wide(lanes), *NOTHING_AHEAD)))
    listed.append(Run("serial port 28", "dd.toml", (BLOCK, *SWEEPS["port"][28], *NOTHING_AHEAD)))
    for sweep in ("width", "replay", "port"):
        for point, overrides in SWEEPS[sweep].items():
            listed.append(Run(f"{sweep} {point} as written", "dd.toml", (BLOCK, *overrides, *AS_WRITTEN)))
    return listed


@dataclass(frozen=True)
class Disk:
    """The figures of a run of the disk."""

    dd: float
    """Gb/s that dd measured."""
    sector: float
    """Gb/s of a sector's DMA, without access and host."""
    timeouts: float
    """Replay timeouts on the link above the disk, of each 100 TLPs (first transmissions)."""
    resent: float
    """TLPs sent again, of each 100 TLPs."""


def disk(result: Document) -> Disk:
    """Reads a run's document."""
    latency = next(flow for flow in result["flows"] if flow["name"] == "disk.to_host")["latency_ns"]
    assert latency is not None
    return Disk(result["measured"][0]["payload_bps"] / 1e9, SECTOR_BITS / latency["mean"], *replays(result))


def replays(result: Document) -> tuple[float, float]:
    """Timeouts, and TLPs sent again, of each 100 TLPs that the disk sent."""
    up = next(link for link in result["links"] if link["name"] == "disk")["directions"][0]
    return 100 * up["replay_timeouts"] / up["tlps"], 100 * up["replayed"] / up["tlps"]


def read_ns(result: Document) -> float:
    """The time of a register read, ns."""
    latency = result["flows"][0]["latency_ns"]
    assert latency is not None
    return latency["p50"]


def seen_ns(true_ns: float) -> float:
    """A time as the guest's counter shows it: whole ticks."""
    return math.floor(true_ns / TICK_NS) * TICK_NS


def judged(result: str, published: float | None, ours: float, unit: str, good: bool, note: str = "") -> Row:
    """A row that is reproduced if `good`, otherwise explained by its note."""
    verdict: Verdict = "reproduced" if good else "explained"
    return Row(PAPER, result, published, ours, unit, verdict, note)


def within(ours: float, published: float, relative: float) -> bool:
    """True if the error is at most so large."""
    return abs(ours / published - 1) <= relative


def rows(outcomes: Outcomes) -> list[Row]:
    """The paper's results in its order."""
    return [
        *table_2(outcomes), *sector(outcomes), *switch(outcomes), *widths(outcomes),
        *buffers(outcomes, "replay", {4: 27, 3: 27, 2: 6, 1: 0}),
        *buffers(outcomes, "port", {16: 27, 20: 20, 24: 0, 28: 0}), *saturation(outcomes),
    ]  # fmt: skip


def table_2(outcomes: Outcomes) -> list[Row]:
    """Register reads."""
    listed = []
    for latency, published in TABLE_2.items():
        true = read_ns(outcomes[f"read {latency}"])
        seen = seen_ns(true)
        note = f"{true:.0f} ns in truth, {round(seen / TICK_NS)} ticks of the guest's counter"
        listed.append(
            judged(f"Table II, root complex {latency} ns", published, seen, "ns", within(seen, published, 0.01), note)
        )
    times = {latency: read_ns(outcomes[f"read {latency}"]) for latency in (*TABLE_2, *UNLISTED)}
    base = {round(ns - 2 * latency, 3) for latency, ns in times.items()}
    note = f"in truth {min(base):.0f} ns and twice the latency, at {', '.join(map(str, sorted(times)))} ns alike; 40 is the counter's step"
    slope = (times[150] - times[50]) / 4
    listed.append(judged("Table II, per 25 ns of root complex", 40, slope, "ns", False, note))
    return listed


def sector(outcomes: Outcomes) -> list[Row]:
    """The disk alone."""
    paper, hardware = disk(outcomes["sector"]), disk(outcomes["sector credits"])
    baseline = disk(outcomes["crossbar"])
    return [
        judged("a sector, device level", 3.072, paper.sector, "Gb/s", within(paper.sector, 3.072, 0.01)),
        judged(
            "the baseline: dd with the disk on a crossbar", None, baseline.dd, "Gb/s", True,
            f"no link: a sector {baseline.sector:.1f} Gb/s, so that the host limits; the paper gives no figure for it",
        ),
        judged(
            "dd with credits and posted writes, x1", None, disk(outcomes["switch 150 credits"]).dd, "Gb/s", True,
            f"{disk(outcomes['switch 150']).dd:.2f} Gb/s in the paper's mode: no response is waited for; a sector {hardware.sector:.2f} Gb/s",
        ),
        judged(
            "Intel P3700 on a Gen2 x1 slot", None, disk(outcomes["switch 150"]).dd, "Gb/s", False,
            "the paper's own measurement is only in a figure: its disk is said to reach 80 to 90 % of it",
        ),
    ]  # fmt: skip


def switch(outcomes: Outcomes) -> list[Row]:
    """Figure 9 (a)."""
    gain = 1000 * (disk(outcomes["switch 50"]).dd - disk(outcomes["switch 150"]).dd)
    share = 100 * (disk(outcomes["switch 50"]).dd / disk(outcomes["switch 150"]).dd - 1)
    blocks = [disk(outcomes[f"block {mebibytes}"]).dd for mebibytes in SWEEPS["block"]]
    note = "the read of a page's address and the sector's last response each save the switch there and back: 400 ns of a sector"
    return [
        judged("figure 9a, gain, switch 150 to 50 ns", 80, gain, "Mb/s", within(gain, 80, 0.25), note),
        judged("figure 9a, gain in per cent, switch 150 to 50 ns", 3, share, "%", abs(share - 3) <= 1, note),
        judged(
            "figure 9a, 512 MiB block against 64 MiB", None, blocks[-1] / blocks[0], "times",
            max(blocks) < 1.01 * min(blocks),
            "the same steady state: the block's size does not matter",
        ),
    ]  # fmt: skip


def widths(outcomes: Outcomes) -> list[Row]:
    """Figure 9 (b)."""
    dd = {lanes: disk(outcomes[f"width {lanes}"]).dd for lanes in SWEEPS["width"]}
    real = {lanes: disk(outcomes[f"width {lanes} credits"]).dd for lanes in SWEEPS["width"]}
    x8 = disk(outcomes["width 8"])
    return [
        judged("figure 9b, dd x1 to x2", 1.67, dd[2] / dd[1], "times", within(dd[2] / dd[1], 1.67, 0.25)),
        judged("figure 9b, dd x2 to x4: less", None, dd[4] / dd[2], "times", dd[4] / dd[2] < dd[2] / dd[1]),
        judged(
            "figure 9b, dd x4 to x8: a loss", None, dd[8] / dd[4], "times", dd[8] < dd[4],
            f"{x8.timeouts:.0f} timeouts per 100 TLPs; with credits and posted writes no loss, {real[8] / real[4]:.2f} times",
        ),
        judged("figure 9b, replays at x8", 27, x8.timeouts, "%", abs(x8.timeouts - 27) <= 5, counted(x8.resent)),
        judged(
            "figure 9b, replays at x4", 0, disk(outcomes["width 4"]).timeouts, "%", disk(outcomes["width 4"]).timeouts < 1,
        ),
    ]  # fmt: skip


def counted(resent: float) -> str:
    """The same counted the other way."""
    return f"timeouts of 100 TLPs; {resent:.0f} were sent again"


def buffers(outcomes: Outcomes, sweep: str, published: dict[int, float]) -> list[Row]:
    """Figures 9 (c) and 9 (d): replay timeouts of the link above the disk."""
    figure, what = {"replay": ("9c", "replay buffer"), "port": ("9d", "port buffers")}[sweep]
    listed = []
    for point, percent in published.items():
        found, real = disk(outcomes[f"{sweep} {point}"]), disk(outcomes[f"{sweep} {point} credits"])
        written = disk(outcomes[f"{sweep} {point} as written"])
        good = abs(found.timeouts - percent) <= 5
        note = (
            f"{counted(found.resent)}; dd {found.dd:.2f} Gb/s; without the slips {written.timeouts:.0f} timeouts; "
            f"with credits {real.resent:.0f}, dd {real.dd:.2f} Gb/s"
        )
        if not good:
            note += f"; {never_none()}"
        elif percent and not within(found.timeouts, percent, 0.25):
            note += "; within 5 points"
        listed.append(
            judged(f"figure {figure}, {what} {point} at x8: timeouts", percent, found.timeouts, "%", good, note)
        )
    return listed


def never_none() -> str:
    """The reason why a replay buffer of one always has timeouts."""
    room = 16 * ONE_BY_ONE_NS
    return (
        f"none is impossible: one write each {ONE_BY_ONE_NS:g} ns fills a port of 16 in {room:.0f} ns, "
        f"and its first response leaves after {FIRST_RESPONSE_NS:g} ns"
    )


def saturation(outcomes: Outcomes) -> list[Row]:
    """The rate of dd when nothing is dropped."""
    ours = disk(outcomes["port 28"]).dd
    serial = [disk(outcomes[f"serial width {lanes}"]).dd for lanes in (1, 2)]
    slow = disk(outcomes["serial port 28"]).dd
    note = (
        "the host's work for the next request, 6.45 us for each 4 KiB, is fitted to this; if it did that work between requests, "
        f"2.7 us of it would give {slow:.2f} Gb/s, but a gain of {serial[1] / serial[0]:.2f} times from x1 to x2"
    )
    return [judged("figure 9d, saturation", 5.08, ours, "Gb/s", within(ours, 5.08, 0.05), note)]


def page(outcomes: Outcomes, listed: list[Row]) -> str:
    """studies/gem5/README.md."""
    sweeps = []
    titles = {
        "block": "dd's block, MiB (switch 150 ns)",
        "switch": "Switch latency, ns (x1 behind x4)",
        "width": "Lanes of both links",
        "replay": "Replay buffer, packets (x8)",
        "port": "Port buffers, packets (x8)",
    }
    for sweep, points in SWEEPS.items():
        lines = []
        for point in points:
            paper, real = disk(outcomes[f"{sweep} {point}"]), disk(outcomes[f"{sweep} {point} credits"])
            written = outcomes.get(f"{sweep} {point} as written")
            cells = (paper.dd, paper.sector, paper.timeouts, paper.resent)
            also = "–" if written is None else f"{disk(written).timeouts:.2f}"
            lines.append(
                [
                    str(point),
                    *(f"{cell:.2f}" for cell in cells),
                    also,
                    *(f"{cell:.2f}" for cell in (real.dd, real.sector, real.resent)),
                ]
            )
        heading = (
            titles[sweep], "dd Gb/s", "sector Gb/s", "timeouts %", "sent again %", "as written, timeouts %",
            "credits, dd Gb/s", "sector Gb/s", "sent again %",
        )  # fmt: skip
        sweeps.append(f"{table(heading, lines)}\n")
    return PAGE.format(
        rows=table(HEADING, [row.cells() for row in listed]),
        sweeps="\n".join(sweeps),
        memory=table(
            ("memory, ns", *map(str, MEMORY_NS)),
            [["timeouts at x8, %", *(f"{disk(outcomes[f'memory {ns}']).timeouts:.1f}" for ns in MEMORY_NS)]],
        ),
        first=FIRST_RESPONSE_NS,
        one=ONE_BY_ONE_NS,
        room=16 * ONE_BY_ONE_NS,
    )


PAGE = """# The gem5 PCI-Express model of 2018, run again

Alian, Srinivasan and Kim put root complex, switch and links into gem5 and measured `dd` on them ("Simulating PCI-Express Interconnect for
Future System Exploration", IISWC 2018). Here their experiments run on this fabric, in their mode: no credits, a full port drops arriving TLPs,
the replay timer sends it again, every write waits for a response. This page is written by the runs:
`tlplab reproduce gem5 --markdown studies/gem5/README.md`.

## Published and reproduced

{rows}

*Reproduced* is Table II and the sector within 1 %, a percentage within 5 points, another figure within 25 %; a row with nothing published, if it
comes out as the paper describes it.

## Where the parameters come from

One set holds for all of it. `studies/gem5/model.toml`, `disk.toml` and `dd.toml` mark each parameter as stated by the paper, as found in the code and
configuration that its authors released (github.com/Krishnaps/Gem5-PCI-Express), or as fitted. Found there, and not in the paper: a cache line, and so
a payload, of 128 B; the cycles of I/O cache and memory bus, 115 ns for a line there and back (statistics of a run that lies beside
the code say 113 ns); the 30 ns of the NIC's registers; and that the disk reads the address of each page before its sector. Two are fitted:

* 6.45 us of the operating system's work for each 4 KiB of the next request, while the disk works on this one, to 5.08 Gb/s;
* 94 ns that the processor takes for a register read, to Table II, which leaves 90 to 98.

No parameter is fitted to 3.072 Gb/s, 1.67 times, 80 Mb/s, or any of the percentages.

## Why a link without credits replays so much

The arithmetic of one timeout: at x8 a write arrives at the switch every 37 ns. A port of 16 is full after 16 writes, 592 ns; the response of the first
leaves after {first:g} ns. So one write of each sector's 32 is dropped; the replay timer, 277.5 ns, sends it and the three behind it again, and from then
on there is room. That is 1 timeout in 33 TLPs (32 writes, and the read of the page's address), 3 %, and no loss of throughput to speak of.
The column "as written" below is that mode, as the paper's *text* describes it.

The 27 % come from two slips of its *code*, which `flow_control = "drop-and-replay-slipping"` repeats. The replay walks through the replay
buffer by index, and an Ack that arrives meanwhile takes TLPs from the front: as many are passed over. And when an Ack of the other direction is
due, it takes the turn of the TLP that was to be replayed. A TLP behind a skipped TLP is out of sequence; it is
discarded, and acknowledged with the old number, which starts the replay timer anew. So the second half of a sector takes 9 timeouts of
277 ns, each of which brings one TLP or two: 9 in 33 are 27 %. With a buffer of 2 there is little to pass over, with ports of 24 nothing is dropped to begin with.

A replay buffer of 1 has 3 timeouts a sector here, 9 %, where the paper has none. None is impossible with its own figures: one write each {one:g} ns, its Ack included,
fills a port of 16 in {room:.0f} ns, before the first response leaves it after {first:g} ns, so at least one of the 32 is dropped: 3 %.

How often a replay slips hangs on when Acks come, and so on the time that memory takes for a line. It changes in steps, and the 115 ns, which are not
fitted, are near one:

{memory}

## The sweeps, in the paper's mode and as hardware has it

First the paper's mode, then timeouts without the slips ("as written"), then credits with posted writes, all else equal.

{sweeps}
## The surprising results, explained

* **x8 slower than x4.** It is the slips that cost the time. Without them x8 is not slower in the paper's mode either; with credits the transmitter
  waits for as long as the port is full and no longer: nothing is sent twice.
* **27 % replays.** There is not one with credits, at any width or buffer: without a bit error nothing is ever lost.
* **A larger replay buffer is worse.** It gives a replay more to pass over. With credits it only bounds how many are unacknowledged, and larger
  is never slower.
* **Larger port buffers help.** From 24 on a port holds all TLPs on their way, {first:g} ns of it. With credits and posted writes they matter only until
  they cover the round trip of the credits.
* **1.67 and 5.08 Gb/s.** If the operating system did its work between requests, one figure would contradict the other (the row "figure 9d, saturation").
  It does most of it while the disk works, so it is a ceiling, not an addition: x1 and x2 lie below it, x4 meets it.

## Missing figures

The bars of the physical machine (an Intel P3700 behind a Gen2 x1 slot) and of figure 9 are not in the paper's text; nor is a figure for its baseline,
devices on a crossbar, which `studies/gem5/crossbar.toml` runs. Blocks of
64 to 512 MiB are run with the switch at 150 ns, all else with 8 MiB: dd's rate does not depend on the block's size.

An unmodified Linux reads the disk in [guest.md](guest.md): `tlplab reproduce gem5 --guest`.
"""


PUBLISHED_TIMEOUTS: dict[str, dict[int, float]] = {
    "width": {2: 0, 4: 0, 8: 27},
    "replay": {1: 0, 2: 6, 3: 27, 4: 27},
    "port": {16: 27, 20: 20, 24: 0, 28: 0},
}


def charts(outcomes: Outcomes) -> list[Chart]:
    """Table II, figures 9 (a) to (d) in the paper's mode and with credits, and timeouts with the published ones."""
    seen = tuple(seen_ns(read_ns(outcomes[f"read {latency}"])) for latency in TABLE_2)
    true = tuple(read_ns(outcomes[f"read {latency}"]) for latency in TABLE_2)
    published = ("published", tuple(float(ns) for ns in TABLE_2.values()))
    series = (published, ("ours, as the guest sees it", seen), ("ours, in truth", true))
    listed = [Chart("Table II: a register read", "root complex latency, ns", "ns", tuple(map(str, TABLE_2)), series)]
    titles = {
        "block": ("9 (a): dd against block size", "dd's block, MiB"),
        "switch": ("9 (a): dd against switch latency", "switch latency, ns"),
        "width": ("9 (b): dd against width", "lanes of both links"),
        "replay": ("9 (c): dd against replay buffers, x8", "packets in a replay buffer"),
        "port": ("9 (d): dd against port buffers, x8", "packets in a port's buffer"),
    }
    for sweep, (title, axis) in titles.items():
        rates = [
            (name, [disk(outcomes[f"{sweep} {point}{mode}"]).dd for point in SWEEPS[sweep]]) for name, mode in MODES
        ]
        points = tuple(map(str, SWEEPS[sweep]))
        listed.append(
            Chart(f"Figure {title}", axis, "Gb/s", points, tuple((name, tuple(found)) for name, found in rates))
        )
    for sweep, percents in PUBLISHED_TIMEOUTS.items():
        ours = tuple(disk(outcomes[f"{sweep} {point}"]).timeouts for point in percents)
        written = tuple(disk(outcomes[f"{sweep} {point} as written"]).timeouts for point in percents)
        series = (("published", tuple(percents.values())), ("ours", ours), ("ours, without the slips", written))
        title = titles[sweep][0].removesuffix(", x8").replace("dd against", "timeouts against")
        listed.append(Chart(f"Figure {title}", titles[sweep][1], "% of TLPs", tuple(map(str, percents)), series))
    return listed


MODES = (("the paper's mode", ""), ("credits, posted writes", " credits"))
