"""The same figures with dd in a Linux guest: `tlplab reproduce gem5 --guest`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tlplab.errors import RunError
from tlplab.guest import kernel
from tlplab.processes import side_by_side
from tlplab.reproduce import HEADING, ByGuest, GuestOptions, Outcomes, Row
from tlplab.reproduce.chart import Chart
from tlplab.reproduce.in_guest import GuestOutcomes, GuestRun, Told, boot_all
from tlplab.reproduce.markdown import table
from tlplab.reproduce.running import one_run

from . import figures
from .figures import (
    HARDWARE,
    SECTOR_BITS,
    SWEEPS,
    TABLE_2,
    TICK_NS,
    Disk,
    counted,
    disk,
    judged,
    read_ns,
    replays,
    seen_ns,
    within,
)

MEBIBYTE = 2**20
# All sweeps but that of the block read this, or less.
BLOCK = 64 * MEBIBYTE
# What Linux needs beside the block.
LINUX = 64 * MEBIBYTE
# What an interrupt costs where it is not nothing: a stated value, not a fitted one.
COST_NS = 1000
COST = (f"guest.cpu.interrupt={COST_NS}ns",)
# A ring of so many entries, one of which stays empty.
DEEP = ("device.disk.entries=33",)
MODES: dict[str, tuple[str, ...]] = {"": (), " cost": COST, " credits": HARDWARE}
# Points that are the same experiment.
SAME = {"replay 4": "width 8", "port 16": "width 8", "switch 150": "block 64"}
# Points that are run with an interrupt that costs something.
COSTLY = {"block 64", "switch 50", *(f"width {lanes}" for lanes in SWEEPS["width"]), "port 28"}
# What the paper says of its disk: 80 to 90 per cent of the physical machine's.
OF_PHYSICAL = (80, 90)


def blocks(largest: int) -> dict[int, int]:
    """The sizes of blocks up to the largest, by the names of their points; the smallest always, or as much of it as there is."""
    sizes = {mebibytes: mebibytes * MEBIBYTE for mebibytes in SWEEPS["block"]}
    return {name: min(size, largest) for name, size in sizes.items() if size <= max(largest, BLOCK)}


def called(sweep: str, point: int, mode: str = "") -> str:
    """The name of a point's run."""
    name = f"{sweep} {point}"
    return f"{SAME.get(name, name)}{mode}"


def read(name: str, size: int, overrides: Iterable[str], *, errors: str = "no") -> GuestRun:
    """dd reads one block of so many bytes."""
    memory = f"guest.memory={(size + 2 * LINUX) // MEBIBYTE}MiB"
    variables = (("block", str(size)), ("errors", errors))
    return GuestRun(name, "guest-dd.toml", "guest-dd.sh", variables, (memory, *overrides))


def runs(largest: int) -> list[GuestRun]:
    """Every boot; dd's block has so many bytes at most."""
    size = min(largest, BLOCK)
    listed = []
    for mode, extra in MODES.items():
        for sweep, points in SWEEPS.items():
            for point, overrides in points.items():
                name = f"{sweep} {point}"
                if sweep == "block" and point in blocks(largest) and (mode != " cost" or name in COSTLY):
                    listed.append(read(f"{name}{mode}", blocks(largest)[point], extra))
                elif sweep != "block" and name not in SAME and (mode != " cost" or name in COSTLY):
                    listed.append(read(f"{name}{mode}", size, (*overrides, *extra)))
    listed.append(read("errors", size, SWEEPS["width"][8], errors="yes"))
    listed.append(read("deep", size, (*SWEEPS["port"][28], *DEEP)))
    listed.append(GuestRun("physical", "guest-p3700.toml", "guest-p3700.sh", (("block", str(size)),)))
    for latency in TABLE_2:
        listed.append(
            GuestRun(f"read {latency}", "guest-table2.toml", "guest-table2.sh", (), (f"host.latency={latency}ns",))
        )
    return listed


@dataclass(frozen=True)
class Dd:
    """The measurement of dd in a guest, and the traffic of the link above the disk."""

    gbps: float
    """As dd says."""
    sector: float
    """Gb/s of 4 KiB of data alone."""
    ns: float
    """Of 4 KiB, all in all."""
    timeouts: float
    """As in `Disk`."""
    resent: float


