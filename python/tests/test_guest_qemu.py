"""`tlplab guest qemu`: devices of ours in an ordinary Linux guest under QEMU."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from guest import needs_tools
from ordinary_guest import PATIENCE, command, run
from privilege import lacking
from terminal import Terminal

from tlplab.cli import status
from tlplab.guest import devices, machine
from tlplab.guest.devices import DeviceOfGuest
from tlplab.torture.classes import frames

ROOT = Path(__file__).resolve().parents[2]
COPIER = f"{ROOT}/examples/python/copier.py:Copier"
NICS = f"{ROOT}/experiments/linux/two-nics.toml"
DMA_CORE = f"{ROOT}/experiments/linux/dma-core.toml"
FOLDER = Path(__file__).parent / "qemu"
BOLD = f"{FOLDER}/bold.py:Bold"
DRIVE = """set -e
[ "$(grep -c nvme0q /proc/interrupts)" = 3 ]
head -c 4194304 /dev/urandom >/tmp/data
dd if=/tmp/data of=/dev/nvme0n1 bs=64k oflag=direct
dd if=/dev/nvme0n1 of=/tmp/back bs=64k count=64 iflag=direct
cmp /tmp/data /tmp/back
echo read back
fio --name=v --filename=/dev/nvme0n1 --offset=8M --size=2M --rw=randwrite --bs=4k --iodepth=8 --ioengine=libaio --direct=1 \\
  --verify=crc32c --numjobs=1 --output=/tmp/fio || { cat /tmp/fio; exit 1; }
grep -q 'err= 0' /tmp/fio
echo 1 >"$(readlink -f /sys/class/nvme/nvme0/device)/remove"
[ ! -e /dev/nvme0n1 ]
echo let go
dmesg | grep -E 'nvme.*([Ee]rror|[Tt]imeout|fail)|Oops|BUG:|WARNING:' || echo clean
"""
SWITCHED = """set -e
head -c 4194304 /dev/urandom >/tmp/data
dd if=/tmp/data of=/dev/nvme0n1 bs=64k oflag=direct
dd if=/dev/nvme0n1 of=/tmp/back bs=64k count=64 iflag=direct
cmp /tmp/data /tmp/back
echo 1 >/sys/class/nvme/nvme0/device/reset
until [ "$(cat /sys/class/nvme/nvme0/state)" = live ]; do sleep 0.1; done
dd if=/dev/nvme0n1 of=/tmp/back bs=64k count=64 iflag=direct
cmp /tmp/data /tmp/back
dmesg | grep -E 'nvme.*([Ee]rror|[Tt]imeout|fail)|Oops|BUG:|WARNING:|AER: .*error' || echo clean
"""
LOOK = """cp /sys/kernel/btf/vmlinux /share/btf
grep -E ' (init_task|page_offset_base)$' /proc/kallsyms >/share/symbols
setpci -s 01:00.0 COMMAND=6:6
sleep 1000 &
echo $! >/share/pid
sleep 0.5
ps -o pid,stat,comm >/share/ps
cp /proc/$!/maps /share/maps
head -c 8388608 /dev/urandom >/tmp/data
sha256sum /tmp/data >/tmp/sum
# The first random numbers are in the log.
until dmesg | grep -q 'crng init done'; do sleep 0.1; done
dmesg >/tmp/before
touch /share/ready
until [ -e /share/done ]; do
  sha256sum /tmp/data >/tmp/again
  cmp /tmp/again /tmp/sum || exit 1
done
echo the sums are as they were
dmesg >/tmp/after
cmp /tmp/after /tmp/before && echo the log is as it was
"""
CARD = """lspci -nn -d 3776:
touch /share/ready
until [ -e /share/go ]; do sleep 0.1; done
echo 1 >/sys/bus/pci/devices/0000:01:00.0/enable
setpci -s 01:00.0 COMMAND=6:6
bar4=$(awk 'NR == 5 { print $1 }' /sys/bus/pci/devices/0000:01:00.0/resource)
echo $bar4 >/share/bar4
touch /share/mastered
# Nobody is there at first, and all ones are what a read gives then.
until [ "$(devmem $((bar4 + 8)) 32)" = 0x12345678 ]; do
  devmem $((bar4 + 8)) 32 0x12345678
  sleep 0.1
