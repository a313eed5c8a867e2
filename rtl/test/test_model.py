# SPDX-License-Identifier: MIT OR Apache-2.0
"""The judge itself, the TRN shim alone, and the model of the memory."""

from __future__ import annotations

import os

import pytest
from simulation import HERE, design, simulate

#: The short run builds nothing here: Icarus starts at once.
SIMULATORS = ["icarus", "verilator"] if os.environ.get("TLPDMA_LONG") else ["icarus"]
SHIM = [path for path in design() if path.name.startswith(("tlpdma_p", "sync_fifo", "trn_"))]


@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("width", [64, 128])
def test_the_hard_ip_model(width: int, simulator: str) -> None:
    simulate("trn_loop", "cases_model", simulator=simulator, sources=[HERE / "trn_loop.sv"], parameters={"W": width})


@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("width", [64, 128])
def test_the_trn_shim(width: int, simulator: str) -> None:
    simulate(
        "shim_loop", "cases_shim", simulator=simulator, sources=[*SHIM, HERE / "shim_loop.sv"], parameters={"W": width}
    )


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_the_memory(simulator: str) -> None:
    sources = [path for path in design() if path.name == "ddr_model.sv"]
    simulate("ddr_model", "cases_memory", simulator=simulator, sources=sources, parameters={"MIB": 1})
