"""Pictures of studies, and the page on which they are chosen."""

from __future__ import annotations

import base64
import gzip
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from a_study import STUDY

import tlplab as tl
from tlplab.cli import status
from tlplab.study import alone, columns, html, plots, reports, running, scales


def test_pictures(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["--plot", "lines.png"],
        ["--plot", "lines.svg", "--x", "uplink", "--y", "share"],
        ["--plot", "beside.svg", "--beside", "uplink"],
        ["--plot", "map.png", "--colour", "nic.latency.p99"],
        ["--plot", "ecdf.pdf", "--ecdf", "nic"],
    ):
        assert status(["sweep", "study.toml", "--quiet", *arguments]) == 0
        assert Path(arguments[1]).stat().st_size > 5_000
        if Path(arguments[1]).suffix == ".png":
            continue
        again = "again" + Path(arguments[1]).suffix
        assert status(["sweep", "study.toml", "--quiet", "--plot", again, *arguments[2:]]) == 0
        assert Path(again).read_bytes() == Path(arguments[1]).read_bytes()
    for arguments, why in (
        (["--x", "uplink"], "name its file with --plot"),
        (["--plot", "a.png", "--x", "wide"], "--x wide: there is no such axis; the axes are uplink, nic_rate"),
        (["--plot", "a.png", "--y", "throughput, lanes"], "the vertical axis shows one figure"),
        (["--plot", "a.png", "--x", "uplink", "--y", "uplink", "--colour", "lanes"], "is the horizontal axis"),
        (["--plot", "a.png", "--x", "uplink", "--beside", "uplink"], "is the horizontal axis"),
        (["--plot", "a.png", "--beside", "uplink", "--colour", "lanes"], "a map is one picture"),
        (["--plot", "a.png", "--ecdf", "nic", "--x", "uplink"], "--ecdf draws one line per point"),
        (["--plot", "a.png", "--ecdf", "nik"], "no point has nik.latency.min; did you mean nic.latency.min?"),
        (["--plot-where", "uplink == 'gen4 x4'"], "name its file with --plot"),
        (["--plot", "a.png", "--plot-where", "lanes > 4"], '--plot-where: in "lanes > 4", column 1: no axis is'),
        (["--plot", "a.png", "--plot-where", "nic_rate > 1 Tb/s"], "'nic_rate > 1 Tb/s' holds for no point"),
        (["--plot", "a.bmp"], "name a file that ends in .png, .svg or .pdf"),
    ):
        assert status(["sweep", "study.toml", *arguments]) == 2
        assert why in " ".join(capsys.readouterr().err.split())
        assert not Path("a.png").exists()


def test_a_line_has_no_points_of_other_values(study: Path) -> None:
    """Lines are those of the axes that distinguish points, and they go through the figures of the points."""
    done = running.run(running.Asked("study.toml"))
    lines = plots.lines_of(done, "nic_rate", "nic.throughput").axes[0].lines
    assert [line.get_label() for line in lines] == ["gen4 x4", "gen4 x8"]
    table = done.swept.table().to_numpy()
    of = table["uplink"] == "gen4 x8"
    assert np.asarray(lines[1].get_xdata()).tolist() == table["nic_rate"][of].tolist()
    assert np.asarray(lines[1].get_ydata()).tolist() == [value / 1e9 for value in table["nic.throughput"][of]]
    figure = plots.lines_of(done, "nic_rate", "throughput", "uplink")
    assert [axes.get_title() for axes in figure.axes] == ["uplink gen4 x4", "uplink gen4 x8"]
    assert figure.axes[0].get_xlabel() == "nic_rate, Gb/s"
    assert figure.axes[0].get_ylabel() == "throughput, Gb/s"


