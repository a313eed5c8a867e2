"""The command line: `tlplab run`, `whatif`, `sweep`, `pareto`, `optimise`, `sensitivity`, `expect`, `diff`, `explain`, `p2p`, `check`, `lspci`, `scan`, `bench`, `reproduce`, `model`, `guest`, `measure`, `validate`, `calibrate`, `list`,
`schema`, and the commands for devices behind a network: `adapter`, `device`, `dma`, `cfg`, `perf`, `proxy`, `dump`, `dissector`, `introspect`.

Exit status: 0 for success, 1 for a run that failed, 2 for bad input, 130 for Ctrl-C, 143 for SIGTERM.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import textwrap
from collections.abc import Callable, Sequence
from importlib import import_module
from shutil import get_terminal_size

import click
from click.shell_completion import get_completion_class

from tlplab import _core, catalog, lspci, outline
from tlplab.ending import SIGNALLED, end_in_order, status_of
from tlplab.errors import BAD_INPUT, FAILED, INTERRUPTED, ExperimentError, RunError
from tlplab.options import SEEDS, experiment_options
from tlplab.outputs import check_outputs, write_results, write_text
from tlplab.progress import Bar
from tlplab.session import finish, judged, succeed

# A file that is no experiment at all would fill the screen.
MISTAKES_SHOWN = 10

# Commands in modules of their own, which take a while to import: each is imported when it is asked for.
ELSEWHERE = {
    "adapter": "tlplab.nettlp.adapter:adapter_command",
    "bench": "tlplab.bench.command:bench_command",
    "calibrate": "tlplab.bench.calibration.command:calibrate",
    "cfg": "tlplab.nettlp.cfg:cfg_group",
    "device": "tlplab.nettlp.device_command:device_group",
    "diff": "tlplab.compare.command:diff_command",
    "dissector": "tlplab.nettlp.dissector:dissector_command",
    "dma": "tlplab.nettlp.dma:dma_group",
    "doctor": "tlplab.doctor:doctor_command",
    "dump": "tlplab.nettlp.dump:dump_command",
    "expect": "tlplab.expect:expect_command",
    "explain": "tlplab.compare.explain:explain_command",
    "guest": "tlplab.guest.command:guest_group",
    "introspect": "tlplab.introspect.command:introspect_group",
    "measure": "tlplab.bench.differential.command:measure_command",
    "model": "tlplab.analytic.command:model_group",
    "optimise": "tlplab.study.optimise_command:optimise_command",
    "p2p": "tlplab.p2p.command:p2p_command",
    "pareto": "tlplab.study.command:pareto_command",
    "perf": "tlplab.nettlp.perf:perf_command",
    "proxy": "tlplab.nettlp.proxy:proxy_command",
    "reproduce": "tlplab.reproduce.command:reproduce_command",
    "scan": "tlplab.scan.command:scan_command",
    "sensitivity": "tlplab.study.sensitivity_command:sensitivity_command",
    "sweep": "tlplab.study.command:sweep_command",
    "torture": "tlplab.torture.command:torture_command",
    "validate": "tlplab.bench.calibration.command:validate",
    "whatif": "tlplab.whatif:whatif_command",
}


class Commands(click.Group):
    """The commands of this module, and those of `ELSEWHERE`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, in alphabetical order."""
        return sorted([*super().list_commands(ctx), *ELSEWHERE])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, if there is one."""
        if cmd_name in ELSEWHERE:
            module, name = ELSEWHERE[cmd_name].split(":")
            found = getattr(import_module(module), name)
            assert isinstance(found, click.Command)
            return found
        return super().get_command(ctx, cmd_name)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(_core.__version__, prog_name="tlplab")
def commands() -> None:
    """A laboratory for PCI Express.

    Describe a topology, devices and a load in a file; run it, and see every transaction, its cost and its causes.

    Exit status: 0 for success, 1 for a run that failed, 2 for bad input, 130 after Ctrl-C, 141 if the
    reader of the output has gone, 143 after SIGTERM.

    \b
    Examples:
      tlplab run experiments/quickstart.toml --report out/quickstart.html
      tlplab run experiments/quickstart.toml --set switch.sw0.link='gen4 x8'
      tlplab list devices
      tlplab adapter --memory 16MiB
    """


