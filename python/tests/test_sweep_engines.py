"""Studies whose runs are made by workers of dask: the same bytes as in threads, however a worker ends, and nothing from a worker that is another."""

from __future__ import annotations

import csv
import gc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import a_study
import pytest

import tlplab as tl
from tlplab.cli import status
from tlplab.study import running

distributed = pytest.importorskip("distributed")

from tlplab.study import dask_engine  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
# Of a host whose reads do not all take as long.
EXPERIMENT = a_study.EXPERIMENT.replace("[switch", 'host = "xeon-e5-2637v3"\n[switch', 1).replace("write", "read", 1)
# All of its points, and one figure.
STUDY = a_study.STUDY[: a_study.STUDY.index("[[filter]]")].replace(', "share = nic.throughput / throughput"', "")
REPEATS = '[repeats]\nseeds = 8\nuntil = "ssd.latency.mean within 0.05%"\n'


@pytest.fixture
def study(study: Path) -> Path:
    """The study of this file, where the usual one is."""
    study.with_name("one.toml").write_text(EXPERIMENT)
    study.write_text(STUDY)
    return study


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a cluster with two workers, in this process."""
    with dask_engine.silence(), distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", host="127.0.0.1", dashboard_address="127.0.0.1:0",
        worker_dashboard_address=None,
    ) as cluster:  # fmt: skip
        yield cluster.scheduler_address


def sweep(*arguments: str) -> int:
    """The exit status of a study that is run."""
    return status(["sweep", "study.toml", *arguments])


def counted(said: str) -> tuple[int, int]:
    """The numbers of runs that were made and that were known."""
    found = re.search(r": (no|\d+) runs? made, (\d+) known", said)
    assert found is not None, said
    return 0 if found[1] == "no" else int(found[1]), int(found[2])


def test_workers_make_the_same_bytes_as_threads(study: Path, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    study.write_text(STUDY + REPEATS)
    assert sweep("--store", "here", "-o", "here.csv") == 0
    made, _ = counted(capsys.readouterr().out)
    with open("here.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    repeats = {point: sum(row["point"] == point for row in rows) for point in {row["point"] for row in rows}}
    assert len({count for count in repeats.values() if count > 1}) > 1, "points end early, each at its own time"
    assert sweep("--engine", "dask", "--address", address, "--store", "there", "-o", "there.csv") == 0
    assert counted(capsys.readouterr().out) == (made, 0)
    assert Path("there.csv").read_bytes() == Path("here.csv").read_bytes()
    for part in ("1/2", "2/2"):
        assert sweep("--shard", part, "--quiet", "--engine", "dask", "--address", address, "--store", "parts") == 0
    assert sweep("--store", "parts", "-o", "parts.csv") == 0
    assert counted(capsys.readouterr().out) == (0, made)
    assert Path("parts.csv").read_bytes() == Path("here.csv").read_bytes()
    # What is known needs no cluster.
    assert sweep("--engine", "dask", "--address", "tcp://127.0.0.1:9", "--store", "there", "-o", "again.csv") == 0
    assert Path("again.csv").read_bytes() == Path("here.csv").read_bytes()


def test_other_subjects_and_devices_in_python(study: Path, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("copier.py", "copier.toml"):
        shutil.copy(ROOT / "examples/python" / name, name)
    device = (
        "import tlplab\n\n\nclass Dma(tlplab.Device):\n    ids = tlplab.Ids(0x71AB, 2)\n\n"
        "    async def bench_read(self, cx, address, length):\n        await cx.dma_read(address, length)\n\n"
        "    async def bench_write(self, cx, address, length):\n        await cx.dma_write(address, bytes(length))\n"
    )
    Path("dma.py").write_text(device)
    seeds = "[repeats]\nseeds = 2\n"
    for text in (
        f'experiment = "copier.toml"\n{seeds}',
        f'[bench]\ntest = "lat_rd"\ncount = 64\non = "dma.py:Dma"\n{seeds}',
        f'[bench]\ntest = "bw_wr"\n[[axis]]\nkey = "on"\nvalues = ["model", "simulator"]\n{seeds}',
        '[model]\nkind = "lat"\n[[axis]]\nkey = "tags"\nfrom = 1\nto = 64\nfactor = 2\n',
    ):
        study.write_text(text)
        for folder in ("here", "there"):
            shutil.rmtree(folder, ignore_errors=True)
        assert sweep("--store", "here", "-o", "here.csv") == 0
        made, _ = counted(capsys.readouterr().out)
        assert sweep("--engine", "dask", "--address", address, "--store", "there", "-o", "there.csv") == 0
        assert counted(capsys.readouterr().out) == (made, 0)
        assert Path("there.csv").read_bytes() == Path("here.csv").read_bytes()
        assert b"refused" not in Path("here.csv").read_bytes()
    table = tl.sweep("study.toml", store="fresh", engine="dask", address=address).to_numpy()
    assert table["tags.allowed"].tolist() == [64 / 900e-9 * 16 * tags for tags in (1, 2, 4, 8, 16, 32, 64)]


def other_build(_known: object = running.builds()) -> tuple[str, str]:
    """Builds that differ from the client's in a worker, and not in the client's main thread."""
    here = threading.current_thread() is threading.main_thread()
    return ("0" * 64, "1" * 64) if here else ("2" * 64, "3" * 64)


def test_a_worker_that_is_another_is_refused(
    study: Path, address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = ["--engine", "dask", "--address", address]
    with monkeypatch.context() as patched:
        patched.setattr(running, "builds", other_build)
        assert sweep(*engine, "--store", "there") == 2
        assert "its build of tlplab differs; workers need the client's build" in capsys.readouterr().err
    assert sweep("--store", "there") == 0
    assert counted(capsys.readouterr().out)[1] == 0, "nothing of it was kept"
    study.write_text(f'load = "loads.toml"\n{STUDY}')
    Path("loads.toml").write_text(
        '[load]\nssd = { op = "read", size = "4KiB" }\nnic = { op = "write", size = "64B", rate = "1Gb/s" }\n'
    )
    make = dask_engine.make

    def elsewhere(*arguments: Any, **more: Any) -> None:
        """Workers on a machine with another file of this name."""
        Path("loads.toml").write_text(
            '[load]\nssd = { op = "read", size = "8KiB" }\nnic = { op = "write", size = "64B", rate = "1Gb/s" }\n'
        )
        make(*arguments, **more)

    monkeypatch.setattr(dask_engine, "make", elsewhere)
    assert sweep(*engine, "--store", "fresh") == 2
    assert "loads.toml is a different file there; workers need the client's build" in capsys.readouterr().err
    assert sweep("--store", "fresh", "--where", "nic_rate == 10 Gb/s") == 0
    assert counted(capsys.readouterr().out)[1] == 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--address", "tcp://127.0.0.1:9"], "--address names a cluster; use it with --engine dask"),
        (
            ["--engine", "dask", "--address", "tcp://127.0.0.1:9", "--threads", "2"],
            "--threads is for runs on this machine",
        ),
        (["--engine", "dask", "--address", "nonsense://x"], "no dask scheduler answers at this address"),
        (["--engine", "slurm"], "'slurm' is not one of 'local', 'dask'"),
    ],
)
def test_mistakes_in_engine_options_are_reported(
    study: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], why: str
) -> None:
    assert sweep(*arguments) == 2
    said = capsys.readouterr().err
    assert why in " ".join(said.split())
    assert "Traceback" not in said


def test_an_absent_scheduler_is_reported(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_engine, "CONNECT_SECONDS", 0.3)
    assert sweep("--engine", "dask", "--address", "tcp://127.0.0.1:9") == 2
    said = capsys.readouterr().err
    assert "--address tcp://127.0.0.1:9: no dask scheduler answers at this address" in said
    assert "Traceback" not in said


def test_no_garbage_is_collected_while_a_client_starts(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that is collected closes itself, and waits for a lock that a starting client holds: a run of these tests once stood still there."""
    import distributed

    class Forgotten:
        pass

    forgotten = Forgotten()
    forgotten.itself = forgotten  # type: ignore[attr-defined]
    there = weakref.ref(forgotten)
    seen = []

    def client(*_arguments: object, **_options: object) -> None:
        seen.append((gc.isenabled(), there() is None))
        raise OSError("nobody answers")

    monkeypatch.setattr(distributed, "Client", client)
    gc.disable()
    del forgotten
    gc.enable()
    assert sweep("--engine", "dask", "--address", "tcp://127.0.0.1:9") == 2
    assert seen == [(False, True)]
    assert gc.isenabled()


