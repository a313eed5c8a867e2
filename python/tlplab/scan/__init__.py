"""The machine you sit at, or a dump of another: what its PCI Express links are, what limits them, what would be gained.

    lspci text (`text`) ─┐
    hexadecimal registers ┼─▶ `facts`: a function, field by field, known or None ─▶ `tree` ─▶ `findings`, `throughput` ─▶ `report`
    /sys/bus/pci (`sysfs`)┘                                                                                           └▶ `topology`: TOML

Nothing is guessed: a field that the source does not tell is None, and what rests on it is not said.
"""
