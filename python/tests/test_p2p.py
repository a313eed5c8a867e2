"""`tlplab p2p`: matrices, flows together, and refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tlplab import outline
from tlplab.cli import status
from tlplab.p2p import flows, measure, survey, tables
from tlplab.p2p.flows import Device, Flow, Together

ROOT = Path(__file__).resolve().parents[2]
FLAT = str(ROOT / "experiments/p2p/flat.toml")
# 16 lanes of 32 GT/s with 128b/130b, less ordered sets; a write of 128 B has 24 B beside its payload.
LINK = 32 * 16 * 128 / 130 / 8 * (1 - 0.0026)
PAIR = LINK * 128 / 152
EIGHT = [Device(f"gpu{n}", f"sw{n // 4 + 1}") for n in range(8)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str, Path]:
    """The document, the tables and the picture of three devices."""
    folder = tmp_path_factory.mktemp("p2p")
    files = {option: folder / name for option, name in (("--json", "p.json"), ("-o", "p.txt"), ("--plot", "p.png"))}
    arguments = [part for option, file in files.items() for part in (option, str(file))]
    assert status(["p2p", FLAT, "--quick", "--devices", "gpu0,gpu1,gpu4", *arguments]) == 0
    return json.loads(files["--json"].read_text()), files["-o"].read_text(), files["--plot"]


def test_pairs_reach_the_rate_of_the_link(whole: tuple[dict[str, Any], str, Path]) -> None:
    document, _, _ = whole
    assert set(document) == {"title", "devices", "matrix", "pairs", "flows"}
    assert [device["name"] for device in document["devices"]] == ["gpu0", "gpu1", "gpu4"]
    write, both, latency = (document["matrix"][name] for name in ("write", "both", "latency"))
    for row in range(3):
        for column in range(3):
            if row == column:
                assert write[row][column] is None
                continue
            assert write[row][column] == pytest.approx(PAIR, rel=0.005)
            # Of the other way every TLP takes an Ack of 8 B.
            assert both[row][column] == pytest.approx(2 * LINK * 128 / 160, rel=0.005)
            # Below a switch four times the GPU's 124 ns and two passages; across two more passages and twice the root complex.
            across = 2 in (row, column)
            assert latency[row][column] == pytest.approx(4 * 124 + 2 * 110 + across * (2 * 110 + 2 * 240), abs=8)
    assert len(document["pairs"]) == 6
    first = document["pairs"][0]
    assert (first["source"], first["target"], first["write"]["limit"]) == ("gpu0", "gpu1", "gpu0 → sw1")
    assert first["both"]["sum_gbps"] == pytest.approx(2 * first["both"]["gbps"], rel=0.01)


def test_flows_together_share_the_uplink(whole: tuple[dict[str, Any], str, Path]) -> None:
    document, _, _ = whole
    by_name = {one["name"]: one for one in document["flows"]}
    assert len([one for one in document["flows"] if one["kind"] == "ring"]) == 4
    # gpu0 → gpu1 → gpu4 → gpu0: all links carry both ways, but gpu0's and gpu1's carry other flows' data each way.
    assert by_name["ring +1, write"]["gbps"] == pytest.approx(3 * LINK * 128 / 160, rel=0.02)
    fan = by_name["1 from sw1 to sw2, write"]
    assert [(one["source"], one["target"]) for one in fan["flows"]] == [("gpu0", "gpu4")]


def test_tables_fit_a_page_and_the_picture_is_one(whole: tuple[dict[str, Any], str, Path]) -> None:
    _, text, picture = whole
    assert max(map(len, text.splitlines())) <= 80
    for title in ("Pairs", "Writes: the row", "Reads: the column", "Latency of", "Rings", "All to all", "From one"):
        assert title in text
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_named_flows_are_measured_alone_and_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["p2p", FLAT, "--quick", "--flow", "gpu0:gpu4", "--flow", "gpu1:gpu5", "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    alone = [pair["write"]["gbps"] for pair in document["pairs"]]
    assert alone == pytest.approx([PAIR, PAIR], rel=0.005)
    (together,) = document["flows"]
    assert [one["gbps"] for one in together["flows"]] == pytest.approx([PAIR / 2, PAIR / 2], rel=0.01)
    assert {one["limit"] for one in together["flows"]} == {"sw1 → host.rp0"}


def test_refused_pairs_have_no_rate(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    refused = ["p2p", FLAT, "--quick", "--set", "host.p2p=off", "--json", str(tmp_path / "p.json")]
    assert (
        status([*refused, "--devices", "gpu0,gpu1,gpu4", "--only", "latency", "--plot", str(tmp_path / "p.png")]) == 0
    )
    (latency,) = json.loads((tmp_path / "p.json").read_text())["matrix"].values()
    assert [latency[0][1] is None, latency[0][2] is None, latency[2][1] is None] == [False, True, True]
    assert "✗" in capsys.readouterr().out
    assert status([*refused, "--devices", "gpu0,gpu4", "--only", "pairs"]) == 0
    matrices = json.loads((tmp_path / "p.json").read_text())["matrix"]
    assert matrices == {key: [[None, None], [None, None]] for key in ("write", "read", "both")}
    assert "requests failed (✗): lost, unsupported requests" in capsys.readouterr().out


def test_unsteady_rates_are_marked() -> None:
    """Seven flows of each GPU fill buffers first: the first windows show a higher rate than the final one."""
    pairs = [Flow(a.name, b.name) for a in EIGHT for b in EIGHT if a != b]
    together = Together("all", "all", tuple(pairs))
    hasty = measure.run(FLAT, [], measure.QUICK, together)
    patient = measure.run(FLAT, [], measure.Settings(), together)
    assert not hasty.steady
    assert patient.steady
    # 16 flows over each uplink, Acks of the other way beside them: if all flows carry as much, 56/16 of it.
    assert patient.total == pytest.approx(LINK * 128 / 160 * 56 / 16, rel=0.01)
    assert hasty.total > 1.05 * patient.total


def test_an_experiment_needs_no_load_of_its_own(tmp_path: Path) -> None:
    text = Path(FLAT).read_text(encoding="utf-8")
    bare = tmp_path / "bare.toml"
    bare.write_text(text[: text.index("[load]")], encoding="utf-8")
    arguments = ["--quick", "--only", "latency", "--devices", "gpu0,gpu4", "--json", str(tmp_path / "p.json")]
    assert status(["p2p", str(bare), *arguments]) == 0
    assert json.loads((tmp_path / "p.json").read_text())["matrix"]["latency"][0][1] == pytest.approx(1423, abs=1)


def test_the_plan_has_every_pair_once() -> None:
    plan = survey.plan(EIGHT, survey.PARTS)
    assert len({one.name for one in plan}) == len(plan)
    kinds = [one.kind for one in plan]
    assert (kinds.count("pair"), kinds.count("both"), kinds.count("latency"), kinds.count("ring")) == (112, 28, 56, 14)
    ring = next(one for one in plan if one.name == "ring +3, read")
    assert ring.flows[6] == Flow("gpu6", "gpu1", "read")
    assert (ring.flows[6].issuer, ring.flows[6].completer) == ("gpu1", "gpu6")
    assert [len(one.flows) for one in plan if one.kind == "all" and one.op == "write"] == [12, 56]
    sixteen = [Device(f"gpu{n}", f"sw{n // 4 + 1}") for n in range(16)]
    fans = [one for one in flows.fans(sixteen) if one.op == "write"]
    assert [one.name for one in fans][-2:] == ["2 from sw1 to 2 others, write", "3 from sw1 to 3 others, write"]
    assert [str(flow) for flow in fans[-1].flows] == ["gpu0 → gpu4", "gpu1 → gpu8", "gpu2 → gpu12"]


def test_devices_come_in_the_order_of_their_numbers() -> None:
    path = str(ROOT / "experiments/p2p/four-roots.toml")
    found = survey.devices_of(outline.read(path), path, None)
    assert [device.name for device in found] == [f"gpu{n}" for n in range(16)]
    assert list(flows.groups(found)) == ["sw1", "sw2", "sw3", "sw4"]


def test_a_way_goes_up_to_where_it_goes_down() -> None:
    parents = {
        "host": None,
        "rp0": "host",
        "rp1": "host",
        "sw1": "rp0",
        "sw2": "rp1",
        "a": "sw1",
        "b": "sw1",
        "c": "sw2",
    }
    assert measure.way("a", "b", parents) == [("a", "sw1"), ("sw1", "b")]
    assert [step for step in measure.way("a", "c", parents) if "host" not in step] == [
        ("a", "sw1"), ("sw1", "rp0"), ("rp1", "sw2"), ("sw2", "c"),
    ]  # fmt: skip


def machine(tmp_path: Path, rest: str, *, devices: str = "") -> str:
    """Two devices below a switch, and the other lines."""
    text = (
        'title = "t"\n[switch.sw0]\nunder = "host.rp0"\nlink = "gen4 x8"\n[device.a]\nunder = "sw0"\nlink = "gen4 x8"\nbar = "16MiB"\n'
        f'[device.b]\nunder = "sw0"\nlink = "gen4 x8"\nbar = "16MiB"\n{devices}{rest}\n'
    )
    path = tmp_path / "t.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        ('[link.a.upper]\nacs = ["egress-control"]\nacs_forbids = ["b"]', "link.a.upper.acs_forbids names the peer"),
        (
            '[host]\nacs = ["source-validation"]\n[link.a.upper]\nacs = ["request-redirect"]',
            'host.rp0 → sw0 sends nothing back: host.acs lacks "upstream-forwarding"',
        ),
        (
            '[link.a.upper]\nacs = ["request-redirect"]\n[host.iommu]\nentries = 4\nwalk = "100ns"\n[host.iommu.map.m]\n'
            'device = "a"\nfrom = 0\nsize = "4KiB"\nto = 0',
            "the IOMMU refuses a write of a: not mapped",
        ),
    ],
)
def test_refused_pairs_have_the_reason_that_applies(
    rest: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = machine(tmp_path, rest)
    assert status(["p2p", path, "--quick", "--flow", "a:b", "--json", str(tmp_path / "p.json")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert reason in out
    assert "host.p2p" not in out
    assert "a → b write ✗ ✗" in out
    assert "~" not in out, "what fails is not unsteady"
    document = json.loads((tmp_path / "p.json").read_text())
    assert any(reason in one for one in document["pairs"][0]["write"]["reasons"])


# Devices with ATS below a switch that redirects, and lets translated requests straight.
ATS = """[switch.sw0]
under = "host.rp0"
link = "gen4 x8"
acs = ["request-redirect", "completion-redirect", "upstream-forwarding", "direct-translated"]
[device.a]
under = "sw0"
link = "gen4 x8"
bar = "16MiB"
ats = { entries = 64, outstanding = 8 }
[device.b]
under = "sw0"
link = "gen4 x8"
bar = "16MiB"
ats = { entries = 64, outstanding = 8 }
[host]
acs = [HOST]
[host.iommu]
entries = 64
walk = "WALK"
"""
# A device with a mapping reaches nothing else.
ELSEWHERE = '[host.iommu.map.m]\ndevice = "a"\nfrom = 0\nsize = "4KiB"\nto = 0\n'


def translating(tmp_path: Path, rest: str = "", *, host: str = '"upstream-forwarding"', walk: str = "230ns") -> str:
    """Two devices that translate their addresses, and the other lines."""
    path = tmp_path / "ats.toml"
    path.write_text('title = "t"\n' + ATS.replace("HOST", host).replace("WALK", walk) + rest, encoding="utf-8")
    return str(path)


def pair(path: str, *flows: Flow, settings: measure.Settings = measure.QUICK) -> measure.Outcome:
    return measure.run(path, [], settings, flows_of(flows))


def flows_of(flows: tuple[Flow, ...]) -> Together:
    return Together("t", "pair" if len(flows) == 1 else "both", flows)


def test_reads_with_refused_completions_end_with_timeouts(tmp_path: Path) -> None:
    """They end with the completion timeout, after 10 ms, where the rates of others are known after microseconds."""
    path = translating(tmp_path, host='"source-validation"')
    (rate,) = pair(path, Flow("a", "b", "read")).rates
    assert (rate.carried, rate.failed, rate.limit) == (None, "completion timeouts", "completion timeouts")
    assert rate.reasons == ('host.rp0 → sw0 sends nothing back: host.acs lacks "upstream-forwarding"',)
    (written,) = pair(path, Flow("a", "b")).rates
    assert written.carried is not None, "translated writes go straight"
    assert written.carried > 10


@pytest.mark.parametrize("size", [4096, 65536, 1 << 20])
def test_denied_translations_are_waited_for(size: int, tmp_path: Path) -> None:
    """Each request is denied its own translation: 1 MiB are 8192 of them, one after the other."""
    path = translating(tmp_path, ELSEWHERE)
    settings = replace(measure.QUICK, size=size)
    for flow, what in ((Flow("a", "b"), "write"), (Flow("b", "a", "read"), "read")):
        (rate,) = pair(path, flow, settings=settings).rates
        assert rate.carried is None
        assert rate.reasons == (f"the IOMMU refuses a {what} of a: not mapped",)


def test_a_slow_walk_is_no_refusal(tmp_path: Path) -> None:
    """The walk takes longer than the run of other pairs."""
    (rate,) = pair(translating(tmp_path, walk="40us"), Flow("a", "b")).rates
    assert rate.carried is not None
    assert rate.carried > 1
    assert rate.failed is None


def test_one_refused_direction_leaves_the_figure_of_the_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = translating(tmp_path, ELSEWHERE)
    quick = replace(measure.QUICK, size=65536)
    both = pair(path, Flow("a", "b"), Flow("b", "a"), settings=quick)
    assert [rate.carried is None for rate in both.rates] == [True, False]
    assert both.rates[0].failed == "lost"
    assert both.steady
    arguments = ["--quick", "--size", "64KiB", "--only", "pairs,ring,all", "--json", str(tmp_path / "p.json")]
    assert status(["p2p", path, *arguments, "--plot", str(tmp_path / "p.png")]) == 0
    document = json.loads((tmp_path / "p.json").read_text())
    write, way = document["matrix"]["write"], document["matrix"]["both"]
    assert (write[0][1], write[1][0] > 13) == (None, True)
    assert way[0][1] == way[1][0] == pytest.approx(both.total)
    by_ends = {(one["source"], one["target"]): one["both"] for one in document["pairs"]}
    assert [by_ends[ends]["failed"] for ends in (("a", "b"), ("b", "a"))] == ["lost", None]
    assert by_ends["a", "b"]["reasons"] == ["the IOMMU refuses a write of a: not mapped"]
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["a", "–", f"✗{both.total:.1f}"] in lines
    assert ["b", f"✗{both.total:.1f}", "–"] in lines
    (ring,) = [line for line in lines if line[:3] == ["ring", "+1,", "write"]]
    assert [ring[3][0], ring[5], ring[6]] == ["✗", "✗", ring[3][1:]], "the total, the lowest, the highest"


def test_figures_that_come_with_failures_have_their_mark() -> None:
    """Half of the requests of a flow may fail: the bytes that arrived are not the rate of that pair."""
    flow, good = Flow("a", "b"), Flow("b", "a")
    half = measure.Rate(flow, 5.0, 100.0, "", "lost")
    whole = measure.Rate(good, 7.0, 100.0, "", None)
    outcomes = {
        flows.one("pair", flow): measure.Outcome((half,), steady=True),
        flows.one("pair", good): measure.Outcome((whole,), steady=True),
        flows.one("latency", Flow("b", "a", "read")): measure.Outcome((half,), steady=True),
    }
    devices = [Device("a", "sw0"), Device("b", "sw0")]
    found = survey.Survey("t", devices, *survey.matrices(devices, outcomes), outcomes)
    lines = [line.split() for line in tables.as_text(found).splitlines()]
    assert ["below", "the", "same", "port", "or", "switch", "2", "✗5.0–7.0", "GB/s", "✗100", "ns"] in lines
    assert [line for line in lines if line[:1] in (["a"], ["b"])] == [
        ["a", "b"], ["a", "–", "✗5.0"], ["b", "7.0", "–"],
        ["a", "b"], ["a", "–", "✗100"], ["b", "✗", "–"],
    ]  # fmt: skip


def test_unsteady_rates_are_marked_where_they_are() -> None:
    flow = Flow("a", "b")
    rate = measure.Rate(flow, 5.0, None, "", None)
    other = measure.Rate(Flow("b", "a"), 5.0, None, "", None)
    outcomes = {
        flows.one("pair", flow): measure.Outcome((rate,), steady=False),
        flows.one("pair", Flow("b", "a")): measure.Outcome((other,), steady=True),
    }
    devices = [Device("a", "sw0"), Device("b", "sw0")]
    found = survey.Survey("t", devices, *survey.matrices(devices, outcomes), outcomes)
    text = tables.as_text(found)
    assert text.count("~5.0") == 2, "in the matrix and in the table of pairs"
    assert "~: 1 measurement was not steady" in text


def test_functions_of_a_device_are_distinguished_from_devices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    function = '[device.c]\nunder = "a.fn1"\nbar = "16MiB"\n'
    path = machine(tmp_path, '[link.a.upper]\nacs = ["upstream-forwarding"]', devices=function)
    found = survey.devices_of(outline.read(path, loads_follow=True), path, None)
    assert found == [Device("a", "sw0"), Device("b", "sw0"), Device("c", "sw0", "a")]
    assert status(["p2p", path, "--quick", "--only", "latency"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "functions of one device 2" in out
    assert "below the same port or switch 4" in out
    assert "different ones" not in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.toml"], "none.toml"),
        ([FLAT, "--devices", "gpu0,gpu9"], "there is no device 'gpu9'; it has gpu0, gpu1"),
        ([FLAT, "--devices", "gpu0,gpu0"], "gpu0 is named twice"),
        (
            [FLAT, "--devices", "gpu0"],
            "1 device is chosen, and at least two are needed; name two or more of gpu0, gpu1, gpu2",
        ),
        ([FLAT, "--devices", "sw1,gpu0"], 'sw1 has model = "switch", which cannot be both requester and target'),
        ([str(ROOT / "experiments/peer-to-peer.toml")], "1 of its devices can take part"),
        ([FLAT, "--flow", "gpu0"], "--flow gpu0: write FROM:TO"),
        ([FLAT, "--flow", "gpu0:gpu1:push"], "write FROM:TO"),
        ([FLAT, "--flow", "gpu0:gpu0"], "from one device to another"),
        ([FLAT, "--flow", "gpu0:gpu1", "--only", "ring"], "cannot be combined with --only and --devices"),
        ([FLAT, "--only", "rings"], "there is no part 'rings'"),
        ([FLAT, "--only", "fan", "--devices", "gpu0,gpu1"], "a fan needs two switches"),
        ([FLAT, "--size", "128MiB"], "--size 128MiB: a window of"),
        ([FLAT, "--size", "0B"], "give at least one byte"),
        ([FLAT, "--set", "switch.sw1.lnk=3"], 'did you mean "link"'),
        ([FLAT, "--plot", "x.txt"], "name a file that ends in .png"),
        ([FLAT, "--json", "/nowhere/x.json"], "/nowhere does not exist"),
    ],
)
def test_bad_input_has_one_message(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["p2p", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("Error") == 1
    assert "Traceback" not in error
