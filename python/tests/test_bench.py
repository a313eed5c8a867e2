"""The benchmarks: cases in, results out, files that others can read, messages for people."""

from __future__ import annotations

import csv
import io
import json
from concurrent import futures
from pathlib import Path
from typing import Any

import pytest

import tlplab as tl
from tlplab import _core, bench, cli
from tlplab.bench import Case, plots, software
from tlplab.errors import ExperimentError, RunError
from tlplab.sizes import sizes

LATENCY = (
    "Test,PAT,Cache,HO,DO,WinSZ,SZ,TAvg,Avg,Med,Min,Max,95%,99.9%,"
    "TAvg(ns),Avg(ns),Med(ns),Min(ns),Max(ns),95%(ns),99.9%(ns),#outliers,#samples"
)
BANDWIDTH = "Test,PAT,Cache,HO,DO,WinSZ,SZ,Time(cyc),Time,Bytes,Trans,BW (GB/s),Trans/s"

HOST = """\
title = "A host with everything"
source = "A test"
[host]
latency = "50ns"
[host.memory]
latency = "150ns"
[host.cache]
size = "1MiB"
ways = 16
ddio_ways = 2
hit = "90ns"
[host.numa]
hop = "100ns"
[host.iommu]
mode = "off"
entries = 64
walk = "230ns"
walkers = 4
"""

SMALL_HOST = """\
title = "Little memory"
source = "A test"
[host.memory]
size = "4GiB"
"""

