"""The host's part: slow reads, descriptors by PIO, registers, the latency of one doubleword."""

from __future__ import annotations

from dataclasses import dataclass

from studies.speedy.card import GEN1_X1, GEN1_X4, GEN1_X8, GEN2_X8, TAGS, USER_HZ, WAYS
from studies.speedy.rows import MIB, absent, calls, goal, judged, load, rate
from studies.speedy.transfers import LEAST, mean_read_ns, read_ns
from tlplab.reproduce import Outcomes, Row, Run
from tlplab.reproduce.markdown import table
from tlplab.reproduce.section import Section
from tlplab.result import Document

GIB = 1 << 30
# Latency of host memory, ns: with root complex and link the first makes a read of 512 B take 2.4 us.
LATENCIES_NS = (1880, 4000, 9000, 19000)
REQUESTS = (128, 256, 512)
# Table 1, us: to the card (the paper's "write", which the card reads), from it; by slot, the machines in its order.
TABLE_1 = (
    ("V5LX110T, xw4400, 32-bit, x1", GEN1_X1, 34.8, 33.4), ("V5LX110T, xw4400, 64-bit, x1", GEN1_X1, 31.9, 27.3),
    ("V5LX110T, z400, 64-bit, x1", GEN1_X1, 25.1, 22.8), ("V6LX240T, xw4400, 32-bit, x4", GEN1_X4, 27.2, 23.9),
    ("V6LX240T, xw4400, 64-bit, x4", GEN1_X4, 23.3, 18.1), ("V6LX240T, z400, 64-bit, x8", GEN1_X8, 19.2, 18.2),
)  # fmt: skip
# A descriptor for each 64 B: far more of them than data need.
MANY = (
    "load.core.size=64B",
    "load.core.count=4096",
    "load.core.outstanding=4096",
    "load.core.verify=none",
    "load.core.wait=poll",
)
ROOT_NS = (150, 400, 800)


def runs() -> list[Run]:
    """All runs that depend on the host."""
    listed = []
    for latency in LATENCIES_NS:
        for mrrs in REQUESTS:
            slow = (f"host.memory.latency={latency}ns", f"device.card.mrrs={mrrs}B", "load.core.verify=none")
            # enough for the first descriptor's way and the first data's to be 0.2 % of the time
            count = mrrs // 32
            several = (*slow, f"load.core.count={count}", f"load.core.outstanding={count}")
            listed.append(Run(f"bound, {latency}, {mrrs}", "bound.toml", several))
            idle = (*slow, f"load.core.size={mrrs}B", "load.core.count=3")
            listed.append(Run(f"bound, idle, {latency}, {mrrs}", "bound.toml", idle))
    for way in WAYS:
        listed.append(Run(f"descriptors, ring, {way}", GEN1_X8.experiment, (*MANY, f"load.core.op={way}")))
        listed.append(Run(f"old requests, {way}", GEN1_X8.experiment, ("device.card.mrrs=128B", f"load.core.op={way}")))
        for slot in (GEN1_X1, GEN1_X4, GEN1_X8):
            link = f"device.card.link={slot.name.lower()}"
            ways = (link, f"device.card.pcie_clock={slot.pcie_hz:.0f}", f"load.core.op={way}")
            listed.append(Run(f"latency, {slot.name}, {way}", "latency.toml", ways))
        for pages in ("4KiB", "2MiB"):
            listed.append(
                Run(
                    f"pio, {pages}, {way}",
                    "pio.toml",
                    (f"load.core.pages={pages}", f"load.core.op={way}", "load.core.verify=none"),
                )
            )
    for ns in ROOT_NS:
        quiet = (f"host.latency={ns}ns", "load.core.size=4B", "load.back.size=4B")
        listed.append(Run(f"registers, {ns}", "registers.toml", quiet))
    listed.append(Run("registers, busy", "registers.toml"))
    return listed


@dataclass(frozen=True)
class Point:
    """A point of the sweep: reads of `mrrs` bytes that take `idle` ns alone."""

    mrrs: int
    idle: float
    loaded: float
    """The latency of the reads under load, on the link, ns."""
    bounds: dict[str, float]
    ours: float

    @property
    def limit(self) -> str:
        """The smallest of the bounds."""
        return min(self.bounds, key=self.bounds.__getitem__)

    @property
    def share(self) -> float:
        """Percent of it."""
        return 100 * self.ours / self.bounds[self.limit]


