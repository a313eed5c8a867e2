"""Figure 1: the rates of a link and three NICs, by the public model and without its mistakes; and the differences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from studies.pcie_bench.section import compared, judged
from tlplab import model
from tlplab.reproduce import Outcomes, Row
from tlplab.reproduce.curves import Curves
from tlplab.reproduce.markdown import table
from tlplab.reproduce.section import Section

PUBLIC = "pcie-model"
MISTAKES = model.COMPAT[1:]
# The public model but for one of its mistakes: it counts what a NIC's receive side asks for.
MENDED = tuple(name for name in MISTAKES if name != "lost-requests")
NICS = {"simple": "simple NIC", "kernel": "kernel driver", "dpdk": "DPDK driver"}
FRAMES = np.arange(64, 1519)
# The public model's nic_bw.dat, default configuration: frame, then read-only bandwidth, Ethernet, and the three NICs, Gb/s.
ANCHORS = {
    64: (43.41, 28.57, 12.58, 17.63, 20.65),
    256: (53.63, 37.06, 31.17, 37.50, 40.50),
    512: (53.66, 38.48, 39.31, 43.96, 45.93),
    1499: (53.58, 39.47, 46.06, 48.08, 48.86),
}


@dataclass(frozen=True)
class Crossing:
    """The frames at which a NIC meets 40 Gb/s Ethernet."""

    first: int
    """The shortest frame at line rate, bytes."""
    below: int
    """The longest that is not; 63 if there is none."""

    @property
    def always(self) -> int:
        """From which on it is met by every frame."""
        return self.below + 1

    def __str__(self) -> str:
        return f"{self.first}" if self.below < self.first else f"{self.first}–{self.below}"


def crossing(nic: str, compat: str | Iterable[str] = ()) -> Crossing:
    """Of a NIC that comes with tlplab."""
    grid = model.nic(FRAMES, file=nic, compat=compat)
    met = grid["packets_per_s"] >= grid["ethernet_frames_per_s"]
    missed = FRAMES[~met]
    return Crossing(int(FRAMES[met][0]), int(missed[-1]) if len(missed) else 63)


def gigabits(op: str, size: int, **connection: Any) -> float:
    """Bandwidth of transfers, Gb/s."""
    return float(model.bandwidth(size, op=op, **connection)["bandwidth_bps"]) / 1e9


def for_tlps(**connection: Any) -> float:
    """The rate of a link that is available to TLPs, Gb/s."""
    return float(model.bandwidth(64, **connection)["tlp_bps"]) / 1e9


def rows(_outcomes: Outcomes) -> list[Row]:
    """The statements about bandwidth, Figure 1's curves and crossings."""
    raw = float(model.bandwidth(64)["raw_bps"]) / 1e9
    listed = [
        compared("gen3 x8 at the physical layer", 62.96, raw, "Gb/s", 0.02, "8 · 8 GT/s · 128/130; the paper rounds a lane down to 7.87"),
        compared("usable, read and write, 512 B, public model", 50, gigabits("rdwr", 512, compat=PUBLIC), "Gb/s", 0.02, "the paper says around 50"),
        compared("usable, read and write, 512 B", 50, gigabits("rdwr", 512), "Gb/s", 0.02, f"the public model takes {for_tlps() - for_tlps(compat=PUBLIC):.2f} Gb/s too much for Acks and UpdateFCs"),
    ]  # fmt: skip
    effective, ethernet = [], []
    for frame, (read, line, *_) in ANCHORS.items():
        ours = gigabits("read", frame - 4, compat=PUBLIC)
        note = "drawn is the read-only curve" if frame == 512 else ""
        effective.append(anchor(f"effective PCIe BW, {frame} B", read, ours, note))
        rate = float(model.nic(frame, compat=PUBLIC)["ethernet_bps"]) / 1e9
        ethernet.append(anchor(f"40G Ethernet, {frame} B", line, rate))
    listed += [*effective, *ethernet]
    for column, (nic, name) in enumerate(NICS.items()):
        for frame, published in ANCHORS.items():
            ours = float(model.nic(frame, file=nic, compat=PUBLIC)["bandwidth_bps"]) / 1e9
            listed.append(anchor(f"{name}, {frame} B", published[2 + column], ours))
    listed += [row for nic, name in NICS.items() for row in crossings(nic, name)]
    public, right = crossing("simple", PUBLIC), crossing("simple")
    note = f"the public model has it for {public.first} to 516 B and from {public.always} B on"
    return [*listed, judged("simple NIC: 40 Gb/s for frames larger than", 512, right.below, "B", False, note)]


