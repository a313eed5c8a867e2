"""The first output of a process that a test has started."""

from __future__ import annotations

import select
from typing import IO

# Seconds: a process that says nothing for so long will not say it.
PATIENCE = 60.0


def said_by(stream: IO[str]) -> str:
    """The first line; fails the test if none comes."""
    readable, _, _ = select.select([stream], [], [], PATIENCE)
    assert readable, f"nothing was said in {PATIENCE:.0f} s"
    return stream.readline()
