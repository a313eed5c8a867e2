"""The page of a study in HTML, one file: its runs as columns, how to run a point again, and the reports of its points if they are wanted.

The page is built in `report/`; `report/src/study/document.ts` describes its input. It is the same for the same rows.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from tlplab import _core
from tlplab import quantities as q
from tlplab.outputs import write_text
from tlplab.study import alone, page, show
from tlplab.study.reports import Reports
from tlplab.study.running import Asked, Done

SCHEMA = "tlplab/study-page/1"
PLACE = "/*TLPLAB_RESULT*/"
# Columns of the data set that are no figures.
KEPT = ("point", "repeat", "seed", "kind", "message", "limit", "verdict")
# With more runs than this a page is slow, and with more cells it has only the figures that the study shows.
MOST_RUNS = 100_000
MOST_CELLS = 4_000_000
# A column is a list of values and places in it, if these are so much fewer.
FEW = 3


def write(path: str, asked: Asked, done: Done, wanted: str, reports: Reports | None) -> None:
    """Writes the page of a study that was run, with `wanted` as the figures that it shows at first."""
    text = json.dumps(
        document(asked, done, wanted, reports), ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    before, after = Path(__file__).with_name("study.html").read_text(encoding="utf-8").split(PLACE)
    # In JSON `<` occurs in strings only. Escaped, no string can end the script element.
    write_text(path, before + text.replace("<", "\\u003c") + after)


def document(asked: Asked, done: Done, wanted: str, reports: Reports | None) -> dict[str, Any]:
    """The content of the page. Raises `click.UsageError` for more runs than a browser can show."""
    table = done.swept.table().to_numpy()
    runs = len(table["point"])
    if runs > MOST_RUNS:
        raise click.UsageError(
            f"--html: a page holds {q.count(MOST_RUNS)} runs, and this study has {q.count(runs)}: choose points by --where, or write all with -o FILE.parquet"
        )
    every = runs * len(table) <= MOST_CELLS
    axes = [(name, unit) for name, unit, _ in done.sweep.axes]
    changed = asked.changes()
    found = None if changed else done.swept.finding()
    figures, columns = figures_of(done, table, {name for name, _ in axes}, wanted, every=every)
    whole = {
        "schema": SCHEMA,
        "title": done.sweep.title,
        "about": page.head(Path(asked.study).read_text(encoding="utf-8")),
        "finding": None if found is None else {"says": show.sentence(found), "holds": found[2]},
        "changed": [shlex.join(pair) for pair in zip(changed[::2], changed[1::2], strict=True)],
        "left_out": done.sweep.left_out,
        "axes": [{"name": name, "unit": unit} for name, unit in axes],
        "figures": figures,
        "every": every,
        "rows": runs,
        "columns": {
            **{name: column(table[name].tolist()) for name in ("point", "seed", "kind", "message")},
            "limit": column(table["limit"].tolist()) if "limit" in table else {"all": None},
            "axes": [column(table[name].tolist()) for name, _ in axes],
            "figures": columns,
        },
        "command": command(done, table["point"].tolist()),
    }
    return whole if reports is None else {**whole, "reports": reports.document()}


def figures_of(
    done: Done, table: Mapping[str, np.ndarray[Any, Any]], axes: set[str], wanted: str, *, every: bool
) -> tuple[list[dict[str, Any]], list[Any]]:
    """The figures and their columns: first the figures that the study shows, then, for `every` one, all others that it has."""
    shown = done.swept.figures(wanted)
    own = {one.split("=")[0].strip(): one for one in done.sweep.metrics}
    names = [name for name in table if name not in axes and name not in KEPT]
    figures, columns = [], []
    others = [name for name in names if name not in dict(shown)] if every else []
    for name, unit in [*shown, *((name, None) for name in others)]:
        metric = _core.metric(name)
        if unit is None:
            unit = metric[0] if metric is not None else done.swept.figures(own[name])[0][1] if name in own else "1"
        figures.append({
            "name": name, "unit": unit, "more": metric[1] if metric is not None else None, "shown": name in dict(shown),
        })  # fmt: skip
        columns.append(column(numbers(table[name])) if name in names else {"means": None})
    if {"means": None} in columns:
        # Figures of the command line are in no column: their means are told.
        for one in done.swept.summaries(wanted):
            for at, mean in enumerate(one["means"]):
                if "means" in columns[at]:
                    columns[at]["means"] = [*(columns[at]["means"] or []), mean]
    return figures, columns


def numbers(values: np.ndarray[Any, Any]) -> list[float | int | None]:
    """Numbers for JSON: whole ones without a point, none where there is none."""
    return [
        None if value is None or not math.isfinite(value) else int(value) if value == int(value) and abs(value) < 2**53 else value
        for value in values.tolist()
    ]  # fmt: skip


def column(values: Sequence[Any]) -> Any:
    """A column as the page has it: the value of all rows, places in a list of values, or the values."""
    # `True` and 1 are the same key.
    places: dict[tuple[type, Any], int] = {}
    at = [places.setdefault((type(value), value), len(places)) for value in values]
    if len(places) == 1:
        return {"all": values[0]}
    if FEW * len(places) <= len(values) or isinstance(values[0], str):
        return {"of": [value for _, value in places], "at": at}
    return list(values)


def command(done: Done, points: Sequence[int]) -> dict[str, Any] | None:
    """The command that runs a point alone: its head, and the words that each row adds. Quoted for a shell. None where no run has a report."""
    experiment, load, common, own = done.sweep.inputs
    if experiment is None:
        return None
    most = max((len(sets) for sets in own.values()), default=0)

    def told(point: int, at: int) -> str:
        return shlex.join(["--set", own[point][at]]) if at < len(own[point]) else ""

    return {
        "head": shlex.join(alone.words(experiment, common, load)),
        "sets": [column([told(point, at) for point in points]) for at in range(most)],
    }
