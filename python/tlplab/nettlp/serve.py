"""Devices that are served: the common part of `tl.serve` and `tlplab device`, and the place behind a NetTLP adapter.

tl.serve(Copier(), tl.NetTLP(local="127.0.0.1", adapter="127.0.0.2"))
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import click

from tlplab import _core
from tlplab.device import Device, DeviceParty
from tlplab.loader import carry
from tlplab.nettlp.end import ADAPTER_ADDRESS, DEVICE_ADDRESS, LIMITS, TAGS, End, bdf, check_remote

# Between two looks at what is served.
SLICE_SECONDS = 0.5
MTU = 1500
Server = TypeVar("Server", _core.Server, _core.VfioServer)
Server_co = TypeVar("Server_co", _core.Server, _core.VfioServer, covariant=True)


class Place(Protocol[Server_co]):
    """A place for a device: `NetTLP`, `VfioUser`."""

    def start(self, party: DeviceParty) -> Server_co:
        """Serves it there. Raises `RunError`, and ValueError for impossible places."""


@dataclass(frozen=True)
class Site:
    """The place of a device, as `tlplab._core` takes it."""

    end: End
    host: str | None = None
    window: int | None = None


@dataclass(frozen=True)
class Builtin:
    """A built-in device, as `tlplab._core` takes it."""

    name: str
    lanes: int = 1
    bytes: int = 256 << 20
    delay_ns: int = 0
    frames: tuple[int, int] | None = None
    tap: str | None = None
    mtu: int = MTU


@dataclass(frozen=True)
class NetTLP:
    """An adapter behind which a device is served: the local address, the adapter's address, and values that replace its answers.

    The adapter reports the function's ID (`requester`, as in `"1b:00.0"`), the start of its window (`window`), and
    the target of interrupts; with `host`, these requests go to that address instead. `retries` repeats
    reads without a completion, where they have no side effects. `ecrc` sends digests and accepts only completions with
    digests; `acknowledge` delivers all TLPs reliably: both are for tlplab's own adapter.
    """

    local: str = DEVICE_ADDRESS
    adapter: str = ADAPTER_ADDRESS
    requester: str | None = None
    window: int | None = None
    host: str | None = None
    transport: str = "udp"
    interface: str | None = None
    mps: int = 256
    mrrs: int = 512
    timeout_ns: int = 50_000_000
    retries: int = 0
    spin: bool = False
    ecrc: bool = False
    acknowledge: bool = False
    allow_remote: bool = False

    def start(self, party: DeviceParty) -> _core.Server:
        """Serves a device there. Raises `RunError`, and ValueError for impossible places."""
        return _core.Server.python(self.site(), party)

    def site(self) -> Site:
        """For the core. Raises ValueError for impossible places."""
        if self.mps not in LIMITS or self.mrrs not in LIMITS:
            raise ValueError(f"mps = {self.mps} and mrrs = {self.mrrs} must be powers of two from 128 to 4096")
        try:
            check_remote(self.local, self.adapter, self.host or self.adapter, allowed=self.allow_remote)
        except click.UsageError as error:
            raise ValueError(error.message.replace("--allow-remote", "allow_remote=True")) from None
        requester = None if self.requester is None else bdf(self.requester)
        end = End(
            local=self.local, adapter=self.adapter, requester=requester, transport=self.transport,
            interface=self.interface, first_tag=0, last_tag=TAGS - 1, mps=self.mps, mrrs=self.mrrs,
            timeout_ns=self.timeout_ns, retries=self.retries, spin=self.spin,
            ecrc=self.ecrc, acknowledge=self.acknowledge,
        )  # fmt: skip
        return Site(end, self.host, self.window)


def serve(
    device: Device,
    where: Place[Server],
    *,
    seconds: float | None = None,
    ready: Callable[[Server], Any] | None = None,
) -> dict[str, int]:
    """Serves `device` until Ctrl-C, or for `seconds`. Returns the counters.

    `ready` is called once the device is reachable. Raises `RunError` if it is not, and when the device raises (the
    exception is its `__cause__`); `ValueError` for an invalid place.
    """
    return watch(where.start(carry(device)), seconds=seconds, ready=ready)


def watch(
    server: Server,
    *,
    seconds: float | None,
    ready: Callable[[Server], Any] | None = None,
    tick: Callable[[Server], Any] | None = None,
) -> dict[str, int]:
    """Waits until `server` is to end, or cannot go on; `tick` is called now and then. Its counters."""
    until = None if seconds is None else time.monotonic() + seconds
    try:
        if ready is not None:
            ready(server)
        while until is None or time.monotonic() < until:
            left = SLICE_SECONDS if until is None else min(SLICE_SECONDS, max(0.0, until - time.monotonic()))
            server.run(left)
            if tick is not None:
                tick(server)
    finally:
        server.end()
    return dict(server.counters())
