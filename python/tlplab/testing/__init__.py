"""Helpers for tests of a run: its TLPs as a table, figures that have to hold, messages with the ladder. `pytest_tlplab` hands it to pytest."""
