// Generated from the schema of result documents: `make generate`

export const SCHEMA = "tlplab/result/1";

/** The result of a run: the document of the schema `tlplab/result/1`. */
export interface Result {
  /** The schema, `tlplab/result/1`. */
  schema: string;
  /** Number of times that keys were added to the schema, from 1; a document without this key is of revision 1. */
  revision?: number;
  /** Title of the experiment. */
  title: string;
  /** Version of tlplab. */
  version: string;
  /** The seed; a string where a JSON number would not be exact. */
  seed: number | string;
  /** The experiment as it was run: TOML, with included files and overrides. */
  experiment: string;
  /** The resolved settings: each key of the experiment with its value, defaults of devices, switches and loads included. */
  settings: Record<string, unknown>;
  /** Hash of everything that went over the wires: 16 hexadecimal digits. */
  trace_hash: string;
  /** Start of the statistics (femtoseconds). */
  start_fs: number;
  /** End of the run (femtoseconds). */
  end_fs: number;
  /** Reason that the run ended. */
  stop_reason: StopReason;
  /** Reason that the run ended, for people. */
  stop_text: string;
  /** Programs of the host that wait for an event that never comes: the run is stuck. */
  waiting: Waiting[];
  /** The Linux that was the host's software; null if none was. */
  guest: Guest | null;
  /** The limit of the run. */
  verdict: Verdict;
  /** Streams of transactions: loads and programs. */
  flows: Flow[];
  /** Measurements of programs of the host. */
  measured: Measured[];
  /** The networks behind devices. */
  networks: Network[];
  /** The frames of Ethernet controllers. */
  frames?: Frames[];
  /** The causes of latency; every `cause` and `causes_ns` is indexed like this list. */
  causes: Cause[];
  /** Errors that receivers and requesters detected, the warm-up included. */
  errors: Detected[];
  /** Errors reported to root ports, the warm-up included. */
  reported: Reported[];
  /** TLPs that access control or the root complex refused their way to a peer, by port and reason, the warm-up included. */
  refused_peers?: RefusedPeers[];
  /** Links that went down, the warm-up included; of very many the first. */
  outages: Outage[];
  /** Faults of units, and how many they have hit, the warm-up included. */
  faults: Struck[];
  /** Problems of the software that enumerates since the start, each once. That a device is not ready is a result; that bus numbers or addresses run out makes the run a failed one. */
  problems: Problem[];
  /** Use of the host's cache and IOMMU; null if it has neither. */
  host: HostUse | null;
  /** Translations of devices that can request some. */
  translations: DeviceTranslations[];
  /** Components. */
  topology: Topology;
  /** Links. */
  links: Link[];
  /** Link directions and nodes, which samples refer to. */
  places: string[];
  /** Everything over time. */
  series: Series;
  /** A uniform sample of transactions. */
  samples: Sample[];
  /** The window of packets that was kept; null if none was. */
  ladder: Ladder | null;
  /** Configuration spaces over time; null if they were not kept. */
  config_spaces?: ConfigSpaces | null;
}

/** Reason that a run ended. */
export type StopReason =
  /** It goes on. */
  | "running"
  /** Its stop time came. */
  | "stop-time"
  /** As many transactions ended as it was to do. */
  | "transactions"
  /** All loads and programs are done. */
  | "loads-done"
  /** No event is left, though not all are done: the waiting components would wait for ever. */
  | "nothing-more"
  /** Nothing has ended for longer than any request can wait. */
  | "stuck"
  /** The guest that was the host's software powered off, or died. */
  | "guest-off"
  /** It was interrupted. */
  | "interrupted"
  /** The wall-clock time that it was given is over. */
  | "time-limit"
  /** A device or a driver of the user's own raised. */
  | "failed";

/** A program of the host that waits. */
export interface Waiting {
  /** The device that it drives. */
  device: string;
  /** The operation that it waits for. */
  operation: WaitedFor;
  /** The same, for people: `irq 3`. */
  what: string;
  /** The place in its source: `file:line`. */
  place: string;
}

/** A Linux guest, and how it ended. The same kernel, initial file system, experiment and seed give the same run. */
export interface Guest {
  /** SHA-256 of its kernel, hexadecimal. */
  kernel: string;
  /** SHA-256 of the initial file system that it booted, with its script and files, hexadecimal. */
  initramfs: string;
  /** SHA-256 of its console output, hexadecimal. */
  console: string;
  /** Its ending, for people: `powered off`, `died: …`, `lost its power: …`, `running`. */
  end: string;
  /** Its ending. */
  ending?: GuestEnding;
  /** The exit status of its script; null if it told none. */
  status: number | null;
}

/** The limit of the run. */
export interface Verdict {
  /** One sentence that names it. */
  sentence: string;
  /** The resource and the evidence. */
  limit: Limit;
  /** The next limit; null if no other is near. */
  next: Next | null;
  /** The limits, if relaxing any of several gains as much; the first is `limit`. Empty where figures alone judge. */
  limits: Limit[];
  /** Phases with different activity, one after the other: the limit of each. Empty where there is but one. */
  phases: Phase[];
  /** The runs that the verdict was found by; null: by the figures of the run alone. */
  tried: Tried | null;
}

