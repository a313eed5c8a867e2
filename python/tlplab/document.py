"""The result document, `tlplab/result/1`: generated from the schema of result documents: `make generate`.

Times that end in `_fs` are femtoseconds of simulated time, times in `_ns` nanoseconds, rates bits per second; shares and utilisations are
fractions of 1. A *place* is a link direction, written `from → to`, or the name of a node.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypedDict, overload

from tlplab.rows import Rows

SCHEMA = "tlplab/result/1"

__all__ = ["CAUSES", "ROWS", "SCHEMA", "Access", "AnsweredTranslations", "Arbitration", "Attribution", "Bar", "CacheUse", "Calls", "Cause", "CauseStyle", "CompletionStatus", "ConfigSpaces", "Detected", "DeviceTranslations", "Direction", "DirectionSeries", "Dllps", "Document", "Ending", "ErrorName", "Errors", "Failures", "FaultDamage", "FaultOf", "Flow", "FlowSeries", "Forwarding", "Frames", "Framing", "FunctionRegisters", "Gain", "Guest", "GuestEnding", "HostUse", "Interval", "IommuUse", "Keys", "Ladder", "Latency", "Limit", "LimitKind", "Link", "Measured", "MessageName", "Network", "NetworkDirection", "Next", "Node", "NodeKind", "Operation", "Outage", "Outcome", "Packet", "PacketClass", "PacketRole", "PeerRefusal", "Phase", "Problem", "ProblemName", "RefusalReason", "RefusedPeers", "RegisterBlock", "RegisterCause", "RegisterChange", "RegisterGap", "Reported", "Resource", "ResourceKind", "Sample", "Series", "Stalls", "StopReason", "Struck", "TlpHeader", "Topology", "Transaction", "TranslationFault", "Tried", "Utilization", "Verdict", "WaitedFor", "Waiting", "Way"]


StopReason = Literal["running", "stop-time", "transactions", "loads-done", "nothing-more", "stuck", "guest-off", "interrupted", "time-limit", "failed"]
"""Reason that a run ended."""


Cause = Literal["processing", "serialisation", "flight", "queueing", "credit wait", "tag wait", "replay buffer wait", "replay", "data link", "completer", "link down", "arbitration", "address", "device select", "wait states", "data phases", "turnaround", "retry", "no answer", "translation wait"]
"""A cause of latency."""


WaitedFor = Literal["timer", "mmio_read", "mmio_write", "irq"]
"""Operation that a program of the host waits for."""


GuestEnding = Literal["running", "powered-off", "died", "lost-power"]
"""Ending of a guest."""


Operation = Literal["read", "write", "copy", "dma", "replay", "dd-read", "dd-write", "to-card", "from-card", "mmio", "mmio-read", "mmio-write", "config", "configuration", "peer"]
"""The operation of a flow's requests. The operation of a device in Python or in a library is `dma`."""


ErrorName = Literal["Data Link Protocol Error", "Surprise Down", "Poisoned TLP Received", "Flow Control Protocol Error", "Completion Timeout", "Completer Abort", "Unexpected Completion", "Receiver Overflow", "Malformed TLP", "ECRC Error", "Unsupported Request", "ACS Violation", "Uncorrectable Internal Error", "Receiver Error", "Bad TLP", "Bad DLLP", "REPLAY_NUM Rollover", "Replay Timer Timeout", "Corrected Internal Error", "Header Log Overflow"]
"""An error of PCIe 5.0 §6.2, by the specification's name."""


MessageName = Literal["ERR_COR", "ERR_NONFATAL", "ERR_FATAL"]
"""A message that reports an error to the root complex."""


PeerRefusal = Literal["source-validation", "translation-blocking", "egress-control", "no-upstream-forwarding", "root-complex"]
"""Reason that a port refuses a TLP its way to a peer (PCIe 5.0 §6.12)."""


Way = Literal["up", "down"]
"""A direction of a link."""


FaultDamage = Literal["ber", "corrupt", "drop", "poison", "ecrc", "type", "length", "payload", "boundary", "tag", "requester", "byte-count", "address", "abort", "refuse", "retry", "lose", "late", "twice", "ones", "data", "take-back", "overgrant", "unsent"]
"""Damage by a fault: the key `damage`, or `ber`."""


FaultOf = Literal["tlp", "dllp", "flit", "MRd", "MWr", "CfgRd0", "CfgWr0", "CfgRd1", "CfgWr1", "IORd", "IOWr", "Msg", "Cpl", "CplD", "Ack", "Nak", "UpdateFC", "InitFC1", "InitFC2"]
"""Units that a fault counts."""


ProblemName = Literal["never-ready", "no-answer", "header-type", "capability-chain", "bar-size", "no-address", "bar-unkept", "msix-table", "no-bus-number", "virtual-ids", "no-virtual-bus"]
"""Problem of the software that enumerates."""


Framing = Literal["non-flit", "flit"]
"""Framing of the units of a link."""


Access = Literal["read", "write"]
"""Operation of an access."""


LimitKind = Literal["link", "bus", "tags", "outstanding", "credits", "replay", "memory", "rate", "routing", "latency", "none"]
"""Kinds of limits."""


Ending = Literal["done", "ur", "ca", "timeout", "poisoned", "lost", "malformed"]
"""Ending of a transaction."""


NodeKind = Literal["host", "root port", "switch", "bus", "device"]
"""Kinds of components."""


Arbitration = Literal["round-robin", "weighted"]
"""The arbitration of a switch between its ports: the key `arbitration`."""


Forwarding = Literal["cut-through", "cut-through-unless-faster", "store-and-forward", "header-checked"]
"""The time at which a switch forwards a TLP: the key `forwarding` of the switch. A port may have another."""


ResourceKind = Literal["tags", "credits", "buffer", "replay"]
"""Kind of a resource over time."""


