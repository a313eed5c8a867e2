"""The devices of an experiment in a virtual machine: a client as QEMU's, and the fabric between it and the devices."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from vfio_client import (
    BAR0,
    CONFIG,
    DMA_MAP,
    ERRORS,
    MEMORY,
    REGION_READ,
    REGION_WRITE,
    SECONDS,
    SET_IRQS,
    Client,
    signalled,
)

from tlplab import _core
from tlplab.errors import RunError
from tlplab.torture.classes import frames

ROOT = Path(__file__).parents[2]
SWITCHED = f"""title = "A copier behind a switch"
[host]
latency = "150ns"
[switch.sw0]
under = "host.rp0"
link  = "gen3 x4"
[device.copier]
under = "sw0"
link  = "gen3 x1"
model = "{ROOT}/examples/python/copier.py:Copier"
[device.drive]
under = "sw0"
link  = "gen3 x4"
model = "nvme"
"""
CORE = """title = "A copier behind the C interface of RTL"
[device.card]
under = "host.rp0"
link = "gen1 x8"
model = "rtl:copier.so"
pcie_clock = "125MHz"
"""
INITIATE = 0x8000


class Fabric:
    """A fabric that is served, and its fate."""

    def __init__(self, server: _core.FabricServer, folder: Path) -> None:
        self.server = server
        self.copier, self.drive = folder / "1.sock", folder / "2.sock"
        self.result: dict[str, Any] = {}

    def counters(self, device: int) -> dict[str, int]:
        return dict(self.server.counters()[device][1])

    def flow(self, name: str) -> dict[str, Any]:
        return next(flow for flow in self.result["flows"] if flow["name"] == name)


@contextmanager
def served(folder: Path, text: str = SWITCHED, **options: Any) -> Iterator[Fabric]:
    """An experiment's devices on sockets, by a thread."""
    (folder / "fabric.toml").write_text(text)
    fabric = Fabric(_core.FabricServer(str(folder / "fabric.toml"), str(folder), **options), folder)
    over = threading.Event()

    def go_on() -> None:
        while not over.is_set():
            fabric.server.run(0.05)

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield fabric
    finally:
        over.set()
        thread.join()
    fabric.result = json.loads(fabric.server.finish("guest-off"))


def capability(client: Client, wanted: int) -> int:
    at = client.read(CONFIG, 0x34, 1)
    while client.read(CONFIG, at, 1) != wanted:
        at = client.read(CONFIG, at + 1, 1)
    return at


def test_accesses_of_guest_and_device_travel_through_the_fabric(tmp_path: Path) -> None:
    data = os.urandom(5000)
    with served(tmp_path, pcap=str(tmp_path / "links.pcapng")) as fabric, Client(fabric.copier) as client:
        assert client.read(CONFIG, 0, 4) == 0x0001_71AB
        # As after power-on: nothing is enabled.
        assert client.read(CONFIG, 4, 2) == 0
        client.map(shared=True)
        event = client.enable()
        os.pwrite(client.file, data, 0x1003)
        client.copy(0x1003, 0x80001, len(data))
        assert signalled(event) == 1
        # The interrupt has not passed the data.
        assert os.pread(client.file, len(data), 0x80001) == data
        assert client.read(BAR0, 0x14, 4) == 1
        counters = fabric.counters(0)
        os.close(event)
    assert (counters["bytes_read"], counters["bytes_written"]) == (len(data), len(data))
    assert (counters["interrupts"], counters["refused_transfers"]) == (1, 0)
    # Each access of a register crosses both links and the root complex twice.
    assert fabric.flow("guest.read")["latency_ns"]["min"] > 300
    passed: Counter[tuple[str, str, str]] = Counter()
    for frame in frames(tmp_path / "links.pcapng"):
        assert "problem" not in frame, frame
        if tlp := frame.get("tlp"):
            passed[frame["from"], frame["to"], tlp["kind"]] += len(frame.get("data", "")) // 2
    # Behind the switch and before it, in whole doublewords, with the one of the interrupt.
    assert passed["copier", "sw0", "MWr"] == passed["sw0", "host.rp0", "MWr"] == 5004 + 4
    assert passed["sw0", "copier", "CplD"] >= len(data)


