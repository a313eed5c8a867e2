"""The least that a Linux guest in virtual time needs around it: a clock, and one PCI function behind `um_pci_tunnel`.

The time-travel protocol is in the kernel's include/uapi/linux/um_timetravel.h, the device's messages in virtio_pcidev.h; the transport that carries
them is vhost-user.
"""

from __future__ import annotations

import array
import mmap
import os
import select
import socket
import struct
import subprocess
import threading
from pathlib import Path

from linux.builder import cpio

ACK, START, REQUEST, WAIT, GET, UPDATE, RUN, FREE_UNTIL, GET_TOD, BROADCAST = range(10)
CFG_READ, CFG_WRITE, MMIO_READ, MMIO_WRITE, MMIO_MEMSET = range(1, 6)
# vhost-user: its messages, its features, and flags of a message.
GET_FEATURES, SET_MEM_TABLE, SET_VRING_NUM, SET_VRING_ADDR = 1, 5, 8, 9
GET_PROTOCOL_FEATURES, SET_SLAVE_REQ_FD, VRING_KICK = 15, 21, 35
PROTOCOL_FEATURES, VERSION_1 = 1 << 30, 1 << 32
REPLY_ACK, SLAVE_REQ, INBAND_NOTIFICATIONS = 1 << 3, 1 << 5, 1 << 14
REPLY, NEED_REPLY = 5, 8
FOREVER = (1 << 63) - 1
FUNCTION = 1 << 15
"""ECAM offset of 00:01.0."""
BAR_SIZE = 1 << 16


class Clock:
    """The controller: it lets the guest run to the time it asks for, and nothing else has events."""

    def __init__(self, path: Path) -> None:
        """Listens; `serve` accepts the guest."""
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(1)
        self.guest = self.listener
        self.now = 0
        self.request = FOREVER
        self.waiting = False
        self.heard: list[int] = []

    def message(self) -> int | None:
        """Takes a message; the number of the answered one if it is an answer, None at the end."""
        data = self.guest.recv(16, socket.MSG_WAITALL)
        if len(data) < 16:
            return None
        op, number, time = struct.unpack("<IIQ", data)
        if op == ACK:
            return int(number)
        answer = time
        if op == REQUEST:
            self.request = time
        elif op == UPDATE:
            self.now = max(self.now, time)
        elif op == GET:
            answer = self.now
        elif op == GET_TOD:
            answer = 1_767_225_600 * 10**9
        elif op == BROADCAST:
            self.heard.append(time)
        self.guest.sendall(struct.pack("<IIQ", ACK, number, answer))
        self.waiting = self.waiting or op == WAIT
        return 0

    def run(self, time: int) -> None:
        """Lets the guest run at a time, and waits until it heard so."""
        self.now = time
        self.guest.sendall(struct.pack("<IIQ", RUN, 7, time))
        while (answered := self.message()) != 7:
            if answered is None:
                return

    def serve(self) -> bool:
        """Takes a message and lets the guest run if it waits; a request that is over is granted now. False at the end."""
        if self.message() is None:
            return False
        if self.waiting and self.request != FOREVER:
            self.waiting = False
            self.run(max(self.now, self.request))
        return True


class Memory:
    """The guest's memory."""

    def __init__(self, fd: int, size: int, offset: int, address: int) -> None:
        """Maps it; guest addresses begin at `address`."""
        self.bytes = mmap.mmap(fd, size + offset)
        self.shift = offset - address

    def read(self, address: int, size: int) -> bytes:
        """Reads at a guest address."""
        return self.bytes[address + self.shift : address + self.shift + size]

    def write(self, address: int, data: bytes) -> None:
        """Writes at a guest address."""
        self.bytes[address + self.shift : address + self.shift + len(data)] = data


class Function:
    """00:01.0, an endpoint of no class that Linux knows, with one BAR of 64 KiB whose bytes are their offsets."""

    def __init__(self, latency: int) -> None:
        """A read of the BAR takes `latency` nanoseconds."""
        self.latency = latency
        self.config = bytearray(4096)
        struct.pack_into("<HHHHI", self.config, 0, 0x1DE5, 0x0001, 0, 0, 0xFF000000)
        self.written: list[tuple[int, bytes]] = []

    def answer(self, clock: Clock, op: int, address: int, size: int, data: bytes) -> bytes:
        """The data of a read, or nothing for a write; time passes."""
        if op in (CFG_READ, CFG_WRITE):
            if not FUNCTION <= address < FUNCTION + 4096:
                return b"\xff" * size
            at = address - FUNCTION
            if op == CFG_READ:
                return bytes(self.config[at : at + size])
            if at == 4:
                self.config[4:6] = data[:2]
            elif at == 16:
                (base,) = struct.unpack("<I", data[:4])
                struct.pack_into("<I", self.config, 16, base & -BAR_SIZE)
            return b""
        at = address % BAR_SIZE
        if op == MMIO_READ:
            clock.run(clock.now + self.latency)
            return bytes((at + n) & 0xFF for n in range(size))
        self.written.append((at, data if op == MMIO_WRITE else data[:1] * size))
        return b""


