"""The end of a command that the user ends: in order, with a report of the finished part, and with whole files."""

from __future__ import annotations

import signal
from types import FrameType

from tlplab.errors import INTERRUPTED

# A shell's number for a command that a signal ended is this and the signal's.
SIGNALLED = 128

_asked: list[int] = []


def end_in_order() -> None:
    """Makes SIGTERM, and a terminal that is closed, act as Ctrl-C but for the exit status: a command that serves, measures or writes reports its work."""
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        signal.signal(signal.SIGHUP, _interrupt)


def status_of(result: int) -> int:
    """The exit status of a command that ended with `result`: an interrupted one tells the signal, 130 for Ctrl-C, 143 for SIGTERM."""
    return SIGNALLED + _asked[0] if result == INTERRUPTED and _asked else result


def _interrupt(number: int, _frame: FrameType | None) -> None:
    _asked.append(number)
    raise KeyboardInterrupt
