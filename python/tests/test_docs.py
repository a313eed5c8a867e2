"""Every command in the documentation is run, and prints the output shown there.

A ```console block is one shell session, in the folder where the blocks of its page before it have left their files: lines
that start with `$ ` are commands, the others their output. The output
shown must appear in the real one, in order; `…` stands for anything, within a line or for whole lines. A command
fails the test by its exit status, unless the next one is `echo $?`.

A block of another language that follows a comment such as `<!-- examples/python/copier.py -->` is an excerpt of that
file, which runs elsewhere as a test: its lines must be there, in order and next to each other but for lines that are only
`…`. The guide to writing devices consists of such blocks alone.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from guest import needs_guest, needs_tools

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "studies").rglob("*.md"))]
# What a fresh clone has that commands name.
LINKED = ["experiments", "studies", "examples", "crates", "docs", "python", "README.md", ".ci"]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANY_BLOCK = re.compile(
    r"(?:^<!-- (?P<file>\S+) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
EXCERPTS_ONLY = "docs/write-a-device.md"
# Pages with many guests.
LONG = ("docs/lying-devices.md", "docs/simple-nic-driver.md")


def own_network() -> list[str]:
    """The command that gives a session a network of its own, so that it may use the addresses of a page; empty if that is not permitted."""
    command = ["unshare", "--net", "--map-root-user"] if os.geteuid() else ["unshare", "--net"]
    command += ["sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    try:
        return command if subprocess.run([*command, "true"], capture_output=True, timeout=10).returncode == 0 else []
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return []


OWN_NETWORK = own_network()


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


def blocks(page: Path) -> list[tuple[str, str]]:
    """(place, text) of each console block of a page."""
    text = page.read_text(encoding="utf-8")
    lines = [(text.count("\n", 0, match.start()) + 1, match.group(1)) for match in BLOCK.finditer(text)]
    return [(f"{page.relative_to(ROOT)}:{line}", block) for line, block in lines]


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
    shell = subprocess.Popen(
        [*OWN_NETWORK, "bash", "-c", script],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        printed, _ = shell.communicate(timeout=600)
    finally:
        # What a block has left behind it would hold the addresses of the next one, and the pipe.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
        shell.communicate()
    parts = printed.split(mark)
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


def check_session(place: str, block: str, folder: Path) -> None:
    """Runs the commands of a block, each of which must print the shown output."""
    if "tlplab guest qemu" in block:
        needs_tools()
    elif boots(block):
        needs_guest()
    if "--engine dask" in block:
        pytest.importorskip("distributed")
    # CI runs those, and what they run.
    steps = [step for step in read_steps(block) if not step.command.startswith(("make", "cargo"))]
    results = run_session(steps, folder)
    assert len(results) == len(steps), f"{place}: the shell ended early: {results}"
    for number, (step, (status, output)) in enumerate(zip(steps, results, strict=True)):
        told = number + 1 < len(steps) and steps[number + 1].command == "echo $?"
        assert status == 0 or told, f"{place}: {step.command}: exit status {status}\n{output}"
        missing = first_missing(step.shown, output)
        assert missing is None, f"{place}: {step.command}\nshown, but not printed: {missing}\nprinted:\n{output}"


def shown(page: Path) -> Any:
    """A page as a parameter; a page whose commands boot a Linux guest needs a built kernel."""
    name = str(page.relative_to(ROOT))
    marks = [pytest.mark.full] if any(boots(block) for _, block in blocks(page)) else []
    return pytest.param(page, id=name, marks=[*marks, *([pytest.mark.long] if name in LONG else [])])


def boots(block: str) -> bool:
    """True if the commands of a block boot a Linux guest."""
    return any(f"tlplab {command}" in block for command in ("guest", "torture"))


@pytest.mark.parametrize("page", [shown(page) for page in PAGES])
def test_shown_commands_print_the_shown_output(page: Path, tmp_path: Path) -> None:
    for name in LINKED:
        if (ROOT / name).exists():
            (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "out").mkdir()
    for place, block in blocks(page):
        check_session(place, block, tmp_path)


@dataclass
class Excerpt:
    """A block that is not a session, and the file that it says it comes from."""

    place: str
    page: str
    file: str | None
    text: str


def excerpts() -> list[Excerpt]:
    """Every block that names a file, or that stands where only such blocks may."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        name = str(page.relative_to(ROOT))
        for match in ANY_BLOCK.finditer(text):
            line = text.count("\n", 0, match.start("text")) + 1
            if match["language"] != "console" and (match["file"] or name == EXCERPTS_ONLY):
                found.append(Excerpt(f"{name}:{line}", name, match["file"], match["text"]))
    return found


