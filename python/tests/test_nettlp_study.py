"""`tlplab reproduce nettlp`: the model's page is fresh, captures are judged, and this machine is measured where it may be."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tlplab import _core
from tlplab.cli import status
from tlplab.reproduce import Outcomes, Row, command
from tlplab.reproduce.nettlp import STUDY, captures, card, machine
from tlplab.reproduce.nettlp.rows import compared, ranged
from tlplab.reproduce.nettlp.wire import ADAPTER, SOFTWARE, NoNamespacesError, laid

ROOT = Path(__file__).resolve().parents[2]
# Ethernet, and nothing in it.
PCAP_HEADER = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
CAPTURES = Path(os.environ.get("TLPLAB_DATA", "/nonexistent")) / "captures"


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    return command.outcomes_of(STUDY, ROOT / "experiments" / STUDY.folder, quiet=True)


@pytest.fixture(scope="module")
def rows(outcomes: Outcomes) -> list[Row]:
    return STUDY.rows(outcomes)


def test_the_page_is_what_the_runs_give(outcomes: Outcomes, rows: list[Row]) -> None:
    written = (ROOT / "docs/studies/nettlp.md").read_text(encoding="utf-8")
    assert written == STUDY.page(outcomes, rows), "run `make generate`"


def test_the_model_gives_the_paper_s_figures_or_says_why_not(rows: list[Row]) -> None:
    formula = next(row for row in rows if row.result.endswith("encapsulation"))
    assert formula.ours == pytest.approx(7.5294, rel=1e-3)
    for row in rows:
        assert row.note or row.verdict == "reproduced", row
        # What a constant was chosen for shows nothing, however close it is.
        assert ("fitted" in row.note) <= (row.verdict == "explained"), row
    fitted = {row.result for row in rows if "fitted" in row.note}
    assert fitted == {"model, figure 7, 256 B, 1 core", "model, table 2, 256 B: median"}


def test_a_note_is_no_excuse() -> None:
    judged = {
        compared("r", 10.0, ours, "", 0.1, note, excuse).verdict
        for ours, note, excuse in ((12.0, "", ""), (12.0, "a remark", ""), (8.0, "a remark", ""))
    }
    assert judged == {"not reproducible"}
    excused = compared("r", 10.0, 12.0, "", 0.1, "a remark", "another machine")
    assert (excused.verdict, excused.note) == ("explained", "a remark; another machine")
    good = compared("r", 10.0, 10.5, "", 0.1, "a remark", "another machine")
    assert (good.verdict, good.note) == ("reproduced", "a remark")


def test_a_range_is_its_ends_and_not_its_middle() -> None:
    verdicts = [ranged("r", (12, 14), ours, "us").verdict for ours in (11.7, 12.0, 14.0, 14.3)]
    assert verdicts == ["not reproducible", "reproduced", "reproduced", "not reproducible"]
    assert ranged("r", (12, 14), 11.7, "us", excuse="why").verdict == "explained"


def test_latencies_are_of_single_requests(outcomes: Outcomes) -> None:
    # Two reads of 512 B one after the other would take twice as long as one of 256 B, and more.
    short, long = (card.seen_us(outcomes[f"latency {size}"]) for size in (256, 1024))
    assert short < long < 1.5 * short
    asked = {
        arguments[1]
        for keep, arguments in machine.jobs(machine.Measured())
        if "-c" in arguments and "-a" not in arguments
    }
    assert asked == {"1B", "256B", "512B"}


def test_the_closed_form_and_the_simulator_agree(rows: list[Row]) -> None:
    ((writes, reads),) = _core.model_nettlp([256], 10e9, 256, 512, 12)
    simulated = next(row.ours for row in rows if row.result.endswith("encapsulation"))
    assert writes == reads == pytest.approx(10e9 * 256 / 340)
    assert simulated == pytest.approx(writes / 1e9, rel=1e-3)


def test_without_captures_the_rows_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TLPLAB_DATA", raising=False)
    (row,) = captures.beside(None).rows
    assert (row.verdict, row.ours, row.relative_error) == ("not reproducible", None, None)
    assert "--captures" in row.note


@pytest.mark.skipif(not CAPTURES.is_dir(), reason="needs TLPLAB_DATA with the published captures")
def test_the_captures_show_what_was_published() -> None:
    found = captures.beside(str(CAPTURES)).rows
    verdicts = {row.result: row.verdict for row in found}
    missing = [result for result, verdict in verdicts.items() if verdict != "reproduced"]
    assert missing == ["captured, figure 14, xl710: tags up to"]


@pytest.mark.parametrize("content", [b"no capture", PCAP_HEADER], ids=["damaged", "empty"])
def test_captures_of_something_else_make_rows_that_say_so(content: bytes, tmp_path: Path) -> None:
    names = ("mrd-512byte-plx", "mrd-512byte-rc", "x520-rx", "xl710-rx", "simple-nic-ping")
    for name in names:
        (tmp_path / f"{name}.pcap").write_bytes(content)
    rows = captures.beside(str(tmp_path)).rows
    assert {row.verdict for row in rows} == {"not reproducible"}
    assert all(row.note for row in rows if row.ours is None)
    for figure in ("figure 13, switch", "figure 13, root complex", "figure 14, xl710", "figure 15a"):
        assert sum(figure in row.result for row in rows) == 1, figure


def answer(rate: float, p50: float = 13e3, p99: float = 20e3) -> dict[str, Any]:
    return {"bits_per_second": rate, "operations_per_second": rate / 2048, "latency_ns": {"p50": p50, "p99": p99}}


def measured(tooth: float, p99: float) -> machine.Measured:
    """As on a machine like the paper's, with teeth so deep and tails so long."""
    found = machine.Measured()
    for size in machine.SIZES:
        found.reads.update({(size, lanes): answer(166e6 * lanes) for lanes in machine.LANES})
    for size in machine.TEETH:
        found.teeth.update({size: answer(1e9), size + 16: answer(1e9 * tooth)})
    found.latency.update({size: answer(1e9, p99=p99) for size in machine.LATENCIES})
    found.writes.update({(size, lanes): answer(1e9) for size in (256, 512) for lanes in machine.LANES})
    found.software.update({512: answer(4.6e9)})
    found.table.update({size: answer(1e9, median * 1e3, p99) for size, median in card.TABLE_2.items()})
    return found


