"""Closed forms over numpy arrays: the payload rate of a link, the share that a NIC gets, the requests under way.

    >>> import numpy as np
    >>> from tlplab import model
    >>> grid = model.bandwidth(np.array([64, 256]), generation=[[3], [4]], op="write")
    >>> (grid["bandwidth_bps"] / 1e9).round(2)
    array([[ 45.71,  57.46],
           [ 91.41, 114.92]])

Numbers may be arrays; they are broadcast against each other. The result is a `Grid`: a table with a row per point,
which libraries that know Arrow take as it is (`pyarrow.table(grid)`, `polars.DataFrame(grid)`), and numpy by `grid["name"]`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from tlplab import _core

Numbers = npt.ArrayLike
"""An integer or an array of them."""
COMPAT = (
    "pcie-model",
    "dllp-limits",
    "lost-requests",
    "table-typos",
    "short-frames",
    "framed-flits",
    "one-skip",
    "loose-cuts",
    "both-ways",
)
"""The public model of pcie-bench with all its mistakes, and each of them by name: `studies/pcie_bench/README.md`."""


class Connection(TypedDict, total=False):
    """A link and how transfers are cut on it."""

    generation: Numbers
    """1 to 7; 3 unless given."""
    width: Numbers
    """Lanes; 8 unless given."""
    mps: Numbers
    """Maximum payload size, bytes; 256 unless given."""
    mrrs: Numbers
    """Maximum read request size, bytes; 512 unless given."""
    rcb: Numbers
    """Read completion boundary, bytes; 64 unless given."""
    address_bits: Numbers
    """64, or 32 below 4 GiB."""
    ecrc: Numbers
    """True if TLPs end in a digest (ECRC)."""
    flit: Numbers
    """True if the link is in flit mode; generations 6 and 7 always are."""
    offset: Numbers
    """The beginning of a transfer in its page of 4 KiB, bytes."""
    requests: str
    """The cuts of requests: `aligned`, at multiples of the MPS or MRRS, or `packed`, when they are full."""
    completions: str
    """The cuts of completions: `max`, as late as possible, or `rcb`, at every boundary."""
    compat: str | Iterable[str]
    """Mistakes to make, of `COMPAT`."""


DEFAULTS: dict[str, Numbers] = {
    "offset": 0, "generation": 3, "width": 8, "mps": 256, "mrrs": 512, "rcb": 64, "address_bits": 64, "ecrc": 0, "flit": 0,
}  # fmt: skip


class Grid:
    """A row per point, with the parameters and the results.

    It is an Arrow table by the PyCapsule interface; in `to_numpy` and `grid[name]` columns have the shape of the parameters.
    """

    def __init__(self, table: _core.Table, shape: tuple[int, ...]) -> None:
        self._table = table
        self._columns: dict[str, npt.NDArray[Any]] | None = None
        self.shape = shape

    def to_numpy(self) -> dict[str, npt.NDArray[Any]]:
        """All columns by name."""
        if self._columns is None:
            self._columns = {name: values.reshape(self.shape) for name, values in self._table.to_numpy().items()}
        return self._columns

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """One column."""
        return self.to_numpy()[name]

    def __len__(self) -> int:
        """The number of points."""
        return len(self._table)

    def __arrow_c_schema__(self) -> object:
        """Names and types of the columns."""
        return self._table.__arrow_c_schema__()

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """The rows, as one array of structures."""
        return self._table.__arrow_c_array__(requested_schema)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows, as a stream of one batch."""
        return self._table.__arrow_c_stream__(requested_schema)


def rules(connection: Mapping[str, Any]) -> _core.Rules:
    """The rules of a whole grid."""
    compat = connection.get("compat", ())
    return {
        "requests": connection.get("requests", "aligned"),
        "completions": connection.get("completions", "max"),
        "compat": [compat] if isinstance(compat, str) else list(compat),
    }


def whole(name: str, values: Numbers) -> npt.NDArray[np.int64]:
    """Checked to be integers."""
    array = np.asarray(values)
    if array.dtype.kind not in "iub" and not (array.dtype.kind == "f" and np.array_equal(array, np.trunc(array))):
        raise ValueError(f"{name} is {values!r}; it must be whole numbers")
    return array.astype(np.int64)


def points(size: Numbers, connection: Mapping[str, Any]) -> tuple[list[npt.NDArray[np.int64]], tuple[int, ...]]:
    """The columns that `_core` takes, and the shape they were broadcast to. A wrong name is a TypeError."""
    unknown = set(connection) - set(Connection.__annotations__)
    if unknown:
        names = ", ".join(Connection.__annotations__)
        raise TypeError(f"there is no parameter {sorted(unknown)[0]!r}; the parameters are size, {names}")
    given = {"size": size, **{name: connection.get(name, default) for name, default in DEFAULTS.items()}}
    arrays = np.broadcast_arrays(*(whole(name, values) for name, values in given.items()))
    return [np.ascontiguousarray(array).reshape(-1) for array in arrays], arrays[0].shape


