"""Published systems, run again: `tlplab reproduce`.

A study is a list of runs (an experiment file and overrides) and a function that turns their results into rows: the
published figure, tlplab's, and a verdict. `STUDIES` names them; each has a folder of its own in `studies`, which is not part of the package,
but of tlplab's repository, as the experiments are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Literal, Protocol

from tlplab.p2p.flows import Together
from tlplab.result import Document

Verdict = Literal["reproduced", "explained", "not reproducible"]

HEADING = ("result", "published", "ours", "error", "verdict", "note")


@dataclass(frozen=True)
class Row:
    """A published figure and tlplab's, or a result of tlplab that has no published figure."""

    paper: str
    result: str
    published: float | None
    ours: float | None
    """None if it is not available; the note has the reason."""
    unit: str
    verdict: Verdict
    note: str = ""

    @property
    def relative_error(self) -> float | None:
        """`ours / published - 1`; none where nothing, or zero, was published, or we have nothing."""
        return self.ours / self.published - 1 if self.published and self.ours is not None else None

    def cells(self) -> list[str]:
        """For people, in the order of `HEADING`."""
        # Adding 0 makes a rounded -0 a 0.
        error = "–" if self.relative_error is None else f"{round(100 * self.relative_error, 1) + 0:+.1f} %"
        published = "–" if self.published is None else f"{self.published:g} {self.unit}".rstrip()
        ours = "–" if self.ours is None else f"{self.ours:.4g} {self.unit}".rstrip()
        return [self.result, published, ours, error, self.verdict, self.note]

    def as_json(self) -> dict[str, Any]:
        """As `--json` writes it."""
        return {**asdict(self), "relative_error": self.relative_error}


@dataclass(frozen=True)
class Run:
    """One simulation of a study."""

    name: str
    experiment: str
    overrides: tuple[str, ...] = ()
    samples: int = 0
    """Reads of each target, where the differential method is to measure the topology; 0: its load is run."""
    together: Together | None = None
    """Flows from device to device in place of its load, as `tlplab p2p` makes them."""


Outcomes = Mapping[str, Document]


class Drawing(Protocol):
    """A figure."""

    def svg(self) -> str:
        """As SVG."""


@dataclass(frozen=True)
class Beside:
    """The part of a study that is not simulated: measured on this machine, or read from files."""

    title: str
    rows: list[Row]
    drawings: Sequence[Drawing]
    text: str
    """The text of a page about it, a paragraph."""


@dataclass(frozen=True)
class ByGuest:
    """The results with a Linux guest as the host's software."""

    rows: list[Row]
    page: str
    """A page of its own, in Markdown."""
    drawings: Sequence[Drawing] = ()


@dataclass(frozen=True)
class GuestOptions:
    """The options of a run under Linux."""

    block: int | None = None
    """Bytes of the largest block (`--block`), of a study that `has_block`."""
    library: Path | None = None
    """A checkout of the published library (`--library`), of a study that `has_library`."""


class UnderLinux(Protocol):
    """Runs a study's experiments under Linux (`tlplab reproduce --guest`); `kernel.find` has its place."""

    def __call__(self, experiments: Path, options: GuestOptions, /, *, quiet: bool) -> ByGuest: ...


class Measure(Protocol):
    """Measures, with the study's experiments, and reads the captures in a folder."""

    def __call__(self, experiments: Path, folder: str | None, *, quiet: bool) -> list[Beside]: ...


@dataclass(frozen=True)
class Study:
    """A paper."""

    name: str
    title: str
    folder: str
    """The folder of its experiments."""
    runs: Callable[[], list[Run]]
    rows: Callable[[Outcomes], list[Row]]
    page: Callable[[Outcomes, list[Row]], str]
    """Its README.md, in Markdown."""
    charts: Callable[[Outcomes], Sequence[Drawing]]
    """The paper's figures, ours."""
    beside: Measure | None = None
    """Its part that is not simulated."""
    built: tuple[tuple[str, str], ...] = ()
    """The files that have to be built first, relative to its folder, each with the command that builds it; not for `under_linux`."""
    under_linux: UnderLinux | None = None
    """The study with a Linux guest instead, if it has that."""
    in_machine: bool = False
    """True if that guest is an ordinary one under QEMU (`make guest-tools`), and not a user-mode Linux."""
    has_block: bool = False
    """True if a guest reads blocks whose size is an option."""
    has_library: bool = False
    """True if a published library can be measured in comparison."""


STUDIES = ("differential", "gem5", "gpu-host", "nettlp", "p2p", "pcie-bench", "speedy")


def study(name: str, folder: Path) -> Study:
    """One of `STUDIES`, which are in `folder`. `FileNotFoundError`: it is not."""
    module = name.replace("-", "_")
    if not (code := folder / module / "__init__.py").is_file():
        raise FileNotFoundError(code)
    if "studies" not in sys.modules:
        spec = spec_from_file_location("studies", folder / "__init__.py", submodule_search_locations=[str(folder)])
        assert spec is not None
        assert spec.loader is not None
        sys.modules["studies"] = package = module_from_spec(spec)
        spec.loader.exec_module(package)
    found: Study = import_module(f"studies.{module}").STUDY
    return found
