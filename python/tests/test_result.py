"""The result document: its schema, and the type that Python gives it."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any, get_args, get_type_hints

import jsonschema
import pyarrow as pa
import pytest
from click.testing import CliRunner

import tlplab as tl
from tlplab import _core, cli, document, result
from tlplab.loader import find

ROOT = Path(__file__).resolve().parents[2]
COPIER = str(ROOT / "examples/python/copier.py")
Copier, driver = find(COPIER, "Copier"), find(COPIER, "driver")
EXPERIMENTS = [path for folder in (".", "p2p") for path in sorted((ROOT / "experiments" / folder).glob("*.toml"))]
SHORT = ["stop=20us", "warmup=0us"]


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(_core.result_schema())
    jsonschema.Draft202012Validator.check_schema(read)
    return read


@pytest.fixture(scope="module")
def strict(schema: dict[str, Any]) -> jsonschema.Draft202012Validator:
    """Of the schema with no key but those it names."""
    for one in (schema, *schema["$defs"].values()):
        if "properties" in one:
            one["additionalProperties"] = False
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture(scope="module")
def quickstart() -> tl.Result:
    return tl.run("quickstart", overrides=SHORT)


@pytest.mark.parametrize("path", EXPERIMENTS, ids=[path.stem for path in EXPERIMENTS])
def test_results_match_the_schema(path: Path, strict: jsonschema.Draft202012Validator) -> None:
    simulation = _core.Simulation(str(path), overrides=["ladder.packets=200"])
    simulation.advance(3_000)
    strict.validate(json.loads(simulation.finish("interrupted")))


def test_a_verdict_by_runs_matches_the_schema(strict: jsonschema.Draft202012Validator, quickstart: tl.Result) -> None:
    assert quickstart["verdict"]["tried"] is not None
    strict.validate(json.loads(json.dumps(quickstart)))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d.pop("flows"),
        lambda d: d.update(stop_reason="the stop time"),
        lambda d: d["verdict"]["limit"].update(kind="links"),
        lambda d: d["flows"][0].update(bytes=-1),
        lambda d: d["links"][0]["directions"].pop(),
        lambda d: d["causes"].append("bad luck"),
        lambda d: d["topology"]["nodes"][0].update(kind="hub"),
        lambda d: d.update(seed="0x7"),
        lambda d: d.update(extra=1),
    ],
)
def test_the_schema_refuses_impossible_results(
    spoil: Any, strict: jsonschema.Draft202012Validator, quickstart: tl.Result
) -> None:
    spoilt = json.loads(json.dumps(quickstart))
    spoil(spoilt)
    with pytest.raises(jsonschema.ValidationError):
        strict.validate(spoilt)


def test_the_schema_is_printed() -> None:
    run = CliRunner().invoke(cli.commands, ["schema", "--result"])
    assert run.exit_code == 0
    assert run.output == (ROOT / "docs/result.schema.json").read_text(encoding="utf-8")
    both = CliRunner().invoke(cli.commands, ["schema", "--result", "--markdown"])
    assert both.exit_code == 2
    assert "--markdown and --result are different things" in both.output


def test_causes_are_one_table(quickstart: tl.Result) -> None:
    assert quickstart["causes"] == [one.name for one in tl.result.CAUSES] == list(get_args(document.Cause))
    assert all(
        one.about.endswith(".") and one.light.startswith("#") and one.dark.startswith("#") for one in document.CAUSES
    )
    assert len({one.light for one in document.CAUSES}) == len(document.CAUSES), "no two have one colour"


def test_run_and_simulate_give_one_type(quickstart: tl.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    simulated = tl.simulate(Copier(), driver)
    assert type(quickstart) is type(simulated) is tl.Result is tl.Run
    for one in (quickstart, simulated):
        # What tl.run gave, and what tl.simulate gave.
        assert isinstance(one, dict)
        assert (
            one["verdict"]["sentence"] == one.sentence == one.result["verdict"]["sentence"] == one.verdict["sentence"]
        )
        assert set(one) == set(get_type_hints(document.Document))
        assert json.loads(json.dumps(one)) == one
        one.json("r.json")
        assert tl.Result(Path("r.json").read_text(encoding="utf-8")) == one
        one.report("r.html")
        assert one.sentence in Path("r.html").read_text(encoding="utf-8")


def test_every_key_is_an_attribute(quickstart: tl.Result) -> None:
    for key in quickstart:
        assert getattr(quickstart, key) is quickstart[key], key
    assert quickstart.title in repr(quickstart)
    assert len(repr(quickstart)) < 400
    for twin in (pickle.loads(pickle.dumps(quickstart)), copy.deepcopy(quickstart)):
        assert twin == quickstart
        assert twin.flows.arrow().to_numpy().keys() == quickstart.flows.arrow().to_numpy().keys()


def test_lists_are_tables(quickstart: tl.Result) -> None:
    flows = pa.table(quickstart.flows.arrow())
    assert flows.num_rows == len(quickstart.flows)
    assert flows.column("payload_bps").to_pylist() == [flow["payload_bps"] for flow in quickstart.flows]
    assert flows.column("errors.ur").type == pa.uint64()
    assert flows.field("latency_ns.p99").metadata == {b"unit": b"ns"}
    links = pa.table(quickstart.links.arrow())
    assert (
        links.column("up.utilization.idle")[0].as_py() == quickstart["links"][0]["directions"][0]["utilization"]["idle"]
    )
    assert links.column("down.from").to_pylist() == [link["directions"][1]["from"] for link in quickstart.links]
    samples = pa.table(quickstart.samples.arrow())
    assert samples.num_rows == len(quickstart.samples) > 0
    assert samples.column("causes_ns.queueing")[0].as_py() == quickstart.samples[0]["causes_ns"][3]
    shares = pa.table(quickstart.attribution.arrow()).to_pylist()
    assert sum(one["share"] for one in shares if one["flow"] == quickstart.flows[0]["name"]) == pytest.approx(
        1, abs=1e-6
    )
    for key in result.ROWS:
        assert pa.table(quickstart[key].arrow()).num_rows == len(quickstart[key]), key


def test_a_table_without_rows_has_its_columns() -> None:
    made = tl.Experiment(title="T", stop="1ns").device("d", under="host.rp0", link="gen3 x1")
    nothing = tl.run(made.load("d", op="write", size="4KiB"), verdict=False)
    table = pa.table(nothing.outages.arrow())
    assert table.num_rows == 0
    assert table.schema.field("up_fs").type == pa.uint64()
    assert "latency_ns.p50" in pa.table(nothing.flows.arrow()).column_names
    assert "<svg" in nothing._repr_html_()


def test_a_notebook_shows_it(quickstart: tl.Result) -> None:
    shown = quickstart._repr_html_()
    assert "limit" in shown
    assert shown.count("<svg") == len(quickstart.flows)
    assert "serialisation" in shown
    assert "http" not in shown
    assert "<script" not in shown
    evil = copy.deepcopy(quickstart)
    evil["flows"][0]["name"] = evil["title"] = "<img src=x onerror=alert(1)>"
    assert "<img" not in evil._repr_html_()


def test_tables_refuse_malformed_columns() -> None:
    for columns in (
        [("a", None, "words", ["x"])],
        [("a", None, "whole", ["x"])],
        [("a", None, "whole", [1]), ("b", None, "whole", [])],
    ):
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            _core.table(columns)  # type: ignore[arg-type]
