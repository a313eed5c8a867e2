"""Checks that crates depend on each other only along the arrows of docs/architecture.md, and so do the modules of some.

An arrow `a ← b` lets b depend on a, and on all that a may depend on. Tests may also use crates next to theirs, such
as closed forms to compare with, but nothing that stands above it. The arrows are read from the paragraph that says
"Arrows point one way", and those of a crate's modules from a paragraph with "Inside `crate` arrows point one way", so that the
picture and the check cannot disagree. Modules in one group may use each other.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PREFIX = "tlplab-"


INSIDE = re.compile(r"Inside `(\w+)` arrows point one way")


def paragraphs_of(text: str) -> list[str]:
    return re.split(r"\n\s*\n", text)


def read_arrows(text: str) -> dict[str, set[str]]:
    """For each room, the rooms it may depend on, transitively, from the text of docs/architecture.md."""
    paragraphs = [p for p in paragraphs_of(text) if p.startswith("Arrows point one way")]
    if len(paragraphs) != 1:
        raise SystemExit(
            'docs/architecture.md: expected one paragraph that starts with "Arrows point one way", '
            f"found {len(paragraphs)}"
        )
    return arrows_of(paragraphs[0])


def arrows_of(paragraph: str) -> dict[str, set[str]]:
    """For each room that a paragraph names, the rooms it may depend on, transitively."""
    direct: dict[str, set[str]] = {}
    for chain in re.findall(r"`([^`]*←[^`]*)`", paragraph):
        below: set[str] = set()
        for group in chain.split("←"):
            rooms = {room.strip() for room in group.split(",")}
            for room in rooms:
                direct.setdefault(room, set()).update(below)
            below = rooms
    return {room: closure(room, direct) for room in direct}


def closure(room: str, direct: dict[str, set[str]]) -> set[str]:
    """Everything that can be reached from `room` along `direct`."""
    reached: set[str] = set()
    waiting = [room]
    while waiting:
        for below in direct.get(waiting.pop(), set()) - reached:
            reached.add(below)
            waiting.append(below)
    return reached


def read_dependencies(metadata: dict[str, object], *, tests: bool) -> dict[str, set[str]]:
    """For each of our crates, the crates of ours that it is built from, or with `tests` that only its tests use."""
    packages = metadata["packages"]
    assert isinstance(packages, list)
    return {
        package["name"].removeprefix(PREFIX): {
            dependency["name"].removeprefix(PREFIX)
            for dependency in package["dependencies"]
            if dependency["name"].startswith(PREFIX) and (dependency["kind"] == "dev") == tests
        }
        for package in packages
        if (ROOT / "crates") in Path(package["manifest_path"]).parents  # examples may use all of them
    }


def violations(allowed: dict[str, set[str]], built: dict[str, set[str]], tested: dict[str, set[str]]) -> list[str]:
    """One sentence for each dependency against the arrows, and for each crate that the arrows do not mention."""
    found = []
    for room in sorted(built):
        if room not in allowed:
            found.append(f"crates/{room}: docs/architecture.md has no arrow for it")
            continue
        may = ", ".join(sorted(allowed[room])) or "nothing"
        for dependency in sorted(built[room] - allowed[room]):
            found.append(f"crates/{room} depends on {dependency}, against the arrows; it may depend on {may}")
        for dependency in sorted(tested.get(room, set())):
            if room in allowed.get(dependency, set()):
                found.append(f"the tests of crates/{room} use {dependency}, which stands above it")
    for room in sorted(set(allowed) - set(built)):
        found.append(f"docs/architecture.md: an arrow names `{room}`, but there is no crates/{room}")
    return found


def violations_inside(text: str, root: Path = ROOT) -> list[str]:
    """One sentence for each use of a module against the arrows of its crate, and for each module that they do not mention."""
    found = []
    for paragraph in paragraphs_of(text):
        if (start := INSIDE.match(paragraph)) is None:
            continue
        crate = start.group(1)
        source = root / "crates" / crate / "src"
        groups = [set(re.split(r",\s*", group)) for group in re.findall(r"`([^`]*←[^`]*)`", paragraph)[0].split(" ← ")]
        allowed = arrows_of(paragraph)
        files = {file: file.relative_to(source).parts[0].removesuffix(".rs") for file in sorted(source.rglob("*.rs"))}
        # An exported macro is at the root of the crate, wherever it is defined.
        macros = {
            name: module
            for file, module in files.items()
            for name in re.findall(r"#\[macro_export\]\s*macro_rules! (\w+)", file.read_text(encoding="utf-8"))
        }
        for file, module in files.items():
            if module == "lib":
                continue
            if module not in allowed:
                found.append(f"crates/{crate}: docs/architecture.md has no arrow for its module {module}")
                continue
            beside = next(group for group in groups if module in group)
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                named = [] if line.lstrip().startswith("//") else re.findall(r"\bcrate::([a-z]\w*)", line)
                used = {macros.get(name, name) for name in named}
                for other in sorted(used - allowed[module] - beside):
                    found.append(f"{file.relative_to(root)}:{number}: {module} uses {other}, against the arrows")
    return found


def main() -> int:
    """The exit status: 0 when every dependency follows an arrow."""
    out = subprocess.run(
        ["cargo", "metadata", "--no-deps", "--format-version", "1", "--locked"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    allowed = read_arrows(text)
    metadata = json.loads(out)
    built, tested = (read_dependencies(metadata, tests=tests) for tests in (False, True))
    found = violations(allowed, built, tested) + violations_inside(text)
    for sentence in found:
        print(sentence, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
