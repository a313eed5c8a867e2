"""Studies of closed forms and benchmarks: their keys are the options of `tlplab model` and `tlplab bench`, and their figures those of these commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tlplab as tl
from tlplab import _core
from tlplab.analytic.command import model_group
from tlplab.bench.case import CACHES, INTERFACES, NODES, PATTERNS, TESTS
from tlplab.bench.command import bench_command
from tlplab.cli import status

# Options that say where results go, and of what a study has one at each point.
OUTPUTS = {"json_file", "output", "plot", "plot_kind", "cdf_file", "against", "threads", "quiet", "help"}
RENAMED = {"sizes": "size", "frames": "frame", "nics": "nic", "operations": "op", "target": "on", "given": ""}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a store of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def keys_of(command: Any) -> set[str]:
    """The options of a command, as keys of a study."""
    names = {parameter.name for parameter in command.params} - OUTPUTS
    return {RENAMED.get(name, name) for name in names}


@pytest.mark.parametrize("kind", ["bw", "nic", "lat", "nettlp"])
def test_the_keys_of_models_are_the_options_of_their_commands(kind: str) -> None:
    # `op` of nettlp: the command tells both, a point has one.
    more = {"op"} if kind == "nettlp" else set()
    assert set(_core.study_keys()[kind]) == keys_of(model_group.commands[kind]) | more


def test_the_keys_of_benchmarks_are_the_options_of_the_command() -> None:
    # The API takes these, too.
    assert set(_core.study_keys()["bench"]) == keys_of(bench_command) | {"mps", "mrrs"}


def test_every_model_of_the_command_line_is_one_of_studies() -> None:
    assert set(_core.study_keys()) == {*model_group.commands, "bench"}


def points(text: str, **more: Any) -> dict[str, Any]:
    """The columns of a study's data set."""
    Path("study.toml").write_text(text)
    return tl.sweep("study.toml", **more).to_numpy()


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """The JSON document of a command."""
    assert status([*arguments, "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)


CONNECTION = "--link 'gen5 x4 flit' --mps 128B --mrrs 1KiB --rcb 128B --address-bits 32 --ecrc --offset 4064B --requests packed --completions rcb"
AS_KEYS = """
link = "gen5 x4 flit"
mps = "128B"
mrrs = "1KiB"
rcb = "128B"
address_bits = 32
ecrc = true
offset = "4064B"
requests = "packed"
completions = "rcb"
"""


@pytest.mark.parametrize("connection", ["", CONNECTION, "--compat pcie-model"])
def test_figures_of_models_match_the_command(folder: Path, capsys: pytest.CaptureFixture[str], connection: str) -> None:
    import shlex

    options = shlex.split(connection)
    keys = {"": "", CONNECTION: AS_KEYS}.get(connection, 'compat = ["pcie-model"]\n')
    sizes = '[[axis]]\nkey = "size"\nvalues = ["1B", "64B", "1500B", "4KiB"]\n'
    at = [part for size in ("1B", "64B", "1500B", "4KiB") for part in ("--size", size)]
    for op in ("write", "read", "rdwr"):
        rows = told(capsys, "model", "bw", *at, "--op", op, *options)
        found = points(f'[model]\nkind = "bw"\nop = "{op}"\n{keys}{sizes}')
        for name, column in (
            ("throughput", "bandwidth_bps"), ("rate", "transfers_per_s"), ("up.utilisation", "up_utilization"),
            ("down.cost", "down_bytes"), ("capacity", "tlp_bps"), ("line_rate", "raw_bps"),
        ):  # fmt: skip
            assert found[name].tolist() == [row[column] for row in rows], name
    rows = told(capsys, "model", "nic", "--nic", "dpdk", "--frame", "1518B", "--ways", "receive", *options)
    found = points(f'[model]\nkind = "nic"\nnic = "dpdk"\nframe = "1518B"\nways = "receive"\n{keys}')
    for name, column in (
        ("throughput", "bandwidth_bps"), ("rate", "packets_per_s"), ("up.cost", "up_bytes"),
        ("ethernet.throughput", "ethernet_bps"), ("ethernet.rate", "ethernet_frames_per_s"),
    ):  # fmt: skip
        assert found[name].tolist() == [rows[0][column]], name
    supply = ["--tags", "8", "--nonposted-headers", "9", "--transfers", "100"]
    for more, key in (
        ([], ""),
        (["--rate", "3Gb/s"], 'rate = "3Gb/s"\n'),
        (["--ethernet", "1Gb/s"], 'ethernet = "1Gb/s"\n'),
    ):
        one = told(
            capsys, "model", "lat", "--size", "512B", "--latency", "2us", "--drain", "50ns", *supply, *more, *options
        )
        found = points(
            f'[model]\nkind = "lat"\nsize = "512B"\nlatency = "2us"\ndrain = "50ns"\ntags = 8\nnonposted_headers = 9\ntransfers = 100\n{key}{keys}'
        )
        assert found["rate"].tolist() == [one["transfers_per_s"]]
        assert found["limit"].tolist() == [one["limit"]]
        uses = {use["resource"]: use for use in one["resources"]}
        assert found["tags.needed"].tolist() == [uses["tags"]["needed"]]
        assert found["tags.held"].tolist() == pytest.approx([uses["tags"]["held_ns"]])
        assert found["replay.needed"].tolist() == [uses["replay buffer"]["needed"]]
        assert found["nonposted_headers.allowed"].tolist() == [uses["non-posted headers"]["transfers_per_s"] * 4096]


def test_figures_of_datagrams_match_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = told(capsys, "model", "nettlp", "--size", "1500B", "--mps", "512B", "--address-bits", "64")
    found = points(
        '[model]\nkind = "nettlp"\nsize = "1500B"\nmps = "512B"\naddress_bits = 64\n[[axis]]\nkey = "op"\nvalues = ["write", "read"]\n'
    )
    assert found["throughput"].tolist() == [rows[0]["write_bps"], rows[0]["read_bps"]]


def test_figures_of_benchmarks_match_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--host", "xeon-e5-2620v2", "--link", "gen4 x8", "--device", "ideal", "--iommu", "off", "--seed", "7"]
    keys = 'host = "xeon-e5-2620v2"\nlink = "gen4 x8"\ndevice = "ideal"\niommu = "off"\nseed = 7\n'
    how = ["--window", "64KiB", "--pattern", "random", "--cache", "cold", "--offset", "16B", "--count", "200"]
    keys += 'window = "64KiB"\npattern = "random"\ncache = "cold"\noffset = "16B"\ncount = 200\n'
    for on in ("simulator", "model"):
        latency = told(capsys, "bench", "lat_wrrd", "--on", on, *where, *how)[0]["latency"]
        found = points(f'[bench]\ntest = "lat_wrrd"\non = "{on}"\n{keys}')
        for name, column in (
            ("min", "min_ns"), ("mean", "average_ns"), ("p50", "median_ns"), ("p95", "p95_ns"), ("p99", "p99_ns"),
            ("p999", "p999_ns"), ("max", "max_ns"),
        ):  # fmt: skip
            assert found[f"latency.{name}"].tolist() == [latency[column]], name
        one = told(capsys, "bench", "bw_rdwr", "--on", on, "--size", "300B", "--at-once", "4", *where, *how)[0]
        found = points(f'[bench]\ntest = "bw_rdwr"\non = "{on}"\nsize = "300B"\nat_once = 4\n{keys}')
        assert found["throughput"].tolist() == [one["bits_per_second"]]
        assert found["rate"].tolist() == pytest.approx([one["transfers_per_second"]], rel=1e-12)
        assert (found["transactions"].tolist(), found["seed"].tolist()) == ([one["operations"]], [7])


def test_the_words_of_benchmarks_match_the_command(folder: Path) -> None:
    words = {"test": TESTS, "interface": INTERFACES, "pattern": PATTERNS, "cache": CACHES, "node": NODES}
    for key, known in words.items():
        listed = ", ".join(f'"{word}"' for word in known)
        test = "" if key == "test" else 'test = "lat_rd"\n'
        found = points(
            f'[bench]\n{test}on = "model"\nhost = "xeon-e5-2620v2"\n[[axis]]\nkey = "{key}"\nvalues = [{listed}]\n'
        )
        assert found["kind"].tolist() == ["done"] * len(known), key


def test_a_study_of_a_model_is_looked_at_as_any_other(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("study.toml").write_text(
        '[model]\nkind = "bw"\nlink = "gen4 x8"\n[[axis]]\nkey = "link"\nvalues = ["gen4 x4", "gen4 x8", "gen5 x4"]\n'
        '[[axis]]\nkey = "size"\nfrom = "64B"\nto = "4KiB"\nfactor = 4\n[[filter]]\nname = "no pages"\nkeep = "size < 4 KiB"\n'
    )
    assert status(["pareto", "study.toml", "throughput,lanes,max:throughput/line_rate"]) == 0
    assert "of 9 points are on the Pareto front" in capsys.readouterr().out
    assert status(["sweep", "study.toml", "--set", "mps=512B", "--where", "link != 'gen4 x8'", "--plot", "a.svg"]) == 0
    assert "left out: no pages (3)" in capsys.readouterr().out
    for arguments, why in (
        (["--set", "mpss=512B"], "--set: mpss: the model bw has no key mpss; did you mean mps?"),
        (["--verdict"], "--verdict: this study has no experiment; a verdict needs further runs"),
        (["--load", "a.toml"], "--load: this study has no experiment, and so no loads"),
        (["--metrics", "latency.p99"], "no point has latency.p99"),
    ):
        assert status(["sweep", "study.toml", *arguments]) == 2
        assert why in " ".join(capsys.readouterr().err.split())
    assert status(["run", "study.toml"]) == 2
    assert "this is a study of many points, not an experiment; run it with `tlplab sweep study.toml`" in " ".join(
        capsys.readouterr().err.split()
    )
    Path("one.toml").write_text('stop = "1us"\n[device.a]\nunder = "host.rp0"\nlink = "gen3 x4"\n')
    assert status(["sweep", "one.toml"]) == 2
    assert "this is an experiment, not a study; run it with `tlplab run one.toml`" in " ".join(
        capsys.readouterr().err.split()
    )
