"""Calibration finds the parameters of a host that it does not know."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tlplab import _core, bench, cli
from tlplab.bench import Case
from tlplab.bench.result import CDF_COLUMNS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

T630 = Path(__file__).parent / "data" / "pciebench" / "hsw-Xeon-E5-2620v3_dell-t630"
KIB, MIB = 1024, 1024**2
WINDOWS = (8 * KIB, 64 * KIB, 256 * KIB, 1 * MIB, 3 * MIB // 2, 2 * MIB, 4 * MIB, 8 * MIB, 32 * MIB, 64 * MIB)
# What the tests hide: no shipped host has these.
HIDDEN = {
    "": {"commit": 330.0},
    "memory": {"latency": 301.0},
    "cache": {"hit": 214.0, "snoop": 21.0, "write_allocate": 140.0},
    "numa": {"hop": 83.0, "write_allocate": 390.0},
    "iommu": {"walk": 345.0, "entries": 96, "interval": 77.0},
}
HOST = """\
title = "A host that nobody knows"
source = "A test"

[host]
latency = "100ns"
rcb = "64B"
completions = "split-head"
line_interval = "14ns"
commit = "{commit}ns"

[host.memory]
latency = "{memory[latency]}ns"

[host.cache]
size = "20MiB"
ways = 20
ddio_ways = 3
hit = "{cache[hit]}ns"
snoop = "{cache[snoop]}ns"
write_allocate = "{cache[write_allocate]}ns"

[host.numa]
hop = "{numa[hop]}ns"
write_allocate = "{numa[write_allocate]}ns"

[host.iommu]
mode = "off"
walk = "{iommu[walk]}ns"
entries = {iommu[entries]}
interval = "{iommu[interval]}ns"

[host.jitter]
quantiles = ["0% 0ns", "90% 0ns", "100% 40ns"]
memory = ["0% 0ns", "95% 0ns", "100% 200ns"]
"""


def sweep(test: str, interface: str, caches: Iterable[str], windows: Iterable[int] = WINDOWS) -> list[Case]:
    """64 B at random."""
    return [Case(test, 64, window=w, pattern="random", cache=c, interface=interface, count=None if test == "bw_rd" else 2000, seed=77)
            for c in caches for w in windows]  # fmt: skip


def write_set(
    folder: Path, host: str, files: dict[str, list[Case]], *, node: str = "local", iommu: str = "off"
) -> Path:
    """Measures a simulated machine as pcie-bench would."""
    folder.mkdir(exist_ok=True)
    (folder / "sys-cpuinfo.txt").write_text("model name\t: Hidden\ncache size\t: 20480 KB\n", encoding="utf-8")
    for name, cases in files.items():
        results = bench.run([replace(case, node=node) for case in cases], host=host, iommu=iommu)
        (folder / f"{name}.csv").write_text(
            "\n".join([results[0].columns, *(r.csv for r in results)]) + "\n", encoding="utf-8"
        )
        if name.endswith("details"):
            rows = [CDF_COLUMNS, *(row for r in results for row in r.cdf_csv)]
            (folder / f"{name}_cdf.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Data sets of a hidden host: as it is, with page walks, with memory of the other node."""
    folder = tmp_path_factory.mktemp("hidden")
    host = str(folder / "hidden.toml")
    Path(host).write_text(
        HOST.format(commit=HIDDEN[""]["commit"], **{table: values for table, values in HIDDEN.items() if table}),
        encoding="utf-8",
    )
    all_caches = ("cold", "device-thrash", "device-warm", "host-warm")
    details = [replace(case, count=20_000) for case in sweep("lat_rd", "dma", ("cold", "host-warm"), (8 * KIB,))]
    plain = {
        "lat_dma_sweep_rd_rnd_64": sweep("lat_rd", "dma", all_caches),
        "lat_cmd_sweep_rd_rnd_64": sweep("lat_rd", "command", all_caches),
        "lat_cmd_sweep_wrrd_rnd_64": sweep("lat_wrrd", "command", ("cold",)),
        "lat_dma_sweep_wrrd_rnd_64": sweep("lat_wrrd", "dma", ("cold",)),
        "lat_dma_details": details,
    }
    walks = {
        "lat_cmd_sweep_rd_rnd_64": sweep("lat_rd", "command", ("cold",)),
        "bw_dma_win_sweep_rd_rnd_64": sweep("bw_rd", "dma", ("cold",), (64 * MIB,)),
    }
    return [
        str(write_set(folder / "hidden", host, plain)),
        str(write_set(folder / "hidden-iommu-nosp", host, walks, iommu="nosp")),
        str(write_set(folder / "hidden-s0-s1-s1", host, plain, node="remote")),
    ]


