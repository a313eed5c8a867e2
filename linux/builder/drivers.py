"""The addresses of drivers' code in a kernel, which separate the coverage of drivers from that of the rest."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from .kernel import PROFILED
from .report import BuildError, run

# The place of its result in the build: of each driver the address of its first and of its last function.
RESULT = "drivers.json"


# Parts that the compiler thinks are seldom needed would be elsewhere.
WHOLE = "\nccflags-y += -fno-reorder-blocks-and-partition\n"


def keep_whole(tree: Path) -> None:
    """Has the compiler leave each function of the drivers in one piece."""
    for folder in PROFILED:
        with (tree / folder / "Makefile").open("a", encoding="utf-8") as makefile:
            makefile.write(WHOLE)


def name_of(folder: str) -> str:
    """The driver in a folder of the kernel: `drivers/nvme/host` is nvme."""
    return folder.removesuffix("/host").rsplit("/", 1)[1]


def functions(objects: list[Path]) -> set[str]:
    """The names of functions in the section .text of objects."""
    lines = run(["readelf", "--sections", "--symbols", "-W", *objects]).splitlines()
    text, names = "", set()
    for line in lines:
        if section := re.match(r" +\[ *(\d+)\] \.text +PROGBITS", line):
            text = section[1]
        elif (symbol := re.search(r" FUNC +\w+ +DEFAULT +(\d+) (\S+)$", line)) and symbol[1] == text:
            names.add(symbol[2])
    return names


def ranges(tree: Path) -> dict[str, list[str]]:
    """Of each driver that is profiled; the objects of a folder are linked one after the other."""
    symbols = [line.split() for line in (tree / "System.map").read_text(encoding="utf-8").splitlines()]
    # A name that another object has, too, says nothing about its place.
    times = Counter(name for _, _, name in symbols)
    found = {}
    for folder in PROFILED:
        names = functions(sorted((tree / folder).glob("*.o")))
        addresses = [int(address, 16) for address, _, name in symbols if name in names and times[name] == 1]
        if not addresses:
            raise BuildError(f"{folder}: none of its functions is in System.map")
        found[name_of(folder)] = [f"{min(addresses):#x}", f"{max(addresses):#x}"]
    return found
