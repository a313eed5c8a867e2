"""Watching over a run: slices that adapt, Ctrl-C that keeps the measurements so far."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from tlplab import session
from tlplab.progress import worth_showing


class Clock:
    """A wall clock that only moves when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


class Machine:
    """A simulation of `total` events, each of which takes `cost` seconds; interrupted in slice `interrupt`."""

    def __init__(self, clock: Clock, total: int, cost: float, interrupt: int | None = None) -> None:
        self.clock, self.total, self.cost, self.interrupt = clock, total, cost, interrupt
        self.handled = 0
        self.names: list[str] = []
        self.slices: list[int] = []

    def advance(self, events: int) -> Any:
        if len(self.slices) == self.interrupt:
            raise KeyboardInterrupt
        events = min(events, self.total - self.handled)
        self.slices.append(events)
        self.clock.now += events * self.cost
        self.handled += events
        return SimpleNamespace(
            events=self.handled, transactions=0, done=self.handled == self.total, now_fs=5 * 10**9, stop_fs=None
        )

    def restless(self) -> list[str]:
        return self.names

    def waiting(self) -> list[str]:
        return []

    def finish(self, stopped_by: str | None = None) -> str:
        return json.dumps({"events": self.handled, "stopped_by": stopped_by})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(session, "time", clock)
    return clock


@pytest.mark.parametrize("cost", [1e-8, 1e-6, 1e-5])
def test_slices_take_the_same_time_at_any_cost_of_events(clock: Clock, cost: float) -> None:
    machine = Machine(clock, int(10 / cost), cost)
    seen: list[int] = []
    done = session.finish(machine, lambda progress: seen.append(progress.events))
    assert not done.interrupted
    assert machine.handled == machine.total
    assert seen[-1] == machine.total
    for events in machine.slices[8:-1]:
        assert events * cost == pytest.approx(session.SLICE_SECONDS, rel=0.01)


def test_ctrl_c_keeps_the_events_so_far(clock: Clock) -> None:
    done = session.finish(Machine(clock, 10**9, 1e-6, interrupt=3))
    assert done.interrupted
    assert done.result()["stopped_by"] == "interrupted"  # type: ignore[typeddict-item]
    assert done.result()["events"] > 0  # type: ignore[typeddict-item]


def test_a_bar_is_for_runs_of_more_than_two_seconds() -> None:
    assert not worth_showing(0.4, 0.001), "too early to say"
    assert worth_showing(0.6, 0.001)
    assert not worth_showing(0.6, 0.9), "it will be over before anyone has read it"
    assert not worth_showing(1.9, None)
    assert worth_showing(2.1, None)


def test_a_run_kept_alive_by_a_clock_notes_it_once(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    machine = Machine(clock, 1_000_000, 1e-5)
    session.finish(machine)
    assert capsys.readouterr().err == "", "of a device that rests nothing is said"
    machine = Machine(clock, 1_000_000, 1e-5)
    machine.names = ["card", "other"]
    session.finish(machine)
    said = capsys.readouterr().err
    assert said.startswith(
        "note: at 5 \u00b5s only the clock of card and other still runs: the module never reports"
    ), said
    assert said.count("note:") == 1
