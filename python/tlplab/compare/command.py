"""`tlplab diff`: how runs, results and captures differ."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace

import click
from rich.text import Text

from tlplab.compare import captures, document, page, show
from tlplab.compare.alternatives import Alternative, read_all
from tlplab.compare.difference import Difference, Run, difference, run_of
from tlplab.compare.running import Variant, of_alternative, run_all, settings_of
from tlplab.compare.sources import CALLED, Source, legend, names_of, read_result, reading, source_of
from tlplab.options import SEEDS, complete_it
from tlplab.outputs import PAGES, check_ending, check_outputs, write_text
from tlplab.result import Document
from tlplab.summary import console_for

DIFFERS = 1


@click.command("diff", short_help="Compare runs: settings, figures, causes of latency.")
@click.argument("runs", metavar="A [B]...", nargs=-1, required=True, shell_complete=complete_it)
@click.option(
    "--if", "alternatives", metavar="'NAME: KEY=VALUE, …'", multiple=True,
    help="An alternative of A, as in --if 'gen4: device.nic.link=gen4 x8, device.nic.tags+=32'. May be given again.",
)  # fmt: skip
@click.option(
    "--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Override one key of all experiments. May be given again."
)  # fmt: skip
@click.option("--set-a", "of_a", metavar="KEY=VALUE", multiple=True, help="Override one key of A and its alternatives.")
@click.option(
    "--set-b",
    "of_b",
    metavar="KEY=VALUE",
    multiple=True,
    help="Override one key of the other runs: B and those after it.",
)
@click.option("--load", metavar="FILE", help="Take [load] of all experiments from FILE.")
@click.option("--seed", type=SEEDS, metavar="N", help="Seed of the random streams of all runs.")
@click.option(
    "--threads", type=click.IntRange(1, 256), metavar="N",
    help="At most N runs at once (default: one per processor); N never changes a result.",
)  # fmt: skip
@click.option(
    "--no-verdict", is_flag=True, help="Skip the further runs with more of each resource that find the limit."
)
@click.option("--all", "every", is_flag=True, help="Also show figures and settings without a difference.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the differences as JSON; - is the standard output.")
@click.option("--html", metavar="FILE.html", help="Write one self-contained page with the runs side by side.")
@click.option("--exit-code", is_flag=True, help="End with status 1 if anything differs.")
@click.option("--quiet", is_flag=True, help="No tables, no progress bar.")
def diff_command(
    runs: Sequence[str], alternatives: Sequence[str], overrides: Sequence[str], of_a: Sequence[str], of_b: Sequence[str],
    load: str | None, seed: int | None, threads: int | None, no_verdict: bool, every: bool, json_file: str | None,
    html: str | None, exit_code: bool, quiet: bool,
) -> int:  # fmt: skip
    """Show how runs differ: settings, figures, causes of latency, limits.

    A and B are experiments, which are run; results of `tlplab run --json`; or captures. The causes of a flow's
    latency add up to its mean, and their changes to the change of the mean. A run is a function of its experiment
    and seed, so a difference is never noise. Only differences are shown.

    An alternative (--if) sets keys of A to a value or relative to the value in A (+=, -=, *=, /=); a * in a key stands
    for any name. Without a name, its settings are its name.

    \b
    Examples:
      tlplab diff quickstart quickstart --set-b 'switch.sw0.link=gen4 x8'
      tlplab diff before.json after.json --exit-code
      tlplab diff before.pcapng after.pcapng
      tlplab diff machine.toml --if 'gen4: device.nic.link=gen4 x8' --if 'device.nic.tags+=32' --html page.html
    """
    sources = [source_of(run) for run in runs]
    check(sources, alternatives, json_file, html, load)
    if sources[0].kind == "capture":
        options = {
            "--if": alternatives,
            "--set": overrides,
            "--set-a": of_a,
            "--set-b": of_b,
            "--load": load,
            "--html": html,
        }
        if given := [option for option, value in options.items() if value]:
            raise click.UsageError(f"{given[0]} is for experiments and does not apply to a capture; leave it out")
        found = captures.compare(sources, every=every, json_file=json_file, quiet=quiet)
        return DIFFERS if exit_code and found else 0
    before = Variant("", "", tuple(overrides), load, seed, not no_verdict)
    base, others = made(sources, read_all(alternatives, names_of(sources)), before, of_a, of_b, threads, quiet)
    differences = [difference(base, other) for other in others]
    if json_file is not None:
        write_text(
            json_file, json.dumps(document.as_json(base, differences, every=every), indent=1, ensure_ascii=False) + "\n"
        )
    if html is not None:
        write_text(html, page.render(base, differences))
    if not quiet and json_file != "-":
        tell(differences, legend(sources), every=every)
    return DIFFERS if exit_code and not all(one.same for one in differences) else 0


def tell(differences: Sequence[Difference], names: Sequence[str], *, every: bool) -> None:
    """Shows them: of one everything, of several a table."""
    console = console_for(sys.stdout)
    for name in names:
        console.print(Text(name, style="dim"))
    if len(differences) == 1:
        show.show(console, differences[0], every=every)
    else:
        show.show_several(console, differences, every=every)


def check(
    sources: Sequence[Source], alternatives: Sequence[str], json_file: str | None, html: str | None, load: str | None
) -> None:  # fmt: skip
    """Refuses files that cannot be compared, and files that cannot be written. Raises `click.UsageError`."""
    inputs = {f"run {at}": source.path for at, source in enumerate(sources, 1)}
    inputs = {name: path for at, (name, path) in enumerate(inputs.items()) if path not in list(inputs.values())[:at]}
    check_outputs({"--json": json_file, "--html": html}, to_stdout={"--json"}, inputs={**inputs, "--load": load})
    if html is not None:
        check_ending("--html", html, PAGES)
    captured = [source.kind == "capture" for source in sources]
    if any(captured) and not all(captured):
        one, other = sources[captured.index(True)], sources[captured.index(False)]
        raise click.UsageError(
            f"{one.given} is a capture and {other.given} is {CALLED[other.kind]}: a capture has TLPs but no causes, so it can be compared only"
            f" with captures; write a capture of the run with tlplab run --pcap"
        )
    if len(sources) < 2 and not alternatives:
        raise click.UsageError("one run cannot be compared: name a second run, or an alternative with --if 'KEY=VALUE'")
    if alternatives and sources[0].kind != "experiment":
        raise click.UsageError(f"--if {alternatives[0]!r} is an alternative of {sources[0].given}, which is {CALLED[sources[0].kind]}"
                               " and cannot be run with other settings; name its experiment first")  # fmt: skip


def made(
    sources: Sequence[Source], alternatives: Sequence[Alternative], plain: Variant, of_a: Sequence[str], of_b: Sequence[str],
    threads: int | None, quiet: bool,
) -> tuple[Run, list[Run]]:  # fmt: skip
    """Makes the runs and reads saved results: the base, and the others in their order. Raises their exceptions."""
    names = names_of(list(sources))
    saved: dict[str, Document] = {}
    variants: list[Variant] = []
    for at, (name, source) in enumerate(zip(names, sources, strict=True)):
        if source.kind == "result":
            saved[name] = read_result(source)
            continue
        own = of_b if at else of_a
        one = replace(plain, name=name, experiment=source.path, overrides=(*plain.overrides, *own))
        settings = settings_of(one)
        variants.append(one)
        if at == 0:
            variants += [of_alternative(one, settings, alternative) for alternative in alternatives]
    for option, given in (("--set-a", of_a if sources[0].kind == "result" else ()),
                          ("--set-b", of_b if all(source.kind == "result" for source in sources[1:]) else ())):  # fmt: skip
        if given:
            raise click.UsageError(f"{option} {given[0]}: it sets a key of an experiment, and none is given")
    if not variants and plain.overrides:
        raise click.UsageError(f"--set {plain.overrides[0]}: it sets a key of an experiment, and none is given")
    results = {**saved, **run_all(variants, threads=threads, quiet=quiet)}
    ordered = [*names, *(one.name for one in alternatives)]
    kinds = dict(zip(names, sources, strict=True))
    base, *others = (read_run(name, results[name], kinds.get(name)) for name in ordered)
    return base, others


def read_run(name: str, result: Document, source: Source | None) -> Run:
    """A run to be compared. Raises `click.UsageError` for a saved result that is none."""
    if source is None or source.kind != "result":
        return run_of(name, result)
    with reading(source):
        return run_of(name, result)
