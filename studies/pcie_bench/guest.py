"""The cost of a packet of Linux's e1000e on the link, compared with the model's NIC with a kernel driver."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from studies.pcie_bench.section import PAPER
from tlplab import outline
from tlplab.errors import RunError
from tlplab.guest import kernel
from tlplab.guest.initramfs import SCRIPT
from tlplab.guest.together import of_machine, run_together
from tlplab.progress import Bar
from tlplab.reproduce import HEADING, ByGuest, GuestOptions, Row
from tlplab.reproduce.markdown import table
from tlplab.torture.classes import COMPLETIONS, INTERRUPT, Tlp, read
from tlplab.torture.classes import Bar as BarOfGuest

EXPERIMENT = "guest-packets.toml"
SENDER, RECEIVER = "sender", "receiver"
# What both boots have is none of the packets'.
FEW, MANY = 1000, 5000
FRAME = 238
# Where Linux puts the NIC's registers, the only device of its machine.
REGISTERS = BarOfGuest(0, range(0xF000_0000, 0xF002_0000), range(0))
# Registers of the 82574: tails of the rings, and the interrupt mask, which the driver sets again after each interrupt.
TRANSMIT_TAIL, RECEIVE_TAIL, MASK = 0x3818, 0x2818, 0xD0
DESCRIPTOR = 16
# Requests that no part counts.
OTHERS = "anything else"


@dataclass(frozen=True)
class Part:
    """Requests that a packet takes for one purpose."""

    machine: str
    name: str
    model: float | None
    """Per packet, in the public model's list of a NIC under a kernel driver; None, if it has no such."""
    note: str
    counts: Callable[[Tlp], bool]


def memory(tlp: Tlp, kind: str) -> int:
    """Bytes of a request of the NIC's for memory; 0 if it is another."""
    of_memory = (tlp.direction, tlp.kind) == ("up", kind) and tlp.where.startswith("memory ")
    return int(tlp.where.split()[1]) if of_memory else 0


def register(tlp: Tlp, kind: str, offset: int | None = None) -> bool:
    """True if it is an access of the driver to a register: to this one, or to any."""
    named = offset is None or tlp.where == f"BAR0+{offset:#x}"
    return (tlp.direction, tlp.kind) == ("down", kind) and named


def is_ring(size: int) -> bool:
    """True if so many bytes are descriptors: a frame's parts are not of these sizes here."""
    return 0 < size <= 512 and size % DESCRIPTOR == 0 and size not in (112, 128, 240)


PARTS = (
    Part(SENDER, "tail pointer, writes", 1, "each packet of its own, without xmit_more", lambda tlp: register(tlp, "MWr", TRANSMIT_TAIL)),
    Part(SENDER, "descriptors, reads", 2 / 40, "the 82574's are fetched as they come, two for a packet (context and data); the model's 82599 fetches 40 at once",
         lambda tlp: is_ring(memory(tlp, "MRd"))),
    Part(SENDER, "packet, reads", 1, "more than one where it crosses a boundary of MRRS, at which requests are cut",
         lambda tlp: (size := memory(tlp, "MRd")) > 0 and not is_ring(size)),
    Part(SENDER, "write-back", 1 / 8, "each descriptor's status of its own (RS in each, no WTHRESH)", lambda tlp: memory(tlp, "MWr") > 0),
    Part(SENDER, "interrupt", 1 / 32, "moderated by time, not by packets", lambda tlp: tlp.where == INTERRUPT),
    Part(SENDER, "head pointer, reads", 1, "the driver looks at the status in memory", lambda tlp: register(tlp, "MRd")),
    Part(SENDER, "interrupt mask, writes", None, "the driver sets it again after each interrupt; the model has none", lambda tlp: register(tlp, "MWr", MASK)),
    Part(RECEIVER, "tail pointer, writes", 1 / 32, "E1000_RX_BUFFER_WRITE is 16", lambda tlp: register(tlp, "MWr", RECEIVE_TAIL)),
    Part(RECEIVER, "descriptors, reads", 1, "as many at once as the tail has given, cut at MRRS", lambda tlp: memory(tlp, "MRd") > 0),
    Part(RECEIVER, "packet, writes", 1, "two where it crosses a boundary of MPS, at which they are cut", lambda tlp: memory(tlp, "MWr") > DESCRIPTOR),
    Part(RECEIVER, "write-back", 1, "one for each packet in both", lambda tlp: memory(tlp, "MWr") == DESCRIPTOR),
    Part(RECEIVER, "interrupt", 1 / 32, "moderated by time, not by packets", lambda tlp: tlp.where == INTERRUPT),
    Part(RECEIVER, "head pointer, reads", 1 / 8, "the driver looks at the status in memory", lambda tlp: register(tlp, "MRd")),
    Part(RECEIVER, "interrupt mask, writes", None, "the driver sets it again after each interrupt; the model has none", lambda tlp: register(tlp, "MWr", MASK)),
    *(Part(machine, OTHERS, None, "each request is one of those above", lambda _: False) for machine in (SENDER, RECEIVER)),
)  # fmt: skip


