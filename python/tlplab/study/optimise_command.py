"""`tlplab optimise`: the best point of a study, found without running all of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import click
from rich.console import Console
from rich.text import Text

from tlplab import quantities as q
from tlplab.errors import BAD_INPUT, FAILED, INTERRUPTED
from tlplab.outputs import check_outputs, write_text
from tlplab.progress import Bar
from tlplab.sheet import Column, Sheet
from tlplab.study import show, space
from tlplab.study.command import study_options
from tlplab.study.optimising import Aim, Search, Searched, read_aim
from tlplab.study.running import Asked
from tlplab.study.space import Point, Space, Tell
from tlplab.summary import console_for

SCHEMA = "tlplab/optimum/1"
TRIALS = 100
# So many trials are asked for before any of them is known: they run side by side.
BATCH = 4
ROWS = 20
MESSAGES = 3


@dataclass(frozen=True)
class Found:
    """The result of a search."""

    best: list[Point]
    """The front; of one objective the best point, first, and equally good ones."""
    nearest: Point | None
    """The point nearest to the constraints, if no point fulfils them."""
    known: tuple[Point, int] | None
    """The best point of the study's own, and how many there are, if all of them are known."""


@click.command("optimise")
@study_options
@click.option(
    "--minimise", "--minimize", metavar="FIGURE", multiple=True,
    help="A figure to minimise, as in --minimise nic.latency.p99. May be given again.",
)  # fmt: skip
@click.option(
    "--maximise", "--maximize", metavar="FIGURE", multiple=True,
    help="A figure to maximise. With several objectives the Pareto front is shown.",
)  # fmt: skip
@click.option(
    "--subject-to", "subject_to", metavar="COMPARISON", multiple=True,
    help="A constraint, as in --subject-to 'nic.throughput >= 90 Gb/s'. May be given again.",
)  # fmt: skip
@click.option(
    "--trials",
    type=click.IntRange(1, 1_000_000),
    default=TRIALS,
    metavar="N",
    help=f"Number of points to try ({TRIALS}); a study with no more points is run completely.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=1, metavar="S", help="Seed of the search (1), not of the runs."
)
@click.option(
    "--batch",
    type=click.IntRange(1, 256),
    default=BATCH,
    metavar="N",
    help=f"Points that are proposed together and run at once ({BATCH}).",
)
@click.option(
    "--storage",
    metavar="FILE|URL",
    help="Keep the trials in a journal or a database (sqlite:///search.db), from which the same command resumes.",
)
@click.option("--json", "json_file", metavar="FILE|-", help="Write all points tried; - is the standard output.")
def optimise_command(
    study: str, overrides: Sequence[str], load: str | None, where: Sequence[str], threads: int | None,
    store: str | None, quiet: bool, minimise: Sequence[str], maximise: Sequence[str], subject_to: Sequence[str],
    trials: int, seed: int, batch: int, storage: str | None, json_file: str | None,
) -> int:  # fmt: skip
    """Search the points of a study for the best one.

    The axes of the study span the space of the search, and figures are those of `tlplab sweep`. Optuna proposes points;
    a point with a stored result is not run again. The exit status is 1 if no point fulfils the constraints.

    \b
    Examples:
      tlplab optimise studies/designs/quickstart.toml --minimise nic.latency.p99 --subject-to 'throughput >= 90 Gb/s'
      tlplab optimise studies/designs/nic-400g.toml --minimise nic.latency.p99 --maximise nic.throughput --trials 60
      tlplab optimise design.toml --maximise throughput/lanes --trials 400 --storage out/design.journal
    """
    check_outputs(
        {"--json": json_file}, to_stdout={"--json"}, inputs={"the study": study, "--load": load, "--storage": storage}
    )
    aim = read_aim(minimise, maximise, subject_to)
    asked = Asked(study, overrides=overrides, load=load, where=where, store=store, threads=threads)
    spanned = space.open_space(asked)
    search = Search(spanned, aim, trials=trials, batch=batch, seed=seed, storage=storage)
    with Bar(quiet=quiet) as bar:
        searched = search.run(lambda over, of: bar.show(over / of, f"{over} of {of} trials"))
        if searched.interrupted:
            kept = (
                f"are kept in {storage}; the same command resumes"
                if storage
                else "are done; with --storage the same command resumes"
            )
            click.echo(f"interrupted: {searched.trials} of {search.trials} trials {kept}", err=True)
            return INTERRUPTED
        look = lambda far, of: bar.show(far / of, f"{far} of {of} points looked up")  # noqa: E731
        found = evaluate(spanned, aim, searched, look)
    if json_file is not None:
        write_text(json_file, as_json(spanned, aim, searched, found))
    if not quiet and json_file != "-":
        tell(console_for(sys.stdout), spanned, aim, searched, found)
    return ended(searched, found, told=not quiet and json_file != "-")


