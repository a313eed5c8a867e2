"""`tlplab doctor`: present parts are listed with their place, missing ones with the command that brings them."""

from __future__ import annotations

import json
import stat
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from tlplab import cli, doctor


def found(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, str | None]]:
    assert cli.status(["doctor", "--json", "-"]) == 0
    return {one["name"]: one for one in json.loads(capsys.readouterr().out)["things"]}


def test_a_program_is_here_while_it_is_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "tshark"
    program.write_text("#!/bin/sh\necho 'TShark 9.9'\necho more\n", encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert found(capsys)["tshark"]["found"] == "TShark 9.9"
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    assert found(capsys)["tshark"]["found"] is None


def test_an_extra_is_here_with_all_its_packages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    versions = {"optuna": "5.0", "pyarrow": "26.0", "SALib": "1.6"}

    def version(name: str) -> str:
        if name not in versions:
            raise PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(doctor, "version", version)
    assert found(capsys)["extra studies"]["found"] == "optuna 5.0, pyarrow 26.0, SALib 1.6"
    assert found(capsys)["extra dask"]["found"] is None
    del versions["SALib"]
    assert found(capsys)["extra studies"]["found"] is None


def test_a_guest_is_here_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert found(capsys)["user-mode Linux"]["found"] is None
    place = tmp_path / "tlplab/linux/current"
    place.mkdir(parents=True)
    assert found(capsys)["user-mode Linux"]["found"] is None
    (place / "manifest.json").write_text("{}", encoding="utf-8")
    assert found(capsys)["user-mode Linux"]["found"] == str(place)


def test_a_hanging_or_silent_program_is_present(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "SECONDS", 0.2)
    for name, text in (("hangs", "exec sleep 5"), ("silent", "true")):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert doctor.program("hangs")() == f"{tmp_path / 'hangs'}, which does not answer"
    assert doctor.program("silent")() == str(tmp_path / "silent")


def test_missing_programs_come_with_their_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.status(["doctor"]) == 0
    said = capsys.readouterr().out
    missing = said[said.index("Missing") :]
    for words in ("tshark", "make guest-tools", "make linux", "apt install gcc"):
        assert words in " ".join(missing.split())
    assert all(len(line) <= 80 for line in said.splitlines())
