"""Two network namespaces and a cable between them: the device's machine and the adapter's, on this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

SOFTWARE, MEMORY, ADAPTER = "10.77.0.1", "10.77.0.3", "10.77.0.2"
# Where the adapter puts BAR 4 of its first device.
BAR4 = "0xa0000000"
# How long the other end may take to be there, and to answer.
PATIENCE = 20.0


class NoWireError(Exception):
    """Why nothing could be measured."""


class NoNamespacesError(NoWireError):
    """There can be no namespaces here: why."""


@dataclass
class Wire:
    """The two ends: each command runs at one of them."""

    device: str
    host: str
    started: list[subprocess.Popen[bytes]]

    def command(self, end: str, *arguments: str) -> list[str]:
        """A command line of tlplab at an end."""
        return ["ip", "netns", "exec", end, sys.executable, "-m", "tlplab", *arguments]

    def start(self, end: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Starts what serves."""
        process = subprocess.Popen(
            self.command(end, *arguments), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment(),
        )  # fmt: skip
        self.started.append(process)
        return process

    def perf(self, *arguments: str) -> dict[str, Any]:
        """`tlplab perf` by the software."""
        own = ("perf", "-l", SOFTWARE, "-r", ADAPTER, "--allow-remote", "--quiet", "--json", "-")
        command = self.command(self.device, *own, *arguments)
        done = subprocess.run(command, capture_output=True, check=False, env=environment(), timeout=120)
        if done.returncode != 0:
            raise NoWireError(done.stderr.decode(errors="replace").strip().splitlines()[-1])
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def wait(self) -> None:
        """Until the adapter answers."""
        end = time.monotonic() + PATIENCE
        while True:
            for process in self.started:
                if process.poll() is not None:
                    said = process.stderr.read().decode(errors="replace") if process.stderr else ""
                    raise NoWireError(said.strip().splitlines()[-1] if said.strip() else "the adapter ended")
            try:
                self.perf("-c", "1")
            except NoWireError:
                if time.monotonic() > end:
                    raise
            else:
                return


def environment() -> dict[str, str]:
    """Where the commands find this tlplab."""
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))}


def ip(*arguments: str) -> None:
    """Runs `ip`."""
    try:
        subprocess.run(["ip", *arguments], check=True, capture_output=True)
    except FileNotFoundError:
        raise NoNamespacesError("namespaces need the command ip (iproute2)") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip() or f"ip {' '.join(arguments)} failed"
        raise NoNamespacesError(f"namespaces need root: {said}") from None


@contextmanager
def laid() -> Iterator[Wire]:
    """Lays the cable and takes it away again. Raises `NoNamespacesError`."""
    number = os.getpid()
    wire = Wire(f"tlplab-d{number}", f"tlplab-h{number}", [])
    made: list[str] = []
    try:
        for name in (wire.device, wire.host):
            ip("netns", "add", name)
            made.append(name)
        here, there = f"tlpd{number}", f"tlph{number}"
        ip("link", "add", here, "netns", wire.device, "type", "veth", "peer", "name", there, "netns", wire.host)
        for name, interface, addresses in ((wire.device, here, (SOFTWARE, MEMORY)), (wire.host, there, (ADAPTER,))):
            for address in addresses:
                ip("-n", name, "address", "add", f"{address}/24", "dev", interface)
            for up in ("lo", interface):
                ip("-n", name, "link", "set", up, "up")
        yield wire
    finally:
        for process in wire.started:
            process.terminate()
        for process in wire.started:
            process.wait(timeout=PATIENCE)
            if process.stderr:
                process.stderr.close()
        for name in made:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