def test_a_hidden_host_is_recovered(machine: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "host.toml"
    status = cli.status(["calibrate", *machine, "-o", str(output), "--json", str(tmp_path / "why.json")])
    shown, said = capsys.readouterr()
    assert status == 0, said
    found = tomllib.loads(output.read_text(encoding="utf-8"))["host"]
    for table, values in HIDDEN.items():
        for key, value in values.items():
            ours = (found[table] if table else found)[key]
            ours = float(ours.removesuffix("ns")) if isinstance(ours, str) else ours
            assert ours == pytest.approx(value, rel=0.05), f"{table}.{key}"
    assert (found["cache"]["size"], found["cache"]["ddio_ways"]) == ("20MiB", 3)
    assert "hidden-iommu-nosp: lat_cmd_sweep_rd_rnd_64.csv" in shown, "the table says what fixed the walk"
    why = {row["parameter"]: row for row in json.loads((tmp_path / "why.json").read_text(encoding="utf-8"))}
    assert abs(why["memory.latency"]["simulated"] - why["memory.latency"]["measured"]) < 1


def test_the_recovered_host_measures_like_the_hidden_one(
    machine: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "host.toml"
    assert cli.status(["calibrate", *machine, "-o", str(output), "--quiet"]) == 0
    assert cli.status(["validate", *machine, "--host", str(output), "--json", "-", "--quiet"]) == 0
    lines = {(line["host"], line["series"]): line for line in json.loads(capsys.readouterr().out)}
    assert lines["all", "all latency"]["within_tick"] > 0.97
    assert lines["hidden-iommu-nosp", "all bandwidth"]["max_error"] < 0.05
    assert lines["all", "all distribution"]["p95_error"] < 0.04


def test_latencies_are_taken_from_bandwidths_if_there_is_nothing_else(machine: list[str], tmp_path: Path) -> None:
    host = str(Path(machine[0]).parent / "hidden.toml")
    data = write_set(
        tmp_path / "only",
        host,
        {"bw_dma_win_sweep_rd_rnd_64": sweep("bw_rd", "dma", ("cold", "host-warm"), (64 * KIB,))},
    )
    output = tmp_path / "host.toml"
    assert cli.status(["calibrate", str(data), "-o", str(output), "--quiet"]) == 0
    text = output.read_text(encoding="utf-8")
    assert (
        "# The data sets lack latencies of 64 B reads: the parameters follow from bandwidths, by Little's law." in text
    )
    found = tomllib.loads(text)["host"]
    # Bandwidths do not tell the memory's tail from its latency, which takes both.
    hidden = HIDDEN["memory"]["latency"]
    assert hidden < float(found["memory"]["latency"].removesuffix("ns")) < 1.2 * hidden


@pytest.mark.parametrize(
    ("which", "message"),
    [
        (
            slice(2, 3),
            "it is of remote memory alone, which does not separate the memory from the path to it; add the machine's data set of local",
        ),
        (slice(0, 0), "Missing argument 'DATASET...'"),
    ],
)
def test_incomplete_data_sets_are_refused(
    machine: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], which: slice, message: str
) -> None:
    output = tmp_path / "host.toml"
    assert cli.status(["calibrate", *machine[which], "-o", str(output)]) == 2
    assert message in capsys.readouterr().err
    assert not output.exists()


@pytest.mark.parametrize("known", [True, False], ids=["host-warm reads", "nothing"])
def test_an_undocumented_cache_is_measured_or_named_as_absent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], known: bool
) -> None:
    folder = Path(shutil.copytree(T630, tmp_path / "machine"))
    (folder / "sys-cpuinfo.txt").unlink()
    (folder / "sys-lstopo.txt").unlink()
    if not known:
        for name in ("lat_dma_details.csv", "lat_dma_details_cdf.csv"):
            (folder / name).unlink()
        for name in ("lat_dma_sweep_rd_rnd_64.csv", "lat_cmd_sweep_rd_rnd_64.csv"):
            rows = (folder / name).read_text(encoding="utf-8").splitlines(keepends=True)
            (folder / name).write_text("".join(row for row in rows if "HWarm" not in row), encoding="utf-8")
    output = tmp_path / "host.toml"
    assert cli.status(["calibrate", str(folder), "-o", str(output)]) == 0
    found = tomllib.loads(output.read_text(encoding="utf-8"))["host"]
    shown = " ".join(capsys.readouterr().out.split())
    if known:
        # The machine has 15 MiB; reads of a window that the processor has touched find somewhat less there.
        assert 12 <= int(found["cache"]["size"].removesuffix("MiB")) <= 16
    else:
        assert "cache" not in found
    assert ("this host has no cache, and warm lines take as long as cold ones." in shown) is not known


