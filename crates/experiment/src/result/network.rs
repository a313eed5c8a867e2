//! The Ethernet link behind a card.

use super::flows::Latency;
use schemars::JsonSchema;
use serde::Serialize;

/// The Ethernet link behind a card, and the software at its other end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Network {
    /// The card.
    pub device: String,
    /// From the card to the software.
    pub to_software: NetworkDirection,
    /// From the software to the card.
    pub to_card: NetworkDirection,
    /// Datagrams that the software's sockets had no room for.
    pub socket_drops: u64,
    /// Fraction of time in which the software's processors worked.
    pub cores_busy: f64,
    /// Reads by the software that ended well.
    pub reads: u64,
    /// Reads by the software that did not.
    pub failed_reads: u64,
    /// Latency of the successful ones, as the software sees it; null without any.
    pub latency_ns: Option<Latency>,
}

/// One direction of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct NetworkDirection {
    /// Datagrams sent.
    pub datagrams: u64,
    /// Payload of their TLPs: the goodput.
    pub payload_bps: f64,
    /// Fraction of time in which the wire was busy.
    pub busy: f64,
    /// Datagrams lost because the buffer was full.
    pub dropped: u64,
    /// The payload lost with them, in bytes.
    pub dropped_bytes: u64,
}

/// Frames of an Ethernet controller, without the frames that its filters reject.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(extend("x-revision" = 2))]
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
