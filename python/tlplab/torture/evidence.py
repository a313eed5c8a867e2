"""The evidence of many cases, each line and packet of which is kept once: boots of the same machine have most of them in common."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Generic, TypeVar

from tlplab.quantities import ranges
from tlplab.result import Document

DATA_LINK = "dllp"

Item = TypeVar("Item", bound=Hashable)


@dataclass(frozen=True)
class Hop:
    """A TLP on a link, as a ladder shows it."""

    start: int
    """The time at which its first bit was sent, in femtoseconds."""
    arrive: int
    """The time at which its last bit arrived, in femtoseconds."""
    sender: str
    receiver: str
    text: str
    bad: bool
    """Its check sum was wrong, or it was nullified."""


def ladder_of(result: Document) -> tuple[Hop, ...]:
    """The TLPs of a run's ladder."""
    ladder = result["ladder"]
    if ladder is None:
        return ()
    hops = []
    for packet in ladder["packets"]:
        if packet["class"] == DATA_LINK:
            continue
        link = result["links"][packet["link"]]
        sender, receiver = (
            (link["lower"], link["upper"]) if packet["direction"] == 0 else (link["upper"], link["lower"])
        )
        bad = packet["bad"] or packet["nullified"]
        hops.append(Hop(packet["start_fs"], packet["arrive_fs"], sender, receiver, packet["text"], bad))
    return tuple(hops)


class Pool(Generic[Item]):
    """Items by number, each of which is kept once."""

    def __init__(self) -> None:
        """None."""
        self.numbers: dict[Item, int] = {}

    def add(self, items: Iterable[Item]) -> list[int]:
        """The numbers of items."""
        return [self.numbers.setdefault(item, len(self.numbers)) for item in items]


class Evidence:
    """Consoles and ladders of cases."""

    def __init__(self) -> None:
        """None."""
        self.lines: Pool[str] = Pool()
        self.hops: Pool[Hop] = Pool()

    def of(self, console: Sequence[str], ladder: Sequence[Hop]) -> dict[str, str]:
        """The evidence in a case's entry of the document: the numbers of its lines and of its TLPs."""
        return {
            "console": ranges(self.lines.add(console), between=" "),
            "ladder": ranges(self.hops.add(ladder), between=" "),
        }

    def document(self) -> dict[str, Any]:
        """The lines and TLPs that the numbers stand for; a TLP is the values of `Hop`'s fields."""
        return {"lines": list(self.lines.numbers), "tlps": [list(astuple(hop)) for hop in self.hops.numbers]}
