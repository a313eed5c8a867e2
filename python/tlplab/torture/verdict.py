"""The verdict about a driver, from the output of its guest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

RECOVERED, DEGRADED, CORRUPTED, HUNG, OOPS = "recovered", "degraded", "corrupted", "hung", "oops"
LEAKED, MISSED, UNDECIDED = "leaked", "missed", "undecided"
# How a boot ends that is ended.
SILENT = "no progress for 120 s of simulated time"
ENDLESS = "still working after an hour of simulated time"
SPINS = "the processor is in a loop without advancing the guest's time"
VERDICTS = (RECOVERED, DEGRADED, CORRUPTED, LEAKED, HUNG, OOPS, MISSED, UNDECIDED)
FINDINGS = (CORRUPTED, LEAKED, HUNG, OOPS, MISSED, UNDECIDED)
STAMP = re.compile(r"^\[ *\d+\.\d+\] ")
# A trace alone is none: the kernel prints one for an allocation that failed, too.
IS_OOPS = re.compile(
    r"Oops|BUG:|Kernel panic|Kernel mode fault|general protection|\bWARNING: |INFO: trying to register non-static key|refcount_t"
    r"|list_(add|del) corruption|use-after-free"
)
# As kmemleak and the debugging of DMA mappings say it.
IS_LEAK = re.compile(r"unreferenced object|pending DMA allocations")
IS_CORRUPTED = re.compile(r"\bdiffer\b|data are wrong|verify failed", re.IGNORECASE)
IS_HUNG = re.compile(r"blocked for more than \d+ seconds|soft lockup|rcu.*stall")
# As the kernel says that it makes an allocation fail.
IS_INJECTED = re.compile(r"FAULT_INJECTION|name fail\w+, interval")
# Programs print what took how long, and what they wrote where.
VARIES = re.compile(r"\b(char|byte|line|accessed) \d+|\d+(\.\d+)? ?(seconds|s|[kMG]?B/s)\b|\b0x[0-9a-f]+\b")


@dataclass(frozen=True)
class Boot:
    """A boot that is over: its output, and its end."""

    console: tuple[str, ...]
    end: str
    """`powered off`, `died: …`, the error, or `SILENT`, `ENDLESS`, `SPINS`."""
    status: int | None
    """Of the script's work; None if it did not come to its end."""
    removed: bool
    """The drivers let the devices go."""
    failed: bool = False
    """The run could not go on: a device accessed memory that no driver gave it."""
    died: bool = False
    """The kernel died."""
    struck: int | None = None
    """The number of times that the fault has happened, if it is counted."""


@dataclass(frozen=True)
class Verdict:
    """The verdict about a driver and a fault."""

    word: str
    """One of `VERDICTS`."""
    why: str
    """The line of the console that shows it, or the missing line."""
    new: tuple[str, ...]
    """The lines that the reference has not."""


def judge(boot: Boot, reference: Boot) -> Verdict:
    """The verdict about the driver in `boot`, compared with the boot without a fault."""
    new = new_lines(boot.console, reference.console)

    def told(pattern: re.Pattern[str]) -> str | None:
        return next((line for line in new if pattern.search(line)), None)

    if boot.struck == 0:
        return Verdict(MISSED, "the fault did not occur", new)
    if boot.died:
        return Verdict(OOPS, told(IS_OOPS) or boot.end, new)
    # The kernel warns of mappings that are left, so leaks come before warnings.
    if (line := told(IS_LEAK)) is not None:
        return Verdict(LEAKED, line, new)
    if (line := told(IS_OOPS)) is not None:
        return Verdict(OOPS, line, new)
    if boot.failed:
        return Verdict(CORRUPTED, boot.end, new)
    if (line := told(IS_CORRUPTED)) is not None:
        return Verdict(CORRUPTED, line, new)
    if (line := told(IS_HUNG)) is not None:
        return Verdict(HUNG, line, new)
    if boot.end == SPINS:
        # A loop that waits for the clock ends on a PC, whose time passes meanwhile.
        return Verdict(UNDECIDED, f"{SPINS}; last: {last_line(boot)}", new)
    if boot.end == SILENT:
        what = "the work does not end" if boot.status is None else "the devices are not released"
        what = "the guest does not power off" if boot.removed else what
        return Verdict(HUNG, f"{what}, {SILENT}; last: {last_line(boot)}", new)
    if boot.end == ENDLESS:
        return Verdict(DEGRADED, boot.end, new)
    if boot.status is None or not boot.removed:
        return Verdict(HUNG, f"the guest powered off before the end: {boot.end}", new)
    if boot.status != 0:
        return Verdict(DEGRADED, error_of(new) or f"the work ends with status {boot.status}", new)
    return Verdict(RECOVERED, error_of(new), new)


def last_line(boot: Boot) -> str:
    """The last line of the output."""
    return STAMP.sub("", boot.console[-1]) if boot.console else ""


def new_lines(console: Sequence[str], reference: Sequence[str]) -> tuple[str, ...]:
    """The lines of a console that the reference has not, or not as often."""
    left = Counter(map(comparable, reference))
    new = []
    for line in console:
        left[same := comparable(line)] -= 1
        if left[same] < 0:
            new.append(STAMP.sub("", line))
    return tuple(new)


def comparable(line: str) -> str:
    """A line without the parts that differ from run to run."""
    return VARIES.sub("#", STAMP.sub("", line))


def error_of(new: Sequence[str]) -> str:
    """The line that describes the event best: the first that speaks of an error, or the first."""
    new = [line for line in new if not IS_INJECTED.match(line)]
    speaks = re.compile(r"error|fail|timeout|timed out|abort|reset|down|remov|dead|not |no ", re.IGNORECASE)
    return next((line for line in new if speaks.search(line)), new[0] if new else "")
