"""The shape of the result document, `tlplab/result/1`.

Times that end in `_fs` are femtoseconds of simulated time, times in `_ns` nanoseconds, rates bits per second;
shares and utilisations are fractions of 1. A *place* is a link direction, written `from → to`, or the name of a node.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

SCHEMA = "tlplab/result/1"


class Limit(TypedDict):
    """The limit of the run, and the figures that show it."""

    resource: str
    kind: str
    utilization: float
    evidence: list[str]
    gain: float | None
    change: str | None


class Phase(TypedDict):
    """A part of a run with different active flows, or with a link that was down."""

    from_fs: int
    until_fs: int
    flows: list[str]
    limits: list[Limit]


class Tried(TypedDict):
    """Runs with one relaxed resource each, and the number of resources."""

    candidates: int
    tried: int
    events: int
    until_fs: int | None
    gains: list[Gain]


class Gain(TypedDict):
    """A resource, and the gain in throughput with twice as much of it: 0.5 is 50 % more."""

    resource: str
    kind: str
    change: str
    gain: float


class Next(TypedDict):
    """The next limit; `headroom` is the unused share of it."""

    resource: str
    kind: str
    headroom: float
    text: str


class Verdict(TypedDict):
    """One sentence that names the limit, with its evidence."""

    sentence: str
    limit: Limit
    next: Next | None
    limits: list[Limit]
    phases: list[Phase]
    tried: Tried | None


class Latency(TypedDict):
    """Nanoseconds from a transaction's start to its last byte."""

    min: float
    mean: float
    p50: float
    p90: float
    p99: float
    p999: float
    max: float


class SummedUp(TypedDict, total=False):
    """In the document of a large fabric, a row that is the sum of `others` flows without a name."""

    others: int


class Attribution(SummedUp):
    """Time that all transactions of a flow spent on one cause (an index in `causes`) at one place."""

    cause: int
    place: str
    behind: str | None
    total_ns: float
    share: float


class Failures(TypedDict):
    """Transactions of a flow that failed in the same way."""

    ending: str
    """A key of `errors`."""
    count: int
    mean_ns: float
    """Time until the requester detected the failure."""
    attribution: list[Attribution]
    """On the path of the last known packet of each; shares are of the sum of their latencies."""


class Flow(TypedDict):
    """The transactions of one load on one device."""

    name: str
    device: str
    op: str
    target: str
    transactions: int
    bytes: int
    payload_bps: float
    errors: dict[str, int]
    latency_ns: Latency | None
    histogram: list[dict[str, Any]]
    attribution: list[Attribution]
    failures: list[Failures]


class Calls(TypedDict):
    """Calls by a program of the host, each from its start until software was notified of its end."""

    count: int
    min_ns: float
    mean_ns: float
    max_ns: float
    interrupts: int


class Measured(TypedDict):
    """Measurements made by a program of the host, as a benchmark prints them."""

    name: str
    bytes: int
    from_fs: int
    to_fs: int
    payload_bps: float
    calls: Calls | None


class NetworkDirection(TypedDict):
    """One direction of the Ethernet link behind a card."""

    datagrams: int
    payload_bps: float
    busy: float
    dropped: int
    dropped_bytes: int


class Network(TypedDict):
    """The Ethernet link behind a card, and the software at its other end."""

    device: str
    to_software: NetworkDirection
    to_card: NetworkDirection
    socket_drops: int
    cores_busy: float
    reads: int
    failed_reads: int
    latency_ns: Latency | None


class Frames(TypedDict):
    """Frames of an Ethernet controller, without the frames that its filters reject."""

    device: str
    sent: int
    received: int
    missed: int
    too_long: int


class Utilization(TypedDict):
    """Fractions of a direction's time; they sum to 1."""

    payload: float
    overhead: float
    dllp: float
    ordered_sets: float
    replay: float
    idle: float


class Stalls(TypedDict):
    """Fractions of time in which a TLP waited for each resource."""

    credits: float
    tags: float
    replay_buffer: float


# One direction of a link. `from` is a keyword in Python, hence this form.
Direction = TypedDict(
    "Direction",
    {
        "from": str,
        "to": str,
        "interface": int,
        "utilization": Utilization,
        "tlps": int,
        "payload_bytes": int,
        "dllps": dict[str, int],
        "replayed": int,
        "nullified": int,
        "replay_timeouts": int,
        "bad_lcrc": int,
        "no_room": int,
        "stalls": Stalls,
    },
)


class Link(TypedDict):
    """A link between two ports, or the connection of a device to a bus, whose mode and width are in `bus`."""

    name: str
    upper: str
    lower: str
    generation: int
    width: int
    mode: str
    mps: int
    raw_bps: float
    bus: str | None
    directions: list[Direction]


