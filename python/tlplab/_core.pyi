"""The simulator, in Rust: `crates/python`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypedDict, final, overload

import numpy as np
import numpy.typing as npt

from tlplab.result import GuestEnding

__version__: str

@final
class Progress:
    """The progress of a run."""

    @property
    def now_fs(self) -> int:
        """Simulated time, femtoseconds."""
    @property
    def transactions(self) -> int:
        """Transactions that have ended."""
    @property
    def fraction(self) -> float | None:
        """Part of the run that is over; None if it is not known."""
    @property
    def events(self) -> int:
        """Events handled so far."""
    @property
    def done(self) -> bool:
        """True if the run has ended."""

# A run that is made elsewhere: its key, whether Python has a part in it, and all that there is to know.
Elsewhere: TypeAlias = tuple[str, bool, str]
# The steps of points, one of each axis (a Latin hypercube's keys are axes of their own); or what is along one axis or none, with axes that stay at
# a step, while the others set nothing.
Chosen: TypeAlias = list[list[int]] | tuple[int | None, list[tuple[int, int]]]
# Name, unit and values of a column.
ColumnOf: TypeAlias = tuple[str, str | None, list[Any]]
# The mean of a figure, and half of its 95 % confidence interval; None of one run.
Mean: TypeAlias = tuple[float, float | None]

class Summary(TypedDict):
    """The runs of a point of a study together."""

    point: int
    values: list[Any]
    """One for each axis."""
    runs: int
    """The number of runs that came to their end."""
    trouble: tuple[str, str] | None
    """`refused` or `failed`, and the message."""
    means: list[Mean | None]
    """One for each figure."""
    limit: str | None
    """The limit of its first run, if that was requested."""

@final
class Sweep:
    """A study, and the options with which its points are run."""

    def __init__(
        self,
        study: str,
        store: str,
        builds: tuple[str, str],
        *,
        overrides: Sequence[str] = (),
        load: str | None = None,
        where: Sequence[str] = (),
        shard: tuple[int, int] = (0, 1),
        verdict: bool = False,
        all_elsewhere: bool = False,
        refused: Mapping[str, str] = ...,
        chosen: Chosen | None = None,
    ) -> None:
        """Reads a study. `store` is the folder with results, `builds` are hashes of the simulator, and of it with the code of devices in Python.

        `shard` is a part, from 0, and how many there are. With `all_elsewhere` no run is made here. `refused` are runs that were to be made
        elsewhere and cannot be, by their keys. Raises ExperimentError.
        """

    @property
    def title(self) -> str: ...
    @property
    def left_out(self) -> list[tuple[str, int]]:
        """Each filter, and how many points it left out."""
    @property
    def axes(self) -> list[tuple[str, str | None, list[Any]]]:
        """Name, unit and values of each column."""
    @property
    def metrics(self) -> list[str]:
        """The figures that the study shows."""
    @property
    def parameters(self) -> list[tuple[bool, list[ColumnOf]]]:
        """Of each axis whether it is a range, and its columns. A Latin hypercube's keys are axes of their own."""
    def knows_all(self, progress: Callable[[int], object]) -> bool:
        """True if no run is needed; `progress` receives the number of points looked at. False, too, after Ctrl-C."""
    def __len__(self) -> int:
        """The number of points."""
    @property
    def inputs(self) -> tuple[str | None, str | None, list[str], dict[int, list[str]]]:
        """The inputs with which a point is run alone: the experiment and a file with its loads, if the study is of one, the settings of all points, and further settings of each, by its number."""
    @property
    def first_seed(self) -> int | None:
        """The seed of the first run of each point, if the study says one."""
    def run(self, threads: int, progress: Callable[[tuple[int, int, int]], object]) -> Swept:
        """Runs the unknown points; `progress` receives now and then the numbers of finished runs, of all, and of known ones.

        Ctrl-C ends it; finished runs are kept. Raises OSError if a result cannot be kept, or a file changed meanwhile.
        """

    def keep(self, run: str, record: bytes) -> Elsewhere | None:
        """Keeps the result of a run that was made elsewhere; the run of its point that comes next, if its repeats depend on each other. Raises OSError."""

@final
class RunMaker:
    """Makes runs that another process asks for, with the files as they are when it is made."""

    def __init__(self, builds: tuple[str, str]) -> None: ...
    def make(self, run: str) -> tuple[str, bytes | str]:
        """Makes a run: `ran` and its result, `refused` and why, or `differs` and why: here it would be another run."""
    def differs(self, run: str) -> str | None:
        """The reason why a run would be another here, if so."""
    @staticmethod
    def in_python(run: str) -> str:
        """The part of a run that Python does, as JSON. Raises ValueError."""

