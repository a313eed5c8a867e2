//! The errors of a run, counted.

use crate::kernel::ids::PortId;
pub use crate::packet::access::PeerRefusal;
use std::collections::BTreeMap;
pub use tlplab_cfgspace::{ErrorKind, ErrorMessage};
use tlplab_units::{Bdf, Time};

/// An error at a place, as often as it was detected there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCount {
    /// The port that detected it.
    pub port: PortId,
    /// The kind of error.
    pub kind: ErrorKind,
    /// The number of times.
    pub count: u64,
    /// The first time.
    pub first: Time,
    /// Header of the first TLP it concerns, as on the wire; 3 DW end in zeros.
    pub header: Option<[u8; 16]>,
    /// The last message that told the root complex of it, and how many did.
    pub messages: Option<(ErrorMessage, u64)>,
}

/// An error message that got as far as a root port's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedError {
    /// The root port.
    pub port: PortId,
    /// The function that reported an error, perhaps the root port itself.
    pub source: Bdf,
    /// Its severity.
    pub message: ErrorMessage,
    /// The number of times.
    pub count: u64,
    /// The first time.
    pub first: Time,
    /// The number of times that the root port raised its interrupt for it.
    pub interrupts: u64,
}

/// TLPs that a port refused their way to a peer, for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedPeers {
    /// The port that they came in by.
    pub port: PortId,
    /// The reason.
    pub reason: PeerRefusal,
    /// The number of requests.
    pub requests: u64,
    /// The number of completions, whose requests time out.
    pub completions: u64,
    /// The first time.
    pub first: Time,
    /// The function that sent the first: requester of a request, completer of a completion.
    pub sender: Bdf,
}

/// All errors so far, in a bounded number of entries.
#[derive(Clone, Default)]
pub(crate) struct ErrorLog {
    pub(crate) detected: BTreeMap<(PortId, ErrorKind), ErrorCount>,
    pub(crate) reported: BTreeMap<(PortId, Bdf, ErrorMessage), ReportedError>,
    pub(crate) refused_peers: BTreeMap<(PortId, PeerRefusal), RefusedPeers>,
}
