"""Allocations that fail: their number, the guest's orders, and the reactions of drivers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tlplab.cli import status
from tlplab.guest import kernel
from tlplab.torture import memory
from tlplab.torture.boot import script_of
from tlplab.torture.memory import Allocation

ROOT = Path(__file__).resolve().parents[2]
NVME = str(ROOT / "experiments/linux/nvme.toml")


@pytest.mark.parametrize("there", [0, 1, 2, 7, 8, 127, 128, 129, 1000])
def test_allocations_are_counted_up_to_a_limit(there: int) -> None:
    tried: list[int] = []

    def strikes(number: int) -> bool:
        tried.append(number)
        return number <= there

    assert memory.count(strikes, None) == there
    assert memory.count(strikes, 128) == min(there, 128)
    assert len(tried) < 40


def test_all_allocations_of_the_probe_are_tried_and_the_first_afterwards() -> None:
    def tried(*, every: bool) -> dict[str, int]:
        found = memory.all_of({"nvme": ("0x1", "0x2")}, lambda one: one.number <= 200, every=every)
        return {one.group: one.number for one in found if one.kind == "slab"}

    assert tried(every=False) == {"nvme probe slab": 200, "nvme work slab": 128, "nvme remove slab": 128}
    assert set(tried(every=True).values()) == {200}


def test_a_phase_begins_with_the_allocation_that_fails() -> None:
    one = Allocation("nvme", "0x100", "0x200", "work", "pages", 5)
    script = script_of(one)
    assert '[ "$1" = work ] || return 0' in script
    for setting in ("echo 0x100 >", "echo 0x200 >", "echo 5 >/sys/kernel/debug/fail_page_alloc/interval"):
        assert setting in script
    assert "@" not in script_of(None)
    assert "unbind" in script
    assert "unbind" not in script_of(None)
    none = Allocation("nvme", "0x100", "0x200", "probe", "slab", 0)
    assert "echo 0 >/sys/kernel/debug/failslab/times" in script_of(none)


def test_the_name_of_a_case_identifies_its_allocation() -> None:
    found = memory.IS_CASE.fullmatch("e1000e work slab #12: no memory")
    assert found is not None
    assert found.groupdict() == {"driver": "e1000e", "phase": "work", "kind": "slab", "number": "12"}
    assert memory.IS_CASE.fullmatch("nvme0 work up MRd memory 64 B: lost") is None


def test_address_ranges_of_drivers_come_with_the_kernel(tmp_path: Path) -> None:
    assert memory.ranges(tmp_path) == {}
    (tmp_path / memory.RANGES).write_text(json.dumps({"nvme": ["0x1", "0x2"]}))
    assert memory.ranges(tmp_path) == {"nvme": ("0x1", "0x2")}


@pytest.mark.full
def test_a_driver_takes_an_allocation_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not (kernel.built("coverage") / kernel.MANIFEST).is_file():
        pytest.skip("the kernel with counters is not built: make linux COVERAGE=1")
    file = tmp_path / "memory.json"
    arguments = ["torture", NVME, "--linux", "coverage", "--fault", memory.FAULT, "--sample", "8", "--json", str(file)]
    assert status(arguments) == 0
    capsys.readouterr()
    document = json.loads(file.read_text())
    assert len(document["cases"]) == 8
    assert all(case["struck"] == 1 for case in document["cases"])
    # The lines that undo a probe run with no other fault.
    (nvme,) = (one for one in document["coverage"] if one["after"]["driver"] == "nvme")
    assert nvme["after"]["errors_reached"] > nvme["before"]["errors_reached"]
    name = document["cases"][0]["name"]
    assert status(["torture", NVME, "--linux", "coverage", "--case", name]) in (0, 1)
    assert memory.SAYS in capsys.readouterr().out
    assert status(["torture", NVME, "--fault", memory.FAULT]) == 2
    assert "use --linux coverage" in capsys.readouterr().err