COPIED = re.compile(r"^(\d+) bytes .*copied, ([0-9.e+-]+) s, ")


def dd(told: Told) -> Dd:
    """Reads the output of dd, and the run's document."""
    said = next((found for line in told.console if (found := COPIED.match(line))), None)
    if said is None:
        raise RunError("dd in the guest printed no rate; build the guest again with `make linux`")
    size, seconds = int(said[1]), float(said[2])
    latency = next(flow for flow in told.result["flows"] if flow["name"] == "disk.to_host")["latency_ns"]
    assert latency is not None
    # Half of the drive's writes are data, half the completions of commands, which take much less.
    timeouts, resent = replays(told.result)
    return Dd(8 * size / seconds / 1e9, SECTOR_BITS / latency["p90"], seconds * 1e9 * 4096 / size, timeouts, resent)


def module_ns(told: Told) -> float:
    """The kernel module's median, ns; all of its reads take the same time."""
    words = dict(line.split()[:2] for line in told.console if re.match(r"(min|median|max) \d+ ns$", line))
    return float(words["median"])


def rows(outcomes: Outcomes, guests: GuestOutcomes) -> list[Row]:
    """The paper's results in its order, from the guest."""
    return [
        *table_2(outcomes, guests), *baseline(outcomes, guests), *switch(guests), *widths(guests),
        *buffers(outcomes, guests, "replay", {4: 27, 3: 27, 2: 6, 1: 0}),
        *buffers(outcomes, guests, "port", {16: 27, 20: 20, 24: 0, 28: 0}), *saturation(guests),
    ]  # fmt: skip


def table_2(outcomes: Outcomes, guests: GuestOutcomes) -> list[Row]:
    """Register reads by a kernel module."""
    listed = []
    for latency, published in TABLE_2.items():
        true = module_ns(guests[f"read {latency}"])
        seen = seen_ns(true)
        note = (
            f"a kernel module, e1000e's NIC: {true:.0f} ns by a clock of 1 ns, {round(seen / TICK_NS)} ticks of the paper's; "
            f"the simulated host {read_ns(outcomes[f'read {latency}']):.0f} ns"
        )
        listed.append(
            judged(
                f"guest: Table II, root complex {latency} ns",
                published,
                seen,
                "ns",
                within(seen, published, 0.01),
                note,
            )
        )
    return listed


def baseline(outcomes: Outcomes, guests: GuestOutcomes) -> list[Row]:
    """The disk behind x1, and the physical machine."""
    paper, cost, real = (dd(guests[called("switch", 150, mode)]) for mode in MODES)
    physical = dd(guests["physical"])
    share = 100 * disk(outcomes["switch 150"]).dd / physical.gbps
    least, most = OF_PHYSICAL
    return [
        judged(
            "guest: 4 KiB, device level", 3.072, paper.sector, "Gb/s", within(paper.sector, 3.072, 0.01),
            f"the data of a command; simulated host {disk(outcomes['sector']).sector:.3f} Gb/s",
        ),
        judged(
            "guest: dd with x1", None, paper.gbps, "Gb/s", False,
            f"{paper.ns / 1000:.2f} us for 4 KiB: with one command at a time, doorbell, fetch, completion and interrupt add to the data; "
            f"{cost.gbps:.2f} Gb/s if an interrupt costs {COST_NS / 1000:g} us; simulated host {disk(outcomes['switch 150']).dd:.2f} Gb/s",
        ),
        judged(
            "guest: dd with credits and posted writes, x1", None, real.gbps, "Gb/s", True,
            f"simulated host {disk(outcomes['switch 150 credits']).dd:.2f} Gb/s",
        ),
        judged(
            "the paper's disk against the P3700 on a Gen2 x1 slot", (least + most) / 2, share, "%",
            abs(share - (least + most) / 2) <= 5,
            f"{least} to {most} % published; the physical machine in the guest, as far as the text describes it, reads {physical.gbps:.2f} Gb/s, and its "
            "processor costs nothing",
        ),
    ]  # fmt: skip


