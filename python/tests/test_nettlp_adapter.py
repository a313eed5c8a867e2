"""`tlplab adapter` on loopback addresses, by datagrams written by hand."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tlplab.cli import status
from tlplab.nettlp.loopback import own_address

ADAPTER, DEVICE, OTHER = (own_address() for _ in range(3))
HEADER = bytes(6)


@pytest.fixture
def adapter(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """An adapter with 1 MiB of memory that begins with an image, and two devices."""
    image = tmp_path / "image@host"
    image.write_bytes(bytes(range(256)) * 16)
    command = [
        sys.executable, "-m", "tlplab", "adapter", "-l", ADAPTER, "--peer", f"{DEVICE}=05:00.0", "--peer", OTHER,
        "--memory", "1MiB", "--load-memory", f"{image}@0x2000", "--pcap", str(tmp_path / "seen.pcapng"),
        "--json", str(tmp_path / "counts.json"), "--seconds", "60",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_until_served()
        yield process
    finally:
        process.kill()
        process.wait()


def wait_until_served() -> None:
    """Asks for the device ID until there is an answer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.bind((DEVICE, 0))
        asking.settimeout(0.2)
        for _ in range(150):
            asking.sendto(struct.pack("<i", 2), (ADAPTER, 12287))
            try:
                assert asking.recv(64) == struct.pack("<H", 0x0500)
            except (TimeoutError, ConnectionRefusedError):
                time.sleep(0.1)
            else:
                return
    raise AssertionError("the adapter does not answer")


def ask(port: int, request: bytes, *, local: str = DEVICE) -> bytes:
    """Sends a datagram from and to `port`; the answer there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
        device.bind((local, port))
        device.settimeout(10)
        device.sendto(request, (ADAPTER, port))
        return device.recv(8192)


def read(address: int, *, tag: int = 0) -> bytes:
    """An MRd of 16 bytes."""
    return HEADER + struct.pack(">IHBBI", 0x0000_0004, 0x0500, tag, 0xFF, address)


def test_a_device_is_served_until_sigterm(adapter: subprocess.Popen[str], tmp_path: Path) -> None:
    answer = ask(0x3011, read(0x2010, tag=0x11))
    assert answer[6:18] == struct.pack(">IIHBB", 0x4A00_0004, 16, 0x0500, 0x11, 0x10)
    assert answer[18:] == bytes(range(16, 32))
    write = HEADER + struct.pack(">IHBBI", 0x4000_0001, 0x0500, 0x11, 0x06, 0x3000) + b"....".replace(b".", b"x")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
        device.bind((DEVICE, 0x3012))
        device.sendto(write, (ADAPTER, 0x3012))
    assert ask(0x3012, read(0x3000, tag=0x12))[18:22] == b"\0xx\0"
    nowhere = ask(0x3013, read(0x9000_0000, tag=0x13))
    assert nowhere[6:14] == struct.pack(">II", 0x0A00_0000, 0x2000 | 16), "UR"
    assert ask(0x5001, bytes([0x3C, 0, 0, 0, 0, 0])) == bytes.fromhex("3c0080223776")
    assert ask(0x4001, bytes([0x3C, 8, 0, 0, 0, 0]), local=OTHER) == bytes.fromhex("3c08b000000c")
    assert ask(0x5002, bytes([0x10, 6, 0, 0, 0, 0])) == bytes([0x10, 6]) + socket.inet_aton(ADAPTER)[::-1]

    adapter.terminate()
    out, err = adapter.communicate(timeout=30)
    assert adapter.returncode == 143, err
    assert "Traceback" not in err
    assert all(text in out for text in ("05:00.0", "0xa0000000", "1c:00.0", "1 refused (UR, CA)"))
    counts = json.loads((tmp_path / "counts.json").read_text())
    first, second = (device["counters"] for device in counts["devices"])
    assert (first["reads"], first["writes"], first["refused"], first["bytes_read"]) == (2, 1, 1, 32)
    assert (second["reads"], second["control"]) == (0, 1)
    dumped = subprocess.run(
        [sys.executable, "-m", "tlplab", "dump", str(tmp_path / "seen.pcapng"), "type=MRd,CplD,Cpl,MWr"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert [line.split("NetTLP: ")[1].split(",")[0] for line in dumped] == [
        "MRd", "CplD", "MWr", "MRd", "CplD", "MRd", "Cpl",
    ]  # fmt: skip


def test_a_second_adapter_at_the_same_address_is_refused(
    adapter: subprocess.Popen[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert adapter.poll() is None
    assert status(["adapter", "-l", ADAPTER, "--seconds", "1"]) == 1
    assert "in use" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--peer", "127.0.0"], "not an IPv4 address"),
        (["--peer", f"{DEVICE}=1b:99.0"], "bus:device.function"),
        (["--peer", DEVICE, "--peer", f"{DEVICE}=1c:00.0"], "two devices have the address"),
        (["--peer", f"{DEVICE}=1b:00.0", "--peer", f"{OTHER}=1b:00.0"], "the ID 1b:00.0 is taken"),
        (["--peer", ADAPTER], "the adapter's own address"),
        (["--peer", "10.0.0.1"], "--allow-remote"),
        (["-l", "10.0.0.1"], "--allow-remote"),
        (["-l", "192.0.2.1", "--allow-remote"], "not an address of this machine"),
        (["--memory", "much"], "much"),
        (["--window", "100MiB"], "power of two"),
        (["--latency", "3"], "--latency"),
        (["--load-memory", "x@y"], "y"),
        (["--interface", "lo"], "--transport packet"),
        (["--memory", "0"], "a host needs memory"),
        (["--json", "/nowhere/x.json"], "does not exist"),
        (["--rate", "0"], "--rate"),
    ],
)
def test_bad_input_is_reported(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = arguments if "-l" in arguments else ["-l", ADAPTER, *arguments]
    assert status(["adapter", *given, "--seconds", "1"]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_images_must_be_there_and_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = tmp_path / "image.bin"
    arguments = ["adapter", "-l", ADAPTER, "--memory", "64KiB", "--load-memory", f"{image}@0xf000", "--seconds", "1"]
    assert status(arguments) == 2
    assert "image.bin: cannot read" in capsys.readouterr().err
    image.write_bytes(bytes(0x1001))
    assert status(arguments) == 2
    assert "not all memory" in " ".join(capsys.readouterr().err.split())