def evaluate(spanned: Space, aim: Aim, searched: Searched, look: Tell) -> Found:
    """The best of the points that were tried."""
    feasible = {point.steps: point for point in searched.points if aim.is_feasible(point)}
    objectives = ", ".join(f"{'max' if one.more else 'min'}:{one.text}" for one in aim.objectives)
    best = [feasible[steps] for steps in spanned.front(list(feasible), objectives)]
    return Found(best, None if best else aim.nearest(searched.points), best_known(spanned, aim, searched, look))


def best_known(spanned: Space, aim: Aim, searched: Searched, look: Tell) -> tuple[Point, int] | None:
    """The best of the study's own points and how many ran, if all are known: nothing is run."""
    if searched.whole or len(aim.objectives) > 1:
        return None
    own = spanned.open(None)
    count = len(own)
    if not own.knows_all(lambda far: look(far, count)):
        return None
    swept = own.run(spanned.asked.threads or 1, lambda _: None)
    points = [space.as_point((), one) for one in swept.summaries(aim.figures)]
    feasible = [point for point in points if aim.is_feasible(point)]
    more = aim.objectives[0].more
    best = min(feasible, key=lambda point: -point.values[0] if more else point.values[0], default=None)
    return None if best is None else (best, len(points))


def ended(searched: Searched, found: Found, *, told: bool) -> int:
    """The exit status. Why it is not 0 is said on stderr unless it was told."""
    if found.best:
        return 0
    if found.nearest is not None and not told:
        click.echo("no point fulfils the constraints", err=True)
    if any(point.kind == "failed" for point in searched.points) or found.nearest is not None:
        return FAILED
    click.echo("no point was run successfully", err=True)
    return BAD_INPUT


def tell(console: Console, spanned: Space, aim: Aim, searched: Searched, found: Found) -> None:
    """Print the result of a search in a terminal."""
    several = len(aim.objectives) > 1
    shown = found.best[:ROWS] if several else found.best[:1]
    if found.nearest is not None:
        shown = [found.nearest]
    if shown:
        title = spanned.sweep.title
        table(console, spanned, aim, shown, title)
    if len(shown) < len(found.best) and several:
        show.note(console, f"… and {len(found.best) - len(shown)} more points: --json FILE has them all", "dim")
    if found.nearest is not None:
        missed = [
            f"{one.left} is {show.written(left, one.unit)} but the constraint is {one.text}"
            for one, (left, right) in zip(aim.constraints, aim.sides(found.nearest), strict=True)
            if one.distance(left, right)
        ]
        show.note(console, f"No point fulfils the constraints. The nearest one: {'; '.join(missed)}.", "bold red")
    elif several and found.best:
        ways = ", ".join(f"{'more' if one.more else 'less'} {one.name}" for one in aim.objectives)
        show.note(console, f"{show.points(len(found.best))} of those tried are on the Pareto front: {ways}.")
    elif len(found.best) > 1:
        show.note(
            console,
            f"{show.points(len(found.best) - 1)} more {'is' if len(found.best) == 2 else 'are'} as good.",
            "dim",
        )
    compare(console, aim, searched, found)
    for kind, message, count in space.trouble(searched.points)[:MESSAGES]:
        show.note(console, f"{show.points(count)} {kind}: {message}", "red")
    show.note(console, counted(spanned, aim, searched), "dim")
    if shown and not several:
        console.print(Text(spanned.command(shown[0].steps), style="bold cyan"), soft_wrap=True)


