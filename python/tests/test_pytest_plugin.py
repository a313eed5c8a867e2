"""The pytest plugin: runs, TLPs, figures and causes in tests; messages and files of failed ones."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import tlplab as tl
from tlplab import _core
from tlplab.testing.run import TestedRun
from tlplab.testing.running import Runner

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]

EXPERIMENT = """\
title = "Ring"
host = "server"
[device.nic]
under = "host.rp0"
link = "gen3 x8"
model = "ring"
transfer = "1500B"
requests = 40
"""

FICKLE = """\
import builtins
import tlplab as tl

made = []

class Fickle(tl.Device):
    ids = tl.Ids(0x71AB, 1)

    class regs(tl.Bar, size="4KiB"):
        a = tl.Reg32(0)

async def driver(host, dev):
    kept = KEPT
    kept.append(1)
    for _ in kept:
        await dev.regs.read("a")
"""

FICKLE_EXPERIMENT = """\
title = "Fickle"
[device.dev]
under = "host.rp0"
link = "gen3 x1"
model = "fickle.py:Fickle"
driver = "fickle.py:driver"
"""


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runner]:
    """The fixture's object, for tests in a folder with an experiment."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ring.toml").write_text(EXPERIMENT)
    made = Runner(tmp_path, "here", keep=False)
    yield made
    made.close()


@pytest.fixture
def run(runner: Runner) -> TestedRun:
    """A run of the experiment."""
    return runner("ring.toml")


def frames(path: str, *filters: str) -> int:
    """The number of frames that `tlplab dump` shows of a capture."""
    dump = _core.Dump(path, filters, json=True, time=0, verbose=False, limit=None, copy=None, quiet=True)
    while dump.step() is not None:
        pass
    return dump.finish()[1]


def test_a_run_of_the_fixture_equals_a_run_of_the_package(runner: Runner) -> None:
    overrides = ["device.nic.requests=8"]
    run = runner("ring.toml", overrides=overrides, seed=3)
    assert run.result == tl.run("ring.toml", overrides=overrides, seed=3, verdict=False)
    assert run["flows"] == run.result["flows"]
    assert run.flow("nic.fetch")["op"] == "read"
    text = runner(EXPERIMENT, overrides=overrides, verdict=True)
    told = tl.run("ring.toml", overrides=overrides)
    assert text["trace_hash"] == told["trace_hash"]
    assert text["verdict"] == told["verdict"]
    with pytest.raises(tl.ExperimentError, match="nik"):
        runner("ring.toml", overrides=["device.nik.requests=8"])
    with pytest.raises(LookupError, match=r"no flow 'nic.fetsh'; did you mean nic.fetch\?"):
        run.flow("nic.fetsh")


@pytest.mark.parametrize("name", ["ring.toml", str(ROOT / "experiments/enumeration.toml")])
def test_tlps_are_all_that_the_capture_has(name: str, runner: Runner) -> None:
    """Counted by another path: the capture, read by `tlplab dump`."""
    run = runner(name, overrides=["stop=30us"])
    tl.run(name, overrides=["stop=30us"], pcap="all.pcapng", verdict=False)
    assert len(run.tlps) == frames("all.pcapng", "type=tlp") > 50
    for kind in ("MRd", "MWr", "CplD", "CfgRd0", "Cpl"):
        assert len(run.tlps.where(kind=kind)) == frames("all.pcapng", f"type={kind}")
    for status in ("SC", "UR"):
        assert len(run.tlps.where(status=status)) == frames("all.pcapng", f"status={status}")
    assert len(run.tlps.where(tag=3)) == frames("all.pcapng", "type=tlp", "tag=3")


def test_tlps_are_selected_by_their_columns(run: TestedRun) -> None:
    fetched = run.tlps.where(kind="MRd", flow="nic.fetch")
    flow = run.flow("nic.fetch")
    assert len(fetched) == flow["transactions"]
    data = run.tlps.where(kind="CplD", flow="nic.fetch")
    assert sum(4 * row.length for row in data if row.length is not None) == flow["bytes"]
    assert fetched[0].address == 0x100000
    assert (fetched[0].sender, fetched[0].receiver, fetched[0].requester) == ("nic", "host.rp0", "01:00.0")
    assert set(fetched.where(tag=[0, 1]).column("tag")) == {0, 1}
    assert len(fetched[:2]) == 2
    fetched.expect_all(length=lambda dw: dw <= 128, status=None).expect_count(at_least=1, at_most=40)
    data.expect_all(status="SC")
    run.tlps.where(bad=True).expect_none()
    assert len(run.tlps_from("3us")) == len(run.tlps.where(start_ns=lambda at: at >= 3000)) > 0
    run.expect("nic.fetch.latency.p99 < 2 us", "errors == 0", "nic.fetch.share.completer > 10 %")