def points(outcomes: Outcomes) -> list[Point]:
    """All of the sweep."""
    listed = []
    for latency in LATENCIES_NS:
        for mrrs in REQUESTS:
            idle = read_ns(outcomes[f"bound, idle, {latency}, {mrrs}"])
            result = outcomes[f"bound, {latency}, {mrrs}"]
            bounds = GEN2_X8.bounds("to-card", MIB, idle, mrrs=mrrs)
            listed.append(Point(mrrs, idle, mean_read_ns(result), bounds, rate(result)))
    return listed


def rows(outcomes: Outcomes) -> list[Row]:
    """The paper's figures, in its order."""
    return [*bound(outcomes), *descriptors(outcomes), *registers(outcomes), *asymmetry(outcomes), *doubleword(outcomes)]


def bound(outcomes: Outcomes) -> list[Row]:
    """32 requests of 512 B in 2.4 us."""
    closed = GEN2_X8.tags(2400)
    clock = 1e9 * closed / 32 / 1e6
    listed = [
        judged(
            "512 B · 32 / 2.4 us", 6.358, closed, "GB/s", False,
            f"Little's law; published are GiB/s, {1e9 * closed / GIB:.3f} of them. 256 bits need {clock:.1f} MHz for it, not 200",
        ),
        judged(
            "least clock of 256 bits for Gen2 x8", 108, 3.2e9 / 32 / 1e6, "MHz", False,
            f"3.2 GB/s in words of 32 B; published with GiB, 3.2 · 2^30 / 32 B = {3.2 * GIB / 32 / 1e6:.1f} MHz",
        ),
    ]  # fmt: skip
    for point in points(outcomes):
        good = point.share >= 100 * LEAST
        note = f"{point.ours:.3f} of {point.bounds[point.limit]:.3f} GB/s, bound by {point.limit}; at least {100 * LEAST:.0f} %"
        if not good:
            busy, full = TAGS * point.mrrs / point.ours, 100 * point.ours / point.bounds["link"]
            note += (
                f". The link is {full:.0f} % full, so both bounds are near: a tag is busy for {busy - point.idle:.0f} ns more than "
                f"a read takes alone, {point.loaded - point.idle:.0f} behind other completions on the link, "
                f"{busy - point.loaded:.0f} in the core"
            )
        title = f"reads of {point.mrrs} B that take {point.idle / 1e3:.2f} us, of their bound"
        listed.append(judged(title, None, point.share, "%", good, note))
    return listed


def descriptors(outcomes: Outcomes) -> list[Row]:
    """Descriptor bandwidth: ring against PIO."""
    needed = 1.6e9 / 4096 * 20 / 1e6
    listed = [
        judged(
            "descriptor bandwidth that 1.6 GB/s needs", 8.39, needed, "MB/s", False,
            f"20 B for each 4 KiB; published with 1.6 GiB/s, {1.6 * GIB / 4096 * 20 / 1e6:.2f}. With 16 B it is {1.6e9 / 4096 * 16 / 1e6:.2f}",
        )
    ]  # fmt: skip
    for way in WAYS:
        found = load(outcomes[f"descriptors, ring, {way}"])
        ring = found["bytes"] / 64 * 16 / ((found["to_fs"] - found["from_fs"]) / 1e15) / 1e6
        note = f"4096 descriptors of 64 B: {ring / 16:.1f} million a second; at least 8.39 MB/s"
        listed.append(goal(f"descriptor bandwidth, ring, {way}", ring, "MB/s", ring >= 8.39, note))
    for way in WAYS:
        small, large = (rate(outcomes[f"pio, {pages}, {way}"]) for pages in ("4KiB", "2MiB"))
        with_ring = rate(outcomes[f"aligned, {GEN1_X8.name}, {way}"])
        note = (
            f"GB/s of data: a store of 4 B each 1.333 us, 3 MB/s, of the paper's 2 to 4, bounds it at {3e6 / 16 * 4096 / 1e9:.3f}; "
            f"the ring has {with_ring:.3f}; with pages of 2 MiB PIO has {large:.3f}; less than 60 % of the ring"
        )
        listed.append(goal(f"descriptors by PIO, 4 KiB pages, {way}", small, "GB/s", small < 0.6 * with_ring, note))
    return listed


