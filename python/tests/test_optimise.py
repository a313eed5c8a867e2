"""`tlplab optimise` and `tlplab sensitivity`: answers that are known by hand, searches that are interrupted, mistakes."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
import warnings
from itertools import product
from pathlib import Path
from statistics import mean, pvariance
from typing import Any

import pytest

import tlplab as tl
from tlplab.cli import status
from tlplab.study import sensing
from tlplab.study.space import Parameter

pytest.importorskip("optuna")
pytest.importorskip("SALib")

# Two idle links: what they are is known without any traffic, and so are figures made of it.
LINKS = """\
title = "Links"
stop = "1us"
[device.a]
under = "host.rp0"
link = "gen1 x1"
[device.b]
under = "host.rp1"
link = "gen1 x1"
[device.c]
under = "host.rp2"
link = "gen1 x1"
[load]
c = { op = "write", size = "64B", rate = "1Gb/s" }
"""

GENERATIONS = """\
title = "Generations"
experiment = "links.toml"
[[axis]]
key = "device.a.link"
name = "a"
values = ["gen1 x1", "gen2 x1", "gen3 x1", "gen4 x1"]
[[axis]]
key = "device.b.link"
name = "b"
values = ["gen1 x1", "gen2 x1", "gen3 x1", "gen4 x1"]
[[axis]]
key = "device.c.tags"
name = "idle"
from = 8
to = 64
factor = 2
"""

# A reader with few tags: in each round trip as many bytes come as its tags ask for, whatever the link.
TAGS = """\
title = "Tags"
host = "server"
stop = "20us"
[device.dev]
under = "host.rp0"
link = "gen5 x16"
tags = 2
mrrs = "256B"
[load]
dev = { op = "read", size = "256B", outstanding = 64 }
"""

FEW_TAGS = """\
title = "Few tags"
experiment = "tags.toml"
[[axis]]
key = "device.dev.tags"
name = "tags"
values = [1, 2, 4]
[[axis]]
key = "device.dev.link"
name = "link"
values = ["gen5 x16", "gen5 x8"]
[[axis]]
key = "load.dev.outstanding"
name = "outstanding"
values = [16, 64]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with studies, and a store of their own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for name, text in (("links", LINKS), ("study", GENERATIONS), ("tags", TAGS), ("few", FEW_TAGS)):
        (tmp_path / f"{name}.toml").write_text(text)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *arguments: str, ends: int = 0) -> Any:
    """The JSON document of a command."""
    assert status([*arguments, "--json", "-"]) == ends
    return json.loads(capsys.readouterr().out)


def best(document: Any) -> list[dict[str, str]]:
    """The settings of the best points."""
    return [point["sets"] for point in document["points"] if point["best"]]


# By hand: a + b is least at 1 + 1; of those where a b >= 6 at 2 + 3, 3 + 2 (a b = 6).
AIM = ["--minimise", "a.generation + b.generation", "--subject-to", "a.generation * b.generation >= 6"]


def test_the_best_point_is_found_and_its_command_makes_it(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "optimise", "study.toml", *AIM, "--trials", "64")
    assert found["whole"]
    assert {(one["a"], one["b"]) for one in best(found)} == {("gen2 x1", "gen3 x1"), ("gen3 x1", "gen2 x1")}
    assert found["runs"] == {"made": 64, "known": 0}
    assert len(best(found)) == 8, "the third parameter changes nothing"
    command = shlex.split(found["command"])
    assert command[:3] == ["tlplab", "run", "links.toml"]
    result = tl.run("links.toml", overrides=command[4::2], verdict=False)
    assert sorted(link["generation"] for link in result["links"][:2]) == [2, 3]
    assert status(["optimise", "study.toml", *AIM, "--trials", "64"]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines()[:-1])) <= 100
    assert "7 points more are as good." in said
    assert "All points were tried: no point is better." in said
    assert "64 trials of 64: 0 runs made, 64 known, 32 violate a constraint" in said


def test_a_search_of_some_points_is_the_same_for_one_seed(capsys: pytest.CaptureFixture[str]) -> None:
    search = ["optimise", "study.toml", *AIM, "--trials", "30"]
    one = told(capsys, *search)
    other = told(capsys, *search, "--store", "another", "--threads", "1")
    assert one["points"] == other["points"]
    assert not one["whole"]
    assert 10 < len(one["points"]) <= one["trials"] == 30
    assert [point["sets"] for point in told(capsys, *search, "--seed", "2")["points"]] != [
        point["sets"] for point in one["points"]
    ]
    assert {point["objectives"][0] for point in one["points"] if point["best"]} == {5}