PacketClass = Literal["tlp", "dllp", "flit", "bus"]
"""Kind of a unit on a wire."""


PacketRole = Literal["read", "write", "completion"]
"""Role of a TLP in its transaction."""


Outcome = Literal["data", "split", "retry", "abort"]
"""Outcome of a transaction of a bus."""


RegisterCause = Literal["write", "reset", "hardware", "several"]
"""Cause of a change of a register."""


RefusalReason = Literal["not-mapped", "no-read", "no-write", "translated", "translation-request"]
"""Reason that the IOMMU refuses an access."""


CompletionStatus = Literal["SC", "UR", "CRS", "CA"]
"""Status with which a completion ends its request."""


class Document(TypedDict):
    """The result of a run: the document of the schema `tlplab/result/1`."""

    schema: str
    """The schema, `tlplab/result/1`."""
    revision: int
    """Number of times that keys were added to the schema, from 1; a document without this key is of revision 1."""
    title: str
    """Title of the experiment."""
    version: str
    """Version of tlplab."""
    seed: int | str
    """The seed; a string where a JSON number would not be exact."""
    experiment: str
    """The experiment as it was run: TOML, with included files and overrides."""
    settings: dict[str, Any]
    """The resolved settings: each key of the experiment with its value, defaults of devices, switches and loads included."""
    trace_hash: str
    """Hash of everything that went over the wires: 16 hexadecimal digits."""
    start_fs: int
    """Start of the statistics (femtoseconds)."""
    end_fs: int
    """End of the run (femtoseconds)."""
    stop_reason: StopReason
    """Reason that the run ended."""
    stop_text: str
    """Reason that the run ended, for people."""
    waiting: list[Waiting]
    """Programs of the host that wait for an event that never comes: the run is stuck."""
    guest: Guest | None
    """The Linux that was the host's software; null if none was."""
    verdict: Verdict
    """The limit of the run."""
    flows: list[Flow]
    """Streams of transactions: loads and programs."""
    measured: list[Measured]
    """Measurements of programs of the host."""
    networks: list[Network]
    """The networks behind devices."""
    frames: list[Frames]
    """The frames of Ethernet controllers."""
    causes: list[Cause]
    """The causes of latency; every `cause` and `causes_ns` is indexed like this list."""
    errors: list[Detected]
    """Errors that receivers and requesters detected, the warm-up included."""
    reported: list[Reported]
    """Errors reported to root ports, the warm-up included."""
    refused_peers: list[RefusedPeers]
    """TLPs that access control or the root complex refused their way to a peer, by port and reason, the warm-up included."""
    outages: list[Outage]
    """Links that went down, the warm-up included; of very many the first."""
    faults: list[Struck]
    """Faults of units, and how many they have hit, the warm-up included."""
    problems: list[Problem]
    """Problems of the software that enumerates since the start, each once. That a device is not ready is a result; that bus numbers or addresses run out makes the run a failed one."""
    host: HostUse | None
    """Use of the host's cache and IOMMU; null if it has neither."""
    translations: list[DeviceTranslations]
    """Translations of devices that can request some."""
    topology: Topology
    """Components."""
    links: list[Link]
    """Links."""
    places: list[str]
    """Link directions and nodes, which samples refer to."""
    series: Series
    """Everything over time."""
    samples: list[Sample]
    """A uniform sample of transactions."""
    ladder: Ladder | None
    """The window of packets that was kept; null if none was."""
    config_spaces: ConfigSpaces | None
    """Configuration spaces over time; null if they were not kept."""


class Waiting(TypedDict):
    """A program of the host that waits."""

    device: str
    """The device that it drives."""
    operation: WaitedFor
    """The operation that it waits for."""
    what: str
    """The same, for people: `irq 3`."""
    place: str
    """The place in its source: `file:line`."""


class Guest(TypedDict):
    """A Linux guest, and how it ended. The same kernel, initial file system, experiment and seed give the same run."""

    kernel: str
    """SHA-256 of its kernel, hexadecimal."""
    initramfs: str
    """SHA-256 of the initial file system that it booted, with its script and files, hexadecimal."""
    console: str
    """SHA-256 of its console output, hexadecimal."""
    end: str
    """Its ending, for people: `powered off`, `died: …`, `lost its power: …`, `running`."""
    ending: GuestEnding
    """Its ending."""
    status: int | None
    """The exit status of its script; null if it told none."""


class Verdict(TypedDict):
    """The limit of the run."""

    sentence: str
    """One sentence that names it."""
    limit: Limit
    """The resource and the evidence."""
    next: Next | None
    """The next limit; null if no other is near."""
    limits: list[Limit]
    """The limits, if relaxing any of several gains as much; the first is `limit`. Empty where figures alone judge."""
    phases: list[Phase]
    """Phases with different activity, one after the other: the limit of each. Empty where there is but one."""
    tried: Tried | None
    """The runs that the verdict was found by; null: by the figures of the run alone."""


class Flow(TypedDict):
    """A stream of transactions."""

    name: str
    """The load or program; of a device with activity of its own, the device, or one of its streams: `nic.transmit`."""
    device: str
    """The component that issues the requests: a device or `host`."""
    op: Operation
    """The operation of its requests."""
    target: str
    """`host`, or the device whose BAR is meant."""
    transactions: int
    """Transactions that ended well."""
    bytes: int
    """Payload that arrived, in bytes."""
    payload_bps: float
    """Payload per second of the measured time (bits per second)."""
    errors: Errors
    """Transactions that did not end well."""
    latency_ns: Latency | None
    """Latency of the transactions that ended well; null if none did (nanoseconds)."""
    histogram: list[Bar]
    """Distribution of latency, in 32 equal steps of each octave of femtoseconds; empty ones are left out."""
    attribution: list[Attribution]
    """Attribution of the time of successful transactions."""
    failures: list[Failures]
    """Transactions that did not end well, by their ending, with the causes of their time."""


