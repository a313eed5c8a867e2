"""`tlplab sweep` and `tlplab pareto`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import click

from tlplab import plotting
from tlplab.errors import BAD_INPUT, FAILED, INTERRUPTED, ExperimentError
from tlplab.outputs import PAGES, check_ending, check_outputs, write_text
from tlplab.progress import Bar
from tlplab.study import dask_engine, dataset, page, plots, running, show
from tlplab.study import html as web
from tlplab.study import reports as report_points
from tlplab.summary import console_for

USUAL_FIGURES = ("throughput", "latency.p50", "latency.p99")
Command = TypeVar("Command", bound=Callable[..., Any])


def part_of(_ctx: click.Context, _param: click.Parameter, value: str) -> tuple[int, int]:
    """A part of a study, from 0, and how many there are: `2/8` is the second of eight."""
    found = re.fullmatch(r"(\d+)/(\d+)", value)
    part, parts = map(int, found.groups()) if found else (0, 0)
    if not 1 <= part <= parts:
        raise click.BadParameter(f"{value!r} is not a part; write 1/4 for the first of four, 4/4 for the last")
    return part - 1, parts


def engine_options(command: Command) -> Command:
    """The arguments of a command whose runs workers of a cluster may make."""
    for decorate in (
        click.option(
            "--address", metavar="ADDRESS",
            help="The scheduler of a cluster, such as tcp://10.0.0.1:8786; without it, workers start on this machine.",
        ),
        click.option(
            "--engine", type=click.Choice(["local", "dask"]), default="local", show_default=True,
            help="Runs use this machine's processors (local), or the workers of dask.distributed (dask).",
        ),
    ):  # fmt: skip
        command = decorate(command)
    return command


def study_options(command: Command) -> Command:
    """The arguments of every command that runs a study."""
    for decorate in (
        click.option("--quiet", is_flag=True, help="No table, no progress bar."),
        click.option(
            "--store", metavar="FOLDER", help="Keep results in FOLDER (default: tlplab/points in the user's cache)."
        ),
        click.option(
            "--threads", type=click.IntRange(1, 256), metavar="N",
            help="At most N runs at once (default: one per processor); N never changes a result.",
        ),
        click.option(
            "--where", metavar="EXPRESSION", multiple=True,
            help="Only points for which this holds, as in --where 'mps <= 256 B'. May be given again.",
        ),
        click.option("--load", metavar="FILE", help="Take [load] from FILE; it replaces all loads of the experiment."),
        click.option(
            "--set", "overrides", metavar="KEY=VALUE", multiple=True,
            help="Set one key at all points. May be given again.",
        ),
        click.argument("study", metavar="STUDY.toml"),
    ):  # fmt: skip
        command = decorate(command)
    return command


@click.command("sweep", short_help="Run many points of an experiment or a benchmark.")
@study_options
@engine_options
@click.option("--shard", metavar="I/N", default="1/1", callback=part_of, help="Only part I of N, for an array of jobs.")
@click.option("--metrics", metavar="LIST", help="Figures to show, as in 'throughput, ssd.throughput / throughput'.")
@click.option("--verdict", is_flag=True, help="Find the limit of each point by further runs.")
@click.option("-o", "--output", metavar="FILE", help="Write the data set, one row per run: FILE.parquet or FILE.csv.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write a summary of each point; - is the standard output.")
@click.option("--plot", metavar="FILE", help="Draw the points: .png, .svg or .pdf.")
@click.option("--html", metavar="FILE.html", help="Write one page for browsing the points and their pictures.")
@click.option("--reports", is_flag=True, help="With --html: include the report of each point.")
@click.option("--markdown", metavar="FILE.md", help="Write the page of the study: its finding and its points.")
@click.option("--x", metavar="AXIS", help="The horizontal axis (default: the axis with the most numbers).")
@click.option(
    "--y",
    metavar="FIGURE|AXIS",
    help="The vertical axis: a figure (default: the first shown); with --colour an axis of the study.",
)
@click.option("--colour", metavar="FIGURE", help="Draw a map of two axes, coloured by this figure.")
@click.option("--beside", metavar="AXIS", help="Draw one picture per value of this axis.")
@click.option("--ecdf", metavar="FLOW", help="Draw the distribution of this flow's latency for each point.")
@click.option("--plot-where", metavar="EXPRESSION", help="Draw only points for which this holds.")
def sweep_command(
    study: str, overrides: Sequence[str], load: str | None, where: Sequence[str], threads: int | None,
    store: str | None, quiet: bool, engine: str, address: str | None, shard: tuple[int, int], metrics: str | None, verdict: bool,
    output: str | None, json_file: str | None, plot: str | None, html: str | None, reports: bool,
    markdown: str | None, x: str | None, y: str | None, colour: str | None,
    beside: str | None, ecdf: str | None, plot_where: str | None,
) -> int:  # fmt: skip
    """Run many points of an experiment, a model or a benchmark, and show the figures of each.

    A study names the experiment, model or benchmark, axes over its keys, filters, and the runs per point. Results
    are stored, and all studies share them: a known point is not run again. Ctrl-C keeps the finished runs; the same
    command resumes.

    \b
    Examples:
      tlplab sweep studies/designs/quickstart.toml
      tlplab sweep studies/designs/quickstart.toml -o out/quickstart.parquet
      tlplab sweep studies/designs/quickstart.toml --shard 2/8
      tlplab sweep studies/designs/quickstart.toml --engine dask --address tcp://10.0.0.1:8786
      tlplab sweep studies/designs/quickstart.toml --plot out/quickstart.svg --x nic_rate --y ssd.throughput
      tlplab sweep studies/designs/quickstart.toml --html out/quickstart.html
      tlplab sweep studies/designs/quickstart.toml --plot out/quickstart.svg --x nic_rate --y nic.latency.p99
    """
    check_files(
        {"-o": output, "--json": json_file, "--plot": plot, "--html": html, "--markdown": markdown}, study, load
    )
    check_engine(engine, address, threads)
    if reports and html is None:
        raise click.UsageError("--reports needs a page: name one with --html")
    drawn = plots.Wanted(x, y, colour, beside, ecdf, plot_where)
    drawn.check(plot)
    asked = running.Asked(
        study, overrides=overrides, load=load, where=where, store=store, threads=threads, shard=shard, verdict=verdict,
        engine=engine, address=address, quiet=quiet,
    )  # fmt: skip
    part = asked_of_picture(asked, plot_where)
    done = run(asked)
    if done.interrupted:
        return tell_interrupted(done)
    wanted = metrics or ", ".join(done.sweep.metrics) or usual_figures(done)
    figures, summaries = done.swept.figures(wanted), done.swept.summaries(wanted)
    some = done.swept.counts()[0] > 0
    if output is not None:
        dataset.write(output, done.swept.table())
    if json_file is not None:
        write_text(json_file, dataset.as_json(done, figures, summaries))
    if plot is not None and some:
        plots.draw_study(plot, drawn_part(done, asked, part), wanted, drawn)
    made = None
    if html is not None and some:
        made = report_points.make(asked, done) if reports else None
        web.write(html, asked, done, wanted, made)
    if not quiet and json_file != "-":
        console = console_for(sys.stdout)
        show.show(console, done, figures, summaries)
        if made is not None:
            console.print(made.told())
    if markdown is not None and some:
        asks = {**({"--metrics": metrics} if metrics else {}), **({"--verdict": ""} if verdict else {})}
        picture = page.Picture(plot, drawn.options()) if plot is not None else None
        page.write(markdown, asked, done, figures, summaries, asks, picture)
    return ended(done) or (0 if asked.changes() else told(done, quiet=quiet or json_file == "-"))


def asked_of_picture(asked: running.Asked, where: str | None) -> running.Asked:
    """The points that the picture shows, as a study of their own. Raises `click.UsageError` for a condition that cannot be judged."""
    if where is None:
        return asked
    part = replace(asked, where=(*asked.where, where), quiet=True)
    try:
        running.opened(part)
    except ExperimentError as error:
        raise click.UsageError(str(error).replace("--where", "--plot-where", 1)) from None
    return part


def drawn_part(done: running.Done, asked: running.Asked, part: running.Asked) -> running.Done:
    """The points that the picture shows: their runs are known by now. Raises `click.UsageError` where there is none."""
    drawn = done if part is asked else run(part)
    if not drawn.swept.counts()[0]:
        raise click.UsageError(f"--plot-where: {part.where[-1]!r} holds for no point that has a result")
    return drawn


def usual_figures(done: running.Done) -> str:
    """The usual figures that the points have, for a study that names none."""

    def has(name: str) -> bool:
        try:
            return bool(done.swept.figures(name))
        except ExperimentError:
            return False

    return ", ".join(filter(has, USUAL_FIGURES)) or USUAL_FIGURES[0]


def told(done: running.Done, *, quiet: bool) -> int:
    """Prints the study's finding; the exit status, which is 1 if it does not hold."""
    if (found := done.swept.finding()) is None:
        return 0
    sentence, holds = show.sentence(found), found[2]
    if not holds:
        click.echo(f"the study's finding does not hold: {sentence}", err=True)
        return FAILED
    if not quiet:
        show.say(console_for(sys.stdout), sentence)
    return 0


