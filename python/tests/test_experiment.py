"""Experiments made of objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tlplab as tl
from tlplab import outline
from tlplab.loader import find

ROOT = Path(__file__).resolve().parents[2]
COPIER = str(ROOT / "examples/python/copier.py")
Copier, driver = find(COPIER, "Copier"), find(COPIER, "driver")


def small() -> tl.Experiment:
    made = tl.Experiment(title="One writer", stop="20us")
    return made.device("ssd", under="host.rp0", link="gen3 x4").load("ssd", op="write", size="4KiB")


def test_an_experiment_of_objects_runs_as_its_file(tmp_path: Path) -> None:
    made = tl.Experiment(title="Two", stop="20us", host={"profile": "server", "rcb": "128B"}, seed=3)
    made.switch("sw0", under="host.rp0", link="gen4 x4").device("ssd", under="sw0", link={"generation": 4, "width": 4})
    made.load("ssd", op="read", size="4KiB").fault(link="ssd", direction="up", tlp=5, damage="corrupt")
    made.link("ssd", flight="5ns").set("device.ssd.tags", 16).expect(throughput="> 1 Gb/s")
    (tmp_path / "two.toml").write_text(made.to_toml(), encoding="utf-8")
    of_file, of_objects = tl.run(tmp_path / "two.toml"), tl.run(made)
    assert of_objects["trace_hash"] == of_file["trace_hash"]
    assert of_objects["settings"] == of_file["settings"] == made.settings()
    assert of_objects["settings"]["fault.0.tlp"] == 5
    assert tl.run(made, overrides=["device.ssd.tags=1"])["trace_hash"] != of_objects["trace_hash"]


@pytest.mark.parametrize(
    "path",
    [path for folder in (".", "p2p") for path in sorted((ROOT / "experiments" / folder).glob("*.toml"))],
    ids=lambda path: path.stem,
)
def test_files_come_through(path: Path) -> None:
    read = tl.Experiment.read(path)
    assert read.settings() == outline.read(path)["settings"]
    again = tl.Experiment.parse(read.to_toml(), str(path))
    assert again.settings() == read.settings()


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(lambda name: name != "host")
LINKS = st.sampled_from(["gen3 x1", "gen4 x4", "gen5 x16"])
LOADS = st.fixed_dictionaries(
    {"op": st.sampled_from(["read", "write"]), "size": st.sampled_from(["64B", "4KiB"])},
    optional={"count": st.integers(1, 10**6), "outstanding": st.integers(1, 256)},
)
DEVICES = st.fixed_dictionaries(
    {"link": LINKS}, optional={"tags": st.integers(1, 256), "latency": st.sampled_from(["0ns", "1.5us"])}
)


@settings(max_examples=25, deadline=None)
@given(
    title=st.text(max_size=30),
    seed=st.integers(0, 2**53),
    devices=st.dictionaries(NAMES, st.tuples(DEVICES, LOADS), min_size=1, max_size=4),
    faults=st.lists(st.tuples(st.floats(1e-12, 1e-3), st.booleans()), max_size=3),
)
def test_a_written_experiment_reads_back(
    title: str, seed: int, devices: dict[str, tuple[dict[str, Any], dict[str, Any]]], faults: list[tuple[float, bool]]
) -> None:
    made = tl.Experiment(title=title, stop={"time": "5us"}, seed=seed)
    for number, (name, (device, load)) in enumerate(devices.items()):
        made.device(name, under=f"host.rp{number}", **device).load(name, **load)
    for rate, up in faults:
        made.fault(link=next(iter(devices)), direction="up" if up else "down", ber=rate)
    told = made.settings()
    assert tl.Experiment.parse(made.to_toml()).settings() == told
    assert [told[f"fault.{at}.ber"] for at in range(len(faults))] == [rate for rate, _ in faults]


def line_of(text: str) -> int:
    """The line of this file that has a text, which stands there once behind this."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if text in line and "line_of" not in line]
    return number


def test_a_mistake_has_the_line_of_the_program() -> None:
    made = small()
    made.switch("sw0", under="host.rp1", lnk="gen4 x4")
    made.device("nic", under="sw0", link="gen9 x4")
    with pytest.raises(tl.ExperimentError) as caught:
        tl.run(made)
    found = {one.key: one for one in (caught.value, *caught.value.others)}
    wrong = found["switch.sw0.lnk"]
    assert (wrong.file, wrong.line, wrong.column) == (__file__, line_of('lnk="gen4 x4"'), None)
    assert wrong.hint == 'did you mean "link"?'
    assert str(wrong).startswith(f"{__file__}:{wrong.line}: switch.sw0.lnk: ")
    assert found["device.nic.link"].line == line_of('"gen9 x4"')


