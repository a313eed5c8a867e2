"""`tlplab guest uml`: an unmodified Linux as the software of an experiment's host."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import click

from tlplab import outline, summary
from tlplab import quantities as q
from tlplab.errors import INTERRUPTED, RunError
from tlplab.guest import kernel
from tlplab.guest.console import last_lines
from tlplab.guest.initramfs import SCRIPT
from tlplab.guest.options import check_share, script_of
from tlplab.guest.running import Ended, run
from tlplab.guest.together import CABLES, document, of_machine, run_together
from tlplab.options import SEEDS, experiment_argument
from tlplab.outputs import check_outputs, write_results, write_text
from tlplab.progress import Line

# In femtoseconds.
MICROSECOND = 10**9


@click.command("uml", short_help="Boot Linux on a fabric, in simulated time.")
@experiment_argument
@click.option(
    "--run", "script", metavar="SCRIPT", help="Run SCRIPT, a file or a command line, instead of the experiment's."
)
@click.option("--shell", is_flag=True, help="Open a shell on this terminal instead.")
@click.option("--share", metavar="DIR", help="Let the guest read and write DIR, as /share.")
@click.option(
    "--linux",
    "folder",
    metavar="DIR",
    help="Use the kernel in DIR, or `debug` or `coverage`, instead of the last build of `make linux`.",
)
@click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="Override one key, as in --set switch.sw0.link='gen4 x8'. May be given again.",
)
@click.option("--seed", type=SEEDS, metavar="N", help="Seed of the random streams, and the guest's.")
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

    The guest enumerates the experiment's PCI hierarchy, its drivers probe the devices, and every access is a TLP over the modelled
    links. Its clock is simulated time. Its processor's work takes no time, unless the experiment sets guest.cpu. Each line of its
    console starts with the simulated time.

    With several machines (machine, cable), all guests boot, connected by their cables. Files have the machine's name before their
    ending, and --pcap also writes a file of the frames on the cables.

    The exit status is 1 if the exit status of the guest's script is not 0. `make linux` builds the kernel.

    \b
    Examples:
      tlplab guest uml experiments/linux/nvme.toml
      tlplab guest uml experiments/linux/nvme.toml --run 'nvme list; dmesg' --pcap out/nvme.pcapng
      tlplab guest uml experiments/quickstart.toml --shell
      tlplab guest uml experiments/linux/two-guests.toml --pcap out/two.pcapng
    """
    check_outputs(
        {"--json": json_file, "--report": report, "--trace": trace, "--pcap": pcap, "-o": output},
        to_stdout={"--json"},
        inputs={"the experiment": experiment},
    )
    if shell and script is not None:
        raise click.UsageError("give either --run or --shell")
    if share is not None:
        share = check_share(share)
    described = outline.read_guests(experiment, overrides=overrides)
    found = kernel.find(folder)
    silent = quiet or json_file == "-"
    line = Line(quiet=silent or shell)
    options: Options = {"overrides": overrides, "seed": seed, "share": share, "trace": trace, "pcap": pcap}
    if described["machines"]:
        if shell:
            raise click.UsageError(
                "--shell: one terminal is not enough for several machines; give --run, or guest.run in the experiment"
            )
        return boot_several(
            experiment, described, script, found, line, options, (json_file, report, output), silent=silent
        )
    assert described["outline"] is not None
    files = files_of(described["outline"]["guest"], script, shell=shell)

    def show(time: int, text: str) -> None:
        line.clear()
        if not silent:
            click.echo(f"[{time / MICROSECOND:14,.3f} µs] {text}")

    ended = run(
        experiment, found, files, show=show, watch=lambda now: line.show(f"{q.time_fs(now, 3)} simulated"),
        interactive=shell, **options,
    )  # fmt: skip
    line.clear()
    write_results(ended.finished, json_file, report, output, quiet=quiet)
    if ended.finished.interrupted:
        click.echo("interrupted: the figures cover the part that ran", err=True)
        return INTERRUPTED
    fail_if_failed(ended, silent=silent)
    return 0


class Options(TypedDict):
    """The options of a boot, except its experiment."""

    overrides: Sequence[str]
    seed: int | None
    share: str | None
    trace: str | None
    pcap: str | None


def files_of(guest: outline.Guest | None, script: str | None, *, shell: bool = False) -> dict[str, bytes]:
    """The guest's files in /tlplab: the experiment's files, and the script unless there is a shell. Raises `click.UsageError`."""
    guest = guest or outline.Guest(run=None, files=[])
    files = {Path(file).name: Path(file).read_bytes() for file in guest["files"]}
    if len(files) < len(guest["files"]) or SCRIPT in files:
        raise click.UsageError(
            f"guest.files: file names in /tlplab must be unique and differ from {SCRIPT}, the name of the script"
        )
    return files if shell else files | {SCRIPT: script_of(script, guest["run"])}


def boot_several(
    experiment: str, described: outline.Guests, script: str | None, found: kernel.Kernel, line: Line, options: Options,
    outputs: tuple[str | None, str | None, str | None], *, silent: bool,
) -> int:  # fmt: skip
    """Boots the guests of several machines; the exit status."""
    json_file, report, output = outputs
    files = {one["name"]: files_of(one["outline"]["guest"], script) for one in described["machines"]}
    per_machine = {"--report": report, "--trace": options["trace"], "--pcap": options["pcap"]}
    for name in [*files, CABLES]:
        check_outputs(
            {option: of_machine(path, name) for option, path in per_machine.items()} | {"--json": json_file},
            to_stdout={"--json"}, inputs={"the experiment": experiment},
        )  # fmt: skip
    if CABLES in files:
        raise click.UsageError(f'a machine cannot have the name "{CABLES}", which the capture of the cables has')
    width = max(map(len, files))

    def show(time: int, machine: str, text: str) -> None:
        line.clear()
        if not silent:
            click.echo(f"[{time / MICROSECOND:14,.3f} µs] {machine:{width}} | {text}")

    ended, frames = run_together(
        experiment, found, files, described["cables"], show=show,
        watch=lambda now: line.show(f"{q.time_fs(now, 3)} simulated"), **options,
    )  # fmt: skip
    line.clear()
    if json_file is not None:
        write_text(json_file, document(ended, described["cables"], frames))
    if output is not None:
        write_text(output, "\n".join(summary.as_text(one.finished.result()) for one in ended.values()))
    for machine, one in ended.items():
        write_results(one.finished, None, of_machine(report, machine), None, quiet=silent or output is not None)
    if not silent and output is None:
        click.echo(
            f"{frames} frames went over {len(described['cables'])} {'cable' if len(described['cables']) == 1 else 'cables'}"
        )
    if any(one.finished.interrupted for one in ended.values()):
        click.echo("interrupted: the figures cover the part that ran", err=True)
        return INTERRUPTED
    for machine, one in ended.items():
        fail_if_failed(one, silent=silent, machine=machine)
    return 0


def fail_if_failed(ended: Ended, *, silent: bool, machine: str | None = None) -> None:
    """Raises `RunError` if the guest or its script ended badly, or the run failed."""
    whose = "" if machine is None else f"{machine}: "
    if failed := ended.finished.failures():
        raise RunError(whose + "; ".join(failed))
    if ended.status:
        shown = last_lines(ended.last, silent=silent)
        raise RunError(f"{whose}the guest's script ended with status {ended.status}{shown}")
    if ended.ending == "died":
        raise RunError(f"{whose}the guest {ended.end}{last_lines(ended.last, silent=silent)}")
