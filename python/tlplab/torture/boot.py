"""Boots a guest through the phases of torture."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from tlplab import _core
from tlplab.guest.initramfs import SCRIPT
from tlplab.guest.kernel import Kernel
from tlplab.guest.running import run
from tlplab.result import Document
from tlplab.torture.classes import VECTOR, Bar, Phases
from tlplab.torture.coverage import COPY
from tlplab.torture.evidence import Hop, ladder_of
from tlplab.torture.memory import Allocation
from tlplab.torture.verdict import ENDLESS, SILENT, SPINS, Boot

WORK = "work"
SAYS = "tlplab torture: "
# The work, and then every device that a driver has is let go, as by a user. An allocation that fails has its own lines in it.
PHASES_SCRIPT = f"""#!/bin/sh
hung=/proc/sys/kernel/hung_task_timeout_secs
[ ! -w $hung ] || echo 60 >$hung
arm() {{ :; }}
tell() {{ :; }}
@arm@
@again@
echo "{SAYS}work"
arm work
/tlplab/{WORK}
echo "{SAYS}ended $?"
{COPY}
arm remove
for device in /sys/bus/pci/devices/*; do
  [ -e "$device/driver" ] || continue
  case "$(readlink "$device/driver")" in
  */pcieport) ;;
  *) echo 1 >"$device/remove" ;;
  esac
done
echo "{SAYS}removed"
tell
{COPY}
leaks=/sys/kernel/debug/kmemleak
if [ -w $leaks ]; then
  # Only what is older than some seconds is reported.
  for look in 1 2; do
    sleep 6
    echo scan >$leaks
  done
  cat $leaks
fi
exit 0
"""
DISCOVERY = "#!/bin/sh\nlspci -vv\n"
IS_FUNCTION = re.compile(r"^[0-9a-f]{2}:[0-9a-f]{2}\.\d ")
IS_BAR = re.compile(r"^\tRegion (\d): Memory at ([0-9a-f]+) .*\[size=(\d+)([KMG]?)\]")
IS_DRIVER = re.compile(r"^\tKernel driver in use: (\S+)")
IS_MSIX = re.compile(r"MSI-X: .*Count=(\d+)")
IS_TABLE = re.compile(r"Vector table: BAR=(\d) offset=([0-9a-f]+)")
# What a fault's entry says: which TLP it damages, or when it takes the link away.
IS_ON_TLP = re.compile(
    r'link = "(?P<link>[^"]+)", direction = "(?P<direction>\w+)", tlp = (?P<number>\d+), of = "(?P<of>\w+)"'
)
IS_AWAY = re.compile(r'link = "(?P<link>[^"]+)", (?:down|reset) = "(?P<ns>\d+)ns"')
# In seconds of this machine's processors: a guest that takes as long without letting time pass spins.
PATIENCE = 60
# How often that is looked at, in seconds, and how often at most: a guest that takes no processor either would never come to its end.
LOOK, LOOKS = 10, 180
TICKS = os.sysconf("SC_CLK_TCK")
SECOND = 10**15
# A guest that prints nothing for so long in simulated time makes no progress, in femtoseconds.
NO_PROGRESS = 120 * SECOND
# One that still does is not waited for any longer than this.
LONGEST = 3600 * SECOND


@dataclass(frozen=True)
class Machine:
    """The machine that is booted for every case."""

    experiment: str
    overrides: tuple[str, ...]
    linux: str | None
    """As the user has named the kernel, if at all."""
    kernel: Kernel
    files: Mapping[str, bytes]
    """The guest's files in /tlplab, with its work."""


@dataclass(frozen=True)
class Told:
    """A boot, when each line was printed, in femtoseconds, and the TLPs of its ladder."""

    boot: Boot
    times: tuple[int, ...]
    ladder: tuple[Hop, ...]

    def time_of(self, says: str) -> int:
        """The time at which the script printed this. Raises `ValueError` if it did not."""
        return self.times[self.boot.console.index(SAYS + says)]

    def longest_silence(self) -> int:
        """Between two lines, in femtoseconds."""
        return max((later - sooner for sooner, later in pairwise(self.times)), default=0)

    def phases(self) -> Phases:
        """The beginnings of the phases."""
        ended = next(line for line in self.boot.console if line.startswith(f"{SAYS}ended"))
        return Phases(self.time_of("work"), self.time_of(ended.removeprefix(SAYS)))


def script_of(allocation: Allocation | None) -> str:
    """The guest's script: its phases, with an allocation that fails."""
    arm, again = ("", "") if allocation is None else (allocation.arm(), allocation.bind_again())
    return PHASES_SCRIPT.replace("@arm@", arm).replace("@again@", again)


