"""Errors, each with fact, place and fix."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tlplab.result import Result
    from tlplab.tlps import Tlps

# What a command ends with: a run that failed, bad input, Ctrl-C.
FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130


class ExperimentError(ValueError):
    """A mistake in an experiment: place, fact and fix."""

    def __init__(
        self, file: str, line: int | None, column: int | None, key: str, message: str, hint: str | None = None
    ) -> None:
        """`line` and `column` count from 1; both are None where there is no line, as in an override."""
        super().__init__(file, line, column, key, message, hint)
        self.file = file
        self.line = line or None
        self.column = column or None
        self.key = key
        self.message = message
        self.hint = hint
        self.others: tuple[ExperimentError, ...] = ()
        """Further mistakes in the same file, which were found in the same reading."""

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        key = f"{self.key}: " if self.key else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{place}: {key}{self.message}{hint}"

    def of_overrides(self, name: str) -> ExperimentError:
        """The same mistake, with this name for the overrides in place of `--set`."""
        if self.file != "--set":
            return self
        changed = ExperimentError(name, None, None, self.key, self.message, self.hint)
        changed.others = tuple(other.of_overrides(name) for other in self.others)
        return changed


class DatasetError(ExperimentError):
    """A mistake in measured data: the key is a column."""


class RunError(RuntimeError):
    """A run that failed, or whose results could not be written."""

    run: Result | None = None
    """Of `tl.run` and `tl.simulate`: the run up to there, as in `error.run.report("failed.html")`."""
    tlps: Tlps | None = None
    """The last TLPs of that run, which the message shows."""

    def __str__(self) -> str:
        said = super().__str__()
        return f"{said}\nthe last TLPs:\n{self.tlps}" if self.tlps else said


class RequestTimeoutError(RunError):
    """A request that was not answered in time."""


def explain(error: BaseException) -> str:
    """An exception in a line, with the place in the user's file where it came up."""
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: {said}"
    own = str(Path(__file__).parent)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith((own, "<frozen"))]
    return f"{frames[-1].filename}:{frames[-1].lineno}: {said}" if frames else said
