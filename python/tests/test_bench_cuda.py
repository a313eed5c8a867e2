"""`tlplab bench --on cuda`, with a stand-in for the driver: its calls, and the figures from its times."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tlplab import bench, cli
from tlplab.bench import Case
from tlplab.bench.cuda import caches, driver
from tlplab.bench.cuda.target import CudaTarget

HERE = Path(__file__).parent
SMALL = 4096


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in, compiled."""
    made = tmp_path_factory.mktemp("cuda") / "libcuda.so.1"
    subprocess.run(
        ["gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", made, HERE / "cuda_driver.c"],
        check=True,
    )
    return made


@pytest.fixture
def gpu(library: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with the stand-in as its GPU: the file in which each kernel leaves the buffer's first page."""
    monkeypatch.setattr(driver, "LIBRARY", str(library))
    monkeypatch.setattr(caches, "last_level", lambda: 1 << 20)
    monkeypatch.setenv("FAKE_CUDA_TOUCHED", str(tmp_path / "touched"))
    return tmp_path / "touched"


def touched(path: Path, unit: int) -> list[int]:
    """The accesses of the last kernel to each unit of the buffer: 1 for each write, 2 for each read."""
    words: list[int] = np.frombuffer(path.read_bytes(), np.uint32)[:: unit // 4].tolist()
    return words


def test_latency_is_cycles_by_the_clock_that_ran(gpu: Path) -> None:
    """A GPU at half of the clock that its driver tells: 1000 to 1009 cycles are 2000 to 2018 ns."""
    [result] = bench.run([Case("lat_rd", 64, window=SMALL)], "cuda")
    assert result.latency is not None
    assert (result.latency.min_ns, result.latency.max_ns) == (2000, 2018)
    assert result.operations == 4096
    assert result.complete
    assert sum(touched(gpu, 64)) == 2 * (4096 + 8)


def test_latency_of_a_read_behind_a_write(gpu: Path) -> None:
    """The kernel writes first."""
    [result] = bench.run([Case("lat_wrrd", 64, window=SMALL)], "cuda")
    assert result.latency is not None
    assert result.latency.min_ns == 3000


@pytest.mark.parametrize("at_once", [1, 8, 32])
def test_bandwidth_grows_with_transfers_at_once(gpu: Path, at_once: int) -> None:
    """Each takes 1 us."""
    [result] = bench.run([Case("bw_rd", 128, window=SMALL, at_once=at_once, count=1 << 12)], "cuda")
    assert result.transfers_per_second == pytest.approx(at_once * 1e6, rel=0.01)
    assert result.operations == 1 << 12


@pytest.mark.parametrize(("test", "a_transfer"), [("bw_rd", 2), ("bw_wr", 1), ("bw_rdwr", 1.5)])
def test_every_transfer_is_made_once(gpu: Path, test: str, a_transfer: float) -> None:
    """The transfers before the measurement and the measured ones go through the window's 64 units in turn; reads and writes are equally many."""
    [result] = bench.run([Case(test, 64, window=SMALL, count=1000, at_once=4)], "cuda")
    directions = 2 if test == "bw_rdwr" else 1
    units = touched(gpu, 64)
    assert sum(units) == directions * (512 + 1000) * a_transfer
    assert set(units[::2]) != set(units[1::2]) or directions == 1
    assert result.operations == 1000
    assert result.complete


def test_caches_are_thrashed_and_the_buffer_written_by_the_device(gpu: Path) -> None:
    """Device-warm: each line has been written once before the first read."""
    thrashed = []
    target = CudaTarget()
    target._thrasher.thrash = lambda: thrashed.append(1)  # type: ignore[method-assign]
    target.run(Case("lat_rd", 64, window=SMALL, cache="device-warm", count=1))
    assert thrashed
    assert all(unit % 2 == 1 for unit in touched(gpu, 64))
    remarks = target.remarks([Case("lat_rd", 64, cache="cold")])
    assert "thrashed" in remarks[1]


def test_command_shows_the_machine(gpu: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The table's heading is the GPU; the remark names the parts of a latency."""
    out = tmp_path / "out.json"
    assert cli.status(["bench", "bw_rd", "--on", "cuda", "--at-once", "1..32/x2", "--window", "4KiB", "--count", "1000", "--json", str(out)]) == 0  # fmt: skip
    said = capsys.readouterr().out
    assert "on Stand-in, 0000:7f:1f.7" in said
    assert "the GPU's own loads and stores" in said
    assert [row["case"]["at_once"] for row in json.loads(out.read_text(encoding="utf-8"))] == [1, 2, 4, 8, 16, 32]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lat_rd", "--on", "cuda:1"], "there is no GPU 1: the driver has 1, numbered from 0"),
        (["lat_rd", "--on", "cuda:x"], "unknown target 'cuda:x'; the first GPU is cuda, the second cuda:1"),
        (["lat_rd", "--on", "cuda", "--host", "ideal"], "host, device, link and IOMMU: leave these options out"),
        (["lat_rd", "--on", "cuda", "--iommu", "on"], "host, device, link and IOMMU: leave these options out"),
        (["lat_rd", "--on", "cuda", "--size", "6B"], "give multiples of 4 B"),
        (["lat_rd", "--on", "cuda", "--offset", "2B"], "give multiples of 4 B"),
        (["lat_rd", "--on", "cuda", "--node", "remote"], "numactl"),
        (["lat_rd", "--on", "cuda", "--interface", "cmd"], "leave these options out"),
        (["bw_rd", "--on", "cuda", "--window", "8GiB"], "4 GiB at most"),
        (["bw_rd", "--on", "cuda", "--at-once", "37"], "Stand-in runs 36 warps at once"),
        (["lat_rd", "--at-once", "4"], "latency is measured with one transfer at a time"),
        (["bw_rd", "--at-once", "0"], "expected 1 to 65536"),
        (["bw_rd", "--at-once", "x"], "'x' is not a number such as 16"),
        (["bw_rd", "--at-once", "4", "-o", "-"], "no column for --at-once"),
    ],
)
def test_mistakes(gpu: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    """One message each, status 2."""
    assert cli.status(["bench", *arguments]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("function", ["cuInit", "cuMemHostAlloc", "cuLaunchKernel"])
def test_driver_refuses(
    gpu: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    """The message names the function and the error."""
    monkeypatch.setenv("FAKE_CUDA", function)
    assert cli.status(["bench", "lat_rd", "--on", "cuda"]) == 2
    assert f"the GPU's driver refused {function}: out of memory (status 2)" in capsys.readouterr().err


def test_no_driver(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a GPU."""
    monkeypatch.setattr(driver, "LIBRARY", "libcuda-that-is-not-there.so.1")
    assert cli.status(["bench", "lat_rd", "--on", "cuda"]) == 2
    assert "is missing: install NVIDIA's driver" in capsys.readouterr().err


def test_last_level_cache(tmp_path: Path) -> None:
    """The largest that the kernel tells."""
    for number, size in enumerate(("48K", "2M", "105M")):
        (tmp_path / f"index{number}").mkdir()
        (tmp_path / f"index{number}" / "size").write_text(size + "\n", encoding="ascii")
    assert caches.last_level(tmp_path) == 105 << 20
    assert caches.last_level(tmp_path / "none") == caches.USUAL


def test_at_once_in_the_simulator_and_the_closed_form() -> None:
    """Little's law: one at a time takes a latency each, two twice as many, until the link is full."""
    for target in ("simulator", "model"):
        one, two, many = (
            result.gbps
            for result in bench.run(
                [Case("bw_rd", 64, at_once=n, count=2000) for n in (1, 2, 512)], target, device="ideal"
            )
        )
        assert two == pytest.approx(2 * one, rel=0.02)
        assert many > 10 * one
