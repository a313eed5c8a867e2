"""`tlplab adapter EXPERIMENT.toml --serve`: what is refused, and a machine whose device does not come."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tlplab.cli import status

ROOT = Path(__file__).resolve().parents[2]
COPIER = str(ROOT / "examples/python/copier.toml")
HERE, THERE = "127.46.9.2", "127.46.9.1"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([COPIER], "which device"),
        ([COPIER, "--serve", f"coper={THERE}"], "its devices: copier"),
        ([COPIER, "--serve", THERE], "DEVICE=IP"),
        ([COPIER, "--serve", f"copier={THERE}", "--memory", "1GiB"], "--memory"),
        ([COPIER, "--serve", f"copier={THERE}", "--set", 'fidelity="length-only"'], "no bytes"),
        ([COPIER, "--serve", f"copier={THERE}", "--set", 'host.enumeration="simulated"'], "no addresses"),
        (["--serve", f"copier={THERE}"], "name its file"),
    ],
)
def test_what_cannot_be_served_is_refused(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["adapter", *arguments, "--local", HERE, "--seconds", "5"]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_time_does_not_begin_before_the_device_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [COPIER, "--serve", f"copier={THERE}", "--local", HERE, "--seconds", "0.5", "--json", "-"]
    assert status(["adapter", *arguments]) == 0
    printed = capsys.readouterr()
    assert "waiting for copier" in printed.err
    document = json.loads(printed.out)
    assert document["end_fs"] == 0
    assert document["stop_reason"] == "the time of --seconds"
