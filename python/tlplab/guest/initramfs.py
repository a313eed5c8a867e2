"""An archive that the kernel unpacks after its own: the guest's script and files (`Documentation/driver-api/early-userspace/buffer-format.rst`)."""

from __future__ import annotations

import stat
from collections.abc import Mapping

FOLDER = "tlplab"
SCRIPT = "run"


def archive(files: Mapping[str, bytes]) -> bytes:
    """An archive ("newc") of a folder /tlplab with these files, all executable; the same bytes from the same files."""
    parts = [_member(FOLDER, stat.S_IFDIR | 0o755, b"")]
    parts += [_member(f"{FOLDER}/{name}", stat.S_IFREG | 0o755, files[name]) for name in sorted(files)]
    return b"".join([*parts, _member("TRAILER!!!", 0, b"")])


def _member(name: str, mode: int, data: bytes) -> bytes:
    """One member, owned by root, of the year 1970. The kernel links members of one number only if they have several links."""
    fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
    return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)
