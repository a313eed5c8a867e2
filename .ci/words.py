"""Refuses a short list of phrasings in the pages of .ci/words.txt, in the messages and doc comments of Rust, Python, C and SystemVerilog, and in names of tests.

Texts have the field's nouns and verbs instead of pronouns, and statements instead of questions.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from itertools import chain
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
# Of the sources also these, of messages and of the first line of doc comments.
MESSAGES = [*RULES, (r"(?<!there )\b(is|are) (no|none of)\b(?! (longer|more)\b)", "use is not a …, are not …")]
CLAUSE = re.compile(r"(what|who|whose|whether|how|why|which)\b", re.IGNORECASE)
# Of docstrings and doc comments also pronouns in place of the noun.
PRONOUN = re.compile(
    rf"{CLAUSE.pattern}|(whatever|whom|where|those|all that|one (of them|that|which))\b", re.IGNORECASE
)
QUESTION = re.compile(r"(is|are|does|do|has|have|can)\b[^.:]*\?", re.IGNORECASE)
TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>[bc]?r(?P<hashes>\#*)".*?"(?P=hashes)|[bc]?"(?:\\.|[^"\\])*")"""
    r"""|b?'(?:\\[^\n]{1,8}?|[^'\\\n])'|(?P<test>\#\[cfg\(test\)\])|[{};]|\w+|.""",
    re.DOTALL,
)
C_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>"(?:\\.|[^"\\\n])*")|'(?:\\.|[^'\\\n])+'""", re.DOTALL
)
LANGUAGES = {
    ".rs": "Rust",
    ".py": "Python",
    ".pyi": "Python",
    **dict.fromkeys((".c", ".h", ".cpp", ".hpp"), "C"),
    **dict.fromkeys((".sv", ".svh"), "SystemVerilog"),
}
# Folders without sources of tlplab; and a file that is generated from the comments of crates/experiment.
ELSEWHERE = {"target", "out", "dist", "node_modules", "__pycache__"}
GENERATED = {"python/tlplab/document.py"}
TESTS = re.compile(r"(^|/)(tests?|fuzz)/|(^|/)(test_\w+|conftest)\.py$")
# Of regular expressions, which are no texts.
PATTERN = re.compile(r"\\[bdswS?]|\(\?")
# Sources of Rust whose texts are checked; of the others, only the names of tests.
SOURCE = re.compile(r"crates/[^/]+/src/")
TEST_NAMES = {
    "Rust": re.compile(r"#\[test\](?:\s+(?:#\[[^\]]*\]|//[^\n]*))*\s+(?:async )?fn (\w+)"),
    "Python": re.compile(r"^\s*(?:async )?def (test_\w+)", re.MULTILINE),
}
# Words of names, which underscores separate.
VAGUE = re.compile(
    r"(?<![a-z])(what(?!_if)|who(m|se)?|(who|what|which)ever|(some|no|any|every)(body|one)|no_one|those|these|says?|said|tells?|told)(?![a-z])"
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


def is_message(plain: str) -> bool:
    """True for a string of three words or more."""
    return len(re.findall(r"[a-z]{2,}", plain)) > 2


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
            if is_message(plain) and "^" not in plain:
                yield text.count("\n", 0, token.start()) + 1, plain


def clauses(name: str, text: str) -> Iterator[str]:
    """The doc comments of Rust that begin with a pronoun or a question, as findings."""
    begun = False
    for number, line in enumerate(text.splitlines(), 1):
        comment = re.match(r"\s*//[/!](?: (.*))?$", line)
        if comment and comment[1] and not begun and (clause := PRONOUN.match(comment[1]) or QUESTION.match(comment[1])):
            yield f'{name}:{number}: "{clause[0]} …": make it a statement'
        begun = bool(comment and comment[1])


def docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """The texts below modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for one in body if isinstance(body, list) else ():
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str):
                yield one.value


def docstring_lines(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(number, text) of each line of the docstrings, without code."""
    for one in docstrings(tree):
        for number, line in prose(str(one.value)):
            yield one.lineno + number - 1, line


def is_code(node: ast.AST) -> bool:
    """True for a call of `re`, or for a program, whose strings are not texts."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        return node.func.value.id == "re"
    if isinstance(node, ast.JoinedStr):
        node = node.values[0] if node.values else node
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("#!")


def python_messages(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(number, text) of each line of a string of three words or more in Python, without docstrings, placeholders and code."""
    known = {id(one) for one in docstrings(tree)}
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if id(node) in known or is_code(node):
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else " x " for part in node.values)
            waiting += [part for part in node.values if not isinstance(part, ast.Constant)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = "" if PATTERN.search(node.value) else node.value
        else:
            waiting += ast.iter_child_nodes(node)
            continue
        for _, line in prose(re.sub(r"\{[^{}]*\}", " x ", text)):
            plain = re.sub(r"(?<!\w)--[\w-]+", " x ", line)
            if is_message(plain):
                yield node.lineno, plain


def statements(name: str, tree: ast.AST) -> Iterator[str]:
    """The docstrings that begin with a clause or a pronoun, as findings."""
    for one in docstrings(tree):
        if found := PRONOUN.match(str(one.value).strip()):
            yield f'{name}:{one.lineno}: "{found[0]} …": make it a statement that begins with a noun or a verb'


def c_messages(text: str) -> Iterator[tuple[int, str]]:
    """(number, text) of each string of three words or more in C or SystemVerilog."""
    for token in C_TOKEN.finditer(text):
        plain = ALLOWED.sub(" ", re.sub(r"\\[nt]", " ", token["string"] or "").strip('"'))
        if is_message(plain):
            yield text.count("\n", 0, token.start()) + 1, plain


def c_comments(name: str, text: str) -> Iterator[str]:
    """The comments of C that begin with a clause or a pronoun, as findings; of several lines of // the first."""
    last = 0
    for token in C_TOKEN.finditer(text):
        if token["comment"]:
            number = text.count("\n", 0, token.start()) + 1
            found = PRONOUN.match(token["comment"].lstrip("/*! \t\n"))
            if found and not (token["comment"].startswith("//") and last == number - 1):
                yield f'{name}:{number}: "{found[0]} …": make it a statement that begins with a noun or a verb'
            last = number


def test_names(name: str, text: str, language: str | None) -> Iterator[str]:
    """The pronouns and vague verbs in names of tests, as findings."""
    for test in TEST_NAMES[language].finditer(text) if language in TEST_NAMES else ():
        number = text.count("\n", 0, test.start(1)) + 1
        for word in VAGUE.finditer(test[1]):
            advice = "name the component and its behaviour: replay_timer_expires_after_lost_ack"
            yield f'{name}:{number}: "{word[0]}": in {test[1]}: {advice}'


def findings(name: str, text: str) -> list[str]:
    """The findings in a page or a source, one line each: place, words, advice."""
    language = LANGUAGES.get(Path(name).suffix)
    texts, rules = prose(text), RULES if language is None else MESSAGES
    others: Iterator[str] = iter(())
    match language:
        case "Rust":
            texts, others = (messages(text), clauses(name, text)) if SOURCE.match(name) else (iter(()), others)
        case "Python":
            try:
                tree = ast.parse(text)
            except SyntaxError as problem:
                return [f"{name}:{problem.lineno}: not Python: {problem.msg}"]
            texts = chain(docstring_lines(tree), () if TESTS.search(name) else python_messages(tree))
            others = statements(name, tree)
        case "C" | "SystemVerilog":
            texts = c_messages(text)
            others = c_comments(name, text) if language == "C" else others
    return [
        f'{name}:{number}: "{match[0].strip()}": {advice}'
        for number, line in texts
        for pattern, advice in rules
        for match in re.finditer(pattern, line, re.IGNORECASE)
    ] + [*others, *test_names(name, text, language)]


def sources() -> Iterator[str]:
    """The checked sources: all of Rust, Python, C and SystemVerilog."""
    for folder, below, files in os.walk(ROOT):
        place = Path(folder).relative_to(ROOT)
        below[:] = sorted(one for one in below if one not in ELSEWHERE and (one == ".ci" or not one.startswith(".")))
        for file in sorted(files):
            path = place / file
            if path.suffix in LANGUAGES and path.as_posix() not in GENERATED:
                yield path.as_posix()


def covered() -> list[str]:
    """The pages that are checked, and the sources."""
    lines = (ROOT / LIST).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")] + list(sources())


def main() -> int:
    """Checks the pages and sources; the number of findings decides the exit status."""
    found = [line for name in covered() for line in findings(name, (ROOT / name).read_text(encoding="utf-8"))]
    print(*found, sep="\n", file=sys.stderr) if found else None
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
