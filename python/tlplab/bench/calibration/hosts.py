"""The host that stands for a measured machine: the shipped profile that was made from it, or a new one."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tlplab import _core
from tlplab.bench import Case
from tlplab.bench.calibration.calibrate import Calibration, Device, calibrate, start
from tlplab.bench.calibration.dataset import DataSet
from tlplab.bench.calibration.machine import setting_of
from tlplab.bench.calibration.profile import Profile, Value
from tlplab.bench.calibration.simulated import SAMPLES, Simulated
from tlplab.bench.calibration.states import Labels, labels_of
from tlplab.bench.calibration.target import Outcome, Progress

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEVICE = "nfp6000"
LINK = "gen3 x8"
# Latencies that fix a parameter vary less.
SAMPLES_OF_FITS = 1500


@dataclass(frozen=True)
class Card:
    """The device that measured, and its link; None for those of the data set, or `LINK`."""

    device: str = DEVICE
    link: str | None = None

    def facts(self, data: DataSet, walks: Mapping[str, Value]) -> Device:
        """The properties that a calibration needs of the device that measured `data`; `walks` are lent to it."""
        profile = tomllib.loads(
            dict(_core.bench_devices()).get(self.device) or Path(self.device).read_text(encoding="utf-8")
        )
        engine = profile["dma"]
        target = self.on("ideal", data, None)
        return Device(
            slots=int(min(engine["slots"], engine["read"]["requests"])),
            between_ns=_core.duration_fs(profile.get("between", "0ns")) / 1e6,
            mps=data.machine.max_payload or _core.size(profile["link"]["mps"]),
            alone=lambda cases: target.run(cases, progress=lambda _, __: None),
            walks=walks,
        )

    def link_for(self, data: DataSet) -> str:
        """The link of the device that measured `data`."""
        return self.link or data.machine.link or LINK

    def on(self, host: str, data: DataSet, iommu: str | None, samples: int = SAMPLES) -> Simulated:
        """The device in a host, by name or file, with link and settings as they were when `data` were measured."""
        machine = data.machine
        return Simulated(
            host, self.device, self.link_for(data), iommu, samples, machine.max_payload, machine.max_read_request
        )

    def labels(self, data: DataSet) -> Labels:
        """The runs that were not made as their labels say."""
        gap = interface_gap(self.device, self.link_for(data)) if data.setting.node == "remote" else None
        return labels_of(data, gap)


@lru_cache
def interface_gap(device: str, link: str) -> float:
    """By how much the device's DMA engine is slower than its command interface, in ns, for a read of 64 B."""
    cases = [Case("lat_rd", 64, interface=interface) for interface in ("dma", "command")]
    outcomes = Simulated("ideal", device, link, None).run(cases, progress=lambda _, __: None)
    return outcomes[cases[0]].average - outcomes[cases[1]].average


def shipped_for(data: DataSet) -> str | None:
    """The name of the shipped profile whose source names a data set of this machine."""
    for name, text in _core.hosts():
        source = str(tomllib.loads(text).get("source", ""))
        if data.machine_name in {setting_of(word)[0] for word in re.split(r"[\s,;]+", source)}:
            return name
    return None


def text_of(host: str) -> str:
    """A profile's text, by name or file; nothing if there is none, as the run then reports it."""
    for name, text in _core.hosts():
        if name == host:
            return text
    path = Path(host)
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def has_iommu(host: str) -> bool:
    """True if a profile, by name or file, describes an IOMMU. A file that is not TOML describes nothing, and will not run."""
    try:
        described = tomllib.loads(text_of(host)).get("host")
    except tomllib.TOMLDecodeError:
        return False
    return isinstance(described, dict) and "iommu" in described


class Fresh:
    """A simulated host that is not in a file yet."""

    def __init__(self, profile: Profile, card: Card, data: DataSet, iommu: str, samples: int = SAMPLES) -> None:
        """In the machine of `data`. `iommu` is `off`, `on` or `nosp`; a latency is taken from so many samples."""
        self.profile = profile
        self.card = card
        self.data = data
        self.iommu = iommu
        self.samples = samples

    def run(self, cases: Sequence[Case], *, distributions: bool = False, progress: Progress) -> Mapping[Case, Outcome]:
        """See `Target.run`."""
        with in_a_file(self.profile) as path:
            mode = self.iommu if "iommu.walk" in self.profile.values else None
            target = self.card.on(path, self.data, mode, self.samples)
            return target.run(cases, distributions=distributions, progress=progress)


@contextmanager
def in_a_file(profile: Profile) -> Iterator[str]:
    """The profile as a file, during the context."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "host.toml"
        path.write_text(profile.toml(), encoding="utf-8")
        yield str(path)


def fit(
    sets: Sequence[DataSet], card: Card, step: Callable[[int, int], None], walks: Mapping[str, Value] | None = None
) -> Calibration:
    """A profile from data sets of one machine; `walks` are figures of page walks that are lent to it."""
    with_labels = [(data, card.labels(data)) for data in sets]
    return calibrate(
        with_labels,
        lambda profile, iommu: Fresh(profile, card, sets[0], iommu, SAMPLES_OF_FITS),
        card.facts(sets[0], walks or {}),
        step,
    )


def lacks(sets: Sequence[DataSet], card: Card, data: DataSet) -> str | None:
    """The reason why a host that is fitted to `sets` could not stand for the machine of `data`, found without a simulation; None if it can."""
    profile, _ = start([(one, card.labels(one)) for one in sets], card.facts(sets[0], {}))
    if data.setting.node == "remote" and "numa.hop" not in profile.values:
        return ("the latency of its remote memory is unknown: the data lack 64 B reads by DMA in windows of 256 KiB or less, "
                "cold of local memory and device-thrash of remote memory")  # fmt: skip
    return None
