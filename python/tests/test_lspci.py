"""`tlplab lspci`: the tree for people, and the dump, which the real `lspci` reads as we mean it, field by field."""

from __future__ import annotations

import io
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from privilege import needs_lspci

from tlplab import cli
from tlplab import lspci as lspci_tree

# Topologies and settings that differ in what software sees.
SEEN = {
    "one switch": ("quickstart.toml",),
    "three levels, two functions": ("enumeration.toml",),
    "a NIC with I/O": ("enumeration.toml", "device.port2.model=nic"),
    "a NIC with MSI": ("enumeration.toml", "device.port2.model=nic", "host.interrupts=msi"),
    "a NIC with its pin": ("enumeration.toml", "device.port2.model=nic", "host.interrupts=intx"),
    "MSI only": ("enumeration.toml", "host.interrupts=msi"),
    "no message signalled interrupts": ("enumeration.toml", "host.interrupts=intx"),
    "before time 0": ("enumeration.toml", "host.enumeration=before"),
    "gen1 x1": ("latency.toml",),
    "two root ports": ("peer-to-peer.toml",),
    "a bus of PCI-X": ("../studies/differential/bus-read.toml",),
    "a bus of PCI": ("../studies/differential/bus-dma.toml",),
    "flit mode": ("quickstart.toml", "switch.sw0.link=gen6 x16 flit", "device.ssd.link=gen6 x2 flit"),
    "a small payload": ("quickstart.toml", "device.ssd.mps=128B", "device.nic.mrrs=4096B"),
    "IDs of another vendor": ("../studies/gem5/dd.toml",),
}
RATES = {"2.5": 1, "5": 2, "8": 3, "16": 4, "32": 5, "64": 6, "128": 7}
PORTS = {
    "Endpoint": "end point",
    "Root Port": "root port",
    "Upstream Port": "upstream port",
    "Downstream Port": "downstream port",
    "PCI-Express to PCI/PCI-X Bridge": "bridge to PCI",
}
CAPABILITIES = {
    "0x1": "Power Management",
    "0x5": "MSI:",
    "0x10": "Express",
    "0x11": "MSI-X:",
    "extended 0x3": "Device Serial Number",
    "extended 0x1": "Advanced Error Reporting",
}
Fields = dict[str, Any]


