"""The devices of an ordinary guest: single ones, as its command line names them, or those of an experiment, with the fabric between."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TypeVar

import click

from tlplab import _core
from tlplab.guest.machine import Serving
from tlplab.guest.together import of_machine
from tlplab.loader import LoadError, load_device, parameter, told

NVME_BYTES = "64MiB"


@dataclass(frozen=True)
class DeviceOfGuest:
    """A device, and how it is served on a Unix socket."""

    name: str
    start: Callable[[str], _core.VfioServer]


@dataclass(frozen=True)
class SingleDevices:
    """Devices of the contract, each served by itself."""

    devices: Sequence[DeviceOfGuest]
    pcap: str | None = None
    """Where what passes between the guest and its devices is written down: `captures`."""

    def captures(self) -> list[str | None]:
        """The capture of each device: the file itself for a single one, else `run.pcapng` becomes `run.nvme.pcapng`."""
        if len(self.devices) == 1:
            return [self.pcap]
        return [of_machine(self.pcap, name) for name in names(self.devices)]

    @contextmanager
    def served(self, folder: Path) -> Iterator[Serving]:
        """Serves them on sockets in a folder, while they are wanted."""
        sockets = [folder / f"{number}.sock" for number in range(1, len(self.devices) + 1)]
        servers: dict[str, _core.VfioServer] = {}
        try:
            for name, device, socket in zip(names(self.devices), self.devices, sockets, strict=True):
                servers[name] = device.start(str(socket))
            for number, (file, (name, server)) in enumerate(zip(self.captures(), servers.items(), strict=True), 1):
                if file is not None:
                    # Firmware gives the ports their buses in their order.
                    server.capture(file, number << 8, name)
            serving = Serving(
                list(servers.values()), sockets, lambda: {name: dict(one.counters()) for name, one in servers.items()}
            )
            with serving.going_on():
                yield serving
        finally:
            for server in servers.values():
                server.end()


@dataclass
class FabricDevices:
    """The devices of an experiment, with its fabric between them and the guest."""

    experiment: str
    overrides: Sequence[str] = ()
    seed: int | None = None
    cables: Sequence[tuple[str, str]] = ()
    """Pairs of NICs that a cable joins."""
    trace: str | None = None
    pcap: str | None = None
    result: str = field(default="", init=False)
    """Its result document, once it is over."""
    lag: tuple[float, float, int] = field(default=(0.0, 0.0, 0), init=False)
    """How far it was behind the wall clock at the end and at most, in nanoseconds, and how often more than 1 ms."""

    @contextmanager
    def served(self, folder: Path) -> Iterator[Serving]:
        """Serves them on sockets in a folder, while they are wanted."""
        server = started(
            self.experiment,
            lambda: _core.FabricServer(
                self.experiment, str(folder), overrides=self.overrides, seed=self.seed, cables=self.cables,
                trace=self.trace, pcap=self.pcap,
            ),
        )  # fmt: skip
        devices = len(server.counters())
        sockets = [folder / f"{number}.sock" for number in range(1, devices + 1)]
        serving = Serving([server], sockets, lambda: {name: dict(counters) for name, counters in server.counters()})
        reason = "interrupted"
        try:
            with serving.going_on():
                yield serving
            reason = "guest-off"
        finally:
            self.lag = server.lag()
            self.result = server.finish(reason)


def names(devices: Sequence[DeviceOfGuest]) -> list[str]:
    """A name for each device: its own, or, where another has it, too, with the first number that makes it another."""
    own = [device.name for device in devices]
    found: list[str] = []
    for name in own:
        numbered = (f"{name}{number}" for number in count())
        found.append(name if own.count(name) == 1 else next(one for one in numbered if one not in (*own, *found)))
    return found


def device_of(text: str) -> DeviceOfGuest:
    """The device that `NAME[,KEY=VALUE…]` describes. Raises `click.UsageError`."""
    name, *pairs = text.split(",")
    try:
        parameters = dict(map(parameter, pairs))
    except ValueError as error:
        raise click.UsageError(f"{text}: {error}") from None
    if name == "nvme":
        return nvme(text, parameters)
    if name.startswith("lib:"):
        path = name.removeprefix("lib:")
        texts = {key: told(value) for key, value in parameters.items()}
        return DeviceOfGuest(
            Path(path).stem, lambda socket: started(text, lambda: _core.VfioServer.library(socket, path, texts))
        )
    if ":" in name:
        path, _, wanted = name.rpartition(":")
        try:
            party = load_device(path, wanted, json.dumps(parameters))
        except LoadError as error:
            raise click.UsageError(f"{path}: {error}") from error
        return DeviceOfGuest(wanted, lambda socket: _core.VfioServer.python(socket, party))
    raise click.UsageError(
        f"there is no device {name!r}; there are nvme, FILE.py:CLASS, lib:FILE.so, and experiments (EXPERIMENT.toml)"
    )


def nvme(text: str, parameters: Mapping[str, object]) -> DeviceOfGuest:
    """A drive, of `size` bytes."""
    unknown = sorted(parameters.keys() - {"size"})
    if unknown:
        raise click.UsageError(f"{text}: nvme has no {unknown[0]}; it has size, as in nvme,size=1GiB")
    size = str(parameters.get("size", NVME_BYTES))
    return DeviceOfGuest("nvme", lambda path: started(text, lambda: _core.VfioServer.nvme(path, _core.size(size))))


Started = TypeVar("Started")


def started(text: str, start: Callable[[], Started]) -> Started:
    """What `start` starts. Raises `click.UsageError` for parameters that cannot be."""
    try:
        return start()
    except ValueError as error:
        raise click.UsageError(f"{text}: {error}") from error
