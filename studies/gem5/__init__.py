"""Alian, Srinivasan, Kim: Simulating PCI-Express Interconnect for Future System Exploration (IISWC 2018)."""

from tlplab.reproduce import Study

from .figures import PAPER, charts, page, rows, runs
from .guest import under_linux

STUDY = Study(
    PAPER, "gem5 PCI-Express model, 2018", "gem5", runs, rows, page, charts, under_linux=under_linux, has_block=True
)
