"""Figures with units, for people: four significant digits at most, the unit that keeps them short."""

from __future__ import annotations

from collections.abc import Sequence

TIMES = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"), (1e-3, "ps")]
RATES = [(1e12, "Tb/s"), (1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1.0, "b/s")]
BYTES = [(2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B")]


def significant(value: float, digits: int = 4) -> str:
    """`value` with `digits` significant digits, in full rather than with an exponent: 57.46, 1500, 0.0123."""
    if value == 0:
        return "0"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    if whole:
        decimals = max(digits - whole, 0)
    else:
        leading = -int(f"{abs(value):e}".split("e")[1]) - 1
        decimals = digits + leading
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def scaled(value: float, units: list[tuple[float, str]], digits: int) -> str:
    """`value` in the largest of `units` in which it is at least 1 once rounded, else in the smallest."""
    rounded = abs(float(f"{value:.{digits - 1}e}"))
    factor, unit = next(((f, u) for f, u in units if rounded >= f * (1 - 1e-12)), units[-1])
    return f"{significant(value / factor, digits)} {unit}"


def time(nanoseconds: float, digits: int = 4) -> str:
    """`176 ns`, `1.234 µs`."""
    return scaled(nanoseconds, TIMES, digits) if nanoseconds else "0 ns"


def time_fs(femtoseconds: int, digits: int = 4) -> str:
    """As `time`, of femtoseconds."""
    return time(femtoseconds / 1e6, digits)


def rate(bits_per_second: float, digits: int = 4) -> str:
    """`57.46 Gb/s`."""
    return scaled(bits_per_second, RATES, digits)


def size(count: int, digits: int = 4) -> str:
    """`4 KiB`."""
    return scaled(count, BYTES, digits)


def percent(fraction: float) -> str:
    """`97.5`, `0.04`; a dash for nothing at all, so that a table shows where something is."""
    if fraction == 0:
        return "–"
    value = fraction * 100
    if value < 0.01:
        return "<0.01"
    return f"{value:.2f}" if value < 1 else f"{value:.1f}"


def count(value: int) -> str:
    """`12 345`, with a narrow gap that lets the eye find the thousands; a dash for none."""
    return f"{value:,}".replace(",", " ") if value else "–"


def ranges(numbers: Sequence[int], between: str = ", ") -> str:
    """Numbers with those in a row put together: `24-26, 100, 249`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return between.join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
