//! The result document `tlplab/result/1`: what a run says, as `--json` writes it and the report page reads it.
//!
//! Times whose names end in `_fs` are femtoseconds of simulated time, in `_ns` nanoseconds; rates are bits per second. A *place* is a
//! link direction, written `from → to` as in [`Direction`], or the name of a node. The page's types are in `report/src/result.ts`; a
//! test holds the two together.

mod host;
mod limits;

pub use crate::lspci::Problem;
use crate::settings::Settings;
use crate::stop::StopReason;
pub use host::{AnsweredTranslations, CacheUse, DeviceTranslations, HostUse, IommuUse, TranslationFault};
pub use limits::{Gain, Limit, LimitKind, Next, Phase, Tried, Verdict};
use serde::{Serialize, Serializer};
use tlplab_fabric::attribution::Cause;

/// Value of [`Document::schema`].
pub const SCHEMA: &str = "tlplab/result/1";

/// The names of the causes, by which every `causes_ns` and `cause` is indexed.
pub fn cause_names() -> Vec<String> {
    Cause::ALL.iter().map(|cause| cause.name().to_owned()).collect()
}

/// A Linux guest, and how it ended. The same kernel, initial file system, experiment and seed give the same run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Guest {
    /// SHA-256 of its kernel, hexadecimal.
    pub kernel: String,
    /// SHA-256 of the initial file system that it booted, with its script and files, hexadecimal.
    pub initramfs: String,
    /// SHA-256 of what it printed, hexadecimal.
    pub console: String,
    /// How it ended: `powered off`, `died: …`, `lost its power: …`; `running` if somebody interrupted it.
    pub end: String,
    /// The exit status of its script.
    pub status: Option<u8>,
}

/// The whole document.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Document {
    /// [`SCHEMA`].
    pub schema: String,
    /// Title of the experiment.
    pub title: String,
    /// Version of tlplab.
    pub version: String,
    /// The seed; a string where a JSON number would not be exact.
    #[serde(serialize_with = "exact")]
    pub seed: u64,
    /// The experiment as it was run: TOML, with what was included and overridden.
    pub experiment: String,
    /// What that came to: each key of the experiment with its value, defaults of devices, switches and loads included.
    pub settings: Settings,
    /// Hash of everything that went over the wires: 16 hexadecimal digits.
    pub trace_hash: String,
    /// Where statistics begin.
    pub start_fs: u64,
    /// Where the run ended.
    pub end_fs: u64,
    /// Why it ended: `stop-time`, `transactions`, `loads-done`, `nothing-more`, `stuck`, `guest-off`, `interrupted`,
    /// `time-limit`, `failed`; or `running`.
    pub stop_reason: StopReason,
    /// The same, for people.
    pub stop_text: String,
    /// Programs of the host that wait for what never comes: the run got nowhere.
    pub waiting: Vec<Waiting>,
    /// The Linux that was the host's software, if one was.
    pub guest: Option<Guest>,
    /// What limits the run.
    pub verdict: Verdict,
    /// Streams of transactions: loads and programs.
    pub flows: Vec<Flow>,
    /// What programs of the host measured themselves.
    pub measured: Vec<Measured>,
    /// The networks behind devices.
    pub networks: Vec<Network>,
    /// The frames of Ethernet controllers.
    pub frames: Vec<Frames>,
    /// [`cause_names`].
    pub causes: Vec<String>,
    /// What receivers and requesters detected, the warm-up included.
    pub errors: Vec<Detected>,
    /// What root ports heard of them, the warm-up included.
    pub reported: Vec<Reported>,
    /// Links that went down, the warm-up included; of very many the first.
    pub outages: Vec<Outage>,
    /// Faults of units, and how many they have hit, the warm-up included.
    pub faults: Vec<Struck>,
    /// What software that enumerates could not do since the start, each once. That a device is not ready is a result; that bus numbers
    /// or addresses run out makes the run a failed one.
    pub problems: Vec<Problem>,
    /// What the host's cache and IOMMU did, if it has one.
    pub host: Option<HostUse>,
    /// What devices did with translations: those that can ask for some.
    pub translations: Vec<DeviceTranslations>,
    /// Components.
    pub topology: Topology,
    /// Links.
    pub links: Vec<Link>,
    /// The places that samples refer to.
    pub places: Vec<String>,
    /// Everything over time.
    pub series: Series,
    /// A uniform sample of transactions.
    pub samples: Vec<Sample>,
    /// The window of packets that was kept, if one was.
    pub ladder: Option<Ladder>,
}

