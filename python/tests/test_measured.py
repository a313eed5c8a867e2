"""Data sets of measured machines: reading, checking, comparing."""

from __future__ import annotations

import itertools
import json
import random
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tlplab import cli
from tlplab.bench import Case
from tlplab.bench.calibration.command import show
from tlplab.bench.calibration.compare import Summary, compare, quantile, summaries, summarise
from tlplab.bench.calibration.dataset import DataSet, read_dataset
from tlplab.bench.calibration.hosts import has_iommu
from tlplab.bench.calibration.machine import Setting, setting_of
from tlplab.bench.calibration.observe import capacity, jitter_of
from tlplab.bench.calibration.states import Labels, labels_of
from tlplab.bench.calibration.target import Outcome, Progress
from tlplab.errors import DatasetError

T630 = Path(__file__).parent / "data" / "pciebench" / "hsw-Xeon-E5-2620v3_dell-t630"
TICK = 16 / 1.2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the data set, to be spoilt."""
    return Path(shutil.copytree(T630, tmp_path / T630.name))


def edit(path: Path, line: int, old: str, new: str) -> None:
    """Replaces text in one line (from 1)."""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert old in lines[line - 1], lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new, 1)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_a_data_set_becomes_series() -> None:
    data = read_dataset(T630)
    assert (data.machine_name, data.setting) == (T630.name, Setting("off", "local"))
    assert data.machine.processor == "Intel(R) Xeon(R) CPU E5-2620 v3 @ 2.40GHz"
    assert (data.machine.cache_size, data.machine.nodes, data.machine.link) == (15 << 20, 1, "gen3 x8")
    assert (data.machine.max_payload, data.machine.max_read_request) == (256, 512)
    assert data.tick == pytest.approx(TICK)
    names = {one.name: (one.quantity, one.swept, len(one.points)) for one in data.series}
    assert names["bw_dma_sz_sweep rdwr 8 KiB host-warm"] == ("bandwidth", "size", 9)
    assert names["bw_dma_off_rd 64 B 8 KiB by device offset host-warm"] == ("bandwidth", "device offset", 2)
    assert names["lat_cmd_sweep_rd_rnd_64 64 B device-warm"] == ("latency", "window", 14)
    [point] = [
        p for p in data.points("bw_dma_win_sweep_rd_rnd_64") if p.case.window == 3 << 19 and p.case.cache == "cold"
    ]
    assert point.value == pytest.approx(28.16, abs=0.01), "the window is written 1572864.0"
    assert [one.name for one in data.distributions] == [
        "lat_dma_details_cdf rd 64 B 8 KiB cold",
        "lat_dma_details_cdf rd 64 B 8 KiB host-warm",
    ]
    assert [round(data.distributions[1].quantile(q)) for q in (0.5, 0.999)] == [547, 600]


@pytest.mark.parametrize(
    ("name", "machine", "setting"),
    [
        ("hsw-a_b-iommu-nosp", "hsw-a_b", Setting("nosp", "local")),
        ("hsw-a_b-iommu", "hsw-a_b", Setting("on", "local")),
        ("ib-a_b-s0-s1-s1", "ib-a_b", Setting("off", "remote")),
        ("ib-a_b-s1-s1-s0", "ib-a_b", Setting("off", "local")),
        ("anything", "anything", Setting("off", "local")),
    ],
)
def test_a_folder_name_gives_machine_and_settings(name: str, machine: str, setting: Setting) -> None:
    assert setting_of(name) == (machine, setting)


SZ = "bw_dma_sz_sweep.csv"
LAT = "lat_dma_sizes.csv"
CDF = "lat_dma_details_cdf.csv"


@pytest.mark.parametrize(
    ("file", "line", "old", "new", "message"),
    [
        (SZ, 1, ",SZ,", ",", "bw_dma_sz_sweep.csv:1: column SZ: is missing; a bandwidth file has Test,PAT"),
        (SZ, 1, "BW (GB/s)", "BW (MB/s)", "column BW (MB/s): has a unit that pcie-bench does not use; it should be “BW (GB/s)”"),
        (SZ, 1, "Trans,", "SZ,", "column SZ: appears twice"),
        (SZ, 1, "Test,PAT,Cache,HO,DO,WinSZ,SZ,Time(cyc),Time,Bytes,Trans,BW (GB/s),Trans/s", "a;b", "these are not columns of pcie-bench: a;b"),
        (SZ, 3, "BW_DMA_RD,Rand", "BW_DMA_RD", ":3: 12 values for 13 columns; the line is truncated"),
        (SZ, 4, ",8192,", ",8KiB,", ":4: column WinSZ: “8KiB” is not a number; a number without a unit"),
        (SZ, 4, ",8192,", ",-8192,", "column WinSZ: -8192 is out of range; a number above 0"),
        (SZ, 4, ",8192,", ",nan,", "column WinSZ: nan is out of range"),
        (SZ, 4, ",8192,", ",,", "column WinSZ: “” is not a number; the value is missing"),
        (SZ, 4, ",8192,", ",8192.5,", "column WinSZ: 8192.5 is not a whole number"),
        (SZ, 4, ",8192,", ",100,", "column SZ: 129 bytes do not fit in a window of 100"),
        (SZ, 4, "HWarm", "Warm", "column Cache: “Warm” is unknown; one of Cold, HWarm, DWarm, DThrash"),
        (LAT, 4, "LAT_DMA_RD", "LAT_CMD_RD", "256 bytes by the command interface; it moves at most 64 bytes"),
        (LAT, 1, "Med(ns)", "Med(us)", "column Med(us): has a unit that pcie-bench does not use; it should be “Med(ns)”"),
        (CDF, 4, ",0.9166240692138672", ",9.166240692138672", "column cdf: 9.16624 is above 1; a fraction of the samples"),
        (CDF, 2, "586.6666666666666,0", "586.6666666666666,1", "_cdf.csv:2: column cdf: the first distribution begins at 1; at 0"),
        (CDF, 4, "600.0", "0", ":4: column ns: 0 is out of range; a number above 0"),
        (CDF, 4, "720", "7" * 200_000, "this is not CSV: field larger than field limit (131072); the file is damaged"),
    ],
)  # fmt: skip
def test_a_spoilt_table_is_refused(folder: Path, file: str, line: int, old: str, new: str, message: str) -> None:
    edit(folder / file, line, old, new)
    with pytest.raises(DatasetError) as error:
        read_dataset(folder)
    assert message in str(error.value)
    assert str(error.value).startswith(str(folder / file))


def test_figures_in_another_unit_are_refused(folder: Path) -> None:
    path = folder / SZ
    rows = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows[1:]:
        row[11] = str(float(row[11]) / 8)  # what the column's name says
    path.write_text("\n".join(map(",".join, rows)) + "\n", encoding="utf-8")
    with pytest.raises(DatasetError, match=r"column BW \(GB/s\): .* does not agree .* Bytes and Time, in Gb/s, give"):
        read_dataset(folder)


def test_microseconds_are_refused(folder: Path) -> None:
    path = folder / LAT
    rows = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows[1:]:
        row[14:21] = [str(float(value) / 1000) for value in row[14:21]]
    path.write_text("\n".join(map(",".join, rows)) + "\n", encoding="utf-8")
    with pytest.raises(DatasetError, match="is a clock of 1200 GHz; the column is in nanoseconds"):
        read_dataset(folder)


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.95])
@pytest.mark.parametrize("file", [SZ, LAT, CDF])
def test_a_file_that_was_cut_off_is_refused(folder: Path, file: str, keep: float) -> None:
    path = folder / file
    data = path.read_bytes()
    cut = data.index(b",", round(len(data) * keep))
    path.write_bytes(data[:cut])
    with pytest.raises(DatasetError):
        read_dataset(folder)


def test_other_folders_are_refused(folder: Path, tmp_path: Path) -> None:
    for path, message in (
        (tmp_path / "nothing", "does not exist; name the folder of one machine"),
        (folder / SZ, "is a file; name the folder"),
        (tmp_path, f"this folder has no CSV file of pcie-bench; its subfolders have some: {T630.name}"),
    ):
        with pytest.raises(DatasetError) as error:
            read_dataset(path)
        assert message in str(error.value)
    (folder / SZ).write_text("", encoding="utf-8")
    with pytest.raises(DatasetError, match="the file is empty; it should begin with a line of column names"):
        read_dataset(folder)
    (folder / SZ).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DatasetError, match="byte 0 is not ASCII"):
        read_dataset(folder)


def test_a_data_set_may_be_a_part_of_one(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name != SZ:
            path.unlink()
    data = read_dataset(folder)
    assert (len(data.series), data.tick, data.machine.cache_size, data.distributions) == (3, None, None, ())


def test_distributions_without_their_rows_are_refused(folder: Path) -> None:
    (folder / "lat_dma_details.csv").unlink()
    with pytest.raises(DatasetError, match=r"_cdf\.csv: the file with the cases of these distributions is missing"):
        read_dataset(folder)


def test_a_median_between_two_steps_leaves_the_tick(folder: Path) -> None:
    path = folder / LAT
    rows = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()]
    for name, half in (("Med", 8.0), ("Med(ns)", 8 / 1.2)):
        column = rows[0].index(name)
        rows[1][column] = str(float(rows[1][column]) + half)
    path.write_text("\n".join(map(",".join, rows)) + "\n", encoding="utf-8")
    assert read_dataset(folder).tick == pytest.approx(TICK)


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("[host.iommu]\nentries = 64", True),
        ('[host]\niommu = { mode = "off", entries = 64 }', True),
        ("# no [host.iommu] here\n[host]", False),
        ("[host.iommu", False),
        ("host = 1", False),
    ],
)
def test_a_hosts_iommu_is_found_however_it_is_written(tmp_path: Path, text: str, has: bool) -> None:
    path = tmp_path / "host.toml"
    path.write_text(text, encoding="utf-8")
    assert has_iommu(str(path)) is has


class Line:
    """A machine whose latency and bandwidth are the measured ones, and a bit more."""

    def __init__(self, data: DataSet, labels: Labels, more: float) -> None:
        self.values = {labels.meant(point.case): point.value * (1 + more) for point in data.points()}
        self.steps = {labels.meant(one.case): one.steps for one in data.distributions}
        self.asked: list[Case] = []

    def run(self, cases: Sequence[Case], *, distributions: bool = False, progress: Progress) -> Mapping[Case, Outcome]:
        self.asked += cases
        progress(len(cases), len(cases))
        return {c: Outcome(self.values[c], self.values[c], self.steps[c] if distributions else ()) for c in cases}


def test_errors_cover_every_point() -> None:
    data = read_dataset(T630)
    labels = labels_of(data)
    target = Line(data, Labels(), 0.03)
    found = compare(data, target, Labels(), lambda _, __: None)
    assert len(target.asked) == len(set(target.asked)), "no case runs twice"
    lines = {line.series: line for line in summaries(found)}
    assert lines["all bandwidth"].points == len(data.only("bandwidth").points())
    assert lines["all bandwidth"].median_error == lines["all bandwidth"].max_error == pytest.approx(0.03)
    assert lines["all bandwidth"].within_tick is None
    # 3 % of a latency are less than a tick up to 444 ns.
    latencies = [p.value for p in data.only("latency").points()]
    assert lines["all latency"].within_tick == pytest.approx(sum(v <= TICK / 0.03 for v in latencies) / len(latencies))
    assert lines["all distribution"].max_error == 0
    assert ("command", "host-warm") in labels.cold
    assert set(lines["all bandwidth"].as_json()) >= {
        "host",
        "series",
        "points",
        "median_error",
        "p95_error",
        "max_error",
    }


def test_a_quantile_is_linear_between_values() -> None:
    assert [quantile([1, 2, 4], q) for q in (0, 0.25, 0.5, 0.75, 1)] == [1, 1.5, 2, 3, 4]


def test_cold_runs_labelled_warm_are_found_by_latency() -> None:
    data = read_dataset(T630)
    labels = labels_of(data)
    assert labels.cold == {("command", "host-warm"), ("dma", "device-warm")}
    case = Case("bw_rd", 64, cache="device-warm")
    assert labels.meant(case) == replace(case, cache="cold")
    assert labels.meant(replace(case, cache="host-warm")).cache == "host-warm"
    assert len(labels.notes()) == 2


def test_a_capacity_is_read_off_a_curve_of_misses() -> None:
    data = read_dataset(T630)
    points = [p for p in data.points("lat_cmd_sweep_rd_rnd_64") if p.case.cache == "device-warm"]
    mebi = 1 << 20

    def law(kept: float) -> float:
        found = capacity(points, lambda p: 400 + 70 * max(0.0, 1 - kept / p.case.window))
        assert found is not None
        return found

    for kept in (0.5 * mebi, 1.5 * mebi, 3 * mebi):
        assert law(kept) == pytest.approx(kept, rel=0.02)
    assert capacity(points, lambda _: 400.0) is None, "a flat curve shows no capacity"
    # Two of twenty ways of 15 MiB.
    assert capacity(points, lambda p: p.average) == pytest.approx(1.5 * mebi, rel=0.05)


def test_jitter_is_found_below_the_tick() -> None:
    """Latencies of 500 ns and a known tail, as timestamps show them, give that tail back."""
    random.seed(7)
    samples: dict[float, int] = {}
    many = 200_000
    for _ in range(many):
        tail = random.random()
        taken = 500.0 if tail < 0.9 else 500 + (tail - 0.9) / 0.1 * 300
        begun = random.random() * TICK
        ticks = int((begun + taken) // TICK)
        samples[ticks * TICK] = samples.get(ticks * TICK, 0) + 1
    seen, steps = 0, []
    for ns, count in sorted(samples.items()):
        seen += count
        steps.append((ns, seen / many))
    data = read_dataset(T630)
    one = replace(data.distributions[1], steps=tuple(steps))
    found = jitter_of(replace(data, distributions=(one,)), Labels(), "host-warm")
    assert found is not None
    quantiles, _ = found
    core = max(ns for rank, ns in quantiles if rank < 0.88) if any(0 < rank < 0.88 for rank, _ in quantiles) else 0.0

    def at(rank: float) -> float:
        for (r0, n0), (r1, n1) in itertools.pairwise(quantiles):
            if r0 <= rank <= r1:
                return n0 + (n1 - n0) * (rank - r0) / (r1 - r0)
        raise AssertionError(rank)

    assert at(0.5) == pytest.approx(core, abs=2)
    assert at(0.95) - core == pytest.approx(150, abs=10)
    assert at(0.99) - core == pytest.approx(270, abs=10)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """(status, stdout, stderr) of a command line."""
    status = cli.status(arguments)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_validate_prints_lines_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot = tmp_path / "plot.png"
    status, out, err = run(capsys, "validate", str(T630), "--host", "server", "--json", "-", "--plot", str(plot))
    assert status == 0, err
    lines = json.loads(out)
    data = read_dataset(T630)
    assert sum(line["points"] for line in lines if line["series"] in ("all bandwidth", "all latency")) == len(
        data.points()
    )
    assert all(
        line["host"] == T630.name and line["max_error"] >= line["p95_error"] >= line["median_error"] for line in lines
    )
    assert plot.read_bytes().startswith(b"\x89PNG")
    status, out, _ = run(capsys, "validate", str(T630), "--host", "server", "--quiet")
    assert (status, out) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["validate", "nowhere"], "nowhere: does not exist; name the folder of one machine"),
        (["validate", str(T630), "--host", "nobody"], "nobody"),
        (["validate", str(T630), "--plot", "plot.txt"], "--plot plot.txt: name a file that ends in .png, .svg or .pdf"),
        (["validate", str(T630), "--link", "gen9 x8"], "gen9"),
        (["validate", str(T630), "--device", "abacus"], "abacus"),
        (["validate", str(T630), "--json", "no/where.json"], "the folder no does not exist"),
        (["calibrate", "nowhere", "-o", "host.toml"], "nowhere: does not exist"),
    ],
)
def test_bad_input_gets_one_message(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_all_mistakes_are_reported_at_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(folder / SZ, 3, "HWarm", "Warm")
    edit(folder / LAT, 2, ",8192,", ",eight,")
    status, _, err = run(capsys, "validate", str(folder))
    assert status == 2
    assert f"{SZ}:3: column Cache" in err
    assert f"{LAT}:2: column WinSZ: “eight” is not a number; a number such as" in err


def test_a_summary_pools_points() -> None:
    data = read_dataset(T630)
    found = compare(data, Line(data, Labels(), 0.0), Labels(), lambda _, __: None)
    only = [one for one in found if one.kind == "latency"][:2]
    assert summarise("x", "both", only).points == sum(len(one.measured) for one in only)


@pytest.fixture
def machines(tmp_path: Path) -> list[str]:
    """Two machines alike, of which little was measured."""
    folders = [shutil.copytree(T630, tmp_path / name) for name in ("one", "other")]
    for path in (path for folder in folders for path in folder.glob("*.csv")):
        if path.name not in (SZ, "lat_dma_sweep_rd_rnd_64.csv"):
            path.unlink()
    return [str(folder) for folder in folders]


def test_a_machine_is_predicted_from_another(
    machines: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written, page = tmp_path / "lines.json", tmp_path / "page.md"
    status, _, err = run(
        capsys, "validate", *machines, "--predict", "--json", str(written), "--markdown", str(page), "--quiet"
    )
    assert status == 0, err
    lines = {(line["host"], line["series"]): line for line in json.loads(written.read_text(encoding="utf-8"))}
    for name in ("one", "other"):
        assert lines[name, "all bandwidth"]["median_error"] < 0.05
        assert (name, "all latency") not in lines, "a bandwidth is predicted, and the latencies make the host"
    text = page.read_text(encoding="utf-8")
    assert "every point of 2 machines in 2 settings is" in text
    fitted, predicted = text.split("## Predicted")
    assert all(f"| {name} | latency |" in fitted and f"| {name} | bandwidth |" in fitted for name in ("one", "other"))
    assert re.search(r"\| one \| bandwidth \|.*\| host: its latencies; device: writes of other \|", predicted)


def test_unpredictable_folders_are_named_and_others_predicted(
    machines: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    far = Path(shutil.copytree(machines[0], tmp_path / "one-s0-s1-s1"))
    sweep = far / "lat_dma_sweep_rd_rnd_64.csv"
    rows = sweep.read_text(encoding="utf-8").splitlines(keepends=True)
    sweep.write_text("".join(row for row in rows if "DThrash" not in row), encoding="utf-8")
    status, out, err = run(capsys, "validate", str(far), *machines, "--predict", "--json", "-", "--quiet")
    assert status == 0, err
    assert "one-s0-s1-s1, bandwidth: not predicted: the latency of its remote memory is unknown" in err
    hosts = {line["host"] for line in json.loads(out)}
    assert hosts == {"one", "other", "all"}, "what can be predicted is"


def test_one_machine_alone_is_not_predicted(
    machines: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    command = ["validate", machines[0], "--host", "xeon-e5-2620v3", "--quiet", "--markdown", str(page)]
    assert run(capsys, *command)[0] == 0
    text = page.read_text(encoding="utf-8")
    assert "every point of 1 machine in 1 setting is" in text
    assert "Predicted" not in text
    assert "was calibrated" not in text
    status, out, err = run(capsys, "validate", machines[0], "--predict")
    assert (status, out) == (2, "")
    assert "these data sets allow no prediction" in err


def test_writes_fix_the_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "device.toml"
    status, out, err = run(capsys, "calibrate", str(T630), "--fit", "device", "-o", str(output))
    assert status == 0, err
    # 64 B take 21.1 ns, 129 B 38.0 ns.
    assert 'passing = { start = "4.1' in output.read_text(encoding="utf-8")
    assert "dma.write.passing.chunk_time" in out
    assert [abs(float(left)) < 0.1 for left in re.findall(r"[+-]0\.\d\d$", out, re.MULTILINE)] == [True, True]


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_validate_fits_a_narrow_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    error = 1234.5
    show([Summary("a-host", "lat_cmd_sweep_wrrd_rnd_64 64 B device-thrash", "latency", 12, error, error, error, None)])
    assert "device-" in capsys.readouterr().out
