"""The measuring device, fitted on bandwidths: its time for a write, and for each piece of one.

Everything else of a device profile is a rule of its engine, and stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from tlplab import _core
from tlplab.bench.calibration.dataset import DataSet, Point
from tlplab.bench.calibration.simulated import Simulated
from tlplab.errors import DatasetError

# The grain of the engine: DMAs of so many bytes more take another piece.
PIECE = 128


@dataclass(frozen=True)
class DeviceValue:
    """A parameter of a device and its derivation."""

    key: str
    text: str
    """As TOML has it."""
    figure: str
    source: str
    measured: float
    simulated: float

    def as_json(self) -> dict[str, Any]:
        """As `--json` writes it."""
        return {"parameter": self.key, **{name: value for name, value in vars(self).items() if name != "key"}}


def text_of(device: str) -> str:
    """A device profile, by name or file."""
    known = dict(_core.bench_devices())
    return known[device] if device in known else Path(device).read_text(encoding="utf-8")


def with_field(text: str, table: str, key: str, field: str, value: str) -> str:
    """A profile with one field of an inline table changed, as in `[dma.write]`, `passing = { start = "4ns" }`."""
    pattern = rf'(^\[{re.escape(table)}\](?:\n(?!\[).*)*?\n{key}\s*=\s*\{{[^}}\n]*\b{field}\s*=\s*)"[^"]*"'
    changed, count = re.subn(pattern, lambda found: f'{found[1]}"{value}"', text, flags=re.MULTILINE)
    if not count:
        raise ValueError(
            f"this device profile has no {table}.{key} with a {field}, the parameter that writes determine"
        )
    return changed


@contextmanager
def as_file(text: str) -> Iterator[str]:
    """The profile as a file, during the context."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "device.toml"
        path.write_text(text, encoding="utf-8")
        yield str(path)


def per_transfer(gbps: float, size: int) -> float:
    """ns that each transfer of so many bytes takes."""
    return size * 8 / gbps


def writes(sets: Sequence[DataSet], size: int) -> list[Point]:
    """Writes of a size, aligned, in the smallest windows."""
    return [
        p for data in sets for p in data.points("bw_dma_sz_sweep") if p.case.test == "bw_wr" and p.case.size == size
    ]


def fit_device(sets: Sequence[DataSet], device: str, link: str) -> tuple[str, list[DeviceValue]]:
    """The profile with the parameters that the writes of these machines show, and their derivation.

    Writes are never answered, so that no host slows them down: 64 B take one piece, 129 B two.
    """
    one, two = writes(sets, PIECE // 2), writes(sets, PIECE + 1)
    if not one or not two:
        raise DatasetError(
            sets[0].path, None, None, "", "writes of 64 B and of 129 B are missing", "both are in bw_dma_sz_sweep.csv"
        )
    pieces = fmean(per_transfer(p.value, p.case.size) for p in two) - fmean(
        per_transfer(p.value, p.case.size) for p in one
    )
    alone = fmean(per_transfer(p.value, p.case.size) for p in one) - pieces
    text = text_of(device)
    for field, value in (("chunk_time", pieces), ("start", alone)):
        text = with_field(text, "dma.write", "passing", field, f"{value:.2f}ns")
    source = ", ".join(data.name for data in sets)
    with as_file(text) as path:
        # Where the buffer was makes no difference to what is never answered, and the ideal host has one node.
        cases = [replace(p.case, node="local") for p in (one[0], two[0])]
        simulated = Simulated("ideal", path, link, None).run(cases, progress=lambda _, __: None)
    ours = [per_transfer(simulated[case].value, case.size) for case in cases]
    return text, [
        DeviceValue(
            "dma.write.passing.start",
            f"{alone:.2f}ns",
            "64 B write, less a piece, ns",
            source,
            alone,
            2 * ours[0] - ours[1],
        ),
        DeviceValue(
            "dma.write.passing.chunk_time",
            f"{pieces:.2f}ns",
            "129 B write less 64 B write, ns",
            source,
            pieces,
            ours[1] - ours[0],
        ),
    ]