done
echo kept $(devmem $((bar4 + 8)) 32)
"""
VFIO = """set -e
modprobe vfio_iommu_type1
modprobe vfio-pci
echo 71ab b01d >/sys/bus/pci/drivers/vfio-pci/new_id
group=$(basename "$(readlink /sys/bus/pci/devices/0000:01:00.0/iommu_group)")
/share/vfio-copy 0000:01:00.0 "$group"
cp /proc/uptime /share/uptime
"""


def qemus_of(process: int) -> list[int]:
    """The processes that it has started."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [child for child in map(int, children) if b"vfio-user-pci" in Path(f"/proc/{child}/cmdline").read_bytes()]


@pytest.mark.full
def test_a_guest_that_dies_unseen_shows_its_last_lines(tmp_path: Path) -> None:
    needs_tools()
    # The least memory is enough.
    arguments = command(
        COPIER, "--quiet", "--memory", "160MiB", "--run", "echo near the end; echo c >/proc/sysrq-trigger"
    )
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=PATIENCE, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    said = done.stderr.splitlines()
    assert said[0] == "Error: the run failed: the guest powered off before its script ended"
    assert any("Kernel panic - not syncing: sysrq triggered crash" in line for line in said), done.stderr
    assert 3 < len(said) <= 101


@pytest.mark.full
def test_a_copier_is_a_function_below_a_root_port_and_the_status_is_the_scripts(tmp_path: Path) -> None:
    needs_tools()
    found = run(tmp_path, COPIER, COPIER, "--run", "lspci -nn; lspci -s 02:00.0 -vv; exit 3")
    assert found.status == 1
    assert "the guest's script ended with status 3" in found.errors
    listed = [line for line in found.console if re.match(r"\d.*71ab:0001", line)]
    assert [line[:7] for line in listed] == ["01:00.0", "02:00.0", "02:00.0"]
    assert any("Express" in line and "Endpoint" in line for line in found.console), found.console
    assert any("MSI-X: " in line and "Count=1" in line for line in found.console)
    assert [device["name"] for device in found.result["devices"]] == ["Copier0", "Copier1"]
    assert found.result["status"] == 3
    assert not list(tmp_path.glob("*.sock"))


@pytest.mark.full
def test_the_nvme_driver_with_two_processors_verifies_its_writes(tmp_path: Path) -> None:
    needs_tools()
    (tmp_path / "drive.sh").write_text(DRIVE)
    found = run(tmp_path, "nvme,size=32MiB", "--cpus", "2", "--pcap", "drive.pcapng", "--run", "drive.sh")
    assert (found.status, found.errors) == (0, "")
    assert [line for line in ("read back", "let go", "clean") if line not in found.console] == [], found.console
    counters = found.counters()
    assert counters["bytes_read"] >= 6 << 20
    assert counters["bytes_by_messages"] == counters["refused_transfers"] == 0
    # The capture has every byte that the device has counted, and every read has its completions.
    passed: Counter[tuple[str, str]] = Counter()
    asked, answered = 0, set()
    for frame in frames(tmp_path / "drive.pcapng"):
        tlp = frame["tlp"]
        passed[frame["to"], tlp["kind"]] += len(frame.get("data", "")) // 2
        asked += tlp["kind"] == "MRd"
        if tlp["kind"] == "CplD" and frame.get("response_to") is not None:
            answered.add(frame["response_to"])
        assert "problem" not in frame, frame
    assert passed["host", "MWr"] == counters["bytes_written"]
    assert passed["nvme", "CplD"] == counters["bytes_read"]
    assert asked > 1000
    assert len(answered) >= asked


