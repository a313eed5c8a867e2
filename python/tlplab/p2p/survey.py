"""All measurements of an experiment, put into matrices."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tlplab.errors import ExperimentError
from tlplab.outline import Outline
from tlplab.p2p import flows as patterns
from tlplab.p2p.flows import Device, Flow, Together
from tlplab.p2p.measure import Outcome, Settings, document_of, run
from tlplab.processes import side_by_side

PARTS = ("pairs", "latency", "ring", "all", "fan")
# The matrices, with what they say and their unit.
MATRICES = {
    "write": ("Writes: the row pushes to the column", "GB/s"),
    "read": ("Reads: the column pulls from the row", "GB/s"),
    "both": ("Writes both ways at once, the sum", "GB/s"),
    "latency": ("Latency of a read of 128 B: the row reads from the column", "ns"),
}
# The model that makes requests and whose memory takes them.
MODEL = "dma"
FEWEST = 2

Matrix = list[list[float | None]]


@dataclass(frozen=True)
class Survey:
    """The results of a survey."""

    title: str
    devices: list[Device]
    matrices: dict[str, Matrix]
    """By the names of `MATRICES`; unrequested ones are left out, and failed measurements are None, as is the diagonal."""
    unsteady: frozenset[tuple[str, int, int]]
    """The matrix, row and column of each rate that was not steady."""
    partly: frozenset[tuple[str, int, int]]
    """The matrix, row and column of each figure that comes with failed requests."""
    outcomes: dict[Together, Outcome]
    """All of them, in the order of the plan."""

    @property
    def several(self) -> list[tuple[Together, Outcome]]:
        """The outcomes of more than a pair."""
        return [(one, found) for one, found in self.outcomes.items() if one.kind in ("ring", "all", "fan", "named")]

    def as_json(self) -> dict[str, Any]:
        """`matrix` by row and column of `devices`, `pairs` one by one, `flows` of several at once."""
        pairs: dict[tuple[str, str], dict[str, Any]] = {}
        for one, found in self.outcomes.items():
            first, rate = one.flows[0], found.rates[0]
            if one.kind == "pair":
                ends = pairs.setdefault((first.source, first.target), {"source": first.source, "target": first.target})
                ends[first.op] = {
                    "gbps": rate.gbps,
                    "limit": rate.limit,
                    "failed": rate.failed,
                    "reasons": list(rate.reasons),
                    "steady": found.steady,
                }
            elif one.kind == "both":
                for flow, way in zip(one.flows, found.rates, strict=True):
                    pairs[flow.source, flow.target]["both"] = {
                        "gbps": way.gbps,
                        "sum_gbps": found.total,
                        "limit": way.limit,
                        "failed": way.failed,
                        "reasons": list(way.reasons),
                        "steady": found.steady,
                    }
            elif one.kind == "latency":
                ends = pairs.setdefault((first.target, first.source), {"source": first.target, "target": first.source})
                ends["latency_ns"] = rate.latency_ns
        several = [
            {
                "name": one.name,
                "kind": one.kind,
                "op": one.op,
                "gbps": found.total,
                "steady": found.steady,
                "flows": document_of(found),
            }
            for one, found in self.several
        ]
        return {
            "title": self.title,
            "devices": [{"name": device.name, "under": device.under} for device in self.devices],
            "matrix": self.matrices,
            "pairs": list(pairs.values()),
            "flows": several,
        }  # fmt: skip


def devices_of(outline: Outline, experiment: str, wanted: Sequence[str] | None) -> list[Device]:
    """The devices that take part: those `wanted`, or all that can. Raises `ExperimentError`."""
    kinds = {part["name"]: part["model"] for part in outline["components"]}
    able = {part["name"]: part["under"] for part in outline["components"] if part["model"] == MODEL}
    chosen = sorted(able, key=natural) if wanted is None else list(wanted)
    for name in chosen:
        if name not in kinds:
            there = f"it has {', '.join(able)}" if able else f'it has no device with model = "{MODEL}"'
            raise ExperimentError(experiment, None, None, "", f"there is no device {name!r}", there)
        if name not in able:
            why = f'{name} has model = "{kinds[name]}", which cannot be both requester and target'
            raise ExperimentError(experiment, None, None, f"device.{name}", why, f'give it model = "{MODEL}"')
        if chosen.count(name) > 1:
            raise ExperimentError(experiment, None, None, "", f"{name} is named twice", "name each device once")
    if len(chosen) < FEWEST and len(able) >= FEWEST:
        why = f"{len(chosen)} device is chosen, and at least two are needed"
        raise ExperimentError(
            experiment, None, None, "", why, f"name two or more of {', '.join(sorted(able, key=natural))}"
        )
    if len(chosen) < FEWEST:
        why = f"{len(able)} of its devices can take part, and at least two are needed"
        raise ExperimentError(experiment, None, None, "", why, f'give devices model = "{MODEL}"')
    return [place_of(name, able[name], outline) for name in chosen]


def place_of(name: str, under: str, outline: Outline) -> Device:
    """A device with the place that it is under; a function of another device is where that device is."""
    if f"device.{under}.under" not in outline["settings"]:
        return Device(name, under)
    return Device(name, next(part["under"] for part in outline["components"] if part["name"] == under), under)


def natural(name: str) -> list[tuple[int, str]]:
    """Orders names with their numbers: gpu2 before gpu10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def plan(devices: Sequence[Device], parts: Iterable[str]) -> list[Together]:
    """The measurements of the requested parts."""
    made = {
        "pairs": patterns.pairs, "latency": patterns.latencies, "ring": patterns.rings, "all": patterns.all_to_all,
        "fan": patterns.fans,
    }  # fmt: skip
    return [one for part in PARTS if part in set(parts) for one in made[part](devices)]


