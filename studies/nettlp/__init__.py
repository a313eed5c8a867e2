"""Kuga, Nakamura, Matsuya, Sekiya: NetTLP: A Development Platform for PCIe Devices in Software Interacting with Hardware (NSDI 2020).

The study has five parts, each in a module of its own: `card` simulates the FPGA card, and is the same everywhere; `captures` reads the published captures;
`topologies` makes captures of tlplab's own devices, for the same figures; `machine` measures this machine, and `guest` the memory of a virtual one. Only the first is in the page that comes with
tlplab.
"""

from __future__ import annotations

from pathlib import Path

from studies.nettlp import captures, card, guest, machine, topologies
from tlplab.reproduce import HEADING, Beside, Outcomes, Row, Study
from tlplab.reproduce.markdown import table


def page(outcomes: Outcomes, listed: list[Row]) -> str:
    """studies/nettlp/README.md."""
    return PAGE.format(rows=table(HEADING, [row.cells() for row in listed]), text=card.text(outcomes).strip())


def beside(experiments: Path, folder: str | None, *, quiet: bool) -> list[Beside]:
    """The parts of the study that are not simulated."""
    return [captures.beside(folder), topologies.beside(experiments), machine.beside(quiet=quiet)]


PAGE = """# NetTLP, 2020, once more

Kuga and others put software behind PCI Express: an FPGA card carries TLPs in UDP datagrams to a program on another machine ("NetTLP: A Development Platform
for PCIe Devices in Software Interacting with Hardware", NSDI 2020). tlplab repeats their measurements in five ways:

* with a model of the card in the simulator, which gives the same figures on every machine: this page, written by
  `tlplab reproduce nettlp --no-measure --markdown studies/nettlp/README.md`;
* from the published captures: `tlplab reproduce nettlp --captures DIR`;
* from captures of tlplab's own adapter and devices, made in the same run on the loopback interface, in the two topologies of Figure 12;
* on this machine, between two network namespaces, as root: `tlplab reproduce nettlp`. The results depend on the machine and are not kept
  here; the note of each row states the conditions that differ from the paper's;
* against the memory of a QEMU guest, with cards that its Linux has enumerated: `tlplab reproduce nettlp --guest`. With `--library FOLDER`, a checkout of the published
  library, its `tlpperf` makes the same measurements.

## Published and reproduced

{rows}

A row is *reproduced* if it is within 10 % for throughput (figure 11: 15 %), 15 % for the medians of Table 2 and 20 % for measured rows; within the range or
below the bound that the paper gives; equal, for exact counts; or of the shape that the paper describes. An *explained* row
differs for the reason in its note, or was fitted and is not evidence; a row that differs without a reason is *not reproducible*.

{text}
"""

STUDY = Study(
    "nettlp", "NetTLP, 2020", "nettlp", card.runs, card.rows, page, card.drawings, beside,
    under_linux=guest.under_linux, in_machine=True, has_library=True,
)  # fmt: skip
