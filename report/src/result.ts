/**
 * The result document: what `tlplab run --json` writes and this page shows.
 *
 * Times that end in `_fs` are femtoseconds of simulated time (exact below 9 s, where a double still counts every one), times in
 * `_ns` are nanoseconds, rates are bits per second. A *place* is either a link direction, written `from → to` exactly as in
 * {@link Direction} `from` and `to`, or the name of a node. Arrays in {@link Series} have `bins` entries.
 */

export const SCHEMA = "tlplab/result/1";

export interface Result {
  schema: string;
  title: string;
  version: string;
  seed: number | string;
  /** The experiment as it was run, TOML. */
  experiment: string;
  /** Each key of the experiment with its value. */
  settings: Record<string, unknown>;
  /** 16 hexadecimal digits. */
  trace_hash: string;
  start_fs: number;
  end_fs: number;
  stop_reason: StopReason;
  /** The same, for people; absent, as `waiting`, in documents of older versions, whose `stop_reason` is a text. */
  stop_text?: string;
  /** Programs that wait for what never comes: the run got nowhere. */
  waiting?: Waiting[];
  /** The Linux that was the host's software. */
  guest?: Guest | null;
  verdict: Verdict;
  flows: Flow[];
  /** What programs of the host measured themselves; may be absent. */
  measured?: Measured[];
  /** The networks behind devices; absent in documents of older versions. */
  networks?: Network[];
  /** Frames of Ethernet controllers; absent in documents of older versions. */
  frames?: { device: string; sent: number; received: number; missed: number; too_long: number }[];
  /** Names of the causes; every `causes_ns` is indexed like this list. */
  causes: string[];
  /** What ports detected; absent in documents of older versions. */
  errors?: Detected[];
  /** What root ports heard of them; absent in documents of older versions. */
  reported?: Reported[];
  /** Links that went down. */
  outages?: Outage[];
  /** Faults of units, and how many they have hit; absent in documents of older versions. */
  faults?: Struck[];
  /** What software that enumerates could not do; absent in documents of older versions. */
  problems?: Problem[];
  /** What the host's cache and IOMMU did; null if it has none. */
  host?: HostUse | null;
  /** What devices did with translations; absent in documents of older versions. */
  translations?: DeviceTranslations[];
  topology: { nodes: Node[] };
  links: Link[];
  /** Places that {@link Sample} `parts` refer to; may be absent with them. */
  places?: string[];
  series: Series;
  samples: Sample[];
  /** Absent or null when the run kept no window of packets. */
  ladder?: Ladder | null;
}

export interface Problem {
  function: string;
  component: string | null;
  /** `never-ready`, `no-answer`, `no-address`, `no-bus-number`… */
  kind: string;
  /** Bus numbers or addresses have run out: the run has failed. */
  exhausted: boolean;
  message: string;
}

export type StopReason =
  "running" | "stop-time" | "transactions" | "loads-done" | "nothing-more" | "stuck" | "interrupted" | "time-limit" | "failed";

/** A Linux guest: SHA-256 of its kernel, its initial file system and what it printed; how it ended; the exit status of its script. */
export interface Guest {
  kernel: string;
  initramfs: string;
  console: string;
  end: string;
  status: number | null;
}

/** A program of the host that waits: for what (`timer`, `mmio_read`, `mmio_write`, `irq`; in words), and where it says so. */
export interface Waiting {
  device: string;
  operation: string;
  what: string;
  place: string;
}

export interface Verdict {
  sentence: string;
  limit: {
    resource: string;
    kind: "link" | "bus" | "tags" | "outstanding" | "credits" | "replay" | "memory" | "rate" | "routing" | "latency" | "none";
    utilization: number;
    evidence: string[];
    /** What the run carries more with twice as much; absent in documents of older versions. */
    gain?: number | null;
    change?: string | null;
  };
  /** What would limit next; null when nothing else is near. */
  next: { resource: string; kind: string; headroom: number; text: string } | null;
  /** All that limit, where relaxing any of them gains as much; absent in documents of older versions. */
  limits?: { resource: string; gain: number | null; change: string | null }[];
  /** What limited each part of the run, where different things happened one after the other; absent in documents of older versions. */
  phases?: Phase[];
  /** Runs in which one resource was relaxed; null where figures alone judge, absent in documents of older versions. */
  tried?: Tried | null;
}