/** A stream of transactions. */
export interface Flow {
  /** The load or program; of a device with activity of its own, the device, or one of its streams: `nic.transmit`. */
  name: string;
  /** The component that issues the requests: a device or `host`. */
  device: string;
  /** The operation of its requests. */
  op: Operation;
  /** `host`, or the device whose BAR is meant. */
  target: string;
  /** Transactions that ended well. */
  transactions: number;
  /** Payload that arrived, in bytes. */
  bytes: number;
  /** Payload per second of the measured time (bits per second). */
  payload_bps: number;
  /** Transactions that did not end well. */
  errors: Errors;
  /** Latency of the transactions that ended well; null if none did (nanoseconds). */
  latency_ns: Latency | null;
  /** Distribution of latency, in 32 equal steps of each octave of femtoseconds; empty ones are left out. */
  histogram: Bar[];
  /** Attribution of the time of successful transactions. */
  attribution: Attribution[];
  /** Transactions that did not end well, by their ending, with the causes of their time. */
  failures: Failures[];
}

/** Measurement by a program of the host, as a benchmark prints it. */
export interface Measured {
  /** The load or program. */
  name: string;
  /** Bytes it moved (bytes). */
  bytes: number;
  /** Start of the measurement (femtoseconds). */
  from_fs: number;
  /** Arrival of the last of them (femtoseconds). */
  to_fs: number;
  /** Bits per second between these times (bits per second). */
  payload_bps: number;
  /** Durations of its calls, if it makes calls. */
  calls: Calls | null;
}

/** The Ethernet link behind a card, and the software at its other end. */
export interface Network {
  /** The card. */
  device: string;
  /** From the card to the software. */
  to_software: NetworkDirection;
  /** From the software to the card. */
  to_card: NetworkDirection;
  /** Datagrams that the software's sockets had no room for. */
  socket_drops: number;
  /** Fraction of time in which the software's processors worked. */
  cores_busy: number;
  /** Reads by the software that ended well. */
  reads: number;
  /** Reads by the software that did not. */
  failed_reads: number;
  /** Latency of the successful ones, as the software sees it; null without any (nanoseconds). */
  latency_ns: Latency | null;
}

/** Frames of an Ethernet controller, without the frames that its filters reject. */
export interface Frames {
  /** The controller. */
  device: string;
  /** Sent. */
  sent: number;
  /** Received. */
  received: number;
  /** Lost for want of room: the packet buffer was full, or no receive buffer was posted. */
  missed: number;
  /** Discarded as longer than the receiver takes. */
  too_long: number;
}

/** A cause of latency. */
export type Cause =
  /** A switch, root complex or device works on the TLP. */
  | "processing"
  /** The bytes of the TLP go over the wire. */
  | "serialisation"
  /** The signal travels. */
  | "flight"
  /** Another TLP occupies the egress. */
  | "queueing"
  /** The receiver has no room: no credits. */
  | "credit wait"
  /** The requester has no free tag. */
  | "tag wait"
  /** The transmitter may not send before older TLPs are acknowledged. */
  | "replay buffer wait"
  /** A copy was lost or damaged and had to be sent again. */
  | "replay"
  /** DLLPs and ordered sets occupy the wire. */
  | "data link"
  /** Host memory or the addressed device prepares the answer. */
  | "completer"
  /** The link is down or in recovery. */
  | "link down"
  /** Another master has the parallel bus. */
  | "arbitration"
  /** Address and attributes are on the parallel bus. */
  | "address"
  /** The target decodes them, until it claims the transaction. */
  | "device select"
  /** The bus waits until the target is ready. */
  | "wait states"
  /** Data are on the parallel bus, or the target's response that they follow later. */
  | "data phases"
  /** The lines of the bus change their driver. */
  | "turnaround"
  /** The target on the bus has no room, or no data yet: the master has to retry. */
  | "retry"
  /** The requester waits for a completion that never arrives, or arrives too late. */
  | "no answer"
  /** The requester has no translation of the address. */
  | "translation wait";

/** An error of PCIe 5.0 §6.2 at a port, as often as it was detected there. */
export interface Detected {
  /** The specification's name. */
  name: ErrorName;
  /** The port, named with its peer as a link direction: `sw0 → ssd` is the port of sw0 above ssd. */
  port: string;
  /** Number of times. */
  count: number;
  /** Time of the first (femtoseconds). */
  first_fs: number;
  /** Header of the first TLP it concerns: 32 hexadecimal digits; null where no TLP is known. */
  header: string | null;
  /** The message that told the root complex of it; null: no message was sent. */
  message: MessageName | null;
  /** Number of messages sent. */
  messages: number;
}

/** Error messages from one function, as a root port logged them. */
export interface Reported {
  /** The root port: `host.rp0`. */
  port: string;
  /** ID of the function that reported: `03:00.0`. */
  source: string;
  /** Its severity. */
  message: MessageName;
  /** Number of messages that arrived. */
  count: number;
  /** Arrival of the first (femtoseconds). */
  first_fs: number;
  /** Number of times that the root port interrupted for them. */
  interrupts: number;
}

/** TLPs that a port refused their way to a peer, for one reason. */
export interface RefusedPeers {
  /** The port that they arrived at, named with its peer as a link direction. */
  port: string;
  /** Reason of the refusal. */
  reason: PeerRefusal;
  /** The key that sets this, at the port. */
  key: string;
  /** The device that sent the first, or the ID of a function that no device has. */
  device: string;
  /** Number of requests. */
  requests: number;
  /** Number of completions, whose requests time out. */
  completions: number;
  /** Time of the first refusal (femtoseconds). */
  first_fs: number;
}

/** A link that went down, and the consequences. */
export interface Outage {
  /** The link, named by the component below it. */
  link: string;
  /** Time at which it went down (femtoseconds). */
  down_fs: number;
  /** Time at which hot-plug software of the host was notified; null: it never was (femtoseconds). */
  heard_fs: number | null;
  /** Time at which its data link layer was active again; null: it never was (femtoseconds). */
  up_fs: number | null;
  /** Time at which software had configured the components below it again; null: it never had (femtoseconds). */
  configured_fs: number | null;
}

