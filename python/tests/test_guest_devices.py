"""Devices under Linux: the DMA core with its driver, a device in Python with one of its own, and the time of register reads, by Linux' clock."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from random import Random

import click
import pytest
from guest import ROOT, Guest, flow, needs_guest, run
from libraries import copier_in_c
from privilege import lacking

from studies.speedy import guest as speedy
from studies.speedy.card import GEN1_X8, WAYS
from tlplab.reproduce import GuestOptions, running, study

EXPERIMENTS = ROOT / "experiments/linux"
DMA, COPIER, DIFFERENTIAL = (EXPERIMENTS / f"{name}.toml" for name in ("dma-core", "copier", "differential"))
DRIVER = "insmod /lib/modules-tlplab/tlpdma.ko"
# Functions of differential.toml: root ports, the switch's three, the card in a lane, the drive, the card in eight.
PORT, SWITCH, DOWN, CARD, DRIVE, OTHER_PORT, WIDE = (
    "0000:00:01.0", "0000:01:00.0", "0000:02:00.0", "0000:03:00.0", "0000:04:00.0", "0000:00:02.0", "0000:05:00.0",
)  # fmt: skip
NAMES = {"host.rp0": PORT, "host.rp1": OTHER_PORT, "sw0": SWITCH, "card": CARD, "nvme0": DRIVE, "wide": WIDE}


def warnings(guest: Guest) -> list[str]:
    """The warnings in the output of `dmesg -r`; each line begins with its level."""
    lines = [line for line in guest.console if re.match(r"<[0-4]>", line)]
    return [line for line in lines if "out-of-tree module" not in line]


def shortest(console: list[str]) -> list[dict[str, tuple[int, int, float]]]:
    """The tables of config-latency: of each function the bus's part of the shortest read, the shortest and the mean, in nanoseconds."""
    tables: list[dict[str, tuple[int, int, float]]] = []
    for line in console:
        if line.startswith("function "):
            tables.append({})
        elif tables and (cells := line.split()) and re.fullmatch(r"[0-9a-f:.]{12}", cells[0]) and len(cells) == 9:
            tables[-1][cells[0]] = (int(cells[3]), int(cells[4]), float(cells[6]))
    return tables


@pytest.mark.full
def test_the_driver_keeps_its_promises(tmp_path: Path) -> None:
    needs_guest()
    guest = run(tmp_path, experiment=DMA)
    assert guest.status == 0, "\n".join([guest.errors, *guest.console[-30:]])
    assert guest.said("the kernel has nothing to complain about")
    assert sum("Every byte came back as it was sent." in line for line in guest.console) == 3
    assert not guest.said("skipped:")


@pytest.mark.full
def test_the_core_in_rtl_is_driven_as_its_model_is(tmp_path: Path) -> None:
    needs_guest()
    core = ROOT / "out/rtl/tlpdma-trn64.so"
    if not core.is_file():
        lacking("the DMA core is not built: make rtl")
    script = f"dmesg -c >/dev/null; {DRIVER}; dmesg -r; tlpdma-test --runs 1 --latency-runs 3 --sizes 4:64KiB --offset 3 /dev/tlpdma0 && rmmod tlpdma && echo gone"
    told = {}
    for model in ("tlpdma", f"rtl:{core}"):
        guest = run(tmp_path, "--set", f"device.card.model={model}", "--run", script, experiment=DMA)
        assert guest.status == 0, "\n".join([guest.errors, *guest.console[-30:]])
        assert guest.said("Every byte came back as it was sent.")
        assert guest.said("gone")
        assert warnings(guest) == []
        told[model] = next(line for line in guest.console if "/dev/tlpdma0: 256 MiB" in line)
    assert len({line.split("tlpdma0: ")[1] for line in told.values()}) == 1, told


@pytest.mark.full
def test_the_card_shows_payload_and_read_request_size_as_they_are(tmp_path: Path) -> None:
    needs_guest()
    sizes = ("--set", "device.card.mps=128B", "--set", "device.card.mrrs=256B")
    guest = run(tmp_path, *sizes, "--run", f"{DRIVER}; dmesg | grep /dev/tlpdma0:", experiment=DMA)
    assert guest.said("payload 128, read request 256 bytes"), guest.console[-5:]


