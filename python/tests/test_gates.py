"""The checks of `make lint` that are part of tlplab find the faults that they are for."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


layers, licences, words = load("layers"), load("licences"), load("words")
ARROWS = """Some text with `c ← a` in it.

Arrows point one way: `a ← b, c ← d`; `a ← e`.
"""


def test_arrows_are_transitive() -> None:
    assert layers.read_arrows(ARROWS) == {
        "a": set(),
        "b": {"a"},
        "c": {"a"},
        "d": {"a", "b", "c"},
        "e": {"a"},
    }


@pytest.mark.parametrize(
    ("actual", "complaint"),
    [
        ({"a": {"d"}}, "crates/a depends on d, against the arrows; it may depend on nothing"),
        ({"b": {"c"}}, "crates/b depends on c, against the arrows; it may depend on a"),
        ({"f": set()}, "crates/f: docs/architecture.md has no arrow for it"),
    ],
)
def test_a_dependency_against_the_arrows_is_named(actual: dict[str, set[str]], complaint: str) -> None:
    rooms = {room: set[str]() for room in "abcde"}
    assert layers.violations(layers.read_arrows(ARROWS), {**rooms, **actual}, {}) == [complaint]


def test_a_vanished_room_is_named() -> None:
    rooms = {room: set[str]() for room in "abcd"}
    assert layers.violations(layers.read_arrows(ARROWS), rooms, {}) == [
        "docs/architecture.md: an arrow names `e`, but there is no crates/e"
    ]


def test_tests_may_use_rooms_beside_but_not_above() -> None:
    rooms = {room: set[str]() for room in "abcde"}
    assert layers.violations(layers.read_arrows(ARROWS), rooms, {"b": {"c", "e"}}) == []
    assert layers.violations(layers.read_arrows(ARROWS), rooms, {"b": {"d"}, "a": {"b"}}) == [
        "the tests of crates/a use b, which stands above it",
        "the tests of crates/b use d, which stands above it",
    ]


def test_a_page_without_arrows_is_an_error() -> None:
    with pytest.raises(SystemExit, match="Arrows point one way"):
        layers.read_arrows("nothing here")


def test_modules_use_each_other_along_the_arrows_of_their_crate(tmp_path: Path) -> None:
    source = tmp_path / "crates/room/src"
    (source / "upper").mkdir(parents=True)
    (source / "lib.rs").write_text("use crate::upper::X;\n")
    (source / "lower.rs").write_text("use crate::beside::X;\n// As crate::upper does.\n")
    (source / "beside.rs").write_text("use crate::lower::Y;\n")
    (source / "upper/mod.rs").write_text("use crate::lower::Y;\n")
    arrows = "Before.\n\nInside `room` arrows point one way: `lower, beside ← upper`.\n"
    assert layers.violations_inside(arrows, tmp_path) == []
    (source / "lower.rs").write_text("\nuse crate::upper::X;\n")
    (source / "new.rs").write_text("")
    assert layers.violations_inside(arrows, tmp_path) == [
        "crates/room/src/lower.rs:2: lower uses upper, against the arrows",
        "crates/room: docs/architecture.md has no arrow for its module new",
    ]


def test_the_real_arrows_are_read() -> None:
    allowed = layers.read_arrows((ROOT / "docs/architecture.md").read_text(encoding="utf-8"))
    assert allowed["units"] == set()
    assert "fabric" not in allowed["wire"]
    assert "wire" in allowed["python"]


@pytest.mark.parametrize(
    ("expression", "fine"),
    [
        ("MIT", True),
        ("MIT OR GPL-3.0-only", True),
        ("(MIT OR GPL-3.0-only)", True),
        ("MIT AND GPL-3.0-only", False),
        ("GPL-3.0-only", False),
        ("", False),
    ],
)
def test_licence_expressions(expression: str, fine: bool) -> None:
    assert licences.permitted(expression, licences.PERMISSIVE) is fine


def test_licences_of_shipped_packages_are_stricter_than_of_tools() -> None:
    lock = {
        "packages": {
            "": {},
            "node_modules/tool": {"license": "MPL-2.0", "dev": True},
            "node_modules/shipped": {"license": "MPL-2.0"},
            "node_modules/silent": {},
        }
    }
    assert licences.check_npm(lock) == [
        "report/package-lock.json: node_modules/shipped is under MPL-2.0",
        "report/package-lock.json: node_modules/silent is under no licence it declares",
    ]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('#[error("{path}: this is no capture file")]', '"is no"'),
        ('return Err(format!("nobody listens at {port}"));', '"nobody"'),
        ('let text = "the run waits for \\\n    what never comes";', '"what"'),
        ("/// Why the run ended.", '"Why …"'),
        ("/// The end.\n///\n/// Whether it came.", '"Whether …"'),
        ("/// The end of the run, and\n/// what it left.", None),
        ('queue.pop().expect("nobody else takes it");', None),
        ('const HINT: &str = "did you mean {near}?";', None),
        ('#[cfg(test)]\nmod tests {\n    const TEXT: &str = "nobody is there";\n}', None),
        ("let quote = '\"'; // what nobody reads", None),
    ],
)
def test_a_text_of_a_crate_in_refused_words_is_found(line: str, found: str | None) -> None:
    complaints = words.findings("crates/a/src/b.rs", f"{line}\nfn f() {{}}\n")
    assert [one.split(": ")[1] for one in complaints] == ([] if found is None else [found])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"""What a run came to."""', ['"What"', '"What …"']),
        ('class A:\n    end: int\n    """Where it ends, fs."""', ['"Where …"']),
        ('def f():\n    """Does it end?"""', ['"?"']),
        ('async def f():\n    """\n    Those that wait.\n    """', ['"Those that"', '"Those …"']),
        ('"""The end.\n\nIt is no error, whoever asks.\n"""', ['"is no"', '"whoever"']),
        ('"""The end of a run, and its results."""', []),
        ('"""The key of `tlplab ask?` is `what`."""', []),
        ('raise ValueError("this is no capture file")', ['"is no"']),
        ('raise ValueError(f"{path} is no file: "\n    f"nobody knows {name}")', ['"is no"', '"nobody"']),
        ("f(f\"{g('what nobody knows')} are no files\")", ['"are no"', '"what"', '"nobody"']),
        ('print("use of --beside needs two files")', []),
        ('named = d["what"]', []),
        ('re.sub("what is it", "", text)', []),
        ('FORM = r"who \\w+ are you"', []),
        ('SCRIPT = f"#!/bin/sh\\necho what is it {x}"', []),
    ],
)
def test_a_text_of_python_in_refused_words_is_found(text: str, found: list[str]) -> None:
    complaints = words.findings("python/tlplab/a.py", f"{text}\n")
    assert sorted(one.split(": ")[1] for one in complaints) == sorted(found)


def test_the_strings_of_tests_are_not_checked_but_their_docstrings_are() -> None:
    text = '"""Whether it works."""\nassert said == "this is no file of ours"\n'
    assert [one.split(": ")[1] for one in words.findings("python/tests/test_a.py", text)] == ['"Whether …"']


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.c", 'fail("%s is no size", text);', ['"is no"']),
        ("a.cpp", 'refuse("card 1 is gone?\\n");', ['"?"']),
        ("a.c", 'char quote = \'"\'; /* the size */ fail("there is no size");', []),
        ("a.h", "int size; /* what it takes */", ['"what …"']),
        ("a.h", "/*\n * How it ends.\n */", ['"How …"']),
        ("a.hpp", "// The end, and\n// what it left.", []),
        ("a.sv", '$fatal(1, "%m: nobody waits for it");', ['"nobody"']),
        ("a.sv", 'if (x) $display("what is it"); // what it is', ['"what"']),
    ],
)
def test_a_text_of_c_or_systemverilog_in_refused_words_is_found(name: str, text: str, found: list[str]) -> None:
    assert [one.split(": ")[1] for one in words.findings(name, f"{text}\n")] == found


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("crates/a/src/b.rs", "#[test]\nfn what_is_lost_comes_again() {}", ['"what"']),
        ("crates/a/tests/a/b.rs", "#[test]\n#[ignore]\n// Slow.\nfn nobody_says_so() {}", ['"nobody"', '"says"']),
        ("crates/a/tests/a/b.rs", '#[test]\nfn lost_tlps_are_replayed() { panic!("what nobody knows"); }', []),
        ("crates/a/tests/a/b.rs", "fn what_a_helper_does() {}", []),
        ("rtl/test/test_a.py", "class TestA:\n    async def test_mistakes_are_told(self) -> None: ...", ['"told"']),
        ("python/tests/test_a.py", "def test_what_if_finds_someones_essays() -> None: ...", []),
    ],
)
def test_a_vague_word_in_the_name_of_a_test_is_refused(name: str, text: str, found: list[str]) -> None:
    assert [one.split(": ")[1] for one in words.findings(name, f"{text}\n")] == found


def test_sources_in_all_languages_are_checked() -> None:
    listed = set(words.covered())
    assert {"crates/wire/src/lib.rs", "python/tlplab/cli.py", "driver/tlpdma/pci.c", "rtl/core/user_rules.sv"} < listed
    assert {"crates/capi/include/libtlp.h", ".ci/words.py", "studies/p2p/README.md"} < listed
    assert {"crates/datalink/tests/datalink/ports.rs", "rtl/test/test_hard_ip.py"} < listed
    assert not any(name.startswith((".venv", "target", "out/")) or "node_modules" in name for name in listed)
