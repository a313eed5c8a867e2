"""`tlplab scan`: the parts of a machine, the findings about them, and the experiment that it becomes."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from lspci_text import Style, machines, text_of
from privilege import needs_lspci
from scan_machines import port, run

from tlplab import cli, model
from tlplab.scan import report, scanned, text
from tlplab.scan import settings as registers
from tlplab.scan.facts import Function, from_registers
from tlplab.scan.scanned import Scan, judged

STYLE = Style(judged=True, commas=False, split=True, domains=False, numbers=True, indent="\t", newline="\n")


def pair(above: dict[str, Any] | None = None, below: dict[str, Any] | None = None) -> list[Function]:
    """A root port with a card below it."""
    return [port("00:01.0", "root port", secondary=1, **(above or {})), port("01:00.0", "end point", **(below or {}))]


def switched(**uplink: Any) -> list[Function]:
    """A card below a switch, whose link above has these facts."""
    return [
        port("00:01.0", "root port", secondary=1, subordinate=3, **uplink),
        port("01:00.0", "upstream port", secondary=2, subordinate=3, **uplink),
        port("02:00.0", "downstream port", secondary=3),
        port("03:00.0", "end point"),
    ]


def only(machine: list[Function]) -> Any:
    """The verdict on the one device."""
    [verdict] = judged("a test", machine).verdicts
    return verdict


@pytest.mark.parametrize(("above", "below", "expected"), [
    ({}, {}, "full"),
    # One end can do less: that is no fault.
    ({"speed_possible": 5, "width_possible": 16}, {}, "full"),
    # Fewer lanes than both ends have.
    ({}, {"width": 4}, "degraded"),
    ({"width_possible": 4}, {"width": 4}, "full"),
    ({}, {"width": 4, "autonomous_changed": True}, "idle"),
    ({"autonomous_changed": True}, {"width": 4}, "idle"),
    # Slower than both ends can.
    ({}, {"speed": 3}, "degraded"),
    ({"target_speed": 3}, {"speed": 3}, "limited"),
    ({"target_speed": None}, {"speed": 3}, "unknown"),
    ({}, {"speed": 3, "power_state": None}, "unknown"),
    ({}, {"speed": 3, "power_state": "D3"}, "idle"),
    ({}, {"speed": 3, "runtime_suspended": True}, "idle"),
    ({}, {"speed": 3, "autonomous_changed": True}, "idle"),
    ({}, {"speed": 1, "class_code": 0x0300}, "idle"),
    ({}, {"speed": 2, "class_code": None, "class_name": "VGA compatible controller"}, "idle"),
    ({}, {"speed": 1}, "unknown"),
    ({"target_speed": 1}, {"speed": 1}, "limited"),
    # What is not told is not guessed.
    ({"speed_possible": None}, {"speed": 3}, "unknown"),
    ({"width_possible": None}, {"width": 4}, "unknown"),
    ({}, {"speed": None, "width": None}, "full"),
    ({"speed": None, "width": None}, {"speed": None, "width": None}, "unknown"),
    ({"width": 0}, {"width": 0}, "empty"),
])  # fmt: skip
def test_how_a_link_runs(above: dict[str, Any], below: dict[str, Any], expected: str) -> None:
    verdict = only(pair(above, below))
    assert verdict.state.name == expected
    if expected in ("idle", "unknown", "full", "empty"):
        assert not any("reseat the card" in f.text and "if it is still slow" not in f.text for f in verdict.findings)


def test_a_device_without_a_visible_link_partner_is_unknown() -> None:
    """As in a virtual machine."""
    verdict = only([port("00:05.0", "end point", width=4)])
    assert verdict.state.name == "unknown"
    assert (verdict.possible.write, verdict.possible.read) == (None, None)
    assert verdict.now.write is not None


def test_rates_match_the_model_of_the_slowest_link() -> None:
    narrow = port("00:01.0", "root port", secondary=1, subordinate=4)
    upper = port("01:00.0", "upstream port", secondary=2, subordinate=4, speed=3, width=4)
    lower = [port("02:00.0", "downstream port", secondary=3), port("02:01.0", "downstream port", secondary=4)]
    cards = [port("03:00.0", "end point", mps=256, mrrs=512), port("04:00.0", "end point")]
    scan = judged("a test", [narrow, upper, *lower, *cards])
    first, _ = scan.verdicts
    rate = float(model.bandwidth(4096, op="write", generation=3, width=4, mps=256, mrrs=512)["bandwidth_bps"])
    assert first.now.write == pytest.approx(rate)
    read = float(model.bandwidth(4096, op="read", generation=3, width=4, mps=512, mrrs=512)["bandwidth_bps"])
    assert first.now.read == pytest.approx(read), "the root port cuts the data of reads"
    full = float(model.bandwidth(4096, op="write", generation=4, width=8, mps=512, mrrs=4096)["bandwidth_bps"])
    assert first.possible.write == pytest.approx(full)
    [uplink] = scan.uplinks
    assert uplink.ratio == pytest.approx(8.0, rel=0.02), "two gen4 x8 above gen3 x4"
    assert [f.kind for f in first.findings if f.kind == "shared"] == ["shared"]


def space(**values: int) -> bytearray:
    """Registers with a PCI Express capability at 40h and access control at 100h."""
    data = bytearray(4096)
    struct.pack_into("<HHHH", data, 0, 0x1234, 1, 6, 0x10)
    data[0x34] = 0x40
    struct.pack_into(
        "<HHIHHIHH", data, 0x40, 0x0010, 0x0002, 0x8022, values["control"], 0, 0x0084_3483, values["link"], 0x1083
    )
    struct.pack_into("<H", data, 0x40 + 0x30, values["link2"])
    struct.pack_into("<IHH", data, 0x100, 0x0001_000D, 0x007F, values["access"])
    return data


def run_setpci(data: bytearray, command: str) -> None:
    """Write a register as setpci does: `CAP_EXP+8.w=1000:7000`."""
    match = re.fullmatch(r"setpci -s \S+ (CAP_EXP|ECAP_ACS)\+(\w+)\.w=(\w{4}):(\w{4})", command)
    assert match, command
    at = {"CAP_EXP": 0x40, "ECAP_ACS": 0x100}[match[1]] + int(match[2], 16)
    value, mask = int(match[3], 16), int(match[4], 16)
    assert value & ~mask == 0
    old = struct.unpack_from("<H", data, at)[0]
    struct.pack_into("<H", data, at, old & ~mask | value & mask)


@pytest.mark.parametrize("ones", [0x0000, 0xFFFF])
@pytest.mark.parametrize(("kind", "above", "below", "changes"), [
    ("ordering", {}, {"relaxed_ordering": False}, {"relaxed_ordering": True}),
    ("mrrs", {}, {"mrrs": 128}, {"mrrs": 4096}),
    ("mps", {"mps": 256}, {"mps": 512}, {"mps": 256}),
    ("mps", {"mps": 256}, {"mps": 256}, {"mps": 512}),
    ("aspm", {}, {"aspm": ["L0s", "L1"]}, {"aspm": []}),
    ("speed", {"target_speed": 3}, {"speed": 3}, {"target_speed": 4}),
])  # fmt: skip
def test_commands_change_only_the_stated_fields(
    kind: str, above: dict[str, Any], below: dict[str, Any], changes: dict[str, Any], ones: int
) -> None:
    """Run on the bytes, with any value of the other bits, and read again by the core."""
    verdict = only(pair(above, below))
    [finding] = [finding for finding in verdict.findings if finding.kind == kind]
    data = space(control=ones, link=ones & ~0x20, link2=ones, access=ones)
    before = from_registers(bytes(data))
    for command in finding.commands:
        if "CAP_EXP+10.w=0020:0020" not in command:
            run_setpci(data, command)
    after = from_registers(bytes(data))
    assert {name: after[name] for name in changes} == changes
    assert {name for name in after if after[name] != before[name]} <= set(changes)


def test_a_link_is_trained_again_by_the_port_above() -> None:
    [finding] = [f for f in only(pair({"target_speed": 3}, {"speed": 3})).findings if f.kind == "speed"]
    assert finding.commands == ["setpci -s 00:01.0 CAP_EXP+30.w=0004:000f", "setpci -s 00:01.0 CAP_EXP+10.w=0020:0020"]


def test_access_control_is_switched_off_at_the_port_of_the_switch() -> None:
    data = space(control=0, link=0, link2=0, access=0x1D)
    run_setpci(data, registers.setpci(port("02:00.0", "downstream port"), "ECAP_ACS+6", 0, 0x000C))
    assert from_registers(bytes(data))["access_control"] == ["SrcValid", "UpstreamFwd"]


def findings(machine: list[Function]) -> dict[str, str]:
    return {finding.kind: finding.text for finding in only(machine).findings}


def test_mismatched_payload_and_request_sizes_are_found() -> None:
    assert findings(pair()) == {}
    said = findings(pair({"mps": 256}))["mps"]
    assert said.startswith("sends payloads of up to 512 B, but 00:01.0 above accepts 256 B")
    said = findings(pair({}, {"mps": 256, "mrrs": 512}))["mps"]
    assert "accepts payloads of 256 B, but 00:01.0 at the top may send 512 B: larger TLPs are malformed" in said
    assert "reads are safe" in findings(pair({}, {"mps": 256, "mrrs": 256}))["mps"]
    assert "mps" not in findings(pair({"mps": 256, "mps_supported": 256}, {"mps": 256})), "the root port can no more"
    assert "mps" not in findings(pair({"mps": 256, "mps_supported": None}, {"mps": 256})), "nobody knows what it can"


def test_few_tags_limit_reads_that_take_long() -> None:
    said = findings(pair({}, {"extended_tags": False, "mrrs": 256}))["tags"]
    rate = only(pair({}, {"extended_tags": False, "mrrs": 256})).now.read
    assert f"within {32 * 256 * 8 / rate * 1e9:.0f} ns" in said
    assert "it supports 256 tags" in said
    assert "tags" not in findings(pair({}, {"extended_tags": None, "mrrs": 256})), "nobody knows how many it has"


def test_read_requests_of_different_sizes_share_a_link_unevenly() -> None:
    machine = [
        port("00:01.0", "root port", secondary=1, subordinate=4),
        port("01:00.0", "upstream port", secondary=2, subordinate=4),
    ]
    for n, mrrs in enumerate((512, 4096)):
        machine += [
            port(f"02:{n:02x}.0", "downstream port", secondary=3 + n),
            port(f"{3 + n:02x}:00.0", "end point", mrrs=mrrs),
        ]
    [uplink] = judged("a test", machine).uplinks
    assert "have up to 512 and 4096 B" in uplink.text
    machine[3].mrrs = 4096
    [uplink] = judged("a test", machine).uplinks
    assert "read requests" not in uplink.text


def test_recorded_errors_are_reported() -> None:
    said = findings(
        pair({"correctable": ["RxErr", "AdvNonFatalErr"]}, {"error_counts": {"correctable": 7, "fatal": 0}})
    )
    assert said["errors"] == "00:01.0 above it: link errors are recorded: RxErr; the connection may be bad"
    kinds = [f.text for f in only(pair({}, {"error_counts": {"correctable": 7, "fatal": 0}})).findings]
    assert kinds == ["errors counted since boot: 7 correctable (aer_dev_* in /sys)"]


def test_virtual_functions_have_the_rate_of_their_physical_function() -> None:
    machine = pair({}, {"virtual_functions": [2, 0x80, 2], "mps": 256})
    machine += [port(f"01:10.{n}", "end point", mps=128, mrrs=128, speed=None, width=0) for n in (0, 2)]
    scan = judged("a test", machine)
    rates = {str(verdict.function.address): verdict.now.write for verdict in scan.verdicts}
    assert rates["01:10.0"] == rates["01:10.2"] == rates["01:00.0"]
    assert "a virtual function of 01:00.0" in scan.verdicts[1].limit


def links_of(scan: Scan) -> list[tuple[object, ...]]:
    """The parts of a scan that a topology keeps: the depth of each switch and device with its link and limits."""
    found: list[tuple[object, ...]] = []
    for depth, function in scan.tree.walk():
        link = scan.tree.links.get(function.address)
        if link is not None and link.lower is function:
            found.append((depth, link.speed, link.width, function.ids() and None, function.port == "upstream port"))
    return found


EXPERIMENTS = ["quickstart.toml", "enumeration.toml", "peer-to-peer.toml", "latency.toml", "p2p/acs.toml"]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_comes_back(name: str, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Experiment, dump, scan, experiment, dump, scan: the links are the same, and the simulator takes it."""
    first, machine, second = tmp_path / "first.txt", tmp_path / "machine.toml", tmp_path / "second.txt"
    run(capsys, "lspci", str(root / "experiments" / name), "-o", str(first))
    run(capsys, "scan", "--from", str(first), "-o", str(machine), "--quiet")
    run(capsys, "lspci", str(machine), "-o", str(second))
    before, after = (scanned.from_text("a dump", path.read_text()) for path in (first, second))
    assert links_of(after) == links_of(before)
    assert len(links_of(before)) > 0
    limits = [[(v.function.mps, v.function.mrrs) for v in scan.verdicts] for scan in (before, after)]
    assert limits[0] == limits[1]
    controls = [
        sorted(str(f.access_control) for f in scan.functions if f.access_control is not None)
        for scan in (before, after)
    ]
    assert controls[0] == controls[1]
    assert bool(controls[0]) == (name == "p2p/acs.toml")
    run(capsys, "run", str(machine), "--quiet", "--set", "stop=20us", "--set", "warmup=2us")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(machines())
