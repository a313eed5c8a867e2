"""The core's rates in relation to their bounds: aligned, misaligned, in every mode; and options that must not cost anything."""

from __future__ import annotations

from studies.speedy.card import GEN1_X8, GEN2_X8, MPS, OLD_HOST, OLD_MPS, SLOTS, WAYS, Slot
from studies.speedy.rows import MIB, calls, goal, judged, load, rate
from tlplab.reproduce import Outcomes, Row, Run
from tlplab.reproduce.markdown import table
from tlplab.reproduce.section import Section
from tlplab.result import Document

LEAST, LEAST_MISALIGNED = 0.98, 0.94
LARGE = "load.core.pages=2MiB"
# Bytes that buffer and card are off; both are 32 B wide inside, so that 1 to 31 are all there is, and one buffer starts at a page's end.
OFFSETS = ((1, 0), (0, 1), (18, 5), (4095, 31))
WIDE = ("device.card.link=gen2 x8", "device.card.model=rtl:../../out/rtl/tlpdma-trn128.so")
DUPLEX = {GEN1_X8.name: (GEN1_X8, ()), GEN2_X8.name: (GEN2_X8, WIDE)}
UNCHECKED = ("load.core.verify=none",)
IDLE = (*UNCHECKED, "load.core.size=512B", "load.core.count=10")
# One direction stands still: reads are answered after 100 us, or the processor takes 100 us for each store of a descriptor. It has so little to do
# that it ends with the other.
SLOW_READS = ("host.memory.latency=100us", "load.core.size=64KiB", "load.back.size=4MiB", "load.back.verify=none")
STARVED = (
    "load.back.descriptors=pio", "load.back.store_interval=100us", "load.back.size=8KiB", "load.core.size=4MiB",
    "load.core.verify=none",
)  # fmt: skip
ALONE = ("load.back.size=4B", "load.core.size=4MiB", "load.core.verify=none")
# Its descriptors are read from the same slow memory.
ALONE_BACK = ("host.memory.latency=100us", "load.core.size=4B", "load.back.size=4MiB", "load.back.verify=none")
DELAYS_MS = (0, 1)
BEHIND = "behind a switch"


def runs() -> list[Run]:
    """One of 1 MiB for each way, link and mode."""
    listed = []
    for slot in SLOTS:
        for way in WAYS:
            extra = (f"load.core.op={way}",)
            listed.append(Run(f"aligned, {slot.name}, {way}", slot.experiment, extra))
            listed.append(Run(f"2 MiB pages, {slot.name}, {way}", slot.experiment, (*extra, LARGE)))
            listed.append(Run(old(slot, way), slot.experiment, (*extra, OLD_HOST, *UNCHECKED)))
    for slot in (GEN1_X8, GEN2_X8):
        for way in WAYS:
            for offset, card in OFFSETS:
                off = (f"load.core.offset={offset}B", f"load.core.card_offset={card}B", f"load.core.op={way}")
                listed.append(Run(misaligned(slot, way, offset, card), slot.experiment, off))
    listed += [Run(f"idle, {slot.name}", slot.experiment, IDLE) for slot in SLOTS]
    listed.append(Run(f"idle, {BEHIND}", "switch.toml", IDLE))
    listed += [Run(f"{BEHIND}, {GEN1_X8.name}, {way}", "switch.toml", (f"load.core.op={way}",)) for way in WAYS]
    listed += [Run(f"both, {name}", "both.toml", extra) for name, (_, extra) in DUPLEX.items()]
    for delay in DELAYS_MS:
        for way in WAYS:
            late = (f"load.core.interrupt_delay={delay}ms", f"load.core.op={way}")
            listed.append(Run(f"late, {delay} ms, {way}", "late.toml", late))
    listed.append(
        Run("late, pio", "late.toml", ("load.core.descriptors=pio", "load.core.size=1MiB", "load.core.count=2"))
    )
    listed += [
        Run("reads stand still", "both.toml", SLOW_READS), Run("writes alone", "both.toml", ALONE_BACK),
        Run("writes stand still", "both.toml", STARVED), Run("reads alone", "both.toml", ALONE),
    ]  # fmt: skip
    return listed


def old(slot: Slot, way: str) -> str:
    """Of a run with the payloads of the paper's hosts."""
    return f"aligned, {slot.name}, {way}, payloads of {OLD_MPS} B"


