"""A device written in Python as a target: it moves the data, and is measured while it does.

    class MyDma(tlplab.Device):
        ids = tlplab.Ids(0x1DE5, 2)
        bench_slots = 16

        async def bench_read(self, cx, address, length):
            await cx.dma_read(address, length)

        async def bench_write(self, cx, address, length):
            await cx.dma_write(address, bytes(length))

`bench_read` and `bench_write` move `length` bytes from and to `address` of host memory, and return when the transfer is
over as the device sees it. Latencies are measured one at a time; bandwidth with `bench_slots` (32) transfers at once.
Timestamps are in nanoseconds.
"""

from __future__ import annotations

import inspect
import json
import random
from collections.abc import Iterator
from typing import Any, Protocol, cast

from tlplab import _core
from tlplab.bench.case import Case
from tlplab.bench.result import Result
from tlplab.device import Context, Device
from tlplab.loader import LoadError, find
from tlplab.simulation import NAME, experiment_text

CLOCK_HZ = 1_000_000_000
SLOTS = 32
# From one measured operation to the next.
PAUSE = "100ns"
STOP = "1s"
# Events between two looks at whether somebody wants to stop: some hundredths of a second.
SLICE = 2_000
LINE = 64


class Measurable(Protocol):
    """What a device has to have."""

    def start(self, cx: Context) -> Any: ...
    async def bench_read(self, cx: Context, address: int, length: int) -> Any: ...
    async def bench_write(self, cx: Context, address: int, length: int) -> Any: ...


class SoftwareTarget:
    """Runs cases on a device in Python, each on a new one, one case after the other."""

    parallel = False

    def __init__(self, device: type[Device], *, host: str, link: str, host_keys: dict[str, str]) -> None:
        """Raises ValueError for a device that cannot be measured."""
        for name in ("bench_read", "bench_write"):
            if not inspect.iscoroutinefunction(getattr(device, name, None)):
                raise ValueError(
                    f"{device.__name__} has no coroutine {name}; write async def {name}(self, cx, address, length)"
                )
        self._device, self._host, self._link = device, host, link
        self._overrides = [f"host.{key}={json.dumps(value)}" for key, value in host_keys.items()]
        self._stopped = False
        self._done = 0.0

    def run(self, case: Case) -> Result:
        """Measures a case. Raises ValueError, ExperimentError, RunError."""
        if case.interface != "dma" or case.device_offset:
            raise ValueError("a device in Python has neither a command interface nor an offset in its memory")
        device = self._device()
        recorder = _core.BenchRecorder(case.to_json(), CLOCK_HZ, 1)
        measurement = Measurement(cast(Measurable, device), case, recorder)
        text = experiment_text(type(device).__name__, link=self._link, host=self._host, stop=STOP, driver=False)
        simulation = _core.Simulation(
            "benchmark", text=text, objects={NAME: (device, None)}, overrides=self._overrides, seed=case.seed
        )
        measurement.base = simulation.prepare(case.to_json())
        begun = self._done
        while not self._stopped and not simulation.advance(SLICE).done:
            self._done = begun + recorder.fraction()
        complete = recorder.fraction() >= 1.0
        self._done = begun + 1.0
        return Result.of(json.loads(recorder.document(complete)))

    def stop(self) -> None:
        """Ends all runs soon."""
        self._stopped = True

    def done(self) -> float:
        """How many cases are done, with the part of the one under way."""
        return self._done


class Measurement:
    """What a device does when it starts: the operations of a case."""

    def __init__(self, device: Measurable, case: Case, recorder: _core.BenchRecorder) -> None:
        self.device, self.case, self.recorder = device, case, recorder
        self.base = 0
        self.started = device.start
        device.start = self.begin  # type: ignore[method-assign] # its own runs first

    async def begin(self, cx: Context) -> None:
        """Starts the device, then measures."""
        own = self.started(cx)
        if inspect.isawaitable(own):
            await own
        if self.case.is_latency:
            await self.latencies(cx)
            return
        each = 2 if self.case.test == "bw_rdwr" else 1
        left = iter(range(each * sum(self.recorder.counts())))
        addresses = self.addresses()
        for _ in range(getattr(self.device, "bench_slots", SLOTS)):
            cx.spawn(self.transfers(cx, left, addresses))

    async def latencies(self, cx: Context) -> None:
        """One operation at a time."""
        count, warmup = self.recorder.counts()
        addresses = self.addresses()
        for number in range(warmup + count):
            address = next(addresses)
            begun = cx.now_fs
            if self.case.test == "lat_wrrd":
                await self.device.bench_write(cx, address, self.case.size)
            await self.device.bench_read(cx, address, self.case.size)
            if number >= warmup:
                self.recorder.latency(begun, cx.now_fs)
            await cx.sleep(PAUSE)

    async def transfers(self, cx: Context, left: Iterator[int], addresses: Iterator[int]) -> None:
        """One slot's transfers."""
        test = self.case.test
        for number in left:
            write = test == "bw_wr" or (test == "bw_rdwr" and number % 2 == 0)
            move = self.device.bench_write if write else self.device.bench_read
            await move(cx, next(addresses), self.case.size)
            self.recorder.transfer(cx.now_fs)

    def addresses(self) -> Iterator[int]:
        """Where the transfers go: the buffer in units of whole cache lines, in order or at random."""
        case = self.case
        unit = -(-(case.host_offset + case.size) // LINE) * LINE
        units, first = case.window // unit, self.base + case.host_offset
        stream = random.Random(case.seed)
        number = 0
        while True:
            place = stream.randrange(units) if case.pattern == "random" else number % units
            yield first + place * unit
            number += 1


def load(name: str) -> type[Device]:
    """The class that `file.py:Class` names. Raises ValueError."""
    path, _, called = name.rpartition(":")
    try:
        found = find(path, called)
    except LoadError as error:
        raise ValueError(f"{path}: {error}") from None
    if not (isinstance(found, type) and issubclass(found, Device)):
        raise ValueError(f"{path}: {called} is no device; write class {called}(tlplab.Device)")
    return found
