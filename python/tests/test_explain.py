"""`tlplab explain`: transactions at a percentile compared with those at the median, each of which adds up."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tlplab import _core
from tlplab.cli import status
from tlplab.compare.transactions import HANDFUL

# Random reads of an IO-TLB that holds few of the pages: some wait for page walks.
DESIGN = """\
title = "Reads and writes"
stop = "40us"
warmup = "5us"
[switch.sw0]
under = "host.rp0"
link = "gen4 x4"
latency = "100ns"
[device.ssd]
under = "sw0"
link = "gen4 x4"
[device.nic]
under = "sw0"
link = "gen4 x8"
[load]
ssd = { op = "write", size = "4KiB", outstanding = 4 }
nic = { op = "write", size = "1500B", rate = "15Gb/s" }
"""


@pytest.fixture
def design(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "design.toml"
    path.write_text(DESIGN)
    return path


@cache
def text_of(*overrides: str) -> str:
    simulation = _core.Simulation("design.toml", text=DESIGN, overrides=overrides, all_details=True)
    while not simulation.advance(100_000).done:
        pass
    return simulation.finish()


def document_of(*overrides: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text_of(*overrides))
    return document


def explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code = status(["explain", *arguments, "--json", "-"])
    out, err = capsys.readouterr()
    assert code == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


def test_each_transaction_adds_up(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = explained(capsys, "design.toml", "--flow", "nic", "--percentile", "80")
    assert found["schema"] == "tlplab/explain/1"
    assert len(found["there"]) == len(found["median"]) == HANDFUL
    for one in (*found["there"], *found["median"]):
        assert sum(part["fs"] for part in one["parts"]) == one["latency_fs"]
        assert one["what"].startswith("write of 1500 B at 0x")
    means = {side: sum(one["latency_fs"] for one in found[side]) / HANDFUL / 1e6 for side in ("there", "median")}
    assert sum(row["difference_ns"] for row in found["causes"]) == pytest.approx(means["there"] - means["median"])
    assert sum(row["median_ns"] for row in found["causes"]) == pytest.approx(means["median"])
    sizes = [abs(row["difference_ns"]) for row in found["causes"]]
    assert sizes == sorted(sizes, reverse=True)
    # The longest has none beside it that is as long, so it is alone: the difference is that of the sentence.
    longest = explained(capsys, "design.toml", "--flow", "nic", "--percentile", "100")
    assert [one["latency_fs"] for one in longest["there"]] == [longest["latency_fs"]["there"]]


@pytest.mark.parametrize("percentile", ["1", "50", "90", "99", "99.9", "100"])
def test_the_percentile_is_that_of_all_transactions(
    percentile: str, design: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    """By the nearest rank, counted here from the document's samples, which are all of this short run."""
    document = document_of()
    number = next(n for n, flow in enumerate(document["flows"]) if flow["name"] == "nic")
    samples = [round(one["latency_ns"] * 1e6) for one in document["samples"] if one["flow"] == number]
    assert len(samples) == document["flows"][number]["transactions"]
    wanted = sorted(samples)[math.ceil(float(percentile) * len(samples) / 100) - 1]
    found = explained(capsys, "design.toml", "--flow", "nic", "--percentile", percentile)
    assert found["latency_fs"]["there"] == wanted
    assert found["known"] == found["transactions"] == len(samples)
    assert wanted in [one["latency_fs"] for one in found["there"]]
    named = {"50": "p50", "90": "p90", "99": "p99", "100": "max"}.get(percentile)
    if named is not None:
        latency = document["flows"][number]["latency_ns"][named]
        assert wanted / 1e6 == pytest.approx(latency, rel=1e-3)


