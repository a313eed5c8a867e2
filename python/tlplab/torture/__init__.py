"""Driver torture: every class of TLPs that a guest and a device exchange, hit by every fault, each in a boot of its own.

    reference boot ──capture──▶ classes ──× faults──▶ cases ──a boot each──▶ verdicts ──▶ matrix: terminal, JSON, page

`classes` sorts the TLPs of the reference by phase, kind and place, `faults` lists the faults of each, `boot` runs a guest through a script in
phases, `verdict` judges its output, `page` shows the matrix, `command` is `tlplab torture`.
"""
