"""The place of an end of NetTLP: the shared options, and their meaning."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from tlplab.analytic.options import SIZE

Command = TypeVar("Command", bound=Callable[..., Any])
# What `click.option` gives.
Decorator = Callable[[Any], Any]

DEVICE_ADDRESS = "127.0.0.1"
ADAPTER_ADDRESS = "127.0.0.2"
TAGS = 256
DEVICES = 32
# Seconds.
DAY = 86_400
# Bytes, of MPS and MRRS: powers of two.
LIMITS = (128, 256, 512, 1024, 2048, 4096)
WARNING = (
    "NetTLP has no authentication: any host that can send datagrams between these addresses can read and write the memory "
    "behind the adapter. Use it only on an isolated network."
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
    """The number of times that a read without an answer is issued again."""
    spin: bool = False
    """Ask for datagrams again and again instead of sleeping."""
    ecrc: bool = False
    """Digests behind requests, and none but answers with digests."""
    acknowledge: bool = False
    """An acknowledged link, as tlplab's own adapter gives it."""


class Quantity(click.FloatRange):
    """A plain number of a unit."""

    def __init__(self, unit: str, most: float, *, least: float = 0.0, above: bool = False) -> None:
        super().__init__(min=least, max=most, min_open=above)
        self.unit = unit

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number; fails with click's sentence where it is out of range."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if math.isnan(number):
            self.fail(f"{value!r} is not a number of {self.unit}, as in 20.", param, ctx)
        return float(super().convert(number, param, ctx))


SECONDS = Quantity("seconds", DAY, above=True)
# How long a request may take.
TIME_LIMIT = Quantity("milliseconds", 3.6e6, least=0.001)


def address_of(_context: click.Context, parameter: click.Parameter, given: str | None) -> str | None:
    """An IPv4 address."""
    if given is None:
        return None
    try:
        return str(ipaddress.IPv4Address(given))
    except ValueError:
        raise click.BadParameter(f"{given!r} is not an IPv4 address such as 127.0.0.1", param=parameter) from None


def bdf(text: str) -> int:
    """`1b:02.1`: bus, device and function; `1b:11`, as the published programs have it: the bus, and both others in one byte. Raises ValueError."""
    match = re.fullmatch(r"([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})(?:\.([0-7]))?", text)
    if match is not None:
        bus, second, function = int(match[1], 16), int(match[2], 16), match[3]
        if function is None:
            return bus << 8 | second
        if second < DEVICES:
            return bus << 8 | second << 3 | int(function)
    raise ValueError(f"{text!r} is not bus:device.function such as 1b:00.0")


def bdf_of(_context: click.Context, parameter: click.Parameter, given: str | None) -> int | None:
    """An ID, as `bdf` reads it."""
    try:
        return None if given is None else bdf(given)
    except ValueError as error:
        raise click.BadParameter(str(error), param=parameter) from None


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
    size = int(given) if given.isdecimal() else int(SIZE(context, parameter, given) or 0)
    if size >= 1 << 64:
        raise click.BadParameter(f"{given} exceeds an address space of 64 bits", param=parameter)
    return size


def limit_of(context: click.Context, parameter: click.Parameter, given: str) -> int:
    """MPS or MRRS."""
    size = size_of(context, parameter, given)
    if size not in LIMITS:
        raise click.BadParameter(f"{given!r} is not a power of two from 128B to 4KiB", param=parameter)
    return size