@pytest.mark.parametrize(
    ("kib", "ways"),
    [(1024, 16), (1280, 20), (6144, 16), (8192, 16), (12288, 16), (15360, 20), (19712, 16), (45056, 16)],
)
def test_a_cache_of_any_size_is_calibrated(tmp_path: Path, kib: int, ways: int) -> None:
    folder = Path(shutil.copytree(T630, tmp_path / "machine"))
    about = folder / "sys-cpuinfo.txt"
    text = about.read_text(encoding="utf-8").replace("15360 KB", f"{kib} KB")
    about.write_text(text.replace("Intel(R) Xeon(R) CPU E5-2620 v3 @ 2.40GHz", "AMD EPYC 7302"), encoding="utf-8")
    output = tmp_path / "host.toml"
    assert cli.status(["calibrate", str(folder), "-o", str(output), "--quiet"]) == 0
    text = output.read_text(encoding="utf-8")
    cache = tomllib.loads(text)["host"]["cache"]
    assert (cache["ways"], 1 <= cache["ddio_ways"] <= ways) == (ways, True)
    for name in ("Intel Xeon", "Haswell:", "DDR"):
        assert name not in text, "nothing is said of a processor that nobody knows"


SLEEPER = """\
title = "A host that sleeps"
source = "A test"

[host]
latency = "100ns"
line_interval = "14ns"
memory.latency = "140ns"
sleep = { after = "430ns", wake = ["0% 0ns", "5% 600ns", "10% 640ns", "60% 640ns", "100% 2us"], doze_after = "270ns", doze = ["0% 0ns", "60% 0ns", "100% 3us"] }
stall = { every = "1200us", lasts = "800us" }
"""


def test_a_host_that_sleeps_is_recovered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    host = tmp_path / "hidden.toml"
    host.write_text(SLEEPER, encoding="utf-8")
    windows, caches = (8 * KIB, 64 * KIB, 256 * KIB), ("cold", "host-warm")
    reads = {name: [replace(case, count=5000) for case in sweep("lat_rd", interface, caches, windows)]
             for name, interface in (("lat_dma_details", "dma"), ("lat_cmd_details", "command"))}  # fmt: skip
    loaded = {"bw_dma_win_sweep_rd_rnd_64": sweep("bw_rd", "dma", caches, windows)}
    data = write_set(tmp_path / "desk", str(host), {**reads, **loaded})
    output = tmp_path / "host.toml"
    assert cli.status(["calibrate", str(data), "-o", str(output), "--quiet"]) == 0, capsys.readouterr().err
    found = tomllib.loads(output.read_text(encoding="utf-8"))["host"]
    assert found["memory"]["latency"] != "0ns"
    assert float(found["memory"]["latency"].removesuffix("ns")) == pytest.approx(140, abs=10), "averages are above 1 us"
    wake = {rank: float(ns.removesuffix("ns")) for rank, ns in (text.split("% ") for text in found["sleep"]["wake"])}
    assert wake["50"] == pytest.approx(640, abs=15)
    assert wake["80"] == pytest.approx(1320, abs=150)
    assert 300 < float(found["sleep"]["after"].removesuffix("ns")) < 490
    assert float(found["stall"]["lasts"].removesuffix("us")) == pytest.approx(800, rel=0.05)
    assert float(found["stall"]["every"].removesuffix("us")) == pytest.approx(1200, rel=0.3)
    assert "jitter" not in found
    assert cli.status(["validate", str(data), "--host", str(output), "--json", "-", "--quiet"]) == 0
    lines = {line["series"]: line for line in json.loads(capsys.readouterr().out)}
    assert lines["all latency"]["median_error"] < 0.03
    assert lines["all bandwidth"]["max_error"] < 0.1, "under load it neither sleeps nor stalls"


