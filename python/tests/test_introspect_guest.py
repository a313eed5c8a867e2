"""Introspection of a real Linux: a guest in QEMU, whose memory is a file that we read while it runs.

Its judge is the guest itself, which reports its own /proc. It needs `qemu-system-x86_64`, a static `busybox`, and a
kernel with BTF, whose bzImage `TLPLAB_GUEST_KERNEL` names (as /boot/vmlinuz of a distribution).
"""

from __future__ import annotations

import gzip
import lzma
import os
import re
import shutil
import subprocess
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tlplab.introspect.btf import read_btf
from tlplab.introspect.code import address_space, dump_code
from tlplab.introspect.kernel import Kernel, Known, find_kernel
from tlplab.introspect.pages import follow
from tlplab.introspect.paging import X86
from tlplab.introspect.processes import list_processes
from tlplab.introspect.source import Image
from tlplab.introspect.structures import layout_from_btf

pytestmark = pytest.mark.full

BOOT_SECONDS = 180
# What the guest does: it says what there is, then begins and ends processes without rest.
INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t devtmpfs dev /dev
sleep 100000 &
S=$!
sleep 1
echo "== symbols"
grep ' init_task$' /proc/kallsyms
echo "== processes"
for p in /proc/[0-9]*; do read -r line < $p/stat && echo "$line"; done 2>/dev/null
echo "== pages"
while read -r range rest; do
  at=${range%%-*}
  echo $S $at $(dd if=/proc/$S/pagemap bs=8 skip=$((0x$at / 4096)) count=1 2>/dev/null | od -An -tx8)
done < /proc/$S/maps
echo "== end"
while :; do busybox true & busybox true; done
"""


@dataclass
class Guest:
    """A guest that runs, and its report."""

    memory: Path
    vmlinux: Path
    init_task: int
    processes: dict[int, tuple[str, int]]
    """(name, parent) by process id."""
    sleeper: int
    pages: dict[int, int | None]
    """Physical address of pages of the sleeper, None for a page that is not in memory."""

    def kernel(self, init_task: int | None = None) -> Kernel:
        """Looks for the kernel."""
        layout = layout_from_btf(read_btf(str(self.vmlinux)), "vmlinux")
        return find_kernel(Image([str(self.memory)]), layout, Known(init_task or self.init_task))


def unpacked(kernel: Path) -> bytes:
    """The ELF file in a bzImage."""
    data = kernel.read_bytes()
    if (at := data.find(b"\xfd7zXZ\0")) >= 0:
        return lzma.LZMADecompressor().decompress(data[at:])
    if (at := data.find(b"\x1f\x8b\x08")) >= 0:
        return zlib.decompressobj(31).decompress(data[at:])
    pytest.skip(f"{kernel} is packed by neither xz nor gzip")


def archive(files: dict[str, bytes]) -> bytes:
    """A cpio archive (newc) of a folder bin and these executables."""
    out = b""
    for number, (name, data) in enumerate({"bin": b"", **files, "TRAILER!!!": b""}.items()):
        mode = 0o040755 if name == "bin" else 0o100755
        label = name.encode() + b"\0"
        fields = [number + 1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(label), 0]
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + label
        out += head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)
    return out


@pytest.fixture(scope="module", params=["qemu64", "max"])
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    """A guest with address randomisation; `max` has five levels of page tables."""
    named = os.environ.get("TLPLAB_GUEST_KERNEL")
    programs = {name: shutil.which(name) for name in ("qemu-system-x86_64", "busybox")}
    if named is None or None in programs.values():
        pytest.skip("needs TLPLAB_GUEST_KERNEL=VMLINUZ, qemu-system-x86_64 and busybox-static")
    folder = tmp_path_factory.mktemp("guest")
    (folder / "vmlinux").write_bytes(unpacked(Path(named)))
    busybox = Path(str(programs["busybox"])).read_bytes()
    (folder / "initrd").write_bytes(gzip.compress(archive({"bin/busybox": busybox, "init": INIT.encode()}), 1))
    log, memory = folder / "log", folder / "memory"
    run = [
        str(programs["qemu-system-x86_64"]), "-accel", "tcg", "-cpu", request.param, "-m", "256M", "-nographic", "-nodefaults", "-no-reboot",
        "-object", f"memory-backend-file,id=ram,size=256M,mem-path={memory},share=on", "-machine", "memory-backend=ram",
        "-kernel", named, "-initrd", str(folder / "initrd"), "-append", "console=ttyS0 quiet panic=-1", "-serial", f"file:{log}",
    ]  # fmt: skip
    process = subprocess.Popen(run, stdin=subprocess.DEVNULL)
    try:
        yield told(folder, wait_for(process, log))
    finally:
        process.kill()
        process.wait()


def wait_for(process: subprocess.Popen[bytes], log: Path) -> str:
    """The guest's output when it is ready."""
    begun = time.monotonic()
    while time.monotonic() < begun + BOOT_SECONDS and process.poll() is None:
        text = log.read_text(errors="replace").replace("\r", "") if log.exists() else ""
        if "== end\n" in text:
            return text
        time.sleep(0.2)
    pytest.fail(f"the guest did not come up: {log.read_text(errors='replace')[-2000:]}")


