"""One measurement: the experiment with these flows in place of its loads, run until the rates are steady."""

from __future__ import annotations

import functools
import itertools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from tlplab import _core, outline
from tlplab.errors import RunError
from tlplab.p2p.flows import Flow, Together
from tlplab.result import Direction, Document
from tlplab.session import failures
from tlplab.summary import ERRORS, REASONS

# Of both halves of the time that is measured; a flow of a few hundred packets cannot tell less.
STEADY = 0.02
LATENCY_READS = 32
LATENCY_BYTES = 128
LATENCY_US = 100_000
# A direction that is idle for less than this has nothing left.
BUSY = 0.02
# In one call of the simulator, which nobody watches: it is in a process of its own, which can be ended.
EVENTS = 1_000_000
# Waiting longer for steady rates is given up.
LONGEST = 16
# While nothing arrives and nothing fails, the measured time grows up to this: requests may wait for page walks, or for a completion timeout.
LONGEST_WAIT_US = 1_600_000


@dataclass(frozen=True)
class Settings:
    """The kind of transactions, and the length of the runs."""

    size: int = 4096
    outstanding: int = 64
    warmup_us: int = 6
    span_us: int = 8
    patient: bool = True
    """True if a run that is not steady is made again, with twice the time."""
    seed: int | None = None


QUICK = Settings(warmup_us=4, span_us=4, patient=False)


@dataclass(frozen=True)
class Rate:
    """The result of one flow."""

    flow: Flow
    gbps: float
    """Payload, 10^9 bytes a second."""
    latency_ns: float | None
    """From the beginning of a transaction to its last byte, on average."""
    limit: str
    """The busiest link on its way if that has no room left; otherwise the limit of the run by its figures, if they name one. The failures, if there is
    nothing else."""
    failed: str | None
    """The end of transactions that failed."""
    reasons: tuple[str, ...] = ()
    """The reasons for which requests were refused in this run."""

    @property
    def carried(self) -> float | None:
        """The rate, unless all that came of it is failures."""
        return None if self.failed and self.gbps == 0 else self.gbps

    @property
    def waits(self) -> bool:
        """True if none of its transactions has ended, and nothing has arrived."""
        return self.gbps == 0 and not self.failed


@dataclass(frozen=True)
class Outcome:
    """The result of flows that ran together."""

    rates: tuple[Rate, ...]
    steady: bool

    @property
    def total(self) -> float:
        """The sum of their rates, GB/s."""
        return sum(rate.gbps for rate in self.rates)


def run(experiment: str, overrides: Sequence[str], settings: Settings, together: Together) -> Outcome:
    """Runs `together` on `experiment`, whose own loads are left out. Raises `ExperimentError`, `RunError`."""
    return measured(experiment, overrides, settings, together)[1]


def measure(experiment: str, overrides: Sequence[str], settings: Settings, together: Together) -> tuple[Document, bool]:
    """The same: the result document, and whether its rates are steady."""
    result, outcome = measured(experiment, overrides, settings, together)
    return result, outcome.steady


def measured(
    experiment: str, overrides: Sequence[str], settings: Settings, together: Together
) -> tuple[Document, Outcome]:
    """The same: the result document, and the rates in it."""

    @functools.cache
    def alone(flow: Flow) -> Rate:
        return run(experiment, overrides, settings, Together(together.name, together.kind, (flow,))).rates[0]

    factor = 1
    while True:
        result = run_once(experiment, overrides, settings, together, factor)
        found = rates(result, together)
        # A flow of which nothing has ended yet is refused, or slow. To wait until that is known costs little if it is alone.
        nothing = all(rate.waits for rate in found)
        if not nothing:
            found = [refused(rate, alone(rate.flow)) if rate.waits else rate for rate in found]
        steady = not any(rate.waits for rate in found) and (together.kind == "latency" or is_steady(result))
        more = (
            span_us(together, settings, factor) < LONGEST_WAIT_US if nothing else settings.patient and factor < LONGEST
        )
        if steady or not more:
            return result, Outcome(tuple(found), steady)
        factor *= 2


