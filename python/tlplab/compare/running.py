"""Runs experiments side by side, each in a process, as its devices may be in Python."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from tlplab import _core, outline
from tlplab.compare.alternatives import Alternative, overrides, refused
from tlplab.errors import ExperimentError, RunError
from tlplab.loader import forget
from tlplab.processes import side_by_side
from tlplab.result import Document
from tlplab.session import finish, judged


@dataclass(frozen=True)
class Variant:
    """An experiment and its settings."""

    name: str
    experiment: str
    overrides: tuple[str, ...]
    load: str | None
    seed: int | None
    verdict: bool
    threads: int = 1
    """For the runs that find the limit."""


def settings_of(variant: Variant) -> dict[str, Any]:
    """The settings of an experiment. Raises `ExperimentError`; `click.UsageError` if it cannot be run together with others."""
    settings = outline.read(variant.experiment, overrides=variant.overrides, load=variant.load)["settings"]
    for key in settings:
        if key.startswith("device.") and key.endswith(".file"):
            why = (
                "the runs write to it, and each would see the data of another; leave it out to keep the data in memory"
            )
            raise click.UsageError(f"{variant.name}: {key} is {settings[key]!r}: {why}")
    return settings


def of_alternative(base: Variant, settings: dict[str, Any], one: Alternative) -> Variant:
    """An alternative of a base with these settings. Raises `ExperimentError` and `click.UsageError` for mistakes in it."""
    found = replace(base, name=one.name, overrides=(*base.overrides, *overrides(one, settings)))
    try:
        settings_of(found)
    except ExperimentError as error:
        raise error.of_overrides(f"--if {one.name}") from None
    except click.UsageError as error:
        raise refused(one.given, error.message) from None
    return found


def run_all(variants: Sequence[Variant], *, threads: int | None, quiet: bool) -> dict[str, Document]:
    """Runs them; the result of each by its name. Raises `RunError` if one fails, `KeyboardInterrupt`."""
    processors = threads or os.cpu_count() or 1
    each = max(1, processors // max(1, len(variants)))
    tasks = [replace(one, threads=each) for one in variants]
    texts = side_by_side(run_one, tasks, "runs", quiet=quiet, at_once=processors)
    return {name: json.loads(text) for name, text in texts.items()}


def run_one(variant: Variant) -> str:
    """Runs one to its end; its result document."""
    forget()  # what the runs before have left in the modules of devices
    simulation = _core.Simulation(
        variant.experiment, overrides=variant.overrides, load=variant.load, seed=variant.seed, all_details=True
    )
    try:
        finished = finish(simulation)
        if finished.interrupted:
            raise KeyboardInterrupt
        if failed := finished.failures():
            raise RunError("; ".join(failed))
    except RunError as error:
        raise RunError(f"{variant.name}: {error}") from None
    if variant.verdict:
        finished = judged(simulation, finished, threads=variant.threads)
    return finished.text