@pytest.mark.full
@pytest.mark.parametrize("parameters", ["msix=0", "poll_us=1 ring_log2=16"])
def test_the_driver_with_other_parameters(tmp_path: Path, parameters: str) -> None:
    needs_guest()
    tests = "data buffers both signals kills unbind"
    script = f"dmesg -c >/dev/null; {DRIVER} {parameters}; tlpdma-device-test /dev/tlpdma0 {tests} && rmmod tlpdma && dmesg -r"
    guest = run(tmp_path, "--run", script, experiment=DMA)
    assert guest.status == 0, "\n".join(guest.console[-30:])
    assert warnings(guest) == []


@pytest.mark.full
def test_the_driver_recovers_from_a_link_that_goes_down(tmp_path: Path) -> None:
    """In mid-transfer; AER resets the link, and the driver starts the card anew."""
    needs_guest()
    fault = 'fault=[{link = "card", down = "9ms", until = "13ms"}]'
    script = f"{DRIVER}; tlpdma-device-test /dev/tlpdma0 pulled && rmmod tlpdma"
    guest = run(tmp_path, "--set", fault, "--run", script, experiment=DMA)
    assert guest.status == 0, "\n".join(guest.console[-30:])
    assert guest.said("AER: device recovery successful")
    # Not after the driver's own timeout.
    assert guest.stamps[-1] < 1e6


@pytest.mark.full
@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ('{link = "card", direction = "down", of = "CplD", tlp = 100, damage = "poison"}', "poisoned data"),
        ('{link = "card", direction = "up", of = "MRd", tlp = 5, damage = "refuse"}', "unsupported request"),
    ],
)
def test_an_error_of_the_bus_is_one_of_the_program(tmp_path: Path, fault: str, told: str) -> None:
    needs_guest()
    write = "head -c 9000000 /dev/zero | tr '\\0' x >/tmp/big; dd if=/tmp/big of=/dev/tlpdma0 bs=9000000 count=1"
    script = f"{DRIVER}; {write}; tlpdma-device-test /dev/tlpdma0 data && rmmod tlpdma"
    guest = run(tmp_path, "--set", f"fault=[{fault}]", "--run", script, experiment=DMA)
    assert guest.status == 0, "\n".join(guest.console[-30:])
    assert guest.said(f"to card: {told}")
    assert guest.said("error writing '/dev/tlpdma0': Input/output error")


