"""The offsets of fields in the kernel's structures: from its BTF, or from a profile in TOML."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from difflib import get_close_matches

from tlplab.errors import ExperimentError
from tlplab.introspect.btf import Btf

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# `task_struct.comm`, since Linux 2.4.
COMM_BYTES = 16
# A structure that is larger is none of the kernel's.
LARGEST_OFFSET = 1 << 20


@dataclass(frozen=True)
class Task:
    """Offsets in `task_struct`, in bytes."""

    state: int
    """`__state`, `state` before Linux 5.14; the lower four bytes of it are read."""
    flags: int
    tasks: int
    mm: int
    exit_state: int
    pid: int
    real_parent: int
    comm: int


@dataclass(frozen=True)
class Mm:
    """Offsets in `mm_struct`, in bytes."""

    pgd: int
    start_code: int
    end_code: int


@dataclass(frozen=True)
class ListHead:
    """Offsets in `list_head`, in bytes."""

    next: int
    prev: int


@dataclass(frozen=True)
class Layout:
    """All offsets that are needed of a kernel's structures."""

    task_struct: Task
    mm_struct: Mm
    list_head: ListHead


PARTS = {"task_struct": Task, "mm_struct": Mm, "list_head": ListHead}
# What a field was called before, and how many bytes it may have.
OLDER = {"state": ("__state", "state")}
BYTES = {"state": (4, 8), "flags": (4,), "tasks": (16,), "exit_state": (4,), "pid": (4,), "comm": (COMM_BYTES,)}


def layout_from_btf(btf: Btf, name: str) -> Layout:
    """Takes the offsets from BTF. Raises `ExperimentError` with the field that is missing."""
    parts: dict[str, dict[str, int]] = {}
    for struct, part in PARTS.items():
        members = btf.members(struct)
        for field in fields(part):
            member = next((members[n] for n in OLDER.get(field.name, (field.name,)) if n in members), None)
            if member is None:
                raise ExperimentError(
                    name, None, None, f"{struct}.{field.name}", "there is no such field", "write a profile instead"
                )
            if member.size not in BYTES.get(field.name, (8,)):
                message = f"{member.size} bytes long, which no kernel of a 64-bit machine has"
                raise ExperimentError(name, None, None, f"{struct}.{field.name}", message)
            parts.setdefault(struct, {})[field.name] = member.offset
    return assembled(parts)


def assembled(parts: dict[str, dict[str, int]]) -> Layout:
    """The layout of offsets that are all there."""
    return Layout(Task(**parts["task_struct"]), Mm(**parts["mm_struct"]), ListHead(**parts["list_head"]))


def read_profile(path: str) -> Layout:
    """Reads a profile. Raises `OSError` and `ExperimentError`."""
    with open(path, "rb") as file:
        try:
            found = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ExperimentError(path, None, None, "", str(error)) from None
    expect(path, "", found, list(PARTS))
    for struct, part in PARTS.items():
        table = found[struct]
        if not isinstance(table, dict):
            raise ExperimentError(path, None, None, struct, "this must be a table of offsets")
        expect(path, f"{struct}.", table, [field.name for field in fields(part)])
        for key, value in table.items():
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST_OFFSET:
                message = f"{value!r} is not an offset in bytes from 0 to {LARGEST_OFFSET}"
                raise ExperimentError(path, None, None, f"{struct}.{key}", message)
    return assembled(found)


def expect(path: str, prefix: str, table: dict[str, object], names: list[str]) -> None:
    """Refuses unknown keys, and names the missing ones."""
    for key in table:
        if key not in names:
            close = get_close_matches(key, names, 1)
            hint = f"did you mean {close[0]}?" if close else f"the keys are {', '.join(names)}"
            raise ExperimentError(path, None, None, prefix + key, "there is no such key", hint)
    for name in names:
        if name not in table:
            raise ExperimentError(
                path, None, None, prefix + name, "missing", "tlplab introspect layout writes a whole profile from BTF"
            )


def as_profile(layout: Layout, source: str) -> str:
    """The layout as a profile."""
    lines = [f"# Offsets in bytes, from {source}."]
    for struct, part in PARTS.items():
        values = getattr(layout, struct)
        lines += ["", f"[{struct}]", *(f"{field.name} = {getattr(values, field.name)}" for field in fields(part))]
    return "\n".join(lines) + "\n"
