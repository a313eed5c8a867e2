"""Figure 2: bandwidth against the size of a transfer."""

from __future__ import annotations

import numpy as np

from studies.speedy.card import (
    GEN1_X4,
    GEN1_X8,
    GEN2_X4,
    GEN2_X8,
    OLD_HOST,
    OLD_MPS,
    SLOTS,
    WAYS,
    Slot,
)
from studies.speedy.rows import MIB, calls, judged, load, size_of
from tlplab.reproduce import Outcomes, Row, Run
from tlplab.reproduce.curves import Curves
from tlplab.reproduce.markdown import table
from tlplab.reproduce.section import Section

SIZES = (4, 64, 1024, 4096, 16384, 65536, 262144, MIB, 4 * MIB)
FULL, LARGEST = MIB, SIZES[-1]
# Table 1: one doubleword with Windows, us, to the card and from it, on the slots that it has; the newer host where there are two.
WINDOWS_US = {"Gen1 x1": (25.1, 22.8), "Gen1 x4": (23.3, 18.1), "Gen1 x8": (19.2, 18.2)}


def name_of(slot: Slot, way: str, size: int) -> str:
    """Of a run."""
    return f"figure 2, {slot.name}, {way}, {size}"


def runs() -> list[Run]:
    """Each size, both ways, on every link; calls of few bytes more than once."""
    listed = []
    for slot in SLOTS:
        for way in WAYS:
            for size in SIZES:
                count = 1 if size > 65536 else 4
                ways = (OLD_HOST, f"load.core.size={size_of(size)}", f"load.core.count={count}", f"load.core.op={way}")
                listed.append(Run(name_of(slot, way, size), slot.experiment, ways))
    # The longest first, so that no processor waits for one at the end.
    return sorted(listed, key=lambda run: -int(run.name.rsplit(" ", 1)[1]))


def hardware(outcomes: Outcomes, slot: Slot, way: str) -> list[float]:
    """GB/s of each size without an operating system."""
    return [load(outcomes[name_of(slot, way, size)])["payload_bps"] / 8e9 for size in SIZES]


def with_windows(outcomes: Outcomes, slot: Slot, way: str) -> list[float]:
    """The same, if each call takes as much longer as the paper's one-doubleword calls took than ours: software adds to every call alike."""
    ours_us = calls(outcomes[name_of(slot, way, SIZES[0])])["mean_ns"] / 1e3
    software_us = WINDOWS_US[slot.name][WAYS.index(way)] - ours_us
    times = (calls(outcomes[name_of(slot, way, size)])["mean_ns"] / 1e3 + software_us for size in SIZES)
    return [size / 1e3 / time for size, time in zip(SIZES, times, strict=True)]


def rows(outcomes: Outcomes) -> list[Row]:
    """The rows of the paper's text about its figure."""
    listed = []
    for slot in SLOTS[:3]:
        lanes = slot.width
        per_lane = {way: 1000 * with_windows(outcomes, slot, way)[-1] / lanes for way in WAYS}
        link = {way: 1000 * slot.link(way, LARGEST, mps=OLD_MPS) / lanes for way in WAYS}
        for way in WAYS:
            note = (
                f"4 MiB, payloads of {OLD_MPS} B, with Table 1's software; published as a bound, WP350's estimate for a whole system; "
                f"the link itself has {link[way]:.0f} MB/s a lane"
            )
            good = per_lane[way] <= 200
            listed.append(judged(f"figure 2, {slot.name}, {way}: a lane", 200, per_lane[way], "MB/s", good, note))
    for slot in SLOTS[:3]:
        for way in WAYS:
            found = with_windows(outcomes, slot, way)
            share = 100 * found[SIZES.index(FULL)] / found[-1]
            alone = hardware(outcomes, slot, way)
            reached = next(size for size, ours in zip(SIZES, alone, strict=True) if ours >= 0.95 * alone[-1])
            below = 100 * found[SIZES.index(65536)] / found[-1]
            note = (
                "the rate of 1 MiB in that of 4 MiB, with Table 1's software; "
                f"at least 95 %, which 64 KiB with {below:.0f} % do not reach. "
                f"The hardware alone has 95 % from {size_of(reached)} on"
            )
            listed.append(
                judged(
                    f"figure 2, {slot.name}, {way}: full speed above 1 MB",
                    None,
                    share,
                    "%",
                    share > 95 > below,
                    note,
                )
            )
    expected = "; the paper's expectation of Gen2 x8, which its silicon could not do"
    for fast, slow, more in ((GEN2_X4, GEN1_X4, ""), (GEN2_X8, GEN1_X8, expected)):
        for way in WAYS:
            gain = hardware(outcomes, fast, way)[-1] / hardware(outcomes, slow, way)[-1]
            note = f"4 MiB; 2 ± 0.04{more}"
            listed.append(
                judged(f"{fast.name} against {slow.name}, {way}", 2, gain, "times", abs(gain - 2) < 0.04, note)
            )
    return listed


def text(outcomes: Outcomes) -> str:
    """Every point of the figure."""
    lines = [
        [f"{slot.name}, {way}", *(f"{one:.3g}" for one in hardware(outcomes, slot, way))]
        for slot in SLOTS
        for way in WAYS
    ]
    windows = [
        [f"{slot.name}, {way}", *(f"{one:.3g}" for one in with_windows(outcomes, slot, way))]
        for slot in SLOTS[:3]
        for way in WAYS
    ]
    sizes = tuple(map(size_of, SIZES))
    return TEXT.format(hardware=table(("GB/s", *sizes), lines), windows=table(("GB/s", *sizes), windows), mps=OLD_MPS)


TEXT = """## Figure 2

GB/s (`--report` draws it) of one call after the other, each from software's doorbell to its interrupt, over scattered pages of 4 KiB, payloads of {mps} B as on the
paper's hosts. Without an operating system:

{hardware}

With the time of Windows and the paper's driver for one doubleword (Table 1) in every call, less tlplab's. Their time for each
page of a large transfer, pinning it and writing its descriptor, is not published and not in here:

{windows}
"""


def drawings(outcomes: Outcomes) -> tuple[Curves, ...]:
    """The paper's figure, ours."""
    points = np.array(SIZES)

    def figure(title: str, slots: tuple[Slot, ...], values: dict[tuple[str, str], list[float]]) -> Curves:
        lines = tuple(
            (f"{slot.name}, {way}", points, np.array(values[slot.name, way])) for slot in slots for way in WAYS
        )
        return Curves(title, "transfer, bytes", "GB/s", lines, scale="log")

    alone = {(slot.name, way): hardware(outcomes, slot, way) for slot in SLOTS for way in WAYS}
    windows = {(slot.name, way): with_windows(outcomes, slot, way) for slot in SLOTS[:3] for way in WAYS}
    return (
        figure("Figure 2, with the software of Table 1", SLOTS[:3], windows),
        figure("Figure 2 and Gen2, the hardware alone", SLOTS, alone),
    )


SECTION = Section(rows, text, drawings, runs)
