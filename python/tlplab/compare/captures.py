"""Differences of captures: TLPs by kind and size, tags, latency of requests that were answered; and the limits of captures."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from tlplab.compare import words
from tlplab.compare.difference import RESOLUTION, Change, one_sided
from tlplab.compare.sources import Source, legend, names_of
from tlplab.nettlp import capture
from tlplab.outputs import write_text
from tlplab.sheet import Column, Sheet
from tlplab.summary import console_for, print_hanging

SCHEMA = "tlplab/capture-diff/1"
WHOLE = {
    "frames": "frames", "tlps": "TLPs", "link_units": "DLLPs and flits", "controls": "control", "others": "others",
    "repeated": "damaged or sent again",
}  # fmt: skip
SEQUENCE = {"missing": "missing", "duplicates": "duplicated", "reordered": "out of order"}
PERCENTILES = ("p50", "p90", "p99")
# So many different latencies are told exactly; of more, percentiles may be 0.1 % too small.
EXACT = 4096
Document = dict[str, Any]
Figures = dict[str, tuple[float, str]]


@dataclass(frozen=True)
class CaptureDifference:
    """The differences of two captures: figures of the whole (under no name) and of each direction that both have."""

    before: str
    after: str
    changes: dict[str, list[Change]]
    only: dict[str, list[str]]
    untold: list[str]
    rounded: bool
    """True if percentiles may be a thousandth too small."""

    @property
    def same(self) -> bool:
        """True if there are no differences."""
        return not any(self.only.values()) and all(one.same for changes in self.changes.values() for one in changes)

    def seen(self, change: Change) -> bool:
        """True if a change exceeds the possible error of percentiles."""
        if change.same or not self.rounded or not change.name.endswith(PERCENTILES):
            return not change.same
        return change.share is None or abs(change.share) > RESOLUTION


def compare(sources: Sequence[Source], *, every: bool, json_file: str | None, quiet: bool) -> bool:
    """Reads captures and prints the differences of each from the first; True if there are any. Raises `click.UsageError`, OSError."""
    documents = [read(source, quiet=quiet) for source in sources]
    names = names_of(list(sources))
    found = [difference(names[0], documents[0], name, one) for name, one in zip(names[1:], documents[1:], strict=True)]
    if json_file is not None:
        document = {"schema": SCHEMA, "base": names[0], "others": [as_json(one, every=every) for one in found]}
        write_text(json_file, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    if not quiet and json_file != "-":
        console = console_for(sys.stdout)
        for name in legend(list(sources)):
            console.print(Text(name, style="dim"))
        for one in found:
            show(console, one, every=every)
    return not all(one.same for one in found)


def read(source: Source, *, quiet: bool) -> Document:
    """The summary of a capture."""
    try:
        document: Document = json.loads(capture.read(source.path, (), quiet=quiet).summary())
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return document


def difference(before: str, one: Document, after: str, other: Document) -> CaptureDifference:
    """The differences of two captures."""
    ways = [{f"{way['from']} → {way['to']}": way for way in document["directions"]} for document in (one, other)]
    changes = {"": changed(whole(one), whole(other))}
    for name in ways[0]:
        if name in ways[1]:
            changes[name] = changed(of_direction(ways[0][name], one), of_direction(ways[1][name], other))
    counts = [way["latency_ns"]["count"] for side in ways for way in side.values() if way["latency_ns"] is not None]
    untold = list(cannot_tell(before, one, after, other))
    return CaptureDifference(
        before, after, changes, one_sided(list(ways[0]), list(ways[1])), untold, max(counts, default=0) > EXACT
    )


def changed(one: Figures, other: Figures) -> list[Change]:
    """Figures of both sides; a count that a side does not have is 0 there."""
    found = []
    for name in dict.fromkeys((*one, *other)):
        unit = one.get(name, other.get(name, (0, "1")))[1]
        nothing = (0, unit) if unit == "1" else (None, unit)
        found.append(Change(name, unit, one.get(name, nothing)[0], other.get(name, nothing)[0]))
    return found


def whole(document: Document) -> Figures:
    """Figures of all of a capture."""
    found: Figures = {name: (document[key], "1") for key, name in WHOLE.items()}
    found["malformed"] = len(document["malformed"]), "1"
    found["duration"] = document["duration_ns"], "ns"
    return found


def of_direction(way: Document, document: Document) -> Figures:
    """Figures of the TLPs that one end sent the other."""
    found: Figures = {kind: (count, "1") for kind, count in way["kinds"].items()}
    if document["duration_ns"]:
        found["payload"] = way["payload_bytes"] * 8e9 / document["duration_ns"], "b/s"
    for size in way["requests"]:
        found[f"{size['op']} of {size['bytes']} B"] = size["count"], "1"
    for size in way["completions"]:
        found[f"completion of {size['bytes']} B"] = size["count"], "1"
    found["tags"] = way["tags"]["count"], "1"
    found["outstanding, at most"] = way["outstanding"]["max"], "1"
    found["outstanding, mean"] = way["outstanding"]["mean"], "1"
    found["answered"] = way["completed"], "1"
    found["unanswered"] = way["unanswered"], "1"
    found["completions without a request"] = way["unexpected"], "1"
    for status, count in way["refused"].items():
        found[f"refused, {status}"] = count, "1"
    for key, name in SEQUENCE.items():
        found[f"numbers {name}"] = way["sequence"][key], "1"
    if (latency := way["latency_ns"]) is not None:
        for which in ("min", *PERCENTILES, "max"):
            found[f"latency {which}"] = latency[which], "ns"
    return found


def cannot_tell(before: str, one: Document, after: str, other: Document) -> Iterator[str]:
    """The questions that these captures leave open, in sentences."""
    yield (
        "A capture has the TLPs at one place. Causes of latency, utilisation of links and the limit are in"
        " results (tlplab run --json)."
    )
    both = ((before, one), (after, other))
    if any(
        way["kinds"].keys() & {"MWr", "Msg", "MsgD", "DMWr"} for _, document in both for way in document["directions"]
    ):
        yield "Posted requests have no completion and therefore no latency; latencies are those of non-posted requests."
    for name, document in both:
        if document["link_units"] == 0:
            yield f"{name} has no DLLPs or flits, and so no Acks, credits and replays."
        if cut := sum(way["unanswered"] for way in document["directions"]):
            yield f"{name} has {cut} requests without their last completion, which was lost or follows the end of the capture; they have no latency."
        if document["malformed"]:
            yield f"{name} has {len(document['malformed'])} malformed frames, which no figure includes: tlplab dump {name} --summary."
    if max(one["duration_ns"], other["duration_ns"]) > 1.01 * min(one["duration_ns"], other["duration_ns"]):
        yield "The captures differ in length, and so do their counts; rates and latencies may be compared."


def as_json(found: CaptureDifference, *, every: bool) -> dict[str, Any]:
    """A capture, and how it differs from the first."""
    return {
        "name": found.after,
        "same": found.same,
        "only": {"base": found.only["before"], "other": found.only["after"]},
        "figures": [
            {"direction": way or None, "name": one.name, "unit": one.unit, "base": one.before, "other": one.after,
             "difference": one.difference, "share": one.share}
            for way, changes in found.changes.items() for one in changes if every or not one.same
        ],
        "cannot_tell": found.untold,
    }  # fmt: skip


def show(console: Console, found: CaptureDifference, *, every: bool) -> None:
    """Print the differences of two captures, and their limits."""
    console.print(Text(f"{found.before} → {found.after}", style="bold"))
    if found.same:
        console.print("no differences")
    console.print()
    for way, changes in found.changes.items():
        rows = [one for one in changes if (every and (one.before or one.after)) or found.seen(one)]
        if not rows:
            continue
        sheet = Sheet(way or "Both directions", [
            Column("figure", name=True), Column(found.before), Column(found.after, style="bold"), Column("change"),
            Column("%"),
        ])  # fmt: skip
        for one in rows:
            share = "" if one.share is None or one.same else words.percent(one.share).removesuffix(" %")
            values = words.figure(one.before, one.unit), words.figure(one.after, one.unit)
            sheet.add(one.name, *values, words.difference(one), share)
        sheet.print(console)
        console.print()
    for name, ways in ((found.before, found.only["before"]), (found.after, found.only["after"])):
        for way in ways:
            console.print(Text(f"only in {name}: {way}"))
    console.print(Text("Not in these captures", style="bold"))
    for line in found.untold:
        print_hanging(console, "•", line)
    console.print()
