"""The terminal summary of a run: its limit, the flows, the links, the parts of the time. At most 100 columns."""

from __future__ import annotations

import os
import re
from io import StringIO
from textwrap import fill
from typing import TextIO

from rich.console import Console
from rich.text import Text

from tlplab import quantities as q
from tlplab.result import (
    Detected,
    DeviceTranslations,
    Direction,
    Document,
    Flow,
    Frames,
    HostUse,
    Link,
    Measured,
    Network,
    Outage,
    Struck,
    TranslationFault,
)
from tlplab.sheet import NOTHING, Column, Sheet

WIDTH = 100
# Longer tables are cut, and say so: the report and the JSON hold everything.
FLOWS_SHOWN = 16
DIRECTIONS_SHOWN = 24
ERRORS_SHOWN = 16
OUTAGES_SHOWN = 16
CAUSES_SHOWN = 5
FIGURE_AND_UNIT = re.compile(r"(?<=\d) (?=%|[TGMk]?b/s|[fpnµm]?s\b|[KMGT]?i?B\b)")
MICROSECONDS = re.compile(r"(?<=\d )us\b")
ONE = re.compile(r"(?<![\d.,])1 transactions\b")
# A cause below this share of a flow's latency is not worth a line.
SMALLEST_SHARE = 0.005


def console_for(stream: TextIO) -> Console:
    """A console of at most 100 columns on `stream`: coloured on a terminal, plain anywhere else."""
    probe = Console(file=stream, highlight=False)
    terminal = probe.is_terminal and "COLUMNS" not in os.environ
    width = min(WIDTH, probe.width) if terminal else min(WIDTH, int(os.environ.get("COLUMNS") or WIDTH))
    return Console(file=stream, width=max(width, 60), highlight=False, emoji=False)


def show(result: Document, stream: TextIO) -> None:
    """Prints the summary of `result`."""
    console = console_for(stream)
    show_headline(console, result)
    show_flows(console, result["flows"])
    show_measured(console, result["measured"])
    show_networks(console, result["networks"])
    show_frames(console, result["frames"])
    show_links(console, result["links"])
    show_host(console, result["host"])
    show_translations(console, result["translations"])
    show_errors(console, result["errors"])
    show_faults(console, result["faults"])
    show_outages(console, result["outages"])
    show_attribution(console, result)


def show_headline(console: Console, result: Document) -> None:
    """The title, the sentence that names the limit, the evidence and the next limit."""
    span = q.time_fs(result["end_fs"] - result["start_fs"])
    run = f"{span} simulated ({result['stop_text']}), seed {result['seed']}, trace {result['trace_hash']}"
    console.print(Text(result["title"], style="bold"))
    console.print(Text(wrapped(console, run), style="dim"))
    console.print()
    verdict = result["verdict"]
    console.print(Text(wrapped(console, spoken(verdict["sentence"])), style="bold cyan"))
    for line in verdict["limit"]["evidence"]:
        print_hanging(console, "•", spoken(line))
    if verdict["next"] is not None:
        print_hanging(console, "→", spoken(f"Next: {verdict['next']['text']}"))
    console.print()


def print_hanging(console: Console, mark: str, line: str) -> None:
    """Prints a line behind a mark; the next line is indented as far as its beginning."""
    console.print(Text(wrapped(console, line, f" {mark} ", "   ")))


def spoken(sentence: str) -> str:
    """A sentence of the verdict, in the forms of the tables: µs, and one transaction in the singular."""
    return ONE.sub("1 transaction", MICROSECONDS.sub("µs", sentence))


def wrapped(console: Console, line: str, first: str = "", rest: str = "") -> str:
    """`line` in lines that fit, none of which begins with the unit of a figure."""
    kept = FIGURE_AND_UNIT.sub("\u00a0", line)
    return fill(kept, console.width, initial_indent=first, subsequent_indent=rest).replace("\u00a0", " ")