@pytest.mark.parametrize(
    ("conditions", "error", "why"),
    [
        ({"flow": "ssd"}, ValueError, "no such flow; there are nic"),
        ({"flow": "nic.fetc"}, ValueError, "did you mean nic.fetch"),
        ({"kind": "Mrd"}, ValueError, "did you mean MRd"),
        ({"kind": ["MRd", "MRD"]}, ValueError, "did you mean MRd"),
        ({"link": "sw0"}, ValueError, "no such link; there are nic"),
        ({"sender": "host"}, ValueError, "no such sender"),
        ({"lenght": 4}, TypeError, "no column 'lenght'; did you mean length"),
    ],
)
def test_impossible_conditions_on_tlps_are_refused(
    run: TestedRun, conditions: dict[str, object], error: type[Exception], why: str
) -> None:
    """Otherwise `expect_none` would hold of a name that is misspelt."""
    with pytest.raises(error, match=why):
        run.tlps.where(**conditions).expect_none()
    with pytest.raises(error, match=why):
        run.tlps.expect_all(**conditions)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nic.thruput > 3 b/s", r"unknown metric nic.thruput; did you mean nic.throughput\?"),
        ("throughput > 3", "cannot combine a number of b/s and a plain number"),
        ("throughput", "not a comparison"),
    ],
)
def test_invalid_expectations_are_refused(run: TestedRun, text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        run.expect(text)


def test_missing_conditions_and_counts_are_refused(run: TestedRun) -> None:
    with pytest.raises(TypeError, match="a condition is missing"):
        run.expect()
    with pytest.raises(TypeError, match="a count is missing"):
        run.tlps.expect_count()


def test_a_latency_that_is_too_long_shows_the_ladder(run: TestedRun) -> None:
    with pytest.raises(AssertionError) as raised:
        run.expect("nic.fetch.latency.p99 < 400 ns", "errors == 0", "nic.fetch.share.completer > 99 %")
    said = str(raised.value)
    assert said.count("does not hold") == 2
    assert said.startswith("nic.fetch.latency.p99 < 400 ns does not hold: nic.fetch.latency.p99 is ")
    assert "nic.fetch spends its time on: " in said
    assert said.count("the slowest transactions of the run:") == 1
    # The request, its completion, and what the time went to: all of it.
    slowest = said.split("\ntransaction ")[1]
    latency = run.flow("nic.fetch")["latency_ns"]
    assert latency is not None
    assert f"of nic.fetch, read of 128 B at 0x100180: {latency['max']:.4g} ns, done" in slowest
    lines = slowest.splitlines()
    assert "nic → host.rp0: MRd, len 32" in lines[1]
    assert "host.rp0 → nic: CplD, len 32" in lines[2]
    shares = [float(line.split("%")[0].split()[-1]) for line in lines[3:]]
    assert sum(shares) == pytest.approx(100, abs=2)
    with pytest.raises(AssertionError, match=r"the run has no nik.latency.p99; did you mean"):
        run.expect("nik.latency.p99 < 1 s")


def test_tlps_that_are_wrong_are_shown(run: TestedRun) -> None:
    data, none = run.tlps.where(kind="CplD"), run.tlps.where(kind="Msg")
    with pytest.raises(
        AssertionError, match=r"^<5 TLPs with kind=CplD>, where 3 are expected; they are:\n.* CplD, len"
    ):
        data.expect_count(3)
    with pytest.raises(
        AssertionError,
        match=r"^<no TLPs with kind=Msg>, where at least 1 are expected; of all \d+ TLPs, the last are:\n283 before, …\n.*MWr",
    ):
        none.expect_count(at_least=1)
    with pytest.raises(
        AssertionError, match=r"^<\d+ TLPs with kind=MWr>, where none is expected:\n.*MWr(.*\n)*… and \d+ more$"
    ):
        run.tlps.where(kind="MWr").expect_none()
    with pytest.raises(AssertionError, match="so no TLP is tag=1"):
        none.expect_all(tag=1)
    with pytest.raises(AssertionError) as raised:
        data.expect_all(tag=lambda tag: tag < 2)
    first, *lines = str(raised.value).splitlines()
    assert first == "3 of 5 TLPs with kind=CplD are not tag=<lambda>; the first has tag=2:"
    assert [line[0] for line in lines] == [" ", " ", ">", " ", " "]
    assert "CplD" in lines[2]
    assert "tag 0x02" in lines[2]


def test_a_run_too_long_for_a_table_is_reported(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tlplab.testing.run.MOST_PACKETS", 100)
    run = runner("ring.toml")
    with pytest.raises(LookupError, match=r"more than 100 packets.*run\.tlps_from"):
        _ = run.tlps
    part = run.tlps_from("2us")
    assert part[0].start_ns >= 2000
    assert len(part) < 100
    with pytest.raises(AssertionError, match="the slowest transactions of those from "):
        run.expect("nic.fetch.latency.p99 < 1 ns")


def test_a_run_that_goes_another_way_is_noticed(runner: Runner) -> None:
    Path("fickle.py").write_text(FICKLE.replace("KEPT", 'vars(builtins).setdefault("fickle", [])'))
    run = runner(FICKLE_EXPERIMENT)
    with pytest.raises(RuntimeError, match=r"a second run of .* differs"):
        _ = run.tlps
    # What a device keeps in its module is forgotten before each run.
    Path("fickle.py").write_text(FICKLE.replace("KEPT", "made"))
    for _ in range(2):
        runner(FICKLE_EXPERIMENT).tlps.where(kind="MRd").expect_count(1)


def test_a_device_that_is_an_object(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples/python")
    copier = import_module("copier")
    run = runner.simulate(copier.Copier(), copier.driver)
    run.tlps.where(kind="MWr", sender="device").expect_count(at_least=1)
    read = run.tlps.where(kind="MRd", sender="device").expect_count(at_least=1)
    assert 0 < len(run.tlps_from(f"{int(read[0].start_ns)}ns")) < len(run.tlps)
    with pytest.raises(ValueError, match="the run has no end"):
        runner.simulate(copier.Copier())


FAILING = """\
import pytest
from copier import Copier

@pytest.mark.parametrize("name", ["a/b", "c d"])
def test_bad(tlplab_run, name):
    tlplab_run("ring.toml")
    run = tlplab_run("ring.toml", seed=2)
    assert run.tlps.where(kind="MRd") == []

def test_figure(tlplab_run):
    tlplab_run("ring.toml").expect("nic.fetch.latency.p99 < 400 ns")

def test_good(tlplab_run):
    tlplab_run("ring.toml")

@pytest.mark.xfail
def test_known(tlplab_run):
    tlplab_run("ring.toml").tlps.expect_none()

async def driver(host, dev):
    await dev.regs.write(src=host.alloc(b"x" * 64), dst=host.alloc(64), go=64)
    await dev.irq(0)
    assert False, "too late"

def test_driver(tlplab_run):
    tlplab_run.simulate(Copier(), driver)
"""


@pytest.fixture
def tests(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with tests that fail, and the files that they run."""
    (pytester.path / "ring.toml").write_text(EXPERIMENT)
    shutil.copy(ROOT / "examples/python/copier.py", pytester.path / "copier.py")
    pytester.makepyfile(test_kept=FAILING)
    return pytester


def test_pages_and_captures_of_failing_tests_are_kept(tests: pytest.Pytester) -> None:
    result = tests.runpytest("--tlplab-report", "kept/pages", "-p", "no:cacheprovider")
    result.assert_outcomes(failed=4, passed=1, xfailed=1)
    said, folder = result.stdout.str(), tests.path / "kept/pages"
    stems = [f"test_kept.py-test_bad-{name}-{n}" for name in ("a-b", "c-d") for n in (1, 2)]
    stems += ["test_kept.py-test_figure", "test_kept.py-test_driver"]
    expected = sorted(f"{stem}{ending}" for stem in stems for ending in (".html", ".pcapng"))
    assert sorted(path.name for path in folder.iterdir()) == expected
    for stem in stems:
        assert f"page: {folder}/{stem}.html" in said
        assert (folder / f"{stem}.html").read_text().startswith("<!doctype html>")
        assert (folder / f"{stem}.pcapng").read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    assert "TLPs with kind=MRd> == []" in said
    assert said.count("the last TLPs of the run:") == 5
    assert "too late" in said
    # Messages are at the lines of the tests.
    assert "tlplab/testing" not in said


def test_a_folder_that_is_a_file_is_refused(tests: pytest.Pytester) -> None:
    result = tests.runpytest("--tlplab-report", "ring.toml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "this is a file, or in one; name a folder" in result.stderr.str()


@pytest.mark.full
def test_under_xdist_it_is_the_same(tests: pytest.Pytester) -> None:
    command = [sys.executable, "-m", "pytest", "-n", "2", "--tlplab-report", "kept", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tests.path, capture_output=True, text=True, timeout=300)
    assert "4 failed, 1 passed, 1 xfailed" in done.stdout
    assert f"page: {tests.path}/kept/test_kept.py-test_figure.html" in done.stdout
    assert len(list((tests.path / "kept").iterdir())) == 12


def test_it_costs_nothing_where_it_is_not_used(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_it(pytestconfig):
            assert pytestconfig.pluginmanager.has_plugin("tlplab")
            assert not [name for name in sys.modules if name.split(".")[0] in ("tlplab", "numpy", "matplotlib", "click", "rich")]
        """
    )
    others = ["cacheprovider", "hypothesispytest", "xdist"]
    command = [sys.executable, "-m", "pytest", *(f"-pno:{name}" for name in others)]
    done = subprocess.run(command, cwd=pytester.path, capture_output=True, text=True, timeout=60)
    assert "1 passed" in done.stdout, done.stdout
