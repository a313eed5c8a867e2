"""Boots a guest and carries its output, until it is off."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tlplab import _core
from tlplab.errors import RunError
from tlplab.guest.console import Console, terminal_kept
from tlplab.guest.initramfs import archive
from tlplab.guest.kernel import Kernel, digest
from tlplab.result import GuestEnding
from tlplab.session import Finished

RUNNING: GuestEnding = "running"
# What a guest printed, each piece with its time in femtoseconds; how far simulated time is; how it has ended, if it has: by its name, for people, and
# with its script's status.
Heard: TypeAlias = "tuple[list[tuple[int, bytes]], int, tuple[GuestEnding, str, int | None] | None]"


@dataclass(frozen=True)
class Ended:
    """A guest that is off, and its run."""

    finished: Finished
    ending: GuestEnding
    """The guest's end; `running` if the user interrupted the guest, or if the run could not continue."""
    end: str
    """The same, for people: `powered off`, `died: …`, `lost its power: …`, `running`; why, where the run could not go on."""
    failed: bool
    """The run could not go on."""
    status: int | None
    """The exit status of its script."""
    last: Sequence[str]
    """The last lines that it printed."""


@dataclass
class Booted:
    """A guest that has its power, and its machine."""

    simulation: _core.Simulation
    console: Console[int]
    hashes: tuple[str, str]
    """SHA-256 of kernel and initial file system."""
    ending: GuestEnding = RUNNING
    end: str = RUNNING
    failed: bool = False
    status: int | None = None

    def hear(self, heard: Heard) -> None:
        """Takes the events of a part of the run."""
        printed, _, over = heard
        for time, data in printed:
            self.console.hear(time, data)
        if over is not None:
            self.ending, self.end, self.status = over

    def finish(self, *, interrupted: bool) -> Ended:
        """Ends the run."""
        self.console.end()
        end = f"failed: {self.end}" if self.failed else self.end
        became = (*self.hashes, self.console.hash.hexdigest(), self.ending, end, self.status)
        text = self.simulation.finish("interrupted" if interrupted else "guest-off", became)
        return Ended(Finished(text, interrupted), self.ending, self.end, self.failed, self.status, self.console.last)


def boot(
    experiment: str,
    kernel: Kernel,
    files: Mapping[str, bytes],
    *,
    show: Callable[[int, str], None],
    overrides: Sequence[str] = (),
    seed: int | None = None,
    machine: str | None = None,
    open_ends: Sequence[str] = (),
    share: str | None = None,
    interactive: bool = False,
    trace: str | None = None,
    pcap: str | None = None,
    within: str | None = None,
) -> Booted:
    """Gives the guest of `experiment`, or of one `machine` of it, its power, with `files` in /tlplab.

    `show` is called with each line of its console. `open_ends` are the NICs whose cables lead to other machines. `within` is a folder for
    the guest's files while it runs, if not that of all temporary files.
    """
    folder = tempfile.mkdtemp(prefix="tlplab-guest-", dir=within)
    initramfs = kernel.initramfs.read_bytes() + archive(files)
    (Path(folder) / "initramfs").write_bytes(initramfs)
    guest: dict[str, object] = {"kernel": str(kernel.path), "folder": folder, "interactive": interactive}
    if share is not None:
        guest["share"] = share
    simulation = _core.Simulation(
        experiment, overrides=overrides, seed=seed, trace=trace, pcap=pcap, guest=guest, machine=machine, open_ends=open_ends
    )  # fmt: skip
    return Booted(simulation, Console(show), (kernel.sha256, digest(initramfs)))


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
    keep_failed: bool = False,
) -> Ended:
    """Boots a guest as `boot` does, and goes on until it is off, or until Ctrl-C. `watch` is called with simulated time in femtoseconds now and then.

    Raises `RunError` if the run cannot go on; with `keep_failed`, it ends there.
    """
    booted = boot(
        experiment, kernel, files, show=show, overrides=overrides, seed=seed, share=share, interactive=interactive,
        trace=trace, pcap=pcap, within=within,
    )  # fmt: skip
    interrupted = False
    with terminal_kept(interactive):
        try:
            while booted.ending == RUNNING:
                heard = booted.simulation.advance_guest()
                booted.hear(heard)
                watch(heard[1])
        except KeyboardInterrupt:
            interrupted = True
        except RunError as error:
            if not keep_failed:
                raise
            booted.end, booted.failed, interrupted = str(error), True, True
        finally:
            booted.console.end()
    return booted.finish(interrupted=interrupted)
