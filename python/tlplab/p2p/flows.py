"""The measured flows, from device to device, alone and together, and the well-known patterns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Op = Literal["write", "read"]
Kind = Literal["pair", "both", "latency", "ring", "all", "fan", "named"]
OPS: tuple[Op, ...] = ("write", "read")


@dataclass(frozen=True)
class Flow:
    """Data that go from `source` to `target`: pushed by writes of the source, or pulled by reads of the target."""

    source: str
    target: str
    op: Op = "write"

    @property
    def issuer(self) -> str:
        """The device that makes the requests."""
        return self.source if self.op == "write" else self.target

    @property
    def completer(self) -> str:
        """The device whose memory is meant."""
        return self.target if self.op == "write" else self.source

    def __str__(self) -> str:
        return f"{self.source} → {self.target}"


@dataclass(frozen=True)
class Together:
    """Flows that run at the same time; of kind `latency` a single read at a time."""

    name: str
    kind: Kind
    flows: tuple[Flow, ...]

    @property
    def op(self) -> str:
        """The operation of the flows: `write`, `read`, or `mixed`."""
        ops = {flow.op for flow in self.flows}
        return ops.pop() if len(ops) == 1 else "mixed"


@dataclass(frozen=True)
class Device:
    """A device, and the switch or root port that it is under; of a function, those of its device."""

    name: str
    under: str
    function_of: str | None = None
    """The device that it is a further function of."""

    @property
    def device(self) -> str:
        """The device that it is, or is a function of."""
        return self.function_of or self.name


def one(kind: Kind, *flows: Flow) -> Together:
    """Flows of a pair, with a name of their own."""
    return Together(f"{kind} {flows[0].op} {flows[0]}", kind, flows)


def ordered(devices: Sequence[Device]) -> list[tuple[str, str]]:
    """All pairs in both orders."""
    return [(a.name, b.name) for a in devices for b in devices if a != b]


def unordered(devices: Sequence[Device]) -> list[tuple[str, str]]:
    """All pairs, each once."""
    return [(a.name, b.name) for n, a in enumerate(devices) for b in devices[n + 1 :]]


def pairs(devices: Sequence[Device]) -> list[Together]:
    """Each pair alone: writes and reads one way, writes both ways at once."""
    one_way = [one("pair", Flow(a, b, op)) for op in OPS for a, b in ordered(devices)]
    return one_way + [one("both", Flow(a, b), Flow(b, a)) for a, b in unordered(devices)]


def latencies(devices: Sequence[Device]) -> list[Together]:
    """One small read at a time, of each device from each."""
    return [one("latency", Flow(target, reader, "read")) for reader, target in ordered(devices)]


def rings(devices: Sequence[Device]) -> list[Together]:
    """All devices at once, each to the device that is so far behind it in their order."""
    names = [device.name for device in devices]
    return [
        Together(f"ring +{by}, {op}", "ring", tuple(Flow(a, names[(n + by) % len(names)], op) for n, a in enumerate(names)))
        for by in range(1, len(names))
        for op in OPS
    ]  # fmt: skip


def groups(devices: Sequence[Device]) -> dict[str, list[Device]]:
    """The devices by their common switch or root, in their order."""
    found: dict[str, list[Device]] = {}
    for device in devices:
        found.setdefault(device.under, []).append(device)
    return found


def all_to_all(devices: Sequence[Device]) -> list[Together]:
    """Each to each: in one switch (the first with two devices), and all."""
    found = []
    shared = next((members for members in groups(devices).values() if 1 < len(members) < len(devices)), None)
    for title, members in (("in " + shared[0].under if shared else "", shared), ("of all", devices)):
        if members is not None:
            found += [Together(f"all to all {title}, {op}", "all", tuple(Flow(a, b, op) for a, b in ordered(members))) for op in OPS]  # fmt: skip
    return found


def fans(devices: Sequence[Device]) -> list[Together]:
    """From the first switch's devices, one flow each: to one other switch, and to as many others as there are."""
    first, *others = groups(devices).values()
    found = []
    for count in range(1, min(len(first), len(others[0]) if others else 0) + 1):
        names = list(zip(first[:count], others[0][:count], strict=True))
        found.append((f"{count} from {first[0].under} to {others[0][0].under}", names))
    for count in range(2, min(len(first), len(others)) + 1):
        names = [(source, members[0]) for source, members in zip(first[:count], others[:count], strict=True)]
        found.append((f"{count} from {first[0].under} to {count} others", names))
    return [
        Together(f"{title}, {op}", "fan", tuple(Flow(a.name, b.name, op) for a, b in names))
        for title, names in found
        for op in OPS
    ]