def switch(guests: GuestOutcomes) -> list[Row]:
    """Figure 9 (a)."""
    fast, slow = dd(guests["switch 50"]), dd(guests[called("switch", 150)])
    gain, share = 1000 * (fast.gbps - slow.gbps), 100 * (fast.gbps / slow.gbps - 1)
    note = (
        f"{slow.ns - fast.ns:.0f} ns of each 4 KiB: a command crosses the switch eight times in a row, two of which are the data's; the paper's disk "
        "crosses it four times"
    )
    listed = [
        judged("guest: figure 9a, gain, switch 150 to 50 ns", 80, gain, "Mb/s", within(gain, 80, 0.25), note),
        judged("guest: figure 9a, gain in per cent, switch 150 to 50 ns", 3, share, "%", abs(share - 3) <= 1, note),
    ]
    sizes = [name for name in SWEEPS["block"] if f"block {name}" in guests]
    if len(sizes) > 1:
        rates = [dd(guests[f"block {name}"]).gbps for name in sizes]
        listed.append(
            judged(
                f"guest: figure 9a, {sizes[-1]} MiB block against {sizes[0]} MiB", None, rates[-1] / rates[0], "times",
                max(rates) < 1.01 * min(rates), "the same steady state: the block's size does not matter",
            )
        )  # fmt: skip
    return listed


def widths(guests: GuestOutcomes) -> list[Row]:
    """Figure 9 (b)."""
    paper, cost, real = ({lanes: dd(guests[f"width {lanes}{mode}"]) for lanes in SWEEPS["width"]} for mode in MODES)
    double, costly = paper[2].gbps / paper[1].gbps, cost[2].gbps / cost[1].gbps
    fourfold = paper[4].gbps / paper[2].gbps
    errors = dd(guests["errors"])
    return [
        judged(
            "guest: figure 9b, dd x1 to x2", 1.67, double, "times", within(double, 1.67, 0.25),
            f"{costly:.2f} times if an interrupt costs {COST_NS / 1000:g} us",
        ),
        judged("guest: figure 9b, dd x2 to x4: less", None, fourfold, "times", fourfold < double),
        judged(
            "guest: figure 9b, dd x4 to x8: a loss", None, paper[8].gbps / paper[4].gbps, "times", paper[8].gbps < paper[4].gbps,
            f"with credits and posted writes no loss, {real[8].gbps / real[4].gbps:.2f} times",
        ),
        judged(
            "guest: figure 9b, replays at x8", 27, paper[8].timeouts, "%", abs(paper[8].timeouts - 27) <= 5,
            counted(paper[8].resent),
        ),
        judged("guest: figure 9b, replays at x4", 0, paper[4].timeouts, "%", paper[4].timeouts < 1),
        judged(
            "guest: dd at x8 if links report their replays", None, errors.gbps, "Gb/s", False,
            f"{paper[8].gbps:.2f} Gb/s if not: each timeout is a correctable error, for which Linux reads registers across the same links; "
            f"{errors.ns / 1000:.1f} us for 4 KiB. The paper's functions report nothing",
        ),
    ]  # fmt: skip


def buffers(outcomes: Outcomes, guests: GuestOutcomes, sweep: str, published: dict[int, float]) -> list[Row]:
    """Figures 9 (c) and 9 (d)."""
    figure, what = {"replay": ("9c", "replay buffer"), "port": ("9d", "port buffers")}[sweep]
    listed = []
    for point, percent in published.items():
        found, real = (dd(guests[called(sweep, point, mode)]) for mode in ("", " credits"))
        simulated = disk(outcomes[f"{sweep} {point}"]).timeouts
        good = abs(found.timeouts - percent) <= 5
        note = (
            f"{counted(found.resent)}; dd {found.gbps:.2f} Gb/s; simulated host {simulated:.1f} timeouts; "
            f"with credits {real.resent:.0f}, dd {real.gbps:.2f} Gb/s"
        )
        listed.append(
            judged(f"guest: figure {figure}, {what} {point} at x8: timeouts", percent, found.timeouts, "%", good, note)
        )
    return listed


def saturation(guests: GuestOutcomes) -> list[Row]:
    """The rate of dd when nothing is dropped."""
    paper, cost = (dd(guests[f"port 28{mode}"]) for mode in ("", " cost"))
    note = (
        f"here the processor costs nothing, there it is the limit; {cost.gbps:.2f} Gb/s if an interrupt costs {COST_NS / 1000:g} us, which is not "
        f"fitted; with 32 commands at a time {dd(guests['deep']).gbps:.1f} Gb/s"
    )
    return [judged("guest: figure 9d, saturation", 5.08, paper.gbps, "Gb/s", within(paper.gbps, 5.08, 0.05), note)]


