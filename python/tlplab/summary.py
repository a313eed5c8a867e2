"""The terminal summary of a run: what limits it, the flows, the links, where the time went. At most 100 columns."""

from __future__ import annotations

import os
import re
from io import StringIO
from textwrap import fill
from typing import TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tlplab import quantities as q
from tlplab.result import Direction, Flow, Link, Result

WIDTH = 100
# Longer tables are cut, and say so: the report and the JSON hold everything.
FLOWS_SHOWN = 16
DIRECTIONS_SHOWN = 24
CAUSES_SHOWN = 5
FIGURE_AND_UNIT = re.compile(r"(?<=\d) (?=%|[TGMk]?b/s|[fpnµm]?s\b|[KMGT]?i?B\b)")
# A cause below this share of a flow's latency is not worth a line.
SMALLEST_SHARE = 0.005


def console_for(stream: TextIO) -> Console:
    """A console of at most 100 columns on `stream`: coloured on a terminal, plain anywhere else."""
    probe = Console(file=stream, highlight=False)
    terminal = probe.is_terminal and "COLUMNS" not in os.environ
    width = min(WIDTH, probe.width) if terminal else min(WIDTH, int(os.environ.get("COLUMNS") or WIDTH))
    return Console(file=stream, width=max(width, 60), highlight=False, emoji=False)


def show(result: Result, stream: TextIO) -> None:
    """Prints the summary of `result`."""
    console = console_for(stream)
    show_headline(console, result)
    show_flows(console, result["flows"])
    show_links(console, result["links"])
    show_attribution(console, result)


def show_headline(console: Console, result: Result) -> None:
    """The title, the sentence that names the limit, the evidence and what would limit next."""
    span = q.time_fs(result["end_fs"] - result["start_fs"])
    run = f"{span} simulated ({result['stop_reason']}), seed {result['seed']}, trace {result['trace_hash']}"
    console.print(Text(result["title"], style="bold"))
    console.print(Text(run, style="dim"))
    console.print()
    verdict = result["verdict"]
    console.print(Text(wrapped(console, verdict["sentence"]), style="bold cyan"))
    for line in verdict["limit"]["evidence"]:
        print_hanging(console, "•", line)
    if verdict["next"] is not None:
        print_hanging(console, "→", f"Next: {verdict['next']['text']}")
    console.print()


def print_hanging(console: Console, mark: str, line: str) -> None:
    """Prints a line behind a mark; what follows in the next line is indented as far as its beginning."""
    console.print(Text(wrapped(console, line, f" {mark} ", "   ")))


def wrapped(console: Console, line: str, first: str = "", rest: str = "") -> str:
    """`line` in lines that fit, none of which begins with the unit of a figure."""
    kept = FIGURE_AND_UNIT.sub("\u00a0", line)
    return fill(kept, console.width, initial_indent=first, subsequent_indent=rest).replace("\u00a0", " ")


def table(title: str) -> Table:
    """A table in the style of all the others."""
    return Table(
        title=Text(title, style="bold"), title_justify="left", box=SIMPLE_HEAD, padding=(0, 1),
        pad_edge=False, show_edge=False, collapse_padding=True, header_style="dim",
    )  # fmt: skip


def column(to: Table, heading: str, *, left: bool = False, style: str = "", fold: bool = False, least: int = 0) -> None:
    """Adds a column; figures stand right, names left, and only names may be broken over lines."""
    to.add_column(
        heading if left else Text(heading, justify="right"), justify="left" if left else "right", style=style,
        no_wrap=not fold, overflow="fold", min_width=least, vertical="top",
    )  # fmt: skip


def show_flows(console: Console, flows: list[Flow]) -> None:
    """A line for each flow: throughput and latency."""
    shown = table("Flows")
    column(shown, "flow", left=True, fold=True)
    column(shown, "operation", left=True, fold=True)
    for heading in ("transactions", "throughput", "min", "p50", "p99", "max"):
        column(shown, heading, style="bold" if heading == "throughput" else "")
    busy = [flow for flow in flows if flow["transactions"] or any(flow["errors"].values())]
    for flow in busy[:FLOWS_SHOWN]:
        latency = flow["latency_ns"]
        times = ["–"] * 4 if latency is None else [q.time(latency[k]) for k in ("min", "p50", "p99", "max")]
        operation = f"{flow['op']} {arrow(flow)} {flow['target']}"
        shown.add_row(
            Text(flow["name"]), Text(operation), q.count(flow["transactions"]), q.rate(flow["payload_bps"]),
            *times,
        )  # fmt: skip
    console.print(shown)
    if len(flows) > len(busy):
        idle = ", ".join(flow["name"] for flow in flows if flow not in busy)
        console.print(Text(wrapped(console, f"nothing from {idle}"), style="dim"))
    more(console, len(busy) - FLOWS_SHOWN, "flows")
    for flow in flows:
        failed = ", ".join(f"{q.count(n)} {ERRORS.get(kind, kind)}" for kind, n in flow["errors"].items() if n)
        if failed:
            console.print(Text(f"{flow['name']}: {failed}", style="bold red"))
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
    """Which way the payload goes."""
    return {"read": "←", "write": "→"}.get(flow["op"], "↔")


