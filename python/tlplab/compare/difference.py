"""Differences of two runs: settings, figures, causes of latency, limits. Only changes are listed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tlplab.compare.figures import Cause, Figures, Stream, alike, by_cause, figures_of, streams_of
from tlplab.result import Document

# Percentiles come from a histogram of three digits: what is closer may be the same.
RESOLUTION = 1e-3
# Of a share of time less is nothing.
LEAST_SHARE = 5e-5
# Tables whose keys are names.
NAMED = ("device", "switch", "bus", "link", "load")
COARSE = (".p50", ".p90", ".p99", ".p999")


@dataclass(frozen=True)
class Run:
    """A run that is compared, with its figures."""

    name: str
    result: Document
    figures: Figures
    streams: Mapping[str, Stream]

    @property
    def limit(self) -> str:
        """The sentence that names it."""
        return self.result["verdict"]["sentence"]


@dataclass(frozen=True)
class Setting:
    """A key that differs; `None` on the side that has it not."""

    key: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Change:
    """A figure on both sides; `None` on the side that has it not."""

    name: str
    unit: str
    before: float | None
    after: float | None

    @property
    def difference(self) -> float | None:
        """The increase; None if one side lacks the figure."""
        return None if self.before is None or self.after is None else self.after - self.before

    @property
    def share(self) -> float | None:
        """The same as a part of the value before; None if that was 0."""
        difference = self.difference
        return None if difference is None or not self.before else difference / self.before

    @property
    def same(self) -> bool:
        """True if both sides are equal."""
        return self.before == self.after

    @property
    def seen(self) -> bool:
        """True if the figure is fine enough to distinguish the sides, and the change exceeds the rounding."""
        if self.same or self.difference is None:
            return not self.same
        if self.unit == "%":
            return abs(self.difference) >= LEAST_SHARE
        if not self.name.endswith(COARSE):
            return True
        assert self.before is not None
        return abs(self.difference) > RESOLUTION * self.before


@dataclass(frozen=True)
class Moved:
    """Time by transaction that a cause takes on both sides, femtoseconds."""

    cause: Cause
    before: Fraction
    after: Fraction

    @property
    def difference(self) -> Fraction:
        """The increase."""
        return self.after - self.before


@dataclass(frozen=True)
class FlowDifference:
    """A flow that both sides have."""

    name: str
    before: Stream
    after: Stream
    causes: Sequence[Moved]
    """By cause, the largest change first."""
    parts: Sequence[Moved]
    """By cause, place and flow in front, the largest change first."""

    @property
    def mean(self) -> Moved:
        """The mean latency: the sum of the causes."""
        before, after = self.before, self.after
        return Moved(Cause("mean", ""), before.each(before.total), after.each(after.total))


@dataclass(frozen=True)
class Difference:
    """The differences of two runs."""

    before: Run
    after: Run
    settings: Sequence[Setting] | None
    """`None`, if a document does not tell its settings."""
    changes: Sequence[Change]
    """Every figure of either side, changed or not."""
    flows: Sequence[FlowDifference]
    only: Mapping[str, Mapping[str, Sequence[str]]]
    """`flows` and `links` that only one side has: `before` and `after`."""

    @property
    def brief_settings(self) -> list[Setting]:
        """The keys that differ; of a component or load that only one side has one row, with how many keys it has."""
        sides = [run.result.get("settings") or {} for run in (self.before, self.after)]
        owners = [{owner(key) for key in side} for side in sides]
        found: dict[str, Setting] = {}
        for setting in self.settings or ():
            of = owner(setting.key)
            if not of or all(of in side for side in owners):
                found[setting.key] = setting
                continue
            counts = [sum(owner(key) == of for key in side) for side in sides]
            found[of] = Setting(of, *(f"{count} keys" if count else None for count in counts))
        return list(found.values())

    @property
    def same(self) -> bool:
        """True if there are no differences: no setting, no figure, no cause, no limit, no packet on the wires."""
        if self.settings or any(names for sides in self.only.values() for names in sides.values()):
            return False
        if self.before.result["trace_hash"] != self.after.result["trace_hash"]:
            return False
        return self.figures_same and (self.before.limit == self.after.limit or not self.limits_alike)

    @property
    def limits_alike(self) -> bool:
        """True if the limits of both sides were found in the same way: by runs, or by figures alone."""
        before, after = (run.result["verdict"]["tried"] is None for run in (self.before, self.after))
        return before == after

    @property
    def figures_same(self) -> bool:
        """True if no figure and no cause differs."""
        moved = any(part.difference for flow in self.flows for part in flow.parts)
        return not moved and all(change.same for change in self.changes)

    def of(self, name: str) -> Change:
        """A figure by name."""
        return next(change for change in self.changes if change.name == name)


def run_of(name: str, result: Document) -> Run:
    """A run to be compared. Raises `click.UsageError` for a document whose causes do not add up."""
    return Run(name, result, figures_of(result), streams_of(result, name))


def difference(before: Run, after: Run) -> Difference:
    """The differences of `after` from `before`."""
    links = [[link["lower"] for link in run.result["links"]] for run in (before, after)]
    flows = [list(before.streams), list(after.streams)]
    names = list(dict.fromkeys((*before.figures, *after.figures)))
    return Difference(
        before, after, settings(before.result, after.result),
        [change(name, before.figures, after.figures) for name in names],
        [flow(before.streams[name], after.streams[name]) for name in before.streams if name in after.streams],
        {"flows": one_sided(*flows), "links": one_sided(*links)},
    )  # fmt: skip


def owner(key: str) -> str:
    """The component or load that a key is of: `device.nic` of `device.nic.tags`; none of the host's."""
    table, _, rest = key.partition(".")
    name, dot, _ = rest.partition(".")
    return f"{table}.{name}" if table in NAMED and dot else ""


def one_sided(before: Sequence[str], after: Sequence[str]) -> dict[str, list[str]]:
    """The names that only one side has."""
    return {
        "before": [name for name in before if name not in after],
        "after": [name for name in after if name not in before],
    }


def settings(before: Document, after: Document) -> list[Setting] | None:
    """The keys that differ; documents of older versions do not tell theirs."""
    one, other = before.get("settings"), after.get("settings")
    if one is None or other is None:
        return None
    keys = sorted({*one, *other})
    return [Setting(key, one.get(key), other.get(key)) for key in keys if one.get(key) != other.get(key)]


def change(name: str, before: Figures, after: Figures) -> Change:
    """A figure of either side."""
    (one, unit), (other, also) = before.get(name, (None, "")), after.get(name, (None, ""))
    return Change(name, unit or also, one, other)


def flow(before: Stream, after: Stream) -> FlowDifference:
    """A flow of both sides."""
    one, other = alike(before.causes, after.causes)
    parts = moved(before, after, one, other)
    return FlowDifference(before.name, before, after, moved(before, after, by_cause(one), by_cause(other)), parts)


def moved(before: Stream, after: Stream, one: Mapping[Cause, int], other: Mapping[Cause, int]) -> list[Moved]:
    """The time of each cause by transaction, the largest change first; of unchanged causes the largest."""
    causes = sorted({*one, *other})
    found = [Moved(cause, before.each(one.get(cause, 0)), after.each(other.get(cause, 0))) for cause in causes]
    return sorted(found, key=lambda part: (-abs(part.difference), -part.before))


def text_of(value: Any) -> str:
    """A setting for people."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
