"""What `bench/` keeps of the DMA core: targets are met, and what was compared says of which core it is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
KEPT = ("rtl-area.json", "rtl-speed.json")
LEAST_TRANSFERS = 10**7


def read(name: str) -> Any:
    return json.loads((BENCH / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", KEPT)
def test_every_target_is_met(name: str) -> None:
    judged = [one for one in read(name) if one["target"] is not None]
    assert len(judged) >= 4
    assert [one["name"] for one in judged if one["met"] is not True] == []


def test_both_clocks_are_those_of_one_placement() -> None:
    clocks = [one for one in read("rtl-area.json") if one["unit"] == "MHz"]
    slower = [min(both) for both in zip(*(one["runs"] for one in clocks), strict=True)]
    best = slower.index(max(slower))
    assert [one["ours"] for one in clocks] == [one["runs"][best] for one in clocks]
    assert len(clocks) == 2


def test_the_area_says_of_which_core_it_is() -> None:
    for one in read("rtl-area.json"):
        assert re.fullmatch("[0-9a-f]{40}", one["rtl"]), one["name"]


def test_ten_million_transfers_without_a_failure() -> None:
    record = read("rtl-stress.json")
    assert record["transfers"] >= LEAST_TRANSFERS
    assert sum(record["libraries"].values()) == record["transfers"]
    assert record["failures"] == []
    assert re.fullmatch("[0-9a-f]{40}", record["rtl"])