/// Largest integer that every JSON reader keeps exactly.
const EXACT: u64 = 1 << 53;

fn exact<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    if *number <= EXACT { serializer.serialize_u64(*number) } else { serializer.collect_str(number) }
}

/// A program of the host that waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// The device that it drives.
    pub device: String,
    /// What for: `timer`, `mmio_read`, `mmio_write`, `irq`.
    pub operation: String,
    /// The same, for people: `irq 3`.
    pub what: String,
    /// Where it says so: `file:line`.
    pub place: String,
}

/// A stream of transactions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Flow {
    /// Name of the load or program.
    pub name: String,
    /// Who issues the requests: a device or `host`.
    pub device: String,
    /// `write`, `read`, `mmio-read`…
    pub op: String,
    /// `host`, or the device whose BAR is meant.
    pub target: String,
    /// Transactions that ended well.
    pub transactions: u64,
    /// Payload that arrived, in bytes.
    pub bytes: u64,
    /// Payload per second.
    pub payload_bps: f64,
    /// Transactions that did not end well.
    pub errors: Errors,
    /// Of the transactions that ended well; `None` if none did.
    pub latency_ns: Option<Latency>,
    /// Distribution of latency.
    pub histogram: Vec<Bar>,
    /// Where the time went of those that ended well.
    pub attribution: Vec<Attribution>,
    /// Those that did not end well, by how, and where their time went.
    pub failures: Vec<Failures>,
}

/// Transactions of a flow that ended in the same way, which was not well.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Failures {
    /// How: a key of [`Errors`].
    pub ending: String,
    /// How many.
    pub count: u64,
    /// Their mean latency, until the requester knew.
    pub mean_ns: f64,
    /// Where their time went, on the way of what is last known of each; `share` is of the sum of their latencies.
    pub attribution: Vec<Attribution>,
}

/// Transactions that did not end well, by how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Errors {
    /// Unsupported request.
    pub ur: u64,
    /// Completer abort.
    pub ca: u64,
    /// Completion timeout.
    pub timeout: u64,
    /// Poisoned data.
    pub poisoned: u64,
    /// Posted requests that went down with a link, or that nobody claimed.
    pub lost: u64,
    /// Completions that contradict their request.
    pub malformed: u64,
}

/// An error of PCIe 5.0 §6.2 at a port, as often as it was detected there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Detected {
    /// The specification's name: `Malformed TLP`.
    pub name: String,
    /// The port, named with its peer as a link direction: `sw0 → ssd` is the port of sw0 above ssd.
    pub port: String,
    /// How often.
    pub count: u64,
    /// The first time.
    pub first_fs: u64,
    /// Header of the first TLP it concerns: 32 hexadecimal digits; `None` where no TLP is known.
    pub header: Option<String>,
    /// The message that told the root complex of it: `ERR_COR`, `ERR_NONFATAL` or `ERR_FATAL`; `None`: no message was sent.
    pub message: Option<String>,
    /// How many messages were sent.
    pub messages: u64,
}

/// Error messages from one function, as a root port logged them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reported {
    /// The root port: `host.rp0`.
    pub port: String,
    /// ID of the function that reported: `03:00.0`.
    pub source: String,
    /// `ERR_COR`, `ERR_NONFATAL` or `ERR_FATAL`.
    pub message: String,
    /// How many arrived.
    pub count: u64,
    /// The first.
    pub first_fs: u64,
    /// How often the root port interrupted for them.
    pub interrupts: u64,
}

/// A fault that hits units on a direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Struck {
    /// The link, named by the component below it.
    pub link: String,
    /// `up` or `down`.
    pub direction: String,
    /// What it does: `ber`, or as the key `damage` says.
    pub damage: String,
    /// What it counts, if that is not all.
    pub of: Option<String>,
    /// The first that it hits, from 1.
    pub first: u64,
    /// How many it has hit.
    pub struck: u64,
}

