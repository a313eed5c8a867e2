"""One device and its driver on a host, without an experiment file.

tl.simulate(Copier(), driver).report("copier.html")
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any

from tlplab import _core
from tlplab.device import Device
from tlplab.session import Run, succeeded

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
) -> Run:
    """Puts `device` under a root port and runs until `driver` returns, or for the time `stop`.

    `overrides` are `"key=value"` strings as the command line's `--set` takes them; the device is called `device` there.
    Raises `ExperimentError` for an invalid `link`, `host` or `stop`, and `RunError` when the device or the driver
    raises (the exception is its `__cause__`), or the driver waits for an event that never comes.
    """
    if driver is None and stop is None:
        raise ValueError('without a driver the run has no end; give a driver, or stop="200us"')
    text = experiment_text(type(device).__name__, link=link, host=host, stop=stop, driver=driver is not None)
    simulation = _core.Simulation(
        "simulate.toml",
        text=text,
        objects={NAME: (device, driver)},
        overrides=list(overrides),
        seed=seed,
        trace=None if trace is None else os.fspath(trace),
        pcap=None if pcap is None else os.fspath(pcap),
    )
    return Run(succeeded(simulation))


def experiment_text(name: str, *, link: str, host: str, stop: str | None, driver: bool) -> str:
    """The experiment that `simulate` runs; its Python files are never read, the objects take their place."""
    quoted = {key: json.dumps(value) for key, value in {"link": link, "host": host, "stop": stop}.items()}
    return "\n".join(
        [
            f"title = {json.dumps(f'{name}, simulated')}",
            f"host = {quoted['host']}",
            *([f"stop = {quoted['stop']}"] if stop is not None else []),
            f"[device.{NAME}]",
            'under = "host.rp0"',
            f"link = {quoted['link']}",
            f'model = "simulate.py:{name}"',
            *(['driver = "simulate.py:driver"'] if driver else []),
        ]
    )