def named(flows: Sequence[Flow]) -> list[Together]:
    """Flows that the user named: each alone, and all together."""
    alone = [patterns.one("pair", flow) for flow in dict.fromkeys(flows)]
    return [*alone, Together("together", "named", tuple(flows))]


def survey(
    experiment: str, overrides: Sequence[str], settings: Settings, title: str, devices: Sequence[Device],
    listed: Sequence[Together], *, quiet: bool, at_once: int | None = None,
) -> Survey:  # fmt: skip
    """Measures everything that is listed."""
    found = side_by_side(
        partial(run, experiment, list(overrides), settings), listed, "measurements", quiet=quiet, at_once=at_once
    )
    outcomes = {one: found[one.name] for one in listed}
    apart = any(one.kind == "named" for one in listed)
    filled, unsteady, partly = matrices(devices, {} if apart else outcomes)
    return Survey(title, list(devices), filled, unsteady, partly, outcomes)


def matrices(
    devices: Sequence[Device], outcomes: Mapping[Together, Outcome]
) -> tuple[dict[str, Matrix], frozenset[tuple[str, int, int]], frozenset[tuple[str, int, int]]]:
    """The matrices that these fill, their rates that were not steady, and their figures that come with failed requests."""
    at = {device.name: number for number, device in enumerate(devices)}
    found: dict[str, Matrix] = {}
    unsteady: set[tuple[str, int, int]] = set()
    partly: set[tuple[str, int, int]] = set()

    def put(name: str, row: str, column: str, value: float | None) -> None:
        matrix = found.setdefault(name, [[None] * len(devices) for _ in devices])
        matrix[at[row]][at[column]] = value
        if value is not None and not outcome.steady:
            unsteady.add((name, at[row], at[column]))
        if value is not None and any(rate.failed for rate in outcome.rates):
            partly.add((name, at[row], at[column]))

    for one, outcome in outcomes.items():
        flow, rate = one.flows[0], outcome.rates[0]
        if flow.source not in at or flow.target not in at:
            continue
        if one.kind == "pair":
            put(flow.op, flow.source, flow.target, rate.carried)
        elif one.kind == "both":
            carried = None if all(way.carried is None for way in outcome.rates) else outcome.total
            put("both", flow.source, flow.target, carried)
            put("both", flow.target, flow.source, carried)
        elif one.kind == "latency":
            put("latency", flow.target, flow.source, rate.latency_ns)
    return {name: found[name] for name in MATRICES if name in found}, frozenset(unsteady), frozenset(partly)
