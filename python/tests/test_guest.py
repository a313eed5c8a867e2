"""`tlplab guest uml`: an unmodified Linux on the fabric, its time, its devices, and how it ends."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from guest import NVME, ROOT, command, flow, kernels_of, needs_guest, run
from terminal import Terminal

pytestmark = pytest.mark.full
LOAD = "insmod /lib/modules-tlplab/mmio_latency.ko device=0000:03:00.0 bar=0 offset=0x1c count=1000"


@pytest.fixture(autouse=True)
def _kernel() -> None:
    needs_guest()


def test_nvme_driver_probes_writes_and_reads_back(tmp_path: Path) -> None:
    guest = run(tmp_path)
    assert guest.status == 0, guest.errors
    assert guest.said("1 MiB written and read back")
    assert guest.result["guest"]["end"] == "powered off"
    assert guest.result["guest"]["status"] == 0
    assert guest.result["stop_reason"] == "guest-off"
    assert flow(guest, "nvme0.to_host")["bytes"] >= 1 << 20
    assert flow(guest, "nvme0.from_host")["bytes"] >= 1 << 20
    assert guest.stamps == sorted(guest.stamps)


@pytest.mark.parametrize("interrupts", ["msi", "intx"])
def test_nvme_driver_by_other_interrupts(tmp_path: Path, interrupts: str) -> None:
    guest = run(tmp_path, "--set", f"device.nvme0.interrupts={interrupts}")
    assert guest.status == 0, guest.errors
    assert guest.said("1 MiB written and read back")


def test_dmesg_has_no_warning(tmp_path: Path) -> None:
    # Each line of the raw log begins with its level; 4 is a warning.
    guest = run(tmp_path, "--run", "dmesg -r")
    levels = [(int(found[1]) & 7, line) for line in guest.console if (found := re.match(r"<(\d+)>", line))]
    assert len(levels) > 50
    # What the kernel says of its own processor is no warning.
    assert [line for level, line in levels if level <= 4 and "BogoMIPS" not in line] == []


def test_same_experiment_and_seed_give_the_same_run(tmp_path: Path) -> None:
    script = "cat /proc/sys/kernel/random/boot_id; head -c 64 /dev/urandom | md5sum; sh /tlplab/again; lspci -vv"
    again = tmp_path / "again"
    again.write_bytes((ROOT / "experiments/linux/nvme.sh").read_bytes())
    options = ("--run", script, "--set", f'guest.files=["{again}"]')
    first, second, other = run(tmp_path, *options), run(tmp_path, *options), run(tmp_path, *options, "--seed", "2")
    assert first.console == second.console
    assert first.stamps == second.stamps
    assert first.result == second.result
    assert first.result["guest"]["console"] != other.result["guest"]["console"]


def test_register_read_takes_the_latency_of_the_fabric(tmp_path: Path) -> None:
    guest = run(
        tmp_path, "--run", f"{LOAD}; dmesg | tail -1; cat /sys/kernel/debug/mmio_latency/each_ns | sort | uniq -c"
    )
    assert guest.status == 0, guest.errors
    truth = flow(guest, "guest.read")["latency_ns"]
    counted = [line.split() for line in guest.console if re.fullmatch(r"\s*\d+ \d+", line)]
    seen = {int(ns): int(times) for times, ns in counted}
    assert sum(seen.values()) == 1000
    # The guest's clock has whole nanoseconds, and ordered sets delay some reads.
    assert min(seen) == math.ceil(truth["min"])
    assert max(seen) <= math.ceil(truth["max"])
    mean = sum(ns * times for ns, times in seen.items()) / 1000
    assert truth["mean"] <= mean < truth["mean"] + 1


def test_register_read_follows_the_switch(tmp_path: Path) -> None:
    def least(latency: str) -> int:
        script = f"{LOAD}; echo least=$(cat /sys/kernel/debug/mmio_latency/min_ns)"
        return int(run(tmp_path, "--run", script, "--set", f"switch.sw0.latency={latency}").value("least"))

    assert least("250ns") - least("150ns") == 200


def test_system_calls_take_their_stated_cost(tmp_path: Path) -> None:
    def took(cost: str) -> float:
        """Microseconds between two lines of the guest's script."""
        guest = run(tmp_path, "--run", "echo from; echo to", "--set", f"guest.cpu.syscall={cost}")
        begun, ended = (guest.stamps[guest.console.index(line)] for line in ("from", "to"))
        return ended - begun

    assert took("0ns") == 0
    # The shell makes at least the system call that prints.
    assert took("10us") >= 10


def test_script_that_fails_fails_the_command(tmp_path: Path) -> None:
    guest = run(tmp_path, "--run", "exit 3")
    assert (guest.status, guest.result["guest"]["status"]) == (1, 3)
    assert "the guest's script ended with status 3" in guest.errors


BROKEN = """
import tlplab as tl

class Broken(tl.Device):
    ids, msix = tl.Ids(0x71AB, 1), 1

    class regs(tl.Bar, size="4KiB"):
        done = tl.Reg32(0x14)

    @regs.done.on_read
    def fail(self, cx):
        raise KeyError("no such copy")
"""