class Measured(TypedDict):
    """Measurement by a program of the host, as a benchmark prints it."""

    name: str
    """The load or program."""
    bytes: int
    """Bytes it moved (bytes)."""
    from_fs: int
    """Start of the measurement (femtoseconds)."""
    to_fs: int
    """Arrival of the last of them (femtoseconds)."""
    payload_bps: float
    """Bits per second between these times (bits per second)."""
    calls: Calls | None
    """Durations of its calls, if it makes calls."""


class Network(TypedDict):
    """The Ethernet link behind a card, and the software at its other end."""

    device: str
    """The card."""
    to_software: NetworkDirection
    """From the card to the software."""
    to_card: NetworkDirection
    """From the software to the card."""
    socket_drops: int
    """Datagrams that the software's sockets had no room for."""
    cores_busy: float
    """Fraction of time in which the software's processors worked."""
    reads: int
    """Reads by the software that ended well."""
    failed_reads: int
    """Reads by the software that did not."""
    latency_ns: Latency | None
    """Latency of the successful ones, as the software sees it; null without any (nanoseconds)."""


class Frames(TypedDict):
    """Frames of an Ethernet controller, without the frames that its filters reject."""

    device: str
    """The controller."""
    sent: int
    """Sent."""
    received: int
    """Received."""
    missed: int
    """Lost for want of room: the packet buffer was full, or no receive buffer was posted."""
    too_long: int
    """Discarded as longer than the receiver takes."""


class Detected(TypedDict):
    """An error of PCIe 5.0 §6.2 at a port, as often as it was detected there."""

    name: ErrorName
    """The specification's name."""
    port: str
    """The port, named with its peer as a link direction: `sw0 → ssd` is the port of sw0 above ssd."""
    count: int
    """Number of times."""
    first_fs: int
    """Time of the first (femtoseconds)."""
    header: str | None
    """Header of the first TLP it concerns: 32 hexadecimal digits; null where no TLP is known."""
    message: MessageName | None
    """The message that told the root complex of it; null: no message was sent."""
    messages: int
    """Number of messages sent."""


class Reported(TypedDict):
    """Error messages from one function, as a root port logged them."""

    port: str
    """The root port: `host.rp0`."""
    source: str
    """ID of the function that reported: `03:00.0`."""
    message: MessageName
    """Its severity."""
    count: int
    """Number of messages that arrived."""
    first_fs: int
    """Arrival of the first (femtoseconds)."""
    interrupts: int
    """Number of times that the root port interrupted for them."""


class RefusedPeers(TypedDict):
    """TLPs that a port refused their way to a peer, for one reason."""

    port: str
    """The port that they arrived at, named with its peer as a link direction."""
    reason: PeerRefusal
    """Reason of the refusal."""
    key: str
    """The key that sets this, at the port."""
    device: str
    """The device that sent the first, or the ID of a function that no device has."""
    requests: int
    """Number of requests."""
    completions: int
    """Number of completions, whose requests time out."""
    first_fs: int
    """Time of the first refusal (femtoseconds)."""


class Outage(TypedDict):
    """A link that went down, and the consequences."""

    link: str
    """The link, named by the component below it."""
    down_fs: int
    """Time at which it went down (femtoseconds)."""
    heard_fs: int | None
    """Time at which hot-plug software of the host was notified; null: it never was (femtoseconds)."""
    up_fs: int | None
    """Time at which its data link layer was active again; null: it never was (femtoseconds)."""
    configured_fs: int | None
    """Time at which software had configured the components below it again; null: it never had (femtoseconds)."""


class Struck(TypedDict):
    """A fault that hits units on a direction of a link."""

    link: str
    """The link, named by the component below it."""
    direction: Way
    """The direction of the units that it hits."""
    damage: FaultDamage
    """Its damage: a value of the key `damage`, or `ber`."""
    of: FaultOf | None
    """Units that it counts; null: all units."""
    first: int
    """The first that it hits, from 1."""
    struck: int
    """Number of units that it has hit."""


class Problem(TypedDict):
    """Something that software could not do."""

    function: str
    """The function that it concerns: `03:00.0`."""
    component: str | None
    """The component that it concerns: a device, or a port such as `host.rp0`; null where that is not known."""
    kind: ProblemName
    """The kind of problem."""
    exhausted: bool
    """Bus numbers or addresses have run out: a run in which that happens has failed."""
    message: str
    """The problem, for people."""


class HostUse(TypedDict):
    """Use of the host's cache and IOMMU by requests of devices."""

    cache: CacheUse | None
    """The last-level cache; null if there is none."""
    iommu: IommuUse | None
    """The IOMMU; null if there is none."""


class DeviceTranslations(TypedDict):
    """Translations of a device, the warm-up included."""

    device: str
    """The device."""
    hits: int
    """Requests whose translation was kept when their turn came."""
    waited: int
    """Requests that waited for their translation."""
    asked: int
    """Translations that it asked for."""
    denied: int
    """Of these, translations that did not exist, or requests for them that were not answered."""
    evicted: int
    """Translations that made room for others."""
    invalidations: int
    """Invalidations that it completed."""
    invalidated: int
    """Translations that these took away."""


class Topology(TypedDict):
    """Components."""

    nodes: list[Node]
    """The host first."""


class Link(TypedDict):
    """A link, or a device's way over a parallel bus."""

    name: str
    """The component below it."""
    upper: str
    """The component above it."""
    lower: str
    """The component below it."""
    generation: int
    """Its generation, 1 to 7."""
    width: int
    """Lanes."""
    mode: Framing
    """Framing of its units."""
    mps: int
    """Max_Payload_Size in force, in bytes."""
    raw_bps: float
    """Rate after line coding (bits per second)."""
    bus: str | None
    """Mode and width of the bus that it is a way over: generation, width and mode then mean nothing. The use of its directions is in fractions of the bus's time, which all ways share. Null for a link."""
    directions: list[Direction]
    """Up, then down."""