def requests(place: Path, packets: int) -> Mapping[tuple[str, str], int]:
    """The number of requests of each part in a boot of both machines, in which so many datagrams were sent."""
    experiment = str(place / EXPERIMENT)
    described = outline.read_guests(experiment)
    files = {}
    for machine in described["machines"]:
        guest = machine["outline"]["guest"]
        assert guest is not None
        assert guest["run"] is not None
        files[machine["name"]] = {SCRIPT: f"#!/bin/sh\npackets={packets}\n".encode() + Path(guest["run"]).read_bytes()}
    counts: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory(prefix="tlplab-packets-") as folder:
        capture = str(Path(folder) / "run.pcapng")
        ended, _ = run_together(
            experiment, kernel.find(None), files, described["cables"], show=lambda *_: None, pcap=capture, within=folder
        )
        for name, one in ended.items():
            if one.status != 0:
                raise RunError(f"{name}: {one.end}; {'; '.join(one.last[-3:])}")
            for tlp in read(Path(str(of_machine(capture, name))), {"nic0": 1}, [REGISTERS]):
                if tlp.kind not in COMPLETIONS:
                    counts[
                        name, next((part.name for part in PARTS if part.machine == name and part.counts(tlp)), OTHERS)
                    ] += 1
    return counts


def under_linux(experiments: Path, _options: GuestOptions, /, *, quiet: bool) -> ByGuest:
    """Both boots, and the rows."""
    with Bar(quiet=quiet) as bar:
        bar.show(0, f"{FEW} packets")
        few = requests(experiments, FEW)
        bar.show(0.3, f"{MANY} packets")
        many = requests(experiments, MANY)
    rows = []
    for part in PARTS:
        ours = (many[part.machine, part.name] - few[part.machine, part.name]) / (MANY - FEW)
        same = part.model is not None and abs(ours - part.model) < 0.005
        title = f"{part.machine}: {part.name}"
        rows.append(Row(PAPER, title, part.model, ours, "", "reproduced" if same else "explained", part.note))
    return ByGuest(
        rows, PAGE.format(rows=table(HEADING, [row.cells() for row in rows]), frame=FRAME, few=FEW, many=MANY)
    )


PAGE = """# The packets of e1000e and of the model's NIC

pcie-bench's model has a NIC under a kernel driver: a list of the requests for each packet, from the data sheet of an 82599 and the defaults of its driver. Here
the requests are those of a driver that was not written for a model: unmodified e1000e on the 82574-like NIC (`model = "nic"`), between two Linux machines on a cable
([docs/linux-nic.md](../../docs/linux-nic.md)). iperf3 sends datagrams in frames of {frame} bytes at half a gigabit per second; a capture counts the requests on the link, by the register or memory that each is about. The figures are the
difference of two boots, with {few} and with {many} packets, by packet. This page is written by the command that does it, after `make linux`:
`tlplab reproduce pcie-bench --guest --markdown studies/pcie_bench/guest.md`.

{rows}

*Reproduced* is the same within 0.005. The others are another NIC's and another driver's for the reason in the note: they show the limits of one list of transactions, and are not tuned to it.
"""
