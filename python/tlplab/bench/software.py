"""A device written in Python as a target: it moves the data, and is measured while it does.

    class MyDma(tlplab.Device):
        ids = tlplab.Ids(0x71AB, 2)
        bench_slots = 16

        async def bench_read(self, cx, address, length):
            await cx.dma_read(address, length)

        async def bench_write(self, cx, address, length):
            await cx.dma_write(address, bytes(length))

`bench_read` and `bench_write` move `length` bytes from and to `address` of host memory, and return when the transfer is
over as the device sees it. Latencies are measured one at a time; bandwidth with `bench_slots` (32) transfers at once,
which have to take some simulated time.
Timestamps are in nanoseconds.
"""

from __future__ import annotations

import inspect
import itertools
import json
from collections.abc import Mapping
from typing import Any, Protocol, cast

from tlplab import _core
from tlplab import quantities as q
from tlplab.bench.case import Case
from tlplab.bench.result import Result
from tlplab.device import Context, Device
from tlplab.errors import RunError
from tlplab.experiment import of_device
from tlplab.loader import LoadError, find

CLOCK_HZ = 1_000_000_000
SLOTS = 32
# From one measured operation to the next.
PAUSE = "100ns"
# No run is longer: simulated time ends after 5.1 hours.
STOP = "18000s"
# A device in which nothing ends for so long, in femtoseconds of simulated time, is stuck: requests time out sooner.
PATIENCE_FS = 200 * 10**12
# Events between two looks at whether somebody wants to stop: some hundredths of a second.
SLICE = 2_000


class Measurable(Protocol):
    """The methods that a measurable device has to have."""

    def start(self, cx: Context) -> Any: ...
    async def bench_read(self, cx: Context, address: int, length: int) -> Any: ...
    async def bench_write(self, cx: Context, address: int, length: int) -> Any: ...


class SoftwareTarget:
    """Runs cases on a device in Python, each on a new one, one case after the other."""

    parallel = False
    machine: str | None = None

    def __init__(self, device: type[Device], *, host: str, link: str, host_keys: Mapping[str, str | int]) -> None:
        """Raises ValueError for a device that cannot be measured."""
        for name in ("bench_read", "bench_write"):
            if not inspect.iscoroutinefunction(getattr(device, name, None)):
                raise ValueError(
                    f"{device.__name__} has no coroutine {name}; write async def {name}(self, cx, address, length)"
                )
        self._device, self._host, self._link = device, host, link
        self._overrides = [f"host.{key}={value}" for key, value in host_keys.items()]
        self._stopped = False
        self._done = 0.0

    def run(self, case: Case) -> Result:
        """Measures a case. Raises ValueError, ExperimentError, RunError."""
        recorder = self.measure(case)
        return Result.of(json.loads(recorder.document(recorder.fraction() >= 1.0)))

    def measure(self, case: Case) -> _core.BenchRecorder:
        """The same, with all that was recorded."""
        if case.interface != "dma" or case.device_offset:
            raise ValueError("a device in Python has neither a command interface nor an offset in its memory")
        device = self._device()
        recorder = _core.BenchRecorder(case.to_json(), CLOCK_HZ, 1)
        begin(cast(Measurable, device), case, recorder)
        made = of_device(device, None, link=self._link, host=self._host, stop=STOP)
        simulation = _core.Simulation(
            "benchmark", text=made.to_toml(), objects=made.objects(), overrides=self._overrides, seed=case.seed
        )
        simulation.prepare(case.to_json())
        done, moved_fs, fraction = self._done, 0, 0.0
        while not self._stopped and recorder.fraction() < 1.0:
            progress = simulation.advance(SLICE)
            if recorder.fraction() > fraction:
                moved_fs, fraction = progress.now_fs, recorder.fraction()
                self._done = done + fraction
            elif progress.done or progress.now_fs - moved_fs > PATIENCE_FS:
                what = f"{type(device).__name__} stopped after {q.percent(fraction)} % of the operations"
                raise RunError(f"{what}: it waits for an event that never comes; check its bench_read and bench_write")
        self._done = done + 1.0
        if recorder.fraction() >= 1.0 and not case.is_latency and recorder.elapsed_ns() == 0:
            what = f"the transfers of {type(device).__name__} take no simulated time, so they have no bandwidth"
            raise ValueError(f"{what}; await the call that moves the data, such as cx.dma_read")
        return recorder

    def remarks(self, _cases: list[Case]) -> list[str]:
        """Nothing."""
        return []

    def stop(self) -> None:
        """Ends all runs soon."""
        self._stopped = True

    def done(self) -> float:
        """The number of cases that are done, with the part of the present one."""
        return self._done


def begin(device: Measurable, case: Case, recorder: _core.BenchRecorder) -> None:
    """Has a device measure a case when it starts, after it has started itself. Raises ValueError."""
    slots = getattr(device, "bench_slots", SLOTS)
    if not isinstance(slots, int) or slots < 1:
        raise ValueError(
            f"bench_slots of {type(device).__name__} is {slots!r}; it must be the number of transfers at once"
        )
    starts = device.start

    async def start(cx: Context) -> None:
        own = starts(cx)
        if inspect.isawaitable(own):
            await own
        if case.is_latency:
            await latencies(device, case, recorder, cx)
            return
        for _ in range(case.at_once or slots):
            cx.spawn(transfers(device, case, recorder, cx))

    device.start = start  # type: ignore[method-assign]


async def latencies(device: Measurable, case: Case, recorder: _core.BenchRecorder, cx: Context) -> None:
    """One operation at a time."""
    for number in itertools.count():
        operation = recorder.next_operation()
        if operation is None:
            return
        write, address = operation
        begun = cx.now_fs
        if write:
            await device.bench_write(cx, address, case.size)
        await device.bench_read(cx, address, case.size)
        if number >= recorder.warmup():
            recorder.latency(begun, cx.now_fs)
        await cx.sleep(PAUSE)


async def transfers(device: Measurable, case: Case, recorder: _core.BenchRecorder, cx: Context) -> None:
    """One slot's transfers."""
    while (operation := recorder.next_operation()) is not None:
        write, address = operation
        await (device.bench_write if write else device.bench_read)(cx, address, case.size)
        recorder.transfer(cx.now_fs)


def load(name: str) -> type[Device]:
    """The class that `file.py:Class` names. Raises ValueError."""
    path, _, called = name.rpartition(":")
    try:
        found = find(path, called)
    except LoadError as error:
        raise ValueError(f"{path}: {error}") from None
    if not (isinstance(found, type) and issubclass(found, Device)):
        raise ValueError(f"{path}: {called} is not a device; write class {called}(tlplab.Device)")
    return found
