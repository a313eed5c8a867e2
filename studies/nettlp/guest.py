"""Figures 7 to 11, 13 to 15 and Table 2 with a real root complex: cards in a guest of QEMU, whose memory is read (`tlplab reproduce nettlp --guest`)."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from studies.nettlp import library
from studies.nettlp.captures import PASSAGES, PING, TAGS, Source
from studies.nettlp.card import MEDIANS, MRRS, PUBLISHED_SINGLE
from studies.nettlp.machine import LANES, Answer, Clocks, Measured, Surroundings, carry_out, drawings, jobs, rows
from studies.nettlp.rows import absent, compared, ranged, shape
from studies.nettlp.topologies import read_as
from studies.nettlp.wire import CommandError, answer_of, ended, environment
from tlplab.errors import RunError
from tlplab.guest import tools
from tlplab.guest.devices import CardOfGuest, SingleDevices
from tlplab.guest.initramfs import SCRIPT
from tlplab.guest.machine import Machine, boot
from tlplab.nettlp.end import End
from tlplab.nettlp.loopback import own_address
from tlplab.progress import Bar
from tlplab.reproduce import HEADING, ByGuest, GuestOptions, Row
from tlplab.reproduce.markdown import table

# Of the guest's 512 MiB Linux is told of the first 384; the rest is the cards' to read and write.
LINUX, FREE = "mem=384M", "0x18000000"
# So that both fit below 4 GiB, where firmware puts what is not prefetchable.
WINDOW, TABLE = 256 << 20, 1 << 20
PATIENCE = 120.0
# Of a run of the published tlpperf, which tells a rate each second, and whose first is none.
SECONDS = "3"
TLPLAB = (sys.executable, "-m", "tlplab")
# What a guest does: it says when it is ready, and runs until it is told.
END = """touch /share/ready
until [ -e /share/done ]; do sleep 0.2; done
"""
CARDS = f"""#!/bin/sh
for function in 01:00.0 02:00.0; do setpci -s $function COMMAND=6:6; done
awk 'NR == 5 {{ print $1 }}' /sys/bus/pci/devices/0000:02:00.0/resource >/share/bar4
{END}"""
# The NIC leads back what it is given, so two networks that share it talk to each other through it.
PINGS = f"""#!/bin/sh
setpci -s 01:00.0 COMMAND=6:6
(
  until [ -e /share/nic ]; do sleep 0.1; done
  insmod /lib/modules-tlplab/simple_nic.ko rings=0
  echo 3776 8022 >/sys/bus/pci/drivers/simple_nic/new_id
  ip link set eth0 up
  for side in left right; do ip link add link eth0 name $side type macvlan; done
  unshare -n sleep 1000 &
  until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.1; done
  ip link set right netns $!
  nsenter -t $! -n sh -c 'ip addr add 10.0.0.2/24 dev right; ip link set right up'
  ip addr add 10.0.0.1/24 dev left
  ip link set left up
  # The first may find the receiver without a buffer, and of some the buffer crosses a boundary at which TLPs are cut.
  until ping -c 1 -W 1 10.0.0.2; do :; done
  ping -c 8 -i 0.2 10.0.0.2 && touch /share/pinged
) &
{END}"""


@contextmanager
def booted(folder: Path, cards: Sequence[CardOfGuest], script: str) -> Iterator[Callable[[str], None]]:
    """Boots a guest that runs a script until the block is over; a function that waits until it has made a file. Raises `CommandError`, `RunError`."""
    machine = Machine(tools.find(None), {SCRIPT: script.encode()}, append=LINUX, share=str(folder))
    for name in ("ready", "done"):
        (folder / name).unlink(missing_ok=True)
    failures: list[RunError] = []

    def run() -> None:
        try:
            boot(machine, SingleDevices(cards), show=lambda *_: None)
        except RunError as failure:
            failures.append(failure)

    guest = threading.Thread(target=run, name="guest")

    def wait_for(name: str) -> None:
        until = time.monotonic() + PATIENCE
        while not (folder / name).exists():
            if not guest.is_alive() or time.monotonic() > until:
                raise CommandError(f"the guest is not {name}: {failures[0] if failures else 'no word of it'}")
            time.sleep(0.1)

    guest.start()
    try:
        wait_for("ready")
        yield wait_for
    finally:
        (folder / "done").touch()
        guest.join()
    if failures:
        raise failures[0]


@contextmanager
def device(*arguments: str) -> Iterator[None]:
    """Serves a device by a command `tlplab device …` meanwhile. Raises `CommandError`."""
    process = subprocess.Popen(
        [*TLPLAB, "device", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**environment(), "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        # It says where it is once it can be asked.
        if not (process.stdout and process.stdout.readline()):
            raise CommandError(f"tlplab device {arguments[0]} has ended")
        yield
    finally:
        ended(process)


@dataclass
class Cards:
    """Two cards of one adapter in a guest that runs: the software's, and that of the pseudo memory."""

    folder: Path
    adapter: str = field(default_factory=own_address)
    software: str = field(default_factory=own_address)
    memory: str = field(default_factory=own_address)

    @contextmanager
    def with_memory(self, datagrams: str | None = None) -> Iterator[None]:
        """Boots the guest, and serves the pseudo memory. Raises `CommandError`, `RunError`."""
        card = CardOfGuest("nettlp", self.adapter, self.software, WINDOW, TABLE, datagrams)
        with (
            booted(self.folder, [card, replace(card, peer=self.memory)], CARDS),
            device("psmem", "-l", self.memory, "-r", self.adapter),
        ):
            yield

    @property
    def bar4(self) -> str:
        """The address of the pseudo memory in the guest."""
        return (self.folder / "bar4").read_text(encoding="ascii").strip()

    def perf(self, *arguments: str) -> Answer:
        """`tlplab perf` by the software. Raises `CommandError`."""
        words = ("-l", self.software, "-r", self.adapter, "--quiet", "--json", "-", *arguments)
        return answer_of([*TLPLAB, "perf", *words], arguments)