def test_an_access_is_answered_no_sooner_than_the_fabric_answers(tmp_path: Path) -> None:
    slow = SWITCHED.replace("[switch.sw0]\n", '[switch.sw0]\nlatency = "2ms"\n')
    with served(tmp_path, slow) as fabric, Client(fabric.copier) as client:
        client.write(CONFIG, 4, 0b110, 2)
        for _ in range(5):
            begun = time.monotonic()
            assert client.read(BAR0, 0x14, 4) == 0
            assert time.monotonic() - begun >= 0.004
    latency = fabric.flow("guest.read")["latency_ns"]
    # The first may wait behind the writes by which firmware configures the functions.
    assert 4e6 < latency["min"] <= latency["p50"] < 4.1e6


def test_posted_accesses_of_a_guest_stay_in_order(tmp_path: Path) -> None:
    with served(tmp_path) as fabric, Client(fabric.copier) as client:
        for value in range(1, 20):
            # Registers do not decode until the first of these has arrived.
            for region, offset, data in (
                (CONFIG, 4, b"\0\0"),
                (CONFIG, 4, b"\x06\0"),
                (BAR0, 0, value.to_bytes(8, "little")),
            ):
                client.send(REGION_WRITE, struct.pack("<QII", offset, region, len(data)) + data, flags=0x10)
            assert client.read(BAR0, 0, 8) == value


def test_a_clocked_core_copies_for_a_guest(tmp_path: Path) -> None:
    """A stand-in in C for a verilated module."""
    source, library = ROOT / "crates/cosim/tests/cosim/rtl/copier.c", tmp_path / "copier.so"
    options = ["-O1", "-std=gnu11", "-shared", "-fPIC", "-I", str(ROOT / "rtl/include")]
    subprocess.run([os.environ.get("CC", "cc"), *options, "-o", str(library), str(source)], check=True, timeout=60)
    data = os.urandom(3000)
    with served(tmp_path, CORE) as fabric, Client(fabric.copier) as client:
        client.map(shared=True)
        event = client.enable()
        for attempt in range(1, 4):
            os.pwrite(client.file, data, 0x1000)
            client.copy(0x1000, 0x8000 * attempt, len(data))
            assert signalled(event) == 1
            assert os.pread(client.file, len(data), 0x8000 * attempt) == data
            assert client.read(BAR0, 0x14, 4) == attempt
            # It has no edge to work at while it is idle.
            time.sleep(0.2)
        os.close(event)
    lag = fabric.server.lag()
    assert lag[0] < 1e9, "it keeps up with the clock"


def test_addresses_are_the_fabrics_and_payload_sizes_of_the_guest_reach_no_link(tmp_path: Path) -> None:
    with served(tmp_path) as fabric, Client(fabric.drive) as client:
        before = client.read(CONFIG, 0x10, 4)
        client.write(CONFIG, 0x10, 0xDEAD_0000, 4)
        assert client.read(CONFIG, 0x10, 4) == before != 0xDEAD_0000
        control = capability(client, 0x10) + 8
        # The sizes of the link are not those that a guest below ports of QEMU believes in.
        client.write(CONFIG, control, 0x2000 | 3 << 5, 2)
        assert client.read(CONFIG, control, 2) == 0x2000 | 3 << 5
        client.write(CONFIG, control, 0, 2)
        # Max_Read_Request_Size is not below the Max_Payload_Size of the link, 256 bytes.
        assert client.read(CONFIG, control, 2) == 0x1000
        # A read of everything at once, as QEMU's at its start, is what its parts are.
        whole = client.call(REGION_READ, struct.pack("<QII", 0, CONFIG, 4096))[16:]
        assert len(whole) == 4096
        assert int.from_bytes(whole[control : control + 2], "little") == 0x1000


def test_after_a_reset_the_function_is_as_after_power_on_and_works_again(tmp_path: Path) -> None:
    with served(tmp_path) as fabric, Client(fabric.copier) as client:
        client.map(shared=True)
        for attempt in range(3):
            event = client.enable()
            client.copy(0x1000, 0x2000, 64)
            assert signalled(event) == 1
            assert client.read(BAR0, 0x14, 4) == 1
            os.close(event)
            if attempt == 0:
                control = capability(client, 0x10) + 8
                client.write(CONFIG, control, INITIATE, 2)
            else:
                client.call(13, b"")
            assert client.read(CONFIG, 4, 2) == 0