def test_a_saved_result_is_explained_as_its_run(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (design.parent / "saved.json").write_text(text_of())
    ours = explained(capsys, "design.toml", "--flow", "nic")
    saved = explained(capsys, "saved.json", "--flow", "nic")
    for found in (ours, saved):
        for one in (*found["there"], *found["median"]):
            one["what"] = None
        found["run"] = ""
    assert ours == saved


def test_the_largest_contribution_is_named(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cause is added to the slowest transactions of a document; the sentence has to find it."""
    document = document_of()
    number = next(n for n, flow in enumerate(document["flows"]) if flow["name"] == "nic")
    of_it = sorted((one for one in document["samples"] if one["flow"] == number), key=lambda one: one["latency_ns"])
    place = document["places"].index("sw0 → host.rp0")
    for one in of_it[-10:]:
        one["parts"].append([document["causes"].index("credit wait"), place, -1, 5000.0])
        one["latency_ns"] += 5000.0
    Path("changed.json").write_text(json.dumps(document))
    assert status(["explain", "changed.json", "--flow", "nic", "--percentile", "99"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert re.search(r"p99 of nic is 5\.\d+ µs, the median [\d.]+ ns: of the \+5\.\d+ µs between these transactions, "
                     r"credit wait at sw0 → host.rp0 accounts for \+5 µs \([\d.]+ %\)", out)  # fmt: skip
    found = explained(capsys, "changed.json", "--flow", "nic", "--percentile", "99")
    assert found["causes"][0]["cause"] == "credit wait"
    assert found["causes"][0]["difference_ns"] == pytest.approx(5000)
    assert {one["start_fs"] for one in found["there"]} <= {one["start_fs"] for one in of_it[-10:]}


def test_the_ladder_shows_the_transactions(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command that is printed leads to a report whose ladder has the first of them."""
    assert status(["explain", "design.toml", "--flow", "nic", "--percentile", "99", "--set", "stop=30us"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    command = re.search(
        r"In the ladder of the report: tlplab (run design\.toml --set stop=30us --set ladder\.at=\d+ns)", out
    )
    assert command is not None, out
    assert status([*command[1].split(), "--json", "shown.json", "--quiet", "--no-verdict"]) == 0
    ladder = json.loads(Path("shown.json").read_text())["ladder"]
    found = explained(capsys, "design.toml", "--flow", "nic", "--percentile", "99", "--set", "stop=30us")
    first = min(found["there"], key=lambda one: one["start_fs"])
    (there,) = [
        one for one in ladder["transactions"] if one["start_fs"] == first["start_fs"] and one["text"] == first["what"]
    ]
    assert there["end_fs"] - there["start_fs"] == first["latency_fs"]


def test_without_a_flow_the_slowest_is_taken(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explained(capsys, "design.toml")["flow"] == "ssd"
    assert status(["explain", "design.toml"]) == 0
    assert "other flows: nic (--flow)" in capsys.readouterr().out


def test_tables_fit(design: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (60, 80, 100):
        monkeypatch.setenv("COLUMNS", str(width))
        assert status(["explain", "design.toml", "--flow", "nic"]) == 0
        assert max(map(len, capsys.readouterr().out.splitlines())) <= width


def test_a_sample_that_is_too_small_is_refused(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = document_of()
    for flow in document["flows"]:
        flow["transactions"] *= 1000
    document["samples"] = document["samples"][:120]
    Path("long.json").write_text(json.dumps(document))
    assert status(["explain", "long.json", "--flow", "nic", "--percentile", "99.9"]) == 2
    err = capsys.readouterr().err
    assert re.search(
        r"long\.json has a sample of \d+ of the \d+ transactions of nic, too few for percentile 99\.9 \(at least 1000 are needed\)",
        err,
    )
    assert status(["explain", "long.json", "--flow", "nic", "--percentile", "90"]) == 0
    assert "of a uniform sample of" in capsys.readouterr().out
    assert status(["explain", "long.json", "--percentile", "100"]) == 2
    assert "the longest is rarely in the sample" in capsys.readouterr().err


def test_of_a_run_with_too_many_transactions_the_sample_has_to_do(
    design: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    wanted = explained(capsys, "design.toml", "--flow", "nic")
    monkeypatch.setattr("tlplab.compare.explain.kept_by", lambda _simulation: {})
    found = explained(capsys, "design.toml", "--flow", "nic")
    assert found["latency_fs"] == wanted["latency_fs"], "this run is so short that all are in its sample"
    assert found["there"][0]["what"] is None


def test_a_single_transaction_explains_itself(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    design.write_text(DESIGN.replace(', rate = "15Gb/s"', ", count = 1").replace('warmup = "5us"\n', ""))
    assert status(["explain", "design.toml", "--flow", "nic"]) == 0
    out = capsys.readouterr().out
    assert "of the only transaction of nic" in out
    assert "these transactions take as long" in " ".join(out.split())


def test_a_sample_that_does_not_add_up_is_refused(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = document_of()
    document["samples"][3]["parts"][0][3] += 0.001
    Path("changed.json").write_text(json.dumps(document))
    assert status(["explain", "changed.json"]) == 2
    assert "do not add up to its latency" in capsys.readouterr().err


REFUSED = [
    (
        ["design.toml", "--flow", "gpu"],
        "--flow gpu: there is no such flow with a successful transaction; the flows are nic, ssd",
    ),
    (["design.toml", "--percentile", "0"], "0 is not a percentile"),
    (["design.toml", "--percentile", "101"], "101 is not a percentile"),
    (["design.toml", "--percentile", "nan"], "nan is not a percentile"),
    (["nowhere.toml"], "nowhere.toml: No such file"),
    (["saved.json", "--seed", "3"], "saved.json is a saved result: --set, --load and --seed are for experiments"),
    (["design.toml", "--set", "device.nick.tags=1"], 'there is no device "nick"'),
    (["design.toml", "--set", "warmup=39.9999us"], "no transaction succeeded"),
    (["links.pcapng"], "links.pcapng is a capture, which has no causes"),
]


@pytest.mark.parametrize(("arguments", "word"), REFUSED)
def test_unexplainable_arguments_are_refused(
    arguments: list[str], word: str, design: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    (design.parent / "saved.json").write_text(text_of())
    (design.parent / "links.pcapng").write_bytes(bytes.fromhex("0a0d0d0a"))
    assert status(["explain", *arguments]) == 2
    assert word in " ".join(capsys.readouterr().err.split())
