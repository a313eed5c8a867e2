"""Two network namespaces joined by a cable, for tests of what talks over a network."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

NUMBERS = itertools.count()
# Seconds that a command may take, unless its test says so.
PATIENCE = 60


@dataclass(frozen=True)
class End:
    """One end of the cable: a namespace with an interface that has an address."""

    namespace: str
    interface: str
    address: str

    def command(self, arguments: Sequence[str]) -> list[str]:
        """A command that runs at this end."""
        return ["ip", "netns", "exec", self.namespace, *arguments]

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
    name = f"tlp{os.getpid()}-{next(NUMBERS)}"
    ends = End(f"{name}a", "tlp0", "10.77.0.1"), End(f"{name}b", "tlp1", "10.77.0.2")
    here, there = ends
    if shutil.which("ip") is None:
        pytest.skip("network namespaces need `ip` (Debian: apt-get install iproute2)")
    try:
        for end in ends:
            made = subprocess.run(["ip", "netns", "add", end.namespace], capture_output=True, text=True, check=False)
            if made.returncode:
                pytest.skip(f"network namespaces cannot be made here: {made.stderr.strip()}")
        ip("link", "add", here.interface, "netns", here.namespace, "type", "veth",
           "peer", "name", there.interface, "netns", there.namespace)  # fmt: skip
        for end in ends:
            ip("-n", end.namespace, "address", "add", f"{end.address}/24", "dev", end.interface)
            ip("-n", end.namespace, "link", "set", end.interface, "mtu", str(mtu), "up")
            ip("-n", end.namespace, "link", "set", "lo", "up")
        yield ends
    finally:
        for end in ends:
            subprocess.run(["ip", "netns", "del", end.namespace], capture_output=True, check=False)


def ip(*arguments: str) -> None:
    """Runs `ip`, which must succeed."""
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=10)
