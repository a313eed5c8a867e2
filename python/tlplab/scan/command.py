"""`tlplab scan`"""

from __future__ import annotations

import contextlib
import gc
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tlplab.outputs import check_outputs, write_text
from tlplab.scan import sysfs
from tlplab.scan.text import NoDumpError

if TYPE_CHECKING:
    from tlplab.scan.scanned import Scan

# No dump is larger: 65536 functions have 4 KiB each.
MOST_BYTES = 1 << 30


@click.command("scan", short_help="Show the PCI Express links of a machine, and limits.")
@click.option(
    "--from",
    "source",
    metavar="FILE|DIR|-",
    help="Read a dump of lspci, or a copy of /sys/bus/pci, instead of this machine.",
)
@click.option("--json", "json_file", metavar="FILE|-", help="Write all findings; - is the standard output.")
@click.option("-o", "output", metavar="FILE.toml|-", help="Write the topology as an experiment that tlplab run takes.")
@click.option("--all", "everything", is_flag=True, help="Also show functions of the root complex without links.")
@click.option("--quiet", is_flag=True, help="No report.")
def scan_command(source: str | None, json_file: str | None, output: str | None, everything: bool, quiet: bool) -> None:
    """Show the PCI Express links of a machine, the limit of each device and the gain of each repair.

    Reads /sys/bus/pci of this machine (more of it as root), or the output of lspci on another machine. No device is written to;
    run the setpci commands of the report yourself. A fact that the source lacks is reported as unknown.

    \b
    Examples:
      sudo tlplab scan
      tlplab scan --from dump.txt --json machine.json
      ssh server sudo lspci -vvv -nn -xxxx | tlplab scan --from -
      tlplab scan --from dump.txt -o machine.toml && tlplab run machine.toml
    """
    check_outputs(
        {"--json": json_file, "-o": output},
        to_stdout={"--json", "-o"},
        inputs={"--from": None if source == "-" else source},
    )
    from tlplab.scan import report, topology

    with without_collector():
        try:
            scan = read(source)
        except NoDumpError as error:
            named = "the standard input" if source == "-" else source or sysfs.HERE
            raise click.UsageError(f"{named}: {error}") from None
        if json_file is not None:
            write_text(json_file, json.dumps(scan.document(), indent=1, ensure_ascii=False) + "\n")
        if output is not None:
            experiment, notes = topology.experiment(scan)
            if "\n[device." not in experiment:
                click.echo(
                    f"{output} would have no device: no function in the source has a link or is on a bus",
                    err=True,
                )
            write_text(output, experiment)
            for note in notes:
                click.echo(f"{'the experiment' if output == '-' else output}: {note}", err=True)
        if not quiet and "-" not in (json_file, output):
            width = shutil.get_terminal_size().columns
            write_text("-", "\n".join(report.lines(scan, width, everything=everything)) + "\n")


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Many objects are made and none dies: to look for cycles again and again, and at the end, would take as long as to read."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if on:
            gc.enable()


def read(source: str | None) -> Scan:
    """The machine that is meant. Raises `NoDumpError`, OSError."""
    from tlplab.scan import scanned

    if source is None:
        return scanned.from_sysfs()
    if source == "-":
        return scanned.from_text("the standard input", scanned.decoded(sys.stdin.buffer.read(MOST_BYTES)))
    path = Path(source)
    if path.is_dir():
        return scanned.from_sysfs(path)
    with path.open("rb") as file:
        return scanned.from_text(source, scanned.decoded(file.read(MOST_BYTES)))