def show_flows(console: Console, flows: list[Flow]) -> None:
    """A line for each flow: throughput and latency."""
    shown = Sheet("Flows", [
        Column("flow", name=True), Column("operation", name=True), Column("trans-\nactions"),
        Column("throughput", style="bold"), *(Column(heading) for heading in ("min", "p50", "p99", "max")),
    ])  # fmt: skip
    busy = [flow for flow in flows if flow["transactions"] or any(flow["errors"].values())]
    for flow in busy[:FLOWS_SHOWN]:
        latency = flow["latency_ns"]
        times = [NOTHING] * 4 if latency is None else [q.time(latency[k]) for k in ("min", "p50", "p99", "max")]
        operation = f"{flow['op']} {arrow(flow)} {flow['target']}"
        shown.add(flow["name"], operation, q.count(flow["transactions"]), q.rate(flow["payload_bps"]), *times)
    if shown.rows:
        shown.print(console)
    if len(flows) > len(busy):
        idle = ", ".join(flow["name"] for flow in flows if flow not in busy)
        console.print(Text(wrapped(console, f"no transactions: {idle}"), style="dim"))
    more(console, len(busy) - FLOWS_SHOWN, "flows")
    for flow in flows:
        failed = ", ".join(f"{q.count(n)} {ERRORS[kind]}" for kind, n in flow["errors"].items() if n)
        if failed:
            console.print(Text(f"{flow['name']}: {failed}", style="bold red"))
    console.print()


def show_measured(console: Console, measured: list[Measured]) -> None:
    """A line for each program of the host that measured itself."""
    for one in measured:
        took = q.time_fs(one["to_fs"] - one["from_fs"])
        console.print(f"{one['name']}: {q.count(one['bytes'])} B in {took}, {q.rate(one['payload_bps'])}")
        calls = one["calls"]
        if calls is not None:
            mean, most = (q.time_fs(round(calls[which] * 1e6)) for which in ("mean_ns", "max_ns"))
            what = f"{q.count(calls['count'])} calls of {mean} on average, {most} at most"
            console.print(f"{one['name']}: {what}; {q.count(calls['interrupts'])} interrupts")
    if measured:
        console.print()


def show_networks(console: Console, networks: list[Network]) -> None:
    """A line for each direction of the Ethernet link behind a card, and how long its software's reads take."""
    if not networks:
        return
    shown = Sheet("Ethernet behind cards", [
        Column("direction", name=True), Column("TLPs"), Column("payload", style="bold"), Column("busy %"),
        Column("lost"), Column("payload\nlost"),
    ])  # fmt: skip
    for network in networks:
        name = network["device"]
        ways = {f"{name} → software": network["to_software"], f"software → {name}": network["to_card"]}
        for heading, way in ways.items():
            shown.add(
                heading, q.count(way["datagrams"]), q.rate(way["payload_bps"]), q.percent(way["busy"]),
                q.count(way["dropped"]), q.size(way["dropped_bytes"]) if way["dropped"] else NOTHING,
            )  # fmt: skip
    shown.print(console)
    for network in networks:
        if (latency := network["latency_ns"]) is not None:
            times = ", ".join(f"{key} {q.time(latency[key])}" for key in ("min", "p50", "p99", "max"))
            console.print(f"{q.count(network['reads'])} reads by the software of {network['device']}: {times}")
        lost = {"full sockets": network["socket_drops"], "reads failed": network["failed_reads"]}
        failed = ", ".join(f"{what}: {q.count(n)}" for what, n in lost.items() if n)
        if failed:
            console.print(Text(f"{network['device']}: {failed}", style="bold red"))
    console.print()


def show_frames(console: Console, frames: list[Frames]) -> None:
    """A line for each Ethernet controller that has sent or received."""
    for one in frames:
        lost = {"lost, no room": one["missed"], "too long": one["too_long"]}
        counts = [f"{q.count(one[way])} frames {way}" for way in ("sent", "received") if one[way]]
        line = Text(f"{one['device']}: {', '.join(counts) or 'no frames sent or received'}")
        for why, count in lost.items():
            if count:
                line.append(f", {q.count(count)} {why}", style="bold red")
        console.print(line)
    if frames:
        console.print()


ERRORS = {
    "ur": "unsupported requests",
    "ca": "completer aborts",
    "timeout": "completion timeouts",
    "poisoned": "poisoned completions",
    "lost": "lost",
    "malformed": "malformed completions",
}


def arrow(flow: Flow) -> str:
    """The direction of the payload."""
    return {"read": "←", "write": "→"}.get(flow["op"], "↔")


