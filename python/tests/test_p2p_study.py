"""`tlplab reproduce p2p`: the fitted and the predicted figures, and the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from studies.p2p import STUDY, collapse, flat, three_switches
from studies.p2p import published as p
from studies.p2p.rows import by_harness, rates, total
from tlplab.reproduce import Outcomes, Row, running

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    return running.outcomes_of(STUDY, ROOT / "studies" / STUDY.folder, quiet=True)


@pytest.fixture(scope="module")
def rows(outcomes: Outcomes) -> list[Row]:
    return STUDY.rows(outcomes)


def test_the_harness_prints_the_last_rate_times_the_pairs() -> None:
    assert by_harness([20, 20, 20]) == 60
    assert by_harness([10, 10, 20]) == 60
    # The last is the slowest of those that share one link: the link is full until it ends.
    assert by_harness([30, 15, 15]) == 60


def test_the_patterns_match_the_tables() -> None:
    assert len(flat.ALL) == 56
    assert len(flat.IN_ONE) == 12
    # p2pmark: GPU 0 reads from the one that is so far behind it.
    assert flat.ring(3)[0] == (3, 0)
    assert len({run.name for run in STUDY.runs()}) == len(STUDY.runs())


@pytest.mark.full
@pytest.mark.long
def test_fitted_rows_fit_and_predicted_rows_are_near(rows: list[Row]) -> None:
    by_name = {row.result: row for row in rows}
    for row in rows:
        error = abs(row.relative_error or 0)
        if row.note.startswith("fitted"):
            assert error <= (0.05 if row.unit == "ns" else 0.02), row
    # Two pairs, rings, an uplink at Gen2, whatever an uplink bounds.
    for row in rows:
        if (
            row.result.startswith((p.FLAT, p.ROOTS, p.NEWER))
            and row.unit == "GB/s"
            and row.published
            and "12 flows" not in row.result
        ):
            assert abs(row.relative_error or 0) <= 0.10, row
    assert by_name[f"{p.FLAT}: 12 flows, each to each in one switch"].verdict == "explained"
    for row in rows:
        assert row.note or row.verdict == "reproduced", row
        assert row.verdict != "not reproducible", row


@pytest.mark.full
@pytest.mark.long
def test_no_data_rate_is_beyond_a_link(outcomes: Outcomes, rows: list[Row]) -> None:
    link = 63.0
    for run in STUDY.runs():
        assert run.together is not None
        into: dict[str, float] = {}
        for flow, rate in zip(run.together.flows, rates(outcomes, run.name), strict=True):
            into[flow.target] = into.get(flow.target, 0) + rate
        assert max(into.values()) < link, run.name
    beyond = [row for row in rows if (row.ours or 0) > link and "reads" in row.result]
    assert len(beyond) == 3
    assert all("harness prints it" in row.result and row.note.startswith("inference") for row in beyond)


@pytest.mark.full
@pytest.mark.long
def test_rings_show_the_chips_inside_a_switch(outcomes: Outcomes) -> None:
    for by in three_switches.INSIDE:
        measured = p.TREE_RING[by]
        assert abs(three_switches.inside(outcomes, by) / measured - 1) < 0.06
        assert abs(total(outcomes, f"tree ring +{by}") / 8 / measured - 1) < 0.03
        assert total(outcomes, f"tree apart, ring +{by}") / 8 / measured < 0.8


@pytest.mark.full
@pytest.mark.long
def test_predictions_of_the_mechanisms_match_the_page(outcomes: Outcomes) -> None:
    def of(mechanism: str, pattern: str) -> list[float]:
        return rates(outcomes, f"collapse, {mechanism}: {pattern}")

    slow = of(collapse.SLOW, "SW1 → SW3 alone")[0]
    # All get the rate of the slowest, which is slow alone.
    assert of(collapse.SLOW, "SW1 → SW2 + SW3 + SW4") == pytest.approx([slow] * 3, rel=0.02)
    assert of(collapse.SLOW, "SW1 → SW2 alone")[0] > 5 * slow
    few = of(collapse.FEW, "SW1 → SW2 alone")[0]
    assert sum(of(collapse.FEW, "SW1 → SW2 + SW3")) == pytest.approx(2 * few, rel=0.02)
    assert sum(of(collapse.FEW, "SW1 → SW2, two pairs")) == pytest.approx(few, rel=0.02)
    small = of(collapse.SMALL, "SW1 → SW2 alone")[0]
    assert sum(of(collapse.SMALL, "SW1 → SW2 + SW3 + SW4")) == pytest.approx(small, rel=0.02)


@pytest.mark.full
@pytest.mark.long
def test_the_page_matches_the_output_of_the_command(outcomes: Outcomes, rows: list[Row]) -> None:
    written = (ROOT / "studies/p2p/README.md").read_text(encoding="utf-8")
    assert written == STUDY.page(outcomes, rows), "run `make generate`"
    assert all(drawing.svg().startswith("<svg") for drawing in STUDY.charts(outcomes))