TITLES = {
    "block": "dd's block, MiB (switch 150 ns)",
    "switch": "Switch latency, ns (x1 behind x4)",
    "width": "Lanes of both links",
    "replay": "Replay buffer, packets (x8)",
    "port": "Port buffers, packets (x8)",
}
FIGURES = {"block": "9 (a)", "switch": "9 (a)", "width": "9 (b)", "replay": "9 (c)", "port": "9 (d)"}
PUBLISHED: dict[str, dict[int, str]] = {
    "width": {2: "0", 4: "0", 8: "27"},
    "replay": {1: "0", 2: "6", 3: "27", 4: "27"},
    "port": {16: "27", 20: "20", 24: "0", 28: "0"},
}


def sweep_table(outcomes: Outcomes, guests: GuestOutcomes, sweep: str) -> str:
    """Published, simulated host and guest, side by side."""
    lines = []
    for point in SWEEPS[sweep]:
        if called(sweep, point) not in guests:
            continue
        like = "switch 150" if sweep == "block" else f"{sweep} {point}"
        host: list[Disk] = [disk(outcomes[f"{like}{mode}"]) for mode in ("", " credits")]
        paper, credit = (dd(guests[called(sweep, point, mode)]) for mode in ("", " credits"))
        cost = guests.get(called(sweep, point, " cost"))
        lines.append(
            [
                str(point),
                *(f"{rate:.2f}" for rate in (host[0].dd, paper.gbps)),
                "–" if cost is None else f"{dd(cost).gbps:.2f}",
                PUBLISHED.get(sweep, {}).get(point, "–"),
                *(f"{share:.2f}" for share in (host[0].timeouts, paper.timeouts)),
                *(f"{rate:.2f}" for rate in (host[1].dd, credit.gbps)),
            ]
        )
    heading = (
        TITLES[sweep], "dd Gb/s, simulated host", "guest", f"guest, interrupt {COST_NS / 1000:g} us", "timeouts %, published", "simulated host",
        "guest", "credits: dd Gb/s, simulated host", "guest",
    )  # fmt: skip
    return f"{table(heading, lines)}\n"


def page(outcomes: Outcomes, guests: GuestOutcomes, listed: list[Row]) -> str:
    """studies/gem5/guest.md."""
    paper = dd(guests[called("switch", 150)])
    reads = [
        [
            str(latency), str(published), f"{seen_ns(true):.0f}", f"{true:.0f}",
            f"{read_ns(outcomes[f'read {latency}']):.0f}",
        ]
        for latency, published in TABLE_2.items()
        for true in (module_ns(guests[f"read {latency}"]),)
    ]  # fmt: skip
    return PAGE.format(
        rows=table(HEADING, [row.cells() for row in listed]),
        reads=table(
            ("root complex, ns", "published", "guest, by the paper's clock", "guest, by its own", "simulated host"),
            reads,
        ),
        sweeps="\n".join(sweep_table(outcomes, guests, sweep) for sweep in SWEEPS),
        ns=f"{paper.ns:,.0f}".replace(",", " "),
        data=f"{SECTOR_BITS / paper.sector:,.0f}".replace(",", " "),
        cost=f"{COST_NS / 1000:g}",
    )