/// A link that went down, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outage {
    /// The link, named by the component below it.
    pub link: String,
    /// When it went down.
    pub down_fs: u64,
    /// When hot-plug software of the host heard of it.
    pub heard_fs: Option<u64>,
    /// When its data link layer was active again.
    pub up_fs: Option<u64>,
    /// When software had configured again what is below it.
    pub configured_fs: Option<u64>,
}

/// Latency in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Smallest.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90 % are below.
    pub p90: f64,
    /// 99 % are below.
    pub p99: f64,
    /// 99.9 % are below.
    pub p999: f64,
    /// Largest.
    pub max: f64,
}

/// Transactions whose latency lies in a range.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Bar {
    /// From this.
    pub from_ns: f64,
    /// Up to this.
    pub to_ns: f64,
    /// How many.
    pub count: u64,
    /// Mean nanoseconds by cause.
    pub causes_ns: Vec<f64>,
}

/// Time that all transactions of a flow spent for one cause at one place.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Attribution {
    /// Index in [`Document::causes`].
    pub cause: usize,
    /// Where.
    pub place: String,
    /// The flow one queued behind.
    pub behind: Option<String>,
    /// In a document that is shortened: of so many further flows that one queued behind, this is the sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<u32>,
    /// Sum over all transactions.
    pub total_ns: f64,
    /// Part of the sum of all latencies of the flow.
    pub share: f64,
}

/// Frames of an Ethernet controller; those that its filters refuse are in none of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Frames {
    /// The controller.
    pub device: String,
    /// Sent.
    pub sent: u64,
    /// Received.
    pub received: u64,
    /// Lost for want of room: the packet buffer was full, or no receive buffer was posted.
    pub missed: u64,
    /// Discarded as longer than the receiver takes.
    pub too_long: u64,
}

impl Frames {
    /// Frames that came to it, received or lost.
    pub const fn arrived(&self) -> u64 {
        self.received + self.missed + self.too_long
    }
}

/// The Ethernet link behind a card, and the software at its other end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Network {
    /// The card.
    pub device: String,
    /// From the card to the software.
    pub to_software: NetworkDirection,
    /// From the software to the card.
    pub to_card: NetworkDirection,
    /// Datagrams that the software's sockets had no room for.
    pub socket_drops: u64,
    /// Share of time in which the software's processors worked.
    pub cores_busy: f64,
    /// Reads by the software that ended well.
    pub reads: u64,
    /// Reads by the software that did not.
    pub failed_reads: u64,
    /// How long those that ended well took, as the software sees it; `None` without any.
    pub latency_ns: Option<Latency>,
}

/// One direction of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct NetworkDirection {
    /// Datagrams sent.
    pub datagrams: u64,
    /// Payload of their TLPs, in bits per second: the goodput.
    pub payload_bps: f64,
    /// Share of time in which the wire was busy.
    pub busy: f64,
    /// Datagrams lost because the buffer was full.
    pub dropped: u64,
    /// The payload lost with them, in bytes.
    pub dropped_bytes: u64,
}

/// What a program of the host measured, as a benchmark prints it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Measured {
    /// The load or program.
    pub name: String,
    /// Bytes it moved.
    pub bytes: u64,
    /// When it began.
    pub from_fs: u64,
    /// When the last of them were there.
    pub to_fs: u64,
    /// Bits per second between these times.
    pub payload_bps: f64,
    /// How long its calls took, if it makes calls.
    pub calls: Option<Calls>,
}

/// Calls of a program of the host, each from its beginning until software heard of its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Calls {
    /// Calls that are over.
    pub count: u64,
    /// The shortest, in nanoseconds.
    pub min_ns: f64,
    /// Their mean, in nanoseconds.
    pub mean_ns: f64,
    /// The longest, in nanoseconds.
    pub max_ns: f64,
    /// Interrupts that software took meanwhile.
    pub interrupts: u64,
}

/// Components.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Topology {
    /// The host first.
    pub nodes: Vec<Node>,
}

/// A component.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// A device's model, a bus's mode and width.
    pub model: Option<String>,
    /// What is above it; `None` for the host.
    pub parent: Option<String>,
    /// What else is known of it, in a line.
    pub detail: String,
}

