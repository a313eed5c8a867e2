"""Writes the list of the studies here, with the finding of each: `python -m studies.designs.index`."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
PAGE = FOLDER / "README.md"
HEAD = """# Studies of designs

Each asks one question of a machine, over its design space, and gives the surprising part of the answer in a sentence; its page has all points, and the arithmetic
for some of them. `tlplab sweep studies/designs/NAME.toml` runs it, and `--set` and `--where` ask it about another machine or a part ([docs/sweep.md](../../docs/sweep.md)).
"""


def studies() -> list[Path]:
    """The studies; a file that ends in -machine.toml is an experiment of one."""
    return sorted(path for path in FOLDER.glob("*.toml") if not path.stem.endswith("-machine"))


def entry(study: Path) -> str:
    """The title and the finding of a study, as its page has them."""
    lines = study.with_suffix(".md").read_text(encoding="utf-8").splitlines()
    found = next(line for line in lines if line.startswith("**")).strip("*")
    return f"- [{lines[0].removeprefix('# ')}]({study.stem}.md): {found}"


def text() -> str:
    """The list."""
    return "\n".join([HEAD, *map(entry, studies()), ""])


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
