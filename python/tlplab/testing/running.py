"""Runs experiments for tests, and keeps pages and captures of failed ones."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tlplab import _core
from tlplab.catalog import find_experiment
from tlplab.device import Device
from tlplab.errors import RunError
from tlplab.experiment import Experiment, of_device
from tlplab.loader import forget
from tlplab.outputs import write_bytes
from tlplab.result import Result
from tlplab.session import Finished, judged, simulation_of, succeeded
from tlplab.testing.run import MOST_PACKETS, TestedRun

WHOLE_LADDER = f'ladder={{ at = "0s", packets = {MOST_PACKETS} }}'


class Runner:
    """The fixture `tlplab_run`: call it with an experiment."""

    def __init__(self, folder: Path, name: str, *, keep: bool) -> None:
        """Experiments are looked for next to the test, in `folder`. With `keep`, captures are written meanwhile, for `keep_in`."""
        self._folder = folder
        self._name = name
        self._captures = tempfile.TemporaryDirectory(prefix="tlplab-") if keep else None
        self._made: list[tuple[str, Result, Path | None]] = []

    def __call__(
        self,
        experiment: str | os.PathLike[str] | Experiment,
        *,
        overrides: Sequence[str] = (),
        load: str | os.PathLike[str] | None = None,
        seed: int | None = None,
        verdict: bool = False,
    ) -> TestedRun:
        """Runs an experiment: a file, next to the test or where pytest was started, one of tlplab's own by name, the text of one, or
        one made of objects.

        `overrides`, `load` and `seed` are those of `tl.run`. Without `verdict`, the limit is that of the run's figures alone. Raises
        `ExperimentError` and `RunError` as `tl.run` does.
        """
        __tracebackhide__ = True
        path, text = (
            (experiment.path, None) if isinstance(experiment, Experiment) else self._find(os.fspath(experiment))
        )
        capture = self._capture()

        def simulation(more: Sequence[str] = (), pcap: Path | None = None) -> _core.Simulation:
            forget()  # what the runs before have left in the modules of devices
            if isinstance(experiment, Experiment):
                return simulation_of(experiment, overrides=[*overrides, *more], load=load, seed=seed, pcap=pcap)
            return _core.Simulation(
                path, text=text, overrides=[*overrides, *more], load=None if load is None else os.fspath(load), seed=seed,
                pcap=None if pcap is None else str(pcap),
            )  # fmt: skip

        first = simulation(pcap=capture)
        finished = self._finish(path, first, capture)
        record = first.record()
        if verdict:
            finished = judged(first, finished)
            if finished.untried:
                raise KeyboardInterrupt
        return self._keep(TestedRun(finished, record, lambda more: succeeded(simulation(more)), path), capture)

    def simulate(
        self,
        device: Device,
        driver: Callable[..., Any] | None = None,
        *,
        link: str = "gen3 x8",
        host: str = "ideal",
        stop: str | None = None,
        overrides: Sequence[str] = (),
        seed: int = 1,
    ) -> TestedRun:
        """Puts a device under a root port and runs its driver, as `tl.simulate` does."""
        __tracebackhide__ = True
        if driver is None and stop is None:
            raise ValueError('without a driver the run has no end; give one, or stop="200us"')
        experiment = of_device(device, driver, link=link, host=host, stop=stop)
        capture = self._capture()
        simulation = simulation_of(experiment, overrides=[*overrides, WHOLE_LADDER], seed=seed, pcap=capture)
        finished = self._finish(type(device).__name__, simulation, capture)
        return self._keep(TestedRun(finished, simulation.record(), None, type(device).__name__), capture)

    def _find(self, experiment: str) -> tuple[str, str | None]:
        """The path of an experiment, and its text if it is one; files that a text names are next to the test."""
        if "\n" in experiment:
            return str(self._folder / f"{self._name}.toml"), experiment
        beside = self._folder / experiment
        return (os.path.relpath(beside), None) if beside.is_file() else (find_experiment(experiment), None)

    def _capture(self) -> Path | None:
        return None if self._captures is None else Path(self._captures.name) / f"{len(self._made)}.pcapng"

    def _finish(self, name: str, simulation: _core.Simulation, capture: Path | None) -> Finished:
        """A run that came to its end. A failed run is kept, too."""
        __tracebackhide__ = True
        try:
            return succeeded(simulation)
        except RunError as error:
            if error.run is not None:
                self._made.append((name, error.run, capture))
            raise

    def _keep(self, run: TestedRun, capture: Path | None) -> TestedRun:
        self._made.append((run.name, run, capture))
        return run

    def said(self) -> list[str]:
        """The lines of a report about the runs of a test that failed."""
        lines = []
        for name, run, _ in self._made:
            lines.append(f"{name}: {run.sentence}")
            if isinstance(run, TestedRun):
                lines.append(run.last_tlps())
        return lines

    def keep_in(self, folder: Path, name: str) -> list[str]:
        """Writes page and capture of each run, and prints their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        lines = []
        for number, (_, run, capture) in enumerate(self._made, 1):
            place = folder / (name if len(self._made) == 1 else f"{name}-{number}")
            page, copy = Path(f"{place}.html"), Path(f"{place}.pcapng")
            run.report(page)
            lines.append(f"page: {page}")
            if capture is not None and capture.is_file():
                write_bytes(str(copy), capture.read_bytes())
                lines.append(f"capture: {copy}")
        return lines

    def close(self) -> None:
        """Removes the files that were written meanwhile."""
        if self._captures is not None:
            self._captures.cleanup()
