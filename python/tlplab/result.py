"""The shape of the result document, `tlplab/result/1`.

Times that end in `_fs` are femtoseconds of simulated time, times in `_ns` nanoseconds, rates bits per second;
shares and utilisations are fractions of 1. A *place* is a link direction, written `from → to`, or the name of a node.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

SCHEMA = "tlplab/result/1"


class Limit(TypedDict):
    """What limits the run, and the figures that show it."""

    resource: str
    kind: str
    utilization: float
    evidence: list[str]
    gain: float | None
    change: str | None


class Phase(TypedDict):
    """A part of a run in which other flows were active than before, or a link was down."""

    from_fs: int
    until_fs: int
    flows: list[str]
    limits: list[Limit]


class Tried(TypedDict):
    """Runs in which one resource was relaxed, and how many resources there are."""

    candidates: int
    tried: int
    events: int
    until_fs: int | None
    gains: list[Gain]


class Gain(TypedDict):
    """A resource, and what the run carries with twice as much of it: 0.5 is half as much again."""

    resource: str
    kind: str
    change: str
    gain: float


class Next(TypedDict):
    """What would limit next; `headroom` is how much of it is left."""

    resource: str
    kind: str
    headroom: float
    text: str


class Verdict(TypedDict):
    """One sentence that names the limit, and what it rests on."""

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
    """In the document of a large fabric: of so many flows that are not named a row is the sum."""

    others: int


class Attribution(SummedUp):
    """Time that all transactions of a flow spent on one cause (an index in `causes`) at one place."""

    cause: int
    place: str
    behind: str | None
    total_ns: float
    share: float


class Failures(TypedDict):
    """Transactions of a flow that ended in the same way, which was not well."""

    ending: str
    """A key of `errors`."""
    count: int
    mean_ns: float
    """Until the requester knew."""
    attribution: list[Attribution]
    """On the way of what is last known of each; shares are of the sum of their latencies."""


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
    """Calls of a program of the host, each from its beginning until software heard of its end."""

    count: int
    min_ns: float
    mean_ns: float
    max_ns: float
    interrupts: int


class Measured(TypedDict):
    """What a program of the host measured itself, as a benchmark prints it."""

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
    """Frames of an Ethernet controller; those that its filters refuse are in none of these."""

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
    """Fractions of time in which a TLP waited for this."""

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
    """A link between two ports, or a device's way over a bus, whose mode and width are then in `bus`."""

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
    """An error at a port, as often as it was detected there."""

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
    """A fault that hits units on a direction of a link, and how many it has hit, the warm-up included."""

    link: str
    """Named by the component below it."""
    direction: str
    """`up` or `down`."""
    damage: str
    """`ber`, or as the key `damage` says."""
    of: str | None
    """What it counts, if that is not all."""
    first: int
    """The first that it hits, from 1."""
    struck: int


class Outage(TypedDict):
    """A link that went down; the other times are `None` where that never happened."""

    link: str
    down_fs: int
    heard_fs: int | None
    up_fs: int | None
    configured_fs: int | None


class CacheUse(TypedDict):
    """Lines that requests of devices looked for in the host's last-level cache."""

    hits: int
    misses: int
    hit_rate: float


class IommuUse(TypedDict):
    """Translations of requests of devices: in the IO-TLB, or by a page walk."""

    hits: int
    walks: int
    hit_rate: float
    waited_ns: float
    """How long walks waited for others, in all."""
    busy: float
    """Page walks as a share of those that could have been made."""
    faults: list[TranslationFault]
    answered: AnsweredTranslations | None
    """`None` where no device can ask, and all addresses stay as they are."""


class TranslationFault(TypedDict):
    """Accesses of a function that the IOMMU refused for one reason."""

    device: str
    requester: str
    reason: str
    operation: str
    """The first was a `read` or a `write`."""
    address: str
    """Of the first, hexadecimal."""
    count: int
    first_fs: int


class AnsweredTranslations(TypedDict):
    """Translations that devices asked for, and the invalidations that they were sent."""

    given: int
    denied: int
    invalidations: int
    invalidated: int
    invalidation_mean_ns: float
    invalidation_max_ns: float


class DeviceTranslations(TypedDict):
    """What a device did with translations."""

    device: str
    hits: int
    """Requests that had their translation."""
    asked: int
    denied: int
    evicted: int
    invalidations: int
    invalidated: int


class HostUse(TypedDict):
    """What the host's cache and IOMMU did; `None` where it has none."""

    cache: CacheUse | None
    iommu: IommuUse | None


class Problem(TypedDict):
    """Something that software which enumerates could not do."""

    function: str
    component: str | None
    kind: str
    """`never-ready`, `no-answer`, `no-address`, `no-bus-number`…"""
    exhausted: bool
    """Bus numbers or addresses have run out: the run has failed."""
    message: str


StopReason = Literal[
    "running", "stop-time", "transactions", "loads-done", "nothing-more", "stuck", "interrupted", "time-limit", "failed"
]


class Guest(TypedDict):
    """The Linux guest that was the host's software."""

    kernel: str
    """SHA-256 of its kernel."""
    initramfs: str
    """SHA-256 of the initial file system that it booted."""
    console: str
    """SHA-256 of what it printed."""
    end: str
    """How it ended: `powered off`, `died: …`, `lost its power: …`, `running`."""
    status: int | None
    """The exit status of its script."""


class Waiting(TypedDict):
    """A program of the host that waits."""

    device: str
    """The device that it drives."""
    operation: str
    """What for: `timer`, `mmio_read`, `mmio_write`, `irq`."""
    what: str
    """The same, for people."""
    place: str
    """Where it says so: `file:line`."""


class Result(TypedDict):
    """Everything a run tells."""

    schema: str
    title: str
    version: str
    seed: int | str
    """A string where a JSON number would not be exact."""
    experiment: str
    settings: dict[str, Any]
    """Each key of the experiment with its value, defaults of devices, switches and loads included."""
    trace_hash: str
    start_fs: int
    end_fs: int
    stop_reason: StopReason
    """Why the run ended."""
    stop_text: str
    """The same, for people."""
    waiting: list[Waiting]
    """Programs that wait for an event that never comes: the run got nowhere."""
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
