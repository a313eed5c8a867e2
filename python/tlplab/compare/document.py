"""Differences of runs as JSON: `tlplab/diff/1`. Times of causes are whole femtoseconds of all transactions together, so that sums are exact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tlplab.compare.difference import Change, Difference, FlowDifference, Moved, Run
from tlplab.compare.figures import FS_PER_NS

SCHEMA = "tlplab/diff/1"


def as_json(base: Run, found: Sequence[Difference], *, every: bool) -> dict[str, Any]:
    """The document: the base, and each other run with how it differs."""
    return {"schema": SCHEMA, "base": about(base), "others": [other(one, every=every) for one in found]}


def about(run: Run) -> dict[str, Any]:
    """The description of a run."""
    result = run.result
    keys = ("title", "version", "seed", "trace_hash", "start_fs", "end_fs", "stop_reason")
    return {"name": run.name, **{key: result[key] for key in keys}, "limit": limit(run)}  # type: ignore[literal-required]


def limit(run: Run) -> dict[str, Any]:
    """The limit of a run."""
    verdict = run.result["verdict"]
    return {"sentence": verdict["sentence"], "resource": verdict["limit"]["resource"], "kind": verdict["limit"]["kind"]}


def other(found: Difference, *, every: bool) -> dict[str, Any]:
    """A run, and how it differs from the base."""
    settings = found.settings
    return {
        **about(found.after),
        "same": found.same,
        "settings": None
        if settings is None
        else [{"key": one.key, "base": one.before, "other": one.after} for one in settings],
        "only": {what: {"base": sides["before"], "other": sides["after"]} for what, sides in found.only.items()},
        "figures": [figure(change) for change in found.changes if every or not change.same],
        "flows": [flow(one) for one in found.flows],
    }


def figure(change: Change) -> dict[str, Any]:
    """A figure of both; `null` on the side that has it not."""
    unit = "1" if change.unit == "%" else change.unit
    return {
        "name": change.name, "unit": unit, "base": change.before, "other": change.after,
        "difference": change.difference, "share": change.share,
    }  # fmt: skip


def flow(one: FlowDifference) -> dict[str, Any]:
    """A flow of both: `base_fs` of the causes sum to `total_fs` of the base, and so does the rest. Unchanged causes are among them, too."""
    base, after = one.before, one.after
    return {
        "name": one.name,
        "transactions": {"base": base.transactions, "other": after.transactions},
        "total_fs": {"base": base.total, "other": after.total},
        "mean_ns": ns(one.mean),
        "causes": [{"cause": part.cause.cause, **totals(one, part), **ns(part)} for part in one.causes],
        "parts": [
            {"cause": part.cause.cause, "place": part.cause.place, "behind": part.cause.behind or None,
             **totals(one, part), **ns(part)}
            for part in one.parts
        ],
    }  # fmt: skip


def totals(one: FlowDifference, part: Moved) -> dict[str, int]:
    """Femtoseconds of all transactions together."""
    return {
        "base_fs": int(part.before * max(one.before.transactions, 1)),
        "other_fs": int(part.after * max(one.after.transactions, 1)),
    }


def ns(part: Moved) -> dict[str, float]:
    """By transaction, nanoseconds."""
    values = {"base_ns": part.before, "other_ns": part.after, "difference_ns": part.difference}
    return {key: float(value / FS_PER_NS) for key, value in values.items()}
