"""Records in `bench/` of the DMA core and of mutants: targets are met, and each comparison names its sources."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
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


def test_both_clocks_come_from_one_placement() -> None:
    clocks = [one for one in read("rtl-area.json") if one["unit"] == "MHz"]
    slower = [min(both) for both in zip(*(one["runs"] for one in clocks), strict=True)]
    best = slower.index(max(slower))
    assert [one["ours"] for one in clocks] == [one["runs"][best] for one in clocks]
    assert len(clocks) == 2


def test_the_area_names_the_commit_of_its_core() -> None:
    """And of which of verilog-pcie's commits; the paper's are neither."""
    for one in read("rtl-area.json"):
        whose = {"verilog-pcie": "peer_commit", "Table 2": None}.get(one["name"].partition(":")[0], "rtl")
        if whose is not None:
            assert re.fullmatch("[0-9a-f]{40}", one[whose]), one["name"]


def test_the_area_is_compared_behind_the_same_shim() -> None:
    records = read("rtl-area.json")
    compared = [one for one in records if one["peer_name"] == "verilog-pcie: sum" and one["ours"] is not None]
    assert {(one["name"], one["unit"]) for one in compared} == {
        ("xc6v: all with the UltraScale+ shim, flattened", unit) for unit in ("LUT", "LUTRAM", "FF", "BRAM36")
    }
    of = {(one["name"], one["unit"]): one["peer"] for one in records if one["ours"] is None}
    for one in compared:
        parts = [
            peer
            for (name, unit), peer in of.items()
            if unit == one["unit"] and name.startswith("verilog-pcie: ") and "sum" not in name
        ]
        assert (len(parts), sum(parts)) == (3, one["peer"])


def test_ten_million_transfers_without_a_failure() -> None:
    record = read("rtl-stress.json")
    assert record["transfers"] >= LEAST_TRANSFERS
    assert sum(record["libraries"].values()) == record["transfers"]
    assert record["failures"] == []
    assert re.fullmatch("[0-9a-f]{40}", record["rtl"])


def program(name: str) -> ModuleType:
    """A program of bench/ as a module."""
    spec = importlib.util.spec_from_file_location(name, BENCH / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def mutants() -> ModuleType:
    return program("mutants")


def test_rtl_mutants_can_be_seeded_and_recorded_ones_are_caught() -> None:
    bench = program("rtl_mutants")
    listed = bench.read_list()
    assert len(listed) >= 60
    folders = {mutant.file.partition("/")[0] for mutant in listed}
    assert folders >= {"core", "fifo", "shim", "user"}
    for mutant in listed:
        assert mutant.new in bench.seeded(mutant)
    records = bench.read_records(BENCH / "rtl-mutants.json")
    assert records
    assert bench.complaints(listed, records) == []


def test_a_surviving_mutant_of_the_rtl_is_reported() -> None:
    bench = program("rtl_mutants")
    listed = bench.read_list()[:40]
    caught = {mutant.key: {"caught_by": "stress"} for mutant in listed}
    assert bench.complaints(listed, caught) == []
    missed = {**caught, listed[0].key: {"caught_by": None}}
    [new] = bench.complaints(listed, missed)
    assert "nothing notices: add a test, or the reason" in new
    known = [dataclasses.replace(listed[0], reason="the same"), *listed[1:]]
    assert bench.complaints(known, missed) == []
    [obsolete] = bench.complaints(known, caught)
    assert "its reason is obsolete" in obsolete
    few = {**caught, **{mutant.key: {"caught_by": None} for mutant in listed[:3]}}
    assert "3 of 40 mutants survive, more than 5%" in bench.complaints(listed, few)[-1]


def test_survivors_are_few_and_each_has_a_reason() -> None:
    records = read("mutants.json")
    assert mutants().complaints(records, {}) == []
    for one in records:
        assert one["viable"] == one["caught"] + one["timeout"] + one["missed"]
        assert one["missed"] == len(one["survivors"]), one["file"]


def test_the_lines_of_survivors_are_there() -> None:
    reasons = mutants().read_reasons(BENCH / "mutants.toml")
    assert reasons
    for file, change, line in reasons:
        lines = (BENCH.parent / file).read_text(encoding="utf-8").splitlines()
        assert line in [text.strip() for text in lines], f"{file}: {change}: not there any more: {line}"


def test_a_new_survivor_is_reported() -> None:
    bench = mutants()
    file, change, line = next(iter(reasons := bench.read_reasons(BENCH / "mutants.toml")))
    number = [text.strip() for text in (BENCH.parent / file).read_text(encoding="utf-8").splitlines()].index(line)
    mutant = {"name": f"{file}:{number + 1}:1: {change}", "file": file, "span": {"start": {"line": number + 1}}}
    outcomes = [
        {"summary": summary, "scenario": {"Mutant": mutant}} for summary in ["CaughtMutant"] * 19 + ["MissedMutant"]
    ]
    known = {(file, change, line): reasons[file, change, line]}
    [record] = bench.summarize("transaction", outcomes, known)
    assert (record["viable"], record["caught"], record["missed"]) == (20, 19, 1)
    assert bench.complaints([record], known) == []
    [new] = bench.complaints(bench.summarize("transaction", outcomes, {}), {})
    assert new.startswith(f"{file}:{number + 1}: {change}\n    no test notices")
    [few] = bench.complaints(bench.summarize("transaction", outcomes[1:] + outcomes[19:], known), known)
    assert "2 of 20 mutants survive" in few
    [obsolete] = bench.complaints(bench.summarize("transaction", outcomes[:19], known), known)
    assert "its reason in bench/mutants.toml is obsolete" in obsolete
