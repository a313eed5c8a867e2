"""The machine you sit at, or a dump of another: its PCI Express links, their limits, and possible gains.

    lspci text (`text`) ─┐
    hexadecimal registers ┼─▶ `facts`: a function, field by field, known or None ─▶ `tree` ─▶ `findings`, `throughput` ─▶ `report`
    /sys/bus/pci (`sysfs`)┘                                                                                           └▶ `topology`: TOML

Nothing is guessed: a field that the source lacks is None, and conclusions from it are left out.
"""