/// Kinds of components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum NodeKind {
    /// Root complex and memory.
    #[default]
    #[serde(rename = "host")]
    Host,
    /// A port of the root complex.
    #[serde(rename = "root port")]
    RootPort,
    /// A switch.
    #[serde(rename = "switch")]
    Switch,
    /// A bridge and the parallel bus below it.
    #[serde(rename = "bus")]
    Bus,
    /// An end point.
    #[serde(rename = "device")]
    Device,
}

/// A link, or a device's way over a parallel bus.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Link {
    /// The component below it.
    pub name: String,
    /// The component above it.
    pub upper: String,
    /// The component below it.
    pub lower: String,
    /// 1 to 7.
    pub generation: u8,
    /// Lanes.
    pub width: u8,
    /// `flit` or `non-flit`.
    pub mode: String,
    /// Max_Payload_Size in force, in bytes.
    pub mps: u32,
    /// After line coding.
    pub raw_bps: f64,
    /// Mode and width of the bus that it is a way over: generation, lanes and mode then mean nothing. What its directions were used
    /// for is of the bus's time, which all ways share.
    pub bus: Option<String>,
    /// Up, then down.
    pub directions: [Direction; 2],
}

/// One direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Direction {
    /// The component that sends.
    pub from: String,
    /// The component that receives.
    pub to: String,
    /// Number of the interface in a capture.
    pub interface: u32,
    /// What the wire was used for.
    pub utilization: Utilization,
    /// TLPs, without copies.
    pub tlps: u64,
    /// Payload in them, in bytes.
    pub payload_bytes: u64,
    /// DLLPs.
    pub dllps: Dllps,
    /// TLPs (or flits) that were sent again.
    pub replayed: u64,
    /// TLPs that a switch sent with EDB and an inverted LCRC, because they turned out to be damaged while it forwarded them.
    pub nullified: u64,
    /// Replays because the timer ran out.
    pub replay_timeouts: u64,
    /// TLPs that arrived with a bad LCRC.
    pub bad_lcrc: u64,
    /// TLPs that the receiver dropped for want of room (only where a link drops and replays).
    pub no_room: u64,
    /// Time in which a TLP had to wait.
    pub stalls: Stalls,
}

/// Fractions of time; their sum is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Utilization {
    /// Payload of TLPs.
    pub payload: f64,
    /// Headers, framing, sequence numbers and CRCs.
    pub overhead: f64,
    /// DLLPs.
    pub dllp: f64,
    /// Ordered sets.
    pub ordered_sets: f64,
    /// Copies.
    pub replay: f64,
    /// Nothing.
    pub idle: f64,
}

/// DLLPs sent, by type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Dllps {
    /// Ack.
    pub ack: u64,
    /// Nak.
    pub nak: u64,
    /// UpdateFC.
    pub update_fc: u64,
    /// Those of the UpdateFCs that were worked out, because a guest slept and nothing was under way: no capture and no trace has them.
    pub worked_out: u64,
    /// InitFC1 and InitFC2.
    pub init_fc: u64,
    /// Others.
    pub other: u64,
}

/// Fractions of time in which a TLP waited for something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Stalls {
    /// Credits.
    pub credits: f64,
    /// Tags.
    pub tags: f64,
    /// Room in the replay buffer.
    pub replay_buffer: f64,
}

/// Everything over time, in bins.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Series {
    /// Where the first bin begins.
    pub start_fs: u64,
    /// Width of a bin.
    pub bin_fs: u64,
    /// How many; every array has so many entries.
    pub bins: usize,
    /// Payload of flows.
    pub flows: Vec<FlowSeries>,
    /// What wires were used for.
    pub directions: Vec<DirectionSeries>,
    /// Tags, credits, buffers.
    pub resources: Vec<Resource>,
}

/// Payload of a flow over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlowSeries {
    /// Index of the flow.
    pub flow: usize,
    /// Bytes that arrived in each bin.
    pub bytes: Vec<u64>,
}

/// Fractions of each bin; what is missing to 1 is idle.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DirectionSeries {
    /// Index of the link.
    pub link: usize,
    /// 0: up, 1: down.
    pub direction: usize,
    /// Payload of TLPs.
    pub payload: Vec<f64>,
    /// Headers, framing, sequence numbers and CRCs.
    pub overhead: Vec<f64>,
    /// DLLPs.
    pub dllp: Vec<f64>,
    /// Ordered sets.
    pub ordered_sets: Vec<f64>,
    /// Copies.
    pub replay: Vec<f64>,
}

