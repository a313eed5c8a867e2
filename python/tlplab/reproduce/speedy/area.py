"""Table 2: area, as the open flow has it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tlplab.reproduce import Outcomes, Row
from tlplab.reproduce.section import Section
from tlplab.reproduce.speedy.rows import judged

MEASURED = Path("bench") / "rtl-area.json"
FAMILY, WHOLE = "xc6v", "all, flattened"
# Table 2, the core alone, in Xilinx's tools.
PUBLISHED = {"LUT": 6419, "FF": 5892, "BRAM36": 13}
LEAST_MHZ = 150


@dataclass(frozen=True)
class Measured:
    """A line of `MEASURED`."""

    name: str
    unit: str
    ours: float
    runs: tuple[float, ...]


def measured() -> list[Measured]:
    """What `make rtl-area` wrote; nothing where it has not run."""
    if not MEASURED.is_file():
        return []
    lines = json.loads(MEASURED.read_text(encoding="utf-8"))
    return [
        Measured(str(line["name"]), str(line["unit"]), float(line["ours"]), tuple(map(float, line["runs"])))
        for line in lines
    ]


def rows(_outcomes: Outcomes) -> list[Row]:
    """The whole of ours beside the paper's core; its user design with the descriptors is apart in Table 2."""
    listed = []
    lines = measured()
    for unit, published in PUBLISHED.items():
        found = [line.ours for line in lines if (line.name, line.unit) == (f"{FAMILY}: {WHOLE}", unit)]
        what = "core, rings, registers, interrupts, 64-bit shim and crossings with 32 tags, by Yosys; published: the core in Xilinx's tools"
        for ours in found:
            listed.append(
                judged(f"Table 2, Virtex-6, {unit}", published, ours, "", ours <= published, f"at most; {what}")
            )
    for line in lines:
        if line.name.startswith("ECP5") and "user_clk" in line.name:
            slowest = min(line.runs, default=line.ours)
            note = (
                f"at least {LEAST_MHZ}; 45k, speed 8, nextpnr, the best of {len(line.runs)} placements, of which the worst has {slowest:g}. 256 bits "
                f"at it are {line.ours * 32 / 1000:.2f} GB/s; Gen2 x8 brings 4. The paper's Virtex-6 runs at 200 MHz"
            )
            listed.append(judged("clock of the core, ECP5", None, line.ours, "MHz", line.ours >= LEAST_MHZ, note))
    return listed


def text(_outcomes: Outcomes) -> str:
    """Where the figures come from."""
    return TEXT


TEXT = """## Area

The rows of Table 2 are those of `bench/rtl-area.json`, which `make rtl-area` writes; the other tables of that command have each block.
Slices cannot be compared: the open flow does not place for Xilinx's parts.
"""

SECTION = Section(rows, text)
