"""Table 2: area, as the open flow has it, and the clock that it reaches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from studies.speedy.rows import absent, judged
from tlplab.reproduce import Beside, Row
from tlplab.reproduce.markdown import table

# From the study's experiments.
MEASURED = Path("..", "..", "bench", "rtl-area.json")
TITLE = "Area"
# Names of records: ours, the paper's core without its user design, others' blocks, clocks.
VIRTEX6, WHOLE, PUBLISHED, OTHERS, CLOCK = "xc6v: ", "xc6v: all, flattened", "Table 2: core", "verilog-pcie: ", "ECP5"
COLUMNS = ("LUT", "logic", "LUTRAM", "FF", "BRAM36")
LEAST_MHZ = 150

Records = Mapping[str, Mapping[str, Any]]
"""By name, then by unit."""


def beside(experiments: Path) -> Beside:
    """The rows and tables of the results of `make rtl-area`."""
    try:
        listed = json.loads((experiments / MEASURED).read_text(encoding="utf-8"))
    except OSError as error:
        why = (
            f"bench/rtl-area.json cannot be read ({error.strerror}); `make rtl-area` writes it, in tlplab's own folder"
        )
        return Beside(TITLE, [absent("Table 2 and the clock on an ECP5", None, None, "", why)], [], f"Left out: {why}.")
    records: dict[str, dict[str, Any]] = {}
    for one in listed:
        records.setdefault(one["name"], {})[one["unit"]] = one
    return Beside(TITLE, [*areas(records), *clocks(records)], [], text(records))


def areas(records: Records) -> list[Row]:
    """The whole of tlplab's core compared with the paper's; its user design with the descriptors is apart in Table 2."""
    note = (
        "at most; core, rings, registers, interrupts, 64-bit shim and crossings with 32 tags, by Yosys; published: the core "
        "in Xilinx's tools"
    )
    listed = []
    for unit, one in records[PUBLISHED].items():
        published, ours = one["peer"], records[WHOLE][unit]["ours"]
        listed.append(judged(f"Table 2, Virtex-6, {unit}", published, ours, "", ours <= published, note))
    return listed


def clocks(records: Records) -> list[Row]:
    """Both clocks of one placement."""
    listed = []
    for name, units in records.items():
        if not name.startswith(CLOCK):
            continue
        clock, one = name.split()[-1], units["MHz"]
        ours, runs = one["ours"], one["runs"]
        note = (
            f"at least {LEAST_MHZ}; the whole card on a stand-in of a part (45k, speed 8, nextpnr), of {len(runs)} placements "
            f"the one whose slower clock is the fastest; all: {min(runs):g} to {max(runs):g}. "
        )
        if clock == "user_clk":
            note += (
                f"256 bits at it are {ours * 32 / 1000:.2f} GB/s; Gen2 x8 brings 4. The paper's Virtex-6 has 200 MHz"
            )
        else:
            note += (
                "Gen1 x4 needs 125; the 250 of Gen1 x8 and Gen2 are not reached on an ECP5, whose own PCI Express is "
                "5 GT/s x2 at most"
            )
        listed.append(judged(f"{clock} on an ECP5", None, ours, "MHz", ours >= LEAST_MHZ, note))
    return listed


def text(records: Records) -> str:
    """The blocks, ours and others'."""

    def cells(name: str) -> list[str]:
        known: dict[str, float | None] = {
            unit: one["peer"] if one["ours"] is None else one["ours"] for unit, one in records[name].items()
        }
        lut, memory = known.get("LUT"), known.get("LUTRAM")
        known["logic"] = None if lut is None or memory is None else lut - memory
        figures = (known.get(unit) for unit in COLUMNS)
        return [name.removeprefix(VIRTEX6), *("–" if figure is None else f"{figure:g}" for figure in figures)]

    names = [name for name in records if name.startswith((VIRTEX6, OTHERS, PUBLISHED.split()[0]))]
    blocks = table(("Virtex-6", *COLUMNS), [cells(name) for name in names])
    return TEXT.format(blocks=blocks, able=table(("", "tlpdma", "verilog-pcie"), ABLE))


#: What is in the figures of `all with the UltraScale+ shim, flattened` and of verilog-pcie's sum.
ABLE = [
    ["clock of the user's logic", "its own: all crossings are counted", "that of the hard IP; crossings are the user's"],
    ["descriptors", "two rings in host memory, prefetched, or by PIO; both channels cut at pages", "ports: the user's logic gives each transfer"],
    ["after a transfer", "a write-back record in host memory, counts, interrupts with moderation", "a status at a port"],
    ["MSI-X", "table, pending bits and messages; INTx", "`pcie_msix`, not counted: Yosys finds no memory of the part for its table"],
    ["tags", "32, each with its time-out, and a quarantine after it", "32; time-outs are the hard IP's"],
    ["a completion is checked for", "requester, tag, status, kind, Byte Count, Lower Address, Length, poison, before its data are written", "requester, tag, status, kind and poison; the rest is the hard IP's check"],
    ["data of completions", "wait in a block memory of the card's clock crossing, so that the link is never held", "go to the user's memory as they come"],
    ["slave", "registers, and a window into local memory in bursts", "registers, one DW at a time; bursts are `pcie_axi_master`, not in the sum"],
    ["order of completions behind writes", "kept by sequence numbers", "not in its shim"],
    ["streams of 512 bits, straddling, virtual functions", "no", "parameters, off here"],
]  # fmt: skip


TEXT = """From `bench/rtl-area.json`, which `make rtl-area` writes; `docs/rtl-tests.md` describes how it is counted.
LUT is logic and LUTRAM, lookup tables that are memory, together; – marks figures that are not published. Slices cannot be compared: the open
flow does not place for Xilinx's parts. verilog-pcie is synthesized by the same commands, behind its own UltraScale+ shim with the
same streams: compare its sum with `all with the UltraScale+ shim, flattened`. Table 2's figures are Xilinx's tools'.

{blocks}

The capabilities of these two cores:

{able}"""
