"""Where an end of NetTLP stands: the options that commands share, and what they mean."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from tlplab.model_options import SIZE

Command = TypeVar("Command", bound=Callable[..., Any])

DEVICE_ADDRESS = "127.0.0.1"
ADAPTER_ADDRESS = "127.0.0.2"
TAGS = 256
# Seconds.
DAY = 86_400
# Bytes, of MPS and MRRS: powers of two.
LIMITS = (128, 256, 512, 1024, 2048, 4096)
WARNING = (
    "NetTLP has no authentication: whoever can send datagrams between these addresses reads and writes the memory "
    "behind the adapter. Use it on a network of your own."
)


@dataclass(frozen=True)
class End:
    """A device's end, as `tlplab._core` takes it."""

    local: str = DEVICE_ADDRESS
    adapter: str = ADAPTER_ADDRESS
    requester: int | None = None
    """Bus, device and function as 16 bits; asked of the adapter if None."""
    transport: str = "udp"
    interface: str | None = None
    first_tag: int = 0
    last_tag: int = 15
    mps: int = 256
    mrrs: int = 512
    timeout_ns: int = 50_000_000
    """Time limit of a request."""
    retries: int = 0
    """How often a read that was not answered is issued again."""
    spin: bool = False
    """Ask for datagrams again and again instead of sleeping."""


class Duration(click.FloatRange):
    """A time; `FloatRange` alone takes NaN for a number within."""

    def __init__(self, most: float, *, least: float = 0.0, above: bool = False) -> None:
        super().__init__(min=least, max=most, min_open=above)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number; fails with the sentence of click."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a time.", param, ctx)
        return number


SECONDS = Duration(DAY, above=True)
# Milliseconds that a request may take.
TIME_LIMIT = Duration(3.6e6, least=0.001)


def address_of(_context: click.Context, parameter: click.Parameter, given: str | None) -> str | None:
    """An IPv4 address."""
    if given is None:
        return None
    try:
        return str(ipaddress.IPv4Address(given))
    except ValueError:
        raise click.BadParameter(f"{given!r} is not an IPv4 address such as 127.0.0.1", param=parameter) from None


def bdf_of(_context: click.Context, parameter: click.Parameter, given: str | None) -> int | None:
    """`1b:00.0`, or `1b:00` for function 0."""
    if given is None:
        return None
    match = re.fullmatch(r"([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})(?:\.([0-7]))?", given)
    device = int(match[2], 16) if match else 32
    if match is None or device > 31:
        raise click.BadParameter(f"{given!r} is not bus:device.function such as 1b:00.0", param=parameter)
    return int(match[1], 16) << 8 | device << 3 | int(match[3] or "0")


def number_of(_context: click.Context, parameter: click.Parameter, given: str | None) -> int | None:
    """A number of at most 64 bits: hexadecimal with 0x, or decimal."""
    if given is None:
        return None
    try:
        number = int(given, 0)
    except ValueError:
        number = -1
    if not 0 <= number < 1 << 64:
        raise click.BadParameter(f"{given!r} is not a number such as 0xa0000000", param=parameter)
    return number


def tags_of(_context: click.Context, parameter: click.Parameter, given: str) -> tuple[int, int]:
    """`5`, or `0-15`."""
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", given)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if not 0 <= first <= last < TAGS:
        raise click.BadParameter(f"{given!r} is neither a tag such as 5 nor a range such as 0-15", param=parameter)
    return first, last


def size_of(context: click.Context, parameter: click.Parameter, given: str) -> int:
    """`4KiB`, or bytes without a unit, as the published programs have it."""
    return int(given) if given.isdecimal() else int(SIZE(context, parameter, given) or 0)


def limit_of(context: click.Context, parameter: click.Parameter, given: str) -> int:
    """MPS or MRRS."""
    size = size_of(context, parameter, given)
    if size not in LIMITS:
        raise click.BadParameter(f"{given!r} is not a power of two from 128B to 4KiB", param=parameter)
    return size


def address_options(command: Command) -> Command:
    """The addresses of both ends."""
    for decorate in reversed((
        click.option("-l", "--local", metavar="IP", default=DEVICE_ADDRESS, show_default=True, callback=address_of, help="The address here."),
        click.option("-r", "--adapter", metavar="IP", default=ADAPTER_ADDRESS, show_default=True, callback=address_of, help="The adapter's address."),
        click.option("--allow-remote", is_flag=True, help="Allow addresses outside of this machine. NetTLP has no authentication."),
    )):  # fmt: skip
        command = decorate(command)
    return command


def end_options(command: Command) -> Command:
    """Everything that an end point needs to know, but for its tags."""
    for decorate in reversed((
        address_options,
        click.option("-b", "--requester", metavar="BB:DD.F", callback=bdf_of, help="The ID of the requests; asked of the adapter by default."),
        click.option("--mps", metavar="SIZE", default="256B", show_default=True, callback=limit_of, help="Maximum payload size: of a write."),
        click.option("--mrrs", "-m", metavar="SIZE", default="512B", show_default=True, callback=limit_of, help="Maximum read request size."),
        click.option("--transport", type=click.Choice(["udp", "packet"]), default="udp", show_default=True, help="UDP sockets, or packet sockets, which need root and are faster with many requests under way."),
        click.option("--interface", metavar="IF", help="Where packet sockets listen; the interface of --local by default."),
        click.option("--timeout", metavar="MS", type=TIME_LIMIT, default=50.0, show_default=True, help="Time limit of a request, in milliseconds."),
        click.option("--retry", metavar="N", type=click.IntRange(0, 255), default=0, show_default=True, help="Ask again for what was not answered, at most N times; only where reads have no side effects."),
        click.option("--spin", is_flag=True, help="Do not sleep while waiting: faster, and takes a whole processor."),
    )):  # fmt: skip
        command = decorate(command)
    return command


def check_remote(*addresses: str, allowed: bool) -> None:
    """Refuses addresses outside of this machine unless they are allowed, and then says what that means."""
    remote = [address for address in addresses if not ipaddress.IPv4Address(address).is_loopback]
    if not remote:
        return
    if not allowed:
        raise click.UsageError(f"{remote[0]} is not on the loopback interface; --allow-remote permits it. {WARNING}")
    click.echo(f"Warning: {WARNING}", err=True)


def end_of(given: dict[str, Any], tags: tuple[int, int]) -> End:
    """The end that the options of `end_options` describe; takes them out of `given`."""
    local, adapter, allowed = given.pop("local"), given.pop("adapter"), given.pop("allow_remote")
    check_remote(local, adapter, allowed=allowed)
    transport, interface = given.pop("transport"), given.pop("interface")
    if interface is not None and transport != "packet":
        raise click.UsageError("--interface is for packet sockets: add --transport packet")
    return End(
        local, adapter, given.pop("requester"), transport, interface, *tags, given.pop("mps"), given.pop("mrrs"),
        round(given.pop("timeout") * 1e6), given.pop("retry"), given.pop("spin"),
    )  # fmt: skip