class Carrier:
    """The vhost-user device that carries the messages."""

    def __init__(self, path: Path, clock: Clock, function: Function) -> None:
        """Listens; `serve` accepts the guest."""
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(1)
        self.clock, self.function = clock, function
        self.guest = self.listener
        self.ring = [[0, 0, 0], [0, 0, 0]]
        self.length = [0, 0]
        self.seen = 0

    def commands(self) -> None:
        """Serves the requests that the guest put in the queue of commands."""
        descriptors, used, available = self.ring[0]
        length, memory = self.length[0], self.memory
        while struct.unpack("<H", memory.read(available + 2, 2))[0] != self.seen & 0xFFFF:
            (head,) = struct.unpack("<H", memory.read(available + 4 + 2 * (self.seen % length), 2))
            request, places, index = b"", [], head
            while True:
                address, size, flags, following = struct.unpack("<QIHH", memory.read(descriptors + 16 * index, 16))
                if flags & 2:
                    places.append((address, size))
                else:
                    request += memory.read(address, size)
                if not flags & 1:
                    break
                index = following
            op, _, _, size, address = struct.unpack("<BBHIQ", request[:16])
            result = self.function.answer(self.clock, op, address, size, request[16:])
            for place, _ in places:
                memory.write(place, result)
            memory.write(used + 4 + 8 * (self.seen % length), struct.pack("<II", head, len(result)))
            self.seen += 1
            memory.write(used + 2, struct.pack("<H", self.seen & 0xFFFF))

    def serve(self) -> bool:
        """Takes a message of vhost-user; False at the end."""
        head, control, _, _ = self.guest.recvmsg(12, socket.CMSG_SPACE(32))
        if len(head) < 12:
            return False
        request, flags, size = struct.unpack("<III", head)
        body = self.guest.recv(size, socket.MSG_WAITALL) if size else b""
        fds = array.array("i", b"".join(data for _, _, data in control))
        answer = struct.pack("<Q", 0) if flags & NEED_REPLY else b""
        if request == GET_FEATURES:
            answer = struct.pack("<Q", PROTOCOL_FEATURES | VERSION_1)
        elif request == GET_PROTOCOL_FEATURES:
            answer = struct.pack("<Q", REPLY_ACK | SLAVE_REQ | INBAND_NOTIFICATIONS)
        elif request == SET_MEM_TABLE:
            address, length, _, offset = struct.unpack("<QQQQ", body[8:40])
            self.memory = Memory(fds[0], length, offset, address)
        elif request == SET_VRING_NUM:
            index, length = struct.unpack("<II", body)
            self.length[index] = length
        elif request == SET_VRING_ADDR:
            index, _, descriptors, used, available, _ = struct.unpack("<IIQQQQ", body)
            self.ring[index] = [descriptors, used, available]
        elif request == VRING_KICK and body[:4] == bytes(4):
            self.commands()
        if request != SET_SLAVE_REQ_FD:
            for fd in fds:
                os.close(fd)
        if answer:
            self.guest.sendall(struct.pack("<III", request, REPLY, len(answer)) + answer)
        return True


def serve(clock: Clock, carrier: Carrier) -> None:
    """Both sockets, until the guest ends. It talks to the clock before it knows of the device."""
    clock.guest, _ = clock.listener.accept()
    while True:
        ready, _, _ = select.select([clock.guest, carrier.guest], [], [])
        if clock.guest in ready:
            if not clock.serve():
                return
        elif carrier.guest is carrier.listener:
            carrier.guest, _ = carrier.listener.accept()
        elif not carrier.serve():
            return


def boot(guest: Path, folder: Path, function: Function, script: str, *options: str) -> tuple[str, Clock]:
    """Boots the guest in an empty folder, where it runs a script; its output, and the clock."""
    own = folder / "own"
    (own / "tlplab").mkdir(parents=True)
    (own / "tlplab/run").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (own / "tlplab/run").chmod(0o755)
    # The kernel unpacks archives that follow each other.
    (folder / "initrd").write_bytes((guest / "initramfs.cpio").read_bytes() + cpio.archive(own, {}))
    clock = Clock(folder / "clock")
    carrier = Carrier(folder / "device", clock, function)
    threading.Thread(target=serve, args=(clock, carrier), daemon=True).start()
    command = [
        str(guest / "linux"),
        "mem=128M",
        "initrd=initrd",
        "con=null",
        "con0=fd:0,fd:1",
        "virtio_uml.device=device:1234",
        "time-travel=ext:clock",
        "um_pci_tunnel",
        "um_random_seed=1",
        "seccomp=on",
        "norandmaps",
        "quiet",
        *options,
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100, stdin=subprocess.PIPE)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, clock
