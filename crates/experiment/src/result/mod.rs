//! The result document `tlplab/result/1`: what a run says, as `--json` writes it and the report page reads it.
//!
//! Times whose names end in `_fs` are femtoseconds of simulated time, in `_ns` nanoseconds; rates are bits per second. A *place* is a
//! link direction, written `from → to` as in [`Direction`], or the name of a node.
//!
//! These types are the one source of what the document is: [`schema`] makes the JSON Schema of them, their comments and their units, and from that are generated
//! the types of Python and of the page, the tables of docs/result.md and the colours of causes (`site/result_types.py`). A key stays as it is once a version had it;
//! one that is added says in which [`REVISION`].

mod errors;
mod flows;
mod host;
mod ladder;
mod limits;
mod links;
mod network;
mod registers;
mod schema;
mod series;
mod words;

pub use crate::lspci::Problem;
use crate::settings::Settings;
use crate::stop::StopReason;
pub use errors::{Detected, Outage, RefusedPeers, Reported, Struck};
pub use flows::{Attribution, Bar, Calls, Errors, Failures, Flow, Latency, Measured, Sample};
pub use host::{AnsweredTranslations, CacheUse, DeviceTranslations, HostUse, IommuUse, TranslationFault};
pub use ladder::{Interval, Ladder, Packet, PacketClass, TlpHeader, Transaction};
pub use limits::{Gain, Limit, LimitKind, Next, Phase, Tried, Verdict};
pub use links::{Direction, Dllps, Link, Node, NodeKind, Stalls, Topology, Utilization};
pub use network::{Frames, Network, NetworkDirection};
pub use registers::{ConfigSpaces, FunctionRegisters, RegisterBlock, RegisterChange, RegisterGap};
pub use schema::{CauseName, schema};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
pub use series::{DirectionSeries, FlowSeries, Resource, Series};
use tlplab_fabric::attribution::Cause;
pub use words::{
    Access, Arbitration, CompletionWord, Ending, ErrorName, FaultDamage, FaultOf, Forwarding, Framing,
    GuestEnding, MessageName, Operation, Outcome, PacketRole, PeerRefusal, ProblemName, RefusalReason,
    RegisterCause, ResourceKind, Stopped, WaitedFor, Way,
};

/// Value of [`Document::schema`].
pub const SCHEMA: &str = "tlplab/result/1";

/// Value of [`Document::revision`]. It grows when keys are added, which then say so: `x-revision` in the schema.
pub const REVISION: u32 = 3;

/// The causes, by which every `causes_ns` and `cause` is indexed.
pub fn causes() -> Vec<CauseName> {
    Cause::ALL.map(CauseName).into()
}

/// A Linux guest, and how it ended. The same kernel, initial file system, experiment and seed give the same run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Guest {
    /// SHA-256 of its kernel, hexadecimal.
    pub kernel: String,
    /// SHA-256 of the initial file system that it booted, with its script and files, hexadecimal.
    pub initramfs: String,
    /// SHA-256 of its console output, hexadecimal.
    pub console: String,
    /// Its ending, for people: `powered off`, `died: …`, `lost its power: …`, `running`.
    pub end: String,
    /// Its ending.
    #[schemars(extend("x-revision" = 2))]
    pub ending: GuestEnding,
    /// The exit status of its script; null if it told none.
    pub status: Option<u8>,
}

/// The result of a run: the document of the schema `tlplab/result/1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Document {
    /// The schema, `tlplab/result/1`.
    pub schema: String,
    /// Number of times that keys were added to the schema, from 1; a document without this key is of revision 1.
    #[schemars(extend("x-revision" = 2))]
    pub revision: u32,
    /// Title of the experiment.
    pub title: String,
    /// Version of tlplab.
    pub version: String,
    /// The seed; a string where a JSON number would not be exact.
    #[serde(serialize_with = "exact")]
    #[schemars(with = "schema::Exact")]
    pub seed: u64,
    /// The experiment as it was run: TOML, with included files and overrides.
    pub experiment: String,
    /// The resolved settings: each key of the experiment with its value, defaults of devices, switches and loads included.
    pub settings: Settings,
    /// Hash of everything that went over the wires: 16 hexadecimal digits.
    pub trace_hash: String,
    /// Start of the statistics.
    pub start_fs: u64,
    /// End of the run.
    pub end_fs: u64,
    /// Reason that the run ended.
    #[schemars(with = "Stopped")]
    pub stop_reason: StopReason,
    /// Reason that the run ended, for people.
    pub stop_text: String,
    /// Programs of the host that wait for an event that never comes: the run is stuck.
    pub waiting: Vec<Waiting>,
    /// The Linux that was the host's software; null if none was.
    pub guest: Option<Guest>,
    /// The limit of the run.
    pub verdict: Verdict,
    /// Streams of transactions: loads and programs.
    pub flows: Vec<Flow>,
    /// Measurements of programs of the host.
    pub measured: Vec<Measured>,
    /// The networks behind devices.
    pub networks: Vec<Network>,
    /// The frames of Ethernet controllers.
    #[schemars(extend("x-revision" = 2))]
    pub frames: Vec<Frames>,
    /// The causes of latency; every `cause` and `causes_ns` is indexed like this list.
    pub causes: Vec<CauseName>,
    /// Errors that receivers and requesters detected, the warm-up included.
    pub errors: Vec<Detected>,
    /// Errors reported to root ports, the warm-up included.
    pub reported: Vec<Reported>,
    /// TLPs that access control or the root complex refused their way to a peer, by port and reason, the warm-up included.
    #[schemars(extend("x-revision" = 2))]
    pub refused_peers: Vec<RefusedPeers>,
    /// Links that went down, the warm-up included; of very many the first.
    pub outages: Vec<Outage>,
    /// Faults of units, and how many they have hit, the warm-up included.
    pub faults: Vec<Struck>,
    /// Problems of the software that enumerates since the start, each once. That a device is not ready is a result; that bus numbers
    /// or addresses run out makes the run a failed one.
    pub problems: Vec<Problem>,
    /// Use of the host's cache and IOMMU; null if it has neither.
    pub host: Option<HostUse>,
    /// Translations of devices that can request some.
    pub translations: Vec<DeviceTranslations>,
    /// Components.
    pub topology: Topology,
    /// Links.
    pub links: Vec<Link>,
    /// Link directions and nodes, which samples refer to.
    pub places: Vec<String>,
    /// Everything over time.
    pub series: Series,
    /// A uniform sample of transactions.
    pub samples: Vec<Sample>,
    /// The window of packets that was kept; null if none was.
    pub ladder: Option<Ladder>,
    /// Configuration spaces over time; null if they were not kept.
    #[schemars(extend("x-revision" = 3))]
    pub config_spaces: Option<ConfigSpaces>,
}

/// Largest integer that every JSON reader keeps exactly.
const EXACT: u64 = 1 << 53;

fn exact<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    if *number <= EXACT { serializer.serialize_u64(*number) } else { serializer.collect_str(number) }
}

/// A program of the host that waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Waiting {
    /// The device that it drives.
    pub device: String,
    /// The operation that it waits for.
    pub operation: WaitedFor,
    /// The same, for people: `irq 3`.
    pub what: String,
    /// The place in its source: `file:line`.
    pub place: String,
}
