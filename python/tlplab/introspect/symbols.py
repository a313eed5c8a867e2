"""Symbols of a kernel: `System.map`, or what `/proc/kallsyms` showed."""

from __future__ import annotations

import re

from tlplab.errors import ExperimentError

# ADDRESS TYPE NAME, and for modules [module] behind it.
LINE = re.compile(rb"^([0-9a-fA-F]{1,16}) ([a-zA-Z?]) (\S+)", re.MULTILINE)
LARGEST = 256 << 20


def find_symbol(path: str, name: str) -> int:
    """The address of a symbol. Raises `OSError` and `ExperimentError`."""
    with open(path, "rb") as file:
        data = file.read(LARGEST)
    wanted = name.encode()
    match = next((m for m in LINE.finditer(data) if m[3] == wanted), None)
    if match is None:
        if LINE.search(data) is None:
            raise ExperimentError(
                path, None, None, "", "no line says ADDRESS TYPE NAME", "give a System.map or a copy of /proc/kallsyms"
            )
        raise ExperimentError(
            path, None, None, name, "there is no such symbol", "a kallsyms without data lacks it; take System.map"
        )
    address = int(match[1], 16)
    if address == 0:
        line = data.count(b"\n", 0, match.start()) + 1
        raise ExperimentError(
            path, line, None, name, "the address is 0", "copy /proc/kallsyms as root; it hides addresses from others"
        )
    return address