/** A part of a run in which other flows were active than before, or a link was down. */
export interface Phase {
  from_fs: number;
  until_fs: number;
  flows: string[];
  limits: { resource: string; gain: number | null; change: string | null }[];
}

/** Runs in which one resource was relaxed. */
export interface Tried {
  candidates: number;
  tried: number;
  events: number;
  until_fs: number | null;
  gains: Gain[];
}

/** A resource, and what the run carries with twice as much of it: 0.5 is half as much again. */
export interface Gain {
  resource: string;
  kind: string;
  change: string;
  gain: number;
}

/** The Ethernet link behind a card, and the software at its other end. */
export interface Network {
  device: string;
  to_software: NetworkDirection;
  to_card: NetworkDirection;
  socket_drops: number;
  cores_busy: number;
  reads: number;
  failed_reads: number;
  latency_ns: Latency | null;
}

/** One direction of it. */
export interface NetworkDirection {
  datagrams: number;
  payload_bps: number;
  busy: number;
  dropped: number;
  dropped_bytes: number;
}

/** What the host's cache and IOMMU did for requests of devices. */
export interface HostUse {
  cache: CacheUse | null;
  iommu: IommuUse | null;
}

/** Lines that requests looked for in the last-level cache. */
export interface CacheUse {
  hits: number;
  misses: number;
  hit_rate: number;
}

/** Translations: in the IO-TLB, or by a page walk. */
export interface IommuUse {
  hits: number;
  walks: number;
  hit_rate: number;
  /** How long walks waited for others, in all. */
  waited_ns: number;
  /** Page walks as a share of those that could have been made. */
  busy: number;
  /** Accesses that were refused; absent, as `answered`, in documents of older versions. */
  faults?: TranslationFault[];
  /** What devices asked for; null where none can ask. */
  answered?: AnsweredTranslations | null;
}

/** Accesses of a function that the IOMMU refused for one reason. */
export interface TranslationFault {
  device: string;
  requester: string;
  reason: string;
  /** The first was a `read` or a `write`. */
  operation: string;
  /** Of the first, hexadecimal. */
  address: string;
  count: number;
  first_fs: number;
}

/** Translations that devices asked for, and the invalidations that they were sent. */
export interface AnsweredTranslations {
  given: number;
  denied: number;
  invalidations: number;
  invalidated: number;
  invalidation_mean_ns: number;
  invalidation_max_ns: number;
}

/** What a device did with translations. */
export interface DeviceTranslations {
  device: string;
  /** Requests that had their translation. */
  hits: number;
  asked: number;
  denied: number;
  evicted: number;
  invalidations: number;
  invalidated: number;
}

/** An error at a port, as often as it was detected there. */
export interface Detected {
  /** The specification's name. */
  name: string;
  /** The port, named with its peer as a link direction. */
  port: string;
  count: number;
  first_fs: number;
  /** Of the first TLP it concerns: 32 hexadecimal digits, or null. */
  header: string | null;
  /** ERR_COR, ERR_NONFATAL or ERR_FATAL, or null if no message was sent. */
  message?: string | null;
  /** How many messages were sent. */
  messages?: number;
}

/** A link that went down, and what came of it; times are null where that never happened. */
/** A fault on a direction (`up`, `down`) of a link. */
export interface Struck {
  link: string;
  direction: string;
  damage: string;
  /** What it counts, if that is not all. */
  of: string | null;
  /** The first that it hits, from 1. */
  first: number;
  struck: number;
}