def told(folder: Path, text: str) -> Guest:
    """Reads the guest's report."""
    parts = {part.split("\n")[0]: part.split("\n")[1:] for part in text.split("== ")[1:]}
    rows = [re.fullmatch(r"(\d+) \((.*)\) \S (\d+) .*", line) for line in parts["processes"]]
    pages = [line.split() for line in parts["pages"] if line]
    return Guest(
        folder / "memory",
        folder / "vmlinux",
        int(parts["symbols"][0].split()[0], 16),
        {int(row[1]): (row[2], int(row[3])) for row in rows if row},
        int(pages[0][0]),
        {
            int(at, 16): (int(value, 16) & (1 << 55) - 1) << 12 if int(value, 16) >> 63 else None
            for _, at, value in pages
        },
    )


def test_processes_match_proc_of_the_guest_under_load(guest: Guest) -> None:
    kernel = guest.kernel()
    assert len(guest.processes) > 20
    for _ in range(20):
        walk = list_processes(kernel)
        by_pid = {p.virtual: p.pid for p in walk.processes}
        ours = {p.pid: (p.shown, by_pid.get(p.parent, -1)) for p in walk.processes}
        for pid, (name, parent) in guest.processes.items():
            # In /proc a worker's name goes on with what it works on; in the task there are 15 bytes.
            assert pid in ours, f"{pid} ({name}) is missing: {walk.problems}"
            if not name.startswith("kworker"):
                assert ours[pid] == (name[:15], parent)


def test_a_moved_kernel_is_found_by_the_symbols_of_one_that_was_not(guest: Guest) -> None:
    # As System.map would have it: the image is linked at 16 MiB, and was moved by a multiple of 2 MiB.
    moved = (guest.init_task & -(2 << 20)) - 0xFFFF_FFFF_8200_0000
    kernel = guest.kernel(guest.init_task - moved)
    assert (kernel.init_task, kernel.moved) == (guest.init_task, moved)


def test_pages_and_code_match_the_guest(guest: Guest) -> None:
    kernel = guest.kernel()
    process = next(p for p in list_processes(kernel).processes if p.pid == guest.sleeper)
    paging = X86(5 if process.mm < 0xFFFF_8000_0000_0000 else 4)
    root = address_space(kernel, process).root
    found = {at: follow(kernel.source, paging, root, at).physical for at in guest.pages}
    assert found == guest.pages
    assert sum(at is not None for at in found.values()) >= 4
    dump = dump_code(kernel, paging, process, with_header=True)
    data = bytearray(Path(str(shutil.which("busybox"))).read_bytes()[: len(dump.data)])
    for start, stop, _ in dump.missing:
        data[start - dump.first : stop - dump.first] = bytes(stop - start)
    assert dump.data == bytes(data)
    assert sum(stop - start for start, stop, _ in dump.missing) < len(data) * 0.8
