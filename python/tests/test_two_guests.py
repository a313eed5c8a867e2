"""Two guests with their machines on an Ethernet cable: the output of each, the frames on the cable, and that both are the same again."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from guest import PATIENCE, ROOT, command, needs_guest
from privilege import lacking

from tlplab import outline
from tlplab.cli import status
from tlplab.guest.together import Lines, of_machine

TWO = ROOT / "experiments/linux/two-guests.toml"
# One side asks, the other is there.
SHORT = """
me=$(cat /sys/class/net/eth0/address | tail -c 2)
ip addr add 10.0.0.$me/24 dev eth0
ethtool -C eth0 rx-usecs 0
ip link set eth0 up
[ $me = 1 ] || exec sleep 10
for try in 1 2 3 4 5 6 7 8 9 10; do ping -c 1 -W 1 10.0.0.2 >/dev/null && break; done
ping -c 3 10.0.0.2 | tail -1
"""


@dataclass(frozen=True)
class Together:
    """Two guests that have run."""

    status: int
    lines: list[tuple[float, str, str]]
    """Microseconds, machine and text."""
    document: dict[str, Any]
    errors: str

    def of(self, machine: str) -> list[str]:
        """The lines that a machine's guest printed."""
        return [text for _, its, text in self.lines if its == machine]


def run(folder: Path, *arguments: str | Path, experiment: Path = TWO) -> Together:
    """Runs all guests of an experiment."""
    file = folder / "result.json"
    done = subprocess.run(
        command(experiment, "--json", file, *arguments),
        capture_output=True, text=True, check=False, timeout=PATIENCE, cwd=ROOT, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    lines = []
    for line in done.stdout.splitlines():
        if line.startswith("[") and " µs] " in line:
            stamp, rest = line[1:].split(" µs] ", 1)
            machine, text = rest.split(" | ", 1)
            lines.append((float(stamp.replace(",", "")), machine.strip(), text))
    return Together(done.returncode, lines, json.loads(file.read_text()), done.stderr)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Together]:
    needs_guest()
    folder = tmp_path_factory.mktemp("two")
    return folder, run(folder, "--pcap", folder / "two.pcapng", "--report", folder / "two.html")


@pytest.mark.full
def test_two_guests_ping_and_measure_each_other(two: tuple[Path, Together]) -> None:
    _, told = two
    assert told.status == 0, told.errors
    left, right = told.of("left"), told.of("right")
    assert "3 packets transmitted, 3 packets received, 0% packet loss" in left
    assert any("sender" in line and "Mbits/sec" in line for line in left)
    assert any("receiver" in line and "(0%)" in line for line in right), "no datagram is lost"
    # What one has sent the other has received, as both drivers count.
    counted = {
        machine: dict(line.strip().split(": ") for line in told.of(machine) if re.match(r" +[rt]x_\w+: \d+$", line))
        for machine in ("left", "right")
    }
    for sent, received in (("left", "right"), ("right", "left")):
        for what in ("packets", "bytes"):
            assert counted[sent][f"tx_{what}"] == counted[received][f"rx_{what}"] != "0"
    stamps = [time for time, _, _ in told.lines]
    assert stamps == sorted(stamps), "lines of both in the order of simulated time"


@pytest.mark.full
def test_the_cable_has_a_capture_of_its_own(two: tuple[Path, Together]) -> None:
    folder, told = two
    for name in ("left", "right", "cables"):
        assert (folder / f"two.{name}.pcapng").stat().st_size > 1000
    assert "two.html" not in [path.name for path in folder.iterdir()]
    assert all((folder / f"two.{name}.html").is_file() for name in ("left", "right"))
    if shutil.which("tshark") is None:
        lacking("tshark, which reads the capture of the cable")
    capture = folder / "two.cables.pcapng"
    fields = [
        "-T",
        "fields",
        "-e",
        "frame.interface_name",
        "-e",
        "frame.time_relative",
        "-e",
        "icmp.type",
        "-e",
        "ip.src",
    ]
    done = subprocess.run(["tshark", "-r", capture, *fields], capture_output=True, text=True, check=True)
    frames = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(frames) == told.document["frames"]
    sources = {(name, source) for name, _, _, source in frames if source}
    assert sources == {("wire from left.nic0", "10.0.0.1"), ("wire from right.nic0", "10.0.0.2")}
    asked = sum(kind == "8" for _, _, kind, _ in frames)
    assert asked == sum(kind == "0" for _, _, kind, _ in frames) >= 4, "every echo has its answer"


@pytest.mark.full
def test_two_guests_do_the_same_again(two: tuple[Path, Together], tmp_path: Path) -> None:
    folder, told = two
    again = run(tmp_path, "--pcap", tmp_path / "two.pcapng")
    assert again.lines == told.lines
    hashes = [{name: one["trace_hash"] for name, one in run.document["machines"].items()} for run in (told, again)]
    assert hashes[0] == hashes[1]
    assert (folder / "two.cables.pcapng").read_bytes() == (tmp_path / "two.cables.pcapng").read_bytes()


@pytest.mark.full
def test_a_longer_cable_makes_an_echo_later_by_its_length_there_and_back(tmp_path: Path) -> None:
    needs_guest()
    script = tmp_path / "short.sh"
    script.write_text(SHORT)
    times = []
    for delay in ("500ns", "200500ns"):
        told = run(tmp_path, "--run", script, "--set", f"cable.wire.delay={delay}")
        assert told.status == 0, told.errors
        line = next(line for line in told.of("left") if "round-trip" in line)
        times.append(float(line.split("= ")[1].split("/")[0]))
    assert times[1] - times[0] == pytest.approx(0.4, abs=0.0011), "400 us, where ping shows whole ones"


