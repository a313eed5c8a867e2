"""docs/architecture.md names files and functions of the code: each exists, at the path and in the file that the page names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/architecture.md"
HEADING = "## Where things happen"
# The folders with code that the page speaks of.
CODE = ("crates", "python", "report", "driver", "site", "studies", "rtl", "linux", "dissector", "docs")
BUILT = ("target", "node_modules", ".venv", "__pycache__")
DEFINITIONS = {
    ".rs": r"\b(?:fn|struct|enum|trait|const|static|type|mod|macro_rules!) +{}\b",
    ".py": r"^(?:async def|def|class) {0}\b|^{0}\b.*=",
}
NAMED = re.compile(r"`([^`]+)`")


def section(page: str, heading: str) -> str:
    """The text below a heading, up to the next one of its kind."""
    _, found, rest = page.partition(f"\n{heading}\n")
    assert found, f"docs/architecture.md has no heading {heading!r}"
    return re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def rows(page: str) -> Iterator[tuple[str, str]]:
    """(thing, place) of each row of the table, without its head and its groups."""
    for line in section(page, HEADING).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 2 and cells != ["thing", "place"] and not cells[0].startswith("**"):
            yield cells[0], cells[1]


def wrong_places(page: str, root: Path) -> list[str]:
    """The rows of the table without a file, the paths that do not exist, and the names that no file in front of them defines."""
    found = []
    for thing, place in rows(page):
        names = NAMED.findall(place)
        if not names or "/" not in names[0]:
            found.append(f"{thing}: no file")
            continue
        file = root
        for name in names:
            if "/" in name:
                file = root / name
                if not file.exists():
                    found.append(f"{thing}: there is no {name}")
            elif file.is_file() and not defines(file, name):
                found.append(f"{thing}: {file.relative_to(root)} defines no {name}")
            elif file.is_dir():
                found.append(f"{thing}: {name} is named behind a folder; name its file")
    return found


def defines(file: Path, name: str) -> bool:
    """True if a function, type, macro or constant of that name is written in a file."""
    pattern = DEFINITIONS[file.suffix].format(re.escape(name.rstrip("!")))
    return re.search(pattern, file.read_text(encoding="utf-8"), re.MULTILINE) is not None


def ends_of_paths(root: Path, folders: Iterable[str]) -> set[str]:
    """Every end of a path of the repository: `fabric/src/link/fate.rs`, `link/fate.rs`, `fate.rs`."""
    found: set[str] = set()
    for folder in folders:
        for at, inner, files in os.walk(root / folder):
            inner[:] = [name for name in inner if name not in BUILT]
            for name in ("", *files):
                parts = (Path(at) / name).relative_to(root).parts
                found.update("/".join(parts[first:]) for first in range(len(parts)))
    return found


def missing_paths(page: str, ends: set[str]) -> list[str]:
    """The paths in the page's prose that are the end of no path of the repository."""
    prose = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    paths = [
        name for name in NAMED.findall(prose) if re.fullmatch(r"[\w.-]*(?:/[\w.-]*)+|[\w-]+\.(?:rs|py|ts|h)", name)
    ]
    assert paths
    return [path for path in paths if path.rstrip("/") not in ends]


def test_things_happen_where_the_page_names() -> None:
    assert wrong_places(PAGE.read_text(encoding="utf-8"), ROOT) == []


def test_every_path_on_the_page_is_one_of_the_repository() -> None:
    assert missing_paths(PAGE.read_text(encoding="utf-8"), ends_of_paths(ROOT, CODE)) == []


def test_things_that_newcomers_look_for_have_a_row() -> None:
    things = " ".join(thing for thing, _ in rows(PAGE.read_text(encoding="utf-8")))
    for thing in (
        "Replay timer", "RCB", "4 KiB", "MSI-X", "Perfetto track of a credit", "unknown key", "descriptors by the NIC",
        "Gen8", "cause of latency", "command",
    ):  # fmt: skip
        assert thing in things, thing


def test_a_place_that_is_gone_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b.rs").write_text("pub(crate) const fn split_it<'a>() {}\nmacro_rules! rows {}\n")
    (tmp_path / "a/c.py").write_text("WORDS: dict[str, str] = {}\n\ndef run() -> None: ...\n")

    def found(place: str) -> list[str]:
        return wrong_places(
            f"\n{HEADING}\n\n| thing | place |\n|---|---|\n| **Group** | |\n| It | {place} |\n", tmp_path
        )

    assert found("`a/b.rs`: `split_it`, `rows!`; `a/c.py`: `WORDS`, `run`; `a`-less words") == [
        "It: a/c.py defines no a"
    ]
    assert found("`a/b.rs`: `split_it`, `rows!`; `a/c.py`: `WORDS`, `run`") == []
    assert found("`a/b.rs`: `split`") == ["It: a/b.rs defines no split"]
    assert found("`a/b.rs`; `a/c.py`: `split_it`") == ["It: a/c.py defines no split_it"]
    assert found("`a/d.rs`: `run`") == ["It: there is no a/d.rs"]
    assert found("somewhere: `run`") == ["It: no file"]
    assert found("`a/`: `run`") == ["It: run is named behind a folder; name its file"]
    ends = ends_of_paths(tmp_path, ["a"])
    assert missing_paths("`b.rs` and `a/c.py`, `x.y`, `a/`", ends) == []
    assert missing_paths("```\n`gone.rs`\n```\n`b.rs`, `c/b.rs`, `gone.rs`", ends) == ["c/b.rs", "gone.rs"]
