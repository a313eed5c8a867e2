#!/usr/bin/env python3
"""Check that the pages are built from the sources next to this file. Needs Python only, no Node.

`dist/SOURCE.sha256` holds the hash of everything that the pages are built from, and the hash of each page.
Without arguments all are compared (exit status 1 if one differs); `--write`, used by build.mjs, writes them.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

ROOM = Path(__file__).resolve().parent
PAGES = (ROOM / "dist" / "report.html", ROOM.parent / "python" / "tlplab" / "study" / "study.html")
STAMP = ROOM / "dist" / "SOURCE.sha256"


def sources() -> list[Path]:
    """Everything that can change the built pages, in a fixed order."""
    tree = (p for p in (ROOM / "src").rglob("*") if p.is_file())
    return sorted([*tree, ROOM / "build.mjs", ROOM / "package.json", ROOM / "package-lock.json"])


def source_hash() -> str:
    digest = hashlib.sha256()
    for path in sources():
        content = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{path.relative_to(ROOM).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def stamp() -> str:
    pages = [(hashlib.sha256(page.read_bytes().replace(b"\r\n", b"\n")).hexdigest(), page.name) for page in PAGES]
    return "".join(f"{digest}  {name}\n" for digest, name in [(source_hash(), "source"), *pages])


def main() -> int:
    for page in PAGES:
        if not page.is_file():
            print(f"{page} is missing: run `npm ci && npm run build` in {ROOM}", file=sys.stderr)
            return 1
    if sys.argv[1:] == ["--write"]:
        STAMP.write_text(stamp())
        return 0
    if sys.argv[1:]:
        print(f"usage: {sys.argv[0]} [--write]", file=sys.stderr)
        return 2
    expected = STAMP.read_text() if STAMP.is_file() else ""
    if expected != stamp():
        print(
            "report/dist/report.html or python/tlplab/study/study.html is stale or was edited: run `npm ci && npm run build` in report/",
            file=sys.stderr,
        )
        return 1
    print("the pages are fresh")
    return 0


if __name__ == "__main__":
    sys.exit(main())
