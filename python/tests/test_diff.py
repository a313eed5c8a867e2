"""`tlplab diff`: the changes, the place of the nanoseconds, and exact sums."""

from __future__ import annotations

import copy
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import click
import pytest
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

from tlplab import _core
from tlplab.cli import status
from tlplab.compare import alternatives, page, words
from tlplab.compare.difference import Difference, difference, run_of
from tlplab.compare.figures import Cause, figures_of, streams_of
from tlplab.compare.show import circumstances, sentence
from tlplab.result import Document

SHORT = """\
title = "Two writers"
stop = "30us"
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
tags = 16
[load]
ssd = { op = "write", size = "4KiB", outstanding = 8 }
nic = { op = "read", size = "1KiB", outstanding = 4 }
"""


@pytest.fixture
def design(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "design.toml"
    path.write_text(SHORT)
    return path


@cache
def simulated(name: str) -> _core.Simulation:
    path = str(ROOT / "experiments" / f"{name}.toml")
    simulation = _core.Simulation(path, all_details=True, keep_transactions=True)
    while not simulation.advance(100_000).done:
        pass
    return simulation


@cache
def text_of(*overrides: str) -> str:
    simulation = _core.Simulation("design.toml", text=SHORT, overrides=overrides, all_details=True)
    while not simulation.advance(100_000).done:
        pass
    return simulation.finish(brief=True)


def result(*overrides: str) -> Document:
    document: Document = json.loads(text_of(*overrides))
    return document


def between(one: Document, other: Document) -> Difference:
    return difference(run_of("one", one), run_of("other", other))


def said(arguments: list[str], capsys: pytest.CaptureFixture[str], wanted: int = 0) -> str:
    code = status(arguments)
    out, err = capsys.readouterr()
    assert code == wanted, out + err
    return out if wanted in (0, 1) else err


# Switches, latencies of several hops, translation, errors, a card on a network, a device in Python.
EXPERIMENTS = [
    "quickstart", "iommu", "translation", "errors", "../examples/python/ring",
    *(pytest.param(name, marks=pytest.mark.full) for name in ("dma-card", "p2p/acs", "p2p/ats", "hotplug", "enumeration")),
]  # fmt: skip


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_causes_of_a_flow_add_up_to_its_transactions(name: str) -> None:
    """Independently of the document: to the latencies of all transactions, one by one."""
    simulation = simulated(name)
    document = json.loads(simulation.finish())
    names, seen, table = simulation.transactions()
    columns = table.to_numpy()
    streams = streams_of(document, name)
    assert streams
    assert sum(stream.transactions for stream in streams.values()) == seen
    for stream in streams.values():
        of_it = columns["latency_fs"][columns["flow"] == names.index(stream.name)]
        assert stream.total == sum(map(int, of_it)), stream.name
        assert stream.transactions == len(of_it)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_figures_match_the_metrics_of_studies(name: str) -> None:
    simulation = simulated(name)
    found = figures_of(json.loads(simulation.finish()))
    metrics = _core.record_figures(simulation.record())
    assert {name: metrics.get(name) for name in found} == {name: value for name, (value, _) in found.items()}
    units = {name: meaning.split(";")[0] for name, meaning in _core.metrics()}
    for figure, unit in (("throughput", "b/s"), ("bytes", "B"), ("span", "ns"), ("errors", "1")):
        assert units[figure] == unit == found[figure][1]


def test_changes_of_causes_add_up_to_the_change_of_the_mean() -> None:
    found = between(result(), result("switch.sw0.link=gen4 x8", "device.nic.tags=2", "stop=33us"))
    assert {flow.name for flow in found.flows} == {"ssd", "nic"}
    for flow in found.flows:
        assert flow.before.transactions != flow.after.transactions, "means of different counts"
        for parts in (flow.causes, flow.parts):
            assert sum(part.difference for part in parts) == flow.mean.difference != 0
            assert sum(part.before for part in parts) == flow.mean.before
            assert sum(part.after for part in parts) == flow.mean.after
        mean = found.of(f"{flow.name}.latency.mean")
        assert mean.difference == pytest.approx(float(flow.mean.difference) / 1e6)


def grown(document: Document, flow: int, part: int, by_ns: float, mean: bool = True) -> Document:
    """The same, in which transactions of a flow spend so much more on one cause."""
    changed = copy.deepcopy(document)
    of = changed["flows"][flow]
    of["attribution"][part]["total_ns"] += by_ns * of["transactions"]
    if mean and of["latency_ns"] is not None:
        of["latency_ns"]["mean"] += by_ns
    return changed


@pytest.mark.parametrize("part", range(4))
def test_a_cause_that_grows_is_named(part: int) -> None:
    before = result()
    after = grown(before, 0, part, 40.0)
    name, row = before["flows"][0]["name"], before["flows"][0]["attribution"][part]
    found = between(before, after)
    (flow,) = [flow for flow in found.flows if any(moved.difference for moved in flow.parts)]
    assert flow.name == name
    (moved,) = [moved for moved in flow.parts if moved.difference]
    cause = before["causes"][row["cause"]]
    assert moved.cause == Cause(cause, row["place"], row["behind"] or "")
    assert moved.difference == 40_000_000
    assert sentence(flow) == f"{name}: p50 0; mean +40.00 ns = {cause} +40.00"
    assert not found.same


def test_a_document_with_wrong_sums_of_causes_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    one.write_text(text_of())
    other.write_text(json.dumps(grown(result(), 0, 0, 40.0, mean=False)))
    message = said(["diff", str(one), str(other)], capsys, 2)
    assert "other: the causes of nic add up to" in message
    assert "the document was changed" in message


def test_documents_that_sum_up_are_compared_in_the_detail_that_both_have() -> None:
    """Of a large fabric a saved document names the largest flows in front only."""
    whole = result()
    summed = copy.deepcopy(whole)
    for flow in summed["flows"]:
        for row in flow["attribution"]:
            if row["behind"] == "ssd":
                row["behind"], row["others"] = None, 1
    found = between(whole, summed)
    assert any(part.cause.behind == "flows" for flow in found.flows for part in flow.parts)
    assert not any(part.difference for flow in found.flows for part in flow.parts)


def test_runs_with_another_trace_hash_differ() -> None:
    other = result()
    other["trace_hash"] = "0" * 16
    assert between(result(), result()).same
    assert not between(result(), other).same


def test_limits_that_were_found_in_different_ways_are_no_difference() -> None:
    judged = result()
    judged["verdict"]["sentence"] = "The tags limit the run: 2 → 4 carries 9 % more."
    assert not between(result(), judged).same
    judged["verdict"]["tried"] = {"candidates": 1, "tried": 1, "events": 1, "until_fs": None, "gains": []}
    found = between(result(), judged)
    assert found.same
    assert "the limit of one side was found by further runs, that of the other by its figures alone" in circumstances(
        found
    )


def test_the_same_run_does_not_differ(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = design.parent / "saved.json"
    saved.write_text(text_of())
    assert status(["diff", "design.toml", "saved.json", "--exit-code", "--no-verdict"]) == 0
    out = capsys.readouterr().out
    assert "no differences" in out
    assert "latency.p50" not in out
    assert status(["diff", "design.toml", "saved.json", "--all", "--no-verdict"]) == 0
    assert re.search(r"nic\.latency\.p50 .* 0\n", capsys.readouterr().out)


def test_differing_keys_causes_and_figures_are_listed(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "diff",
        "design.toml",
        "design.toml",
        "--set-b",
        "switch.sw0.link=gen4 x8",
        "--set",
        "stop=20us",
        "--no-verdict",
    ]
    out = said([*arguments, "--exit-code"], capsys, 1)
    assert "A is design.toml" in out
    assert re.search(r"switch\.sw0\.link +gen4 x4 +gen4 x8\n", out)
    assert not re.search(r"^stop", out, re.MULTILINE), "both have it"
    assert re.search(r"^ssd: p50 −.*; mean −[\d.]+ ns = queueing −", out, re.MULTILINE)
    assert re.search(r"sw0\.up\.utilisation +100 % +[\d.]+ % +−[\d.]+ points", out)
    said(arguments, capsys)


def test_the_limits_before_and_after_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tags.toml"
    path.write_text(
        'title = "Tags"\nstop = "8us"\nhost = "server"\n[device.dev]\nunder = "host.rp0"\nlink = "gen3 x8"\ntags = 2\n[load]\n'
        'dev = { op = "read", size = "4KiB", outstanding = 4 }\n'
    )
    out = said(["diff", str(path), "--if", "many: device.dev.tags=64"], capsys)
    before = out.partition(" • many: ")
    assert "• tags: The tags of dev limit the run: 2.0 of 2 are in use on average; 2 → 4 carries" in before[0]
    assert "The tags of dev" not in before[2].partition("Figures")[0]


def test_widths_from_60_to_120(
    design: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (design.parent / "wide.json").write_text(text_of("switch.sw0.link=gen4 x8"))
    (design.parent / "a-name-that-is-rather-long-for-a-column.json").write_text(text_of("device.nic.tags=1"))
    (design.parent / "base.json").write_text(text_of())
    for width in (60, 80, 100):
        monkeypatch.setenv("COLUMNS", str(width))
        for more in ([], ["a-name-that-is-rather-long-for-a-column.json"]):
            out = said(["diff", "base.json", "wide.json", *more], capsys)
            assert max(map(len, out.splitlines())) <= width


def test_json_has_sums_that_add_up(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "diff",
        "design.toml",
        "--if",
        "wide: switch.sw0.link=gen4 x8",
        "--if",
        "device.nic.tags=2",
        "--no-verdict",
    ]
    told = [said([*arguments, "--json", "-", "--threads", threads], capsys) for threads in ("1", "3")]
    assert told[0] == told[1], "on any number of processors"
    document = json.loads(told[0])
    assert document["schema"] == "tlplab/diff/1"
    assert [other["name"] for other in document["others"]] == ["wide", "device.nic.tags=2"]
    assert document["others"][0]["settings"] == [{"key": "switch.sw0.link", "base": "gen4 x4", "other": "gen4 x8"}]
    for other in document["others"]:
        assert other["flows"]
        for flow in other["flows"]:
            for rows in (flow["causes"], flow["parts"]):
                for side in ("base", "other"):
                    assert sum(row[f"{side}_fs"] for row in rows) == flow["total_fs"][side]
                    each = Fraction(flow["total_fs"][side], flow["transactions"][side])
                    assert flow["mean_ns"][f"{side}_ns"] == pytest.approx(float(each) / 1e6)
        assert all(figure["base"] != figure["other"] for figure in other["figures"])


def test_a_percentile_closer_than_it_is_known_is_not_shown() -> None:
    before, after = result(), result()
    latency = after["flows"][0]["latency_ns"]
    assert latency is not None
    latency["p99"] *= 1.0005
    found = between(before, after)
    assert not found.of("nic.latency.p99").seen
    assert not found.same, "but it is not the same"
    latency["p99"] *= 1.01
    assert between(before, after).of("nic.latency.p99").seen


def test_flows_and_links_of_one_side_are_named(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (design.parent / "other.toml").write_text(SHORT.replace("nic", "gpu"))
    out = said(["diff", "design.toml", "other.toml", "--no-verdict"], capsys)
    for line in (
        "only in design: flow nic",
        "only in other: flow gpu",
        "only in design: link nic",
        "only in other: link gpu",
    ):
        assert line in out
    assert re.search(r"device\.gpu +– +\d+ keys", out)
    assert "nic.latency" not in out


def test_a_default_that_is_written_out_is_no_difference(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = said(
        [
            "diff",
            "design.toml",
            "--if",
            "same: device.ssd.tags=32, device.ssd.model=dma",
            "--no-verdict",
            "--exit-code",
        ],
        capsys,
    )
    assert "no differences" in out


def test_different_seeds_are_noted(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = said(["diff", "design.toml", "--if", "luck: seed=7, load.nic.pattern=random", "--no-verdict"], capsys)
    assert "seeds 1 and 7: differences may be due to chance" in out
    assert re.search(r"^seed +1 +7", out, re.MULTILINE)


# What cannot be asked, and a word of the answer.
REFUSED: list[tuple[list[str], str]] = [
    (["design.toml"], "one run cannot be compared: name a second run"),
    (["design.toml", "nowhere.toml"], "nowhere.toml: No such file"),
    (["design.toml", "none.json"], "none.json has no schema; it must have tlplab/result/1"),
    (["design.toml", "half.json"], "half.json is not a complete result of a run (KeyError: 'flows')"),
    (["half.json", "saved.json"], "half.json is not a complete result of a run"),
    (["design.toml", "broken.json"], "broken.json is not valid JSON"),
    (["saved.json", "--if", "device.nic.tags=2"], "saved.json, which is a saved result and cannot be run"),
    (["saved.json", "saved.json", "--set", "stop=1us"], "--set stop=1us: it sets a key of an experiment"),
    (["design.toml", "saved.json", "--set-b", "stop=1us"], "--set-b stop=1us: it sets a key of an experiment"),
    (["links.pcapng", "design.toml"], "links.pcapng is a capture and design.toml is an experiment"),
    (["saved.json", "links.pcapng"], "links.pcapng is a capture and saved.json is a saved result"),
    (["links.pcapng", "links.pcapng", "--html", "page.html"], "--html is for experiments"),
    (["links.pcapng", "cut.pcapng"], "cut.pcapng"),
    (["design.toml", "--if", "a=b", "--html", "page.txt"], "name a file that ends in .html"),
    (["design.toml", "--if", "a=b", "--json", "design.toml"], "both name design.toml"),
    (["design.toml", "--set", "device.nick.tags=1", "--if", "a=b"], 'there is no device "nick"'),
    (["-", "design.toml"], "the standard input can be read only once"),
    # Alternatives: as with --set, and by name.
    (["design.toml", "--if", "fast: device.nick.tags=2"], '--if fast: device.nick: there is no device "nick"; did you mean "nic"?'),
    (["design.toml", "--if", "gen9: device.nic.link=gen9 x8"], "--if gen9: device.nic.link: unsupported generation \"gen9\""),
    (["design.toml", "--if", "tags: device.nic.tags=none"], "--if tags: device.nic.tags"),
    (["design.toml", "--if", "device.nic.tags+=some"], "'some' is not a number"),
    (["design.toml", "--if", "device.nic.link*=2"], "device.nic.link is 'gen4 x8', which is not a number"),
    (["design.toml", "--if", "switch.sw0.latency+=64B"], "'64B' cannot be added to '100ns'"),
    (["design.toml", "--if", "switch.sw0.latency+=5"], "give it the unit of '100ns'"),
    (["design.toml", "--if", "device.nic.tags*=2ns"], "'2ns' is not a number to compute with"),
    (["design.toml", "--if", "device.nic.tags/=0"], "'0' is not a number to compute with"),
    (["design.toml", "--if", "device.nic.mps+=1B"], "the base does not set device.nic.mps"),
    (["design.toml", "--if", "device.*.tagz+=1"], "the base has no key like device.*.tagz"),
    (["design.toml", "--if", "a: device.nic.tags"], "'device.nic.tags' sets nothing"),
    (["design.toml", "--if", "device.nic.tags=2,"], "nothing between two commas, or at the end"),
    (["design.toml", "--if", ": device.nic.tags=2"], "no name before its colon"),
    (["design.toml", "--if", "design: device.nic.tags=2"], "design is the name of another run here"),
    (["design.toml", "--if", "x: device.nic.tags=2", "--if", "x: device.nic.tags=4"], "x is the name of another run here"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "word"), REFUSED, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_incomparable_arguments_are_refused(
    arguments: list[str], word: str, design: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    folder = design.parent
    (folder / "saved.json").write_text(text_of())
    (folder / "none.json").write_text("{}")
    (folder / "half.json").write_text('{"schema": "tlplab/result/1"}')
    (folder / "broken.json").write_text('{"schema": ')
    (folder / "links.pcapng").write_bytes(captured())
    (folder / "cut.pcapng").write_bytes(captured()[:20])
    before = sorted(os.listdir(folder))
    told = said(["diff", *arguments], capsys, 2)
    assert word in " ".join(told.split())
    assert "Traceback" not in told
    assert sorted(os.listdir(folder)) == before, "nothing is written"


@cache
def captured(*overrides: str) -> bytes:
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"test-diff-{os.getpid()}.pcapng"
    try:
        simulation = _core.Simulation("design.toml", text=SHORT, overrides=["stop=8us", *overrides], pcap=str(path))
        while not simulation.advance(100_000).done:
            pass
        simulation.finish()
        return path.read_bytes()
    finally:
        path.unlink(missing_ok=True)


# A value, what is done to it, and what comes of it.
COMPUTED = [
    (64, "+=32", "96"),
    (64, "-=32", "32"),
    (64, "*=1.5", "96"),
    (64, "/=4", "16"),
    ("100ns", "*=2", "200ns"),
    ("100ns", "+=1us", "1100ns"),
    ("1.5us", "-=500ns", "1us"),
    ("512B", "*=8", "4096B"),
    ("4KiB", "-=512B", "3.5KiB"),
    ("25Gb/s", "/=2", "12.5Gb/s"),
    ("25 Gb/s", "+=500Mb/s", "25.5Gb/s"),
    (1e-9, "*=10", "0.00000001"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "operation", "wanted"), COMPUTED)
def test_alternatives_compute_with_values_of_the_base(value: Any, operation: str, wanted: str) -> None:
    found = alternatives.read(f"it: a.b{operation}")
    assert alternatives.overrides(found, {"a.b": value}) == [f"a.b={wanted}"]


def test_an_alternative_may_mean_several_keys() -> None:
    base = {"device.nic.tags": 16, "device.ssd.tags": 32, "host.tags": 8, "device.nic.link": "gen4 x8"}
    assert alternatives.overrides(alternatives.read("device.*.tags*=2"), base) == [
        "device.nic.tags=32", "device.ssd.tags=64",
    ]  # fmt: skip
    assert alternatives.overrides(alternatives.read("device.n*.tags=1"), base) == ["device.nic.tags=1"]


def test_alternatives_are_cut_at_their_commas() -> None:
    found = alternatives.read(
        'gen4: device.nic.link=gen4 x8, link.nic.upper.acs=["a", "b"], load.x={ op = \'a, b\' },x.y+=1,x.y*=2'
    )
    assert found.name == "gen4"
    assert alternatives.overrides(found, {"x.y": 4}) == [
        "device.nic.link=gen4 x8", 'link.nic.upper.acs=["a", "b"]', "load.x={ op = 'a, b' }", "x.y=5", "x.y=10",
    ]  # fmt: skip
    assert alternatives.read("device.nic.tags=64").name == "device.nic.tags=64"
    assert alternatives.read("a.b=x:y").assignments[0].value == "x:y"


def test_alternatives_equal_overrides_by_set(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "diff",
        "design.toml",
        "--no-verdict",
        "--json",
        "-",
        "--if",
        "slow: switch.sw0.latency+=50ns, device.nic.tags*=2",
    ]
    (other,) = json.loads(said(arguments, capsys))["others"]
    assert other["trace_hash"] == result("switch.sw0.latency=150ns", "device.nic.tags=32")["trace_hash"]


def test_several_alternatives_stand_side_by_side(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = said(
        [
            "diff",
            "design.toml",
            "--if",
            "wide: switch.sw0.link=gen4 x8",
            "--if",
            "few: device.nic.tags=1",
            "--no-verdict",
        ],
        capsys,
    )
    assert "design, and 2 alternatives" in out
    (line,) = [line for line in out.splitlines() if line.startswith("throughput ")]
    wide, few = result("switch.sw0.link=gen4 x8"), result("device.nic.tags=1")
    base = result()
    for one in (wide, few):
        change = difference(run_of("a", base), run_of("b", one)).of("throughput")
        assert words.by_how_much(change) in line
    assert re.search(r"few +device\.nic\.tags +16 +1\n", out)
    assert re.search(r"^ • wide: ", out, re.MULTILINE)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.fractions(-(10**12), 10**12, max_denominator=10**6), min_size=1, max_size=8))
def test_rounded_parts_add_up(parts: list[Fraction]) -> None:
    steps = words.steps_for(parts)
    shown = steps.rounded(parts)
    assert sum(shown) == round(sum(parts) / steps.step)
    assert all(abs(one - part / steps.step) <= 1 for one, part in zip(shown, parts, strict=True))


class Tags(HTMLParser):
    """The elements of a page, with the open ones at the end."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"{tag} is closed where it is not the last that is open"


def test_the_page_needs_nothing_else_and_its_bars_are_the_figures(
    design: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = 'x"><script>alert(1)</script>'
    arguments = [
        "--if",
        f"{name}: switch.sw0.link=gen4 x8",
        "--if",
        "few: device.nic.tags=1",
        "--html",
        "page.html",
        "--no-verdict",
    ]
    assert said(["diff", "design.toml", *arguments, "--quiet"], capsys) == ""
    text = Path("page.html").read_text()
    tags = Tags(text)
    assert tags.open == []
    assert not [
        tag for tag, found in tags.found if tag in ("script", "link", "img", "iframe") or {"src", "href"} & found.keys()
    ]
    assert "http" not in re.sub(r"http-equiv", "", text).replace("http://www.w3.org", "")
    assert "url(" not in text
    assert "switch.sw0.link" in text
    # The bars of the longest mean are as wide as the track, the others in proportion.
    runs = [result(), result("switch.sw0.link=gen4 x8"), result("device.nic.tags=1")]
    means = [
        flow["latency_ns"]["mean"]
        for run in runs
        for flow in run["flows"]
        if flow["name"] == "nic" and flow["latency_ns"]
    ]
    section = text[text.index("<h3>nic<") :]
    bars = re.findall(r'<div class="bars".*?</div>', section)[:3]
    widths = [sum(map(float, re.findall(r"width:([\d.]+)%", bar))) for bar in bars]
    assert widths == pytest.approx([100 * mean / max(means) for mean in means], abs=0.3)


def test_the_page_names_flows_of_only_one_side() -> None:
    base = run_of("base", result())
    changed = json.loads(text_of().replace("nic", "gpu"))
    other = run_of("other", changed)
    text = page.render(base, [difference(base, other)])
    assert "not in this run" in text
    assert "only in base: flows nic" in text
    assert Tags(text).open == []


def test_the_page_uses_colours_that_there_are() -> None:
    style = _core.report_style()
    base = run_of("base", result())
    text = page.render(base, [difference(base, run_of("other", result("device.nic.tags=1")))])
    used = set(re.findall(r'style="[^"]*background:var\((--[\w-]+)', text))
    assert {"--cause-queueing", "--flow-0", "--part-payload"} <= used
    assert all(f"{name}:" in style for name in used)
    for cause in result()["causes"]:
        assert f"--cause-{cause.replace(' ', '-')}:" in style


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    long = tmp_path / "long.toml"
    long.write_text(SHORT.replace("30us", "10s"))
    command = [
        sys.executable,
        "-m",
        "tlplab",
        "diff",
        str(long),
        "--if",
        "device.nic.tags=2",
        "--json",
        str(tmp_path / "out.json"),
    ]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
    until = time.monotonic() + 30
    while not children.read_text().split():
        assert time.monotonic() < until, "no run is made"
        time.sleep(0.05)
    time.sleep(0.3)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=20)
    assert run.returncode == 130, err
    assert err.strip() == "interrupted"
    assert not (tmp_path / "out.json").exists()


BAD = """\
import tlplab as tl


class Bad(tl.Device):
    class ram(tl.Bar, size="64KiB", memory=True):
        pass


async def driver(host, dev):
    raise ValueError("not today")
"""


def test_a_run_that_fails_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    design = tmp_path / "bad.toml"
    design.write_text(
        'title = "Bad"\n[device.bad]\nunder = "host.rp0"\nlink = "gen3 x1"\nmodel = "bad.py:Bad"\ndriver = "bad.py:driver"\n'
    )
    assert status(["diff", str(design), "--if", "wide: device.bad.link=gen3 x4", "--no-verdict"]) == 1
    assert re.search(r"the run failed: (bad|wide): .*not today", capsys.readouterr().err)


def test_data_in_a_file_are_refused(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (design.parent / "disk.img").write_bytes(bytes(1 << 20))
    text = SHORT.replace('link = "gen4 x8"\ntags = 16', 'link = "gen4 x8"\nmodel = "nvme"\nfile = "disk.img"')
    design.write_text(text.replace('nic = { op = "read", size = "1KiB", outstanding = 4 }\n', ""))
    assert "runs write to it" in said(["diff", "design.toml", "--if", "stop=10us"], capsys, 2)


def by_name(document: dict[str, Any], direction: str | None) -> Callable[[str], tuple[Any, Any]]:
    figures = {one["name"]: (one["base"], one["other"]) for one in document["figures"] if one["direction"] == direction}
    return lambda name: figures[name]


def test_captures_are_compared_by_their_requests(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, overrides in (("one", ()), ("other", ("device.nic.tags=2", "load.nic.size=512B"))):
        Path(f"{name}.pcapng").write_bytes(captured(*overrides))
    out = said(["diff", "one.pcapng", "other.pcapng", "--exit-code"], capsys, 1)
    assert "Causes of latency, utilisation of links and the limit are in" in out
    assert "Posted requests have no completion" in out
    assert re.search(r"one has \d+ requests without their last completion", out)
    (document,) = json.loads(said(["diff", "one.pcapng", "other.pcapng", "--json", "-", "--all"], capsys))["others"]
    summaries = []
    for name in ("one", "other"):
        summaries.append(json.loads(said(["dump", f"{name}.pcapng", "--summary", "--json", "-"], capsys)))
    ways = [next(way for way in summary["directions"] if way["from"] == "nic") for summary in summaries]
    of = by_name(document, "nic → sw0")
    assert of("MRd") == tuple(way["kinds"]["MRd"] for way in ways)
    assert of("unanswered") == tuple(way["unanswered"] for way in ways)
    for which in ("min", "p50", "p90", "p99", "max"):
        assert of(f"latency {which}") == tuple(way["latency_ns"][which] for way in ways)
    sizes = [{(size["op"], size["bytes"]): size["count"] for size in way["requests"]} for way in ways]
    assert of("read of 512 B") == tuple(side.get(("read", 512), 0) for side in sizes)
    assert by_name(document, None)("TLPs") == tuple(summary["tlps"] for summary in summaries)


def test_the_same_capture_does_not_differ(design: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "other"):
        Path(f"{name}.pcapng").write_bytes(captured())
    assert "no differences" in said(["diff", "one.pcapng", "other.pcapng", "--exit-code"], capsys)


def test_transactions_that_are_not_kept_are_refused() -> None:
    with pytest.raises(RuntimeError, match="does not keep"):
        _core.Simulation("d.toml", text=SHORT).transactions()


def test_an_alternative_is_refused_with_its_words() -> None:
    with pytest.raises(click.UsageError, match="cannot be added"):
        alternatives.overrides(alternatives.read("a.b+=1ns"), {"a.b": "4KiB"})
