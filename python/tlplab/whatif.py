"""`tlplab whatif`: the gain of an experiment from more of each resource."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from os import cpu_count

import click
from rich.console import Console
from rich.text import Text

from tlplab import _core
from tlplab import quantities as q
from tlplab.errors import FAILED, INTERRUPTED, RunError
from tlplab.options import SEEDS, experiment_options, quiet_option
from tlplab.outputs import check_outputs, write_text
from tlplab.progress import Bar
from tlplab.session import Finished, finish, judged, make_runs
from tlplab.sheet import NOTHING, Column, Sheet
from tlplab.summary import console_for, show_headline

STEPS = ("tenth", "twice", "gone")
# What gains as much takes a limit away; less is none, as in the verdict.
LEAST_GAIN = 0.01
# Less than this is nothing, as a run of some thousand transactions tells it.
NOTHING_GAINED = 0.0005
ROWS_SHOWN = 24


@dataclass(frozen=True)
class Step:
    """A resource relaxed in one way, and the result. Shares: 0.5 is half as much again."""

    change: str
    gain: float
    p50: float
    p99: float


@dataclass(frozen=True)
class Row:
    """A resource, and the results of relaxing it; None for an impossible step."""

    resource: str
    kind: str
    tenth: Step | None
    twice: Step | None
    gone: Step | None
    then: list[str]
    """The limits without this limit (of a resource of which there is always one, with twice as much): all that tie."""

    def steps(self) -> list[Step]:
        """The results of relaxing it."""
        return [step for step in (self.tenth, self.twice, self.gone) if step is not None]

    def most(self) -> float:
        """The gain of twice as much; of a resource that cannot be doubled, that of one without limit."""
        step = self.twice or self.gone
        return step.gain if step is not None else 0.0


@click.command("whatif", short_help="Run again with more of each resource, to find the limit.")
@experiment_options
@click.option("--seed", type=SEEDS, metavar="N", help="Seed of the random streams.")
@click.option(
    "--threads",
    type=click.IntRange(1, 256),
    metavar="N",
    help="At most N runs at once (default: one per processor).",
)
@click.option("--full", is_flag=True, help="Try every resource on the whole run, without a bound on the time.")
@click.option("--all", "all_rows", is_flag=True, help="Also show resources that gain nothing.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the table as JSON; - is the standard output.")
@quiet_option
def whatif_command(
    experiment: str, overrides: Sequence[str], load: str | None, seed: int | None, threads: int | None, full: bool,
    all_rows: bool, json_file: str | None, quiet: bool,
) -> int:  # fmt: skip
    """Run an experiment again with 10 % more, twice as much and no limit of each resource.

    The table shows how much more each of these runs carries, how the largest p50 and p99 of any flow change with twice
    as much, and the next limit once the resource has none. Times (latencies, cables) become 10 % shorter, half as long, or zero.

    \b
    Examples:
      tlplab whatif experiments/quickstart.toml
      tlplab whatif experiments/tags.toml --set device.dev.tags=16 --all
      tlplab whatif experiments/hotplug.toml --full
      tlplab whatif experiments/quickstart.toml --json out/whatif.json
    """
    check_outputs({"--json": json_file}, to_stdout={"--json"}, inputs={"the experiment": experiment, "--load": load})
    simulation = _core.Simulation(experiment, overrides=overrides, load=load, seed=seed)
    with Bar(quiet=quiet) as bar:
        finished = finish(simulation, bar.update)
    if finished.interrupted:
        return INTERRUPTED
    if failed := finished.failures():
        raise RunError("; ".join(failed))
    try:
        judge = simulation.judge(full=full)
    except ValueError as why:
        click.echo(f"tlplab: this run cannot be repeated with more of a resource: {why}", err=True)
        return FAILED
    with Bar(quiet=quiet) as bar:
        finished = judged(simulation, finished, full=full, threads=threads)
        rows = table(judge, finished, threads or cpu_count() or 1, bar)
    if json_file != "-" and not quiet:
        show(rows, finished, console_for(sys.stdout), all_rows=all_rows)
    if json_file is not None:
        verdict = finished.result()["verdict"]
        write_text(
            json_file, json.dumps({"verdict": verdict, "resources": [asdict(row) for row in rows]}, indent=1) + "\n"
        )
    return 0


def table(judge: _core.Judge, finished: Finished, threads: int, bar: Bar) -> list[Row]:
    """Every resource relaxed in every way, those first that gain most."""
    candidates = judge.candidates()
    tasks = [judge.task_for_table(index, step) for index in range(len(candidates)) for step in STEPS]
    with ThreadPoolExecutor(threads) as pool:
        try:
            for made, _ in enumerate(pool.map(_core.Task.run, tasks), 1):
                bar.show(made / len(tasks), f"{made} of {len(tasks)} runs")
            steps = [None if (result := task.result()) is None else Step(*result) for task in tasks]
            limits = [limit["resource"] for limit in finished.result()["verdict"]["limits"]]
            rows = []
            for at, (resource, kind) in enumerate(candidates):
                tenth, twice, gone = steps[3 * at : 3 * at + 3]
                told = gone or twice
                # What gains nothing leaves the limit in its place.
                matters = told is not None and told.gain >= LEAST_GAIN
                task = tasks[3 * at + STEPS.index("gone" if gone else "twice")]
                bar.show(at / len(candidates), f"next limits: {at} of {len(candidates)}")
                then = limits_of(task, pool, threads) if matters else limits
                rows.append(Row(resource, kind, tenth, twice, gone, then))
        except KeyboardInterrupt:
            judge.cancel()
            pool.shutdown(cancel_futures=True)
            raise
    return sorted(rows, key=lambda row: -row.most())


def limits_of(task: _core.Task, pool: ThreadPoolExecutor, threads: int) -> list[str]:
    """The limits of a task's run; empty if no increase gains anything."""
    judge = task.judge()
    if judge is None:
        return []
    make_runs(judge, pool, threads, None)
    return judge.limits()


def show(rows: list[Row], finished: Finished, console: Console, *, all_rows: bool) -> None:
    """The sentence, and a line for each resource that makes a difference."""
    show_headline(console, finished.result())
    matter = [row for row in rows if all_rows or any(abs(step.gain) >= NOTHING_GAINED for step in row.steps())]
    shown = Sheet("Carried with more of it", [
        Column("resource", name=True), Column("twice is", name=True), Column("+10 %"), Column("twice", style="bold"),
        Column("no limit"), Column("p50"), Column("p99"), Column("without it\nlimits", name=True),
    ])  # fmt: skip
    for row in matter if all_rows else matter[:ROWS_SHOWN]:
        told = row.twice or row.gone
        latencies = [NOTHING, NOTHING] if told is None else [signed(told.p50), signed(told.p99)]
        shown.add(
            row.resource, NOTHING if row.twice is None else row.twice.change,
            *(NOTHING if step is None else signed(step.gain) for step in (row.tenth, row.twice, row.gone)),
            *latencies, ", ".join(row.then) or NOTHING,
        )  # fmt: skip
    if shown.rows:
        shown.print(console)
    if hidden := len(rows) - len(matter):
        console.print(Text(f"{hidden} resources make no difference (--all shows them)", style="dim"))
    if not all_rows and len(matter) > ROWS_SHOWN:
        console.print(Text(f"{len(matter) - ROWS_SHOWN} more make a difference (--all shows them)", style="dim"))


def signed(share: float) -> str:
    """A change in per cent, with its sign."""
    if abs(share) < NOTHING_GAINED:
        return "0"
    return f"×{q.significant(1 + share, 3)}" if share >= 9.995 else f"{share * 100:+.1f} %"
