"""Allocations of memory that fail in a driver, as a kernel of `make linux DEBUG=1` or `COVERAGE=1` lets them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tlplab.torture.classes import PHASES, PROBE

FAULT = "no memory"
DOC = "An allocation by the driver fails (kernels of `make linux DEBUG=1` and `COVERAGE=1`)."
# Where the kernel is told which fails, by the kind of the allocation: an object, or pages.
PLACES = {"slab": "failslab", "pages": "fail_page_alloc"}
# Of one kind in a phase after the probe, if not all are wanted: in the probe no two are for the same.
FIRST = 128
# What the kernel says when it has made one fail, if nothing forbids that; the script looks, too.
SAYS = "FAULT_INJECTION: forcing a failure"
FAILED, LEFT = "an allocation has failed", "no allocation has failed"
RANGES = "drivers.json"
IS_CASE = re.compile(
    rf"(?P<driver>\S+) (?P<phase>{'|'.join(PHASES)}) (?P<kind>{'|'.join(PLACES)})(?: #(?P<number>\d+))?: {FAULT}"
)


@dataclass(frozen=True)
class Allocation:
    """The n-th allocation that a driver's code makes in a phase; for the probe, when it is bound again."""

    driver: str
    first: str
    last: str
    """Addresses of the driver's first and last function."""
    phase: str
    kind: str
    number: int
    """From 1; 0 is none."""

    @property
    def group(self) -> str:
        """The class that it is in: `nvme probe slab`."""
        return f"{self.driver} {self.phase} {self.kind}"

    def arm(self) -> str:
        """The functions of a script for the beginning of a phase, and for the end: `arm PHASE`, `tell`."""
        place = f"/sys/kernel/debug/{PLACES[self.kind]}"
        settings = {
            "ignore-gfp-wait": "N",
            "require-start": self.first,
            "require-end": self.last,
            "verbose": "1",
            "interval": str(max(self.number, 1)),
            "times": "1" if self.number else "0",
            "probability": "100",
        }
        if self.kind == "pages":
            settings["min-order"] = "0"
        writes = "\n".join(f"  echo {value} >{place}/{name}" for name, value in settings.items())
        told = f'  [ "$(cat {place}/times)" = 0 ] && echo "{FAILED}" || echo "{LEFT}"'
        return f'arm() {{\n  [ "$1" = {self.phase} ] || return 0\n{writes}\n}}\ntell() {{\n{told}\n}}\n'

    def bind_again(self) -> str:
        """Binds the driver's devices again, as at the probe; where that fails, once more."""
        return f"""drivers=/sys/bus/pci/drivers/{self.driver}
for device in $drivers/0000:*; do
  name=${{device##*/}}
  echo "$name" >$drivers/unbind
  arm probe
  echo "$name" >$drivers/bind
  [ -e $drivers/$name ] || echo "$name" >$drivers/bind
done
sleep 2
"""


def struck(console: Sequence[str]) -> int | None:
    """The number of allocations that have failed; None if the guest ended before it reported them."""
    said = any(SAYS in line or FAILED in line for line in console)
    return 1 if said else 0 if LEFT in console else None


def ranges(build: Path) -> dict[str, tuple[str, str]]:
    """The addresses of each driver's code, in a kernel that lets allocations fail; nothing in another one."""
    if not (build / RANGES).is_file():
        return {}
    return {name: (first, last) for name, (first, last) in json.loads((build / RANGES).read_text()).items()}


def all_of(
    drivers: Mapping[str, tuple[str, str]], strikes: Callable[[Allocation], bool], *, every: bool
) -> list[Allocation]:
    """The allocations of drivers, by phase and kind: as many as there are, which `strikes` says of each by a boot, or the first."""
    found = []
    for driver, (first, last) in drivers.items():
        for phase in PHASES:
            for kind in PLACES:
                one = Allocation(driver, first, last, phase, kind, 0)
                limit = None if every or phase == PROBE else FIRST
                there = count(lambda number, one=one: strikes(replace(one, number=number)), limit)  # type: ignore[misc]
                found += [replace(one, number=number) for number in range(1, there + 1)]
    return found


def count(strikes: Callable[[int], bool], limit: int | None) -> int:
    """The largest number that strikes, or `limit`; numbers that do are 1 to some number."""
    low, high = 0, limit or 1
    if limit is None:
        while strikes(high):
            low, high = high, 2 * high
    elif strikes(limit):
        return limit
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if strikes(middle) else (low, middle)
    return low
