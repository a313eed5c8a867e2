"""Runs that are stopped: by events, by TLPs, by time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import tlplab as tl
from tlplab.loader import find
from tlplab.tlps import Tlp, of_result

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENT = """\
title = "One writer"
stop = "5us"
[switch.sw0]
under = "host.rp0"
link = "gen4 x4"
[device.ssd]
under = "sw0"
link = "gen4 x4"
[load.ssd]
op = "write"
size = "4KiB"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "one.toml"
    path.write_text(EXPERIMENT)
    return path


COPIER = str(ROOT / "examples/python/copier.py")
driver = find(COPIER, "driver")


def copier() -> Any:
    return find(COPIER, "Copier")()


def test_a_run_that_is_stopped_at_every_event_is_the_same_run(file: Path) -> None:
    whole = tl.run(file, verdict=False)
    run = tl.debug(file)
    sent = 0
    while not run.done:
        sent += len(run.step())
    assert run.finish()["trace_hash"] == whole["trace_hash"]
    assert sent == sum(way["tlps"] for link in whole["links"] for way in link["directions"])
    assert len(run.tlps) == sent
    assert run.now_ns == whole["end_fs"] / 1e6


def test_tlps_match_the_ladder(file: Path) -> None:
    """Two ways to the same table, in the order in which TLPs were put on wires."""
    ladder = of_result(tl.run(file, overrides=['ladder={ at = "0s", packets = 20000 }'], verdict=False).result)
    run = tl.debug(file)
    run.finish()
    assert [str(tlp) for tlp in run.tlps] == [str(tlp) for tlp in ladder]


def test_the_run_stops_at_a_tlp_with_all_conditions(file: Path) -> None:
    run = tl.debug(file)
    on_uplink = [run.next_tlp(kind="MWr", link="sw0") for _ in range(5)]
    assert all(tlp and tlp.kind == "MWr" and tlp.sender == "sw0" for tlp in on_uplink)
    # It has just been put on the wire: what the switch gets meanwhile is all later.
    last = on_uplink[-1]
    assert last is not None
    assert last.start_ns <= run.now_ns + 1 < last.arrive_ns
    assert [tlp for tlp in run.tlps if tlp.link == "sw0" and tlp.kind == "MWr"] == on_uplink
    assert run.next_tlp(kind="CplD") is None
    assert run.done
    assert run.finish()["trace_hash"] == tl.run(file, verdict=False)["trace_hash"]


@pytest.mark.parametrize("link", ["gen4 x4", "gen6 x16 flit"])
def test_no_tlp_is_passed_over(file: Path, link: str) -> None:
    """Several TLPs are put on a wire in one flit, or on several wires by one event."""
    run = tl.debug(file, overrides=["load.ssd.size=64B", f"device.ssd.link={link}", f"switch.sw0.link={link}"])
    met = []
    while (tlp := run.next_tlp(kind="MWr")) is not None:
        met.append(tlp)
    assert met == list(run.tlps.where(kind="MWr"))


def test_a_time_is_reached_exactly_and_not_passed(file: Path) -> None:
    run = tl.debug(file)
    sent = [run.run_until(time) for time in ("1us", "1us", "2.5us")]
    assert run.now_ns == 2500
    assert len(sent[1]) == 0
    for before, after in pairwise((0, 1000, 2500)):
        part = sent[0] if after == 1000 else sent[2]
        assert part
        assert all(before <= tlp.start_ns <= after for tlp in part)
    with pytest.raises(ValueError, match=r"is at 2500\.000 ns already"):
        run.run_until("1us")
    result = run.stop()
    assert result["stop_reason"] == "interrupted"
    assert result["end_fs"] == 2_500_000_000
    assert run.stop() is result


