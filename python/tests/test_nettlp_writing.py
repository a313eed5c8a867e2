"""Writes that are followed up, on memory that loses some of them."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tlplab.cli import status
from tlplab.errors import RequestTimeoutError, RunError
from tlplab.nettlp.loopback import own_address
from tlplab.nettlp.writing import Flush, Writer, cut, differing, joined, named

ZERO_TIMEOUT = "completion timeout: the request at 0x0, tag 0, was not answered within 50 ms"


class Memory:
    """Memory that loses writes and reads, each with a probability, and that may not answer some flushes."""

    def __init__(self, *, lost: float = 0.0, silent: tuple[Flush, ...] = (), broken: range = range(0), seed: int = 1):
        self.bytes = bytearray(1 << 16)
        self.lost, self.silent, self.broken = lost, silent, broken
        self.random = random.Random(seed)
        self.how: Flush = "zero"
        self.flushed: list[int] = []

    def write(self, address: int, data: bytes) -> None:
        for at in range(0, len(data), 256):
            if self.random.random() >= self.lost:
                piece = data[at : at + 256]
                kept = [b for n, b in enumerate(piece) if address + at + n not in self.broken]
                if len(kept) == len(piece):
                    self.bytes[address + at : address + at + len(piece)] = piece

    def flush(self, address: int) -> None:
        self.flushed.append(address)
        if self.how in self.silent:
            raise RequestTimeoutError(ZERO_TIMEOUT)

    def flush_by(self, how: Flush) -> None:
        self.how = how

    def read_many(self, places: list[tuple[int, int]]) -> list[bytes | str]:
        return [
            "completion timeout" if self.random.random() < self.lost else bytes(self.bytes[at : at + count])
            for at, count in places
        ]


DATA = bytes(at * 7 % 251 + 1 for at in range(40_000))


def test_lost_writes_are_repeated() -> None:
    memory = Memory(lost=0.2)
    writer = Writer(memory, flush="zero", verify=True, tries=10)
    writer.write(5, DATA)
    writer.finish()
    assert memory.bytes[5 : 5 + len(DATA)] == DATA
    # One try is too few, and what is missing is named: exactly what is not there.
    memory = Memory(lost=0.2, seed=2)
    writer = Writer(memory, flush="zero", verify=True, tries=0)
    writer.write(0x100, DATA)
    with pytest.raises(RunError, match="bytes differ from the data written: 0x"):
        writer.finish()
    missing = {at for start, end in writer.wrong + writer.unknown for at in range(start, end)}
    wrong = {0x100 + at for at in range(len(DATA)) if memory.bytes[0x100 + at] != DATA[at]}
    assert wrong <= missing
    assert len(missing) < len(DATA)


def test_unwritable_bytes_are_named() -> None:
    writer = Writer(Memory(broken=range(0x2100, 0x2101)), flush="zero", verify=True, tries=3)
    writer.write(0x1000, DATA)
    with pytest.raises(RunError) as error:
        writer.finish()
    assert str(error.value) == "256 bytes differ from the data written after 3 more tries: 0x2100 to 0x21ff"


def test_memory_that_cannot_be_read_back() -> None:
    writer = Writer(Memory(lost=1.0), flush="zero", verify=True, tries=2)
    with pytest.raises(RunError, match="0x10 to 0x1f cannot be read back: completion timeout"):
        writer.write(0x10, bytes(16))


def test_a_peer_that_answers_no_read_of_no_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    # It is found out where reads have no side effects ...
    memory = Memory(silent=("zero",))
    writer = Writer(memory, flush="zero", verify=True, tries=1)
    writer.write(0x10, DATA)
    writer.finish()
    assert (memory.how, memory.flushed[-1]) == ("read", 0x10 + len(DATA) - 1)
    assert "The peer does not answer reads of no bytes" in capsys.readouterr().err
    # ... and said elsewhere.
    with pytest.raises(RunError, match="--flush read, where reads have no side effects, or --no-flush"):
        Writer(Memory(silent=("zero",)), flush="zero", verify=False, tries=0).write(0x10, DATA)
    Writer(Memory(silent=("zero",)), flush="read", verify=False, tries=0).write(0x10, DATA)
    # Who answers nothing at all is what he was: silent.
    with pytest.raises(RunError, match="completion timeout"):
        Writer(Memory(silent=("zero", "read")), flush="zero", verify=True, tries=1).write(0x10, DATA)


def test_ranges() -> None:
    assert list(cut([(4000, 9000)])) == [(4000, 4096), (4096, 8192), (8192, 9000)]
    assert differing(b"aaaabbbbccccd", b"aaaaXbbbcccce", 8) == [(12, 16), (20, 21)]
    assert differing(b"same", b"same", 8) == []
    assert joined([(8, 12), (0, 4), (4, 8), (20, 24)]) == [(0, 12), (20, 24)]
    assert named([(n * 16, n * 16 + 4) for n in range(10)]).endswith("0x70 to 0x73 and 2 more ranges")


@contextmanager
def silent_about_nothing(memory: bytearray, *, tags: range) -> Iterator[str]:
    """A peer like the published psmem: it answers reads, each in one completion, but none of no bytes. Its address."""
    address = own_address()
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in tags]
    over = threading.Event()

    def serve(port: socket.socket) -> None:
        while not over.is_set():
            try:
                datagram, sender = port.recvfrom(8192)
            except TimeoutError:
                continue
            tlp = datagram[6:]
            dw, requester, tag, enables, at = *struct.unpack(">xxH", tlp[:4]), *struct.unpack(">HBBI", tlp[4:12])
            dw, first, last = dw & 0x3FF or 1024, enables & 15, enables >> 4
            begin = at + (first & -first).bit_length() - 1 if first else at
            end = at + 4 * (dw - 1) + (last or first).bit_length()
            if tlp[0] & 0x40:
                memory[begin:end] = tlp[12 + begin - at : 12 + end - at]
            elif first:
                header = struct.pack(">BxHHHHBB", 0x4A, dw, 0, end - begin, requester, tag, begin & 0x7F)
                port.sendto(bytes(6) + header + bytes(memory[at : at + 4 * dw]), sender)

    threads = []
    for tag, port in zip(tags, sockets, strict=True):
        port.bind((address, 0x3000 + tag))
        port.settimeout(0.2)
        threads.append(threading.Thread(target=serve, args=(port,)))
        threads[-1].start()
    try:
        yield address
    finally:
        over.set()
        for thread in threads:
            thread.join()
        for port in sockets:
            port.close()


def test_the_command_writes_to_such_a_peer(capsys: pytest.CaptureFixture[str]) -> None:
    memory = bytearray(4096)
    with silent_about_nothing(memory, tags=range(2)) as peer:
        write = ["dma", "write", "-a", "0x102", "--text", "hello, world", "-b", "1b:00", "--tag", "0-1"]
        write += ["-l", own_address(), "-r", peer]
        assert status([*write, "--timeout", "100"]) == 1
        assert "--flush read" in capsys.readouterr().err
        assert memory[0x102:0x10E] == b"hello, world"
        for more in (["--flush", "read"], ["--retry", "1"], ["--no-flush"]):
            memory[:] = bytes(4096)
            assert status([*write, *more, "--timeout", "300"]) == 0, more
            if more != ["--no-flush"]:
                assert memory[0x102:0x10E] == b"hello, world"
