"""A fabric as software sees it, as a tree. The data are `tlplab/lspci/1`, of `crates/experiment/src/lspci.rs`."""

from __future__ import annotations

import os
from typing import TextIO, TypedDict

from rich.text import Text
from rich.tree import Tree

from tlplab import quantities
from tlplab.summary import console_for

# Columns that no line reaches: into a file or a pipe, the lines of a deep tree stay whole.
UNBOUNDED = 10_000


class Link(TypedDict):
    """A link as a port shows it: its present speed and width, and the port's abilities."""

    generation: int
    width: int
    generation_possible: int
    width_possible: int


class Bridge(TypedDict):
    """Buses and windows; a window is its first and last address."""

    secondary: int
    subordinate: int
    io: list[str] | None
    memory: list[str] | None
    prefetchable: list[str] | None


class BaseAddress(TypedDict):
    """A base address; without an address if there was no room."""

    index: int
    space: str
    is_64_bit: bool
    prefetchable: bool
    size: int
    address: str | None


class Capability(TypedDict):
    """A capability."""

    id: str
    extended: bool
    offset: str


class Function(TypedDict):
    """A function, and the component that it belongs to."""

    bdf: str
    parent: str | None
    component: str | None
    below: str | None
    ids: str
    class_name: str
    port_type: str | None
    link: Link | None
    mps: int | None
    mps_supported: int | None
    mrrs: int | None
    bridge: Bridge | None
    bars: list[BaseAddress]
    capabilities: list[Capability]
    interrupts: str
    msix_vectors: int
    pin: str | None


class Problem(TypedDict):
    """Something that did not work."""

    function: str
    message: str


class Document(TypedDict):
    """Everything."""

    schema: str
    title: str
    enumeration: str
    enumerated_fs: int
    now_fs: int
    functions: list[Function]
    problems: list[Problem]


def show(document: Document, stream: TextIO) -> None:
    """Prints the functions as a tree, and the problems."""
    console = console_for(stream)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = UNBOUNDED
    tree = Tree(Text(document["title"], style="bold"), guide_style="dim")
    places: dict[str | None, Tree] = {None: tree}
    # A bridge comes before what is below it.
    for function in document["functions"]:
        places[function["bdf"]] = places[function["parent"]].add(label(function))
    console.print(tree)
    if document["enumeration"] == "simulated":
        console.print(Text(f"enumeration took {quantities.time_fs(document['enumerated_fs'])}", style="dim"))
    if document["now_fs"] > document["enumerated_fs"]:
        console.print(Text(f"state after {quantities.time_fs(document['now_fs'])}", style="dim"))
    for problem in document["problems"]:
        console.print(Text(problem["message"], style="red"))


def label(function: Function) -> Text:
    """A function's address and names; below them, its addresses and limits."""
    first = Text.assemble(function["bdf"], " ", (function["component"] or "", "bold"))
    if function["below"] is not None and function["port_type"] == "downstream port":
        first.append(f" → {function['below']}")
    first.append(f"  {function['ids']} {function['port_type'] or function['class_name']}")
    if function["port_type"] == "end point":
        first.append(f", {function['class_name']}")
    if function["link"] is not None:
        first.append(f"  {speed(function['link'])}")
    lines = [*bridge_lines(function["bridge"]), *map(bar_line, function["bars"])]
    if function["port_type"] is not None:
        limits = [f"MPS {function['mps']} B of {function['mps_supported']} B"]
        if function["bridge"] is None:
            limits.append(f"MRRS {function['mrrs']} B")
        lines.append(", ".join([*limits, interrupts(function)]))
    return Text("\n").join([first, *(Text(line, style="dim") for line in lines)])


def speed(link: Link) -> str:
    """`gen4 x4`, and the port's maximum if that is more."""
    now = f"gen{link['generation']} x{link['width']}"
    possible = f"gen{link['generation_possible']} x{link['width_possible']}"
    return now if now == possible else f"{now} of {possible}"


def bridge_lines(bridge: Bridge | None) -> list[str]:
    """Buses and windows."""
    if bridge is None:
        return []
    lines = [f"buses {bridge['secondary']:02x} to {bridge['subordinate']:02x}"]
    for name, window in (("I/O", bridge["io"]), ("memory", bridge["memory"]), ("prefetchable", bridge["prefetchable"])):
        if window is not None:
            lines.append(f"{name} {window[0]} to {window[1]}")
    return lines


def bar_line(bar: BaseAddress) -> str:
    """`BAR 0  0xc0000000  1 MiB of memory, prefetchable`"""
    space = "I/O" if bar["space"] == "io" else "memory, prefetchable" if bar["prefetchable"] else "memory"
    return f"BAR {bar['index']}  {bar['address'] or 'no address'}  {size(bar['size'])} of {space}"


def size(count: int) -> str:
    """Bytes in the largest unit that divides them."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count % 1024 or count < 1024:
            return f"{count} {unit}"
        count //= 1024
    return f"{count} TiB"


def interrupts(function: Function) -> str:
    """The interrupts of the function in words."""
    mode = function["interrupts"]
    if mode == "msi-x":
        count = function["msix_vectors"]
        return f"MSI-X, {count} vector{'s' * (count != 1)}"
    return {"msi": "MSI", "intx": f"INT{function['pin']}", "none": "no interrupts"}[mode]
