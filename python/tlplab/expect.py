"""`tlplab expect`: a check of a run's figures against the expectations of its experiment."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from xml.etree import ElementTree

import click
from rich.console import Console
from rich.text import Text

from tlplab import _core
from tlplab.errors import FAILED, INTERRUPTED
from tlplab.options import SEEDS, experiment_options
from tlplab.outputs import check_outputs, write_text
from tlplab.progress import Bar
from tlplab.session import finish
from tlplab.study.show import written
from tlplab.summary import console_for


@dataclass(frozen=True)
class Judged:
    """An expectation, and its result."""

    text: str
    holds: bool
    figures: dict[str, float | None]
    """`None`: the run has no such figure."""
    said: str
    """The figures for people."""


@click.command("expect", short_help="Run an experiment and check its [expect].")
@experiment_options
@click.option("--seed", type=SEEDS, metavar="N", help="Seed of the random streams.")
@click.option(
    "--json", "json_file", metavar="FILE|-", help="Write the conditions and their outcome; - is the standard output."
)
@click.option("--junit", metavar="FILE.xml", help="Write them as JUnit XML, for continuous integration.")
@click.option("--quiet", is_flag=True, help="Show only the conditions that do not hold.")
def expect_command(
    experiment: str, overrides: Sequence[str], load: str | None, seed: int | None, json_file: str | None,
    junit: str | None, quiet: bool,
) -> int:  # fmt: skip
    """Run an experiment and check its [expect]: figures and the condition of each.

    The exit status is 0 if all conditions hold, and 1 if one does not or the run failed. No limit is searched for.

    \b
    Examples:
      tlplab expect experiments/tags.toml --set 'expect={ dev.throughput = ">= 30 Gb/s" }'
      tlplab expect design.toml --junit out/design.xml
    """
    check_outputs(
        {"--json": json_file, "--junit": junit},
        to_stdout={"--json"},
        inputs={"the experiment": experiment, "--load": load},
    )
    simulation = _core.Simulation(experiment, overrides=overrides, load=load, seed=seed, all_details=True)
    if not simulation.expected():
        raise click.UsageError(f'{experiment} expects nothing; write for example\n[expect]\nthroughput = ">= 10 Gb/s"')
    with Bar(quiet=quiet) as bar:
        finished = finish(simulation, bar.update)
    if finished.interrupted:
        click.echo("interrupted: no condition was checked", err=True)
        return INTERRUPTED
    failures = finished.failures()
    judged = [as_judged(*one) for one in simulation.judged()]
    title = finished.result()["title"]
    if junit is not None:
        write_text(junit, as_junit(experiment, title, judged, failures))
    if json_file is not None:
        document = {"title": title, "failures": failures, "expected": [asdict(one) for one in judged]}
        write_text(json_file, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    if json_file != "-":
        show(console_for(sys.stdout), title, judged, failures, quiet=quiet)
    return 0 if all(one.holds for one in judged) and not failures else FAILED


def as_judged(text: str, holds: bool, figures: list[tuple[str, float | None, str]], meant: str | None) -> Judged:
    """An expectation as the simulator judged it."""
    parts = [
        f"{name} is {written(value, unit)}" if value is not None else f"the run has no {name}"
        for name, value, unit in figures
    ]
    said = ", ".join(parts) + (f"; did you mean {meant}?" if meant is not None else "")
    return Judged(text, holds, {name: value for name, value, _ in figures}, said)


def show(console: Console, title: str, judged: Sequence[Judged], failures: Sequence[str], *, quiet: bool) -> None:
    """A line for each expectation; with `quiet` only for failed ones."""
    if not quiet:
        console.print(Text(title, style="bold"))
    for failure in failures:
        console.print(Text(f"✗ the run failed: {failure}", style="red"))
    for one in judged:
        if not one.holds:
            console.print(Text(f"✗ {one.text}: {one.said}", style="red"))
        elif not quiet:
            console.print(Text(f"✓ {one.text}: {one.said}", style="green"))
    if not quiet:
        hold = sum(one.holds for one in judged)
        console.print(Text(f"{hold} of {len(judged)} hold", style="dim"))


def as_junit(experiment: str, title: str, judged: Sequence[Judged], failures: Sequence[str]) -> str:
    """The expectations as JUnit's XML: a test case for each expectation, and one for a run that failed."""
    missed = sum(not one.holds for one in judged) + bool(failures)
    counts = {"tests": str(len(judged) + bool(failures)), "failures": str(missed), "errors": "0"}
    suites = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": title, **counts})
    cases = [(one.text, None if one.holds else one.said) for one in judged]
    if failures:
        cases.append(("the run ends well", "; ".join(failures)))
    for name, wrong in cases:
        case = ElementTree.SubElement(suite, "testcase", {"classname": experiment, "name": name})
        if wrong is not None:
            ElementTree.SubElement(case, "failure", {"message": wrong}).text = wrong
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"
