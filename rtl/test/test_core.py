# SPDX-License-Identifier: MIT OR Apache-2.0
"""The DMA core behind each hard IP. `TLPDMA_LONG=1` runs all cases on all of them and on both simulators, else a short choice."""

from __future__ import annotations

import os

import pytest
from simulation import simulate

LONG = bool(os.environ.get("TLPDMA_LONG"))
MODULES = ["cases_slave", "cases_dma", "cases_errors", "cases_interrupts", "cases_limits"]
#: What the other hard IPs and the other simulator, which is slower, show together in the short run.
FEW = {
    "cases_slave": ["it_is_found", "window_under_back_pressure", "what_is_not_supported"],
    "cases_dma": ["a_small_ring_wraps"],
}
#: What only UltraScale+ asks: credits for reads, dropped requests, completions that the hard IP breaks off.
ULTRASCALE_PLUS = {
    "cases_slave": ["a_write_that_ends_early"],
    "cases_errors": ["bus_master_off_in_mid_stream"],
    "cases_limits": ["a_class_without_credits", "few_credits_for_reads"],
}


@pytest.mark.parametrize("module", MODULES)
def test_64_bit(module: str) -> None:
    core(64, "verilator", module)


@pytest.mark.skipif(LONG, reason="among all cases")
@pytest.mark.parametrize("module", ULTRASCALE_PLUS)
def test_ultrascale_plus(module: str) -> None:
    core(256, "verilator", module, ULTRASCALE_PLUS[module])


@pytest.mark.skipif(not LONG, reason="make rtl-test-long")
@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("width", [128, 256])
def test_wider(width: int, module: str) -> None:
    core(width, "verilator", module)


@pytest.mark.skipif(not LONG, reason="make rtl-test-long")
@pytest.mark.parametrize("module", MODULES)
def test_64_bit_on_icarus(module: str) -> None:
    core(64, "icarus", module)


@pytest.mark.parametrize("module", MODULES if LONG else FEW)
@pytest.mark.parametrize("width", [128, 256])
def test_wider_on_icarus(width: int, module: str) -> None:
    core(width, "icarus", module, None if LONG else FEW[module])


#: What the number of tags changes.
TAGS = {
    "cases_slave": ["it_is_found"],
    "cases_dma": ["all_tags_are_used", "random_offsets_and_lengths", "payload_and_request_sizes"],
    "cases_errors": ["a_bad_completion", "a_late_completion"],
    "cases_limits": ["each_direction_at_its_rate", "a_reset_in_the_middle"],
}


@pytest.mark.skipif(not LONG, reason="make rtl-test-long")
@pytest.mark.parametrize("module", TAGS)
@pytest.mark.parametrize(("width", "tags"), [(64, 64), (256, 256)])
def test_more_tags(width: int, tags: int, module: str) -> None:
    core(width, "verilator", module, TAGS[module], tags)


def core(width: int, simulator: str, module: str, tests: list[str] | None = None, tags: int = 32) -> None:
    """Behind a TRN hard IP of that width, or with 256 bits behind that of UltraScale+."""
    parameters = {"TAGS": tags, "MEMORY_MIB": 4}
    simulate(
        "tlpdma_usp" if width == 256 else "tlpdma_trn",
        module,
        simulator=simulator,
        parameters=parameters if width == 256 else {"W": width, **parameters},
        tests=tests,
        # Icarus: every case, but few rounds.
        environment={
            "TLPDMA_LONG": "" if not LONG else "1" if simulator == "verilator" else "cases",
            "TLPDMA_WIDTH": str(width),
            "TLPDMA_TAGS": str(tags),
        },
    )
