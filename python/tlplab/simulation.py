"""One device and its driver on a host, without an experiment file.

tl.simulate(Copier(), driver).report("copier.html")
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tlplab.debugger import Debugger
from tlplab.device import Device
from tlplab.experiment import of_device
from tlplab.result import Result
from tlplab.session import simulation_of, succeeded
from tlplab.tlps import said


def simulate(
    device: Device,
    driver: Callable[..., Any] | None = None,
    *,
    link: str = "gen3 x8",
    host: str = "ideal",
    stop: str | None = None,
    overrides: Sequence[str] = (),
    seed: int = 1,
    trace: str | os.PathLike[str] | None = None,
    pcap: str | os.PathLike[str] | None = None,
    stop_at: str | Mapping[str, Any] | None = None,
) -> Result:
    """Puts `device` under a root port and runs until `driver` returns, or for the time `stop`.

    `stop_at` ends the run before: at a time, as in `"12.5us"`, or when the first TLP is sent that fulfils conditions of `Debugger.next_tlp`, as in
    `{"kind": "MWr", "touches": "go"}`; raises `LookupError` if none is. `tl.debug` stops a run and goes on.
    `overrides` are `"key=value"` strings as the command line's `--set` takes them; the device is called `device` there.
    Raises `ExperimentError` for an invalid `link`, `host` or `stop`, and `RunError` when the device or the driver
    raises (the exception is its `__cause__`), or the driver waits for an event that never comes.
    """
    if driver is None and stop is None and stop_at is None:
        raise ValueError('without a driver the run has no end; give one, or stop="200us"')
    if not isinstance(stop_at, (str, Mapping, type(None))):
        raise TypeError(
            f'stop_at: expected a time such as "12.5us" or conditions such as {{"kind": "MWr"}}, not {stop_at!r}'
        )
    experiment = of_device(device, driver, link=link, host=host, stop=stop)
    if stop_at is None:
        simulation = simulation_of(experiment, overrides=overrides, seed=seed, trace=trace, pcap=pcap)
        return Result(succeeded(simulation).text)
    run = Debugger(experiment, overrides=overrides, seed=seed, trace=trace, pcap=pcap)
    if isinstance(stop_at, str):
        run.run_until(stop_at)
    elif run.next_tlp(**stop_at) is None:
        raise LookupError(f"stop_at: no TLP with {said(stop_at)} was sent until the run ended at {run.now_ns:.3f} ns")
    return run.stop()
