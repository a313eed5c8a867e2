"""Machines as `tlplab.scan` keeps them, for its tests."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tlplab import cli
from tlplab.scan.facts import Address, Function


def port(bdf: str, kind: str, **told: Any) -> Function:
    """A function that is well: gen4 x8, awake, 256 B and 512 B."""
    bus, device, function = re.split("[:.]", bdf)
    found = Function(
        Address(0, int(bus, 16), int(device, 16), int(function)), port=kind, header=0, capabilities_known=True
    )
    found.learn({
        "vendor": 0x1234, "device": 0x0001, "class_code": 0x0200, "name": "Card", "mps_supported": 512, "mps": 512, "mrrs": 4096,
        "extended_tags": True, "extended_tags_supported": True, "relaxed_ordering": True, "speed": 4, "speed_possible": 4, "width": 8,
        "width_possible": 8, "target_speed": 4, "power_state": "D0", "autonomous_changed": False, "aspm": [], "rcb": 64,
    })  # fmt: skip
    if "secondary" in told:
        found.header, found.class_code, found.primary = 1, 0x0604, found.address.bus
        told.setdefault("subordinate", told["secondary"])
    for name, value in told.items():
        setattr(found, name, value)
    return found


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The output of a command that succeeds. The error output has only the parts that an experiment of a scan lacks or assumes."""
    status = cli.status(arguments)
    captured = capsys.readouterr()
    written = f"{arguments[arguments.index('-o') + 1]}: " if arguments[0] == "scan" and "-o" in arguments else None
    strange = [line for line in captured.err.splitlines() if written is None or not line.startswith(written)]
    assert (status, strange) == (0, [])
    return captured.out


def gpus(**told: Any) -> list[Function]:
    """Two GPUs below one switch, one below another one, each switch below its own root port; and the registers of the ports below switches."""
    found = []
    for number, (top, count) in enumerate((("00:01.0", 2), ("00:02.0", 1))):
        first = 1 + 16 * number
        last = first + 1 + count
        found += [
            port(top, "root port", secondary=first, subordinate=last),
            port(f"{first:02x}:00.0", "upstream port", secondary=first + 1, subordinate=last),
        ]
        for nth in range(count):
            bus = first + 2 + nth
            found += [
                port(f"{first + 1:02x}:{nth:02x}.0", "downstream port", secondary=bus, **told),
                port(f"{bus:02x}:00.0", "end point", class_code=0x0302),
            ]
    return found
