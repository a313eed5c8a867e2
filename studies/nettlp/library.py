"""The published library's tlpperf, built from a checkout of the user's: none of its code is here (github.com/NetTLP/libtlp)."""

from __future__ import annotations

import re
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from studies.nettlp.wire import CommandError

PROGRAM = "tlpperf"
PATIENCE = 60.0


@dataclass(frozen=True)
class Said:
    """The output of one run of tlpperf."""

    output: str

    @property
    def rates(self) -> list[float]:
        """Operations per second, of each second but the first, which counts from before its threads began, and may be anything."""
        return [float(rate) for rate in re.findall(r"([\d.]+) *tps", self.output)][1:]

    @property
    def rate(self) -> float:
        """Operations per second; 0 if none was told."""
        return statistics.fmean(self.rates) if self.rates else 0.0

    @property
    def latencies(self) -> list[int]:
        """Of each operation, in microseconds, as its clock has them."""
        return [int(us) for us in re.findall(r"latency: .*?, (\d+) usec", self.output)]


def build(checkout: Path, folder: Path) -> Path:
    """Compiles tlpperf into a folder: the program. Raises `CommandError`."""
    program = folder / PROGRAM
    sources = [checkout / name for name in ("lib/libtlp.c", f"apps/{PROGRAM}.c")]
    command: list[str | Path] = ["cc", "-O2", "-w", f"-I{checkout / 'include'}", "-o", program, *sources, "-lpthread"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise CommandError(f"{checkout}: no checkout of the published library: {done.stderr.strip()}")
    return program


def arguments(
    local: str, remote: str, requester: str, direction: str, region: tuple[str, int], length: int
) -> list[str]:
    """Of tlpperf; addresses of the NetTLP link, the card's bus and device, and the memory."""
    at, size = region
    return ["-r", remote, "-l", local, "-b", requester, "-d", direction, "-a", at, "-s", f"{size}", "-L", f"{length}"]


def run(command: Sequence[str | Path]) -> Said:
    """Runs it to its end. Raises `CommandError`."""
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise CommandError(f"{PROGRAM} of the published library does not end in {PATIENCE:g} s") from None
    said = Said(done.stdout)
    if not (said.rates or said.latencies):
        raise CommandError(
            f"{PROGRAM} of the published library tells no figures: {done.stderr.strip() or 'no word of why'}"
        )
    return said