@pytest.mark.parametrize(("fault", "told"), [("down", 1), ("reset", 0)])
def test_a_link_that_is_lost_is_an_error_of_the_function(tmp_path: Path, fault: str, told: int) -> None:
    """A port that finds its link down reports a fatal error; a port that holds it in reset has nothing to report."""
    error = os.eventfd(0, os.EFD_NONBLOCK)
    text = f'{SWITCHED}\n[[fault]]\nlink = "drive"\n{fault} = "500ms"\nuntil = "600ms"\n'
    with served(tmp_path, text) as fabric, Client(fabric.copier) as client, Client(fabric.drive) as drive:
        for one in (client, drive):
            one.call(SET_IRQS, struct.pack("<IIIII", 20, 4 | 32, ERRORS, 0, 1), [error])
        assert client.read(CONFIG, 0, 4) == 0x0001_71AB
        until = time.monotonic() + SECONDS
        while drive.read(CONFIG, 0, 4) != 0xFFFF_FFFF:
            assert time.monotonic() < until, "the link is up still"
        if told:
            assert signalled(error) == 1
        assert [fabric.counters(device)["fatal_errors"] for device in (0, 1)] == [0, told]
    os.close(error)


def test_memory_that_is_not_mapped_for_a_function_is_refused(tmp_path: Path) -> None:
    with served(tmp_path) as fabric, Client(fabric.copier) as client, Client(fabric.drive) as other:
        # What one function sees, the other does not.
        other.map(shared=True)
        client.call(DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, 0, 0x2000), [client.file])
        event = client.enable()
        client.copy(0x1000, 0x1800, 64)
        assert signalled(event) == 1
        client.copy(0x1000, 0x4000, 64)
        assert signalled(event) == 1
        assert os.pread(client.file, 64, 0x4000) == bytes(64)
        assert fabric.counters(0)["refused_transfers"] == 1
        assert fabric.counters(1)["refused_transfers"] == 0
        os.close(event)
    assert fabric.result["errors"], "the root complex has refused a write"


def test_memory_where_the_fabric_has_devices_is_refused(tmp_path: Path) -> None:
    with served(tmp_path) as fabric, Client(fabric.copier) as client:
        base = client.read(CONFIG, 0x10, 4) & ~0xF
        client.send(DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, base, 0x1000), [client.file])
        assert client.receive()[2] != 0
        client.send(DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, base + MEMORY * 16, 0x1000), [client.file])
        assert client.receive()[2] == 0


def test_a_client_that_goes_leaves_the_function_for_the_next(tmp_path: Path) -> None:
    with served(tmp_path) as fabric:
        for _ in range(3):
            with Client(fabric.copier) as client:
                assert client.read(CONFIG, 4, 2) == 0
                client.map(shared=True)
                event = client.enable()
                client.copy(0x1000, 0x2000, 64)
                assert signalled(event) == 1
                os.close(event)
        until = time.monotonic() + 10
        while fabric.counters(0)["clients"] < 3:
            assert time.monotonic() < until
        assert fabric.counters(0)["refused_clients"] == 0


def test_a_device_that_raises_ends_the_run_with_its_words(tmp_path: Path) -> None:
    bad = SWITCHED.replace(f"{ROOT}/examples/python/copier.py:Copier", f"{ROOT}/python/tests/qemu/bold.py:Bad")
    (tmp_path / "fabric.toml").write_text(bad)
    server = _core.FabricServer(str(tmp_path / "fabric.toml"), str(tmp_path))

    def ring() -> None:
        with Client(tmp_path / "1.sock") as client:
            client.write(CONFIG, 4, 0b110, 2)
            client.write(BAR0, 0x10, 1, 4)
            time.sleep(1)

    thread = threading.Thread(target=ring)
    thread.start()
    with pytest.raises(RunError, match="this device is broken"):
        server.run(20)
    thread.join()
    # What there is until then is told.
    assert json.loads(server.finish("guest-off"))["flows"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"overrides": ['fidelity="length-only"']}, "needs fidelity"),
        ({"cables": [("copier", "drive")]}, 'there is no NIC "copier"'),
        ({"overrides": ["switch.sw0.linc=1"]}, "linc"),
    ],
)
def test_unservable_fabrics_are_refused(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    (tmp_path / "fabric.toml").write_text(SWITCHED)
    with pytest.raises(Exception, match=says):
        _core.FabricServer(str(tmp_path / "fabric.toml"), str(tmp_path), **changes)
    assert [path.name for path in tmp_path.iterdir()] == ["fabric.toml"]
