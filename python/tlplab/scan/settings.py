"""Settings that software may change, with the commands that do.

Registers of `setpci` (PCIe 5.0 §7.5.3): `CAP_EXP` is the PCI Express capability, with Device Control at 08h (relaxed ordering:
bit 4, payload: 7:5, tags of 8 bits: 8, read requests: 14:12), Link Control at 10h (ASPM: 1:0, retrain: 5) and Link Control 2 at 30h
(target speed: 3:0); `ECAP_ACS+6` is ACS Control. Behind the colon are the bits that are written; the others stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tlplab import quantities
from tlplab.scan import access, peers
from tlplab.scan.facts import DOWNSTREAM, Function
from tlplab.scan.finding import Finding
from tlplab.scan.throughput import LARGEST_READ, Knobs, Rates, Throughput

if TYPE_CHECKING:
    from tlplab.scan.tree import Link, Tree

# Reads whose data may take at least so long before tags run out need no remark.
LONG_ROUND_TRIP_NS = 1000.0
# Gains below this part are not worth a sentence.
WORTH = 0.005
# More commands than these are left to the reader.
MOST_COMMANDS = 6


def setpci(function: Function, register: str, value: int, mask: int) -> str:
    """The command that writes the bits of `mask`."""
    return f"setpci -s {function.address} {register}.w={value:04x}:{mask:04x}"


def size_bits(size: int) -> int:
    """The encoding of a size in registers: 128 is 0, 4096 is 5."""
    return size.bit_length() - 8


def set_payload(function: Function, size: int) -> str:
    """Sets MPS."""
    return setpci(function, "CAP_EXP+8", size_bits(size) << 5, 0x00E0)


def retrain(link: Link) -> list[str]:
    """Trains the link again; the port above does that."""
    return [] if link.upper is None else [setpci(link.upper, "CAP_EXP+10", 0x0020, 0x0020)]


def target_speed(link: Link) -> list[str]:
    """Allows the highest speed of both ends, and trains again."""
    if link.upper is None or link.speed_possible is None:
        return []
    return [setpci(link.upper, "CAP_EXP+30", link.speed_possible, 0x000F), *retrain(link)]


def payload(tree: Tree, throughput: Throughput, function: Function) -> list[Finding]:
    """A payload size that does not fit that of the ports above, or is smaller than it could be."""
    own, path = function.mps, tree.path(function)
    if own is None or not path:
        return []
    top = path[-1]
    for port in path:
        if port.mps is not None and own > port.mps:
            text = f"sends payloads of up to {own} B, but {port.address} above accepts {port.mps} B: larger TLPs are malformed, a fatal error"
            return [Finding("mps", text, commands=[set_payload(function, port.mps)])]
    if top.mps is not None and top.mps > own:
        return [smaller_than_above(tree, function, top, own, top.mps)]
    most = throughput.most.get(top.address)
    if most is None or own >= most:
        return []
    then = throughput.rates(function, Knobs(mps=True))
    if gained(throughput.rates(function), then) <= WORTH:
        return []
    text = (
        f"MPS is {own} B, and all functions below {top.address} support {most} B: boot with pci=pcie_bus_safe, or set Maximum Payload in the BIOS "
        f"(by hand: before drivers load, {top.address} and every function below it at once)"
    )
    return [Finding("mps", text, then, commands_for_all(tree, top, most))]


def smaller_than_above(tree: Tree, function: Function, top: Function, own: int, above: int) -> Finding:
    """A device that takes smaller payloads than the root port may send."""
    text = f"accepts payloads of {own} B, but {top.address} at the top may send {above} B"
    if function.mrrs is not None and function.mrrs <= own:
        return Finding("mps", f"{text}; reads are safe, since MRRS is {function.mrrs} B")
    text += ": larger TLPs are malformed, a fatal error"
    if function.mps_supported is not None and function.mps_supported >= above:
        return Finding("mps", text, commands=[set_payload(function, above)])
    return Finding(
        "mps",
        f"{text}; set {top.address} and all functions below it to {own} B",
        commands=commands_for_all(tree, top, own),
    )


def commands_for_all(tree: Tree, top: Function, size: int) -> list[str]:
    """Sets MPS of a port and all below it, from the top; nothing if that would fill the screen."""
    found, waiting = [], [top]
    while waiting:
        function = waiting.pop(0)
        waiting.extend(tree.below.get(function.address, []))
        if function.mps not in (None, size) and function.physical_function is None:
            found.append(set_payload(function, size))
    return found if len(found) <= MOST_COMMANDS else []


def gained(now: Rates, then: Rates) -> float:
    """The larger of the two gains, as a part."""
    pairs = [(now.write, then.write), (now.read, then.read)]
    return max((after / before - 1 for before, after in pairs if before and after), default=0.0)


def tags(function: Function) -> int:
    """Reads that it may have under way."""
    return 768 if function.ten_bit_tags else 256 if function.extended_tags else 32


def read_request(throughput: Throughput, function: Function, now: Rates) -> list[Finding]:
    """Small read requests, few tags, and neighbours that ask for more at once."""
    found = []
    mrrs = function.mrrs
    if mrrs is None:
        return []
    largest = setpci(function, "CAP_EXP+8", size_bits(LARGEST_READ) << 12, 0x7000)
    then = throughput.rates(function, Knobs(mrrs=True))
    if now.read and function.extended_tags is not None:
        under_way = tags(function) * mrrs
        round_trip = under_way * 8 / now.read * 1e9
        if round_trip < LONG_ROUND_TRIP_NS:
            more = function.extended_tags_supported and not function.extended_tags
            commands = [largest] if mrrs < LARGEST_READ else []
            if more:
                commands.append(setpci(function, "CAP_EXP+8", 0x0100, 0x0100))
            text = (
                f"{tags(function)} tags and MRRS {mrrs} B are {quantities.size(under_way)} under way: reads reach this rate only "
                f"if completions return within {quantities.time(round_trip, 3)}"
            )
            text += "; it supports 256 tags" if more else ""
            found.append(Finding("tags", text, None, commands))
    if not found and mrrs < LARGEST_READ and gained(now, then) > WORTH:
        found.append(Finding("mrrs", f"MRRS is {mrrs} B; larger requests need fewer headers", then, [largest]))
    return found


def ordering(tree: Tree, function: Function) -> list[Finding]:
    """Relaxed ordering that is switched off."""
    if function.relaxed_ordering is not False:
        return []
    top = (tree.path(function) or [function])[-1]
    if keeps_ordering_strict(top):
        text = (
            f"relaxed ordering is off, as Linux sets it below {top.address}: root ports of Haswell and Broadwell Xeons run short of "
            "credits with it (quirk_relaxedordering_disable)"
        )
        return [Finding("ordering", text)]
    text = "relaxed ordering is off: completions of its reads wait behind all earlier writes, even where the order is not needed"
    return [Finding("ordering", text, commands=[setpci(function, "CAP_EXP+8", 0x0010, 0x0010)])]


def keeps_ordering_strict(top: Function) -> bool:
    """True if Linux switches relaxed ordering off below this root port (drivers/pci/quirks.c: 8086:2f01 to 2f0e, 6f01 to 6f0e)."""
    if top.vendor is not None and top.device is not None:
        return top.vendor == 0x8086 and (0x2F01 <= top.device <= 0x2F0E or 0x6F01 <= top.device <= 0x6F0E)
    name = top.name or ""
    return "PCI Express Root Port" in name and any(one in name for one in ("Haswell-E", "v3/Core i7", "Xeon D"))


def power(link: Link, *, first: bool) -> list[Finding]:
    """ASPM that is on."""
    ends = [end for end in (link.lower, link.upper) if end is not None]
    on = [end for end in ends if end.aspm]
    if not on or not first:
        return []
    states = [name for name in ("L0s", "L1") if any(name in (end.aspm or []) for end in on)]
    text = f"ASPM {' and '.join(states)} is on: the first transfer after a pause waits until the link is awake (off: pcie_aspm=off, or the BIOS)"
    return [Finding("aspm", text, commands=[setpci(end, "CAP_EXP+10", 0, 0x0003) for end in on])]


def peer_to_peer(tree: Tree, throughput: Throughput, function: Function, *, first: bool) -> list[Finding]:
    """Access control of the port of a switch above a device, as far as it costs its requests to others below the switch anything."""
    above = tree.parent(function)
    if not first or above is None or above.port not in DOWNSTREAM or above.port == "root port":
        return []
    if access.asks_for_translations(function):
        if access.on(above, "TransBlk"):
            text = f"ATS is on, but access control at {above.address} refuses its translation requests and translated requests (TransBlk)"
            return [Finding("acs", text), *of_requests(tree, throughput, function, above)]
        if access.passes_translated(above) and access.on(above, "ReqRedir"):
            return []
    return of_requests(tree, throughput, function, above)


def of_requests(tree: Tree, throughput: Throughput, function: Function, above: Function) -> list[Finding]:
    """The treatment, by the port above, of untranslated requests to the other devices below its switch."""
    others = peers.neighbours(tree, function)
    text = (
        f"access control at {above.address} sends its requests to other devices below the switch up to the root complex"
    )
    if access.on(above, "EgressCtrl"):
        fates = {other.address: access.fate(above, tree.parent(other)) for other in others}
        others = [other for other in others if fates[other.address] != access.STRAIGHT]
        text = egress(function, above, others, known=access.UNKNOWN not in fates.values())
    if not (access.on(above, "ReqRedir") or access.on(above, "EgressCtrl")) or not text:
        return []
    text += "; without access control devices are not isolated from each other"
    # Of all, the one that could exchange the most.
    other = max(others, key=lambda one: throughput.link_rate(tree.links[one.address], function.mps) or 0, default=None)
    pair = None if other is None else peers.judge(tree, throughput, function, other)
    if other is not None and pair is not None and pair.straight and pair.now and not pair.refusing:
        now, then = peers.rate(pair.now.both), peers.rate(pair.straight.both)
        text += f" (writes both ways with {other.address} {now} → {then})"
    return [Finding("acs", text, commands=[access.command(above)])]


def egress(function: Function, above: Function, others: list[Function], *, known: bool) -> str:
    """The treatment of requests that egress control does not allow, as far as it is known; empty without any."""
    refuses = access.otherwise(above) == access.REFUSED
    if not others:
        return ""
    if not known:
        does = "refuses" if refuses else "sends up to the root complex"
        return (
            f"egress control is on at {above.address}, and the source lacks its vector (lspci -xxxx shows it): it {does} requests to other "
            "devices below the switch that the vector does not allow"
        )
    if not refuses:
        return f"egress control at {above.address} sends its requests to {peers.named(others)} up to the root complex"
    translated = access.passes_translated(above) and access.asks_for_translations(function)
    return (
        f"egress control at {above.address} refuses its {'untranslated ' * translated}requests to {peers.named(others)}"
    )
