"""Symbols of a kernel: `System.map`, or a copy of `/proc/kallsyms`."""

from __future__ import annotations

import re

from tlplab.errors import ExperimentError

# ADDRESS TYPE NAME, and for modules [module] behind it.
LINE = re.compile(rb"^([0-9a-fA-F]{1,16}) ([a-zA-Z?]) (\S+)", re.MULTILINE)
LARGEST = 256 << 20


def find_symbols(path: str, needed: str, *others: str) -> dict[str, int]:
    """The addresses of a symbol that must be there, and of others where they are.

    Raises `OSError` and `ExperimentError`.
    """
    with open(path, "rb") as file:
        data = file.read(LARGEST)
    wanted = {name.encode(): name for name in (needed, *others)}
    found = {wanted[match[3]]: match for match in LINE.finditer(data) if match[3] in wanted}
    if needed not in found:
        if LINE.search(data) is None:
            hint = "give a System.map or a copy of /proc/kallsyms"
            raise ExperimentError(path, None, None, "", "no line has the form ADDRESS TYPE NAME", hint)
        hint = "a kallsyms without data lacks it; take System.map"
        raise ExperimentError(path, None, None, needed, "there is no such symbol", hint)
    if int(found[needed][1], 16) == 0:
        line = data.count(b"\n", 0, found[needed].start()) + 1
        hint = "copy /proc/kallsyms as root; it hides addresses from other users"
        raise ExperimentError(path, line, None, needed, "the address is 0", hint)
    return {name: int(match[1], 16) for name, match in found.items()}
