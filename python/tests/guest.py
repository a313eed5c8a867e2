"""Helpers of the tests with a Linux guest."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privilege import lacking

from tlplab.guest import kernel, tools

ROOT = Path(__file__).resolve().parents[2]
# Wall-clock seconds that no guest of a test needs.
PATIENCE = 300

# One NVMe drive behind a switch, as experiments/linux/nvme.toml.
NVME = ROOT / "experiments/linux/nvme.toml"


@dataclass(frozen=True)
class Guest:
    """A guest that was run to its end."""

    status: int
    """The command's exit status."""
    console: list[str]
    """The lines of the guest's console, without times."""
    stamps: list[float]
    """Microseconds, one for each line."""
    result: dict[str, Any]
    """The result document."""
    errors: str
    """The command's standard error."""

    def said(self, text: str) -> bool:
        """True if a line of the console contains this text."""
        return any(text in line for line in self.console)

    def value(self, name: str) -> str:
        """The text behind `NAME=` at the beginning of a line."""
        return next(line.split("=", 1)[1] for line in self.console if line.startswith(f"{name}="))


def needs_guest() -> None:
    """Skips a test where the guest's kernel is not built."""
    if not (kernel.built() / kernel.MANIFEST).is_file():
        lacking("the guest's kernel is not built: make linux")


def needs_tools() -> None:
    """Skips a test where QEMU and its guest are not here."""
    if not (kernel.built(tools.LINK) / kernel.MANIFEST).is_file():
        lacking("QEMU and its guest: make guest-tools")


def command(*arguments: str | Path) -> list[str]:
    """The command line of `tlplab guest uml`."""
    return [sys.executable, "-m", "tlplab", "guest", "uml", *map(str, arguments)]


def run(folder: Path, *arguments: str | Path, experiment: Path = NVME) -> Guest:
    """Runs the guest of an experiment; its result document goes through `folder`."""
    file = folder / "result.json"
    file.unlink(missing_ok=True)
    done = subprocess.run(
        command(experiment, "--json", file, *arguments),
        capture_output=True, text=True, check=False, timeout=PATIENCE, cwd=ROOT, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("[") and " µs] " in line]
    stamps = [float(line[1 : line.index(" µs]")].replace(",", "")) for line in lines]
    console = [line.split(" µs] ", 1)[1] for line in lines]
    result = json.loads(file.read_text()) if file.exists() else {}
    return Guest(done.returncode, console, stamps, result, done.stderr)


def flow(guest: Guest, name: str) -> dict[str, Any]:
    """A flow of the result."""
    return next(one for one in guest.result["flows"] if one["name"] == name)


def kernels_of(command: int) -> list[int]:
    """The processes of user-mode kernels that the command with this process ID has started."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((place / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent == command and b"um_pci_tunnel" in (place / "cmdline").read_bytes():
                found.append(int(place.name))
    return found
