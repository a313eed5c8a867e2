"""The limit of each device and the possible gain, in sentences, with the command or the BIOS setting if there is one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tlplab import quantities
from tlplab.scan import settings
from tlplab.scan.facts import DOWNSTREAM, Address, Function
from tlplab.scan.finding import Finding
from tlplab.scan.state import DEGRADED, EMPTY, FULL, IDLE, LIMITED, State, called, state
from tlplab.scan.throughput import NOTHING, Knobs, Rates, Throughput

if TYPE_CHECKING:
    from tlplab.scan.tree import Link, Tree

# A link that is shared is worth a word where those below it carry so much more.
SHARED = 1.05
# Correctable errors of the link itself, rather than of software.
OF_LINK = ("RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout")


@dataclass
class Verdict:
    """The findings about a device."""

    function: Function
    link: Link | None
    state: State | None
    now: Rates
    possible: Rates
    limit: str
    findings: list[Finding] = field(default_factory=list)


@dataclass
class Uplink:
    """A link that several devices share."""

    upper: Function
    """The upstream port of the switch."""
    link: Link
    devices: int
    ratio: float | None
    """The rate of the links below it together, in multiples of its own."""
    text: str


def judge(tree: Tree, throughput: Throughput) -> list[Verdict]:
    """A verdict for every function that has a link above it and is not a bridge."""
    devices = [one for one in tree.functions if one.address in tree.links and not one.is_bridge]
    knobs = [NOTHING, Knobs(link=True, mps=True, mrrs=True), Knobs(link=True), Knobs(mps=True), Knobs(mrrs=True)]
    throughput.prepare(devices, knobs)
    shared: dict[Address, Uplink] = {}
    for uplink in sorted(uplinks(tree, throughput), key=lambda one: one.ratio or 0):
        shared.update(dict.fromkeys(below(tree, uplink.upper), uplink))  # of several, the tightest
    return [verdict(tree, throughput, one, shared.get(one.address)) for one in devices]


def below(tree: Tree, port: Function) -> list[Address]:
    """The addresses of all that is below a port."""
    found: list[Address] = []
    waiting = [port]
    while waiting:
        for child in tree.below.get(waiting.pop().address, []):
            found.append(child.address)
            waiting.append(child)
    return found


def verdict(tree: Tree, throughput: Throughput, function: Function, uplink: Uplink | None) -> Verdict:
    """The verdict about a device, with its limit."""
    link = tree.links[function.address]
    found = Verdict(
        function, link, state(link), throughput.rates(function),
        throughput.rates(function, Knobs(link=True, mps=True, mrrs=True)), limit(link),
    )  # fmt: skip
    owner = tree.owner(function)
    if owner is not function:
        found.limit = f"a virtual function of {owner.address}, with its link and settings"
        return found
    first = link.lower is function
    if not first:
        found.limit = f"uses the link of {link.lower.address}"
    found.findings = [
        *of_link(throughput, function, link),
        *(of_links_above(tree, throughput, function) if first else []),
        *(settings.payload(tree, throughput, function) if first or function.mps != link.lower.mps else []),
        *settings.read_request(throughput, function, found.now),
        *settings.ordering(tree, function),
        *settings.power(link, first=first),
        *settings.peer_to_peer(tree, throughput, function, first=first),
        *(shared_by(uplink) if uplink is not None and first else []),
        *of_errors(function, link if link.lower is function else None),
    ]
    return found


def shared_by(uplink: Uplink) -> list[Finding]:
    """A link further up that cannot carry all that may come at once."""
    if uplink.ratio is None or uplink.ratio <= SHARED:
        return []
    place = f"the link above {uplink.upper.address} ({called(uplink.link.speed, uplink.link.width)})"
    return [
        Finding("shared", f"shares {place}, which carries {100 / uplink.ratio:.0f} % of the sum of the links below it")
    ]


def limit(link: Link) -> str:
    """The maximum of the link, and the end that sets it."""
    upper, lower = link.upper, link.lower
    runs = called(link.speed, link.width)
    how = state(link)
    if how.name == EMPTY:
        return "the link is down"
    if not link.ends_known or upper is None:
        return f"runs {runs}; {how.why}"
    most = called(link.speed_possible, link.width_possible)
    above = called(upper.speed_possible, upper.width_possible)
    own = called(lower.speed_possible, lower.width_possible)
    if above == own:
        whose = "both ends"
    elif most == own:
        whose = f"the device ({upper.address} above it: {above})"
    elif most == above:
        whose = f"{upper.address} above it (the device: {own})"
    else:
        whose = f"the two ends together ({upper.address} above: {above}; the device: {own})"
    if how.name == FULL:
        return f"runs {runs}, the maximum of {whose}"
    return f"runs {runs} of {most}, {how.name}: {how.why}; {most} is the maximum of {whose}"


def of_link(throughput: Throughput, function: Function, link: Link) -> list[Finding]:
    """Remedies for a link that runs below its maximum."""
    how = state(link)
    if link.lower is not function or link.upper is None or how.name in (FULL, EMPTY):
        return []
    gain = throughput.rates(function, Knobs(link=True))
    if how.name == IDLE:
        return [Finding("speed", "scan again under load; at full speed then, nothing is wrong", gain)]
    if how.name in (LIMITED, DEGRADED):
        return [remedy(link, how, gain)]
    if link.ends_known:
        return [Finding("speed", "scan again under load; if it is still slow, reseat the card", gain)]
    return []


def of_links_above(tree: Tree, throughput: Throughput, function: Function) -> list[Finding]:
    """The same for the links further up, between ports of switches and the root complex."""
    found = []
    for link in tree.links_above(function)[1:]:
        how = state(link)
        if link.lower is not function and link.upper is not None and how.name in (LIMITED, DEGRADED):
            one = remedy(link, how, throughput.rates(function, Knobs(link=True)))
            now, most = called(link.speed, link.width), called(link.speed_possible, link.width_possible)
            one.text = f"the link above {link.lower.address}, on its path, runs {now} of {most}, {how.name}: {how.why}. For that link: {one.text}"
            found.append(one)
    return found


def remedy(link: Link, how: State, gain: Rates) -> Finding:
    """A remedy for a link that is limited or degraded."""
    if how.name == LIMITED:
        text = "the BIOS or software has set a lower speed for the slot (Max Link Speed, PCIe Speed)"
        return Finding("speed", text, gain, settings.target_speed(link))
    if (link.width or 0) < (link.width_possible or 0):
        text = (
            "reseat the card, clean its contacts, try another slot or riser; in the BIOS, check the bifurcation of the slot. "
            "A slot with fewer lanes than its port shows the same state"
        )
        return Finding("width", text, gain)
    text = "reseat the card, try another slot, riser or cable; in the BIOS, set the slot to its highest speed instead of Auto"
    return Finding("speed", text, gain, settings.retrain(link))


def uplinks(tree: Tree, throughput: Throughput) -> list[Uplink]:
    """The links above switches, and how much more the links below could carry together."""
    found = []
    for port in tree.functions:
        link = tree.links.get(port.address)
        if port.port != "upstream port" or link is None or link.lower is not port:
            continue
        lower = links_below(tree, port)
        if len(lower) < 2:
            continue
        own = throughput.link_rate(link, port.mps)
        rates = [throughput.link_rate(one, port.mps) for one in lower]
        if own is None or None in rates:
            text = f"the link above it ({called(link.speed, link.width)}) is shared by the {len(lower)} links below"
            found.append(Uplink(port, link, len(lower), None, text))
            continue
        ratio = sum(rate for rate in rates if rate is not None) / own
        text = (
            f"the link above it ({called(link.speed, link.width)}, {quantities.rate(own, 3)} of writes) is shared: the "
            f"{len(lower)} links below carry {ratio:.1f} times as much together{different_requests(tree, port)}"
        )
        found.append(Uplink(port, link, len(lower), ratio, text))
    return found


def different_requests(tree: Tree, port: Function) -> str:
    """The different request sizes of devices below a switch, in words, as taking turns then favours the larger ones; empty if they are equal."""
    devices = [one for one in (tree.at[address] for address in below(tree, port)) if one.address in tree.links]
    sizes = sorted({one.mrrs for one in devices if one.mrrs and not one.is_bridge and not one.physical_function})
    if len(sizes) < 2:
        return ""
    told = f"{', '.join(map(str, sizes[:-1]))} and {sizes[-1]} B"
    return f"; their read requests have up to {told}; where requests take turns, the device with the smaller ones gets less"


def links_below(tree: Tree, upstream: Function) -> list[Link]:
    """The links below the downstream ports of a switch on which something is."""
    found: dict[int, Link] = {}
    for port in tree.below.get(upstream.address, []):
        if port.port in DOWNSTREAM:
            for child in tree.below.get(port.address, []):
                link = tree.links.get(child.address)
                if link is not None and link.upper is port and state(link).name != EMPTY:
                    found.setdefault(id(port), link)
    return list(found.values())


def of_errors(function: Function, link: Link | None) -> list[Finding]:
    """Errors that were counted, or are noted in the registers of the device, and those of its link in the port above."""
    found = []
    ends = [function] + ([link.upper] if link is not None and link.upper is not None else [])
    for end in ends:
        where = "" if end is function else f"{end.address} above it: "
        counts = {kind: count for kind, count in (end.error_counts or {}).items() if count}
        if counts:
            told = ", ".join(f"{count} {kind}" for kind, count in counts.items())
            found.append(Finding("errors", f"{where}errors counted since boot: {told} (aer_dev_* in /sys)"))
        noted = [name for name in end.correctable or [] if name in OF_LINK]
        if noted:
            text = f"{where}link errors are recorded: {', '.join(noted)}; the connection may be bad"
            found.append(Finding("errors", text))
        if end.uncorrectable:
            found.append(Finding("errors", f"{where}uncorrectable errors are recorded: {', '.join(end.uncorrectable)}"))
    return found