/** A fault that hits units on a direction of a link. */
export interface Struck {
  /** The link, named by the component below it. */
  link: string;
  /** The direction of the units that it hits. */
  direction: Way;
  /** Its damage: a value of the key `damage`, or `ber`. */
  damage: FaultDamage;
  /** Units that it counts; null: all units. */
  of: FaultOf | null;
  /** The first that it hits, from 1. */
  first: number;
  /** Number of units that it has hit. */
  struck: number;
}

/** Something that software could not do. */
export interface Problem {
  /** The function that it concerns: `03:00.0`. */
  function: string;
  /** The component that it concerns: a device, or a port such as `host.rp0`; null where that is not known. */
  component: string | null;
  /** The kind of problem. */
  kind: ProblemName;
  /** Bus numbers or addresses have run out: a run in which that happens has failed. */
  exhausted: boolean;
  /** The problem, for people. */
  message: string;
}

/** Use of the host's cache and IOMMU by requests of devices. */
export interface HostUse {
  /** The last-level cache; null if there is none. */
  cache: CacheUse | null;
  /** The IOMMU; null if there is none. */
  iommu: IommuUse | null;
}

/** Translations of a device, the warm-up included. */
export interface DeviceTranslations {
  /** The device. */
  device: string;
  /** Requests whose translation was kept when their turn came. */
  hits: number;
  /** Requests that waited for their translation. */
  waited?: number;
  /** Translations that it asked for. */
  asked: number;
  /** Of these, translations that did not exist, or requests for them that were not answered. */
  denied: number;
  /** Translations that made room for others. */
  evicted: number;
  /** Invalidations that it completed. */
  invalidations: number;
  /** Translations that these took away. */
  invalidated: number;
}

/** Components. */
export interface Topology {
  /** The host first. */
  nodes: Node[];
}

/** A link, or a device's way over a parallel bus. */
export interface Link {
  /** The component below it. */
  name: string;
  /** The component above it. */
  upper: string;
  /** The component below it. */
  lower: string;
  /** Its generation, 1 to 7. */
  generation: number;
  /** Lanes. */
  width: number;
  /** Framing of its units. */
  mode: Framing;
  /** Max_Payload_Size in force, in bytes. */
  mps: number;
  /** Rate after line coding (bits per second). */
  raw_bps: number;
  /** Mode and width of the bus that it is a way over: generation, width and mode then mean nothing. The use of its directions is in fractions of the bus's time, which all ways share. Null for a link. */
  bus: string | null;
  /** Up, then down. */
  directions: [Direction, Direction];
}

/** Everything over time, in bins. */
export interface Series {
  /** Start of the first bin (femtoseconds). */
  start_fs: number;
  /** Width of a bin (femtoseconds). */
  bin_fs: number;
  /** Number of bins; every array has as many entries. */
  bins: number;
  /** Payload of flows. */
  flows: FlowSeries[];
  /** Use of the wires. */
  directions: DirectionSeries[];
  /** Tags, credits, buffers. */
  resources: Resource[];
}

/** One transaction of the sample. */
export interface Sample {
  /** Its flow: an index in `flows`. */
  flow: number;
  /** Its number, as in the ladder. */
  transaction?: number;
  /** Its operation. */
  access?: Access;
  /** Its first address, hexadecimal; of a configuration register, its address in the processor's map (ECAM). */
  address?: string;
  /** Its length (bytes). */
  bytes?: number;
  /** The function that sent its requests: `03:00.0`. */
  requester?: string;
  /** Tag of the request that brought its last byte; null if that was a posted one. */
  tag?: number | null;
  /** Start (femtoseconds). */
  start_fs: number;
  /** Time until its last byte (nanoseconds). */
  latency_ns: number;
  /** Links that it crossed: indices in `links`, in any order. */
  links: number[];
  /** Its latency by cause (nanoseconds). */
  causes_ns: number[];
  /** The same time: each with cause, place (an index in `places`), flow in front (-1: none) and nanoseconds; left out if not known. */
  parts?: ([number, number, number, number])[];
}

/** Every packet of a window of time. */
export interface Ladder {
  /** Nodes from left to right; an end of a link that is not here belongs to its nearest ancestor that is. */
  columns: string[];
  /** Start of the window (femtoseconds). */
  from_fs: number;
  /** End of the window (femtoseconds). */
  to_fs: number;
  /** Its packets, in the order of their start. */
  packets: Packet[];
  /** The transactions they belong to. */
  transactions: Transaction[];
}

/** Configuration spaces over time, as software reads them: the registers at first, and their changes. The registers at first with the changes up to a time give the registers at that time. MSI-X tables and pending bits are in the memory of a BAR, and are not among them. */
export interface ConfigSpaces {
  /** Functions, in the order of the names of their components. */
  functions: FunctionRegisters[];
  /** Changes in the order of time. */
  changes: RegisterChange[];
}

/** Operation that a program of the host waits for. */
export type WaitedFor =
  /** A time. */
  | "timer"
  /** The answer to a read of a register, of memory of a device, or of configuration space. */
  | "mmio_read"
  /** Until a write has left the processor. */
  | "mmio_write"
  /** An interrupt. */
  | "irq";

/** Ending of a guest. */
export type GuestEnding =
  /** It did not: it was interrupted, or its run could not go on. */
  | "running"
  /** Its kernel powered off. */
  | "powered-off"
  /** Its kernel died. */
  | "died"
  /** The run was over before it was. */
  | "lost-power";

