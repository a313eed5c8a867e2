//! Errors, faults, and links that went down.

use super::words::{ErrorName, FaultDamage, FaultOf, MessageName, PeerRefusal, Way};
use schemars::JsonSchema;
use serde::Serialize;

/// An error of PCIe 5.0 §6.2 at a port, as often as it was detected there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Detected {
    /// The specification's name.
    pub name: ErrorName,
    /// The port, named with its peer as a link direction: `sw0 → ssd` is the port of sw0 above ssd.
    pub port: String,
    /// Number of times.
    pub count: u64,
    /// Time of the first.
    pub first_fs: u64,
    /// Header of the first TLP it concerns: 32 hexadecimal digits; null where no TLP is known.
    pub header: Option<String>,
    /// The message that told the root complex of it; null: no message was sent.
    pub message: Option<MessageName>,
    /// Number of messages sent.
    pub messages: u64,
}

/// Error messages from one function, as a root port logged them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Reported {
    /// The root port: `host.rp0`.
    pub port: String,
    /// ID of the function that reported: `03:00.0`.
    pub source: String,
    /// Its severity.
    pub message: MessageName,
    /// Number of messages that arrived.
    pub count: u64,
    /// Arrival of the first.
    pub first_fs: u64,
    /// Number of times that the root port interrupted for them.
    pub interrupts: u64,
}

/// TLPs that a port refused their way to a peer, for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RefusedPeers {
    /// The port that they arrived at, named with its peer as a link direction.
    pub port: String,
    /// Reason of the refusal.
    pub reason: PeerRefusal,
    /// The key that sets this, at the port.
    pub key: String,
    /// The device that sent the first, or the ID of a function that no device has.
    pub device: String,
    /// Number of requests.
    pub requests: u64,
    /// Number of completions, whose requests time out.
    pub completions: u64,
    /// Time of the first refusal.
    pub first_fs: u64,
}

/// A fault that hits units on a direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Struck {
    /// The link, named by the component below it.
    pub link: String,
    /// The direction of the units that it hits.
    pub direction: Way,
    /// Its damage: a value of the key `damage`, or `ber`.
    pub damage: FaultDamage,
    /// Units that it counts; null: all units.
    pub of: Option<FaultOf>,
    /// The first that it hits, from 1.
    pub first: u64,
    /// Number of units that it has hit.
    pub struck: u64,
}

/// A link that went down, and the consequences.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Outage {
    /// The link, named by the component below it.
    pub link: String,
    /// Time at which it went down.
    pub down_fs: u64,
    /// Time at which hot-plug software of the host was notified; null: it never was.
    pub heard_fs: Option<u64>,
    /// Time at which its data link layer was active again; null: it never was.
    pub up_fs: Option<u64>,
    /// Time at which software had configured the components below it again; null: it never had.
    pub configured_fs: Option<u64>,
}
