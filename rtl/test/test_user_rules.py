# SPDX-License-Identifier: MIT OR Apache-2.0
"""Each rule of the user's port, broken: the simulation ends and says which one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from simulation import HERE, RTL

#: What breaks it in user_rules_bench.sv, and what is said.
CHANGED = "changed before it was taken"
BROKEN = {
    1: f"mrd {CHANGED}",
    2: f"mrd {CHANGED}",
    3: f"drd {CHANGED}",
    4: f"drd {CHANGED}",
    5: f"mwr {CHANGED}",
    6: f"mwr {CHANGED}",
    7: f"post {CHANGED}",
    8: f"post {CHANGED}",
    9: f"mwr_data {CHANGED}",
    10: f"mwr_data {CHANGED}",
    11: f"mrd_data.data {CHANGED}",
    12: f"swr {CHANGED}",
    13: f"srd {CHANGED}",
    14: f"mrd_data {CHANGED}",
    20: "mrd.len is 0",
    21: "drd.len is 0",
    22: "drd crosses a multiple of Max Read Request Size",
    23: "mwr.len is 0",
    24: "post.four contradicts post.addr: it is 1 exactly for an address of 64 bits",
    25: "post.four contradicts post.addr: it is 1 exactly for an address of 64 bits",
    26: "post crosses 4 KiB",
    27: "mwr_data has more words than requested",
    28: "the core takes a word before its mwr",
    29: "mwr_done before the last word was taken",
    30: "mwr_data has fewer words than requested",
    31: "srd while another read is open",
    32: "srd_data without a read",
    33: f"srd_data {CHANGED}",
    34: "post waits without bus mastering",
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("iverilog") is None:
        assert not os.environ.get("TLPLAB_STRICT"), "iverilog is not installed: .ci/install-rtl --system"
        pytest.skip("iverilog is not installed: .ci/install-rtl --system")
    built = tmp_path_factory.mktemp("user-rules") / "bench.vvp"
    sources = [RTL / "tlpdma_ports.sv", RTL / "core/user_rules.sv", HERE / "user_rules_bench.sv"]
    subprocess.run(["iverilog", "-g2012", "-o", built, *sources], check=True)
    return built


@pytest.mark.parametrize("number", [0, *BROKEN])
def test_a_broken_rule_is_reported(bench: Path, number: int) -> None:
    ran = subprocess.run(["vvp", bench, f"+broken={number}"], capture_output=True, text=True)
    said = ran.stdout + ran.stderr
    assert (ran.returncode == 0) == (number == 0), said
    assert f"user_rules_bench.rules: {BROKEN[number]}" in said if number else "no rule was broken" in said, said


def test_each_rule_is_among_them() -> None:
    source = (RTL / "core/user_rules.sv").read_text()
    rules = [line.split("%m: ")[1] for line in source.splitlines() if "%m: " in line]
    assert all(any(rule.startswith(said) for said in BROKEN.values()) for rule in rules)