/** The resource that limits. */
export interface Limit {
  /** Its name: a place, `tags of ssd`, `load nic`. */
  resource: string;
  /** Kind of the resource. */
  kind: LimitKind;
  /** The links that it belongs to: indices in `links` of the document; none if it belongs to no link. */
  links?: number[];
  /** Utilisation, a fraction of 1. */
  utilization: number;
  /** Figures that show it. */
  evidence: string[];
  /** Additional payload of the run with twice as much of it: 0.5 is half as much again. Null: it was not tried. */
  gain: number | null;
  /** The change for that: `16 → 32`; null: it was not tried. */
  change: string | null;
}

/** The next limit. */
export interface Next {
  /** Its name. */
  resource: string;
  /** Kind of the resource. */
  kind: LimitKind;
  /** By how much throughput could grow before it limits: 0.4 is 40 %. */
  headroom: number;
  /** A sentence. */
  text: string;
}

/** A part of a run in which other flows were active than before, or a link was down. */
export interface Phase {
  /** Its beginning (femtoseconds). */
  from_fs: number;
  /** Its end (femtoseconds). */
  until_fs: number;
  /** The flows that were active; of an outage none. */
  flows: string[];
  /** Limits of the phase: empty, if no relaxation would have carried more. */
  limits: Limit[];
}

/** Runs in which one resource was relaxed. */
export interface Tried {
  /** Number of candidates for the limit. */
  candidates: number;
  /** Number of relaxed candidates. */
  tried: number;
  /** Events of all these runs, including the cost of building their fabrics. */
  events: number;
  /** They were compared with the beginning of the run until here; null: with all of it (femtoseconds). */
  until_fs: number | null;
  /** Relaxations that gained or cost something, the best first. */
  gains: Gain[];
}

/** The operation of a flow's requests. The operation of a device in Python or in a library is `dma`. */
export type Operation =
  /** Reads of memory by a device. */
  | "read"
  /** Writes to memory by a device. */
  | "write"
  /** Reads and writes of a device that copies memory of the host. */
  | "copy"
  /** Requests of a device, of any kind. */
  | "dma"
  /** Requests of a captured trace. */
  | "replay"
  /** Blocks read from a storage device. */
  | "dd-read"
  /** Blocks written to a storage device. */
  | "dd-write"
  /** Transfers from the host to a DMA card, through its driver. */
  | "to-card"
  /** Transfers from a DMA card to the host, through its driver. */
  | "from-card"
  /** Register accesses of a driver, of both kinds. */
  | "mmio"
  /** Register reads by the host. */
  | "mmio-read"
  /** Register writes by the host. */
  | "mmio-write"
  /** Configuration requests of a guest. */
  | "config"
  /** Configuration requests of the enumeration in simulated time. */
  | "configuration"
  /** Requests between devices that the root complex sends on, in a run whose host has no other flow. */
  | "peer";

/** Transactions that did not end well, by how. */
export interface Errors {
  /** Unsupported request. */
  ur: number;
  /** Completer abort. */
  ca: number;
  /** Completion timeout. */
  timeout: number;
  /** Poisoned data. */
  poisoned: number;
  /** Transactions that a reset of their requester ended, and posted requests that went down with a link, or that no component claimed. */
  lost: number;
  /** Completions that contradict their request. */
  malformed: number;
}

/** Latency in nanoseconds. */
export interface Latency {
  /** Smallest. */
  min: number;
  /** Mean. */
  mean: number;
  /** Median. */
  p50: number;
  /** 90 % are below. */
  p90: number;
  /** 99 % are below. */
  p99: number;
  /** 99.9 % are below. */
  p999: number;
  /** Largest. */
  max: number;
}

/** Transactions whose latency lies in a range. */
export interface Bar {
  /** From this (nanoseconds). */
  from_ns: number;
  /** Up to this (nanoseconds). */
  to_ns: number;
  /** Their number. */
  count: number;
  /** Their mean time by cause (nanoseconds). */
  causes_ns: number[];
}

/** Time that all transactions of a flow spent for one cause at one place. */
export interface Attribution {
  /** Cause: an index in `causes` of the document. */
  cause: number;
  /** Place: a link direction `from → to`, or a node. */
  place: string;
  /** The flow one queued behind; null where one did not queue. */
  behind: string | null;
  /** Sum over all transactions of the flow (nanoseconds). */
  total_ns: number;
  /** Part of the sum of all latencies of the flow, a fraction of 1. */
  share: number;
  /** In a document that is shortened: of so many further flows that one queued behind, this is the sum. */
  others?: number;
}

/** Transactions of a flow that ended in the same way, which was not well. */
export interface Failures {
  /** Their ending; never `done`. */
  ending: Ending;
  /** Their number. */
  count: number;
  /** Their mean latency, until the requester knew (nanoseconds). */
  mean_ns: number;
  /** Attribution of their time, up to the last known place of each; shares are of the sum of their latencies. */
  attribution: Attribution[];
}

/** Calls of a program of the host, each from its beginning until software heard of its end. */
export interface Calls {
  /** Calls that are over. */
  count: number;
  /** The shortest, in nanoseconds. */
  min_ns: number;
  /** Their mean, in nanoseconds. */
  mean_ns: number;
  /** The longest, in nanoseconds. */
  max_ns: number;
  /** Interrupts that software took meanwhile. */
  interrupts: number;
}

/** One direction of it. */
export interface NetworkDirection {
  /** Datagrams sent. */
  datagrams: number;
  /** Payload of their TLPs: the goodput (bits per second). */
  payload_bps: number;
  /** Fraction of time in which the wire was busy. */
  busy: number;
  /** Datagrams lost because the buffer was full. */
  dropped: number;
  /** The payload lost with them, in bytes. */
  dropped_bytes: number;
}

