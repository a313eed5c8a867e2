"""Devices in a virtual machine: a client as QEMU's, with memory in a file and eventfds, and the device in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from vfio_client import (
    BAR0,
    CONFIG,
    DMA_MAP,
    DMA_READ,
    DMA_WRITE,
    GET_INFO,
    HEADER,
    MEMORY,
    REGION_WRITE,
    SECONDS,
    VERSION,
    Client,
    signalled,
)

import tlplab as tl
from tlplab.cli import status
from tlplab.loader import carry, find

ROOT = Path(__file__).parents[2]
COPIER = f"{ROOT}/examples/python/copier.py:Copier"


@pytest.fixture
def device(tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """The copier on a socket."""
    path = tmp_path / "copier.sock"
    command = [sys.executable, "-m", "tlplab", "device", COPIER, "--vfio-user", str(path), "--json", "-"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            appears(path, process)
            yield path, process
        finally:
            process.kill()


def appears(path: Path, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + SECONDS
    while not path.exists():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_device_copies_shared_memory_and_interrupts(device: tuple[Path, subprocess.Popen[str]]) -> None:
    path, process = device
    data = os.urandom(100_000)
    with Client(path) as client:
        assert client.read(CONFIG, 0, 4) == 0x0001_71AB
        client.map(shared=True)
        event = client.enable()
        os.pwrite(client.file, data, 0x1003)
        client.copy(0x1003, 0x80001, len(data))
        assert signalled(event) == 1
        assert os.pread(client.file, len(data), 0x80001) == data
        assert client.read(BAR0, 0x14, 4) == 1
        os.close(event)
    process.send_signal(signal.SIGINT)
    counters = json.loads(process.communicate(timeout=SECONDS)[0])["counters"]
    assert process.returncode == 130
    assert not path.exists()
    assert (counters["bytes_read"], counters["bytes_written"]) == (len(data), len(data))
    assert (counters["interrupts"], counters["bytes_by_messages"], counters["clients"]) == (1, 0, 1)


def test_an_interrupt_does_not_pass_data_that_go_by_messages(device: tuple[Path, subprocess.Popen[str]]) -> None:
    path, _ = device
    data = os.urandom(3000)
    with Client(path) as client:
        client.map(shared=False)
        event = client.enable()
        client.copy(0x1000, 0x9000, len(data))
        number, command, _, asked = client.receive()
        assert (command, struct.unpack("<QQ", asked)) == (DMA_READ, (0x1000, len(data)))
        reply = HEADER.pack(number, command, HEADER.size + 16 + len(data), 1, 0) + asked + data
        client.socket.sendall(reply)
        number, command, _, written = client.receive()
        assert (command, written[16:]) == (DMA_WRITE, data)
        time.sleep(0.1)
        with pytest.raises(BlockingIOError):
            os.eventfd_read(event)
        client.socket.sendall(HEADER.pack(number, command, HEADER.size + 16, 1, 0) + written[:16])
        assert signalled(event) == 1
        os.close(event)


def test_descriptors_stay_with_their_message(device: tuple[Path, subprocess.Popen[str]]) -> None:
    path, process = device
    with Client(path) as client:
        event = client.enable()
        # What QEMU sends behind a posted write is read together with it.
        process.send_signal(signal.SIGSTOP)
        client.send(REGION_WRITE, struct.pack("<QIIQ", 0, BAR0, 8, 0x1003), flags=0x10)
        client.send(DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, 0, MEMORY), [client.file])
        client.send(REGION_WRITE, struct.pack("<QIIQ", 8, BAR0, 8, 0x80001), flags=0x10)
        process.send_signal(signal.SIGCONT)
        assert client.receive()[1:3] == (DMA_MAP, 0)
        os.pwrite(client.file, b"shared", 0x1003)
        client.copy(0x1003, 0x80001, 6)
        # By messages it would ask, and there would be no interrupt.
        assert signalled(event) == 1
        assert os.pread(client.file, 6, 0x80001) == b"shared"
        os.close(event)


CONNECTS = """
import socket, sys

number = 0
while True:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(f"{sys.argv[1]}/{number}")
        except FileNotFoundError:
            continue
        except OSError as error:
            print(error, flush=True)
        else:
            print("met", flush=True)
        number += 1
