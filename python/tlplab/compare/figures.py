"""The figures of a result document by name, and where the time of its flows went, to the femtosecond.

The names are those of studies (docs/metrics.md). A document counts time in nanoseconds with six decimals; here it is whole femtoseconds,
so that sums are exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import click

from tlplab.result import Attribution, Direction, Document, Flow, Latency, Link, Network

FS_PER_NS = 1_000_000
# So far the mean of a flow may be from the sum of its causes: both are floating-point numbers in the document.
ROUNDING = 1e-9
SUMMED = "other flows"
LATENCIES = ("min", "mean", "p50", "p90", "p99", "p999", "max")
BUSY = ("payload", "overhead", "dllp", "ordered_sets", "replay")
STALLS = ("credits", "tags", "replay_buffer")


@dataclass(frozen=True, order=True)
class Cause:
    """The cause of a delay, its place, and the flow in front (empty without one)."""

    cause: str
    place: str
    behind: str = ""


Causes = dict[Cause, int]
Figures = dict[str, tuple[float, str]]


@dataclass(frozen=True)
class Stream:
    """A flow: its transactions that ended well, and where their time went, all in all."""

    name: str
    what: str
    transactions: int
    latency: Latency | None
    causes: Causes
    """Femtoseconds of all transactions together."""

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self.causes.values())

    def each(self, fs: int) -> Fraction:
        """A part of it by transaction, femtoseconds."""
        return Fraction(fs, self.transactions) if self.transactions else Fraction(0)


def femtoseconds(ns: float) -> int:
    """A time of a document."""
    return round(ns * FS_PER_NS)


def streams_of(result: Document, name: str) -> dict[str, Stream]:
    """The flows of a run that is called `name`. Raises `click.UsageError` for a document whose causes do not add up."""
    return {flow["name"]: stream_of(flow, result["causes"], name) for flow in result["flows"]}


def stream_of(flow: Flow, names: Sequence[str], run: str) -> Stream:
    """A flow, checked to add up."""
    causes: Causes = defaultdict(int)
    for part in flow["attribution"]:
        causes[cause_of(part, names)] += femtoseconds(part["total_ns"])
    what = f"{flow['op']} → {flow['target']}"
    found = Stream(flow["name"], what, flow["transactions"], flow["latency_ns"], dict(causes))
    mean = 0.0 if flow["latency_ns"] is None else flow["latency_ns"]["mean"]
    adds_up_to = float(found.each(found.total)) / FS_PER_NS
    if abs(adds_up_to - mean) > ROUNDING * max(mean, 1.0):
        raise click.UsageError(
            f"{run}: the causes of {flow['name']} add up to {adds_up_to:.6f} ns a transaction, and its mean latency is {mean:.6f} ns:"
            " the document was changed; save the run anew with tlplab run --json"
        )
    return found


def cause_of(part: Attribution, names: Sequence[str]) -> Cause:
    """The cause of a row of an attribution; of a row that sums up many flows only the cause."""
    behind = SUMMED if "others" in part else part["behind"] or ""
    return Cause(names[part["cause"]], part["place"], behind)


def alike(one: Causes, other: Causes) -> tuple[Causes, Causes]:
    """Causes in the same detail: where either sums up the flows in front, both do."""
    summed = {(cause.cause, cause.place) for cause in (*one, *other) if cause.behind == SUMMED}
    if not summed:
        return one, other

    def joined(causes: Causes) -> Causes:
        found: Causes = defaultdict(int)
        for cause, fs in causes.items():
            here = cause.behind and (cause.cause, cause.place) in summed
            found[Cause(cause.cause, cause.place, "flows") if here else cause] += fs
        return dict(found)

    return joined(one), joined(other)


def by_cause(causes: Causes) -> Causes:
    """Places and flows in front summed up."""
    found: Causes = defaultdict(int)
    for cause, fs in causes.items():
        found[Cause(cause.cause, "")] += fs
    return dict(found)


def figures_of(result: Document) -> Figures:
    """Every figure of a run that has a name: its value and its unit."""
    found: Figures = {}
    flows = result["flows"]
    span_ns = (result["end_fs"] - result["start_fs"]) / FS_PER_NS
    found["throughput"] = sum(flow["payload_bps"] for flow in flows), "b/s"
    found["transactions"] = sum(flow["transactions"] for flow in flows), "1"
    found["bytes"] = sum(flow["bytes"] for flow in flows), "B"
    found["errors"] = sum(sum(flow["errors"].values()) for flow in flows), "1"
    found["lanes"] = sum(link["width"] for link in result["links"] if link["bus"] is None), "1"
    found["span"] = span_ns, "ns"
    for flow in flows:
        add_flow(found, flow)
    for link in result["links"]:
        add_link(found, link)
    for network in result["networks"]:
        add_network(found, network)
    for frames in result.get("frames", []):  # documents of older versions have none
        for which in ("sent", "received", "missed", "too_long"):
            found[f"{frames['device']}.frames.{which}"] = frames[which], "1"
    for program in result["measured"]:
        found[f"{program['name']}.measured.throughput"] = program["payload_bps"], "b/s"
        if (calls := program["calls"]) is not None:
            for which, value in (("mean", calls["mean_ns"]), ("min", calls["min_ns"]), ("max", calls["max_ns"])):
                found[f"{program['name']}.calls.{which}"] = value, "ns"
    add_host(found, result)
    return found


def add_flow(found: Figures, flow: Flow) -> None:
    """The figures of a flow."""
    name = flow["name"]
    found[f"{name}.throughput"] = flow["payload_bps"], "b/s"
    found[f"{name}.transactions"] = flow["transactions"], "1"
    found[f"{name}.bytes"] = flow["bytes"], "B"
    found[f"{name}.errors"] = sum(flow["errors"].values()), "1"
    for kind, count in flow["errors"].items():
        found[f"{name}.errors.{kind}"] = count, "1"
    if (latency := flow["latency_ns"]) is not None:
        for which in LATENCIES:
            found[f"{name}.latency.{which}"] = latency[which], "ns"  # type: ignore[literal-required]


def add_link(found: Figures, link: Link) -> None:
    """The figures of a link and its two ways; a device's way over a bus has no lanes."""
    name = link["lower"]
    if link["bus"] is None:
        found[f"{name}.lanes"] = link["width"], "1"
        found[f"{name}.generation"] = link["generation"], "1"
        found[f"{name}.mps"] = link["mps"], "B"
    for way, direction in zip(("up", "down"), link["directions"], strict=True):
        add_direction(found, f"{name}.{way}", direction)


