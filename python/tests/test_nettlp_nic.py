"""The simple NIC over NetTLP: two machines' network stacks talk through it, and it reads on the wire as the paper shows.

One namespace has the device with a TAP interface as its port; the other has the adapter, behind it a simulated host with
the NIC's driver, and a TAP interface as that driver's stack. Between them are NetTLP and a cable.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from netns import End, cable, ip
from privilege import lacking
from said import said_by

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENT = ROOT / "studies/nettlp/simple-nic.toml"
TRAFFIC = Path(__file__).with_name("traffic.py")
TLPLAB = [sys.executable, "-m", "tlplab"]
# Where a host on which nobody says otherwise takes message signalled interrupts.
MESSAGES = 0xFEE00000
FAR, NEAR = "192.168.77.1", "192.168.77.2"
START_SECONDS = 30


def wait_for(what: str, holds: Callable[[], bool]) -> None:
    until = time.monotonic() + START_SECONDS
    while not holds():
        assert time.monotonic() < until, f"{what}: not within {START_SECONDS} s"
        time.sleep(0.05)


def has(end: End, interface: str) -> bool:
    return end.run("ip", "link", "show", interface).returncode == 0


@contextlib.contextmanager
def through_the_nic(folder: Path, *options: str) -> Iterator[tuple[End, End]]:
    """The end with the driver, and the end with the device."""
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        lacking("TAP interfaces need /dev/net/tun")
    with contextlib.ExitStack() as stack:
        near, far = stack.enter_context(cable())
        for end in (near, far):
            # Or the interfaces talk by themselves.
            end.run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
        log = stack.enter_context((folder / "log.txt").open("w+"))
        own: dict[str, Any] = {"stdout": log, "stderr": subprocess.STDOUT}
        stack.enter_context(
            near.running(
                *TLPLAB, "adapter", str(EXPERIMENT), "--serve", f"nic={far.address}", "--local", near.address,
                "--tap", "nic=tapB", "--allow-remote", *options, **own,
            )
        )  # fmt: skip
        wait_for("the adapter", lambda: "waiting for nic" in (folder / "log.txt").read_text())
        stack.enter_context(
            far.running(*TLPLAB, "device", "nic", "-l", far.address, "-r", near.address, "--tap", "tapA", "--allow-remote", "--timeout", "2000", **own)
        )  # fmt: skip
        wait_for("the device", lambda: has(far, "tapA") and "time starts" in (folder / "log.txt").read_text())
        macs = [
            end.run("cat", f"/sys/class/net/{tap}/address").stdout.strip()
            for end, tap in ((near, "tapB"), (far, "tapA"))
        ]
        sides = ((near, NEAR, "tapB", FAR, macs[1]), (far, FAR, "tapA", NEAR, macs[0]))
        for end, address, tap, other, mac in sides:
            ip("-n", end.namespace, "address", "add", f"{address}/24", "dev", tap)
            ip("-n", end.namespace, "neighbour", "replace", other, "lladdr", mac, "dev", tap, "nud", "permanent")
        yield near, far


def traffic(end: End, *arguments: object) -> str:
    done = end.run(sys.executable, str(TRAFFIC), *map(str, arguments))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@contextlib.contextmanager
def waiting(end: End, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """The other half of the data in one direction."""
    with end.running(sys.executable, str(TRAFFIC), *map(str, arguments), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert said_by(process.stdout) == "ready\n"
        yield process


def test_two_machines_talk_through_the_nic(tmp_path: Path) -> None:
    with through_the_nic(tmp_path) as (near, far):
        # 1472 B of data, 8 B and 20 B of headers: a packet of 1500 B, which must not be cut.
        for end, other in ((near, FAR), (far, NEAR)):
            assert traffic(end, "ping", other, 20, 56) == "20"
            assert traffic(end, "ping", other, 20, 1472) == "20"
        for end, taking, address in ((near, far, FAR), (far, near, NEAR)):
            with waiting(taking, "take", address) as taker:
                given = traffic(end, "give", address, 4 << 20)
                assert taker.communicate(timeout=30)[0].strip() == given
            with waiting(taking, "listen", address, 200, 1472) as listener:
                traffic(end, "throw", address, 200, 1472)
                came = int(listener.communicate(timeout=30)[0])
            # Datagrams may be lost when this machine is busy, but none may come damaged.
            assert came >= 150


LINE = re.compile(r"NetTLP: (?P<kind>\w+), len (?P<len>\d+).*?(?:, bc (?P<bc>\d+))?.*?(?:Addr (?P<addr>0x[0-9a-f]+))?$")


def test_a_ping_reads_as_in_the_paper(tmp_path: Path) -> None:
    capture = tmp_path / "nic.pcapng"
    with through_the_nic(tmp_path, "--set", "device.nic.entries=1", "--pcap", str(capture)) as (near, _):
        for _ in range(2):
            # The first may find the driver still giving its buffer.
            assert traffic(near, "ping", FAR, 1, 56) == "1"
            time.sleep(0.5)
    dumped = subprocess.run([*TLPLAB, "dump", str(capture)], capture_output=True, text=True, check=True).stdout
    lines = [line for line in dumped.splitlines() if "NetTLP: " in line]
    seen = []
    for line in lines:
        match = LINE.search(line)
        assert match is not None, line
        seen.append((match["kind"], int(match["len"]), None if match["addr"] is None else int(match["addr"], 16)))
    begin = max(
        i for i, (kind, _, addr) in enumerate(seen) if kind == "MWr" and addr is not None and addr & 0xFFF == 0x10
    )
    sent, received = seen[begin : begin + 6], seen[begin + 6 : begin + 12]
    # Doorbell, descriptor, 98 B of packet, interrupt; then packet, descriptor, interrupt, doorbell, descriptor.
    assert [what[:2] for what in sent] == [("MWr", 1), ("MRd", 4), ("CplD", 4), ("MRd", 25), ("CplD", 25), ("MWr", 1)]
    assert [what[:2] for what in received] == [("MWr", 25), ("MWr", 4), ("MWr", 1), ("MWr", 1), ("MRd", 4), ("CplD", 4)]
    assert received[3][2] == (sent[0][2] or 0) + 4, "the receive doorbell is behind the other"
    assert received[1][2] == received[4][2], "the descriptor that was written is read again"
    assert {sent[5][2], received[2][2]} == {MESSAGES}, "the vectors differ in what is written there"


def test_frames_lost_at_a_tap_interface_are_counted(tmp_path: Path) -> None:
    """The interface of the driver is taken down, and the kernel takes none of the frames that arrive."""
    result = tmp_path / "near.json"
    with through_the_nic(tmp_path, "--json", str(result), "--seconds", "6") as (near, far):
        assert traffic(far, "ping", NEAR, 5, 56) == "5"
        ip("-n", near.namespace, "link", "set", "tapB", "down")
        traffic(far, "throw", NEAR, 20, 1472)
        wait_for("the result", result.exists)
    taps = json.loads(result.read_text())["adapter"]["taps"]
    assert taps == [{"device": "nic", "interface": "tapB", "lost_frames": 20}]
    assert "20 frames between nic and tapB were lost" in (tmp_path / "log.txt").read_text()