"""


def test_a_socket_that_is_there_is_listened_at(tmp_path: Path) -> None:
    """A client that waits for the path may connect at once: each of 1000 first attempts that find it is accepted."""
    copier = find(*COPIER.rsplit(":", 1))
    command = [sys.executable, "-c", CONNECTS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            for number in range(1000):
                # It stays until the client has been there: one that meets a server on its way out may be refused.
                server = tl.VfioUser(tmp_path / str(number)).start(carry(copier()))
                assert process.stdout.readline() == "met\n"
                del server
        finally:
            process.kill()
    assert list(tmp_path.iterdir()) == []


def test_one_client_at_a_time_and_another_after_it(device: tuple[Path, subprocess.Popen[str]]) -> None:
    path, _ = device
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with Client(path) as first:
        with Client(path, agree=False) as second, pytest.raises((EOFError, BrokenPipeError, ConnectionResetError)):
            second.call(VERSION, struct.pack("<HH", 0, 0) + b"{}\0")
        first.write(CONFIG, 4, 0b110, 2)
        assert first.read(CONFIG, 4, 2) == 0b110
    for _ in range(3):
        with Client(path) as later:
            assert later.read(CONFIG, 4, 2) == 0


def test_a_client_that_makes_no_sense_is_cut_off(device: tuple[Path, subprocess.Popen[str]]) -> None:
    path, _ = device
    for message in (
        HEADER.pack(1, VERSION, 8, 0, 0),
        HEADER.pack(1, VERSION, 1 << 30, 0, 0),
        HEADER.pack(1, GET_INFO, 16, 0, 0),
    ):
        with Client(path, agree=False) as client:
            client.socket.sendall(message)
            with pytest.raises((EOFError, ConnectionResetError)):
                client.receive()
    # Byte for byte, and two at once.
    with Client(path) as client:
        for byte in HEADER.pack(9, GET_INFO, 32, 0, 0) + bytes(16):
            client.socket.sendall(bytes([byte]))
        assert client.receive()[:3] == (9, GET_INFO, 0)
        client.socket.sendall((HEADER.pack(9, GET_INFO, 32, 0, 0) + bytes(16)) * 2)
        assert client.receive() == client.receive()


def test_a_socket_that_a_killed_program_has_left_is_replaced(
    device: tuple[Path, subprocess.Popen[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    path, process = device
    assert status(["device", COPIER, "--vfio-user", str(path), "--seconds", "1"]) == 1
    assert f"{path} exists: another program listens at it" in capsys.readouterr().err
    process.kill()
    process.wait()
    assert path.exists()
    served = tl.serve(copier(), tl.VfioUser(path), seconds=0.2)
    assert served["clients"] == 0
    assert not path.exists()


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(tl.RunError, match="or it is not a socket"):
        tl.serve(copier(), tl.VfioUser(path), seconds=0.1)
    assert path.read_text() == "mine"


def test_options_of_an_adapter_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "copier.sock"
    assert status(["device", COPIER, "--vfio-user", str(path), "--mps", "128"]) == 2
    assert "--mps is for a device behind an adapter, not for --vfio-user" in capsys.readouterr().err
    assert status(["device", COPIER, "--vfio-user", str(path), "--seconds", "0.1"]) == 0
    assert "vfio-user-pci" in capsys.readouterr().out


def test_a_drive_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "drive.sock"
    assert status(["device", "nvme", "--vfio-user", str(path), "--size", "1000B"]) == 2
    assert "1000" in capsys.readouterr().err
    command = [sys.executable, "-m", "tlplab", "device", "nvme", "--vfio-user", str(path), "--size", "8MiB", "--quiet"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            appears(path, process)
            with Client(path) as client:
                # Mass storage, non-volatile memory, NVMe.
                assert client.read(CONFIG, 9, 3) == 0x01_08_02
                client.write(CONFIG, 4, 0b110, 2)
                # Version 1.4.
                assert client.read(BAR0, 8, 4) == 0x0001_0400
        finally:
            process.terminate()
    assert process.returncode == 143


@pytest.mark.full
def test_a_million_messages_of_junk_neither_end_the_server_nor_make_it_grow(tmp_path: Path) -> None:
    path = tmp_path / "drive.sock"
    command = [sys.executable, "-m", "tlplab", "device", "nvme", "--vfio-user", str(path), "--size", "8MiB", "--quiet"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            appears(path, process)
            send_junk(path, process)
        finally:
            process.kill()


def send_junk(path: Path, process: subprocess.Popen[str]) -> None:
    random = Random(7)
    sent = connections = 0
    resident = 0
    while sent < 1_000_000:
        connections += 1
        with Client(path) as client:
            event = client.enable()
            reader = threading.Thread(target=drain, args=[client])
            reader.start()
            try:
                while sent < 1_000_000:
                    batch = [junk(random) for _ in range(500)]
                    client.socket.sendall(b"".join(batch))
                    sent += len(batch)
            except (BrokenPipeError, ConnectionResetError):
                pass
            with contextlib.suppress(OSError):
                client.socket.shutdown(socket.SHUT_WR)
            reader.join(SECONDS)
            os.close(event)
        if sent >= 200_000 and not resident:
            resident = resident_kib(process.pid)
    assert process.poll() is None
    assert 3 < connections < 100, "a few were no messages at all"
    # The next client finds the device as after power-on.
    with Client(path) as client:
        assert client.read(CONFIG, 4, 2) == 0
    assert resident_kib(process.pid) < resident + 4096


def junk(random: Random) -> bytes:
    """A message: most are commands that exist, with fields near meaningful values."""
    command = random.choice([2, 3, 4, 5, 7, 8, 9, 9, 10, 10, 10, 13, random.randrange(1 << 16)])
    fields = [
        random.choice([0, 1, 2, 7, 16, 24, 32, 4096, random.getrandbits(32)]) for _ in range(random.randrange(13))
    ]
    payload = struct.pack(f"<{len(fields)}I", *fields) + random.randbytes(random.choice([0, 0, 4, 8, 200]))
    size = HEADER.size + len(payload) if random.random() > 1e-5 else random.getrandbits(20)
    return HEADER.pack(random.randrange(1 << 16), command, size, random.choice([0, 0, 0x10]), 0) + payload


def drain(client: Client) -> None:
    """Takes the server's messages, as long as there are some."""
    with contextlib.suppress(OSError):
        while client.socket.recv(1 << 16):
            pass


def resident_kib(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def copier() -> tl.Device:
    from tlplab.loader import find

    device: tl.Device = find(str(ROOT / "examples/python/copier.py"), "Copier")()
    return device