def show_links(console: Console, links: list[Link]) -> None:
    """A line for each direction of each link: the parts of its time, and its stalls. A bus has one for all its ways, then theirs."""
    rows = [(link, name_of(way), way) for link in links if link["bus"] is None for way in link["directions"]]
    for bus in dict.fromkeys(link["upper"] for link in links if link["bus"] is not None):
        ways = [link for link in links if link["bus"] is not None and link["upper"] == bus]
        rows.append((ways[0], f"{bus}, total", together(ways)))
        rows += [(link, name_of(way), way) for link in ways for way in link["directions"]]
    hidden = len(rows) - DIRECTIONS_SHOWN
    if hidden > 0:
        rows = sorted(rows, key=lambda row: row[2]["utilization"]["idle"])[:DIRECTIONS_SHOWN]
    shown = Sheet("Links, per cent of each direction's time", [
        Column("link", name=True, fold=False), Column("direction", name=True), Column("payload", style="bold"),
        *(Column(heading) for heading in ("over-\nhead", "DLLP", "ord.\nsets", "replay", "idle")),
        *(Column(heading) for heading in ("re-\nplays", "time-\nouts")),
        *(Column(heading, style="yellow") for heading in ("credit\nstall", "tag\nstall", "buffer\nstall")),
    ])  # fmt: skip
    previous = None
    for link, name, direction in rows:
        whose = link["bus"], link["name"] if link["bus"] is None else link["upper"]
        shown.add(kind_of(link) if whose != previous else "", name, *direction_cells(direction))
        previous = whose
    shown.print(console)
    more(console, hidden, "directions, less busy")
    console.print()


def show_errors(console: Console, errors: list[Detected]) -> None:
    """A line for each error of each port, in the order of their first times."""
    if not errors:
        return
    shown = Sheet("Errors detected", [
        Column("error", name=True, fold=False), Column("port", name=True), Column("count"), Column("first at"),
        Column("reported as", name=True), Column("messages"),
    ])  # fmt: skip
    for error in errors[:ERRORS_SHOWN]:
        shown.add(error["name"], error["port"], q.count(error["count"]), q.time_fs(error["first_fs"]),
                  error["message"] or "–", q.count(error["messages"]))  # fmt: skip
    shown.print(console)
    more(console, len(errors) - ERRORS_SHOWN, "errors")
    console.print()


def show_host(console: Console, host: HostUse | None) -> None:
    """Print the hits and misses of devices' requests in the host's cache and IO-TLB."""
    if host is None:
        return
    shown = Sheet("Host cache and IO-TLB", [
        Column("in", name=True), Column("hits"), Column("misses"), Column("hits %"),
    ])  # fmt: skip
    if (cache := host["cache"]) is not None:
        hits, misses = q.count(cache["hits"]), q.count(cache["misses"])
        shown.add("lines of the cache", hits, misses, q.percent(cache["hit_rate"]))
    if (iommu := host["iommu"]) is not None:
        hits, walks = q.count(iommu["hits"]), q.count(iommu["walks"])
        shown.add("pages of the IO-TLB", hits, walks, q.percent(iommu["hit_rate"]))
    shown.print(console)
    console.print()
    if iommu is not None:
        show_refused(console, iommu["faults"])


REASONS = {
    "not-mapped": "not mapped",
    "no-read": "not readable",
    "no-write": "not writable",
    "translated": "translated requests blocked",
    "translation-request": "translation requests blocked",
}


def show_refused(console: Console, faults: list[TranslationFault]) -> None:
    """A line for each function and reason for which the IOMMU refused accesses."""
    if not faults:
        return
    shown = Sheet("Refused by the IOMMU", [
        Column("device", name=True), Column("reason", name=True, fold=False), Column("count"), Column("first at"),
        Column("access", name=True, fold=False), Column("address"),
    ])  # fmt: skip
    for fault in faults[:ERRORS_SHOWN]:
        shown.add(fault["device"], REASONS.get(fault["reason"], fault["reason"]), q.count(fault["count"]),
                  q.time_fs(fault["first_fs"]), fault["operation"], fault["address"])  # fmt: skip
    shown.print(console)
    more(console, len(faults) - ERRORS_SHOWN, "reasons")
    console.print()


def show_translations(console: Console, devices: list[DeviceTranslations]) -> None:
    """A line for each device that keeps translations."""
    if not devices:
        return
    shown = Sheet("Cached translations of devices", [
        Column("device", name=True), Column("hits"), Column("waited"), Column("requested"), Column("denied"),
        Column("evicted"), Column("invalidated"),
    ])  # fmt: skip
    for device in devices:
        shown.add(device["device"], q.count(device["hits"]), q.count(device["waited"]), q.count(device["asked"]), q.count(device["denied"]),
                  q.count(device["evicted"]), q.count(device["invalidated"]))  # fmt: skip
    shown.print(console)
    console.print()


def show_faults(console: Console, faults: list[Struck]) -> None:
    """A line for each fault of TLPs, DLLPs, flits or bits, with the number of hits: a fault without a hit shows nothing."""
    if not faults:
        return
    shown = Sheet("Faults", [
        Column("below", name=True), Column("direction", name=True), Column("damage", name=True), Column("of", name=True),
        Column("from"), Column("hit"),
    ])  # fmt: skip
    for fault in faults:
        of = fault["of"] or NOTHING
        struck = q.count(fault["struck"]) if fault["struck"] else "0"
        shown.add(fault["link"], fault["direction"], fault["damage"], of, q.count(fault["first"]), struck)
    shown.print(console)
    console.print()