class Series(TypedDict):
    """Everything over time, in bins."""

    start_fs: int
    """Start of the first bin (femtoseconds)."""
    bin_fs: int
    """Width of a bin (femtoseconds)."""
    bins: int
    """Number of bins; every array has as many entries."""
    flows: list[FlowSeries]
    """Payload of flows."""
    directions: list[DirectionSeries]
    """Use of the wires."""
    resources: list[Resource]
    """Tags, credits, buffers."""


class SampleOptional(TypedDict, total=False):
    """Keys of `Sample` that are not always there."""

    parts: list[tuple[int, int, int, float]]
    """The same time: each with cause, place (an index in `places`), flow in front (-1: none) and nanoseconds; left out if not known."""


class Sample(SampleOptional):
    """One transaction of the sample."""

    flow: int
    """Its flow: an index in `flows`."""
    transaction: int
    """Its number, as in the ladder."""
    access: Access
    """Its operation."""
    address: str
    """Its first address, hexadecimal; of a configuration register, its address in the processor's map (ECAM)."""
    bytes: int
    """Its length (bytes)."""
    requester: str
    """The function that sent its requests: `03:00.0`."""
    tag: int | None
    """Tag of the request that brought its last byte; null if that was a posted one."""
    start_fs: int
    """Start (femtoseconds)."""
    latency_ns: float
    """Time until its last byte (nanoseconds)."""
    links: list[int]
    """Links that it crossed: indices in `links`, in any order."""
    causes_ns: list[float]
    """Its latency by cause (nanoseconds)."""


class Ladder(TypedDict):
    """Every packet of a window of time."""

    columns: list[str]
    """Nodes from left to right; an end of a link that is not here belongs to its nearest ancestor that is."""
    from_fs: int
    """Start of the window (femtoseconds)."""
    to_fs: int
    """End of the window (femtoseconds)."""
    packets: list[Packet]
    """Its packets, in the order of their start."""
    transactions: list[Transaction]
    """The transactions they belong to."""


class ConfigSpaces(TypedDict):
    """Configuration spaces over time, as software reads them: the registers at first, and their changes. The registers at first with the changes up to a time give the registers at that time. MSI-X tables and pending bits are in the memory of a BAR, and are not among them."""

    functions: list[FunctionRegisters]
    """Functions, in the order of the names of their components."""
    changes: list[RegisterChange]
    """Changes in the order of time."""


class Limit(TypedDict):
    """The resource that limits."""

    resource: str
    """Its name: a place, `tags of ssd`, `load nic`."""
    kind: LimitKind
    """Kind of the resource."""
    links: list[int]
    """The links that it belongs to: indices in `links` of the document; none if it belongs to no link."""
    utilization: float
    """Utilisation, a fraction of 1."""
    evidence: list[str]
    """Figures that show it."""
    gain: float | None
    """Additional payload of the run with twice as much of it: 0.5 is half as much again. Null: it was not tried."""
    change: str | None
    """The change for that: `16 → 32`; null: it was not tried."""


class Next(TypedDict):
    """The next limit."""

    resource: str
    """Its name."""
    kind: LimitKind
    """Kind of the resource."""
    headroom: float
    """By how much throughput could grow before it limits: 0.4 is 40 %."""
    text: str
    """A sentence."""


class Phase(TypedDict):
    """A part of a run in which other flows were active than before, or a link was down."""

    from_fs: int
    """Its beginning (femtoseconds)."""
    until_fs: int
    """Its end (femtoseconds)."""
    flows: list[str]
    """The flows that were active; of an outage none."""
    limits: list[Limit]
    """Limits of the phase: empty, if no relaxation would have carried more."""


class Tried(TypedDict):
    """Runs in which one resource was relaxed."""

    candidates: int
    """Number of candidates for the limit."""
    tried: int
    """Number of relaxed candidates."""
    events: int
    """Events of all these runs, including the cost of building their fabrics."""
    until_fs: int | None
    """They were compared with the beginning of the run until here; null: with all of it (femtoseconds)."""
    gains: list[Gain]
    """Relaxations that gained or cost something, the best first."""


Errors = dict[Literal["ur", "ca", "timeout", "poisoned", "lost", "malformed"], int]
"""Transactions that did not end well, by how."""


class Latency(TypedDict):
    """Latency in nanoseconds."""

    min: float
    """Smallest."""
    mean: float
    """Mean."""
    p50: float
    """Median."""
    p90: float
    """90 % are below."""
    p99: float
    """99 % are below."""
    p999: float
    """99.9 % are below."""
    max: float
    """Largest."""


class Bar(TypedDict):
    """Transactions whose latency lies in a range."""

    from_ns: float
    """From this (nanoseconds)."""
    to_ns: float
    """Up to this (nanoseconds)."""
    count: int
    """Their number."""
    causes_ns: list[float]
    """Their mean time by cause (nanoseconds)."""


class AttributionOptional(TypedDict, total=False):
    """Keys of `Attribution` that are not always there."""

    others: int
    """In a document that is shortened: of so many further flows that one queued behind, this is the sum."""


class Attribution(AttributionOptional):
    """Time that all transactions of a flow spent for one cause at one place."""

    cause: int
    """Cause: an index in `causes` of the document."""
    place: str
    """Place: a link direction `from → to`, or a node."""
    behind: str | None
    """The flow one queued behind; null where one did not queue."""
    total_ns: float
    """Sum over all transactions of the flow (nanoseconds)."""
    share: float
    """Part of the sum of all latencies of the flow, a fraction of 1."""


class Failures(TypedDict):
    """Transactions of a flow that ended in the same way, which was not well."""

    ending: Ending
    """Their ending; never `done`."""
    count: int
    """Their number."""
    mean_ns: float
    """Their mean latency, until the requester knew (nanoseconds)."""
    attribution: list[Attribution]
    """Attribution of their time, up to the last known place of each; shares are of the sum of their latencies."""


