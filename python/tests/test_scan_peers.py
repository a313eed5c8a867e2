"""`tlplab scan`: pairs of devices, access control between them, and address translation, as sentences and as an experiment."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from privilege import needs_lspci
from scan_machines import gpus, port, run

from tlplab import cli, model
from tlplab.scan import report, scanned
from tlplab.scan.facts import Function
from tlplab.scan.peers import Exchange, Peers, figures, words
from tlplab.scan.scanned import judged

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CONTROLS = (
    "source-validation", "translation-blocking", "request-redirect", "completion-redirect", "upstream-forwarding", "egress-control",
    "direct-translated",
)  # fmt: skip


def now(pairs: Peers) -> Exchange:
    """The present rates."""
    assert pairs.now is not None
    return pairs.now


def test_pairs_of_gpus_are_limited_by_their_narrowest_link() -> None:
    """Each link alone, and shared both ways where requests go up and come down again."""
    alone = float(model.bandwidth(4096, op="write", generation=4, width=8, mps=512, mrrs=4096, rcb=64)["bandwidth_bps"])
    near, far = judged("a test", gpus()).peers
    for pairs in (near, far):
        assert (now(pairs).one_way, now(pairs).both) == pytest.approx((alone, 2 * alone))
        assert (pairs.straight, pairs.faster, pairs.commands()) == (None, None, [])
    assert [len(pairs.pairs) for pairs in (near, far)] == [1, 2]
    redirected, far = judged("a test", gpus(access_control=["SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"])).peers
    assert (now(redirected).one_way, now(redirected).both) == pytest.approx((alone, alone))
    assert redirected.straight is not None
    assert (redirected.straight.one_way, redirected.straight.both) == pytest.approx((alone, 2 * alone))
    assert str(now(redirected).limit.lower.address) == "01:00.0"
    assert redirected.commands() == [
        "setpci -s 02:00.0 ECAP_ACS+6.w=0000:000c",
        "setpci -s 02:01.0 ECAP_ACS+6.w=0000:000c",
    ]
    # What goes to another root port goes up anyway.
    assert now(far).both == pytest.approx(2 * alone)
    assert (far.straight, far.commands()) == (None, [])


def with_ats(functions: list[Function], *, on: bool = True) -> list[Function]:
    """All devices have ATS."""
    for function in functions:
        if not function.is_bridge:
            function.ats_enabled = on
    return functions


def test_translated_requests_pass_ports_that_redirect_others() -> None:
    """They cost their peers nothing, so there is no finding and nothing to switch off; other devices and other ports do."""
    redirects = ["ReqRedir", "CmpltRedir", "DirectTrans"]
    plain, _ = judged("a test", gpus()).peers
    scan = judged("a test", with_ats(gpus(access_control=redirects)))
    near, _ = scan.peers
    assert (figures(near.now), near.straight, near.commands()) == (figures(plain.now), None, [])
    assert (
        "access control at 02:00.0 and 02:01.0 lets translated requests pass, which devices with ATS on send"
        in words(near)
    )
    assert [finding for verdict in scan.verdicts for finding in verdict.findings if finding.kind == "acs"] == []
    for machine in (
        gpus(access_control=redirects),
        with_ats(gpus(access_control=redirects), on=False),
        with_ats(gpus(access_control=redirects[:2])),
        with_ats(gpus(access_control=[*redirects, "TransBlk"])),
    ):
        scan = judged("a test", machine)
        near, _ = scan.peers
        assert now(near).both == now(near).one_way
        assert len(near.commands()) == 2
        assert "; without it " in words(near)
        texts = [finding.text for verdict in scan.verdicts for finding in verdict.findings if finding.kind == "acs"]
        assert sum("sends its requests to other devices" in text for text in texts) == 3


def test_one_device_with_ats_has_its_own_direction_straight() -> None:
    functions = gpus(access_control=["ReqRedir", "DirectTrans"])
    functions[3].ats_enabled = True
    [near, *_] = judged("a test", functions).peers
    assert near.fates == ("straight", "redirected")
    assert near.commands() == ["setpci -s 02:01.0 ECAP_ACS+6.w=0000:0004"]


def test_the_iommu_passes_translated_requests() -> None:
    functions = gpus()
    for place in (0, 6):
        functions[place].access_control = ["ReqRedir"]
    _, far = judged("a test", functions).peers
    assert "has the IOMMU translate it" in words(far)
    _, far = judged("a test", with_ats(functions)).peers
    assert far.commands() == []
    assert "has the IOMMU translate it" not in words(far)
    assert "lets translated requests pass" in words(far)


def egress(*on: str, vector: list[int] | None, **first: Any) -> list[Function]:
    """Egress control at both ports of the switch with two GPUs, which have the numbers 1 and 2."""
    functions = gpus()
    for number, place in ((1, 2), (2, 4)):
        functions[place].learn(
            {"access_control": [*on, "EgressCtrl"], "egress_forbidden": vector, "port_number": number}
        )
    functions[2].learn(first)
    return functions


def test_egress_control_sends_allowed_requests_straight() -> None:
    """Table 6-11 of PCIe 5.0. With redirection alone off, egress control would refuse the requests that were redirected."""
    plain, _ = judged("a test", gpus()).peers
    for on in ([], ["ReqRedir"]):
        functions = egress(*on, vector=[])
        functions[4].port_number = None  # an empty vector allows any
        allowed = judged("a test", functions)
        assert [(one.fates, figures(one.now), one.commands()) for one in allowed.peers[:1]] == [
            (("straight",) * 2, figures(plain.now), [])
        ]
        assert [finding for verdict in allowed.verdicts for finding in verdict.findings if finding.kind == "acs"] == []
    redirected = judged("a test", egress("ReqRedir", "CmpltRedir", vector=[1, 2]))
    near = redirected.peers[0]
    assert (now(near).both, figures(near.straight)) == (now(plain).one_way, figures(plain.now))
    assert near.commands() == [f"setpci -s 02:0{port}.0 ECAP_ACS+6.w=0000:002c" for port in (0, 1)]
    finding = next(one for verdict in redirected.verdicts for one in verdict.findings if one.kind == "acs")
    assert "egress control at 02:00.0 sends its requests to 04:00.0 up to the root complex" in finding.text
    assert finding.commands == ["setpci -s 02:00.0 ECAP_ACS+6.w=0000:002c"]


def test_egress_control_refuses_forbidden_requests() -> None:
    plain, _ = judged("a test", gpus()).peers
    scan = judged("a test", egress(vector=[1, 2]))
    near = scan.peers[0]
    assert (near.now, figures(near.straight), near.fates) == (None, figures(plain.now), ("refused", "refused"))
    assert words(near).startswith(
        "nothing, since egress control at 02:00.0 and 02:01.0 refuses requests both ways; without it 1"
    )
    assert near.commands() == [f"setpci -s 02:0{port}.0 ECAP_ACS+6.w=0000:0020" for port in (0, 1)]
    finding = next(one for verdict in scan.verdicts for one in verdict.findings if one.kind == "acs")
    assert "egress control at 02:00.0 refuses its requests to 04:00.0" in finding.text
    one_way = judged("a test", egress(vector=[1])).peers[0]
    assert one_way.fates == ("straight", "refused")
    assert now(one_way).both == now(one_way).one_way
    assert " from 03:00.0 to 04:00.0, limited by " in words(one_way)
    assert "; egress control at 02:01.0 refuses requests from 04:00.0 to 03:00.0; without it " in words(one_way)
    assert json.loads(json.dumps(scan.document()))["peers"][0]["refusing"] == ["02:00.0", "02:01.0"]


@pytest.mark.parametrize(
    ("on", "otherwise"), [([], "are refused"), (["ReqRedir"], "are redirected to the root complex: ")]
)
def test_a_vector_that_the_source_lacks_is_not_guessed(on: list[str], otherwise: str) -> None:
    plain, _ = judged("a test", gpus()).peers
    scan = judged("a test", egress(*on, vector=None))
    near = scan.peers[0]
    assert (near.now, figures(near.straight)) == (None, figures(plain.now))
    assert "the source lacks its vector (lspci -xxxx shows it)" in words(near)
    assert f"requests that it does not allow {otherwise}" in words(near)
    printed = " ".join("\n".join(report.lines(scan, 100, everything=False)).split())
    assert "egress control is on at 02:00.0, and the source lacks its vector" in printed
    # With translated addresses it does not matter, where requests for translations go up.
    near = judged("a test", with_ats(egress(*on, "DirectTrans", vector=None))).peers[0]
    assert (figures(near.now), near.commands() == []) == ((figures(plain.now), True) if on else (None, False))


def test_egress_control_refuses_requests_for_translations_without_redirection() -> None:
    plain, _ = judged("a test", gpus()).peers
    scan = judged("a test", with_ats(egress("DirectTrans", vector=[1, 2])))
    near = scan.peers[0]
    assert (near.now, figures(near.straight)) == (None, figures(plain.now))
    assert "but not those with translated addresses (DirectTrans, ATS is on)" in words(near)
    texts = [finding.text for verdict in scan.verdicts for finding in verdict.findings if finding.kind == "acs"]
    assert "egress control at 02:00.0 refuses its untranslated requests to 04:00.0" in texts[0]


def test_undecided_pairs_are_grouped_by_remaining_rate() -> None:
    """One port redirects, and two refuse, where the vectors do not allow it."""
    functions = egress(vector=None)
    functions[0].subordinate = functions[1].subordinate = 5
    functions += [port("02:02.0", "downstream port", secondary=5), port("05:00.0", "end point", class_code=0x0302)]
    for one, controls in ((functions[2], ["ReqRedir", "EgressCtrl"]), (functions[-2], ["EgressCtrl"])):
        one.access_control = controls
    near = [one for one in judged("a test", functions).peers if one.undecided]
    assert [len(one.pairs) for one in near] == [2, 1]
    assert ": 15.0 GB/s one way only" in words(near[0])
    assert words(near[1]).endswith("requests that it does not allow are refused")


def test_redirection_one_way_and_refusal_the_other_are_reported() -> None:
    functions = egress(vector=[1, 2])
    functions[2].access_control = ["ReqRedir", "EgressCtrl"]
    near = judged("a test", functions).peers[0]
    assert near.fates == ("redirected", "refused")
    assert " from 03:00.0 to 04:00.0 through the root complex (access control at 02:00.0), limited by " in words(near)


def test_a_root_port_without_upstream_forwarding_is_named() -> None:
    """It may not send requests down again that a switch redirects to it."""
    functions = gpus(access_control=["ReqRedir"])
    for controls, told in ((None, False), (["UpstreamFwd"], False), (["SrcValid"], True)):
        functions[0].access_control = controls
        near = judged("a test", functions).peers[0]
        assert ("UpstreamFwd is off at 00:01.0, which may refuse" in words(near)) == told


def test_the_gain_is_that_with_the_fastest_device_below_the_switch() -> None:
    """Not with a neighbour that is slow under any access control."""
    functions = gpus(access_control=["ReqRedir"])
    slow, fast = (port(f"02:0{n}.0", "downstream port", secondary=n + 3, access_control=["ReqRedir"]) for n in (2, 3))
    functions[1].subordinate = functions[0].subordinate = 6
    functions += [slow, fast, port("05:00.0", "end point", width=1), port("06:00.0", "end point")]
    functions[3].width = functions[5].width = 1
    texts = {str(one.function.address): one.findings for one in judged("a test", functions).verdicts}
    [finding] = [finding for finding in texts["06:00.0"] if finding.kind == "acs"]
    assert "(writes both ways" not in finding.text
    functions[3].width = 8
    texts = {str(one.function.address): one.findings for one in judged("a test", functions).verdicts}
    [finding] = [finding for finding in texts["06:00.0"] if finding.kind == "acs"]
    assert "(writes both ways with 03:00.0 15.0 GB/s → 30.0 GB/s)" in finding.text
    functions[5].width, functions[3].width = 8, 1
    texts = {str(one.function.address): one.findings for one in judged("a test", functions).verdicts}
    [finding] = [finding for finding in texts["06:00.0"] if finding.kind == "acs"]
    assert "(writes both ways with 04:00.0 15.0 GB/s → 30.0 GB/s)" in finding.text


def test_one_redirecting_port_costs_its_own_direction() -> None:
    """The other way goes straight, so that nothing is shared: no figure, but it is said."""
    functions = gpus()
    functions[2].access_control = ["ReqRedir"]
    [near, _] = judged("a test", functions).peers
    assert near.straight is None
    assert near.commands() == ["setpci -s 02:00.0 ECAP_ACS+6.w=0000:0004"]


def test_a_slow_uplink_limits_pairs_across_it_and_no_others() -> None:
    functions = gpus()
    for one in functions[:2]:
        one.width = 4
    near, far = judged("a test", functions).peers
    assert now(near).both == pytest.approx(2 * now(near).one_way)
    assert near.faster is None
    assert str(now(far).limit.lower.address) == "01:00.0"
    assert far.faster is not None
    assert far.faster.both == pytest.approx(now(near).both)
    assert [str(link.lower.address) for link in far.slow] == ["01:00.0"]
    printed = "\n".join(report.lines(judged("a test", functions), 200, everything=False))
    assert "with the links above 01:00.0 at the maximum of both ends" in printed


def test_root_ports_that_redirect_are_named_where_pairs_pass_them() -> None:
    functions = gpus()
    functions[0].access_control = ["ReqRedir"]
    near, far = judged("a test", functions).peers
    assert near.commands() == []
    assert far.commands() == ["setpci -s 00:01.0 ECAP_ACS+6.w=0000:0004"]


def test_predicted_rates_of_pairs_match_their_experiment(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The experiment that a dump becomes, with its access control and without, against the closed forms."""
    dump, machine, measured = tmp_path / "dump.txt", tmp_path / "machine.toml", tmp_path / "p2p.json"
    run(capsys, "lspci", str(root / "experiments/p2p/acs.toml"), "-o", str(dump))
    run(capsys, "scan", "--from", str(dump), "-o", str(machine), "--quiet")
    [pair] = scanned.from_text("a dump", dump.read_text()).peers
    assert pair.straight is not None
    off = [f"link.d{bus}_00_0.upper.acs=off" for bus in ("03", "04")]
    for said, sets in ((now(pair), []), (pair.straight, off)):
        options = [option for one in sets for option in ("--set", one)]
        run(capsys, "p2p", str(machine), "--only", "pairs", "--quick", "--quiet", "--json", str(measured), *options)
        matrix = json.loads(measured.read_text())["matrix"]
        assert matrix["write"][0][1] == pytest.approx(said.one_way / 8e9, rel=0.01)
        assert matrix["both"][0][1] == pytest.approx(said.both / 8e9, rel=0.01)