@pytest.mark.full
def test_the_link_goes_down_with_the_machine_at_the_other_end(tmp_path: Path) -> None:
    needs_guest()
    watch = """
ip link set eth0 up
for try in 1 2 3 4 5 6 7 8 9 10; do [ "$(cat /sys/class/net/eth0/carrier)" = 1 ] && break; sleep 1; done
echo "carrier $(cat /sys/class/net/eth0/carrier)"
[ "$(cat /sys/class/net/eth0/address)" = 02:1d:e5:00:00:01 ] || exit 0
sleep 5
echo "later $(cat /sys/class/net/eth0/carrier)"
"""
    script = tmp_path / "watch.sh"
    script.write_text(watch)
    told = run(tmp_path, "--run", script)
    assert told.status == 0, told.errors
    assert "carrier 1" in told.of("left")
    assert "carrier 1" in told.of("right")
    assert "later 0" in told.of("left")
    assert any("NIC Link is Down" in line for line in told.of("left"))


@pytest.mark.full
def test_the_status_is_that_of_the_machine_that_failed(tmp_path: Path) -> None:
    needs_guest()
    script = tmp_path / "one.sh"
    script.write_text('[ "$(cat /sys/class/net/eth0/address)" = 02:1d:e5:00:00:01 ]\n')
    told = run(tmp_path, "--run", script)
    assert told.status == 1
    assert "right: the guest's script ended with status 1" in told.errors


def test_machines_are_described_with_their_cables() -> None:
    described = outline.read_guests(TWO)
    assert described["outline"] is None
    assert [one["name"] for one in described["machines"]] == ["left", "right"]
    assert described["cables"] == [{"name": "wire", "ends": [[0, "nic0"], [1, "nic0"]], "delay_fs": 500 * 10**6}]
    one = outline.read_guests(ROOT / "experiments/linux/nic.toml")
    assert one["machines"] == []
    assert one["outline"] is not None


def test_one_machine_alone_cannot_be_run(capsys: pytest.CaptureFixture[str]) -> None:
    for command_name in ("run", "lspci"):
        assert status([command_name, str(TWO)]) == 2
        shown = capsys.readouterr().err
        assert "there are several machines: left, right" in shown
        assert "tlplab guest uml" in shown


def test_check_shows_each_machine_and_the_cables(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["check", str(TWO), "--set", "machine.right.device.nic0.link=gen2 x1"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    expected = [
        "Two Linux machines on an Ethernet cable: left", "host", "└── host.rp0", "    └── nic0  gen1 x1  nic",
        f"reads {TWO.parent / 'two-guests-left.sh'}",
        "Two Linux machines on an Ethernet cable: right", "host", "└── host.rp0", "    └── nic0  gen2 x1  nic",
        f"reads {TWO.parent / 'two-guests-right.sh'}",
        "cable wire  left.nic0 – right.nic0, 500 ns",
    ]  # fmt: skip
    assert "".join(shown.out.split()) == "".join("".join(expected).split()), "lines fold"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"right.nic0"]', '"wright.nic0"]', 'cable.wire.ends.1: unknown machine "wright"; did you mean "right"?'),
        ('"right.nic0"]', '"right.nic1"]', 'cable.wire.ends.1: "right" has no NIC "nic1"; did you mean "nic0"?'),
        ('"right.nic0"]', '"left.nic0"]', 'cable.wire.ends: "nic0" has one port'),
        ("gen1 x1", "gen1 x3", "device.nic0.link"),
        ('"two-guests-right.sh"', '"none.sh"', "there is no such file"),
        ("[machine.right]", '[machine.right]\ndevice.x = { under = "host.rp9" }', "device.x: link is missing"),
        ("[machine.left]", "[machine.left]\nlod = 1", 'unknown key "lod"'),
    ],
)
def test_check_refuses_a_wrong_machine_or_cable(
    old: str, new: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = TWO.read_text(encoding="utf-8")
    assert text.count(old) == 1
    (tmp_path / "two.toml").write_text(text.replace(old, new), encoding="utf-8")
    for side in ("left", "right"):
        (tmp_path / f"two-guests-{side}.sh").touch()
    assert status(["check", str(tmp_path / "two.toml")]) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.err.count("Error") == 1
    assert "Traceback" not in shown.err
    assert shown.out == ""


@pytest.mark.full
def test_a_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    needs_guest()
    assert status(["guest", "uml", str(TWO), "--shell"]) == 2
    assert "one terminal is not enough" in capsys.readouterr().err


def test_lines_wait_until_all_machines_are_as_far() -> None:
    shown: list[tuple[int, str, str]] = []
    lines = Lines(lambda *line: shown.append(line))
    lines.add("b")(30, "late")
    lines.add("a")(10, "early")
    lines.pass_on(20)
    assert shown == [(10, "a", "early")]
    lines.pass_on(None)
    assert shown == [(10, "a", "early"), (30, "b", "late")]


def test_files_have_the_name_of_their_machine() -> None:
    assert of_machine("out/run.pcapng", "left") == "out/run.left.pcapng"
    assert of_machine(None, "left") is None
