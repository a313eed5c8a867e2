"""Which host stands for a measured machine: the shipped profile that was made from it, or one that is made now."""

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
from tlplab.measured.calibrate import Calibration, calibrate
from tlplab.measured.dataset import DataSet
from tlplab.measured.machine import setting_of
from tlplab.measured.profile import Profile
from tlplab.measured.simulated import SAMPLES, Simulated
from tlplab.measured.states import Labels, labels_of
from tlplab.measured.target import Outcome, Progress

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
    """The device that measured, and its link; None for what the data set says, or `LINK`."""

    device: str = DEVICE
    link: str | None = None

    def reads(self) -> int:
        """Reads of a line that the device keeps under way."""
        text = dict(_core.bench_devices()).get(self.device) or Path(self.device).read_text(encoding="utf-8")
        engine = tomllib.loads(text)["dma"]
        return int(min(engine["slots"], engine["read"]["requests"]))

    def link_for(self, data: DataSet) -> str:
        """The link of the device that measured `data`."""
        return self.link or data.machine.link or LINK

    def labels(self, data: DataSet) -> Labels:
        """Which runs were not what they are called."""
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
    """A profile's text, by name or file; nothing if there is none, which whoever runs it will say."""
    for name, text in _core.hosts():
        if name == host:
            return text
    path = Path(host)
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def has_iommu(host: str) -> bool:
    """Whether a profile, by name or file, describes an IOMMU. A file that is no TOML describes nothing, and will not run."""
    try:
        described = tomllib.loads(text_of(host)).get("host")
    except tomllib.TOMLDecodeError:
        return False
    return isinstance(described, dict) and "iommu" in described


class Fresh:
    """A simulated host that is not in a file yet."""

    def __init__(self, profile: Profile, card: Card, link: str, iommu: str, samples: int = SAMPLES) -> None:
        """`iommu` is `off`, `on` or `nosp`; a latency is taken from so many samples."""
        self.profile = profile
        self.card = card
        self.link = link
        self.iommu = iommu
        self.samples = samples

    def run(self, cases: Sequence[Case], *, distributions: bool = False, progress: Progress) -> Mapping[Case, Outcome]:
        """See `Target.run`."""
        with in_a_file(self.profile) as path:
            mode = self.iommu if "iommu.walk" in self.profile.values else None
            return Simulated(path, self.card.device, self.link, mode, self.samples).run(
                cases, distributions=distributions, progress=progress
            )


@contextmanager
def in_a_file(profile: Profile) -> Iterator[str]:
    """The profile as a file, for as long as it is needed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "host.toml"
        path.write_text(profile.toml(), encoding="utf-8")
        yield str(path)


def fit(sets: Sequence[DataSet], card: Card, step: Callable[[int, int], None]) -> Calibration:
    """A profile from data sets of one machine."""
    link = card.link_for(sets[0])
    with_labels = [(data, card.labels(data)) for data in sets]
    return calibrate(
        with_labels,
        lambda profile, iommu: Fresh(profile, card, link, iommu, SAMPLES_OF_FITS),
        slots=card.reads(),
        step=step,
    )