@commands.command()
@experiment_options
@click.option("--seed", type=SEEDS, metavar="N", help="Seed of the random streams.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the result document; - is the standard output.")
@click.option("--report", metavar="FILE.html", help="Write one self-contained page that shows the run.")
@click.option("--trace", metavar="FILE", help="Write a trace that opens in Perfetto (ui.perfetto.dev).")
@click.option("--pcap", metavar="FILE", help="Write a capture of every link for Wireshark (pcapng).")
@click.option("-o", "output", metavar="FILE", help="Write the summary to FILE instead of the terminal.")
@click.option(
    "--threads",
    type=click.IntRange(1, 256),
    metavar="N",
    help="At most N of the runs that find the limit at once (default: one per processor); N never changes the result.",
)
@click.option(
    "--no-verdict",
    is_flag=True,
    help="Skip the further runs with more of each resource; name the limit from the figures of this run alone.",
)
@click.option(
    "--whatif",
    type=click.Choice(["bounded", "full"]),
    default="bounded",
    help="Runs that find the limit: a bounded number, or one with more of each resource, without a bound on their time.",
)
@click.option(
    "--detail",
    type=click.Choice(["limited", "all"]),
    default="limited",
    help="Contents of the result document for a large fabric: limited to some megabytes, or complete.",
)
@click.option("--quiet", is_flag=True, help="No summary, no progress bar.")
def run(
    experiment: str, overrides: Sequence[str], load: str | None, seed: int | None, json_file: str | None,
    report: str | None, trace: str | None, pcap: str | None, output: str | None, threads: int | None, no_verdict: bool,
    whatif: str, detail: str, quiet: bool,
) -> int:  # fmt: skip
    """Run an experiment and find its limit.

    Ctrl-C stops the run; the figures up to then are shown, and the exit status is 130.

    \b
    Examples:
      tlplab run experiments/quickstart.toml
      tlplab run experiments/quickstart.toml --report out/q.html --trace out/q.perfetto
      tlplab run experiments/quickstart.toml --set stop=1ms --seed 7 --json -
    """
    check_outputs(
        {"--json": json_file, "--report": report, "--trace": trace, "--pcap": pcap, "-o": output},
        to_stdout={"--json", "-o"},
        inputs={"the experiment": experiment, "--load": load},
    )
    simulation = _core.Simulation(
        experiment, overrides=overrides, load=load, seed=seed, trace=trace, pcap=pcap, all_details=detail == "all"
    )
    with Bar(quiet=quiet) as bar:
        finished = finish(simulation, bar.update)
    if not no_verdict:
        with Bar(quiet=quiet) as bar:
            watch = lambda made, of: bar.show(made / of if of else None, f"{made} of {of} resources tried")  # noqa: E731
            finished = judged(simulation, finished, full=whatif == "full", threads=threads, watch=watch)
    write_results(finished, json_file, report, output, quiet=quiet)
    if finished.interrupted:
        click.echo("interrupted: the figures cover the part that ran", err=True)
        return INTERRUPTED
    failed = finished.failures()
    for failure in failed:
        complain(failure)
    if finished.untried:
        click.echo(
            "interrupted: not all resources were tried; the limit is named from the figures of the run", err=True
        )
        return INTERRUPTED
    return FAILED if failed else 0


@commands.command(short_help="Read an experiment and show its topology.")
@experiment_options
@click.option("--quiet", is_flag=True, help="No topology; only mistakes are shown.")
def check(experiment: str, overrides: Sequence[str], load: str | None, quiet: bool) -> None:
    """Read an experiment and show its topology, without running it.

    With several machines (machine, cable) it shows the topology of each, then the cables.

    \b
    Examples:
      tlplab check experiments/quickstart.toml --set switch.sw0.link='gen4 x8'
      tlplab check experiments/linux/two-guests.toml
    """
    found = outline.read_guests(experiment, overrides=overrides) if load is None else None
    if found is not None and found["machines"]:
        if not quiet:
            outline.show_machines(found, sys.stdout)
        return
    one = outline.read(experiment, overrides=overrides, load=load)
    if not quiet:
        outline.show(one, sys.stdout)


@commands.command("lspci", short_help="Enumerate a fabric and show it as software sees it.")
@experiment_options
@click.option("--at", metavar="TIME", help="Run until TIME first, as in --at 50us.")
@click.option("-x", "dump_out", is_flag=True, help="Print the registers as lspci -F reads them; the same as -o -.")
@click.option("-o", "output", metavar="FILE|-", help="Write the registers as lspci -F reads them.")
@click.option(
    "--json", "json_file", metavar="FILE|-", help="Write the tree and further fields as JSON; - is the standard output."
)
@click.option("--quiet", is_flag=True, help="No tree, no progress bar.")
def lspci_command(
    experiment: str, overrides: Sequence[str], load: str | None, at: str | None, dump_out: bool, output: str | None,
    json_file: str | None, quiet: bool,
) -> None:  # fmt: skip
    """Enumerate an experiment's fabric and show it as software sees it.

    The tree shows each function with its component, link, addresses and limits, directly after enumeration or, with
    --at, at that time of the run. It is printed unless another output goes to the standard output.

    \b
    Examples:
      tlplab lspci experiments/quickstart.toml
      tlplab lspci experiments/quickstart.toml -x | lspci -F /dev/stdin -vvv
      tlplab lspci experiments/quickstart.toml -o out/dump.txt && lspci -F out/dump.txt -t
      tlplab lspci experiments/errors.toml --at 100us -x | lspci -F /dev/stdin -vvv
    """
    if dump_out and output is not None:
        raise click.UsageError("-x and -o both name a place for the registers; give one of them")
    output = "-" if dump_out else output
    check_outputs(
        {"-o": output, "--json": json_file},
        to_stdout={"-o", "--json"},
        inputs={"the experiment": experiment, "--load": load},
    )
    if at is not None:
        try:
            _core.duration_fs(at)
        except ValueError as error:
            raise click.UsageError(f"--at: {error}") from None
        overrides = [*overrides, f"stop={at}"]
    simulation = _core.Simulation(experiment, overrides=overrides, load=load)
    if at is not None:
        with Bar(quiet=quiet) as bar:
            succeed(finish(simulation, bar.update))
    seen, dump = simulation.lspci()
    if output is not None:
        write_text(output, dump)
    if json_file is not None:
        write_text(json_file, seen + "\n")
    if "-" not in (output, json_file) and not quiet:
        lspci.show(json.loads(seen), sys.stdout)


