"""Transactions of a run as text: each TLP of it on its way, and the parts of its time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from tlplab import quantities as q
from tlplab.result import Document
from tlplab.tlps import Tlp, Tlps

# Lines of one transaction.
MOST_TLPS = 10
MOST_CAUSES = 8


def slowest(result: Document, flows: Sequence[int], count: int) -> Sequence[Mapping[str, Any]]:
    """The slowest of the transactions in a result's ladder that are of these flows."""
    all_of = [] if (ladder := result["ladder"]) is None else ladder["transactions"]
    of = [one for one in all_of if one["flow"] in flows]
    return sorted(of, key=lambda one: one["start_fs"] - one["end_fs"])[:count]


def text(result: Document, transaction: Mapping[str, Any], tlps: Tlps) -> str:
    """A transaction: its TLPs, then the parts of its time."""
    took = transaction["end_fs"] - transaction["start_fs"]
    flow = result["flows"][transaction["flow"]]["name"]
    lines = [
        f"transaction {transaction['id']} of {flow}, {transaction['text']}: {q.time_fs(took)}, {transaction['ending']}"
    ]
    rows = [row for row in tlps if row.transaction == transaction["id"]]
    lines += ["  " + line(row) for row in rows[:MOST_TLPS]]
    if len(rows) > MOST_TLPS:
        lines.append(f"  … and {len(rows) - MOST_TLPS} more TLPs")
    lines += ["  " + one for one in causes(result, transaction)]
    return "\n".join(lines)


def line(row: Tlp) -> str:
    """A TLP, without the parts that the transaction has for all its TLPs."""
    return str(row).removesuffix(f"  ({row.flow}, transaction {row.transaction})")


def causes(result: Document, transaction: Mapping[str, Any]) -> list[str]:
    """The causes of a transaction's time, the largest first."""
    spent: dict[str, int] = defaultdict(int)
    for one in transaction["intervals"]:
        behind = f" behind {one['behind']}" if one["behind"] else ""
        spent[f"{result['causes'][one['cause']]} at {one['place']}{behind}"] += one["duration_fs"]
    whole = sum(spent.values()) or 1
    ordered = sorted(spent.items(), key=lambda pair: -pair[1])
    lines = [
        f"{q.time_fs(duration):>10}  {100 * duration / whole:3.0f} %  {what}"
        for what, duration in ordered[:MOST_CAUSES]
    ]
    left = sum(duration for _, duration in ordered[MOST_CAUSES:])
    return [*lines, *([f"{q.time_fs(left):>10}  {100 * left / whole:3.0f} %  other causes"] if left else [])]
