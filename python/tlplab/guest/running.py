"""Boots a guest and carries what it prints, until it is off."""

from __future__ import annotations

import hashlib
import sys
import tempfile
import termios
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tlplab import _core
from tlplab.guest.initramfs import archive
from tlplab.guest.kernel import Kernel, digest
from tlplab.session import Finished

RUNNING = "running"
# Lines of the console that are kept, to be shown where a guest ends badly.
REMEMBERED = 20


@dataclass
class Console:
    """What a guest prints, as lines with the simulated time at which each began."""

    show: Callable[[int, str], None]
    """Called with each line and its time in femtoseconds."""
    hash: hashlib._Hash = field(default_factory=hashlib.sha256)
    """Of every byte."""
    last: list[str] = field(default_factory=list)
    """The last lines."""
    _line: bytes = b""
    _begun: int = 0

    def hear(self, time: int, data: bytes) -> None:
        """The guest printed `data`."""
        self.hash.update(data)
        for piece in data.splitlines(keepends=True):
            if not self._line:
                self._begun = time
            self._line += piece
            if piece.endswith(b"\n"):
                self.end()

    def end(self) -> None:
        """The line that was begun is over."""
        if self._line:
            text = self._line.decode(errors="replace").rstrip("\r\n")
            self.last = [*self.last[-REMEMBERED + 1 :], text]
            self._line = b""
            self.show(self._begun, text)


@dataclass(frozen=True)
class Ended:
    """A guest that is off, and its run."""

    finished: Finished
    end: str
    """`powered off`, `died: …`, `lost its power: …`, `running`."""
    status: int | None
    """The exit status of its script."""
    last: Sequence[str]
    """The last lines that it printed."""


def run(
    experiment: str,
    kernel: Kernel,
    files: Mapping[str, bytes],
    *,
    show: Callable[[int, str], None],
    watch: Callable[[int], None] = lambda _: None,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    share: str | None = None,
    interactive: bool = False,
    trace: str | None = None,
    pcap: str | None = None,
    within: str | None = None,
) -> Ended:
    """Boots the guest of `experiment` with `files` in /tlplab, and goes on until it is off, or until Ctrl-C.

    `show` is called with each line of its console, `watch` with simulated time in femtoseconds now and then. `within` is a folder for what the
    guest needs while it runs, if not that of all temporary files.
    """
    folder = tempfile.mkdtemp(prefix="tlplab-guest-", dir=within)
    initramfs = kernel.initramfs.read_bytes() + archive(files)
    (Path(folder) / "initramfs").write_bytes(initramfs)
    guest: dict[str, object] = {"kernel": str(kernel.path), "folder": folder, "interactive": interactive}
    if share is not None:
        guest["share"] = share
    simulation = _core.Simulation(experiment, overrides=overrides, seed=seed, trace=trace, pcap=pcap, guest=guest)
    with terminal_kept(interactive):
        return _run(simulation, kernel, digest(initramfs), Console(show), watch)


@contextmanager
def terminal_kept(interactive: bool) -> Iterator[None]:
    """An interactive guest sets the terminal to its liking; afterwards it is as it was."""
    if not interactive or not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _run(
    simulation: _core.Simulation, kernel: Kernel, initramfs: str, console: Console, watch: Callable[[int], None]
) -> Ended:
    end, status, interrupted = RUNNING, None, False
    try:
        while end == RUNNING:
            heard, now, over = simulation.advance_guest()
            for time, data in heard:
                console.hear(time, data)
            watch(now)
            if over is not None:
                end, status = over
    except KeyboardInterrupt:
        interrupted = True
    finally:
        console.end()
    guest_result = (kernel.sha256, initramfs, console.hash.hexdigest(), end, status)
    text = simulation.finish("interrupted" if interrupted else "guest-off", guest_result)
    return Ended(Finished(text, interrupted), end, status, console.last)
