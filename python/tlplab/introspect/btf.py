"""BTF, the kernel's description of its own types: `/sys/kernel/btf/vmlinux`, or the section `.BTF` of a kernel's ELF file.

The format is that of the kernel's Documentation/bpf/btf.rst. Only the part about the offsets of structures' members is
kept. A file may be damaged or made to harm: every offset is checked, and chains of types end.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tlplab.errors import ExperimentError
from tlplab.introspect import elf

MAGIC = 0xEB9F
HEADER = "HBBIIIII"
# A kernel's is 3 to 10 MiB; its whole ELF file with debug information less than a gigabyte.
LARGEST = 256 << 20

INT, PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT = range(1, 12)
FUNC, FUNC_PROTO, VAR, DATASEC, FLOAT, DECL_TAG, TYPE_TAG, ENUM64 = range(12, 20)
# Bytes behind a type's 12: a fixed number, or that many for each of its members.
FIXED = {INT: 4, ARRAY: 12, VAR: 4, DECL_TAG: 4}
EACH = {STRUCT: 12, UNION: 12, ENUM: 8, FUNC_PROTO: 8, DATASEC: 12, ENUM64: 12}
SIZED = {INT, STRUCT, UNION, ENUM, FLOAT, ENUM64, DATASEC}
ALIASES = {TYPEDEF, VOLATILE, CONST, RESTRICT, TYPE_TAG}
POINTER_BYTES = 8
# Of types that only rename others, of arrays in arrays, of structures without a name in one another.
DEEPEST = 32
# Of one structure with those inside it; the kernel's largest have some hundreds.
MOST_MEMBERS = 65_536


@dataclass(frozen=True)
class Member:
    """The offset of a member in its structure, and its size, in bytes."""

    offset: int
    size: int


class Btf:
    """The structures of a kernel."""

    def __init__(self, data: bytes, name: str) -> None:
        """`name` is for messages. Raises `ExperimentError`."""
        self._name = name
        self._data = data
        if len(data) < 24:
            raise self._wrong(0, "a BTF file of fewer than 24 bytes")
        orders = [order for order in "<>" if struct.unpack_from(order + "H", data)[0] == MAGIC]
        if not orders:
            raise self._wrong(0, "neither BTF nor an ELF file", "give /sys/kernel/btf/vmlinux of the target machine")
        self._order = orders[0]
        _, version, _, length, types, types_size, strings, strings_size = struct.unpack_from(self._order + HEADER, data)
        if version != 1:
            raise self._wrong(2, f"BTF version {version}; only version 1 is supported")
        self._strings = self._part(length + strings, strings_size, "strings")
        self._part(length + types, types_size, "types")
        self._at = [0]  # where each type stands; number 0 is void
        self._structs: dict[bytes, int] = {}
        self._read_types(length + types, length + types + types_size)

    def _wrong(self, at: int, message: str, hint: str | None = None) -> ExperimentError:
        return ExperimentError(self._name, None, None, f"byte {at:#x}", message, hint)

    def _part(self, at: int, size: int, what: str) -> bytes:
        if at + size > len(self._data):
            raise self._wrong(
                at, f"the {what} would end at byte {at + size:#x}, but the file ends at {len(self._data):#x}"
            )
        return self._data[at : at + size]

    def _read_types(self, at: int, end: int) -> None:
        read = struct.Struct(self._order + "II").unpack_from
        while at < end:
            if at + 12 > end:
                raise self._wrong(at, "the types are truncated")
            name, info = read(self._data, at)
            kind = info >> 24 & 0x1F
            if not INT <= kind <= ENUM64:
                raise self._wrong(at, f"type {len(self._at)} has the unknown kind {kind}")
            if kind in (STRUCT, UNION) and name:
                self._structs.setdefault(self._string(name), len(self._at))
            self._at.append(at)
            at += 12 + FIXED.get(kind, 0) + EACH.get(kind, 0) * (info & 0xFFFF)
        if at != end:
            raise self._wrong(end, "the types are truncated")

    def _string(self, at: int) -> bytes:
        end = self._strings.find(b"\0", at)
        return self._strings[at:end] if end >= 0 else b""

    def _type(self, number: int) -> tuple[int, int, int, int, int]:
        """The offset of a type, its kind, its number of members, its flag, and its size or the type to which it refers."""
        if not 0 < number < len(self._at):
            raise self._wrong(0, f"type {number} does not exist; there are {len(self._at) - 1}")
        at = self._at[number]
        _, info, more = struct.unpack_from(self._order + "III", self._data, at)
        return at, info >> 24 & 0x1F, info & 0xFFFF, info >> 31, more

    def _size(self, number: int) -> int:
        """Bytes that a value of this type takes."""
        times = 1
        for _ in range(DEEPEST):
            at, kind, _, _, more = self._type(number)
            if kind == PTR:
                return times * POINTER_BYTES
            if kind in SIZED:
                return times * more
            if kind == ARRAY:
                number, _, count = struct.unpack_from(self._order + "III", self._data, at + 12)
                times *= count
            elif kind in ALIASES:
                number = more
            else:
                raise self._wrong(at, f"a value of kind {kind} has no size")
        raise self._wrong(0, f"type {number} refers to itself")

    def has(self, name: str) -> bool:
        """True if there is such a structure."""
        return name.encode() in self._structs

    def members(self, name: str) -> dict[str, Member]:
        """The members of a structure, those of structures without a name inside it among them; no bit fields.

        Raises `ExperimentError`.
        """
        number = self._structs.get(name.encode())
        if number is None:
            raise ExperimentError(
                self._name, None, None, name, "there is no such structure", "give the BTF of a Linux kernel"
            )
        found: dict[str, Member] = {}
        waiting = [(number, 0, 0)]
        looked = 0
        while waiting:
            number, base, depth = waiting.pop()
            at, _, count, flag, _ = self._type(number)
            looked += count
            if depth > DEEPEST or looked > MOST_MEMBERS:
                raise self._wrong(at, f"{name} has no end")
            for n in range(count):
                label, kind, bits = struct.unpack_from(self._order + "III", self._data, at + 12 + 12 * n)
                wide, bits = (bits >> 24, bits & 0xFFFFFF) if flag else (0, bits)
                if wide or bits % 8:
                    continue
                if label:
                    found.setdefault(
                        self._string(label).decode("ascii", "replace"), Member(base + bits // 8, self._size(kind))
                    )
                elif (inner := self._struct_behind(kind)) is not None:
                    waiting.append((inner, base + bits // 8, depth + 1))
        return found

    def _struct_behind(self, number: int) -> int | None:
        """The structure or union that a member without a name is."""
        for _ in range(DEEPEST):
            _, kind, _, _, more = self._type(number)
            if kind in (STRUCT, UNION):
                return number
            if kind not in ALIASES:
                return None
            number = more
        return None


def read_btf(path: str) -> Btf:
    """Reads a BTF file, or the section of an ELF file. Raises `OSError` and `ExperimentError`."""
    with open(path, "rb") as file:

        def read_at(offset: int, size: int) -> bytes:
            file.seek(min(offset, 2**63 - 1))
            return file.read(min(size, LARGEST + 1))

        if read_at(0, 4) == elf.MAGIC:
            try:
                found = elf.read_elf(read_at)
            except elf.ElfError as error:
                raise ExperimentError(path, None, None, "", str(error)) from None
            section = next((s for s in found.sections if s.name == ".BTF"), None)
            if section is None:
                hint = "the kernel was built without CONFIG_DEBUG_INFO_BTF; write a profile instead"
                raise ExperimentError(path, None, None, "", "the ELF file has no section .BTF", hint)
            data = read_at(section.offset, section.size)
        else:
            data = read_at(0, LARGEST + 1)
    if len(data) > LARGEST:
        raise ExperimentError(path, None, None, "", f"larger than {LARGEST >> 20} MiB, and so not the BTF of a kernel")
    return Btf(data, path)
