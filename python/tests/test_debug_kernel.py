"""The kernel of `make linux DEBUG=1`: it tells each kind of mistake that is made on purpose, and of our driver's whole tests it tells nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from guest import NVME, ROOT, Guest, run

from tlplab.guest import kernel

MODULE = "/lib/modules-tlplab/judges.ko"
DRIVE = "0000:03:00.0"
# KASAN and lockdep want more than guests have usually.
DEBUG = ["--linux", "debug", "--set", "guest.memory=512MiB"]
# Only what is older than some seconds is reported.
SCANS = "for look in 1 2; do sleep 6; echo scan >/sys/kernel/debug/kmemleak; done"
NOTHING_LEAKS = '[ -z "$(cat /sys/kernel/debug/kmemleak)" ]'
pytestmark = pytest.mark.full


def boot(folder: Path, script: str, experiment: Path = NVME) -> Guest:
    """Runs a script in a guest with that kernel."""
    if not (kernel.built("debug") / kernel.MANIFEST).is_file():
        pytest.skip("the debugging kernel is not built: make linux DEBUG=1")
    return run(folder, *DEBUG, "--run", script, experiment=experiment)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("use-after-free", "BUG: KASAN: slab-use-after-free in read_freed_memory"),
        ("beyond", "BUG: KASAN: slab-out-of-bounds in read_beyond_memory"),
        ("locks", "WARNING: possible circular locking dependency detected"),
    ],
)
def test_the_debug_kernel_reports_a_mistake_at_once(tmp_path: Path, wrong: str, told: str) -> None:
    guest = boot(tmp_path, f"insmod {MODULE} wrong={wrong}; dmesg | tail -100")
    assert guest.status == 0, guest.errors
    assert guest.said(told), guest.console[-30:]


@pytest.mark.xfail(strict=True, reason="on user-mode Linux kmemleak tells nothing; why is not known")
def test_unreferenced_memory_is_reported(tmp_path: Path) -> None:
    looks = f"{SCANS}; cat /sys/kernel/debug/kmemleak"
    guest = boot(tmp_path, f"insmod {MODULE} wrong=leak; {looks}")
    assert guest.said("unreferenced object"), guest.console[-30:]


def test_a_leaked_dma_mapping_is_reported_at_unbind(tmp_path: Path) -> None:
    unbind = f"echo {DRIVE} >/sys/bus/pci/drivers/nvme/unbind"
    guest = boot(tmp_path, f"insmod {MODULE} wrong=mapping device={DRIVE}; {unbind}; dmesg | tail -60")
    assert guest.said("device driver has pending DMA allocations"), guest.console[-30:]


def test_correct_drivers_cause_no_reports(tmp_path: Path) -> None:
    looks = f"{SCANS}; cat /sys/kernel/debug/kmemleak"
    unbind = f"echo {DRIVE} >/sys/bus/pci/drivers/nvme/unbind"
    guest = boot(
        tmp_path,
        f"dd if=/dev/nvme0n1 of=/dev/null bs=64k count=4 2>/dev/null; {unbind}; {looks}; dmesg -r | grep '^<[0-4]>'; true",
    )
    assert guest.status == 0, guest.errors
    for word in ("KASAN:", "WARNING", "unreferenced", "DMA-API: nvme"):
        assert not guest.said(word), guest.console[-30:]


def whole(folder: Path, experiment: str, driver: str) -> Guest:
    """Runs the script of an experiment; the kernel reports nothing about the driver, and no memory leaks."""
    script = (ROOT / f"experiments/linux/{experiment}.sh").read_text()
    file = folder / "whole.sh"
    file.write_text(f"{script}\n{SCANS}\n{NOTHING_LEAKS}\ndmesg -r | grep '^<[0-4]>' || true\necho no leak\n")
    guest = boot(folder, str(file), ROOT / f"experiments/linux/{experiment}.toml")
    assert guest.status == 0, guest.console[-40:]
    assert guest.said("no leak")
    for word in ("KASAN:", "WARNING", "BUG:", f"DMA-API: {driver}"):
        assert not guest.said(word), guest.console[-40:]
    return guest


def test_the_driver_of_the_dma_core_passes_its_whole_tests(tmp_path: Path) -> None:
    assert whole(tmp_path, "dma-core", "tlpdma").said("the kernel has nothing to complain about")


def test_the_driver_of_the_device_in_python_passes_its_test(tmp_path: Path) -> None:
    assert whole(tmp_path, "copier", "copier").said("a page went through the device")


def test_the_driver_of_the_simple_nic_passes_its_whole_tests(tmp_path: Path) -> None:
    assert whole(tmp_path, "simple-nic", "simple_nic").said("the kernel has nothing to complain about")
