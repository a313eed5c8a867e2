"""`make rtl-mutants`: seeds the bugs of bench/rtl-mutants.txt into the RTL, one at a time, and lists unnoticed ones.

Each mutant is a copy of rtl/ in out/rtl/mutants, which the judges look at one after the other, the quickest first, until one of them
notices: the TRN shim in a loop, the stress test in co-simulation, the cases of rtl/test behind the hard IP that the file is for, and the
proofs of the file. A warning of the compiler is not a judgement, and a mutant that it does not take has no place in the list. Before any
mutant the RTL as it is must pass every judge in the same kind of copy: a judge that cannot run would notice everything. The result of
a mutant is written to bench/rtl-mutants.json at once, and it is not tried again until its file or its text changes, so a run may be
stopped; a survivor without a reason is tried again. The run ends with status 1 where a survivor has no reason in the list, or less than
95 % are noticed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "bench" / "rtl-mutants.txt"
OUT = ROOT / "out" / "rtl" / "mutants"
BIN = ROOT / "rtl" / ".venv" / "bin"
LEAST_CAUGHT = 0.95
SURVIVES = "survives:"
CASES = ("cases_slave", "cases_dma", "cases_errors", "cases_interrupts", "cases_limits")
#: Which of them is likely to notice, where it is not the first.
FIRST = {
    **dict.fromkeys(("core/completion.sv", "core/tags.sv", "core/master_read.sv"), "cases_errors"),
    **dict.fromkeys(("user/interrupts.sv", "user/posts.sv"), "cases_interrupts"),
    **dict.fromkeys(("user/channel.sv", "user/prefetch.sv", "core/master_write.sv", "core/splitter.sv"), "cases_dma"),
}
#: A program of a judge that takes more of a processor than this has noticed: the mutant hangs. Time on the clock says
#: nothing on a machine that others use: after PATIENCE times as much there is no verdict.
SECONDS = 900
PATIENCE = 4
STRESS_TRANSFERS = 30_000


@dataclass(frozen=True)
class Mutant:
    """A place in the list, and the change."""

    line: int
    file: str
    old: str
    new: str
    wrong: str
    reason: str | None

    @property
    def key(self) -> tuple[str, str, str]:
        return self.file, self.old, self.new


def read_list(path: Path = LIST) -> list[Mutant]:
    """Of each line the mutant, with the reason of the line below."""
    found: list[Mutant] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line.strip()
        if text.startswith(SURVIVES):
            *before, last = found
            found = [*before, Mutant(last.line, *last.key, last.wrong, text.removeprefix(SURVIVES).strip())]
        elif text and not text.startswith("#"):
            parts = [part.strip() for part in text.split(" @ ")]
            if len(parts) != 4:
                raise SystemExit(
                    f"{path.name}:{number}: has {len(parts)} parts, not file @ text @ text with the bug @ description of the bug"
                )
            file, old, new, wrong = parts
            found.append(Mutant(number, file, old, new, wrong, None))
    if len({mutant.key for mutant in found}) != len(found):
        raise SystemExit(f"{path.name}: a mutant stands there twice")
    return found


def seeded(mutant: Mutant) -> str:
    """The file with the bug."""
    text = (ROOT / "rtl" / mutant.file).read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise SystemExit(
            f"{LIST.name}:{mutant.line}: `{mutant.old}` stands {text.count(mutant.old)} times in {mutant.file}, not once"
        )
    return text.replace(mutant.old, mutant.new)


def texts(mutant: Mutant) -> str:
    """The digest of the judged text: the file with the bug. Other files and tests may change; a fresh run tries all."""
    return hashlib.sha1(seeded(mutant).encode()).hexdigest()


def copy(name: str) -> Path:
    """A repository of the RTL alone."""
    place = OUT / name
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(ROOT / "rtl", place / "rtl", ignore=shutil.ignore_patterns(".venv", "__pycache__", ".pytest_cache"))
    return place


def hard_ip(file: str) -> int:
    """The width of the hard IP that a file is for: 256 is UltraScale+, the only user of write_ends."""
    return 256 if "usp" in file or "write_ends" in file else 128 if file.startswith("shim/") else 64


class NoticedError(Exception):
    """A judge's finding, with its reason."""


def run(place: Path, log: str, command: list[str], directory: str = ".", **environment: str) -> str:
    """The output of a command. Raises NoticedError, a judgement, if it fails or computes without end."""
    settings = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "PYTHONPATH")
    }
    settings.update(environment, PATH=f"{BIN}{os.pathsep}{os.environ['PATH']}", PYTHONPATH=str(place / "rtl" / "test"))
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", f'ulimit -t {SECONDS}; exec "$@"', "sh", *command],
            cwd=place / directory,
            env=settings,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE * SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise SystemExit(f"{place.name}: {log}: no end after {PATIENCE * SECONDS} s: the machine may be busy") from None
    said = done.stdout + done.stderr
    (place / f"{log}.log").write_text(said, encoding="utf-8")
    if done.returncode != 0:
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        telling = [
            line for line in lines if "FAIL" in line or "Error" in line or "stress" in line or "mismatch" in line
        ]
        raise NoticedError((telling or lines or [f"status {done.returncode}"])[-1][:160])
    return said


