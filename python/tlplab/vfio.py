"""Devices in a virtual machine, by vfio-user: for QEMU from 10.1 on.

tl.serve(Copier(), tl.VfioUser("copier.sock"))
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from tlplab import _core
from tlplab.device import DeviceParty


@dataclass(frozen=True)
class VfioUser:
    """A Unix socket, created at `path` for this user only and removed at the end. One virtual machine at a time can use the device."""

    path: str | os.PathLike[str]

    def start(self, party: DeviceParty) -> _core.VfioServer:
        """Serves a device there. Raises `RunError`."""
        return _core.VfioServer.python(os.fspath(self.path), party)


def options_of_qemu(path: str | os.PathLike[str], bus: str) -> list[str]:
    """The options by which QEMU puts the device at the socket on a bus, such as a root port."""
    socket = {"type": "unix", "path": os.fspath(path)}
    return ["-device", json.dumps({"driver": "vfio-user-pci", "socket": socket, "bus": bus, "id": f"on-{bus}"})]
