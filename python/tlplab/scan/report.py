"""The printed report: the tree, a table of the devices with links, a paragraph for each, and the unknown facts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tlplab.scan import peers
from tlplab.scan.facts import DOWNSTREAM, Address, Function
from tlplab.scan.findings import SHARED
from tlplab.scan.state import EMPTY, called, state

if TYPE_CHECKING:
    from tlplab.scan.findings import Uplink, Verdict
    from tlplab.scan.peers import Peers
    from tlplab.scan.scanned import Scan
    from tlplab.scan.throughput import Rates
    from tlplab.scan.tree import Link, Tree

NARROWEST = 40
SHORTEST = 8
NOT_KNOWN = "?"
NOTHING = "–"


def lines(scan: Scan, width: int, *, everything: bool) -> Iterator[str]:
    """The whole report in lines of at most `width` columns; `everything` shows functions without a link, too."""
    width = max(width, NARROWEST)
    yield from textwrap.wrap(scan.title(), width)
    yield ""
    yield from tree(scan.tree, width, everything=everything)
    if scan.verdicts:
        yield ""
        yield from table(scan.verdicts, width)
        yield ""
        for verdict in scan.verdicts:
            yield from paragraph(verdict, width)
    for uplink in (one for one in scan.uplinks if one.ratio is None or one.ratio > SHARED):
        yield from shared(uplink, width)
    for one in scan.peers:
        yield from exchanged(one, width)
    remarks = scan.remarks()
    if remarks:
        yield ""
        for remark in remarks:
            yield from textwrap.wrap(remark, width)


def tree(tree: Tree, width: int, *, everything: bool) -> Iterator[str]:
    """The functions as a tree, by root buses."""
    shown = {function.address for function in tree.functions} if everything else interesting(tree)
    buses: dict[tuple[int, int], list[Function]] = {}
    left = 0
    for function in tree.tops():
        buses.setdefault((function.address.domain, function.address.bus), []).append(function)
    astray = {function.address for function in tree.astray}
    for (domain, bus), tops in buses.items():
        kept = [function for function in tops if function.address in shown]
        left += len(tops) - len(kept)
        if not kept:
            continue
        place = "below an unknown bridge" if tops[0].address in astray else "root bus"
        yield clip(f"{place} {domain:04x}:{bus:02x}", width)
        yield from branches(tree, kept, "", width)
    if left:
        what = f"{left} function{'s' * (left != 1)} of the root complex without links or buses: --all shows them"
        yield from textwrap.wrap(f"({what})", width)


def interesting(tree: Tree) -> set[Address]:
    """The functions with a link or buses, and their parents."""
    found: set[Address] = set()
    for function in tree.functions:
        if function.address in tree.parents or function.is_bridge or function.address in tree.links:
            found.add(function.address)
    return found or {function.address for function in tree.functions}


def branches(tree: Tree, tops: list[Function], indent: str, width: int) -> Iterator[str]:
    """Functions on a bus, each with those below it."""
    waiting = [(function, indent, number + 1 == len(tops)) for number, function in enumerate(tops)][::-1]
    while waiting:
        function, guide, last = waiting.pop()
        branch = f"{guide}{'└─' if last else '├─'} "
        yield clip(branch + label(tree, function, width - len(branch)), width)
        children = tree.below.get(function.address, [])
        deeper = guide + ("   " if last else "│  ")
        waiting.extend([(child, deeper, number + 1 == len(children)) for number, child in enumerate(children)][::-1])


def label(tree: Tree, function: Function, room: int) -> str:
    """A function in a line: the present state of its link, its limits, its name; if the room is short, the end of the name goes first."""
    parts = [str(function.address)]
    link = tree.links.get(function.address)
    if function.physical_function is not None:
        parts.append(f"virtual function of {function.physical_function}")
    elif link is not None:
        parts.append(link_words(link))
    elif function.port is not None:
        parts.append(function.port)
        if function.port in DOWNSTREAM and function.width == 0:
            parts.append("(nothing connected)")
    places = []
    if function.numa_node is not None and function.numa_node >= 0:
        places.append(f"node {function.numa_node}")
    if function.iommu_group is not None:
        places.append(f"IOMMU group {function.iommu_group}")
    end = [f"[{', '.join(places)}]"] if places else []
    left = room - sum(len(part) + 2 for part in [*parts, *end])
    return "  ".join(part for part in [*parts, clip(who(function), max(left, SHORTEST)), *end] if part)


def link_words(link: Link) -> str:
    """`gen3 x8 of gen3 x16, degraded`"""
    how = state(link)
    if how.name == EMPTY:
        return "link down"
    now, possible = called(link.speed, link.width), called(link.speed_possible, link.width_possible)
    return now if now == possible else f"{now} of {possible}, {how.name}"


def who(function: Function) -> str:
    """Its name, or another identification."""
    return function.name or " ".join(part for part in (function.class_name, function.ids()) if part)


def clip(line: str, width: int) -> str:
    """A line that fits."""
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


HEADINGS = ("device", "link", "maximum", "", "MPS", "MRRS", "write", "read", "write", "read")


def table(verdicts: list[Verdict], width: int) -> Iterator[str]:
    """A row for each device: its present rate, and that with the best settings."""
    rows = [row(verdict) for verdict in verdicts]
    widths = [max(len(cell) for cell in column) for column in zip(HEADINGS, *rows, strict=True)]
    kept = list(range(len(HEADINGS)))
    for column in (9, 8, 5, 4, 2):
        if sum(widths[n] + 2 for n in kept) - 2 > width:
            kept.remove(column)
    now = sum(widths[n] + 2 for n in kept if n < 6)
    groups = " " * now + "now, Gb/s".ljust(sum(widths[n] + 2 for n in kept if n in (6, 7)))
    if 8 in kept:
        groups += "possible"
    yield clip(groups.rstrip(), width)
    for cells in (HEADINGS, *rows):
        yield clip(
            "  ".join(cells[n].rjust(widths[n]) if n > 3 else cells[n].ljust(widths[n]) for n in kept).rstrip(), width
        )
        if cells is HEADINGS:
            yield "─" * min(sum(widths[n] + 2 for n in kept) - 2, width)


def row(verdict: Verdict) -> tuple[str, ...]:
    """The cells of a device."""
    function, link = verdict.function, verdict.link
    now = called(link.speed, link.width) if link else NOTHING
    can = called(link.speed_possible, link.width_possible) if link else NOTHING
    how = verdict.state.name if verdict.state else ""
    sizes = (NOT_KNOWN if size is None else str(size) for size in (function.mps, function.mrrs))
    return (str(function.address), now, can, how, *sizes, *cells(verdict.now), *cells(verdict.possible))


def cells(rates: Rates) -> tuple[str, str]:
    """Write and read, Gb/s."""
    write, read = (NOT_KNOWN if rate is None else f"{rate / 1e9:.1f}" for rate in (rates.write, rates.read))
    return write, read


def paragraph(verdict: Verdict, width: int) -> Iterator[str]:
    """A device's limit, and the possible gains."""
    yield from hanging(f"{verdict.function.address}  {who(verdict.function)}: {verdict.limit}.", "", width)
    for finding in verdict.findings:
        gain = "" if finding.gain is None else gains(verdict.now, finding.gain)
        yield from hanging(f"- {finding.text}{gain}.", "  ", width)
        for command in finding.commands:
            yield f"    {command}"


