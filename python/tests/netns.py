"""The two ends of a cable, for tests of programs that talk over a network."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from typing import Any

from privilege import lacking

from tlplab.nettlp import cable as lab
from tlplab.nettlp.cable import ip

__all__ = ["End", "cable", "ip"]
# Seconds that a command may take, unless its test says so.
PATIENCE = 60


class End(lab.End):
    """One end of the cable, at which commands run."""

    def run(self, *arguments: str, timeout: float = PATIENCE, **options: Any) -> subprocess.CompletedProcess[str]:
        """Runs a command at this end and waits for it."""
        return subprocess.run(
            self.command(arguments), timeout=timeout, capture_output=True, text=True, check=False, **options
        )

    @contextlib.contextmanager
    def running(self, *arguments: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
        """A command that goes on at this end as long as the block does; it is then asked to stop, by SIGINT."""
        process = subprocess.Popen(self.command(arguments), text=True, **options)
        try:
            yield process
        finally:
            process.send_signal(2)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def cable(mtu: int = 1500) -> Iterator[tuple[End, End]]:
    """Makes the namespaces and removes them; skips the test where that is not permitted."""
    with contextlib.ExitStack() as stack:
        try:
            here, there = stack.enter_context(lab.cable(mtu=mtu))
        except lab.NoNamespacesError as why:
            lacking(str(why))
        yield End(**vars(here)), End(**vars(there))