def test_shapes_that_do_not_come_out_are_not_called_reproduced() -> None:
    idle, busy = machine.Surroundings(16, 0.1), machine.Surroundings(16, 20.0)

    def verdicts(found: machine.Measured, here: machine.Surroundings, part: str) -> set[str]:
        return {row.verdict for row in machine.rows(found, here) if part in row.result}

    good = measured(0.8, 20e3)
    assert verdicts(good, idle, "figure 8") == verdicts(good, idle, "p99") == {"reproduced"}
    assert verdicts(good, idle, "threads to 1") == verdicts(good, idle, "table 2") == {"reproduced"}
    bad = measured(1.1, 60e3)
    assert verdicts(bad, idle, "figure 8") == verdicts(bad, idle, "p99") == {"not reproducible"}
    assert verdicts(measured(0.98, 20e3), idle, "figure 8") == {"not reproducible"}
    # Of a machine that does other things meanwhile nothing is claimed.
    for found in (good, bad):
        assert verdicts(found, busy, "") == {"not reproducible"}


def test_software_and_adapter_meet_over_a_cable_that_goes_away_again() -> None:
    try:
        with laid() as wire:
            wire.start(wire.host, "adapter", "--local", ADAPTER, "--peer", SOFTWARE, "--allow-remote", "--quiet")
            wire.wait()
            found = wire.perf("-c", "100", "-L", "1KiB", "--verify")
            names = (wire.device, wire.host)
    except NoNamespacesError as why:
        pytest.skip(str(why))
    assert (found["operations"], found["wrong"], found["errors"]) == (100, 0, {})
    left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    assert not any(name in left for name in names)


def test_options_of_this_study_are_refused_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["reproduce", "gem5", "--no-measure"]) == 2
    assert "for nettlp" in capsys.readouterr().err
    assert status(["reproduce", "nettlp", "--captures", "/nonexistent"]) == 2
    assert "no such folder" in capsys.readouterr().err


def test_without_namespaces_the_row_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    (row,) = machine.beside(quiet=True).rows
    assert (row.verdict, row.ours) == ("not reproducible", None)
    assert "iproute2" in row.note
