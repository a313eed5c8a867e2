"""`tlplab reproduce differential`: the fits, the simulated machine, and the page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from studies.differential import STUDY, fits, machine, parameters
from studies.differential.published import TABLE_4, TSC_STEP_NS
from tlplab.reproduce import Outcomes, running

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    return running.outcomes_of(STUDY, ROOT / "studies" / STUDY.folder, quiet=True)


def test_differences_are_multiples_of_the_counters_step() -> None:
    assert all(link.latency_ns % TSC_STEP_NS == 0 for link in TABLE_4)
    assert len(TABLE_4) == 18


def test_fits_are_least_squares_and_physical() -> None:
    for links in fits.CLASSES.values():
        free = fits.least_squares(links, physical=False)
        bound = fits.least_squares(links, physical=True)
        assert free is not None
        assert bound is not None
        assert min(bound.a, bound.b) >= 0
        assert free.rms(links) <= bound.rms(links) + 1e-9
        # Nothing near is better.
        for da, db in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            assert fits.Fit(free.a + da, free.b + db).rms(links) > free.rms(links)
    # By hand: two links of two widths are on one line.
    pair = fits.least_squares(fits.CLASSES["the Intel NICs"], physical=True)
    assert pair is not None
    assert [pair.a, pair.b] == pytest.approx([228, 1080])
    assert fits.least_squares(fits.named("Te_m ds", "Te_i ds"), physical=True) is None


def test_a_row_left_out_is_predicted_from_the_others() -> None:
    found = {link.name: parameters.left_out(link) for link in TABLE_4}
    assert [name for name, error in found.items() if error is None] == ["D", "Te_e", "Te_d"]
    # The other configuration space is 18 ns away.
    assert found["Te_m c"] == pytest.approx(-18)
    assert len(parameters.PARAMETERS) < len(TABLE_4)
    assert (np.array(parameters.fitted()) >= 0).all()


def test_the_simulated_machine_has_the_published_links(outcomes: Outcomes) -> None:
    ours = machine.simulated(outcomes)
    missed = [link.name for link in TABLE_4 if abs(ours[link.name] - link.latency_ns) > TSC_STEP_NS]
    assert missed == list(machine.NOTES), "what is missed has a note that says why"
    assert len(TABLE_4) - len(missed) >= 12
    for split, immediate, cycle in (("Tx_l ds", "Tx_l di", 15), ("Tx_h ds", "Tx_h di", 7.5)):
        assert abs(ours[split] - (2 * ours[immediate] - 2 * cycle)) <= TSC_STEP_NS


def test_the_page_matches_the_output_of_the_command(outcomes: Outcomes) -> None:
    written = (ROOT / "studies/differential/README.md").read_text(encoding="utf-8")
    assert written == STUDY.page(outcomes, STUDY.rows(outcomes))
    assert all(drawing.svg().startswith("<svg") for drawing in STUDY.charts(outcomes))
