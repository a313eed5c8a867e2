"""A wheel installs in an empty environment, and what it installs works there."""

from __future__ import annotations

import json
import os
import subprocess
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def wheel() -> Path:
    """The wheel that `make wheel` built; `make test-full` builds it first."""
    root = Path(__file__).resolve().parents[2]
    wheels = sorted((root / "dist").glob("tlplab-*.whl"))
    assert len(wheels) == 1, "run `make wheel` first"
    return wheels[0]


def test_holds_what_it_should_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "tlplab/py.typed" in names
    assert "tlplab/_core.pyi" in names
    assert any(name.endswith("LICENSE-MIT") for name in names)
    assert any(name.endswith("LICENSE-APACHE") for name in names)
    assert "pytest_tlplab/__init__.py" in names
    strange = [n for n in names if not n.startswith(("pytest_tlplab/", "tlplab/", "tlplab-")) or "__pycache__" in n]
    assert strange == []


def test_one_wheel_serves_every_python_from_3_10(wheel: Path) -> None:
    assert "-cp310-abi3-" in wheel.name


def test_runs_in_an_empty_environment(wheel: Path, root: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    bin_ = tmp_path / "venv/bin"
    # The locked versions, so that a release of a dependency cannot break yesterday's commit.
    locked = ["--constraint", str(root / "python/requirements.txt")]
    subprocess.run([bin_ / "pip", "install", "--quiet", *locked, str(wheel)], check=True)
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(tmp_path)}
    done = subprocess.run(
        [bin_ / "tlplab", "run", root / "experiments/quickstart.toml", "--json", "-", "--report", "r.html"],
        cwd=tmp_path,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(done.stdout)["schema"] == "tlplab/result/1"
    assert (tmp_path / "r.html").stat().st_size > 10_000

    def tlplab(*arguments: str) -> str:
        command = [str(bin_ / "tlplab"), *arguments]
        return subprocess.check_output(command, cwd=tmp_path, env=environment, text=True)

    listed = tlplab("list", "experiments")
    assert "quickstart " in listed
    assert "p2p/acs " in listed
    named = json.loads(tlplab("run", "quickstart", "--json", "-"))
    assert named["trace_hash"] == json.loads(done.stdout)["trace_hash"]
