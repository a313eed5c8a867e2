# SPDX-License-Identifier: MIT OR Apache-2.0
"""The DMA core behind each hard IP. `TLPDMA_LONG=1` runs all cases on all of them and on both simulators, else a short choice."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from simulation import design, simulate

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
    """With the tags of test_small_buffers, so that it is built once."""
    core(256, "verilator", module, ULTRASCALE_PLUS[module], TAGS=256)


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
    core(width, "verilator", module, TAGS[module], TAGS=tags)


#: Reads that bring more than the hard IP holds if nothing keeps them back.
NARROW = {
    "cases_dma": ["a_small_ring_wraps", "pages_of_a_buffer"],
    "cases_errors": ["a_late_completion"],
    "cases_limits": ["what_comes_back_has_room", "descriptors_do_not_wait_for_the_other_direction"],
}
#: UltraScale+ with more tags, or larger reads; Virtex-6 as CORE Generator sets it (VC0_TOTAL_CREDITS_CH, _CD); the least that is allowed.
BUFFERS = [
    (256, {"TAGS": 256}),
    (256, {"MRRS_MAX": 1024}),
    (64, {"CPL_HEADERS": 36, "CPL_DATA": 378 * 16}),
    (64, {"CPL_DATA": 1024}),
]


@pytest.mark.parametrize("module", NARROW if LONG else ["cases_limits"])
@pytest.mark.parametrize(("width", "parameters"), BUFFERS if LONG else BUFFERS[:1])
def test_small_buffers(width: int, parameters: dict[str, int], module: str) -> None:
    core(width, "verilator", module, NARROW[module], **parameters)


@pytest.mark.parametrize(("parameter", "least"), [("CPL_HEADERS", 16), ("CPL_DATA", 1024)])
@pytest.mark.parametrize("top", ["tlpdma_trn", "tlpdma_usp"])
@pytest.mark.parametrize("tool", [["verilator", "--lint-only", "--top-module"], ["iverilog", "-g2012", "-tnull", "-s"]])
def test_too_small_a_buffer_is_refused(tool: list[str], top: str, parameter: str, least: int) -> None:
    """A buffer without room for two reads is refused with a message."""
    if shutil.which(tool[0]) is None:
        pytest.skip(f"{tool[0]} is not installed")
    for value in (least, least - 1):
        override = f"-G{parameter}={value}" if tool[0] == "verilator" else f"-P{top}.{parameter}={value}"
        tried = subprocess.run([*tool, top, override, *map(str, design())], capture_output=True, text=True)
        assert (tried.returncode == 0) == (value == least), tried.stderr
    assert "CPL_HEADERS_and_CPL_DATA_must_have_room_for_two_reads" in tried.stderr


def core(width: int, simulator: str, module: str, tests: list[str] | None = None, **parameters: int) -> None:
    """Behind a TRN hard IP of that width, or with 256 bits behind that of UltraScale+."""
    parameters = {"TAGS": 32, "MEMORY_MIB": 4, **parameters}
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
            "TLPDMA_TAGS": str(parameters["TAGS"]),
        },
    )