class Calls(TypedDict):
    """Calls of a program of the host, each from its beginning until software heard of its end."""

    count: int
    """Calls that are over."""
    min_ns: float
    """The shortest, in nanoseconds."""
    mean_ns: float
    """Their mean, in nanoseconds."""
    max_ns: float
    """The longest, in nanoseconds."""
    interrupts: int
    """Interrupts that software took meanwhile."""


class NetworkDirection(TypedDict):
    """One direction of it."""

    datagrams: int
    """Datagrams sent."""
    payload_bps: float
    """Payload of their TLPs: the goodput (bits per second)."""
    busy: float
    """Fraction of time in which the wire was busy."""
    dropped: int
    """Datagrams lost because the buffer was full."""
    dropped_bytes: int
    """The payload lost with them, in bytes."""


class CacheUse(TypedDict):
    """Lines that requests of devices looked for in the last-level cache."""

    hits: int
    """Lines that were there."""
    misses: int
    """Lines that were not."""
    hit_rate: float
    """Hits as a fraction of both."""


class IommuUse(TypedDict):
    """Translations of requests of devices."""

    hits: int
    """Requests whose translation was in the IO-TLB or on its way there."""
    walks: int
    """Page walks: the other requests."""
    hit_rate: float
    """Hits as a fraction of both."""
    waited_ns: float
    """Total time that walks waited for others (nanoseconds)."""
    busy: float
    """Page walks as a fraction of the possible ones."""
    faults: list[TranslationFault]
    """Accesses that were refused, by function and reason, the warm-up included."""
    answered: AnsweredTranslations | None
    """Translations that devices requested, the warm-up included; null where no device can request any and all addresses stay as they are."""


class NodeOptional(TypedDict, total=False):
    """Keys of `Node` that are not always there."""

    arbitration: Arbitration
    """The arbitration of a switch; left out for others."""
    forwarding: Forwarding
    """The forwarding of a switch; left out for others."""


class Node(NodeOptional):
    """A component."""

    name: str
    """Its name."""
    kind: NodeKind
    """Kind of the component."""
    model: str | None
    """A device's model, a bus's mode and width; null for others."""
    parent: str | None
    """The component above it; null for the host."""
    detail: str
    """Further details, in a line."""


# One direction of a link.
Direction = TypedDict(
    "Direction",
    {
        # The component that sends.
        "from": "str",
        # The component that receives.
        "to": "str",
        # Number of the interface in a pcapng capture of the same run.
        "interface": "int",
        # Use of the wire, as fractions of time.
        "utilization": "Utilization",
        # TLPs, without copies.
        "tlps": "int",
        # Payload in them, in bytes.
        "payload_bytes": "int",
        # DLLPs.
        "dllps": "Dllps",
        # TLPs (or flits) that were sent again.
        "replayed": "int",
        # TLPs that a switch sent with EDB and an inverted LCRC, because they turned out to be damaged while it forwarded them.
        "nullified": "int",
        # Replays because the timer ran out.
        "replay_timeouts": "int",
        # TLPs that arrived with a bad LCRC, or flits with a bad CRC.
        "bad_lcrc": "int",
        # TLPs that the receiver dropped for want of room (only where a link drops and replays).
        "no_room": "int",
        # Time in which a TLP had to wait, as fractions of time.
        "stalls": "Stalls",
    },
)


class FlowSeries(TypedDict):
    """Payload of a flow over time."""

    flow: int
    """The flow: an index in `flows`."""
    bytes: list[int]
    """Bytes that arrived in each bin (bytes)."""
    outstanding_mean: list[float] | None
    """Transactions under way, from their owner's request to their end: the mean of each bin; null if not kept."""
    outstanding_max: list[int] | None
    """The same: the largest of each bin."""


class DirectionSeries(TypedDict):
    """Fractions of each bin; the rest to 1 is idle."""

    link: int
    """The link: an index in `links`."""
    direction: int
    """0: up, 1: down."""
    payload: list[float]
    """Payload of TLPs."""
    overhead: list[float]
    """Headers, framing, sequence numbers and CRCs."""
    dllp: list[float]
    """DLLPs."""
    ordered_sets: list[float]
    """Ordered sets."""
    replay: list[float]
    """Copies."""


class Resource(TypedDict):
    """Use of a countable resource over time."""

    name: str
    """Its name: `tags of ssd`."""
    kind: ResourceKind
    """Kind of the resource."""
    link: int | None
    """The link it belongs to, an index in `links`; for the tags of a device, the device's link."""
    direction: int | None
    """The direction it belongs to: 0 is up, 1 down; null where it belongs to no direction."""
    capacity: int | None
    """Capacity; null: no limit."""
    unit: str
    """The unit: `tags`, `TLPs`, `credits`, `credits of 16 B`."""
    mean: list[float]
    """Mean of each bin."""
    max: list[int]
    """Largest of each bin."""