def misaligned(slot: Slot, way: str, offset: int, card: int) -> str:
    """Of a run."""
    return f"{slot.name}, {way}, buffer off by {offset} B, card by {card} B"


def read_ns(result: Document) -> float:
    """The latency of a read of the card, from its request to its last byte, ns, without other traffic: the longest is one of 512 B."""
    found = [flow["latency_ns"] for flow in result["flows"] if flow["device"] == "card" and flow["op"] == "read"]
    return max(latency["max"] for latency in found if latency is not None)


def mean_read_ns(result: Document) -> float:
    """The mean latency of the card's reads, on the link, ns: from request to last byte, with other traffic in their way."""
    flow = next(flow for flow in result["flows"] if flow["device"] == "card" and flow["op"] == "read")
    assert flow["latency_ns"] is not None
    return flow["latency_ns"]["mean"]


def compared(
    outcomes: Outcomes,
    run: str,
    slot: Slot,
    way: str,
    least: float = LEAST,
    *,
    offset: int = 0,
    mps: int = MPS,
    idle: str = "",
) -> Row:
    """A run compared with the smallest of its bounds. With the payloads of old hosts, a run that misses it has the parts of the time in its note."""
    latency = read_ns(outcomes[f"idle, {idle or slot.name}"])
    bound, name = slot.bound(way, MIB, latency, mps=mps, offset=offset)
    ours = rate(outcomes[run])
    note = f"{ours:.3f} of {bound:.3f} GB/s, which the {name} has; at least {100 * least:.0f} %"
    good = ours >= least * bound
    if mps == MPS:
        return goal(run, 100 * ours / bound, "%", good, note)
    if not good:
        note += f". {beyond(outcomes[run], MIB / bound)}; Acks of the card's requests are due sooner than with {MPS} B"
    return judged(run, None, 100 * ours / bound, "%", good, note)


def beyond(result: Document, data_ns: float) -> str:
    """The time of a transfer to the card beyond that of its data on the link; nothing else may be in the run."""
    link = next(link for link in result["links"] if link["lower"] == "card")
    use = next(one for one in link["directions"] if one["to"] == "card")["utilization"]
    found = load(result)
    took, lasted = (
        (to - begin) / 1e6 for begin, to in ((found["from_fs"], found["to_fs"]), (result["start_fs"], result["end_fs"]))
    )
    dllps, skips = use["dllp"] * lasted, use["ordered_sets"] * lasted
    descriptors = (use["payload"] + use["overhead"]) * lasted - data_ns
    rest = took - data_ns - dllps - skips - descriptors
    parts = {"DLLPs": dllps, "descriptors": descriptors, "ordered sets": skips, "beginning and end": rest}
    listed = ", ".join(f"{name} {100 * part / took:.2f}" for name, part in parts.items())
    return f"The other {100 * (1 - data_ns / took):.2f} %: {listed}"


def rows(outcomes: Outcomes) -> list[Row]:
    """The figures that the core has to reach."""
    listed = [compared(outcomes, f"aligned, {slot.name}, {way}", slot, way) for slot in SLOTS for way in WAYS]
    listed += [compared(outcomes, old(slot, way), slot, way, mps=OLD_MPS) for slot in SLOTS for way in WAYS]
    listed += [compared(outcomes, f"2 MiB pages, {slot.name}, {way}", slot, way) for slot in SLOTS for way in WAYS]
    listed += [compared(outcomes, f"{BEHIND}, {GEN1_X8.name}, {way}", GEN1_X8, way, idle=BEHIND) for way in WAYS]
    for slot in (GEN1_X8, GEN2_X8):
        for way in WAYS:
            for offset, card in OFFSETS:
                name = misaligned(slot, way, offset, card)
                listed.append(compared(outcomes, name, slot, way, LEAST_MISALIGNED, offset=offset))
    listed += pages(outcomes)
    for name, (slot, _) in DUPLEX.items():
        listed.append(duplex(outcomes[f"both, {name}"], slot))
    return [*listed, *late(outcomes), *still(outcomes)]


