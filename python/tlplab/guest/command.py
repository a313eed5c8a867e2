"""`tlplab guest`: an unmodified Linux as the software of an experiment's host."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from tlplab import outline
from tlplab import quantities as q
from tlplab.errors import INTERRUPTED, RunError
from tlplab.guest import kernel
from tlplab.guest.initramfs import SCRIPT
from tlplab.guest.running import Ended, run
from tlplab.outputs import check_outputs, write_results
from tlplab.progress import Line

SHEBANG = b"#!"
# In femtoseconds.
MICROSECOND = 10**9


@click.group("guest")
def guest_group() -> None:
    """Boot an unmodified Linux on an experiment's fabric.

    \b
    Examples:
      tlplab guest uml experiments/linux/nvme.toml
      tlplab guest uml experiments/quickstart.toml --run 'lspci -nn'
      tlplab guest uml experiments/linux/nvme.toml --shell
    """


@guest_group.command("uml")
@click.argument("experiment", metavar="EXPERIMENT.toml")
@click.option(
    "--run", "script", metavar="SCRIPT", help="Run SCRIPT, a file or a command line, instead of the experiment's."
)
@click.option("--shell", is_flag=True, help="Give a shell on this terminal instead.")
@click.option("--share", metavar="DIR", help="Let the guest read and write DIR, as /share.")
@click.option("--linux", "folder", metavar="DIR", help="The kernel in DIR, instead of what `make linux` built last.")
@click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="Override one key, as in --set switch.sw0.link='gen4 x8'. May be given again.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**64 - 1), metavar="N", help="Seed of the random streams, and the guest's."
)
@click.option("--json", "json_file", metavar="FILE|-", help="Write the result document; - is the standard output.")
@click.option("--report", metavar="FILE.html", help="Write one self-contained page that shows the run.")
@click.option("--trace", metavar="FILE", help="Write a trace that opens in Perfetto (ui.perfetto.dev).")
@click.option("--pcap", metavar="FILE", help="Write a capture of every link for Wireshark (pcapng).")
@click.option("-o", "output", metavar="FILE", help="Write the summary to FILE instead of the terminal.")
@click.option("--quiet", is_flag=True, help="No console, no summary.")
def uml(
    experiment: str, script: str | None, shell: bool, share: str | None, folder: str | None, overrides: Sequence[str],
    seed: int | None, json_file: str | None, report: str | None, trace: str | None, pcap: str | None, output: str | None,
    quiet: bool,
) -> int:  # fmt: skip
    """Boot a user-mode Linux (ARCH=um) in simulated time.

    Its PCI hierarchy is the experiment's: it enumerates it, its drivers probe the devices, and every access travels as TLPs over the
    modelled links. Its clock is simulated time. The work of its processor takes none, unless the experiment says so (guest.cpu).
    Each line of its console begins with the simulated time.

    The exit status is 1 if the guest's script ends with another status than 0. `make linux` builds the kernel.

    \b
    Examples:
      tlplab guest uml experiments/linux/nvme.toml
      tlplab guest uml experiments/linux/nvme.toml --run 'nvme list; dmesg' --pcap out/nvme.pcapng
      tlplab guest uml experiments/quickstart.toml --shell
    """
    check_outputs(
        {"--json": json_file, "--report": report, "--trace": trace, "--pcap": pcap, "-o": output},
        to_stdout={"--json"},
        inputs={"the experiment": experiment},
    )
    if shell and script is not None:
        raise click.UsageError("--run and --shell: give one of them")
    if share is not None:
        check_share(Path(share))
    described = outline.read(experiment, overrides=overrides)["guest"] or outline.Guest(run=None, files=[])
    found = kernel.find(folder)
    files = {Path(file).name: Path(file).read_bytes() for file in described["files"]}
    if len(files) < len(described["files"]) or SCRIPT in files:
        raise click.UsageError(f"guest.files: each needs a name of its own in /tlplab, and {SCRIPT} is the script's")
    if not shell:
        files[SCRIPT] = script_of(script, described["run"])
    silent = quiet or json_file == "-"
    line = Line(quiet=silent or shell)

    def show(time: int, text: str) -> None:
        line.clear()
        if not silent:
            click.echo(f"[{time / MICROSECOND:14,.3f} us] {text}")

    ended = run(
        experiment, found, files, show=show, watch=lambda now: line.show(f"{q.time_fs(now, 3)} simulated"),
        overrides=overrides, seed=seed, share=None if share is None else str(Path(share).resolve()),
        interactive=shell, trace=trace, pcap=pcap,
    )  # fmt: skip
    line.clear()
    write_results(ended.finished, json_file, report, output, quiet=quiet)
    if ended.finished.interrupted:
        click.echo("interrupted: the figures are of the part that ran", err=True)
        return INTERRUPTED
    fail_if_failed(ended, silent=silent)
    return 0


def check_share(folder: Path) -> None:
    """Refuses a folder that cannot be on the kernel's command line. Raises `click.UsageError`."""
    if not folder.is_dir():
        raise click.UsageError(f"--share {folder}: there is no such folder")
    if any(character.isspace() or character in ',"' for character in str(folder.resolve())):
        raise click.UsageError(
            f"--share {folder}: the kernel takes no path with spaces, commas or quotes; give it another name"
        )


def script_of(given: str | None, of_experiment: str | None) -> bytes:
    """The script that the guest runs: the file or the command line that is given, or else the experiment's file."""
    if given is not None and not Path(given).is_file():
        return f"#!/bin/sh\n{given}\n".encode()
    file = given or of_experiment
    if file is None:
        raise click.UsageError(
            "the experiment names no script (guest.run); give one with --run, or a shell with --shell"
        )
    text = Path(file).read_bytes()
    return text if text.startswith(SHEBANG) else b"#!/bin/sh\n" + text


def fail_if_failed(ended: Ended, *, silent: bool) -> None:
    """Raises `RunError` if the guest or its script ended badly, or the run failed."""
    if failed := ended.finished.failures():
        raise RunError("; ".join(failed))
    if ended.status:
        raise RunError(f"the guest's script ended with status {ended.status}")
    if ended.end.startswith("died"):
        shown = "".join(f"\n  {text}" for text in ended.last) if silent else ""
        raise RunError(f"the guest {ended.end}{shown}")
