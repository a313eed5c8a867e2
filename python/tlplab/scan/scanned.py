"""A machine that was read: its functions, the findings, and the unknown facts."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tlplab.scan import findings, peers, sysfs, text
from tlplab.scan.facts import DOWNSTREAM, Function, as_document
from tlplab.scan.findings import Uplink, Verdict
from tlplab.scan.peers import Peers
from tlplab.scan.throughput import Throughput
from tlplab.scan.tree import Tree

SCHEMA = "tlplab/scan/1"


@dataclass
class Scan:
    """A machine, judged."""

    source: str
    """The source of the scan."""
    tree: Tree
    verdicts: list[Verdict]
    uplinks: list[Uplink]
    peers: list[Peers] = field(default_factory=list)
    """Devices that exchange data with their like, by pairs."""
    lines: Counter[str] = field(default_factory=Counter)
    """Of a dump, how many lines there are of each kind."""
    outside: list[str] = field(default_factory=list)
    """Of a dump, the lines before the first function."""

    @property
    def functions(self) -> list[Function]:
        """All functions."""
        return self.tree.functions

    def title(self) -> str:
        """The number of functions and devices, and the source."""
        count, devices = len(self.functions), len(self.verdicts)
        return f"{count} function{'s' * (count != 1)}, {devices} of them device{'s' * (devices != 1)} with a link, from {self.source}"

    def remarks(self) -> list[str]:
        """The facts that the source lacks, and a remedy."""
        hidden = [one for one in self.functions if not one.capabilities_known]
        told = []
        if hidden:
            told.append(
                f"The capabilities of {len(hidden)} of {len(self.functions)} functions are unknown, and all findings that depend on them. "
                + self.remedy()
            )
        linked = [verdict.function for verdict in self.verdicts]
        short = [one for one in linked if one.capabilities_known and not one.extended_known]
        if short:
            told.append(f"The extended capabilities (access control, errors) of {len(short)} devices are unknown.")
        if self.tree.astray:
            told.append(f"The bridge above {len(self.tree.astray)} functions is unknown.")
        if self.lines["unread"]:
            count = self.lines["unread"]
            told.append(
                f"{count} line{'s' * (count != 1)} that tlplab cannot interpret {'is' if count == 1 else 'are'} in --json as `unread`."
            )
        alone = [
            one
            for one in self.functions
            if one.port in DOWNSTREAM and one.link_active and not self.tree.below.get(one.address)
        ]
        if alone:
            told.append(
                f"{len(alone)} port{'s' * (len(alone) != 1)} ({alone[0].address}{' and others' * (len(alone) > 1)}) with a link that is up "
                "and no function below: the source is incomplete or hides functions."
            )
        if not self.verdicts:
            told.append("No device reports a link, as in a virtual machine; rates are unknown.")
        return told

    def remedy(self) -> str:
        """The way to learn more."""
        if self.source.startswith(str(sysfs.HERE)):
            return "Scan as root: sudo tlplab scan"
        return "Make the dump as root: sudo lspci -vvv -nn -xxxx"

    def document(self) -> dict[str, Any]:
        """Everything, as JSON has it. Null is unknown."""
        parents = self.tree.parents
        functions = [
            {**as_document(one), "parent": str(parents[one.address]) if one.address in parents else None}
            for one in self.functions
        ]
        return {
            "schema": SCHEMA,
            "source": self.source,
            "functions": functions,
            "devices": [device_document(verdict) for verdict in self.verdicts],
            "shared": [
                {"port": str(one.upper.address), "links_below": one.devices, "ratio": one.ratio, "text": one.text}
                for one in self.uplinks
            ],
            "peers": [peers_document(one) for one in self.peers],
            "lines": dict(self.lines),
            "outside": self.outside,
            "remarks": self.remarks(),
        }


def device_document(verdict: Verdict) -> dict[str, Any]:
    """A device as JSON has it; rates are in bits per second."""
    link, state = verdict.link, verdict.state
    ends = None
    if link is not None and state is not None:
        ends = {
            "upper": None if link.upper is None else str(link.upper.address), "lower": str(link.lower.address),
            "speed": link.speed, "width": link.width, "speed_possible": link.speed_possible,
            "width_possible": link.width_possible, "both_ends_known": link.ends_known, "state": state.name, "why": state.why,
        }  # fmt: skip
    return {
        "function": str(verdict.function.address),
        "link": ends,
        "now": asdict(verdict.now),
        "possible": asdict(verdict.possible),
        "limit": verdict.limit,
        "findings": [asdict(finding) for finding in verdict.findings],
    }


def peers_document(one: Peers) -> dict[str, Any]:
    """Pairs as JSON has them; rates are in bits per second."""
    rates = {
        "now": one.now,
        "without_redirect": one.straight,
        "not_allowed": one.otherwise,
        "links_at_most": one.faster,
    }
    return {
        "pairs": [[str(a.address), str(b.address)] for a, b in one.pairs],
        **{
            name: None
            if found is None
            else {"one_way": found.one_way, "both": found.both, "limit": str(found.limit.lower.address)}
            for name, found in rates.items()
        },
        "fates": list(one.fates),
        **{name: [str(port.address) for port in getattr(one, name)] for name in peers.PORTS},
        "text": peers.words(one),
        "commands": one.commands(),
    }


def judged(source: str, functions: list[Function]) -> Scan:
    """A machine of these functions."""
    tree = Tree(functions)
    throughput = Throughput(tree)
    verdicts, uplinks = findings.judge(tree, throughput), findings.uplinks(tree, throughput)
    return Scan(source, tree, verdicts, uplinks, peers.survey(tree, throughput))


def from_text(source: str, dump: str) -> Scan:
    """Reads a dump. Raises `text.NoDumpError`."""
    found = text.read(dump)
    scan = judged(source, found.functions)
    scan.lines, scan.outside = found.lines, found.outside
    return scan


def from_sysfs(folder: Path = sysfs.HERE) -> Scan:
    """Reads the machine this runs on, or a copy of its /sys/bus/pci. Raises `text.NoDumpError`."""
    return judged(str(folder), sysfs.read(folder))


def decoded(data: bytes) -> str:
    """The text of a file in any encoding."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")
