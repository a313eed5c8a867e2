"""The NVMe controller under Linux: file systems, verified workloads, nvme-cli's reads and commands, and power that is lost."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from guest import needs_guest, run

pytestmark = pytest.mark.full
# What polls the clock needs time to pass.
POLLS = ("--set", "guest.cpu.syscall=200ns")


@pytest.fixture(autouse=True)
def _kernel() -> None:
    needs_guest()


def test_file_system_is_made_mounted_and_sound(tmp_path: Path) -> None:
    script = (
        "set -e; mkfs.ext4 -q /dev/nvme0n1; mkdir /tmp/m; mount /dev/nvme0n1 /tmp/m; cp -r /lib /tmp/m; sync; echo 3 >/proc/sys/vm/drop_caches;"
        " diff -r /lib /tmp/m/lib; umount /tmp/m; fsck.ext4 -fn /dev/nvme0n1; echo sound"
    )
    guest = run(tmp_path, "--run", script)
    assert guest.status == 0, "\n".join(guest.console[-20:])
    assert guest.said("sound")


@pytest.mark.parametrize("cache", ["0B", "1MiB"])
def test_fio_verifies_its_writes(tmp_path: Path, cache: str) -> None:
    script = (
        "fio --name=v --filename=/dev/nvme0n1 --rw=randrw --bsrange=512-64k --size=8M --direct=1 --ioengine=io_uring --iodepth=16"
        " --verify=crc32c --do_verify=1 --output-format=terse --minimal | cut -c1-60; exit $?"
    )
    guest = run(tmp_path, *POLLS, "--set", f"device.nvme0.cache={cache}", "--run", script)
    assert guest.status == 0, "\n".join(guest.console[-20:])
    # Fields of the terse output: version; fio's own; job; group; error.
    fields = next(line for line in guest.console if line.startswith("3;")).split(";")
    assert fields[2:5] == ["v", "0", "0"]


UNTOUCHED = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
  int drive = open("/dev/nvme0n1", O_WRONLY | O_DIRECT);
  void *never_written = mmap(0, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return drive < 0 || write(drive, never_written, 65536) != 65536;
}
"""


def test_drive_reads_memory_that_a_program_never_wrote(tmp_path: Path) -> None:
    (tmp_path / "untouched.c").write_text(UNTOUCHED)
    subprocess.run(["gcc", "-static", "-o", tmp_path / "untouched", tmp_path / "untouched.c"], check=True)
    script = (
        "set -e; head -c 131072 /dev/zero | tr '\\0' x >/tmp/x; dd if=/tmp/x of=/dev/nvme0n1 bs=128k oflag=direct 2>/dev/null; /tlplab/untouched;"
        " echo x=$(dd if=/dev/nvme0n1 bs=128k count=1 iflag=direct 2>/dev/null | tr -cd x | wc -c)"
    )
    guest = run(tmp_path, "--set", f'guest.files=["{tmp_path}/untouched"]', "--run", script)
    assert guest.status == 0, guest.errors
    assert guest.value("x") == "65536"


def test_nvme_cli_reads_the_logs(tmp_path: Path) -> None:
    script = (
        "set -e; dd if=/dev/zero of=/dev/nvme0n1 bs=512k count=8 oflag=direct 2>/dev/null; nvme smart-log /dev/nvme0; nvme error-log /dev/nvme0 -e 1;"
        " nvme fw-log /dev/nvme0; nvme effects-log /dev/nvme0 | head -3; nvme id-ctrl /dev/nvme0 | grep -E '^(vid|sn|mdts|ver|vwc) '; nvme id-ns /dev/nvme0n1 | grep -E '^(nsze|lbaf)'"
    )
    guest = run(tmp_path, "--run", script)
    assert guest.status == 0, "\n".join(guest.console[-20:])
    text = "\n".join(guest.console)
    assert re.search(r"^critical_warning\s*: 0", text, re.M)
    # Units of 1000 blocks of 512 bytes: 4 MiB are 8192 blocks.
    assert re.search(r"^(Data Units Written|data_units_written)\s*: 9", text, re.M | re.I)
    assert re.search(r"^vid\s*: 0x71ab", text, re.M)
    assert re.search(r"^nsze\s*: 0x20000", text, re.M)


def test_format_changes_the_block_and_erases(tmp_path: Path) -> None:
    script = (
        "set -e; head -c 4096 /dev/zero | tr '\\0' x | dd of=/dev/nvme0n1 oflag=direct bs=4k 2>/dev/null; nvme format /dev/nvme0n1 --lbaf=1 --force;"
        " sleep 1; cat /sys/block/nvme0n1/queue/logical_block_size; dd if=/dev/nvme0n1 bs=4k count=1 iflag=direct 2>/dev/null | tr -d '\\0' | wc -c"
    )
    guest = run(tmp_path, "--run", script)
    assert guest.status == 0, "\n".join(guest.console[-20:])
    assert guest.said("4096")
    assert guest.console[guest.console.index("4096") + 1].strip() == "0"