def tlplab(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The standard output of a command that succeeds."""
    status = cli.status(arguments)
    captured = capsys.readouterr()
    assert (status, captured.err) == (0, "")
    return captured.out


def options(root: Path, name: str) -> list[str]:
    experiment, *sets = SEEN[name]
    return [str(root / "experiments" / experiment), *(word for key in sets for word in ("--set", key))]


def lspci(dump: Path, *arguments: str) -> str:
    """The output of the real tool, which may not complain."""
    done = subprocess.run(["lspci", "-F", str(dump), *arguments], capture_output=True, text=True, check=True)
    assert [line for line in done.stderr.splitlines() if "libkmod" not in line] == []  # no modules in a container
    return done.stdout


def flag(text: str, name: str) -> bool:
    found = re.search(rf"\b{name}([+-])", text)
    assert found, f"{name} in {text}"
    return found[1] == "+"


def theirs(block: str) -> Fields:
    """The fields of one function, from `lspci -vvv -n`."""
    first = re.match(r"(\S+) (\w{4}): (\w{4}:\w{4})", block)
    assert first, block
    fields: Fields = {"bdf": first[1], "class": first[2], "ids": first[3]}
    express = re.search(r"Express \(v[12]\) (.*?)(?: \(Slot[+-]\))?, MSI", block)
    fields["port_type"] = PORTS[express[1]] if express else None
    if express:
        fields["mps_supported"], fields["mps"] = (int(n) for n in re.findall(r"MaxPayload (\d+) bytes", block))
        fields["mrrs"] = int(re.findall(r"MaxReadReq (\d+) bytes", block)[0])
    links = re.findall(r"(LnkCap|LnkSta):\s.*?Speed ([\d.]+)GT/s.*?, Width x(\d+)", block)
    fields["link"] = {register: (RATES[rate], int(width)) for register, rate, width in links}
    buses = re.search(r"primary=(\w+), secondary=(\w+), subordinate=(\w+)", block)
    fields["buses"] = [int(bus, 16) for bus in buses.groups()] if buses else None
    fields["windows"] = {
        kind: [int(first, 16), int(last, 16)]
        for kind, first, last, rest in re.findall(r"(\S.*) behind bridge: (\w+)-(\w+)(.*)", block)
        if "disabled" not in rest
    }
    # lspci 3.9 takes the upper half of a 64-bit address in a dump for a BAR of its own, without an address.
    regions = re.findall(r"Region (\d): (I/O ports|Memory) at (\w+)(?: \((\d+)-bit, (.*?)\))?", block)
    fields["bars"] = {
        int(index): (kind, int(address, 16), bits, behaviour) for index, kind, address, bits, behaviour in regions
    }
    chain = re.findall(r"Capabilities: \[(\w+)(?: v\d+)?\] (.*)", block)
    fields["capabilities"] = {int(offset, 16): text for offset, text in chain}
    msix, msi = (re.search(rf"{name}: Enable([+-]) Count=(?:\d+/)?(\d+)", block) for name in ("MSI-X", "MSI"))
    fields["msix_vectors"] = int(msix[2]) if msix else 0
    pin = re.search(r"Interrupt: pin (\w)", block)
    fields["pin"] = pin[1] if pin else None
    enabled = {"msi-x": msix and msix[1] == "+", "msi": msi and msi[1] == "+"}
    legacy = "intx" if pin and not flag(block, "DisINTx") else "none"
    fields["interrupts"] = next((name for name, on in enabled.items() if on), legacy)
    assert flag(block, "BusMaster")
    return fields


def ours(function: Fields, lines: dict[int, str]) -> Fields:
    """The same fields, from our document. `lines` are how lspci calls the capabilities."""
    fields = {name: function[name] for name in ("bdf", "ids", "port_type", "msix_vectors", "pin", "interrupts")}
    fields["class"] = function["class"][:4]
    if function["port_type"]:
        fields |= {name: function[name] for name in ("mps_supported", "mps", "mrrs")}
    link, bridge = function["link"], function["bridge"]
    fields["link"] = link and {
        "LnkCap": (link["generation_possible"], link["width_possible"]),
        "LnkSta": (link["generation"], link["width"]),
    }
    fields["link"] = fields["link"] or {}
    primary = int(function["bdf"][:2], 16)
    fields["buses"] = bridge and [primary, bridge["secondary"], bridge["subordinate"]]
    names = {"io": "I/O", "memory": "Memory", "prefetchable": "Prefetchable memory"}
    windows = {names[key]: bridge[key] for key in names if bridge and bridge[key]}
    fields["windows"] = {name: [int(end, 16) for end in ends] for name, ends in windows.items()}
    fields["bars"] = {bar["index"]: region(bar) for bar in function["bars"]}
    fields["capabilities"] = {}
    for found in function["capabilities"]:
        offset, name = int(found["offset"], 16), CAPABILITIES["extended " * found["extended"] + found["id"]]
        fields["capabilities"][offset] = lines.get(offset, "nothing") if name in lines.get(offset, "") else name
    return fields


def region(bar: Fields) -> tuple[str, int, str, str]:
    address = int(bar["address"], 16)
    if bar["space"] == "io":
        return "I/O ports", address, "", ""
    behaviour = "prefetchable" if bar["prefetchable"] else "non-prefetchable"
    return "Memory", address, "64" if bar["is_64_bit"] else "32", behaviour


@needs_lspci
@pytest.mark.parametrize("name", SEEN)
def test_the_real_lspci_sees_the_same(
    name: str, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "dump.txt"
    document = json.loads(tlplab(capsys, "lspci", *options(root, name), "-o", str(dump), "--json", "-"))
    functions = document["functions"]
    blocks = lspci(dump, "-vvv", "-n").strip().split("\n\n")
    seen = {fields["bdf"]: fields for fields in map(theirs, blocks)}
    assert sorted(seen) == sorted(function["bdf"] for function in functions)
    for function in functions:
        fields = seen[function["bdf"]]
        assert ours(function, fields["capabilities"]) == fields
    parents = {function["bdf"]: function["parent"] for function in functions}
    for line in lspci(dump, "-PP", "-n").splitlines():
        *above, last = line.split()[0].split("/")
        assert parents[last] == (above[-1] if above else None), line
    tree = lspci(dump, "-t")
    for bridge in (function for function in functions if function["bridge"]):
        first, last = bridge["bridge"]["secondary"], bridge["bridge"]["subordinate"]
        buses = f"{first:02x}" if first == last else f"{first:02x}-{last:02x}"
        assert f"-{bridge['bdf'][3:]}-[{buses}]-" in tree


POISON = """\
title = "A write whose data are bad"
stop = "50us"
device.dev = { under = "host.rp0", link = "gen4 x4" }
fault = [{ link = "dev", direction = "up", tlp = 3, damage = "poison" }]
load.dev = { op = "write", size = "256B", count = 10 }
"""


@needs_lspci
def test_the_real_lspci_shows_a_poisoned_tlp(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment, dump = tmp_path / "poison.toml", tmp_path / "dump.txt"
    experiment.write_text(POISON, encoding="utf-8")
    tlplab(capsys, "lspci", str(experiment), "--at", "50us", "-o", str(dump))
    [error] = json.loads(tlplab(capsys, "run", str(experiment), "--quiet", "--json", "-"))["errors"]
    port = lspci(dump, "-vvv", "-s", "00:01.0")
    assert re.findall(r"(\w+)\+", port.partition("UESta:")[2].partition("\n")[0]) == ["TLP"]
    assert "First Error Pointer: 0c" in port
    header = re.search(r"HeaderLog: (.*)", port)
    assert header
    assert header[1].replace(" ", "") == error["header"]
    assert "ERR_FATAL/NONFATAL: 0008" in port, "the root port reported itself"


def test_both_times_of_enumeration_find_the_same(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = json.loads(tlplab(capsys, "lspci", *options(root, "before time 0"), "--json", "-"))
    arguments = ["lspci", *options(root, "three levels, two functions"), "--json", "-"]
    simulated = json.loads(tlplab(capsys, *arguments))
    slow = json.loads(tlplab(capsys, *arguments, "--set", "device.card.ready=20ms"))
    assert (before["enumerated_fs"], before["enumeration"]) == (0, "before")
    assert 0 < simulated["enumerated_fs"] < 1e12
    assert slow["enumerated_fs"] > 20e12
    assert before["functions"] == simulated["functions"] == slow["functions"]
    assert before["problems"] == simulated["problems"] == []


@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_the_tree_fits_a_terminal(
    columns: str, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    out = tlplab(capsys, "lspci", *options(root, "three levels, two functions"))
    assert max(map(len, out.splitlines())) <= int(columns)
    # Each function is on a line with its component, in the order of a walk through the tree.
    shown = re.findall(r"(\w\w:\w\w\.\d) (\S+)", out)
    assert {("07:00.1", "port2"), ("02:01.0", "sw0")} < set(shown)
    assert [bdf for bdf, _ in shown] == [
        "00:00.0", "00:01.0", "01:00.0", "02:00.0", "03:00.0", "02:01.0", "04:00.0", "05:00.0", "06:00.0", "05:01.0",
        "07:00.0", "07:00.1", "00:02.0", "08:00.0",
    ]  # fmt: skip


def test_the_lines_of_a_deep_tree_stay_whole_in_a_file() -> None:
    function = dict.fromkeys(lspci_tree.Function.__annotations__) | {"class_name": "c" * 99, "bars": []}
    functions = [
        {**function, "bdf": f"{n:02x}:00.0", "parent": f"{n - 1:02x}:00.0" if n else None, "ids": f"id{n}"}
        for n in range(30)
    ]
    out = io.StringIO()
    document = {"title": "deep", "enumeration": "before", "enumerated_fs": 0, "now_fs": 0, "problems": []}
    lspci_tree.show(document | {"functions": functions}, out)  # type: ignore[arg-type]
    assert [line.split("── ")[1] for line in out.getvalue().splitlines()[1:]] == [
        f"{n:02x}:00.0   id{n} {'c' * 99}" for n in range(30)
    ]


def test_a_device_that_is_never_ready_is_a_problem(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["lspci", *options(root, "three levels, two functions"), "--set", "device.ssd.ready=2s"]
    out = tlplab(capsys, *arguments)
    assert "ssd, 03:00.0: was not ready in time; left out" in out.splitlines()
    document = json.loads(tlplab(capsys, *arguments, "--json", "-"))
    assert [problem["function"] for problem in document["problems"]] == ["03:00.0"]
    assert "ssd" not in {function["component"] for function in document["functions"]}
    assert "card" in {function["component"] for function in document["functions"]}


def test_a_run_names_functions_missed_by_enumeration(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", *options(root, "three levels, two functions"), "--quiet", "--json", "-"]
    result = json.loads(tlplab(capsys, *arguments, "--set", "device.gpu.ready=2s"))
    assert "gpu, 08:00.0: was not ready in time; left out" in result["verdict"]["limit"]["evidence"]
    assert cli.status([*arguments, "--set", "device.card.ready=2s"]) == 1
    assert "host: card has no BAR 0; card, 07:00.0: was not ready in time; left out" in capsys.readouterr().err


def test_registers_can_be_read_later(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A card that has been sent to work is as it was, and the time is told."""
    arguments = ["lspci", *options(root, "three levels, two functions")]
    at_once, later = (json.loads(tlplab(capsys, *arguments, "--json", "-", *at)) for at in ([], ["--at", "400us"]))
    assert at_once["now_fs"] == at_once["enumerated_fs"] == later["enumerated_fs"]
    assert later["now_fs"] == 400e9
    assert at_once["functions"] == later["functions"]
    assert "state after 400 µs" in tlplab(capsys, *arguments, "--at", "400us")
    assert cli.status([*arguments, "--at", "soon"]) == 2
    assert '--at: "soon" is not a time' in capsys.readouterr().err


def test_one_thing_goes_to_the_standard_output(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment = options(root, "one switch")
    dump = tlplab(capsys, "lspci", *experiment, "-x")
    assert re.match(r"00:00.0 Host bridge.*\n00: ab 71 00 01 ", dump)
    file = tmp_path / "dump.txt"
    assert "host.rp0" in tlplab(capsys, "lspci", *experiment, "-o", str(file)), "the tree is printed beside a file"
    assert file.read_text() == dump
    for wrong in (["-x", "-o", str(file)], ["-x", "--json", "-"]):
        assert cli.status(["lspci", *experiment, *wrong]) == 2
        assert "both" in capsys.readouterr().err
