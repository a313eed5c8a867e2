//! Components and the links between them, and what these were used for.

use super::words::{Arbitration, Forwarding, Framing};
use schemars::JsonSchema;
use serde::Serialize;

/// Components.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Topology {
    /// The host first.
    pub nodes: Vec<Node>,
}

/// A component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Kind of the component.
    pub kind: NodeKind,
    /// A device's model, a bus's mode and width; null for others.
    pub model: Option<String>,
    /// The component above it; null for the host.
    pub parent: Option<String>,
    /// Further details, in a line.
    pub detail: String,
    /// The forwarding of a switch; left out for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Forwarding", extend("x-revision" = 2))]
    pub forwarding: Option<Forwarding>,
    /// The arbitration of a switch; left out for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Arbitration", extend("x-revision" = 2))]
    pub arbitration: Option<Arbitration>,
}

/// Kinds of components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Link {
    /// The component below it.
    pub name: String,
    /// The component above it.
    pub upper: String,
    /// The component below it.
    pub lower: String,
    /// Its generation, 1 to 7.
    pub generation: u8,
    /// Lanes.
    pub width: u8,
    /// Framing of its units.
    pub mode: Framing,
    /// Max_Payload_Size in force, in bytes.
    pub mps: u32,
    /// Rate after line coding.
    pub raw_bps: f64,
    /// Mode and width of the bus that it is a way over: generation, width and mode then mean nothing. The use of its directions is in fractions of
    /// the bus's time, which all ways share. Null for a link.
    pub bus: Option<String>,
    /// Up, then down.
    pub directions: [Direction; 2],
}

/// One direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Direction {
    /// The component that sends.
    pub from: String,
    /// The component that receives.
    pub to: String,
    /// Number of the interface in a pcapng capture of the same run.
    pub interface: u32,
    /// Use of the wire, as fractions of time.
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
    /// TLPs that arrived with a bad LCRC, or flits with a bad CRC.
    pub bad_lcrc: u64,
    /// TLPs that the receiver dropped for want of room (only where a link drops and replays).
    pub no_room: u64,
    /// Time in which a TLP had to wait, as fractions of time.
    pub stalls: Stalls,
}

/// Fractions of time; their sum is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Dllps {
    /// Ack.
    pub ack: u64,
    /// Nak.
    pub nak: u64,
    /// UpdateFC.
    pub update_fc: u64,
    /// UpdateFCs that were worked out, because a guest slept and nothing was under way: no capture and no trace has them.
    pub worked_out: u64,
    /// InitFC1 and InitFC2.
    pub init_fc: u64,
    /// Others.
    pub other: u64,
}

/// Fractions of time in which a TLP waited for something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Stalls {
    /// Credits.
    pub credits: f64,
    /// Tags.
    pub tags: f64,
    /// Room in the replay buffer.
    pub replay_buffer: f64,
}
