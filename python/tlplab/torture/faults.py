"""What can happen to a TLP, and to which."""

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
    """The first one, of those that the TLP carries."""
    flip: int
    """The bits, of a little-endian word that begins there."""


@dataclass(frozen=True)
class Fault:
    """Something that happens to one TLP, or at its time."""

    name: str
    doc: str
    hits: Callable[[Tlp], bool]
    """Whether it can be done to a TLP."""
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
    """The entry that makes what was sent before an interrupt late."""
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
    Fault("lost", "It never reaches the transaction layer: a read times out, a write is gone.",
          lambda tlp: _is_request(tlp) or _is_completion(tlp), _damage("lose")),
    Fault("corrupted", "It arrives with a bad LCRC, and is sent again.", lambda _: True, _damage("corrupt")),
    Fault("poisoned", "Its data are marked as bad.", _has_data, _damage("poison")),
    Fault("UR", "It is answered with Unsupported Request.", lambda tlp: tlp.kind in NON_POSTED, _damage("refuse")),
    Fault("CA", "It is answered with Completer Abort.", lambda tlp: tlp.kind in NON_POSTED, _damage("abort")),
    Fault("misaddressed", "It names an address that no component claims.",
          lambda tlp: tlp.kind in ("MRd", "MWr"), _damage("address")),
    Fault("unexpected", "It has a tag of no outstanding request.", _is_completion, _damage("tag")),
    Fault("malformed", "Its Length is not that of its data: the receiver discards it.",
          _has_data, _damage("length")),
    Fault("all ones", "All bits of its data are ones, as of a device that is not there.",
          lambda tlp: tlp.kind == "CplD", _damage("ones")),
    Fault("zero", "A word of its data is zero, and nobody detects it.", _has_data, _damage("data"), _zeroes),
    Fault("inverted", "All bits of a word of its data are inverted, and nobody detects it.", _has_data, _damage("data"), _inverted),
    Fault("byte", "All bits of a byte are inverted, of data that a device writes to memory or reads there.",
          lambda tlp: _has_data(tlp) and "memory" in tlp.where, _damage("data"), _bytes),
    Fault("late", "It comes 100 us late, and what is sent behind it passes.", lambda _: True, _late),
    Fault("early", "An interrupt comes 100 us before the data that were written before it.",
          lambda tlp: tlp.where == INTERRUPT and tlp.before.startswith("memory"), _overtaken),
    Fault("twice", "It comes twice: an interrupt that nothing happened for.", lambda _: True, _damage("twice")),
    Fault("removed", "The device is pulled out when it is sent.", lambda _: True, _away("down", back=False)),
    Fault("replugged", "The device is pulled out when it is sent, and put back 1 ms later.",
          lambda _: True, _away("down", back=True)),
    Fault("hot reset", "The port above resets the device for 1 ms, from when it is sent.",
          lambda _: True, _away("reset", back=True)),
    Fault("narrowed", "The link has one lane from when it is sent.", lambda tlp: tlp.lanes > 1, _narrow),
)  # fmt: skip