def show_outages(console: Console, outages: list[Outage]) -> None:
    """A line for each time that a link went down: when software heard, when it was up, when the devices below could be used again."""
    if not outages:
        return
    shown = Sheet("Outages of links", [
        Column("below", name=True), Column("down at"), Column("noticed at"), Column("up at"), Column("configured at"),
    ])  # fmt: skip
    for outage in outages[:OUTAGES_SHOWN]:
        times = outage["down_fs"], outage["heard_fs"], outage["up_fs"], outage["configured_fs"]
        shown.add(outage["link"], *(NOTHING if time is None else q.time_fs(time) for time in times))
    shown.print(console)
    more(console, len(outages) - OUTAGES_SHOWN, "outages of links")
    console.print()


def kind_of(link: Link) -> str:
    """`gen4 x4`, or `PCI-X 133 64b`."""
    if link["bus"] is not None:
        return link["bus"]
    flit = " flit" if link["mode"] == "flit" else ""
    return f"gen{link['generation']} x{link['width']}{flit}"


def name_of(direction: Direction) -> str:
    """`sw0 → host.rp0`."""
    return f"{direction['from']} → {direction['to']}"


def together(ways: list[Link]) -> Direction:
    """All ways of a bus, which carries one transaction at a time: their shares add up."""
    directions = [direction for way in ways for direction in way["directions"]]
    uses = [direction["utilization"] for direction in directions]
    payload, overhead = (sum(use[part] for use in uses) for part in ("payload", "overhead"))
    idle = max(0.0, 1 - payload - overhead)
    return {
        **directions[0],
        "utilization": {
            "payload": payload, "overhead": overhead, "dllp": 0.0, "ordered_sets": 0.0, "replay": 0.0, "idle": idle,
        },
        "replayed": 0,
        "replay_timeouts": 0,
        "stalls": {"credits": 0.0, "tags": 0.0, "replay_buffer": 0.0},
    }  # fmt: skip


def direction_cells(direction: Direction) -> list[str]:
    """The figures of one direction, in the order of the headings."""
    share, stalls = direction["utilization"], direction["stalls"]
    return [
        q.percent(share["payload"]),
        q.percent(share["overhead"]),
        q.percent(share["dllp"]),
        q.percent(share["ordered_sets"]),
        q.percent(share["replay"]),
        q.percent(share["idle"]),
        q.count(direction["replayed"]),
        q.count(direction["replay_timeouts"]),
        q.percent(stalls["credits"]),
        q.percent(stalls["tags"]),
        q.percent(stalls["replay_buffer"]),
    ]


def show_attribution(console: Console, result: Document) -> None:
    """For each flow, the parts of its latency, largest first."""
    shown = Sheet("Where the time went, on each transaction's critical path", [
        Column("flow", name=True), Column("share %"), Column("each"), Column("cause", name=True, fold=False),
        Column("at", name=True), Column("behind", name=True),
    ])  # fmt: skip
    for flow in result["flows"][:FLOWS_SHOWN]:
        of = [(flow["name"], flow["transactions"], flow["attribution"])]
        of += [
            (f"{flow['name']}, {ERRORS[one['ending']]}", one["count"], one["attribution"]) for one in flow["failures"]
        ]
        for name, transactions, attribution in of:
            causes = sorted(attribution, key=lambda part: -part["share"])
            worth = [part for part in causes[:CAUSES_SHOWN] if part["share"] >= SMALLEST_SHARE]
            for number, part in enumerate(worth):
                each = part["total_ns"] / max(transactions, 1)
                behind = f"{part['others']} other flows" if "others" in part else part["behind"] or ""
                shown.add(
                    name if number == 0 else "", q.percent(part["share"]), q.time(each),
                    result["causes"][part["cause"]], part["place"], behind,
                    ends_section=number == len(worth) - 1,
                )  # fmt: skip
    if shown.rows:
        shown.print(console)
        console.print()


def more(console: Console, hidden: int, what: str) -> None:
    """Says that a table was cut."""
    if hidden > 0:
        console.print(Text(f"… and {hidden} more {what}: --report or --json shows them all", style="dim"))


def as_text(result: Document) -> str:
    """The summary as plain text, for a file."""
    stream = StringIO()
    show(result, stream)
    return "".join(line.rstrip() + "\n" for line in stream.getvalue().splitlines())