def test_how_far_the_best_is_from_the_best_known(capsys: pytest.CaptureFixture[str]) -> None:
    search = ["optimise", "study.toml", "--maximise", "a.generation * b.generation", "--trials", "2"]
    assert status(search) == 0
    few = capsys.readouterr().out
    assert "the study's" not in few, "not all points are known"
    assert status(["sweep", "study.toml", "--quiet"]) == 0
    assert status(search) == 0
    said = " ".join(capsys.readouterr().out.split())
    value = int(few.splitlines()[3].split()[-1])
    assert value < 16
    assert (
        f"It is not the best of the study's 64 points, which are all known: one has 16, {100 * (16 - value) / value:.3g}"
        in said
    )
    assert status([*search, "--trials", "30"]) == 0
    assert "It is the best of the study's 64 points, which are all known." in " ".join(capsys.readouterr().out.split())


def test_several_objectives_have_a_front(capsys: pytest.CaptureFixture[str]) -> None:
    search = ["optimise", "study.toml", "--minimise", "a.generation + b.generation", "--maximise", "a.generation"]
    found = told(capsys, *search, "--where", "idle == 8", "--trials", "64")
    # All sums from 1 + 1 to 4 + 1 with b = 1: nothing has more a for as little.
    assert {(one["a"], one["b"]) for one in best(found)} == {(f"gen{a} x1", "gen1 x1") for a in (1, 2, 3, 4)}
    assert found["left_out"] == {"where idle == 8": 48}
    some = told(capsys, *search, "--subject-to", "b.generation > 1", "--trials", "24")
    assert all(one["b"] != "gen1 x1" for one in best(some))


