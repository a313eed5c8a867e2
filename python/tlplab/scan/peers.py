"""Rates between devices: the links of each pair by the closed forms, and the cost of access control and slow links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from tlplab.scan.facts import Address, Function
from tlplab.scan.state import EMPTY, FULL, called, state
from tlplab.scan.throughput import NOTHING, Knobs, Throughput

if TYPE_CHECKING:
    from tlplab.scan.tree import Link, Tree

# Base classes of devices that exchange data with their like: display controllers, processing accelerators.
CLASSES = (0x03, 0x12)
# Pairs of more are left to the reader.
MOST = 64
# Gains below this part are not worth a sentence.
WORTH = 1.005
# Bits of ACS Control, as setpci writes them.
REQUEST_REDIRECT = 1 << 2
COMPLETION_REDIRECT = 1 << 3

Step = tuple["Link", bool]
"""A link, and whether it is passed downwards."""


@dataclass(frozen=True)
class Exchange:
    """The rates of writes between two devices, in bits per second of payload."""

    one_way: float
    """The slower of the two ways, alone."""
    both: float
    """Both ways at once, the sum."""
    limit: Link
    """The link that limits it."""


@dataclass
class Peers:
    """Pairs of devices in like places, which exchange as much."""

    pairs: list[tuple[Function, Function]]
    now: Exchange
    straight: Exchange | None
    """Without access control; None if it costs nothing."""
    faster: Exchange | None
    """With all links at the maximum of both ends; None if that is not more."""
    redirecting: list[Function] = field(default_factory=list)
    """Ports of switches that send requests between them up to the root complex."""
    translating: list[Function] = field(default_factory=list)
    """Root ports that do so."""
    slow: list[Link] = field(default_factory=list)
    """Links on their way that run below the ability of both ends."""
    translated: bool = False
    """True if both devices ask for translations, and the redirecting ports let translated requests pass."""

    def commands(self) -> list[str]:
        """The commands that turn the redirection off, if requests are redirected."""
        return (
            []
            if self.translated and not self.translating
            else [command(port) for port in [*self.redirecting, *self.translating]]
        )


def command(port: Function) -> str:
    """Clears request redirect of a port, and completion redirect if that is on."""
    mask = REQUEST_REDIRECT | (COMPLETION_REDIRECT if "CmpltRedir" in (port.access_control or []) else 0)
    return f"setpci -s {port.address} ECAP_ACS+6.w=0000:{mask:04x}"


def redirects(port: Function | None) -> bool:
    """True if requests that come in by a port from below go up to the root complex."""
    return port is not None and "ReqRedir" in (port.access_control or [])


def passes_translated(port: Function) -> bool:
    """True if translated requests go straight in spite of redirection."""
    return "DirectTrans" in (port.access_control or [])


def asks_for_translations(function: Function) -> bool:
    """True if software has enabled its address translation services."""
    registers = (one for capability in function.capabilities for one in capability.registers)
    return any(one.name == "ATSCtl" and "Enable+" in one.text for one in registers)


def candidates(tree: Tree) -> list[Function]:
    """The devices that exchange data with their like."""

    def fits(function: Function) -> bool:
        link = tree.links.get(function.address)
        if link is None or link.lower is not function or function.is_bridge or function.physical_function is not None:
            return False
        return (function.class_code or 0) >> 8 in CLASSES and state(link).name != EMPTY

    return [function for function in tree.functions if fits(function)][:MOST]


def survey(tree: Tree, throughput: Throughput) -> list[Peers]:
    """All pairs, those in like places together."""
    found: dict[tuple[object, ...], Peers] = {}
    devices = candidates(tree)
    for number, a in enumerate(devices):
        for b in devices[number + 1 :]:
            one = judge(tree, throughput, a, b)
            if one is None:
                continue
            like = (place(tree, a), place(tree, b), one.now.one_way, one.now.both, one.straight is None)
            if like in found:
                known = found[like]
                known.pairs += one.pairs
                join(known.redirecting, one.redirecting, lambda port: port.address)
                join(known.translating, one.translating, lambda port: port.address)
                join(known.slow, one.slow, lambda link: link.lower.address)
            else:
                found[like] = one
    return list(found.values())


Part = TypeVar("Part")


def join(known: list[Part], more: list[Part], address: Callable[[Part], Address]) -> None:
    """Adds missing parts."""
    there = {address(one) for one in known}
    known += [one for one in more if address(one) not in there]


def place(tree: Tree, function: Function) -> Address | None:
    """The switch, or the root port, that a device is below."""
    path = tree.path(function)
    switch = next((port for port in path if port.port == "upstream port"), None)
    return (switch or path[-1]).address if path else None


def judge(tree: Tree, throughput: Throughput, a: Function, b: Function) -> Peers | None:
    """The verdict about a pair; None if their links are not known."""
    now = exchange(tree, throughput, a, b)
    if now is None:
        return None
    straight = exchange(tree, throughput, a, b, redirect=False)
    faster = exchange(tree, throughput, a, b, Knobs(link=True))
    ports = [port for port in (turn(tree, a, b), turn(tree, b, a)) if port is not None and redirects(port)]
    roots = [tops[-1] for tops in (tree.path(a), tree.path(b)) if tops]
    crosses = turn(tree, a, b) is None and roots[0] is not roots[-1]
    links = {link.lower.address: link for link, _ in [*way(tree, a, b), *way(tree, b, a)]}
    slow = [link for link in links.values() if link.ends_known and state(link).name not in (FULL, EMPTY)]
    return Peers(
        [(a, b)],
        now,
        straight if straight is not None and ports and straight.both > now.both * WORTH else None,
        faster if faster is not None and faster.both > now.both * WORTH else None,
        ports,
        [port for port in roots if redirects(port)] if crosses else [],
        slow,
        bool(ports) and all(map(passes_translated, ports)) and all(map(asks_for_translations, (a, b))),
    )


def exchange(
    tree: Tree, throughput: Throughput, a: Function, b: Function, knobs: Knobs = NOTHING, *, redirect: bool = True
) -> Exchange | None:
    """The rates between two devices, each with its payload size, if links are the only limit and carry no other traffic."""
    ways = [(way(tree, a, b, redirect=redirect), a.mps), (way(tree, b, a, redirect=redirect), b.mps)]
    one_way, _ = least(throughput, ways, knobs, Counter())
    both, limit = least(throughput, ways, knobs, Counter(key(step) for steps, _ in ways for step in steps))
    if one_way is None or both is None or limit is None:
        return None
    return Exchange(min(one_way), sum(both), limit)


def least(
    throughput: Throughput,
    ways: Sequence[tuple[list[Step], int | None]],
    knobs: Knobs,
    uses: Counter[tuple[Address, bool]],
) -> tuple[list[float] | None, Link | None]:
    """The rate that each way's narrowest link leaves to it, and the narrowest of all; `uses`: how many share a direction."""
    rates: list[float] = []
    limit: tuple[float, Link] | None = None
    for steps, mps in ways:
        shares = []
        for step in steps:
            rate = throughput.link_rate(step[0], mps, knobs=knobs) or throughput.link_rate(step[0], mps)
            if rate is None:
                return None, None
            shares.append((rate / max(uses[key(step)], 1), step[0]))
        if not shares:
            return None, None
        narrowest = min(shares, key=lambda share: share[0])
        rates.append(narrowest[0])
        limit = narrowest if limit is None or narrowest[0] < limit[0] else limit
    return rates, None if limit is None else limit[1]