def first_strange(excerpt: str, file: str) -> str | None:
    """The first run of lines of an excerpt, indented by any amount, that the file does not hold behind the runs before."""
    lines = [line.rstrip() for line in file.splitlines()]
    position = 0
    for run in re.split(r"^\s*…\n", excerpt, flags=re.MULTILINE):
        wanted = [line.rstrip() for line in run.splitlines()]
        while wanted and not wanted[-1]:
            wanted.pop()
        while wanted and not wanted[0]:
            wanted.pop(0)
        if not wanted:
            continue
        found = next((at for at in range(position, len(lines)) if holds(lines[at : at + len(wanted)], wanted)), None)
        if found is None:
            return "\n".join(wanted)
        position = found + len(wanted)
    return None


def holds(lines: list[str], wanted: list[str]) -> bool:
    """True if the lines equal the wanted ones, all moved by the same number of spaces."""
    indent = (len(lines[0]) - len(lines[0].lstrip())) - (len(wanted[0]) - len(wanted[0].lstrip())) if lines else 0
    return indent >= 0 and lines == [" " * indent + line if line else "" for line in wanted]


@pytest.mark.parametrize("excerpt", excerpts(), ids=lambda excerpt: excerpt.place)
def test_the_excerpts_shown_are_in_their_files(excerpt: Excerpt) -> None:
    assert excerpt.file is not None, f"{excerpt.place}: the block names no file; put <!-- PATH --> on the line before"
    strange = first_strange(excerpt.text, (ROOT / excerpt.file).read_text(encoding="utf-8"))
    assert strange is None, f"{excerpt.place}: {excerpt.file} does not hold, behind what is shown before:\n{strange}"


def test_a_stale_excerpt_is_noticed() -> None:
    file = "class A:\n    x = 1\n\n    def f(self):\n        return 1\n"
    assert first_strange("class A:\n    x = 1\n", file) is None
    assert first_strange("x = 1\n\ndef f(self):\n    return 1\n", file) is None
    assert first_strange("class A:\n    …\n    def f(self):\n", file) is None
    assert first_strange("x = 1\ndef f(self):\n", file) == "x = 1\ndef f(self):", "an empty line is missing"
    assert first_strange("def f(self):\nreturn 1\n", file) == "def f(self):\nreturn 1", "indentation counts"
    assert first_strange("    def f(self):\n    …\nclass A:\n", file) == "class A:", "order counts"
    assert first_strange("x = 2\n", file) == "x = 2"


def test_the_guide_is_made_of_excerpts() -> None:
    files = {excerpt.file for excerpt in excerpts() if excerpt.page == EXCERPTS_ONLY}
    assert {"examples/python/engine.py", "examples/rust/engine.rs"} <= files


def test_the_first_minutes_are_a_tour() -> None:
    assert sum(len(read_steps(block)) for _, block in blocks(ROOT / "docs/five-minutes.md")) >= 5


def test_processes_left_by_a_shown_command_are_ended(tmp_path: Path) -> None:
    steps = read_steps("$ sleep 600 >sleep 2>&1 &\n$ echo $! >number\n")
    assert [status for status, _ in run_session(steps, tmp_path)] == [0, 0]
    left = Path("/proc", (tmp_path / "number").read_text().strip(), "cmdline")
    until = time.monotonic() + 10
    while left.exists() and b"sleep" in left.read_bytes():
        assert time.monotonic() < until, "it goes on"
        time.sleep(0.05)


def test_a_stale_page_is_noticed(tmp_path: Path) -> None:
    steps = read_steps("$ printf 'one\\ntwo 2\\nthree\\n'\none\nthree\n$ false\n$ echo $?\n1\n")
    assert run_session(steps, tmp_path) == [(0, "one\ntwo 2\nthree\n"), (1, ""), (0, "1\n")]
    output = "one\ntwo 2\nthree\n"
    assert first_missing(["one", "…", "two …"], output) is None
    assert first_missing(["three", "one"], output) == "one", "order counts"
    assert first_missing(["four"], output) == "four"
    assert first_missing(["two"], output) == "two", "a line is compared whole"