def test_without_a_feasible_point_the_nearest_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    search = ["optimise", "study.toml", "--minimise", "a.lanes", "--subject-to", "a.generation * b.generation > 16"]
    assert status([*search, "--trials", "8", "--quiet"]) == 1
    assert capsys.readouterr() == ("", "no point fulfils the constraints\n")
    assert status([*search, "--trials", "64"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "No point fulfils the constraints. The nearest one: a.generation * b.generation is 16 but" in said
    assert "tlplab run links.toml --set 'device.a.link=\"gen4 x1\"' --set 'device.b.link=\"gen4 x1\"'" in said


def test_refused_and_left_out_points_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    text = GENERATIONS.replace('"gen4 x1"]\n[[axis]]\nkey = "device.b', '"gen9 x1"]\n[[axis]]\nkey = "device.b')
    Path("study.toml").write_text(text + '[[filter]]\nname = "few"\nkeep = "idle <= 16"\n')
    assert status(["optimise", "study.toml", "--maximise", "a.generation", "--trials", "40"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert 'refused: --set: device.a.link: unsupported generation "gen9"' in said
    assert "left out: few (" in said
    found = told(capsys, "optimise", "study.toml", "--maximise", "a.generation", "--trials", "64")
    kinds = [point["kind"] for point in found["points"]]
    assert (kinds.count("done"), kinds.count("refused"), kinds.count("left out")) == (24, 8, 32)
    assert {one["a"] for one in best(found)} == {"gen3 x1"}


def test_a_hypercube_is_searched_by_its_ranges(capsys: pytest.CaptureFixture[str]) -> None:
    of = (
        'of = [{ key = "device.a.link", name = "a", values = ["gen1 x1", "gen2 x1"] },'
        ' { key = "device.c.tags", name = "tags", from = 8, to = 11 }]'
    )
    Path("study.toml").write_text(f'experiment = "links.toml"\n[[axis]]\nlatin = 6\n{of}\n')
    found = told(capsys, "optimise", "study.toml", "--maximise", "a.generation", "--trials", "8")
    tags = [point["sets"]["tags"] for point in found["points"]]
    assert found["whole"]
    assert sorted(set(tags), key=int) == ["8", "9", "10", "11"], "whole numbers, each once"
    assert len(tags) == 8


def trials(storage: str) -> list[tuple[str, Any]]:
    """States and parameters of the trials in a storage."""
    import optuna

    from tlplab.study.optimising import open_storage

    (summary,) = optuna.get_all_study_summaries(open_storage(storage))
    study = optuna.load_study(study_name=summary.study_name, storage=open_storage(storage))
    return [(trial.state.name, trial.params) for trial in study.trials]


@pytest.mark.parametrize("storage", ["search.journal", pytest.param("sqlite:///search.db", marks=pytest.mark.full)])
def test_a_search_goes_on_where_it_was(
    storage: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    search = ["optimise", "study.toml", *AIM, "--trials", "22"]
    whole = told(capsys, *search)
    from tlplab.study.optimising import Search

    tell, seen = Search._tell, []

    def interrupted(search: Search, trial: Any, point: Any) -> None:
        seen.append(trial)
        if len(seen) == 14:
            # In the midst of it.
            trial.set_constraint("1: " + AIM[-1], search.aim.distances(point)[0])
            raise KeyboardInterrupt
        tell(search, trial, point)

    with monkeypatch.context() as patched:
        patched.setattr(Search, "_tell", interrupted)
        assert status([*search, "--storage", storage]) == 130
    assert f"interrupted: 13 of 22 trials are kept in {storage}; the same command resumes" in capsys.readouterr().err
    states = [state for state, _ in trials(storage)]
    assert states.count("RUNNING") == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resumed = told(capsys, *search, "--storage", storage)
    assert resumed["points"] == whole["points"]
    assert resumed["runs"]["made"] == 0, "the points were run before"
    assert all(state in ("COMPLETE", "PRUNED") for state, _ in trials(storage))
    more = told(capsys, *search[:-1], "26", "--storage", storage)
    assert more["trials"] == 26
    assert more["points"][: len(whole["points"])] == whole["points"]


def test_a_failing_storage_is_reported(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from optuna.exceptions import StorageInternalError

    from tlplab.study.optimising import Search

    def fails(*_: object) -> None:
        raise StorageInternalError("an exception") from OSError("the database is locked\nand more")

    monkeypatch.setattr(Search, "_tell", fails)
    assert status(["optimise", "study.toml", "--minimise", "rate", "--trials", "3"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith("Error: --storage: the database is locked; the finished runs are stored")


def test_a_storage_with_other_results_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    search = ["optimise", "study.toml", "--minimise", "c.throughput", "--storage", "kept", "--trials", "6"]
    assert status(search) == 0
    Path("links.toml").write_text(LINKS.replace("1Gb/s", "500Mb/s"))
    capsys.readouterr()
    assert status(search) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "has a search with other results" in said
    assert "name another storage" in said


@pytest.mark.full
def test_a_search_that_is_killed_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    Path("slow.toml").write_text(GENERATIONS.replace("title", 'set = ["stop=300us", "load.c.rate=1.9Gb/s"]\ntitle'))
    search = ["optimise", "slow.toml", "--minimise", "a.generation", "--trials", "40", "--storage", "kept"]
    process = subprocess.Popen([sys.executable, "-m", "tlplab", *search], stdout=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not Path("kept").exists() or Path("kept").read_text().count('"sets"') < 8:
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=60)
    resumed = told(capsys, *search)
    assert resumed["trials"] == 40
    assert resumed["points"] == told(capsys, *search[:-2])["points"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["optimise", "study.toml"], "an objective is missing"),
        (["optimise", "study.toml", "--minimise", "thruput"], "unknown metric thruput; did you mean throughput?"),
        (["optimise", "study.toml", "--minimise", "rate, bytes"], "is a list; give each figure an option of its own"),
        (["optimise", "study.toml", "--minimise", "d.rate", "--trials", "2"], "no point has d.rate; did you mean c.rate?"),
        (["optimise", "study.toml", "--minimise", "rate", "--subject-to", "rate"], "this is a number of 1/s, not a comparison of two figures"),
        (["optimise", "study.toml", "--minimise", "rate", "--subject-to", "rate > 4"], "> cannot combine a number of 1/s and a plain number"),
        (["optimise", "study.toml", "--minimise", "rate", "--storage", "none/x"], "the folder none does not exist"),
        (["optimise", "study.toml", "--minimise", "rate", "--storage", "study.toml"], "--storage"),
        (["optimise", "study.toml", "--minimise", "rate", "--storage", "nosql://x"], "--storage nosql://x"),
        (["optimise", "study.toml", "--minimise", "rate", "--where", "a == 'gen7 x1'", "--trials", "3"], "no point was run successfully"),
        (["optimise", "links.toml", "--minimise", "rate"], "links.toml"),
        (["sensitivity", "study.toml", "--of", "rate, bytes"], "this is a list; name one figure"),
        (["sensitivity", "study.toml", "--of", "rate", "--samples", "4"], "--samples needs --method morris or sobol"),
        (["sensitivity", "study.toml", "--of", "rate", "--method", "sobol", "--samples", "100"], "give 64 or 128"),
        (["sensitivity", "study.toml", "--of", "rate", "--at", "x=4"], "write NAME=VALUE; the names are a; b; idle"),
        (["sensitivity", "study.toml", "--of", "rate", "--at", "a=gen7 x1"], "the axis has no such value; it has gen1 x1; gen2 x1"),
        (["sensitivity", "study.toml", "--of", "rate", "--at", "a=gen1 x1", "--method", "morris"], "--at is for one-at-a-time"),
        (["sensitivity", "study.toml", "--of", "rate", "--set", "stop=x"], "the base cannot be run, refused"),
        (["sensitivity", "study.toml", "--of", "rate", "--method", "morris", "--where", "a == b"], "groups of 4 samples"),
        (["sensitivity", "study.toml", "--of", "rate", "--plot", "x.bmp"], "name a file that ends in .png, .svg or .pdf"),
    ],
)  # fmt: skip
def test_mistakes_in_options_are_reported(arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path("study.toml").read_text()
    assert status(arguments) == 2
    written = capsys.readouterr()
    assert why in " ".join((written.out + written.err).replace("│", " ").split())
    assert "Traceback" not in written.err
    assert Path("study.toml").read_text() == before


@pytest.mark.parametrize("library", ["optuna", "SALib"])
def test_a_missing_library_is_reported_with_its_pip_command(
    library: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    searches = {
        "optuna": ["optimise", "study.toml", "--minimise", "rate"],
        "SALib": ["sensitivity", "study.toml", "--of", "rate", "--method", "sobol"],
    }
    assert status(searches[library]) == 2
    assert "pip install 'tlplab[studies]'" in " ".join(capsys.readouterr().err.split())


def effects(document: Any, key: str) -> dict[str, float]:
    """One figure of each parameter."""
    return {one["parameter"]: one[key] for one in document["effects"]}


def test_only_tags_change_a_rate_limited_by_tags(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "sensitivity", "few.toml", "--of", "throughput")
    known = {one["parameter"]: one for one in found["effects"]}
    low, high = known["tags"]["low"], known["tags"]["high"]
    assert (low["with"], high["with"]) == ("1", "4")
    # By hand: a tag brings 256 B in each round trip, which is as long as a read that is alone.
    alone = tl.run("tags.toml", overrides=["load.dev.outstanding=1"], verdict=False)["flows"][0]["latency_ns"]
    assert alone is not None
    for value, tags in ((low["value"], 1), (found["base"]["mean"], 2), (high["value"], 4)):
        assert value == pytest.approx(tags * 256 * 8 / (alone["mean"] * 1e-9), rel=0.02)
    assert known["link"]["effect"] < 0.03 * known["tags"]["effect"]
    assert known["outstanding"]["effect"] == 0
    assert status(["sensitivity", "few.toml", "--of", "throughput", "--plot", "tornado.svg"]) == 0
    said = capsys.readouterr().out
    assert "outstanding makes no difference." in said
    assert [line.split()[0] for line in said.splitlines()[4:7]] == ["tags", "link", "outstanding"]
    assert "0" in said.splitlines()[6].split()
    assert Path("tornado.svg").read_text().startswith("<?xml")


def test_the_base_is_the_experiment_or_the_given_point(capsys: pytest.CaptureFixture[str]) -> None:
    of = ["sensitivity", "study.toml", "--of", "a.generation * b.generation"]
    # Around 1 and 1 each goes from 1 to 4; around a = 3, b goes from 3 to 12.
    assert effects(told(capsys, *of), "effect") == {"a": 3, "b": 3, "idle": 0}
    found = told(capsys, *of, "--at", "a=gen3 x1")
    assert effects(found, "effect") == {"a": 3, "b": 9, "idle": 0}
    assert found["base"]["mean"] == 3
    assert effects(told(capsys, *of, "--set", "device.a.link=gen2 x1"), "effect") == {"a": 3, "b": 6, "idle": 0}


def test_repeats_give_an_interval(capsys: pytest.CaptureFixture[str]) -> None:
    Path("few.toml").write_text(
        FEW_TAGS.replace("title", "set = ['host=\"xeon-e5-2637v3\"']\ntitle") + "[repeats]\nseeds = 3\n"
    )
    found = told(capsys, "sensitivity", "few.toml", "--of", "latency.p99")
    assert all(one["half"] is not None for one in found["effects"])
    assert any(one["half"] > 0 for one in found["effects"])


def test_morris_finds_linear_effects_without_spread(capsys: pytest.CaptureFixture[str]) -> None:
    of = ["sensitivity", "study.toml", "--method", "morris", "--samples", "6"]
    found = told(capsys, *of, "--of", "2 * a.generation - b.generation")
    # From generation 1 to 4: 2 × 3 and 1 × 3, the same everywhere.
    assert effects(found, "mu_star") == pytest.approx({"a": 6, "b": 3, "idle": 0})
    assert effects(found, "sigma") == pytest.approx({"a": 0, "b": 0, "idle": 0}, abs=1e-12)
    assert effects(found, "mu_star")["idle"] == 0
    assert found["unclear"] == []
    found = told(capsys, *of, "--of", "a.generation * b.generation")
    assert effects(found, "sigma")["a"] > 0
    assert effects(found, "mu_star")["idle"] == effects(found, "sigma")["idle"] == 0


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6, 7, 8, 9, 10, 100, 101])
def test_two_of_morris_levels_are_always_as_many_steps(size: int) -> None:
    one = Parameter("p", True, tuple(map(str, range(size))))
    steps = [sensing.level(one, x / 3) for x in range(4)]
    assert steps[0] == 0
    assert steps[3] == size - 1
    assert steps[2] - steps[0] == steps[3] - steps[1] == sensing.jump(one) > 0
    assert steps == sorted(steps)


def groups(points: list[tuple[int, ...]], f: Any, same: list[int]) -> list[list[float]]:
    """Values at points that are the same by some of their parameters."""
    found: dict[tuple[int, ...], list[float]] = {}
    for point in points:
        found.setdefault(tuple(point[at] for at in same), []).append(f(*point))
    return list(found.values())


def indices(f: Any, sizes: tuple[int, ...]) -> list[tuple[float, float]]:
    """S1 and ST of each parameter, by summing over all points: independent of SALib."""
    points = list(product(*(range(1, size + 1) for size in sizes)))
    whole = pvariance([f(*point) for point in points])
    found = []
    for at in range(len(sizes)):
        first = pvariance([mean(group) for group in groups(points, f, [at])])
        rest = [other for other in range(len(sizes)) if other != at]
        total = mean(pvariance(group) for group in groups(points, f, rest))
        found.append((first / whole, total / whole))
    return found


@pytest.mark.parametrize(
    ("figure", "f"),
    [
        # Variances add up: 4 to 1.
        ("2 * a.generation + b.generation", lambda a, b, _: 2 * a + b),
        ("a.generation * a.generation * b.generation", lambda a, b, _: a * a * b),
    ],
)
def test_sobol_finds_shares_of_the_variance(figure: str, f: Any, capsys: pytest.CaptureFixture[str]) -> None:
    known = indices(f, (4, 4, 4))
    if "+" in figure:
        assert sum(known, ()) == pytest.approx((0.8, 0.8, 0.2, 0.2, 0, 0))
    found = told(capsys, "sensitivity", "study.toml", "--method", "sobol", "--samples", "2048", "--of", figure)
    for one, (first, total) in zip("ab", known, strict=False):
        assert effects(found, "S1")[one] == pytest.approx(first, abs=0.03)
        assert effects(found, "ST")[one] == pytest.approx(total, abs=0.03)
        assert abs(effects(found, "ST")[one] - total) <= 2 * effects(found, "ST_half")[one]
    assert effects(found, "S1")["idle"] == effects(found, "ST")["idle"] == 0
    assert found["runs"]["made"] <= 64, "a point is run once, however many samples fall on it"


def test_too_few_samples_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    of = ["sensitivity", "study.toml", "--of", "a.generation * b.generation", "--method", "sobol", "--samples"]
    assert status([*of, "4"]) == 0
    assert "4 samples are too few to separate" in " ".join(capsys.readouterr().out.split())
    assert status([*of[:3], "3 * a.generation + b.generation", *of[4:], "1024"]) == 0
    assert "too few" not in capsys.readouterr().out
    assert status([*of[:3], "a.lanes", *of[4:], "16"]) == 0
    assert "None of the parameters changes a.lanes here." in capsys.readouterr().out


def test_left_out_samples_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    of = ["sensitivity", "study.toml", "--of", "a.generation", "--method", "morris", "--samples", "20"]
    assert status([*of, "--where", "a != 'gen4 x1' or b != 'gen4 x1'"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "of 20 groups of samples have a point that filters leave out" in said
    assert "left out: where a != 'gen4 x1' or b != 'gen4 x1' (" in said


def test_pictures(capsys: pytest.CaptureFixture[str]) -> None:
    for method in ("morris", "sobol"):
        command = ["sensitivity", "study.toml", "--of", "a.generation * b.generation", "--method", method]
        assert status([*command, "--plot", f"{method}.png", "--quiet"]) == 0
        assert Path(f"{method}.png").stat().st_size > 5_000
    assert capsys.readouterr().out == ""
