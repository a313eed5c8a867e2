"""A run that stops where it is told: after an event, at a TLP, at a time.

    >>> import tlplab as tl
    >>> run = tl.debug("quickstart")
    >>> run.next_tlp(kind="MWr", flow="ssd").length
    64
    >>> run.run_until("2us")                                        # doctest: +ELLIPSIS
    <... TLPs>

The run is that of `tl.run` and `tl.simulate`, event by event: stopping changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from tlplab import _core, session, tlps
from tlplab.device import Device
from tlplab.errors import RunError
from tlplab.experiment import Driver, Experiment, of_device
from tlplab.identity import bar_numbers
from tlplab.result import Result
from tlplab.tlps import Tlp, Tlps

# TLPs that `Debugger.tlps` keeps.
KEPT = 20_000
# Events from one look at Ctrl-C to the next.
SLICE_EVENTS = 1_000

Subject: TypeAlias = "str | os.PathLike[str] | Experiment | Device | type[Device]"


class Place(NamedTuple):
    """A register of a device in Python."""

    device: str
    bar: int
    offset: int
    size: int


def debug(
    subject: Subject,
    driver: Driver | None = None,
    *,
    link: str | None = None,
    host: str | None = None,
    stop: str | None = None,
    overrides: Sequence[str] = (),
    load: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    trace: str | os.PathLike[str] | None = None,
    pcap: str | os.PathLike[str] | None = None,
) -> Debugger:
    """A run, stopped before its first event: of an experiment, as `tl.run` makes it, or of a device and its driver, as `tl.simulate` does.

    `link`, `host` and `stop` are for a device. Raises `ExperimentError` for a mistake in the experiment.
    """
    if isinstance(subject, type):
        subject = subject()
    if isinstance(subject, Device):
        subject = of_device(subject, driver, link=link or "gen3 x8", host=host or "ideal", stop=stop)
        seed = 1 if seed is None else seed
    elif any(given is not None for given in (driver, link, host, stop)):
        raise TypeError(
            "driver, link, host and stop are for a device; an experiment has its own: overrides=['stop=20us']"
        )
    return Debugger(subject, overrides=overrides, load=load, seed=seed, trace=trace, pcap=pcap)


class Debugger:
    """A run, stopped. Made by `tl.debug`."""

    def __init__(self, experiment: str | os.PathLike[str] | Experiment, **options: Any) -> None:
        """`options` are those of `tlplab.session.simulation_of`."""
        self._simulation = session.simulation_of(experiment, latest=KEPT, **options)
        self._registers = registers_of(experiment.devices() if isinstance(experiment, Experiment) else {})
        self._now_fs, self._sent = 0, 0
        self._ended = False
        # TLPs that the event of the latest `next_tlp` has sent besides, and that it has not looked at.
        self._left: list[Tlp] = []
        self._result: Result | None = None

    def __repr__(self) -> str:
        return f"<run {'ended' if self.done else 'stopped'} at {self.now_ns:.3f} ns, after {tlps.counted(self._sent)}>"

    @property
    def now_ns(self) -> float:
        """The simulated time."""
        return self._now_fs / 1e6

    @property
    def done(self) -> bool:
        """True if the run has ended."""
        return self._ended

    @property
    def tlps(self) -> Tlps:
        """The TLPs sent so far, on all links; of more than 20 000 the latest."""
        return tlps.of_run(self._simulation)[1]

    def step(self, events: int = 1) -> Tlps:
        """Goes on for so many events. Returns the TLPs sent meanwhile. Raises `RunError`, as the other methods that go on."""
        before, left = self._sent, events
        while left > 0 and not self._ended:
            self._go_on(self._simulation.advance, min(left, SLICE_EVENTS))
            left -= SLICE_EVENTS
        return self._after(before)

    def run_until(self, time: str) -> Tlps:
        """Goes on through all events until `time`, as in `run.run_until("12.5us")`. Returns the TLPs sent meanwhile."""
        before, until = self._sent, _core.duration_fs(time)
        if until < self._now_fs:
            raise ValueError(f"run_until({time!r}): the run is at {self.now_ns:.3f} ns already")
        while self._now_fs < until and not self._ended:
            self._go_on(self._simulation.advance_until, until, SLICE_EVENTS)
        return self._after(before)

    def next_tlp(self, *, touches: int | str | None = None, **conditions: Any) -> Tlp | None:
        """Goes on to the next TLP that fulfils all conditions, which is on its link then; `None` if the run ends before.

        `conditions` are those of `Tlps.where`: `next_tlp(kind="CplD", link="nic")`. `touches` is an address, or the name of a register of a device in
        Python (`"go"`, `"regs.go"`, `"copier.regs.go"`): a request for bytes of it. Raises the exceptions of `Tlps.where`, and `LookupError` for a register.
        """
        # Mistakes are told before the run goes on.
        tlps.of_run(self._simulation, self._sent)[1].where(**conditions)
        if isinstance(touches, str):
            self._place(touches)
        # Loads may send before the first event.
        self._left += self._after(self._sent)
        while True:
            for number, tlp in enumerate(self._left, 1):
                if tlps.meets(tlp, conditions) and (touches is None or self._touches(tlp, touches)):
                    del self._left[:number]
                    return tlp
            if self._ended:
                return None
            self._go_on(self._simulation.advance_to_tlp, SLICE_EVENTS)
            self._left = list(self._after(self._sent))

    def address(self, register: str) -> int:
        """The address of a register of a device in Python. Raises `LookupError`, also before software has set the BAR."""
        place = self._place(register)
        bars = self._simulation.bars(place.device)
        if place.bar >= len(bars) or (window := bars[place.bar]) is None:
            raise LookupError(f"{register} has no address yet: software has not set BAR {place.bar} of {place.device}")
        return window[0] + place.offset

    def finish(self) -> Result:
        """Goes on to the end. The result is that of `tl.simulate`, or of `tl.run` without further runs for the verdict."""
        if self._result is None:
            self._result = Result(session.succeeded(self._simulation).text)
            self._ended, self._now_fs, self._left = True, self._result["end_fs"], []
        return self._result

    def stop(self) -> Result:
        """Ends the run here. The result up to this event."""
        if self._result is None:
            self._result = Result(self._simulation.finish(None if self._ended else "interrupted"))
            self._ended, self._left = True, []
        return self._result

    def _go_on(self, advance: Callable[..., _core.Progress], *limits: int) -> None:
        self._left = []
        try:
            with session.failure_told(self._simulation):
                progress = advance(*limits)
        except RunError as error:
            self._ended, self._result = True, error.run
            self._after(self._sent)
            raise
        self._now_fs, self._ended = progress.now_fs, progress.done

    def _after(self, count: int) -> Tlps:
        self._sent, sent = tlps.of_run(self._simulation, count)
        return sent

    def _touches(self, tlp: Tlp, where: int | str) -> bool:
        if isinstance(where, int):
            return tlp.touches(where)
        place = self._place(where)
        return bool(self._simulation.bars(place.device)) and tlp.touches(self.address(where), place.size)

    def _place(self, register: str) -> Place:
        named = {name: place for name, place in self._registers.items() if f".{name}".endswith(f".{register}")}
        if not named:
            known = ", ".join(self._registers) or "none, as registers are known of devices that are given as objects"
            raise LookupError(f"there is no register {register!r}; registers: {known}")
        if len(named) > 1:
            raise LookupError(f"{register!r} is the name of several registers: {', '.join(named)}")
        return next(iter(named.values()))


def registers_of(devices: Mapping[str, Device | type[Device]]) -> dict[str, Place]:
    """The registers of devices by their whole names: device, BAR, register."""
    return {
        f"{name}.{bar}.{register}": Place(name, bar_numbers(device.bars)[bar], at.offset, at.size)
        for name, device in devices.items()
        for bar, layout in device.bars.items()
        for register, at in layout.registers.items()
    }