@dataclass(frozen=True)
class Published:
    """The figures of the published tlpperf, in operations per second and microseconds; empty if it was not run."""

    reads: dict[tuple[int, int], float] = field(default_factory=dict)
    """By size and threads."""
    writes: dict[int, float] = field(default_factory=dict)
    medians: dict[int, float] = field(default_factory=dict)


def under_linux(_experiments: Path, options: GuestOptions, /, *, quiet: bool) -> ByGuest:
    """Measures all of it, and a capture of one read."""
    with tempfile.TemporaryDirectory(prefix="tlplab-cards-") as name:
        folder = Path(name)
        captured = captures(folder)
        found, theirs, here = measure(folder, options.library, quiet=quiet)
    listed = [*(in_guest(row) for row in rows(found, here)), *by_library(theirs, found, here), *captured.rows]
    text = TEXT.format(processors=here.processors, others=100 * here.others, failures=100 * here.failures)
    page = PAGE.format(rows=table(HEADING, [row.cells() for row in listed]), text=text)
    return ByGuest(listed, page, [*drawings(found), *captured.drawings])


def measure(folder: Path, checkout: Path | None, *, quiet: bool) -> tuple[Measured, Published, Surroundings]:
    """Figures 7 to 11 and Table 2, and those of the published library. Raises `CommandError`, `RunError`."""
    program = library.build(checkout, folder) if checkout else None
    found, theirs, before, cards = Measured(), Published(), Clocks.now(), Cards(folder)
    with cards.with_memory(), Bar(quiet=quiet) as bar:
        listed = jobs(found, memory=FREE, bar4=cards.bar4)
        operations, failures = carry_out(listed, cards.perf, bar)
        if program:
            bar.show(1.0, "the published library")
            theirs = measure_library(program, cards)
    processors = os.cpu_count() or 1
    # Here the guest is one of those that worked.
    return (
        found,
        theirs,
        Surroundings(processors, Clocks.now().others_since(before) / processors, failures / max(operations, 1)),
    )


def measure_library(program: Path, cards: Cards) -> Published:
    """The published tlpperf reads and writes the guest's memory as `tlplab perf` did. Raises `CommandError`."""

    def run(direction: str, size: int, *arguments: str) -> library.Said:
        # The software's card is on bus 1.
        told = library.arguments(cards.software, cards.adapter, "01:00", direction, (FREE, 1 << 20), size)
        return library.run([program, *told, *arguments])

    return Published(
        reads={(size, n): run("read", size, "-N", f"{n}", "-t", SECONDS).rate for size in (256, MRRS) for n in LANES},
        writes={size: run("write", size, "-N", "1", "-t", SECONDS).rate for size in (256, MRRS)},
        medians={
            size: statistics.median(run("read", size, "-N", "1", "-P", "fix", "-M", "-t", SECONDS).latencies)
            for size in (1, 256)
        },
    )