PAGE = """# The gem5 PCI-Express model of 2018 under Linux

The figures of [README.md](README.md) once more, with an unmodified Linux as the host's software: it enumerates the fabric, its drivers nvme and
e1000e probe the devices, `dd` reads one block of the disk past the page cache and prints its rate, a kernel module times register reads. This
page is written by the runs: `tlplab reproduce gem5 --guest --markdown studies/gem5/guest.md`, after `make linux`.

## Published and reproduced

{rows}

The verdicts are those of README.md.

## Differences from the paper, and from the simulated host

* **The disk.** The paper's IDE disk needs I/O BARs, which a user-mode Linux has not. In its place is tlplab's NVMe drive, made to do as that one does: transfers of
  4 KiB (`max_sectors_kb`), one at a time (a queue of two entries), a legacy interrupt, 1 us of access, writes that wait for responses.
* **One command for each 4 KiB.** The IDE disk has one for many sectors, and Linux prepares the next meanwhile. Here each 4 KiB takes {ns} ns at x1, of which {data} ns
  are its data; before them are doorbell, fetch of the command and access, after them its completion and the interrupt, none of which overlap.
* **The processor costs nothing** in the columns "guest". In those with {cost} us, each interrupt takes so long before its handler runs (`guest.cpu.interrupt`),
  for all that Linux does for 4 KiB. It is a stated value of the usual size, not a fitted one. A system call is made once for the whole block, so its cost does not matter. The
  6.45 us that the simulated host is fitted with are not used here.
* **Percentages.** A sector has 9 timeouts at x8, as with the simulated host, but 36 TLPs instead of 33: the data, the fetch of the command, its completion, and the interrupt
  up and down.
* **Errors.** A replay timeout is a correctable error. Linux has functions report them and, for each report, reads registers over the links that are replaying. The paper's
  functions report nothing; the script (`guest-dd.sh`) switches the reports off, but for one row.

All else, from the root complex to the fitted 94 ns of a register read, is `model.toml`, as for the simulated host.

## Table II

By the paper's clock a time is whole ticks of 39.736 ns. The module's own clock has 1 ns.

{reads}

## Figure 9, side by side

dd's rates were published as figures only; the values in the text are above.

{sweeps}
## The physical machine

The text has a P3700 (2800 MB/s) in an x1 slot of the X99 chipset behind DMI 2.0, "similar to a PCI-Express Gen 2 X4 link", and the bars of a figure. `guest-p3700.toml` is that, with credits,
posted writes, MSI-X, transfers of 128 KiB and the queue depth of Linux. Latencies of root complex and chipset, MPS, and the processor's time are not given.

## Run time

dd's block has 64 MiB, or less with `--block`; `--block 512MiB` adds blocks of 128 to 512 MiB to the first table. A boot takes a second. Each 4 KiB of the paper's mode take half a millisecond: one part
is the simulator's, 33 TLPs with responses over two links, the other a command's dozen of messages between two processes. So 64 MiB take 8 s, 512 MiB a minute; the physical machine, whose commands are
larger, reads 512 MiB in 14 s.
"""


def charts(outcomes: Outcomes, guests: GuestOutcomes) -> list[Chart]:
    """dd's rates in the paper's mode, the simulated host's with the guest's."""
    listed = []
    for sweep, title in TITLES.items():
        points = [point for point in SWEEPS[sweep] if called(sweep, point) in guests]
        host = tuple(disk(outcomes["switch 150" if sweep == "block" else f"{sweep} {point}"]).dd for point in points)
        rates = tuple(dd(guests[called(sweep, point)]).gbps for point in points)
        series = (("simulated host", host), ("Linux guest", rates))
        listed.append(
            Chart(f"dd in the paper's mode, figure {FIGURES[sweep]}", title, "Gb/s", tuple(map(str, points)), series)
        )
    return listed


def simulated(place: Path, *, quiet: bool) -> Outcomes:
    """The runs with a simulated host that the guest's are laid beside."""
    wanted = {"sector", *(f"read {latency}" for latency in TABLE_2)}
    wanted |= {
        f"{sweep} {point}{mode}" for sweep, points in SWEEPS.items() for point in points for mode in ("", " credits")
    }
    # A block of any size reads as fast.
    wanted -= {f"block {point}{mode}" for point in SWEEPS["block"] for mode in ("", " credits")}
    return side_by_side(
        partial(one_run, str(place)), [one for one in figures.runs() if one.name in wanted], "runs", quiet=quiet
    )


def under_linux(experiments: Path, options: GuestOptions, /, *, quiet: bool) -> ByGuest:
    """All of it; dd's block has at most so many bytes."""
    linux = kernel.find(None)
    outcomes = simulated(experiments, quiet=quiet)
    # The longest first.
    listed = sorted(runs(options.block or BLOCK), key=lambda one: -int(dict(one.variables).get("block", 0)))
    guests = boot_all(experiments, linux, listed, quiet=quiet)
    found = rows(outcomes, guests)
    return ByGuest(found, page(outcomes, guests, found), charts(outcomes, guests))
