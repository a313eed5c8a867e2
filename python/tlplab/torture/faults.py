"""The faults of TLPs, and the TLPs that each can hit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tlplab.torture.classes import COMPLETIONS, INTERRUPT, WORD, Tlp

WITH_DATA = ("MWr", "CfgWr0", "CplD")
NON_POSTED = ("MRd", "CfgRd0", "CfgWr0")
# In femtoseconds.
LATE = 10**11
# How long a link is away that comes back, in femtoseconds.
AWAY = 10**12


@dataclass(frozen=True)
class Change:
    """Bits of a TLP's data that are inverted."""

    byte: int
    """The first changed byte, of the TLP's payload."""
    flip: int
    """The bits, of a little-endian word that begins there."""


@dataclass(frozen=True)
class Fault:
    """Something that happens to one TLP, or at its time."""

    name: str
    doc: str
    hits: Callable[[Tlp], bool]
    """True if the fault can happen to a TLP."""
    to_toml: Callable[[Tlp], str]
    """Its entry in the experiment's `fault`."""
    changes: Callable[[Tlp], Iterable[Change]] | None = None
    """Of a fault in data: each place that it can be done to, one a case."""

    def entry(self, tlp: Tlp, change: Change | None) -> str:
        """Its entry in the experiment's `fault`, of a fault in data at this place."""
        entry = self.to_toml(tlp)
        return entry if change is None else f"{entry[:-1]}, byte = {change.byte}, flip = {change.flip:#x}}}"


def _damage(damage: str) -> Callable[[Tlp], str]:
    """The entry that damages a TLP."""
    return lambda tlp: (
        f'{{link = "{tlp.device}", direction = "{tlp.direction}", tlp = {tlp.number}, of = "{tlp.kind}", damage = "{damage}"}}'
    )


def _late(tlp: Tlp) -> str:
    """The entry that makes a TLP late."""
    return f'{_damage("late")(tlp)[:-1]}, by = "{ns(LATE)}"}}'


def _overtaken(tlp: Tlp) -> str:
    """The entry that delays the writes before an interrupt."""
    return _late(replace(tlp, number=tlp.number - 1))


def _words(tlp: Tlp) -> Iterable[tuple[int, int]]:
    """The words of a TLP's data, with their places."""
    return ((at, int.from_bytes(tlp.data[at : at + WORD], "little")) for at in range(0, len(tlp.data), WORD))


def _zeroes(tlp: Tlp) -> Iterable[Change]:
    """Each word is zero, that is not."""
    return (Change(at, word) for at, word in _words(tlp) if word)


def _inverted(tlp: Tlp) -> Iterable[Change]:
    """Each word is another, in all bits."""
    return (Change(at, 0xFFFF_FFFF) for at, _ in _words(tlp))


def _bytes(tlp: Tlp) -> Iterable[Change]:
    """Each byte is another, in all bits."""
    return (Change(at, 0xFF) for at in range(len(tlp.data)))


def _away(how: str, *, back: bool) -> Callable[[Tlp], str]:
    """The entry that takes the link away, or holds it in reset, when a TLP is sent."""

    def entry(tlp: Tlp) -> str:
        until = f', until = "{ns(tlp.time + AWAY)}"' if back else ""
        return f'{{link = "{tlp.device}", {how} = "{ns(tlp.time)}"{until}}}'

    return entry


def _narrow(tlp: Tlp) -> str:
    """The entry that leaves a link one lane."""
    return f'{{link = "{tlp.device}", narrow = "{ns(tlp.time)}", lanes = 1}}'


def ns(time: int) -> str:
    """A time in femtoseconds for an experiment."""
    return f"{time // 10**6}ns"


def _is_completion(tlp: Tlp) -> bool:
    return tlp.kind in COMPLETIONS


def _has_data(tlp: Tlp) -> bool:
    return tlp.kind in WITH_DATA


def _is_request(tlp: Tlp) -> bool:
    return tlp.kind in (*NON_POSTED, "MWr")


FAULTS = (
    Fault("lost", "The TLP never reaches the transaction layer: a read times out, a write is lost.",
          lambda tlp: _is_request(tlp) or _is_completion(tlp), _damage("lose")),
    Fault("corrupted", "The TLP arrives with a bad LCRC and is replayed.", lambda _: True, _damage("corrupt")),
    Fault("poisoned", "The TLP is poisoned (EP).", _has_data, _damage("poison")),
    Fault("UR", "The request is completed with Unsupported Request.", lambda tlp: tlp.kind in NON_POSTED, _damage("refuse")),
    Fault("CA", "The request is completed with Completer Abort.", lambda tlp: tlp.kind in NON_POSTED, _damage("abort")),
    Fault("misaddressed", "The TLP has an address that no component claims.",
          lambda tlp: tlp.kind in ("MRd", "MWr"), _damage("address")),
    Fault("unexpected", "The completion has a tag of no outstanding request.", _is_completion, _damage("tag")),
    Fault("malformed", "The Length field differs from the length of the data: the receiver discards the TLP.",
          _has_data, _damage("length")),
    Fault("all ones", "All bits of the data are ones, as from an absent device.",
          lambda tlp: tlp.kind == "CplD", _damage("ones")),
    Fault("zero", "A word of the data is zero, which no check detects.", _has_data, _damage("data"), _zeroes),
    Fault("inverted", "All bits of a word of the data are inverted, which no check detects.", _has_data, _damage("data"), _inverted),
    Fault("byte", "All bits of a byte are inverted in data that a device writes to or reads from memory.",
          lambda tlp: _has_data(tlp) and "memory" in tlp.where, _damage("data"), _bytes),
    Fault("late", "The TLP is 100 µs late, and later TLPs pass it.", lambda _: True, _late),
    Fault("early", "An interrupt arrives 100 µs before the data written ahead of it.",
          lambda tlp: tlp.where == INTERRUPT and tlp.before.startswith("memory"), _overtaken),
    Fault("twice", "The TLP arrives twice, such as a spurious interrupt.", lambda _: True, _damage("twice")),
    Fault("removed", "The device is removed when the TLP is sent.", lambda _: True, _away("down", back=False)),
    Fault("replugged", "The device is removed when the TLP is sent, and inserted again 1 ms later.",
          lambda _: True, _away("down", back=True)),
    Fault("hot reset", "The port above resets the device for 1 ms when the TLP is sent.",
          lambda _: True, _away("reset", back=True)),
    Fault("narrowed", "The link has one lane from the time when the TLP is sent.", lambda tlp: tlp.lanes > 1, _narrow),
)  # fmt: skip
