"""`tlplab device` and `tl.serve`: devices behind an adapter, all on the loopback interface."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from libraries import copier_in_c
from said import said_by

import tlplab as tl
from tlplab import _core
from tlplab.nettlp.end import End
from tlplab.nettlp.loopback import own_address

ROOT = Path(__file__).resolve().parents[2]
TLPLAB = [sys.executable, "-m", "tlplab"]
COPIER = ROOT / "examples/python/copier.py"
WINDOW = 0xA000_0000


class Lab:
    """An adapter's address, and those of its devices."""

    def __init__(self) -> None:
        self.adapter, self.device, self.other = (own_address() for _ in range(3))
        self.ends = ["-l", self.device, "-r", self.adapter]

    def dma(self) -> _core.Dma:
        """The other device, which reaches this one by the adapter."""
        return _core.Dma(End(local=self.other, adapter=self.adapter, timeout_ns=1_000_000_000))


@contextlib.contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command that is there once it has said so, and is interrupted in the end."""
    process = subprocess.Popen([*TLPLAB, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = said_by(process.stdout)
        assert "Ctrl-C ends it" in said or "Ctrl-C ends" in said, process.communicate()
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=10)
        except (subprocess.TimeoutExpired, ValueError):
            process.kill()
            process.wait()


@pytest.fixture
def lab() -> Iterator[Lab]:
    lab = Lab()
    with running("adapter", "-l", lab.adapter, "--peer", lab.device, "--peer", lab.other, "--memory", "16MiB"):
        yield lab


def test_psmem_is_memory_for_other_devices(lab: Lab) -> None:
    with running("device", "psmem", *lab.ends, "-n", "3", "-s", "98B", "--lanes", "2") as psmem:
        dma = lab.dma()
        # Frames with their addresses, 84 B of IPv4 in each; behind the third there is nothing.
        for number in range(4):
            frame = dma.read(WINDOW + 2048 * number, 98)
            assert frame[:18] == (
                bytes.fromhex("ffffffffffff 060504030201 0800 4500 0054") if number < 3 else bytes(18)
            )
        data = bytes(range(256)) * 40
        dma.write(WINDOW + 0x12345, data)
        dma.flush(WINDOW)
        assert dma.read(WINDOW + 0x12345, len(data)) == data
        assert dma.read(WINDOW + (256 << 20) - 16, 16) == bytes(16)
        psmem.terminate()
        out, err = psmem.communicate(timeout=10)
    assert psmem.returncode == 143
    assert "Traceback" not in err
    counted = {name.strip(): int(number) for name, number in (line.rsplit(None, 1) for line in out.splitlines()[1:])}
    assert counted["host reads"] >= 24
    assert counted["host writes"] >= 40


def test_psmem_takes_its_time(lab: Lab) -> None:
    with running("device", "psmem", *lab.ends, "-m", "30000", "--lanes", "1"):
        dma = lab.dma()
        begun = time.monotonic()
        dma.read(WINDOW, 64)
        assert time.monotonic() - begun >= 0.03


def test_an_adapter_that_cannot_be_asked_need_not_be(lab: Lab) -> None:
    place = ["-a", f"{WINDOW:#x}", "-b", "1b:00.0", "-R", own_address()]
    with running("device", "psmem", *lab.ends, *place):
        assert lab.dma().read(WINDOW, 8) == bytes(8)


class Answerer(tl.Device):
    """Computes, copies, interrupts; and fails if it is told to."""

    ids, msix = tl.Ids(0x71AB, 0x77), 1

    class regs(tl.Bar, size="4KiB"):
        src = tl.Reg64(0x00)
        dst = tl.Reg64(0x08)
        go = tl.Reg32(0x10)
        done = tl.Reg32(0x14, ro=True)
        fail = tl.Reg32(0x18)

    @regs.go.on_write
    async def copy(self, cx: tl.Context, n: int) -> None:
        await cx.dma_write(self.regs.dst, await cx.dma_read(self.regs.src, n))
        await cx.sleep("1ms")
        self.regs.done += 1
        cx.msix(0)

    @regs.fail.on_write
    def on_fail(self, cx: tl.Context, n: int) -> None:
        raise KeyError(f"told to fail with {n}")


def run_until_interrupted(server: _core.Server) -> dict[str, int]:
    """Runs until the device has interrupted, as it does last; the counters."""
    until = time.monotonic() + 30
    while True:
        server.run(0.1)
        counters = dict(server.counters())
        if counters["interrupts"] + counters["dropped_interrupts"]:
            return counters
        assert time.monotonic() < until, counters


def test_a_class_is_served_unchanged(lab: Lab) -> None:
    """The other device writes its registers; it copies in the memory of the host, 5000 B, in several TLPs."""
    place = tl.NetTLP(lab.device, lab.adapter, timeout_ns=2_000_000_000)
    server = _core.Server.python(place.site(), tl.loader.carry(Answerer()))
    dma = lab.dma()
    data = bytes(range(250)) * 20
    dma.write(0x10_003, data)
    dma.flush(0x10_003)
    assert server.bars == [(0, WINDOW, 4096)]
    for offset, value in ((0, 0x10_003), (8, 0x20_001), (16, len(data))):
        dma.write(WINDOW + offset, value.to_bytes(8 if offset < 16 else 4, "little"))
    counters = run_until_interrupted(server)
    assert dma.read(0x20_001, len(data)) == data
    # The driver has not set up where interrupts go, so this one went nowhere; the adapter was asked again.
    assert counters["interrupts"] + counters["dropped_interrupts"] == 1
    server.end()


def test_a_handler_that_fails_is_named_with_its_place(lab: Lab) -> None:
    def fail(_server: _core.Server) -> None:
        lab.dma().write(WINDOW + 0x18, (7).to_bytes(4, "little"))

    with pytest.raises(tl.RunError, match=r"told to fail with 7") as raised:
        tl.serve(Answerer(), tl.NetTLP(lab.device, lab.adapter), seconds=5, ready=fail)
    assert isinstance(raised.value.__cause__, KeyError)
    frames = raised.traceback[-1]
    assert raised.value.__cause__.__traceback__ is not None
    assert "test_nettlp_device.py" in str(raised.value), frames


@pytest.mark.parametrize("language", ["python", "c"])
def test_a_driver_on_a_simulated_machine_and_its_device_elsewhere(language: str, tmp_path: Path) -> None:
    """The driver in Python checks the device's work; its experiment ends when it returns."""
    lab = Lab()
    experiment = str(ROOT / f"examples/{language}/copier.toml")
    device = f"{COPIER}:Copier" if language == "python" else f"lib:{copier_in_c(tmp_path)}"
    model = f"device.copier.model={device}"
    adapter = subprocess.Popen(
        [*TLPLAB, "adapter", experiment, "--set", model, "--serve", f"copier={lab.device}", "-l", lab.adapter, "--json", "-", "--seconds", "40"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert adapter.stderr is not None
    assert "waiting for copier" in said_by(adapter.stderr)
    with running("device", device, *lab.ends):
        out, err = adapter.communicate(timeout=60)
    assert adapter.returncode == 0, err
    assert json.loads(out)["stop_reason"] == "loads-done", err


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (
            ["nobody"],
            2,
            "the devices are copier, memory, nic, nvme, psmem, ring, storage, FILE.py:CLASS and lib:FILE.so",
        ),
        (["lib:none.so"], 2, "there is no such file"),
        (["psmem", "--size", "3KiB"], 2, "a power of two"),
        (["psmem", "-s", "20B"], 2, "60B to 2KiB"),
        (["psmem", "-l", "10.0.0.1"], 2, "--allow-remote"),
        (["psmem", "-l", own_address(), "-r", own_address()], 1, "no answer for messages"),
        (["nic", "--tap", "a-name-that-is-too-long"], 1, "not a valid interface name"),
        (["nowhere.py:Thing"], 2, "there is no such file"),
        ([f"{COPIER}:Copier", "--set", "x"], 2, "KEY=VALUE"),
    ],
)
def test_mistakes_are_named(arguments: list[str], status: int, said: str) -> None:
    done = subprocess.run([*TLPLAB, "device", *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status, done.stderr
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_places_that_cannot_be() -> None:
    for place, said in (
        (tl.NetTLP(mps=300), "powers of two"),
        (tl.NetTLP(local="10.0.0.1"), "allow_remote=True"),
        (tl.NetTLP(requester="xyz"), "bus:device.function"),
    ):
        with pytest.raises(ValueError, match=said):
            tl.serve(Answerer(), place)


class Curious(Answerer):
    """Looks at its own server while it runs."""

    server: _core.Server
    seen = -1

    class regs(tl.Bar, size="4KiB"):
        look = tl.Reg32(0x00)

    @regs.look.on_write
    def on_look(self, cx: tl.Context, n: int) -> None:
        self.seen = dict(self.server.counters())["host_writes"]


def test_a_server_can_be_asked_while_it_runs(lab: Lab) -> None:
    """By another thread, and by the device itself; and ended by another thread. No thread waits for another."""
    device = Curious()
    server = device.server = _core.Server.python(tl.NetTLP(lab.device, lab.adapter).site(), tl.loader.carry(device))
    runs = threading.Thread(target=lambda: server.run(20), daemon=True)
    runs.start()
    lab.dma().write(WINDOW, bytes(4))
    until = time.monotonic() + 10
    while device.seen < 0 and time.monotonic() < until:
        assert dict(server.counters())["host_writes"] <= 1
        time.sleep(0.01)
    server.end()
    runs.join(5)
    assert not runs.is_alive()
    assert device.seen >= 0
    assert dict(server.counters())["host_writes"] == 1


def test_a_table_in_a_window_of_any_size() -> None:
    """The table lies at the end of the window; a device that takes the window for 256 MiB looks for it elsewhere."""
    lab = Lab()
    window = ["--window", "1MiB", "--msix-table", "bar4"]
    with running("adapter", "-l", lab.adapter, "--peer", lab.device, "--peer", lab.other, *window):
        place = tl.NetTLP(lab.device, lab.adapter, timeout_ns=2_000_000_000)
        server = _core.Server.python(place.site(), tl.loader.carry(Answerer()))
        server.run(0.3)
        lab.dma().write(WINDOW + 0x10, (4).to_bytes(4, "little"))
        counters = run_until_interrupted(server)
        assert (counters["interrupts"], counters["dropped_interrupts"]) == (1, 0)
        server.end()
