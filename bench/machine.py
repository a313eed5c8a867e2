"""`make bench-machine`: the time of devices in a virtual machine, compared with a bare server and QEMU's own drive in the same guests.

Prints the figures and writes machine.json, in the form of results.json. Under TCG they are mostly QEMU's own; so the peers are in the same guest and take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tlplab import _core
from tlplab.guest import tools
from tlplab.guest.initramfs import SCRIPT
from tlplab.guest.machine import Machine, Serving, boot, has_kvm

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
OURS, PEER = "0000:01:00.0", "0000:02:00.0"
# Bytes of the drives.
DRIVE = 256 << 20
FIO = (
    "fio --name=r --filename=%s --rw=randread --bs=4k --iodepth=8 --ioengine=libaio --direct=1 --time_based"
    " --runtime=%d --output-format=terse --terse-version=3 | tail -1 | cut -d';' -f8"
)


@dataclass(frozen=True)
class Beside:
    """A device of tlplab, and perhaps the peer's server next to it."""

    ours: str
    """A library, or `nvme`."""
    peer: Path | None = None

    @contextmanager
    def served(self, folder: Path) -> Iterator[Serving]:
        """Serves them."""
        sockets = [folder / "ours.sock"]
        if self.ours == "nvme":
            server = _core.VfioServer.nvme(str(sockets[0]), DRIVE)
        else:
            server = _core.VfioServer.library(str(sockets[0]), self.ours, {})
        process = None
        if self.peer is not None:
            sockets.append(folder / "peer.sock")
            process = subprocess.Popen([self.peer, sockets[-1]])
            while not sockets[-1].exists():
                os.sched_yield()
        try:
            serving = Serving([server], sockets, dict)
            with serving.going_on():
                yield serving
        finally:
            server.end()
            if process is not None:
                process.kill()
                process.wait()


@dataclass(frozen=True)
class WithDrive(Machine):
    """A machine that has a drive of QEMU's own, too."""

    image: Path | None = None

    def command(self, folder: Path, sockets: Sequence[Path]) -> list[str]:
        """QEMU's."""
        own = ["-drive", f"file={self.image},if=none,id=own,format=raw,cache=unsafe"]
        port = ["-device", "pcie-root-port,id=own-port,chassis=9,slot=9"]
        drive = ["-device", "nvme,drive=own,serial=1,bus=own-port"] if self.image else []
        return [*super().command(folder, sockets), *([*own, *port, *drive] if self.image else [])]


def guest(
    devices: Beside, script: str, share: Path, *, processors: int = 2, iommu: bool = False, image: Path | None = None
) -> list[str]:
    """The lines that the script prints in a guest."""
    lines: list[str] = []
    machine = WithDrive(
        tools.find(None), {SCRIPT: f"#!/bin/sh\nset -e\n{script}\n".encode()}, processors=processors, iommu=iommu,
        share=str(share), image=image,
    )  # fmt: skip
    off = boot(machine, devices, show=lambda _, text: lines.append(text), timeout=600)
    if off.status != 0:
        raise SystemExit("\n".join([*lines, "the guest's script has failed"]))
    return lines


def compiled(folder: Path) -> dict[str, Path]:
    """The programs."""
    static = ["gcc", "-O2", "-static", "-Wall", "-Wextra", "-Werror"]
    built = {name: folder / name for name in ("mmio", "doorbell", "vfio_user")}
    for name, path in built.items():
        subprocess.run([*static, "-o", path, HERE / f"peer/{name}.c"], check=True)
    built["copier"] = folder / "copier.so"
    include = ROOT / "crates/device-library/include"
    shared = ["gcc", "-O2", "-shared", "-fPIC", "-I", include, "-o", built["copier"]]
    subprocess.run([*shared, ROOT / "examples/c/copier.c"], check=True)
    return built


def figure(
    name: str, unit: str, ours: Sequence[float], target: str, met: bool, peer: Sequence[float] = (), peer_name: str | None = None
) -> dict[str, object]:  # fmt: skip
    """A result, printed."""
    own = statistics.median(ours)
    other = statistics.median(peer) if peer else None
    ratio = None if other is None else own / other
    beside = "" if ratio is None else f", {peer_name} {other:.4g}: {ratio:.3f}"
    print(
        f"{name}: {own:.4g} {unit} ({min(ours):.4g} to {max(ours):.4g}){beside}; {target}: {'met' if met else 'MISSED'}",
        flush=True,
    )
    return {
        "name": name, "unit": unit, "ours": own, "peer": other, "peer_name": peer_name, "ratio": ratio, "command": "make bench-machine",
        "runs": [min(ours), max(ours)], "target": target, "met": met,
        "note": f"QEMU with {'KVM' if has_kvm() else 'TCG'}, {os.cpu_count()} processors, {platform.machine()}, load average {os.getloadavg()[0]:.1f}",
    }  # fmt: skip