def test_any_machine_becomes_an_experiment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], machine: list[Function]
) -> None:
    """Every function is a component or in a comment, and the simulator accepts the file."""
    dump, output = tmp_path / "dump.txt", tmp_path / "machine.toml"
    dump.write_text(text_of(machine, STYLE), encoding="utf-8")
    assert cli.status(["scan", "--from", str(dump), "-o", str(output), "--quiet"]) == 0
    written = output.read_text(encoding="utf-8")
    assert ("would have no device" in capsys.readouterr().err) == ("[device." not in written)
    scan = scanned.from_text("a dump", dump.read_text(encoding="utf-8"))
    for function in scan.functions:
        leads_down = function.port in ("root port", "downstream port") and scan.tree.below.get(function.address)
        assert leads_down or f"# {function.address} " in written
    if "[device." in written:
        assert cli.status(["check", str(output)]) == 0, (capsys.readouterr(), written)


def test_a_bridge_to_a_parallel_bus_becomes_a_bus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump, output = tmp_path / "dump.txt", tmp_path / "machine.toml"
    bridge = [
        "Capabilities: [90] Express (v1) PCI-Express to PCI/PCI-X Bridge, MSI 00",
        "LnkSta: Speed 2.5GT/s, Width x4, TrErr-",
    ]
    bridge += [
        "Capabilities: [e0] PCI-X bridge device",
        "Secondary Status: 64bit+ 133MHz+ SCD- USC- SCO- SRD- Freq=133MHz",
    ]
    dump.write_text("\n".join([
        "00:01.0 PCI bridge: Port", "Bus: primary=00, secondary=01, subordinate=02, sec-latency=0",
        "Capabilities: [90] Express (v1) Root Port (Slot+), MSI 00", "LnkSta: Speed 2.5GT/s, Width x4, TrErr-",
        "01:00.0 PCI bridge: Bridge", "Bus: primary=01, secondary=02, subordinate=02, sec-latency=64", *bridge,
        "02:04.0 Ethernet controller: Card", "Status: Cap- 66MHz+ UDF- FastB2B- ParErr- DEVSEL=slow >TAbort- INTx-",
    ]), encoding="utf-8")  # fmt: skip
    run(capsys, "scan", "--from", str(dump), "-o", str(output), "--quiet")
    written = output.read_text(encoding="utf-8")
    for line in ('link = "gen1 x4"', 'mode = "pci-x 133"', 'width = "64b"', 'under = "bus01_00_0"', 'devsel = "slow"'):
        assert line in written
    seen = run(capsys, "lspci", str(output))
    assert "d02_04_0" in seen
    run(capsys, "run", str(output), "--quiet")


