"""The paper's test by Linux: the real driver, loaded in a guest, and its test program, compared with the harness and the paper's Windows."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from studies.speedy.card import GEN1_X4, GEN1_X8, GEN2_X4, OLD_MPS, SLOTS, WAYS, Slot
from studies.speedy.host import TABLE_1
from studies.speedy.rows import MIB, absent, calls, judged, load, size_of
from tlplab import quantities as q
from tlplab.errors import RunError
from tlplab.guest import kernel
from tlplab.guest.initramfs import SCRIPT
from tlplab.guest.running import Ended, run
from tlplab.progress import Bar
from tlplab.reproduce import HEADING, ByGuest, GuestOptions, Row, Run
from tlplab.reproduce.curves import Curves
from tlplab.reproduce.markdown import table
from tlplab.reproduce.running import one_run
from tlplab.result import Document

GUEST, HARNESS = "guest.toml", "harness.toml"
# The paper's sizes end here on its fastest slot; on the others, where the curve is flat.
LARGEST, LARGEST_OF_OTHERS = 256 * MIB, 16 * MIB
# Columns of the page's table, of which the harness has those that the study's figure has.
SHOWN = (4, 64, 1024, 4096, 16384, 65536, 262144, MIB, 4 * MIB, 16 * MIB, 256 * MIB)
OF_HARNESS = SHOWN[:9]
FULL = MIB
LATENCY_RUNS = 1000
# The test program looks at every byte that comes back, and ends with 1 if one differs.
TEST = """#!/bin/sh
set -e
insmod /lib/modules-tlplab/tlpdma.ko
tlpdma-test --quiet --sizes 4:{size} --runs 1 --latency-runs {runs} --json /share/found.json /dev/tlpdma0
rmmod tlpdma
"""


@dataclass(frozen=True)
class Found:
    """The results on one link."""

    program: dict[str, Any]
    """The test program's own document."""
    harness: dict[tuple[str, int], Document]
    """Without Linux, by direction and size."""

    def row(self, way: str, size: int) -> dict[str, Any] | None:
        """A line of the sweep, if it goes so far."""
        rows = self.program["sweep"]
        return next((row for row in rows if (row["direction"], row["size"]) == (way, size)), None)

    def rate(self, way: str, size: int) -> float:
        """GB/s by Linux."""
        row = self.row(way, size)
        assert row is not None
        return float(row["bytes_per_second"]) / 1e9

    def largest(self, way: str) -> int:
        """The largest size of the sweep."""
        return max(int(row["size"]) for row in self.program["sweep"] if row["direction"] == way)

    def latency_us(self, way: str) -> dict[str, float]:
        """Of one doubleword by Linux."""
        found = next(one for one in self.program["latency"] if one["direction"] == way)
        return {name: found[f"{name}_ns"] / 1e3 for name in ("min", "median", "max")}

    def of_harness(self, way: str, size: int) -> float:
        """GB/s without Linux."""
        return load(self.harness[way, size])["payload_bps"] / 8e9

    def harness_us(self, way: str) -> float:
        """Of one doubleword without Linux."""
        return calls(self.harness[way, 4])["mean_ns"] / 1e3


def link_of(slot: Slot) -> str:
    """The override that puts the card into a slot."""
    return f"device.card.link={slot.name.lower()}"


def largest_of(slot: Slot) -> int:
    """The largest transfer of a slot's sweep."""
    return LARGEST if slot is GEN1_X8 else LARGEST_OF_OTHERS


def by_linux(place: Path, slot: Slot, watch: Callable[[int], None]) -> dict[str, Any]:
    """Boots Linux with the card in a slot, and gives the test program's document."""
    script = TEST.format(size=largest_of(slot), runs=LATENCY_RUNS).encode()
    with tempfile.TemporaryDirectory(prefix="tlplab-speedy-") as share:
        ended = run(
            str(place / GUEST), kernel.find(None), {SCRIPT: script}, show=lambda _time, _text: None, watch=watch,
            overrides=(link_of(slot),), share=share,
        )  # fmt: skip
        if ended.finished.interrupted:
            raise KeyboardInterrupt
        file = Path(share) / "found.json"
        if ended.status != 0 or not file.is_file():
            raise RunError(f"the test program under Linux failed, on {slot.name}: {why(ended)}")
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def why(ended: Ended) -> str:
    """The guest's end and last lines."""
    return "; ".join([ended.end, *ended.finished.failures(), *ended.last[-5:]])