def show_links(console: Console, links: list[Link]) -> None:
    """A line for each direction of each link: what its time went to, and what held it up."""
    rows = [(link, direction) for link in links for direction in link["directions"]]
    replaying = any(direction["utilization"]["replay"] for _, direction in rows)
    hidden = len(rows) - DIRECTIONS_SHOWN
    if hidden > 0:
        rows = sorted(rows, key=lambda row: row[1]["utilization"]["idle"])[:DIRECTIONS_SHOWN]
    shown = table("Links, per cent of each direction's time")
    column(shown, "link", left=True)
    column(shown, "direction", left=True, fold=True, least=12)
    column(shown, "payload", style="bold")
    for heading in ("over-\nhead", "DLLP", "ordered\nsets", *(["replay"] if replaying else []), "idle"):
        column(shown, heading)
    for heading in ("re-\nplays", "time-\nouts"):
        column(shown, heading)
    for heading in ("credit\nstall", "tag\nstall", "buffer\nstall"):
        column(shown, heading, style="yellow")
    previous = ""
    for link, direction in rows:
        shown.add_row(kind_of(link) if link["name"] != previous else "", *direction_cells(direction, replaying))
        previous = link["name"]
    console.print(shown)
    more(console, hidden, "directions, less busy")
    console.print()


def kind_of(link: Link) -> str:
    """`gen4 x4`."""
    flit = " flit" if link["mode"] == "flit" else ""
    return f"gen{link['generation']} x{link['width']}{flit}"


def direction_cells(direction: Direction, replaying: bool) -> list[str | Text]:
    """The cells of one direction, in the order of the headings."""
    share, stalls = direction["utilization"], direction["stalls"]
    return [
        Text(f"{direction['from']} → {direction['to']}"),
        q.percent(share["payload"]),
        q.percent(share["overhead"]),
        q.percent(share["dllp"]),
        q.percent(share["ordered_sets"]),
        *([q.percent(share["replay"])] if replaying else []),
        q.percent(share["idle"]),
        q.count(direction["replayed"]),
        q.count(direction["replay_timeouts"]),
        q.percent(stalls["credits"]),
        q.percent(stalls["tags"]),
        q.percent(stalls["replay_buffer"]),
    ]


def show_attribution(console: Console, result: Result) -> None:
    """For each flow, what its latency consists of, largest first."""
    shown = table("Where the time went, on each transaction's critical path")
    column(shown, "flow", left=True, fold=True)
    column(shown, "share %")
    column(shown, "each")
    column(shown, "cause", left=True)
    column(shown, "at", left=True, fold=True)
    column(shown, "behind", left=True, fold=True)
    for flow in result["flows"][:FLOWS_SHOWN]:
        causes = sorted(flow["attribution"], key=lambda part: -part["share"])
        worth = [part for part in causes[:CAUSES_SHOWN] if part["share"] >= SMALLEST_SHARE]
        for number, part in enumerate(worth):
            each = part["total_ns"] / max(flow["transactions"], 1)
            shown.add_row(
                Text(flow["name"] if number == 0 else ""), q.percent(part["share"]), q.time(each),
                Text(result["causes"][part["cause"]]), Text(part["place"]), Text(part["behind"] or ""),
                end_section=number == len(worth) - 1,
            )  # fmt: skip
    if shown.row_count:
        console.print(shown)
        console.print()


def more(console: Console, hidden: int, what: str) -> None:
    """Says that a table was cut."""
    if hidden > 0:
        console.print(Text(f"… and {hidden} more {what}: --report or --json shows them all", style="dim"))


def as_text(result: Result) -> str:
    """The summary as plain text, for a file."""
    stream = StringIO()
    show(result, stream)
    return "".join(line.rstrip() + "\n" for line in stream.getvalue().splitlines())
