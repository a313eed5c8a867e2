"""Judgement of the rows of this study."""

from __future__ import annotations

from tlplab.reproduce import Row, Verdict

PAPER = "nettlp"


def judged(good: bool, excuse: str) -> Verdict:
    """Only an excused row is explained."""
    return "reproduced" if good else "explained" if excuse else "not reproducible"


def remarks(note: str, excuse: str, good: bool) -> str:
    """An excuse is stated only if the figure is missed."""
    return "; ".join(filter(None, (note, "" if good else excuse)))


def compared(
    result: str, published: float, ours: float, unit: str, within: float, note: str = "", excuse: str = ""
) -> Row:
    """A row that is reproduced if the error is at most `within`, and explained by its excuse, if it has one, otherwise."""
    good = abs(ours / published - 1) <= within
    return Row(PAPER, result, published, ours, unit, judged(good, excuse), remarks(note, excuse, good))


def ranged(
    result: str, published: tuple[float, float], ours: float, unit: str, note: str = "", excuse: str = ""
) -> Row:
    """A row of which a range was published, not a figure: reproduced in it."""
    least, most = published
    good = least <= ours <= most
    note = remarks(f"read off the figure: {least:g} to {most:g} {unit}", note, False)
    return Row(PAPER, result, None, ours, unit, judged(good, excuse), remarks(note, excuse, good))


def bounded(result: str, bound: float, ours: float, unit: str, note: str = "", excuse: str = "") -> Row:
    """A row of which a bound was published: reproduced below it."""
    good = ours < bound
    note = remarks("published as a bound", note, False)
    return Row(PAPER, result, bound, ours, unit, judged(good, excuse), remarks(note, excuse, good))


def fitted(result: str, published: float, ours: float, unit: str, what: str) -> Row:
    """A figure for which a constant was chosen: that it comes out shows nothing."""
    return Row(PAPER, result, published, ours, unit, "explained", f"fitted, no evidence: {what}")


def shape(result: str, ours: float, unit: str, good: bool, note: str, excuse: str = "") -> Row:
    """A shape that the paper describes without a figure: the note names it."""
    return Row(PAPER, result, None, ours, unit, judged(good, excuse), remarks(note, excuse, good))


def teeth(figure: str, found: dict[int, float], within: float) -> list[Row]:
    """The saw-tooth in rates by size: 16 B behind a multiple of the read request size, or of the payload size, the rate falls, and rises from there to
    the next one. A change by less than `within` is none."""
    sizes = sorted(size for size in found if size % 256 == 0 and size + 16 in found)
    falls = {
        "multiples of 512 B": ("one request more", [size for size in sizes if size % 512 == 0]),
        "odd multiples of 256 B": ("one completion more", [size for size in sizes if size % 512]),
    }
    rows = []
    for place, (why, chosen) in falls.items():
        shallowest = max(found[size + 16] / found[size] for size in chosen)
        name = f"{figure}: 16 B behind {place}"
        rows.append(shape(name, shallowest, "times", shallowest < within, f"the rate falls: {why}"))
    flattest = min(found[size] / found[size - 240] for size in sizes if size - 240 in found)
    rises = "the rate rises until the next multiple: the last request, or completion, grows"
    rows.append(shape(f"{figure}: over 240 B up to a multiple", flattest, "times", flattest > 1 / within, rises))
    return rows


def absent(result: str, published: float | None, unit: str, why: str) -> Row:
    """A row for a figure that is not available here."""
    return Row(PAPER, result, published, None, unit, "not reproducible", why)