@click.command("pareto", short_help="Show the Pareto front of a study.")
@study_options
@engine_options
@click.argument("objectives", metavar="FIGURE,FIGURE…")
@click.option("--all", "every", is_flag=True, help="Also show the other points.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write all points; - is the standard output.")
@click.option("--plot", metavar="FILE", help="Draw the points by the first two figures: .png, .svg or .pdf.")
def pareto_command(
    study: str, overrides: Sequence[str], load: str | None, where: Sequence[str], threads: int | None,
    store: str | None, quiet: bool, engine: str, address: str | None, objectives: str, every: bool, json_file: str | None, plot: str | None,
) -> int:  # fmt: skip
    """Show the Pareto front of a study: points for which no other is better by one figure and as good by all.

    A metric defines whether more or less is better; for an expression write max:EXPRESSION or min:EXPRESSION.
    Points without a stored result are run.

    \b
    Examples:
      tlplab pareto studies/designs/quickstart.toml throughput,latency.p99,lanes
      tlplab pareto studies/designs/quickstart.toml max:throughput/lanes,latency.p99 --plot out/front.svg
    """
    check_files({"--json": json_file, "--plot": plot}, study, load)
    check_engine(engine, address, threads)
    asked = running.Asked(
        study, overrides=overrides, load=load, where=where, store=store, threads=threads, engine=engine, address=address,
        quiet=quiet,
    )  # fmt: skip
    done = run(asked)
    if done.interrupted:
        return tell_interrupted(done)
    better, summaries, front = done.swept.front(objectives)
    figures = [(name, unit) for name, unit, _ in better]
    if json_file is not None:
        write_text(json_file, dataset.as_json(done, figures, summaries, front))
    if plot is not None and done.swept.counts()[0]:
        plots.draw_front(plot, done, better, summaries, front)
    if not quiet and json_file != "-":
        mark = "•" if every else ""
        chosen = {at: mark if best else "" for at, best in enumerate(front) if best or every}
        console = console_for(sys.stdout)
        show.show(console, done, figures, summaries, chosen)
        ways = ", ".join(f"{'more' if more else 'less'} {name}" for name, _, more in better)
        console.print(f"{sum(front)} of {show.points(len(summaries))} are on the Pareto front: {ways}")
    return ended(done)


