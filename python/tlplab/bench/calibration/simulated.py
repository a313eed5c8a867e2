"""The simulator as the target that is compared with a measurement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tlplab import bench
from tlplab.bench import Case
from tlplab.bench.calibration.target import Outcome, Progress

# A median moves by far less than a tick with so many samples; a quantile of 99.9 % needs more.
SAMPLES = 500
BANDWIDTH_BYTES = 1 << 20
SAMPLES_OF_DISTRIBUTIONS = 20_000


@dataclass(frozen=True)
class Simulated:
    """A host, a device and a link in the fabric."""

    host: str
    device: str
    link: str
    iommu: str | None
    samples: int = SAMPLES
    """Of a latency."""
    mps: int | None = None
    """As software set it; None for the device profile's, as for the next."""
    mrrs: int | None = None

    def run(self, cases: Sequence[Case], *, distributions: bool = False, progress: Progress) -> Mapping[Case, Outcome]:
        """See `Target.run`."""
        samples = SAMPLES_OF_DISTRIBUTIONS if distributions else self.samples
        counted = [replace(case, count=samples if case.is_latency else transfers(case.size)) for case in cases]
        results = bench.run(counted, host=self.host, device=self.device, link=self.link, iommu=self.iommu, mps=self.mps, mrrs=self.mrrs,
                            progress=lambda done, _: progress(int(done), len(cases)))  # fmt: skip
        if results.interrupted:
            raise KeyboardInterrupt
        return {case: outcome(result, distributions) for case, result in zip(cases, results, strict=True)}


def transfers(size: int) -> int:
    """Transfers of so many bytes that a bandwidth is taken from: a steady state is short."""
    return min(max(BANDWIDTH_BYTES // size, 512), 4096)


def outcome(result: bench.Result, distributions: bool) -> Outcome:
    """The compared figures of a result."""
    latency = result.latency
    if latency is None:
        return Outcome(result.gbps, result.gbps)
    steps = tuple(latency.cdf()) if distributions else ()
    return Outcome(latency.median_ns, latency.average_ns, steps, latency.min_ns)
