"""`tlplab expect`: the expectations of an experiment about its figures."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tlplab.cli import status

EXPERIMENT = """\
title = "Four tags"
stop = "20us"
[device.dev]
under = "host.rp0"
link = "gen4 x8"
tags = 4
mrrs = "512B"
[load]
dev = { op = "read", size = "4KiB", outstanding = 16 }
[expect]
dev.throughput = [">= 1 Gb/s", "< 126 Gb/s"]
'dev.throughput / lanes' = "> 0.1 Gb/s"
"""


@pytest.fixture
def design(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "design.toml"
    path.write_text(EXPERIMENT)
    return path


def test_all_that_is_expected_is_judged(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["expect", "design.toml"]) == 0
    said = capsys.readouterr().out
    assert "✓ dev.throughput >= 1 Gb/s: dev.throughput is " in said
    assert "✓ (dev.throughput / lanes) > 0.1 Gb/s: dev.throughput is " in said
    assert ", lanes is 8" in said
    assert "3 of 3 hold" in said
    design.write_text(EXPERIMENT + 'dev.latency.p99 = "< 1 ns"\ndv.latency.p99 = "< 1 s"\n')
    assert status(["expect", "design.toml", "--quiet", "--junit", "out.xml", "--json", "out.json"]) == 1
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 2
    assert told[0].startswith("✗ dev.latency.p99 < 1 ns: dev.latency.p99 is ")
    assert told[1] == "✗ dv.latency.p99 < 1 s: the run has no dv.latency.p99; did you mean dev.latency.p99?"
    suites = ElementTree.parse("out.xml").getroot()
    assert (suites.get("tests"), suites.get("failures")) == ("5", "2")
    failed = {case.get("name") for case in suites.iter("testcase") if case.find("failure") is not None}
    assert failed == {"dev.latency.p99 < 1 ns", "dv.latency.p99 < 1 s"}
    document = json.loads(Path("out.json").read_text())
    assert [one["holds"] for one in document["expected"]] == [True, True, True, False, False]
    assert status(["expect", "design.toml", "--set", 'expect={ dev.throughput = "> 0 b/s" }']) == 0


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ('errors = "== 0 B"\n', "design.toml:13:10: expect.errors: in \"errors == 0 B\", column 8: == cannot combine a plain number and a number of B"),
        ('dev.rte = "> 1 Hz"\n', "unknown metric dev.rte; did you mean dev.rate?"),
        ("errors = 0\n", "expect.errors: the integer 0 is not a comparison; write it in quotes"),
    ],
)  # fmt: skip
def test_mistakes_are_reported_before_the_run(
    design: Path, capsys: pytest.CaptureFixture[str], more: str, why: str
) -> None:
    design.write_text(EXPERIMENT + more)
    assert status(["expect", "design.toml"]) == 2
    assert why in " ".join(capsys.readouterr().err.split())


def test_an_experiment_that_expects_nothing_is_refused(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    design.write_text(EXPERIMENT.split("[expect]")[0])
    assert status(["expect", "design.toml"]) == 2
    assert "expects nothing" in capsys.readouterr().err


def test_a_run_that_fails_fulfils_nothing(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    card = '[device.{0}]\nunder = "host.rp{1}"\nlink = "gen3 x1"\nmodel = "nettlp-card"\nwindow = "256MiB"\n'
    head, expected = EXPERIMENT.split("[expect]")
    design.write_text(head + card.format("a", 1) + card.format("b", 2) + "[expect]" + expected)
    assert status(["expect", "design.toml", "--junit", "out.xml"]) == 1
    assert "✗ the run failed: " in capsys.readouterr().out
    assert 'name="the run ends well"' in Path("out.xml").read_text()
