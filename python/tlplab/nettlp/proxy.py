"""`tlplab proxy`: a bad network between a device and its adapter."""

from __future__ import annotations

import json
import secrets
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

import click

from tlplab import _core
from tlplab import quantities as q
from tlplab.errors import INTERRUPTED
from tlplab.nettlp.adapter import latency_of
from tlplab.nettlp.end import (
    ADAPTER_ADDRESS,
    ALLOW_REMOTE,
    DEVICE_ADDRESS,
    SECONDS,
    Decorator,
    Quantity,
    address_of,
    check_remote,
)
from tlplab.outputs import check_outputs, write_text
from tlplab.sheet import Column, Sheet
from tlplab.summary import console_for

FRONT_ADDRESS = "127.0.0.3"
BACK_ADDRESS = "127.0.0.4"
# How often Ctrl-C is looked for.
SLICE_SECONDS = 0.1
DIRECTIONS = ("to_device", "to_adapter")
# The core counts chances in a million.
PER_CENT = 10_000


@dataclass(frozen=True)
class Plan:
    """The addresses and actions of a proxy, as `tlplab._core` takes them; chances are in a million."""

    device: str
    front: str
    back: str
    adapter: str
    loss: int = 0
    duplicate: int = 0
    reorder: int = 0
    truncate: int = 0
    corrupt: int = 0
    delay_ns: int = 0
    seed: int = 0


class Share(Quantity):
    """A share of the datagrams in per cent: `1`, or `1%`."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number; fails with the sentence of click."""
        return super().convert(value.removesuffix("%") if isinstance(value, str) else value, param, ctx)


def share(name: str, says: str) -> Decorator:
    """An option for a fault of a share of the datagrams."""
    return click.option(name, metavar="PERCENT", type=Share("per cent", 100.0), default=0.0, help=says)


@click.command("proxy", short_help="Emulate a bad network between device and adapter.")
@click.option(
    "-l",
    "--device",
    metavar="IP",
    default=DEVICE_ADDRESS,
    show_default=True,
    callback=address_of,
    help="The device's address.",
)
@click.option(
    "--front",
    metavar="IP",
    default=FRONT_ADDRESS,
    show_default=True,
    callback=address_of,
    help="The proxy's address for the device, in place of the adapter's.",
)
@click.option(
    "--back",
    metavar="IP",
    default=BACK_ADDRESS,
    show_default=True,
    callback=address_of,
    help="The proxy's address for the adapter, in place of the device's.",
)
@click.option(
    "-r",
    "--adapter",
    metavar="IP",
    default=ADAPTER_ADDRESS,
    show_default=True,
    callback=address_of,
    help="The adapter's address.",
)
@ALLOW_REMOTE
@share("--loss", "Datagrams to lose.")
@share("--duplicate", "Datagrams to duplicate.")
@share("--reorder", "Datagrams to delay behind up to eight later ones.")
@share("--truncate", "Datagrams to truncate.")
@share("--corrupt", "Datagrams in which to flip a bit, with a valid checksum.")
@click.option(
    "--delay",
    metavar="TIME",
    default="0ns",
    show_default=True,
    callback=latency_of,
    help="Delay of every datagram, as in 100us.",
)
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(0, 2**64 - 1),
    help="Seed of the faults: with the same seed, the n-th datagram of a direction has the same fault. A new one each time by default.",
)
@click.option("--seconds", metavar="N", type=SECONDS, help="End after N seconds instead of at Ctrl-C.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the counters as JSON at the end.")
@click.option("--quiet", is_flag=True, help="No table.")  # fmt: skip
def proxy_command(
    device: str, front: str, back: str, adapter: str, allow_remote: bool, loss: float, duplicate: float, reorder: float,
    truncate: float, corrupt: float, delay: int, seed: int | None, seconds: float | None, json_file: str | None, quiet: bool,
) -> int:  # fmt: skip
    """Emulate a bad network between a device and its adapter: lose, duplicate, reorder, truncate, damage and delay datagrams.

    Give the device --front as the address of its adapter, and the adapter --back as the address of its device. All ports
    of NetTLP are forwarded, each direction with its own faults, until Ctrl-C; then the counters are shown.

    \b
    Examples:
      tlplab proxy --loss 1% --seconds 1
      tlplab proxy --duplicate 1% --reorder 5% --corrupt 0.1% --delay 100us --seed 7 --json proxy.json
    """
    check_outputs({"--json": json_file}, to_stdout={"--json"}, inputs={})
    check_remote(device, front, back, adapter, allowed=allow_remote)
    if len({device, front, back, adapter}) < 4:
        raise click.UsageError(
            "device, front, back and adapter need four different addresses; this machine has more, such as 127.0.0.5"
        )
    loses, doubles, reorders, cuts, damages = (
        round(percent * PER_CENT) for percent in (loss, duplicate, reorder, truncate, corrupt)
    )
    seed = secrets.randbits(64) if seed is None else seed
    # A femtosecond is a millionth of a nanosecond.
    plan = Plan(device, front, back, adapter, loses, doubles, reorders, cuts, damages, delay // 1_000_000, seed)
    try:
        proxy = _core.Proxy(plan)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    out = console_for(sys.stderr if json_file == "-" else sys.stdout)
    if not quiet:
        out.print(f"between the device {device} (adapter address {front}) and the adapter {adapter} (device address {back}); seed {plan.seed}; Ctrl-C ends", soft_wrap=True)  # fmt: skip
    begun, interrupted = time.monotonic(), False
    try:
        while (left := SLICE_SECONDS if seconds is None else begun + seconds - time.monotonic()) > 0:
            proxy.serve(min(left, SLICE_SECONDS))
    except KeyboardInterrupt:
        interrupted = True
    elapsed = time.monotonic() - begun
    counters = {direction: dict(rows) for direction, rows in zip(DIRECTIONS, proxy.counters(), strict=True)}
    drops = proxy.kernel_drops()
    if json_file is not None:
        document = {"plan": asdict(plan), "seconds": elapsed, **counters, "kernel_drops": drops}
        write_text(json_file, json.dumps(document, indent=2) + "\n")
    if not quiet:
        names = list(counters[DIRECTIONS[0]])
        sheet = Sheet(
            f"In {q.significant(elapsed, 3)} s", [Column("datagrams", name=True, fold=False), *map(Column, names)]
        )
        for direction, row in counters.items():
            sheet.add(direction.replace("_", " the "), *(q.count(row[name]) for name in names))
        sheet.print(out)
        if drops:
            out.print(
                f"{q.count(drops)} more were dropped by the kernel, because they arrived faster than the proxy forwarded them"
            )
    return INTERRUPTED if interrupted else 0