@final
class Summaries(Sequence[Summary]):
    """The summary of each point of a study, in the order of the points. A point is made when it is asked for; of a million, ask for columns."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int) -> Summary: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Summary]: ...
    @property
    def troubles(self) -> list[tuple[str, str, int]]:
        """The refusals and failures: kind, message, and the number of points with it; the most frequent first."""
    @property
    def limited(self) -> bool:
        """True if points have their limit."""
    def means(self, figure: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The mean of a figure at each point, and half of its confidence interval: NaN where there is none."""
    def steps(self, column: int) -> npt.NDArray[np.uint32]:
        """The index of a column's value at each point, among the values of its axis."""

@final
class Swept:
    """The result of a study."""

    @property
    def interrupted(self) -> bool: ...
    @property
    def progress(self) -> tuple[int, int, int, int]:
        """Runs that are over, all of them, known ones, and new ones."""
    @property
    def elsewhere(self) -> list[Elsewhere]:
        """Runs that are to be made elsewhere; then the study is run again."""
    def table(self) -> Table:
        """A row for each run."""
    def figures(self, figures: str) -> list[tuple[str, str]]:
        """Name and unit of each figure in a list. Raises ExperimentError."""
    def summaries(self, figures: str) -> Summaries:
        """The summary of each point. Raises ExperimentError."""
    def front(self, objectives: str) -> tuple[list[tuple[str, str, bool]], Summaries, list[bool]]:
        """Name, unit and whether more is better of each objective; each point; and whether nothing beats it. Raises ExperimentError."""
    def finding(self) -> tuple[str, dict[str, tuple[float, str]], bool] | None:
        """The study's finding: the sentence, the figures in it with their units, and True if it holds. Raises ExperimentError."""
    def counts(self) -> tuple[int, int, int]:
        """Rows that are done, failed, refused."""

def count_results(store: str) -> int:
    """The number of results that the store in a folder holds."""

def figures(text: str) -> list[tuple[str, str]]:
    """Name and unit of each figure in a list. Raises ExperimentError."""

def comparison(text: str) -> tuple[str, str, str, str]:
    """A comparison of two figures: the left one, the sign, the right one, and their unit. Raises ExperimentError."""

def expect(record: bytes, text: str) -> tuple[bool, list[tuple[str, float | None, str]], str | None]:
    """An expectation of a run (`Simulation.record`): True if it holds, its figures, and the likely meaning of an unknown one. Raises ExperimentError."""

def record_figures(record: bytes) -> dict[str, float]:
    """The figures of a run's result (`Simulation.record`), by their names. Raises ValueError."""

def failed_record(message: str) -> bytes:
    """The result of a run that failed, as studies keep it."""

def metric(name: str) -> tuple[str, bool | None] | None:
    """A metric: its unit, and True if more is better, None if that is not known. None if there is no such metric."""

def metrics() -> list[tuple[str, str]]:
    """The figures of points: name, and unit with meaning."""

def metric_reference() -> str:
    """The same as tables in Markdown."""

def study_keys() -> dict[str, list[str]]:
    """The keys of each model that studies know, by its name; those of benchmarks by `bench`."""

@final
class AdapterService:
    """A NetTLP adapter with memory behind it, on its UDP ports."""

    def __init__(
        self,
        local: int,
        peers: Sequence[tuple[int, int]],
        *,
        memory: int,
        images: Sequence[tuple[str, int]] = (),
        latency_fs: int = 0,
        window: int = ...,
        mps: int = 256,
        mrrs: int = 512,
        root_complex: bool = False,
        timeout_ns: int | None = None,
        msix_in_window: bool = False,
        rate: int | None = None,
        transport: str = "udp",
        interface: str | None = None,
        spin: bool = False,
        pcap: str | None = None,
    ) -> None:
        """Opens the ports of an adapter at the IPv4 address `local`, as a number.

        `peers` are the addresses of its devices with their requester IDs; `images` are files and the addresses of their
        first bytes. Raises ValueError for impossible options, RunError if the network refuses, OSError for files.
        """

    def serve(self, seconds: float) -> None:
        """Serves for so long."""

    def report(self) -> str:
        """The devices and counters, as JSON."""

    def finish(self) -> None:
        """Ends the capture."""

