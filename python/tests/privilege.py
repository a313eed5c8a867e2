"""Tests that need more than everybody may: where they cannot run they are skipped, with a reason; in continuous integration they fail."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def lacking(what: str) -> NoReturn:
    """Skips the test, or fails it where TLPLAB_STRICT says that nothing may be lacking."""
    if os.environ.get("TLPLAB_STRICT"):
        pytest.fail(f"{what}, and TLPLAB_STRICT is set")
    pytest.skip(what)