def test_a_machine_read_twice_is_the_same(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The registers, and the real lspci's output for them, kept from version 3.9."""
    shown = text.read((root / "python" / "tests" / "data" / "scan" / "quickstart-vvv.txt").read_text())
    dump = tmp_path / "dump.txt"
    run(capsys, "lspci", str(root / "experiments" / "quickstart.toml"), "-o", str(dump))
    assert compared(text.read(dump.read_text()).functions) == compared(shown.functions)
    assert shown.lines["unread"] == 0


@pytest.mark.parametrize(("kind", "facts"), [
    ("width", {"width": 4}), ("speed", {"speed": 3}), ("speed", {"speed": 3, "target_speed": 3}),
])  # fmt: skip
def test_a_bad_link_further_up_is_a_finding_of_the_device(kind: str, facts: dict[str, Any]) -> None:
    verdict = only(switched(**facts))
    assert verdict.state.name == "full", "its own"
    [found] = [one for one in verdict.findings if one.kind == kind]
    assert "the link above 01:00.0, on its path, runs" in found.text
    assert found.gain.write > 1.5 * verdict.now.write
    assert all("00:01.0" in command for command in found.commands)
    assert {one.kind for one in only(switched()).findings} & {"width", "speed"} == set()


@pytest.mark.parametrize(("told", "kept"), [
    ({"vendor": 0x8086, "device": 0x2F04}, True), ({"vendor": 0x8086, "device": 0x6F08}, True), ({"vendor": 0x8086, "device": 0x3C04}, False),
    ({"vendor": None, "device": None, "name": "Intel Corporation Xeon E7 v3/Xeon E5 v3/Core i7 PCI Express Root Port 2"}, True),
    ({"vendor": None, "device": None, "name": "Intel Corporation Haswell-E PCI Express Root Port 1"}, True),
    ({"vendor": None, "device": None, "name": "Intel Corporation Xeon E5/Core i7 IIO PCI Express Root Port 2a"}, False),
])  # fmt: skip
def test_relaxed_ordering_stays_off_where_linux_wants_it(told: dict[str, Any], kept: bool) -> None:
    [found] = [one for one in only(pair(told, {"relaxed_ordering": False})).findings if one.kind == "ordering"]
    assert ("quirk" in found.text, found.commands == []) == (kept, kept)


def test_a_dump_that_is_cut_off_is_noticed() -> None:
    [top, _] = pair({"link_active": True})
    assert any("incomplete" in remark for remark in judged("a test", [top]).remarks())
    assert not any("incomplete" in remark for remark in judged("a test", pair({"link_active": True})).remarks())


@needs_lspci
@pytest.mark.parametrize("name", [*EXPERIMENTS, "hotplug.toml", "errors.toml"])
def test_the_real_lspci_reads_the_same_registers(
    name: str, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "dump.txt"
    run(capsys, "lspci", str(root / "experiments" / name), "-o", str(dump))
    shown = subprocess.run(["lspci", "-F", str(dump), "-vvv", "-nn"], capture_output=True, text=True, check=True).stdout
    assert compared(text.read(dump.read_text()).functions) == compared(text.read(shown).functions)


def compared(functions: list[Function]) -> list[dict[str, object]]:
    """The facts that both registers and lspci's words have. lspci shows Link Control 2 of function 0 alone."""
    only_one = {
        "name", "class_name", "class_code", "vendor", "device", "revision", "subsystem", "fields", "unread", "capabilities",
        "ten_bit_tags", "extended_known", "egress_forbidden",
    }  # fmt: skip
    kept = []
    for function in functions:
        facts = {name: value for name, value in vars(function).items() if name not in only_one}
        if function.address.function:
            del facts["target_speed"]
        kept.append({**facts, "chain": [one.offset for one in function.capabilities]})
    return kept


def test_a_copy_of_sys_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the kernel shows it to users without privileges: 64 bytes of registers, but the link."""
    devices = tmp_path / "devices"
    files = {
        "0000:00:01.0": {"class": "0x060400", "vendor": "0x8086", "device": "0x1901", "max_link_speed": "8.0 GT/s PCIe",
                         "max_link_width": "16", "current_link_speed": "8.0 GT/s PCIe", "current_link_width": "8",
                         "secondary_bus_number": "1", "subordinate_bus_number": "1", "numa_node": "-1"},
        "0000:01:00.0": {"class": "0x020000", "vendor": "0x15b3", "device": "0x1017", "max_link_speed": "8.0 GT/s PCIe",
                         "max_link_width": "16", "current_link_speed": "8.0 GT/s PCIe", "current_link_width": "8", "numa_node": "1",
                         "power_state": "D0", "aer_dev_correctable": "RxErr 2\nBadTLP 1\nTOTAL_ERR_COR 3",
                         "aer_dev_fatal": "Undefined 0\nTOTAL_ERR_FATAL 0"},
    }  # fmt: skip
    for name, contents in files.items():
        (devices / name).mkdir(parents=True)
        for file, content in contents.items():
            (devices / name / file).write_text(content + "\n")
    (devices / "0000:01:00.0" / "config").write_bytes(
        b"\xb3\x15\x17\x10\x06\x00\x10\x00" + bytes(26 + 18) + b"\x60" + bytes(11)
    )
    (devices / "0000:01:00.0" / "iommu_group").symlink_to("../../kernel/iommu_groups/17")
    document = json.loads(run(capsys, "scan", "--from", str(tmp_path), "--json", "-"))
    _, card = document["functions"]
    told = {
        name: card[name]
        for name in (
            "numa_node",
            "iommu_group",
            "speed",
            "width",
            "error_counts",
            "mps",
            "capabilities_known",
            "parent",
        )
    }
    assert told == {
        "numa_node": 1, "iommu_group": 17, "speed": 3, "width": 8, "error_counts": {"correctable": 3, "fatal": 0}, "mps": None,
        "capabilities_known": False, "parent": "00:01.0",
    }  # fmt: skip
    [device] = document["devices"]
    assert device["link"]["state"] == "degraded", "8 lanes of 16 at both ends"
    assert device["now"] == {"write": None, "read": None}, "without the payload size nothing is said"
    out = run(capsys, "scan", "--from", str(tmp_path))
    assert "The capabilities of 2 of 2 functions are unknown" in " ".join(out.split())
    assert "node 1, IOMMU group 17" in out


def test_this_machine_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    if not Path("/sys/bus/pci/devices").is_dir() or not any(Path("/sys/bus/pci/devices").iterdir()):
        pytest.skip("this machine has no /sys/bus/pci")
    document = json.loads(run(capsys, "scan", "--json", "-"))
    expected = sorted(entry.name for entry in Path("/sys/bus/pci/devices").iterdir())
    assert [
        one["address"].rjust(12, "0").replace("00000", "0000:", 1) if one["address"].count(":") == 1 else one["address"]
        for one in document["functions"]
    ] == expected
    run(capsys, "scan")


@pytest.mark.parametrize("columns", ["60", "80", "132"])
def test_the_report_fits_a_terminal(
    columns: str, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    out = run(capsys, "scan", "--from", str(root / "examples" / "dumps" / "workstation.txt"), "--all")
    assert max(len(line) for line in out.splitlines() if "setpci" not in line) <= int(columns)


@pytest.mark.parametrize(("arguments", "status", "said"), [
    (["--from", "{root}/README.md"], 2, "README.md: this is not output of lspci"),
    (["--from", "{root}/nowhere.txt"], 2, "nowhere.txt: No such file or directory"),
    (["--from", "{root}/docs"], 2, "it has no folder devices"),
    (["--json", "-", "-o", "-"], 2, "both name -"),
    (["-o", "{root}/nowhere/machine.toml"], 2, "does not exist"),
])  # fmt: skip
def test_mistakes_are_explained(
    arguments: list[str], status: int, said: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.status(["scan", *(argument.format(root=root) for argument in arguments)]) == status
    assert said in capsys.readouterr().err


def test_a_malformed_dump_leaves_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump, output = tmp_path / "dump.txt", tmp_path / "machine.toml"
    dump.write_text("no dump\n")
    assert cli.status(["scan", "--from", str(dump), "-o", str(output)]) == 2
    assert "no line begins with the address" in capsys.readouterr().err
    assert not output.exists()


def test_a_large_machine_is_read_whole(root: Path) -> None:
    """A scan of 64 copies of a machine ends in reasonable time; `bench/scan.py` measures how fast it is."""
    one = (root / "examples" / "dumps" / "workstation.txt").read_text(encoding="utf-8")
    dump = "\n".join(
        re.sub(r"^(\w\w:\w\w\.\w) ", rf"{domain:04x}:\1 ", one, flags=re.MULTILINE) for domain in range(1, 168)
    )
    begun = time.perf_counter()
    scan = scanned.from_text("a dump", dump)
    printed = list(report.lines(scan, 80, everything=False))
    spent = time.perf_counter() - begun
    assert (len(scan.verdicts), len(scan.uplinks), len(scan.functions)) == (6 * 167, 167, 15 * 167)
    assert len(printed) > 6000
    states = Counter(verdict.state.name for verdict in scan.verdicts if verdict.state)
    assert states == {"idle": 167, "limited": 167, "degraded": 167, "full": 3 * 167}
    assert spent < 30, "not quadratic: half a second on an idle core"