def positive(name: str, value: float | None) -> None:
    """Checked to be a number above 0, if it is there at all."""
    if value is not None and not 0 < value < math.inf:
        raise ValueError(f"{name} is {value}; it must be above 0")


def bandwidth(size: Numbers, *, op: str = "write", **connection: Any) -> Grid:
    """Throughput of transfers of `size` bytes that only the link limits.

    `op` is `read`, `write` or `rdwr` (as many of each); the others are those of `Connection`. Columns, besides the parameters:
    `bandwidth_bps` (payload, each way), `transfers_per_s`, `up_utilization` and `down_utilization` (part of the rate that TLPs can
    have that is used), `up_bytes` and `down_bytes` (of the link, for a transfer's TLPs), `tlp_bps` (the rate available to TLPs while
    both ways are full), `raw_bps` (the link after line coding). Raises ValueError.
    """
    columns, shape = points(size, connection)
    return Grid(_core.model_bandwidth(op, columns, rules(connection)), shape)


def nic(
    frame: Numbers, *, file: str = "simple", text: str | None = None, ways: str = "both", ethernet: float = 40e9,
    **connection: Any,
) -> Grid:  # fmt: skip
    """Throughput of a NIC with Ethernet frames of `frame` bytes (including the check sequence).

    `file` is a NIC that comes with tlplab (`simple`, `kernel`, `dpdk`), or the name of a file whose `text` is given; `ways` is
    `both`, `transmit` or `receive`; `ethernet` is in bits per second. Columns, besides the parameters (`size` is the frame's):
    `bandwidth_bps` (packets without the check sequence, each way), `packets_per_s`, `up_bytes` and `down_bytes` (of the link, for
    a packet), `ethernet_bps` and `ethernet_frames_per_s` (line rate). Raises ValueError, ExperimentError.
    """
    positive("ethernet", ethernet)
    if text is None:
        shipped = dict(_core.nics())
        if file not in shipped:
            raise ValueError(f"there is no NIC {file!r}; the NICs are {', '.join(shipped)}")
        text = shipped[file]
    columns, shape = points(frame, connection)
    return Grid(_core.model_nic(file, text, ways, ethernet, columns, rules(connection)), shape)


def loopback(
    size: Numbers, *, pcie_ns: float, nic_ns: float, ethernet: float = 40e9, store: int = 64, **connection: Any
) -> Grid:
    """The latency of a NIC whose port is connected to itself: `pcie_ns` and `nic_ns`, which sum to it.

    The parameters of these names are the times of host and PCIe core, and of the rest of the NIC, for any packet; `store` is the amount that
    the host stores at once. Raises ValueError.
    """
    if "offset" in connection:
        raise TypeError("loopback takes no offset: its packets start at a page")
    positive("ethernet", ethernet)
    positive("store", store)
    columns, shape = points(size, connection)
    return Grid(_core.model_loopback(ethernet, store, pcie_ns, nic_ns, columns, rules(connection)), shape)


def data_path(payload: int, *, bits: int, clock_hz: float, header: int = 12, packed: bool = False) -> float:
    """Data rate of a data path of `bits` at `clock_hz` for TLPs with inline headers, in bits per second.

    Each TLP has `payload` bytes behind `header` bytes; it begins with a word of its own unless they are `packed`. Raises ValueError.
    """
    for name, value in {"payload": payload, "bits": bits, "header": header, "clock_hz": clock_hz}.items():
        positive(name, value)
    beats, together = _core.model_data_path(bits, clock_hz, payload, header)
    return together if packed else beats


RESOURCES = ("transfers", "tags", "non-posted headers", "posted headers", "posted data", "replay buffer")


def in_flight(
    size: int, *, latency_ns: float, op: str = "read", wanted: float | None = None, flight_ns: float = 0,
    drain_ns: float = 0, available: Mapping[str, float] | None = None, **connection: Any,
) -> _core.InFlight:  # fmt: skip
    """Little's law: the limit of transfers of `size` bytes, and the amount of each resource that they need.

    `latency_ns` is from a transfer's start to its end, `flight_ns` from one end of the link to the other, `drain_ns` from a
    request's arrival until its credit is free again; `wanted` are transfers per second, by default the rate of the link;
    `available` has the amounts of limited `RESOURCES`. Raises ValueError.
    """
    columns, _ = points(size, connection)
    if any(len(column) != 1 for column in columns):
        raise ValueError("in_flight takes one point at a time")
    have = dict(available or {})
    for name, value in {"latency_ns": latency_ns, "wanted": wanted, **have}.items():
        positive(name, value)
    for name, value in {"flight_ns": flight_ns, "drain_ns": drain_ns}.items():
        if not 0 <= value < math.inf:
            raise ValueError(f"{name} is {value}; it must be 0 or more")
    supply = [have.pop(name, None) for name in RESOURCES]
    if have:
        raise ValueError(f"there is no resource {next(iter(have))!r}; the resources are {', '.join(RESOURCES)}")
    point = [int(column[0]) for column in columns]
    return _core.model_in_flight(op, point, wanted, (latency_ns, flight_ns, drain_ns), supply, rules(connection))