def anchor(what: str, published: float, ours: float, note: str = "") -> Row:
    """A point of a curve, calculated as the public model does; the file has two digits."""
    return judged(f"figure 1, {what}, public model", published, ours, "Gb/s", abs(ours - published) <= 0.00501, note)


# What the public model gives, and what its code gives with `rx_tx_data_B =` mended to `+=`: the first frame at line rate, the last below it.
PUBLISHED = {
    "simple": (Crossing(477, 583), Crossing(638, 637)),
    "kernel": (Crossing(246, 299), Crossing(353, 352)),
    "dpdk": (Crossing(182, 181), Crossing(235, 288)),
}


def crossings(nic: str, name: str) -> list[Row]:
    """The frames at which a NIC meets the line rate: as published, with one mistake mended, and with all of them."""
    public, mended, right = crossing(nic, PUBLIC), crossing(nic, MENDED), crossing(nic)
    ways = ((public, PUBLISHED[nic][0], "public model"), (mended, PUBLISHED[nic][1], "public model, mended"))
    listed = [
        judged(f"figure 1, {name}: first frame at 40 Gb/s, {way}", expected.first, ours.first, "B", ours == expected, saw_tooth(ours))
        for ours, expected, way in ways
    ]  # fmt: skip
    note = f"{saw_tooth(right)}; without the mistakes, which partly make up for each other".removeprefix("; ")
    listed.append(
        judged(f"figure 1, {name}: first frame at 40 Gb/s", PUBLISHED[nic][0].first, right.first, "B", False, note)
    )
    return listed


def saw_tooth(found: Crossing) -> str:
    """The frame from which a NIC stays at line rate, if it falls below once more after the first."""
    return f"and for good from {found.always} B on" if found.below > found.first else ""


def text(_outcomes: Outcomes) -> str:
    """The section of the page."""
    frames = tuple(ANCHORS)
    curves = [
        ["read and write, each way", *(f"{gigabits('rdwr', frame - 4):.2f}" for frame in frames)],
        ["40 Gb/s Ethernet", *(f"{float(model.nic(frame)['ethernet_bps']) / 1e9:.2f}" for frame in frames)],
    ]
    for nic, name in NICS.items():
        found = (float(model.nic(frame, file=nic)["bandwidth_bps"]) / 1e9 for frame in frames)
        curves.append([name, *(f"{rate:.2f}" for rate in found)])
    alone = [
        [f"`{name}`", *(str(crossing(nic, [one for one in MISTAKES if one != name])) for nic in NICS), *(str(crossing(nic, name)) for nic in NICS)]
        for name in MISTAKES
        if name not in ("table-typos", "framed-flits")
    ]  # fmt: skip
    ends = ["(none)", *(str(crossing(nic, PUBLIC)) for nic in NICS), *(str(crossing(nic)) for nic in NICS)]
    return TEXT.format(
        curves=table(["frame, B", *map(str, frames)], curves),
        mistakes=table(["mistake", "where it shows", "public model", "without it"], list(sizes())),
        crossings=table(
            ["mistake", *(f"mended: {nic}" for nic in NICS), *(f"made alone: {nic}" for nic in NICS)], [ends, *alone]
        ),
        public=for_tlps(compat=PUBLIC),
        right=for_tlps(),
    )