def sources() -> list[str]:
    return [f"rtl/{name}" for name in (ROOT / "rtl" / "files.f").read_text(encoding="utf-8").split()]


def check(place: Path, mutant: Mutant) -> None:
    """Compile the mutant. Raises SystemExit if it does not compile."""
    top = "tlpdma_usp" if hard_ip(mutant.file) == 256 else "tlpdma_trn"
    try:
        run(place, "check", ["verilator", "--lint-only", "-Wno-fatal", "--top-module", top, *sources()])
    except NoticedError as error:
        raise SystemExit(f"{LIST.name}:{mutant.line}: does not compile: {error}") from None


def stress(place: Path, file: str) -> None:
    """Behind the hard IP that the file is for; behind TRN of each width, if it is a shim."""
    for width in (64, 128) if hard_ip(file) == 128 else (hard_ip(file),):
        library = f"out/rtl/w{width}.so"
        which = ("usp", "tlpdma_usp", "") if width == 256 else ("trn", "tlpdma_trn", f"-GW={width} ")
        build = ["make", "-s", "-f", "rtl/cosim/module.mk", f"HARD_IP={which[0]}", f"TOP={which[1]}"]
        build += [f"PARAMETERS={which[2]}-GTAGS=32", "TRACE=0", "FAST=-O1", "HARNESS=-O0", "JOBS=1"]
        build += [f"SOURCES={' '.join(sources())} rtl/cosim/tlpdma_identity.cpp"]
        run(place, f"build{width}", [*build, f"OUT={library}", f"RTL_BIN={BIN}"])
        command = [str(ROOT / "out" / "rtl" / "stress"), "--transfers", str(STRESS_TRANSFERS), "--seed", "1"]
        run(place, f"stress{width}", [*command, *(["--drops"] if width == 256 else []), library])


def loop(place: Path, file: str) -> None:
    """The TRN shim alone, and the model of the memory."""
    if file.startswith("shim/trn") or "ddr_model" in file:
        run(place, "loop", ["pytest", "--quiet", "-p", "no:cacheprovider", "-x", "test_model.py"], "rtl/test")


def cases(place: Path, file: str) -> None:
    """Behind the hard IP that the file is for."""
    for module in sorted(CASES, key=lambda module: module != FIRST.get(file)):
        simulate = f"import test_core; test_core.core({hard_ip(file)}, 'verilator', {module!r})"
        run(place, module, [str(BIN / "python"), "-c", simulate], "rtl/test", TLPLAB_STRICT="1")


def proofs(place: Path, file: str) -> None:
    """Runs the proofs that read the file."""
    for proof in sorted((place / "rtl" / "formal").glob("*.sby")):
        if file in proof.read_text(encoding="utf-8").split():
            run(place, f"proof-{proof.stem}", ["python3", "rtl/formal/run", proof.stem])


#: Each looks at a copy with a bug in a file, the quickest first.
Judge = Callable[[Path, str], None]
JUDGES: dict[str, Judge] = {"loop": loop, "stress": stress, "cases": cases, "proofs": proofs}


def baseline(chosen: list[Mutant]) -> None:
    """All judges that those mutants need pass the RTL as it is; once for each state of rtl/."""
    everything = hashlib.sha1()
    for path in sorted((ROOT / "rtl").rglob("*")):
        if path.is_file() and not {"area", "constraints", ".venv", "__pycache__", ".pytest_cache"} & set(path.parts):
            everything.update(path.read_bytes())
    files = sorted({mutant.file for mutant in chosen})
    # Stress and cases are the same for all files of a hard IP.
    needed: dict[str, tuple[str, tuple[Judge, ...]]] = {
        f"{hard_ip(file)} bit": (file, (stress, cases)) for file in files
    }
    needed |= {f"loop of {Path(file).stem}": (file, (loop,)) for file in files}
    needed |= {f"proofs of {Path(file).stem}": (file, (proofs,)) for file in files}
    for name, (file, judges) in needed.items():
        passed = OUT / f"passed {name}"
        if passed.is_file() and passed.read_text(encoding="utf-8") == everything.hexdigest():
            continue
        place = copy("as-it-is")
        try:
            for look in judges:
                look(place, file)
        except NoticedError as error:
            raise SystemExit(f"the RTL as it is does not pass ({name}): {error}; logs are in {place}") from None
        shutil.rmtree(place)
        passed.write_text(everything.hexdigest(), encoding="utf-8")
        print(f"the RTL as it is passes: {name}", flush=True)


