"""`tlplab dump`: the command, on captures that are made here."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from privilege import lacking

from tlplab import cli, quantities
from tlplab.nettlp import capture
from tlplab.nettlp.capture_plot import figure

COMMAND = [sys.executable, "-m", "tlplab", "dump"]
READ = bytes.fromhex("00427ea4669c" + "000000801b0005ffa0000000")
HALVES = [
    bytes.fromhex("00437ea4669d" + f"4a00004019000{left}001b000500") + bytes(256) for left in (2, 1)
]  # fmt: skip
TIMES = 1_500_000_000


def datagram(payload: bytes, *, back: bool = False, port: int = 0x3005) -> bytes:
    ends = [bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])]
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 28 + len(payload), 0, 0, 64, 17, 0) + b"".join(ends[:: -1 if back else 1])
    return (bytes(12) + b"\x08\x00" + ip + struct.pack(">HHHH", port, port, 8 + len(payload), 0) + payload).ljust(
        60, b"\0"
    )


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A read, its two completions, something malformed, something else."""
    frames = [
        datagram(READ),
        *(datagram(half, back=True) for half in HALVES),
        datagram(READ[:10]),
        datagram(READ, port=53),
    ]
    path = tmp_path / "made.pcap"
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        for count, frame in enumerate(frames):
            file.write(struct.pack("<IIII", TIMES, count * 1500, len(frame), len(frame)) + frame)
    return path