def test_the_picture_of_a_part_is_that_of_a_study_of_this_part(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And all points are run and listed all the same."""
    part = "uplink == 'gen4 x8' and nic_rate > 10 Gb/s"
    assert status(["sweep", "study.toml", "--plot", "part.svg", "--plot-where", part, "--markdown", "study.md"]) == 0
    assert capsys.readouterr().out.count("gen4 x4") > 0
    page = Path("study.md").read_text()
    assert page.count("| gen4 x4 |") > 0
    assert f"--plot study.svg --plot-where {shlex.quote(part)}`" in page
    for where, same in ((part, True), ("uplink == 'gen4 x8'", False)):
        assert status(["sweep", "study.toml", "--quiet", "--where", where, "--plot", "other.svg"]) == 0
        assert (Path("other.svg").read_bytes() == Path("part.svg").read_bytes()) is same


def test_axes_that_are_zipped_make_one_line(study: Path) -> None:
    zipped = 'keys = ["load.nic.size", "load.nic.rate"]\nnames = ["size", "nic_rate"]\nvalues = [["256B", "5Gb/s"], ["512B", "9Gb/s"], ["1KiB", "9Gb/s"]]\n'
    study.write_text(f'experiment = "one.toml"\n[[axis]]\n{zipped}')
    done = running.run(running.Asked("study.toml"))
    assert len(plots.lines_of(done, "size", "throughput").axes[0].lines) == 1
    # Of one rate there are two sizes, which do not follow from it.
    assert len(plots.lines_of(done, "nic_rate", "throughput").axes[0].lines) == 3


def test_columns_tied_to_an_axis_are_recognised() -> None:
    def tied(*pairs: tuple[Any, Any]) -> bool:
        """True if the second of each pair follows from the first."""
        values = [sorted({first for first, _ in pairs}), list(dict.fromkeys(second for _, second in pairs))]
        at = [np.array([of.index(pair[axis]) for pair in pairs]) for axis, of in enumerate(values)]
        return columns.Columns(["to", "axis"], [None, None], values, at).tied(1, 0)

    sizes = [64, 128, 256, 512]
    assert tied(*zip(sizes, [1, 2, 3, 3], strict=True))
    assert tied(*zip(sizes, [9.5, 8, 8, 7], strict=True))
    assert tied(*zip(sizes, ["small", "small", "large", "huge"], strict=True))
    assert not tied(*zip(sizes, [1, 3, 2, 4], strict=True))
    assert not tied(*zip(sizes, [True, False, True, False], strict=True))
    assert not tied(*zip(sizes, sizes, strict=True), (64, 128))
    assert tied(("a", 2), ("b", 1), ("c", 3), ("a", 2))


def test_points_are_grouped_in_the_order_of_the_values_of_the_study(study: Path) -> None:
    done = running.run(running.Asked("study.toml"))
    points = columns.Columns.of(done, done.swept.summaries("throughput"))
    assert points.values[0] == ["gen4 x4", "gen9 x8", "gen4 x8"]
    assert [group.tolist() for group in points.groups([0])] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert [group.tolist() for group in points.groups([1, 0])] == [[n] for n in (0, 3, 6, 1, 4, 7, 2, 5, 8)]
    assert [group.tolist() for group in points.groups([])] == [list(range(9))]


def test_a_title_is_drawn_as_it_is_written(study: Path) -> None:
    study.write_text(STUDY.replace("Uplinks", "It costs $5 or $6_{2"))
    assert status(["sweep", "study.toml", "--quiet", "--plot", "a.svg"]) == 0
    assert status(["pareto", "study.toml", "throughput,latency.p99,lanes", "--quiet", "--plot", "b.svg"]) == 0
    assert "It costs $5 or $6_{2" in Path("a.svg").read_text(), "in a comment, beside the letters"


def test_a_dense_axis_of_sizes_has_round_marks_and_shows_its_steps(study: Path) -> None:
    study.write_text(
        'experiment = "one.toml"\n[[axis]]\nkey = "load.nic.size"\nname = "size"\nfrom = "64B"\nto = "1464B"\nby = "28B"\n'
    )
    done = running.run(running.Asked("study.toml"))
    figure = plots.lines_of(done, "size", "ssd.throughput")
    line = figure.axes[0].lines[0]
    assert np.size(line.get_xdata()) == 51
    assert line.get_marker() == "None"
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == [
        "256 B", "512 B", "768 B", "1 KiB", "1280 B",
    ]  # fmt: skip


def test_the_distribution_is_drawn_through_the_kept_percentiles(study: Path) -> None:
    done = running.run(running.Asked("study.toml", where=["uplink == 'gen4 x4'"]))
    figure = plots.distributions(done, "nic")
    table = done.swept.table().to_numpy()
    names = ["min", "p50", "p90", "p99", "p999", "max"]
    axes = figure.axes[0]
    factor = 1000 if "µs" in axes.get_xlabel() else 1
    for row, line in enumerate(axes.lines):
        assert np.asarray(line.get_xdata()).tolist() == [table[f"nic.latency.{name}"][row] / factor for name in names]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["min", "50 %", "90 %", "99 %", "99.9 %", "max"]


@pytest.mark.parametrize(
    ("values", "log"),
    [
        ([32, 64, 128, 256], True), ([90, 600, 2000], True), ([5, 10, 15, 20, 25, 30, 35, 40], False),
        ([*range(64, 1500, 4)], False), ([0, 1, 2, 4], False), ([1, 1000], False),
    ],
)  # fmt: skip
def test_an_axis_is_logarithmic_where_its_values_are_factors_apart(values: list[float], log: bool) -> None:
    assert scales.by_factors(values) is log


def test_repeats_that_differ_have_a_band(study: Path) -> None:
    noisy = "set = ['host=\"xeon-e5-2637v3\"', 'load.nic.op=read']\nexperiment"
    study.write_text(STUDY.replace("experiment", noisy, 1) + "[repeats]\nseeds = 3\n")
    done = running.run(running.Asked("study.toml", where=["uplink == 'gen4 x4'"]))
    axes = plots.lines_of(done, "nic_rate", "nic.latency.p99").axes[0]
    assert len(axes.lines) == len(axes.collections) == 1
    half = [one["means"][0][1] for one in done.swept.summaries("nic.latency.p99") if one["means"][0]]
    low, high = axes.collections[0].get_datalim(axes.transData).intervaly
    assert high - low > max(h for h in half if h) / 1000 > 0


def data_of(page: str) -> dict[str, Any]:
    """The data in a page of a study."""
    text = Path(page).read_text(encoding="utf-8")
    begun = text.split('<script type="application/json" id="tlplab-result">')
    assert len(begun) == 2
    return json.loads(begun[1].split("</script>")[0])  # type: ignore[no-any-return]


def expanded(column: Any, rows: int) -> list[Any]:
    """The values of a column of the page."""
    if isinstance(column, list):
        return column
    return [column["all"]] * rows if "all" in column else [column["of"][at] for at in column["at"]]


def test_the_page_has_every_run_with_all_of_its_figures(study: Path) -> None:
    study.write_text("# What it is <b>about</b>.\n" + STUDY + "[repeats]\nseeds = 2\n")
    assert status(["sweep", "study.toml", "--quiet", "--html", "a.html"]) == 0
    page = data_of("a.html")
    table = tl.sweep("study.toml").to_numpy()
    rows = page["rows"]
    assert rows == len(table["point"]) == 2 * 6 + 3
    assert page["about"] == "What it is <b>about</b>."
    assert "<b>" not in Path("a.html").read_text(encoding="utf-8").split('id="tlplab-result">')[1].split("</script>")[0]
    for name in ("point", "seed", "kind", "message"):
        assert expanded(page["columns"][name], rows) == table[name].tolist()
    for axis, column in zip(page["axes"], page["columns"]["axes"], strict=True):
        assert expanded(column, rows) == table[axis["name"]].tolist()
    figures = {figure["name"]: figure for figure in page["figures"]}
    assert list(figures)[:2] == ["throughput", "share"]
    assert {*figures} | {"point", "uplink", "nic_rate", "repeat", "seed", "kind", "message"} == {*table}
    for figure, column in zip(page["figures"], page["columns"]["figures"], strict=True):
        told = expanded(column, rows)
        assert [value for value in told if value is not None] == [
            value for value in table[figure["name"]].tolist() if value == value
        ], "exactly"
    assert figures["nic.latency.p99"] == {"name": "nic.latency.p99", "unit": "ns", "more": False, "shown": False}
    assert (figures["share"]["unit"], figures["share"]["more"], figures["share"]["shown"]) == ("1", None, True)
    assert page["left_out"] == [["no more than 30", 3]]
    assert (page["finding"], page["changed"]) == (None, [])


def test_the_page_is_the_same_byte_for_byte(study: Path) -> None:
    for page, store, threads in (("a.html", "a", "1"), ("b.html", "b", "2")):
        assert status(["sweep", "study.toml", "--quiet", "--html", page, "--store", store, "--threads", threads]) == 0
    assert Path("a.html").read_bytes() == Path("b.html").read_bytes()


def test_figures_of_the_command_line_are_means_of_points(study: Path) -> None:
    study.write_text(STUDY + "[repeats]\nseeds = 2\n")
    asked = "nic.throughput, both = ssd.throughput + nic.throughput"
    assert status(["sweep", "study.toml", "--quiet", "--html", "a.html", "--metrics", asked]) == 0
    page = data_of("a.html")
    assert [(one["name"], one["unit"], one["shown"]) for one in page["figures"][:3]] == [
        ("nic.throughput", "b/s", True), ("both", "b/s", True), ("share", "1", False),
    ]  # fmt: skip
    summaries = running.run(running.Asked("study.toml")).swept.summaries(asked)
    told = page["columns"]["figures"][1]["means"]
    assert [mean and tuple(mean) for mean in told] == [one["means"][1] for one in summaries]


def test_a_study_with_many_runs_has_the_figures_that_it_shows_or_no_page(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "MOST_CELLS", 100)
    assert status(["sweep", "study.toml", "--quiet", "--html", "a.html"]) == 0
    page = data_of("a.html")
    assert page["every"] is False
    assert [figure["name"] for figure in page["figures"]] == ["throughput", "share"]
    monkeypatch.setattr(html, "MOST_RUNS", 8)
    assert status(["sweep", "study.toml", "--quiet", "--html", "b.html"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "--html: a page holds 8 runs, and this study has 9: choose points by --where" in said
    assert not Path("b.html").exists()


def test_the_finding_is_printed_for_the_unchanged_study_only(study: Path) -> None:
    finding = (
        '[finding]\nsays = "It is {wide}."\nholds = "wide HOW 90 Gb/s"\n[finding.figures]\n'
        'wide = { of = "throughput", where = "uplink == \'gen4 x8\' and nic_rate == 30Gb/s" }\n'
    )
    study.write_text(STUDY + finding.replace("HOW", "<"))
    assert status(["sweep", "study.toml", "--quiet", "--html", "a.html", "--markdown", "a.md"]) == 0
    assert data_of("a.html")["finding"]["says"].startswith("It is 8")
    assert "**It is 8" in Path("a.md").read_text()
    few = ["--where", "nic_rate < 30 Gb/s"]
    assert status(["sweep", "study.toml", "--quiet", "--html", "a.html", "--markdown", "a.md", *few]) == 0
    page = data_of("a.html")
    assert page["finding"] is None, "it is of a point that is not among these"
    assert page["changed"] == ["--where 'nic_rate < 30 Gb/s'"]
    assert "**" not in Path("a.md").read_text()
    assert "--where 'nic_rate < 30 Gb/s' --markdown study.md`" in Path("a.md").read_text()
    study.write_text(STUDY + finding.replace("HOW", ">"))
    assert status(["sweep", "study.toml", "--quiet", "--html", "a.html"]) == 1
    assert data_of("a.html")["finding"]["holds"] is False


def test_the_command_of_a_point_makes_its_report(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A shell runs it, with quotes, spaces and a folder that has a quote in its name; its result is that of the study."""
    strange = Path("it's here")
    strange.mkdir()
    for name in ("one.toml", "study.toml"):
        Path(name).rename(strange / name)
    Path("load.toml").write_text('[load]\nnic = { op = "write", size = "1KiB", rate = "25Gb/s" }\n')
    study = strange / "study.toml"
    study.write_text(study.read_text() + "[repeats]\nfirst = 3\nseeds = 2\n")
    more = ["--set", 'title="it\'s $HOME `x`"', "--load", "load.toml"]
    assert status(["sweep", str(study), "--html", "a.html", "--json", "a.json", *more]) == 0
    capsys.readouterr()
    page = data_of("a.html")
    rows = page["rows"]
    points = expanded(page["columns"]["point"], rows)
    row = points.index(points[-1])  # as the page: the first run of the point
    own = [expanded(column, rows)[row] for column in page["command"]["sets"]]
    seed = expanded(page["columns"]["seed"], rows)[row]
    command = " ".join([page["command"]["head"], *own, f"--seed {seed} --report 'point.html' --json out.json --quiet"])
    assert command.startswith('tlplab run "it\'s here/one.toml" --set ') or command.startswith(
        "tlplab run 'it'\"'\"'s here/one.toml' --set "
    )
    shell = command.replace("tlplab", f"{shlex.quote(sys.executable)} -m tlplab", 1)
    subprocess.run(shell, shell=True, check=True, timeout=60)
    document = json.loads(Path("out.json").read_text())
    assert seed == 3
    assert document["title"] == "it's $HOME `x`"
    names = [figure["name"] for figure in page["figures"]]
    told = expanded(page["columns"]["figures"][names.index("nic.throughput")], rows)[row]
    assert document["flows"][0]["payload_bps"] == told > 0
    assert data_of_report("point.html")["title"] == document["title"]


def test_a_path_is_shortened_only_if_it_stays_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a/b").mkdir(parents=True)
    Path("far/away").mkdir(parents=True)
    Path("link").symlink_to("far/away")
    assert alone.short("a/b/../../one.toml") == "one.toml"
    assert alone.short("link/../one.toml") == "link/../one.toml"


def data_of_report(page: str | Path) -> dict[str, Any]:
    """The result in the page of a run."""
    return data_of(str(page))


def test_reports_in_the_page_equal_the_report_of_run(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--where", "nic_rate == 10 Gb/s and uplink != 'gen4 x4'"]
    assert status(["sweep", "study.toml", "--html", "a.html", "--reports", *few]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "1 report in the page, " in said
    assert " each, " in said
    packed = data_of("a.html")["reports"]
    assert list(packed["results"]) == ["8"], "what was refused has none"
    before, after = (gzip.decompress(base64.b64decode(part)).decode() for part in packed["viewer"])
    result = gzip.decompress(base64.b64decode(packed["results"]["8"])).decode()
    sets = ['switch.sw0.link="gen4 x8"', 'load.nic.rate="10Gb/s"']
    assert (
        status(["run", "one.toml", *(word for one in sets for word in ("--set", one)), "--report", "8.html", "--quiet"])
        == 0
    )
    assert before + result.replace("<", "\\u003c") + after == Path("8.html").read_text(encoding="utf-8")


def test_too_many_reports_are_refused_before_they_are_made(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "MOST_BYTES", 100_000)
    assert status(["sweep", "study.toml", "--quiet", "--html", "a.html", "--reports"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "--reports: the report of a point takes " in said
    assert "not 6. Choose points by --where; without --reports the page shows the command for each report" in said
    assert not Path("a.html").exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--reports"], "--reports needs a page: name one with --html"),
        (["--html", "a.txt"], "name a file that ends in .html or .htm"),
        (["--html", "-"], "cannot go to the standard output"),
        (["--html", "none/a.html"], "the folder none does not exist"),
        (["--html", "study.toml"], "both name study.toml"),
    ],
)
def test_mistakes_in_options_are_reported(
    study: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], why: str
) -> None:
    assert status(["sweep", "study.toml", *arguments]) == 2
    assert why in " ".join(capsys.readouterr().err.split())


def test_a_column_is_written_in_the_shortest_way() -> None:
    assert html.column([1, 1, 1]) == {"all": 1}
    assert html.column(["a", "b", "a"]) == {"of": ["a", "b"], "at": [0, 1, 0]}
    assert html.column([1, 2, 3, 4]) == [1, 2, 3, 4]
    assert html.column([None, 1, 2, 1]) == [None, 1, 2, 1]
    assert html.column([True, 1, True, 1, True, 1]) == {"of": [True, 1], "at": [0, 1, 0, 1, 0, 1]}


def test_a_picture_stands_in_the_page_of_the_study(study: Path) -> None:
    Path("pages").mkdir()
    Path("my pictures").mkdir()
    picture = ["--plot", "my pictures/a.svg", "--x", "uplink"]
    assert status(["sweep", "study.toml", "--quiet", "--markdown", "pages/a.md", *picture]) == 0
    text = Path("pages/a.md").read_text()
    assert "\n![Uplinks](../my%20pictures/a.svg)\n" in text
    assert "`tlplab sweep study.toml --markdown study.md --plot study.svg --x uplink`" in text
    assert status(["sweep", "study.toml", "--quiet", "--markdown", "pages/a.md", "--plot", "a.pdf"]) == 0
    assert "\n[The picture](../a.pdf)\n" in Path("pages/a.md").read_text()