def table(console: Console, spanned: Space, aim: Aim, points: Sequence[Point], title: str) -> None:
    """A line for each point: its settings, the objectives, and the sides of constraints."""
    sides = {one.left: one.unit for one in aim.constraints if one.left not in {o.text for o in aim.objectives}}
    sheet = Sheet(title, [
        *(Column(one.name, name=True) for one in spanned.parameters),
        *(Column(one.name, style="bold") for one in aim.objectives),
        *(Column(side) for side in sides),
    ])  # fmt: skip
    for point in points:
        lefts = dict(zip((one.left for one in aim.constraints), point.means[len(aim.objectives) :: 2], strict=True))
        sheet.add(
            *spanned.labels(point.steps),
            *(show.mean(mean, one.unit) for mean, one in zip(point.means, aim.objectives, strict=False)),
            *(show.mean(lefts[side], unit) for side, unit in sides.items()),
        )
    sheet.print(console)


def compare(console: Console, aim: Aim, searched: Searched, found: Found) -> None:
    """Print the distance of the best point from the known optimum, if one is known."""
    if searched.whole:
        show.note(console, "All points were tried: no point is better." if found.best else "All points were tried.")
        return
    if found.known is None or not found.best:
        return
    (best, count), objective = found.known, aim.objectives[0]
    here, there = found.best[0].values[0], best.values[0]
    better = there > here if objective.more else there < here
    of = f"the study's {show.points(count)}, which are all known"
    if not better:
        show.note(console, f"It is the best of {of}.")
        return
    share = abs(there - here) / abs(here) if here else float("inf")
    where = show.written(there, objective.unit)
    show.note(
        console,
        f"It is not the best of {of}: one has {where}, {q.significant(100 * share, 3)} % better. More --trials may find it.",
        "yellow",
    )


def counted(spanned: Space, aim: Aim, searched: Searched) -> str:
    """The number of points that were tried, and their outcomes."""
    counts, tried = searched.counts, searched.points
    again = f" of {show.points(len(tried))}" if searched.again else ""
    text = f"{q.count(searched.trials)} trials{again} of {q.count(spanned.size)}: {counts.made} run{'' if counts.made == 1 else 's'} made, {counts.known} known"
    kinds = {kind: sum(point.kind == kind for point in tried) for kind in ("refused", "failed", "without")}
    text += "".join(
        f", {number} {'without these figures' if kind == 'without' else kind}"
        for kind, number in kinds.items()
        if number
    )
    if aim.constraints:
        missed = sum(point.kind == "done" and not aim.is_feasible(point) for point in tried)
        text += f", {missed} violate{'s' if missed == 1 else ''} a constraint"
    out = [f"{name} ({number})" for name, number in counts.left_out.items() if number]
    return f"{text}; left out: {', '.join(out)}" if out else text


def as_json(spanned: Space, aim: Aim, searched: Searched, found: Found) -> str:
    """All trials as JSON."""
    best = {point.steps for point in found.best}
    objectives = [
        {"figure": one.text, "unit": one.unit, "better": "more" if one.more else "less"} for one in aim.objectives
    ]
    points = [
        {
            "sets": dict(zip((one.name for one in spanned.parameters), spanned.labels(point.steps), strict=True)),
            "kind": point.kind,
            "message": point.message,
            "objectives": aim.values(point) if point.kind == "done" else None,
            "constraints": aim.sides(point) if point.kind == "done" else None,
            "feasible": aim.is_feasible(point),
            "best": point.steps in best,
        }
        for point in searched.points
    ]
    told = found.best[0] if found.best else found.nearest
    document = {
        "schema": SCHEMA,
        "title": spanned.sweep.title,
        "objectives": objectives,
        "constraints": [one.text for one in aim.constraints],
        "trials": searched.trials,
        "runs": {"made": searched.counts.made, "known": searched.counts.known},
        "left_out": dict(searched.counts.left_out),
        "whole": searched.whole,
        "feasible": bool(found.best),
        "command": None if told is None else spanned.command(told.steps),
        "points": points,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
