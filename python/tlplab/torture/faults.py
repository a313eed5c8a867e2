"""What can happen to a TLP, and to which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tlplab.torture.classes import COMPLETIONS, INTERRUPT, Tlp

WITH_DATA = ("MWr", "CfgWr0", "CplD")
NON_POSTED = ("MRd", "CfgRd0", "CfgWr0")
# In femtoseconds.
LATE = 10**11
# How long a link is away that comes back, in femtoseconds.
AWAY = 10**12


@dataclass(frozen=True)
class Fault:
    """Something that happens to one TLP, or at its time."""

    name: str
    doc: str
    hits: Callable[[Tlp], bool]
    """Whether it can be done to a TLP."""
    to_toml: Callable[[Tlp], str]
    """Its entry in the experiment's `fault`."""


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


def _is_request(tlp: Tlp) -> bool:
    return tlp.kind in (*NON_POSTED, "MWr")


FAULTS = (
    Fault("lost", "It never reaches the transaction layer: a read times out, a write is gone.",
          lambda tlp: _is_request(tlp) or _is_completion(tlp), _damage("lose")),
    Fault("corrupted", "It arrives with a bad LCRC, and is sent again.", lambda _: True, _damage("corrupt")),
    Fault("poisoned", "Its data are marked as bad.", lambda tlp: tlp.kind in WITH_DATA, _damage("poison")),
    Fault("UR", "It is answered with Unsupported Request.", lambda tlp: tlp.kind in NON_POSTED, _damage("refuse")),
    Fault("CA", "It is answered with Completer Abort.", lambda tlp: tlp.kind in NON_POSTED, _damage("abort")),
    Fault("misaddressed", "It names an address that nobody claims.",
          lambda tlp: tlp.kind in ("MRd", "MWr"), _damage("address")),
    Fault("unexpected", "It has a tag that nobody waits for.", _is_completion, _damage("tag")),
    Fault("malformed", "Its Length is not that of its data: the receiver discards it.",
          lambda tlp: tlp.kind in WITH_DATA, _damage("length")),
    Fault("all ones", "All bits of its data are ones, as of a device that is not there.",
          lambda tlp: tlp.kind == "CplD", _damage("ones")),
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
