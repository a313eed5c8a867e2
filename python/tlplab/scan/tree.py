"""The tree of functions, and the links between: from the bus numbers of the bridges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from tlplab.scan.facts import DOWNSTREAM, Address, Function


@dataclass
class Link:
    """A link: the port above, and the functions at its lower end; the first of them describes it."""

    upper: Function | None
    """None where the source shows no port above: the lower end is in a virtual machine, or the dump is not whole."""
    lower: Function

    @cached_property
    def speed(self) -> int | None:
        """The present speed, from the lower end, or if that has none, from the upper end."""
        return self.lower.speed if self.lower.speed is not None or self.upper is None else self.upper.speed

    @cached_property
    def width(self) -> int | None:
        """Lanes it runs at."""
        return self.lower.width if self.lower.width or self.upper is None else self.upper.width

    @cached_property
    def ends_known(self) -> bool:
        """True if the abilities of both ends are known."""
        ends = (self.upper, self.lower)
        return all(end is not None and end.speed_possible and end.width_possible for end in ends)

    @cached_property
    def speed_possible(self) -> int | None:
        """The speed that both ends support, or the known one of both."""
        return least(end.speed_possible for end in (self.upper, self.lower) if end is not None)

    @cached_property
    def width_possible(self) -> int | None:
        """The lanes that both ends have, or the known number of one."""
        return least(end.width_possible for end in (self.upper, self.lower) if end is not None)


def least(values: Iterable[int | None]) -> int | None:
    """The smallest that is known and not 0."""
    return min((value for value in values if value), default=None)


@dataclass
class Tree:
    """All functions of a machine."""

    functions: list[Function]
    parents: dict[Address, Address] = field(default_factory=dict)
    """Of each function that is below a bridge, the bridge; functions that are not here are at the top, or `astray`."""
    below: dict[Address, list[Function]] = field(default_factory=dict)
    """Of each bridge, the functions on the bus below it."""
    astray: list[Function] = field(default_factory=list)
    """Functions whose bridge is unknown: there are bridges whose buses the source does not give."""
    links: dict[Address, Link] = field(default_factory=dict)
    """The link above a function, by the function: each function at its lower end has it."""

    def __post_init__(self) -> None:
        self.at = {function.address: function for function in self.functions}
        for owner in self.functions:
            for address in owner.virtual_addresses():
                if address in self.at and self.at[address].physical_function is None:
                    self.at[address].physical_function = owner.address
        below: dict[Address, list[Function]] = defaultdict(list)
        bridges: dict[int, list[Function]] = defaultdict(list)
        hidden: set[int] = set()
        for function in self.functions:
            if function.secondary and function.secondary > function.address.bus:
                bridges[function.address.domain].append(function)
            elif function.secondary is None and (
                function.is_bridge or (function.header is None and is_bridge_class(function))
            ):
                hidden.add(function.address.domain)
        holders = {domain: holder_of_buses(found) for domain, found in bridges.items()}
        for function in self.functions:
            parent = holders.get(function.address.domain, {}).get(function.address.bus)
            if parent is None and function.above in self.at and function.above != function.address:
                parent = self.at[function.above] if is_below(function.address, function.above) else None
            if parent is not None:
                self.parents[function.address] = parent.address
                below[parent.address].append(function)
            elif function.address.bus and function.address.domain in hidden:
                self.astray.append(function)
        self.below = dict(below)
        made: dict[Address, Link] = {}
        for function in self.functions:
            link = self.link_above(function)
            if link is not None:
                # All functions at its lower end have the same one.
                self.links[function.address] = made.setdefault(link.lower.address, link)
        self.paths: dict[Address, list[Function]] = {}

    def link_above(self, function: Function) -> Link | None:
        """The link whose lower end a function is at, or shares with the function of its device that describes it."""
        if function.port is None and function.width is None:
            return None
        if function.port in DOWNSTREAM or function.port in ("integrated end point", "event collector", "reserved"):
            return None
        parent = self.parent(function)
        upper = parent if parent is not None and parent.port in (*DOWNSTREAM, None) else None
        if function.port is None and function.is_bridge and parent is None:
            return None  # a root port of which only the speed is known
        return Link(upper, self.first_of(function))

    def first_of(self, function: Function) -> Function:
        """Function 0 of its device, which speaks for all; of a virtual function, the physical one."""
        address = self.owner(function).address
        first = self.at.get(Address(address.domain, address.bus, address.device, 0))
        return first if first is not None and first.width is not None else self.at[address]

    def owner(self, function: Function) -> Function:
        """The physical function of a virtual one; any other itself."""
        physical = function.physical_function
        return function if physical is None else self.at.get(physical, function)

    def parent(self, function: Function) -> Function | None:
        """The bridge above."""
        address = self.parents.get(function.address)
        return None if address is None else self.at[address]

    def path(self, function: Function) -> list[Function]:
        """The bridges above, the nearest first."""
        known = self.paths.get(function.address)
        if known is None:
            parent = self.parent(function)
            known = [] if parent is None else [parent, *self.path(parent)]
            self.paths[function.address] = known
        return known

    def tops(self) -> list[Function]:
        """The functions below no bridge, as far as is known."""
        return [function for function in self.functions if function.address not in self.parents]

    def walk(self) -> Iterator[tuple[int, Function]]:
        """Every function with its depth, a bridge before the functions below it."""
        waiting = [(0, function) for function in reversed(self.tops())]
        while waiting:
            depth, function = waiting.pop()
            yield depth, function
            waiting.extend((depth + 1, child) for child in reversed(self.below.get(function.address, [])))

    def links_above(self, function: Function) -> list[Link]:
        """The links on the way up, that of the function first."""
        links = (self.links.get(one.address) for one in [function, *self.path(function)])
        return [link for link in links if link is not None]


def holder_of_buses(bridges: list[Function]) -> dict[int, Function]:
    """The bridge right above each bus. A bus in a range that no bridge has for its own, as those of virtual functions, is below the
    bridge with the innermost range."""
    holders: dict[int, Function] = {}
    for bridge in sorted(bridges, key=lambda one: one.secondary or 0):
        first = bridge.secondary or 0
        # Of a bridge whose range is broken, its own bus alone counts.
        for bus in range(first, max(bridge.subordinate or first, first) + 1):
            holders[bus] = bridge
    return holders


def is_below(address: Address, above: Address) -> bool:
    """True if the address can be below the other: buses are numbered from the top."""
    return address.domain == above.domain and address.bus > above.bus


def is_bridge_class(function: Function) -> bool:
    """True if its class is that of a bridge to another bus."""
    return function.class_code in (0x0604, 0x0607, 0x0609) or function.class_name in ("PCI bridge", "CardBus bridge")
