"""A run that is under test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tlplab import _core
from tlplab.errors import ExperimentError
from tlplab.result import Document, Flow, Result
from tlplab.session import Finished
from tlplab.study.show import written
from tlplab.testing import ladder
from tlplab.tlps import Tlps, meant, of_result, tail

# As many as a ladder can keep.
MOST_PACKETS = 20_000
SLOWEST = 2
# Causes of a flow that a message names.
CAUSES = 3

# Makes the run again with further overrides; nothing else changes.
Again = Callable[[Sequence[str]], Finished]


@dataclass(frozen=True)
class Window:
    """A part of a run, or all of it, with every packet."""

    result: Document
    tlps: Tlps
    whole: bool


class TestedRun(Result):
    """A run that has ended: `run["flows"]` is that of `tl.run`, `run.tlps` a table, and `run.expect(…)` fails the test unless it holds."""

    __test__ = False  # no class of tests, whatever pytest thinks of its name

    def __init__(self, finished: Finished, record: bytes, again: Again | None, name: str) -> None:
        """`again` is `None` of a run that has kept its whole ladder, as it cannot be made again."""
        super().__init__(finished.text)
        self._record = record
        self._again = again
        self.name = name
        """The experiment, for messages."""

    def __repr__(self) -> str:
        return f"<run of {self.name}>"

    def flow(self, name: str) -> Flow:
        """A flow by its name. Raises `LookupError`."""
        flows = {flow["name"]: flow for flow in self.result["flows"]}
        if name not in flows:
            raise LookupError(
                f"the run has no flow {name!r}{meant(name, flows)}; the flows are {', '.join(flows) or 'none'}"
            )
        return flows[name]

    @property
    def tlps(self) -> Tlps:
        """Every TLP on every link, in order. The run is repeated for it, unless it was short. Raises `LookupError` for a run that is too long."""
        if not self._all.whole:
            raise LookupError(
                f"the run has more than {MOST_PACKETS} packets, including DLLPs; end it earlier, as in overrides=['stop=20us'], or read a"
                " part of it: run.tlps_from('50us')"
            )
        return self._all.tlps

    def tlps_from(self, time: str) -> Tlps:
        """The TLPs from a time on, as in `run.tlps_from("50us")`: those of the next 20 000 packets."""
        if self._again is None:
            begin = _core.duration_fs(time) / 1e6
            return self.tlps.where(start_ns=lambda start: start >= begin)
        return self._window(time).tlps

    @cached_property
    def _all(self) -> Window:
        return self._window("0s")

    def _window(self, begin: str) -> Window:
        """The run with every packet from a time on. Raises `RuntimeError` if it is not the same run."""
        result = self.result
        if self._again is not None:
            result = self._again([f'ladder={{ at = "{begin}", packets = {MOST_PACKETS} }}']).result()
            if result["trace_hash"] != self.result["trace_hash"]:
                raise RuntimeError(
                    f"a second run of {self.name} differs, so its TLPs are not those of this run: part of it"
                    " depends on a state outside the experiment, such as a device in Python that keeps its state"
                )
        packets = len((result["ladder"] or {"packets": []})["packets"])
        return Window(result, of_result(result), packets < MOST_PACKETS)

    def expect(self, *texts: str) -> None:
        """Fails the test unless comparisons of figures hold: `run.expect("nic.throughput >= 90 Gb/s", "nic.share.tag_wait < 5 %")`.

        Figures and grammar are those of `tlplab list metrics` and docs/sweep.md. The message has the slowest transactions of the flows concerned.
        Raises `ValueError` for text that is not a comparison.
        """
        __tracebackhide__ = True
        if not texts:
            raise TypeError("a condition is missing, as in run.expect('nic.throughput >= 90 Gb/s')")
        wrong: list[str] = []
        names: list[str] = []
        for text in texts:
            try:
                holds, figures, near = _core.expect(self._record, text)
            except ExperimentError as error:
                raise ValueError(f"{error.message}{f'; {error.hint}' if error.hint else ''}") from None
            if not holds:
                parts = [
                    f"{n} is {written(v, unit)}" if v is not None else f"the run has no {n}" for n, v, unit in figures
                ]
                wrong.append(f"{text} does not hold: {', '.join(parts)}{f'; did you mean {near}?' if near else ''}")
                names += [name for name, value, _ in figures if value is not None]
        if wrong:
            raise AssertionError("\n".join([*wrong, *self._evidence(names)]))

    def _evidence(self, figures: Sequence[str]) -> list[str]:
        """The flows of the figures in a message: causes, and the slowest transactions."""
        flows = self.result["flows"]
        of = [at for at, flow in enumerate(flows) if any(name.startswith(flow["name"] + ".") for name in figures)]
        if any(name.startswith("latency.") for name in figures):
            of = list(range(len(flows)))
        lines = []
        for at in of:
            rows = flows[at]["attribution"][:CAUSES]
            told = [
                f"{100 * row['share']:.0f} % {self.result['causes'][row['cause']]} at {row['place']}" for row in rows
            ]
            if told:
                lines.append(f"{flows[at]['name']} spends its time on: {', '.join(told)}")
        if of:
            window, part = self._shown()
            slow = ladder.slowest(window.result, of, SLOWEST)
            lines += [f"the slowest transactions {part}:"] if slow else []
            lines += [ladder.text(window.result, one, window.tlps) for one in slow]
        return lines

    def _shown(self) -> tuple[Window, str]:
        """The part of the run that messages show, and its name: all, or its own ladder."""
        try:
            if self._all.whole:
                return self._all, "of the run"
        except (RuntimeError, ExperimentError):
            pass  # the run cannot be made again; its own ladder can be shown
        own = self.result["ladder"] or {"from_fs": 0, "to_fs": 0}
        part = f"of those from {own['from_fs'] / 1e6:.3f} to {own['to_fs'] / 1e6:.3f} ns"
        return Window(self.result, of_result(self.result), False), part

    def last_tlps(self) -> str:
        """The last TLPs, for a report of a test that failed."""
        window, part = self._shown()
        return f"the last TLPs {part}:\n{tail(window.tlps)}"
