"""`tlplab explain`: the time that the transactions at a percentile spent and those at the median did not."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from tlplab import _core
from tlplab import quantities as q
from tlplab.compare import words
from tlplab.compare.figures import Cause
from tlplab.compare.sources import Source, read_result, reading, source_of
from tlplab.compare.transactions import Known, Transaction, kept_by, sampled_in
from tlplab.options import SEEDS, complete_it, quiet_option
from tlplab.outputs import check_outputs, write_text
from tlplab.progress import Bar
from tlplab.session import finish, succeed
from tlplab.sheet import Column, Sheet
from tlplab.summary import console_for, print_hanging, wrapped

SCHEMA = "tlplab/explain/1"
MEDIAN = 50.0
ROWS_SHOWN = 10
FLOWS_NAMED = 12


@dataclass(frozen=True)
class Row:
    """The time of a cause in a transaction at the median and at the percentile, on average of the transactions considered, femtoseconds."""

    cause: Cause
    median: Fraction
    there: Fraction

    @property
    def difference(self) -> Fraction:
        """The increase at the percentile."""
        return self.there - self.median


@dataclass(frozen=True)
class Explained:
    """A flow's transactions around a percentile, compared with those around the median."""

    known: Known
    percentile: float
    median: Sequence[Transaction]
    there: Sequence[Transaction]
    rows: Sequence[Row]
    """The largest difference first."""

    @property
    def difference(self) -> Fraction:
        """Of their mean latencies, femtoseconds: the sum of the rows."""
        return mean(self.there) - mean(self.median)


def percentile_of(_context: click.Context, _parameter: click.Parameter, given: float) -> float:
    """A percentile: more than 0, and 100 is the longest."""
    if not 0 < given <= 100:
        raise click.BadParameter(f"{given:g} is not a percentile; give a number above 0 and up to 100, such as 99.9")
    return given


@click.command("explain", short_help="Show why slow transactions take as long as they do.")
@click.argument("run", metavar="RUN", shell_complete=complete_it)
@click.option(
    "--percentile", type=float, default=99.0, show_default=True, metavar="P", callback=percentile_of,
    help="Explain the transactions at this percentile of latency; 100 is the longest.",
)  # fmt: skip
@click.option(
    "--flow",
    "wanted",
    metavar="FLOW",
    help="The flow to explain (default: the one with the largest latency at the percentile).",
)
@click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Override one key. May be given again.")
@click.option("--load", metavar="FILE", help="Take [load] from FILE; it replaces all loads of the experiment.")
@click.option("--seed", type=SEEDS, metavar="N", help="Seed of the random streams.")
@click.option(
    "--json", "json_file", metavar="FILE|-", help="Write transactions and causes as JSON; - is the standard output."
)
@quiet_option
def explain_command(
    run: str, percentile: float, wanted: str | None, overrides: Sequence[str], load: str | None, seed: int | None,
    json_file: str | None, quiet: bool,
) -> int:  # fmt: skip
    """Show why transactions at a percentile of latency take longer than those at the median.

    Compares a few transactions at the percentile with a few at the median, cause by cause: the causes of each add up
    to its latency. RUN is an experiment, which is run, or a result of `tlplab run --json`, which holds a sample of
    2048 transactions.

    \b
    Examples:
      tlplab explain quickstart --percentile 99
      tlplab explain quickstart --flow nic --set 'switch.sw0.link=gen4 x8'
      tlplab explain saved.json --percentile 90
    """
    source = source_of(run)
    check_outputs({"--json": json_file}, to_stdout={"--json"}, inputs={"the run": source.path, "--load": load})
    flows = flows_of(source, overrides, load, seed, quiet=quiet)
    found = explain(choose(flows, wanted, percentile, run), percentile, run)
    if json_file is not None:
        write_text(json_file, json.dumps(as_json(found, run), indent=1, ensure_ascii=False) + "\n")
    if not quiet and json_file != "-":
        others = [name for name in flows if name != found.known.flow]
        given = [*(f"--set {shlex.quote(one)}" for one in overrides), *([f"--load {shlex.quote(load)}"] if load else []),
                 *([f"--seed {seed}"] if seed is not None else [])]  # fmt: skip
        again = f"tlplab run {shlex.quote(run)} {' '.join(given)}".rstrip() if source.kind == "experiment" else None
        show(console_for(sys.stdout), found, others, again)
    return 0


