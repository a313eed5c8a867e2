"""`tlplab dump`: captures of NetTLP as lines."""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import click

from tlplab import _core
from tlplab.errors import INTERRUPTED
from tlplab.nettlp import capture
from tlplab.outputs import check_outputs, whole_file, write_text
from tlplab.plotting import check_ending, write_figure


def filter_help() -> str:
    """The filter language, as a page of `--help` shows it."""
    lines = []
    for name, text in _core.dump_filters():
        lines += textwrap.wrap(text, 76, initial_indent=f"  {name:<10} ", subsequent_indent=" " * 13)
    return "\n".join(lines)


@click.command("dump", short_help="Show the TLPs of a capture, one per line.", epilog="\b\nFilters:\n" + filter_help())
@click.argument("source", metavar="FILE|INTERFACE")
@click.argument("filters", metavar="[FILTER]...", nargs=-1)
@click.option("-c", "count", type=click.IntRange(1), metavar="N", help="End after N lines.")
@click.option(
    "-t",
    "times",
    count=True,
    help="Times as tcpdump: -t none, -tt epoch, -ttt delta, -tttt date, -ttttt since the first.",
)
@click.option("-v", "verbose", is_flag=True, help="Also show sequence number, time stamp, VLAN and data.")
@click.option("-w", "--pcap", "copy", metavar="FILE", help="Write the frames shown to FILE (pcapng).")
@click.option("--json", "json_file", metavar="FILE|-", help="Write a line of JSON for each frame, or the summary.")
@click.option(
    "--summary", "summed", is_flag=True, help="Show a summary: sizes, tags, latency, splits, malformed frames."
)
@click.option("--plot", metavar="FILE", help="Tags and waiting requests over time, as .png, .svg or .pdf.")
@click.option("--quiet", is_flag=True, help="No lines, no summary on the terminal.")
def dump_command(
    source: str,
    filters: Sequence[str],
    count: int | None,
    times: int,
    verbose: bool,
    copy: str | None,
    json_file: str | None,
    summed: bool,
    plot: str | None,
    quiet: bool,
) -> int:
    """Show the TLPs of a capture, one per line, like the tcpdump of the NetTLP paper.

    FILE is a pcap or pcapng file, such as one of `tlplab run --pcap`; - is the standard input. An INTERFACE is captured
    until Ctrl-C or the number of lines of -c; this needs root. Malformed frames are shown with the reason. All tests of a
    filter must hold; "or", "not" and parentheses combine them, key!=value negates key=value, and a value may be a list:
    tag=3,16-31.

    \b
    Examples:
      tlplab dump capture.pcap
      tlplab dump capture.pcap type=MRd tag=0-15 requester=1b:00
      tlplab dump capture.pcap 'errors or address=0xa0000000+4096' -ttt
      tlplab dump capture.pcap --json -
      tlplab dump eth1 port=0x3000-0x30ff -w out/seen.pcapng
      tlplab dump capture.pcap --summary --plot out/tags.png
    """
    outputs = {"-w": copy, "--json": json_file, "--plot": plot}
    check_outputs(outputs, to_stdout={"--json"}, inputs={"the capture": source})
    if summed or plot is not None:
        if copy is not None or count is not None:
            raise click.UsageError("-w and -c are for lines, and --summary and --plot for a whole file; give one kind")
        if not Path(source).exists() and source in (name for _, name in socket.if_nameindex()):
            raise click.UsageError(
                f"{source} is an interface, which is shown only as lines; write a file first: tlplab dump {source} -w seen.pcapng"
            )
        sum_up(source, filters, json_file, plot, quiet=quiet)
        return 0
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
        interrupted = show(dump, json_file if json_file is not None else "-", quiet=quiet and json_file != "-")
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    live = dump.live
    frames, shown, malformed, others, dropped = dump.finish()
    if (live and not quiet) or interrupted:
        click.echo(
            f"{shown} of {frames} frames shown, {malformed} malformed, {others} other traffic, {dropped} dropped by the kernel",
            err=True,
        )
    return INTERRUPTED if interrupted else 0


def show(dump: _core.Dump, output: str, *, quiet: bool) -> bool:
    """Writes the lines to the standard output, as they come, unless it is to be quiet, or to a file. Gives whether Ctrl-C ended it."""
    with contextlib.ExitStack() as stack:
        file = None if output == "-" else stack.enter_context(whole_file(output))
        try:
            while (lines := dump.step()) is not None:
                if file is not None:
                    file.write(lines.encode())
                elif lines and not quiet:
                    sys.stdout.write(lines)
                    sys.stdout.flush()
        except KeyboardInterrupt:
            return True
    return False


def sum_up(source: str, filters: Sequence[str], json_file: str | None, plot: str | None, *, quiet: bool) -> None:
    """Reads all of a capture, and prints, writes or draws its summary."""
    if plot is not None:
        check_ending("--plot", plot)
    try:
        reader = capture.read(source, filters, points=plot is not None, quiet=False)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    text = reader.summary()
    document = json.loads(text)
    name = Path(source).name
    if plot is not None:
        from tlplab.nettlp import capture_plot  # with numpy, which takes a while

        write_figure(plot, capture_plot.figure(name, document, reader.points().to_numpy()))
    if json_file is not None:
        write_text(json_file, text + "\n")
    if json_file != "-" and not quiet:
        sys.stdout.write(capture.as_text(name, document))
