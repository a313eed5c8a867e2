"""The links that the core is run on, and its bounds there: closed forms, none of which knows the simulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tlplab import model

TAGS, MRRS, MPS = 32, 512, 256
# The hosts of 2006 and 2009 that the paper used have payloads of 128 B on their slots.
OLD_MPS = 128
OLD_HOST = f"device.card.mps={OLD_MPS}B"
USER_HZ = 200e6
WAYS = ("to-card", "from-card")
OPERATION = {"to-card": "read", "from-card": "write"}
"""The card's operation for each direction: a transfer to the card is a read by it."""
FROM = "load.core.op=from-card"


@dataclass(frozen=True)
class Slot:
    """A link and the core's interface to it."""

    name: str
    experiment: str
    generation: int
    width: int
    bits: int
    pcie_hz: float

    def connection(self, mps: int, mrrs: int) -> dict[str, Any]:
        """For the closed forms: buffers are below 4 GiB."""
        return {
            "generation": self.generation, "width": self.width, "mps": mps, "mrrs": mrrs, "address_bits": 32,
        }  # fmt: skip

    def link(self, way: str, size: int, *, mps: int = MPS, mrrs: int = MRRS, offset: int = 0) -> float:
        """The link's rate in GB/s of payload for transfers of `size` bytes, with only their TLPs on it: no Acks, no credits, no skips."""
        operation = "rdwr" if way == "both" else OPERATION[way]
        grid = model.bandwidth(size, op=operation, offset=offset % 4096, **self.connection(mps, mrrs))
        return float(size * grid["raw_bps"] / max(grid["up_bytes"], grid["down_bytes"])) / 8e9

    def path(self, payload: int = MPS) -> float:
        """GB/s that the hard IP's interface carries with headers of 12 B inline, or the core's 256 bits if that is less."""
        inside = 256 * USER_HZ / 8e9
        return min(model.data_path(payload, bits=self.bits, clock_hz=self.pcie_hz) / 8e9, inside)

    def payload(self, way: str, mps: int, mrrs: int) -> int:
        """Bytes of a TLP with data: a completion is no longer than its request."""
        return min(mps, mrrs) if way == "to-card" else mps

    def tags(self, latency_ns: float, mrrs: int = MRRS) -> float:
        """GB/s of reads of `mrrs` bytes of which `TAGS` are under way, each for so long: Little's law."""
        found = model.in_flight(
            mrrs, latency_ns=latency_ns, op="read", available={"tags": TAGS}, **self.connection(MPS, mrrs)
        )
        tags = next(one for one in found["resources"] if one["resource"] == "tags")
        assert tags["transfers_per_s"] is not None
        return float(tags["transfers_per_s"]) * mrrs / 1e9

    def bounds(
        self, way: str, size: int, latency_ns: float, *, mps: int = MPS, mrrs: int = MRRS, offset: int = 0
    ) -> dict[str, float]:
        """All three in GB/s; writes have no tags."""
        bounds = {
            "link": self.link(way, size, mps=mps, mrrs=mrrs, offset=offset),
            "data path": self.path(self.payload(way, mps, mrrs)),
        }
        if way == "to-card":
            bounds["tags"] = self.tags(latency_ns, mrrs)
        return bounds

    def bound(self, way: str, size: int, latency_ns: float, *, mps: int = MPS, offset: int = 0) -> tuple[float, str]:
        """The smallest of them, and which it is."""
        bounds = self.bounds(way, size, latency_ns, mps=mps, offset=offset)
        name = min(bounds, key=bounds.__getitem__)
        return bounds[name], name


GEN1_X1 = Slot("Gen1 x1", "gen1-x1.toml", 1, 1, 64, 62.5e6)
GEN1_X4 = Slot("Gen1 x4", "gen1-x4.toml", 1, 4, 64, 125e6)
GEN1_X8 = Slot("Gen1 x8", "gen1-x8.toml", 1, 8, 64, 250e6)
GEN2_X4 = Slot("Gen2 x4", "gen2-x4.toml", 2, 4, 64, 250e6)
GEN2_X8 = Slot("Gen2 x8", "gen2-x8.toml", 2, 8, 128, 250e6)
SLOTS = (GEN1_X1, GEN1_X4, GEN1_X8, GEN2_X4, GEN2_X8)
