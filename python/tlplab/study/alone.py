"""The command that runs a point of a study alone."""

from __future__ import annotations

import os
from collections.abc import Sequence


def words(experiment: str, sets: Sequence[str], load: str | None, seed: int | None = None) -> list[str]:
    """The words of the command, before a shell's quotes."""
    return [
        *("tlplab", "run", short(experiment)),
        *(word for one in sets for word in ("--set", one)),
        *(["--load", load] if load is not None else []),
        *(["--seed", str(seed)] if seed is not None else []),
    ]


def short(path: str) -> str:
    """A path without the folders that it leaves again, where that is the same file."""
    straight = os.path.normpath(path)
    return straight if os.path.realpath(straight) == os.path.realpath(path) else path
