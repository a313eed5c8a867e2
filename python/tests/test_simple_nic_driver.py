"""The simple NIC under Linux, by the driver of `driver/simple_nic`: in virtual time and in an ordinary guest, with the device in Python and in Rust."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import ordinary_guest
import pytest
from guest import ROOT, Guest, needs_guest, needs_tools, run
from netns import cable
from privilege import lacking

TRAFFIC = Path(__file__).with_name("traffic.py")
EXPERIMENT = ROOT / "experiments/linux/simple-nic.toml"
RUST = ("--set", "device.nic0.model=simple-nic")
# Frames that nobody answers, and that come back: each second asks for an address.
UP = "insmod /lib/modules-tlplab/simple_nic.ko; ip addr add 10.0.1.1/24 dev eth0; ip link set eth0 up"
PING = "ping -c 4 -W 1 10.0.1.2 >/dev/null"
COUNT = "grep . /sys/class/net/eth0/statistics/[rt]x_packets; ethtool -S eth0"
pytestmark = pytest.mark.full


def counters(guest: Guest) -> dict[str, int]:
    """The last counters of `ethtool -S` and of the files of statistics."""
    cells = [line.replace("/sys/class/net/eth0/statistics/", "").strip().split(":") for line in guest.console]
    return {name: int(value) for name, value in (cell for cell in cells if len(cell) == 2) if value.strip().isdigit()}


@pytest.mark.parametrize("model", [pytest.param((), marks=pytest.mark.long), RUST], ids=["python", "rust"])
def test_ping_and_iperf_go_through_a_nic_in_a_process(tmp_path: Path, model: tuple[str, ...]) -> None:
    needs_guest()
    guest = run(tmp_path, *model, experiment=EXPERIMENT)
    assert guest.status == 0, "\n".join([guest.errors, *guest.console[-30:]])
    assert guest.said("3 packets transmitted, 3 packets received, 0% packet loss")
    assert guest.said("iperf Done.")
    assert guest.said("the kernel has nothing to complain about")
    assert counters(guest)["card_rx_frames"] > 2000


def test_each_write_that_is_lost_is_made_good(tmp_path: Path) -> None:
    """Registers, the MSI-X table, doorbells, heads and interrupts, one lost in each boot; one frame goes out and comes back."""
    needs_guest()
    script = f"{UP}; arp -s 10.0.1.2 2:0:0:0:0:2; ping -c 1 -W 1 10.0.1.2 >/dev/null; sleep 4; {COUNT}"
    made_good = set()
    # What is written down to the card, the first to its MSI-X table, and up from it: two heads and interrupts, a frame and its descriptor.
    for direction, tlps in (("down", range(9, 21)), ("up", range(1, 7))):
        for tlp in tlps:
            fault = f'fault=[{{link="nic0", direction="{direction}", of="MWr", tlp={tlp}, damage="lose"}}]'
            guest = run(tmp_path, *RUST, "--set", fault, "--run", script, experiment=EXPERIMENT)
            assert guest.status == 0, guest.errors
            found = counters(guest)
            assert (found["tx_packets"], found["card_tx_frames"]) == (1, 1), (direction, tlp, found)
            assert (found["rx_packets"], found["card_rx_frames"]) == (1, 1), (direction, tlp, found)
            made_good |= {name for name, value in found.items() if "repeated" in name or "missed" in name if value}
    assert made_good == {"tx_repeated_doorbells", "tx_missed_interrupts", "rx_missed_interrupts"}


def test_rings_that_do_not_get_on_are_started_anew(tmp_path: Path) -> None:
    """All doorbells of six seconds are lost; the frame of that time is counted as dropped, and those after it pass."""
    needs_guest()
    lost = ",".join(f'{{link="nic0", direction="down", of="MWr", tlp={tlp}, damage="lose"}}' for tlp in range(19, 33))
    ping = "ping -c {} -W 1 10.0.1.2 >/dev/null"
    script = f"{UP}; arp -s 10.0.1.2 2:0:0:0:0:2; {ping.format(1)}; sleep 15; {ping.format(2)}; {COUNT}; grep . /sys/class/net/eth0/statistics/tx_dropped /dev/null"
    guest = run(tmp_path, *RUST, "--set", f"fault=[{lost}]", "--run", script, experiment=EXPERIMENT)
    assert guest.status == 0, guest.errors
    assert guest.said("NETDEV WATCHDOG")
    found = counters(guest)
    assert (found["restarts"], found["tx_dropped"]) == (1, 1)
    assert found["tx_packets"] == found["rx_packets"] == found["card_tx_frames"] == 2


def test_a_nic_that_is_pulled_out_and_one_that_sleeps(tmp_path: Path) -> None:
    needs_guest()
    pulled = 'fault=[{link="nic0", down="1.5s", until="2.6s"}]'
    script = f"{UP}; sleep 4; ip link set eth0 up; ip addr add 10.0.1.1/24 dev eth0; {PING}; {COUNT}; dmesg -r"
    guest = run(tmp_path, *RUST, "--set", "device.nic0.under=host.rp1", "--set", pulled, "--run", script, experiment=EXPERIMENT)  # fmt: skip
    assert guest.status == 0, guest.errors
    # First the port tells of an error, from which there is no recovery without a link, then of a slot that is empty.
    assert guest.said("AER: device recovery failed")
    assert guest.said("Card not present")
    assert sum("eth0: rings" in line and "<" not in line for line in guest.console) == 2
    assert counters(guest)["rx_packets"] >= 3
    assert not [line for line in guest.console if "WARNING" in line or "BUG" in line]

    asleep = "echo +5 >/sys/class/rtc/rtc0/wakealarm; echo mem >/sys/power/state"
    guest = run(tmp_path, *RUST, "--run", f"{UP}; {PING}; {asleep}; {PING}; {COUNT}; dmesg", experiment=EXPERIMENT)
    assert guest.status == 0, guest.errors
    assert guest.said("PM: suspend exit")
    found = counters(guest)
    assert found["rx_packets"] == found["tx_packets"] >= 6


@pytest.mark.parametrize("device", ["simple-nic", f"{ROOT}/examples/python/simple_nic.py:SimpleNic"])
def test_an_ordinary_guest_pings_through_a_nic_in_a_process(tmp_path: Path, device: str) -> None:
    needs_tools()
    guest = ordinary_guest.run(tmp_path, device, "--run", ROOT / "experiments/linux/simple-nic.sh")
    assert guest.status == 0, "\n".join([guest.errors, *guest.console[-30:]])
    assert "3 packets transmitted, 3 packets received, 0% packet loss" in guest.console
    assert "iperf Done." in guest.console
    assert "the kernel has nothing to complain about" in guest.console


def test_the_guest_is_on_a_network_of_this_machine(tmp_path: Path) -> None:
    """By a TAP interface in a network namespace, from where the guest is pinged."""
    needs_tools()
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        lacking("TAP interfaces need /dev/net/tun")
    script = (
        "insmod /lib/modules-tlplab/simple_nic.ko; ip addr add 10.1.0.2/24 dev eth0; ip link set eth0 up; touch /share/up; "
        "until [ -e /share/done ]; do sleep 0.1; done; cat /sys/class/net/eth0/statistics/rx_errors"
    )
    guest = ordinary_guest.command("simple-nic,tap=tap0", "--share", tmp_path, "--run", script)
    with cable() as (end, _), end.running(*guest, stdout=subprocess.PIPE) as process:
        until = time.monotonic() + ordinary_guest.PATIENCE
        while not (tmp_path / "up").exists():
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.1)
        end.run("ip", "addr", "add", "10.1.0.1/24", "dev", "tap0")
        for size in (56, 1472):
            pinged = end.run(sys.executable, str(TRAFFIC), "ping", "10.1.0.2", "20", str(size))
            assert pinged.stdout.strip() == "20", pinged.stderr
        (tmp_path / "done").touch()
        assert process.wait(timeout=ordinary_guest.PATIENCE) == 0
