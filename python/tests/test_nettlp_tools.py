"""`tlplab dma`, `cfg` and `perf` against `tlplab adapter`: on the loopback interface, and between network namespaces."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import netns
import pytest

from tlplab.cli import status
from tlplab.errors import RunError
from tlplab.nettlp import perf
from tlplab.nettlp.cfg import REGISTERS
from tlplab.nettlp.dma import CHUNK, chunks, rows
from tlplab.nettlp.end import End, bdf
from tlplab.nettlp.loopback import own_address

ROOT = Path(__file__).resolve().parents[2]
TLPLAB = [sys.executable, "-m", "tlplab"]
# Not the default address, where an adapter of somebody else may be.
ABSENT = own_address()
NOBODY = ["-l", own_address(), "-r", ABSENT]
# An adapter is there after so many seconds, also on a busy machine.
PATIENCE = 30


@dataclass(frozen=True)
class Pair:
    """Addresses of a device and of the adapter that serves it."""

    device: str
    adapter: str

    @property
    def options(self) -> list[str]:
        """The options that name them."""
        return ["-l", self.device, "-r", self.adapter]

    def run(self, *arguments: str) -> int:
        """Runs a command of the command line here; its exit status."""
        return status([*arguments, *self.options])


@pytest.fixture
def pair() -> Iterator[Pair]:
    """An adapter with 1 MiB of memory, on addresses that no other test has."""
    pair = Pair(own_address(), own_address())
    command = [
        *TLPLAB,
        "adapter",
        "-l",
        pair.adapter,
        "--peer",
        f"{pair.device}=2a:03.1",
        "--memory",
        "1MiB",
        "--quiet",
    ]
    with subprocess.Popen(command) as process:
        try:
            wait_for(lambda: ask(pair, process))
            yield pair
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(10)


def ask(pair: Pair, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "the adapter has ended"
    with contextlib.redirect_stdout(None), contextlib.redirect_stderr(None):
        return pair.run("cfg", "read", "-a", "0") == 0


def wait_for(condition: object) -> None:
    assert callable(condition)
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "the adapter does not answer"
        time.sleep(0.05)


def taken(address: str) -> bool:
    """True if tag 0 is in use at that address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0x3000))
        except OSError:
            return True
    return False


