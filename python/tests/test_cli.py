"""The command line: exit statuses, messages for people, the same options everywhere."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tlplab import cli

UPLINK = """\
title = "SSD and NIC share one uplink"
stop = "20us"

[switch.sw0]
under = "host.rp0"
link = "gen4 x4"
mps = "256B"

[device.ssd]
under = "sw0"
link = "gen4 x4"

[device.nic]
under = "sw0"
link = "gen4 x8"

[load]
ssd = { op = "write", size = "4KiB", outstanding = 32 }
nic = { op = "write", size = "1500B", rate = "25Gb/s" }
"""

BUS = """\
title = "A disk on a bus"
stop = "20us"

[bus.pcix]
under = "host.rp0"
link = "gen1 x8"
width = "64b"

[device.disk]
under = "pcix"

[load.disk]
op = "write"
size = "4KiB"
"""


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two devices behind a switch, in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("uplink.toml").write_text(UPLINK, encoding="utf-8")
    return "uplink.toml"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """(status, stdout, stderr) of a command line."""
    status = cli.status(arguments)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_check_shows_the_topology(experiment: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "check", experiment, "--set", "switch.sw0.link=gen5 x16")
    assert (status, err) == (0, "")
    assert [line.strip(" │├└─") for line in out.splitlines()] == [
        "SSD and NIC share one uplink",
        "host",
        "host.rp0",
        "sw0  gen5 x16  switch",
        "nic  gen4 x8  dma  write 1500 B, 25 Gb/s → host",
        "ssd  gen4 x4  dma  write 4096 B, 32 outstanding → host",
    ]


def test_check_shows_a_bus_with_its_mode_and_its_devices_without_links(
    experiment: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(experiment).write_text(BUS, encoding="utf-8")
    status, out, err = run(capsys, "check", experiment)
    assert (status, err) == (0, "")
    assert [line.strip(" │├└─") for line in out.splitlines()[-3:]] == [
        "host.rp0",
        "pcix  gen1 x8  PCI-X 133 64b",
        "disk  dma  write 4096 B, 32 outstanding → host",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "switch.sw0.lnk=gen4 x8"], '--set: switch.sw0.lnk: unknown key "lnk"; did you mean "link"?'),
        (["--set", "switch.sw0.link=gen4 x3"], 'unsupported width "x3"'),
        (["--set", "device.ssd.under=ghost"], "ghost"),
        (["--set", "stop=-1us"], "stop"),
        (["--set", "device.ssd.mps=100"], 'as in "128B"'),
        (["--set", "load.ssd.rate=25"], 'as in "25Gb/s"'),
        (["--set", "load.ssd.rate=25000000000"], 'as in "25000000000b/s"'),
        (["--load", "none.toml"], 'cannot read "none.toml": there is no such file'),
    ],
)
def test_bad_input_is_status_2_and_one_message(
    arguments: list[str], message: str, experiment: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, "check", experiment, *arguments)
    assert (status, out) == (2, "")
    assert err.startswith("Error: ")
    assert message in err
    assert "Traceback" not in err
    assert err.count("\n") == 1


def test_every_mistake_of_a_file_has_its_line(experiment: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(experiment).write_text(UPLINK.replace("under", "undr"), encoding="utf-8")
    status, _, err = run(capsys, "check", experiment)
    assert status == 2
    assert [line.split(":")[1:3] for line in err.replace("Error: ", "").splitlines()] == [
        ["5", "1"],
        ["10", "1"],
        ["14", "1"],
    ]


def test_a_file_that_is_no_experiment_does_not_fill_the_screen(
    experiment: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(experiment).write_text("".join(f"key{n} = 1\n" for n in range(100)), encoding="utf-8")
    status, _, err = run(capsys, "check", experiment)
    assert status == 2
    assert len(err.splitlines()) == 11
    assert "… and 9" in err


@pytest.mark.parametrize(
    "arguments",
    [[], ["--help"], ["run", "--help"], ["check", "--help"], ["list", "--help"], ["schema", "--help"]],
)
def test_help_has_examples_and_fits(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    _, out, err = run(capsys, *arguments)
    assert "Example" in out + err
    assert max(map(len, (out + err).splitlines())) <= 100


def test_a_misspelt_command_is_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, "rnu", "x.toml")
    assert status == 2
    assert "Did you mean 'run'?" in err


def test_lists(experiment: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "list", "hosts")[1].splitlines()[0].split() == [
        "ideal", "Only", "the", "links:", "no", "latency,", "unlimited", "memory",
    ]  # fmt: skip
    assert [line.split()[0] for line in run(capsys, "list", "devices")[1].splitlines()] >= ["dma", "memory"]
    Path("other.toml").write_text("[tool]\nname = 1\n", encoding="utf-8")
    first, *own = run(capsys, "list", "experiments")[1].splitlines()
    assert first.split(maxsplit=1) == [experiment, "SSD and NIC share one uplink"]
    assert ["p2p/acs", "Request redirect sends peers by way of the root port"] in [
        line.split(maxsplit=1) for line in own
    ]


def test_a_list_fits_a_terminal_and_is_a_line_for_each_name_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    whole = run(capsys, "list", "devices")[1].splitlines()
    monkeypatch.setenv("COLUMNS", "60")
    narrow = run(capsys, "list", "devices")[1].splitlines()
    assert max(map(len, narrow)) <= 60 < max(map(len, whole))
    assert " ".join(" ".join(narrow).split()) == " ".join(" ".join(whole).split())


def test_a_shell_completes_commands_options_and_experiments(tmp_path: Path) -> None:
    script = tmp_path / "complete.sh"
    script.write_text(
        """
        set -eu
        eval "$(python -m tlplab completion bash)"
        complete -p tlplab
        for words in "tlplab ru" "tlplab run --thr" "tlplab run quicks" "tlplab guest um" \\
            "tlplab bench --host xeon-e5-26" "tlplab bench --device nfp" "tlplab model nic --nic dp"; do
            COMP_WORDS="$words" COMP_CWORD=$(($(echo "$words" | wc -w) - 1)) _TLPLAB_COMPLETE=bash_complete python -m tlplab
        done
    """,
        encoding="utf-8",
    )
    bin_ = Path(sys.executable).parent
    said = subprocess.check_output(
        ["bash", script], text=True, env={**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}"}
    )
    named = ("run", "--threads", "quickstart", "uml", "xeon-e5-2620v2", "nfp6000", "dpdk")
    for words in ("_tlplab_completion tlplab", *(f"plain,{name}" for name in named)):
        assert words in said


def test_own_experiments_go_by_name_where_no_file_is_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("quickstart", "quickstart.toml", "experiments/quickstart.toml"):
        assert run(capsys, "check", name)[0] == 0
    for name in ("../experiments/quickstart", "nothing", str(tmp_path / "quickstart.toml")):
        assert run(capsys, "check", name)[0] == 2
    status, _, said = run(capsys, "check", "quickstrat.toml")
    assert status == 2
    assert 'no file and no experiment "quickstrat.toml"; did you mean "quickstart"?' in said
    Path("quickstart.toml").write_text("title = 1\n", encoding="utf-8")
    assert run(capsys, "check", "quickstart.toml")[0] == 2
    assert run(capsys, "check", "quickstart")[0] == 0


@pytest.mark.usefixtures("experiment")
def test_schema_goes_to_stdout_or_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "schema")
    assert status == 0
    assert run(capsys, "schema", "-o", "schema.json") == (0, "", "")
    assert Path("schema.json").read_text(encoding="utf-8") == out
    assert json.loads(out)["title"] == "tlplab experiment"


@pytest.mark.parametrize("command", ["check", "explain", "lspci", "run", "whatif"])
def test_quiet_prints_nothing(command: str, experiment: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.status([command, experiment, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_quiet_leaves_only_the_files_of_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in ("bw", "lat", "nettlp", "nic"):
        assert run(capsys, "model", command, "--quiet", "--json", f"{command}.json") == (0, "", "")
        assert json.loads(Path(f"{command}.json").read_text(encoding="utf-8"))


def groups(command: click.Command, name: str) -> Iterator[tuple[str, click.Group]]:
    """The group of this name and the groups in it."""
    if isinstance(command, click.Group):
        yield name, command
        context = click.Context(command)
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            yield from groups(found, f"{name} {inner}")


def test_each_command_has_a_whole_line_in_the_list_of_its_group() -> None:
    lists = dict(groups(cli.commands, "tlplab"))
    assert {"tlplab", "tlplab model", "tlplab guest"} <= set(lists)
    for name, group in lists.items():
        with click.Context(group, info_name=name, terminal_width=80) as context:
            listed = group.get_help(context).partition("Commands:")[2]
        assert listed
        assert not re.search(r"(\.\.\.|…)$", listed, re.MULTILINE), name
        assert len(listed.split("\n\n")[0].strip().splitlines()) == len(group.list_commands(context)), name


def test_a_closed_pipe_ends_a_command_with_the_status_of_its_signal() -> None:
    script = "trap '' PIPE; { \"$@\"; echo $? >&2; } | true"
    command = ["sh", "-c", script, "sh", sys.executable, "-m", "tlplab", "schema"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == f"{128 + signal.SIGPIPE}\n"
