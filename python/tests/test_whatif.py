"""The limit of a run is found by runs: the command, the document, and the omitted limits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tlplab as tl
from tlplab import _core
from tlplab.cli import status
from tlplab.session import finish

ROOT = Path(__file__).resolve().parents[2]
TAGS = str(ROOT / "experiments/tags.toml")


def test_the_table_has_every_step_of_every_resource(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "whatif.json"
    assert status(["whatif", TAGS, "--json", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "The tags of dev limit the run" in shown
    assert max(map(len, shown.splitlines())) <= 100
    table = json.loads(file.read_text())
    best = table["resources"][0]
    assert (best["resource"], best["kind"], best["twice"]["change"]) == ("tags of dev", "tags", "4 → 8")
    assert best["twice"]["gain"] == pytest.approx(1.0, abs=0.01)
    assert best["tenth"]["gain"] < best["twice"]["gain"] < best["gone"]["gain"]
    assert best["twice"]["p50"] == pytest.approx(-0.5, abs=0.01)
    link = next(row for row in table["resources"] if row["kind"] == "link")
    assert link["tenth"] is None
    assert table["verdict"]["limit"]["gain"] == best["twice"]["gain"]


def test_latencies_are_the_largest_of_any_flow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wider uplink shortens both flows, but leaves a larger part of all transactions to the slow one."""
    file = tmp_path / "two.toml"
    file.write_text(
        'title = "two"\nstop = "100us"\n[switch.sw0]\nunder = "host.rp0"\nlink = "gen3 x4"\n'
        '[device.a]\nunder = "sw0"\nlink = "gen3 x8"\n[device.b]\nunder = "sw0"\nlink = "gen3 x4"\n'
        '[load]\na = { op = "write", size = "4KiB" }\nb = { op = "write", size = "64B", rate = "300Mb/s" }\n'
    )
    assert status(["whatif", str(file), "--full", "--json", "-"]) == 0
    rows = json.loads(capsys.readouterr().out)["resources"]
    wider = next(
        row["twice"] for row in rows if row["resource"] == "link sw0 → host.rp0" and row["twice"]["change"] == "x4 → x8"
    )

    def largest(link: str) -> float:
        flows = tl.run(str(file), overrides=[f"switch.sw0.link={link}"], verdict=False)["flows"]
        return max(flow["latency_ns"]["p50"] for flow in flows if flow["latency_ns"])

    change = largest("gen3 x8") / largest("gen3 x4") - 1
    assert change < -0.3
    assert wider["p50"] == pytest.approx(change, abs=0.01)


def test_the_document_is_the_same_on_any_number_of_threads(capsys: pytest.CaptureFixture[str]) -> None:
    documents = []
    for threads in ("1", "3"):
        assert status(["run", TAGS, "--json", "-", "--threads", threads]) == 0
        documents.append(capsys.readouterr().out)
    assert documents[0] == documents[1]
    tried = json.loads(documents[0])["verdict"]["tried"]
    assert tried["tried"] == tried["candidates"] > 15
    assert tried["gains"][0]["resource"] == "tags of dev"


def test_figures_alone_speak_where_nothing_runs_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["run", TAGS, "--json", "-", "--no-verdict"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"]["tried"] is None
    assert tl.run(TAGS, verdict=False)["verdict"]["tried"] is None
    copier = str(ROOT / "examples/python/copier.toml")
    assert tl.run(copier)["verdict"]["tried"] is None
    assert status(["whatif", copier]) == 1
    assert "copier.py has state outside of the simulation, and cannot be run again" in capsys.readouterr().err


def test_a_cancelled_task_has_no_result() -> None:
    simulation = _core.Simulation(TAGS)
    finish(simulation)
    judge = simulation.judge()
    task = judge.next_task()
    assert task is not None
    judge.cancel()
    task.run()
    assert task.result() is None


def test_ctrl_c_while_resources_are_tried_leaves_the_figures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tlplab.session.make_runs", interrupted)
    assert status(["run", TAGS, "--json", "-"]) == 130
    written = capsys.readouterr()
    verdict = json.loads(written.out)["verdict"]
    assert verdict["tried"] is None
    assert verdict["limit"]["resource"] == "tags of dev"
    assert "interrupted: not all resources were tried" in written.err


def test_a_study_knows_its_candidates() -> None:
    simulation = _core.Simulation(TAGS)
    finish(simulation)
    judge = simulation.judge()
    assert ("tags of dev", "tags") in judge.candidates()
    for index, by in ((10**6, "twice"), (0, "thrice")):
        with pytest.raises(ValueError, match=r"no such candidate|tenth, twice or gone"):
            judge.task_for_table(index, by)
