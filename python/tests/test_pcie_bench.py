"""The reproduction of pcie-bench: Figures 1 and 2, the text's figures, the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from studies.pcie_bench import STUDY
from studies.pcie_bench.bandwidth import MENDED, PUBLIC, crossing
from studies.pcie_bench.latency import SIZES, fitted
from tlplab import model
from tlplab.cli import status
from tlplab.reproduce import Row, running

ROOT = Path(__file__).resolve().parents[2]
OUTCOMES = running.outcomes_of(STUDY, ROOT, quiet=True)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return STUDY.rows(OUTCOMES)


def test_the_page_matches_the_calculation(rows: list[Row]) -> None:
    written = (ROOT / "studies/pcie_bench/README.md").read_text(encoding="utf-8")
    assert written == STUDY.page(OUTCOMES, rows), "run `make generate`"


@pytest.mark.parametrize(
    ("nic", "public", "mended"),
    [("simple", (477, 583), (638, 637)), ("kernel", (246, 299), (353, 352)), ("dpdk", (182, 181), (235, 288))],
)
def test_figure_1_crosses_line_rate_where_it_should(nic: str, public: tuple[int, int], mended: tuple[int, int]) -> None:
    assert crossing(nic, PUBLIC) == crossing(nic, model.COMPAT[1:])
    for found, expected in ((crossing(nic, PUBLIC), public), (crossing(nic, MENDED), mended)):
        assert (found.first, found.below) == expected
    assert crossing(nic).always <= crossing(nic, PUBLIC).always


def test_figure_2_has_published_shares_that_are_not_fitted(rows: list[Row]) -> None:
    shares = [row for row in rows if row.result.endswith("share")]
    assert [row.published for row in shares] == [90.6, 84.4, 77.2]
    assert all(abs(row.relative_error or 1) < 0.02 and "fitted" not in row.note for row in shares)
    nic = fitted()
    total, share = nic.parts(SIZES)
    assert (total[1:] > total[:-1]).all()
    assert share.min() > 77
    assert total[0] > 400
    assert total[-1] < 2400
    assert nic.at(128) == pytest.approx((1000, 90))


def test_every_row_has_a_verdict_that_its_note_explains(rows: list[Row]) -> None:
    for row in rows:
        assert row.note or row.verdict == "reproduced", row
        assert row.verdict != "not reproducible", row
        assert row.paper == "pcie-bench"
    assert len({row.result for row in rows}) == len(rows)
    explained = {row.result for row in rows if row.verdict != "reproduced"}
    assert all("public model" not in name for name in explained)
    assert len(explained) == 13  # six of the figures, seven of the measured hosts


def test_the_command_writes_rows_and_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.html"
    assert status(["reproduce", "pcie-bench", "--json", "-", "--report", str(report)]) == 0
    printed = json.loads(capsys.readouterr().out)
    keys = {"paper", "result", "published", "ours", "unit", "relative_error", "verdict", "note"}
    assert all(set(row) == keys for row in printed)
    page = report.read_text(encoding="utf-8")
    assert page.count("<svg") == 3
    assert "<script" not in page
    assert [drawing.svg() for drawing in STUDY.charts(OUTCOMES)] == [one.svg() for one in STUDY.charts(OUTCOMES)]