def test_a_fit_that_misses_its_own_data_is_bad(
    machine: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hidden, far = Path(machine[0]).parent / "hidden.toml", tmp_path / "far.toml"
    far.write_text(
        hidden.read_text(encoding="utf-8").replace('latency = "301.0ns"', 'latency = "1500ns"'), encoding="utf-8"
    )
    small = (8 * KIB, 64 * KIB)
    data = write_set(
        tmp_path / "odd", str(hidden), {"lat_dma_sweep_rd_rnd_64": sweep("lat_rd", "dma", ("cold",), small)}
    )
    output = tmp_path / "host.toml"
    assert cli.status(["calibrate", str(data), "-o", str(output), "--quiet"]) == 0, capsys.readouterr().err
    assert "This fit is bad" not in output.read_text(encoding="utf-8")
    # Bandwidths of another machine, which nobody would notice otherwise.
    write_set(data, str(far), {"bw_dma_win_sweep_rd_rnd_64": sweep("bw_rd", "dma", ("cold",), small)})
    assert cli.status(["calibrate", str(data), "-o", str(output), "--quiet"]) == 1
    said = capsys.readouterr().err
    assert "This fit is bad: odd, bandwidth: off by " in said
    assert "odd: bw_dma_win_sweep_rd_rnd_64 64 B 8 KiB cold: off by " in said
    assert "# This fit is bad: odd, bandwidth" in output.read_text(encoding="utf-8"), "the profile says so, too"


def test_large_pages_alone_make_a_whole_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(shutil.copytree(T630, tmp_path / f"{T630.name}-iommu"))
    for path in folder.glob("*.csv"):
        if path.name not in ("lat_dma_sweep_rd_rnd_64.csv", "lat_dma_sizes.csv"):
            path.unlink()
    output = tmp_path / "host.toml"
    assert cli.status(["calibrate", str(folder), "-o", str(output), "--quiet"]) == 0
    assert cli.status(["validate", str(folder), "--host", str(output), "--quiet"]) == 0, capsys.readouterr().err
    text = output.read_text(encoding="utf-8")
    found = tomllib.loads(text)["host"]
    assert found["iommu"] == {"mode": "superpages", "walk": "251.0ns", "entries": 119, "interval": "47.1ns"}
    assert (
        f"# {folder.name}: not in the data; 46.9 and 47.4 ns were measured (E5-2620 v3 and E5-2637 v3, Haswell servers)"
        in text
    )


def test_how_soon_walks_follow_is_the_generations_where_only_latencies_are_known(
    machine: list[str], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(machine[1], tmp_path / "new-iommu-nosp"))
    (folder / "bw_dma_win_sweep_rd_rnd_64.csv").unlink()
    output = tmp_path / "host.toml"
    assert cli.status(["calibrate", str(folder), "-o", str(output), "--quiet"]) == 0
    text = output.read_text(encoding="utf-8")
    found = tomllib.loads(text)["host"]["iommu"]
    assert float(found["walk"].removesuffix("ns")) == pytest.approx(HIDDEN["iommu"]["walk"], rel=0.05)
    assert found["interval"] == "47.1ns"
    assert "# The data do not show these parameters of page walks: interval. [host.iommu] names their source." in text
    assert "not known of this processor; as E5-2620 v3 and E5-2637 v3" in text


def test_local_memory_may_be_that_of_a_twin(
    machine: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    far = Path(shutil.copytree(machine[2], tmp_path / "twin-s0-s1-s1"))
    output = tmp_path / "host.toml"
    assert cli.status(["calibrate", str(far), machine[0], "-o", str(output), "--quiet"]) == 0, capsys.readouterr().err
    text = output.read_text(encoding="utf-8")
    hop = tomllib.loads(text)["host"]["numa"]["hop"]
    assert float(hop.removesuffix("ns")) == pytest.approx(HIDDEN["numa"]["hop"], rel=0.05)
    assert "# Local memory is that of hidden, another machine with the same processor." in text
    (far / "sys-cpuinfo.txt").write_text("model name\t: Another\n", encoding="utf-8")
    assert cli.status(["calibrate", str(far), machine[0], "-o", str(output), "--quiet"]) == 2
    assert (
        "the data sets are of different machines: twin, hidden; calibrate one machine at a time"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("host", [name for name, _ in _core.hosts() if name.startswith("xeon")])
def test_a_shipped_profile_states_the_simulated_latency(host: str) -> None:
    said = re.search(
        r"; 64 B read, cold, ns: measured [\d.]+, simulated ([\d.]+)$", dict(_core.hosts())[host], re.MULTILINE
    )
    assert said is not None
    case = Case("lat_rd", 64, window=8 * KIB, pattern="random", cache="cold", count=500)
    [result] = bench.run([case], host=host, device="nfp6000", link="gen3 x8")
    assert result.latency is not None
    # The profile's is an average over windows of up to 256 KiB, and over another course of the jitter.
    assert result.latency.average_ns == pytest.approx(float(said[1]), abs=2)
