"""Runs cases on a GPU: its warps read and write a buffer in the processor's memory."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from tlplab import _core
from tlplab.bench.case import Case
from tlplab.bench.cuda.caches import Thrasher
from tlplab.bench.cuda.driver import CudaError, HostBuffer, Open, Words, open_gpu
from tlplab.bench.result import Result
from tlplab.scan import sysfs

WORD = 4
# Where cases have their buffer: the addresses of a recorder's operations begin there.
BASE = 1 << 32
# Transfers of a bandwidth that are measured where a case does not say how many: some milliseconds. In so many parts, each timed alone.
TRANSFERS = 1 << 20
PARTS = 4
# With few at once, a transfer takes its latency: fewer take as long.
FEW_AT_ONCE, FEW_TRANSFERS = 16, 1 << 17
# Latencies that are measured between two looks at whether somebody wants to stop.
BATCH = 4096
# The processor's memory that a device writes to thrash its part of the cache, as in the simulator.
THRASHED = 64 << 20
FS_PER_NS = 1_000_000
# Offsets are words of 32 bits.
MOST_WINDOW = 1 << 32
# A clock that moves by more than this is told.
STEADY = 0.01


class CudaTarget:
    """Runs cases on a GPU, one after the other."""

    parallel = False

    def __init__(self, number: int = 0, *, opened: Open = open_gpu) -> None:
        """Raises CudaError."""
        self._gpu = opened(number)
        self._thrasher = Thrasher()
        self._stopped = False
        self._done = 0.0
        self._clocks: list[float] = []
        self.machine: str | None = f"{self._gpu.name}, {link_of(self._gpu.bdf)}"

    def run(self, case: Case) -> Result:
        """Measures a case. Raises ValueError."""
        self.check(case)
        gpu, done = self._gpu, self._done
        gpu.use()
        buffer = HostBuffer(gpu, case.window)
        memory = []
        try:
            self.warm(buffer, case)
            if case.is_latency:
                memory = [gpu.memory(BATCH * WORD), gpu.memory(BATCH * WORD), gpu.memory(16)]
                recorder, complete = self.latencies(case, buffer, *memory)
            else:
                case = replace(
                    case, count=case.count or (FEW_TRANSFERS if self.warps(case) < FEW_AT_ONCE else TRANSFERS)
                )
                memory = [gpu.memory((part_of(case) + before(case)) * WORD), gpu.memory(16), gpu.memory(WORD)]
                recorder, complete = self.transfers(case, buffer, *memory)
        finally:
            for address in memory:
                gpu.free(address)
            buffer.free()
        self._done = done + 1.0
        return Result.of(json.loads(recorder.document(complete)))

    def check(self, case: Case) -> None:
        """Raises ValueError for a case that a GPU cannot measure."""
        if case.interface != "dma" or case.device_offset:
            raise ValueError(
                "a GPU has neither a command interface nor an offset in its memory; leave these options out"
            )
        if case.node != "local":
            raise ValueError(
                "the node of a GPU's buffer cannot be chosen; run tlplab on that node, as with numactl --membind"
            )
        if case.size % WORD or case.host_offset % WORD:
            raise ValueError(
                f"{case.size} B at offset {case.host_offset} B: a GPU's threads move words of 4 B; give multiples of 4 B"
            )
        if case.window > MOST_WINDOW:
            raise ValueError(f"a window of {case.window} B: on a GPU it is 4 GiB at most")
        if (case.at_once or 1) > self._gpu.warps:
            raise ValueError(
                f"{case.at_once} transfers at once: {self._gpu.name} runs {self._gpu.warps} warps at once, each with one"
            )

    def warps(self, case: Case) -> int:
        """Warps that transfer at once: all that the GPU runs, to a power of two, if a case does not say."""
        return case.at_once or 1 << (self._gpu.warps.bit_length() - 1)

    def warm(self, buffer: HostBuffer, case: Case) -> None:
        """Brings the processor's caches into the state that a case begins in. The buffer holds zeros before and after."""
        if case.cache == "host-warm":
            buffer.bytes.fill(0)
            return
        self._thrasher.thrash()
        if case.cache == "device-warm":
            self.write_all(buffer, case.window)
        elif case.cache == "device-thrash":
            other = HostBuffer(self._gpu, THRASHED)
            self._thrasher.thrash()
            self.write_all(other, THRASHED)
            other.free()

    def write_all(self, buffer: HostBuffer, size: int) -> None:
        """The GPU writes a buffer of whole cache lines."""
        lines = np.arange(0, size, 64, dtype=np.uint32) | np.uint32(1)
        operations, span = self._gpu.memory(lines.nbytes), self._gpu.memory(16)
        try:
            self.launch(buffer, operations, lines, 64, 1 << 10, span, span)
        finally:
            self._gpu.free(operations)
            self._gpu.free(span)

    def latencies(
        self, case: Case, buffer: HostBuffer, operations: int, cycles: int, clock: int
    ) -> tuple[_core.BenchRecorder, bool]:
        """Measures one operation at a time."""
        gpu, recorder = self._gpu, _core.BenchRecorder(case.to_json(), self._gpu.clock_hz, 1)
        left, now, done = recorder.warmup(), 0, self._done
        while (batch := words_of(recorder, BATCH)).size:
            if self._stopped:
                return recorder, False
            gpu.upload(operations, batch)
            pointers = (ctypes.c_uint64(at) for at in (buffer.address, operations, cycles))
            numbers = (ctypes.c_uint32(n) for n in (batch.size, case.size // WORD, case.test == "lat_wrrd"))
            gpu.run("latencies", 1, *pointers, *numbers, ctypes.c_uint64(clock))
            took, whole = np.zeros(batch.size, np.uint32), np.zeros(2, np.uint64)
            gpu.download(cycles, took)
            gpu.download(clock, whole)
            # What the clock ran at, which need not be what the driver says.
            hz = float(whole[0]) / float(whole[1]) * 1e9
            self._clocks.append(hz)
            for each in np.rint(took[left:] * (gpu.clock_hz / hz)).astype(int).tolist():
                # In the middle of a cycle, so that no timestamp falls between two.
                begun, ended = (round((n + 0.5) * 1e15 / gpu.clock_hz) for n in (now, now + each))
                recorder.latency(begun, ended)
                now += each
            left = max(0, left - batch.size)
            self._done = done + recorder.fraction()
        return recorder, True

    def transfers(
        self, case: Case, buffer: HostBuffer, operations: int, span: int, sink: int
    ) -> tuple[_core.BenchRecorder, bool]:
        """Measures many at once, in parts. Within a part only its beginning and its end are known."""
        recorder, now, done = _core.BenchRecorder(case.to_json(), 1_000_000_000, 1), 0, self._done
        for number in range(PARTS + 1):
            if self._stopped:
                return recorder, False
            # The first part is not measured.
            words = words_of(recorder, before(case) if number == 0 else part_of(case))
            if not words.size:
                break
            took = self.launch(buffer, operations, words, case.size, self.warps(case), span, sink) * FS_PER_NS
            for each in range(1, words.size + 1):
                recorder.transfer(now + took * each // words.size)
            now += took
            self._done = done + recorder.fraction()
        return recorder, True

    def launch(
        self, buffer: HostBuffer, operations: int, words: Words, size: int, warps: int, span: int, sink: int
    ) -> int:
        """Has so many warps make transfers; returns nanoseconds from the first beginning to the last end."""
        gpu = self._gpu
        gpu.upload(operations, words)
        gpu.upload(span, np.zeros(2, np.uint64))
        pointers = (ctypes.c_uint64(at) for at in (buffer.address, operations))
        numbers = (ctypes.c_uint32(n) for n in (words.size, size // WORD))
        gpu.run("transfers", min(warps, words.size), *pointers, *numbers, ctypes.c_uint64(span), ctypes.c_uint64(sink))
        both = np.zeros(2, np.uint64)
        gpu.download(span, both)
        return int(both[1]) - (int(~both[0]) & (2**64 - 1))

    def remarks(self, cases: Iterable[Case]) -> list[str]:
        """Remarks for readers of the figures."""
        said = ["measured by the GPU's own loads and stores: a latency includes the GPU's path to its link"]
        if any(case.cache != "host-warm" for case in cases):
            said.append("the processor's caches were thrashed by reading other memory, and may have kept some lines")
        if self._clocks and max(self._clocks) > (1 + STEADY) * min(self._clocks):
            said.append(
                f"the GPU's clock ran at {min(self._clocks) / 1e6:.0f} to {max(self._clocks) / 1e6:.0f} MHz: latencies have the same relative error"
            )
        return said

    def stop(self) -> None:
        """Ends the run soon."""
        self._stopped = True

    def done(self) -> float:
        """The number of cases that are done, with the part of the present one."""
        return self._done


def part_of(case: Case) -> int:
    """Operations of one part."""
    return -(-(case.count or 0) * directions(case) // PARTS)


def before(case: Case) -> int:
    """Operations before the measured ones."""
    return _core.BenchRecorder(case.to_json(), 1, 1).warmup() * directions(case)


def directions(case: Case) -> int:
    """Operations for each that counts."""
    return 2 if case.test == "bw_rdwr" else 1


def words_of(recorder: _core.BenchRecorder, most: int) -> Words:
    """A recorder's next operations, as kernels.cu has them."""
    found: list[int] = []
    while len(found) < most and (operation := recorder.next_operation()) is not None:
        write, address = operation
        found.append(address - BASE | write)
    return np.array(found, np.uint32)


def link_of(bdf: str) -> str:
    """The address of a function and the state of its link from its registers, in words."""
    address, entry, words = sysfs.address_of(bdf), sysfs.HERE / "devices" / bdf, [bdf]
    if address is not None and entry.is_dir():
        found = sysfs.function(address, entry)
        if found.speed and found.width:
            words.append(f"gen{found.speed} x{found.width}")
        if found.mps and found.mrrs:
            words.append(f"MPS {found.mps} B, MRRS {found.mrrs} B")
        if found.ten_bit_tags:
            words.append("10-bit tags")
    return ", ".join(words)


def number_of(target: str) -> int:
    """The number in `cuda:N`; `cuda` is the first GPU. Raises CudaError."""
    _, _, number = target.partition(":")
    if not number and target == "cuda":
        return 0
    if not number.isdigit():
        raise CudaError(f"unknown target {target!r}; the first GPU is cuda, the second cuda:1")
    return int(number)
