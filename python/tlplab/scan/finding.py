"""Something about a device that could be otherwise."""

from __future__ import annotations

from dataclasses import dataclass, field

from tlplab.scan.throughput import Rates


@dataclass
class Finding:
    """Something that could be otherwise."""

    kind: str
    """`width`, `speed`, `mps`, `mrrs`, `tags`, `ordering`, `aspm`, `acs`, `shared`, `errors`."""
    text: str
    gain: Rates | None = None
    """The rates that the device would then reach; None if the model does not give any."""
    commands: list[str] = field(default_factory=list)