def by_library(theirs: Published, ours: Measured, here: Surroundings) -> list[Row]:
    """The published library's rows, and its rate compared with tlplab's; none if it was not measured."""
    if not theirs.reads:
        return [
            absent("guest, published tlpperf", None, "", "no --library, a checkout of the published library, was given")
        ]
    name, single = "guest, published tlpperf", theirs.reads[256, 1]
    most = max(rate for (size, _), rate in theirs.reads.items() if size == MRRS) * 8 * MRRS / 1e9
    ratio = ours.reads[256, 1]["operations_per_second"] / single
    listed = [
        compared(f"{name}, figure 7, 256 B, 1 thread", PUBLISHED_SINGLE, single / 1e3, "k/s", 0.2, excuse=here.other),
        compared(f"{name}, figure 7, 512 B, most", 3.59, most, "Gb/s", 0.2, excuse=here.other),
        *(
            ranged(f"{name}, figure 9, {size} B: median", MEDIANS, us, "us", "its clock counts whole us", here.other)
            for size, us in theirs.medians.items()
        ),
        shape(f"{name}, figure 10: 512 B to 256 B, 1 thread", 2 * theirs.writes[MRRS] / theirs.writes[256], "times",
              0.8 < 2 * theirs.writes[MRRS] / theirs.writes[256] < 1.5, "writes are cut at the largest payload"),
        shape("guest, tlplab perf to published tlpperf, 256 B, 1 thread", ratio, "times", ratio >= 1,
              "both read the same memory through the same adapter, one after the other", here.other),
    ]  # fmt: skip
    return [here.claimed(row) for row in listed]


def captures(folder: Path) -> Source:
    """Figures 13 to 15 from the datagrams of live guests. Raises `CommandError`, `RunError`."""
    cards = Cards(folder)
    for what, name, _, size in PASSAGES:
        if what == "switch":
            with cards.with_memory(str(folder / f"{name}.pcapng")):
                cards.perf("-a", cards.bar4, "-s", "4KiB", "-L", f"{size}B", "-c", "1")
    for name, (first, last) in TAGS.items():
        with cards.with_memory(str(folder / f"{name}-tags.pcapng")):
            read_as(name, End(cards.software, cards.adapter, first_tag=first, last_tag=last), int(cards.bar4, 16))
    ping(folder)
    source = Source(folder, "guest", "these were given to it")
    for what, name, behind, size in PASSAGES:
        if what == "switch":
            source.passage(what, name, behind, size)
        else:
            why = "QEMU carries no TLP from a function of another process to another: this path is a switch"
            source.rows.append(absent(f"guest, figure 13, {what}", behind, "", why))
    for name, (least, most) in TAGS.items():
        source.tags(name, least, most)
    source.ping()
    return source


def ping(folder: Path) -> None:
    """A capture of packets of 98 B through the simple NIC, by the published protocol. Raises `CommandError`, `RunError`."""
    adapter, nic = own_address(), own_address()
    card = CardOfGuest("nettlp", adapter, nic, WINDOW, TABLE, str(folder / f"{PING}.pcapng"))
    with booted(folder, [card], PINGS) as wait_for, device("nic", "-l", nic, "-r", adapter):
        (folder / "nic").touch()
        wait_for("pinged")


def in_guest(row: Row) -> Row:
    """A row of the other measurement, as this one's."""
    return replace(row, result=row.result.replace("measured", "guest"))


TEXT = (
    "Two cards of one adapter in a guest of QEMU (`tlplab guest qemu nettlp,table=1MiB nettlp,table=1MiB,peer=…`): the software reads and writes memory of the guest that "
    "Linux does not know, and, for figures 11, 13 and 14 and table 2, the pseudo memory behind the other card, by the address that the guest has given to it; between the "
    "cards the adapter is a switch. Figure 15: Linux pings through a card behind which is the simple NIC with a loop-back plug, by the driver of `driver/simple_nic`. All of it is on {processors} processors, with the guest, which waits. Meanwhile other work took {others:.0f} % of the processors, "
    "and {failures:.2f} % of the operations failed. With `--library FOLDER`, a checkout of the published library, its `tlpperf` reads and writes the same memory through the same adapter. These figures are of the machine and the moment."
)
PAGE = """# NetTLP with a guest's root complex

As written by `tlplab reproduce nettlp --guest --markdown FILE`, after `make guest-tools`.

{rows}

{text}

Only hardware could give more: a link of PCI Express, and the cuts of a root complex in TLPs that pass from port to port.
"""
