"""Rates between devices: the links of each pair by the closed forms, and the cost of access control and slow links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from tlplab.scan import access
from tlplab.scan.access import REDIRECTED, REFUSED, STRAIGHT, UNKNOWN
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
    fates: tuple[str, str]
    """The fates, under access control, of the requests of the first device of a pair to the second, and of the second to the first."""
    now: Exchange | None
    """None if all requests are refused, or their fate under access control is not known."""
    straight: Exchange | None
    """Without access control; None if it costs nothing."""
    otherwise: Exchange | None
    """The rest if access control refuses the requests of unknown fate; None if there is no rest."""
    faster: Exchange | None
    """With all links at the maximum of both ends; None if that is not more."""
    redirecting: list[Function] = field(default_factory=list)
    """Ports of switches that send requests between them up to the root complex."""
    refusing: list[Function] = field(default_factory=list)
    """Ports that refuse requests between them."""
    undecided: list[Function] = field(default_factory=list)
    """Ports with egress control whose vector the source lacks."""
    translating: list[Function] = field(default_factory=list)
    """Root ports that have the IOMMU translate requests between them."""
    passing: list[Function] = field(default_factory=list)
    """Ports that let translated requests pass, which the devices below make, and would redirect or refuse others."""
    blocking: list[Function] = field(default_factory=list)
    """Ports above the redirecting ports, without the upstream forwarding that sends requests down again."""
    slow: list[Link] = field(default_factory=list)
    """Links on their way that run below the capability of both ends."""
    hidden: bool = False
    """True if the source lacks the access control of a port on their way."""

    def commands(self) -> list[str]:
        """The commands that turn access control off where it redirects, refuses, or has the IOMMU translate."""
        return [
            access.command(port) for port in [*self.redirecting, *self.refusing, *self.undecided, *self.translating]
        ]


# Lists of ports that similar pairs have together.
PORTS = ("redirecting", "refusing", "undecided", "translating", "passing", "blocking")


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
            like = (place(tree, a), place(tree, b), *one.fates, figures(one.now), figures(one.straight), figures(one.otherwise), one.hidden,
                    *(access.otherwise(port) for port in one.undecided), *(bool(getattr(one, name)) for name in PORTS))  # fmt: skip
            if like in found:
                known = found[like]
                known.pairs += one.pairs
                for name in PORTS:
                    join(getattr(known, name), getattr(one, name), lambda port: port.address)
                join(known.slow, one.slow, lambda link: link.lower.address)
            else:
                found[like] = one
    return list(found.values())


def figures(one: Exchange | None) -> tuple[float, float] | None:
    """The rates alone."""
    return None if one is None else (one.one_way, one.both)


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


@dataclass(frozen=True)
class Course:
    """The fate of the requests of one device to another."""

    port: Function | None
    """The port that decides: the downstream port of a switch where they turn round, or the root port; None: no port that is known."""
    inside: bool
    """True if it is a port of a switch."""
    plain: str
    """The fate of untranslated requests, of those in `access`."""
    translated: bool
    """True if they are known to have translated addresses, and these go straight."""

    @property
    def fate(self) -> str:
        """The fate of the requests that the device makes. Without request redirect, egress control refuses requests for translations of
        addresses of the peer, too."""
        if not self.translated or self.port is None:
            return self.plain
        return STRAIGHT if access.on(self.port, "ReqRedir") else UNKNOWN


def course(tree: Tree, a: Function, b: Function) -> Course:
    """The fate of the requests of one device to another."""
    port, peer = turn(tree, a, b), turn(tree, b, a)
    inside = port is not None
    if port is None:
        roots = [tops[-1] for tops in (tree.path(a), tree.path(b)) if tops]
        if len(roots) < 2 or roots[0] is roots[1] or roots[0].port != "root port":
            return Course(None, False, STRAIGHT, False)
        port, peer = roots
    plain = access.fate(port, peer)
    # The IOMMU, too, passes on what has a translated address.
    passes = access.passes_translated(port) or (not inside and plain == REDIRECTED and not access.on(port, "TransBlk"))
    return Course(port, inside, plain, passes and plain != STRAIGHT and access.asks_for_translations(a))


def judge(tree: Tree, throughput: Throughput, a: Function, b: Function) -> Peers | None:
    """The statements about a pair; None if their links are not known."""
    straight = exchange(tree, throughput, a, b, (STRAIGHT, STRAIGHT))
    if straight is None:
        return None
    courses = (course(tree, a, b), course(tree, b, a))
    fates = (courses[0].fate, courses[1].fate)
    unknown = UNKNOWN in fates
    worst = [access.otherwise(one.port) if one.fate == UNKNOWN and one.port else one.fate for one in courses]
    least = exchange(tree, throughput, a, b, through(courses, worst))
    now = None if unknown else least
    base = straight if unknown else now
    faster = exchange(tree, throughput, a, b, through(courses, fates), Knobs(link=True)) if now is not None else None
    links = {link.lower.address: link for link, _ in [*way(tree, a, b), *way(tree, b, a)]}

    def ports(fate: str, *, inside: bool | None = None) -> list[Function]:
        fits = (one for one in courses if one.fate == fate and inside in (None, one.inside))
        return [one.port for one in fits if one.port is not None]

    redirecting = ports(REDIRECTED, inside=True)
    inner = [one.port for one in courses if one.inside and one.port is not None]
    up = [port for port in inner if port in redirecting or access.on(port, "CmpltRedir")]
    return Peers(
        [(a, b)],
        fates,
        now,
        straight if least is None or straight.both > least.both * WORTH or unknown else None,
        least if unknown else None,
        faster if faster is not None and base is not None and faster.both > base.both * WORTH else None,
        redirecting,
        ports(REFUSED),
        ports(UNKNOWN),
        ports(REDIRECTED, inside=False),
        [one.port for one in courses if one.translated and one.fate == STRAIGHT and one.port is not None],
        unique([one for port in up for one in access.no_way_back(tree, port)]),
        [link for link in links.values() if link.ends_known and state(link).name not in (FULL, EMPTY)],
        any(
            one.port is not None and one.port.access_control is None and not one.port.extended_known for one in courses
        ),
    )


def unique(ports: list[Function]) -> list[Function]:
    """Each once."""
    return list({port.address: port for port in ports}.values())


def through(courses: tuple[Course, Course], fates: Sequence[str]) -> tuple[str, str]:
    """The fates as links see them: a request that a root port redirects passes the same links."""
    told = [
        STRAIGHT if fate == REDIRECTED and not one.inside else fate for one, fate in zip(courses, fates, strict=True)
    ]
    return told[0], told[1]


def exchange(
    tree: Tree, throughput: Throughput, a: Function, b: Function, fates: tuple[str, str], knobs: Knobs = NOTHING
) -> Exchange | None:
    """The rates of two devices, each with its payload size, if only links limit them and no other device uses the links; None if that is not
    known, or if requests are refused both ways."""
    ends = ((a, b, fates[0]), (b, a, fates[1]))
    ways = [
        (way(tree, one, other, redirect=fate == REDIRECTED), one.mps) for one, other, fate in ends if fate != REFUSED
    ]
    one_way, _ = least(throughput, ways, knobs, Counter())
    both, limit = least(throughput, ways, knobs, Counter(key(step) for steps, _ in ways for step in steps))
    if not one_way or both is None or limit is None:
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


def way(tree: Tree, a: Function, b: Function, *, redirect: bool = False) -> list[Step]:
    """The links that a request from one device to another passes, if the port where it would turn round sends it up or not."""
    up, down = tree.links_above(a), tree.links_above(b)
    port = turn(tree, a, b)
    if port is not None and not redirect:
        shared = {id(link) for link in up} & {id(link) for link in down}
        up, down = ([link for link in links if id(link) not in shared] for links in (up, down))
    return [*((link, False) for link in up), *((link, True) for link in reversed(down))]


def turn(tree: Tree, a: Function, b: Function) -> Function | None:
    """The downstream port at which a request from one device to another turns round, inside of a switch; None: the root complex is where it does."""
    below = {id(link) for link in tree.links_above(b)}
    own = tree.links_above(a)
    at = next((number for number, link in enumerate(own) if id(link) in below), None)
    return None if not at else own[at - 1].upper


def neighbours(tree: Tree, function: Function) -> list[Function]:
    """The other devices right below the same switch: the requests of `function` to them turn round there."""
    port = tree.parent(function)
    switch = None if port is None else tree.parent(port)
    if switch is None:
        return []
    others: Iterator[Function] = (
        child
        for other in tree.below.get(switch.address, [])
        if other is not port
        for child in tree.below.get(other.address, [])
    )
    fits = (one for one in others if one.address in tree.links and tree.links[one.address].lower is one)
    return [one for one in fits if not one.is_bridge]


def words(peers: Peers) -> str:
    """The statements about pairs, in a sentence."""
    text = unknown(peers) if peers.undecided else refused(peers) if peers.refusing else carried(peers)
    if peers.blocking:
        text += f"; UpstreamFwd is off at {named(peers.blocking)}, which may refuse requests that access control sends up to it"
    if peers.passing:
        text += f"; access control at {named(peers.passing)} lets translated requests pass, which devices with ATS on send, but no others"
    if peers.translating:
        text += f"; access control at {named(peers.translating)} has the IOMMU translate it, if enabled; no register shows the cost"
    if peers.hidden:
        text += "; the source lacks the access control on its way, which may redirect it"
    if peers.faster is not None and peers.slow:
        links = ", ".join(str(link.lower.address) for link in peers.slow)
        text += f"; with the links above {links} at the maximum of both ends {rates(peers.faster)}"
    return text


def carried(peers: Peers) -> str:
    """Of pairs whose requests all arrive."""
    if peers.now is None:
        return "unknown"
    text = f"{rate(peers.now.one_way)} one way, {rate(peers.now.both)} both ways at once, {limited(peers.now)}"
    if peers.straight is not None and peers.redirecting:
        text += f", since access control at {named(peers.redirecting)} sends it through the root complex; without it {rates(peers.straight)}"
    elif peers.redirecting:
        text += "; access control sends it through the root complex, which adds latency and loads the links above"
    return text


def refused(peers: Peers) -> str:
    """Of pairs some of whose requests egress control refuses."""
    why = f"egress control at {named(peers.refusing)} refuses"
    without = "" if peers.straight is None else f"; without it {rates(peers.straight)}"
    if peers.now is None:
        return f"nothing, since {why} requests both ways{without}"
    a, b = peers.pairs[0] if peers.fates[0] == REFUSED else reversed(peers.pairs[0])
    one, other = (f"{b.address} to {a.address}", f"{a.address} to {b.address}")
    if len(peers.pairs) > 1:
        order = ("the first device to the second", "the second to the first")
        other, one = order if peers.fates[0] == REFUSED else order[::-1]
    by = f" through the root complex (access control at {named(peers.redirecting)})" if peers.redirecting else ""
    return f"{rate(peers.now.one_way)} from {one}{by}, {limited(peers.now)}; {why} requests from {other}{without}"


def unknown(peers: Peers) -> str:
    """Of pairs some of whose requests egress control may redirect or refuse."""
    at = named(peers.undecided)
    allowed = "" if peers.straight is None else rates(peers.straight)
    if all(port.egress_forbidden is not None for port in peers.undecided):
        return (
            f"unknown, since egress control at {at} refuses their requests, but not those with translated addresses (DirectTrans, ATS is on): "
            f"{allowed} if the devices get their translations; requests for translations of addresses of a peer are refused, too"
        )
    beyond = {access.otherwise(port) for port in peers.undecided}
    fates = ((REFUSED, "refused"), (REDIRECTED, "redirected to the root complex"))
    told = " or ".join(what for fate, what in fates if fate in beyond)
    left = ""
    if peers.otherwise is not None:
        left = f": {rate(peers.otherwise.one_way)} one way only" if REFUSED in beyond else f": {rates(peers.otherwise)}"
    return (
        f"unknown, since egress control is on at {at} and the source lacks its vector (lspci -xxxx shows it); {allowed} if it allows their "
        f"requests; requests that it does not allow are {told}{left}"
    )


def limited(one: Exchange) -> str:
    """By which link."""
    return f"limited by the link above {one.limit.lower.address} ({called(one.limit.speed, one.limit.width)})"


def named(ports: Sequence[Function]) -> str:
    """Two ports by their addresses, the others by their number."""
    more = f" and {len(ports) - 2} more" * (len(ports) > 2)
    return " and ".join(str(port.address) for port in ports[:2]) + more


def rates(one: Exchange) -> str:
    """Of one way, and of both at once."""
    return f"{rate(one.one_way)} and {rate(one.both)}"


def rate(bits: float) -> str:
    """A rate in the unit of measurements of pairs of GPUs, GB/s."""
    return f"{bits / 8e9:.1f} GB/s"
