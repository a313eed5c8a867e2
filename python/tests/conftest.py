"""What the tests share."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Whoever started the tests in the background may have let them ignore Ctrl-C, as shells do; their children would, too.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests in several processes are told of a terminal of 80 columns, and tables would fit it.
os.environ.pop("COLUMNS", None)


@pytest.fixture
def root() -> Path:
    """The project's root folder."""
    return ROOT
