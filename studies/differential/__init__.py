"""Miller, Watts, Moore: Motivating Future Interconnects (ANCS 2009), on simulated machines and their own figures.

The sections: `machine` (table 4 on a simulated machine, with `parameters`), `spread` (tables 1 to 3, figure 2), `model` (identities, table 5, `fits`),
`proposals` (a header's checksum, starved reads), `modern` (links of today). `published` has the paper's figures.
"""

from __future__ import annotations

from studies.differential import machine, model, modern, proposals, spread
from studies.differential.rows import PAPER
from tlplab.reproduce.section import made_of

SECTIONS = (machine.SECTION, spread.SECTION, model.SECTION, proposals.SECTION, modern.SECTION)

PAGE = """# Differential latency, 2009, measured again

Miller, Watts and Moore time reads of single double words, take the minimum at each bridge and end point, and have each link's latency from differences
("Motivating Future Interconnects: A Differential Measurement Analysis of PCI Latency"). Here the same method reads a simulated machine that is put
together as theirs; [differential.md](../../docs/differential.md) has the method, which also measures the machine you sit at. This page is
written by the command that runs it: `tlplab reproduce differential --markdown studies/differential/README.md`.

## Published and ours

{rows}

*Reproduced* is within 3 ns, the step of the paper's counter, or rounds to what is published; of table 2's spreads, that step is nearly all. Where nothing is
published, it is what the paper expects, or what the parts add up to. Some rows are the paper's own figures put together: their notes say so. *Explained* is not, for the reason in the note. *Not reproducible*
needs what is not here. Sections of the paper without measurements, a checksum of the header's own and reads behind posted writes that have taken all
credits, are experiments beside the machine.

{sections}"""

STUDY = made_of(SECTIONS, name=PAPER, title="Differential latency, 2009", page=PAGE)
