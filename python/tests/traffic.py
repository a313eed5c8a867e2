"""Traffic between two network stacks, as a program that runs at one end: echo requests, a stream, datagrams.

traffic.py ping ADDRESS COUNT BYTES     COUNT echo requests with BYTES of data, none of which may be cut; prints how many came back
traffic.py take ADDRESS                 takes one TCP connection; prints bytes and digest
traffic.py give ADDRESS BYTES           gives BYTES by TCP; prints bytes and digest
traffic.py listen ADDRESS COUNT BYTES   takes datagrams until COUNT have come or none comes any more; prints how many were whole
traffic.py throw ADDRESS COUNT BYTES    sends COUNT datagrams of BYTES
"""

from __future__ import annotations

import hashlib
import random
import socket
import struct
import sys
import time
from collections.abc import Callable

PORT = 5555
PATIENCE = 10.0
# Of Linux; Python has no names for them.
IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2


def ping(address: str, count: int, size: int) -> None:
    came = 0
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
        raw.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
        raw.settimeout(PATIENCE)
        raw.connect((address, 0))
        for number in range(count):
            data = random.Random(number).randbytes(size)
            request = struct.pack(">BBHHH", 8, 0, 0, 4711, number) + data
            raw.send(request[:2] + checksum(request).to_bytes(2, "big") + request[4:])
            while True:
                answer = raw.recv(65536)[20:]
                kind, _, _, label, sequence = struct.unpack(">BBHHH", answer[:8])
                if (kind, label, sequence) == (0, 4711, number):
                    came += answer[8:] == data
                    break
    print(came)


def checksum(data: bytes) -> int:
    words = struct.unpack(f">{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2))
    total: int = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def take(address: str) -> None:
    digest, size = hashlib.sha256(), 0
    with socket.create_server((address, PORT)) as server:
        server.settimeout(PATIENCE)
        print("ready", flush=True)
        stream, _ = server.accept()
        stream.settimeout(PATIENCE)
        while data := stream.recv(65536):
            digest.update(data)
            size += len(data)
    print(size, digest.hexdigest())


def give(address: str, size: int) -> None:
    data = random.Random(size).randbytes(size)
    with socket.create_connection((address, PORT), timeout=PATIENCE) as stream:
        stream.sendall(data)
    print(size, hashlib.sha256(data).hexdigest())


def listen(address: str, count: int, size: int) -> None:
    whole = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind((address, PORT))
        udp.settimeout(PATIENCE)
        print("ready", flush=True)
        seen: set[int] = set()
        while len(seen) < count:
            try:
                data = udp.recv(65536)
            except TimeoutError:
                break
            udp.settimeout(1.0)
            number = int.from_bytes(data[:4], "big")
            seen.add(number)
            whole += data == datagram(number, size)
    print(whole)


def throw(address: str, count: int, size: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        for number in range(count):
            udp.sendto(datagram(number, size), (address, PORT))
            time.sleep(0.002)


def datagram(number: int, size: int) -> bytes:
    return number.to_bytes(4, "big") + random.Random(number).randbytes(size - 4)


if __name__ == "__main__":
    action, address, *numbers = sys.argv[1:]
    actions: dict[str, Callable[..., None]] = {
        "ping": ping,
        "take": take,
        "give": give,
        "listen": listen,
        "throw": throw,
    }
    actions[action](address, *map(int, numbers))
