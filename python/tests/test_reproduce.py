"""The reproductions: every figure has a verdict, the pages are the results of the runs."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from studies.gem5 import STUDY
from studies.gem5.figures import (
    FIRST_RESPONSE_NS,
    ONE_BY_ONE_NS,
    SWEEPS,
    TABLE_2,
    UNLISTED,
    disk,
    read_ns,
    seen_ns,
)
from tlplab.cli import status
from tlplab.reproduce import STUDIES, Outcomes, Row, running, study

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    return running.outcomes_of(STUDY, ROOT / "studies" / STUDY.folder, quiet=True)


@pytest.fixture(scope="module")
def rows(outcomes: Outcomes) -> list[Row]:
    return STUDY.rows(outcomes)


def test_the_page_matches_the_runs(outcomes: Outcomes, rows: list[Row]) -> None:
    written = (ROOT / "studies/gem5/README.md").read_text(encoding="utf-8")
    assert written == STUDY.page(outcomes, rows), "run `make generate`"


def test_table_2_and_the_sector_are_within_one_per_cent(rows: list[Row]) -> None:
    exact = [
        row for row in rows if row.result.startswith("Table II, root complex") or row.result.startswith("a sector")
    ]
    assert len(exact) == len(TABLE_2) + 1
    for row in exact:
        assert row.relative_error is not None
        assert abs(row.relative_error) < 0.01, row


def test_a_read_takes_twice_the_root_complex_and_a_constant(outcomes: Outcomes) -> None:
    constants = {round(read_ns(outcomes[f"read {ns}"]) - 2 * ns, 6) for ns in (*TABLE_2, *UNLISTED)}
    assert len(constants) == 1
    assert 218 <= constants.pop() < 226.5
    assert seen_ns(39.8) == pytest.approx(39.736, abs=1e-3)
    assert seen_ns(39.7) == 0


def test_with_credits_nothing_is_replayed_and_more_is_never_slower(outcomes: Outcomes) -> None:
    for sweep, points in SWEEPS.items():
        found = [disk(outcomes[f"{sweep} {point} credits"]) for point in points]
        assert all(one.timeouts == 0 and one.resent == 0 for one in found), sweep
        if sweep != "switch":
            assert all(later.dd >= one.dd * 0.999 for one, later in itertools.pairwise(found)), sweep


def test_the_trends_of_figure_9_hold(outcomes: Outcomes) -> None:
    def of(sweep: str) -> dict[int, tuple[float, float]]:
        found = {point: disk(outcomes[f"{sweep} {point}"]) for point in SWEEPS[sweep]}
        return {point: (one.dd, one.timeouts) for point, one in found.items()}

    switch, width, replay, port = of("switch"), of("width"), of("replay"), of("port")
    assert switch[50][0] > switch[100][0] > switch[150][0]
    assert width[1][0] < width[2][0] < width[8][0] < width[4][0]
    assert width[4][1] == 0
    assert width[2][1] == 0
    assert replay[1][1] <= replay[2][1] < replay[3][1] <= replay[4][1]
    assert min(replay[1][0], replay[2][0]) > max(replay[3][0], replay[4][0])
    assert port[16][1] > port[20][1] > port[24][1] == port[28][1] == 0
    assert port[16][0] < port[20][0] <= port[24][0] <= port[28][0]


def test_the_published_percentages_are_met_within_five_points_and_1_67_within_a_hundredth(
    outcomes: Outcomes, rows: list[Row]
) -> None:
    percentages = [row for row in rows if row.result.endswith("timeouts") or "replays at" in row.result]
    assert len(percentages) == 10
    missed = [row.result for row in percentages if abs((row.ours or 0) - (row.published or 0)) > 5]
    assert missed == ["figure 9c, replay buffer 1 at x8: timeouts"]
    for figure, error in {"dd x1 to x2": 0.02, "150 to 50 ns": 0.15, "saturation": 0.01}.items():
        found = [row for row in rows if row.result.endswith(figure)]
        assert found
        assert all(abs(row.relative_error or 0) <= error for row in found), found


def test_a_replay_buffer_of_one_cannot_be_without_timeouts(outcomes: Outcomes) -> None:
    """A port of 16 is full before the first response has left it, by the paper's own figures; and so it is in every mode."""
    assert 16 * ONE_BY_ONE_NS < FIRST_RESPONSE_NS
    for mode in ("", " as written"):
        assert disk(outcomes[f"replay 1{mode}"]).timeouts >= 100 / 33


def test_without_the_slips_one_write_of_a_sector_is_dropped(outcomes: Outcomes) -> None:
    for sweep, point in (("width", 8), ("replay", 2), ("replay", 3), ("port", 20)):
        assert disk(outcomes[f"{sweep} {point} as written"]).timeouts == pytest.approx(100 / 33, rel=0.01)


def test_every_row_has_a_verdict_that_its_note_explains(rows: list[Row]) -> None:
    for row in rows:
        assert row.verdict in ("reproduced", "explained", "not reproducible")
        assert row.note or row.verdict == "reproduced", row


def test_the_command_prints_the_rows_as_json(
    outcomes: Outcomes, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "outcomes_of", lambda *_, **__: outcomes)  # half a minute of runs
    assert status(["reproduce", "gem5", "--experiments", str(ROOT / "studies"), "--json", "-"]) == 0
    printed = json.loads(capsys.readouterr().out)
    keys = {"paper", "result", "published", "ours", "unit", "relative_error", "verdict", "note"}
    assert all(set(row) == keys for row in printed)


@pytest.mark.parametrize(
    "arguments",
    [
        ["gem6"],
        ["gem5", "--experiments", "/nowhere"],
        ["gem5", "--json", "/no/x.json"],
        ["gem5", "--report", "x.pdf"],
        ["pcie-bench", "--experiments", "experiments"],
    ],
)
def test_bad_input_is_a_usage_error(arguments: list[str]) -> None:
    assert status(["reproduce", *arguments]) == 2


def test_every_experiment_of_a_study_is_there() -> None:
    for name in STUDIES:
        assert running.experiments_of(study(name, ROOT / "studies"), str(ROOT / "studies")).is_dir()


def test_a_second_interrupt_ends_the_command_at_once() -> None:
    """Once for the runs, and once more for the processes that they were given to."""
    command = [sys.executable, "-m", "tlplab", "reproduce", "gem5", "--experiments", str(ROOT / "studies")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    try:
        until = time.monotonic() + 60
        while not children.read_text(encoding="ascii"):
            assert time.monotonic() < until, "no run begins"
            time.sleep(0.05)
        time.sleep(0.2)
        for _ in range(2):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.1)
        _, errors = process.communicate(timeout=30)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == 130
    assert errors.strip() == "interrupted"
