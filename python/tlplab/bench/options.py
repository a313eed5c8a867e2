"""Options of `tlplab bench`: the case, the target, its circumstances, and the files of results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from tlplab.bench import plots
from tlplab.bench.case import CACHES, INTERFACES, NODES, PATTERNS
from tlplab.bench.running import DEVICE, HOST, IOMMU, LINK, TARGETS
from tlplab.bench.sweep import choices
from tlplab.options import complete_listed
from tlplab.sizes import counts, sizes

Command = TypeVar("Command", bound=Callable[..., Any])
Value = TypeVar("Value")


def read_by(read: Callable[[str], Value]) -> Callable[[click.Context, click.Parameter, str], Value]:
    """An option that `read` understands, whose ValueErrors are the user's."""

    def callback(_context: click.Context, parameter: click.Parameter, given: str) -> Value:
        try:
            return read(given)
        except ValueError as error:
            raise click.BadParameter(str(error), param=parameter) from None

    return callback


def words_of(known: dict[str, str] | tuple[str, ...]) -> Any:
    """As `read_by`, of words with commas between."""
    return read_by(lambda text: choices(text, list(known)))


def count_of(text: str | None) -> int | str | None:
    """A number, or `paper`."""
    if text is None or text == "paper":
        return text
    if not text.isdigit() or int(text) == 0:
        raise ValueError(f"{text!r} is not a number of operations, nor paper")
    return int(text)


def counts_of(text: str | None) -> list[int | None]:
    """Numbers; that none is given is one value, too."""
    return [None] if text is None else [*counts(text)]


def sizes_option(name: str, default: str, text: str) -> Any:
    """An option that takes sizes."""
    return click.option(name, metavar="SIZES", default=default, show_default=True, callback=read_by(sizes), help=text)


def words_option(name: str, default: str, known: dict[str, str] | tuple[str, ...], text: str) -> Any:
    """An option that takes words with commas between."""
    return click.option(
        name, metavar="WORDS", default=default, show_default=True, callback=words_of(known),
        help=f"{text}: {', '.join(known)}.",
    )  # fmt: skip


def all_of(*options: Any) -> Callable[[Command], Command]:
    """Options, in the order in which the help shows them."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


target_options = all_of(
    click.option("--on", "target", metavar="TARGET", default="simulator", show_default=True, help=f"Target: {', '.join(TARGETS)} (closed forms), FILE.py:CLASS (a device in Python), or cuda (this machine, measured by its GPU; cuda:1 is the second)."),
    click.option("--host", metavar="HOST", default=HOST, show_default=True, shell_complete=complete_listed("hosts"), help="A host profile (tlplab list hosts), or FILE.toml."),
    click.option("--device", metavar="DEVICE", shell_complete=complete_listed("bench-devices"), help=f"A benchmark device (tlplab list bench-devices), or FILE.toml.  [default: {DEVICE}]"),
    click.option("--link", metavar="LINK", default=LINK, show_default=True, help="Generation and lanes; gen6 and gen7 in flit mode: 'gen6 x16 flit'."),
    click.option("--iommu", type=click.Choice(list(IOMMU)), help="Replaces the setting of the host's profile: off, on (superpages), nosp (pages of 4 KiB)."),
)  # fmt: skip

case_options = all_of(
    sizes_option("--size", "64B", "Bytes of a transfer."),
    sizes_option("--window", "8KiB", "Bytes of the buffer in host memory."),
    sizes_option("--offset", "0B", "First byte of a transfer in its unit of the buffer; a unit is a whole number of cache lines."),
    sizes_option("--device-offset", "0B", "First byte of a transfer in the device's memory."),
    words_option("--pattern", "sequential", PATTERNS, "Order of addresses"),
    words_option("--cache", "host-warm", CACHES, "Contents of the host's cache"),
    words_option("--node", "local", NODES, "NUMA node of the buffer"),
    click.option("--at-once", metavar="NUMBERS", callback=read_by(counts_of), help="Transfers under way in a bandwidth test, as in 1..256/x2; by default as many as the device supports."),
    click.option("--interface", metavar="WORD", type=click.Choice([*INTERFACES, "cmd"]), default="dma", show_default=True, help="dma, or command (cmd) for latencies of small transfers."),
    click.option("--count", metavar="N", callback=read_by(count_of), help="Number of operations; paper: that of the paper (takes minutes). By default as many as give a steady figure."),
    click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=1, show_default=True, metavar="N", help="Seed of random addresses and of the host's random times."),
    click.option("--threads", type=click.IntRange(1, 256), metavar="N", help="Cases at once; by default one per processor. N never changes a result."),
)  # fmt: skip

output_options = all_of(
    click.option("--json", "json_file", metavar="FILE|-", help="Write all results; - is the standard output."),
    click.option("-o", "--csv", "output", metavar="FILE|-", help="Write rows in the columns of the published data sets."),
    click.option("--cdf", "cdf_file", metavar="FILE|-", help="Write the distributions of latencies, in the columns of the published data sets."),
    click.option("--plot", metavar="FILE", help="Draw the results: FILE.png, .svg or .pdf."),
    click.option("--plot-kind", type=click.Choice(plots.KINDS), help="Kind of picture: by default a curve over the swept option; for one case its distribution or time series."),
    click.option("--against", metavar="DATA.csv", type=click.Path(exists=True, dir_okay=False), help="Compare with a file of a data set, in table and plot: its rows with the same settings. DATA_cdf.csv for distributions."),
)  # fmt: skip