def pages(outcomes: Outcomes) -> list[Row]:
    """Rows that show that there is no gap at the end of a page."""
    listed = []
    for slot in (GEN1_X8, GEN2_X8):
        for way in WAYS:
            small, large = (outcomes[f"{mode}, {slot.name}, {way}"] for mode in ("aligned", "2 MiB pages"))
            each = (calls(small)["mean_ns"] - calls(large)["mean_ns"]) / (MIB / 4096)
            # To the card descriptors share the way with data, from it they do not; a beat of the interface is 4 ns.
            most = 16 / slot.link("to-card", 512) if way == "to-card" else 4
            note = (
                "the additional time of each of 256 scattered pages, compared with the same bytes in one of 2 MiB; at most "
                + (
                    f"the {most:.1f} ns of its descriptor on the link"
                    if way == "to-card"
                    else "a beat of the interface, 4 ns"
                )
            )
            listed.append(goal(f"gap at the end of a page, {slot.name}, {way}", each, "ns", each < most, note))
    return listed


def duplex(result: Document, slot: Slot) -> Row:
    """Both directions at once."""
    slower = min(rate(result), rate(result, "back"))
    bound = min(slot.link("both", MIB), slot.path())
    note = (
        f"the slower has {slower:.3f} of {bound:.3f} GB/s each way, closed form; at least {100 * LEAST:.0f} %; "
        "requests share the way out with data"
    )
    return goal(f"both at once, {slot.name}", 100 * slower / bound, "%", slower >= LEAST * bound, note)


def late(outcomes: Outcomes) -> list[Row]:
    """Interrupt handlers that are late.

    A transfer takes longer than they are late: each has a handler of its own, the last is late by all of it, and the rest is the card's.
    """
    listed = []
    for way in WAYS:
        now, then = (load(outcomes[f"late, {delay} ms, {way}"]) for delay in DELAYS_MS)
        took = [(one["to_fs"] - one["from_fs"]) / 1e12 for one in (now, then)]
        card = took[1] - DELAYS_MS[1]
        cost = 100 * (card / took[0] - 1)
        note = (
            f"8 MiB, of which 4 are in the ring, take the card {card:.3f} ms instead of {took[0]:.3f}, the last handler's own "
            f"{DELAYS_MS[1]} ms apart; less than 0.5 %; {calls(outcomes[f'late, 1 ms, {way}'])['interrupts']} interrupts"
        )
        listed.append(goal(f"handlers 1 ms late, Gen1 x8, {way}: cost", cost, "%", cost < 0.5, note))
    pio = load(outcomes["late, pio"])["payload_bps"] / 8e6
    note = (
        "with descriptors by PIO, of which the card holds 64, until an interrupt reports room: the reason for the paper's ring; "
        "less than 500 MB/s"
    )
    listed.append(goal("handlers 1 ms late, Gen1 x8, descriptors by PIO", pio, "MB/s", pio < 500, note))
    return listed


def still(outcomes: Outcomes) -> list[Row]:
    """One direction stands still."""
    listed = []
    for what, name in (("writes", "back"), ("reads", "core")):
        other = "reads" if what == "writes" else "writes"
        alone, beside = (rate(outcomes[run], name) for run in (f"{what} alone", f"{other} stand still"))
        note = f"{beside:.3f} GB/s beside, {alone:.3f} alone; less than 0.5 %"
        cost = 100 * (1 - beside / alone)
        listed.append(goal(f"{what} while {other} stand still, Gen1 x8: cost", cost, "%", cost < 0.5, note))
    return listed


def text(outcomes: Outcomes) -> str:
    """The bounds."""
    lines = []
    for slot in SLOTS:
        idle = read_ns(outcomes[f"idle, {slot.name}"])
        cells = [f"{slot.link(way, MIB):.3f}" for way in WAYS]
        lines.append([slot.name, *cells, f"{slot.path():.3f}", f"{slot.tags(idle):.1f}", f"{idle:.0f} ns"])
    heading = ("", "link, to the card", "link, from the card", "data path", "tags", "a read of 512 B")
    return TEXT.format(bounds=table(heading, lines))


TEXT = """## The bounds of a transfer

GB/s, from closed forms (`tlplab.model`: `bandwidth`, `data_path`, `in_flight`), with payloads of 256 B and read requests of 512 B: the link's rate for
payload; the rate of the hard IP's interface for it if headers of 12 B travel inline, each TLP beginning with a beat of its own (the core itself has
256 bits at 200 MHz, 6.4 GB/s, and no headers in them); and 32 tags of 512 B over the time of a read without other traffic, the only measured value.

{bounds}

A transfer is timed from the doorbell to the interrupt, so its percentage includes the way of the first descriptor and of the first data.
"""


SECTION = Section(rows, text, runs=runs)