@final
class CardServer:
    """NetTLP cards on Unix sockets, for a virtual machine of QEMU; their devices are elsewhere."""

    def __init__(
        self, local: int, cards: Sequence[tuple[str, int, int, int, int]], datagrams: str | None = None
    ) -> None:
        """Opens the ports of an adapter at the IPv4 address `local`. Of each card: its socket, its device's address, its bus, device and function
        number, and the bytes of its BARs 4 and 2. `datagrams` is a capture of the network.

        Raises ValueError for impossible options, RunError if the system refuses.
        """

    def capture(self, card: int, path: str, id: int, name: str) -> None:
        """Writes the TLPs between guest and card into a pcapng file from now on. Raises RunError."""

    def run(self, seconds: float) -> None:
        """Goes on for so long. Raises RunError if it cannot."""

    def counters(self) -> list[list[tuple[str, int]]]:
        """The counters so far, by card."""

    def end(self) -> None:
        """Ends it and its captures; its counters stay. Raises RunError if a capture could not be written."""

@final
class FabricServer:
    """The devices of an experiment on Unix sockets, for a virtual machine of QEMU, with the fabric between, in wall time."""

    def __init__(
        self,
        experiment: str,
        folder: str,
        *,
        overrides: Sequence[str] = (),
        seed: int | None = None,
        cables: Sequence[tuple[str, str]] = (),
        trace: str | None = None,
        pcap: str | None = None,
    ) -> None:
        """Serves each device at a socket in `folder`: `1.sock` and so on. `cables` are pairs of NICs that are joined.

        Raises ExperimentError, ValueError for devices that cannot be served, OSError for files.
        """

    def run(self, seconds: float) -> None:
        """Goes on for so long. Raises RunError if it cannot, and once the run has ended."""

    def counters(self) -> list[tuple[str, list[tuple[str, int]]]]:
        """Name and counters of each device, in the order of the sockets."""

    def lag(self) -> tuple[float, float, int]:
        """The lag of simulated time behind the wall clock, and the greatest so far, in nanoseconds; the number of times that it exceeded 1 ms."""

    def finish(self, stopped_by: str) -> str:
        """Closes its files; the result document as JSON. `stopped_by` is `guest-off`, `interrupted`, `time-limit` or `failed`."""

@final
class LiveService:
    """An experiment behind a NetTLP adapter, in wall time; the devices that are served are elsewhere."""

    def __init__(
        self,
        experiment: str,
        served: Sequence[tuple[str, int]],
        local: int,
        *,
        taps: Sequence[tuple[str, str]] = (),
        overrides: Sequence[str] = (),
        load: str | None = None,
        seed: int | None = None,
        transport: str = "udp",
        interface: str | None = None,
        spin: bool = False,
        pcap: str | None = None,
    ) -> None:
        """Opens the ports of an adapter at the IPv4 address `local`, as a number; `served` are devices and their addresses,
        `taps` devices and the TAP interfaces of their drivers.

        Raises ExperimentError, ValueError for impossible devices, RunError if the network refuses, OSError for files.
        """

    def serve(self, seconds: float) -> str | None:
        """Serves for so long; why the run has ended, if it has. Raises RunError if it failed."""

    def absent(self) -> list[str]:
        """The devices that have not been heard of yet."""

    def lag(self) -> tuple[float, float, int]:
        """The lag of simulated time behind the wall clock, and the greatest so far, in nanoseconds; the number of times that it exceeded 1 ms."""

    def report(self) -> str:
        """The devices and counters, as JSON."""

    def lost_frames(self) -> list[tuple[str, str, int]]:
        """Frames lost at each TAP interface: the device, the interface, their number."""

    def finish(self, stopped_by: str | None) -> str:
        """Ends the capture; the result document, JSON."""

