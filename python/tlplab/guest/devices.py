"""The devices of an ordinary guest: single ones, as its command line names them, or those of an experiment, with the fabric between."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv4Address
from itertools import count
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

import click

from tlplab import _core
from tlplab.guest.machine import Serving
from tlplab.guest.together import of_machine
from tlplab.loader import LoadError, load_device, parameter, told
from tlplab.nettlp.end import ADAPTER_ADDRESS, DEVICE_ADDRESS, check_remote
from tlplab.outputs import check_file

NVME_BYTES, TLPDMA_BYTES = "64MiB", "256MiB"
# Bytes of a packet: the least that IP allows, and what large frames of Ethernet carry.
LEAST_MTU, MTU, MOST_MTU = 68, 1500, 9000
# Of the published card's BARs 4 and 2.
WINDOW = "256MiB"


class Server(Protocol):
    """A device that is served, or an adapter with some."""

    def run(self, seconds: float) -> None:
        """Goes on for so long."""

    def end(self) -> None:
        """Ends it and its captures."""


@dataclass(frozen=True)
class DeviceOfGuest:
    """A device, and how it is served on a Unix socket."""

    name: str
    start: Callable[[str], _core.VfioServer]
    """Serves it at a path. Raises `click.UsageError`, `RunError`."""


@dataclass(frozen=True)
class CardOfGuest:
    """A NetTLP card, whose device is at an address; those with one adapter are served together."""

    text: str
    """As the user has named it."""
    local: str
    """The adapter's address."""
    peer: str
    window: int
    """Bytes of BAR 4."""
    table: int
    """Bytes of BAR 2."""
    datagrams: str | None
    """A capture of the frames on the network."""
    name: str = "nettlp"


Place: TypeAlias = "tuple[str, str, int, str | None]"
"""Of a device: its name, its socket, its function's number, its capture."""


@dataclass(frozen=True)
class SingleDevices:
    """Devices of the contract, each served alone, and cards."""

    devices: Sequence[DeviceOfGuest | CardOfGuest]
    pcap: str | None = None
    """The capture file of the TLPs between the guest and its devices: `captures`."""

    def captures(self) -> list[str | None]:
        """The capture of each device: the file itself for a single one, else `run.pcapng` becomes `run.nvme.pcapng`."""
        if len(self.devices) == 1:
            return [self.pcap]
        return [of_machine(self.pcap, name) for name in names(self.devices)]

    @contextmanager
    def served(self, folder: Path) -> Iterator[Serving]:
        """Serves them on sockets in a folder, while they are wanted."""
        sockets = [folder / f"{number}.sock" for number in range(1, len(self.devices) + 1)]
        # Firmware gives the ports their buses in their order.
        ids = [number << 8 for number in range(1, len(sockets) + 1)]
        places: list[Place] = list(zip(names(self.devices), map(str, sockets), ids, self.captures(), strict=True))
        servers: list[Server] = []
        counters: dict[str, Callable[[], list[tuple[str, int]]]] = {}
        cards: dict[str, list[tuple[CardOfGuest, Place]]] = {}
        try:
            for device, place in zip(self.devices, places, strict=True):
                if isinstance(device, CardOfGuest):
                    cards.setdefault(device.local, []).append((device, place))
                    continue
                name, socket, function, capture = place
                server = device.start(socket)
                servers.append(server)
                counters[name] = server.counters
                if capture is not None:
                    server.capture(capture, function, name)
            for local, of_adapter in cards.items():
                adapter = adapter_of(local, of_adapter)
                servers.append(adapter)
                for number, (_, (name, _, function, capture)) in enumerate(of_adapter):
                    counters[name] = partial(counters_of_card, adapter, number)
                    if capture is not None:
                        adapter.capture(number, capture, function, name)
            serving = Serving(servers, sockets, lambda: {name: dict(counters[name]()) for name, *_ in places})
            with serving.going_on():
                yield serving
        finally:
            for one in servers:
                one.end()


def adapter_of(local: str, cards: Sequence[tuple[CardOfGuest, Place]]) -> _core.CardServer:
    """The adapter of cards. Raises `click.UsageError`, `RunError`."""
    places = [
        (socket, int(IPv4Address(card.peer)), function, card.window, card.table)
        for card, (_, socket, function, _) in cards
    ]
    datagrams = next((card.datagrams for card, _ in cards if card.datagrams is not None), None)
    text = ", ".join(card.text for card, _ in cards)
    return started(text, lambda: _core.CardServer(int(IPv4Address(local)), places, datagrams))


