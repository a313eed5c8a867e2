"""Classes of the TLPs that pass the link above a device, as a capture of the reference has them."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tlplab import _core

PROBE = "probe"
PHASES = (PROBE, "work", "remove")
# What comes after a first fault, in its phase.
RECOVERY = "recovery"
# Message signalled interrupts are written to here: on x86, and in user-mode Linux.
INTERRUPTS = (range(0xFEE0_0000, 0xFEF0_0000), range(0xA_0000, 0xB_0000))
# Bytes of an entry of an MSI-X table.
VECTOR = 16
PER_SECOND = 10**15
# A TLP's ladder begins with the TLPs before it: so many, and so long before it at most, in femtoseconds.
TLPS_BEFORE = 16
BEFORE = 2 * 10**9
IS_REGISTER = re.compile(r"^(.*BAR\d\+)(0x[0-9a-f]+)$")
WORD = 4
# So many registers in a row are an array.
ARRAY = 16
COMPLETIONS = ("Cpl", "CplD")
# What a message signalled interrupt is about.
INTERRUPT = "interrupt"


@dataclass(frozen=True)
class Phases:
    """The beginnings of the guest's phases, in femtoseconds: the probe begins with the boot."""

    work: int
    remove: int
    fault: int | None = None
    """The time of a fault that every boot has, if there is one."""

    def of(self, time: int) -> str:
        """The phase of a time."""
        phase = self._by_script(time)
        after = self.fault is not None and time > self.fault and phase == self._by_script(self.fault)
        return RECOVERY if after else phase

    def _by_script(self, time: int) -> str:
        return PHASES[(time >= self.work) + (time >= self.remove)]


@dataclass(frozen=True)
class Tlp:
    """A TLP on the link above a device."""

    device: str
    direction: str
    """`down` or `up`."""
    kind: str
    """`MRd`, `CfgWr0`, `CplD` …"""
    number: int
    """The n-th of this kind in this direction, from 1."""
    time: int
    """The time at which it was sent, in femtoseconds."""
    where: str
    """The target: a register, a vector, memory; of a completion, that of its request."""
    before: str = ""
    """The target of the previous TLP of its kind."""
    lanes: int = 1
    """Of the link."""
    begin: int = 0
    """The beginning of its ladder, in femtoseconds."""
    data: bytes = b""
    """The payload."""


@dataclass(frozen=True)
class TlpClass:
    """TLPs of one phase and kind about one place, in their order."""

    name: str
    tlps: tuple[Tlp, ...]

    @property
    def phase(self) -> str:
        """The phase that they are in."""
        return self.name.split()[1]


@dataclass(frozen=True)
class Bar:
    """The addresses of a BAR, as the guest reports them, and the part with an MSI-X table."""

    number: int
    addresses: range
    msix: range


def sort(tlps: Iterable[Tlp], phases: Phases) -> list[TlpClass]:
    """The classes of TLPs, in the order of their first ones."""
    classes: dict[str, list[Tlp]] = {}
    for tlp in tlps:
        name = f"{tlp.device} {phases.of(tlp.time)} {tlp.direction} {tlp.kind} {tlp.where}"
        classes.setdefault(name, []).append(tlp)
    names = arrays(list(classes))
    merged: dict[str, list[Tlp]] = {}
    for name, of in classes.items():
        merged.setdefault(names.get(name, name), []).extend(of)
    return [TlpClass(name, tuple(sorted(of, key=lambda tlp: tlp.time))) for name, of in merged.items()]


def arrays(names: Sequence[str]) -> dict[str, str]:
    """New names for classes of registers in a row: so many are an array, whose elements are alike."""
    offsets: dict[str, set[int]] = {}
    for found in filter(None, map(IS_REGISTER.match, names)):
        offsets.setdefault(found[1], set()).add(int(found[2], 16))
    renamed = {}
    for before, of in offsets.items():
        run: list[int] = []
        for offset in [*sorted(of), None]:
            if run and offset != run[-1] + WORD:
                if len(run) >= ARRAY:
                    renamed.update({f"{before}{one:#x}": f"{before}{run[0]:#x}…{run[-1]:#x}" for one in run})
                run = []
            if offset is not None:
                run.append(offset)
    return renamed


def read(capture: Path, devices: Mapping[str, int], bars: Sequence[Bar]) -> Iterator[Tlp]:
    """The TLPs of a capture that pass the links above `devices`, which have so many lanes, in the order of time."""
    counts: Counter[tuple[str, str, str]] = Counter()
    latest: dict[tuple[str, str, str], str] = {}
    # What completions answer, by frame.
    asked: dict[int, str] = {}
    sent: deque[int] = deque(maxlen=TLPS_BEFORE)
    for frame in frames(capture):
        tlp: Mapping[str, Any] | None = frame.get("tlp")
        if tlp is None:
            continue
        time = femtoseconds(frame["time"])
        begin = max([time - BEFORE, *list(sent)[:1]])
        sent.append(time)
        ends = [device for device in devices if device in (frame.get("from"), frame.get("to"))]
        if not ends:
            continue
        device = ends[0]
        direction = "up" if frame["from"] == device else "down"
        kind = str(tlp["kind"])
        where = asked.get(frame.get("response_to", 0), "") if kind in COMPLETIONS else place(tlp, direction, bars)
        if kind not in COMPLETIONS:
            asked[frame["frame"]] = f"of {kind} {where}"
        counts[key := (device, direction, kind)] += 1
        before, latest[key] = latest.get(key, ""), where
        data = bytes.fromhex(frame.get("data", ""))
        yield Tlp(device, direction, kind, counts[key], time, where, before, devices[device], begin, data)


def frames(capture: Path) -> Iterator[Mapping[str, Any]]:
    """The frames of a capture, decoded."""
    dump = _core.Dump(str(capture), [], json=True, time=0, verbose=True, limit=None, copy=None, quiet=False)
    while (lines := dump.step()) is not None:
        yield from map(json.loads, lines.splitlines())
    dump.finish()


def femtoseconds(seconds: str) -> int:
    """A time stamp in seconds."""
    whole, _, part = seconds.partition(".")
    return int(whole) * PER_SECOND + int(part.ljust(15, "0"))


def place(tlp: Mapping[str, Any], direction: str, bars: Sequence[Bar]) -> str:
    """The target of a request."""
    if "register" in tlp:
        return str(tlp["register"])
    if "address" not in tlp:
        return str(tlp.get("message", ""))
    address = int(str(tlp["address"]), 16)
    if direction == "up":
        if tlp["kind"] == "MWr" and any(address in place for place in INTERRUPTS):
            return INTERRUPT
        return f"memory {4 * int(tlp.get('length', 0))} B"
    for bar in bars:
        if address in bar.addresses:
            offset = address - bar.addresses.start
            # One vector is like another.
            return f"MSI-X+{offset % VECTOR:#x}" if offset in bar.msix else f"BAR{bar.number}+{offset:#x}"
    return f"{address:#x}"