@pytest.mark.full
def test_a_device_behind_an_iommu_reaches_only_mapped_memory(tmp_path: Path) -> None:
    needs_tools()
    subprocess.run(
        ["gcc", "-O1", "-static", "-Wall", "-Werror", "-o", tmp_path / "vfio-copy", FOLDER / "vfio_copy.c"], check=True
    )
    (tmp_path / "vfio.sh").write_text(VFIO)
    found = run(tmp_path, BOLD, "--iommu", "--share", ".", "--run", "vfio.sh")
    assert found.status == 0, (found.errors, found.console)
    told = [line for line in found.console if line.startswith("interrupts=") or line in ("equal", "wrong", "untouched")]
    assert told == [
        "interrupts=1 done=1 refused=0", "equal",
        # A write to where nothing is mapped is posted, and lost; a read fails.
        "interrupts=1 done=2 refused=0", "interrupts=1 done=2 refused=1", "untouched",
    ]  # fmt: skip
    assert found.counters()["refused_transfers"] == 2
    assert (tmp_path / "uptime").read_text(), "what the guest writes to the folder is there"


@pytest.mark.full
def test_the_nvme_driver_behind_a_switch_survives_a_reset(tmp_path: Path) -> None:
    needs_tools()
    (tmp_path / "drive.sh").write_text(SWITCHED)
    found = run(
        tmp_path, f"{ROOT}/experiments/linux/nvme.toml", "--cpus", "2", "--iommu", "--pcap", "links.pcapng", "--run", "drive.sh"
    )  # fmt: skip
    assert (found.status, found.console[-2:-1]) == (0, ["clean"]), (found.console, found.errors)
    counters, document = found.counters(), found.result["run"]
    assert counters["bytes_written"] >= 2 * (4 << 20)
    assert counters["refused_transfers"] == counters["dropped_interrupts"] == 0
    assert document["errors"] == []
    flows = {flow["name"]: flow for flow in document["flows"]}
    # As in the closed form: 150 ns of switch and root complex each way, and the links.
    assert 600 < flows["guest.read"]["latency_ns"]["min"] < 650
    # What the device moved is on its own link, to the byte.
    passed: Counter[tuple[str, str]] = Counter()
    for frame in frames(tmp_path / "links.pcapng"):
        assert "problem" not in frame, frame
        if tlp := frame.get("tlp"):
            passed[frame["from"], tlp["kind"]] += len(frame.get("data", "")) // 2
    assert passed["sw0", "CplD"] >= counters["bytes_read"]


@pytest.mark.full
def test_qemu_stops_the_guest_after_a_fatal_error(tmp_path: Path) -> None:
    needs_tools()
    # Soon after the guest has its power: what it does by then is of no importance.
    fault = 'fault=[{link="nvme0", down="4s", until="5s"}]'
    found = run(tmp_path, ROOT / "experiments/linux/nvme.toml", "--set", fault, "--run", "sleep 600")
    assert found.status == 1
    assert "reported a fatal error, and QEMU stopped the guest" in found.errors
    assert found.counters()["fatal_errors"] == 1
    assert found.result["stopped"]
    assert found.result["run"]["outages"]


@pytest.mark.full
def test_a_legacy_interrupt_comes_once_for_each_reason(tmp_path: Path) -> None:
    needs_tools()
    script = "grep nvme /proc/interrupts; dd if=/dev/nvme0n1 of=/dev/null bs=4k count=50 iflag=direct; grep nvme /proc/interrupts; dmesg | grep 'nobody cared' || echo quiet"
    for device in (["nvme"], [f"{ROOT}/experiments/linux/nvme.toml"]):
        found = run(tmp_path, *device, "--append", "pci=nomsi", "--run", script)
        assert found.status == 0, found.errors
        before, after = (int(line.split()[1]) for line in found.console if "nvme0q0" in line)
        assert 50 <= after - before < 60, found.console
        assert "quiet" in found.console