@final
class Simulation:
    """A fabric that was built from an experiment file, and its run."""

    def __init__(
        self,
        path: str,
        *,
        text: str | None = None,
        objects: Mapping[str, tuple[object, object | None]] = ...,
        overrides: Sequence[str] = (),
        load: str | None = None,
        seed: int | None = None,
        trace: str | None = None,
        pcap: str | None = None,
        guest: Mapping[str, object] | None = None,
        machine: str | None = None,
        open_ends: Sequence[str] = (),
        all_details: bool = False,
        keep_transactions: bool = False,
        latest: int = 0,
    ) -> None:
        """Reads and checks the experiment; opens the trace and the capture. Raises ExperimentError, OSError.

        `text` takes the place of the file's; `objects` are a device and its driver, by the device's name, which take
        the place of those in the experiment. `guest` starts a user-mode Linux as the host's software: paths `kernel`
        and `folder` (which holds only its `initramfs`, and goes with it), and perhaps `share`, `arguments` and `interactive`. `machine` is the chosen one of an experiment
        with several; the cables of the NICs `open_ends` lead to others (`Cabling`). With `all_details` the document of a large fabric is as long as it gets.
        `keep_transactions` is for `transactions`; `latest` is the number of TLPs kept for `tlps_after`.
        """
    def advance_guest(self) -> tuple[list[tuple[int, bytes]], int, tuple[GuestEnding, str, int | None] | None]:
        """Lets the guest and its machine go on for a while. Its output, each piece with its simulated time in fs; how far
        simulated time is, in fs; how the guest has ended, if it has, by its name and for people, and its script's exit status. Raises RunError.
        """
    def advance(self, events: int) -> Progress:
        """Handles at most `events` events. Other Python threads run meanwhile. Raises RunError."""
    def advance_until(self, until_fs: int, events: int) -> Progress:
        """The same, but no further than to a time, to which the clock is set. Raises RunError."""
    def advance_to_tlp(self, events: int) -> Progress:
        """Handles at most `events` events, and none after the first in which a TLP is put on a wire. Raises RunError; RuntimeError without `latest`."""
    def tlps_after(self, count: int) -> tuple[int, str]:
        """The number of TLPs that were put on wires, and those after the first `count`, as JSON; of more than are kept the latest. Raises RuntimeError without `latest`."""
    def names(self) -> tuple[list[str], list[str], list[str]]:
        """The names of flows, links and components."""
    def bars(self, device: str) -> list[tuple[int, int] | None]:
        """Base address and size of each BAR of a device; empty before software has set them."""
    def restless(self) -> list[str]:
        """The devices made of RTL that have never said that they are idle, if nothing else is under way and no stop is set."""
    def prepare(self, case: str) -> None:
        """Brings the host into the state that a benchmark's case (JSON) begins in. Raises ValueError."""
    def lspci(self) -> tuple[str, str]:
        """Goes on until enumeration is over; its result as JSON, and the text of `lspci -xxxx`. Raises RunError."""
    def finish(
        self,
        stopped_by: str | None = None,
        guest: tuple[str, str, str, GuestEnding, str, int | None] | None = None,
        *,
        brief: bool = False,
    ) -> str:
        """Closes the trace and the capture, and returns the result document as JSON. With `brief`, the parts for pages only are left out: series
        of links and resources, samples, the ladder. Raises RunError, OSError.
        """
    def transactions(self) -> tuple[list[str], int, Table]:
        """The names of the flows, how many transactions ended well after the warm-up, and a row for each: flow, start_fs, latency_fs. There are no
        rows if they are more than a million.
        """
    def transaction(self, index: int) -> tuple[str, list[tuple[str, str, str | None, int]]]:
        """A transaction, and the parts of its latency in the order of time: cause, place, behind which flow, femtoseconds. Raises IndexError."""
    def expected(self) -> int:
        """The number of expectations in the experiment. Raises ExperimentError for a mistake in one."""
    def judged(self) -> list[tuple[str, bool, list[tuple[str, float | None, str]], str | None]]:
        """Of each expectation of a run that is over: its text, True if it holds, its figures (name, value, unit), and the likely meaning of an unknown one."""
    def record(self) -> bytes:
        """The result of the run, which is over, as studies keep it."""

    def judge(self, *, full: bool = False) -> Judge:
        """The search for the limit of the run, which is over: by bounded cost, or in `full`. Raises ValueError if it cannot be run again."""

class Cabling:
    """Several guests with their machines, on Ethernet cables."""

    def __init__(
        self,
        machines: Sequence[tuple[str, Simulation]],
        cables: Sequence[tuple[str, tuple[tuple[int, str], tuple[int, str]], int]],
        *,
        pcap: str | None = None,
    ) -> None:
        """Each machine has a name and its run; each cable has a name, at each end the number of a machine and the name of one of its open ends, and a delay in fs.

        Opens the capture of frames `pcap`. Raises ValueError, OSError.
        """
    def advance(self) -> list[tuple[list[tuple[int, bytes]], int, tuple[GuestEnding, str, int | None] | None]]:
        """Lets all go on for a while. Of each guest, as `Simulation.advance_guest` tells it. Raises RunError."""
    def finish(self) -> int:
        """Closes the capture; the number of frames that went over the cables. Raises OSError."""

