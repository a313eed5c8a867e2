"""The paper's model of links, its identities on parallel buses, and its statements about InfiniBand: arithmetic on published figures."""

from __future__ import annotations

from studies.differential.fits import CLASSES, least_squares, left_out
from studies.differential.published import BY_NAME, HANDLING_NS, INFINIBAND, TABLE_5
from studies.differential.rows import judged, nanoseconds
from tlplab.reproduce import Outcomes, Row
from tlplab.reproduce.markdown import table
from tlplab.reproduce.section import Section

SYMBOL_NS = 4
"""A byte on one lane of Gen1, with its ten bits."""


def rows(_: Outcomes) -> list[Row]:
    """Identities, ratios and shares."""
    return [*identities(), *ratios(), *budget(), *infiniband()]


def identities() -> list[Row]:
    """T_split = 2 T_imm - 2 T_cycle."""
    listed = []
    for split, immediate in (("Tx_l ds", "Tx_l di"), ("Tx_h ds", "Tx_h di")):
        bus = BY_NAME[immediate]
        ours = 2 * bus.latency_ns - 2 * bus.cycle_ns
        title = f"T_split = 2 T_imm - 2 T_cycle, at {bus.cycle_ns:g} ns"
        listed.append(
            nanoseconds(
                title, BY_NAME[split].latency_ns, ours, "from the published T_imm; equals the published T_split"
            )
        )
    return listed


def ratios() -> list[Row]:
    """The abstract's factors."""
    fastest = BY_NAME["Tx_h di"].latency_ns
    listed = []
    for title, published, name in (
        ("x8 against PCI-X 133", 3, "E_a"),
        ("x1, the NIC, against PCI-X 133", 16, "Te_e"),
        ("x1, the FPGA, against PCI-X 133", 25, "Te_m ds"),
    ):
        ours = BY_NAME[name].latency_ns / fastest
        listed.append(judged(title, published, ours, "times", round(ours) == published, "from the published latencies"))
    return listed


def serialisation(lanes: int) -> float:
    """A read of 4 B there (3DW header) and back, with framing, sequence number and LCRC; ns."""
    request, completion = 12 + 8, 12 + 4 + 8
    return (request + completion) * SYMBOL_NS / lanes


def budget() -> list[Row]:
    """Table 5 against the measured link."""
    total = sum(delay for _, delay in TABLE_5) + HANDLING_NS + serialisation(1)
    link = BY_NAME["Te_m ds"].latency_ns
    note = (
        f"{' + '.join(str(delay) for _, delay in TABLE_5)} + {HANDLING_NS} of user logic + {serialisation(1):.0f} on the wire; the "
        f"{link - total:.0f} ns left are attributed to the chipset (the parameter above, fitted to this link among others) and to the receiving side of the FPGA"
    )
    return [judged("table 5 of the x1 link's latency", link, total, "ns", False, note)]


def infiniband() -> list[Row]:
    """Shares of a ping."""
    return [
        judged(
            f"share of an InfiniBand ping, {name}", share, 100 * 4 * latency / ping, "%",
            round(100 * 4 * latency / ping) == share, f"four passages of {latency} ns in {ping / 1000:g} us",
        )
        for name, latency, ping, share in INFINIBAND
    ]  # fmt: skip


def text(_: Outcomes) -> str:
    """The fits, one line each."""
    lines = []
    for title, links in CLASSES.items():
        free, physical = (least_squares(links, physical=bound) for bound in (False, True))
        assert free is not None, "classes have links of two widths"
        assert physical is not None
        missed = [error for _, error in left_out(links) if error is not None]
        lines.append([
            title, f"{len(links)}", f"{free.a:.0f} + {free.b:.0f}/n", f"{free.rms(links):.1f}", f"{free.r2(links):.4f}",
            f"{physical.a:.0f} + {physical.b:.0f}/n", f"{physical.rms(links):.1f}",
            f"{max(map(abs, missed)):.0f}" if missed else "–",
        ])  # fmt: skip
    heading = (
        "class of links",
        "links",
        "a + b/n, ns",
        "rms, ns",
        "R²",
        "with a, b ≥ 0",
        "rms, ns",
        "largest error left out, ns",
    )
    return TEXT.format(fits=table(heading, lines))


TEXT = """## The model of a link

The paper assumes T = 2 (T_proc + T_serdes/n + T_flight) = a + b/n for n lanes. A negative a would be a negative time: one pair of a and b cannot describe links of
several vendors. The classes are therefore fitted separately, once freely and once with both parts at least 0. For the last column each link is left out in
turn: it has the largest error at that link of the bounded fit to the others (a dash: the others do not determine the fit).

{fits}

R² is high wherever x1 and x8 are far apart, and is weak evidence. The errors at links left out show how far the model can be trusted."""

SECTION = Section(rows=rows, text=text)