def test_the_run_stops_where_a_register_is_touched() -> None:
    run = tl.debug(copier(), driver)
    doorbell = run.next_tlp(touches="go")
    assert doorbell is not None
    assert doorbell.kind == "MWr"
    assert doorbell.receiver == "device"
    assert doorbell.address == run.address("regs.go") == run.address("device.regs.go")
    # Nothing was fetched yet, and is afterwards.
    assert not run.tlps.where(kind="MRd")
    assert run.next_tlp(kind="MRd") is not None
    assert run.finish()["stop_reason"] == tl.simulate(copier(), driver)["stop_reason"]
    for name, why in (
        ("nothing", "no register 'nothing'; registers: device.regs.src"),
        ("evice.regs.go", "no register"),
    ):
        with pytest.raises(LookupError, match=why):
            run.address(name)


def test_wrong_conditions_are_refused_before_time_passes(file: Path) -> None:
    run = tl.debug(file)
    for conditions, error, why in (
        ({"kind": "MWR"}, ValueError, "did you mean MWr"),
        ({"knd": "MWr"}, TypeError, "no column 'knd'"),
        ({"flow": "sdd"}, ValueError, "did you mean ssd"),
        ({"touches": "go"}, LookupError, "registers are known of devices that are given as objects"),
    ):
        with pytest.raises(error, match=why):
            run.next_tlp(**conditions)
        assert run.now_ns == 0
    with pytest.raises(TypeError, match="an experiment has its own"):
        tl.debug(file, link="gen3 x4")


def test_a_simulation_ends_at_its_stop_condition() -> None:
    result = tl.simulate(copier(), driver, stop_at={"kind": "MRd"})
    assert result["stop_reason"] == "interrupted"
    assert result["end_fs"] < tl.simulate(copier(), driver)["end_fs"]
    assert tl.simulate(copier(), driver, stop_at="100ns")["end_fs"] == 100_000_000
    with pytest.raises(LookupError, match="no TLP with kind=IORd was sent until the run ended at"):
        tl.simulate(copier(), driver, stop_at={"kind": "IORd"})
    with pytest.raises(TypeError, match=r'^stop_at: expected a time such as "12.5us" or conditions .*, not 5$'):
        tl.simulate(copier(), driver, stop_at=5)  # type: ignore[arg-type]


def test_a_run_that_fails_shows_its_last_tlps() -> None:
    async def fails(host: tl.Host, dev: Any) -> None:
        await dev.regs.write(src=0x1234)
        assert await dev.regs.read("src") == 0

    runs: list[Callable[[], object]] = [
        lambda: tl.simulate(copier(), fails),
        lambda: tl.debug(copier(), fails).finish(),
    ]
    for go in runs:
        with pytest.raises(tl.RunError) as caught:
            go()
        said = str(caught.value)
        assert "AssertionError" in said
        assert "the last TLPs:\n" in said
        assert caught.value.tlps
        last = list(caught.value.tlps)[-1]
        assert last.kind == "CplD"
        assert str(last) == said.splitlines()[-1]
        assert caught.value.run is not None
    run = tl.debug(copier(), fails)
    with pytest.raises(tl.RunError, match="the last TLPs"):
        run.run_until("1ms")
    assert run.done
    assert run.next_tlp() is None
    assert run.stop()["stop_reason"] == "failed"


@pytest.mark.parametrize(
    ("first_be", "last_be", "length", "touched"),
    [(0xF, 0, 1, range(4)), (0x2, 0, 1, [1]), (0x8, 0x1, 2, [3, 4]), (0xF, 0xF, 3, range(12)), (0, 0, 1, [])],
)
def test_a_request_touches_the_bytes_from_its_first_to_its_last(
    first_be: int, last_be: int, length: int, touched: range | list[int]
) -> None:
    plain = Tlp("MWr", None, "nic", "host.rp0", "nic", 0, 1, 2, 0, None, 20, False, False, "MWr")
    tlp = replace(plain, address=0x1000, first_be=first_be, last_be=last_be, length=length)
    assert [at for at in range(-4, 16) if tlp.touches(0x1000 + at)] == list(touched)
    assert tlp.touches(0xFF0, 64) is bool(touched)
