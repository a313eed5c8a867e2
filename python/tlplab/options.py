"""Arguments that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from tlplab.catalog import LISTS, find_experiment, name_of, shipped

Command = TypeVar("Command", bound=Callable[..., Any])

SEEDS = click.IntRange(0, 2**63 - 1)
"""Seeds of an experiment: the range of the key `seed`, as integers of TOML have 64 bits with their sign."""


def find_it(_context: click.Context, _parameter: click.Parameter, given: str) -> str:
    """A file, or an experiment of tlplab's own by name."""
    found = find_experiment(given)
    if not Path(found).exists() and (near := get_close_matches(given.removesuffix(".toml"), own_names(), 1, 0.75)):
        raise click.BadParameter(
            f'there is no file and no experiment "{given}"; did you mean "{near[0]}"? `tlplab list experiments` shows all'
        )
    return found


def own_names() -> list[str]:
    """The names of tlplab's own experiments."""
    own = shipped()
    return [] if own is None else [name_of(path, own) for path in sorted(own.rglob("*.toml"))]


def complete_it(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Files, and tlplab's own experiments by name."""
    names = (CompletionItem(name) for name in own_names() if name.startswith(begun))
    return [CompletionItem(begun, type="file"), *names]


def complete_listed(
    kind: str,
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Files, and the names of `tlplab list KIND`."""

    def complete(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        names = (name for name, _ in LISTS[kind]() if "FILE" not in name and name.startswith(begun))
        return [CompletionItem(begun, type="file"), *map(CompletionItem, names)]

    return complete


experiment_argument = click.argument(
    "experiment", metavar="EXPERIMENT.toml", callback=find_it, shell_complete=complete_it
)


def quiet_option(command: Command) -> Command:
    """--quiet, of a command with a table and a progress bar."""
    return click.option("--quiet", is_flag=True, help="No table, no progress bar.")(command)


def experiment_options(command: Command) -> Command:
    """The arguments of every command that reads an experiment."""
    for decorate in (
        click.option("--load", metavar="FILE", help="Take [load] from FILE; it replaces all loads of the experiment."),
        click.option(
            "--set", "overrides", metavar="KEY=VALUE", multiple=True,
            help="Override one key, as in --set switch.sw0.link='gen4 x8'. May be given again.",
        ),
        experiment_argument,
    ):  # fmt: skip
        command = decorate(command)
    return command
