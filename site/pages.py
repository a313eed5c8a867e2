"""The pages of the site, and the links between them. Standard library only: the tests read it, too.

docs/README.md is the table of contents: its `##` headings are the tabs, its `###` headings the groups, its list items the pages.
Pages keep their paths in the repository, so a relative link is the same on a code host and on the site.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME, CONTENTS = "README.md", "docs/README.md"
ITEM = re.compile(r"- \[(?P<title>[^\]]+)\]\((?P<link>[^)#\s]+)\)")
LINK = re.compile(r"(?P<before>!?\[(?:[^\]\[]|\[[^\]]*\])*\]\()(?P<target>[^)\s]+)(?P<after>\))")
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
PICTURES = (".png", ".svg")


@dataclass(frozen=True)
class Entry:
    """A page of the table of contents."""

    tab: str
    group: str
    title: str
    path: str


def contents(text: str | None = None) -> list[Entry]:
    """The pages in their order."""
    if text is None:
        text = (ROOT / CONTENTS).read_text(encoding="utf-8")
    found, tab, group = [], "", ""
    for line in text.splitlines():
        if line.startswith("## "):
            tab, group = line[3:].strip(), ""
        elif line.startswith("### "):
            group = line[4:].strip()
        elif tab and (item := ITEM.match(line)) and not is_outside(item["link"]):
            found.append(Entry(tab, group, item["title"], resolve(CONTENTS, item["link"])))
    return found


def pages() -> list[str]:
    """Paths of all pages of the site."""
    return list(dict.fromkeys([HOME, CONTENTS, *(entry.path for entry in contents())]))


def is_outside(target: str) -> bool:
    """True if a link leads out of the repository."""
    return bool(re.match(r"[a-z][a-z0-9+.-]*:", target))


def resolve(page: str, target: str) -> str:
    """The path in the repository to which a link of a page leads."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), target))


def prose(text: str) -> Iterator[tuple[int, str, bool]]:
    """(number, line, whether it is text) of each line; lines of code blocks are not."""
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and not fence:
            fence = mark[1]
            yield number, line, False
        elif fence:
            if mark and mark[1].startswith(fence) and line.strip() == mark[1]:
                fence = ""
            yield number, line, False
        else:
            yield number, line, True


def links(text: str) -> Iterator[tuple[int, str]]:
    """(line, target) of each link in a page's text that stays in the repository."""
    for number, line, is_text in prose(text):
        for match in LINK.finditer(CODE.sub("", line)) if is_text else ():
            if not is_outside(match["target"]):
                yield number, match["target"]


def slug(heading: str, separator: str = "-") -> str:
    """The anchor of a heading, as code hosts make it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)  # a link shows its text
    text = re.sub(r"<[^>]*>|[`*]", "", text).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", separator)


def anchors(text: str) -> set[str]:
    """Every anchor of a page."""
    found: dict[str, int] = {}
    for _, line, is_text in prose(text):
        if is_text and (heading := re.match(r"#{1,6} +(.*?)(?: +#+)?$", line)):
            name = slug(heading[1])
            count = found.get(name, 0)
            found[name] = count + 1
            if count:
                found[f"{name}-{count}"] = 1
    return set(found)


def broken_links(listed: list[str], root: Path = ROOT) -> list[str]:
    """The broken links of the listed pages, one line each."""
    texts = {page: (root / page).read_text(encoding="utf-8") for page in listed if (root / page).is_file()}
    wrong = [f"{CONTENTS}: {page}: no such page" for page in listed if page not in texts]
    for page, text in texts.items():
        for number, target in links(text):
            path, _, anchor = target.partition("#")
            leads_to = resolve(page, path) if path else page
            place = f"{page}:{number}: {target}"
            if not (root / leads_to).exists():
                wrong.append(f"{place}: no such file")
            elif leads_to.endswith(".md") and leads_to not in texts:
                wrong.append(f"{place}: the page is not in {CONTENTS}")
            elif anchor and leads_to in texts and anchor not in anchors(texts[leads_to]):
                wrong.append(f"{place}: no such heading")
    return wrong
