"""Refuses a short list of phrasings in the pages of .ci/words.txt, and in the texts of the crates: the field's nouns and verbs instead of pronouns, statements instead of questions."""

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
    r"|nobody claims that address|did you mean [^?]*\?",
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
# In the crates also these, of messages and of the first line of doc comments.
CRATES = "crates/*/src/**/*.rs"
MESSAGES = [*RULES, (r"(?<!there )\b(is|are) (no|none of)\b(?! (longer|more)\b)", "use is not a …, are not …")]
CLAUSE = re.compile(r"(what|who|whose|whether|how|why|which)\b", re.IGNORECASE)
TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>[bc]?r(?P<hashes>\#*)".*?"(?P=hashes)|[bc]?"(?:\\.|[^"\\])*")"""
    r"""|b?'(?:\\[^\n]{1,8}?|[^'\\\n])'|(?P<test>\#\[cfg\(test\)\])|[{};]|\w+|.""",
    re.DOTALL,
)
# Texts for the developers of tlplab.
PRIVATE = re.compile(r"(\.expect(_err)?|reason =|(assert|debug_assert|panic|unreachable|todo)\w*!\([^\"]*)\s*\(?\s*$")


def prose(text: str) -> Iterator[tuple[int, str]]:
    """(number, text) of each line outside code blocks, without code, comments and addresses."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            line = re.sub(r"<!--.*?-->|`[^`]*`|\]\([^)]*\)", " ", line)
            yield number, ALLOWED.sub(" ", line)


def messages(text: str) -> Iterator[tuple[int, str]]:
    """(number, text) of each string of three words or more in Rust, without tests, placeholders and code."""
    depth, ends = 0, []
    for token in TOKEN.finditer(text):
        if token["test"]:
            ends.append(depth)
        elif token[0] == "{":
            depth += 1
        elif token[0] in ("}", ";"):
            depth -= token[0] == "}"
            if ends and ends[-1] == depth:
                ends.pop()
        elif token["string"] and not ends and not PRIVATE.search(text, max(0, token.start() - 60), token.start()):
            plain = re.sub(r"\\\n\s*|\\", "", token[0])
            plain = ALLOWED.sub(" ", re.sub(r"\{[^{}]*\}|`[^`]*`", " x ", plain))
            if len(re.findall(r"[a-z]{2,}", plain)) > 2 and "^" not in plain:
                yield text.count("\n", 0, token.start()) + 1, plain


def clauses(name: str, text: str) -> Iterator[str]:
    """The doc comments of Rust that begin with a question's clause, as findings."""
    begun = False
    for number, line in enumerate(text.splitlines(), 1):
        comment = re.match(r"\s*//[/!](?: (.*))?$", line)
        if comment and comment[1] and not begun and (clause := CLAUSE.match(comment[1])):
            yield f'{name}:{number}: "{clause[0]} …": make it a statement'
        begun = bool(comment and comment[1])


def findings(name: str, text: str) -> list[str]:
    """The findings in a page or a source, one line each: place, words, advice."""
    rust = name.endswith(".rs")
    return [
        f'{name}:{number}: "{match[0].strip()}": {advice}'
        for number, line in (messages(text) if rust else prose(text))
        for pattern, advice in (MESSAGES if rust else RULES)
        for match in re.finditer(pattern, line, re.IGNORECASE)
    ] + (list(clauses(name, text)) if rust else [])


def covered() -> list[str]:
    """The pages that are checked, and the sources of the crates."""
    lines = (ROOT / LIST).read_text(encoding="utf-8").splitlines()
    sources = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob(CRATES))
    return [line for line in lines if line and not line.startswith("#")] + sources


def main() -> int:
    """Checks the pages and sources; the number of findings decides the exit status."""
    found = [line for name in covered() for line in findings(name, (ROOT / name).read_text(encoding="utf-8"))]
    print(*found, sep="\n", file=sys.stderr) if found else None
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
