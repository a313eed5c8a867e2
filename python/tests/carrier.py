"""The smallest fabric there is: it carries a device and its driver in Python, each operation taking 1 µs."""

from __future__ import annotations

import heapq
from typing import Any

from tlplab.device import Device, DeviceParty
from tlplab.driver import DriverParty
from tlplab.tasks import Action

STEP = 1_000_000_000
BAR_BASE = 0xF000_0000
CONFIG = 0xE000_0000


class Memory:
    """Host memory: bytes at addresses, zero where nothing was written."""

    def __init__(self) -> None:
        self.bytes: dict[int, int] = {}
        self.free = 0x10_0000

    def read(self, address: int, length: int) -> bytes:
        return bytes(self.bytes.get(address + i, 0) for i in range(length))

    def write(self, address: int, data: bytes) -> None:
        self.bytes.update({address + i: byte for i, byte in enumerate(data)})

    def alloc(self, length: int, align: int) -> int:
        address = -(-self.free // align) * align
        self.free = address + length
        return address


class Carrier:
    """Carries events in the order of their times; `run` returns when nothing is left to happen."""

    def __init__(self, device: Device, driver: Any) -> None:
        self.memory = Memory()
        self.device = DeviceParty(device)
        self.driver = DriverParty(driver, self.memory)
        bars = self.device.identity()["bars"]
        self.bases = {index: (BAR_BASE + (index << 24), size) for index, size, *_ in bars}
        self.driver.attach("dev", (device.ids.vendor, device.ids.device), self.bases, CONFIG, device)
        self.queue: list[tuple[int, int, str, tuple[Any, ...]]] = []
        self.sequence = 0
        self.finished = False
        self.now = 0
        self.reads: dict[int, int] = {}

    def at(self, time: int, party: str, *event: Any) -> None:
        self.sequence += 1
        heapq.heappush(self.queue, (time, self.sequence, party, event))

    def run(self) -> None:
        self.at(0, "device", "start")
        self.at(0, "driver", "start")
        while self.queue:
            self.now, _, party, event = heapq.heappop(self.queue)
            for action in (self.device if party == "device" else self.driver).handle(self.now, event):
                self.act(party, action)

    def act(self, party: str, action: Action) -> None:
        kind, *details = action
        soon = self.now + STEP
        if kind == "timer":
            self.at(details[1], party, "over", details[0], None, None)
        elif kind == "dma_read":
            key, _, address, length = details
            if address == 0xBAD:
                self.at(soon, party, "over", key, None, "unsupported request")
            else:
                self.at(soon, party, "over", key, self.memory.read(address, length), None)
        elif kind == "dma_write":
            self.memory.write(details[2], details[3])
            self.at(soon, party, "over", details[0], None, None)
        elif kind == "msix":
            self.at(soon, "driver", "interrupt", details[1])
        elif kind == "mmio_write":
            bar, offset = self.locate(details[2])
            self.at(soon, "device", "write", bar, offset, details[3])
            self.at(soon, party, "over", details[0], None, None)
        elif kind == "mmio_read":
            bar, offset = self.locate(details[2])
            self.at(soon, "device", "read", bar, offset, details[3], details[0])
        elif kind == "reply":
            self.at(soon, "driver", "over", details[0], details[1], None)
        else:
            assert kind == "finished"
            self.finished = True

    def locate(self, address: int) -> tuple[int, int]:
        return next((i, address - base) for i, (base, size) in self.bases.items() if base <= address < base + size)
