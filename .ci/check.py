"""`make check`: the checks of changed files. Changed are files that differ from the upstream branch, or from `--since`, and new ones.

A change of a crate runs the formatter, clippy and the tests of this crate, with four cases of each property; a change in Python the linters, and the tests that name the changed module. Crates that depend
on a changed one, and everything else, are tested by `make test`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
Command = list[str]
PYTEST = [str(BIN / "pytest"), "--quiet", "-m", "not full"]
NO_TESTS = 5
"""The exit status of pytest if all tests of the files are left out."""


def git(*arguments: str) -> list[str]:
    """Lines that a git command prints."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"make check: git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.splitlines()


def base(since: str | None) -> str:
    """The commit to compare with: `since`, or the last common one with the upstream branch; without an upstream branch HEAD."""
    upstream = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", "@{upstream}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return git("merge-base", "HEAD", since or upstream or "HEAD")[0]


def changed(since: str | None) -> list[PurePosixPath]:
    """Files that differ from the base, committed or not, and new files, except those in .gitignore; without deleted files."""
    names = git("diff", "--name-only", "--diff-filter=d", base(since)) + git(
        "ls-files", "--others", "--exclude-standard"
    )
    return [PurePosixPath(name) for name in sorted(set(names))]


def tests_of(path: PurePosixPath) -> list[str]:
    """Test files for a file of Python: itself, or the files with the name of its module."""
    if path.name.startswith("test_"):
        return [str(path)]
    parts = path.with_suffix("").parts
    if parts[0] == "python":
        parts = parts[1:]
    if parts[0] not in ("tlplab", "studies", "pytest_tlplab", "linux", "tests"):
        return []
    module = ".".join(parts[1:] if parts[0] == "tests" else parts).removesuffix(".__init__")
    package, _, name = module.rpartition(".")
    named = rf"\b{re.escape(module)}\b"
    if package:
        named += rf"|from {re.escape(package)} import [^\n]*\b{name}\b"
    found = (test for test in sorted((ROOT / "python/tests").glob("test_*.py")))
    return [str(test.relative_to(ROOT)) for test in found if re.search(named, test.read_text(encoding="utf-8"))]


def rust(files: Sequence[PurePosixPath]) -> list[Command]:
    """The checks of crates with a changed file."""
    crates = sorted({path.parts[1] for path in files if path.parts[0] == "crates" and len(path.parts) > 2})
    manifests = any(path.name in ("Cargo.toml", "Cargo.lock") for path in files)
    if not crates:
        return [["cargo", "check", "--workspace", "--quiet", "--locked"]] if manifests else []
    packages = [word for crate in crates for word in ("--package", f"tlplab-{crate}" if crate != "tlplab" else crate)]
    return [
        ["cargo", "fmt", "--all", "--check"],
        ["cargo", "clippy", "--quiet", "--all-targets", *packages, "--", "-D", "warnings"],
        ["env", "PROPTEST_CASES=4", "cargo", "test", "--quiet", *packages],
    ]


def python(files: Sequence[PurePosixPath]) -> list[Command]:
    """The checks of changed Python."""
    sources = [path for path in files if path.suffix in (".py", ".pyi")]
    if not sources:
        return []
    names = [str(path) for path in sources]
    commands = [
        [str(BIN / "ruff"), "check", "--quiet", "--force-exclude", *names],
        [str(BIN / "ruff"), "format", "--check", "--quiet", "--force-exclude", *names],
        [str(BIN / "mypy")],
    ]
    tests = sorted({test for path in sources for test in tests_of(path)})
    if tests:
        commands.append([*PYTEST, *tests])
    return commands


def others(files: Sequence[PurePosixPath]) -> list[Command]:
    """The checks of layers and words, of the pages, of the report and of the RTL."""
    commands: list[Command] = [[sys.executable, ".ci/layers.py"], [sys.executable, ".ci/words.py"]] if files else []
    pages = [str(path) for path in files if path.suffix == ".md"]
    if pages:
        wanted = " or ".join([*pages, "excerpts"])
        commands.append([*PYTEST, "-k", wanted, "python/tests/test_docs.py"])
    # Those for guests may have several machines, which `tlplab guest uml` checks together.
    experiments = [
        str(path) for path in files if path.match("experiments/*.toml") or path.match("experiments/p2p/*.toml")
    ]
    commands += [[str(BIN / "tlplab"), "check", path] for path in experiments]
    if any(path.parts[0] == "report" for path in files):
        commands += [["npm", "--prefix", "report", "run", "check"], ["npm", "--prefix", "report", "test"]]
        commands.append([sys.executable, "report/check_fresh.py"])
    if any(path.suffix in (".sv", ".svh") for path in files):
        commands.append(["make", "--no-print-directory", "rtl-lint"])
    return commands


def main() -> int:
    """Run each command, and print the failed ones."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--since", metavar="REV", help="compare with this commit [the upstream branch, or HEAD]")
    parser.add_argument("--list", action="store_true", help="print the commands, without running them")
    options = parser.parse_args()
    files = changed(options.since)
    commands = [*rust(files), *python(files), *others(files)]
    if not commands:
        print(f"no file differs from {base(options.since)[:10]}; --since REV compares with another commit")
    failed = []
    for command in commands:
        line = " ".join(command).replace(f"{ROOT}/", "")
        print(f"$ {line}", flush=True)
        if options.list:
            continue
        start = time.monotonic()
        status = subprocess.run(command, cwd=ROOT, check=False).returncode
        if status and not (command[: len(PYTEST)] == PYTEST and status == NO_TESTS):
            failed.append(line)
        print(f"  {time.monotonic() - start:.1f} s", flush=True)
    if failed:
        print(f"\n{len(failed)} of {len(commands)} checks failed:", *(f"  {line}" for line in failed), sep="\n")
    elif commands and not options.list:
        print(f"\nAll {len(commands)} checks of {len(files)} changed files passed.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