def refused(rate: Rate, alone: Rate) -> Rate:
    """The rate of a flow of which nothing ended, with the failures of the same flow alone, if nothing else came of that."""
    return rate if alone.carried else replace(rate, failed=alone.failed, reasons=alone.reasons)


def run_once(
    experiment: str, overrides: Sequence[str], settings: Settings, together: Together, factor: int
) -> Document:
    """One run; its time is `factor` times the setting's."""
    window = window_of(together, settings, factor)
    with file_of(together, settings) as load:
        simulation = _core.Simulation(
            experiment, overrides=[*overrides, *window, "fidelity=length-only"], load=load, seed=settings.seed
        )  # fmt: skip
    while not simulation.advance(EVENTS).done:
        pass
    result = cast(Document, json.loads(simulation.finish(brief=True)))
    if failed := failures(result):
        raise RunError("; ".join(failed))
    return result


def window_of(together: Together, settings: Settings, factor: int) -> list[str]:
    """Overrides: the time that is measured, `factor` times the setting's, in place of the experiment's."""
    warmup = 0 if together.kind == "latency" else settings.warmup_us * factor
    return [f"stop={warmup + span_us(together, settings, factor)}us", f"warmup={warmup}us"]


def span_us(together: Together, settings: Settings, factor: int) -> int:
    """The time that is measured."""
    return factor * (LATENCY_US if together.kind == "latency" else settings.span_us)


def check_loads(experiment: str, overrides: Sequence[str], settings: Settings, together: Together) -> None:
    """Raises `ExperimentError` if the experiment's devices cannot make such flows; the experiment itself is right."""
    with file_of(together, settings) as load:
        outline.read(experiment, overrides=[*overrides, *window_of(together, settings, 1)], load=load)


@contextmanager
def file_of(together: Together, settings: Settings) -> Iterator[str]:
    """A file with the `[load]` of these flows."""
    with TemporaryDirectory(prefix="tlplab-p2p-") as folder:
        load = Path(folder, "flows.toml")
        load.write_text(loads(together, settings), encoding="utf-8")
        yield os.fspath(load)


def loads(together: Together, settings: Settings) -> str:
    """The `[load]` of these flows."""
    if together.kind == "latency":
        rest = f'size = "{LATENCY_BYTES}B", outstanding = 1, count = {LATENCY_READS}'
    else:
        rest = f'size = "{settings.size}B", outstanding = {settings.outstanding}'
    lines = [
        f"{name_of(number)} = {{ device = {json.dumps(flow.issuer)}, target = {json.dumps(flow.completer)}, op = {json.dumps(flow.op)}, {rest} }}"
        for number, flow in enumerate(together.flows)
    ]
    return "\n".join(["[load]", *lines, ""])


def name_of(number: int) -> str:
    """Of the load of a flow."""
    return f"flow{number}"


