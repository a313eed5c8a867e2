"""Devices made of RTL, from the command line: a stand-in in C every day, the example of docs/attach-rtl.md where Verilator is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from privilege import lacking

from tlplab import cli, session

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/attach-rtl.md"
RTL_BIN = Path(os.environ.get("RTL_BIN", ROOT / "rtl/.venv/bin"))

EXPERIMENT = """\
title = "A copier behind the C interface"
[device.card]
under = "host.rp0"
link = "gen1 x8"
model = "rtl:copier.so"
pcie_clock = "125MHz"
driver = "driver.py:copy"
"""
DRIVER = """\
async def copy(host, dev):
    data = bytes(range(251)) * 40
    a, b = host.alloc(data), host.alloc(len(data))
    regs = dev.bar(0)
    await regs.poke(0, a.to_bytes(8, "little") + b.to_bytes(8, "little"))
    await regs.poke(0x10, len(data).to_bytes(4, "little"))
    await dev.irq(0)
    assert host.read(b, len(data)) == data
    assert await regs.peek(0x14, 4) == bytes([1, 0, 0, 0])
"""


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An experiment and its library, in a folder below the current one."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    assert compiler, "a C compiler, cc or $CC"
    (tmp_path / "dir").mkdir()
    source, library = ROOT / "crates/cosim/tests/cosim/rtl/copier.c", tmp_path / "dir/copier.so"
    options = ["-O1", "-std=gnu11", "-shared", "-fPIC", "-I", str(ROOT / "rtl/include")]
    subprocess.run([compiler, *options, "-o", str(library), str(source)], check=True, timeout=60)
    (tmp_path / "dir/card.toml").write_text(EXPERIMENT, encoding="utf-8")
    (tmp_path / "dir/driver.py").write_text(DRIVER, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return "dir/card.toml"


def test_a_library_runs(experiment: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.status(["run", experiment, "--set", 'device.card.waveform="card.fst"']) == 0
    table = capsys.readouterr().out
    assert re.search(r"card\.read +read ← host +20 ", table), table  # 10 040 B in requests of 512 B
    assert re.search(r"card\.write +write → host +\d+ ", table), table
    assert list(Path().rglob("card.fst"))
    assert cli.status(["lspci", experiment]) == 0
    assert "71ab:0001 end point" in capsys.readouterr().out
    assert cli.status(["check", experiment]) == 0


def test_an_unusable_rtl_library_is_reported(experiment: str, capsys: pytest.CaptureFixture[str]) -> None:
    for extra, says in [
        ('device.card.model="rtl:none.so"', "there is no such file"),
        ("device.card.speed=3", "unknown parameter speed; there are pcie_clock"),
    ]:
        assert cli.status(["run", experiment, "--set", extra]) == 2
        said = capsys.readouterr()
        assert says in said.err
        assert "Traceback" not in said.err
        assert said.out == ""
    assert cli.status(["run", experiment, "--set", 'device.card.mistake="long"']) == 1
    assert "sent a read of 1024 B; Max_Read_Request_Size is 512" in capsys.readouterr().err


def test_a_run_kept_alive_by_a_clock_prints_a_note(
    experiment: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "PATIENCE_SECONDS", 0.0)
    Path("dir/driver.py").write_text("async def copy(host, dev):\n    await dev.irq(0)\n", encoding="utf-8")
    said = {}
    for idle in ("true", "false"):
        assert cli.status(["run", experiment, "--set", f"device.card.idle={idle}"]) == 1, "the driver waits"
        said[idle] = capsys.readouterr()
    assert "note:" not in said["true"].err
    assert "only the clock of card still runs: the module never reports that it is idle" in said["false"].err
    assert cli.status(["run", experiment, "--set", "device.card.idle=false", "--set", 'stop="1ms"']) == 0
    assert "note:" not in capsys.readouterr().err


@pytest.mark.full
def test_the_examples_of_the_page() -> None:
    if not (RTL_BIN / "verilator").exists():
        lacking("needs Verilator: run `make rtl-tools`")
    commands = [match.group(1) for match in re.finditer(r"^```sh\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)]
    # What has to be downloaded is not run.
    commands = [command for command in commands if "git clone" not in command]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    says = [
        "out/rtl/stream.so",
        "71ab:57e4 end point, Memory controller",
        "out/rtl/memory.so",
        "71ab:5ca7 end point, Memory controller",
    ]
    for command, expected in zip(commands, says, strict=True):
        done = subprocess.run(
            [
                "bash",
                "-ec",
                command.replace("make rtl", f"make --no-print-directory rtl RTL_BIN={RTL_BIN} -o rtl/.venv/.run"),
            ],
            cwd=ROOT,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert expected in done.stdout