def test_a_key_that_is_missing_has_the_line_of_its_table() -> None:
    made = small()
    made.device("nic", link="gen4 x4")  # nothing is above it
    with pytest.raises(tl.ExperimentError, match="under") as caught:
        made.check()
    assert caught.value.line == line_of("# nothing is above it")
    with pytest.raises(tl.ExperimentError) as caught:
        tl.Experiment(title="Nothing").check()
    assert caught.value.file == __file__


def test_a_key_set_later_has_its_own_line() -> None:
    made = small()
    made.set("device.ssd.tags", "many")
    with pytest.raises(tl.ExperimentError) as caught:
        made.check()
    assert (caught.value.key, caught.value.line) == ("device.ssd.tags", line_of('"device.ssd.tags", "many"'))
    with pytest.raises(tl.ExperimentError) as caught:
        tl.run(small(), overrides=["device.ssd.tag=3"])
    assert caught.value.file == "overrides", "an override is no line of the program"


def test_a_mistake_in_a_file_that_was_read_has_the_line_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "e.toml"
    path.write_text(
        '# A comment.\ntitle = "T"\nstop = "1us"\n\n[device.d]\nunder = "host.rp0"\n\nlnk = "gen4 x4"\n',
        encoding="utf-8",
    )
    read = tl.Experiment.read(path)
    with pytest.raises(tl.ExperimentError) as caught:
        read.set("device.d.tags", 8).check()
    by_key = {one.key: one for one in (caught.value, *caught.value.others)}
    assert (by_key["device.d.lnk"].file, by_key["device.d.lnk"].line) == (str(path), 8)
    with pytest.raises(tl.ExperimentError, match="not TOML"):
        tl.Experiment.parse("title = ", "broken.toml")
    with pytest.raises(FileNotFoundError):
        tl.Experiment.read(tmp_path / "nowhere.toml")


def test_values_without_a_toml_form_are_refused_at_their_call() -> None:
    with pytest.raises(TypeError, match="Leave out a key"):
        small().device("nic", under="host.rp1", link=None)
    with pytest.raises(TypeError, match="is not a device"):
        small().device("nic", 7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="is not a key"):
        small().set("device..tags", 1)
    with pytest.raises(ValueError, match=r"stop is '20us', and no table that could have time"):
        small().set("stop.time", "1us")


def test_words_of_python_have_an_underscore() -> None:
    assert 'from = "0x1000"' in tl.Experiment(map={"from_": "0x1000", "sw_": 1}).to_toml()
    assert "sw_ = 1" in tl.Experiment(map={"sw_": 1}).to_toml()


def test_a_copy_is_another_experiment() -> None:
    one = small()
    other = one.copy().set("device.ssd.tags", 3)
    assert "tags" not in one.to_toml()
    assert other.settings()["device.ssd.tags"] == 3
    assert repr(other) == "<experiment 'One writer': 1 device, 1 load>"


def with_copier(device: Any) -> tl.Experiment:
    made = tl.Experiment(title="A copier and a drive", host="ideal")
    made.device("copier", device, driver=driver, under="host.rp0", link="gen4 x4")
    return made.device("ssd", under="host.rp1", link="gen3 x4").load("ssd", op="write", size="4KiB", count=20)


def test_devices_may_be_objects_among_others() -> None:
    copier = Copier()
    result = tl.run(with_copier(copier))
    assert copier.regs.done == 1
    assert {"copier", "ssd"} <= {flow["name"].split(".")[0] for flow in result.flows}
    text = with_copier(copier).to_toml()
    assert f'model = "{COPIER}:Copier"' in text
    assert 'driver = "' in text
    assert 'copier.py:driver"' in text


def test_of_a_class_each_run_makes_a_device() -> None:
    made = with_copier(Copier)
    first, again = tl.run(made), tl.run(made)
    assert first["trace_hash"] == again["trace_hash"]


def test_an_exception_of_a_driver_ends_the_run() -> None:
    async def raises(host: tl.Host, _dev: Any) -> None:
        await host.sleep("1us")
        raise KeyError("no")

    made = tl.Experiment(title="T").device("copier", Copier, driver=raises, under="host.rp0", link="gen4 x4")
    with pytest.raises(tl.RunError, match="KeyError") as caught:
        tl.run(made)
    assert isinstance(caught.value.__cause__, KeyError)
    assert isinstance(caught.value.run, tl.Result)


def test_the_document_has_the_experiment() -> None:
    assert json.loads(json.dumps(tl.run(small(), verdict=False)))["experiment"].count("[device.ssd]") == 1