MY_DMA = """\
import tlplab


class MyDma(tlplab.Device):
    ids = tlplab.Ids(0x71AB, 2)

    async def bench_read(self, cx, address, length):
        await cx.dma_read(address, length)

    async def bench_write(self, cx, address, length):
        await cx.dma_write(address, bytes(length))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a host and a device."""
    monkeypatch.chdir(tmp_path)
    Path("host.toml").write_text(HOST, encoding="utf-8")
    Path("mydma.py").write_text(MY_DMA, encoding="utf-8")
    Path("small.toml").write_text(SMALL_HOST, encoding="utf-8")
    ideal = dict(_core.bench_devices())["ideal"]
    Path("notags.toml").write_text(ideal.replace("tags = 256", "tags = 0"), encoding="utf-8")
    buffer = 'interval = "0s"\nbuffer = { block = "128B", blocks = 16, margin = 17 }\n'
    Path("margin.toml").write_text(ideal.replace('interval = "0s"\n', buffer), encoding="utf-8")
    (one,) = bench.run([Case("lat_rd", 64, count=10)])
    Path("one.csv").write_text(f"{one.columns}\r\n{one.csv}\r\n", encoding="utf-8")
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """(status, stdout, stderr) of a command line."""
    status = cli.status(["bench", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def median(case: Case, **setup: Any) -> float:
    """Of a latency, in ns."""
    (result,) = bench.run([case], device="ideal", **setup)
    assert result.latency is not None
    return result.latency.median_ns


def test_results_do_not_depend_on_threads() -> None:
    cases = [
        Case(test, size, pattern="random", count=300) for test in ("lat_rd", "bw_rdwr", "bw_wr") for size in (64, 300)
    ]
    one, four = bench.run(cases, threads=1), bench.run(cases, threads=4)
    assert one == four
    assert [result.case for result in one] == cases
    assert all(result.complete and result.operations == 300 for result in one)


def test_where_the_data_are_decides_how_long_they_take(folder: Path) -> None:
    def read(**circumstances: Any) -> float:
        return median(Case("lat_rd", 64, count=200, pattern="random", **circumstances), host="host.toml")

    warm, cold = read(cache="device-warm"), read(cache="cold")
    assert cold - warm == pytest.approx(60, abs=1)  # memory's 150 ns for the cache's 90
    assert read(cache="host-warm") == warm
    assert read(cache="cold", node="remote") - cold == pytest.approx(100, abs=1)  # the hop
    # 64 lines of 4 KiB pages are known, and hardly any of the 1024 pages of 4 MiB: a walk.
    small, large = (
        median(Case("lat_rd", 64, window=w, count=200, pattern="random", cache="cold"), host="host.toml", iommu="nosp")
        for w in (64 << 10, 4 << 20)
    )
    assert small == cold
    assert large - small == pytest.approx(230, abs=1)
    assert read(cache="device-thrash") == cold
    # An eighth of 1 MiB is for what devices write.
    within, beyond = (read(cache="device-warm", window=w) for w in (64 << 10, 1 << 20))
    assert (within, beyond) == (warm, cold)


def test_keys_of_the_host_are_as_an_experiment_has_them() -> None:
    case = Case("lat_rd", 64, count=50)
    slow = median(case, host_keys={"memory.latency": "190ns", "tags": 8})
    assert slow - median(case) == pytest.approx(100, abs=1)  # the server's memory has 90 ns
    with pytest.raises(ExperimentError, match=r'host "server": host\.tags: '):
        bench.run([case], host_keys={"tags": 0})
    with pytest.raises(ExperimentError, match=r'host "server": host\.memory\.latncy: .*latency'):
        bench.run([case], host_keys={"memory.latncy": "1ns"})


def test_rows_have_the_columns_of_the_data_sets() -> None:
    cases = [
        Case("lat_wrrd", 8, interface="command", cache="device-thrash", host_offset=3, device_offset=5, count=50),
        Case("bw_rdwr", 257, window=1 << 20, pattern="random", cache="cold", count=50),
    ]
    latency, bandwidth = bench.run(cases)
    assert (latency.columns, bandwidth.columns) == (LATENCY, BANDWIDTH)
    for result, case in zip((latency, bandwidth), cases, strict=True):
        assert Case.from_row(result.row(), count=50) == case
    row = bandwidth.row()
    assert row["Test"] == "BW_DMA_RW"
    # The column's name notwithstanding: gigabits.
    assert float(row["BW (GB/s)"]) == pytest.approx(float(row["Bytes"]) * 8 / float(row["Time"]))
    assert float(row["BW (GB/s)"]) == pytest.approx(bandwidth.gbps, rel=0.01)  # but for a tick
    row = latency.row()
    assert latency.latency is not None
    assert float(row["Med(ns)"]) == pytest.approx(latency.latency.median_ns)
    # Timestamps are multiples of 16 cycles of 1.2 GHz.
    assert all(float(row[name]) % 16 == 0 for name in ("Med", "Min", "Max", "95%", "99.9%"))


def test_files_of_the_command_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("lat_rd", "--size", "64B,128B", "--count", "200", "--device", "nfp6000")
    files = ("-o", "lat.csv", "--cdf", "lat_cdf.csv", "--json", "lat.json", "--plot", "lat.svg")
    status, out, err = run(capsys, *options, *files)
    assert (status, err) == (0, "")
    assert "128 B" in out
    lines = Path("lat.csv").read_bytes().split(b"\r\n")
    assert lines[0] == LATENCY.encode()
    assert len(lines) == 4
    assert lines[3] == b""
    rows = list(csv.DictReader(io.StringIO(Path("lat_cdf.csv").read_text(encoding="utf-8"))))
    assert [float(row["cdf"]) for row in rows].count(0.0) == 2
    assert float(rows[-1]["cdf"]) == 1.0
    results = json.loads(Path("lat.json").read_text(encoding="utf-8"))
    assert [result["case"]["size"] for result in results] == [64, 128]
    assert sum(count for _, count in results[0]["latency"]["histogram"]) == 200
    assert Path("lat.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_a_data_set_beside_the_results(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ("bw_wr", "--size", "64B,256B")
    run(capsys, *sizes, "--size", "64B..1KiB/x2", "-o", "there.csv")
    status, out, err = run(capsys, *sizes, "--against", "there.csv", "--plot", "bw.png")
    assert (status, err) == (0, "")
    assert out.count("+0.0 %") == 2
    assert Path("bw.png").read_bytes().startswith(b"\x89PNG")
    latency = ("lat_rd", "--count", "100")
    run(capsys, *latency, "-o", "lat.csv", "--cdf", "lat_cdf.csv")
    status, _, err = run(capsys, *latency, "--against", "lat_cdf.csv", "--plot", "cdf.png")
    assert (status, err) == (0, "")
    status, _, err = run(capsys, *sizes, "--cache", "cold", "--against", "there.csv")
    assert status == 2
    assert "no row was measured with these settings; the nearest has cache host-warm (here cold)" in err


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("64B", [64]),
        ("64B,1KiB", [64, 1024]),
        ("64B..1KiB/x2", [64, 128, 256, 512, 1024]),
        ("48B..200B/x2,1B..10B/x3", [48, 96, 192, 1, 3, 9]),
        ("62B..65B", [62, 63, 64, 65]),
        ("0B..24B/8B", [0, 8, 16, 24]),
        ("1KiB..1KiB, 3B", [1024, 3]),
    ],
)
def test_sweeps(text: str, found: list[int]) -> None:
    assert sizes(text) == found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lat",), "'lat' is not one of"),
        (("lat_rd", "--size", "64"), "the unit is missing"),
        (("lat_rd", "--size", "0B"), "the size is 0 B; expected at least 1 B"),
        (("lat_rd", "--size", "2KiB..64B"), "a range must increase, as 64B..2KiB"),
        (("lat_rd", "--size", "0B..64B/x2"), "is endless"),
        (("lat_rd", "--window", "1B..1MiB"), "has more than 1,000,000 values; give a step"),
        (("lat_rd", "--window", "2KiB..64KiB/64B", "--size", "1B..1KiB/1B"), "at most 100,000 are allowed"),
        (("lat_rd", "--window", "32B"), "a window of 32 B is too small for a transfer"),
        (("bw_rd", "--interface", "cmd"), "bandwidth is measured with the DMA engine"),
        (("lat_rd", "--interface", "cmd", "--size", "65B"), "carries at most 64 B, not 65 B"),
        (("lat_rd", "--cache", "warm"), "'warm' is not one of cold, host-warm"),
        (("lat_rd", "--count", "0"), "'0' is not a number of operations, nor paper"),
        (("lat_rd", "--host", "sever"), 'unknown host profile "sever"; did you mean "server"?'),
        (("lat_rd", "--host", "absent.toml"), "there is no such file"),
        (("lat_rd", "--device", "nfp"), 'unknown device profile "nfp"'),
        (("lat_rd", "--link", "gen9 x8"), 'unsupported generation "gen9"'),
        (
            ("lat_rd", "--on", "fpga"),
            "unknown target 'fpga'; the targets are simulator, model, cuda and FILE.py:CLASS",
        ),
        (("lat_rd", "--on", "mydma.py:Other"), "there is no Other in it; it has MyDma"),
        (("lat_rd", "--on", "mydma.py:MyDma", "--device-offset", "1B"), "nor an offset in its memory"),
        (("lat_rd", "--node", "remote"), "this host has a single node"),
        (
            ("lat_rd", "--iommu", "nosp"),
            "server has no IOMMU (host.iommu); those of xeon-e5-2620v3 and xeon-e5-2637v3 have",
        ),
        (("bw_rd", "--cdf", "x.csv"), "--cdf: a bandwidth has no distribution"),
        (("lat_rd", "--plot-kind", "cdf"), "--plot-kind cdf needs a file"),
        (("bw_wr", "--on", "model", "--plot", "x.png"), "closed forms have no time"),
        (("lat_rd", "--plot", "x.gif"), "ends in .png, .svg or .pdf"),
        (("lat_rd", "--plot", "none/x.png"), "the folder none does not exist"),
        (("bw_rd", "--plot", "x.png", "--plot-kind", "cdf"), "a bandwidth has no distribution"),
        (("bw_rd", "--against", "absent.csv"), "'absent.csv' does not exist"),
        (("lat_rd", "--against", "one.csv", "--plot", "x.png", "--plot-kind", "curve"), "sweep a size"),
        (("lat_rd", "--count", str(2**64 - 1)), "above the limit of 2^40"),
        (("bw_wr", "--host", "small.toml", "--window", "1MiB"), "does not fit into the host's memory of 4294967296 B"),
        (("lat_rd", "--device", "notags.toml"), "link.tags is 0; expected 1 to 15360"),
        (("lat_rd", "--device", "margin.toml"), "margin is 17; expected at most the number of blocks, 16"),
        (("lat_rd", "--on", "mydma.py:MyDma", "--device", "ideal"), "cannot both be measured"),
    ],
)
def test_mistakes(folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str) -> None:
    status, out, err = run(capsys, *arguments, "-o", "out.csv")
    assert out == ""
    assert message in " ".join(err.split())
    assert status == 2
    assert not Path("out.csv").exists()