def key(step: Step) -> tuple[Address, bool]:
    """A direction of a link."""
    return step[0].lower.address, step[1]


def way(tree: Tree, a: Function, b: Function, *, redirect: bool = True) -> list[Step]:
    """The links that a request from one device to another passes."""
    up, down = tree.links_above(a), tree.links_above(b)
    port = turn(tree, a, b)
    if port is not None and not (redirect and redirects(port)):
        shared = {id(link) for link in up} & {id(link) for link in down}
        up, down = ([link for link in links if id(link) not in shared] for links in (up, down))
    return [*((link, False) for link in up), *((link, True) for link in reversed(down))]


def turn(tree: Tree, a: Function, b: Function) -> Function | None:
    """The downstream port at which a request from one device to another turns round, inside of a switch; None: the root complex is where it does."""
    below = {id(link) for link in tree.links_above(b)}
    own = tree.links_above(a)
    at = next((number for number, link in enumerate(own) if id(link) in below), None)
    return None if not at else own[at - 1].upper


def neighbour(tree: Tree, function: Function) -> Function | None:
    """Another device below the same switch, whose requests and those of `function` turn round there."""
    port = tree.parent(function)
    switch = None if port is None else tree.parent(port)
    if switch is None:
        return None
    others: Iterator[Function] = (
        child
        for other in tree.below.get(switch.address, [])
        if other is not port
        for child in tree.below.get(other.address, [])
    )
    fits = (one for one in others if one.address in tree.links and tree.links[one.address].lower is one)
    return next((one for one in fits if not one.is_bridge), None)


def words(peers: Peers) -> str:
    """The verdict about pairs, in a sentence."""
    now = peers.now
    limit = f"the link above {now.limit.lower.address} ({called(now.limit.speed, now.limit.width)})"
    text = f"{rate(now.one_way)} one way, {rate(now.both)} both ways at once, limited by {limit}"
    if peers.straight is not None:
        ports = " and ".join(str(port.address) for port in peers.redirecting[:2])
        ports += f" and {len(peers.redirecting) - 2} more" * (len(peers.redirecting) > 2)
        straight = f"{rate(peers.straight.one_way)} and {rate(peers.straight.both)}"
        text += f", since access control at {ports} sends it through the root complex; "
        text += (
            f"translated requests (ATS and DirectTrans are on) {straight}"
            if peers.translated
            else f"without it {straight}"
        )
    elif peers.redirecting:
        text += "; access control sends it through the root complex, which adds latency and loads the links above"
    if peers.translating:
        ports = " and ".join(str(port.address) for port in peers.translating)
        text += f"; access control at {ports} has the IOMMU translate it, if enabled; no register shows the cost"
    if peers.faster is not None and peers.slow:
        links = ", ".join(str(link.lower.address) for link in peers.slow)
        text += f"; with the links above {links} at the maximum of both ends {rate(peers.faster.one_way)} and {rate(peers.faster.both)}"
    return text


def rate(bits: float) -> str:
    """A rate in the unit of measurements of pairs of GPUs, GB/s."""
    return f"{bits / 8e9:.1f} GB/s"