class Detected(TypedDict):
    """An error at a port, with the number of times it was detected there."""

    name: str
    port: str
    count: int
    first_fs: int
    header: str | None
    message: str | None
    messages: int


class Reported(TypedDict):
    """Error messages from one function, as a root port logged them."""

    port: str
    source: str
    message: str
    count: int
    first_fs: int
    interrupts: int


class Struck(TypedDict):
    """A fault on units of one direction of a link, and the number of units hit, including the warm-up."""

    link: str
    """The name of the component below the link."""
    direction: str
    """`up` or `down`."""
    damage: str
    """`ber`, or the value of the key `damage`."""
    of: str | None
    """The kind of unit that it counts; `None` for all."""
    first: int
    """The number of the first unit that it hits, from 1."""
    struck: int


class Outage(TypedDict):
    """A link that went down; a later time is `None` if the event never happened."""

    link: str
    down_fs: int
    heard_fs: int | None
    up_fs: int | None
    configured_fs: int | None


class CacheUse(TypedDict):
    """Lookups of lines in the host's last-level cache by requests of devices."""

    hits: int
    misses: int
    hit_rate: float


class IommuUse(TypedDict):
    """Translations of requests of devices: in the IO-TLB, or by a page walk."""

    hits: int
    walks: int
    hit_rate: float
    waited_ns: float
    """Total time for which walks waited for other walks."""
    busy: float
    """Page walks as a share of the possible ones."""
    faults: list[TranslationFault]
    answered: AnsweredTranslations | None
    """`None` if no device can request translations, and all addresses stay as they are."""


class TranslationFault(TypedDict):
    """Accesses of a function that the IOMMU refused for one reason."""

    device: str
    requester: str
    reason: str
    operation: str
    """The kind of the first access, `read` or `write`."""
    address: str
    """The address of the first access, hexadecimal."""
    count: int
    first_fs: int


class AnsweredTranslations(TypedDict):
    """Translations requested by devices, and invalidations sent to them."""

    given: int
    denied: int
    invalidations: int
    invalidated: int
    invalidation_mean_ns: float
    invalidation_max_ns: float


class DeviceTranslations(TypedDict):
    """The use of translations by a device."""

    device: str
    hits: int
    """Requests whose translation was cached."""
    asked: int
    denied: int
    evicted: int
    invalidations: int
    invalidated: int


class HostUse(TypedDict):
    """The use of the host's cache and IOMMU; `None` for a part that it lacks."""

    cache: CacheUse | None
    iommu: IommuUse | None


class Problem(TypedDict):
    """A step of enumeration that failed."""

    function: str
    component: str | None
    kind: str
    """`never-ready`, `no-answer`, `no-address`, `no-bus-number`…"""
    exhausted: bool
    """Bus numbers or addresses ran out, and the run failed."""
    message: str


StopReason = Literal[
    "running", "stop-time", "transactions", "loads-done", "nothing-more", "stuck", "interrupted", "time-limit", "failed"
]


class Guest(TypedDict):
    """The Linux guest that was the host's software."""

    kernel: str
    """SHA-256 of its kernel."""
    initramfs: str
    """SHA-256 of its initial file system."""
    console: str
    """SHA-256 of its console output."""
    end: str
    """The end of the guest: `powered off`, `died: …`, `lost its power: …`, `running`."""
    status: int | None
    """The exit status of its script."""


class Waiting(TypedDict):
    """A program of the host that waits."""

    device: str
    """The device of the driver."""
    operation: str
    """The awaited operation: `timer`, `mmio_read`, `mmio_write`, `irq`."""
    what: str
    """The same, for people."""
    place: str
    """The place of the wait: `file:line`."""


class Result(TypedDict):
    """All results of a run."""

    schema: str
    title: str
    version: str
    seed: int | str
    """A string if a JSON number would not be exact."""
    experiment: str
    settings: dict[str, Any]
    """Each key of the experiment with its value, including defaults of devices, switches and loads."""
    trace_hash: str
    start_fs: int
    end_fs: int
    stop_reason: StopReason
    """Why the run ended."""
    stop_text: str
    """The same, for people."""
    waiting: list[Waiting]
    """Programs that wait for an event that never comes, so that the run is stuck."""
    guest: Guest | None
    verdict: Verdict
    flows: list[Flow]
    measured: list[Measured]
    networks: list[Network]
    frames: list[Frames]
    causes: list[str]
    errors: list[Detected]
    reported: list[Reported]
    outages: list[Outage]
    faults: list[Struck]
    problems: list[Problem]
    host: HostUse | None
    translations: list[DeviceTranslations]
    topology: dict[str, Any]
    links: list[Link]
    places: list[str]
    series: dict[str, Any]
    samples: list[dict[str, Any]]
    ladder: dict[str, Any] | None