# A unit on a wire.
Packet = TypedDict(
    "Packet",
    {
        # Unique in the ladder.
        "id": "int",
        # The link: an index in `links`.
        "link": "int",
        # 0: up, 1: down.
        "direction": "int",
        # Departure of its first symbol (femtoseconds).
        "start_fs": "int",
        # Departure of its last symbol (femtoseconds).
        "end_fs": "int",
        # Arrival of its last symbol (femtoseconds).
        "arrive_fs": "int",
        # The type's name in the specification: `MWr`, `CplD`, `Ack`; of a flit `Flit`.
        "kind": "str",
        # TLP, DLLP or flit.
        "class": "PacketClass",
        # Its role in its transaction; null for units other than TLPs.
        "role": "PacketRole | None",
        # Header of a TLP; null for other units.
        "header": "TlpHeader | None",
        # Its content, in a line, for people.
        "text": "str",
        # Its flow, an index in `flows`; null where it has none.
        "flow": "int | None",
        # Its transaction, by `id`; null where it belongs to none.
        "transaction": "int | None",
        # Tag of the request, so that a completion finds its request; null where there is none.
        "tag": "int | None",
        # Sequence number; null where there is none.
        "sequence": "int | None",
        # Bytes on the wire (bytes).
        "bytes": "int",
        # It had been sent before.
        "replay": "bool",
        # A fault damaged it.
        "bad": "bool",
        # A TLP that a switch had begun to forward when it turned out to be damaged: it ends with EDB and an inverted LCRC, and its receiver drops it.
        "nullified": "bool",
        # Of a transaction of a bus: its phases in order, each with the cause that it is charged to and its femtoseconds.
        "phases": "list[tuple[int, int]]",
        # Of a transaction of a bus: its outcome; null otherwise.
        "outcome": "Outcome | None",
    },
)


class Transaction(TypedDict):
    """A transaction of the ladder."""

    id: int
    """Its number."""
    flow: int
    """Its flow: an index in `flows`."""
    start_fs: int
    """Start (femtoseconds)."""
    end_fs: int
    """Arrival of its last byte, or its other ending (femtoseconds)."""
    text: str
    """Its description, in a line."""
    ending: Ending
    """Its ending."""
    intervals: list[Interval]
    """Its critical path; of a transaction that did not end well, that of its last known TLP."""


class FunctionRegisters(TypedDict):
    """The configuration space of a function at first: at time 0, and behind an enumeration that takes no simulated time."""

    name: str
    """The host bridge (the name of the host), a root port (`host.rp0`), a device, the upper port of a switch (its name) or one of the others (`sw0 → ssd`)."""
    function: str | None
    """ID at the end: `03:00.0`; null if software does not reach the function, and no configuration write has since its last reset."""
    start: list[RegisterBlock]
    """Bytes at first; those in no block are 0."""
    gap: RegisterGap | None
    """The changes that are not told one by one, as there are too many; null if all are."""


class RegisterChange(TypedDict):
    """A change of a doubleword of a configuration space."""

    function: int
    """The function: an index in `functions`."""
    time_fs: int
    """Time of the change (femtoseconds)."""
    offset: int
    """Offset of the doubleword, a multiple of 4."""
    old: int
    """Value before; the byte at the offset is the lowest."""
    new: int
    """Value afterwards."""
    by: RegisterCause
    """Its cause."""


class Gain(TypedDict):
    """A resource, and the rate of the run with twice as much of it."""

    resource: str
    """Its name."""
    kind: LimitKind
    """Kind of the resource."""
    change: str
    """The change: `16 → 32`."""
    gain: float
    """Additional payload of the run: 0.5 is half as much again."""


class TranslationFault(TypedDict):
    """Accesses of a function that the IOMMU refused for one reason."""

    device: str
    """The device, or the ID of a function that none has."""
    requester: str
    """The requester's ID: `03:00.0`."""
    reason: RefusalReason
    """Reason of the refusal."""
    operation: Access
    """Operation of the first."""
    address: str
    """The address of the first, hexadecimal."""
    count: int
    """Their number."""
    first_fs: int
    """Time of the first refusal (femtoseconds)."""


class AnsweredTranslations(TypedDict):
    """Translations that devices asked for."""

    given: int
    """Answers with a translation."""
    denied: int
    """Answers without a translation."""
    invalidations: int
    """Invalidations that were sent to devices."""
    invalidated: int
    """Invalidations that were completed."""
    invalidation_mean_ns: float
    """From the change of the tables until the completion, on average (nanoseconds)."""
    invalidation_max_ns: float
    """The longest (nanoseconds)."""


class Utilization(TypedDict):
    """Fractions of time; their sum is 1."""

    payload: float
    """Payload of TLPs."""
    overhead: float
    """Headers, framing, sequence numbers and CRCs."""
    dllp: float
    """DLLPs."""
    ordered_sets: float
    """Ordered sets."""
    replay: float
    """Copies."""
    idle: float
    """Nothing."""


Dllps = dict[Literal["ack", "nak", "update_fc", "worked_out", "init_fc", "other"], int]
"""DLLPs sent, by type."""


class Stalls(TypedDict):
    """Fractions of time in which a TLP waited for something."""

    credits: float
    """Credits."""
    tags: float
    """Tags."""
    replay_buffer: float
    """Room in the replay buffer."""


class TlpHeaderOptional(TypedDict, total=False):
    """Keys of `TlpHeader` that are not always there."""

    address: str
    """The address of a memory or I/O request, hexadecimal."""
    byte_count: int
    """Bytes that a completion and those behind it bring."""
    completer: str
    """The function that completes."""
    first_be: int
    """Byte enables of the first doubleword, 0 to 15."""
    function: str
    """The function that a configuration request is for."""
    last_be: int
    """Byte enables of the last doubleword, 0 to 15."""
    length: int
    """Length of its data, or of the data that it asks for, in doublewords of 4 bytes."""
    lower_address: int
    """The lowest bits of the address of a completion's first byte."""
    register: int
    """The offset in configuration space of a configuration request, in bytes."""
    status: CompletionStatus
    """Status with which a completion ends its request."""


class TlpHeader(TlpHeaderOptional):
    """Fields of the header of a TLP; a key that its type does not have is absent."""

    requester: str
    """The function that requests, of a completion that requested: `03:00.0`."""


class Interval(TypedDict):
    """A part of a critical path."""

    cause: int
    """Cause: an index in `causes` of the document."""
    place: str
    """Place: a link direction `from → to`, or a node."""
    behind: str | None
    """The flow one queued behind; null where one did not queue."""
    start_fs: int
    """Start (femtoseconds)."""
    duration_fs: int
    """Duration (femtoseconds)."""