def numbers(lines: Sequence[str], pattern: str) -> list[float]:
    """The numbers that a pattern finds."""
    return [float(found[1]) for line in lines if (found := re.search(pattern, line))]


def registers(programs: dict[str, Path], share: Path, turns: int) -> Iterator[dict[str, object]]:
    """Reads and posted writes of a register."""
    script = "\n".join(
        [f"echo 1 >/sys/bus/pci/devices/{one}/enable; setpci -s {one} COMMAND=6:6" for one in (OURS, PEER)]
        + [f"/share/mmio {turns} 2000 {OURS} {PEER}"]
    )
    lines = guest(Beside(str(programs["copier"]), programs["vfio_user"]), script, share)
    for kind, most in (("read", 1.3), ("write", 1.5)):
        ours, peer = (numbers(lines, rf"^{one} {kind} ([\d.]+)") for one in (OURS, PEER))
        name = {"read": "a read of a register", "write": "a posted write of a register"}[kind]
        met = statistics.median(ours) <= most * statistics.median(peer)
        yield figure(
            name, "ns", ours, f"at most {most:g} of the peer's", met, peer, "a bare server in C (peer/vfio_user.c)"
        )


def doorbell(programs: dict[str, Path], share: Path, turns: int) -> dict[str, object]:
    """From a doorbell to the program that its interrupt wakes."""
    group = 'group() { basename "$(readlink /sys/bus/pci/devices/$1/iommu_group)"; }'
    turn = f"""echo ours; /share/doorbell {OURS} "$(group {OURS})" 300
echo peer; /share/doorbell {PEER} "$(group {PEER})" 300 peer"""
    script = "\n".join(
        ["modprobe vfio_iommu_type1; modprobe vfio-pci", group]
        + [f"echo {ids} >/sys/bus/pci/drivers/vfio-pci/new_id" for ids in ("71ab 0001", "71ab baa2")]
        + [turn] * turns
    )
    lines = guest(Beside(str(programs["copier"]), programs["vfio_user"]), script, share, processors=1, iommu=True)
    medians: dict[str, list[float]] = {"ours": [], "peer": []}
    for part in re.split(r"^(?=ours|peer)", "\n".join(lines), flags=re.MULTILINE):
        if part[:4] in medians:
            medians[part[:4]].append(statistics.median(numbers(part.splitlines(), r"^doorbell (\d+)")) / 1000)
    ours, peer = medians["ours"], medians["peer"]
    return figure(
        "doorbell, 64 B copied by DMA, MSI-X, program woken", "us", ours, "at most 70 us", statistics.median(ours) <= 70, peer,
        "a bare server in C that copies nothing",
    )  # fmt: skip


def drives(share: Path, turns: int, seconds: int) -> dict[str, object]:
    """Random reads of 4 KiB from our drive and QEMU's."""
    image = share / "image"
    with image.open("wb") as file:
        file.truncate(DRIVE)
    # Ours is the one below the first port.
    find = "for d in /sys/class/nvme/nvme*; do case $(readlink -f $d) in */0000:01:00.0/*) ours=/dev/$(basename $d)n1;; *) own=/dev/$(basename $d)n1;; esac; done"
    fill = "for d in $ours $own; do dd if=/dev/zero of=$d bs=1M count=256 oflag=direct 2>/dev/null; done"
    turn = "\n".join(f"echo {name} $({FIO % (f'${name}', seconds)})" for name in ("ours", "own"))
    lines = guest(Beside("nvme"), "\n".join([find, fill, *([turn] * turns)]), share, image=image)
    ours, peer = (numbers(lines, rf"^{name} (\d+)$") for name in ("ours", "own"))
    met = statistics.median(ours) >= 0.5 * statistics.median(peer)
    return figure(
        "random reads of 4 KiB, 8 under way", "1/s", ours, "at least 0.5 of the peer's", met, peer, "QEMU's own nvme"
    )


def memory() -> dict[str, object]:
    """Reads of mapped guest memory."""
    subprocess.run(
        ["cargo", "build", "--release", "--quiet", "-p", "tlplab-netio", "--example", "guest_memory"],
        cwd=ROOT,
        check=True,
    )
    program = ROOT / "target/release/examples/guest_memory"
    rates = [
        float(subprocess.run([program, "1048576", "4000"], check=True, capture_output=True, text=True).stdout)
        for _ in range(5)
    ]
    return figure(
        "reads of mapped guest memory, 1 MiB", "GB/s", rates, "at least 5 GB/s", statistics.median(rates) >= 5
    )


def main() -> None:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--turns", type=int, default=15, metavar="N")
    parser.add_argument("-o", dest="output", type=Path, default=HERE / "machine.json", metavar="FILE")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        share = Path(name)
        programs = compiled(share)
        results = [
            *registers(programs, share, arguments.turns), doorbell(programs, share, arguments.turns), drives(share, arguments.turns // 3, 4), memory(),
        ]  # fmt: skip
    arguments.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