def is_steady(result: Document) -> bool:
    """True if every flow carries as much in the first half of the measured time as in the second; also if all transactions failed."""
    flows = result["flows"]
    if not any(flow["bytes"] for flow in flows) and any(any(flow["errors"].values()) for flow in flows):
        return True
    series = result["series"]
    size = series["bin_fs"]
    bins = range(-(-(result["start_fs"] - series["start_fs"]) // size), (result["end_fs"] - series["start_fs"]) // size)
    half = len(bins) // 2
    if half == 0:
        return False
    for one in series["flows"]:
        counted = one["bytes"]
        first, second = (
            sum(counted[at] for at in part if at < len(counted)) for part in (bins[:half], bins[half : 2 * half])
        )
        # One packet of 256 B more or less at each edge says nothing.
        if abs(first - second) > STEADY * max(first, second) + 512:
            return False
    return True


def rates(result: Document, together: Together) -> list[Rate]:
    """Of each flow, in their order."""
    parents = {node["name"]: node["parent"] for node in result["topology"]["nodes"]}
    directions = {(way["from"], way["to"]): way for link in result["links"] for way in link["directions"]}
    by_name = {flow["name"]: flow for flow in result["flows"]}
    found = []
    refused = reasons(result)
    for number, flow in enumerate(together.flows):
        one = by_name[name_of(number)]
        failed = ", ".join(ERRORS[name] for name, count in one["errors"].items() if count)
        limit = None
        if failed and one["payload_bps"] == 0:
            limit = failed
        elif together.kind != "latency":
            limit = busiest_of(way(flow.source, flow.target, parents), directions)
        latency = one["latency_ns"]
        found.append(
            Rate(
                flow,
                one["payload_bps"] / 8e9,
                None if latency is None else latency["mean"],
                limit or limit_of_run(result, together),
                failed or None,
                refused if failed else (),
            )
        )
    return found


# Of `refused_peers`, by reason: a port, and the key that makes it refuse.
REFUSED_PEERS = {
    "source-validation": '"source-validation" in {key} requires a requester on a bus below {port}',
    "translation-blocking": '"translation-blocking" in {key} forbids translated requests at {port}',
    "egress-control": "{key} names the peer",
    "no-upstream-forwarding": '{port} sends nothing back: {key} lacks "upstream-forwarding"',
    "root-complex": '{key} is "off"',
}


def reasons(result: Document) -> tuple[str, ...]:
    """The reasons for refused requests, as far as the run knows: access control, the root complex or the IOMMU."""
    peers = [
        REFUSED_PEERS[refused["reason"]].format(port=refused["port"], key=refused["key"])
        for refused in result["refused_peers"]
    ]
    host = result["host"]
    iommu = host["iommu"] if host else None
    faults = [
        f"the IOMMU refuses a {fault['operation']} of {fault['device']}: {REASONS[fault['reason']]}"
        for fault in (iommu["faults"] if iommu else [])
    ]
    return tuple(dict.fromkeys(peers + faults))


def limit_of_run(result: Document, together: Together) -> str:
    """The limit of a run by its figures alone. A lack of transactions under way is not such a limit: they wait for something."""
    limit = result["verdict"]["limit"]
    if limit["kind"] == "outstanding":
        return "no link on its way"
    names = {name_of(number): f"{flow.source} → {flow.target}" for number, flow in enumerate(together.flows)}
    return " ".join(names.get(word, word) for word in limit["resource"].split(" "))


def ancestors(name: str, parents: Mapping[str, str | None]) -> list[str]:
    """A component and all above it, the root complex last."""
    found = [name]
    while (above := parents.get(found[-1])) is not None:
        found.append(above)
    return found


def way(source: str, target: str, parents: Mapping[str, str | None]) -> list[tuple[str, str]]:
    """The links from one device to another, each with its direction."""
    up, down = ancestors(source, parents), ancestors(target, parents)
    meeting = next(name for name in up if name in down)
    path = [*up[: up.index(meeting) + 1], *reversed(down[: down.index(meeting)])]
    return list(itertools.pairwise(path))


def busiest_of(path: Sequence[tuple[str, str]], directions: Mapping[tuple[str, str], Direction]) -> str | None:
    """The busiest of these links, if it has no room left; of equal ones the first. Steps inside of the root complex are not links."""
    links = [directions[step] for step in path if step in directions]
    busiest = min(links, key=lambda link: round(link["utilization"]["idle"], 2), default=None)
    if busiest is None or busiest["utilization"]["idle"] > BUSY:
        return None
    return f"{busiest['from']} → {busiest['to']}"


def document_of(outcome: Outcome) -> list[dict[str, object]]:
    """The flows as JSON has them."""
    return cast(
        "list[dict[str, object]]",
        [
            {"source": rate.flow.source, "target": rate.flow.target, "op": rate.flow.op, "gbps": rate.gbps, "limit": rate.limit, "failed": rate.failed, "reasons": list(rate.reasons)}
            for rate in outcome.rates
        ],
    )  # fmt: skip
