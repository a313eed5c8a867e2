"""Figures for people: short, rounded, with the unit that fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tlplab import quantities as q


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (176, "176 ns"),
        (3_046.875, "3.047 µs"),
        (0.5, "500 ps"),
        (12_345_678, "12.35 ms"),
        (2e9, "2 s"),
        (0, "0 ns"),
        (999.96, "1 µs"),
        (999.94, "999.9 ns"),
    ],
)
def test_times(nanoseconds: float, text: str) -> None:
    assert q.time(nanoseconds) == text


def test_rates_and_sizes() -> None:
    assert q.rate(57.46e9) == "57.46 Gb/s"
    assert q.rate(0) == "0 b/s"
    assert q.rate(999.97e6) == "1 Gb/s"
    assert q.size(4096) == "4 KiB"
    assert q.size(1500) == "1.465 KiB"


@pytest.mark.parametrize(
    ("fraction", "text"), [(0, "–"), (1, "100.0"), (0.975, "97.5"), (0.0026, "0.26"), (1e-6, "<0.01")]
)
def test_percentages(fraction: float, text: str) -> None:
    assert q.percent(fraction) == text


def test_counts_are_grouped() -> None:
    assert q.count(1_234_567) == "1 234 567"
    assert q.count(0) == "–"


@given(st.floats(1e-6, 1e15))
def test_rounding_keeps_four_digits(value: float) -> None:
    assert float(q.significant(value)) == pytest.approx(value, rel=5.1e-4)


@given(st.floats(1e-3, 1e12))
def test_times_are_short(nanoseconds: float) -> None:
    assert len(q.time(nanoseconds)) <= 10
