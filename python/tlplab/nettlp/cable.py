"""Two machines on this one: network namespaces with a cable between them. They take root, and the command ip."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

NUMBERS = itertools.count()
INTERFACES = ("tlp0", "tlp1")
# Seconds that `ip` may take.
PATIENCE = 30


class NoNamespacesError(Exception):
    """There can be no namespaces here: why."""


@dataclass(frozen=True)
class End:
    """One end of the cable: a namespace with an interface that has addresses."""

    namespace: str
    interface: str
    addresses: tuple[str, ...]

    @property
    def address(self) -> str:
        """The first one."""
        return self.addresses[0]

    def command(self, arguments: Sequence[str]) -> list[str]:
        """A command that runs at this end."""
        return ["ip", "netns", "exec", self.namespace, *arguments]


@contextmanager
def cable(
    here: Sequence[str] = ("10.77.0.1",), there: Sequence[str] = ("10.77.0.2",), *, mtu: int = 1500
) -> Iterator[tuple[End, End]]:
    """Makes the namespaces, whose ends have these addresses, and removes them. Raises `NoNamespacesError`."""
    if shutil.which("ip") is None:
        raise NoNamespacesError("network namespaces need the command ip (iproute2)")
    name = f"tlp{os.getpid()}-{next(NUMBERS)}"
    ends = End(f"{name}a", INTERFACES[0], tuple(here)), End(f"{name}b", INTERFACES[1], tuple(there))
    with ExitStack() as stack:
        for end in ends:
            # Known before it is made: whatever comes between leaves nothing behind.
            stack.callback(partial(subprocess.run, ["ip", "netns", "del", end.namespace], capture_output=True))
            ip("netns", "add", end.namespace)
        near, far = ends
        ip("link", "add", near.interface, "netns", near.namespace, "type", "veth",
           "peer", "name", far.interface, "netns", far.namespace)  # fmt: skip
        for end in ends:
            for address in end.addresses:
                ip("-n", end.namespace, "address", "add", f"{address}/24", "dev", end.interface)
            ip("-n", end.namespace, "link", "set", end.interface, "mtu", str(mtu), "up")
            ip("-n", end.namespace, "link", "set", "lo", "up")
        yield ends


def ip(*arguments: str) -> None:
    """Runs `ip`. Raises `NoNamespacesError` with its message."""
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False, timeout=PATIENCE)
    if done.returncode:
        said = done.stderr.strip() or f"ip {' '.join(arguments)} failed"
        raise NoNamespacesError(f"network namespaces need root: {said}")
