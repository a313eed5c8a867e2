"""`tlplab sensitivity`: which parameter of a study matters."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import click
from rich.console import Console

from tlplab import _core
from tlplab import quantities as q
from tlplab.errors import INTERRUPTED
from tlplab.outputs import check_outputs, write_text
from tlplab.plotting import check_ending
from tlplab.progress import Bar
from tlplab.sheet import NOTHING, Column, Sheet
from tlplab.study import sensing, show, space
from tlplab.study.command import study_options
from tlplab.study.running import Asked
from tlplab.study.sensing import Effect, Sensed
from tlplab.study.space import SearchInterruptedError, Space
from tlplab.summary import console_for

SCHEMA = "tlplab/sensitivity/1"
METHODS = ("one-at-a-time", "morris", "sobol")
# Trajectories of Morris, and base samples of Sobol.
SAMPLES = {"morris": 10, "sobol": 64}
MESSAGES = 3
LONGEST_LABEL = 24


@click.command("sensitivity", short_help="Show which parameter of a study changes a figure.")
@study_options
@click.option("--of", "figure", metavar="FIGURE", required=True, help="The figure, as in --of nic.latency.p99.")
@click.option(
    "--method", type=click.Choice(METHODS), default=METHODS[0], help="Method of choosing points (one-at-a-time)."
)
@click.option(
    "--at", metavar="NAME=VALUE", multiple=True,
    help="For one-at-a-time: the value of an axis while others vary (default: that of the experiment).",
)  # fmt: skip
@click.option(
    "--samples", type=click.IntRange(2, 1_000_000), metavar="N",
    help="Trajectories of Morris (10), or base samples of Sobol, a power of 2 (64); the number of runs is a multiple.",
)  # fmt: skip
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=1,
    metavar="S",
    help="Seed of the samples (1), not of the runs.",
)
@click.option("--plot", metavar="FILE", help="Draw a tornado: .png, .svg or .pdf.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the effects; - is the standard output.")
def sensitivity_command(
    study: str, overrides: Sequence[str], load: str | None, where: Sequence[str], threads: int | None,
    store: str | None, quiet: bool, figure: str, method: str, at: Sequence[str], samples: int | None, seed: int,
    plot: str | None, json_file: str | None,
) -> int:  # fmt: skip
    """Show which parameter of a study changes a figure, and how much.

    Parameters are the axes of the study. With one-at-a-time, each takes its values while the others keep those of the
    experiment. Morris and Sobol sample the whole space: Morris measures the mean effect of each parameter over its
    range, Sobol its share of the variance, alone and with others. A point with a stored result is not run again.

    \b
    Examples:
      tlplab sensitivity studies/designs/quickstart.toml --of nic.latency.p99
      tlplab sensitivity studies/designs/quickstart.toml --of throughput --at uplink='gen4 x8' --plot out/tornado.svg
      tlplab sensitivity studies/designs/nic-400g.toml --of nic.throughput --method sobol --samples 128
    """
    check_outputs(
        {"--json": json_file, "--plot": plot}, to_stdout={"--json"}, inputs={"the study": study, "--load": load}
    )
    if plot is not None:
        check_ending("--plot", plot)
    count = check_method(method, at, samples)
    (name, unit), *more = _core.figures(figure)
    if more:
        raise click.UsageError(f"--of {figure}: this is a list; name one figure")
    asked = Asked(study, overrides=overrides, load=load, where=where, store=store, threads=threads)
    spanned = space.open_space(asked)
    base = sensing.read_base(spanned, at)
    with Bar(quiet=quiet) as bar:
        watch = lambda done, of: bar.show(done / of if of else None, f"{done * 100 // of if of else 0} % of the runs")  # noqa: E731
        try:
            if method == "one-at-a-time":
                sensed = sensing.one_at_a_time(spanned, figure, base, watch)
            else:
                sample = sensing.morris if method == "morris" else sensing.sobol
                sensed = sample(spanned, figure, count, seed, watch)
        except SearchInterruptedError:
            click.echo("interrupted: the finished runs are stored; the same command resumes", err=True)
            return INTERRUPTED
    if json_file is not None:
        write_text(json_file, as_json(spanned, name, unit, method, sensed))
    if plot is not None:
        from tlplab.study import tornado

        tornado.draw(plot, spanned.sweep.title, name, unit, sensed, method)
    if not quiet and json_file != "-":
        tell(console_for(sys.stdout), spanned, name, unit, method, count, sensed)
    return 0


def check_method(method: str, at: Sequence[str], samples: int | None) -> int:
    """The number of samples. Raises `click.UsageError` for options that exclude each other."""
    if method == "one-at-a-time" and samples is not None:
        raise click.UsageError(
            "--samples needs --method morris or sobol: one-at-a-time takes every value of every axis once"
        )
    if method != "one-at-a-time" and at:
        raise click.UsageError(f"--at is for one-at-a-time; {method} samples the whole space (--where restricts it)")
    count = samples or SAMPLES.get(method, 0)
    if method == "sobol" and count & (count - 1):
        above = 1 << count.bit_length()
        raise click.UsageError(
            f"--samples {count}: Sobol's sequence is balanced only for a power of 2; give {above // 2} or {above}"
        )
    return count


def tell(console: Console, spanned: Space, name: str, unit: str, method: str, count: int, sensed: Sensed) -> None:
    """Print the effects in a terminal."""
    table(console, spanned.sweep.title, name, unit, method, sensed)
    if sensed.base is not None:
        show.note(console, f"At the base {name} is {show.mean(sensed.base, unit)}.")
    if sensed.spread is not None:
        show.note(console, f"Over the samples {name} has a standard deviation of {show.written(sensed.spread, unit)}.")
    without = [one.name for one in sensed.effects if one.size == 0]
    if without and len(without) == len(sensed.effects):
        show.note(console, f"None of the parameters changes {name} here.", "bold")
    elif without:
        show.note(console, f"{' and '.join(without)} {'makes' if len(without) == 1 else 'make'} no difference.")
    if sensed.fixed:
        show.note(console, f"{' and '.join(sensed.fixed)} cannot vary: fewer than two values run.")
    if sensed.dropped:
        show.note(
            console, f"{sensed.dropped} of {sensed.groups} groups of samples have a point that filters leave out or that does not run:"
            " the figures cover the other groups, and so only a part of the space.", "yellow",
        )  # fmt: skip
    too_few(console, method, count, sensed)
    for kind, message, number in space.trouble(sensed.points)[:MESSAGES]:
        show.note(console, f"{show.points(number)} {kind}: {message}", "red")
    counts = spanned.counts
    out = [f"{one} ({number})" for one, number in counts.left_out.items() if number]
    told = f"{show.points(len(sensed.points))}: {counts.made} run{'' if counts.made == 1 else 's'} made, {counts.known} known"
    show.note(console, f"{told}; left out: {', '.join(out)}" if out else told, "dim")


def too_few(console: Console, method: str, count: int, sensed: Sensed) -> None:
    """Reports the questions that the samples leave open."""
    if method == "one-at-a-time":
        return
    cannot = [f"{one} from zero" for one in sensed.unclear]
    cannot += [f"{a} from {b}" for a, b in sensed.alike if not {a, b} & set(sensed.unclear)]
    if cannot:
        show.note(
            console,
            f"{count} samples are too few to separate {', '.join(cannot)}; take --samples {4 * count}.",
            "yellow",
        )


def table(console: Console, title: str, name: str, unit: str, method: str, sensed: Sensed) -> None:
    """A line for each parameter, the largest effect first."""
    headings = {
        "one-at-a-time": [f"effect on\n{name}", "least", "greatest"],
        "morris": [f"effect on {name}\nover the range (μ*)", "differs by\nplace (σ)"],
        "sobol": ["share of the\nvariance (ST)", "alone (S1)"],
    }
    sheet = Sheet(title, [
        Column("parameter", name=True),
        *(Column(one, style="bold" if at == 0 else "") for at, one in enumerate(headings[method])),
    ])  # fmt: skip
    for one in sensed.effects:
        sheet.add(one.name, *{"one-at-a-time": ends, "morris": mean_effect, "sobol": shares}[method](one, unit))
    if sheet.rows:
        sheet.print(console)


def ends(one: Effect, unit: str) -> list[str]:
    """The cells of an effect that was found one at a time."""
    assert one.low is not None
    assert one.high is not None
    if one.size == 0:
        return ["0", show.written(one.low.value, unit), NOTHING]
    size = show.written(one.size, unit) + (f" ±{show.written(one.half, unit)}" if one.half else "")
    return [size, *(f"{shorter(end.label)}: {show.written(end.value, unit)}" for end in (one.low, one.high))]


def shorter(label: str) -> str:
    """The setting of a parameter, of a long one its beginning."""
    return label if len(label) <= LONGEST_LABEL else label[: LONGEST_LABEL - 1] + "…"


def mean_effect(one: Effect, unit: str) -> list[str]:
    """The cells of an effect by Morris."""
    size, half, sigma = (show.written(value or 0.0, unit) for value in (one.size, one.half, one.other))
    return [f"{size} ±{half}" if one.half else size, sigma]


def shares(one: Effect, unit: str) -> list[str]:
    """The cells of an effect by Sobol, which has no unit."""
    del unit
    pairs = [(one.size, one.half or 0.0), (one.other or 0.0, one.other_half or 0.0)]
    return [f"{value:.3f} ±{half:.3f}" if half else q.significant(value, 3) for value, half in pairs]


def as_json(spanned: Space, name: str, unit: str, method: str, sensed: Sensed) -> str:
    """The effects, as JSON."""
    effects = []
    for one in sensed.effects:
        told: dict[str, object] = {"parameter": one.name}
        if method == "sobol":
            told |= {"ST": one.size, "ST_half": one.half, "S1": one.other, "S1_half": one.other_half}
        elif method == "morris":
            told |= {"mu_star": one.size, "mu_star_half": one.half, "sigma": one.other}
        else:
            told |= {"effect": one.size, "half": one.half}
            told |= {
                key: {"value": end.value, "with": end.label}
                for key, end in (("low", one.low), ("high", one.high))
                if end
            }
        effects.append(told)
    document = {
        "schema": SCHEMA,
        "title": spanned.sweep.title,
        "figure": name,
        "unit": unit,
        "method": method,
        "base": None if sensed.base is None else {"mean": sensed.base[0], "half": sensed.base[1]},
        "standard_deviation": sensed.spread,
        "effects": effects,
        "fixed": list(sensed.fixed),
        "unclear": sensed.unclear,
        "groups": {"all": sensed.groups, "dropped": sensed.dropped},
        "runs": {"made": spanned.counts.made, "known": spanned.counts.known},
        "left_out": dict(spanned.counts.left_out),
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