def discover(machine: Machine) -> tuple[list[Bar], set[str]]:
    """The BARs of all functions, and their drivers, as lspci in the guest says: in a boot of its own, since it reads registers."""
    bars: list[Bar] = []
    drivers = set()
    function = vectors = 0
    for line in boot(machine, script=DISCOVERY).boot.console:
        if IS_FUNCTION.match(line):
            function = len(bars)
        elif bar := IS_BAR.match(line):
            size = int(bar[3]) << 10 * " KMG".index(bar[4] or " ")
            first = int(bar[2], 16)
            bars.append(Bar(int(bar[1]), range(first, first + size), range(0)))
        elif driver := IS_DRIVER.match(line):
            drivers.add(driver[1])
        elif msix := IS_MSIX.search(line):
            vectors = int(msix[1])
        elif table := IS_TABLE.search(line):
            first = int(table[2], 16)
            msix_bytes = range(first, first + VECTOR * vectors)
            its = enumerate(bars[function:], function)
            at = next(at for at, bar in its if bar.number == int(table[1]))
            bars[at] = replace(bars[at], msix=msix_bytes)
    return bars, drivers


def boot(
    machine: Machine, *, script: str = script_of(None), faults: Sequence[str] = (), more: Sequence[str] = (), silence: int = 0,
    pcap: Path | None = None, report: str | None = None, share: Path | None = None,
) -> Told:  # fmt: skip
    """Boots the machine with faults, the last of which counts, and further overrides; to be called in the main thread of a process.

    `silence` is how long the script may be silent on its own, in femtoseconds; `share` is a folder for the counters of its drivers.
    """
    lines: list[tuple[int, str]] = []
    stopped, before, begun, looks = "", -1, 0.0, 0

    def stop(why: str) -> None:
        nonlocal stopped
        stopped = why
        raise KeyboardInterrupt

    def look(*_: object) -> None:
        nonlocal begun, looks
        looks += 1
        # A machine that has much else to do is no reason.
        begun = spent() if looks == 1 else begun
        if looks == LOOKS or spent() - begun >= PATIENCE - LOOK:
            stop(SPINS)
        signal.setitimer(signal.ITIMER_REAL, LOOK)

    def watch(now: int) -> None:
        nonlocal before, looks
        if now > before:
            before, looks = now, 0
            signal.setitimer(signal.ITIMER_REAL, LOOK)
        if lines and now - lines[-1][0] > NO_PROGRESS + silence:
            stop(SILENT)
        if now > LONGEST:
            stop(ENDLESS)

    fault = [f"fault=[{', '.join(faults)}]"] if faults else []
    handler = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, LOOK)
    try:
        ended = run(
            machine.experiment, machine.kernel, {**machine.files, SCRIPT: script.encode()},
            show=lambda time, text: lines.append((time, text)), watch=watch, overrides=[*machine.overrides, *fault, *more],
            pcap=None if pcap is None else str(pcap), share=None if share is None else str(share), keep_failed=True,
        )  # fmt: skip
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    if ended.finished.interrupted and not stopped and not ended.failed:
        raise KeyboardInterrupt
    if report is not None:
        _core.write_report(report, ended.finished.text)
    console = tuple(text for _, text in lines)
    said = next((line for line in console if line.startswith(f"{SAYS}ended")), None)
    status = None if said is None else int(said.split()[-1])
    result = ended.finished.result()
    if stopped == SPINS and lines and result["end_fs"] - lines[-1][0] > NO_PROGRESS + silence:
        # Time has passed, without a word of the guest: the fabric had much to do.
        stopped = SILENT
    over = Boot(
        console, stopped or ended.end, status, removed=f"{SAYS}removed" in console, failed=ended.failed, died=ended.ending == "died",
        struck=strikes(result, faults[-1]) if faults else None,
    )  # fmt: skip
    return Told(over, tuple(time for time, _ in lines), ladder_of(result))


def spent() -> float:
    """Seconds of processors of this process and its children."""
    ticks, left = 0, [os.getpid()]
    while left:
        # Which may end meanwhile.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            place = Path("/proc") / str(left.pop())
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
            for task in (place / "task").iterdir():
                left += map(int, (task / "children").read_text().split())
    return ticks / TICKS


def strikes(result: Document, entry: str) -> int | None:
    """The number of times that the fault of this entry has happened; None if its kind is not counted."""
    if tlp := IS_ON_TLP.search(entry):
        its = (tlp["link"], tlp["direction"], int(tlp["number"]), tlp["of"])
        all_of = [(fault["link"], fault["direction"], fault["first"], fault["of"]) for fault in result["faults"]]
        struck = [fault["struck"] for fault, of in zip(result["faults"], all_of, strict=True) if of == its]
        return sum(struck) if struck else None
    if away := IS_AWAY.search(entry):
        time = int(away["ns"]) * 10**6
        return sum(outage["link"] == away["link"] and outage["down_fs"] == time for outage in result["outages"])
    return None
