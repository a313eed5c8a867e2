# SPDX-License-Identifier: MIT OR Apache-2.0
"""A tlpdma card's memory from Python, by libtlpdma: `make driver-test` builds the library, out/driver/libtlpdma.so.

    with tlpdma.Card("/dev/tlpdma0") as card:
        card.write(0x1000, b"to the card")
        assert card.read(0x1000, 11) == b"to the card"

Buffers are moved where they are, of any type that has the buffer protocol: bytes, bytearray, memoryview, numpy arrays. Calls let other threads
run meanwhile; each direction of a card may be used by a thread of its own, but for a simulated card.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

# Beside this file, or where the project builds it.
PLACES = (Path(__file__).parent, Path(__file__).resolve().parents[3] / "out/driver")
NAME = "libtlpdma.so"
MESSAGE_BYTES = 512


class Description(NamedTuple):
    """A card and its events."""

    simulated: bool
    vfio: bool
    """This program drives it."""
    memory: int
    """Bytes of the card's memory."""
    tags: int
    """Reads of the card that can be under way."""
    mps: int
    mrrs: int
    """Largest payload and read request, in bytes."""
    vectors: int
    """Of MSI-X; 0 for a legacy interrupt."""
    interrupts: tuple[int, int]
    """To the card, from the card."""
    missed: tuple[int, int]
    """Transfers that were done, but had not interrupted in time."""


class _Description(ctypes.Structure):
    _fields_ = (
        ("simulated", ctypes.c_bool),
        ("vfio", ctypes.c_bool),
        ("memory", ctypes.c_uint64),
        ("tags", ctypes.c_uint),
        ("mps", ctypes.c_uint),
        ("mrrs", ctypes.c_uint),
        ("vectors", ctypes.c_uint),
        ("interrupts", ctypes.c_uint64 * 2),
        ("missed", ctypes.c_uint64 * 2),
    )


def _load(path: str | os.PathLike[str] | None) -> ctypes.CDLL:
    if path is None:
        path = next((place / NAME for place in PLACES if (place / NAME).exists()), NAME)
    library = ctypes.CDLL(os.fspath(path), use_errno=True)
    card, address, size, memory = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p
    strings = ctypes.POINTER(ctypes.c_char_p)
    for name, result, arguments in (
        ("tlpdma_open", card, (ctypes.c_char_p, strings, ctypes.c_char_p, size)),
        ("tlpdma_close", None, (card,)),
        ("tlpdma_error", ctypes.c_char_p, (card,)),
        ("tlpdma_describe", ctypes.c_int, (card, ctypes.POINTER(_Description))),
        ("tlpdma_to_card", ctypes.c_int, (card, address, memory, size)),
        ("tlpdma_from_card", ctypes.c_int, (card, address, memory, size)),
        ("tlpdma_register", ctypes.c_int, (card, memory, size)),
        ("tlpdma_unregister", None, (card, memory)),
        ("tlpdma_map", memory, (card, address, size)),
        ("tlpdma_unmap", None, (card, memory, size)),
        ("tlpdma_clock", ctypes.c_uint64, (card,)),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class _Memory:
    """A buffer that stays where it is as long as this lives."""

    def __init__(self, data: object, *, writable: bool) -> None:
        view = memoryview(data)  # type: ignore[arg-type]
        if not view.c_contiguous:
            raise ValueError("the buffer is not contiguous: copy it first")
        self.bytes = view.nbytes
        if not view.readonly:
            self.held: object = (ctypes.c_char * self.bytes).from_buffer(view)
            self.at = ctypes.addressof(self.held)  # type: ignore[arg-type]
        elif writable:
            raise TypeError("the buffer cannot be written: take a bytearray, or an array")
        else:
            # Nothing writes to it, so the object itself may be read.
            self.held = data if isinstance(data, bytes) else bytes(view)
            self.at = ctypes.cast(ctypes.c_char_p(self.held), ctypes.c_void_p).value or 0


class Card:
    """A card: `/dev/tlpdma0`, `vfio:0000:01:00.0`, or `sim:EXPERIMENT.toml[#DEVICE]`."""

    def __init__(self, where: str, settings: Sequence[str] = (), library: str | os.PathLike[str] | None = None) -> None:
        """Opens it; `settings` override keys of an experiment, `KEY=VALUE` each. Raises OSError."""
        self._library = _load(library)
        message = ctypes.create_string_buffer(MESSAGE_BYTES)
        strings = (ctypes.c_char_p * (len(settings) + 1))(*(text.encode() for text in settings), None)
        ctypes.set_errno(0)
        self._card = self._library.tlpdma_open(where.encode(), strings, message, len(message))
        if not self._card:
            raise OSError(ctypes.get_errno() or errno.ENODEV, message.value.decode(errors="replace"))

    def __enter__(self) -> Card:
        """The card itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it."""
        self.close()

    def close(self) -> None:
        """Closes it; a second time does nothing."""
        if self._card:
            self._library.tlpdma_close(self._card)
            self._card = None

    def _open(self) -> int:
        if not self._card:
            raise ValueError("the card is closed")
        return int(self._card)

    def _check(self, result: int) -> None:
        if result:
            raise OSError(ctypes.get_errno(), self._library.tlpdma_error(self._card).decode(errors="replace"))

    def write(self, address: int, data: object) -> None:
        """Moves all of a buffer to an address of the card. Raises OSError."""
        memory = _Memory(data, writable=False)
        self._check(self._library.tlpdma_to_card(self._open(), address, memory.at, memory.bytes))

    def readinto(self, address: int, buffer: object) -> None:
        """Fills a buffer from an address of the card. Raises OSError."""
        memory = _Memory(buffer, writable=True)
        self._check(self._library.tlpdma_from_card(self._open(), address, memory.at, memory.bytes))

    def read(self, address: int, length: int) -> bytes:
        """So many bytes from an address of the card. Raises OSError."""
        buffer = bytearray(length)
        self.readinto(address, buffer)
        return bytes(buffer)

    def register(self, buffer: object) -> None:
        """Maps a buffer for the card once, for many transfers, until it is unregistered; it must live as long. Raises OSError."""
        memory = _Memory(buffer, writable=True)
        self._check(self._library.tlpdma_register(self._open(), memory.at, memory.bytes))

    def unregister(self, buffer: object) -> None:
        """Undoes `register`."""
        self._library.tlpdma_unregister(self._open(), _Memory(buffer, writable=True).at)

    @contextlib.contextmanager
    def words(self, address: int, length: int) -> Iterator[ctypes.Array[ctypes.c_uint32]]:
        """The card's memory at an address, or a design's registers there, by loads and stores of a doubleword: whole pages, within one MiB.

        Not after the end of `with`. Raises OSError; ENODEV for a simulated card.
        """
        at = self._library.tlpdma_map(self._open(), address, length)
        if not at:
            self._check(-1)
        try:
            yield (ctypes.c_uint32 * (length // 4)).from_address(at)
        finally:
            self._library.tlpdma_unmap(self._card, at, length)

    def describe(self) -> Description:
        """The description of the card. Raises OSError."""
        found = _Description()
        self._check(self._library.tlpdma_describe(self._open(), ctypes.byref(found)))
        interrupts, missed = ((pair[0], pair[1]) for pair in (found.interrupts, found.missed))
        return Description(
            found.simulated,
            found.vfio,
            found.memory,
            found.tags,
            found.mps,
            found.mrrs,
            found.vectors,
            interrupts,
            missed,
        )

    @property
    def clock(self) -> int:
        """The clock that goes with the card, in picoseconds: the system's, or simulated time."""
        return int(self._library.tlpdma_clock(self._open()))