/// How much of something countable was in use over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Resource {
    /// `tags of ssd`
    pub name: String,
    /// `tags`, `credits`, `buffer`, `replay` or `memory`.
    pub kind: String,
    /// The link it belongs to.
    pub link: Option<usize>,
    /// The direction it belongs to.
    pub direction: Option<usize>,
    /// How much there is; `None`: no limit.
    pub capacity: Option<u64>,
    /// What is counted.
    pub unit: String,
    /// Mean of each bin.
    pub mean: Vec<f64>,
    /// Largest of each bin.
    pub max: Vec<u64>,
}

/// One transaction of the sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sample {
    /// Index of its flow.
    pub flow: usize,
    /// When it started.
    pub start_fs: u64,
    /// How long it took.
    pub latency_ns: f64,
    /// Links it crossed.
    pub links: Vec<usize>,
    /// Nanoseconds by cause.
    pub causes_ns: Vec<f64>,
    /// The same time by cause, place (index in [`Document::places`]) and flow in front (-1: none); left out if not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<(usize, usize, i64, f64)>,
}

/// Every packet of a window of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ladder {
    /// Nodes from left to right.
    pub columns: Vec<String>,
    /// Where the window begins.
    pub from_fs: u64,
    /// Where it ends.
    pub to_fs: u64,
    /// In the order of their start.
    pub packets: Vec<Packet>,
    /// The transactions they belong to.
    pub transactions: Vec<Transaction>,
}

/// A unit on a wire.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Packet {
    /// Unique in the ladder.
    pub id: usize,
    /// Index of the link.
    pub link: usize,
    /// 0: up, 1: down.
    pub direction: usize,
    /// First symbol leaves.
    pub start_fs: u64,
    /// Last symbol has left.
    pub end_fs: u64,
    /// Last symbol has arrived.
    pub arrive_fs: u64,
    /// `MWr`, `Ack`…
    pub kind: String,
    /// TLP, DLLP or flit.
    pub class: PacketClass,
    /// What it says, in a line.
    pub text: String,
    /// Index of its flow.
    pub flow: Option<usize>,
    /// Number of its transaction.
    pub transaction: Option<u64>,
    /// Tag of the request.
    pub tag: Option<u16>,
    /// Sequence number.
    pub sequence: Option<u16>,
    /// Bytes on the wire.
    pub bytes: u32,
    /// It had been sent before.
    pub replay: bool,
    /// A fault damaged it.
    pub bad: bool,
    /// A TLP that a switch had begun to forward when it turned out to be damaged: it ends with EDB and an inverted LCRC, and its receiver
    /// drops it.
    pub nullified: bool,
    /// Of a transaction of a bus: its phases in order, by the cause that each is charged to, and how long they last.
    pub phases: Vec<(usize, u64)>,
    /// Of a transaction of a bus: `data` (moved by it), `split`, `retry` or `abort`.
    pub outcome: Option<String>,
}

/// What a unit on a wire is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PacketClass {
    /// Transaction layer packet.
    #[default]
    Tlp,
    /// Data link layer packet.
    Dllp,
    /// 256-byte flit.
    Flit,
    /// Transaction of a parallel bus.
    Bus,
}

/// A transaction of the ladder.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Transaction {
    /// Its number.
    pub id: u64,
    /// Index of its flow.
    pub flow: usize,
    /// When it started.
    pub start_fs: u64,
    /// When its last byte arrived, or it ended otherwise.
    pub end_fs: u64,
    /// What it is, in a line.
    pub text: String,
    /// How it ended: `done`, or a key of [`Errors`].
    pub ending: String,
    /// Its critical path; of one that did not end well that of what is last known of it.
    pub intervals: Vec<Interval>,
}

/// A part of a critical path.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Interval {
    /// Index in [`Document::causes`].
    pub cause: usize,
    /// Where.
    pub place: String,
    /// The flow one queued behind.
    pub behind: Option<String>,
    /// When it begins.
    pub start_fs: u64,
    /// How long it is.
    pub duration_fs: u64,
}