class RegisterBlock(TypedDict):
    """Contiguous bytes of a configuration space."""

    offset: int
    """Offset of the first, a multiple of 4."""
    data: str
    """The bytes in the order of their offsets, two hexadecimal digits each."""


RegisterGap = dict[Literal["from_fs", "to_fs", "count"], int]
"""Changes that are not told one by one. At the end of the gap there is one of each doubleword that has another value then, with the cause `several`: within the gap the registers are not known, behind it they are."""


class Keys(dict[str, Any]):
    """A result document: a dictionary whose keys are attributes, too."""

    @overload
    def __getitem__(self, key: Literal["schema"]) -> str: ...
    @overload
    def __getitem__(self, key: Literal["revision"]) -> int: ...
    @overload
    def __getitem__(self, key: Literal["title"]) -> str: ...
    @overload
    def __getitem__(self, key: Literal["version"]) -> str: ...
    @overload
    def __getitem__(self, key: Literal["seed"]) -> int | str: ...
    @overload
    def __getitem__(self, key: Literal["experiment"]) -> str: ...
    @overload
    def __getitem__(self, key: Literal["settings"]) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: Literal["trace_hash"]) -> str: ...
    @overload
    def __getitem__(self, key: Literal["start_fs"]) -> int: ...
    @overload
    def __getitem__(self, key: Literal["end_fs"]) -> int: ...
    @overload
    def __getitem__(self, key: Literal["stop_reason"]) -> StopReason: ...
    @overload
    def __getitem__(self, key: Literal["stop_text"]) -> str: ...
    @overload
    def __getitem__(self, key: Literal["waiting"]) -> Rows[Waiting]: ...
    @overload
    def __getitem__(self, key: Literal["guest"]) -> Guest | None: ...
    @overload
    def __getitem__(self, key: Literal["verdict"]) -> Verdict: ...
    @overload
    def __getitem__(self, key: Literal["flows"]) -> Rows[Flow]: ...
    @overload
    def __getitem__(self, key: Literal["measured"]) -> Rows[Measured]: ...
    @overload
    def __getitem__(self, key: Literal["networks"]) -> Rows[Network]: ...
    @overload
    def __getitem__(self, key: Literal["frames"]) -> Rows[Frames]: ...
    @overload
    def __getitem__(self, key: Literal["causes"]) -> list[Cause]: ...
    @overload
    def __getitem__(self, key: Literal["errors"]) -> Rows[Detected]: ...
    @overload
    def __getitem__(self, key: Literal["reported"]) -> Rows[Reported]: ...
    @overload
    def __getitem__(self, key: Literal["refused_peers"]) -> Rows[RefusedPeers]: ...
    @overload
    def __getitem__(self, key: Literal["outages"]) -> Rows[Outage]: ...
    @overload
    def __getitem__(self, key: Literal["faults"]) -> Rows[Struck]: ...
    @overload
    def __getitem__(self, key: Literal["problems"]) -> Rows[Problem]: ...
    @overload
    def __getitem__(self, key: Literal["host"]) -> HostUse | None: ...
    @overload
    def __getitem__(self, key: Literal["translations"]) -> Rows[DeviceTranslations]: ...
    @overload
    def __getitem__(self, key: Literal["topology"]) -> Topology: ...
    @overload
    def __getitem__(self, key: Literal["links"]) -> Rows[Link]: ...
    @overload
    def __getitem__(self, key: Literal["places"]) -> list[str]: ...
    @overload
    def __getitem__(self, key: Literal["series"]) -> Series: ...
    @overload
    def __getitem__(self, key: Literal["samples"]) -> Rows[Sample]: ...
    @overload
    def __getitem__(self, key: Literal["ladder"]) -> Ladder | None: ...
    @overload
    def __getitem__(self, key: Literal["config_spaces"]) -> ConfigSpaces | None: ...
    @overload
    def __getitem__(self, key: str) -> Any: ...
    def __getitem__(self, key: str) -> Any:
        """A part of the document."""
        return super().__getitem__(key)

    @property
    def schema(self) -> str:
        """The schema, `tlplab/result/1`."""
        return self["schema"]

    @property
    def revision(self) -> int:
        """Number of times that keys were added to the schema, from 1; a document without this key is of revision 1."""
        return self["revision"]

    @property
    def title(self) -> str:
        """Title of the experiment."""
        return self["title"]

    @property
    def version(self) -> str:
        """Version of tlplab."""
        return self["version"]

    @property
    def seed(self) -> int | str:
        """The seed; a string where a JSON number would not be exact."""
        return self["seed"]

    @property
    def experiment(self) -> str:
        """The experiment as it was run: TOML, with included files and overrides."""
        return self["experiment"]

    @property
    def settings(self) -> dict[str, Any]:
        """The resolved settings: each key of the experiment with its value, defaults of devices, switches and loads included."""
        return self["settings"]

    @property
    def trace_hash(self) -> str:
        """Hash of everything that went over the wires: 16 hexadecimal digits."""
        return self["trace_hash"]

    @property
    def start_fs(self) -> int:
        """Start of the statistics (femtoseconds)."""
        return self["start_fs"]

    @property
    def end_fs(self) -> int:
        """End of the run (femtoseconds)."""
        return self["end_fs"]

    @property
    def stop_reason(self) -> StopReason:
        """Reason that the run ended."""
        return self["stop_reason"]

    @property
    def stop_text(self) -> str:
        """Reason that the run ended, for people."""
        return self["stop_text"]

    @property
    def waiting(self) -> Rows[Waiting]:
        """Programs of the host that wait for an event that never comes: the run is stuck."""
        return self["waiting"]

    @property
    def guest(self) -> Guest | None:
        """The Linux that was the host's software; null if none was."""
        return self["guest"]

    @property
    def verdict(self) -> Verdict:
        """The limit of the run."""
        return self["verdict"]

    @property
    def flows(self) -> Rows[Flow]:
        """Streams of transactions: loads and programs."""
        return self["flows"]

    @property
    def measured(self) -> Rows[Measured]:
        """Measurements of programs of the host."""
        return self["measured"]

    @property
    def networks(self) -> Rows[Network]:
        """The networks behind devices."""
        return self["networks"]

    @property
    def frames(self) -> Rows[Frames]:
        """The frames of Ethernet controllers."""
        return self["frames"]

    @property
    def causes(self) -> list[Cause]:
        """The causes of latency; every `cause` and `causes_ns` is indexed like this list."""
        return self["causes"]

    @property
    def errors(self) -> Rows[Detected]:
        """Errors that receivers and requesters detected, the warm-up included."""
        return self["errors"]

    @property
    def reported(self) -> Rows[Reported]:
        """Errors reported to root ports, the warm-up included."""
        return self["reported"]

    @property
    def refused_peers(self) -> Rows[RefusedPeers]:
        """TLPs that access control or the root complex refused their way to a peer, by port and reason, the warm-up included."""
        return self["refused_peers"]

    @property
    def outages(self) -> Rows[Outage]:
        """Links that went down, the warm-up included; of very many the first."""
        return self["outages"]

    @property
    def faults(self) -> Rows[Struck]:
        """Faults of units, and how many they have hit, the warm-up included."""
        return self["faults"]

    @property
    def problems(self) -> Rows[Problem]:
        """Problems of the software that enumerates since the start, each once. That a device is not ready is a result; that bus numbers or addresses run out makes the run a failed one."""
        return self["problems"]

    @property
    def host(self) -> HostUse | None:
        """Use of the host's cache and IOMMU; null if it has neither."""
        return self["host"]

    @property
    def translations(self) -> Rows[DeviceTranslations]:
        """Translations of devices that can request some."""
        return self["translations"]

    @property
    def topology(self) -> Topology:
        """Components."""
        return self["topology"]

    @property
    def links(self) -> Rows[Link]:
        """Links."""
        return self["links"]

    @property
    def places(self) -> list[str]:
        """Link directions and nodes, which samples refer to."""
        return self["places"]

    @property
    def series(self) -> Series:
        """Everything over time."""
        return self["series"]

    @property
    def samples(self) -> Rows[Sample]:
        """A uniform sample of transactions."""
        return self["samples"]

    @property
    def ladder(self) -> Ladder | None:
        """The window of packets that was kept; null if none was."""
        return self["ladder"]

    @property
    def config_spaces(self) -> ConfigSpaces | None:
        """Configuration spaces over time; null if they were not kept."""
        return self["config_spaces"]