def check_files(files: dict[str, str | None], study: str, load: str | None) -> None:
    """Refuses files that cannot be written, before the study is run. Raises `click.UsageError`."""
    check_outputs(files, to_stdout={"--json"}, inputs={"the study": study, "--load": load})
    dataset.check("-o", files.get("-o"))
    if (html := files.get("--html")) is not None:
        check_ending("--html", html, PAGES)
    if (plot := files.get("--plot")) is not None:
        plotting.check_ending("--plot", plot)


def check_engine(engine: str, address: str | None, threads: int | None) -> None:
    """Refuses an engine that cannot run, before the study is read. Raises `click.UsageError`."""
    if engine == "local":
        if address is not None:
            raise click.UsageError("--address names a cluster; use it with --engine dask")
        return
    if address is not None and threads is not None:
        raise click.UsageError(
            "--threads is for runs on this machine, but the cluster at --address makes the runs; leave it out"
        )
    dask_engine.check()


def run(asked: running.Asked) -> running.Done:
    """Runs a study, and shows how far it is."""
    with Bar(quiet=asked.quiet) as bar:

        def watch(far: tuple[int, int, int]) -> None:
            over, of, known = far
            bar.show(over / of if of else None, f"{over} of {of} runs" + (f", {known} known" if known else ""))

        return running.run(asked, watch)


def tell_interrupted(done: running.Done) -> int:
    """Prints how to go on; the exit status."""
    over, of, *_ = done.swept.progress
    over += done.not_counted
    click.echo(f"interrupted: {over} of {of} runs are stored; the same command resumes", err=True)
    return INTERRUPTED


def ended(done: running.Done) -> int:
    """The exit status: a study of which nothing could be run is bad input, or has failed."""
    well, failed, refused = done.swept.counts()
    if well or not failed + refused:
        return 0
    click.echo("no point was run successfully", err=True)
    return FAILED if failed else BAD_INPUT
