"""Refuses a short list of phrasings in the pages of .ci/words.txt: the field's nouns and verbs instead of pronouns, statements instead of questions."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ".ci/words.txt"
# Titles that readers know, and quotations.
ALLOWED = re.compile(
    r"what is not modelled|what limits a run|what each link costs|what a 400 gb/s nic needs|what-?if"
    r"|nobody claims that address|nobody listens at that port there",
    re.IGNORECASE,
)
RULES = [
    (r"\bwhat\b", "name the noun: the limit, the cost, the figure, the part that …"),
    (r"\bwho(m|ever)?\b", "name the user, the developer, the function, the port"),
    (r"\bwhatever\b", "say which"),
    (r"\b(those|these|one|ones) (that|who|which)\b", "repeat the noun: the TLPs that …"),
    (r"\b(some|no|any|every)(body|one)\b", "name the component or the person, or use the passive"),
    (r"\bnothing but\b", "use only"),
    (r"\b(tells?|told) (of|whether|how|where|when|so)\b", "use reports, shows or states"),
    (r"\bsays? (so|whether|how|where|when|why)\b", "use states, shows or defines"),
    (r"\b(is|are) (the )?business of\b", "say which component does it"),
    (r"\b(is|are) to be (had|seen)\b", "use is available, is visible"),
    (r"\b(so many|so long|so much|as much|as long) (as|in)? ?(it|they) (is|are|has|have)\b", "give the amount"),
    (r"\bby itself\b(?! \()", "use alone, automatically or separately"),
    (r"\?\s*(\*|$|\s)", "make it a statement"),
    (r"\b(cannot|can) be had\b", "use is not available, is available"),
    (r"\b(gets?|got) to know\b", "use learns, receives"),
    (r"\bbeside (?!other tools)", "use next to, besides or together with"),
]


def prose(text: str) -> Iterator[tuple[int, str]]:
    """(number, text) of each line outside code blocks, without code, comments and addresses."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            line = re.sub(r"<!--.*?-->|`[^`]*`|\]\([^)]*\)", " ", line)
            yield number, ALLOWED.sub(" ", line)


def findings(name: str, text: str) -> list[str]:
    """What is wrong with a page, one line each: place, words, advice."""
    return [
        f'{name}:{number}: "{match[0].strip()}": {advice}'
        for number, line in prose(text)
        for pattern, advice in RULES
        for match in re.finditer(pattern, line, re.IGNORECASE)
    ]


def covered() -> list[str]:
    """The pages that are checked."""
    lines = (ROOT / LIST).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def main() -> int:
    """Checks the pages; the number of findings decides the exit status."""
    found = [line for name in covered() for line in findings(name, (ROOT / name).read_text(encoding="utf-8"))]
    print(*found, sep="\n", file=sys.stderr) if found else None
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
