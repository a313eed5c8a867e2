"""`tlplab dump`: captures of NetTLP as lines."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tlplab import _core
from tlplab.outputs import check_outputs

INTERRUPTED = 130


def filter_help() -> str:
    """The filter language, as a page of `--help` shows it."""
    return "\n".join(f"  {name:<10} {text}" for name, text in _core.dump_filters())


@click.command("dump", epilog="\b\nFilters:\n" + filter_help())
@click.argument("source", metavar="FILE|INTERFACE")
@click.argument("filters", metavar="[FILTER]...", nargs=-1)
@click.option("-c", "count", type=click.IntRange(1), metavar="N", help="End after N lines.")
@click.option("-t", "times", count=True, help="Times as tcpdump: -t none, -tt epoch, -ttt delta, -tttt date.")
@click.option("-v", "verbose", is_flag=True, help="Sequence number, time stamp, VLAN and data, too.")
@click.option("-w", "--pcap", "copy", metavar="FILE", help="Write the frames shown to FILE (pcapng).")
@click.option("--json", "json_file", metavar="FILE|-", help="Write a line of JSON for each frame.")
def dump_command(
    source: str,
    filters: Sequence[str],
    count: int | None,
    times: int,
    verbose: bool,
    copy: str | None,
    json_file: str | None,
) -> int:
    """Show the TLPs of a capture, one a line, as the tcpdump of the NetTLP paper does.

    FILE is a pcap or pcapng file, also one that `tlplab run --pcap` wrote; - is the standard input. Malformed frames are
    shown with the reason. Tests of a filter that follow each other must all hold; "or", "not" and parentheses combine
    them, key!=value is the opposite of key=value, and a value may be a list: tag=3,16-31.

    \b
    Examples:
      tlplab dump capture.pcap
      tlplab dump capture.pcap type=MRd tag=0-15 requester=1b:00
      tlplab dump capture.pcap 'errors or address=0xa0000000+4096' -ttt
      tlplab dump capture.pcap --json -
    """
    check_outputs({"-w": copy, "--json": json_file}, to_stdout={"--json"}, inputs={"the capture": source})
    if source != "-" and not Path(source).exists():
        raise click.BadParameter(f"there is neither a file nor an interface {source}", param_hint="FILE|INTERFACE")
    try:
        dump = _core.Dump(
            source,
            filters,
            json=json_file is not None,
            time=times,
            verbose=verbose,
            limit=count,
            copy=copy,
            quiet=False,
        )
        show(dump, json_file if json_file is not None else "-")
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    dump.finish()
    return 0


def show(dump: _core.Dump, output: str) -> None:
    """Writes the lines, as they come to the standard output, or to a file."""
    with contextlib.ExitStack() as stack:
        out = sys.stdout if output == "-" else stack.enter_context(open(output, "w", encoding="utf-8"))
        while (lines := dump.step()) is not None:
            out.write(lines)
            out.flush()
