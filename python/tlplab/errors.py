"""What can go wrong, told so that a person can mend it."""

from __future__ import annotations


class ExperimentError(ValueError):
    """A mistake in an experiment: where it is, what is wrong, what would be right."""

    def __init__(self, file: str, line: int, column: int, key: str, message: str, hint: str | None = None) -> None:
        """`line` and `column` count from 1; both are 0 where there is no line, as in an override."""
        super().__init__(file, line, column, key, message, hint)
        self.file = file
        self.line = line
        self.column = column
        self.key = key
        self.message = message
        self.hint = hint
        self.others: tuple[ExperimentError, ...] = ()
        """Further mistakes in the same file, which were found in the same reading."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        key = f"{self.key}: " if self.key else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{place}: {key}{self.message}{hint}"


class RunError(RuntimeError):
    """A run that could not go on, or whose results could not be written."""