/** An error of PCIe 5.0 §6.2, by the specification's name. */
export type ErrorName =
  /** The data link layer received an impossible DLLP, such as the acknowledgement of a TLP that was never sent. */
  | "Data Link Protocol Error"
  /** The link below went down without being told to. */
  | "Surprise Down"
  /** A TLP arrived whose data are known to be bad. */
  | "Poisoned TLP Received"
  /** Credits were wrong. */
  | "Flow Control Protocol Error"
  /** A request was not answered in time. */
  | "Completion Timeout"
  /** A request was refused for a reason of the device's own. */
  | "Completer Abort"
  /** A completion arrived without a request for it. */
  | "Unexpected Completion"
  /** A TLP arrived for which there was no room. */
  | "Receiver Overflow"
  /** A TLP broke the rules. */
  | "Malformed TLP"
  /** The end-to-end CRC was wrong. */
  | "ECRC Error"
  /** A request was not for this function, or it cannot do that. */
  | "Unsupported Request"
  /** Access control forbids it. */
  | "ACS Violation"
  /** Something broke inside. */
  | "Uncorrectable Internal Error"
  /** A bad symbol. */
  | "Receiver Error"
  /** The LCRC of a TLP, or its sequence number, was wrong. */
  | "Bad TLP"
  /** The CRC of a DLLP was wrong. */
  | "Bad DLLP"
  /** The same TLPs were due to be replayed for the fourth time in a row. */
  | "REPLAY_NUM Rollover"
  /** No acknowledgement came in time. */
  | "Replay Timer Timeout"
  /** Something broke inside, and was repaired. */
  | "Corrected Internal Error"
  /** There was an error whose header could not be logged. */
  | "Header Log Overflow";

/** A message that reports an error to the root complex. */
export type MessageName =
  /** Hardware has dealt with it. */
  | "ERR_COR"
  /** The transaction is lost, the link is not. */
  | "ERR_NONFATAL"
  /** The link cannot be relied on. */
  | "ERR_FATAL";

/** Reason that a port refuses a TLP its way to a peer (PCIe 5.0 §6.12). */
export type PeerRefusal =
  /** The requester is on no bus below the port, and `source-validation` is on. */
  | "source-validation"
  /** The address is translated, or the request asks for a translation, and `translation-blocking` is on. */
  | "translation-blocking"
  /** The port of the peer is in `acs_forbids`, `egress-control` is on, and `request-redirect` is not. */
  | "egress-control"
  /** The destination is below the same port, and `upstream-forwarding` is not on. */
  | "no-upstream-forwarding"
  /** `host.p2p` is `"off"`. */
  | "root-complex";

/** A direction of a link. */
export type Way =
  /** Towards the root complex. */
  | "up"
  /** Away from it. */
  | "down";

/** Damage by a fault: the key `damage`, or `ber`. */
export type FaultDamage =
  /** Bits arrive inverted, at a rate. */
  | "ber"
  /** A unit arrives with a bad CRC. */
  | "corrupt"
  /** A unit does not arrive. */
  | "drop"
  /** A TLP is marked as bad. */
  | "poison"
  /** A TLP has a wrong digest. */
  | "ecrc"
  /** A TLP has a type that there is not. */
  | "type"
  /** A TLP's length is not that of its data. */
  | "length"
  /** A TLP has more data than Max_Payload_Size. */
  | "payload"
  /** A request crosses a boundary of 4 KiB. */
  | "boundary"
  /** A completion has another tag. */
  | "tag"
  /** A completion has another requester. */
  | "requester"
  /** A completion has another byte count. */
  | "byte-count"
  /** A request has an address that no component claims. */
  | "address"
  /** A request is answered with CA. */
  | "abort"
  /** A request is answered with UR. */
  | "refuse"
  /** A request is answered with RRS. */
  | "retry"
  /** A TLP is lost for good. */
  | "lose"
  /** A TLP comes late, while others pass. */
  | "late"
  /** A TLP comes twice. */
  | "twice"
  /** A completion's data are all ones. */
  | "ones"
  /** Bits of a TLP's data are inverted. */
  | "data"
  /** An UpdateFC takes credits back. */
  | "take-back"
  /** An UpdateFC grants more credits than there are. */
  | "overgrant"
  /** An Ack acknowledges a TLP that was not sent. */
  | "unsent";

/** Units that a fault counts. */
export type FaultOf =
  /** TLPs. */
  | "tlp"
  /** DLLPs. */
  | "dllp"
  /** Flits. */
  | "flit"
  /** Memory read requests. */
  | "MRd"
  /** Memory writes. */
  | "MWr"
  /** Configuration reads of a function on this bus. */
  | "CfgRd0"
  /** Configuration writes to a function on this bus. */
  | "CfgWr0"
  /** Configuration reads of a function further down. */
  | "CfgRd1"
  /** Configuration writes to a function further down. */
  | "CfgWr1"
  /** I/O reads. */
  | "IORd"
  /** I/O writes. */
  | "IOWr"
  /** Messages. */
  | "Msg"
  /** Completions without data. */
  | "Cpl"
  /** Completions with data. */
  | "CplD"
  /** Acks. */
  | "Ack"
  /** Naks. */
  | "Nak"
  /** UpdateFCs of all classes. */
  | "UpdateFC"
  /** The first round of InitFCs. */
  | "InitFC1"
  /** The second round of InitFCs. */
  | "InitFC2";

