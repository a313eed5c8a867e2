"""The closed forms from Python: grids, files, the command line. The figures themselves are tested in crates/analytic."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest

from tlplab import ExperimentError, _core, model
from tlplab.analytic.options import sizes_of
from tlplab.cli import status

PLAIN = click.Option(["--size"])


def test_arrays_are_broadcast_and_keep_their_shape() -> None:
    grid = model.bandwidth([64, 256, 1500], generation=[[3], [4]], op="write", mps=256)
    assert grid.shape == (2, 3)
    assert len(grid) == 6
    bandwidth = grid["bandwidth_bps"]
    assert bandwidth.shape == (2, 3)
    for row, generation in enumerate((3, 4)):
        for column, size in enumerate((64, 256, 1500)):
            assert model.bandwidth(size, generation=generation)["bandwidth_bps"] == bandwidth[row, column]
    # 62.8478 Gb/s · 64/88: nothing that comes down is to be answered
    assert bandwidth[0, 0] / 1e9 == pytest.approx(45.707, abs=1e-3)


def test_a_grid_is_an_arrow_table_without_pyarrow_and_with_it() -> None:
    grid = model.bandwidth(np.arange(1, 1501), op="rdwr")
    assert type(grid.__arrow_c_stream__()).__name__ == "PyCapsule"
    pyarrow = pytest.importorskip("pyarrow")
    columns = grid.to_numpy()
    for table in (pyarrow.table(grid), pyarrow.Table.from_struct_array(pyarrow.array(grid))):
        assert table.column_names == list(columns)
        assert pyarrow.schema(grid) == table.schema
        for name, values in columns.items():
            assert np.array_equal(table[name].to_numpy(), values)
    del grid
    assert table["size"][1499].as_py() == 1500  # the columns outlive what made them


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"generation": 8}, "generation is 8; expected 1 to 7"),
        ({"width": 3}, "width is 3; expected 1, 2, 4"),
        ({"mps": [256, 200]}, "mps is 200; expected 128"),
        ({"rcb": 256}, "rcb is 256; expected 64 or 128 B"),
        ({"offset": 4096}, "offset is 4096; expected 0 to 4095"),
        ({"size": 0}, "size is 0; expected 1 byte"),
        ({"size": 1.5}, "size is 1.5; it must be whole numbers"),
        ({"width": 12, "compat": "pcie-model"}, "width is 12; expected 1, 2, 4, 8, 16 or 32 lanes in the public model"),
        ({"compat": "pcie-modle"}, 'unknown compat "pcie-modle"; expected pcie-model, '),
        ({"op": "both"}, 'op is "both"; expected "read", "write", "rdwr"'),
    ],
)  # fmt: skip
def test_a_wrong_number_is_named(given: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=r"expected|must be") as caught:
        model.bandwidth(**{"size": 64, **given})  # type: ignore[arg-type]
    assert str(caught.value).startswith(said)


def test_a_wrong_name_is_named() -> None:
    with pytest.raises(TypeError, match="there is no parameter 'widht'"):
        model.bandwidth(64, widht=8)


def test_the_names_of_the_mistakes_match_the_crate() -> None:
    for name in model.COMPAT:
        model.bandwidth(64, compat=name)
    assert (
        model.bandwidth(4096, compat=model.COMPAT[1:])["bandwidth_bps"]
        == model.bandwidth(4096, compat="pcie-model")["bandwidth_bps"]
    )


def test_the_public_models_whole_output() -> None:
    """All rows of the public model's output, if TLPLAB_DATA names a folder that holds pcie-model/, a copy of its files."""
    folder = Path(os.environ.get("TLPLAB_DATA", "/dev/null")) / "pcie-model"
    if not folder.is_dir():
        pytest.skip("TLPLAB_DATA does not name a folder that holds pcie-model/, the output of the public model")
    for name, options in (
        ("pcie_bw", {}),
        ("pcie_bw_addr32", {"address_bits": 32}),
        ("pcie_bw_gen1_x16_mps256", {"generation": 1, "width": 16}),
    ):
        lines = (folder / f"{name}.dat").read_text().splitlines()[1:]
        rows = np.array([[float(cell) for cell in line.split()[:7]] for line in lines])
        assert len(rows) > 1400
        for column, op in enumerate(("write", "read", "rdwr")):
            ours = model.bandwidth(rows[:, 0], op=op, compat="pcie-model", **options)
            assert np.abs(ours["bandwidth_bps"] / 1e9 - rows[:, 1 + 2 * column]).max() < 0.00501
            assert np.abs(ours["transfers_per_s"] - rows[:, 2 + 2 * column]).max() < 0.0501
    rows = np.loadtxt(folder / "nic_bw.dat", skiprows=1)
    for first, file in ((4, "simple"), (7, "kernel"), (10, "dpdk")):
        for column, ways in enumerate(("both", "transmit", "receive")):
            ours = model.nic(rows[:, 0], file=file, ways=ways, compat="pcie-model")
            assert np.abs(ours["bandwidth_bps"] / 1e9 - rows[:, first + column]).max() < 0.00501
            assert np.abs(ours["ethernet_bps"] / 1e9 - rows[:, 3]).max() < 0.00501