@commands.command("list", short_help="List models, hosts, keys, figures and experiments.")
@click.argument("kind", type=click.Choice(list(catalog.LISTS)))
def list_command(kind: str) -> None:
    """List the names that an experiment can use, or the experiments below this folder.

    \b
    Examples:
      tlplab list hosts
      tlplab list experiments
    """
    entries = catalog.LISTS[kind]()
    if not entries:
        click.echo(f"no {kind} here", err=True)
        return
    wide = max(len(name) for name, _ in entries)
    # In a pipe an entry is a line, for other programs.
    for_people = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = max(60, min(100, get_terminal_size().columns)) if for_people else sys.maxsize
    for name, text in entries:
        behind = textwrap.wrap(text, max(width - wide - 2, 20)) or [""]
        click.echo(f"\n{'':{wide}}  ".join([f"{name:{wide}}  {behind[0]}".rstrip(), *behind[1:]]))


@commands.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script by which a shell completes commands, options and experiments.

    \b
    Examples:
      eval "$(tlplab completion bash)"
      tlplab completion fish >~/.config/fish/completions/tlplab.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(commands, {}, "tlplab", "_TLPLAB_COMPLETE").source())


@commands.command(short_help="Print the JSON Schema of experiments or results.")
@click.option("-o", "output", metavar="FILE", default="-", help="Write to FILE instead of the standard output.")
@click.option("--markdown", is_flag=True, help="The keys and their meanings as Markdown instead.")
@click.option("--metrics", is_flag=True, help="The figures of studies and their meanings as Markdown instead.")
@click.option("--result", is_flag=True, help="The JSON Schema of result documents instead.")
def schema(output: str, markdown: bool, metrics: bool, result: bool) -> None:
    """Print the JSON Schema of experiment files, for editors, or of result documents.

    An editor that knows TOML checks an experiment as you type when its first line is
    `#:schema ./schema.json`.

    \b
    Examples:
      tlplab schema -o schema.json
      tlplab schema --result -o result.schema.json
    """
    check_outputs({"-o": output}, to_stdout={"-o"}, inputs={})
    asked = {"--markdown": markdown, "--metrics": metrics, "--result": result}
    if len(chosen := [option for option, given in asked.items() if given]) > 1:
        raise click.UsageError(f"{' and '.join(chosen)} are different things; ask for one of them")
    texts: dict[str, Callable[[], str]] = {
        "--markdown": catalog.reference,
        "--metrics": catalog.figures,
        "--result": lambda: _core.result_schema() + "\n",
    }
    write_text(output, texts[chosen[0]]() if chosen else _core.schema() + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and exits with its status."""
    open_closed_streams()
    end_in_order()
    result = status(arguments)
    if result == INTERRUPTED:
        # One more Ctrl-C, while Python goes down, would change the status.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(status_of(result))


def open_closed_streams() -> None:
    """Gives the standard streams that were closed (`>&-`) a place where nothing is: they are `None`, and other files would get their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 # for as long as the process lives


def status(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit status; every expected error is one message on stderr."""
    try:
        result = commands.main(args=arguments, prog_name="tlplab", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except ExperimentError as error:
        mistakes = [error, *error.others]
        for mistake in mistakes[:MISTAKES_SHOWN]:
            complain(str(mistake))
        if len(mistakes) > MISTAKES_SHOWN:
            click.echo(f"… and {len(mistakes) - MISTAKES_SHOWN} more", err=True)
        return BAD_INPUT
    except RunError as error:
        complain(f"the run failed: {error}")
        return FAILED
    except SystemExit as ended:
        # By 1, which here is the status of a run that failed, click ends when the reader of the output has gone, as `| head` does.
        if ended.code != FAILED:
            raise
        return SIGNALLED + signal.SIGPIPE
    except OSError as error:
        # Every other file is named by who writes it.
        full = "the standard output: " if error.errno == errno.ENOSPC else ""
        where = f"{error.filename}: " if error.filename else full
        complain(f"{where}{error.strerror or error}")
        # What was named and is not there is a mistake of whoever named it.
        named = error.filename is not None and isinstance(
            error, FileNotFoundError | IsADirectoryError | PermissionError
        )
        return BAD_INPUT if named else FAILED
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    return result if isinstance(result, int) else 0


def complain(message: str) -> None:
    """One error message, in the form of click's own."""
    click.echo(click.style("Error: ", fg="red", bold=True) + message, err=True)