def test_controller_reset_and_function_reset_leave_a_working_drive(tmp_path: Path) -> None:
    script = (
        "set -e; nvme reset /dev/nvme0; sleep 1; echo 1 >/sys/class/nvme/nvme0/device/reset; sleep 1;"
        " dd if=/dev/urandom of=/tmp/d bs=64k count=4 2>/dev/null; dd if=/tmp/d of=/dev/nvme0n1 bs=64k oflag=direct 2>/dev/null;"
        " dd if=/dev/nvme0n1 bs=64k count=4 iflag=direct 2>/dev/null | cmp - /tmp/d; echo works"
    )
    guest = run(tmp_path, "--run", script)
    assert guest.status == 0, "\n".join(guest.console[-20:])
    assert guest.said("works")


def test_reset_of_the_secondary_bus_resets_the_drive_and_linux_restores_it(tmp_path: Path) -> None:
    script = (
        "set -e; cd /sys/bus/pci/devices/0000:03:00.0; echo bus >reset_method; dmesg -c >/dev/null;"
        " dd if=/dev/urandom of=/tmp/d bs=64k count=4 2>/dev/null; dd if=/tmp/d of=/dev/nvme0n1 bs=64k oflag=direct 2>/dev/null; echo 1 >reset; sleep 1;"
        " dd if=/dev/nvme0n1 bs=64k count=4 iflag=direct 2>/dev/null | cmp - /tmp/d; dmesg; echo works"
    )
    guest = run(tmp_path, "--run", script)
    assert guest.status == 0, "\n".join(guest.console[-20:])
    # The slot's driver knows whose doing it was.
    assert guest.said("Slot(1): Link Down/Up ignored")
    assert guest.said("works")
    (outage,) = guest.result["outages"]
    assert outage["link"] == "nvme0"
    assert not [error for error in guest.result["errors"] if "Surprise" in error["name"]]


def test_driver_is_unbound_and_bound_again(tmp_path: Path) -> None:
    script = (
        "set -e; cd /sys/bus/pci/drivers/nvme; echo 0000:03:00.0 >unbind; ls /dev/nvme0n1 2>/dev/null && exit 1; echo 0000:03:00.0 >bind; sleep 1;"
        " [ -b /dev/nvme0n1 ]; echo 1 >/sys/bus/pci/devices/0000:03:00.0/remove; echo 1 >/sys/bus/pci/rescan; sleep 1; [ -b /dev/nvme0n1 ]; echo back"
    )
    guest = run(tmp_path, "--run", script)
    assert guest.status == 0, "\n".join(guest.console[-20:])
    assert guest.said("back")


def test_power_cut_keeps_flushed_and_loses_cached_blocks(tmp_path: Path) -> None:
    options = ("--set", f'device.nvme0.file="{tmp_path}/disk.img"', "--set", "device.nvme0.cache=16MiB")
    fill = "head -c 65536 /dev/zero | tr '\\0' {0} | dd of=/dev/nvme0n1 bs=64k seek={1} oflag=direct conv=notrunc{2} 2>/dev/null"
    write = f"set -e; {fill.format('a', 1, ',fsync')}; {fill.format('b', 2, '')}; echo WRITTEN; sleep 100"
    cut = run(tmp_path, *options, "--run", write, "--set", "stop=1s")
    assert cut.status == 0, cut.errors
    assert cut.said("WRITTEN")
    assert cut.result["guest"]["end"].startswith("lost its power")
    count = "dd if=/dev/nvme0n1 bs=64k skip={0} count=1 iflag=direct 2>/dev/null | tr -cd {1} | wc -c"
    after = run(tmp_path, *options, "--run", f"echo a=$({count.format(1, 'a')}); echo b=$({count.format(2, 'b')})")
    assert (after.value("a"), after.value("b")) == ("65536", "0")


def test_drive_that_is_shut_down_loses_nothing(tmp_path: Path) -> None:
    options = ("--set", f'device.nvme0.file="{tmp_path}/disk.img"', "--set", "device.nvme0.cache=16MiB")
    write = (
        "head -c 65536 /dev/zero | tr '\\0' c | dd of=/dev/nvme0n1 bs=64k seek=3 oflag=direct conv=notrunc 2>/dev/null"
    )
    assert run(tmp_path, *options, "--run", write).status == 0
    after = run(
        tmp_path, *options, "--run", "echo c=$(dd if=/dev/nvme0n1 bs=64k skip=3 count=1 2>/dev/null | tr -cd c | wc -c)"
    )
    assert after.value("c") == "65536"
