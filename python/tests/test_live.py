"""`tlplab adapter EXPERIMENT.toml --serve`: refusals, and a machine whose device does not come."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from said import said_by

import tlplab as tl
from tlplab.cli import status
from tlplab.nettlp.loopback import own_address

ROOT = Path(__file__).resolve().parents[2]
COPIER = str(ROOT / "examples/python/copier.toml")
HERE, THERE = own_address(), own_address()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([COPIER], "is served: name one with --serve"),
        ([COPIER, "--serve", f"coper={THERE}"], "its devices: copier"),
        ([COPIER, "--serve", THERE], "DEVICE=IP"),
        ([COPIER, "--serve", f"copier={THERE}", "--memory", "1GiB"], "--memory"),
        ([COPIER, "--serve", f"copier={THERE}", "--set", 'fidelity="length-only"'], "no bytes"),
        ([COPIER, "--serve", f"copier={THERE}", "--set", 'host.enumeration="simulated"'], "no addresses"),
        (["--serve", f"copier={THERE}"], "also name the experiment's file"),
        (["no.toml", "--serve", f"copier={THERE}", "--json", "no.toml"], "--json and the experiment both name no.toml"),
        (["no.toml", "--serve", f"copier={THERE}", "--mrrs", "128"], "--mrrs is for an adapter without an experiment"),
    ],
)
def test_unservable_experiments_are_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["adapter", *arguments, "--local", HERE, "--seconds", "5"]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_time_does_not_begin_before_the_device_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [COPIER, "--serve", f"copier={THERE}", "--local", HERE, "--seconds", "0.5", "--json", "-"]
    assert status(["adapter", *arguments]) == 1, "nothing was simulated"
    printed = capsys.readouterr()
    assert "waiting for copier" in printed.err
    assert "copier did not connect" in printed.err
    document = json.loads(printed.out)
    assert document["end_fs"] == 0
    assert document["stop_reason"] == "time-limit"


def test_the_copier_of_the_examples_copies_from_another_process(tmp_path: Path) -> None:
    """Its driver compares the data in memory, and fails if they are not the copied ones."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    document = tmp_path / "live.json"
    tlplab = [sys.executable, "-m", "tlplab"]
    ends = [
        [*tlplab, "adapter", COPIER, "--serve", f"copier={THERE}", "--local", HERE, "--json", str(document), "--seconds", "60"],
        [*tlplab, "device", f"{COPIER.removesuffix('.toml')}.py:Copier", "-l", THERE, "-r", HERE, "--seconds", "60", "-S"],
    ]  # fmt: skip
    adapter = subprocess.Popen(ends[0], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    device: subprocess.Popen[bytes] | None = None
    try:
        assert adapter.stderr is not None
        assert "waiting for copier" in said_by(adapter.stderr)
        device = subprocess.Popen(ends[1], env=environment)
        assert adapter.wait(timeout=60) == 0, adapter.stderr.read()
    finally:
        started: list[subprocess.Popen[Any]] = [adapter, *([device] if device else [])]
        for process in started:
            process.terminate()
            process.communicate()
    live = json.loads(document.read_text(encoding="utf-8"))
    assert live["stop_reason"] == "loads-done"
    simulated = tl.run(COPIER)

    def moved(result: Any) -> dict[str, int]:
        return {flow["name"]: flow["bytes"] for flow in result["flows"]}

    assert moved(live) == moved(simulated)


WATCHED = """
import sys, threading
from tlplab import _core
experiment, here, there = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
service = _core.LiveService(experiment, [("copier", there)], here)
print("open", flush=True)
ended = []
serving = threading.Thread(target=lambda: ended.append(service.serve(60.0)))
serving.start()
while serving.is_alive():
    service.report(), service.lag(), service.absent()
print(ended)
"""


def test_a_thread_may_look_while_another_serves() -> None:
    """The driver needs Python's lock, which a thread that waits for the machine must not hold."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    here, there = own_address(), own_address()
    addresses = [str(int(IPv4Address(address))) for address in (here, there)]
    watcher = subprocess.Popen(
        [sys.executable, "-c", WATCHED, COPIER, *addresses], env=environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    device = None
    try:
        assert watcher.stdout is not None
        assert said_by(watcher.stdout) == "open\n"
        command = [sys.executable, "-m", "tlplab", "device", f"{COPIER.removesuffix('.toml')}.py:Copier"]
        device = subprocess.Popen([*command, "-l", there, "-r", here, "--seconds", "60", "-S"], env=environment)
        printed, _ = watcher.communicate(timeout=50)
        assert "ended" in printed
    finally:
        watcher.kill()
        watcher.wait()
        if device is not None:
            device.terminate()
            device.wait()