def without_linux(place: Path, slot: Slot, way: str, size: int) -> Document:
    """The same calls by the harness, as the study's figure has them."""
    count = 1 if size > 65536 else 4
    overrides = (
        link_of(slot), f"load.core.size={size_of(size)}", f"load.core.count={count}", f"load.core.op={way}"
    )  # fmt: skip
    return one_run(str(place), Run(f"{slot.name}, {way}, {size}", HARNESS, overrides))


def under_linux(experiments: Path, _options: GuestOptions, /, *, quiet: bool) -> ByGuest:
    """All of it."""
    found: dict[str, Found] = {}
    # What each part takes, more or less, for the bar.
    whole = sum(weight(slot) for slot in SLOTS)
    done = 0.0
    with Bar(quiet=quiet) as bar:
        for slot in SLOTS:

            def watch(part: float, words: str, now: int) -> None:
                bar.show(part, f"{words}, {q.time_fs(now, 3)} simulated")

            program = by_linux(experiments, slot, partial(watch, done / whole, f"{slot.name} under Linux"))
            done += weight(slot)
            bar.show(done / whole, f"{slot.name} without")
            harness = {(way, size): without_linux(experiments, slot, way, size) for way in WAYS for size in OF_HARNESS}
            found[slot.name] = Found(program, harness)
    rows = [*lanes(found), *full_speed(found), *doubled(found), *doubleword(found)]
    return ByGuest(rows, page(found, rows), drawings(found))


def weight(slot: Slot) -> float:
    """Of a link, in the time that all take."""
    return largest_of(slot) / MIB + 8


def lanes(found: dict[str, Found]) -> list[Row]:
    """Megabytes per second and lane, of the largest transfer."""
    listed = []
    for slot in SLOTS[:3]:
        one = found[slot.name]
        for way in WAYS:
            size = one.largest(way)
            ours = 1000 * one.rate(way, size) / slot.width
            link = 1000 * slot.link(way, size, mps=OLD_MPS) / slot.width
            note = (
                f"{size_of(size)}; the harness has {1000 * one.of_harness(way, OF_HARNESS[-1]) / slot.width:.1f} at 4MiB; published "
                f"as a bound, WP350's estimate for a whole system; the link itself has {link:.0f} MB/s a lane, payloads of {OLD_MPS} B"
            )
            listed.append(judged(f"figure 2, {slot.name}, {way}: a lane", 200, ours, "MB/s", False, note))
    return listed


def full_speed(found: dict[str, Found]) -> list[Row]:
    """The share of the largest transfer's rate that a megabyte reaches."""
    listed = []
    for slot in SLOTS[:3]:
        one = found[slot.name]
        for way in WAYS:
            last = one.largest(way)
            share = 100 * one.rate(way, FULL) / one.rate(way, last)
            row = one.row(way, last)
            assert row is not None
            first = next(size for size in SHOWN if one.rate(way, size) >= 0.95 * one.rate(way, last))
            note = (
                f"the rate of 1 MiB in that of {size_of(last)}; at least 95 %, which are reached with {size_of(first)}: the guest's processor "
                f"takes no time. {row['interrupts_per_mib']:.2f} interrupts per MiB"
            )
            title = f"figure 2, {slot.name}, {way}: full speed above 1 MB"
            listed.append(judged(title, None, share, "%", share >= 95, note))
    return listed


def doubled(found: dict[str, Found]) -> list[Row]:
    """Gen2 against Gen1."""
    listed = []
    for way in WAYS:
        gain = found[GEN2_X4.name].rate(way, LARGEST_OF_OTHERS) / found[GEN1_X4.name].rate(way, LARGEST_OF_OTHERS)
        note = f"{size_of(LARGEST_OF_OTHERS)}; 2 ± 0.04"
        listed.append(judged(f"Gen2 x4 against Gen1 x4, {way}", 2, gain, "times", abs(gain - 2) < 0.04, note))
    return listed