def counters_of_card(adapter: _core.CardServer, card: int) -> list[tuple[str, int]]:
    """The counters of a card of an adapter."""
    return adapter.counters()[card]


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
    """The lag behind the wall clock at the end and at most, in nanoseconds, and the number of times that it exceeded 1 ms."""

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


def names(devices: Sequence[DeviceOfGuest | CardOfGuest]) -> list[str]:
    """A name for each device: its own, or, where another has it, too, with the first number that makes it another."""
    own = [device.name for device in devices]
    found: list[str] = []
    for name in own:
        numbered = (f"{name}{number}" for number in count())
        found.append(name if own.count(name) == 1 else next(one for one in numbered if one not in (*own, *found)))
    return found


def device_of(text: str) -> DeviceOfGuest | CardOfGuest:
    """The device that `NAME[,KEY=VALUE…]` describes. Raises `click.UsageError`."""
    name, *pairs = text.split(",")
    try:
        parameters = dict(map(parameter, pairs))
    except ValueError as error:
        raise click.UsageError(f"{text}: {error}") from None
    if name == "nvme":
        return sized(text, parameters, NVME_BYTES, _core.VfioServer.nvme)
    if name == "tlpdma":
        return sized(text, parameters, TLPDMA_BYTES, _core.VfioServer.tlpdma)
    if name == "simple-nic":
        return simple_nic(text, parameters)
    if name == "nettlp":
        return nettlp_card(text, parameters)
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
        f"there is no device {name!r}; give nvme, tlpdma, simple-nic, nettlp, FILE.py:CLASS, lib:FILE.so or EXPERIMENT.toml"
    )


def sized(
    text: str, parameters: Mapping[str, object], usual: str, serve: Callable[[str, int], _core.VfioServer]
) -> DeviceOfGuest:
    """A device with memory, of `size` bytes."""
    name = text.partition(",")[0]
    refuse_unknown(text, parameters, {"size"}, f"size, as in {name},size=1GiB")
    size = str(parameters.get("size", usual))
    return DeviceOfGuest(name, lambda path: started(text, lambda: serve(path, _core.size(size))))


def simple_nic(text: str, parameters: Mapping[str, object]) -> DeviceOfGuest:
    """NetTLP's simple NIC with rings, whose port is the TAP interface `tap`, or a loop-back plug."""
    refuse_unknown(text, parameters, {"tap", "mtu"}, "tap and mtu, as in simple-nic,tap=tap0,mtu=1500")
    tap, mtu = parameters.get("tap"), parameters.get("mtu", MTU)
    if not isinstance(mtu, int) or isinstance(mtu, bool) or not LEAST_MTU <= mtu <= MOST_MTU:
        raise click.UsageError(f"{text}: mtu is {mtu}; it must be from {LEAST_MTU} to {MOST_MTU} bytes")
    name = None if tap is None else str(tap)
    return DeviceOfGuest("simple-nic", lambda path: started(text, lambda: _core.VfioServer.simple_nic(path, mtu, name)))


def nettlp_card(text: str, parameters: Mapping[str, object]) -> CardOfGuest:
    """A NetTLP card of the adapter at the address `local`, whose device is at `peer`."""
    known = {"local", "peer", "window", "table", "datagrams", "remote"}
    refuse_unknown(
        text, parameters, known, "local, peer, window, table, datagrams and remote, as in nettlp,peer=127.0.0.1"
    )
    given = {key: str(value) for key, value in parameters.items()}
    local, peer = given.get("local", ADAPTER_ADDRESS), given.get("peer", DEVICE_ADDRESS)
    try:
        IPv4Address(local), IPv4Address(peer)
        window, table = (_core.size(given.get(key, WINDOW)) for key in ("window", "table"))
    except ValueError as error:
        raise click.UsageError(f"{text}: {error}") from None
    check_remote(local, peer, allowed=bool(parameters.get("remote")))
    datagrams = given.get("datagrams")
    if datagrams is not None:
        check_file("datagrams", Path(datagrams))
    return CardOfGuest(text, local, peer, window, table, datagrams)


def refuse_unknown(text: str, parameters: Mapping[str, object], known: Set[str], has: str) -> None:
    """Raises `click.UsageError` for a parameter that a device does not have."""
    if unknown := sorted(parameters.keys() - known):
        name = text.partition(",")[0]
        raise click.UsageError(f"{text}: {name} has no parameter {unknown[0]}; its parameters are {has}")


Started = TypeVar("Started")


def started(text: str, start: Callable[[], Started]) -> Started:
    """Calls `start`. Raises `click.UsageError` for invalid parameters."""
    try:
        return start()
    except ValueError as error:
        raise click.UsageError(f"{text}: {error}") from error