def flows_of(
    source: Source, overrides: Sequence[str], load: str | None, seed: int | None, *, quiet: bool
) -> dict[str, Known]:  # fmt: skip
    """The known transactions of each flow. Raises the exceptions of reading and running."""
    if source.kind == "capture":
        raise click.UsageError(
            f"{source.given} is a capture, which has no causes; name the experiment or a result of tlplab run --json"
        )
    if source.kind == "result":
        if overrides or load is not None or seed is not None:
            raise click.UsageError(
                f"{source.given} is a saved result: --set, --load and --seed are for experiments, which are run"
            )
        with reading(source):
            return sampled_in(read_result(source), source.given)
    simulation = _core.Simulation(
        source.path, overrides=overrides, load=load, seed=seed, all_details=True, keep_transactions=True
    )
    with Bar(quiet=quiet) as bar:
        finished = finish(simulation, bar.update)
    succeed(finished)
    return kept_by(simulation) or sampled_in(finished.result(), source.given)


def choose(flows: dict[str, Known], wanted: str | None, percentile: float, run: str) -> Known:
    """The flow that was asked for; that with the largest latency there, if none was. Raises `click.UsageError`."""
    if not flows:
        raise click.UsageError(f"{run}: no transaction succeeded, so there is none to explain")
    if wanted is None:
        return max(flows.values(), key=lambda known: known.latency(percentile))
    if wanted not in flows:
        raise click.UsageError(
            f"--flow {wanted}: there is no such flow with a successful transaction; the flows are {', '.join(flows)}"
        )
    return flows[wanted]


def explain(known: Known, percentile: float, run: str) -> Explained:
    """Lays transactions of a flow side by side. Raises `click.UsageError`, where too few are known."""
    beyond = 100 - Fraction(str(percentile))
    if not known.complete and len(known.latencies) * beyond < 100:
        needed = f"at least {-(-100 // beyond)} are needed" if beyond else "the longest is rarely in the sample"
        raise click.UsageError(
            f"{run} has a sample of {len(known.latencies)} of the {known.of} transactions of {known.flow}, too few for percentile {percentile:g}"
            f" ({needed}); explain the experiment itself, or a lower percentile"
        )
    median, there = known.around(MEDIAN), known.around(percentile)
    for one in (*median, *there):
        assert sum(fs for _, fs in one.parts) == one.latency_fs, "the causes add up to the latency"
    causes = sorted({cause for one in (*median, *there) for cause in one.causes})
    rows = [Row(cause, mean(median, cause), mean(there, cause)) for cause in causes]
    return Explained(known, percentile, median, there, sorted(rows, key=lambda row: (-abs(row.difference), -row.there)))


def mean(ones: Sequence[Transaction], cause: Cause | None = None) -> Fraction:
    """The mean latency of some transactions, or a cause's part of it."""
    total = sum(one.latency_fs if cause is None else one.causes.get(cause, 0) for one in ones)
    return Fraction(total, len(ones))


def sentence(found: Explained) -> str:
    """The main cause of the difference."""
    name, flow = f"p{found.percentile:g}", found.known.flow
    at, middle = found.known.latency(found.percentile), found.known.latency(MEDIAN)
    begins = f"{name} of {flow} is {q.time_fs(at)}, the median {q.time_fs(middle)}"
    if not found.difference:
        return f"{begins}: these transactions take as long"
    largest = max(found.rows, key=lambda row: row.difference if found.difference > 0 else -row.difference)
    share = q.percent(float(largest.difference / found.difference))
    return (
        f"{begins}: of the {change(found.difference)} between these transactions, {place_of(largest.cause)} accounts for {change(largest.difference)}"
        f" ({share} %)"
    )


def change(fs: Fraction) -> str:
    """A time with its sign."""
    return f"{words.MINUS if fs < 0 else '+'}{q.time(abs(float(fs)) / 1e6)}"


def place_of(cause: Cause) -> str:
    """A cause in words: `queueing at sw0 → host.rp0 behind ssd`."""
    return f"{cause.cause} at {cause.place}{f' behind {cause.behind}' if cause.behind else ''}"


