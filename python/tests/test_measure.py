"""`tlplab measure`, on a tree of files that stands in for a machine, on simulated topologies, and on this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tlplab import cli
from tlplab.bench.differential import table
from tlplab.bench.differential.document import address_of

BRIDGE, NVME = 0x060400, 0x010802
PCI = Path("/sys/bus/pci/devices")
QUICK = ("--seconds", "0.2")


def machine(folder: Path, *places: str) -> Path:
    """A `/sys` whose functions are files: each is below the functions in its path."""
    listed = folder / "bus/pci/devices"
    listed.mkdir(parents=True)
    for place in places:
        at = folder / "devices/pci0000:00" / place
        at.mkdir(parents=True)
        at.joinpath("config").write_bytes(bytes.fromhex("8680341206001000") + bytes(248))
        bridge = any(other.startswith(place + "/") for other in places)
        for name, text in {
            "vendor": "0x8086",
            "device": "0x1234",
            "class": f"{BRIDGE if bridge else NVME:#08x}",
        }.items():
            at.joinpath(name).write_text(text + "\n")
        listed.joinpath(at.name).symlink_to(at)
    return folder


@pytest.fixture
def sysfs(tmp_path: Path) -> str:
    """A root port with an end point."""
    return str(machine(tmp_path / "sys", "0000:00:1c.0", "0000:00:1c.0/0000:02:00.0"))


def run(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> tuple[str, str]:
    """The standard output and the standard error of a command."""
    found = cli.status(["measure", *arguments])
    captured = capsys.readouterr()
    assert found == status, captured
    return captured.out, captured.err


def test_files_are_read_as_functions_would_be(sysfs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = {"--json": tmp_path / "out.json", "--plot": tmp_path / "out.png"}
    said, _ = run(capsys, "--sysfs", sysfs, *QUICK, *(str(part) for pair in outputs.items() for part in pair))
    document = json.loads(outputs["--json"].read_text())
    assert document["schema"] == "tlplab/differential/1"
    assert [(one["name"], one["parent"], one["kind"]) for one in document["targets"]] == [
        ("0000:00:1c.0", None, "bridge"),
        ("0000:02:00.0", "0000:00:1c.0", "end point"),
    ]
    for one in document["targets"]:
        assert one["samples"] >= 200
        assert sum(count for _, count in one["histogram_ns"]) == one["samples"]
        assert one["histogram_ns"][0][0] == one["min_ns"] <= one["quantiles_ns"]["p50"]
    (link,) = document["links"]
    assert (link["near"], link["far"]) == ("0000:00:1c.0", "0000:02:00.0")
    # Reads of files take as long for both: what is told apart, if anything, is no more than the samples disagree.
    assert link["latency_ns"] is None or abs(link["latency_ns"]) < document["targets"][0]["quantiles_ns"]["p90"]
    assert max(len(line) for line in said.splitlines()) <= 100
    assert "config 0x0" in said
    assert outputs["--plot"].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--register", "02:00.0:0+0x8"], 2, "--reads-are-safe"),
        (["--register", "02:00.0:0+0x8", "--reads-are-safe"], 2, "does not list the function's BARs"),
        (["--register", "02:00.0", "--reads-are-safe"], 2, "BDF:BAR+OFFSET"),
        (["--device", "05:00.0"], 2, "unknown function 05:00.0"),
        (["--core", "99999"], 2, "core 99999"),
        (["--on", "x.toml", "--device", "02:00.0"], 2, "--on is for a simulated topology"),
        (["--seed", "1"], 2, "--on or --compare"),
        (["--idle"], 2, "name one with --on"),
        (["--plot", "out.txt"], 2, ".png"),
        (["--on", "nowhere.toml"], 2, "nowhere.toml"),
    ],
)
def test_mistakes_are_explained(
    arguments: list[str], status: int, message: str, sysfs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, said = run(capsys, "--sysfs", sysfs, *QUICK, *arguments, status=status)
    assert message in " ".join(said.split())


def test_a_machine_without_pci_gets_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, said = run(capsys, "--sysfs", str(tmp_path), *QUICK, status=1)
    assert said.count("Error") == 1
    assert "there are no PCI functions to measure here" in said


def test_ctrl_c_keeps_the_samples_so_far(sysfs: str, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    command = [sys.executable, "-m", "tlplab", "measure", "--sysfs", sysfs, "--json", str(out)]
    process = subprocess.Popen([*command, "--samples", "1000000000", "--seconds", "300"], stdout=subprocess.DEVNULL)
    time.sleep(4.0)
    process.send_signal(signal.SIGINT)
    status = process.wait(timeout=60)
    if not out.exists():  # a machine so slow that Python had not started yet
        pytest.skip(f"the signal came before the reads did (exit status {status})")
    document = json.loads(out.read_text())
    assert (status, document["interrupted"]) == (130, True)
    assert sum(one["samples"] for one in document["targets"]) > 0


def test_a_scanned_machine_is_laid_beside_its_simulation(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = str(tmp_path / "machine.toml")
    dump = root / "examples/dumps/workstation.txt"
    assert cli.status(["scan", "--from", str(dump), "-o", experiment, "--quiet"]) == 0
    simulated = json.loads(run(capsys, "--on", experiment, "--idle", "--json", "-")[0])
    names = [address_of(one["far"]) for one in simulated["links"]]
    address = next(name for name in names if name.startswith("0000:") and ".bar" not in name)
    place = machine(tmp_path / "sys", "0000:00:01.0", f"0000:00:01.0/{address}")
    picture, out = tmp_path / "both.png", tmp_path / "both.json"
    arguments = ["--sysfs", str(place), "--compare", experiment, *QUICK, "--plot", str(picture), "--json", str(out)]
    said, _ = run(capsys, *arguments)
    document = json.loads(out.read_text())
    assert document["simulated"] == simulated, "without the scanned file's load"
    loaded = json.loads(run(capsys, "--on", experiment, "--samples", "200", "--json", "-")[0])
    assert "loads ran during the measurement" in loaded["notes"][0]
    assert mean_of(loaded) > 1.05 * mean_of(simulated), "with it reads wait"
    (link,) = [one for one in document["simulated"]["links"] if address_of(one["far"]) == address]
    assert link["verdict"] == "measured"
    assert table.time_of(link["latency_ns"]) in said
    assert picture.stat().st_size > 10_000


def mean_of(document: dict[str, Any]) -> float:
    return sum(float(one["mean_ns"]) for one in document["targets"])


def test_names_of_scanned_components_are_addresses() -> None:
    cases = {
        "d02_00_0": "0000:02:00.0",
        "sw10000_e1_00_0": "10000:e1:00.0",
        "d02_00_0.bar0": "0000:02:00.0.bar0",
        "dma": "dma",
    }
    assert {name: address_of(name) for name in cases} == cases


def test_this_machine_is_measured_to_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not PCI.is_dir() or not any(PCI.iterdir()):
        pytest.skip("this machine has no /sys/bus/pci")
    out = tmp_path / "out.json"
    said, _ = run(capsys, "--seconds", "1", "--json", str(out))
    document: dict[str, Any] = json.loads(out.read_text())
    assert sorted(one["name"] for one in document["targets"]) == sorted(entry.name for entry in PCI.iterdir())
    flags = Path("/proc/cpuinfo").read_text() if os.path.exists("/proc/cpuinfo") else ""
    if " hypervisor" in flags:
        assert document["machine"]["refusal"].startswith("this is a virtual machine")
        assert all(link["verdict"] == "refused" and link["latency_ns"] is None for link in document["links"])
        assert "Link latencies are not available here" in said
