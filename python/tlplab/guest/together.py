"""Several guests of one experiment, each with a machine, on Ethernet cables."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tlplab import _core
from tlplab.guest.kernel import Kernel
from tlplab.guest.running import RUNNING, Booted, Ended, boot
from tlplab.outline import Cable

# Names the capture of what goes over the cables, where machines name the others.
CABLES = "cables"


def of_machine(path: str | None, machine: str) -> str | None:
    """The file of one machine, where `path` was asked for: `run.pcapng` becomes `run.left.pcapng`."""
    if path is None:
        return None
    whole = Path(path)
    return str(whole.with_name(f"{whole.stem}.{machine}{whole.suffix}"))


@dataclass
class Lines:
    """The output of several guests, in the order of simulated time. Each machine has its own, so a line waits until all are as far."""

    show: Callable[[int, str, str], None]
    """Called with each line's time in femtoseconds, machine and text."""
    waiting: list[tuple[int, str, str]] = field(default_factory=list)

    def add(self, machine: str) -> Callable[[int, str], None]:
        """Takes the lines of a machine."""
        return lambda time, text: self.waiting.append((time, machine, text))

    def pass_on(self, until: int | None) -> None:
        """All machines are as far as this; `None`: they have ended."""
        self.waiting.sort(key=lambda line: line[0])
        while self.waiting and (until is None or self.waiting[0][0] <= until):
            self.show(*self.waiting.pop(0))


def run_together(
    experiment: str,
    kernel: Kernel,
    files: Mapping[str, Mapping[str, bytes]],
    cables: Sequence[Cable],
    *,
    show: Callable[[int, str, str], None],
    watch: Callable[[int], None] = lambda _: None,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    share: str | None = None,
    trace: str | None = None,
    pcap: str | None = None,
    within: str | None = None,
) -> tuple[dict[str, Ended], int]:
    """Boots the guest of each machine with its `files`, and goes on until all are off, or until Ctrl-C. Each, and the frames that went over cables.

    `show` is called with each line of a console: its time in femtoseconds, the machine and the text. Traces and captures are a file for each
    machine (`of_machine`), and one more capture has the frames on the cables.
    """
    lines = Lines(show)
    ends = [end for cable in cables for end in cable["ends"]]
    booted = {
        machine: boot(
            experiment, kernel, files[machine], show=lines.add(machine), overrides=overrides, seed=seed, machine=machine,
            open_ends=[device for at, device in ends if at == index], share=share, trace=of_machine(trace, machine),
            pcap=of_machine(pcap, machine), within=within,
        )
        for index, machine in enumerate(files)
    }  # fmt: skip
    joined = [(cable["name"], (plug_of(cable, 0), plug_of(cable, 1)), cable["delay_fs"]) for cable in cables]
    machines = [(name, one.simulation) for name, one in booted.items()]
    cabling = _core.Cabling(machines, joined, pcap=of_machine(pcap, CABLES))
    interrupted = go_on(cabling, list(booted.values()), lines, watch)
    ended = {machine: one.finish(interrupted=interrupted) for machine, one in booted.items()}
    lines.pass_on(None)
    return ended, cabling.finish()


def plug_of(cable: Cable, end: int) -> tuple[int, str]:
    """An end of a cable: the machine's number and the NIC's name."""
    machine, device = cable["ends"][end]
    return machine, device


def go_on(cabling: _core.Cabling, booted: Sequence[Booted], lines: Lines, watch: Callable[[int], None]) -> bool:
    """Until all are off; true if it was interrupted."""
    try:
        while any(one.ending == RUNNING for one in booted):
            heard = cabling.advance()
            for one, of_one in zip(booted, heard, strict=True):
                one.hear(of_one)
            now = min((time for _, time, over in heard if over is None), default=None)
            lines.pass_on(now)
            watch(now or 0)
    except KeyboardInterrupt:
        return True
    finally:
        lines.pass_on(None)
    return False


def document(ended: Mapping[str, Ended], cables: Sequence[Cable], frames: int) -> str:
    """The result documents of all machines, and the cables between them, as one."""
    names = list(ended)
    described = [
        {
            "name": cable["name"],
            "ends": [f"{names[machine]}.{device}" for machine, device in cable["ends"]],
            "delay_ns": cable["delay_fs"] / 1e6,
        }
        for cable in cables
    ]
    machines = {machine: json.loads(one.finished.text) for machine, one in ended.items()}
    return json.dumps({"machines": machines, "cables": described, "frames": frames}) + "\n"