def doubleword(found: dict[str, Found]) -> list[Row]:
    """Table 1: from the program's call to its return."""
    listed = []
    for machine, slot, to_card, from_card in TABLE_1:
        one = found[slot.name]
        for way, published in zip(WAYS, (to_card, from_card), strict=True):
            times = one.latency_us(way)
            note = (
                f"from the program's call to its return, median of {LATENCY_RUNS} ({times['min']:.3f} to {times['max']:.3f}); the harness, "
                f"without Linux, has {one.harness_us(way):.3f}, a mean with its first call, which starts the channel. Linux's driver, not Windows', and the processor's work takes no time"
            )
            listed.append(absent(f"Table 1, {machine}, {way}", published, times["median"], "us", note))
    return listed


def rates(one: Found, way: str, sizes: Sequence[int]) -> list[str]:
    """Cells of the page's table."""
    return [f"{one.rate(way, size):.3g}" if one.row(way, size) else "–" for size in sizes]


def page(found: dict[str, Found], rows: list[Row]) -> str:
    """`guest.md`."""
    lines = []
    for slot in SLOTS:
        one = found[slot.name]
        for way in WAYS:
            lines.append([f"{slot.name}, {way}, Linux", *rates(one, way, SHOWN)])
            harness = [f"{one.of_harness(way, size):.3g}" for size in OF_HARNESS]
            lines.append([f"{slot.name}, {way}, harness", *harness, *["–"] * (len(SHOWN) - len(OF_HARNESS))])
    latencies = []
    for slot in SLOTS:
        one = found[slot.name]
        for way in WAYS:
            times = one.latency_us(way)
            cells = [f"{times[name]:.3f}" for name in ("min", "median", "max")]
            latencies.append([f"{slot.name}, {way}", *cells, f"{one.harness_us(way):.3f}"])
    heading = ("GB/s", *map(size_of, SHOWN))
    return PAGE.format(
        rows=table(HEADING, [row.cells() for row in rows]),
        sweep=table(heading, lines),
        latency=table(("us", "min", "median", "max", "harness, mean"), latencies),
        runs=LATENCY_RUNS,
        mps=OLD_MPS,
    )


PAGE = """# Speedy PCIe under Linux

The paper's test, by the software that would do it on hardware: an unmodified Linux in simulated time loads `tlpdma.ko`, and `tlpdma-test` moves
4 B to 256 MiB (16 MiB on slots that the paper has no such figure of) from and to its heap and looks at every byte. The card is the one as
transactions (`model = "tlpdma"`). This page is written by the command that runs it, after `make linux`:
`tlplab reproduce speedy --guest --markdown studies/speedy/guest.md`. [README.md](README.md) has the core in RTL without Linux.

## Published and reproduced

{rows}

*Explained* differs for the reason in the note. Table 1 is *not reproducible*: it has the time of Windows, of the paper's driver and of processors of its
day. Here a system call, a page fault and an interrupt handler take none, so the rest is the time that no software can avoid: the driver's registers, the card's
descriptors, data, record and interrupt, and the way of each. `guest.cpu` (`--set guest.cpu.syscall=1us` of `tlplab guest uml studies/speedy/guest.toml`) sets the time of calls and interrupts.

## Every point

GB/s, payloads of {mps} B, pages of 4 KiB as the kernel gives them: of Linux, one call each; of the harness, a program of the simulated host, from its doorbell
to its interrupt.

{sweep}

## One doubleword

{runs} calls of Linux; the harness has 4, of which the first starts the channel.

{latency}
"""


def drawings(found: dict[str, Found]) -> tuple[Curves, ...]:
    """The figure, by Linux."""
    lines = []
    for slot in SLOTS:
        one = found[slot.name]
        for way in WAYS:
            sizes = [int(row["size"]) for row in one.program["sweep"] if row["direction"] == way]
            lines.append((f"{slot.name}, {way}", np.array(sizes), np.array([one.rate(way, size) for size in sizes])))
    return (Curves("Figure 2, by Linux", "transfer, bytes", "GB/s", tuple(lines), scale="log"),)
