"""The wheel of `make wheel` passes the checks of a release, and installs the content of the clone."""

from __future__ import annotations

import json
import platform
import subprocess
import zipfile
from pathlib import Path

import pytest
import release_checks as checks

import tlplab as tl

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def wheel() -> Path:
    """The wheel that `make wheel` built; `make test-full` builds it first."""
    root = Path(__file__).resolve().parents[2]
    wheels = sorted((root / "dist").glob("tlplab-*.whl"))
    assert len(wheels) == 1, "run `make wheel` first"
    return wheels[0]


def test_wheel_holds_exactly_its_files(wheel: Path, tmp_path: Path) -> None:
    checks.wheel(wheel, tl.__version__, platform.machine(), tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "tlplab/py.typed" in names
    assert "tlplab/_core.pyi" in names
    assert any(name.endswith("LICENSE-MIT") for name in names)
    assert any(name.endswith("LICENSE-APACHE") for name in names)
    assert "pytest_tlplab/__init__.py" in names


def test_runs_in_an_empty_environment(wheel: Path, root: Path, tmp_path: Path) -> None:
    tlplab = checks.in_empty_environment(wheel, tl.__version__, root, tmp_path / "empty")
    hashes = {
        json.loads(subprocess.check_output([tlplab, "run", name, "--json", "-"], cwd=tmp_path))["trace_hash"]
        for name in ("quickstart", root / "experiments/quickstart.toml")
    }
    assert len(hashes) == 1