def show(console: Console, found: Explained, others: Sequence[str], again: str | None) -> None:
    """The sentence, the causes, and the transactions."""
    known = found.known
    console.print(Text(wrapped(console, sentence(found)), style="bold cyan"))
    count = q.count(len(known.latencies))
    if not known.complete:
        told = f"of a uniform sample of {count} of the {q.count(known.of)} transactions of {known.flow}"
    else:
        told = f"of {f'all {count} transactions' if known.of > 1 else 'the only transaction'} of {known.flow}"
    named = ", ".join([*others[:FLOWS_NAMED], *(["…"] if len(others) > FLOWS_NAMED else [])])
    more = f"; other flows: {named} (--flow)" if others else ""
    console.print(Text(wrapped(console, told + more), style="dim"))
    console.print()
    show_rows(console, found)
    show_transactions(console, found)
    if again is not None:
        first = min(one.start_fs for one in found.there) // 1_000_000
        print_hanging(
            console, "→", f"In the ladder of the report: {again} --set ladder.at={first}ns --report page.html"
        )


def show_rows(console: Console, found: Explained) -> None:
    """Cause by cause."""
    steps = words.steps_for([row.difference for row in found.rows], [mean(found.median), mean(found.there)])
    name = f"p{found.percentile:g}"
    handful = f"means of {len(found.there)} transactions" if len(found.there) > 1 else "one transaction each"
    sheet = Sheet(f"Around {name} and the median, {handful}, {steps.unit}", [
        Column("cause", name=True), Column("at", name=True), Column("behind", name=True),
        Column("median"), Column(name), Column("difference", style="bold"),
    ])  # fmt: skip
    median = steps.rounded([row.median for row in found.rows])
    more = steps.rounded([row.difference for row in found.rows])

    def add(cause: str, place: str, behind: str, rows: range) -> None:
        one, change = sum(median[at] for at in rows), sum(more[at] for at in rows)
        sheet.add(cause, place, behind, steps.text(one), steps.text(one + change), steps.text(change, sign=True))

    for at, row in enumerate(found.rows[:ROWS_SHOWN]):
        add(row.cause.cause, row.cause.place, row.cause.behind, range(at, at + 1))
    if len(found.rows) > ROWS_SHOWN:
        rest = len(found.rows) - ROWS_SHOWN
        add("1 other" if rest == 1 else f"{rest} others", "", "", range(ROWS_SHOWN, len(found.rows)))
    add("latency", "", "", range(len(found.rows)))
    sheet.print(console)
    console.print()


def show_transactions(console: Console, found: Explained) -> None:
    """The transactions around the percentile: their start, their duration, and their differences from the median."""
    sheet = Sheet("The transactions", [
        Column("around", name=True), Column("starts at"), Column("latency"),
        Column("differs from\nthe median by", name=True), Column("transaction", name=True),
    ])  # fmt: skip
    groups = ((f"p{found.percentile:g}", found.there), ("median", found.median))
    for name, ones in groups:
        for at, one in enumerate(ones):
            excess = {row.cause: one.causes.get(row.cause, 0) - row.median for row in found.rows}
            cause = max(excess, key=lambda cause: abs(excess[cause]))
            most = f"{place_of(cause)}: {change(excess[cause])}" if ones is found.there and excess[cause] else ""
            sheet.add(
                name if at == 0 else "", q.time_fs(one.start_fs, 7), q.time_fs(one.latency_fs, 5),
                most, one.what or "",
                ends_section=at + 1 == len(ones),
            )  # fmt: skip
    sheet.print(console)
    console.print()


def as_json(found: Explained, run: str) -> dict[str, Any]:
    """The document `tlplab/explain/1`; `parts` of a transaction add up to its latency, in femtoseconds."""
    known = found.known
    return {
        "schema": SCHEMA,
        "run": run,
        "flow": known.flow,
        "percentile": found.percentile,
        "transactions": known.of,
        "known": len(known.latencies),
        "latency_fs": {"median": known.latency(MEDIAN), "there": known.latency(found.percentile)},
        "sentence": sentence(found),
        "causes": [
            {**named(row.cause), "median_ns": float(row.median) / 1e6, "there_ns": float(row.there) / 1e6,
             "difference_ns": float(row.difference) / 1e6}
            for row in found.rows
        ],
        "median": [of_transaction(one) for one in found.median],
        "there": [of_transaction(one) for one in found.there],
    }  # fmt: skip


def of_transaction(one: Transaction) -> dict[str, Any]:
    """A transaction in a document."""
    parts = [{**named(cause), "fs": fs} for cause, fs in one.parts]
    return {"start_fs": one.start_fs, "latency_fs": one.latency_fs, "what": one.what, "parts": parts}


def named(cause: Cause) -> dict[str, str | None]:
    """A cause in a document."""
    return {"cause": cause.cause, "place": cause.place, "behind": cause.behind or None}
