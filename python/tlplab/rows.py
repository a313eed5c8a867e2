"""Parts of a result document that are lists of dictionaries, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints, is_typeddict

from tlplab import _core

Row = TypeVar("Row")
Sort = Literal["whole", "number", "truth", "text"]

SORTS: dict[Any, Sort] = {int: "whole", float: "number", bool: "truth", str: "text"}
UNITS = {"_fs": "fs", "_ns": "ns", "_bps": "b/s", "bytes": "B"}


class Rows(list[Row], Generic[Row]):
    """A list of dictionaries that are alike: `arrow` gives them as a table."""

    def __init__(self, rows: Iterable[Row], kind: Any, causes: Sequence[str]) -> None:
        """`kind` is the type of a row, `causes` are those of the document."""
        super().__init__(rows)
        self._kind, self._causes = kind, tuple(causes)

    def arrow(self) -> _core.Table:
        """A table by Arrow's PyCapsule interface, for `pyarrow.table`, `polars.DataFrame` and others; `to_numpy` needs none of them.

        Keys within a row have the names of their path: `latency_ns.p99`, `up.utilization.idle`; of lists only the causes' times are there.
        """
        found = columns(self._kind, self._causes)
        return _core.table([(one.name, one.unit, one.sort, [one.of(row) for row in self]) for one in found])


@dataclass(frozen=True)
class Column:
    """A column: how it is called, and where its values are in a row."""

    name: str
    sort: Sort
    unit: str | None
    path: tuple[str | int, ...]

    def of(self, row: Any) -> Any:
        """The value in a row; None where there is none."""
        for step in self.path:
            row = row.get(step) if isinstance(row, Mapping) else row[step] if row is not None else None
            if row is None:
                return None
        return row


def columns(kind: Any, causes: Sequence[str]) -> list[Column]:
    """The columns that rows of this type have."""
    return list(_columns(kind, causes, "", (), None))


def _columns(
    kind: Any, causes: Sequence[str], prefix: str, path: tuple[str | int, ...], unit: str | None
) -> Iterator[Column]:
    for key, hint in get_type_hints(kind).items():
        name, inner, of_key = f"{prefix}{key}", _without_none(hint), unit_of(key) or unit
        if is_typeddict(inner):
            yield from _columns(inner, causes, f"{name}.", (*path, key), of_key)
        elif get_origin(inner) is dict and get_origin(get_args(inner)[0]) is Literal:
            yield from (
                Column(f"{name}.{one}", "whole", of_key, (*path, key, one)) for one in get_args(get_args(inner)[0])
            )
        elif key == "causes_ns":
            yield from (
                Column(f"{name}.{cause}", "number", of_key, (*path, key, at)) for at, cause in enumerate(causes)
            )
        elif key == "directions":
            for at, way in enumerate(("up", "down")):
                yield from _columns(get_args(inner)[0], causes, f"{prefix}{way}.", (*path, key, at), of_key)
        elif (sort := _sort(inner)) is not None:
            yield Column(name, sort, of_key, (*path, key))


def _without_none(hint: Any) -> Any:
    parts = [one for one in get_args(hint) if one is not type(None)]
    return parts[0] if type(None) in get_args(hint) and len(parts) == 1 else hint


def _sort(hint: Any) -> Sort | None:
    return "text" if get_origin(hint) is Literal else SORTS.get(hint)


def unit_of(key: str) -> str | None:
    """The unit that the name of a key tells."""
    return next((unit for ending, unit in UNITS.items() if key.endswith(ending)), None)