def gains(now: Rates, then: Rates) -> str:
    """`; writes 26.1 → 52.3 Gb/s`"""
    told = []
    for name, before, after in (("writes", now.write, then.write), ("reads", now.read, then.read)):
        if before and after and after > before * 1.001:
            told.append(f"{name} {before / 1e9:.1f} → {after / 1e9:.1f} Gb/s")
    return f" ({', '.join(told)})" if told else ""


def shared(uplink: Uplink, width: int) -> Iterator[str]:
    """A link that devices share."""
    yield from hanging(f"{uplink.upper.address}  {who(uplink.upper)}: {uplink.text}.", "", width)


def exchanged(one: Peers, width: int) -> Iterator[str]:
    """The rates between devices, in lines."""
    (a, b), count = one.pairs[0], len(one.pairs)
    who = f"{a.address} ↔ {b.address}" + f" and {count - 1} similar pairs" * (count > 1)
    yield from hanging(f"{who}: {peers.words(one)}.", "", width)
    for command in one.commands():
        yield f"    {command}"


def hanging(text: str, indent: str, width: int) -> list[str]:
    """A paragraph whose further lines are indented. It has single spaces; textwrap, which takes any text, needs three times as long."""
    wrapped: list[str] = []
    line, further = indent, indent + "  "
    for word in text.split(" "):
        if len(further) + len(word) > width:
            return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=further, break_on_hyphens=False)
        if line == indent:
            line += word
        elif len(line) + 1 + len(word) <= width:
            line += " " + word
        else:
            wrapped.append(line)
            line = further + word
    return [*wrapped, line]