def output(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> list[str]:
    assert cli.status(["dump", *arguments]) == status
    return capsys.readouterr().out.splitlines()


def test_lines_filters_and_times(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = output(capsys, str(made), "-tt")
    assert lines[0] == (
        "1500000000.000000000 IP 10.0.0.1.12293 > 10.0.0.2.12293: NetTLP: MRd, len 128, requester 1b:00.0, tag 0x05,"
        " last 0xf, first 0xf, Addr 0xa0000000"
    )
    assert len(lines) == 4
    assert lines[3].endswith(
        "NetTLP: malformed: the datagram has 10 bytes, but the NetTLP header and the smallest TLP take 18"
    )
    shown = output(capsys, str(made), "type=CplD", "requester=1b:00", "-ttt", "-v", "-c", "1")
    assert len(shown) == 1
    assert ", bc 512, requester 1b:00.0, tag 0x05, lowaddr 0x00, seq 67, tstamp 2124703389, data 00" in shown[0]


def test_the_standard_input_is_called_so() -> None:
    done = subprocess.run([*COMMAND, "-"], input=b"no capture", capture_output=True, check=False)
    assert done.returncode == 2
    assert b"standard input: it is not a capture" in done.stderr


def test_json_lines(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.loads(line) for line in output(capsys, str(made), "--json", "-")]
    assert [line.get("response_to") for line in lines] == [None, 1, 1, None]
    assert lines[2]["latency_ns"] == 3000
    assert lines[0]["time"] == f"{TIMES}.000000000"
    output(capsys, str(made), "malformed", "--json", str(tmp_path / "bad.json"))
    assert json.loads((tmp_path / "bad.json").read_text(encoding="utf-8"))["frame"] == 4


def test_the_summary(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot = tmp_path / "tags.svg"
    text = "\n".join(output(capsys, str(made), "--summary", "--plot", str(plot)))
    assert "512 B read × 1" in text
    assert "256 B × 2" in text
    assert "Malformed: 1 of 5 frames" in text
    assert all(len(line) <= 80 for line in text.splitlines()), text
    reader = capture.read(str(made), (), points=True)
    axes = figure("made", json.loads(reader.summary()), reader.points().to_numpy()).axes
    assert [one.get_title(loc="left") for one in axes] == ["10.0.0.1 → 10.0.0.2", "10.0.0.2 → 10.0.0.1", ""]
    ((asked,), (answered,)) = ([np.asarray(line.get_ydata()).tolist() for line in one.lines] for one in axes[:2])
    assert (asked, answered) == ([5], [5, 5]), "a dot for each TLP, at its tag"
    assert plot.read_text(encoding="utf-8").startswith("<?xml")
    document = json.loads("\n".join(output(capsys, str(made), "--summary", "--json", "-")))
    assert document["schema"] == "tlplab/capture/1"
    assert document == capture.summarise(str(made))
    assert document["directions"][0]["latency_ns"]["p50"] == 3000
    only = capture.summarise(str(made), ["type=MRd"])
    assert (only["tlps"], only["malformed"]) == (1, [])


# Reads a capture as the command does, and tells the TLPs and by how many KiB memory has grown.
SUM_UP = """
import json, resource, sys
from tlplab.nettlp import capture
most = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
capture.summarise(sys.argv[1])
before = most()
print(capture.summarise(sys.argv[2])["tlps"], most() - before)
"""


def test_a_long_capture_takes_no_more_memory_than_a_short_one(tmp_path: Path) -> None:
    frames = [datagram(READ), *(datagram(half, back=True) for half in HALVES)]
    long, short = tmp_path / "long.pcap", tmp_path / "short.pcap"
    for path, count in ((short, 30_000), (long, 240_000)):
        with path.open("wb") as file:
            file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
            for number in range(count):
                frame = frames[number % 3]
                # No two latencies are the same.
                since = number * 10_000 + number * number % 9973
                at = struct.pack("<IIII", TIMES + since // 10**9, since % 10**9, len(frame), len(frame))
                file.write(at + frame)
    done = subprocess.run(
        [sys.executable, "-c", SUM_UP, str(short), str(long)], capture_output=True, text=True, check=True, timeout=60
    )
    tlps, grown = map(int, done.stdout.split())
    assert tlps == 240_000
    assert grown < 4096, "KiB; 200 bytes for each TLP would be 40 MiB"


def test_ranges_of_tags() -> None:
    assert quantities.ranges([24, 25, 26, 100, 249]) == "24-26, 100, 249"
    assert quantities.ranges([]) == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{made}", "tga=3"], "unknown key; expected one of type, tag"),
        (["{made}", "tag=1", "or"], "the filter ends where a test is expected"),
        (["no-such-thing"], "no such file or interface; expected a file or one of the interfaces"),
        (["{text}"], "it is not a capture; expected pcap or pcapng"),
        (["{text}", "--summary"], "it is not a capture; expected pcap or pcapng"),
        (["{made}", "-w", "{made}"], "both name"),
        (["{made}", "--summary", "-c", "3"], "-w and -c are for lines"),
        (["{made}", "--plot", "tags.gif"], "name a file that ends in .png, .svg or .pdf"),
        (["{made}", "-tttttt"], "-t can be given five times at most"),
    ],
)
def test_mistakes(
    arguments: list[str], message: str, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("no capture\n", encoding="utf-8")
    given = [argument.format(made=made, text=tmp_path / "text") for argument in arguments]
    assert cli.status(["dump", *given]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_pipe_is_shown_as_it_comes(made: Path) -> None:
    with subprocess.Popen([*COMMAND, "-", "-c", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        content = made.read_bytes()
        running.stdin.write(content[: 24 + 16 + 60])  # the header and the first frame; the pipe stays open
        running.stdin.flush()
        assert b"MRd, len 128" in running.stdout.readline()
        assert running.wait(timeout=20) == 0


# Runs in a network namespace of its own, where nobody else talks: sends a datagram until it is shown, then ends with Ctrl-C.
HEAR = """
import os, signal, socket, subprocess, sys, time
payload, folder, here, there, links, *command = sys.argv[1:]
payload = bytes.fromhex(payload)
made = subprocess.run(["ip", "-batch", "-"], input=links, text=True)
if made.returncode:
    sys.exit("no such links here")
if there:
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind((there, 0x3005))
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.bind((here, 0x3005))
    sender.connect((there, 0x3005))
else:
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sender.bind((here, 0))
lines = os.path.join(folder, "lines")
with open(lines, "w") as out:
    running = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, text=True)
    for sent in range(1, 200):
        sender.send(payload)
        time.sleep(0.1)
        if os.path.getsize(lines) or running.poll() is not None:
            break
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    told = running.communicate(timeout=30)[1]
print(sent, running.returncode, told.strip())
"""


# What is sent, from where, to where (nowhere: a frame as it stands), and the links for that.
LOOPBACK = (READ.hex(), "127.0.0.1", "127.0.0.2", "link set lo up")
TAGS = b"\x88\xa8\x00\x64\x81\x00\x00\x65"
CABLE = "link add near type veth peer name far\nlink set near up\nlink set far up"
TAGGED = ((bytes(12) + TAGS + datagram(READ)[12:]).hex(), "near", "", CABLE)
TUNNEL = (*LOOPBACK[:3], LOOPBACK[3] + "\nlink add other type ipip local 127.0.0.1 remote 127.0.0.2")


def heard(tmp_path: Path, network: Sequence[str], *arguments: str) -> tuple[int, int, str, list[str]]:
    """The number of sendings, and the status, last line and lines of a dump."""
    if os.geteuid() != 0 or not (shutil.which("unshare") and shutil.which("ip")):
        lacking("to hear an interface takes root, unshare and ip")
    payload, *ends = network
    hear = ["unshare", "-n", sys.executable, "-c", HEAR, payload, str(tmp_path), *ends, *COMMAND, *arguments]
    done = subprocess.run(hear, capture_output=True, text=True, timeout=60)
    if "unshare" in done.stderr:
        lacking(f"no network namespace: {done.stderr}")
    if "no such links" in done.stderr:  # of a kind that not every kernel has
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    sent, status, told = done.stdout.strip().split(" ", 2)
    return int(sent), int(status), told, (tmp_path / "lines").read_text(encoding="utf-8").splitlines()


def test_an_interface_is_heard(tmp_path: Path) -> None:
    copy = tmp_path / "copy.pcapng"
    sent, status, told, lines = heard(tmp_path, LOOPBACK, "lo", "-w", str(copy))
    assert "IP 127.0.0.1.12293 > 127.0.0.2.12293: NetTLP: MRd, len 128, requester 1b:00.0, tag 0x05" in lines[0]
    assert 1 <= len(lines) <= sent, "each is shown once"
    assert (status, told) == (
        130, f"{len(lines)} of {len(lines)} frames shown, 0 malformed, 0 other traffic, 0 dropped by the kernel",
    )  # fmt: skip
    again = subprocess.run([*COMMAND, str(copy)], capture_output=True, text=True, check=True, timeout=20)
    assert again.stdout.splitlines() == lines


def test_tags_that_the_kernel_takes_off_are_put_back(tmp_path: Path) -> None:
    copy = tmp_path / "copy.pcapng"
    *_, lines = heard(tmp_path, TAGGED, "far", "-v", "vlan=100", "-w", str(copy))
    assert "IP 10.0.0.1.12293 > 10.0.0.2.12293: NetTLP: MRd, len 128" in lines[0]
    assert lines[0].endswith(", vlan 100")
    assert TAGS + b"\x08\x00" in copy.read_bytes()


def test_an_interface_of_another_kind_is_refused(tmp_path: Path) -> None:
    _, status, told, lines = heard(tmp_path, TUNNEL, "other")
    assert (status, lines) == (2, [])
    assert "other: its frames are neither Ethernet nor IP (hardware type 768)" in told
