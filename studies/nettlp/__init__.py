"""Kuga, Nakamura, Matsuya, Sekiya: NetTLP: A Development Platform for PCIe Devices in Software Interacting with Hardware (NSDI 2020).

The study has five parts, each in a module of its own: `card` simulates the FPGA card, and is the same everywhere; `captures` reads what was published;
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
    """What is not simulated."""
    return [captures.beside(folder), topologies.beside(experiments), machine.beside(quiet=quiet)]


PAGE = """# NetTLP, 2020, once more

Kuga and others put software behind PCI Express: an FPGA card carries TLPs in UDP datagrams to a program on another machine ("NetTLP: A Development Platform
for PCIe Devices in Software Interacting with Hardware", NSDI 2020). Their measurements are repeated in five ways:

* on a model of the card in the simulator, which gives the same figures everywhere: this page, as written by
  `tlplab reproduce nettlp --no-measure --markdown studies/nettlp/README.md`;
* from the captures that were published: `tlplab reproduce nettlp --captures DIR`;
* from captures of tlplab's own adapter and devices, in the two topologies of Figure 12, which are made meanwhile on the loopback interface;
* on the machine at hand, between two network namespaces, which needs root: `tlplab reproduce nettlp`. What comes out depends on the machine and is not kept
  here; its rows say beside each published figure what is the same and what cannot be;
* against the memory of a guest under QEMU, with cards that its Linux has enumerated: `tlplab reproduce nettlp --guest`, and with `--library FOLDER`, a checkout of the published
  library, by its `tlpperf`, too.

## Published and ours

{rows}

*Reproduced* is within 10 % for throughput (figure 11: 15 %) and 15 % for the medians of Table 2, 20 % for all that is measured, within the range that the
paper's figure shows, below a bound that it gives, what is counted exactly, or a shape that the paper describes and that comes out. What is *explained*
differs for the reason in its note, or was fitted and so shows nothing; what differs without a reason is *not reproducible*.

{text}
"""

STUDY = Study(
    "nettlp", "NetTLP, 2020", "nettlp", card.runs, card.rows, page, card.drawings, beside,
    under_linux=guest.under_linux, in_machine=True, has_library=True,
)  # fmt: skip
