"""The pictures of the concept pages, each drawn from a run of an experiment in examples/concepts: python site/diagrams.py"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import tlplab as tl

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs/images"
STYLE = """
text { font: 13px system-ui, "Segoe UI", Roboto, Arial, sans-serif; fill: var(--ink) }
.small { font-size: 11px } .bold { font-weight: 600 } .on { fill: #fff } .right { text-anchor: end } .middle { text-anchor: middle }
svg { --ink: #1f2430; --line: #8b93a7; --paper: #fbfbfd; --edge: #d5d9e3 }
@media (prefers-color-scheme: dark) { svg { --ink: #e6e8ee; --line: #8b93a7; --paper: #1d212b; --edge: #3a4152 } }
.paper { fill: var(--paper); stroke: var(--edge) } .column { stroke: var(--line); stroke-width: 1.5 } .thin { stroke: var(--line); fill: none }
polygon { stroke: var(--paper); stroke-width: 1 } .halo { paint-order: stroke; stroke: var(--paper); stroke-width: 4 }
.posted { fill: #2f6fde } .nonposted { fill: #8a4fd3 } .completion { fill: #1f8a5b } .dllp { stroke: #b8860b; stroke-width: 1.6; fill: none }
.bad { fill: #c93a3a } .replayed { fill: #d9730d } .ignored { fill: #8b93a7 } .none { fill: #c93a3a } .some { fill: #1f8a5b }
"""
KINDS = {"MWr": "posted", "MRd": "nonposted", "CplD": "completion"}
# Colours of causes.
CAUSES = {
    "serialisation": "#2f6fde", "processing": "#1f8a5b", "completer": "#0f7c8a", "queueing": "#d9730d", "credit wait": "#c93a3a",
    "replay": "#a33ea1", "flight": "#8b93a7", "data link": "#b8860b",
}  # fmt: skip


@dataclass
class Drawing:
    """An SVG that grows."""

    width: float
    height: float
    parts: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, words: str, style: str = "") -> None:
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{style}">{escape(words)}</text>')

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>')

    def shape(self, points: list[tuple[float, float]], style: str) -> None:
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polygon points="{joined}" class="{style}"/>')

    def box(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>')

    def svg(self, about: str) -> str:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" width="{self.width:g}" height="{self.height:g}" role="img">\n'
            f"<title>{escape(about)}</title>\n<style>{STYLE}</style>\n"
            f'<rect x="0.5" y="0.5" width="{self.width - 1:g}" height="{self.height - 1:g}" rx="8" class="paper"/>\n'
            + "\n".join(self.parts)
            + "\n</svg>\n"
        )


def ns(femtoseconds: int) -> float:
    return femtoseconds / 1e6


@dataclass
class Ladder:
    """Components side by side, time downwards, packets between them."""

    drawing: Drawing
    run: Any
    left: float
    top: float
    spacing: float
    scale: float  # pixels a nanosecond
    start: float = 0.0
    end: float = 1e9

    def x(self, column: int) -> float:
        return self.left + self.spacing * column

    def y(self, time: float) -> float:
        return self.top + (time - self.start) * self.scale

    def columns(self, names: list[str]) -> None:
        for number, name in enumerate(names):
            self.drawing.text(self.x(number), self.top - 14, name, "middle bold")
            self.drawing.line(self.x(number), self.top - 6, self.x(number), self.y(self.end) + 6, "column")

    def clock(self, every: float) -> None:
        time = self.start
        while time <= self.end:
            self.drawing.text(self.left - 10, self.y(time) + 4, f"{time:g} ns", "small right")
            time += every

    def packets(
        self, label: Callable[[Any], str | None], style: Callable[[Any], str] = lambda packet: KINDS[packet["kind"]]
    ) -> None:
        for packet in sorted(self.run["ladder"]["packets"], key=lambda packet: packet["class"] != "tlp"):
            starts, ends, arrives = (ns(packet[key]) for key in ("start_fs", "end_fs", "arrive_fs"))
            if starts < self.start or arrives > self.end + 0.5:
                continue
            # Upwards, to the root complex, is to the right.
            up = packet["direction"] == 0
            here, there = self.x(packet["link"]), self.x(packet["link"] + 1)
            source, target = (here, there) if up else (there, here)
            flight, words = arrives - ends, label(packet)
            if words is None:
                continue
            if packet["class"] == "tlp":
                lean = max(flight, 6 / self.scale)
                self.drawing.shape(
                    [
                        (source, self.y(starts)),
                        (target, self.y(starts + lean)),
                        (target, self.y(max(arrives, starts + lean) + 2 / self.scale)),
                        (source, self.y(max(ends, starts + 2 / self.scale))),
                    ],
                    style(packet),
                )
                if (height := (ends - starts) * self.scale) >= 12:
                    self.drawing.text((here + there) / 2, self.y((starts + arrives) / 2) + 4, words, "middle small on")
                else:
                    self.drawing.text((here + there) / 2, self.y(starts) - 5 + height / 2, words, "middle small halo")
            else:
                self.drawing.line(source, self.y(starts), target, self.y(arrives) + 6, "dllp")
                self.drawing.text(source * 0.8 + target * 0.2, self.y(starts) - 2, words, "middle small halo")

    def ledger(self, x: float, transaction: Any) -> None:
        """Draw the parts of a transaction's time, next to its packets."""
        below = self.top - 6
        for interval in transaction["intervals"]:
            cause, begins, lasts = (
                self.run["causes"][interval["cause"]],
                ns(interval["start_fs"]),
                ns(interval["duration_fs"]),
            )
            self.drawing.box(x, self.y(begins), 16, lasts * self.scale, CAUSES[cause])
            middle = self.y(begins + lasts / 2)
            below = max(below + 15, middle + 4)
            self.drawing.line(x + 16, middle, x + 30, below - 4, "thin")
            behind = f", behind {interval['behind']}" if interval["behind"] else ""
            self.drawing.text(x + 34, below, f"{lasts:.1f} ns  {cause}, {interval['place']}{behind}", "small")


def run(name: str, *overrides: str) -> Any:
    return tl.run(ROOT / name, overrides=[*overrides], verdict=False)


def life() -> str:
    """One read, from its request to its last completion."""
    document = run("examples/concepts/read.toml")
    drawing = Drawing(900, 660)
    ladder = Ladder(drawing, document, 80, 50, 185, 0.77, 0, 749.1)
    ladder.columns(["card", "switch sw0", "root complex"])
    ladder.clock(100)
    ladder.packets(
        lambda packet: (
            "MRd, 512 B" if packet["kind"] == "MRd" else "CplD, 256 B" if packet["kind"] == "CplD" else packet["kind"]
        )
    )
    drawing.text(560, 36, "The ledger of this read", "bold")
    ladder.ledger(560, document["ladder"]["transactions"][0])
    return drawing.svg("A read of 512 bytes through a switch: packets over time, and where each nanosecond went")


def limit_of(packet: Any) -> int:
    """The header credits that an UpdateFC allows."""
    return int(packet["text"].split("hdr ")[1].split(",")[0])


def credits_page() -> str:
    """Writes that wait for credits."""
    document = run("examples/concepts/credits.toml")
    drawing = Drawing(820, 560)
    end = 960.0
    ladder = Ladder(drawing, document, 230, 50, 210, 0.5, 0, end)
    names = [f"write {number}" for number in range(1, 7)]
    ladder.columns(["card", "switch sw0", "root complex"])
    ladder.clock(100)

    def label(packet: Any) -> str | None:
        if packet["kind"] == "MWr":
            return names[int(packet["sequence"])]
        return f"UpdateFC-P, limit {limit_of(packet)}" if packet["kind"] == "UpdateFC-P" else None

    ladder.packets(label)
    # What the card may still send, from its own packets and the limits it is told.
    changes = [(0.0, 2, 0)]
    for packet in sorted(
        document["ladder"]["packets"], key=lambda packet: packet["arrive_fs" if packet["direction"] else "start_fs"]
    ):
        if packet["link"]:
            continue
        _, limit, sent = changes[-1]
        if packet["kind"] == "MWr":
            changes.append((ns(packet["start_fs"]), limit, sent + 1))
        elif packet["kind"] == "UpdateFC-P":
            changes.append((ns(packet["arrive_fs"]), limit_of(packet), sent))
    drawing.text(40, 36, "header credits left", "small")
    for (begins, limit, sent), (ends, *_) in zip(changes, [*changes[1:], (end, 0, 0)], strict=True):
        if ends > begins and begins < end:
            ends = min(ends, end)
            height = (ends - begins) * ladder.scale
            drawing.parts.append(
                f'<rect x="80" y="{ladder.y(begins):.1f}" width="26" height="{height:.1f}" class="{"some" if limit > sent else "none"}"/>'
            )
            if height > 13:
                drawing.text(93, ladder.y((begins + ends) / 2) + 4, str(limit - sent), "middle small on")
    return drawing.svg(
        "Six writes through a receiver with room for two: the sender waits until an UpdateFC raises its limit"
    )


def replay() -> str:
    """A damaged TLP, the Nak, and the TLPs that are sent again."""
    document = run("examples/concepts/replay.toml")
    drawing = Drawing(560, 560)
    ladder = Ladder(drawing, document, 110, 50, 380, 0.8, 0, 600)
    ladder.columns(["card", "root complex"])
    ladder.clock(100)
    packets = document["ladder"]["packets"]
    damaged = next(packet for packet in packets if packet["bad"])
    resent = {packet["sequence"] for packet in packets if packet["replay"]}

    def first_again(packet: Any) -> bool:
        return packet["sequence"] in resent and not packet["replay"]

    def label(packet: Any) -> str:
        if packet["kind"] == "Nak":
            return str(packet["text"])
        words = f"MWr, sequence {packet['sequence']}"
        if packet["id"] == damaged["id"]:
            return words + ": LCRC wrong"
        return words + (
            ", again" if packet["replay"] else ": out of sequence, discarded" if first_again(packet) else ""
        )

    def style(packet: Any) -> str:
        return (
            "bad"
            if packet["bad"]
            else "replayed"
            if packet["replay"]
            else "ignored"
            if first_again(packet)
            else "posted"
        )

    ladder.packets(label, style)
    return drawing.svg(
        "The third write arrives damaged; the receiver answers with a Nak, and it and all behind it are sent again"
    )


def numbered() -> Callable[[Any], str | None]:
    """Labels that count writes, and leave DLLPs out."""
    writes = iter(range(1, 1000))

    def label(packet: Any) -> str | None:
        if packet["kind"] == "MWr":
            return f"MWr {next(writes)}"
        return str(packet["kind"]) if packet["class"] == "tlp" else None

    return label


def ordering() -> str:
    """The same run with and without Relaxed Ordering."""
    drawing = Drawing(860, 560)
    for left, relaxed, name in (
        (80, "false", "strict: the completion waits"),
        (500, "true", "Relaxed Ordering: it passes"),
    ):
        document = run("examples/concepts/ordering.toml", f"device.card.relaxed_ordering={relaxed}")
        ladder = Ladder(drawing, document, left, 70, 280, 0.54, 0, 860)
        drawing.text(left + 140, 26, name, "middle bold")
        ladder.columns(["card", "root complex"])
        ladder.clock(100)
        ladder.packets(numbered())
    return drawing.svg("A completion behind posted writes of the processor, with and without Relaxed Ordering")


def attribution() -> str:
    """One write of the quickstart's NIC."""
    document = run("experiments/quickstart.toml")
    transaction = next(
        one
        for one in document["ladder"]["transactions"]
        if document["flows"][one["flow"]]["name"] == "nic"
        and one["ending"] == "done"
        and any(i["behind"] == "ssd" for i in one["intervals"])
    )
    begins, ends = ns(transaction["start_fs"]), ns(transaction["end_fs"])
    drawing = Drawing(560, 420)
    scale = (drawing.height - 90) / (ends - begins)
    ladder = Ladder(drawing, document, 60, 50, 0, scale, begins, ends)
    drawing.text(60, 30, f"{transaction['text'].split(' at ')[0]} of the NIC: {ends - begins:.1f} ns", "bold")
    ladder.ledger(60, transaction)
    return drawing.svg("One write of the quickstart's NIC, partitioned by cause and place")


DRAWINGS: dict[str, Callable[[], str]] = {
    "read": life,
    "credits": credits_page,
    "replay": replay,
    "ordering": ordering,
    "attribution": attribution,
}


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    for name, draw in DRAWINGS.items():
        if not sys.argv[1:] or name in sys.argv[1:]:
            (IMAGES / f"concept-{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
