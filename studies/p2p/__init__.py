"""Gen5 machines with eight and sixteen GPUs under switches, as their owners measured them in 2026: flows from GPU to GPU.

The sections: `flat`, `four_roots` and `three_switches` are a machine each, `redirect` is access control, `harness` explains reads beyond an uplink, `collapse` is the unexplained one.
`published` has the measurements.
"""

from __future__ import annotations

from studies.p2p import collapse, flat, four_roots, harness, redirect, three_switches
from studies.p2p.rows import PAPER
from tlplab.reproduce.section import made_of

SECTIONS = (
    flat.SECTION,
    four_roots.SECTION,
    three_switches.SECTION,
    redirect.SECTION,
    harness.SECTION,
    collapse.SECTION,
)

PAGE = """# GPUs that write to each other, 2026

A community of users of eight and sixteen GPUs under Gen5 switches publishes its measurements (github.com/voipmonitor/rtx6kpro, folder `hardware`). Three of its machines are
simulated here: parameters are fitted to single pairs and single reads, one set for each machine, and flows together are predicted. [peer-to-peer.md](../../docs/peer-to-peer.md) has the command that measures an
experiment so. This page is written by the command that runs it: `tlplab reproduce p2p --markdown studies/p2p/README.md`.

## Published and reproduced

{rows}

*Reproduced* is within 2 % for pairs, 5 % for latencies, 10 % for predictions. *Explained* is not, for the reason in the note. GB/s are 10^9 bytes of payload a second.

{sections}"""

STUDY = made_of(SECTIONS, name=PAPER, title="GPUs that write to each other, 2026", page=PAGE)
