"""Unmodified e1000e on the 82574-like NIC: a card that comes and goes, sleep, moderation, and a ring that stands still."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from guest import ROOT, Guest, needs_guest, run

from studies.pcie_bench.guest import OTHERS
from tlplab.cli import status
from tlplab.torture.classes import PER_SECOND, Bar, read

NIC = ROOT / "experiments/linux/nic.toml"
SENDS = ("--set", "device.nic0.direction=transmit")
RECEIVES = ("--set", "device.nic0.direction=receive", "--set", "device.nic0.requests=20000")
# Where Linux puts the NIC's registers, and which of them gives it frames to send.
REGISTERS = Bar(0, range(0xF000_0000, 0xF002_0000), range(0))
TRANSMIT_TAIL = "BAR0+0x3818"
CARRIER = """
carrier() {
  for try in 1 2 3 4 5 6 7 8 9 10; do
    [ "$(cat /sys/class/net/eth0/carrier 2>/dev/null)" = 1 ] && return 0
    sleep 1
  done
  echo "no carrier"
  return 1
}
up() {
  ip addr add 10.0.0.1/24 dev eth0
  ip link set eth0 up
  arp -s 10.0.0.2 2:0:0:0:0:2
  carrier
}
"""
pytestmark = pytest.mark.full


def boot(folder: Path, script: str, *arguments: str | Path) -> Guest:
    """Runs a script in a guest with the NIC, after the functions it may use."""
    needs_guest()
    file = folder / "script.sh"
    file.write_text(CARRIER + script)
    guest = run(folder, "--run", file, *arguments, experiment=NIC)
    assert guest.status == 0, guest.console[-20:]
    return guest


def counter(guest: Guest, name: str) -> int:
    """A counter as `ethtool -S` shows it."""
    return int(next(line for line in guest.console if line.strip().startswith(f"{name}:")).split(": ")[1])


def test_a_card_that_is_pulled_out_and_put_back_sends_again(tmp_path: Path) -> None:
    script = """
up
sleep 2
echo "gone: $(ls /sys/class/net)"
sleep 2
up
ping -c 2 -W 1 -q 10.0.0.2 >/dev/null
ethtool -S eth0 | grep tx_packets
"""
    away = 'fault=[{link="nic0",down="1.5s",until="3s"}]'
    guest = boot(tmp_path, script, *SENDS, "--set", "device.nic0.under=host.rp1", "--set", away)
    assert "gone: lo" in guest.console
    assert guest.said(": Card not present"), guest.console
    assert guest.said(": Card present")
    assert counter(guest, "tx_packets") == 2
    assert len(guest.result["outages"]) == 1


def test_the_interface_sleeps_with_the_machine_and_sends_again(tmp_path: Path) -> None:
    script = """
up
echo +5 >/sys/class/rtc/rtc0/wakealarm
echo mem >/sys/power/state
carrier
ping -c 2 -W 1 -q 10.0.0.2 >/dev/null
ethtool -S eth0 | grep tx_packets
"""
    guest = boot(tmp_path, script, *SENDS)
    assert guest.said("PM: suspend exit")
    assert counter(guest, "tx_packets") == 2


def test_moderation_makes_fewer_interrupts_for_the_same_frames(tmp_path: Path) -> None:
    counts = {}
    for delay in (0, 1000):
        script = f"""
ethtool -C eth0 rx-usecs {delay}
up
sleep 2
ethtool -S eth0 | grep -E 'rx_(packets|missed_errors)'
grep eth0-rx /proc/interrupts
"""
        guest = boot(tmp_path, script, *RECEIVES)
        # The wire has sent so many, and each of them is accounted for.
        assert counter(guest, "rx_packets") + counter(guest, "rx_missed_errors") == 20_000
        line = next(line for line in guest.console if "eth0-rx" in line)
        counts[delay] = int(line.split()[1])
    assert counts[0] > 10 * counts[1000] > 0


def test_the_watchdog_resets_a_ring_of_which_the_tail_has_lost_a_write(tmp_path: Path) -> None:
    script = """
up
sleep 5
ping -c 1 -W 1 -q 10.0.0.2 >/dev/null
sleep 20
ping -c 2 -W 1 -q 10.0.0.2 >/dev/null
ethtool -S eth0 | grep -E 'tx_(packets|timeout_count)'
"""
    capture = tmp_path / "clean.pcapng"
    clean = boot(tmp_path, script, *SENDS, "--pcap", capture)
    assert (counter(clean, "tx_packets"), counter(clean, "tx_timeout_count")) == (3, 0)
    tails = [tlp for tlp in read(capture, {"nic0": 1}, [REGISTERS]) if tlp.where == TRANSMIT_TAIL]
    first = next(tlp for tlp in tails if tlp.kind == "MWr" and tlp.time > 4 * PER_SECOND)
    lost = f'fault=[{{link="nic0",direction="down",of="MWr",tlp={first.number},damage="lose"}}]'
    guest = boot(tmp_path, script, *SENDS, "--set", lost)
    assert guest.said("NETDEV WATCHDOG")
    assert guest.said("Reset adapter unexpectedly")
    # The frame of the lost write is gone with the ring; those after the reset are sent.
    assert (counter(guest, "tx_packets"), counter(guest, "tx_timeout_count")) == (2, 1)


def figures(page: str) -> list[tuple[str, float]]:
    """Lines of a page; a row of its table without the measured figure and the error that follows from it, and this figure (otherwise 0)."""
    lines: list[tuple[str, float]] = []
    for line in page.splitlines():
        if re.match(r"\| (sender|receiver):", line):
            cells = line.split(" | ")
            lines.append((" | ".join([*cells[:2], *cells[4:]]), float(cells[2])))
        else:
            lines.append((line, 0))
    return lines


def test_the_packets_of_e1000e_match_the_study(tmp_path: Path) -> None:
    needs_guest()
    page = tmp_path / "guest.md"
    assert status(["reproduce", "pcie-bench", "--guest", "--markdown", str(page), "--quiet"]) == 0
    ours, kept = (figures(path.read_text()) for path in (page, ROOT / "studies/pcie_bench/guest.md"))
    assert [line for line, _ in ours] == [line for line, _ in kept]
    # Interrupts are moderated by time: their number depends on when the first packet leaves, by one of two hundred.
    for (line, figure), (_, expected) in zip(ours, kept, strict=True):
        assert figure == pytest.approx(expected, rel=0.011 if "interrupt" in line else 0), line
    # No request is left out.
    assert page.read_text().count(f"{OTHERS} | – | 0 |") == 2