export interface Outage {
  link: string;
  down_fs: number;
  heard_fs: number | null;
  up_fs: number | null;
  configured_fs: number | null;
}

/** Error messages from one function, as a root port logged them. */
export interface Reported {
  /** The root port. */
  port: string;
  /** ID of the function that reported. */
  source: string;
  message: string;
  count: number;
  first_fs: number;
  /** How often the root port interrupted for them. */
  interrupts: number;
}

export interface Measured {
  /** The load or program. */
  name: string;
  bytes: number;
  from_fs: number;
  to_fs: number;
  payload_bps: number;
  /** How long its calls took, if it makes calls; absent in documents of older versions. */
  calls?: Calls | null;
}

export interface Calls {
  count: number;
  min_ns: number;
  mean_ns: number;
  max_ns: number;
  interrupts: number;
}

export interface Flow {
  name: string;
  device: string;
  op: string;
  /** `host`, or the name of a device. */
  target: string;
  transactions: number;
  bytes: number;
  payload_bps: number;
  /** Transactions that did not end well: `lost` went down with a link or were claimed by nobody, `malformed` contradict their request. */
  errors: { ur: number; ca: number; timeout: number; poisoned: number; lost: number; malformed: number };
  /** Null when no transaction ended. */
  latency_ns: Latency | null;
  histogram: Bar[];
  attribution: Attribution[];
  /** Transactions that did not end well, by how, and where their time went; absent in documents of older versions. */
  failures?: Failures[];
}

export interface Failures {
  /** A key of {@link Flow} `errors`. */
  ending: keyof Flow["errors"];
  count: number;
  /** Until the requester knew. */
  mean_ns: number;
  /** On the way of what is last known of each; shares are of the sum of their latencies. */
  attribution: Attribution[];
}

export interface Latency {
  min: number;
  mean: number;
  p50: number;
  p90: number;
  p99: number;
  p999: number;
  max: number;
}

/**
 * Transactions whose latency lies in the step `from_ns..to_ns`, and the mean nanoseconds per cause among them. 32 equal steps divide
 * each octave of femtoseconds; empty ones are absent.
 */
export interface Bar {
  from_ns: number;
  to_ns: number;
  count: number;
  causes_ns: number[];
}

/** Time that all transactions of a flow spent on one cause at one place; `share` is its part of their latency. */
export interface Attribution {
  cause: number;
  place: string;
  /** The flow one queued behind. */
  behind: string | null;
  /** Of so many flows that one queued behind and that are not named this is the sum. */
  others?: number;
  total_ns: number;
  share: number;
}

export interface Node {
  name: string;
  kind: "host" | "root port" | "switch" | "bus" | "device";
  /** A device's model, a bus's mode and width. */
  model: string | null;
  /** The node above; null for the host. */
  parent: string | null;
  detail: string;
}

/** A link, or a device's way over a parallel bus, whose time all its ways have together. */
export interface Link {
  /** The name of the component below, which declared the link. */
  name: string;
  upper: string;
  lower: string;
  generation: number;
  width: number;
  mode: "non-flit" | "flit";
  /** Bytes. */
  mps: number;
  /** After line coding. */
  raw_bps: number;
  /** Mode and width of the bus that it is a way over, and then no generation, width and mode; null, or absent, for a link. */
  bus?: string | null;
  directions: [Direction, Direction];
}

/** Fractions of the direction's time; they sum to 1. */
export interface Utilization {
  payload: number;
  overhead: number;
  dllp: number;
  ordered_sets: number;
  replay: number;
  idle: number;
}

export interface Direction {
  from: string;
  to: string;
  /** Interface number in the pcapng capture of the same run. */
  interface: number;
  utilization: Utilization;
  tlps: number;
  payload_bytes: number;
  dllps: { ack: number; nak: number; update_fc: number; worked_out: number; init_fc: number; other: number };
  replayed: number;
  /** TLPs that a switch sent with EDB; absent in documents of older versions. */
  nullified?: number;
  replay_timeouts: number;
  bad_lcrc: number;
  no_room: number;
  /** Fractions of time in which a TLP waited for this. */
  stalls: { credits: number; tags: number; replay_buffer: number };
}