def sizes() -> Iterable[list[str]]:
    """Each mistake, where it shows, and how much it is: the public model with and without it."""

    def line(name: str, where: str, public: float, mended: float) -> list[str]:
        return [name, where, f"{public:.2f} Gb/s", f"{mended:.2f} Gb/s"]

    def both(name: str, figure: str, **given: Any) -> tuple[float, float]:
        others = [one for one in MISTAKES if one != name]
        if figure == "tlps":
            return for_tlps(compat=PUBLIC, **given), for_tlps(compat=others, **given)
        return gigabits(figure, compat=PUBLIC, **given), gigabits(figure, compat=others, **given)

    yield line(
        "`dllp-limits`: Acks and UpdateFCs as often as if a symbol time were a byte, not one of each lane",
        "for TLPs, gen3 x8, MPS 256", *both("dllp-limits", "tlps"),
    )  # fmt: skip
    lost = {compat: float(model.nic(64, compat=compat)["bandwidth_bps"]) / 1e9 for compat in (PUBLIC, MENDED)}
    yield line(
        "`lost-requests`: the requests of the receive side are overwritten by its writes",
        "simple NIC, frames of 64 B", lost[PUBLIC], lost[MENDED],
    )  # fmt: skip
    typo = "`table-typos`: Ack limit 237, not 327"
    yield line(typo, "for TLPs, gen2 x32, MPS 4096", *both("table-typos", "tlps", generation=2, width=32, mps=4096))
    typo = "`table-typos`: UpdateFC limit 248, not 148"
    yield line(typo, "for TLPs, gen1 x32, MPS 2048", *both("table-typos", "tlps", generation=1, width=32, mps=2048))
    yield line(
        "the curve \"Effective PCIe BW\" is of reads alone", "512 B: reads; reads and writes",
        gigabits("read", 512, compat=PUBLIC), gigabits("rdwr", 512, compat=PUBLIC),
    )  # fmt: skip
    ethernet = [float(model.nic(128, compat=compat)["ethernet_bps"]) / 1e9 for compat in ("short-frames", ())]
    short = "`short-frames`: frames on the wire without their check sequence"
    yield line(short, "40 Gb/s Ethernet, frames of 128 B", *ethernet)
    yield [
        "RCB: accepted up to 512 B, without effect", "reads of 512 B cut at each 64 B (`--completions rcb`), or as late as possible",
        f"{gigabits('read', 512, compat=PUBLIC):.2f} Gb/s", f"{gigabits('read', 512, completions='rcb', compat=PUBLIC):.2f} Gb/s",
    ]  # fmt: skip
    yield line(
        "`framed-flits`: 242 of 256 bytes, and framing and DLLPs once more; a flit has 236 for TLPs and all else in the rest",
        "for TLPs, gen6 x16", *both("framed-flits", "tlps", generation=6, width=16),
    )  # fmt: skip
    skip = "`one-skip`: skips of 8b/10b at every rate"
    yield line(skip, "for TLPs, gen5 x16", *both("one-skip", "tlps", generation=5, width=16))
    ways = "`both-ways`: Acks and UpdateFCs take from each direction, even where nothing comes the other way"
    yield line(ways, "writes of 256 B", *both("both-ways", "write", size=256))
    cuts = "`loose-cuts`: no partial doublewords"
    yield line(cuts, "writes of 1 B", *both("loose-cuts", "write", size=1))
    cuts = "`loose-cuts`: no 4 KiB crossings"
    yield line(
        cuts, "writes of 64 B, 32 B before the end of a page", *both("loose-cuts", "write", size=64, offset=4064)
    )
    cuts = "`loose-cuts`: a completion answers several requests"
    yield line(cuts, "reads of 512 B, MRRS 128", *both("loose-cuts", "read", size=512, mrrs=128))


TEXT = """## Figure 1, without the mistakes

Gb/s each way, gen3 x8, MPS 256, MRRS 512, 64-bit addresses; frames with, transfers without the check sequence:

{curves}

## The public model's mistakes, and the effect of each

{mistakes}

It leaves out tags, credits and latency; `tlplab model lat` has them. Measured hosts show the right one: on gen3 x8 their read and write rates imply
59.6 to 60.3 Gb/s for TLPs (github.com/pcie-bench, the measurements published with the paper). That is more than the {public:.2f} the public model
has, and less than {right:.2f}.

Two of the mistakes are large and of opposite sign: too many DLLPs make every NIC slower, requests left out make it faster. So the
public crossings are near the right ones. In this table is the first frame, in bytes, that a NIC sends and receives at 40 Gb/s, and after a dash
the last that it does not, if that is a longer one: on the left of the public model with one mistake mended, on the right of tlplab's with one mistake made.

{crossings}
"""


def drawings(_outcomes: Outcomes) -> tuple[Curves, ...]:
    """Figure 1, as the public model has it and as it is."""

    def figure(title: str, op: str, compat: str | tuple[str, ...]) -> Curves:
        grids = {name: model.nic(FRAMES, file=nic, compat=compat) for nic, name in NICS.items()}
        lines = [
            ("effective PCIe BW", FRAMES, model.bandwidth(FRAMES - 4, op=op, compat=compat)["bandwidth_bps"] / 1e9)
        ]
        lines.append(("40G Ethernet", FRAMES, grids["simple NIC"]["ethernet_bps"] / 1e9))
        lines += [(name, FRAMES, grid["bandwidth_bps"] / 1e9) for name, grid in grids.items()]
        return Curves(title, "frame, bytes", "Gb/s", tuple(lines))

    return figure("Figure 1, as published", "read", PUBLIC), figure("Figure 1, without the mistakes", "rdwr", ())


SECTION = Section(rows, text, drawings)