def test_a_mistake_in_a_device_profile_has_its_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("device.toml").write_text('title = "x"\nsource = "y"\nbetween = "5"\n', encoding="utf-8")
    status, _, err = run(capsys, "lat_rd", "--device", "device.toml")
    assert status == 2
    assert 'device.toml:3: "5" is not a time' in err


def test_interrupted_runs_keep_their_measurements(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    follow = futures.wait
    looks = []

    def interrupted(*arguments: Any, **rest: Any) -> Any:
        looks.append(1)
        if len(looks) == 3:
            raise KeyboardInterrupt
        return follow(*arguments, **rest)

    monkeypatch.setattr("tlplab.bench.running.wait", interrupted)
    cases = [Case("lat_rd", 64, count=100), Case("lat_rd", 64, count=1 << 40), Case("lat_rd", 128, count=1 << 40)]
    results = bench.run(cases, threads=1)
    assert results.interrupted
    assert [result.complete for result in results] == [True, False]
    assert results[1].operations > 100

    looks.clear()
    sweep = ("lat_rd", "--size", "64B,128B", "--count", "100", "--threads", "1")
    run(capsys, *sweep, "-o", "there.csv")
    looks.clear()
    status, _, _ = run(capsys, *sweep, "--count", str(1 << 40), "--against", "there.csv", "--plot", "part.png")
    assert status == 130
    assert Path("part.png").exists()

    looks.clear()
    status, out, err = run(capsys, "lat_rd", "--count", str(1 << 40), "-o", "part.csv")
    assert status == 130
    assert "interrupted: 1 of 1 cases were measured, the last one only partly" in err
    assert "median" in out
    assert len(Path("part.csv").read_text(encoding="utf-8").splitlines()) == 2


def test_a_device_in_python_is_measured_like_any_other(folder: Path) -> None:
    for case in (
        Case("lat_rd", 300, count=50), Case("lat_wrrd", 64, count=50),
        Case("bw_wr", 128, count=500), Case("bw_rd", 512, count=500),
    ):  # fmt: skip
        (ours,) = bench.run([case], "mydma.py:MyDma", host="host.toml")
        (theirs,) = bench.run([case], host="host.toml", device="ideal")
        assert ours.complete
        if case.is_latency:
            assert ours.latency == theirs.latency
        else:
            assert ours.gbps == pytest.approx(theirs.gbps, rel=0.01)


def test_a_device_in_python_that_cannot_be_measured() -> None:
    class Half(tl.Device):
        async def bench_read(self, cx: tl.Context, address: int, length: int) -> None: ...

    class Broken(tl.Device):
        async def bench_read(self, cx: tl.Context, address: int, length: int) -> None:
            raise RuntimeError("no such memory")

        bench_write = bench_read

    with pytest.raises(ValueError, match="Half has no coroutine bench_write; write async def bench_write"):
        software.SoftwareTarget(Half, host="ideal", link="gen3 x8", host_keys={})

    class Stuck(tl.Device):
        async def bench_read(self, cx: tl.Context, address: int, length: int) -> None:
            self.left = getattr(self, "left", 10) - 1
            while self.left == 0:
                await cx.sleep("1ms")

        bench_write = bench_read

    class Instant(tl.Device):
        async def bench_read(self, cx: tl.Context, address: int, length: int) -> None: ...

        bench_write = bench_read

    class Idle(Instant):
        bench_slots = 0

    with pytest.raises(ValueError, match="the transfers of Instant take no simulated time"):
        bench.run([Case("bw_rd", 64, count=100)], Instant)
    with pytest.raises(ValueError, match="bench_slots of Idle is 0; it must be the number of transfers at once"):
        bench.run([Case("bw_rd", 64, count=100)], Idle)
    with pytest.raises(RunError, match="no such memory"):
        bench.run([Case("lat_rd", 64)], Broken)
    with pytest.raises(RunError, match=r"stopped after .* of the operations: it waits for an event that never comes"):
        bench.run([Case("lat_rd", 64, count=100)], Stuck)


def test_progress_reaches_the_number_of_cases() -> None:
    told: list[tuple[float, int]] = []
    bench.run([Case("bw_wr", 64, count=100)] * 3, progress=lambda done, total: told.append((done, total)))
    done, total = told[-1]
    assert done == pytest.approx(3)
    assert total == 3


def test_labels_of_an_axis_do_not_lie_on_each_other() -> None:
    assert plots.apart([64, 255, 256, 257, 511, 512, 513], logarithmic=False) == [64, 255, 511]
    assert plots.apart([64, 128, 256, 4096], logarithmic=True) == [64, 128, 256, 4096]
    assert plots.apart([8], logarithmic=True) == [8]


@pytest.mark.parametrize("target", ["simulator", "model"])
def test_little_s_law(target: str, folder: Path) -> None:
    """With 32 reads at once, 32 of them end in a latency."""
    case = Case("lat_rd", 8, cache="cold", count=100)
    (latency,) = bench.run([case], target, host="host.toml", device="ideal")
    (rate,) = bench.run([Case("bw_rd", 8, cache="cold")], target, host="host.toml", device="ideal")
    assert latency.latency is not None
    assert rate.transfers_per_second is not None
    in_flight = rate.transfers_per_second * latency.latency.average_ns * 1e-9
    assert in_flight == pytest.approx(32, rel=0.05)
