"""The waveform of a device made of RTL and the capture of the same run have one time axis: the DMA core, TLP by TLP."""

from __future__ import annotations

import json
import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from privilege import lacking
from pywellen import Waveform  # type: ignore[import-untyped]

from tlplab import cli

RTL = Path(os.environ.get("RTL_LIBRARIES", Path(__file__).resolve().parents[2] / "out/rtl"))
FS = 10**15  # in a second

EXPERIMENT = """\
title = "A page to the card and one from it"
stop = "18us" # up to there captures are as fine as the waveform, a femtosecond
host = {{ profile = "server", memory = {{ size = "4GiB" }} }}
[device.card]
under = "host.rp0"
link = "{link}"
model = "rtl:{library}"
mps = "256B"
mrrs = "512B"
pcie_clock = "{clock}"
[link.card]
skp = "off" # captures have none, and one may be in a TLP's way
[load.to]
device = "host"
target = "card"
op = "to-card"
size = "4KiB"
[load.from]
device = "host"
target = "card"
op = "from-card"
size = "4KiB"
"""

KINDS = {0x00: "MRd", 0x20: "MRd", 0x40: "MWr", 0x60: "MWr", 0x0A: "Cpl", 0x4A: "CplD"}


class Signals:
    """The ports of a top, by their names: their values at any time."""

    def __init__(self, path: str) -> None:
        waveform: Any = Waveform(path)
        assert str(waveform.timescale) == "1fs"
        ports = [port for port in waveform.all_vars() if port.full_name.count(".") == 1]
        self.changes = {port.name: [(at, int(value)) for at, value in port.signal] for port in ports}
        self.times = {name: [at for at, _ in changes] for name, changes in self.changes.items()}
        self.width = next(port.bitwidth for port in ports if port.name == "trn_rd")
        self.edges = [at for at, value in self.changes["pcie_clk"] if value]

    def at(self, name: str, time: int) -> int:
        """After the changes at `time`."""
        place = bisect_right(self.times[name], time) - 1
        return self.changes[name][place][1] if place >= 0 else 0

    def before(self, name: str, time: int) -> int:
        return self.at(name, time - 1)


@dataclass
class Tlp:
    """A TLP on the transaction interface, with the edges at which its first beat was shown and its last one taken."""

    shown: int
    taken: int
    dws: list[int]

    def brief(self) -> tuple[str, int, int]:
        kind = KINDS[self.dws[0] >> 24]
        return kind, (self.dws[0] & 0x3FF) or 1024, self.dws[2 if kind.startswith("Cpl") else 1] >> 8 & 0xFF


def tlps(signals: Signals, way: str) -> list[Tlp]:
    """The TLPs that passed the interface, `r`eceived by the core or `t`ransmitted.

    An edge sees the core's outputs as they were before it. The hard IP's may change with it: they are driven in no time.
    """
    ours, theirs = signals.before, signals.at
    given, asked = (theirs, ours) if way == "r" else (ours, theirs)
    found: list[Tlp] = []
    shown, dws = None, []
    width = signals.width // 32
    for edge in signals.edges:
        if not given(f"trn_{way}src_rdy", edge):
            continue
        shown = edge if shown is None else shown
        if not asked(f"trn_{way}dst_rdy", edge):
            continue
        last = given(f"trn_{way}eof", edge)
        beat = given(f"trn_{way}d", edge)
        words = given(f"trn_{way}rem", edge) + 1 if last else width
        dws += [beat >> 32 * (width - 1 - place) & 0xFFFFFFFF for place in range(words)]
        if last:
            found.append(Tlp(shown, edge, dws))
            shown, dws = None, []
    assert shown is None
    return found


@dataclass
class Unit:
    """A TLP or DLLP on the link: the time of its first symbol, and its length in bytes."""

    start: int
    bytes: int
    tlp: dict[str, Any] | None

    def brief(self) -> tuple[str, int, int]:
        assert self.tlp
        return self.tlp["kind"], self.tlp["length"], self.tlp["tag"]


def units(dumped: str) -> dict[str, list[Unit]]:
    """A capture's by their sender."""
    found: dict[str, list[Unit]] = {}
    for line in dumped.splitlines():
        said = json.loads(line)
        seconds, fraction = said["time"].split(".")
        tlp, size = said.get("tlp"), 8  # a DLLP
        if tlp:
            wide = int(tlp.get("address", "0"), 16) >> 32 > 0
            payload = 4 * tlp["length"] if tlp["kind"] in {"MWr", "CplD"} else 0
            size = 12 + 4 * wide + payload + 8  # framing, sequence number and LCRC
        found.setdefault(said["from"], []).append(Unit(int(seconds) * FS + int(fraction.ljust(15, "0")), size, tlp))
    return found


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs the experiment; the content of its capture."""
    monkeypatch.chdir(tmp_path)

    def run(name: str, width: int, link: str, clock: str, *options: str) -> str:
        library = RTL / f"tlpdma-trn{width}.so"
        if not library.exists():
            lacking(f"needs {library}: run `make rtl`")
        Path("card.toml").write_text(EXPERIMENT.format(library=library, link=link, clock=clock), encoding="utf-8")
        assert cli.status(["run", "card.toml", "--quiet", "--pcap", f"{name}.pcapng", *options]) == 0
        capsys.readouterr()
        assert cli.status(["dump", f"{name}.pcapng", "--json", "-"]) == 0
        return capsys.readouterr().out

    return run


@pytest.mark.full
@pytest.mark.parametrize(("width", "link", "clock"), [(64, "gen1 x8", "250MHz"), (128, "gen2 x8", "175MHz")])
def test_every_tlp_has_its_time_in_both(run: Callable[..., str], width: int, link: str, clock: str) -> None:
    dumped = run("waved", width, link, clock, "--set", 'device.card.waveform="card.fst"')
    assert run("plain", width, link, clock) == dumped, "a waveform changes nothing"

    signals, captured = Signals("card.fst"), units(dumped)
    byte = FS // (2_000_000_000 if link.startswith("gen1") else 4_000_000_000)
    assert signals.width == width

    # To the host: a TLP is on the link from the edge on at which the hard IP took its last beat, or when the link is free.
    sent, free, waited = iter(tlps(signals, "t")), 0, 0
    for unit in captured["card"]:
        if unit.tlp:
            tlp = next(sent)
            assert tlp.brief() == unit.brief()
            assert unit.start == max(tlp.taken, free), f"{unit} and {tlp}"
            waited += free > tlp.taken
        free = unit.start + unit.bytes * byte
    assert next(sent, None) is None
    assert 0 < waited < sum(unit.tlp is not None for unit in captured["card"]), (
        "some wait for the link, some for their last beat"
    )

    # From the host: its first beat is for the first edge after its last symbol has arrived, or follows the TLP before it.
    received = tlps(signals, "r")
    arrived = [unit for unit in captured["host.rp0"] if unit.tlp]
    # Four vectors of MSI-X were set up before the run began, without the link.
    setup, received = received[: -len(arrived)], received[-len(arrived) :]
    assert [tlp.brief()[0] for tlp in setup] == ["MWr"] * 16
    before = setup[-1].taken
    for unit, tlp in zip(arrived, received, strict=True):
        assert tlp.brief() == unit.brief()
        edge = signals.edges[bisect_left(signals.edges, unit.start + unit.bytes * byte)]
        assert tlp.shown == max(edge, signals.edges[bisect_right(signals.edges, before)]), f"{unit} and {tlp}"
        before = tlp.taken
    assert len(received) > 60
