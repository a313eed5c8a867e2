"""Figures 13 to 15, from captures: the published ones, or others of the same names."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from studies.nettlp.pictures import Lines, Tags
from studies.nettlp.rows import PAPER, absent
from tlplab import quantities
from tlplab.nettlp import capture
from tlplab.reproduce import Beside, Drawing, Row

ENDINGS = (".pcap", ".pcapng")
# Figure 13: what is between the devices, its capture, how many reads of which size are behind it.
PASSAGES = (("switch", "mrd-512byte-plx", 1, 512), ("root complex", "mrd-512byte-rc", 8, 64))
# Figure 14: the least and the largest tag of each device, as the text tells them.
TAGS = {"x520": (0, 15), "p4600": (0, 15), "pm1725": (0, 63), "xl710": (24, 249)}
PING = "simple-nic-ping"
# Where in a page of BAR 4 a register is.
PAGE = 0xFFF


@dataclass(frozen=True)
class Step:
    """A TLP of figure 15: its sender, its kind, its length in doublewords, and the object at its address."""

    by: str
    kind: str
    length: int
    place: str = ""
    register: int | None = None


# A packet of 98 B, 25 doublewords, and its descriptor of four.
TRANSMIT = (
    Step("host", "MWr", 1, "doorbell", 0x10),
    Step("NIC", "MRd", 4, "descriptor"), Step("host", "CplD", 4),
    Step("NIC", "MRd", 25, "packet"), Step("host", "CplD", 25),
    Step("NIC", "MWr", 1, "interrupt"),
)  # fmt: skip
RECEIVE = (
    Step("NIC", "MWr", 25, "packet"), Step("NIC", "MWr", 4, "descriptor"),
    Step("NIC", "MWr", 1, "interrupt"),
    Step("host", "MWr", 1, "doorbell", 0x14),
    Step("NIC", "MRd", 4, "descriptor"), Step("host", "CplD", 4),
)  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """A capture that was read."""

    document: dict[str, Any]
    points: dict[str, Any]

    @property
    def tags(self) -> list[int]:
        """All tags of requests."""
        return sorted({tag for direction in self.document["directions"] for tag in direction["tags"]["used"]})

    @property
    def outstanding(self) -> int:
        """The most that were under way on a link."""
        return max((direction["outstanding"]["max"] for direction in self.document["directions"]), default=0)


@dataclass
class Source:
    """A folder of captures."""

    place: Path
    label: str
    """The beginning of the names of its rows."""
    remark: str = ""
    """A remark about the tags that its devices use."""
    rows: list[Row] = field(default_factory=list)
    drawings: list[Drawing] = field(default_factory=list)

    def files(self, pattern: str) -> list[Path]:
        """Captures of a name."""
        return sorted(path for ending in ENDINGS for path in self.place.glob(f"{pattern}{ending}"))

    def one(self, name: str) -> Path:
        """The capture of a name. Raises ValueError if it is not there."""
        for path in self.files(name):
            return path
        raise ValueError(f"{name}.pcap is not in {self.place}")

    def read(self, path: Path) -> Seen:
        """Reads a capture. Raises ValueError."""
        try:
            reader = capture.read(str(path), (), points=True)
        except OSError as error:
            raise ValueError(str(error)) from None
        return Seen(json.loads(reader.summary()), reader.points().to_numpy())

    def row(self, result: str, published: float, ours: float, unit: str, note: str = "") -> None:
        """Counted, so right or wrong."""
        verdict = "reproduced" if ours == published else "not reproducible"
        self.rows.append(Row(PAPER, f"{self.label}, {result}", published, ours, unit, verdict, note))  # type: ignore[arg-type]

    def tried(self, result: str, published: float, part: Callable[[], None]) -> None:
        """Does a part; if it cannot be done, its row has the reason."""
        try:
            part()
        except ValueError as error:
            self.rows.append(absent(f"{self.label}, {result}", published, "", str(error)))

    def figures(self) -> None:
        """Makes all rows and drawings."""
        for what, name, behind, size in PASSAGES:
            self.tried(f"figure 13, {what}", behind, partial(self.passage, what, name, behind, size))
        for device, (least, most) in TAGS.items():
            self.tried(f"figure 14, {device}", most, partial(self.tags, device, least, most))
        self.tried("figure 15", len(TRANSMIT), self.ping)

    def passage(self, what: str, name: str, behind: int, size: int) -> None:
        """Figure 13: a read of 512 B by way of a switch, or of a root complex."""
        path = self.one(name)
        seen = self.read(path)
        self.drawings.append(Tags(f"Figure 13, {self.label}: by way of a {what}", seen.document, seen.points))
        passed = only_passage(path.name, seen.document)
        after, before = passed["completions_behind"], passed["completions_before"]
        note = f"{after['count']} completions of {after['bytes']} B came back, {before['count']} of {before['bytes']} B left"
        self.row(f"figure 13, {what}: reads behind it", behind, passed["behind"]["count"], "", note)
        self.row(f"figure 13, {what}: bytes of each", size, passed["behind"]["bytes"], "B")
        self.row(f"figure 13, {what}: completions", 2, before["count"], "")

    def tags(self, device: str, least: int, most: int) -> None:
        """Figure 14: the tags that a device uses."""
        used: set[int] = set()
        outstanding = 0
        for path in self.files(f"{device}-*"):
            seen = self.read(path)
            used.update(seen.tags)
            outstanding = max(outstanding, seen.outstanding)
            if seen.tags:
                self.drawings.append(Tags(f"Figure 14, {self.label}: {path.stem}", seen.document, seen.points))
        if not used:
            raise ValueError(f"no capture of it in {self.place}")
        listed = quantities.ranges(sorted(used))
        tags = f"{len(used)} different ones" if len(listed) > 20 else listed
        note = "; ".join(filter(None, (f"{tags}, at most {outstanding} under way", self.remark)))
        self.row(f"figure 14, {device}: tags from", least, min(used), "")
        self.row(f"figure 14, {device}: tags up to", most, max(used), "", note)

    def ping(self) -> None:
        """Figure 15: the TLPs for a packet of 98 B that is sent, and for a received one."""
        path = self.one(PING)
        try:
            frames = [(line, found) for line, found in capture.frames(str(path)) if "tlp" in found]
        except OSError as error:
            raise ValueError(str(error)) from None
        found = [frame for _, frame in frames]
        received = longest(found, RECEIVE)
        # The other ring's descriptors are read, too, while a packet is sent.
        others = {address_of(found[number]) for number in received[1:2]}
        sent = longest(found, TRANSMIT, others)
        note = "in this order, of these lengths; requests and their completions share an address or a tag"
        self.row("figure 15a: TLPs of a packet sent", len(TRANSMIT), len(sent), "", note)
        self.row("figure 15b: TLPs of a packet received", len(RECEIVE), len(received), "", note)
        lines = [frames[number][0] for number in (*sent, *received)]
        self.drawings.append(Lines(f"Figure 15, {self.label}: a packet of 98 B sent, and one received", lines))

    def others(self) -> Iterator[str]:
        """Draws unknown captures, with a remark about the result."""
        for path in sorted(set(self.files("*")) - self.known()):
            try:
                seen = self.read(path)
            except ValueError as error:
                yield str(error)
                continue
            self.drawings.append(Tags(path.name, seen.document, seen.points))
            yield f"{path.name}: {len(seen.tags)} tags" + (
                f", {quantities.ranges(seen.tags)}" if len(seen.tags) in range(1, 257) else ""
            )

    def known(self) -> set[Path]:
        """The captures of which a figure is made."""
        names = [PING, *(name for _, name, _, _ in PASSAGES), *(f"{device}-*" for device in TAGS)]
        return {path for name in names for path in self.files(name)}


def only_passage(name: str, document: dict[str, Any]) -> dict[str, Any]:
    """The one request that another device passed on. Raises ValueError if the capture shows none, or several."""
    passages = [one for crossing in document["crossings"] for one in crossing["passages"]]
    if len(passages) != 1:
        raise ValueError(f"{name} shows {len(passages) or 'no'} requests passed on, where one is looked for")
    only: dict[str, Any] = passages[0]
    return only


def longest(frames: Sequence[dict[str, Any]], steps: Sequence[Step], others: Container[int] = ()) -> list[int]:
    """The frames in which most of the steps are, in their order; TLPs of other packets, with descriptors at `others`, may be between them."""
    found = (matched(frames, begin, steps, others) for begin in range(len(frames)))
    return max(found, key=len, default=[])


def address_of(frame: dict[str, Any]) -> int:
    """Of a request."""
    return int(frame["tlp"]["address"], 16)


def matched(frames: Sequence[dict[str, Any]], begin: int, steps: Sequence[Step], others: Container[int]) -> list[int]:
    """The frames of the steps, as far as there are any, if the first is the frame at `begin`."""
    taken: list[int] = []
    senders: dict[str, str] = {}
    places: dict[str, int] = {}
    tag = None
    for number in range(begin, len(frames)):
        frame, step = frames[number], steps[len(taken)]
        tlp = frame["tlp"]
        fits = tlp["kind"] == step.kind and tlp.get("length") == step.length
        fits = fits and senders.get(step.by, frame["from"]) == frame["from"]
        if fits and step.place:
            address = address_of(frame)
            fits = places.get(step.place, address) == address and step.register in (None, address & PAGE)
            fits = fits and not (step.place == "descriptor" and address in others)
        if fits and step.kind == "CplD":
            fits = tlp["tag"] == tag
        if fits:
            tag = tlp["tag"]
            if step.place:
                places[step.place] = address
            senders.update(
                zip(
                    ("host", "NIC") if step.by == "host" else ("NIC", "host"), (frame["from"], frame["to"]), strict=True
                )
            )
            taken.append(number)
        if not taken or len(taken) == len(steps):
            break
    return taken


def beside(folder: str | None) -> Beside:
    """The rows and drawings; a row with the reason, if there are no captures."""
    title = "From the captures that were published"
    place = folder or os.path.join(os.environ.get("TLPLAB_DATA", ""), "captures")
    if not os.path.isdir(place):
        why = "needs the published captures: --captures DIR, or TLPLAB_DATA with a folder captures"
        return Beside(title, [absent("captured, figures 13 to 15", None, "", why)], [], f"Left out: {why}.")
    source = Source(Path(place), "captured")
    source.figures()
    others = "; ".join(source.others())
    return Beside(
        title, source.rows, source.drawings, f"Not of the paper, and so not judged: {others}." if others else ""
    )