def test_memory_is_written_and_read(pair: Pair, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert pair.run("dma", "write", "-a", "0xffd", "--text", "hello, world", "--tag", "5") == 0
    assert pair.run("dma", "write", "-a", "0x1010", "--hex", "de ad be ef") == 0
    assert pair.run("dma", "flush", "-a", "0x1000") == 0
    assert capsys.readouterr().out == ""
    assert pair.run("dma", "read", "-a", "0xffd", "-s", "24") == 0
    assert capsys.readouterr().out.splitlines() == [
        "00000ff0                                          68 65 6c  |             hel|",
        "00001000  6c 6f 2c 20 77 6f 72 6c  64 00 00 00 00 00 00 00  |lo, world.......|",
        "00001010  de ad be ef 00                                    |.....           |",
    ]
    data = bytes(at * 7 % 251 for at in range(300_001))
    (tmp_path / "in").write_bytes(data)
    assert (
        pair.run("dma", "write", "-a", "3", "-i", str(tmp_path / "in"), "--verify", "--retry", "3", "--timeout", "2000")
        == 0
    )
    assert pair.run("dma", "read", "-a", "3", "-s", str(len(data)), "-o", str(tmp_path / "out"), "--tag", "0-63", "--timeout", "2000") == 0  # fmt: skip
    assert (tmp_path / "out").read_bytes() == data
    # With digests and acknowledgements it is the same.
    more = ["--ecrc", "--acknowledge", "--timeout", "2000"]
    assert pair.run("dma", "write", "-a", "7", "-i", str(tmp_path / "in"), *more) == 0
    assert pair.run("dma", "read", "-a", "7", "-s", str(len(data)), "-o", str(tmp_path / "out"), *more) == 0
    assert (tmp_path / "out").read_bytes() == data
    assert (
        pair.run(
            "perf", "-q", "8", "--count", "500", "-s", "64KiB", "--verify", "--json", str(tmp_path / "perf"), *more
        )
        == 0
    )
    report = json.loads((tmp_path / "perf").read_text())
    assert (report["operations"], report["wrong"], report["errors"]) == (500, 0, {})


def test_rows_begin_at_multiples_of_sixteen() -> None:
    assert [line.split()[0] for line in rows(0xFFFF, bytes(18), 8)] == ["0000fff0", "00010000", "00010010"]
    assert [line[:10] for line in rows(0xFFFF_FFFF, bytes(2), 9)] == ["0fffffff0 ", "100000000 "]


def test_parts_of_a_region_cut_no_row() -> None:
    parts = list(chunks(3, 2 * CHUNK + 5))
    assert [end % CHUNK for _, end in parts] == [0, 0, 8]
    assert [parts[0][0], *(end for _, end in parts[:-1])] == [start for start, _ in parts]


def test_a_read_that_fails_leaves_the_file(pair: Pair, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The second MiB is not there: the first is not half a file."""
    file = tmp_path / "memory.bin"
    file.write_bytes(b"as it was")
    assert pair.run("dma", "read", "-a", "0", "-s", "2MiB", "-o", str(file), "--timeout", "5000") == 1
    assert "unsupported request" in capsys.readouterr().err
    assert file.read_bytes() == b"as it was"
    assert list(tmp_path.iterdir()) == [file]
    assert pair.run("dma", "read", "-a", "0", "-s", "4KiB", "-o", "/dev/full") == 1
    assert "/dev/full: cannot write" in capsys.readouterr().err
    assert not Path("/dev/full").is_file()


def test_options_have_the_meaning_of_the_published_programs(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    """-b is bus and devfn, -m of a write is its payload size, -t of a measurement is seconds, -M prints each latency."""
    assert [bdf(given) for given in ("1b:08", "1b:01.0", "1b:ff", "1b:1f.7")] == [0x1B08, 0x1B08, 0x1BFF, 0x1BFF]
    assert pair.run("dma", "write", "-a", "0", "--text", "x" * 200, "-b", "2a:19", "-m", "128", "-t", "9") == 0
    assert pair.run("dma", "write", "-a", "0", "--text", "x", "-m", "64") == 2
    capsys.readouterr()
    begun = time.monotonic()
    assert pair.run("perf", "-t", "0.2", "-M", "-L", "64", "--timeout", "5000") == 0
    assert time.monotonic() - begun < 2.5
    out = capsys.readouterr().out
    told = re.findall(r"^latency: thread 0, ([0-9.]+) µs$", out, re.MULTILINE)
    total = re.search(r"(\d+) in 0\.", out)
    assert total is not None
    assert len(told) == int(total[1]) > 0
    assert pair.run("perf", "-c", "3", "-M", "--json", "-", "--timeout", "5000") == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["lanes"][0]["latencies_ns"]) == 3


def test_configuration_space(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert pair.run("cfg", "read", "-a", "0") == 0
    assert capsys.readouterr().out == "000: 80223776\n"
    assert pair.run("cfg", "write", "-a", "4", "--data", "0x406", "--size", "2") == 0
    assert int(capsys.readouterr().out[5:], 16) & 0xFFFF == 0x406
    assert pair.run("cfg", "read", "-a", "2", "-s", "8", "--json", "-") == 0
    assert [row["register"] for row in json.loads(capsys.readouterr().out)] == [0, 4, 8]


def test_registers_of_the_adapter(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert pair.run("cfg", "registers") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "00: 01234567  magic number"
    assert lines[-1] == "10: 00002a19  requester ID"
    assert [int(line[:2], 16) for line in lines] == list(REGISTERS)


def test_perf_reports_correct_counts_and_rates(pair: Pair, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    capsys.readouterr()
    slow = ["--timeout", "5000", "--quiet", "-s", "256KiB", "-c", "200"]
    for direction in ("read", "write"):
        for pattern, split in (("seq", "diff"), ("seq512", "same"), ("random", "diff"), ("fix", "same")):
            file = tmp_path / "perf.json"
            what = ["-d", direction, "-P", pattern, "-R", split, "-L", "700", "-N", "2", "-q", "3", "--verify"]
            assert pair.run("perf", *what, *slow, "--json", str(file)) == 0, capsys.readouterr().err
            report = json.loads(file.read_text())
            assert (report["operations"], report["bytes"], report["wrong"], report["errors"]) == (400, 280_000, 0, {})
            assert report["missing_bytes"] == (0 if direction == "write" else None)
            assert report["arrived_operations"] == (400 if direction == "write" else None)
            assert len(report["lanes"]) == 2
            assert all(lane["operations"] == 200 for lane in report["lanes"])
            latency = report["latency_ns"]
            assert 0 < latency["min"] <= latency["p50"] <= latency["p99"] <= latency["max"]
            assert report["operations_per_second"] == pytest.approx(400 / report["seconds"])
    assert pair.run("perf", "-L", "64", "-c", "100", "--timeout", "5000", "--plot", str(tmp_path / "latency.png")) == 0
    assert "k/s" in capsys.readouterr().out
    assert (tmp_path / "latency.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("paced", [True, False])
def test_writes_that_overflow_the_adapter_are_reported(tmp_path: Path, paced: bool) -> None:
    """The adapter stands still for a moment, and its socket is full. Later laps arrive where earlier ones are missing."""
    pair, counts, file = Pair(own_address(), own_address()), tmp_path / "counts.json", tmp_path / "perf.json"
    serve = [*TLPLAB, "adapter", "-l", pair.adapter, "--peer", pair.device, "--memory", "1MiB", "--json", str(counts)]
    what = ["-d", "write", "-s", "64KiB", "-L", "64", "-t", "1.5", "--verify", "--timeout", "5000", "--json", str(file)]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as adapter:
        try:
            wait_for(lambda: pair.run("cfg", "read", "-a", "0") == 0)
            perf = subprocess.Popen(
                [*TLPLAB, "perf", *what, *([] if paced else ["--no-pace"]), *pair.options],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            wait_for(lambda: taken(pair.device))
            time.sleep(0.4)
            adapter.send_signal(signal.SIGSTOP)
            time.sleep(0.1)
            adapter.send_signal(signal.SIGCONT)
            out, err = perf.communicate(timeout=60)
        finally:
            adapter.send_signal(signal.SIGCONT)
            adapter.terminate()
            served, _ = adapter.communicate(timeout=30)
    report, told = json.loads(file.read_text()), json.loads(counts.read_text())
    device = told["devices"][0]["counters"]
    assert device["writes"] == report["arrived_operations"]
    if paced:
        assert (perf.returncode, report["missing_bytes"], device["lost"], told["kernel_drops"]) == (0, 0, 0, 0), err
        assert report["arrived_operations"] == report["operations"]
        assert "everything arrived" in out
        return
    lost = report["operations"] - report["arrived_operations"]
    assert perf.returncode == 1
    assert lost > 1000
    assert report["operations_per_second"] < report["sent_operations_per_second"]
    assert f"{lost} of {report['operations']} writes did not arrive" in out
    assert f"{lost} of {report['operations']} writes did not arrive" in err
    assert "arrived: " in out
    assert "sent: " in out
    # A flush may be among those dropped, and was asked again.
    assert lost <= told["kernel_drops"] <= lost + 3
    # `cfg`, and whoever asks for the adapter's counters, number their few datagrams by themselves, which hides as many. Numbers of 16 bits
    # do not tell a gap of more than half of them from datagrams that come late.
    assert lost * 0.99 <= device["lost"] <= told["kernel_drops"] or lost >= 1 << 15
    assert "were dropped by the kernel" in served


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_perf_with_its_measurements(pair: Pair, tmp_path: Path, number: int, status: int) -> None:
    file = tmp_path / "perf.json"
    command = [*TLPLAB, "perf", "--time", "600", "--timeout", "5000", "--json", str(file), *pair.options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_for(lambda: taken(pair.device))
        time.sleep(1)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == status, err
    assert err == "interrupted\n"
    assert " k/s " in out
    report = json.loads(file.read_text())
    assert report["interrupted"]
    assert report["operations"] > 0
    assert report["seconds"] < 60


@pytest.mark.parametrize(
    ("arguments", "exit_status", "said"),
    [
        (["dma", "read"], 2, "--address"),
        (["perf", "--transport", "xdp", "-N", "2"], 2, "one XDP socket"),
        (["dma", "read", "-a", "zero"], 2, "'zero' is not a number such as 0xa0000000"),
        (["dma", "read", "-a", "0xffffffffffffffff"], 2, "exceeds the address space"),
        (["dma", "write", "-a", "0"], 2, "give one of --text, --hex and --input"),
        (["dma", "write", "-a", "0", "--hex", "xy"], 2, "pairs of hexadecimal digits"),
        (["dma", "read", "-a", "0", "--tag", "5-3"], 2, "neither a tag such as 5 nor a range"),
        (["dma", "read", "-a", "0", "-b", "1b:20.0"], 2, "not bus:device.function"),
        (["dma", "read", "-a", "0", "--mps", "300B"], 2, "power of two from 128B"),
        (["dma", "read", "-a", "0", "--interface", "lo"], 2, "--interface is for packet and XDP sockets"),
        (["dma", "read", "-a", "0", "-r", "10.9.9.9"], 2, "--allow-remote permits it. NetTLP has no authentication"),
        (["dma", "read", "-a", "0", "-r", "nobody"], 2, "'nobody' is not an IPv4 address"),
        (["dma", "read", "-a", "0", *NOBODY], 1, "no answer for messages from ABSENT, UDP port 12287"),
        (
            ["dma", "read", "-a", "0", "-b", "1b:00", *NOBODY],
            1,
            "no program listens on the peer's UDP port (connection refused)",
        ),
        (["cfg", "read", "-a", "0", *NOBODY], 1, "no answer for configuration from ABSENT"),
        (["cfg", "registers", *NOBODY], 1, "no answer for its registers from ABSENT, UDP port 20482 (0x5002)"),
        (["dma", "read", "-a", "0", "--timeout", "1e9"], 2, "is not in the range"),
        (["cfg", "read", "-a", "0x1000"], 2, "exceeds the configuration space of 4096 bytes"),
        (["cfg", "write", "-a", "2", "-d", "1"], 2, "a write must be within one doubleword"),
        (["cfg", "write", "-a", "2", "-d", "256", "-s", "1"], 2, "has more than 1 bytes"),
        (["perf", "-b", "1b:00", *NOBODY], 1, "no operation succeeds: the request at 0x0, tag 0x00, was not delivered"),
        (["perf", "-b", "1b:00", "-L", "8KiB", "-s", "4KiB"], 2, "8192 B does not fit into the 4096 B"),
        (
            ["perf", "-b", "1b:00", "-l", "192.0.2.1", "--allow-remote"],
            1,
            "192.0.2.1 is not an address of this machine",
        ),
        (
            ["perf", "-b", "1b:00", "--tag", "255", "-N", "2"],
            2,
            "2 lanes need as many tags, but only 1 are left from tag",
        ),
        (["device", f"{ROOT}/README.md:X"], 2, "README.md: it is not a Python file"),
        (
            ["device", f"{ROOT}/examples/python/copier.py:"],
            2,
            "a name is missing after the colon; it has Copier, driver",
        ),
        (["device", "psmem", "--size", "1MiB", "-n", "513"], 2, "no more than 512 frames fit"),
        (["adapter", "--load-memory", "/nowhere", *NOBODY[:2], "--peer", ABSENT], 2, "/nowhere: cannot read"),
        (["adapter", "x.toml", "--serve", "a=127.0.0.9", "--serve", "a=127.0.0.8"], 2, "a is given twice"),
        (["perf", "-D"], 2, "-D: for the TLPs sent, use tlplab adapter --pcap FILE"),
        (["perf", "-S", "1048576"], 2, "-S: the target is the adapter's memory: tlplab adapter --memory SIZE"),
        (["perf", "-s", "9" * 30], 2, "exceeds an address space of 64 bits"),
        (["dma", "read", "-a", "0", "-s", "0"], 2, "use tlplab dma flush for a read of no bytes"),
        (["dma", "write", "-a", "0", "--text", ""], 2, "there are no bytes to write"),
        (["dma", "write", "-a", "0", "-i", "/nowhere"], 2, "--input /nowhere: No such file or directory"),
        (["device", "nic", "--mtu", "9000"], 2, "68<=x<=2030"),
        (
            ["dump", "lo", "--summary"],
            2,
            "lo is an interface, which is shown only as lines; write a file first: tlplab dump lo -w",
        ),
        (["dump", "/nowhere.pcap"], 2, "no such file or interface"),
        (["dump", "/nowhere.pcap", "--summary"], 2, "/nowhere.pcap: cannot read"),
        (
            ["adapter", "x.toml", "--serve", "a=127.0.0.9", "--mps", "128"],
            2,
            "--mps is for an adapter without an experiment",
        ),
        (
            ["adapter", "x.toml", "--serve", "a=127.0.0.9", "--interface", "lo"],
            2,
            "--interface is for packet and XDP sockets",
        ),
        (["perf", "--plot", "x.txt"], 2, "name a file that ends in"),
        (["perf", "--time", "1e300"], 2, "'--time': 1e+300 is not in the range"),
        (["perf", "--time", "nan"], 2, "'--time': 'nan' is not a number of seconds"),
        (["perf", "-i", "nan"], 2, "'nan' is not a number of milliseconds"),
        (["dma", "read", "-a", "0", "--timeout", "nan"], 2, "'--timeout': 'nan' is not a number of milliseconds"),
        (["dma", "read", "-a", "0", "--timeout", "20ms"], 2, "'20ms' is not a number of milliseconds, as in 20"),
        (["device", "nic", "--timeout", "nan"], 2, "'--timeout': 'nan' is not a number of milliseconds"),
        (["device", "psmem", "--delay", "nan"], 2, "'nan' is not a number of microseconds"),
        (["device", "psmem", "--seconds", "inf"], 2, "'--seconds': inf is not in the range"),
        (["adapter", "--seconds", "nan"], 2, "'--seconds': 'nan' is not a number of seconds"),
    ],
)
def test_mistakes(arguments: list[str], exit_status: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(arguments) == exit_status
    captured = capsys.readouterr()
    assert said.replace("ABSENT", ABSENT) in " ".join(captured.err.split()), captured.err
    assert captured.out == ""


def measured(operations: int, errors: dict[str, int]) -> dict[str, Any]:
    """A report of `perf`, with the longest numbers that it may have to show."""
    result = {
        "operations": operations, "seconds": 86_399.99, "bytes": operations << 12, "cpu_seconds": 0.123, "errors": errors,
        "latency_ns": dict.fromkeys(perf.LATENCIES, 123_456.0), "histogram_ns": [], "wrong": 0, "arrived_bytes": 1,
        "kernel_drops": 999_999_999, "missing_bytes": 1 << 40, "missing_range_count": 999_999_999,
        "missing_ranges": [((1 << 64) - (1 << 40), 1 << 40)] * 100,
    }  # fmt: skip
    return perf.describe(End(transport="packet"), perf.Plan("write", 0, 1 << 40, 4095, 16, 4096, verify=True), result)


def test_the_output_of_perf_fits_a_terminal() -> None:
    said = perf.lines(measured(999_999_999, {"time limit passed": 999_999}))
    assert max(map(len, said)) <= 80, said
    assert all(any(f"{name} 123 µs" in line for line in said) for name in perf.LATENCIES), said


def test_a_measurement_without_operations_has_checked_no_data() -> None:
    report = measured(0, {})
    for wrong, data in ((0, "nothing was read"), (2, "2 reads are WRONG")):
        shown = perf.lines({**report, "wrong": wrong, "plan": {**report["plan"], "direction": "read"}})
        assert f"  data: {data}" in shown


def test_a_measurement_of_failures_has_failed() -> None:
    def told(failed: int) -> dict[str, Any]:
        return {**measured(10, {"timeout": 6, "unreachable": failed}), "missing_bytes": 0, "arrived_bytes": None}

    perf.check(told(4))
    with pytest.raises(RunError, match="11 operations failed and only 10 succeeded"):
        perf.check(told(5))


def test_missing_writes_fail_with_their_ranges() -> None:
    lost = measured(1000, {})
    there = {"arrived_bytes": lost["bytes"], "missing_bytes": 0, "missing_ranges": [], "missing_range_count": 0}
    perf.check({**lost, **there})
    ranges = [[0x1000, 16], [0x2000, 8], [0x3000, 4], [0x4000, 4], [0x5000, 4]]
    with pytest.raises(RunError, match=r"^36 B .*; 0x1000 to 0x100f; 0x2000 to .*; and 1 more ranges$"):
        perf.check({**lost, **there, "missing_bytes": 36, "missing_ranges": ranges, "missing_range_count": 5})
    some = {**lost, **there, "arrived_bytes": 990 << 12, "arrived_operations": 990}
    with pytest.raises(RunError, match=r"^10 of 1000 writes did not arrive \(40960 B\)$"):
        perf.check(some)
    perf.check({**some, "plan": {**some["plan"], "verify": False}})


@pytest.mark.parametrize("transport", ["udp", "packet", "xdp"])
def test_two_machines(transport: str) -> None:
    """Between namespaces, with each transport; and from a large read of more than a frame holds."""
    with netns.cable() as (here, there):
        way = ["--transport", transport, "--allow-remote"]
        adapter = [*TLPLAB, "adapter", "-l", there.address, "--peer", here.address, "--memory", "1MiB", "--quiet", *way]
        options = ["-l", here.address, "-r", there.address, "--allow-remote"]
        with there.running(*adapter, stderr=subprocess.DEVNULL):
            wait_for(lambda: here.run(*TLPLAB, "cfg", "read", "-a", "0", *options).returncode == 0)
            slow = ["--transport", transport, "--timeout", "5000"]
            perf = here.run(*TLPLAB, "perf", "-L", "1KiB", "-q", "8", "-s", "256KiB", "-c", "2000", "--verify", "--json", "-", *options, *slow)  # fmt: skip
            assert perf.returncode == 0, perf.stderr
            assert "no authentication" in perf.stderr
            report = json.loads(perf.stdout)
            assert (report["operations"], report["wrong"], report["errors"]) == (2000, 0, {})
            large = here.run(*TLPLAB, "dma", "read", "-a", "0", "--mps", "4KiB", *options, *slow)
            if transport != "udp":
                assert large.returncode == 1
                assert "a frame of the link holds 1472 B" in large.stderr
            else:
                assert large.returncode == 0, large.stderr


@pytest.mark.parametrize(
    ("arguments", "number"),
    [
        (["dma", "read", "-a", "0"], signal.SIGINT),
        (["dma", "flush"], signal.SIGINT),
        (["dma", "write", "-a", "0", "--text", "x"], signal.SIGTERM),
        (["perf", "-q", "4"], signal.SIGINT),
    ],
    ids=["dma-read", "dma-flush", "dma-write", "perf"],
)
def test_a_signal_ends_a_command_that_waits_for_an_answer(arguments: list[str], number: int) -> None:
    """A peer listens and never answers, and the time limit is a quarter of an hour."""
    there = own_address()
    with contextlib.ExitStack() as stack:
        ears = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(16)]
        for tag, ear in enumerate(ears):
            ear.bind((there, 0x3000 + tag))
        ends = ["-l", own_address(), "-r", there, "-b", "1b:00", "--timeout", "900000"]
        process = subprocess.Popen(
            [*TLPLAB, *arguments, *ends], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        try:
            ears[0].settimeout(PATIENCE)
            ears[0].recv(100)
            process.send_signal(number)
            _, said = process.communicate(timeout=10)
        finally:
            process.kill()
    assert (process.returncode, said.strip()) == (128 + number, "interrupted")


def test_counters_outlive_the_terminal(tmp_path: Path) -> None:
    """The line of figures has nowhere to go any more, nor have the last messages."""
    counts = tmp_path / "counts.json"
    master, slave = pty.openpty()
    ends = ["-l", own_address(), "--peer", own_address()]
    process = subprocess.Popen(
        [*TLPLAB, "adapter", *ends, "--json", str(counts)],
        stdout=slave,
        stderr=slave,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # also where the tests run under nohup
    )
    try:
        os.close(slave)
        shown = b""
        while b"reads/s" not in shown:
            shown += os.read(master, 1000)
        os.close(master)
        process.send_signal(signal.SIGHUP)
        process.wait(PATIENCE)
    finally:
        process.kill()
    assert json.loads(counts.read_text())["seconds"] > 0


@pytest.mark.parametrize("command", ["adapter", "device psmem", "dma write", "cfg read", "perf", "dump", "dissector"])
def test_help_fits_a_terminal(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert status([*command.split(), "--help"]) == 0
    wide = [line for line in capsys.readouterr().out.splitlines() if len(line) > 80]
    assert wide == []
