#!/usr/bin/env python3
"""Is report/dist/report.html built from the sources beside it? Needs Python only, no Node.

`dist/SOURCE.sha256` holds two lines: the hash of everything the page is built from, and the hash of the page itself.
Without arguments both are compared (exit status 1 if one differs); `--write`, used by build.mjs, writes them.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

ROOM = Path(__file__).resolve().parent
PAGE = ROOM / "dist" / "report.html"
STAMP = ROOM / "dist" / "SOURCE.sha256"


def sources() -> list[Path]:
    """Everything that can change the built page, in a fixed order."""
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
    page = hashlib.sha256(PAGE.read_bytes().replace(b"\r\n", b"\n")).hexdigest()
    return f"{source_hash()}  source\n{page}  report.html\n"


def main() -> int:
    if not PAGE.is_file():
        print(f"{PAGE} is missing: run `npm ci && npm run build` in {ROOM}", file=sys.stderr)
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
            "report/dist/report.html is stale or was edited: run `npm ci && npm run build` in report/", file=sys.stderr
        )
        return 1
    print("report/dist/report.html is fresh")
    return 0


if __name__ == "__main__":
    sys.exit(main())
