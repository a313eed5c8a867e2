"""The documentation's table of contents, its links, its generated pages and drawings, and the words of rewritten pages."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import diagrams
import pages
import pytest
import reference
import result_types
import words

from tlplab import _core

ROOT = Path(__file__).resolve().parents[2]


def test_every_page_is_in_the_table_of_contents() -> None:
    listed = set(pages.pages())
    there = {
        path.relative_to(ROOT).as_posix() for folder in ("docs", "studies") for path in (ROOT / folder).rglob("*.md")
    }
    missing = sorted(there - listed)
    assert not missing, f"not in {pages.CONTENTS}: {missing}"
    assert {"rtl/README.md", "linux/README.md", "CONTRIBUTING.md", "CHANGELOG.md"} <= listed


def test_a_page_has_one_place() -> None:
    entries = [entry.path for entry in pages.contents()]
    assert len(entries) == len(set(entries))
    assert all(entry.tab for entry in pages.contents())


def test_links_lead_to_files_and_headings() -> None:
    wrong = pages.broken_links(pages.pages())
    assert not wrong, "\n".join(wrong)


def test_the_readme_leads_to_every_tab() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = {pages.resolve("README.md", target.partition("#")[0]) for _, target in pages.links(text)}
    anchors = {target.partition("#")[2] for _, target in pages.links(text)}
    for tab in {entry.tab for entry in pages.contents()}:
        below = {entry.path for entry in pages.contents() if entry.tab == tab}
        assert below & named or pages.slug(tab) in anchors, f"README.md has no link into {tab}"


def make(folder: Path, files: dict[str, str]) -> list[str]:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return [name for name in files if name != "docs/hidden.md"]


def test_a_broken_link_is_noticed(tmp_path: Path) -> None:
    files = {
        "docs/a.md": "# One\n\n[x](gone.md), [y](b.md#two), [z](hidden.md), [own](#nowhere)\n\n```\n[no](link.md)\n```\n`[nor](this.md)`\n",
        "docs/b.md": "# Two words\n\n[fine](a.md#one) [so is](../docs/a.md) <https://example.org> [out](https://example.org/x)\n",
        "docs/hidden.md": "# Hidden\n",
    }
    wrong = pages.broken_links([*make(tmp_path, files), "docs/missing.md"], tmp_path)
    assert wrong == [
        "docs/README.md: docs/missing.md: no such page",
        "docs/a.md:3: gone.md: no such file",
        "docs/a.md:3: b.md#two: no such heading",
        "docs/a.md:3: hidden.md: the page is not in docs/README.md",
        "docs/a.md:3: #nowhere: no such heading",
    ]


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("What is left out", "what-is-left-out"),
        ('`device.NAME` with `model = "ring"`', "devicename-with-model--ring"),
        ("1. The registers", "1-the-registers"),
        ("Anything else: the C interface", "anything-else-the-c-interface"),
        ("[Links](x.md) and *stars*", "links-and-stars"),
        ("snake_case — dash", "snake_case--dash"),
    ],
)
def test_anchors_match_code_hosts(heading: str, anchor: str) -> None:
    assert pages.slug(heading) == anchor
    assert pages.anchors(f"## {heading}\n\n## {heading}\n") == {anchor, f"{anchor}-1"}


def test_the_table_of_contents_is_read() -> None:
    text = "# T\n- [no](x.md)\n## Start\n- [A](a.md): words\n### Group\n- [B](../b.md)\n- [out](https://example.org)\n## Next\n- [C](c.md)\n"
    assert [(e.tab, e.group, e.title, e.path) for e in pages.contents(text)] == [
        ("Start", "", "A", "docs/a.md"),
        ("Start", "Group", "B", "b.md"),
        ("Next", "", "C", "docs/c.md"),
    ]


@pytest.mark.parametrize("path", reference.PAGES)
def test_the_pages_of_reference_are_fresh(path: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == reference.PAGES[path](), "run `make generate`"


@pytest.mark.parametrize(("name", "draw"), diagrams.DRAWINGS.items(), ids=list(diagrams.DRAWINGS))
def test_the_drawings_are_fresh(name: str, draw: Callable[[], str]) -> None:
    written = (ROOT / f"docs/images/concept-{name}.svg").read_text(encoding="utf-8")
    assert written == draw(), "run `make generate`"


def test_drawings_are_of_their_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def slower(name: str, *overrides: str) -> object:
        return run(name, *overrides, "device.card.link=gen1 x1")

    run = diagrams.run
    before = diagrams.replay()
    monkeypatch.setattr(diagrams, "run", slower)
    assert diagrams.replay() != before


def test_the_words_of_rewritten_pages() -> None:
    covered = words.covered()
    assert "README.md" in covered
    found = [line for name in covered for line in words.findings(name, (ROOT / name).read_text(encoding="utf-8"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ("It shows what limits the link.", True),
        ("See [What limits a run](x.md).", False),
        ("Those that wait are counted.", True),
        ("The TLPs that wait are counted.", False),
        ("Is it fast?", True),
        ("`what?` in code", False),
        ("Nobody answers.", True),
        ("<!-- what is this -->", False),
    ],
)
def test_a_refused_phrasing_is_noticed(line: str, is_found: bool) -> None:
    assert bool(words.findings("page.md", line + "\n")) is is_found
    assert not words.findings("page.md", f"```\n{line}\n```\n")


@pytest.mark.full
def test_the_site_is_built(tmp_path: Path) -> None:
    mkdocs = ROOT / "site/.venv/bin/mkdocs"
    if not mkdocs.exists():
        pytest.skip("make site has not been run")
    command = [str(mkdocs), "build", "--config-file", str(ROOT / "site/mkdocs.yml"), "--site-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env={"NO_MKDOCS_2_WARNING": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    for page in pages.pages():
        html = Path(page).with_suffix(".html")
        html = html.with_name("index.html") if html.name == "README.html" else html
        assert (tmp_path / html).is_file(), html
    assert (tmp_path / "examples/python/copier.py.html").is_file()
    assert "unpkg.com" not in (tmp_path / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", result_types.FILES)
def test_files_generated_from_the_result_schema_are_fresh(path: str) -> None:
    made = result_types.FILES[path](json.loads(_core.result_schema()))
    assert (ROOT / path).read_text(encoding="utf-8") == made, "run `make generate`"
