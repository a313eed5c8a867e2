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

Miller, Watts and Moore time reads of single doublewords, take the minimum at each bridge and end point, and compute each link's latency from differences
("Motivating Future Interconnects: A Differential Measurement Analysis of PCI Latency"). This study applies the method to a simulated machine with the
components of theirs. [What each link costs](../../docs/differential.md) explains the method, which also measures real machines.
`tlplab reproduce differential --markdown studies/differential/README.md` runs the study and writes this page.

## Published and reproduced

{rows}

A row is *reproduced* if it is within 3 ns, the step of the paper's counter, or rounds to the published figure. (The spreads of table 2 are hardly larger than that
step.) Without a published figure, it has to match the paper's expectation, or the sum of its parts. Notes mark rows that only combine the paper's own figures. An
*explained* row misses for the reason in its note. A *not reproducible* row needs hardware or software that is not available here. The paper discusses a separate
checksum of the header, and reads behind posted writes that have used up all credits, without measurements; both are experiments of this study.

{sections}"""

STUDY = made_of(SECTIONS, name=PAPER, title="Differential latency, 2009", page=PAGE)
