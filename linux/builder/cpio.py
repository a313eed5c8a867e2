"""Archives for the kernel's initial file system ("newc"), the same bytes from the same files."""

from __future__ import annotations

import os
import stat
from pathlib import Path

DEVICES = {"dev/console": (5, 1), "dev/null": (1, 3), "dev/tty0": (4, 0)}


def member(number: int, name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> bytes:
    """One member, owned by root, of the year 1970."""
    links = 2 if stat.S_ISDIR(mode) else 1
    fields = (number, mode, 0, 0, links, 0, len(data), 0, 0, *device, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
    return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)


def archive(root: Path, devices: dict[str, tuple[int, int]] = DEVICES) -> bytes:
    """The archive of a folder, sorted by name; nodes of devices are added, which takes no privilege."""
    inside = (Path(folder, name) for folder, *kinds in os.walk(root) for names in kinds for name in names)
    names = sorted([*(str(path.relative_to(root)) for path in inside), *devices])
    parts = []
    for number, name in enumerate(names, 1):
        path = root / name
        if name in devices:
            parts.append(member(number, name, stat.S_IFCHR | 0o666, device=devices[name]))
        elif path.is_symlink():
            parts.append(member(number, name, stat.S_IFLNK | 0o777, os.readlink(path).encode()))
        elif path.is_dir():
            parts.append(member(number, name, stat.S_IFDIR | (0o1777 if name == "tmp" else 0o755)))
        else:
            mode = 0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644
            parts.append(member(number, name, stat.S_IFREG | mode, path.read_bytes()))
    content = b"".join(parts) + member(0, "TRAILER!!!", 0)
    return content + bytes(-len(content) % 512)