def test_a_packets_buffer_may_start_anywhere() -> None:
    """64 bytes before a page ends the packet of 60 fits, 8 before it does not: two requests and two writes."""
    up = model.nic(64, offset=[0, 4032, 4088])["up_bytes"]
    assert up[0] == up[1] < up[2]
    assert up[2] - up[0] == 24 + 24
    with pytest.raises(TypeError, match="takes no offset"):
        model.loopback(64, pcie_ns=0, nic_ns=0, offset=4)


def test_sizes_and_ranges() -> None:
    context = click.Context(click.Command("x"))
    assert sizes_of(context, PLAIN, ["64B", "1B..3B", "0B..1KiB/512B"]) == [64, 1, 2, 3, 0, 512, 1024]
    for wrong in ("64", "3B..1B", "1B..9B/0B", "1B..1TiB", ""):
        with pytest.raises(click.BadParameter):
            sizes_of(context, PLAIN, [wrong])


def test_bandwidth_goes_to_files_and_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, plot = tmp_path / "bw.csv", tmp_path / "bw.svg"
    command = ["model", "bw", "--size", "64B..1500B", "--op", "read", "--op", "write", "--json", f"{tmp_path}/bw.json"]
    assert status([*command, "-o", str(table), "--plot", str(plot)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("gen3 x8, MPS 256 B, MRRS 512 B: 63.02 Gb/s after line coding, 62.23 Gb/s for TLPs")
    assert "23 of 1 437 sizes" in printed
    assert all(len(line) <= 100 for line in printed.splitlines())
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 1437
    assert {row["op"] for row in rows} == {"read", "write"}
    written = json.loads((tmp_path / "bw.json").read_text())
    assert [row["size"] for row in written] == [int(row["size"]) for row in rows]
    assert "<svg" in plot.read_text(encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bw.csv", "bw.json", "bw.svg"]


def test_json_on_the_standard_output_is_all_that_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["bw"], ["nic", "--frame", "64B..80B"], ["lat", "--tags", "32"]):
        assert status(["model", *command, "--json", "-"]) == 0
        json.loads(capsys.readouterr().out)


def test_thirty_transfers_under_way(capsys: pytest.CaptureFixture[str]) -> None:
    """128 B at 40 Gb/s and 900 ns, with and without the check sequence being transferred: a frame each 29.6 ns."""
    assert status(["model", "lat", "--size", "124B", "--latency", "900ns", "--ethernet", "40Gb/s", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["limit"] == "demand"
    needed = {use["resource"]: use["needed"] for use in found["resources"]}
    assert needed["transfers"] == needed["tags"] == pytest.approx(900 * 40 / 8 / 148)


def test_a_rate_beyond_the_link_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["model", "lat", "--rate", "400Gb/s"]) == 0
    assert (
        "400 Gb/s is more than the link carries; the table shows the amounts for 53.82 Gb/s" in capsys.readouterr().out
    )
    assert status(["model", "lat", "--rate", "40Gb/s"]) == 0
    assert "is more than the link carries" not in capsys.readouterr().out


def test_gen6_accepts_an_explicit_flit_mode(capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for link in ("gen6 x16", "gen6 x16 flit"):
        assert status(["model", "bw", "--link", link, "--size", "64B"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert "755.20" in said[0]


def test_flits_at_lower_rates(capsys: pytest.CaptureFixture[str]) -> None:
    """32 GT/s · 16 · 128/130 · (1 - 1/376) · 236/256 · 256/272 Gb/s."""
    assert status(["model", "bw", "--link", "gen5 x16 flit", "--size", "256B", "--json", "-"]) == 0
    write = json.loads(capsys.readouterr().out)[0]
    assert (write["op"], write["flit"], write["generation"]) == ("write", 1, 5)
    assert write["bandwidth_bps"] / 1e9 == pytest.approx(512 * 128 / 130 * (1 - 1 / 376) * 236 / 256 * 256 / 272)
    assert status(["model", "lat", "--link", "gen5 x16 flit"]) == 0


def test_a_users_nic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As docs/model.md has it; and its mistakes, with their place."""
    file = tmp_path / "mine.toml"
    text = dict(_core.nics())["dpdk"]
    file.write_text(text.replace("Modern NIC (DPDK driver)", "Mine"), encoding="utf-8")
    assert status(["model", "nic", "--nic", str(file), "--nic", "dpdk", "--json", "-"]) == 0
    rows = json.loads(capsys.readouterr().out)
    ours, theirs = ([row["bandwidth_bps"] for row in rows if row["nic"] == name] for name in (str(file), "dpdk"))
    assert ours == theirs
    file.write_text(text.replace('"host"', '"hots"', 1), encoding="utf-8")
    assert status(["model", "nic", "--nic", str(file)]) == 2
    assert f'{file}:7:9: transmit[1].by: unknown value "hots"; expected "device" or "host"' in capsys.readouterr().err
    with pytest.raises(ExperimentError):
        model.nic(64, file="x.toml", text="title = 1")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bw", "--link", "gen3"], "is not a link such as"),
        (["bw", "--link", "gen8 x8"], "the generation of --link is 8; expected 1 to 7"),
        (["bw", "--link", "gen4 x8 flit", "--compat", "pcie-model"], "flit in --link is 1; expected 0 below 64 GT/s"),
        (["bw", "--offset", "8000B"], "--offset is 8000"),
        (["nic", "--frame", "10B"], "expected 64 B or more"),
        (["bw", "--mps", "256"], "the unit is missing"),
        (["bw", "--plot", "x.txt"], ".png, .svg or .pdf"),
        (["bw", "--plot", "/no/x.png"], "mkdir -p /no"),
        (["nic", "--nic", "nobody"], "give a file or one of simple, kernel, dpdk"),
        (["nic", "--nic", "python"], "Is a directory"),
        (["lat", "--rate", "1Gb/s", "--ethernet", "1Gb/s"], "give one of them"),
        (["lat", "--latency", "900"], "the unit is missing"),
        (["lat", "--latency", "0ns"], "--latency is 0.0; it must be above 0"),
        (["nic", "--ethernet", "0Gb/s"], "--ethernet is 0; it must be above 0"),
    ],
)
def test_bad_input_is_a_usage_error(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).resolve().parents[2])
    assert status(["model", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_other_commands_do_not_wait_for_numpy() -> None:
    code = (
        "import sys, tlplab.cli; before = 'numpy' in sys.modules; tlplab.model; print(before, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True"]


def test_headers_take_words_of_the_data_path() -> None:
    # 34 beats of 64 bits for 268 B; 17 of 128 bits.
    assert model.data_path(256, bits=64, clock_hz=250e6) / 8 == pytest.approx(250e6 * 256 / 34)
    assert model.data_path(256, bits=128, clock_hz=250e6) / 8 == pytest.approx(250e6 * 256 / 17)
    assert model.data_path(256, bits=256, clock_hz=1, header=16, packed=True) == pytest.approx(256 * 256 / 272)
    with pytest.raises(ValueError, match="bits is 0"):
        model.data_path(256, bits=0, clock_hz=250e6)


def test_no_two_lines_of_a_plot_look_alike() -> None:
    from tlplab.analytic.plot import figure

    points = np.arange(3.0)
    drawn = figure("many", "x", "y", [(str(number), points, points * number) for number in range(20)])
    looks = {(line.get_color(), line.get_linestyle()) for line in drawn.axes[0].get_lines()}
    assert len(looks) == 20