def add_direction(found: Figures, name: str, direction: Direction) -> None:
    """The figures of a way."""
    use = direction["utilization"]
    found[f"{name}.utilisation"] = 1 - use["idle"], "%"
    for part in BUSY:
        found[f"{name}.{part}"] = use[part], "%"  # type: ignore[literal-required]
    found[f"{name}.tlps"] = direction["tlps"], "1"
    found[f"{name}.replayed"] = direction["replayed"], "1"
    for what in STALLS:
        found[f"{name}.stall.{what}"] = direction["stalls"][what], "%"  # type: ignore[literal-required]


def add_network(found: Figures, network: Network) -> None:
    """The figures of the Ethernet link behind a card."""
    for name, way in (("to_software", network["to_software"]), ("to_card", network["to_card"])):
        found[f"{network['device']}.{name}.throughput"] = way["payload_bps"], "b/s"
        found[f"{network['device']}.{name}.busy"] = way["busy"], "%"
        found[f"{network['device']}.{name}.dropped"] = way["dropped"], "1"


def add_host(found: Figures, result: Document) -> None:
    """Add the figures of the host's cache and IOMMU."""
    if (host := result["host"]) is None:
        return
    if (cache := host["cache"]) is not None:
        found["host.cache.hit_rate"] = cache["hit_rate"], "%"
    if (iommu := host["iommu"]) is not None:
        found["host.iommu.hit_rate"] = iommu["hit_rate"], "%"
        found["host.iommu.walks"] = iommu["walks"], "1"
        found["host.iommu.busy"] = iommu["busy"], "%"
