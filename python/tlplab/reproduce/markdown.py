"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def table(heading: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table."""
    return "\n".join(f"| {' | '.join(line)} |" for line in [heading, ["---"] * len(heading), *lines])
