"""Tests that need more than a user's privileges: where they cannot run they are skipped, with a reason; in continuous integration they fail."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import wraps
from typing import NoReturn, ParamSpec

import pytest

P = ParamSpec("P")


def lacking(what: str) -> NoReturn:
    """Skips the test, or fails it where TLPLAB_STRICT says that nothing may be lacking."""
    if os.environ.get("TLPLAB_STRICT"):
        pytest.fail(f"{what}, and TLPLAB_STRICT is set")
    pytest.skip(what)


def needs_lspci(test: Callable[P, None]) -> Callable[P, None]:
    """Marks a test that asks the real tool."""

    @wraps(test)
    def asked(*args: P.args, **kwargs: P.kwargs) -> None:
        if shutil.which("lspci") is None:
            lacking("lspci is not installed (pciutils)")
        test(*args, **kwargs)

    return pytest.mark.full(asked)
