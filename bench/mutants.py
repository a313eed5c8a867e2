"""`make mutants`: changes the sources of the sans-IO crates in one place at a time, and lists the changes that no test of the crate notices.

cargo-mutants makes the changes and runs the crate's own tests on each. Its findings are kept by file in bench/mutants.json; a survivor
must stand in bench/mutants.toml with the reason why it changes no visible result, or the run ends with status 1, as it does
where less than 95 % of a crate's viable mutants are caught.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
CRATES = ("transaction", "datalink", "wire", "nettlp", "cfgspace")
LEAST_CAUGHT = 0.95
CASES = "32"
# Who made them, what the crate's tests said; a test that never ends notices, too.
OUTCOMES = {
    "CaughtMutant": "caught",
    "Timeout": "timeout",
    "MissedMutant": "missed",
    "Unviable": "unviable",
}
# cargo-mutants ended as it should: all caught, some missed, some timed out.
DONE = (0, 2, 3)
# Somebody pressed Ctrl-C.
STOPPED = 130


def git(*arguments: str) -> str:
    """The output of git, or nothing without a repository."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def read_reasons(path: Path) -> dict[tuple[str, str, str], str]:
    """By file, change and the text of the line changed: the reason why it changes no visible result."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["survivor"]
    reasons = {(one["file"], one["change"], one["line"]): one["reason"] for one in entries}
    if len(reasons) != len(entries):
        raise SystemExit(f"{path}: two survivors have the same file, change and line; one reason is enough")
    return reasons


def run(crate: str, files: list[str], jobs: int, out: Path) -> tuple[list[dict[str, Any]], bool]:
    """The outcome of each mutant of a crate, or of some of its files, and True if the run was stopped before its end."""
    command = ["cargo", "mutants", "--package", f"tlplab-{crate}", "--no-shuffle", "--jobs", str(jobs)]
    command += ["--output", str(out), "--colors", "never"] + [f"--file={file}" for file in files]
    out.mkdir(parents=True, exist_ok=True)
    # A failing property is all that is asked, not its smallest case; fewer cases only make the measure stricter.
    # With little optimisation some properties need more stack than threads of tests get.
    environment = dict(os.environ, PROPTEST_CASES=CASES, PROPTEST_MAX_SHRINK_ITERS="0", RUST_BACKTRACE="0")
    environment["RUST_MIN_STACK"] = str(64 << 20)
    target = subprocess.run(
        ["rustc", "--print", "host-tuple"], capture_output=True, text=True, check=True
    ).stdout.strip()
    runner = f"CARGO_TARGET_{target.upper().replace('-', '_')}_RUNNER"
    environment[runner] = f"{sys.executable} {ROOT / 'bench' / 'first_failure.py'}"
    try:
        status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    except KeyboardInterrupt:
        status = STOPPED
    if status not in (*DONE, STOPPED):
        raise SystemExit(f"cargo mutants ended with status {status} for {crate}; its logs are in {out}/mutants.out")
    return read_outcomes(out / "mutants.out"), status == STOPPED


def read_outcomes(out: Path) -> list[dict[str, Any]]:
    """The outcomes of the mutants of each file of which all mutants were tried."""
    tried = json.loads((out / "outcomes.json").read_text(encoding="utf-8"))["outcomes"]
    outcomes = [one for one in tried if one["scenario"] != "Baseline"]
    listed = Counter(one["file"] for one in json.loads((out / "mutants.json").read_text(encoding="utf-8")))
    seen = Counter(one["scenario"]["Mutant"]["file"] for one in outcomes)
    return [one for one in outcomes if seen[file := one["scenario"]["Mutant"]["file"]] == listed[file]]


def summarize(
    crate: str, outcomes: list[dict[str, Any]], reasons: dict[tuple[str, str, str], str]
) -> list[dict[str, Any]]:
    """The record of each file: how many of its mutants were viable, how many were caught, which were not."""
    files: dict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for one in outcomes:
        mutant = one["scenario"]["Mutant"]
        files[mutant["file"]].append((OUTCOMES[one["summary"]], mutant))
    return [
        {
            "crate": crate,
            "file": file,
            "source": git("hash-object", file),
            "tests": git("rev-parse", f"HEAD:crates/{crate}/tests"),
            **count([how for how, _ in found]),
            "survivors": [survivor(mutant, reasons) for how, mutant in found if how == "missed"],
        }
        for file, found in sorted(files.items())
    ]


def count(outcomes: list[str]) -> dict[str, int]:
    """The number of mutants of each outcome; mutants that do not compile are not viable, and count for nothing."""
    counts = Counter(outcomes)
    viable = sum(counts[how] for how in ("caught", "timeout", "missed"))
    return {"viable": viable, **{how: counts[how] for how in ("caught", "timeout", "missed", "unviable")}}


def survivor(mutant: dict[str, Any], reasons: dict[tuple[str, str, str], str]) -> dict[str, Any]:
    """A mutant that no test noticed, and why."""
    file, number = mutant["file"], mutant["span"]["start"]["line"]
    change = mutant["name"].split(": ", 1)[1]
    line = (ROOT / file).read_text(encoding="utf-8").splitlines()[number - 1].strip()
    return {"at": number, "change": change, "line": line, "reason": reasons.get((file, change, line))}


def complaints(records: list[dict[str, Any]], reasons: dict[tuple[str, str, str], str]) -> list[str]:
    """The problems of records: too few mutants caught, survivors without a reason, reasons without a survivor."""
    found = []
    for crate in dict.fromkeys(one["crate"] for one in records):
        of_crate = [one for one in records if one["crate"] == crate]
        viable, missed = (sum(one[key] for one in of_crate) for key in ("viable", "missed"))
        if viable and missed > (1 - LEAST_CAUGHT) * viable:
            found.append(f"{crate}: {missed} of {viable} mutants survive, more than {1 - LEAST_CAUGHT:.0%}")
    for one in records:
        for each in one["survivors"]:
            if each["reason"] is None:
                found.append(
                    f"{one['file']}:{each['at']}: {each['change']}\n    no test notices: add one, or the reason to bench/mutants.toml"
                )
        alive = {(one["file"], each["change"], each["line"]) for each in one["survivors"]}
        for key in reasons:
            if key[0] == one["file"] and key not in alive:
                found.append(
                    f"{one['file']}: {key[1]}\n    is noticed now: its reason in bench/mutants.toml is obsolete"
                )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("crates", nargs="*", help=f"some of {', '.join(CRATES)} (default: all)")
    parser.add_argument("--file", action="append", default=[], help="only this source file of the crate; repeatable")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time (default: 1)")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "bench" / "mutants.json")
    given = parser.parse_args()
    if unknown := [crate for crate in given.crates if crate not in CRATES]:
        parser.error(f"unknown crate {unknown[0]}; there are {', '.join(CRATES)}")
    reasons = read_reasons(ROOT / "bench" / "mutants.toml")
    ran = []
    for crate in given.crates or CRATES:
        outcomes, stopped = run(crate, given.file, given.jobs, ROOT / "out" / "mutants" / crate)
        records = summarize(crate, outcomes, reasons)
        ran += records
        kept = json.loads(given.output.read_text(encoding="utf-8")) if given.output.exists() else []
        files = {one["file"] for one in records}
        # Files that are gone, or were run again, are no longer what is kept.
        kept = [one for one in kept if one["file"] not in files and (ROOT / one["file"]).exists()]
        both = sorted(kept + records, key=lambda one: (CRATES.index(one["crate"]), one["file"]))
        given.output.write_text(json.dumps(both, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        sums = {key: sum(one[key] for one in records) for key in ("viable", "caught", "timeout", "missed")}
        print(f"{crate}: " + ", ".join(f"{value} {key}" for key, value in sums.items()), flush=True)
        if stopped:
            sys.exit(STOPPED)
    wrong = complaints(ran, reasons)
    print("\n".join(wrong), file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
