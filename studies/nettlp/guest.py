"""Figures 7 to 11, 13 and Table 2 with a real root complex: two cards in a guest of QEMU, whose memory is what is read (`tlplab reproduce nettlp --guest`)."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from studies.nettlp.captures import PASSAGES, Source
from studies.nettlp.machine import Answer, Clocks, Measured, Surroundings, carry_out, drawings, jobs, rows
from studies.nettlp.rows import absent
from studies.nettlp.wire import CommandError, answer_of, ended, environment
from tlplab.errors import RunError
from tlplab.guest import tools
from tlplab.guest.devices import CardOfGuest, SingleDevices
from tlplab.guest.initramfs import SCRIPT
from tlplab.guest.machine import Machine, boot
from tlplab.nettlp.loopback import own_address
from tlplab.progress import Bar
from tlplab.reproduce import HEADING, ByGuest, Row
from tlplab.reproduce.markdown import table

# Of the guest's 512 MiB Linux is told of the first 384; the rest is the cards' to read and write.
LINUX, FREE = "mem=384M", "0x18000000"
# So that both fit below 4 GiB, where firmware puts what is not prefetchable.
WINDOW, TABLE = 256 << 20, 1 << 20
PATIENCE = 120.0
GUEST = """#!/bin/sh
for function in 01:00.0 02:00.0; do setpci -s $function COMMAND=6:6; done
awk 'NR == 5 { print $1 }' /sys/bus/pci/devices/0000:02:00.0/resource >/share/bar4
touch /share/ready
until [ -e /share/done ]; do sleep 0.5; done
"""


@dataclass
class Cards:
    """Two cards of one adapter in a guest that runs: the software's, and that of the pseudo memory."""

    folder: Path
    adapter: str = field(default_factory=own_address)
    software: str = field(default_factory=own_address)
    memory: str = field(default_factory=own_address)
    failure: RunError | None = None

    @contextmanager
    def booted(self, datagrams: str | None = None) -> Iterator[None]:
        """Boots the guest, and starts the pseudo memory. Raises `CommandError`, `RunError`."""
        card = CardOfGuest("nettlp", self.adapter, self.software, WINDOW, TABLE, datagrams)
        devices = SingleDevices([card, replace(card, peer=self.memory)])
        machine = Machine(tools.find(None), {SCRIPT: GUEST.encode()}, append=LINUX, share=str(self.folder))
        for name in ("ready", "done"):
            (self.folder / name).unlink(missing_ok=True)

        def run() -> None:
            try:
                boot(machine, devices, show=lambda *_: None)
            except RunError as failure:
                self.failure = failure

        thread = threading.Thread(target=run, name="guest")
        thread.start()
        device = None
        try:
            self.wait_for(thread)
            device = subprocess.Popen(
                self.command("device", "psmem", "-l", self.memory), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env={**environment(), "PYTHONUNBUFFERED": "1"},
            )  # fmt: skip
            # It says where it is once it can be asked.
            if not (device.stdout and device.stdout.readline()):
                raise CommandError("tlplab device psmem has ended")
            yield
        finally:
            if device is not None:
                ended(device)
            (self.folder / "done").touch()
            thread.join()
        if self.failure is not None:
            raise self.failure

    @property
    def bar4(self) -> str:
        """Where the guest has put the pseudo memory."""
        return (self.folder / "bar4").read_text(encoding="ascii").strip()

    def wait_for(self, guest: threading.Thread) -> None:
        """Until the guest has switched the cards on. Raises `CommandError`."""
        until = time.monotonic() + PATIENCE
        while not (self.folder / "ready").exists():
            if not guest.is_alive() or time.monotonic() > until:
                raise CommandError(f"the guest has not switched its cards on: {self.failure or 'no word of it'}")
            time.sleep(0.1)

    def command(self, *arguments: str) -> list[str]:
        """A command line of tlplab for this adapter."""
        return [sys.executable, "-m", "tlplab", *arguments, "-r", self.adapter]

    def perf(self, *arguments: str) -> Answer:
        """`tlplab perf` by the software. Raises `CommandError`."""
        return answer_of(self.command("perf", "-l", self.software, "--quiet", "--json", "-", *arguments), arguments)


def under_linux(_experiments: Path, _block: int | None, /, *, quiet: bool) -> ByGuest:
    """Measures all of it, and a capture of one read."""
    with tempfile.TemporaryDirectory(prefix="tlplab-cards-") as name:
        folder = Path(name)
        passage = capture_passage(folder)
        found, here = measure(folder, quiet=quiet)
    listed = [*(in_guest(row) for row in rows(found, here)), *passage.rows]
    text = TEXT.format(processors=here.processors, others=100 * here.others, failures=100 * here.failures)
    page = PAGE.format(rows=table(HEADING, [row.cells() for row in listed]), text=text)
    return ByGuest(listed, page, [*drawings(found), *passage.drawings])


def measure(folder: Path, *, quiet: bool) -> tuple[Measured, Surroundings]:
    """Figures 7 to 11 and Table 2. Raises `CommandError`, `RunError`."""
    found, before, cards = Measured(), Clocks.now(), Cards(folder)
    with cards.booted(), Bar(quiet=quiet) as bar:
        listed = jobs(found, memory=FREE, bar4=cards.bar4)
        operations, failures = carry_out(listed, cards.perf, bar)
    processors = os.cpu_count() or 1
    # Here the guest is one of those that worked.
    return found, Surroundings(
        processors, Clocks.now().others_since(before) / processors, failures / max(operations, 1)
    )


def capture_passage(folder: Path) -> Source:
    """Figure 13 from the datagrams of a live guest: a read of 512 B before and behind the switch."""
    source = Source(folder, "guest")
    for what, name, behind, size in PASSAGES:
        if what != "switch":
            why = "QEMU leads no TLP from a function of another process to another: what is here is a switch"
            source.rows.append(absent(f"guest, figure 13, {what}", behind, "", why))
            continue
        cards = Cards(folder)
        with cards.booted(str(folder / f"{name}.pcapng")):
            cards.perf("-a", cards.bar4, "-s", "4KiB", "-L", f"{size}B", "-c", "1")
        source.passage(what, name, behind, size)
    return source


def in_guest(row: Row) -> Row:
    """A row of the other measurement, as this one's."""
    return replace(row, result=row.result.replace("measured", "guest"))


TEXT = (
    "Two cards of one adapter in a guest of QEMU (`tlplab guest qemu nettlp,table=1MiB nettlp,table=1MiB,peer=…`): the software reads and writes memory of the guest that "
    "Linux was not told of, and, for figures 11 and 13 and table 2, the pseudo memory behind the other card, by the address that the guest has given to it; between the "
    "cards the adapter is a switch. All of it is on {processors} processors, with the guest, which waits. Meanwhile other work took {others:.0f} % of the processors, "
    "and {failures:.2f} % of the operations failed. These figures are of the machine and the moment."
)
PAGE = """# NetTLP with a guest's root complex

As written by `tlplab reproduce nettlp --guest --markdown FILE`, after `make guest-tools`.

{rows}

{text}

Only hardware could give more: a link of PCI Express, and how a root complex cuts what passes from port to port.
"""