ALLOW_REMOTE = click.option("--allow-remote", is_flag=True, help="Allow addresses outside of this machine. NetTLP has no authentication.")  # fmt: skip
ADDRESSES = (
    click.option("-l", "--local", metavar="IP", default=DEVICE_ADDRESS, show_default=True, callback=address_of, help="The address of this end."),
    click.option("-r", "--adapter", metavar="IP", default=ADAPTER_ADDRESS, show_default=True, callback=address_of, help="The adapter's address."),
    ALLOW_REMOTE,
)  # fmt: skip
NETWORK = (
    click.option("--transport", type=click.Choice(["udp", "packet", "xdp"]), default="udp", show_default=True, help="UDP sockets, or packet or XDP sockets, which need root and are faster with many requests under way."),
    click.option("--interface", metavar="IF", help="Interface of packet or XDP sockets; that of --local by default."),
    click.option("--spin", is_flag=True, help="Poll instead of sleeping: faster, but uses a whole processor."),
)  # fmt: skip
PATIENCE = (
    click.option("--timeout", metavar="MS", type=TIME_LIMIT, default=50.0, show_default=True, help="Time limit of a request, in milliseconds."),
    click.option("--retry", metavar="N", type=click.IntRange(0, 255), default=0, show_default=True, help="Send a read without a completion again, at most N times; dma write also writes again data that read back differently. Only where reads have no side effects."),
    click.option("--ecrc", is_flag=True, help="Send digests (ECRC) and accept only completions with digests, so that bit errors on the way are detected. For tlplab adapter; the card sends no digests."),
)  # fmt: skip
ACKNOWLEDGE = click.option("--acknowledge", is_flag=True, help="Deliver all TLPs reliably and in order, by acknowledgements and retransmission with a timeout that follows the round trip. Only tlplab adapter supports it.")  # fmt: skip
REQUESTER = click.option("-b", "--requester", metavar="BB:DD.F", callback=bdf_of, help="Requester ID, as in 1b:00.0; read from the adapter by default.")  # fmt: skip


def mps_option(*names: str) -> Decorator:
    """Maximum payload size, under these names."""
    return click.option(*names, metavar="SIZE", default="256B", show_default=True, callback=limit_of, help="Maximum payload size of a write.")  # fmt: skip


def mrrs_option(*names: str) -> Decorator:
    """Maximum read request size, under these names."""
    return click.option(*names, metavar="SIZE", default="512B", show_default=True, callback=limit_of, help="Maximum read request size.")  # fmt: skip


def instead(name: str, says: str, *, flag: bool) -> Decorator:
    """An option of a published program that has another name here: its use is answered with that name."""

    def refuse(_context: click.Context, _parameter: click.Parameter, given: Any) -> None:
        if given:
            raise click.UsageError(f"{name}: {says}")

    return click.option(name, f"published_{name[1:]}", is_flag=flag, hidden=True, expose_value=False, callback=refuse)


def with_options(command: Command, options: Sequence[Decorator]) -> Command:
    """The command with these options, in this order."""
    for decorate in reversed(options):
        command = decorate(command)
    return command


def address_options(command: Command) -> Command:
    """The addresses of both ends."""
    return with_options(command, ADDRESSES)


def end_options(command: Command) -> Command:
    """Everything that an end point needs to know, but for its tags."""
    return with_options(
        command,
        (*ADDRESSES, REQUESTER, mps_option("--mps"), mrrs_option("--mrrs", "-m"), *NETWORK, *PATIENCE, ACKNOWLEDGE),
    )


def writing_end_options(command: Command) -> Command:
    """The same for commands that write: there the published programs have -m for the payload size."""
    return with_options(
        command,
        (*ADDRESSES, REQUESTER, mps_option("--mps", "-m"), mrrs_option("--mrrs"), *NETWORK, *PATIENCE, ACKNOWLEDGE),
    )


def check_interface(interface: str | None, transport: str) -> None:
    """Refuses an interface for sockets that are bound to addresses."""
    if interface is not None and transport == "udp":
        raise click.UsageError("--interface is for packet and XDP sockets: add --transport packet")


def check_remote(*addresses: str, allowed: bool) -> None:
    """Refuses addresses outside of this machine unless they are allowed, and then warns of the consequences."""
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
    check_interface(interface, transport)
    return End(
        local, adapter, given.pop("requester"), transport, interface, *tags, given.pop("mps"), given.pop("mrrs"),
        round(given.pop("timeout") * 1e6), given.pop("retry"), given.pop("spin"), given.pop("ecrc"),
        given.pop("acknowledge"),
    )  # fmt: skip