def judge(mutant: Mutant) -> dict[str, Any]:
    """The first judge that notices the bug, and its message."""
    began = time.monotonic()
    place = copy(f"line{mutant.line}")
    (place / "rtl" / mutant.file).write_text(seeded(mutant), encoding="utf-8")
    check(place, mutant)
    caught_by, says = None, None
    for name, look in JUDGES.items():
        try:
            look(place, mutant.file)
        except NoticedError as noticed:
            caught_by, says = name, str(noticed)
            break
    if caught_by is not None:
        shutil.rmtree(place)
    return {
        "file": mutant.file,
        "old": mutant.old,
        "new": mutant.new,
        "wrong": mutant.wrong,
        "caught_by": caught_by,
        "says": says,
        "seconds": round(time.monotonic() - began, 1),
        "texts": texts(mutant),
    }


def complaints(mutants: list[Mutant], records: dict[tuple[str, str, str], dict[str, Any]]) -> list[str]:
    """The problems of the records: survivors without a reason, reasons without a survivor, too many survivors."""
    found = []
    tried = [mutant for mutant in mutants if mutant.key in records]
    alive = [mutant for mutant in tried if records[mutant.key]["caught_by"] is None]
    for mutant in tried:
        if mutant in alive and mutant.reason is None:
            found.append(
                f"{LIST.name}:{mutant.line}: {mutant.file}: {mutant.wrong}: nothing notices: add a test, or the reason"
            )
        if mutant not in alive and mutant.reason is not None:
            found.append(
                f"{LIST.name}:{mutant.line}: {mutant.file}: {mutant.wrong}: is noticed now: its reason is obsolete"
            )
    if len(alive) > (1 - LEAST_CAUGHT) * len(tried):
        found.append(f"{len(alive)} of {len(tried)} mutants survive, more than {1 - LEAST_CAUGHT:.0%}")
    return found


def read_records(path: Path) -> dict[tuple[str, str, str], dict[str, Any]]:
    if not path.exists():
        return {}
    listed = json.loads(path.read_text(encoding="utf-8"))
    return {(one["file"], one["old"], one["new"]): one for one in listed}


def write_records(path: Path, mutants: list[Mutant], records: dict[tuple[str, str, str], dict[str, Any]]) -> None:
    """In the order of the list; records of removed mutants go."""
    kept = [{**records[mutant.key], "reason": mutant.reason} for mutant in mutants if mutant.key in records]
    new = path.with_suffix(".new")
    new.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    new.replace(path)


def results(chosen: list[Mutant], jobs: int) -> Iterator[tuple[Mutant, dict[str, Any]]]:
    with ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(judge, mutant): mutant for mutant in chosen}
        try:
            for done in as_completed(running):
                yield running[done], done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("files", nargs="*", help="only mutants of these files, such as core/tags.sv (all)")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each N-th only")
    parser.add_argument("--fresh", action="store_true", help="also mutants that the record has already")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time (default: 1)")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "bench" / "rtl-mutants.json", help="the record")
    options = parser.parse_args()
    mutants = read_list()
    now = {mutant.key: texts(mutant) for mutant in mutants}
    if unknown := set(options.files) - {mutant.file for mutant in mutants}:
        parser.error(f"no mutants of {', '.join(sorted(unknown))}")
    records = {key: one for key, one in read_records(options.output).items() if now.get(key) == one["texts"]}
    chosen = [mutant for mutant in mutants if not options.files or mutant.file in options.files][:: options.every]
    # A survivor without a reason is tried again: there may be a test for it now.
    settled = {mutant.key for mutant in mutants if records.get(mutant.key, {}).get("caught_by") or mutant.reason}
    settled &= records.keys()
    waiting = [mutant for mutant in chosen if options.fresh or mutant.key not in settled]
    print(f"{len(chosen)} mutants, {len(chosen) - len(waiting)} on record", flush=True)
    OUT.mkdir(parents=True, exist_ok=True)
    if waiting:
        baseline(waiting)
    for number, (mutant, record) in enumerate(results(waiting, options.jobs), 1):
        records[mutant.key] = record
        write_records(options.output, mutants, records)
        how = record["caught_by"] or ("survives, as it must" if mutant.reason else "SURVIVES")
        print(f"{number:3}/{len(waiting)} {record['seconds']:6.1f} s {how:7} {mutant.file}: {mutant.wrong}", flush=True)
    write_records(options.output, mutants, records)
    counts = Counter(records[mutant.key]["caught_by"] or "nothing" for mutant in chosen if mutant.key in records)
    print("noticed by " + ", ".join(f"{name} {count}" for name, count in counts.most_common()))
    wrong = complaints(chosen, records)
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
