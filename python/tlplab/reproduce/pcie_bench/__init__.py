"""Neugebauer, Antichi, Zazo, Audzevich, López-Buedo, Moore: Understanding PCIe performance for end host networking (SIGCOMM 2018).

The study is made of sections, each in a module of its own: `bandwidth` (Figure 1), `latency` (Figure 2), `hosts` (the measured machines).
"""

from __future__ import annotations

from tlplab.reproduce import HEADING, Drawing, Outcomes, Row, Run, Study
from tlplab.reproduce.markdown import table
from tlplab.reproduce.pcie_bench import bandwidth, hosts, latency
from tlplab.reproduce.pcie_bench.section import PAPER

SECTIONS = (bandwidth.SECTION, latency.SECTION, hosts.SECTION)


def runs() -> list[Run]:
    """Every simulation of the study."""
    return [run for section in SECTIONS for run in section.runs()]


def rows(outcomes: Outcomes) -> list[Row]:
    """The paper's results in its order."""
    return [row for section in SECTIONS for row in section.rows(outcomes)]


def page(outcomes: Outcomes, listed: list[Row]) -> str:
    """docs/studies/pcie-bench.md."""
    sections = "\n".join(section.text(outcomes).strip() + "\n" for section in SECTIONS)
    return PAGE.format(rows=table(HEADING, [row.cells() for row in listed]), sections=sections)


def drawings(outcomes: Outcomes) -> list[Drawing]:
    """The paper's figures, ours."""
    return [drawing for section in SECTIONS for drawing in section.drawings(outcomes)]


PAGE = """# pcie-bench, 2018, calculated again

Neugebauer and others modelled what PCIe leaves of a link for a NIC, and measured hosts ("Understanding PCIe performance for end host
networking", SIGCOMM 2018). Their model is public (github.com/pcie-bench/pcie-model). Here it is calculated twice: with the public model's
mistakes (`--compat pcie-model`), and without. This page is written by the command that does it:
`tlplab reproduce pcie-bench --markdown docs/studies/pcie-bench.md`.

## Published and ours

{rows}

*Published* are the paper's text and figures, what the data sets published with it show, and, for Figure 1, the output of the public model (*mended*:
with one character of its code put right, so that the receive side's requests count). *Reproduced* is within a hundredth of a Gb/s or at
the same byte where that model is calculated as it is, and within 2 % otherwise; for the measured hosts: within a step of 13.3 ns of the device's
timestamps, 2.5 points of a percentage (runs of one machine differ by that), 1 read or 1 M/s, of the figure or of the published range. What is *explained*
comes out differently for the reason in its note.

{sections}"""

STUDY = Study(PAPER, "pcie-bench, 2018", "pcie-bench", runs, rows, page, drawings)
