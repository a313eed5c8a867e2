"""The devices of an ordinary guest: single ones, as its command line names them, or those of an experiment, with the fabric between."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from itertools import count
from pathlib import Path
from typing import TypeVar

import click

from tlplab import _core
from tlplab.guest.machine import Serving
from tlplab.guest.together import of_machine
from tlplab.loader import LoadError, load_device, parameter, told
from tlplab.nettlp.end import ADAPTER_ADDRESS, DEVICE_ADDRESS, check_remote
from tlplab.outputs import check_file

NVME_BYTES = "64MiB"
# Of the published card's BAR 4.
WINDOW = "256MiB"


@dataclass(frozen=True)
class DeviceOfGuest:
    """A device, and how it is served on a Unix socket."""

    name: str
    start: Callable[[str, int], _core.VfioServer | _core.CardServer]
    """Serves it at a path, as the function that the guest calls by this bus, device and function number. Raises `click.UsageError`, `RunError`."""


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
        servers: dict[str, _core.VfioServer | _core.CardServer] = {}
        try:
            # Firmware gives the ports their buses in their order.
            ids = [number << 8 for number in range(1, len(sockets) + 1)]
            for name, device, socket, function in zip(names(self.devices), self.devices, sockets, ids, strict=True):
                servers[name] = device.start(str(socket), function)
            for function, file, (name, server) in zip(ids, self.captures(), servers.items(), strict=True):
                if file is not None:
                    server.capture(file, function, name)
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
    if name == "nettlp":
        return nettlp_card(text, parameters)
    if name.startswith("lib:"):
        path = name.removeprefix("lib:")
        texts = {key: told(value) for key, value in parameters.items()}
        return DeviceOfGuest(
            Path(path).stem, lambda socket, _: started(text, lambda: _core.VfioServer.library(socket, path, texts))
        )
    if ":" in name:
        path, _, wanted = name.rpartition(":")
        try:
            party = load_device(path, wanted, json.dumps(parameters))
        except LoadError as error:
            raise click.UsageError(f"{path}: {error}") from error
        return DeviceOfGuest(wanted, lambda socket, _: _core.VfioServer.python(socket, party))
    raise click.UsageError(
        f"there is no device {name!r}; there are nvme, nettlp, FILE.py:CLASS, lib:FILE.so, and experiments (EXPERIMENT.toml)"
    )


def nvme(text: str, parameters: Mapping[str, object]) -> DeviceOfGuest:
    """A drive, of `size` bytes."""
    refuse_unknown(text, parameters, {"size"}, "size, as in nvme,size=1GiB")
    size = str(parameters.get("size", NVME_BYTES))
    return DeviceOfGuest("nvme", lambda path, _: started(text, lambda: _core.VfioServer.nvme(path, _core.size(size))))


def nettlp_card(text: str, parameters: Mapping[str, object]) -> DeviceOfGuest:
    """The NetTLP card at the address `local`, whose device is at `peer`."""
    known = {"local", "peer", "window", "datagrams", "remote"}
    refuse_unknown(text, parameters, known, "local, peer, window, datagrams and remote, as in nettlp,peer=127.0.0.1")
    given = {key: str(value) for key, value in parameters.items()}
    local, peer = given.get("local", ADAPTER_ADDRESS), given.get("peer", DEVICE_ADDRESS)
    try:
        numbers = int(IPv4Address(local)), int(IPv4Address(peer))
    except ValueError as error:
        raise click.UsageError(f"{text}: {error}") from None
    check_remote(local, peer, allowed=bool(parameters.get("remote")))
    window = given.get("window", WINDOW)
    if file := given.get("datagrams"):
        check_file("datagrams", Path(file))
    return DeviceOfGuest(
        "nettlp",
        lambda path, function: started(
            text, lambda: _core.CardServer(path, *numbers, function, _core.size(window), given.get("datagrams"))
        ),
    )


def refuse_unknown(text: str, parameters: Mapping[str, object], known: Set[str], has: str) -> None:
    """Raises `click.UsageError` for a parameter that a device does not have."""
    if unknown := sorted(parameters.keys() - known):
        name = text.partition(",")[0]
        raise click.UsageError(f"{text}: {name} has no {unknown[0]}; it has {has}")


Started = TypeVar("Started")


def started(text: str, start: Callable[[], Started]) -> Started:
    """What `start` starts. Raises `click.UsageError` for parameters that cannot be."""
    try:
        return start()
    except ValueError as error:
        raise click.UsageError(f"{text}: {error}") from error
