"""Generated files are fresh, and the schema and the reader agree."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tlplab import _core, catalog, outline
from tlplab.errors import ExperimentError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
# What has no title is there to be included; what has a source is a profile of a host or a device.
EXPERIMENTS = sorted(
    path
    for folder in ("experiments", "studies")
    for path in ROOT.glob(f"{folder}/**/*.toml")
    # and a study is no experiment.
    if "title" in (read := tomllib.loads(path.read_text(encoding="utf-8")))
    and not {"source", "experiment", "model", "bench"} & set(read)
)


def test_the_schema_file_is_fresh() -> None:
    written = (ROOT / "experiments/schema.json").read_text(encoding="utf-8")
    assert written == _core.schema() + "\n", "run `make generate`"


def test_the_reference_is_fresh() -> None:
    written = (ROOT / "docs/experiments.md").read_text(encoding="utf-8")
    assert written == catalog.reference(), "run `make generate`"


def test_the_list_of_figures_is_fresh() -> None:
    written = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
    assert written == catalog.figures(), "run `make generate`"


@pytest.mark.parametrize(("name", "text"), _core.dissector(), ids=lambda value: value[:20])
def test_the_dissector_is_fresh(name: str, text: str) -> None:
    written = (ROOT / "dissector" / name).read_text(encoding="utf-8")
    assert written == text, "run `make generate`"


def validator() -> Any:
    schema = json.loads(_core.schema())
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


@pytest.mark.parametrize("path", EXPERIMENTS, ids=[str(path.relative_to(ROOT)) for path in EXPERIMENTS])
def test_every_experiment_passes_both_schema_and_reader(path: Path) -> None:
    validator().validate(tomllib.loads(path.read_text(encoding="utf-8")))
    read = outline.read_guests(path)
    outlines = [read["outline"]] if read["outline"] else [machine["outline"] for machine in read["machines"]]
    assert outlines
    assert all(one["title"] for one in outlines)


@pytest.mark.parametrize(
    "mistake",
    [
        "title = 3",
        'stop = "12"',
        'swich = { sw0 = { under = "host.rp0", link = "gen4 x4" } }',
        'switch = { sw0 = { under = "host.rp0", lnk = "gen4 x4" } }',
        'device = { d = { under = "host.rp0" } }',
        'device = { d = { under = "host.rp0", link = "gen4 x4" }, e = { under = "d.fn1", link = "gen4 x4" } }',
        'fidelity = "exact"',
        "seed = -1",
    ],
)
def test_the_reader_refuses_the_mistakes_of_the_schema(mistake: str, tmp_path: Path) -> None:
    key = mistake.split()[0]
    good = {
        "title": 'title = "t"',
        "stop": 'stop = "1us"',
        "device": 'device = { d = { under = "host.rp0", link = "gen4 x4" } }',
        "load": 'load = { d = { op = "write", size = "4KiB" } }',
    }
    path = tmp_path / "experiment.toml"
    path.write_text("\n".join(good.values()), encoding="utf-8")
    outline.read(path)
    validator().validate(tomllib.loads(path.read_text(encoding="utf-8")))
    good[key] = mistake
    path.write_text("\n".join(good.values()), encoding="utf-8")
    with pytest.raises(jsonschema.ValidationError):
        validator().validate(tomllib.loads(path.read_text(encoding="utf-8")))
    with pytest.raises(ExperimentError):
        outline.read(path)
