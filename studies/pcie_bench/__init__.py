"""Neugebauer, Antichi, Zazo, Audzevich, López-Buedo, Moore: Understanding PCIe performance for end host networking (SIGCOMM 2018).

The study is made of sections, each in a module of its own: `bandwidth` (Figure 1), `latency` (Figure 2), `hosts` (the measured machines).
"""

from __future__ import annotations

from studies.pcie_bench import bandwidth, guest, hosts, latency
from studies.pcie_bench.section import PAPER
from tlplab.reproduce.section import made_of

SECTIONS = (bandwidth.SECTION, latency.SECTION, hosts.SECTION)

PAGE = """# pcie-bench, 2018, calculated again

Neugebauer and others modelled the part of a link's rate that PCIe leaves to a NIC, and measured hosts ("Understanding PCIe performance for end host
networking", SIGCOMM 2018). Their model is public (github.com/pcie-bench/pcie-model). Here it is calculated twice: with the public model's
mistakes (`--compat pcie-model`), and without. This page is written by the command that does it:
`tlplab reproduce pcie-bench --markdown studies/pcie_bench/README.md`.

## Published and reproduced

{rows}

*Published* are the paper's text and figures, the figures of the data sets published with it, and, for Figure 1, the output of the public model (*mended*:
with one character of its code put right, so that the receive side's requests count). *Reproduced* is within a hundredth of a Gb/s or at
the same byte where that model is calculated as it is, and within 2 % otherwise; for the measured hosts: within a step of 13.3 ns of the device's
timestamps, 2.5 points of a percentage (runs of one machine differ by that), 1 read or 1 M/s, of the figure or of the published range. An *explained* row
differs for the reason in its note.

{sections}"""

STUDY = made_of(SECTIONS, name=PAPER, title="pcie-bench, 2018", page=PAGE, under_linux=guest.under_linux)
