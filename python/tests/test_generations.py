"""A new generation of PCIe is a row in crates/units/src/link.rs; this test leads to the places that speak of the last one."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from tlplab import _core
from tlplab.analytic.options import FLITS_ONLY
from tlplab.scan.facts import RATES

LAST = _core.generations()[-1][0]
# `gen7`, `Gen7`, `generations 1 to 7`, `generations 6 and 7`, `gen[1-7]`, and what says `1 to 7` and no more.
NAMED = re.compile(
    rf"\bgen ?{LAST}\b|\b(?:generations?|gen{LAST - 1}) (?:1 to |{LAST - 1} and |and ){LAST}\b"
    rf"|gen\[1-{LAST}\]|(?<!\w )1 to {LAST}(?=[.;|\"]| *$)",
    re.IGNORECASE | re.MULTILINE,
)
TEXTS = ("README.md", "docs/*.md", "crates/*/src/**/*.rs", "python/tlplab/**/*.py", "report/src/**/*.ts*")
# Made by the programs, and compared with what they make elsewhere.
GENERATED = {
    "docs/commands.md", "docs/experiments.md", "docs/metrics.md", "docs/result.md", "python/tlplab/document.py",
    "report/src/document.ts",
}  # fmt: skip
# How often each file speaks of it.
PLACES = {
    "README.md": 1,
    "crates/analytic/src/numbers.rs": 3,
    "crates/analytic/src/policy.rs": 1,
    "crates/datalink/src/limits.rs": 1,
    "crates/experiment/src/link.rs": 1,
    "crates/experiment/src/result/links.rs": 1,
    "crates/experiment/src/tables/link.rs": 2,
    "crates/study/src/metrics.rs": 1,
    "crates/units/src/link.rs": 1,
    "docs/differential.md": 1,
    "docs/model.md": 1,
    "docs/not-modelled.md": 1,
    "docs/replay.md": 1,
    "python/tlplab/analytic/options.py": 1,
    "python/tlplab/bench/options.py": 1,
    "python/tlplab/model.py": 2,
}


def test_all_that_speaks_of_the_last_generation_speaks_of_this_one(root: Path) -> None:
    found: Counter[str] = Counter()
    for path in (path for pattern in TEXTS for path in root.glob(pattern)):
        name = path.relative_to(root).as_posix()
        found[name] += 0 if name in GENERATED else len(NAMED.findall(path.read_text(encoding="utf-8")))
    wrong = sorted(name for name in {*found, *PLACES} if found[name] != PLACES.get(name, 0))
    assert not wrong, f"these speak of gen{LAST} more or less often than PLACES says: {', '.join(wrong)}"


def test_python_knows_generations_from_the_core() -> None:
    numbers = [number for number, _, _ in _core.generations()]
    assert numbers == list(range(1, LAST + 1))
    assert set(RATES.values()) == set(numbers)
    assert (RATES["2.5"], RATES["8"], RATES["8.0"], RATES["64.0"]) == (1, 3, 3, 6)
    assert {6, 7} <= FLITS_ONLY <= set(numbers) - {1, 2, 3, 4, 5}
    assert {1, 16, 32} <= set(_core.widths())