class Judge:
    """Asks for runs with a relaxed resource, and takes their results, in any order."""

    def next_task(self) -> Task | None:
        """A run to be made now; None if there is nothing until more is told, or enough is known."""
    def tell(self, task: Task) -> None:
        """A task has run."""
    def cancel(self) -> None:
        """Tasks under way end soon, and tell nothing."""
    def is_over(self) -> bool:
        """True if enough is known."""
    def progress(self) -> tuple[int, int]:
        """Runs made, and runs in all, as far as it is known."""
    def limits(self) -> list[str]:
        """The names of all that limit, as far as it is known; none if nothing gains anything."""
    def candidates(self) -> list[tuple[str, str]]:
        """The candidates for the limit: name and kind of each, the likely ones by the figures first."""
    def task_for_table(self, candidate: int, by: str) -> Task:
        """The run with a candidate relaxed by a `tenth`, to `twice` as much, or until it is `gone` as a limit; the verdict does not need it."""
    def document(self) -> str:
        """The run's document with the verdict, JSON."""

class Task:
    """A run to be made."""

    def run(self) -> None:
        """Makes it. Other Python threads go on meanwhile."""
    def judge(self) -> Judge | None:
        """The search for the limit of the relaxed run, of a task for a table; None: there is no such run."""
    def result(self) -> tuple[str, float, float, float] | None:
        """The change, the gain in throughput, and the changes of p50 and p99 of latency, all as shares; None: there is no such run."""

def check(
    path: str,
    *,
    text: str | None = None,
    overrides: Sequence[str] = (),
    load: str | None = None,
    loads_follow: bool = False,
) -> str:
    """Reads an experiment without running it; its outline as JSON. It may have no load if `loads_follow`; `text` takes the place of the file at `path`.

    Raises ExperimentError.
    """

def check_guests(path: str, *, overrides: Sequence[str] = ()) -> str:
    """Reads the experiment of a guest, or of several, without running it; the keys of `tlplab.outline.Guests`, as JSON. Raises ExperimentError."""

def check_device(identity: Mapping[str, object]) -> None:
    """Checks a device, as `tlplab.identity` describes it. Raises ValueError with the mistake and the expected value."""

def registers(dumped: bytes) -> dict[str, Any] | None:
    """The facts in a function's registers that were dumped from 0 on, by the names of `tlplab.scan.facts.Function`; a register that the dump
    does not hold is not there. None for less than a header."""

def hosts() -> list[tuple[str, str]]:
    """The host profiles: name and TOML text."""

def models() -> list[tuple[str, str]]:
    """The device models: the name and purpose of each."""

def generations() -> list[tuple[int, float, bool]]:
    """The generations of PCIe: number, transfers per second and lane in GT/s, and whether there are links in flit mode only."""

def widths() -> list[int]:
    """The lanes that a link may have."""

def result_schema() -> str:
    """The JSON Schema of result documents."""

def schema() -> str:
    """The JSON Schema of experiment files."""

def reference() -> str:
    """Every key of an experiment file with its meaning, as Markdown."""

class Dump:
    """A capture on its way to lines."""

    def __init__(
        self,
        source: str,
        filter: Sequence[str],
        *,
        json: bool,
        time: int,
        verbose: bool,
        limit: int | None,
        copy: str | None,
        quiet: bool,
    ) -> None:
        """Opens a file, or an interface. Raises ValueError for a wrong filter or a file that is not a capture, OSError."""
    def step(self) -> str | None:
        """Some more lines, perhaps none; None at the end."""
    @property
    def live(self) -> bool:
        """True if it goes on until it is ended."""
    def finish(self) -> tuple[int, int, int, int, int]:
        """Ends the copy; frames read, shown, malformed, of other kinds, and dropped."""

class CaptureReader:
    """A capture that is read, to be summed up."""

    def __init__(self, path: str, filter: Sequence[str], *, points: bool) -> None:
        """Opens a file. Raises ValueError for a wrong filter or a file that is not a capture, OSError. `points` remembers a row for
        each TLP; without, memory does not grow with the file."""
    def step(self) -> bool:
        """Reads on; true while there is more."""
    @property
    def fraction(self) -> float | None:
        """The part of the file that has been read; None if its length is not known."""
    def summary(self) -> str:
        """The summary as a JSON document, tlplab/capture/1."""
    def points(self) -> Table:
        """The events, a row for each TLP, none if they were not requested: time_ns, direction, kind (0 read, 1 write, 2 completion with data,
        3 without, 4 other), tag, bytes, outstanding, latency_ns."""