/** Problem of the software that enumerates. */
export type ProblemName =
  /** A device was not ready in time. */
  | "never-ready"
  /** A function stopped answering. */
  | "no-answer"
  /** A header has a type that there is not. */
  | "header-type"
  /** The list of capabilities leads nowhere. */
  | "capability-chain"
  /** The writable bits of a BAR are not a size. */
  | "bar-size"
  /** There is no address left for a BAR. */
  | "no-address"
  /** A BAR does not keep the address that is written to it. */
  | "bar-unkept"
  /** The table of MSI-X is not within a BAR. */
  | "msix-table"
  /** There is no bus number left for the bus below. */
  | "no-bus-number"
  /** Several virtual functions would have the same ID. */
  | "virtual-ids"
  /** There is no bus number left for the virtual functions. */
  | "no-virtual-bus";

/** Lines that requests of devices looked for in the last-level cache. */
export interface CacheUse {
  /** Lines that were there. */
  hits: number;
  /** Lines that were not. */
  misses: number;
  /** Hits as a fraction of both. */
  hit_rate: number;
}

/** Translations of requests of devices. */
export interface IommuUse {
  /** Requests whose translation was in the IO-TLB or on its way there. */
  hits: number;
  /** Page walks: the other requests. */
  walks: number;
  /** Hits as a fraction of both. */
  hit_rate: number;
  /** Total time that walks waited for others (nanoseconds). */
  waited_ns: number;
  /** Page walks as a fraction of the possible ones. */
  busy: number;
  /** Accesses that were refused, by function and reason, the warm-up included. */
  faults: TranslationFault[];
  /** Translations that devices requested, the warm-up included; null where no device can request any and all addresses stay as they are. */
  answered: AnsweredTranslations | null;
}

/** A component. */
export interface Node {
  /** Its name. */
  name: string;
  /** Kind of the component. */
  kind: NodeKind;
  /** A device's model, a bus's mode and width; null for others. */
  model: string | null;
  /** The component above it; null for the host. */
  parent: string | null;
  /** Further details, in a line. */
  detail: string;
  /** The arbitration of a switch; left out for others. */
  arbitration?: Arbitration;
  /** The forwarding of a switch; left out for others. */
  forwarding?: Forwarding;
}

/** Framing of the units of a link. */
export type Framing =
  /** TLPs and DLLPs have frames of their own. */
  | "non-flit"
  /** Flits of 256 bytes. */
  | "flit";

/** One direction of a link. */
export interface Direction {
  /** The component that sends. */
  from: string;
  /** The component that receives. */
  to: string;
  /** Number of the interface in a pcapng capture of the same run. */
  interface: number;
  /** Use of the wire, as fractions of time. */
  utilization: Utilization;
  /** TLPs, without copies. */
  tlps: number;
  /** Payload in them, in bytes. */
  payload_bytes: number;
  /** DLLPs. */
  dllps: Dllps;
  /** TLPs (or flits) that were sent again. */
  replayed: number;
  /** TLPs that a switch sent with EDB and an inverted LCRC, because they turned out to be damaged while it forwarded them. */
  nullified: number;
  /** Replays because the timer ran out. */
  replay_timeouts: number;
  /** TLPs that arrived with a bad LCRC, or flits with a bad CRC. */
  bad_lcrc: number;
  /** TLPs that the receiver dropped for want of room (only where a link drops and replays). */
  no_room: number;
  /** Time in which a TLP had to wait, as fractions of time. */
  stalls: Stalls;
}

/** Payload of a flow over time. */
export interface FlowSeries {
  /** The flow: an index in `flows`. */
  flow: number;
  /** Bytes that arrived in each bin (bytes). */
  bytes: number[];
  /** Transactions under way, from their owner's request to their end: the mean of each bin; null if not kept. */
  outstanding_mean?: number[] | null;
  /** The same: the largest of each bin. */
  outstanding_max?: number[] | null;
}

/** Fractions of each bin; the rest to 1 is idle. */
export interface DirectionSeries {
  /** The link: an index in `links`. */
  link: number;
  /** 0: up, 1: down. */
  direction: number;
  /** Payload of TLPs. */
  payload: number[];
  /** Headers, framing, sequence numbers and CRCs. */
  overhead: number[];
  /** DLLPs. */
  dllp: number[];
  /** Ordered sets. */
  ordered_sets: number[];
  /** Copies. */
  replay: number[];
}

/** Use of a countable resource over time. */
export interface Resource {
  /** Its name: `tags of ssd`. */
  name: string;
  /** Kind of the resource. */
  kind: ResourceKind;
  /** The link it belongs to, an index in `links`; for the tags of a device, the device's link. */
  link: number | null;
  /** The direction it belongs to: 0 is up, 1 down; null where it belongs to no direction. */
  direction: number | null;
  /** Capacity; null: no limit. */
  capacity: number | null;
  /** The unit: `tags`, `TLPs`, `credits`, `credits of 16 B`. */
  unit: string;
  /** Mean of each bin. */
  mean: number[];
  /** Largest of each bin. */
  max: number[];
}

/** Operation of an access. */
export type Access =
  /** It reads. */
  | "read"
  /** It writes. */
  | "write";

