"""One device and its driver on a host, without an experiment file.

tl.simulate(Copier(), driver).report("copier.html")
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from tlplab.device import Device
from tlplab.experiment import Experiment
from tlplab.result import Result
from tlplab.session import simulation_of, succeeded

NAME = "device"


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
) -> Result:
    """Puts `device` under a root port and runs until `driver` returns, or for the time `stop`.

    `overrides` are `"key=value"` strings as the command line's `--set` takes them; the device is called `device` there.
    Raises `ExperimentError` for an invalid `link`, `host` or `stop`, and `RunError` when the device or the driver
    raises (the exception is its `__cause__`), or the driver waits for an event that never comes.
    """
    if driver is None and stop is None:
        raise ValueError('without a driver the run has no end; give one, or stop="200us"')
    experiment = experiment_of(device, driver, link=link, host=host, stop=stop)
    simulation = simulation_of(experiment, overrides=overrides, seed=seed, trace=trace, pcap=pcap)
    return Result(succeeded(simulation).text)


def experiment_of(
    device: Device, driver: Callable[..., Any] | None, *, link: str, host: str, stop: str | None
) -> Experiment:
    """The experiment that `simulate` runs."""
    experiment = Experiment(title=f"{type(device).__name__}, simulated", host=host)
    if stop is not None:
        experiment.set("stop", stop)
    return experiment.device(NAME, device, driver=driver, under="host.rp0", link=link)
