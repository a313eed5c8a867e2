"""The summary of a capture, as text: the document `tlplab/capture/1` of the Rust side."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tlplab import _core
from tlplab import quantities as q
from tlplab.progress import Bar

WIDTH = 80
INDENT = 15
# A list of what is malformed would otherwise fill the screen; the document has them all.
MALFORMED_SHOWN = 10


def read(path: str, filters: Sequence[str], *, points: bool = False, quiet: bool = True) -> _core.CaptureReader:
    """Reads a capture whole, and remembers the points of a plot if they are asked for. Raises ValueError, OSError."""
    reader = _core.CaptureReader(path, filters, points=points)
    with Bar(quiet=quiet) as bar:
        while reader.step():
            bar.show(reader.fraction, "reading")
    return reader


def summarise(path: str, filters: Sequence[str] = ()) -> dict[str, Any]:
    """The summary of a capture. Raises ValueError, OSError."""
    document: dict[str, Any] = json.loads(read(path, filters).summary())
    return document


def frames(path: str, filters: Sequence[str] = ()) -> list[tuple[str, dict[str, Any]]]:
    """Each frame of a capture that passes the filters: its line without the time, and its fields. Raises ValueError, OSError."""
    lines, objects = (listed(path, filters, as_json=as_json) for as_json in (False, True))
    return [(line, json.loads(text)) for line, text in zip(lines, objects, strict=True)]


def listed(path: str, filters: Sequence[str], *, as_json: bool) -> list[str]:
    """Its lines."""
    dump = _core.Dump(path, filters, json=as_json, time=1, verbose=False, limit=None, copy=None, quiet=False)
    text: list[str] = []
    while (some := dump.step()) is not None:
        text.append(some)
    return "".join(text).splitlines()


def as_text(name: str, document: dict[str, Any]) -> str:
    """The summary for people."""
    return "\n".join(lines(name, document)) + "\n"


def lines(name: str, document: dict[str, Any]) -> Iterator[str]:
    counted = {"TLPs": "tlps", "DLLPs and flits": "link_units", "control": "controls", "others": "others"}
    parts = [f"{document[key]} {word}" for word, key in counted.items() if document[key]]
    malformed = document["malformed"]
    if malformed:
        parts.append(f"{len(malformed)} malformed")
    yield f"{name}: {document['frames']} frames in {q.time(document['duration_ns'])}"
    yield from field("", parts)
    if document["repeated"]:
        yield from field("omitted", [f"{document['repeated']} TLPs damaged on the link or replayed"])
    for direction in document["directions"]:
        yield ""
        yield f"{direction['from']} → {direction['to']}"
        yield from flow(direction)
    for crossing in document["crossings"]:
        yield ""
        yield f"Forwarded from {crossing['before']} to {crossing['behind']}"
        yield from field("first after", [latency(crossing["delay_ns"])])
        for passage in crossing["passages"]:
            yield from textwrap.wrap(passed(passage), WIDTH, initial_indent="  ", subsequent_indent="    ")
    if malformed:
        yield ""
        yield f"Malformed: {len(malformed)} of {document['frames']} frames"
        for problem in malformed[:MALFORMED_SHOWN]:
            text = f"frame {problem['frame']}: {problem['reason']}"
            yield from textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")
        if len(malformed) > MALFORMED_SHOWN:
            yield f"  … and {len(malformed) - MALFORMED_SHOWN} more"


def field(name: str, values: Iterable[str]) -> Iterator[str]:
    """A name and its values, over as many lines as they take."""
    text = ", ".join(values)
    if text:
        yield from textwrap.wrap(text, WIDTH, initial_indent=f"  {name}".ljust(INDENT), subsequent_indent=" " * INDENT)


def flow(direction: dict[str, Any]) -> Iterator[str]:
    yield from field("TLPs", [f"{name} {count}" for name, count in direction["kinds"].items()])
    yield from field("requests", [f"{r['bytes']} B {r['op']} × {r['count']}" for r in direction["requests"]])
    yield from field("completions", [f"{c['bytes']} B × {c['count']}" for c in direction["completions"]])
    yield from field("requesters", direction["requesters"])
    tags = direction["tags"]
    if tags["count"]:
        yield from field(
            "tags", [f"{tags['count']} used: {q.ranges(tags['used'])}", f"{tags['reused']} of them more than once"]
        )
        outstanding = direction["outstanding"]
        yield from field("outstanding", [f"at most {outstanding['max']}", f"{outstanding['mean']:.1f} on average"])
    if direction["latency_ns"] is not None:
        yield from field("latency", [latency(direction["latency_ns"])])
    yield from field("refused", [f"{status} {count}" for status, count in direction["refused"].items()])
    if direction["unanswered"]:
        yield from field("unanswered", [str(direction["unanswered"])])
    if direction["unexpected"]:
        yield from field("unexpected", [f"{direction['unexpected']} completions without a request"])
    yield from sequence(direction["sequence"])


def sequence(found: dict[str, int]) -> Iterator[str]:
    names = {"missing": "missing", "duplicates": "twice", "reordered": "out of order"}
    parts = [f"{found[key]} {word}" for key, word in names.items() if found[key]]
    if found["gaps"]:
        parts[0] += f" in {found['gaps']} gaps"
    if found["unproven"]:
        parts.append(f"{found['unproven']} gaps of unknown cause: a loss, or another counter")
    if found["adapters"] > 1:
        parts.append(f"{found['adapters']} adapters with one address")
    yield from field("numbers", parts)


def latency(found: dict[str, float]) -> str:
    names = ("min", "p50", "p90", "p99", "max")
    return ", ".join(f"{name} {q.time(found[name], 3)}" for name in names)


def passed(passage: dict[str, Any]) -> str:
    """The passing of requests, as a sentence."""
    request = f"{passage['count']} × {passage['bytes']} B {passage['op']}"
    behind, before, after = passage["behind"], passage["completions_before"], passage["completions_behind"]
    how = {
        "unmodified": "unmodified",
        "renamed": "with another requester, tag or attributes",
        "split": f"split into {pieces(behind)}",
    }[passage["verdict"]]
    if not after["count"]:
        return f"{request}: {how}"
    if before == after:
        return f"{request}: {how}; completions also, {pieces(after)}"
    return f"{request}: {how}; completions rebuilt, {pieces(after)} as {pieces(before)}"


def pieces(found: dict[str, Any]) -> str:
    return f"{found['count']} of several sizes" if found["mixed"] else f"{found['count']} × {found['bytes']} B"