ROWS: dict[str, Any] = {
    "waiting": Waiting,
    "flows": Flow,
    "measured": Measured,
    "networks": Network,
    "frames": Frames,
    "errors": Detected,
    "reported": Reported,
    "refused_peers": RefusedPeers,
    "outages": Outage,
    "faults": Struck,
    "problems": Problem,
    "translations": DeviceTranslations,
    "links": Link,
    "samples": Sample,
}
"""The keys of the document that are lists of dictionaries, and the types of these."""


class CauseStyle(NamedTuple):
    """A cause of latency as it is shown."""

    name: Cause
    group: Literal["work", "wait", "repair", "bus"]
    light: str
    """Its colour on a light ground."""
    dark: str
    """Its colour on a dark ground."""
    about: str


CAUSES = (
    CauseStyle("processing", "work", "#7b8794", "#7f8b99", "A switch, root complex or device works on the TLP."),
    CauseStyle("serialisation", "work", "#2a69b0", "#4c90dd", "The bytes of the TLP go over the wire."),
    CauseStyle("flight", "work", "#9fc4e8", "#a9cdf0", "The signal travels."),
    CauseStyle("queueing", "wait", "#d55e00", "#f27a2c", "Another TLP occupies the egress."),
    CauseStyle("credit wait", "wait", "#eda21f", "#f4b64a", "The receiver has no room: no credits."),
    CauseStyle("tag wait", "wait", "#f2d656", "#f7e27d", "The requester has no free tag."),
    CauseStyle("replay buffer wait", "wait", "#8a5a1c", "#b07a36", "The transmitter may not send before older TLPs are acknowledged."),
    CauseStyle("replay", "repair", "#8f2457", "#d4548f", "A copy was lost or damaged and had to be sent again."),
    CauseStyle("data link", "repair", "#d48fb8", "#e5aecd", "DLLPs and ordered sets occupy the wire."),
    CauseStyle("completer", "work", "#169a78", "#34bd98", "Host memory or the addressed device prepares the answer."),
    CauseStyle("link down", "repair", "#33383f", "#dfe3e8", "The link is down or in recovery."),
    CauseStyle("arbitration", "wait", "#f49b6c", "#ffb48c", "Another master has the parallel bus."),
    CauseStyle("address", "bus", "#5b4aa6", "#8a78e0", "Address and attributes are on the parallel bus."),
    CauseStyle("device select", "bus", "#a79ae0", "#c9c0f7", "The target decodes them, until it claims the transaction."),
    CauseStyle("wait states", "wait", "#cda878", "#d6b88f", "The bus waits until the target is ready."),
    CauseStyle("data phases", "bus", "#129cbf", "#30b8da", "Data are on the parallel bus, or the target's response that they follow later."),
    CauseStyle("turnaround", "bus", "#c2ccd6", "#566270", "The lines of the bus change their driver."),
    CauseStyle("retry", "repair", "#bd4f7c", "#e27ba3", "The target on the bus has no room, or no data yet: the master has to retry."),
    CauseStyle("no answer", "repair", "#5b5560", "#a79fae", "The requester waits for a completion that never arrives, or arrives too late."),
    CauseStyle("translation wait", "wait", "#d9822b", "#f0a35a", "The requester has no translation of the address."),
)
"""All causes, in the order of `causes`."""
