"""Runs, from the command line and from Python, to their files and exit statuses."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import tlplab as tl
from tlplab import cli
from tlplab import result as shape

ROOT = Path(__file__).resolve().parents[2]
QUICKSTART = str(ROOT / "experiments/quickstart.toml")
COPIER = ROOT / "examples/python/copier.py"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """(status, stdout, stderr) of `tlplab run`."""
    status = cli.status(["run", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture(scope="module")
def quickstart() -> tl.Result:
    return tl.run(QUICKSTART)


def test_the_summary_names_the_limit_and_fits(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, QUICKSTART)
    assert (status, err) == (0, "")
    assert "The link sw0 → host.rp0 limits the run" in out
    assert max(map(len, out.splitlines())) <= 100


def test_changing_one_key_changes_the_limit(quickstart: tl.Result) -> None:
    wider = tl.run(QUICKSTART, overrides=["switch.sw0.link=gen4 x8"])
    assert quickstart["verdict"]["limit"]["resource"] == "link sw0 → host.rp0"
    assert wider["verdict"]["limit"]["resource"] == "link ssd → sw0"
    ssd = [next(f for f in r["flows"] if f["name"] == "ssd")["payload_bps"] for r in (quickstart, wider)]
    assert ssd[1] > 1.5 * ssd[0]


def test_the_document_has_the_keys_that_its_type_names(quickstart: tl.Result) -> None:
    direction = quickstart["links"][0]["directions"][0]
    for value, kind in [
        (quickstart, shape.Document),
        (quickstart["verdict"], shape.Verdict),
        (quickstart["verdict"]["limit"], shape.Limit),
        (quickstart["flows"][0], shape.Flow),
        (quickstart["flows"][0]["latency_ns"], shape.Latency),
        (quickstart["flows"][0]["attribution"][0], shape.Attribution),
        (quickstart["links"][0], shape.Link),
        (direction, shape.Direction),
        (direction["utilization"], shape.Utilization),
        (direction["stalls"], shape.Stalls),
    ]:
        assert value is not None
        # A line that sums up several says how many others; in a document with all detail there is none.
        assert set(value) == set(get_type_hints(kind)) - {"others"}, kind.__name__


def test_a_large_fabric_is_summed_up_unless_all_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"d{number}" for number in range(40)]
    text = 'title = "40 devices"\nstop = "20us"\nhost = "ideal"\n'
    text += "".join(f'[switch.sw{port}]\nunder = "host.rp{port}"\nlink = "gen4 x16"\n' for port in range(2))
    text += "".join(
        f'[device.{name}]\nunder = "sw{number % 2}"\nlink = "gen4 x4"\nmodel = "dma"\n'
        for number, name in enumerate(names)
    )
    text += "[load]\n" + "".join(f'{name} = {{ op = "write", size = "512B", outstanding = 2 }}\n' for name in names)
    experiment = tmp_path / "large.toml"
    experiment.write_text(text)
    documents = {}
    for detail in ["limited", "all"]:
        status, out, _ = run(capsys, str(experiment), "--detail", detail, "--json", "-")
        assert status == 0
        documents[detail] = json.loads(out)
    limited, whole = documents["limited"], documents["all"]
    for key in ["trace_hash", "verdict", "links", "errors"]:
        assert limited[key] == whole[key], key
    for short, long in zip(limited["flows"], whole["flows"], strict=True):
        assert short["payload_bps"] == long["payload_bps"]
        rows, all_rows = short["attribution"], long["attribution"]
        assert sum(row["total_ns"] for row in rows) == pytest.approx(sum(row["total_ns"] for row in all_rows))
        assert sum(row.get("others", 1) for row in rows) == len(all_rows) > len(rows)
        assert not any("others" in row for row in all_rows)
        (others,) = [row for row in rows if "others" in row]
        assert set(others) == set(get_type_hints(shape.Attribution))
    # A sentence names three flows, and a table the number of the others.
    (first, *_) = (line for line in whole["verdict"]["limit"]["evidence"] if "of its latency queueing" in line)
    assert first.count(" behind ") == 4, first
    assert re.search(r" behind \d+ others\)$", first), first
    status, out, _ = run(capsys, str(experiment))
    assert status == 0
    assert re.search(r"queueing +sw\d → host\.rp\d +17 other flows$", out, re.MULTILINE), out


def test_host_figures_have_the_keys_of_their_types() -> None:
    cache = "host.cache={ size = '1MiB', ways = 16, ddio_ways = 2, hit = '60ns' }"
    host = tl.run(str(ROOT / "experiments/iommu.toml"), overrides=[cache])["host"]
    assert host is not None
    for value, kind in [(host, shape.HostUse), (host["cache"], shape.CacheUse), (host["iommu"], shape.IommuUse)]:
        assert value is not None
        assert set(value) == set(get_type_hints(kind)), kind.__name__


def test_attribution_is_complete(quickstart: tl.Result) -> None:
    for flow in quickstart["flows"]:
        assert flow["latency_ns"] is not None
        assert sum(part["share"] for part in flow["attribution"]) == pytest.approx(1, abs=1e-6)
        total = sum(part["total_ns"] for part in flow["attribution"])
        assert total == pytest.approx(flow["latency_ns"]["mean"] * flow["transactions"], rel=0.01)


def test_all_files_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--json", "r.json", "--report", "r.html", "--trace", "r.perfetto", "--pcap", "r.pcapng", "-o", "r.txt"]
    assert run(capsys, QUICKSTART, "--set", "stop=60us", *files) == (0, "", "")
    document = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert document["schema"] == "tlplab/result/1"
    assert (
        document["verdict"]["sentence"].split()[:3]
        == Path("r.txt").read_text(encoding="utf-8").split("\n")[3].split()[:3]
    )
    page = Path("r.html").read_text(encoding="utf-8")
    assert document["trace_hash"] in page
    assert Path("r.pcapng").read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    assert Path("r.perfetto").stat().st_size > 1000
    assert sorted(p.name for p in Path().iterdir()) == ["r.html", "r.json", "r.pcapng", "r.perfetto", "r.txt"]


def test_json_alone_on_the_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, QUICKSTART, "--set", "stop=60us", "--json", "-")
    assert (status, err) == (0, "")
    assert json.loads(out)["title"] == "SSD and NIC share one uplink"


def test_the_same_seed_gives_the_same_trace() -> None:
    noisy = ROOT / "experiments/errors.toml"
    first, again, other = (tl.run(noisy, seed=seed, verdict=False)["trace_hash"] for seed in (5, 5, 6))
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.toml"], "there is no such file"),
        ([QUICKSTART, "--set", "switch.sw0.lnk=gen4 x8"], 'did you mean "link"?'),
        ([QUICKSTART, "--report", "none/r.html"], "mkdir -p none"),
        ([QUICKSTART, "--seed", "-1"], "-1"),
    ],
)
def test_bad_input_is_status_2(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_a_missing_trace_is_named_at_its_key(capsys: pytest.CaptureFixture[str]) -> None:
    Path("e.toml").write_text(
        'title = "t"\n[device.d]\nunder = "host.rp0"\nlink = "gen3 x8"\n[load]\nd = { replay = "none.csv" }\n',
        encoding="utf-8",
    )
    status, _, err = run(capsys, "e.toml")
    assert status == 2
    assert err.startswith("Error: e.toml:6:")
    assert "none.csv" in err


def write_experiment(driver: str) -> None:
    Path("board.py").write_text(
        COPIER.read_text(encoding="utf-8").split("async def driver")[0] + driver, encoding="utf-8"
    )
    Path("e.toml").write_text(
        'title = "t"\n[device.d]\nunder = "host.rp0"\nlink = "gen3 x8"\nmodel = "board.py:Copier"\n'
        'driver = "board.py:driver"\n',
        encoding="utf-8",
    )


def test_a_failing_driver_is_a_failed_run(capsys: pytest.CaptureFixture[str]) -> None:
    write_experiment(
        "async def driver(host, dev):\n    await dev.regs.write(go=0)\n    assert host.read(0, 1) == b'x'\n"
    )
    line = len(Path("board.py").read_text(encoding="utf-8").splitlines())
    status, out, err = run(capsys, "e.toml")
    assert (status, out) == (1, "")
    assert f"board.py:{line}: AssertionError" in err
    assert "Traceback" not in err


def test_a_driver_that_waits_for_ever_is_a_failed_run(capsys: pytest.CaptureFixture[str]) -> None:
    write_experiment(
        "async def deeper(dev):\n    await dev.irq(3)\n\n\n"
        "async def driver(host, dev):\n    await host.sleep('1us')\n    await deeper(dev)\n"
    )
    line = len(Path("board.py").read_text(encoding="utf-8").splitlines()) - 5
    status, out, err = run(capsys, "e.toml")
    place = Path("board.py").resolve()
    assert (status, err) == (1, f"Error: driver of d still waits for irq 3 ({place}:{line})\n")
    assert "simulated (no transaction has ended since 0s)" in out, "the summary is of the part that ran"
    with pytest.raises(tl.RunError, match="driver of d still waits for irq 3"):
        tl.run("e.toml")
    assert run(capsys, "e.toml", "--json", "r.json")[0] == 1
    document = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert document["stop_reason"] == "stuck"
    waits = {"device": "d", "operation": "irq", "what": "irq 3", "place": f"{place}:{line}"}
    assert document["waiting"] == [waits]
    assert run(capsys, "e.toml", "--set", "stop=5us")[0] == 0, "a stop that was asked for may come meanwhile"


def test_a_run_without_addresses_for_a_bar_fails_with_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    reads = str(ROOT / "studies/nettlp/reads.toml")
    too_much = ("--set", "device.card.window=1GiB", "--set", "stop=20us", "--set", "warmup=1us")
    status, _, err = run(capsys, reads, *too_much, "--quiet", "--json", "r.json")
    assert status == 1
    assert "Error: card, 03:00.0: no address below 4 GiB is left for BAR 4 of 1 GiB" in err
    (problem,) = json.loads(Path("r.json").read_text(encoding="utf-8"))["problems"]
    assert (problem["component"], problem["kind"], problem["exhausted"]) == ("card", "no-address", True)


def test_an_override_has_no_line() -> None:
    with pytest.raises(tl.ExperimentError) as caught:
        tl.run(QUICKSTART, overrides=["switch.sw0.lnk=1"])
    assert (caught.value.line, caught.value.column) == (None, None)
    assert str(caught.value).startswith('overrides: switch.sw0.lnk: unknown key "lnk"')
    with pytest.raises(tl.ExperimentError, match=r"^overrides: stop: there is no value; write key=value, as in switch"):
        tl.Experiment.read("quickstart").check(overrides=["stop"])


@pytest.mark.parametrize("example", ["copier", "memory", "ring"])
@pytest.mark.parametrize("host", ["ideal", "server"])
def test_examples_run_in_the_simulator(example: str, host: str) -> None:
    result = tl.run(ROOT / f"examples/python/{example}.toml", overrides=[f"host={host}"])
    assert sum(flow["transactions"] for flow in result["flows"]) > 0
    assert not any(sum(flow["errors"].values()) for flow in result["flows"])


def test_simulate_needs_no_file() -> None:
    from tlplab.loader import find

    copier, driver = find(str(COPIER), "Copier")(), find(str(COPIER), "driver")
    run = tl.simulate(copier, driver, link="gen5 x16")
    run.report("copier.html")
    assert copier.regs.done == 1
    assert run.sentence in Path("copier.html").read_text(encoding="utf-8")
    with pytest.raises(tl.ExperimentError, match="x3"):
        tl.simulate(copier, driver, link="gen5 x3")


def test_an_exception_in_a_device_is_the_cause() -> None:
    class Broken(tl.Device):
        class regs(tl.Bar, size="4KiB"):
            go = tl.Reg32(0)

        @regs.go.on_write
        def stop(self, _cx: tl.Context, n: int) -> None:
            raise KeyError(n)

    async def driver(host: tl.Host, dev: Any) -> None:
        await dev.regs.write(go=7)
        await host.sleep("1us")

    with pytest.raises(tl.RunError, match=r"test_run\.py") as caught:
        tl.simulate(Broken(), driver)
    assert isinstance(caught.value.__cause__, KeyError)


def test_ctrl_c_keeps_the_figures_so_far() -> None:
    command = [sys.executable, "-m", "tlplab", "run", QUICKSTART, "--set", "stop=10s", "--json", "r.json"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(1.5)
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=20)
    assert started.returncode == 130
    assert "interrupted: the figures cover the part that ran" in err
    assert "limits the run" in out
    document = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert document["stop_reason"] == "interrupted"
    assert document["flows"][0]["transactions"] > 0


def test_a_reader_that_leaves_is_no_traceback() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "tlplab", "schema"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert "Traceback" not in done.stderr


def test_no_window_shows_more_payload_than_the_link_carries() -> None:
    """The SSD's Gen4 x4 link moves 64 Gb/s, of which 128b/130b leaves 63.0."""
    run = tl.run(QUICKSTART, overrides=["stop=2us", "warmup=0us"])
    series = run["series"]
    assert series["bin_fs"] < 10_000_000, "a bin is shorter than a TLP"
    for number, flow in enumerate(series["flows"]):
        assert max(flow["bytes"]) * 8 / (series["bin_fs"] * 1e-15) < 63.1e9
        assert sum(flow["bytes"]) == run["flows"][number]["bytes"]
