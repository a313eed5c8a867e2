"""`tlplab/differential/1`, as `crates/bench/src/differential/document.rs` writes it."""

from __future__ import annotations

import re
from typing import Any, TypedDict

# The names that `tlplab scan -o` gives components: d05_00_0, sw10000_e1_00_0.
SCANNED = re.compile(r"(?:d|sw)(?:([0-9a-f]{4,8})_)?([0-9a-f]{2})_([0-9a-f]{2})_([0-9a-f])(?![0-9a-z])")


class Clock(TypedDict):
    """The clock that timed the reads."""

    source: str
    ns_per_tick: float
    step_ns: float
    overhead_ns: float


class Target(TypedDict):
    """A target and the times of its reads; None if it was never read."""

    name: str
    parent: str | None
    kind: str
    register: str
    samples: int
    min_ns: float | None
    mean_ns: float | None
    std_ns: float | None
    quantiles_ns: dict[str, float | None]
    histogram_ns: list[tuple[float, int]]


class Link(TypedDict):
    """The difference of two minima."""

    name: str
    near: str
    far: str
    latency_ns: float | None
    resolution_ns: float
    spread_ns: float
    verdict: str
    note: str


class Machine(TypedDict):
    """The machine that was measured, and why no difference of reads is a latency there."""

    kernel: str
    core: int
    virtual_machine: list[str]
    refusal: str | None


class Document(TypedDict):
    """Everything that was measured."""

    schema: str
    tool: str
    clock: Clock
    targets: list[Target]
    links: list[Link]


def machine_of(document: Document) -> Machine | None:
    """The machine, where one was measured."""
    machine: Machine | None = member(document, "machine")
    return machine


def member(document: Document, key: str) -> Any:
    """The value of a key that only some documents have; None without it."""
    return dict(document).get(key)


def address_of(name: str) -> str:
    """The address of the function that a component was scanned from; any other name as it is."""
    scanned = SCANNED.match(name)
    if scanned is None:
        return name
    domain, bus, device, function = scanned.groups()
    return f"{domain or '0000'}:{bus}:{device}.{function}{name[scanned.end() :]}"


def depth_of(target: Target, document: Document) -> int:
    """The number of targets between a target and the processor."""
    parents = {one["name"]: one["parent"] for one in document["targets"]}
    depth, above = 0, target["parent"]
    while above is not None:
        depth, above = depth + 1, parents.get(above)
    return depth