def dissector() -> list[tuple[str, str]]:
    """The files of the Wireshark dissector: names and texts."""

def dump_filters() -> list[tuple[str, str]]:
    """The keys and words of filters, with their meanings."""

class Output:
    """A file that is whole when it is committed, and until then as it was; pipes and devices are written at once."""

    def __init__(self, path: str) -> None:
        """Opens it. Raises OSError."""
    def write(self, data: bytes) -> None:
        """Adds to it. Raises OSError."""
    def commit(self) -> None:
        """Ends it. Raises OSError."""
    def drop(self) -> None:
        """Leaves the file as it was, unless it was committed."""

def write_text(path: str, text: str) -> None:
    """Writes a file whole or not at all; `-` is the standard output. Raises OSError."""

def report_style() -> str:
    """The style sheet of the page that shows a run, for other pages that are to look like it."""

def write_report(path: str, result: str) -> None:
    """Writes the page that shows a result document. Raises OSError."""

def report_page(result: str) -> str:
    """The same page as text."""

def size(text: str) -> int:
    """Bytes of a size such as "4KiB". Raises ValueError."""

def duration_fs(text: str) -> int:
    """Femtoseconds of a time such as "1.5us". Raises ValueError."""

def rate(text: str) -> int:
    """Bits per second of a rate such as "25Gb/s". Raises ValueError."""

class Rules(TypedDict):
    """The rules of a whole grid of the closed forms."""

    requests: str
    completions: str
    compat: list[str]

class Use(TypedDict):
    """The use of a resource by transfers."""

    resource: str
    each: float
    """Units that a transfer takes."""
    held_ns: float
    """For so long."""
    needed: float
    """Units under way at the rate that is wanted, on average."""
    available: float | None
    transfers_per_s: float | None
    """The rate that the available ones allow."""

class InFlight(TypedDict):
    """The limits of transfers."""

    link_transfers_per_s: float
    transfers_per_s: float
    limit: str
    """`demand`, `link`, or a resource."""
    resources: list[Use]

@final
class Table:
    """Columns, by Arrow's PyCapsule interface or as numpy arrays."""

    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_numpy(self) -> dict[str, npt.NDArray[Any]]:
        """A copy of each column."""

def table(
    columns: Sequence[tuple[str, str | None, Literal["whole", "number", "truth", "text"], Sequence[Any]]],
) -> Table:
    """A table of columns: name, unit, the kind of values (whole numbers from 0, numbers, truths, texts), and these, or None. Raises TypeError, OverflowError."""

def model_bandwidth(op: str, grid: Sequence[npt.NDArray[np.int64]], rules: Rules) -> Table:
    """Bandwidth of transfers. Raises ValueError, as do all of these."""

def model_nic(
    file: str, text: str, ways: str, ethernet_bps: float, grid: Sequence[npt.NDArray[np.int64]], rules: Rules
) -> Table:
    """The rates of a NIC. Raises ExperimentError for its file."""

def model_loopback(
    ethernet_bps: float, store: int, pcie_ns: float, nic_ns: float, grid: Sequence[npt.NDArray[np.int64]], rules: Rules
) -> Table:
    """The latency of a NIC in loop-back."""

def model_nettlp(
    sizes: Sequence[int], ethernet_bps: float, mps: int, mrrs: int, header: int
) -> list[tuple[float, float]]:
    """The rate of TLPs in datagrams on Ethernet, in bits per second: for each size of writes, of reads."""

def model_data_path(bits: int, clock: float, payload: int, header: int) -> tuple[float, float]:
    """The rate of TLPs on a data path, in bits per second: each in words of its own, and packed."""

def model_in_flight(
    op: str,
    point: Sequence[int],
    wanted: float | None,
    delays: tuple[float, float, float],
    supply: Sequence[float | None],
    rules: Rules,
) -> InFlight:
    """Little's law; delays in nanoseconds."""

def nics() -> list[tuple[str, str]]:
    """The NICs that come with tlplab: name and TOML text."""

def nic_title(file: str, text: str) -> str:
    """A NIC's title. Raises ExperimentError."""

