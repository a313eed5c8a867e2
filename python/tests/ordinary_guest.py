"""Helpers of the tests with an ordinary guest, under QEMU."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

# Wall-clock seconds that no guest of a test needs.
PATIENCE = 240


class Run(NamedTuple):
    """A guest that was run to its end."""

    status: int
    console: list[str]
    result: dict[str, Any]
    errors: str

    def counters(self, device: int = 0) -> dict[str, int]:
        """Of a device."""
        counters: dict[str, int] = self.result["devices"][device]["counters"]
        return counters


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "tlplab", "guest", "qemu", *map(str, arguments)]


def run(folder: Path, *arguments: str | Path) -> Run:
    file = folder / "result.json"
    done = subprocess.run(
        command("--timeout", str(PATIENCE), "--json", file, *arguments),
        capture_output=True, text=True, check=False, timeout=PATIENCE + 60, cwd=folder, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    console = [found[1] for line in done.stdout.splitlines() if (found := re.match(r"\[ *\d+\.\d+ s\] (.*)", line))]
    return Run(done.returncode, console, json.loads(file.read_text()) if file.exists() else {}, done.stderr)
