"""Bittner: Speedy Bus Mastering PCI Express (FPL 2012), on our own DMA core, co-simulated.

The sections: `figure2` (bandwidth against size), `transfers` (their bounds, and options that must cost nothing), `host` (slow reads, descriptors, registers,
latency); `area` (Table 2) is not a simulation. `card` has the links and the closed forms.
"""

from __future__ import annotations

from pathlib import Path

from studies.speedy import area, figure2, guest, host, transfers
from studies.speedy.rows import PAPER
from tlplab.reproduce import Beside
from tlplab.reproduce.section import made_of

SECTIONS = (figure2.SECTION, transfers.SECTION, host.SECTION)


def beside(experiments: Path, folder: str | None, *, quiet: bool) -> list[Beside]:  # noqa: ARG001
    """The part of the study that is read from a file."""
    return [area.beside(experiments)]


PAGE = """# Speedy PCIe, built again

Bittner's Speedy PCIe core moves data between an FPGA's memory and a host's at the full speed of Gen1 x8 ("Speedy bus mastering PCI Express"). Its
source is gone. `rtl/` has a core after the paper, with the same structure and none of its code. Here that core, clock by clock, is the
card of a simulated host, with link, root complex and memory in time; its driver is a program of that host. This page is written by the command that
runs it, after `make rtl`: `tlplab reproduce speedy --markdown studies/speedy/README.md`.

## Published and reproduced

{rows}

A *reproduced* row is within the tolerance in its note or as the paper describes it; a row for a figure that the core has to reach is if it does: these
have nothing published. An *explained* row misses it, or differs for the reason in the note: three figures of the paper take GiB for GB. A figure that includes
Windows and its driver is *not reproducible* here; tlplab's is then the hardware's share.

"To the card" is the paper's write by software: the card reads. Nothing here is hardware: clocks and link are simulated, and the core's clocks
are assumed (200 MHz, and the hard IP's for each link).

{sections}"""

BUILT = tuple((f"../../out/rtl/tlpdma-trn{bits}.so", "make rtl") for bits in (64, 128))

STUDY = made_of(
    SECTIONS, name=PAPER, title="Speedy PCIe", page=PAGE, beside=beside, built=BUILT, under_linux=guest.under_linux
)