@pytest.mark.full
@pytest.mark.parametrize("transfers", [4_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_transfers_with_faults_arrive_and_nothing_is_warned_of(tmp_path: Path, transfers: int) -> None:
    """Requests and completions are refused, aborted, poisoned, lost and misnamed: the driver tells its callers, and warns of nothing.

    Error recovery (AER) is unbound from the root port: its reports about the bus are not the driver's.
    """
    needs_guest()
    random = Random(1)
    faults = []
    for _ in range(transfers // 150):
        damage = random.choice(["abort", "refuse", "poison", "lose", "tag", "requester"])
        of, way, last = ("MRd", "up", 3) if damage in ("abort", "refuse") else ("CplD", "down", 6)
        number = 20 + random.randrange(last * transfers)
        faults.append(f'{{link = "card", direction = "{way}", of = "{of}", tlp = {number}, damage = "{damage}"}}')
    aer = "/sys/bus/pci_express/drivers/aer"
    script = f"for one in {aer}/*:pcie*; do echo ${{one##*/}} >{aer}/unbind; done; dmesg -c >/dev/null; {DRIVER}; "
    script += f"TLPDMA_TRANSFERS={transfers} tlpdma-device-test /dev/tlpdma0 faults && rmmod tlpdma && dmesg -r"
    settings = ("--set", f"fault=[{', '.join(faults)}]", "--set", "guest.cpu.syscall=200ns")
    guest = run(tmp_path, *settings, "--run", script, experiment=DMA)
    assert guest.status == 0, "\n".join([guest.errors, *guest.console[-30:]])
    told = next(
        match for line in guest.console if (match := re.search(r"(\d+) transfers, of which (\d+) failed", line))
    )
    assert int(told[1]) - int(told[2]) == transfers
    assert int(told[2]) > len(faults) / 2
    # The log says why, for whoever looks; no more than a few of them.
    reasons = [line for line in guest.console if re.match(r"<6>.* card: .* errors before", line)]
    assert 5 <= len(reasons) < len(faults)
    assert warnings(guest) == []


@pytest.mark.full
@pytest.mark.parametrize(
    "engine",
    ["psync", "pvsync", "libaio --iodepth=16", "io_uring --iodepth=16", "io_uring --iodepth=16 --fixedbufs=1"],
)
def test_programs_read_and_write_the_card_as_a_file_and_in_queues(tmp_path: Path, engine: str) -> None:
    """fio writes blocks in random order, many at once, and looks at each when it has read it back."""
    needs_guest()
    fio = (
        f"fio --name=v --filename=/dev/tlpdma0 --size=4M --filesize=4M --rw=randwrite --bsrange=4k-64k --ioengine={engine} "
        "--verify=crc32c --output=/tmp/fio"
    )
    script = f"dmesg -c >/dev/null; {DRIVER}; {fio}; status=$?; grep err= /tmp/fio; grep . /sys/bus/pci/drivers/tlpdma/0*/*_card/*; dmesg -r; exit $status"
    guest = run(tmp_path, "--set", "guest.cpu.syscall=200ns", "--run", script, experiment=DMA)
    assert guest.status == 0, "\n".join([guest.errors, *guest.console[-30:]])
    assert guest.said("err= 0")
    assert warnings(guest) == []
    counters = {
        name: int(value)
        for line in guest.console
        if (found := re.fullmatch(r"\S*/(\w+_card/\w+):(\d+)", line))
        for name, value in [found.groups()]
    }
    assert counters["to_card/bytes"] == counters["from_card/bytes"] == 4 << 20
    assert counters["to_card/errors"] == counters["from_card/errors"] == 0
    # Each is an interrupt, and no more: what a request needs is one piece.
    assert counters["to_card/interrupts"] == counters["to_card/transfers"]


@pytest.mark.full
def test_a_card_that_halts_fails_one_request_of_a_queue(tmp_path: Path) -> None:
    needs_guest()
    fault = 'fault=[{link = "card", direction = "down", of = "CplD", tlp = 30000, damage = "poison"}]'
    script = f"{DRIVER}; tlpdma-device-test /dev/tlpdma0 queue_halts && rmmod tlpdma; dmesg | tail -3"
    guest = run(tmp_path, "--set", fault, "--run", script, experiment=DMA)
    assert guest.status == 0, "\n".join(guest.console[-30:])
    assert guest.said("to card: poisoned data")


@pytest.mark.full
def test_transfers_reach_the_rate_of_the_link(tmp_path: Path) -> None:
    needs_guest()
    share = tmp_path / "share"
    share.mkdir()
    test = "tlpdma-test --quiet --sizes 4MiB --runs 1 --latency-runs 50 --json /share/found /dev/tlpdma0"
    guest = run(tmp_path, "--share", share, "--run", f"{DRIVER}; {test}", experiment=DMA)
    assert guest.status == 0, guest.errors
    found = json.loads((share / "found").read_text())
    assert found["simulated"] is False
    # Eight lanes of 250 MB/s; 256 B behind 12 B of header, framed by 8 B.
    for row in found["sweep"]:
        assert 0.96 < row["bytes_per_second"] / (2e9 * 256 / 276) < 1
    # Doorbell, descriptor, data, record, interrupt: two reads of the host and three posted writes one after the other, at least.
    least = min(flow(guest, "card.fetch")["latency_ns"]["min"], flow(guest, "card.to_card")["latency_ns"]["min"])
    for one in found["latency"]:
        assert one["min_ns"] > least
        assert one["max_ns"] < 5_000


@pytest.mark.full
@pytest.mark.parametrize("language", ["python", "c"])
def test_a_device_in_python_or_c_has_a_driver(tmp_path: Path, language: str) -> None:
    needs_guest()
    model = [] if language == "python" else ["--set", f"device.copier.model=lib:{copier_in_c(tmp_path)}"]
    guest = run(tmp_path, *model, experiment=COPIER)
    assert guest.status == 0, "\n".join([guest.errors, *guest.console[-30:]])
    assert guest.said("a page went through the device")
    assert guest.said("01:00.0 Unassigned class [ff00]: Device 71ab:0001")
    # The copier's own read and write.
    assert flow(guest, "copier")["bytes"] == 2 * 4096


@pytest.mark.full
def test_shortest_reads_are_the_fabrics_and_no_load_moves_them(tmp_path: Path) -> None:
    needs_guest()
    guest = run(tmp_path, experiment=DIFFERENTIAL)
    assert guest.status == 0, "\n".join([guest.errors, *guest.console[-30:]])
    idle, loaded = shortest(guest.console)
    assert {name: row[:2] for name, row in idle.items()} == {name: row[:2] for name, row in loaded.items()}
    # The load is there all the same.
    assert loaded[DRIVE][2] > idle[DRIVE][2] + 20
    assert flow(guest, "nvme0.to_host")["bytes"] > 10 << 20
    # The same topology without Linux, by a counter that goes in steps of 3 ns.
    measured = subprocess.run(
        [sys.executable, "-m", "tlplab", "measure", "--on", DIFFERENTIAL, "--idle", "--samples", "200", "--json", "-"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    targets = {target["name"]: target["min_ns"] for target in json.loads(measured.stdout)["targets"]}
    for name, function in NAMES.items():
        assert targets[name] <= idle[function][0] < targets[name] + 6
    # The nearest is exact: the root complex, there and back.
    assert idle[PORT][0] == 300
    assert idle[DOWN][0] == idle[SWITCH][0]
    # A program and the kernel see the same.
    kernels = re.findall(r"(\S+): 500 reads .* of configuration: .*; min (\d+),", "\n".join(guest.console))
    assert {name: int(ns) for name, ns in kernels} == {name: idle[name][0] for name in (PORT, SWITCH, CARD, WIDE)}


@pytest.mark.full
def test_the_cost_of_a_system_call_adds_to_each_read(tmp_path: Path) -> None:
    needs_guest()
    script = "config-latency -n 200"
    tables = []
    for cost in ("0ns", "300ns"):
        guest = run(tmp_path, "--run", script, "--set", f"guest.cpu.syscall={cost}", experiment=DIFFERENTIAL)
        assert guest.status == 0, guest.errors
        tables += shortest(guest.console)
    free, costly = tables
    for name, (bus, least, _) in free.items():
        assert costly[name][0] == bus
        assert costly[name][1] >= least + 300


@pytest.mark.full
def test_a_mapped_register_takes_the_latency_of_the_fabric(tmp_path: Path) -> None:
    needs_guest()
    script = f"insmod /lib/modules-tlplab/mmio_latency.ko device={CARD} count=400"
    guest = run(tmp_path, "--run", script, experiment=DIFFERENTIAL)
    assert guest.status == 0, guest.errors
    found = re.search(r"400 reads .*; min (\d+), median", "\n".join(guest.console))
    assert found
    # The guest's clock has whole nanoseconds; its drive's registers, which its driver reads, are nearer.
    truth = flow(guest, "guest.read")["latency_ns"]
    assert int(found[1]) <= math.ceil(truth["max"])
    assert 900 < int(found[1]) < 1100


def test_speedys_own_files_are_there() -> None:
    for name in (speedy.GUEST, speedy.HARNESS):
        assert (ROOT / "studies/speedy" / name).is_file()


def test_other_studies_refuse_a_guest() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tlplab", "reproduce", "differential", "--guest"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 2
    assert "differential does not run under Linux: --guest is for" in done.stderr


def test_a_missing_kernel_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(click.UsageError, match="make linux"):
        running.by_guest(study("speedy", ROOT / "studies"), str(ROOT / "studies"), GuestOptions(), quiet=True)


@pytest.mark.full
def test_speedy_under_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    """Smaller, and on one link."""
    needs_guest()
    monkeypatch.setattr(speedy, "largest_of", lambda _slot: 1 << 20)
    monkeypatch.setattr(speedy, "LATENCY_RUNS", 20)
    program = speedy.by_linux(ROOT / "studies/speedy", GEN1_X8, lambda _now: None)
    harness = {(way, 4): speedy.without_linux(ROOT / "studies/speedy", GEN1_X8, way, 4) for way in WAYS}
    found = speedy.Found(program, harness)
    for way in WAYS:
        assert found.largest(way) == 1 << 20
        # What Linux adds is no more than what an infinitely fast processor cannot avoid.
        assert found.latency_us(way)["median"] == pytest.approx(found.harness_us(way), rel=0.15)
