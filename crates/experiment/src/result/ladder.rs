//! Every packet of a window of time.

use super::words::{CompletionWord, Ending, Outcome, PacketRole};
use schemars::JsonSchema;
use serde::Serialize;

/// Every packet of a window of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Ladder {
    /// Nodes from left to right; an end of a link that is not here belongs to its nearest ancestor that is.
    pub columns: Vec<String>,
    /// Start of the window.
    pub from_fs: u64,
    /// End of the window.
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
    /// Departure of its first symbol.
    pub start_fs: u64,
    /// Departure of its last symbol.
    pub end_fs: u64,
    /// Arrival of its last symbol.
    pub arrive_fs: u64,
    /// The type's name in the specification: `MWr`, `CplD`, `Ack`; of a flit `Flit`.
    pub kind: String,
    /// TLP, DLLP or flit.
    pub class: PacketClass,
    /// Its role in its transaction; null for units other than TLPs.
    #[schemars(extend("x-revision" = 2))]
    pub role: Option<PacketRole>,
    /// Header of a TLP; null for other units.
    #[schemars(extend("x-revision" = 2))]
    pub header: Option<TlpHeader>,
    /// Its content, in a line, for people.
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
    /// Of a transaction of a bus: its outcome; null otherwise.
    pub outcome: Option<Outcome>,
}

/// Fields of the header of a TLP; a key that its type does not have is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TlpHeader {
    /// The function that requests, of a completion that requested: `03:00.0`.
    pub requester: String,
    /// Length of its data, or of the data that it asks for, in doublewords of 4 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    pub length: Option<u32>,
    /// The address of a memory or I/O request, hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub address: Option<String>,
    /// Byte enables of the first doubleword, 0 to 15.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u8")]
    pub first_be: Option<u8>,
    /// Byte enables of the last doubleword, 0 to 15.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u8")]
    pub last_be: Option<u8>,
    /// The function that a configuration request is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub function: Option<String>,
    /// The offset in configuration space of a configuration request, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u16")]
    pub register: Option<u16>,
    /// The function that completes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub completer: Option<String>,
    /// Status with which a completion ends its request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "CompletionWord")]
    pub status: Option<CompletionWord>,
    /// Bytes that a completion and those behind it bring.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    pub byte_count: Option<u32>,
    /// The lowest bits of the address of a completion's first byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u8")]
    pub lower_address: Option<u8>,
}

/// Kind of a unit on a wire.
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
    /// Start.
    pub start_fs: u64,
    /// Arrival of its last byte, or its other ending.
    pub end_fs: u64,
    /// Its description, in a line.
    pub text: String,
    /// Its ending.
    pub ending: Ending,
    /// Its critical path; of a transaction that did not end well, that of its last known TLP.
    pub intervals: Vec<Interval>,
}

/// A part of a critical path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Interval {
    /// Cause: an index in `causes` of the document.
    pub cause: usize,
    /// Place: a link direction `from → to`, or a node.
    pub place: String,
    /// The flow one queued behind; null where one did not queue.
    pub behind: Option<String>,
    /// Start.
    pub start_fs: u64,
    /// Duration.
    pub duration_fs: u64,
}