@final
class Bench:
    """A target that runs benchmarks: `tlplab.bench.running` runs cases on it, from several threads."""

    def __init__(
        self, target: str, host: str, device: str, link: str, host_keys: Sequence[tuple[str, str]] = (),
        mps: int | None = None, mrrs: int | None = None,
    ) -> None:  # fmt: skip
        """The `simulator` or the closed form (`model`) of a host and a device profile. Raises ExperimentError, ValueError."""
    def run(self, case: str) -> str:
        """Runs a case (JSON); the measurement as JSON. Other Python threads run meanwhile. Raises ValueError, RunError."""
    def host_has_cache(self) -> bool:
        """True if the content of a cache makes a difference."""
    def stop(self) -> None:
        """Ends all runs soon; each returns its measurements so far."""
    def done(self) -> float:
        """The number of cases that are done, with the parts of those under way."""

@final
class BenchRecorder:
    """The measurement of a case with a device in Python. Times are in femtoseconds of simulated time."""

    def __init__(self, case: str, hz: int, cycles_per_tick: int) -> None:
        """Timestamps count `cycles_per_tick` cycles, of which a second has `hz`. Raises ValueError."""
    def next_operation(self) -> tuple[bool, int] | None:
        """The next operation: whether it is a write (with a read behind it, in lat_wrrd), and its address. None after the last."""
    def warmup(self) -> int:
        """Operations before the measured ones."""
    def latency(self, begun_fs: int, ended_fs: int) -> None:
        """A measured operation is over."""
    def transfer(self, at_fs: int) -> None:
        """A transfer of a bandwidth is over; those before the measured ones are told, too."""
    def fraction(self) -> float:
        """The part of the case that has been measured."""
    def elapsed_ns(self) -> float:
        """From the beginning of the first measured operation to the end of the last."""
    def record(self, lanes: int) -> bytes:
        """The measurement, as studies keep it, on a link of so many lanes."""
    def document(self, complete: bool) -> str:
        """The measurement, as JSON."""

def check_case(case: str) -> None:
    """Raises ValueError for an impossible case, with the mistake and the expected value."""

def bench_devices() -> list[tuple[str, str]]:
    """The device profiles: name and TOML text."""

def bench_columns() -> tuple[str, str, str]:
    """Headers of latency, bandwidth and distribution files."""

class _End(Protocol):
    """An end point; see `tlplab.nettlp.end.End`."""

    @property
    def local(self) -> str: ...
    @property
    def adapter(self) -> str: ...

@final
class Dma:
    """An end point that reads and writes the memory of a NetTLP adapter's host. Several threads may use it at once."""

    def __init__(self, end: _End) -> None:
        """Opens its sockets. Raises RunError, ValueError."""
    @property
    def requester(self) -> int:
        """Bus, device and function under which it issues requests."""
    def read(self, address: int, bytes: int) -> bytes:
        """Reads. Raises RunError, with the reason of the first request that failed."""
    def write(self, address: int, data: bytes) -> None:
        """Writes; it is over when it was sent. Raises RunError."""
    def flush(self, address: int) -> None:
        """Waits until earlier writes are in memory; `address` is that of their last byte. Raises RunError."""
    def flush_by(self, how: Literal["zero", "read", "never"]) -> None:
        """Sets the wait of `flush`, and of long writes: a read of no bytes, one of the last doubleword, or not at all."""
    def counters(self) -> dict[str, int]:
        """The counters of the end point."""
    def read_many(self, places: Sequence[tuple[int, int]]) -> list[bytes | str]:
        """Reads several places (address, bytes) at once; for an unreadable one, a text has the reason."""

def config_read(end: _End, register: int) -> int:
    """A doubleword of the configuration space of the function that the adapter is. Raises RunError."""

def adapter_registers(end: _End) -> list[tuple[int, int]]:
    """Numbers and values of the registers of an adapter itself. Raises RunError."""

def config_write(end: _End, register: int, enables: int, data: int) -> None:
    """Writes those bytes of a doubleword there that `enables` names. Raises RunError."""

def measure_on(
    path: str,
    overrides: list[str],
    samples: int,
    seed: int | None,
    progress: Callable[[float], None],
    *,
    idle: bool = False,
) -> str:
    """Times reads of every bridge and end point of an experiment's topology, one at a time: `tlplab/differential/1`.

    The experiment's loads run meanwhile unless `idle`. The counter of the simulated processor goes in steps of 3 ns; `seed` is the
    experiment's if it is None. After Ctrl-C the measurements until then. Raises ExperimentError for a mistake in the experiment, RunError where
    it cannot be sampled.
    """

def probe(request: object, progress: Callable[[float], None]) -> str:
    """Reads the functions of this machine and times it: `tlplab/differential/1` (`tlplab.bench.differential.command.Request`).

    After Ctrl-C the measurements until then, with `interrupted`. Raises ValueError for missing targets, RunError
    where nothing can be measured.
    """

