"""The topologies of figure 12, with tlplab's own adapter and devices on the loopback interface: captures as the published ones, made here.

Figure 12a: a device reads 512 B of another, the pseudo memory, and between them is a switch or a root complex. Figure 12b: devices that use tags in
different ways read the pseudo memory by way of a switch. With them the simple NIC of section 6.2, with a driver on a simulated host, gets back the frames that
it sends.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from studies.nettlp.captures import PASSAGES, PING, TAGS, Source
from studies.nettlp.rows import absent
from tlplab import _core
from tlplab.errors import ExperimentError, RunError
from tlplab.nettlp.end import End
from tlplab.nettlp.loopback import own_address
from tlplab.nettlp.serve import Builtin, Site
from tlplab.reproduce import Beside

EXPERIMENT = "simple-nic.toml"
MEMORY = 1 << 20
READER, SOFTWARE = 0x1B00, 0x1C00
# A machine that stands still for seconds, as shared ones do, must not make reads fail.
TIMEOUT_NS = 20_000_000_000
# Seconds: between two looks at whether an adapter shall end; what the NIC may take.
SLICE, LONGEST = 0.05, 60.0
PACKET = "98B"
TEXT = (
    "tlplab adapter and devices in one process, on the loopback interface. Figure 12a: a device reads another's pseudo memory through an adapter that "
    "is a switch, or a root complex. Figure 12b: devices read the pseudo memory through the switch. They were given the tags of the devices in the paper; the "
    "result is that switch and pseudo memory leave them unchanged. The upper axes are before the adapter, the lower ones behind it. Figure 15: the simple NIC with its driver on a simulated host, and a "
    "plug that leads its frames back to it."
)


@dataclass(frozen=True)
class Reads:
    """The reads of a device, all of them at once."""

    count: int
    bytes: int

    def places(self, base: int) -> list[tuple[int, int]]:
        """Addresses and lengths, every 2 KiB."""
        return [(base + 2048 * number, self.bytes) for number in range(self.count)]


# 32 packets of 1500 B for the Ethernet controller, and blocks for the SSDs; so many that every tag is used.
DEVICES = {"x520": Reads(32, 1500), "p4600": Reads(64, 512), "pm1725": Reads(128, 512), "xl710": Reads(128, 1500)}


def beside(experiments: Path) -> Beside:
    """Makes the captures, and their rows and drawings."""
    title = "Captured here, of tlplab's own devices"
    with tempfile.TemporaryDirectory(prefix="tlplab-") as folder:
        try:
            make(Path(folder), experiments)
        except (ExperimentError, RunError, OSError) as why:
            return Beside(title, [absent("ours, figures 13 to 15", None, "", str(why))], [], f"Left out: {why}.")
        source = Source(Path(folder), "ours", "these were given to it")
        source.figures()
    return Beside(title, source.rows, source.drawings, TEXT)


def make(folder: Path, experiments: Path) -> None:
    """Makes all captures. Raises ExperimentError, RunError, OSError."""
    for what, name, _, _ in PASSAGES:
        with pseudo_memory(folder / f"{name}.pcapng", root_complex=what == "root complex") as (end, base):
            _core.Dma(end((0, 0))).read(base, 512)
    for device, tags in TAGS.items():
        with pseudo_memory(folder / f"{device}-tags.pcapng") as (end, base):
            read_as(device, end(tags), base)
    nic(folder / f"{PING}.pcapng", experiments / EXPERIMENT)


def read_as(device: str, end: End, base: int) -> None:
    """Makes at once the reads of a device of figure 12b, of the pseudo memory at `base`. Raises RunError."""
    answers = _core.Dma(end).read_many(DEVICES[device].places(base))
    if failed := [answer for answer in answers if isinstance(answer, str)]:
        raise RunError(f"{device}: {len(failed)} of {len(answers)} reads failed, the first: {failed[0]}")


@contextmanager
def pseudo_memory(
    capture: Path, *, root_complex: bool = False
) -> Iterator[tuple[Callable[[tuple[int, int]], End], int]]:
    """A device of pseudo memory behind an adapter; makes the end of another device, given its tags, and returns the memory's address."""
    adapter, software, reader = (own_address() for _ in range(3))
    peers = [(int(IPv4Address(reader)), READER), (int(IPv4Address(software)), SOFTWARE)]
    service = _core.AdapterService(
        int(IPv4Address(adapter)),
        peers,
        memory=MEMORY,
        root_complex=root_complex,
        timeout_ns=TIMEOUT_NS,
        pcap=str(capture),
    )
    with served(service.serve, service.finish):
        server = _core.Server.builtin(Site(End(local=software, adapter=adapter)), Builtin("psmem", bytes=MEMORY))
        try:
            ((_, base, _),) = server.bars

            def end(tags: tuple[int, int]) -> End:
                first, last = tags
                return End(reader, adapter, READER, first_tag=first, last_tag=last, timeout_ns=TIMEOUT_NS)

            yield end, base
        finally:
            server.end()


@contextmanager
def served(serve: Callable[[float], object], finish: Callable[[], object]) -> Iterator[threading.Event]:
    """An adapter that serves in a thread of its own meanwhile; the event is set when it has ended on its own."""
    stop, over = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            while not stop.is_set() and serve(SLICE) is None:
                pass
        except BaseException as error:
            failures.append(error)
        over.set()

    thread = threading.Thread(target=work, name="adapter", daemon=True)
    thread.start()
    try:
        yield over
    finally:
        stop.set()
        thread.join()
        finish()
    if failures:
        raise failures[0]


def nic(capture: Path, experiment: Path) -> None:
    """The simple NIC by the published protocol: two packets, which come back."""
    adapter, device = own_address(), own_address()
    wanted = ["device.nic.entries=1", "device.nic.requests=2", f'device.nic.transfer="{PACKET}"']
    service = _core.LiveService(
        str(experiment),
        [("nic", int(IPv4Address(device)))],
        int(IPv4Address(adapter)),
        overrides=wanted,
        pcap=str(capture),
    )
    with served(service.serve, lambda: service.finish(None)) as over:
        server = _core.Server.builtin(
            Site(End(local=device, adapter=adapter, last_tag=255, timeout_ns=TIMEOUT_NS)), Builtin("nic")
        )
        try:
            if not over.wait(LONGEST):
                raise RunError(f"the simple NIC has not sent two packets in {LONGEST:g} s")
        finally:
            server.end()
