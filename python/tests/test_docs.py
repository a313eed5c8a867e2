"""Every command that the documentation shows is run, and prints what the documentation shows.

A ```console block is one shell session: lines that start with `$ ` are commands, the others their output. The output
shown must appear in the real one, in order; `…` stands for anything, within a line or for whole lines. A command
fails the test by its exit status, unless the next one is `echo $?`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# What a fresh clone has that commands name.
LINKED = ["experiments", "examples", "crates", "docs", "README.md"]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Step:
    """One command and the output that is shown for it."""

    command: str
    shown: list[str] = field(default_factory=list)


def read_steps(block: str) -> list[Step]:
    """The commands of a block."""
    steps: list[Step] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            steps.append(Step(line[2:]))
        elif steps and steps[-1].command.endswith("\\"):
            steps[-1].command += "\n" + line.removeprefix("> ")
        elif line:
            assert steps, f"output before any command: {line}"
            steps[-1].shown.append(line)
    return steps


def blocks() -> list[tuple[str, str]]:
    """(place, text) of each console block."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append((f"{page.relative_to(ROOT)}:{line}", match.group(1)))
    return found


def run_session(steps: list[Step], folder: Path) -> list[tuple[int, str]]:
    """Runs the commands in one shell; (status, output) of each."""
    mark = "\x1e"
    script = "".join(
        f"{step.command}\n__status=$?; printf '{mark}%s{mark}' $__status; (exit $__status)\n" for step in steps
    )
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "LANG": "C.UTF-8",
    }
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    parts = done.stdout.split(mark)
    return [(int(parts[i + 1]), parts[i]) for i in range(0, len(parts) - 1, 2)]


def first_missing(shown: list[str], output: str) -> str | None:
    """The first line of `shown` that `output` lacks, in order; spaces at line ends do not count."""
    lines = [line.rstrip() for line in output.splitlines()]
    position = 0
    for expected in shown:
        if expected.strip() == "…":
            continue
        pattern = re.compile(".*".join(map(re.escape, expected.rstrip().split("…"))))
        found = next((n for n in range(position, len(lines)) if pattern.fullmatch(lines[n])), None)
        if found is None:
            return expected
        position = found + 1
    return None


@pytest.mark.parametrize(("place", "block"), blocks(), ids=[place for place, _ in blocks()])
def test_the_commands_shown_do_what_is_shown(place: str, block: str, tmp_path: Path) -> None:
    for name in LINKED:
        if (ROOT / name).exists():
            (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "out").mkdir()
    steps = [step for step in read_steps(block) if not step.command.startswith("make")]  # CI runs those
    results = run_session(steps, tmp_path)
    assert len(results) == len(steps), f"{place}: the shell ended early: {results}"
    for number, (step, (status, output)) in enumerate(zip(steps, results, strict=True)):
        told = number + 1 < len(steps) and steps[number + 1].command == "echo $?"
        assert status == 0 or told, f"{place}: {step.command}: exit status {status}\n{output}"
        missing = first_missing(step.shown, output)
        assert missing is None, f"{place}: {step.command}\nshown, but not printed: {missing}\nprinted:\n{output}"


def test_the_readme_has_a_tour() -> None:
    assert sum(len(read_steps(block)) for place, block in blocks() if place.startswith("README")) >= 5


def test_a_stale_page_is_noticed(tmp_path: Path) -> None:
    steps = read_steps("$ printf 'one\\ntwo 2\\nthree\\n'\none\nthree\n$ false\n$ echo $?\n1\n")
    assert run_session(steps, tmp_path) == [(0, "one\ntwo 2\nthree\n"), (1, ""), (0, "1\n")]
    output = "one\ntwo 2\nthree\n"
    assert first_missing(["one", "…", "two …"], output) is None
    assert first_missing(["three", "one"], output) == "one", "order counts"
    assert first_missing(["four"], output) == "four"
    assert first_missing(["two"], output) == "two", "a line is compared whole"