/** A unit on a wire. */
export interface Packet {
  /** Unique in the ladder. */
  id: number;
  /** The link: an index in `links`. */
  link: number;
  /** 0: up, 1: down. */
  direction: number;
  /** Departure of its first symbol (femtoseconds). */
  start_fs: number;
  /** Departure of its last symbol (femtoseconds). */
  end_fs: number;
  /** Arrival of its last symbol (femtoseconds). */
  arrive_fs: number;
  /** The type's name in the specification: `MWr`, `CplD`, `Ack`; of a flit `Flit`. */
  kind: string;
  /** TLP, DLLP or flit. */
  class: PacketClass;
  /** Its role in its transaction; null for units other than TLPs. */
  role?: PacketRole | null;
  /** Header of a TLP; null for other units. */
  header?: TlpHeader | null;
  /** Its content, in a line, for people. */
  text: string;
  /** Its flow, an index in `flows`; null where it has none. */
  flow: number | null;
  /** Its transaction, by `id`; null where it belongs to none. */
  transaction: number | null;
  /** Tag of the request, so that a completion finds its request; null where there is none. */
  tag: number | null;
  /** Sequence number; null where there is none. */
  sequence: number | null;
  /** Bytes on the wire (bytes). */
  bytes: number;
  /** It had been sent before. */
  replay: boolean;
  /** A fault damaged it. */
  bad: boolean;
  /** A TLP that a switch had begun to forward when it turned out to be damaged: it ends with EDB and an inverted LCRC, and its receiver drops it. */
  nullified: boolean;
  /** Of a transaction of a bus: its phases in order, each with the cause that it is charged to and its femtoseconds. */
  phases: ([number, number])[];
  /** Of a transaction of a bus: its outcome; null otherwise. */
  outcome: Outcome | null;
}

/** A transaction of the ladder. */
export interface Transaction {
  /** Its number. */
  id: number;
  /** Its flow: an index in `flows`. */
  flow: number;
  /** Start (femtoseconds). */
  start_fs: number;
  /** Arrival of its last byte, or its other ending (femtoseconds). */
  end_fs: number;
  /** Its description, in a line. */
  text: string;
  /** Its ending. */
  ending: Ending;
  /** Its critical path; of a transaction that did not end well, that of its last known TLP. */
  intervals: Interval[];
}

/** The configuration space of a function at first: at time 0, and behind an enumeration that takes no simulated time. */
export interface FunctionRegisters {
  /** The host bridge (the name of the host), a root port (`host.rp0`), a device, the upper port of a switch (its name) or one of the others (`sw0 → ssd`). */
  name: string;
  /** ID at the end: `03:00.0`; null if software does not reach the function, and no configuration write has since its last reset. */
  function: string | null;
  /** Bytes at first; those in no block are 0. */
  start: RegisterBlock[];
  /** The changes that are not told one by one, as there are too many; null if all are. */
  gap: RegisterGap | null;
}

/** A change of a doubleword of a configuration space. */
export interface RegisterChange {
  /** The function: an index in `functions`. */
  function: number;
  /** Time of the change (femtoseconds). */
  time_fs: number;
  /** Offset of the doubleword, a multiple of 4. */
  offset: number;
  /** Value before; the byte at the offset is the lowest. */
  old: number;
  /** Value afterwards. */
  new: number;
  /** Its cause. */
  by: RegisterCause;
}

/** Kinds of limits. */
export type LimitKind =
  /** A direction of a link is busy. */
  | "link"
  /** A parallel bus is busy. */
  | "bus"
  /** A requester has no free tag. */
  | "tags"
  /** A load allows itself no more transactions at once. */
  | "outstanding"
  /** A receiver's buffers are full. */
  | "credits"
  /** A transmitter's replay buffer is full, or copies take the wire. */
  | "replay"
  /** Host memory is busy, or the parts before it: page walks, the reads that the root complex serves. */
  | "memory"
  /** The load offers no more. */
  | "rate"
  /** TLPs go a longer way than they could. */
  | "routing"
  /** One thing happens after the other. */
  | "latency"
  /** Nothing happened. */
  | "none";

/** A resource, and the rate of the run with twice as much of it. */
export interface Gain {
  /** Its name. */
  resource: string;
  /** Kind of the resource. */
  kind: LimitKind;
  /** The change: `16 → 32`. */
  change: string;
  /** Additional payload of the run: 0.5 is half as much again. */
  gain: number;
}

/** Ending of a transaction. */
export type Ending =
  /** All its data arrived. */
  | "done"
  /** Unsupported request. */
  | "ur"
  /** Completer abort. */
  | "ca"
  /** Completion timeout. */
  | "timeout"
  /** Its data came marked as bad. */
  | "poisoned"
  /** A reset of its requester ended it, or it was posted and went down with a link, or no component claimed it. */
  | "lost"
  /** A completion contradicts its request. */
  | "malformed";

/** Accesses of a function that the IOMMU refused for one reason. */
export interface TranslationFault {
  /** The device, or the ID of a function that none has. */
  device: string;
  /** The requester's ID: `03:00.0`. */
  requester: string;
  /** Reason of the refusal. */
  reason: RefusalReason;
  /** Operation of the first. */
  operation: Access;
  /** The address of the first, hexadecimal. */
  address: string;
  /** Their number. */
  count: number;
  /** Time of the first refusal (femtoseconds). */
  first_fs: number;
}

/** Translations that devices asked for. */
export interface AnsweredTranslations {
  /** Answers with a translation. */
  given: number;
  /** Answers without a translation. */
  denied: number;
  /** Invalidations that were sent to devices. */
  invalidations: number;
  /** Invalidations that were completed. */
  invalidated: number;
  /** From the change of the tables until the completion, on average (nanoseconds). */
  invalidation_mean_ns: number;
  /** The longest (nanoseconds). */
  invalidation_max_ns: number;
}

/** Kinds of components. */
export type NodeKind =
  /** Root complex and memory. */
  | "host"
  /** A port of the root complex. */
  | "root port"
  /** A switch. */
  | "switch"
  /** A bridge and the parallel bus below it. */
  | "bus"
  /** An end point. */
  | "device";

/** The arbitration of a switch between its ports: the key `arbitration`. */
export type Arbitration =
  /** One TLP of each port in turn. */
  | "round-robin"
  /** As many TLPs of each port in turn as its weight. */
  | "weighted";

