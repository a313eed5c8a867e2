"""The maximum of a device's reads and writes: the closed forms of `tlplab.model` for every link on its way to the root complex."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from tlplab import _core
from tlplab.scan.facts import Address, Function
from tlplab.scan.tree import Link, Tree, least

# Bytes of a transfer, aligned: far larger than what links cut it into.
TRANSFER = 4096
LARGEST_READ = 4096


class Way(NamedTuple):
    """The properties of a link that the model needs."""

    generation: int
    width: int
    mps: int
    """Of the sender of the data."""
    mrrs: int
    rcb: int


@dataclass(frozen=True)
class Rates:
    """Payload in bits per second; None where something that it takes is not known."""

    write: float | None
    read: float | None


class Knobs(NamedTuple):
    """The properties that may be changed; a property stays as it is if False."""

    link: bool = False
    mps: bool = False
    mrrs: bool = False


NOTHING = Knobs()
EVERYTHING = Knobs(link=True, mps=True, mrrs=True)


class Throughput:
    """The rates of all devices. The model is asked once, for all the different links."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.most = most_payloads(tree)
        self.known: dict[tuple[str, Way], float] = {}
        self.cut: dict[tuple[Address, Knobs], dict[str, list[Way] | None]] = {}

    def prepare(self, functions: Iterable[Function], knobs: Iterable[Knobs]) -> None:
        """Computes the rates that `rates` will need."""
        changes = list(knobs)
        wanted: dict[str, set[Way]] = {"write": set(), "read": set()}
        for function in functions:
            for change in changes:
                for op, ways in self.ways(function, change).items():
                    wanted[op].update(ways or ())
        for op, asked in wanted.items():
            self.ask(op, sorted(asked - {way for known, way in self.known if known == op}))

    def ask(self, op: str, ways: list[Way]) -> None:
        """Compute the rates of these ways, and keep them."""
        if not ways:
            return
        from tlplab import model

        columns = {name: [getattr(way, name) for way in ways] for name in Way._fields}
        found = model.bandwidth(TRANSFER, op=op, **columns)["bandwidth_bps"]
        self.known.update({(op, way): float(rate) for way, rate in zip(ways, found, strict=True)})

    def rates(self, function: Function, knobs: Knobs = NOTHING) -> Rates:
        """The rates of a device if its links are the only limit and carry no other traffic."""
        found: dict[str, float | None] = {}
        for op, ways in self.ways(function, knobs).items():
            if ways:
                self.ask(op, [way for way in ways if (op, way) not in self.known])
            found[op] = min(self.known[op, way] for way in ways) if ways else None
        return Rates(found["write"], found["read"])

    def ways(self, function: Function, knobs: Knobs) -> dict[str, list[Way] | None]:
        """For writes and reads, the links on the way up; None if something is not known."""
        key = (function.address, knobs)
        if key not in self.cut:
            self.cut[key] = self.ways_of(function, knobs)
        return self.cut[key]

    def ways_of(self, function: Function, knobs: Knobs) -> dict[str, list[Way] | None]:
        """The same, worked out."""
        if function.address not in self.tree.links:
            return {"write": None, "read": None}  # on a parallel bus, or inside the root complex
        links = self.tree.links_above(function)
        path = self.tree.path(function)
        top = path[-1] if path else None
        most = self.most.get(top.address) if top is not None else None
        # A virtual function obeys the sizes of its physical one (PCIe 5.0 §9.3.5.4).
        function = self.tree.owner(function)
        # Data of reads is sent by the root complex, which cuts it at the payload size of the root port.
        completer = top.mps if top is not None else None
        sizes = {"write": function.mps, "read": completer or function.mps}
        if knobs.mps:
            sizes = dict.fromkeys(sizes, most)
        mrrs = LARGEST_READ if knobs.mrrs else function.mrrs
        rcb = (top.rcb if top is not None else None) or function.rcb or 64
        ways: dict[str, list[Way] | None] = {}
        for op, mps in sizes.items():
            found = [way_of(link, knobs, mps, mrrs, rcb) for link in links]
            whole = [way for way in found if way is not None]
            ways[op] = whole if whole and len(whole) == len(found) else None
        return ways

    def link_rate(self, link: Link, mps: int | None, op: str = "write", knobs: Knobs = NOTHING) -> float | None:
        """The rate of a link with payloads of `mps`."""
        way = way_of(link, knobs, mps, LARGEST_READ, 64)
        if way is None:
            return None
        self.ask(op, [way] if (op, way) not in self.known else [])
        return self.known[op, way]


def way_of(link: Link, knobs: Knobs, mps: int | None, mrrs: int | None, rcb: int) -> Way | None:
    """A link as the model takes it."""
    generation, width = link.speed, link.width
    if knobs.link:
        if not link.ends_known:
            return None
        generation, width = link.speed_possible, link.width_possible
    if not generation or not width or width not in _core.widths() or mps is None or mrrs is None:
        return None
    return Way(generation, width, mps, mrrs, rcb)


def most_payloads(tree: Tree) -> dict[Address, int | None]:
    """The largest payload that all functions below each port at the top can, by that port's address: the largest that may be set."""
    found: dict[Address, int | None] = {}
    for top in tree.tops():
        waiting, sizes = [top], []
        while waiting:
            function = waiting.pop()
            waiting.extend(tree.below.get(function.address, []))
            if function.physical_function is None and (function.port is not None or not function.capabilities_known):
                sizes.append(function.mps_supported)
        found[top.address] = None if None in sizes else least(sizes)
    return found
