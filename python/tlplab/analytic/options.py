"""Options of `tlplab model`: quantities with units, a link and how transfers are cut on it, where results go."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from tlplab import _core
from tlplab.sizes import sizes

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Unit:
    """Reads quantities with units from the command line."""

    name: str
    read: Callable[[str], float]

    def __call__(self, _context: click.Context, parameter: click.Parameter, given: str | None) -> float | None:
        """As click calls it."""
        if given is None:
            return None
        try:
            return self.read(given)
        except ValueError as error:
            raise click.BadParameter(str(error), param=parameter) from None


SIZE = Unit("SIZE", _core.size)
RATE = Unit("RATE", _core.rate)
FLITS_ONLY = {generation for generation, _, flits in _core.generations() if flits}
TIME_NS = Unit("TIME", lambda text: _core.duration_fs(text) / 1e6)


def sizes_of(_context: click.Context, parameter: click.Parameter, given: Sequence[str]) -> list[int]:
    """As `sizes` reads them, each possibly several times, in order."""
    try:
        return [size for text in given for size in sizes(text)]
    except ValueError as error:
        raise click.BadParameter(str(error), param=parameter) from None


def link_of(_context: click.Context, parameter: click.Parameter, given: str) -> tuple[int, int, bool]:
    """`gen3 x8`, `gen5 x16 flit`: generation, lanes, flit mode; from gen6 on links are in flit mode, whether it is said or not."""
    match = re.fullmatch(r"\s*gen(\d{1,2})\s+x(\d{1,3})(\s+flit)?\s*", given)
    if match is None:
        raise click.BadParameter(f'{given!r} is not a link such as "gen4 x16"', param=parameter)
    generation = int(match[1])
    return generation, int(match[2]), bool(match[3]) or generation in FLITS_ONLY


def connection_options(command: Command) -> Command:
    """A link and how transfers are cut on it."""
    for decorate in reversed(
        (
            click.option("--link", metavar="LINK", default="gen3 x8", show_default=True, callback=link_of, help="Generation and lanes, with flit for flit mode: gen5 x16 flit. gen6 and gen7 are always in flit mode."),
            click.option("--mps", metavar="SIZE", default="256B", show_default=True, callback=SIZE, help="Maximum payload size."),
            click.option("--mrrs", metavar="SIZE", default="512B", show_default=True, callback=SIZE, help="Maximum read request size."),
            click.option("--rcb", metavar="SIZE", default="64B", show_default=True, callback=SIZE, help="Read completion boundary."),
            click.option("--address-bits", type=click.Choice(["64", "32"]), default="64", show_default=True, help="Bits of an address: 32 for memory below 4 GiB."),
            click.option("--ecrc", is_flag=True, help="TLPs have a digest (ECRC)."),
            click.option("--offset", metavar="SIZE", default="0B", show_default=True, callback=SIZE, help="Offset of a transfer's first byte in its 4 KiB page."),
            click.option("--requests", type=click.Choice(["aligned", "packed"]), default="aligned", show_default=True, help="Requests are cut at multiples of MPS and MRRS, or when full."),
            click.option("--completions", type=click.Choice(["max", "rcb"]), default="max", show_default=True, help="Completions are as large as possible, or cut at every boundary."),
            click.option("--compat", metavar="NAME", multiple=True, help="Reproduce mistakes of the public model: pcie-model for all, or one by its name (studies/pcie_bench/README.md). May be given again."),
        )
    ):  # fmt: skip
        command = decorate(command)
    return command


def output_options(command: Command) -> Command:
    """Add the options for output: `--json`, `-o`, `--plot` and `--quiet`."""
    for decorate in reversed(
        (
            click.option("--json", "json_file", metavar="FILE|-", help="Write all rows as JSON; - is the standard output."),
            click.option("-o", "output", metavar="FILE", help="Write all rows as CSV."),
            click.option("--plot", metavar="FILE", help="Draw them: FILE.png, .svg or .pdf."),
            click.option("--quiet", is_flag=True, help="No table."),
        )
    ):  # fmt: skip
        command = decorate(command)
    return command


def connection(given: dict[str, Any]) -> dict[str, Any]:
    """The options of `connection_options` as `tlplab.model` takes them; they are taken out of `given`."""
    generation, width, flit = given.pop("link")
    names = ("mps", "mrrs", "rcb", "ecrc", "offset", "requests", "completions", "compat")
    taken = {name: given.pop(name) for name in names}
    return {
        "generation": generation,
        "width": width,
        "flit": flit,
        "address_bits": int(given.pop("address_bits")),
        **taken,
    }