/** The time at which a switch forwards a TLP: the key `forwarding` of the switch. A port may have another. */
export type Forwarding =
  /** After its header. */
  | "cut-through"
  /** After its header; to a faster port, after its last byte. */
  | "cut-through-unless-faster"
  /** After its last byte. */
  | "store-and-forward"
  /** After its header, which has a checksum of its own. */
  | "header-checked";

/** Fractions of time; their sum is 1. */
export interface Utilization {
  /** Payload of TLPs. */
  payload: number;
  /** Headers, framing, sequence numbers and CRCs. */
  overhead: number;
  /** DLLPs. */
  dllp: number;
  /** Ordered sets. */
  ordered_sets: number;
  /** Copies. */
  replay: number;
  /** Nothing. */
  idle: number;
}

/** DLLPs sent, by type. */
export interface Dllps {
  /** Ack. */
  ack: number;
  /** Nak. */
  nak: number;
  /** UpdateFC. */
  update_fc: number;
  /** UpdateFCs that were worked out, because a guest slept and nothing was under way: no capture and no trace has them. */
  worked_out: number;
  /** InitFC1 and InitFC2. */
  init_fc: number;
  /** Others. */
  other: number;
}

/** Fractions of time in which a TLP waited for something. */
export interface Stalls {
  /** Credits. */
  credits: number;
  /** Tags. */
  tags: number;
  /** Room in the replay buffer. */
  replay_buffer: number;
}

/** Kind of a resource over time. */
export type ResourceKind =
  /** Tags of a requester. */
  | "tags"
  /** Credits that a transmitter has spent. */
  | "credits"
  /** TLPs in a buffer. */
  | "buffer"
  /** TLPs in a replay buffer. */
  | "replay";

/** Kind of a unit on a wire. */
export type PacketClass =
  /** Transaction layer packet. */
  | "tlp"
  /** Data link layer packet. */
  | "dllp"
  /** 256-byte flit. */
  | "flit"
  /** Transaction of a parallel bus. */
  | "bus";

/** Role of a TLP in its transaction. */
export type PacketRole =
  /** A request whose answer has data: reads and atomic operations. */
  | "read"
  /** A request whose answer, if there is one, has none: writes and messages. */
  | "write"
  /** A completion. */
  | "completion";

/** Fields of the header of a TLP; a key that its type does not have is absent. */
export interface TlpHeader {
  /** The function that requests, of a completion that requested: `03:00.0`. */
  requester: string;
  /** The address of a memory or I/O request, hexadecimal. */
  address?: string;
  /** Bytes that a completion and those behind it bring. */
  byte_count?: number;
  /** The function that completes. */
  completer?: string;
  /** Byte enables of the first doubleword, 0 to 15. */
  first_be?: number;
  /** The function that a configuration request is for. */
  function?: string;
  /** Byte enables of the last doubleword, 0 to 15. */
  last_be?: number;
  /** Length of its data, or of the data that it asks for, in doublewords of 4 bytes. */
  length?: number;
  /** The lowest bits of the address of a completion's first byte. */
  lower_address?: number;
  /** The offset in configuration space of a configuration request, in bytes. */
  register?: number;
  /** Status with which a completion ends its request. */
  status?: CompletionStatus;
}

/** Outcome of a transaction of a bus. */
export type Outcome =
  /** Data were moved. */
  | "data"
  /** The target answers in a transaction of its own. */
  | "split"
  /** The master has to come again. */
  | "retry"
  /** No target claimed it. */
  | "abort";

/** A part of a critical path. */
export interface Interval {
  /** Cause: an index in `causes` of the document. */
  cause: number;
  /** Place: a link direction `from → to`, or a node. */
  place: string;
  /** The flow one queued behind; null where one did not queue. */
  behind: string | null;
  /** Start (femtoseconds). */
  start_fs: number;
  /** Duration (femtoseconds). */
  duration_fs: number;
}

/** Contiguous bytes of a configuration space. */
export interface RegisterBlock {
  /** Offset of the first, a multiple of 4. */
  offset: number;
  /** The bytes in the order of their offsets, two hexadecimal digits each. */
  data: string;
}

/** Changes that are not told one by one. At the end of the gap there is one of each doubleword that has another value then, with the cause `several`: within the gap the registers are not known, behind it they are. */
export interface RegisterGap {
  /** Time of the first (femtoseconds). */
  from_fs: number;
  /** Time of the last (femtoseconds). */
  to_fs: number;
  /** Their number. */
  count: number;
}

/** Cause of a change of a register. */
export type RegisterCause =
  /** A configuration write. */
  | "write"
  /** A reset of the function. */
  | "reset"
  /** The hardware of the function, or its device: errors, links, slots, interrupts. */
  | "hardware"
  /** Changes that are not told one by one. */
  | "several";

/** Reason that the IOMMU refuses an access. */
export type RefusalReason =
  /** Nothing is mapped there. */
  | "not-mapped"
  /** It may not be read. */
  | "no-read"
  /** It may not be written. */
  | "no-write"
  /** The address is said to be translated, which it may not be. */
  | "translated"
  /** A translation was asked for by a function that may not ask. */
  | "translation-request";

/** Status with which a completion ends its request. */
export type CompletionStatus =
  /** Successful completion. */
  | "SC"
  /** Unsupported request. */
  | "UR"
  /** Configuration request retry status. */
  | "CRS"
  /** Completer abort. */
  | "CA";

/** All causes, in the order of `causes`. */
export const CAUSES: Cause[] = ["processing", "serialisation", "flight", "queueing", "credit wait", "tag wait", "replay buffer wait", "replay", "data link", "completer", "link down", "arbitration", "address", "device select", "wait states", "data phases", "turnaround", "retry", "no answer", "translation wait"];