@final
class Perf:
    """A measurement of DMA over NetTLP: an end, and a plan (`tlplab.nettlp.perf.Plan`)."""

    def __init__(self, end: _End, plan: object) -> None:
        """Raises ValueError for numbers that contradict each other, RunError if the adapter does not answer."""
    def run(self) -> dict[str, Any]:
        """Measures, and returns the result. Other Python threads run meanwhile. Raises RunError."""
    def stop(self) -> None:
        """Ends the measurement; the results so far count."""
    def progress(self) -> tuple[int, int]:
        """Operations that succeeded so far, and their bytes."""

@final
class Proxy:
    """A bad network between a device and its adapter (`tlplab.nettlp.proxy.Plan`), on its UDP ports."""

    def __init__(self, plan: object) -> None:
        """Raises ValueError for an address that is not here, RunError if a port is taken."""
    def serve(self, seconds: float) -> None:
        """Passes datagrams on for so long. Raises RunError."""
    def counters(self) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
        """The faults so far of datagrams to the device, and to the adapter: name and number of each counter."""
    def kernel_drops(self) -> int | None:
        """Datagrams that the kernel dropped before the proxy saw them, if it tells."""

class _Site(Protocol):
    """The place of a served device; see `tlplab.nettlp.serve.Site`."""

    @property
    def end(self) -> _End: ...
    @property
    def host(self) -> str | None: ...
    @property
    def window(self) -> int | None: ...

@final
class VfioServer:
    """A device on a Unix socket, for a virtual machine of QEMU."""

    @staticmethod
    def python(path: str, party: object) -> VfioServer:
        """Serves a `tlplab.device.DeviceParty`, which runs within `run`. Raises RunError."""
    @staticmethod
    def library(path: str, library: str, parameters: dict[str, str]) -> VfioServer:
        """Serves a device from a library (tlplab_device.h), which runs within `run`. Raises RunError, ValueError."""
    @staticmethod
    def nvme(path: str, bytes: int) -> VfioServer:
        """Serves an NVMe drive of so many bytes, whose data are in memory. Raises RunError, ValueError."""
    @staticmethod
    def tlpdma(path: str, bytes: int) -> VfioServer:
        """Serves the DMA core with its rings, as transactions, with so many bytes of memory. Raises RunError, ValueError."""
    @staticmethod
    def simple_nic(path: str, mtu: int, tap: str | None) -> VfioServer:
        """Serves a simple NIC for packets of up to `mtu` bytes; its port is a TAP interface, or a loop-back plug. Raises RunError."""
    @property
    def connected(self) -> bool:
        """True while a virtual machine has the device."""
    @property
    def mistake(self) -> str | None:
        """The client's mistake for which the last connection was ended."""
    def capture(self, path: str, id: int, name: str) -> None:
        """Writes the TLPs from now on into a pcapng file, of the function `id` (bus, device, function). Raises RunError."""
    def run(self, seconds: float) -> None:
        """Goes on for so long. Raises RunError if it cannot, or when the device raises."""
    def counters(self) -> list[tuple[str, int]]:
        """The counters so far."""
    def end(self) -> None:
        """Ends it and its capture, and removes the socket; its counters stay. Raises RunError if the capture could not be written."""

class Server:
    """A device behind a NetTLP adapter."""

    @staticmethod
    def builtin(site: _Site, device: object) -> Server:
        """Serves a built-in device (`tlplab.nettlp.serve.Builtin`) with threads. Raises RunError, ValueError."""
    @staticmethod
    def library(site: _Site, path: str, parameters: dict[str, str]) -> Server:
        """Serves a device from a library (tlplab_device.h) with a thread. Raises RunError, ValueError."""
    @staticmethod
    def python(site: _Site, party: object) -> Server:
        """Serves a `tlplab.device.DeviceParty`, which runs within `run`. Raises RunError, ValueError."""
    @property
    def id(self) -> int:
        """Bus, device and function."""
    @property
    def ids(self) -> tuple[int, int] | None:
        """Vendor and device ID of the function at the adapter, if it tells."""
    @property
    def bars(self) -> list[tuple[int, int, int]]:
        """Number, address and size of each BAR."""
    def run(self, seconds: float) -> None:
        """Goes on for so long. Raises RunError if it cannot, or when the device raises."""
    def counters(self) -> list[tuple[str, int]]:
        """The counters so far."""
    def end(self) -> None:
        """Ends it; its counters stay. Raises RunError with the error of its threads."""