def test_a_missing_dask_is_reported_with_its_pip_command(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert sweep("--engine", "dask") == 2
    assert "pip install 'tlplab[dask]'" in capsys.readouterr().err


def start(study: Path, *arguments: str) -> subprocess.Popen[str]:
    """A study of 40 runs that takes some seconds on two workers, of which it has kept some."""
    study.write_text(
        'experiment = "one.toml"\nset = ["stop=100us"]\n[[axis]]\nkey = "load.nic.rate"\nname = "rate_of_nic"\n'
        'from = "1Gb/s"\nto = "40Gb/s"\nsteps = 40\n'
    )
    command = [
        sys.executable,
        "-m",
        "tlplab",
        "sweep",
        "study.toml",
        "--engine",
        "dask",
        "--store",
        "store",
        *arguments,
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    until = time.monotonic() + 60
    while not any(path.is_file() for path in Path("store").rglob("*")):
        assert time.monotonic() < until, "nothing is kept"
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    return process


def workers_of(parent: int) -> list[int]:
    """The processes of dask's workers."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            state, command = (path / "stat").read_text(), (path / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        if int(state.rpartition(")")[2].split()[1]) == parent and b"spawn_main" in command:
            found.append(int(path.name))
    return found


def test_the_runs_of_a_worker_that_is_killed_are_made_again(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    process = start(study, "--threads", "2", "-o", "there.csv")
    workers = workers_of(process.pid)
    assert len(workers) == 2
    os.kill(workers[0], signal.SIGKILL)
    said, complaints = process.communicate(timeout=120)
    assert process.returncode == 0, complaints
    assert counted(said) == (40, 0), "none is lost and none is counted twice"
    assert not complaints
    assert sweep("--quiet", "--store", "here", "-o", "here.csv") == 0
    assert Path("there.csv").read_bytes() == Path("here.csv").read_bytes()


@pytest.mark.full
@pytest.mark.parametrize("to_all", [True, False])
def test_ctrl_c_keeps_finished_runs_of_workers(study: Path, capsys: pytest.CaptureFixture[str], to_all: bool) -> None:
    process = start(study, "--threads", "2")
    workers = workers_of(process.pid)
    # A terminal sends it to the client and its workers alike.
    (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    found = re.fullmatch(r"interrupted: (\d+) of 40 runs are stored; the same command resumes\n", said)
    assert found is not None, said
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
    assert sweep("--store", "store") == 0
    assert counted(capsys.readouterr().out) == (40 - int(found[1]), int(found[1]))


@pytest.mark.full
def test_a_run_that_kills_its_worker_is_reported_and_others_kept(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("copier.py", "copier.toml"):
        shutil.copy(ROOT / "examples/python" / name, name)
    text = Path("copier.toml").read_text()
    deadly = (
        Path("copier.py").read_text()
        + "\n\nclass Deadly(Copier):\n    def __init__(self, *a, **b):\n        import os\n        os.kill(os.getpid(), 9)\n"
    )
    Path("copier.py").write_text(deadly)
    study.write_text(
        'experiment = "copier.toml"\n[[axis]]\nkey = "device.copier.model"\nvalues = ["copier.py:Copier", "copier.py:Deadly"]\n'
        "[repeats]\nseeds = 3\n"
    )
    assert "copier.py:Copier" in text
    copies = ("--where", "device.copier.model == 'copier.py:Copier'")
    assert sweep("--engine", "dask", "--threads", "2", "--store", "store", *copies) == 0
    assert counted(capsys.readouterr().out) == (3, 0)
    assert sweep("--engine", "dask", "--threads", "2", "--store", "store") == 1
    said = capsys.readouterr().err
    assert "several workers were lost, one after the other, with run " in said
    assert "Traceback" not in said
    assert sweep("--store", "store", *copies) == 0
    assert counted(capsys.readouterr().out) == (0, 3), "finished runs are kept"


def worker(address: str, **more: str) -> subprocess.Popen[bytes]:
    """A worker in a process of its own, somewhere else."""
    command = [
        sys.executable,
        "-m",
        "distributed.cli.dask_worker",
        address,
        "--nthreads",
        "1",
        "--no-nanny",
        "--no-dashboard",
    ]
    return subprocess.Popen(
        command, cwd="/", env={**os.environ, **more}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


@pytest.mark.full
def test_workers_of_a_cluster_are_held_against_the_client(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One works in another folder, and does well; one has another build of tlplab."""
    package = tmp_path / "other/tlplab"
    shutil.copytree(Path(tl.__file__).parent, package)
    with next(package.glob("_core*.so")).open("ab") as file:
        file.write(b"\0")
    with distributed.LocalCluster(
        n_workers=0, processes=False, protocol="tcp", host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as cluster:
        engine = ["--engine", "dask", "--address", cluster.scheduler_address]
        for more, ends_with in (({}, 0), ({"PYTHONPATH": str(package.parent)}, 2)):
            process = worker(cluster.scheduler_address, **more)
            try:
                assert sweep(*engine, "--store", f"store{ends_with}", "--json", "there.json") == ends_with
            finally:
                process.kill()
                process.wait()
    assert "its build of tlplab differs" in capsys.readouterr().err
    assert sweep("--store", "here", "--quiet", "--json", "here.json") == 0
    assert json.loads(Path("there.json").read_text()) == json.loads(Path("here.json").read_text())
