"""Studies: the commands, the data set's bytes, devices in Python and libraries, interruptions, mistakes."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from a_study import STUDY
from libraries import copier_in_c

import tlplab as tl
from studies.designs import index
from tlplab import _core
from tlplab.cli import status
from tlplab.study.running import builds, store_folder

ROOT = Path(__file__).resolve().parents[2]

Run = Callable[..., int]


def kept(folder: Path) -> int:
    """The number of results in a store."""
    return _core.count_results(str(folder))


def made(capsys: pytest.CaptureFixture[str], *arguments: str) -> int:
    """The number of runs that a study makes."""
    assert status(["sweep", *arguments]) == 0
    told = capsys.readouterr().out.splitlines()[-1]
    word = told.split(": ")[1].split()[0]
    return 0 if word == "no" else int(word)


def test_sweep_prints_a_line_for_each_point_and_refusals(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["sweep", "study.toml"]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 100
    assert [line.split()[:2] for line in said.splitlines() if line.startswith("gen4 x8")] == [["gen4", "x8"]] * 3
    assert '3 points refused: --set: switch.sw0.link: unsupported generation "gen9"; expected gen1 to gen7' in said
    assert "9 points: 6 runs made, 0 known, 3 refused; left out: no more than 30 (3)" in said
    assert kept(store_folder()) == 6
    assert status(["sweep", "study.toml", "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["left_out"] == {"no more than 30": 3}
    assert document["axes"] == [{"name": "uplink", "unit": None}, {"name": "nic_rate", "unit": "b/s"}]
    kinds = [point["kind"] for point in document["points"]]
    assert kinds == ["done"] * 3 + ["refused"] * 3 + ["done"] * 3
    first = document["points"][0]
    assert first["values"] == {"uplink": "gen4 x4", "nic_rate": 10_000_000_000}
    result = tl.run("one.toml", overrides=["load.nic.rate=10Gb/s"], verdict=False)
    assert first["figures"]["throughput"]["mean"] == sum(flow["payload_bps"] for flow in result["flows"])


def test_the_data_set_is_the_same_byte_for_byte(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pyarrow = pytest.importorskip("pyarrow.parquet")
    study.write_text(STUDY + "[repeats]\nseeds = 2\n")
    assert status(["sweep", "study.toml", "--quiet", "--store", "a", "--threads", "1", "-o", "one.parquet"]) == 0
    assert status(["sweep", "study.toml", "--quiet", "--store", "b", "--threads", "2", "-o", "two.parquet"]) == 0
    for part in ("1/2", "2/2"):
        assert (
            status(["sweep", "study.toml", "--quiet", "--store", f"c{part[0]}", "--shard", part, "-o", "part.parquet"])
            == 0
        )
    assert kept(Path("c1")) + kept(Path("c2")) == kept(Path("a")) == 12
    shutil.copytree("c1", "c", dirs_exist_ok=True)
    shutil.copytree("c2", "c", dirs_exist_ok=True)
    assert made(capsys, "study.toml", "--store", "c", "-o", "merged.parquet") == 0
    one = Path("one.parquet").read_bytes()
    assert one == Path("two.parquet").read_bytes()
    assert one == Path("merged.parquet").read_bytes()
    table = pyarrow.read_table("one.parquet")
    assert table.num_rows == 2 * 6 + 3
    assert table["point"].to_pylist() == sorted(table["point"].to_pylist())
    units = {field.name: (field.metadata or {}).get(b"unit") for field in table.schema}
    assert units["nic.latency.p99"] == b"ns"
    assert units["nic_rate"] == units["throughput"] == b"b/s"
    assert units["share"] == b"1"
    assert table.schema.metadata[b"tlplab.left_out"] == b'{"no more than 30":3}'
    assert table["kind"].to_pylist().count("refused") == 3
    assert set(table["seed"].to_pylist()) == {1, 2, None}
    assert not {"limit", "verdict"} & set(table.schema.names)


def test_arrow_and_csv(study: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = tl.sweep("study.toml", where=["uplink != 'gen9 x8'"])
    arrow = pyarrow.table(table)
    assert len(table) == arrow.num_rows == 6
    assert arrow["uplink"].to_pylist() == ["gen4 x4"] * 3 + ["gen4 x8"] * 3
    assert arrow["nic_rate"].to_pylist()[:3] == [10_000_000_000, 20_000_000_000, 30_000_000_000]
    assert table.to_numpy()["throughput"].tolist() == arrow["throughput"].to_pylist()
    assert status(["sweep", "study.toml", "--quiet", "-o", "points.csv"]) == 0
    with open("points.csv", newline="", encoding="utf-8") as file:
        head, *rows = [row for row in csv.reader(file) if "refused" not in row]
    assert head[:3] == ["point", "uplink", "nic_rate"]
    at = head.index("throughput")
    assert [float(row[at]) for row in rows] == arrow["throughput"].to_pylist()


def test_the_limit_of_a_point_is_found_by_runs(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["sweep", "study.toml", "--verdict", "--json", "-", "--where", "nic_rate == 30Gb/s"]) == 0
    limits = [point["limit"] for point in json.loads(capsys.readouterr().out)["points"] if point["kind"] == "done"]
    assert limits[0] == "link sw0 → host.rp0"
    run = tl.run("one.toml", overrides=["load.nic.rate=30Gb/s"])
    assert limits[0] == run["verdict"]["limit"]["resource"]


def test_the_front_holds_the_undominated_points(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["pareto", "study.toml", "throughput,latency.p99,lanes", "--json", "-"]) == 0
    points = json.loads(capsys.readouterr().out)["points"]
    done = [point for point in points if point["kind"] == "done"]
    front = [point for point in points if point["front"]]
    assert 0 < len(front) < len(done)

    def beats(a: Any, b: Any) -> bool:
        pairs = [(a["figures"][name]["mean"], b["figures"][name]["mean"]) for name in a["figures"]]
        pairs[0] = (-pairs[0][0], -pairs[0][1])
        return all(x <= y for x, y in pairs) and any(x < y for x, y in pairs)

    assert [point["front"] for point in done] == [not any(beats(other, point) for other in done) for point in done]
    assert status(["pareto", "study.toml", "max:throughput/lanes,latency.p99", "--plot", "front.svg"]) == 0
    assert "are on the Pareto front: more throughput/lanes, less latency.p99" in capsys.readouterr().out
    assert Path("front.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize("name", [path.stem for path in index.studies()])
def test_the_pages_of_the_studies_are_fresh(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = Path(f"studies/designs/{name}.md").read_text(encoding="utf-8")
    found = re.search(r"^This page is generated from .*`tlplab (.*)`\.$", page, re.MULTILINE)
    assert found, "a page says the command that writes it"
    written = [
        word for word in shlex.split(found[1]) if word.startswith(f"studies/designs/{name}.") and word[-5:] != ".toml"
    ]
    command = [str(tmp_path / Path(word).name) if word in written else word for word in shlex.split(found[1])]
    assert status([*command, "--quiet", "--store", str(tmp_path / "store")]) == 0
    for file in map(Path, written):
        made, kept = (tmp_path / file.name).read_text(encoding="utf-8"), file.read_text(encoding="utf-8")
        if file.suffix == ".svg" and f"Matplotlib v{matplotlib.__version__}," not in kept:
            continue  # another version draws another picture
        assert made == kept, "run `make generate`"


def test_the_list_of_studies_is_fresh() -> None:
    assert index.PAGE.read_text(encoding="utf-8") == index.text(), "run `make generate`"


def test_a_finding_that_does_not_hold_is_reported(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finding = (
        '[finding]\nsays = "It is {wide}, {share %} of it for one."\nholds = "wide HOW 90 Gb/s"\n[finding.figures]\n'
        'wide = { of = "throughput", where = "uplink == \'gen4 x8\' and nic_rate == 30Gb/s" }\n'
        'nic = { of = "nic.throughput", where = "uplink == \'gen4 x8\' and nic_rate == 30Gb/s" }\n'
        'share = { from = "nic / wide" }\n'
    )
    study.write_text(STUDY + finding.replace("HOW", "<"))
    assert status(["sweep", "study.toml"]) == 0
    said = capsys.readouterr().out.splitlines()[-1]
    assert said.startswith("It is 8")
    assert said.endswith(" % of it for one.")
    study.write_text(STUDY + finding.replace("HOW", ">"))
    assert status(["sweep", "study.toml"]) == 1
    assert "the study's finding does not hold: It is 8" in capsys.readouterr().err
    assert status(["sweep", "study.toml", "--set", "stop=8us"]) == 0, "it is of the study as it is written"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["none.toml"], "none.toml: cannot read it: there is no such file"),
        (["study.toml", "--metrics", "nic.thruput"], "column 1: unknown metric nic.thruput; did you mean nic.throughput?"),
        (["study.toml", "--metrics", "nik.throughput"], "no point has nik.throughput; did you mean nic.throughput?"),
        (["study.toml", "--metrics", "throughput > 3"], "> cannot combine a number of b/s and a plain number"),
        (["study.toml", "--where", "uplnk == 'gen4 x4'"], "--where: in \"uplnk == 'gen4 x4'\", column 1: no axis is called uplnk; did you mean uplink?"),
        (["study.toml", "--set", "swich.sw0.mps=128B"], "9 points refused: --set: swich"),
        (["study.toml", "--shard", "3/2"], "'3/2' is not a part; write 1/4 for the first of four"),
        (["study.toml", "-o", "x.xlsx"], "name a file that ends in .parquet or .csv"),
        (["study.toml", "-o", "none/x.csv"], "the folder none does not exist"),
        (["study.toml", "-o", "study.toml"], "both name study.toml"),
    ],
)  # fmt: skip
def test_mistakes_in_options_are_reported(
    study: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], why: str
) -> None:
    assert status(["sweep", *arguments]) == 2
    written = capsys.readouterr()
    assert why in " ".join((written.out + written.err).split())
    assert "Traceback" not in written.err


def test_a_study_of_a_folder_that_cannot_be_written_ends(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("store").write_text("a file")
    assert status(["sweep", "study.toml", "--store", "store"]) == 1
    assert "cannot make the folder" in capsys.readouterr().err


def test_without_pyarrow_parquet_is_refused_before_anything_runs(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert status(["sweep", "study.toml", "-o", "x.parquet"]) == 2
    assert "pip install 'tlplab[studies]'" in " ".join(capsys.readouterr().err.split())
    assert kept(store_folder()) == 0


def test_devices_in_python_run_in_processes(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("copier.py", "copier.toml"):
        shutil.copy(ROOT / "examples/python" / name, name)
    study.write_text(
        'experiment = "copier.toml"\n[[axis]]\nkey = "device.copier.link"\nvalues = ["gen3 x4", "gen3 x8"]\n'
    )
    assert status(["sweep", "study.toml", "--json", "-"]) == 0
    written = capsys.readouterr()
    assert "note: 2 runs have a device or driver in Python: they run in processes, not in threads" in written.err
    points = json.loads(written.out)["points"]
    run = tl.run("copier.toml", overrides=["device.copier.link=gen3 x4"])
    assert points[0]["figures"]["throughput"]["mean"] == sum(flow["payload_bps"] for flow in run["flows"])
    assert made(capsys, "study.toml") == 0
    with open("copier.py", "a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert made(capsys, "study.toml") == 2
    text = Path("copier.py").read_text()
    Path("copier.py").write_text(text + "raise RuntimeError('broken')\n")
    assert status(["sweep", "study.toml"]) == 2
    assert "2 points refused:" in (said := capsys.readouterr().out)
    assert "copier.py" in said


def test_a_library_that_changes_is_another_point(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library = copier_in_c(study.parent)
    for name in ("copier.toml", "driver.py"):
        shutil.copy(ROOT / "examples/c" / name, name)
    study.write_text('experiment = "copier.toml"\n')
    assert [made(capsys, "study.toml") for _ in range(2)] == [1, 0]
    with library.open("ab") as file:
        file.write(b"more")
    assert [made(capsys, "study.toml") for _ in range(2)] == [1, 0]
    with open("driver.py", "a", encoding="utf-8") as text:
        text.write("# changed\n")
    assert [made(capsys, "study.toml") for _ in range(2)] == [1, 0]


def slow(study: Path) -> list[str]:
    """The command of a study that takes some seconds."""
    study.write_text(
        'experiment = "one.toml"\nset = ["stop=400us"]\n[[axis]]\nkey = "load.nic.rate"\nname = "rate_of_nic"\nfrom = "1Gb/s"\nto = "40Gb/s"\nsteps = 40\n'
    )
    return [sys.executable, "-m", "tlplab", "sweep", "study.toml", "--store", "store", "-o", "out.csv"]


def wait_for(results: int) -> None:
    """Waits until so many results are kept."""
    until = time.monotonic() + 60
    while kept(Path("store")) < results:
        assert time.monotonic() < until, "nothing is kept"
        time.sleep(0.01)


@pytest.mark.parametrize(("number", "ends_with"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_finished_runs_survive_a_signal(
    study: Path, capsys: pytest.CaptureFixture[str], number: int, ends_with: int
) -> None:
    command = slow(study)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(3)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == ends_with
    assert not Path("out.csv").exists()
    whole = kept(Path("store"))
    assert 3 <= whole < 40
    if number == signal.SIGINT:
        assert f"interrupted: {whole} of 40 runs are stored; the same command resumes" in said
    assert made(capsys, "study.toml", "--store", "store", "-o", "out.csv") == 40 - whole
    resumed = Path("out.csv").read_bytes()
    assert made(capsys, "study.toml", "--store", "fresh", "-o", "out.csv") == 40
    assert Path("out.csv").read_bytes() == resumed


def test_finished_runs_of_processes_survive_an_interrupt(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("copier.py", "copier.toml"):
        shutil.copy(ROOT / "examples/python" / name, name)
    with open("copier.py", "a", encoding="utf-8") as file:
        file.write("import time\ntime.sleep(0.05)\n")
    study.write_text('experiment = "copier.toml"\n[repeats]\nseeds = 24\n')
    command = [sys.executable, "-m", "tlplab", "sweep", "study.toml", "--store", "store"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(3)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    done = kept(Path("store"))
    assert 3 <= done < 24
    assert f"interrupted: {done} of 24 runs are stored" in said
    assert "Traceback" not in said
    assert made(capsys, "study.toml", "--store", "store") == 24 - done


def test_several_processes_share_a_store(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = slow(study)
    processes = [
        subprocess.Popen([*command[:-1], f"out{n}.csv", "--threads", "1"], stdout=subprocess.PIPE, text=True)
        for n in (1, 2, 3)
    ]
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0]
    for process in processes:
        process.communicate()
    assert kept(Path("store")) == 40
    assert Path("out1.csv").read_bytes() == Path("out2.csv").read_bytes() == Path("out3.csv").read_bytes()


def test_the_build_is_known_by_its_bytes() -> None:
    simulator, python = builds()
    assert len(simulator) == len(python) == 64
    assert simulator != python


def test_results_are_kept_where_the_system_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert store_folder() == Path("/somewhere/tlplab/points")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert store_folder() == Path(os.path.expanduser("~/.cache/tlplab/points"))
