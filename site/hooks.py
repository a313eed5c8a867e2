"""The hooks of mkdocs: the pages of pages.py, and the source files that they link to, each shown as a page of its own."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
import notebook_page
import pages

# The theme takes this from a network where pages come from the file system; iframe-worker.js is version 1.0.4 of it (MIT, Martin Donath).
SHIM = "https://unpkg.com/iframe-worker/shim"
LANGUAGES = {".rs": "rust", ".py": "python", ".h": "c", ".c": "c", ".sv": "systemverilog", ".cpp": "cpp", ".sh": "bash"}
PLAIN = (".toml", ".json", ".lua")


def on_config(config: Any) -> Any:
    """Links are checked, the navigation is the table of contents, anchors are those of code hosts."""
    if wrong := pages.broken_links(pages.pages()):
        raise PluginError("\n".join(wrong))
    nav: list[Any] = [{"tlplab": pages.HOME}]
    tabs: dict[str, list[Any]] = {}
    groups: dict[tuple[str, str], list[Any]] = {}
    for entry in pages.contents():
        if entry.tab not in tabs:
            tabs[entry.tab] = []
            nav.append({entry.tab: tabs[entry.tab]})
        place = tabs[entry.tab]
        if entry.group:
            if (entry.tab, entry.group) not in groups:
                groups[entry.tab, entry.group] = []
                place.append({entry.group: groups[entry.tab, entry.group]})
            place = groups[entry.tab, entry.group]
        place.append({entry.title: entry.path})
    config.nav = [*nav, {"All pages": pages.CONTENTS}]
    config.mdx_configs["toc"]["slugify"] = pages.slug
    return config


def on_files(files: Files, config: Any) -> Files:
    """Pages, pictures and source files at their paths in the repository, and the theme's files."""
    kept = [
        file
        for file in files
        if Path(file.abs_src_path or "").parts[: len(pages.ROOT.parts) + 1] != (*pages.ROOT.parts, "docs")
    ]
    for path in [*pages.pages(), *sorted(linked(pages.PICTURES)), "site/site.css", "site/iframe-worker.js"]:
        kept.append(File(path, str(pages.ROOT), config.site_dir, False))
    for path in sorted(linked(None)):
        kept.append(File.generated(config, shown_at(path), content=listing(path)))
    return Files(kept)


def linked(endings: tuple[str, ...] | None) -> set[str]:
    """Files that pages link to: those with these endings, or all that are neither pages nor pictures."""
    found = set()
    for page in pages.pages():
        for _, target in pages.links((pages.ROOT / page).read_text(encoding="utf-8")):
            path = pages.resolve(page, target.partition("#")[0]) if not target.startswith("#") else page
            if path.endswith(endings or (".md", *pages.PICTURES)) == bool(endings) and (pages.ROOT / path).exists():
                found.add(path)
    return found


def shown_at(path: str) -> str:
    """The page that shows a source file or a folder."""
    return f"{path}/folder.md" if (pages.ROOT / path).is_dir() else f"{path}.md"


def listing(path: str) -> str:
    """A source file, a notebook, or the names in a folder, as a page."""
    place = pages.ROOT / path
    if place.is_dir():
        names = sorted(
            str(file.relative_to(place))
            for file in place.rglob("*")
            if file.is_file() and "target" not in file.parts and "__pycache__" not in file.parts
        )
        return f"# {path}\n\n" + "".join(f"- `{name}`\n" for name in names)
    if place.suffix == ".ipynb":
        return notebook_page.as_page(place.read_text(encoding="utf-8"))
    language = LANGUAGES.get(place.suffix, place.suffix[1:] if place.suffix in PLAIN else "text")
    return f"# {path}\n\n`````{language}\n{place.read_text(encoding='utf-8').rstrip()}\n`````\n"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links to source files lead to the pages that show them; an excerpt has its file's name; lists within lists are indented by four."""
    path = page.file.src_uri
    if path not in pages.pages():
        return markdown

    def lead(match: re.Match[str]) -> str:
        target = match["target"].partition("#")[0]
        if not target or pages.is_outside(target) or target.endswith((".md", *pages.PICTURES)):
            return match[0]
        there = shown_at(pages.resolve(path, target))
        return f"{match['before']}{os.path.relpath(there, os.path.dirname(path) or '.')}{match['after']}"

    lines = []
    for _number, line, is_text in pages.prose(markdown):
        if is_text:
            line = pages.LINK.sub(lead, re.sub(r"^( +)(?=[-*] )", r"\1\1", line))
        lines.append(line)
    return re.sub(r"^<!-- (\S+) -->\n```(\w+)$", r'```\2 title="\1"', "\n".join(lines) + "\n", flags=re.MULTILINE)


def on_post_build(config: Any) -> None:
    """Pages take nothing from a network."""
    site = Path(config.site_dir)
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8").replace(
            SHIM, os.path.relpath(site / "site/iframe-worker.js", path.parent)
        )
        if outside := re.search(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=[\"']?(https?:[^\"' >]*)", text):
            raise PluginError(f"{path.relative_to(site)}: {outside[1]} would be fetched from a network")
        path.write_text(text, encoding="utf-8")
