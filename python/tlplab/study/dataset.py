"""The data set of a study in a file: Parquet by pyarrow, CSV, or JSON with a summary of each point."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path

import click

from tlplab import _core
from tlplab.outputs import check_ending, write_bytes
from tlplab.study.running import Done

ENDINGS = (".parquet", ".csv")
SCHEMA = "tlplab/study/1"


def check(option: str, path: str | None) -> None:
    """Refuses a file that cannot be written, before the study is run. Raises `click.UsageError`."""
    if path is None:
        return
    check_ending(option, path, ENDINGS)
    if Path(path).suffix.lower() == ".parquet":
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise click.UsageError(
                f"{option} {path}: Parquet is written by pyarrow: pip install 'tlplab[studies]'; or name a .csv"
            ) from None


def write(path: str, table: _core.Table) -> None:
    """Writes a data set as the ending of `path` says."""
    write_bytes(path, as_parquet(table) if Path(path).suffix.lower() == ".parquet" else as_csv(table))


def as_parquet(table: _core.Table) -> bytes:
    """A data set as Parquet: the same bytes for the same rows."""
    import pyarrow
    import pyarrow.parquet

    written = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(table), written, compression="zstd")
    return written.getvalue()


def as_csv(table: _core.Table) -> bytes:
    """A data set as CSV; where there is no value, a cell is empty."""
    columns = table.to_numpy()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([cell(value) for value in row] for row in zip(*columns.values(), strict=True))
    return text.getvalue().encode()


def cell(value: object) -> object:
    """A value as a cell: the shortest decimal that is read back as the same number."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(float(value)) if isinstance(value, float) else value


def as_json(
    done: Done, figures: Sequence[tuple[str, str]], summaries: _core.Summaries, front: Sequence[bool] | None = None
) -> str:  # fmt: skip
    """The result of each point, as JSON."""
    axes = done.sweep.axes
    points = []
    for at, one in enumerate(summaries):
        means = {
            name: None if mean is None else {"mean": mean[0], "half": mean[1]}
            for (name, _), mean in zip(figures, one["means"], strict=True)
        }
        kind, message = one["trouble"] or ("done", None)
        point = {
            "point": one["point"],
            "values": dict(zip((name for name, _, _ in axes), one["values"], strict=True)),
            "runs": one["runs"],
            "kind": kind,
            "message": message,
            "limit": one["limit"],
            "figures": means,
        }
        points.append(point if front is None else {**point, "front": front[at]})
    document = {
        "schema": SCHEMA,
        "title": done.sweep.title,
        "axes": [{"name": name, "unit": unit} for name, unit, _ in axes],
        "figures": [{"name": name, "unit": unit} for name, unit in figures],
        "left_out": dict(done.sweep.left_out),
        "points": points,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
