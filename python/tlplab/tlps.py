"""The TLPs of a run as a table: filtered, counted, and compared with conditions."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, overload

from tlplab import _core
from tlplab.result import Document

KINDS = (
    "MRd", "MRdLk", "MWr", "DMWr", "IORd", "IOWr", "CfgRd0", "CfgRd1", "CfgWr0", "CfgWr1", "Msg", "MsgD", "Cpl", "CplD",
    "CplLk", "CplDLk", "FetchAdd", "Swap", "CAS",
)  # fmt: skip
STATUSES = ("SC", "UR", "CRS", "CA")
# Lines that a message shows.
MOST_LINES = 12
# Others around a TLP that is not as it has to be.
AROUND = 2


@dataclass(frozen=True)
class Tlp:
    """A TLP on one link, from its first to its last symbol. A TLP that crosses a switch has two rows."""

    kind: str
    """`MRd`, `MWr`, `CplD`…"""
    flow: str | None
    """Its flow; `None` for enumeration and messages."""
    link: str
    """The link, by the component below."""
    sender: str
    receiver: str
    start_ns: float
    end_ns: float
    arrive_ns: float
    tag: int | None
    transaction: int | None
    """The number of its transaction in the run."""
    bytes: int
    """Bytes on the link, with framing."""
    replay: bool
    """True for a replay."""
    bad: bool
    """True if the TLP was damaged on the link."""
    text: str
    """The line that says it."""
    length: int | None = None
    """Length of its payload, or of the data that it requests, in DW."""
    requester: str | None = None
    completer: str | None = None
    first_be: int | None = None
    last_be: int | None = None
    address: int | None = None
    status: str | None = None
    """Status of a completion: `SC`, `UR`, `CRS` or `CA`."""
    byte_count: int | None = None
    lower_address: int | None = None
    function: str | None = None
    """Target function of a configuration request."""
    register: int | None = None

    def touches(self, address: int, size: int = 1) -> bool:
        """True if it is a request for one of `size` bytes at an address. Byte enables count."""
        if self.address is None:
            return False
        words, first, last = self.length or 1, self.first_be, self.last_be
        if first is None:  # an AtomicOp
            return self.address < address + size and address < self.address + 4 * words
        enabled = [(0, first)] if words == 1 else [(0, first), (4 * (words - 1), last or 0)]
        ends = [self.address + word + byte for word, enables in enabled for byte in range(4) if enables >> byte & 1]
        return bool(ends) and min(ends) < address + size and address <= max(ends)

    def __str__(self) -> str:
        of = f"  ({self.flow}, transaction {self.transaction})" if self.flow is not None else ""
        marks = "".join(f" [{word}]" for word, told in (("replay", self.replay), ("damaged", self.bad)) if told)
        return f"{self.start_ns:12.3f} ns  {self.sender} → {self.receiver}: {self.text}{marks}{of}"


COLUMNS = tuple(field.name for field in fields(Tlp))


class Tlps(Sequence[Tlp]):
    """TLPs in the order of their first symbols."""

    def __init__(
        self, rows: Sequence[Tlp], names: Mapping[str, Collection[str]], whole: Tlps | None = None, said: str = ""
    ) -> None:
        """`names` are the possible ones of columns; `whole` is the table from which these rows were chosen, by the conditions in `said`."""
        self._rows = list(rows)
        self._names = names
        self._whole = whole if whole is not None else self
        self._said = said

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Tlp]:
        return iter(self._rows)

    @overload
    def __getitem__(self, at: int) -> Tlp: ...
    @overload
    def __getitem__(self, at: slice) -> Tlps: ...
    def __getitem__(self, at: int | slice) -> Tlp | Tlps:
        if isinstance(at, slice):
            return Tlps(self._rows[at], self._names, self._whole, self._said)
        return self._rows[at]

    def __repr__(self) -> str:
        return f"<{counted(len(self))}{f' with {self._said}' if self._said else ''}>"

    def __str__(self) -> str:
        return "\n".join(map(str, self._rows))

    def where(self, **conditions: Any) -> Tlps:
        """The TLPs that fulfil all conditions: `where(kind="MRd", flow="nic.fetch", length=lambda dw: dw > 32)`.

        A condition is a value, a collection of values, or a function of the value. Raises `TypeError` for an unknown column, `ValueError` for
        a kind, a flow, a link or a component that the run does not have.
        """
        self._check(conditions)
        rows = [row for row in self if meets(row, conditions)]
        said = ", ".join(
            filter(None, [self._said, *(f"{name}={as_word(wanted)}" for name, wanted in conditions.items())])
        )
        return Tlps(rows, self._names, self._whole, said)

    def column(self, name: str) -> list[Any]:
        """The values of a column."""
        self._check({name: None})
        return [getattr(row, name) for row in self]

    def _check(self, conditions: Mapping[str, Any]) -> None:
        for name, wanted in conditions.items():
            if name not in COLUMNS:
                raise TypeError(
                    f"TLPs have no column {name!r}{meant(name, COLUMNS)}; the columns are {', '.join(COLUMNS)}"
                )
            known = self._names.get(name)
            values = [wanted] if isinstance(wanted, str) else wanted if isinstance(wanted, Collection) else []
            for value in values:
                if known is not None and isinstance(value, str) and value not in known:
                    near = meant(value, known) or f"; there are {', '.join(known) or 'none'}"
                    raise ValueError(f"{name}={value!r}: this run has no such {name}{near}")

    def expect_count(
        self, exactly: int | None = None, *, at_least: int | None = None, at_most: int | None = None
    ) -> Tlps:
        """Fails the test unless the number of TLPs is as given. Returns the table."""
        __tracebackhide__ = True
        if exactly is at_least is at_most is None:
            raise TypeError(
                "a count is missing, as in expect_count(4), expect_count(at_least=1), expect_count(at_most=8)"
            )
        low = exactly if exactly is not None else at_least or 0
        high = exactly if exactly is not None else at_most
        if len(self) < low or (high is not None and len(self) > high):
            wanted = [f"{exactly}"] if exactly is not None else []
            wanted += [f"at least {at_least}"] if at_least is not None else []
            wanted += [f"at most {at_most}"] if at_most is not None else []
            shown = self if len(self) else self._whole
            what = "they are" if len(self) else f"of all {counted(len(shown))}, the last are"
            # Those that are too many come last.
            raise AssertionError(f"{self!r}, where {' and '.join(wanted)} are expected; {what}:\n{tail(shown)}")
        return self

    def expect_none(self) -> None:
        """Fails the test if there is a TLP."""
        __tracebackhide__ = True
        if len(self):
            raise AssertionError(f"{self!r}, where none is expected:\n{head(self)}")

    def expect_all(self, **conditions: Any) -> Tlps:
        """Fails the test unless every TLP fulfils the conditions, or if there is no TLP. Conditions are those of `where`. Returns the table."""
        __tracebackhide__ = True
        self._check(conditions)
        if not len(self):
            raise AssertionError(
                f"{self!r}, so no TLP is {said(conditions)}; of all {counted(len(self._whole))}, the last are:\n{tail(self._whole)}"
            )
        wrong = [row for row in self if not meets(row, conditions)]
        if wrong:
            first = wrong[0]
            has = ", ".join(f"{name}={as_word(getattr(first, name))}" for name in conditions)
            raise AssertionError(
                f"{len(wrong)} of {counted(len(self))}{f' with {self._said}' if self._said else ''} are not {said(conditions)}; the first has {has}:\n"
                f"{around(self._whole, first)}"
            )
        return self


def meets(tlp: Tlp, conditions: Mapping[str, Any]) -> bool:
    """True if a TLP fulfils all conditions."""
    return all(fits(getattr(tlp, name), wanted) for name, wanted in conditions.items())


def fits(value: Any, wanted: Any) -> bool:
    """True if a value is the wanted one, or fulfils the wanted function; an absent value fulfils none."""
    if callable(wanted):
        return value is not None and bool(wanted(value))
    if isinstance(wanted, Collection) and not isinstance(wanted, str | bytes):
        return value in wanted
    return bool(value == wanted)


def as_word(wanted: Any) -> str:
    """A condition for a message."""
    if callable(wanted):
        return getattr(wanted, "__name__", "…")
    return str(wanted)


def said(conditions: Mapping[str, Any]) -> str:
    """Conditions for a message."""
    return ", ".join(f"{name}={as_word(wanted)}" for name, wanted in conditions.items())


def meant(name: str, known: Collection[str]) -> str:
    """The known name that is probably meant, as the end of a message; empty without one."""
    plain = {one.casefold(): one for one in known}
    near = get_close_matches(name.casefold(), plain, 1)
    return f"; did you mean {plain[near[0]]}?" if near else ""


def counted(count: int) -> str:
    """`1 TLP`, `12 TLPs`."""
    return "1 TLP" if count == 1 else f"{count or 'no'} TLPs"


def head(rows: Sequence[Tlp]) -> str:
    """The first lines, and how many more there are."""
    more = [f"… and {len(rows) - MOST_LINES} more"] if len(rows) > MOST_LINES else []
    return "\n".join([*map(str, rows[:MOST_LINES]), *more])


def tail(rows: Sequence[Tlp]) -> str:
    """The last lines, and how many there are before them."""
    more = [f"{len(rows) - MOST_LINES} before, …"] if len(rows) > MOST_LINES else []
    return "\n".join([*more, *map(str, rows[-MOST_LINES:])]) or "(none)"


def around(rows: Sequence[Tlp], row: Tlp) -> str:
    """A line, marked, among those before and after it."""
    at = next(number for number, one in enumerate(rows) if one is row)
    begin = max(at - AROUND, 0)
    return "\n".join(f"{'>' if one is row else ' '} {one}" for one in list(rows)[begin : at + AROUND + 1])


def of_result(result: Document) -> Tlps:
    """The TLPs in the ladder of a result document."""
    packets = [] if (ladder := result["ladder"]) is None else ladder["packets"]
    flows, links = [flow["name"] for flow in result["flows"]], result["links"]

    def row(packet: Mapping[str, Any]) -> Tlp:
        link = links[packet["link"]]
        way = link["directions"][packet["direction"]]
        flow = None if packet["flow"] is None else flows[packet["flow"]]
        return as_tlp(packet, flow, link["name"], way["from"], way["to"])

    rows = [row(packet) for packet in packets if packet["class"] == "tlp"]
    components = {end for link in links for end in (link["upper"], link["lower"])}
    names = {
        "kind": KINDS, "status": STATUSES, "flow": flows, "link": [link["name"] for link in links],
        "sender": sorted(components), "receiver": sorted(components),
    }  # fmt: skip
    return Tlps(rows, names)


def as_tlp(packet: Mapping[str, Any], flow: str | None, link: str, sender: str, receiver: str) -> Tlp:
    """A packet of a ladder as a row."""
    told = dict(packet["header"])
    if "address" in told:
        told["address"] = int(told["address"], 16)
    return Tlp(
        kind=packet["kind"],
        flow=flow,
        link=link,
        sender=sender,
        receiver=receiver,
        **{f"{name}_ns": packet[f"{name}_fs"] / 1e6 for name in ("start", "end", "arrive")},
        **{name: packet[name] for name in ("tag", "transaction", "bytes", "replay", "bad", "text")},
        **told,
    )


def of_run(simulation: _core.Simulation, count: int = 0) -> tuple[int, Tlps]:
    """The number of TLPs that an unfinished run has sent, and those after the first `count`; of more than it keeps, the latest."""
    seen, text = simulation.tlps_after(count)
    flows, links, components = simulation.names()
    rows = [as_tlp(one, one["flow_name"], one["link_name"], one["from"], one["to"]) for one in json.loads(text)]
    names = {
        "kind": KINDS, "status": STATUSES, "flow": flows, "link": links, "sender": components, "receiver": components,
    }  # fmt: skip
    return seen, Tlps(rows, names)