export interface Series {
  start_fs: number;
  bin_fs: number;
  bins: number;
  flows: { flow: number; bytes: number[] }[];
  /** Fractions of each bin; what is missing to 1 is idle. */
  directions: ({ link: number; direction: number } & Record<Exclude<keyof Utilization, "idle">, number[]>)[];
  resources: Resource[];
}

/** How much of something countable was in use: the mean and the largest value in each bin. */
export interface Resource {
  name: string;
  kind: string;
  /** The link it belongs to; for the tags of a device, the device's link. */
  link: number | null;
  direction: number | null;
  capacity: number | null;
  unit: string;
  mean: number[];
  max: number[];
}

/** One transaction of a uniform sample. */
export interface Sample {
  flow: number;
  start_fs: number;
  latency_ns: number;
  /** Links it crossed, in any order. */
  links: number[];
  causes_ns: number[];
  /**
   * The same time by cause, place (index into `places`) and flow in front (-1: none). Optional: with it, a time range keeps places
   * and "behind whom" in the attribution; without it, causes only.
   */
  parts?: [cause: number, place: number, behind: number, ns: number][];
}

export interface Ladder {
  /** Node names from left to right; a link end that is not here is drawn at its nearest ancestor that is. */
  columns: string[];
  from_fs: number;
  to_fs: number;
  packets: Packet[];
  transactions: Transaction[];
}

export interface Packet {
  id: number;
  link: number;
  direction: number;
  /** First bit on the wire, last bit on the wire, last bit at the receiver. */
  start_fs: number;
  end_fs: number;
  arrive_fs: number;
  kind: string;
  class: "tlp" | "dllp" | "flit" | "bus";
  text: string;
  flow: number | null;
  transaction: number | null;
  /** The request's tag, so that a completion finds its request; null or absent where there is none. */
  tag?: number | null;
  sequence: number | null;
  bytes: number;
  replay: boolean;
  bad: boolean;
  /** It ends with EDB and an inverted LCRC, and its receiver drops it; absent in documents of older versions. */
  nullified?: boolean;
  /** Of a transaction of a bus: its phases in order, by cause, and how long they last. */
  phases?: [cause: number, duration_fs: number][];
  /** Of a transaction of a bus: what came of it. Null or absent otherwise. */
  outcome?: string | null;
}

export interface Transaction {
  id: number;
  flow: number;
  start_fs: number;
  end_fs: number;
  text: string;
  /** `done`, or a key of {@link Flow} `errors`; absent in documents of older versions, where all ended well. */
  ending?: "done" | keyof Flow["errors"];
  intervals: Interval[];
}

/** A part of a transaction's critical path. Intervals are disjoint and sum to its latency. */
export interface Interval {
  cause: number;
  place: string;
  behind: string | null;
  start_fs: number;
  duration_fs: number;
}

/** Reads the document from the page. Errors say what is wrong in words for people. */
export function readResult(text: string): Result {
  const trimmed = text.trim();
  if (trimmed === "" || trimmed.startsWith("/*")) {
    throw new Error("This page holds no result yet. Write one with: tlplab run EXPERIMENT.toml --report run.html");
  }
  let value: unknown;
  try {
    value = JSON.parse(trimmed);
  } catch (e) {
    throw new Error(`The result in this page is not valid JSON (${(e as Error).message}). Was the file cut short?`);
  }
  const schema = (value as Result | null)?.schema;
  if (schema !== SCHEMA) {
    throw new Error(`The result's schema is ${JSON.stringify(schema)}, this page reads "${SCHEMA}". Use the page of the same tlplab version.`);
  }
  return value as Result;
}