def test_last_words_of_the_console_come_before_the_error_of_a_device(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    script = "echo one; printf two; insmod /lib/modules-tlplab/copier.ko; echo three"
    model = f"device.copier.model={tmp_path}/broken.py:Broken"
    guest = run(tmp_path, "--set", model, "--run", script, experiment=ROOT / "experiments/linux/copier.toml")
    assert guest.status == 1
    assert guest.said("one")
    assert guest.console[-1].startswith("two") or guest.said("two")
    assert not guest.said("three")
    assert "no such copy" in guest.errors


def test_kernel_panic_ends_with_status_1(tmp_path: Path) -> None:
    guest = run(tmp_path, "--run", "echo c >/proc/sysrq-trigger; kill -9 1; exec /nowhere")
    assert guest.status == 1
    assert "Traceback" not in guest.errors


def test_share_takes_files_in_and_out(tmp_path: Path) -> None:
    share = tmp_path / "share"
    share.mkdir()
    (share / "in").write_text("from the host\n")
    guest = run(tmp_path, "--share", share, "--run", "cat /share/in; echo from the guest >/share/out")
    assert guest.status == 0, guest.errors
    assert guest.said("from the host")
    assert (share / "out").read_text() == "from the guest\n"


def test_power_cut_keeps_flushed_files(tmp_path: Path) -> None:
    disk = f'device.nvme0.file="{tmp_path}/disk.img"'
    options = ("--set", disk, "--set", "device.nvme0.cache=16MiB", "--set", "device.nvme0.destage=0s")
    write = (
        "set -e; mkfs.ext4 -q /dev/nvme0n1; mkdir /tmp/m; mount /dev/nvme0n1 /tmp/m; head -c 100000 /dev/zero | tr '\\0' a >/tmp/m/kept;"
        " sync; head -c 4000000 /dev/zero | tr '\\0' b >/tmp/m/lost; echo SYNCED; dd if=/tmp/m/lost of=/tmp/m/direct bs=64k oflag=direct;"
        " while :; do usleep 1000; done"
    )
    cut = run(tmp_path, *options, "--run", write, "--set", "stop=400ms")
    assert cut.status == 0, cut.errors
    assert cut.said("SYNCED")
    assert cut.result["guest"]["end"].startswith("lost its power")
    read = "set -e; fsck.ext4 -p /dev/nvme0n1; mkdir /tmp/m; mount /dev/nvme0n1 /tmp/m; tr -d a </tmp/m/kept | wc -c; wc -c </tmp/m/kept; ls /tmp/m"
    after = run(tmp_path, *options, "--run", read)
    assert after.status == 0, after.errors + "\n".join(after.console[-20:])
    assert after.said("100000")


def test_sleeping_guest_costs_nothing(tmp_path: Path) -> None:
    short, begun = run(tmp_path, "--run", "sleep 1"), time.perf_counter()
    long = run(tmp_path, "--run", "sleep 3601")
    assert long.status == short.status == 0
    assert long.result["end_fs"] - short.result["end_fs"] == pytest.approx(3600e15, rel=1e-6)
    assert time.perf_counter() - begun < 60
    # Every 30 us an UpdateFC for each of one to three classes with finite credits, on the wire for 8 bytes: worked out.
    for link in long.result["links"]:
        for direction in link["directions"]:
            refreshes = direction["dllps"]["worked_out"]
            classes = refreshes / (3601 / 30e-6)
            assert round(classes) in (1, 2, 3)
            assert classes == pytest.approx(round(classes), rel=1e-3)
            assert direction["dllps"]["update_fc"] > refreshes
            assert direction["utilization"]["dllp"] == pytest.approx(
                8 * 8 * classes / 30e-6 / link["raw_bps"], rel=0.01
            )


def registers(text: str) -> dict[str, bytes]:
    """The configuration space of each function, from the output of `lspci -xxxx`."""
    spaces: dict[str, bytearray] = {}
    for line in text.splitlines():
        if found := re.match(r"([0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]) ", line):
            spaces[found[1]] = bytearray()
        elif found := re.match(r"[0-9a-f]{2,3}:((?: [0-9a-f]{2}){16})", line):
            spaces[list(spaces)[-1]] += bytes.fromhex(found[1].replace(" ", ""))
    return {bdf: bytes(space) for bdf, space in spaces.items()}


def capabilities(space: bytes) -> dict[tuple[str, int], int]:
    """The offset of each capability: the key is ("", ID) or ("extended", ID)."""
    found, at = {}, space[0x34]
    while at:
        found["", space[at]] = at
        at = space[at + 1]
    at = 0x100
    while at and (head := int.from_bytes(space[at : at + 4], "little")):
        found["extended", head & 0xFFFF] = at
        at = head >> 20
    return found


# Registers that software writes, or that follow from what it wrote: by capability, from, bytes.
WRITTEN = {
    ("", 0x01): [(4, 4)],  # power management: control and status
    ("", 0x05): [(2, 2), (4, 20)],  # MSI: control, address, data, mask
    ("", 0x10): [(8, 4), (16, 4), (24, 4), (28, 8), (40, 4), (48, 4)],  # PCI Express: each control and status
    ("", 0x11): [(2, 2)],  # MSI-X: control
    ("extended", 0x01): [(4, 0x44)],  # errors: status, mask, severity, log, root port
}
HEADER_WRITTEN = [(4, 4), (12, 2), (0x10, 0x18), (0x28, 8), (0x30, 4), (0x3C, 1), (0x3E, 2)]


def test_sleep_beyond_the_end_of_simulated_time_is_reported(tmp_path: Path) -> None:
    guest = run(tmp_path, "--run", "sleep 20000")
    assert guest.status == 1
    assert "beyond the end of simulated time, which is 5.1 hours" in guest.errors


def test_shell_answers_keys_and_keeps_the_pace_of_the_wall_clock(tmp_path: Path) -> None:
    terminal = Terminal(command(NVME, "--shell"), tmp_path)
    terminal.hear(b"~ # ")
    begun = time.monotonic()
    terminal.type(b"echo $((6 * 7)) is said; sleep 1; echo aw''ake\n")
    terminal.hear(b"42 is said")
    terminal.hear(b"awake")
    assert time.monotonic() - begun >= 0.9
    terminal.type(b"exit\n")
    terminal.hear(b"the guest is off")
    assert terminal.end() == 0


def test_lspci_in_the_guest_matches_tlplab_except_linux_writes(tmp_path: Path) -> None:
    guest = registers("\n".join(run(tmp_path, "--run", "lspci -xxxx").console))
    shown = subprocess.run(
        [sys.executable, "-m", "tlplab", "lspci", NVME, "-x"], capture_output=True, text=True, check=True
    )
    ours = registers(shown.stdout)
    assert list(guest) == list(ours)
    assert len(ours) == 5
    for bdf, space in ours.items():
        assert len(guest[bdf]) in (256, 4096)
        written = {at + n for at, bytes_ in HEADER_WRITTEN for n in range(bytes_)}
        for name, start in capabilities(space).items():
            written |= {start + at + n for at, bytes_ in WRITTEN.get(name, []) for n in range(bytes_)}
        differ = [at for at, (a, b) in enumerate(zip(space, guest[bdf], strict=False)) if a != b and at not in written]
        assert differ == [], f"{bdf}: {[hex(at) for at in differ]}"


def test_capture_has_every_tlp(tmp_path: Path) -> None:
    capture = tmp_path / "guest.pcapng"
    guest = run(tmp_path, "--pcap", capture)
    dump = subprocess.run(
        [sys.executable, "-m", "tlplab", "dump", capture, "--summary"], capture_output=True, text=True, check=False
    )
    assert dump.returncode == 0, dump.stderr
    sent = sum(direction["tlps"] for link in guest.result["links"] for direction in link["directions"])
    assert f"{sent:,}" in dump.stdout or str(sent) in dump.stdout.replace(",", "").replace(" ", ""), dump.stdout


def test_run_names_the_command_that_boots_the_guest() -> None:
    done = subprocess.run([sys.executable, "-m", "tlplab", "run", NVME], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "tlplab guest uml" in done.stderr


def start_endless(folder: Path) -> tuple[subprocess.Popen[str], list[int]]:
    """A command whose guest never ends, once the guest has enumerated; and the processes of its kernel."""
    child = subprocess.Popen(
        command(NVME, "--run", "while :; do :; done"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
    )  # fmt: skip
    assert child.stdout
    assert any("Run /init" in line for line in child.stdout)
    kernels = kernels_of(child.pid)
    assert kernels
    return child, kernels


def wait_until_gone(processes: list[int]) -> None:
    """Fails if one of the processes is there for longer than a while."""
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{process}").exists() for process in processes):
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_killed_command_leaves_no_guest(tmp_path: Path, number: signal.Signals) -> None:
    child, kernels = start_endless(tmp_path)
    child.send_signal(number)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[number]
    assert "Traceback" not in errors
    wait_until_gone(kernels)


def test_killed_guest_is_reported(tmp_path: Path) -> None:
    child, kernels = start_endless(tmp_path)
    for kernel in kernels:
        os.kill(kernel, signal.SIGKILL)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 1
    assert "died: it was ended by signal 9" in errors
    wait_until_gone(kernels)


def test_file_that_is_not_a_kernel_is_reported(tmp_path: Path) -> None:
    for name, script in (("quits", "#!/bin/sh\nexit 3\n"), ("no program", "nonsense")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "linux").write_text(script)
        (folder / "linux").chmod(0o755)
        (folder / "initramfs.cpio").write_bytes(b"")
        files = {
            part: {"file": file, "sha256": hashlib.sha256((folder / file).read_bytes()).hexdigest()}
            for part, file in (("kernel", "linux"), ("initramfs", "initramfs.cpio"))
        }
        (folder / "manifest.json").write_text(json.dumps(files))
        guest = run(tmp_path, "--linux", folder)
        assert guest.status == 1
        assert "guest" in guest.errors
        assert "Traceback" not in guest.errors
    (folder / "linux").write_text("other")
    guest = run(tmp_path, "--linux", folder)
    assert guest.status == 2
    assert "differs from manifest.json" in guest.errors
