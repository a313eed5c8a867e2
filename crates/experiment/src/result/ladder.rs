//! Every packet of a window of time.

use super::words::{Ending, Outcome, PacketRole};
use schemars::JsonSchema;
use serde::Serialize;

/// Every packet of a window of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Ladder {
    /// Nodes from left to right; an end of a link that is not here belongs to its nearest ancestor that is.
    pub columns: Vec<String>,
    /// Where the window begins.
    pub from_fs: u64,
    /// Where it ends.
    pub to_fs: u64,
    /// Its packets, in the order of their start.
    pub packets: Vec<Packet>,
    /// The transactions they belong to.
    pub transactions: Vec<Transaction>,
}

/// A unit on a wire.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Packet {
    /// Unique in the ladder.
    pub id: usize,
    /// The link: an index in `links`.
    pub link: usize,
    /// 0: up, 1: down.
    pub direction: usize,
    /// When its first symbol leaves.
    pub start_fs: u64,
    /// When its last symbol has left.
    pub end_fs: u64,
    /// When its last symbol has arrived.
    pub arrive_fs: u64,
    /// The type's name in the specification: `MWr`, `CplD`, `Ack`; of a flit `Flit`.
    pub kind: String,
    /// TLP, DLLP or flit.
    pub class: PacketClass,
    /// What it is in its transaction; null for what is no TLP.
    #[schemars(extend("x-revision" = 2))]
    pub role: Option<PacketRole>,
    /// What it says, in a line.
    pub text: String,
    /// Its flow, an index in `flows`; null where it has none.
    pub flow: Option<usize>,
    /// Its transaction, by `id`; null where it belongs to none.
    pub transaction: Option<u64>,
    /// Tag of the request, so that a completion finds its request; null where there is none.
    pub tag: Option<u16>,
    /// Sequence number; null where there is none.
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
    /// Of a transaction of a bus: its phases in order, each with the cause that it is charged to and its femtoseconds.
    pub phases: Vec<(usize, u64)>,
    /// Of a transaction of a bus: what came of it; null otherwise.
    pub outcome: Option<Outcome>,
}

/// What a unit on a wire is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Transaction {
    /// Its number.
    pub id: u64,
    /// Its flow: an index in `flows`.
    pub flow: usize,
    /// When it started.
    pub start_fs: u64,
    /// When its last byte arrived, or it ended otherwise.
    pub end_fs: u64,
    /// What it is, in a line.
    pub text: String,
    /// How it ended.
    pub ending: Ending,
    /// Its critical path; of one that did not end well that of what is last known of it.
    pub intervals: Vec<Interval>,
}

/// A part of a critical path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Interval {
    /// Why: an index in `causes` of the document.
    pub cause: usize,
    /// Where: a link direction `from → to`, or a node.
    pub place: String,
    /// The flow one queued behind; null where one did not queue.
    pub behind: Option<String>,
    /// When it begins.
    pub start_fs: u64,
    /// How long it is.
    pub duration_fs: u64,
}