def register_ns(result: Document) -> tuple[float, float]:
    """Mean and longest read of a register."""
    latency = next(flow["latency_ns"] for flow in result["flows"] if flow["name"] == "peek")
    assert latency is not None
    return latency["mean"], latency["max"]


def registers(outcomes: Outcomes) -> list[Row]:
    """PIO rate: a property of the host."""
    listed = []
    for ns in ROOT_NS:
        mean, _ = register_ns(outcomes[f"registers, {ns}"])
        note = f"reads of 4 B, {mean / 1e3:.2f} us each, with a root complex of {ns} ns each way: a matter of the host alone; published as 2 to 4 MB/s"
        ours = 4e3 / mean
        listed.append(judged(f"PIO rate, root complex of {ns} ns", None, ours, "MB/s", 2 <= ours <= 4, note))
    mean, most = register_ns(outcomes["registers, busy"])
    idle, _ = register_ns(outcomes[f"registers, {ROOT_NS[0]}"])
    note = f"mean {mean / 1e3:.2f} us, idle {idle / 1e3:.2f}; while 1 MiB moves each way on Gen1 x8; completions of the card's reads are before it on the link; less than 20 us"
    listed.append(goal("a register's read while the card is busy, longest", most / 1e3, "us", most < 20_000, note))
    return listed


def asymmetry(outcomes: Outcomes) -> list[Row]:
    """Software's writes against its reads."""
    small = {way: rate(outcomes[f"old requests, {way}"]) for way in WAYS}
    equal = {way: rate(outcomes[f"aligned, {GEN1_X8.name}, {way}"]) for way in WAYS}
    slower = 100 * (1 - small["to-card"] / small["from-card"])
    note = (
        "read requests of 128 B, payloads of 256 B, as the paper says: smaller requests than writes; then completions have 128 B. "
        f"With requests of 512 B it is {100 * (1 - equal['to-card'] / equal['from-card']):.1f} %, and 32 tags are not the limit; 5 ± 2.5 %"
    )
    return [judged("software's writes slower than its reads, Gen1 x8", 5, slower, "%", abs(slower - 5) <= 2.5, note)]


def doubleword(outcomes: Outcomes) -> list[Row]:
    """Table 1."""
    listed = []
    for machine, slot, to_card, from_card in TABLE_1:
        for way, published in zip(WAYS, (to_card, from_card), strict=True):
            ours = calls(outcomes[f"latency, {slot.name}, {way}"])["mean_ns"] / 1e3
            why = (
                "the hardware's share: from the doorbell to the record in host memory; the rest is Windows, its driver and the call, "
                "which are not available here"
            )
            listed.append(absent(f"Table 1, {machine}, {way}", published, ours, "us", why))
    return listed


def text(outcomes: Outcomes) -> str:
    """The sweep of the bound."""
    lines = [
        [
            f"{point.idle / 1e3:.2f}", str(point.mrrs), f"{point.bounds['tags']:.3f}", f"{point.bounds['link']:.3f}", point.limit,
            f"{point.ours:.3f}", f"{point.share:.1f}",
        ]
        for point in points(outcomes)
    ]  # fmt: skip
    heading = (
        "a read takes, us",
        "request, B",
        f"{TAGS} tags allow, GB/s",
        "the link has",
        "limit",
        "core, GB/s",
        "% of it",
    )
    return TEXT.format(sweep=table(heading, lines))


TEXT = """## Reads of a slow host

The paper's bound, 32 requests under way each answered after 2.4 us, is more than Gen2 x8 has (and more than 256 bits at {clock:.0f} MHz). So the host is made
slower until that bound is the limit. 4, 8 and 16 transfers of 1 MiB to the card on Gen2 x8, with requests of 128, 256 and 512 B; the time of a read is measured without other traffic:

{sweep}
""".replace("{clock:.0f}", f"{USER_HZ / 1e6:.0f}")

SECTION = Section(rows, text, runs=runs)
