"""Arguments that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def experiment_options(command: Command) -> Command:
    """The arguments of every command that reads an experiment."""
    for decorate in (
        click.option("--load", metavar="FILE", help="Take [load] from FILE; it replaces all loads of the experiment."),
        click.option(
            "--set", "overrides", metavar="KEY=VALUE", multiple=True,
            help="Override one key, as in --set switch.sw0.link='gen4 x8'. May be given again.",
        ),
        click.argument("experiment", metavar="EXPERIMENT.toml"),
    ):  # fmt: skip
        command = decorate(command)
    return command
