"""Devices from libraries in C, in experiments: `model = "lib:FILE.so"`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from libraries import ROOT, copier_in_c

from tlplab import cli

EXPERIMENT = str(ROOT / "examples/c/copier.toml")


@pytest.fixture
def model(tmp_path: Path) -> str:
    """The copier in C, as an override of its experiment."""
    return f"device.copier.model=lib:{copier_in_c(tmp_path)}"


def test_device_in_c_runs_with_its_driver(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.status(["run", EXPERIMENT, "--set", model, "--json", "-"]) == 0
    result = json.loads(capsys.readouterr().out)
    flow = next(flow for flow in result["flows"] if flow["name"] == "copier")
    assert flow["bytes"] == 2 * 4096
    assert result["stop_reason"] == "loads-done"


def test_device_in_c_carries_lengths_where_the_run_does(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    driver = tmp_path / "driver.py"
    driver.write_text(
        "async def driver(host, dev):\n"
        "    a, b = host.alloc(bytes(4096)), host.alloc(4096)\n"
        "    await dev.bar(0).poke(0, a.to_bytes(8, 'little'))\n"
        "    await dev.bar(0).poke(8, b.to_bytes(8, 'little'))\n"
        "    await dev.bar(0).poke(0x10, (4096).to_bytes(4, 'little'))\n"
        "    await dev.irq(0)\n"
    )
    extra = ["--set", model, "--set", f"device.copier.driver={driver}:driver"]
    ends = []
    for fidelity in ("payload", "length-only"):
        assert cli.status(["run", EXPERIMENT, *extra, "--set", f"fidelity={fidelity}", "--json", "-"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert next(flow for flow in result["flows"] if flow["name"] == "copier")["bytes"] == 2 * 4096
        ends.append(result["end_fs"])
    # Both have the same timing.
    assert ends[0] == ends[1]


def test_device_in_c_is_enumerated(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.status(["lspci", EXPERIMENT, "--set", model]) == 0
    assert "71ab:0001 end point" in capsys.readouterr().out
    assert cli.status(["check", EXPERIMENT, "--set", model]) == 0


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ("device.copier.model=lib:none.so", "there is no such file"),
        ("device.copier.model=lib:copier.c", "a device from a library is written lib:FILE.so"),
        ("device.copier.depth=3", "the copier has no parameters"),
        ("device.copier.depth=[1]", "a library takes no parameter of this kind"),
    ],
)
def test_an_unusable_device_library_is_reported(
    model: str, extra: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.status(["run", EXPERIMENT, "--set", model, "--set", extra]) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert "Traceback" not in said.err
    assert said.out == ""


def test_a_failed_read_ends_the_run_with_a_message(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    driver = tmp_path / "driver.py"
    driver.write_text(
        "async def driver(host, dev):\n"
        "    await dev.bar(0).poke(0, (1 << 62).to_bytes(8, 'little'))\n"
        "    await dev.bar(0).poke(0x10, bytes([64, 0, 0, 0]))\n"
        "    await dev.irq(0)\n"
    )
    assert cli.status(["run", EXPERIMENT, "--set", model, "--set", f"device.copier.driver={driver}:driver"]) == 1
    assert "unsupported request (UR)" in capsys.readouterr().err
