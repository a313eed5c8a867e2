"""Addresses of this machine that no other process takes for its own."""

from __future__ import annotations

import itertools
import os

# Of 127.0.0.0/8, the part that nobody writes down as an address in pages and programs.
FIRST, NETS = 128, 96
HOSTS = itertools.count(1)


def own_address() -> str:
    """An address of the loopback interface that only this process uses, and only once; there are 254."""
    process, host = os.getpid(), next(HOSTS)
    if host > 254:
        raise ValueError("all addresses of this process are in use")
    return f"127.{FIRST + (process >> 8) % NETS}.{process % 256}.{host}"
