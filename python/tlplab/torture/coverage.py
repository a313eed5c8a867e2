"""The executed lines of the drivers, by the counters of a kernel of `make linux COVERAGE=1`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tlplab.errors import RunError
from tlplab.guest.kernel import Kernel

# In the guest: where the counters are, and how they come to the folder that it shares. One process copies them all: it costs a guest most to make another.
COUNTERS = "/sys/kernel/debug/gcov"
COPY = f"[ ! -d {COUNTERS} ] || cp -r {COUNTERS} /share 2>/dev/null"
# The folder of the kernel's build, below which a counter's path is that of its source.
BUILD = "/build/"
# A line that a driver has for what goes wrong: it gives an error back, goes to where errors are cleaned up, or says so.
IS_ERROR = re.compile(
    r"return\s+(-E\w+|false|BLK_STS_\w*ERR|PCI_ERS_RESULT_(DISCONNECT|NEED_RESET))|goto\s+\w*(out|err|fail|free|disable|unmap|unlock|release|put|dead|disconnect)\w*"
    r"|\b(dev|pci|netdev|net|e)_(err|warn|crit)\b|\be_(dbg|info)\(.*([Ee]rror|[Ff]ail|[Tt]imeout)|\b(ret|ret_val|rc|err|error|result|status)\s*=\s*-E\w+"
)


@dataclass(frozen=True)
class Lines:
    """Lines of a driver in functions that have run, and those of them that are there for errors."""

    driver: str
    known: int
    reached: int
    errors: int
    errors_reached: int
    ran: tuple[str, ...]
    """Lines for errors that have run: `drivers/nvme/host/core.c:3437: return -EINVAL;`."""
    left: tuple[str, ...]
    """The lines that have not run."""


class Counters:
    """The counters of many boots, added up in a folder that goes when this does."""

    def __init__(self) -> None:
        """Nothing has run."""
        self.within = TemporaryDirectory(prefix="tlplab-coverage-")
        self.folder = Path(self.within.name) / "sum"
        self.folder.mkdir()

    def add(self, share: Path) -> None:
        """Adds the counters that a guest has left in the shared folder, and removes them."""
        one = self.folder.with_name("one")
        one.mkdir()
        for path in share.rglob("*.gcda"):
            name = str(path.relative_to(share)).rpartition(BUILD)[2]
            shutil.move(path, one / name.replace("/", ":"))
        if not any(self.folder.iterdir()):
            shutil.rmtree(self.folder)
            one.rename(self.folder)
        elif any(one.iterdir()):
            both = self.folder.with_name("both")
            run("gcov-tool", "merge", "-o", str(both), str(self.folder), str(one))
            shutil.rmtree(self.folder)
            both.rename(self.folder)
        shutil.rmtree(one, ignore_errors=True)
        shutil.rmtree(share)

    def lines(self, build: Path) -> dict[str, dict[int, int]]:
        """The number of executions of each line, by the source's path in the kernel; of functions that have run at all."""
        counts: dict[str, dict[int, int]] = {}
        for path in sorted(self.folder.glob("*.gcda")):
            name = path.name.replace(":", "/").removesuffix(".gcda")
            for source, of in gcov(path, build / f"{name}.gcno"):
                if source.endswith(f"{name}.c"):
                    counts[f"{name}.c"] = of
        return counts


def gcov(counters: Path, notes: Path) -> Iterator[tuple[str, dict[int, int]]]:
    """The sources of an object, with the lines of functions that have run."""
    beside = counters.with_suffix(".gcno")
    shutil.copyfile(notes, beside)
    told = json.loads(run("gcov", "--json-format", "--stdout", str(counters)))
    beside.unlink()
    for file in told["files"]:
        entered = {one["name"] for one in file["functions"] if one["execution_count"]}
        of: dict[int, int] = defaultdict(int)
        for line in file["lines"]:
            if line.get("function_name") in entered:
                of[line["line_number"]] += line["count"]
        yield file["file"], dict(of)


def run(*command: str) -> str:
    """A command's output. Raises `RunError`."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise RunError(f"{command[0]} is missing; install gcc") from None
    if done.returncode:
        raise RunError(f"{command[0]} cannot read the counters: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout


def by_driver(now: dict[str, dict[int, int]], known: dict[str, dict[int, int]], build: Path) -> list[Lines]:
    """The lines executed in `now`, of the functions executed in `known`."""
    counts: dict[str, Counter[bool]] = defaultdict(Counter)
    errors: dict[tuple[str, bool], list[str]] = defaultdict(list)
    for file, of in known.items():
        text = (build / file).read_text(encoding="utf-8", errors="replace").splitlines()
        driver = file.rsplit("/", 1)[0].removesuffix("/host").rsplit("/", 1)[-1]
        for line in of:
            reached = now.get(file, {}).get(line, 0) > 0
            counts[driver][reached] += 1
            if IS_ERROR.search(text[line - 1]) is not None:
                errors[driver, reached].append(f"{file}:{line}: {text[line - 1].strip()}")
    lines = []
    for driver, reaches in counts.items():
        ran, left = (tuple(errors[driver, reached]) for reached in (True, False))
        lines.append(Lines(driver, reaches.total(), reaches[True], len(ran) + len(left), len(ran), ran, left))
    return lines


@dataclass
class Coverage:
    """The executed lines of the drivers: without a fault, and with all cases so far."""

    build: Path
    counters: Counters
    before: dict[str, dict[int, int]]

    @classmethod
    def of(cls, linux: Kernel) -> Coverage | None:
        """Nothing has run; None, if the kernel does not count."""
        build = linux.build if next(linux.build.rglob("*.gcno"), None) is not None else None
        return None if build is None else cls(build, Counters(), {})

    def rows(self) -> list[tuple[Lines, Lines]]:
        """Of each driver: without a fault, and with all cases. The functions are all that have run in any boot."""
        now = self.counters.lines(self.build)
        rows = zip(*(by_driver(of, now, self.build) for of in (self.before, now)), strict=True)
        return [(before, after) for before, after in rows if after.errors]

    def document(self) -> dict[str, Any]:
        """For the document of verdicts."""
        return {"coverage": [{"before": asdict(before), "after": asdict(after)} for before, after in self.rows()]}