def test_hexadecimal_registers_alone_show_ats(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "dump.txt"
    run(capsys, "lspci", str(root / "experiments/p2p/ats.toml"), "-o", str(dump))
    scan = scanned.from_text("a dump", dump.read_text())
    assert [one.ats_enabled for one in scan.functions if one.class_code and not one.is_bridge and one.port] == [
        True,
        True,
    ]
    [near] = scan.peers
    assert (near.fates, near.commands()) == (("straight", "straight"), [])


EIGHT = """
title = "Eight devices below two switches"
stop = "30us"
warmup = "10us"
fidelity = "length-only"

[host]
{host}
{iommu}
"""


@st.composite
def experiments(draw: st.DrawFn) -> str:
    """Devices below one or two switches and next to them, with any access control, vectors and ATS."""
    some = st.lists(st.sampled_from(CONTROLS), unique=True)
    iommu = draw(st.sampled_from(["", 'mode = "off"', 'mode = "superpages"', 'mode = "4KiB"\nats = false']))
    figures = '\nentries = 16\nwalk = "200ns"'
    host = draw(st.none() | some)
    lines = [
        EIGHT.format(
            host="" if host is None else f"acs = {json.dumps(host)}",
            iommu=f"[host.iommu]\n{iommu}{figures}" if iommu else "",
        )
    ]
    parents = {f"sw{number}": draw(st.integers(2, 4)) for number in range(draw(st.integers(1, 2)))}
    names = {parent: [f"{parent}d{number}" for number in range(count)] for parent, count in parents.items()}
    names["host"] = [*parents, "alone"]
    for parent in parents:
        acs = draw(st.none() | some)
        lines.append(f'[switch.{parent}]\nunder = "host.rp{len(lines) - 1}"\nlink = "gen4 x16"')
        lines.append("" if acs is None else f"acs = {json.dumps(acs)}")
    lines = [lines[0], *(line for line in lines[1:] if line)]
    roots = iter(range(9))
    text = "\n".join(re.sub(r'"host\.rp\d+"', lambda _: f'"host.rp{next(roots)}"', line) for line in lines) + "\n"
    devices = [(f"host.rp{next(roots)}", "alone"), *((parent, name) for parent in parents for name in names[parent])]
    for parent, name in devices:
        ats = draw(st.sampled_from(["", "ats = { entries = 8, outstanding = 2 }"]))
        text += f'[device.{name}]\nunder = "{parent}"\nlink = "gen4 x8"\nbar = "1MiB"\n{ats}\n'
        beside = names["host" if parent.startswith("host") else parent]
        if draw(st.booleans()):
            forbids = draw(st.lists(st.sampled_from(beside), unique=True))
            # An experiment has no vector without egress control.
            controls = [*draw(some), *(["egress-control"] if forbids else [])]
            text += (
                f"[link.{name}.upper]\nacs = {json.dumps(sorted(set(controls)))}\nacs_forbids = {json.dumps(forbids)}\n"
            )
    first, second = names["sw0"][:2]
    return (
        text
        + f'[load]\nload = {{ device = "{first}", target = "{second}", op = "write", size = "4KiB", outstanding = 4 }}\n'
    )


def translated(path: Path) -> list[tuple[object, ...]]:
    """The facts of a dump about access control and translation. A port forbids itself nothing."""
    return [
        (str(one.address), one.access_control, None if one.egress_forbidden is None else set(one.egress_forbidden) - {one.port_number}, one.ats_enabled)
        for one in scanned.from_text("a dump", path.read_text()).functions
    ]  # fmt: skip


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(experiments())
def test_access_control_and_ats_come_back(tmp_path: Path, capsys: pytest.CaptureFixture[str], experiment: str) -> None:
    """Experiment, dump, scan, experiment, dump: the registers are the same."""
    given_, machine = tmp_path / "given.toml", tmp_path / "machine.toml"
    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    given_.write_text(experiment)
    run(capsys, "lspci", str(given_), "-o", str(first))
    run(capsys, "scan", "--from", str(first), "-o", str(machine), "--quiet")
    run(capsys, "lspci", str(machine), "-o", str(second))
    assert translated(second) == translated(first)
    assert cli.status(["check", str(machine)]) == 0


def notes(capsys: pytest.CaptureFixture[str], dump: Path, machine: Path) -> tuple[dict[str, Any], str, str]:
    """The experiment of a dump, its text, and the terminal's output."""
    assert cli.status(["scan", "--from", str(dump), "-o", str(machine), "--quiet"]) == 0
    said = capsys.readouterr().err
    text = machine.read_text()
    for line in said.splitlines():
        assert f"# {line.removeprefix(f'{machine}: ')}\n" in text, "the file says what the terminal says"
    return tomllib.loads(text), text, said


def test_the_iommu_is_in_the_experiment_or_noted_as_missing(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump, machine = tmp_path / "dump.txt", tmp_path / "machine.toml"
    run(capsys, "lspci", str(root / "experiments/p2p/ats.toml"), "-o", str(dump))
    tree, text, said = notes(capsys, dump, machine)
    assert tree["host"]["iommu"]["mode"] == "superpages"
    assert "ATS is on at 03:00.0" in text
    assert {name: "ats" in device for name, device in tree["device"].items()} == {"d03_00_0": True, "d04_00_0": True}
    assert "entries and outstanding of device.*.ats are assumed" in said
    # A dump that shows no IOMMU.
    run(capsys, "lspci", str(root / "experiments/p2p/acs.toml"), "-o", str(dump))
    tree, text, said = notes(capsys, dump, machine)
    assert "iommu" not in tree.get("host", {})
    assert "does not show whether there is an IOMMU; the experiment has none, [host.iommu] adds it" in said
    # One with IOMMU groups, but not what is in their tables.
    tree, text, said = notes(capsys, root / "examples/dumps/workstation.txt", machine)
    assert tree["host"]["iommu"]["mode"] == "off"
    assert "does not show if the IOMMU translates (functions are in IOMMU groups)" in said
    run(capsys, "run", str(machine), "--quiet", "--set", "host.iommu.mode=superpages", "--set", "stop=20us")


@pytest.mark.parametrize(
    ("kinds", "mode", "ats"),
    [(["identity"], "off", None), (["DMA-FQ", "identity"], "superpages", False), ([None], None, None)],
)
def test_the_iommu_mode_follows_from_the_kernels_groups(
    kinds: list[str | None], mode: str | None, ats: bool | None, tmp_path: Path
) -> None:
    from tlplab.scan import sysfs, topology

    bus = tmp_path / "devices"
    for number, kind in enumerate(kinds):
        entry = bus / f"0000:0{number + 1}:00.0"
        entry.mkdir(parents=True)
        (entry / "class").write_text("0x020000\n")
        for name, value in (("speed", "8.0 GT/s PCIe"), ("width", "8")):
            (entry / f"current_link_{name}").write_text(f"{value}\n")
        if kind is not None:
            group = tmp_path / "groups" / str(number)
            group.mkdir(parents=True)
            (group / "type").write_text(f"{kind}\n")
            (entry / "iommu_group").symlink_to(group)
    scan = scanned.judged("a folder", sysfs.read(tmp_path))
    if ats is False:
        for one in scan.functions:
            one.ats_enabled = False
    written, _ = topology.experiment(scan)
    iommu = tomllib.loads(written).get("host", {}).get("iommu", {})
    assert (iommu.get("mode"), iommu.get("ats")) == (mode, ats)


@needs_lspci
def test_a_text_without_registers_lacks_the_vector(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The output of lspci -vvv for the registers, without the registers."""
    experiment, dump, machine = tmp_path / "given.toml", tmp_path / "dump.txt", tmp_path / "machine.toml"
    devices = "".join(f'[device.d{n}]\nunder = "sw0"\nlink = "gen4 x8"\n' for n in range(3))
    controls = 'acs = ["request-redirect", "egress-control"]'
    experiment.write_text(
        f'{EIGHT.format(host="", iommu="")}\n[switch.sw0]\nunder = "host.rp0"\nlink = "gen4 x16"\n{controls}\n{devices}'
        f'[link.d0.upper]\n{controls}\nacs_forbids = ["d1"]\n[load]\nd0 = {{ op = "write", size = "4KiB" }}\n'
    )
    run(capsys, "lspci", str(experiment), "-o", str(dump))
    tree, _, said = notes(capsys, dump, machine)
    assert [tree["link"][name]["upper"].get("acs_forbids") for name in sorted(tree["link"])] == [
        ["d04_00_0"],
        None,
        None,
    ]
    assert "egress" not in said
    shown = subprocess.run(["lspci", "-F", str(dump), "-vvv", "-nn"], capture_output=True, text=True, check=True).stdout
    dump.write_text(shown)
    tree, text, said = notes(capsys, dump, machine)
    assert all("acs_forbids" not in tree["link"][name]["upper"] for name in tree["link"])
    assert text.count("# acs_forbids: the source lacks the egress control vector; nothing is forbidden") == 3
    assert "the egress control vector of 02:00.0 and 2 more (lspci -xxxx shows it)" in said


def test_a_vector_without_egress_control_is_a_comment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An experiment has no vector for a control that is off: `tlplab check` would refuse it."""
    given_, dump, machine = tmp_path / "given.toml", tmp_path / "dump.txt", tmp_path / "machine.toml"
    component = '[device.{}]\nunder = "sw0"\nlink = "gen4 x8"\nbar = "1MiB"\n'
    given_.write_text(
        'title = "Two below a switch"\nstop = "30us"\n[switch.sw0]\nunder = "host.rp0"\nlink = "gen4 x16"\n'
        + "".join(map(component.format, "ab"))
        + '[link.a.upper]\nacs = ["egress-control"]\nacs_forbids = ["b"]\n'
        + '[load]\na = { op = "write", size = "4KiB" }\n'
    )
    run(capsys, "lspci", str(given_), "-o", str(dump))
    registers = dump.read_text()
    # ACS Control: Egress Control Enable, bit 5, of the word behind the capabilities (PCIe 5.0 §7.7.8.3).
    off, changed = re.subn(r"(\b0d 00 01 .. .. .. )20 00\b", r"\g<1>00 00", registers)
    assert changed == 1
    dump.write_text(off)
    run(capsys, "scan", "--from", str(dump), "-o", str(machine), "--quiet")
    assert re.search(r"(?m)^# acs_forbids = \[.*\]: the vector, without egress control$", machine.read_text())
    assert cli.status(["check", str(machine)]) == 0
