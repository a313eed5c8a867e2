"""A client of vfio-user as QEMU is, with memory in a file and eventfds."""

from __future__ import annotations

import array
import os
import socket
import struct
import time
from collections.abc import Sequence
from pathlib import Path

HEADER = struct.Struct("<HHIII")
VERSION, DMA_MAP, GET_INFO, SET_IRQS, REGION_READ, REGION_WRITE, DMA_READ, DMA_WRITE = 1, 2, 4, 8, 9, 10, 11, 12
BAR0, CONFIG, MSIX = 0, 7, 2
# As MSIX, a kind of interrupts.
ERRORS = 3
MEMORY = 1 << 20
SECONDS = 10.0


class Client:
    """The other end of a device's socket."""

    def __init__(self, path: Path, *, agree: bool = True) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(SECONDS)
        self.socket.connect(str(path))
        self.file = os.memfd_create("memory")
        os.ftruncate(self.file, MEMORY)
        self.number = 0
        if agree:
            self.call(VERSION, struct.pack("<HH", 0, 0) + b'{"capabilities":{}}\0')

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()
        os.close(self.file)

    def send(self, command: int, payload: bytes, files: Sequence[int] = (), flags: int = 0) -> None:
        self.number += 1
        message = HEADER.pack(self.number, command, HEADER.size + len(payload), flags, 0) + payload
        beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
        assert self.socket.sendmsg([message], beside) == len(message)

    def receive(self) -> tuple[int, int, int, bytes]:
        """A message: its number, its command, its errno, its payload."""
        number, command, size, _, error = HEADER.unpack(self.exactly(HEADER.size))
        return number, command, error, self.exactly(size - HEADER.size)

    def exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def call(self, command: int, payload: bytes, files: Sequence[int] = ()) -> bytes:
        self.send(command, payload, files)
        number, answered, error, payload = self.receive()
        assert (number, answered, error) == (self.number, command, 0)
        return payload

    def map(self, *, shared: bool) -> None:
        """The device may use the memory from address 0 on."""
        fields = struct.pack("<IIQQQ", 32, 3, 0, 0, MEMORY)
        self.call(DMA_MAP, fields, [self.file] if shared else [])

    def read(self, region: int, offset: int, count: int) -> int:
        reply = self.call(REGION_READ, struct.pack("<QII", offset, region, count))
        return int.from_bytes(reply[16:], "little")

    def write(self, region: int, offset: int, value: int, count: int) -> None:
        self.call(REGION_WRITE, struct.pack("<QII", offset, region, count) + value.to_bytes(count, "little"))

    def enable(self) -> int:
        """Makes the device a bus master with MSI-X; the eventfd of its vector."""
        self.write(CONFIG, 4, 0b110, 2)
        at = self.read(CONFIG, 0x34, 1)
        while self.read(CONFIG, at, 1) != 0x11:
            at = self.read(CONFIG, at + 1, 1)
        self.write(CONFIG, at + 2, 0x8000, 2)
        event = os.eventfd(0, os.EFD_NONBLOCK)
        self.call(SET_IRQS, struct.pack("<IIIII", 20, 4 | 32, MSIX, 0, 1), [event])
        return event

    def copy(self, source: int, target: int, count: int) -> None:
        """Has the copier copy memory; it may ask for it meanwhile."""
        for offset, value in ((0, source), (8, target)):
            self.write(BAR0, offset, value, 8)
        # Posted, as a processor's write is.
        self.send(REGION_WRITE, struct.pack("<QIII", 0x10, BAR0, 4, count), flags=0x10)


def signalled(event: int) -> int:
    """The number of times that an interrupt has come, after waiting for the first."""
    until = time.monotonic() + SECONDS
    while True:
        try:
            return os.eventfd_read(event)
        except BlockingIOError:
            assert time.monotonic() < until, "no interrupt"
            time.sleep(0.002)
