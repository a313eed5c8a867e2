"""Fixtures that the tests share."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from a_study import EXPERIMENT, STUDY

ROOT = Path(__file__).resolve().parents[2]

# Whoever started the tests in the background may have let them ignore Ctrl-C, as shells do; their children would, too.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests in several processes are told of a terminal of 80 columns, and tables would fit it.
os.environ.pop("COLUMNS", None)


@pytest.fixture
def root() -> Path:
    """The project's root folder."""
    return ROOT


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study in a folder of its own, with a store of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.toml").write_text(EXPERIMENT)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path / "study.toml"