@pytest.mark.full
@pytest.mark.long
def test_two_nics_on_a_cable_ping_and_carry_iperf(tmp_path: Path) -> None:
    needs_tools()
    found = run(tmp_path, f"{ROOT}/experiments/linux/two-nics.toml", "--cable", "nic0=nic1", "--cpus", "2")
    assert found.status == 0, (found.console, found.errors)
    assert any("3 packets transmitted, 3 packets received, 0% packet loss" in line for line in found.console)
    assert any("receiver" in line for line in found.console)
    assert found.result["run"]["errors"] == []
    # What was not lost where the guest was too slow has come, perhaps again.
    assert found.counters(1)["bytes_written"] > 1 << 19


@pytest.mark.full
@pytest.mark.long
@pytest.mark.parametrize("iommu", [False, True])
def test_the_published_programs_look_into_a_live_guest_unless_an_iommu_stops_them(tmp_path: Path, iommu: bool) -> None:
    needs_tools()
    (tmp_path / "look.sh").write_text(LOOK)
    guest = subprocess.Popen(
        command("nettlp,local=127.0.43.2,peer=127.0.43.1", "--share", ".", "--run", "look.sh", "--timeout", str(PATIENCE), *(["--iommu"] if iommu else [])),
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        until = time.monotonic() + 120
        while not (tmp_path / "ready").exists():
            assert guest.poll() is None, guest.communicate()
            assert time.monotonic() < until
            time.sleep(0.1)
        sleeper = (tmp_path / "pid").read_text().strip()
        found = {
            name: look(tmp_path, name, *more)
            for name, more in {"processes": (), "code": ("-p", sleeper, "-o", "code"), "pages": ("-p", sleeper)}.items()
        }
        (tmp_path / "done").touch()
        console, errors = guest.communicate(timeout=60)
    finally:
        guest.kill()
    assert guest.returncode == 0, errors
    assert "the log is as it was" in console
    assert "the sums are as they were" in console
    if iommu:
        assert [one.returncode for one in found.values()] == [1, 1, 1]
        assert all("no memory could be read" in one.stderr for one in found.values())
        assert not (tmp_path / "code").exists()
        return
    # As the guest's own ps has them, but for itself and what has begun or ended since.
    told = [line.split(None, 2) for line in (tmp_path / "ps").read_text().splitlines()[1:]]
    seen = {int(line.split()[1]): line.split()[3] for line in found["processes"].stdout.splitlines()[1:]}
    same = [pid for pid, _, name in told if seen.get(int(pid), "").strip("[]")[:10] == name.strip("[]")[:10]]
    assert len(same) >= 0.9 * len(told) > 30, (told, seen)
    assert seen[int(sleeper)] == "sleep"
    # The code as its file has it, where it was in memory.
    assert found["code"].returncode == 0, found["code"].stderr
    assert f"process {sleeper} (sleep)" in found["code"].stdout
    ranges = [line.split()[0] for line in (tmp_path / "maps").read_text().splitlines() if " r-xp " in line]
    assert f"code area of process {sleeper} (sleep): 0x{int(ranges[0].split('-')[0], 16):x}" in found["code"].stdout
    assert " r-x user" in found["pages"].stdout


def look(folder: Path, what: str, *more: str) -> subprocess.CompletedProcess[str]:
    """`tlplab introspect` through the card of a guest."""
    return subprocess.run(
        [sys.executable, "-m", "tlplab", "introspect", what, "-l", "127.0.43.1", "-r", "127.0.43.2", "--btf", "btf", "-s", "symbols", *more],
        cwd=folder, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@pytest.mark.full
def test_the_card_leads_to_a_device_in_another_process(tmp_path: Path) -> None:
    needs_tools()
    (tmp_path / "card.sh").write_text(CARD)
    place = ("-l", "127.0.44.1", "-r", "127.0.44.2")
    guest = subprocess.Popen(
        command("nettlp,local=127.0.44.2,peer=127.0.44.1,datagrams=card.pcapng", "--share", ".", "--run", "card.sh", "--timeout", str(PATIENCE)),
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    device = None
    try:
        until = time.monotonic() + 120
        while not (tmp_path / "ready").exists():
            assert guest.poll() is None, guest.communicate()
            assert time.monotonic() < until
            time.sleep(0.1)
        # Before the driver lets it master the bus, memory is not the device's.
        refused = subprocess.run(
            [sys.executable, "-m", "tlplab", "dma", "read", *place, "-a", "0x1000000", "-s", "16B"],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert refused.returncode == 1
        (tmp_path / "go").touch()
        while not (tmp_path / "mastered").exists():
            assert time.monotonic() < until
            time.sleep(0.1)
        measured = subprocess.run(
            [sys.executable, "-m", "tlplab", "perf", *place, "-s", "64KiB", "-a", "0x1000000", "-c", "2000", "-q", "8", "--json", "-"],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert json.loads(measured.stdout)["operations"] == 2000, measured.stderr
        device = subprocess.Popen([sys.executable, "-m", "tlplab", "device", "psmem", *place, "--quiet"])
        console, errors = guest.communicate(timeout=60)
    finally:
        guest.kill()
        if device is not None:
            device.terminate()
            device.wait()
    assert guest.returncode == 0, (console, errors)
    assert "Device [3776:8022]" in console
    assert "kept 0x12345678" in console
    # What the device heard is in the capture, at the address that the guest gave to BAR 4.
    base = (tmp_path / "bar4").read_text().strip()
    dump = subprocess.run(
        [sys.executable, "-m", "tlplab", "dump", tmp_path / "card.pcapng", "type=MWr"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert f"Addr {int(base, 16) + 8:#010x}" in dump, dump


@pytest.mark.full
def test_a_shell_answers_keys(tmp_path: Path) -> None:
    needs_tools()
    terminal = Terminal(command(COPIER, "--shell"), tmp_path)
    terminal.hear(b"~ # ", PATIENCE)
    terminal.type(b"echo $((6 * 7)) is said; lspci -n -d 71ab: | wc -l\n")
    terminal.hear(b"42 is said")
    terminal.type(b"exit 0\n")
    terminal.hear(b"powered off after")
    assert terminal.end() == 0


@pytest.mark.full
@pytest.mark.parametrize(("asks", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_a_guest_ends_with_the_command_that_booted_it(tmp_path: Path, asks: int, expected: int) -> None:
    needs_tools()
    process = subprocess.Popen(
        command(COPIER, "--run", "sleep 1000"), cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    try:
        until = time.monotonic() + 60
        while not (guests := qemus_of(process.pid)):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(asks)
        assert process.wait(timeout=30) == expected
        while any(Path(f"/proc/{guest}/cmdline").exists() for guest in guests):
            assert time.monotonic() < until, "QEMU goes on"
            time.sleep(0.05)
        # Who is killed removes nothing.
        assert asks == signal.SIGKILL or not list(tmp_path.iterdir())
    finally:
        process.kill()
        process.wait()


@pytest.mark.full
def test_an_experiment_that_is_interrupted_has_results_of_the_part_that_ran(tmp_path: Path) -> None:
    needs_tools()
    file = tmp_path / "result.json"
    process = subprocess.Popen(
        command(DMA_CORE, "--json", file, "--run", "sleep 1000"), stderr=subprocess.PIPE, text=True
    )
    try:
        until = time.monotonic() + 60
        while not qemus_of(process.pid):
            assert time.monotonic() < until
            time.sleep(0.05)
        time.sleep(5)
        process.send_signal(signal.SIGINT)
        assert "interrupted: the figures cover the part that ran" in process.communicate(timeout=30)[1]
        assert process.returncode == 130
    finally:
        process.kill()
        process.wait()
    result = json.loads(file.read_text())
    assert result["interrupted"] is True
    assert result["status"] is None
    assert result["run"]["stop_reason"] == "interrupted"


@pytest.mark.full
def test_a_killed_qemu_and_a_raising_device_are_reported(tmp_path: Path) -> None:
    needs_tools()
    process = subprocess.Popen(command(COPIER, "--run", "sleep 1000"), cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not (guests := qemus_of(process.pid)):
        assert time.monotonic() < until
        time.sleep(0.05)
    os.kill(guests[0], signal.SIGKILL)
    assert "killed by signal 9" in process.communicate(timeout=30)[1]
    assert process.returncode == 1
    script = "address=$(awk 'NR == 1 { print $1 }' /sys/bus/pci/devices/0000:01:00.0/resource); echo 1 >/sys/bus/pci/devices/0000:01:00.0/enable; devmem $((address + 16)) 32 1; sleep 100"
    found = run(tmp_path, f"{FOLDER}/bold.py:Bad", "--run", script)
    assert found.status == 1
    assert "this device is broken" in found.errors


@pytest.mark.full
def test_a_guest_that_does_not_end_loses_its_power(tmp_path: Path) -> None:
    needs_tools()
    found = run(tmp_path, COPIER, "--run", "sleep 1000", "--timeout", "1")
    assert found.status == 1
    assert "still running after 1 s" in found.errors
    assert found.result["timed_out"] is True


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([COPIER], "give either --run or --shell"),
        ([COPIER, "--shell", "--run", "true"], "give either --run or --shell"),
        (["e1000", "--shell"], "there is no device 'e1000'"),
        (["nvme,bytes=3", "--shell"], "nvme has no parameter bytes"),
        (["nettlp,pear=127.0.0.1", "--shell"], "nettlp has no parameter pear"),
        (["nettlp,peer=here", "--shell"], "nettlp,peer=here"),
        (["nettlp,peer=192.0.2.1", "--shell"], "192.0.2.1 is not on the loopback interface"),
        (["simple-nic,mtu=20", "--shell"], "mtu is 20; it must be from 68 to 9000 bytes"),
        (["nvme,size", "--shell"], "'size' is not KEY=VALUE"),
        ([f"{COPIER}x", "--shell"], "there is no Copierx in it"),
        ([COPIER, "--shell", "--memory", "much"], "--memory"),
        ([COPIER, "--shell", "--memory", "159MiB"], "the guest's kernel and its files need 160 MiB"),
        ([COPIER, "--shell", "--share", "/nonexistent"], "there is no such folder"),
        ([COPIER, "--shell", "--set", "seed=1"], "--set is for an experiment"),
        ([NICS, COPIER, "--shell"], "an experiment defines all devices of its guest"),
        ([NICS, "--shell", "--run", "true"], "give either --run or --shell"),
        ([NICS, "--cable", "nic0"], "'nic0' is not NIC=NIC"),
        ([NICS, "--cable", "nic0=nic2"], "has no nic nic2"),
        ([NICS, "--cable", "nic0=nic1", "--cable", "nic1=nic0"], "nic0 has several cables; give it one"),
        ([f"{ROOT}/experiments/linux/two-guests.toml"], "has several machines"),
    ],
)
def test_mistakes_in_options_are_reported(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["guest", "qemu", *arguments]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.full
@pytest.mark.parametrize(
    ("cards", "says"),
    [
        (["nettlp,window=3MiB"], "a window of 3145728 B"),
        (["nettlp", "nettlp"], "two devices have the address 127.0.0.1"),
    ],
)
def test_a_card_that_cannot_be_is_refused(cards: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    needs_tools()
    test_mistakes_in_options_are_reported([*cards, "--run", "true"], says, capsys)


def test_without_tools_the_message_names_make_guest_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert status(["guest", "qemu", COPIER, "--shell"]) == 2
    assert "make guest-tools" in capsys.readouterr().err


def test_each_device_has_a_name_of_its_own() -> None:
    def named(*names: str) -> list[str]:
        return devices.names([DeviceOfGuest(name, lambda *_: pytest.fail("it is not started")) for name in names])

    assert named("nvme", "Copier") == ["nvme", "Copier"]
    assert named("nvme", "Copier", "nvme") == ["nvme0", "Copier", "nvme1"]
    assert named("nvme", "nvme0", "nvme") == ["nvme1", "nvme0", "nvme2"]


def test_kvm_is_taken_where_the_processor_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device, processors = tmp_path / "kvm", tmp_path / "cpuinfo"
    monkeypatch.setattr(machine, "KVM", device)
    monkeypatch.setattr(machine, "PROCESSORS", processors)
    processors.write_text("processor\t: 0\nflags\t\t: fpu vme vmx sse\n")
    assert not machine.has_kvm()
    device.touch()
    assert machine.has_kvm()
    processors.write_text("processor\t: 0\nflags\t\t: fpu vme sse vmxless\nmodel name\t: svm\n")
    assert not machine.has_kvm(), "it would be a KVM for kernels of its own"


@pytest.mark.full
@pytest.mark.long
@pytest.mark.parametrize("options", [(), ("--iommu",)], ids=["plain", "iommu"])
def test_the_driver_of_the_dma_core_keeps_its_promises_on_two_processors(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    needs_tools()
    guest = run(tmp_path, DMA_CORE, "--cpus", "2", *options)
    assert guest.status == 0, "\n".join([guest.errors, *guest.console[-30:]])
    assert "the driver was loaded and unloaded 4 times, and the kernel has nothing to complain about" in guest.console
    assert guest.console.count("Every byte came back as it was sent.") == 3
    assert "  the card's memory by loads and stores" in guest.console
    assert not any("no program can reach a BAR" in line for line in guest.console)


@pytest.mark.full
def test_the_dma_core_in_rtl_is_driven_by_an_ordinary_guest(tmp_path: Path) -> None:
    needs_tools()
    core = ROOT / "out/rtl/tlpdma-trn64.so"
    if not core.is_file():
        lacking("the DMA core is not built: make rtl")
    script = (
        "dmesg -n 1; insmod /lib/modules-tlplab/tlpdma.ko; tlpdma-test --runs 1 --latency-runs 3 --sizes 4:64KiB --offset 3 /dev/tlpdma0 && "
        "rmmod tlpdma && dmesg -r | grep tlpdma"
    )
    guest = run(tmp_path, DMA_CORE, "--set", f"device.card.model=rtl:{core}", "--run", script)
    assert guest.status == 0, "\n".join([guest.errors, *guest.console[-30:]])
    assert "Every byte came back as it was sent." in guest.console
    assert any("/dev/tlpdma0: 256 MiB" in line for line in guest.console)


@pytest.mark.full
def test_the_dma_core_is_driven_in_user_space_by_vfio(tmp_path: Path) -> None:
    """The ring code of the kernel module in a program, behind the guest's IOMMU; each byte is looked at."""
    needs_tools()
    script = """set -e
function=0000:01:00.0
# On a terminal the test program would show its progress.
quietly() {
  tlpdma-test "$@" 2>/tmp/errors || { cat /tmp/errors; exit 1; }
}
tlpdma-test vfio:$function 2>&1 | tail -1
modprobe vfio_iommu_type1
modprobe vfio-pci
tlpdma-test vfio:$function 2>&1 | tail -1
echo vfio-pci >/sys/bus/pci/devices/$function/driver_override
echo $function >/sys/bus/pci/drivers_probe
for registered in "" --register; do
  for offset in 0 3; do quietly $registered --offset $offset --sizes 4:8MiB --runs 1 --latency-runs 20 vfio:$function; done
done
# Then the kernel's driver has it, as if nothing had been.
echo tlpdma >/sys/bus/pci/devices/$function/driver_override
echo $function >/sys/bus/pci/drivers/vfio-pci/unbind
insmod /lib/modules-tlplab/tlpdma.ko
quietly --sizes 4:1MiB --runs 1 --latency-runs 5 /dev/tlpdma0
dmesg -r | grep '^<[0-3]>' || echo the log is clean
"""
    guest = run(tmp_path, DMA_CORE, "--iommu", "--run", script)
    assert guest.status == 0, "\n".join([guest.errors, *guest.console[-30:]])
    assert sum("its driver is none, and not vfio-pci" in line for line in guest.console) == 2
    assert guest.console.count("Every byte came back as it was sent.") == 5
    # Loads of its memory by the program, through VFIO and through the driver.
    assert sum(line.startswith("load ") for line in guest.console) == 5
    assert "the log is clean" in guest.console
