//! Errors of requests, and of completions.

use tlplab_units::{Bdf, Duration, Tag};

/// The reason that a request cannot be issued at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The transfer passes the top of the 64-bit address space.
    #[error("{bytes} B at {address:#x} pass the end of the address space, 2^64")]
    AddressWraps {
        /// First byte.
        address: u64,
        /// Length.
        bytes: u64,
    },
    /// The payload does not fill the template.
    #[error("{name} carries {expected} B of payload, not {found} B")]
    PayloadLength {
        /// The TLP's name.
        name: &'static str,
        /// Bytes it announces (enabled bytes or whole doublewords).
        expected: u32,
        /// Bytes given.
        found: u64,
    },
    /// A completion is no request.
    #[error("{0} is a completion and cannot be issued as a request")]
    NotARequest(&'static str),
}

/// The failure of a request. No data of the operation is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompletionError {
    /// UR: no completer claims the request (PCIe 5.0 §2.3.1).
    #[error("unsupported request (UR): no component claims address {address:#x}")]
    UnsupportedRequest {
        /// First byte of the request that failed.
        address: u64,
    },
    /// CA: the completer gave up (PCIe 5.0 §2.3.1).
    #[error("completer abort (CA) for the request at {address:#x}")]
    CompleterAbort {
        /// First byte of the request that failed.
        address: u64,
    },
    /// RRS (CRS before 6.0): a configuration request came before the function was ready; issue it again (PCIe 5.0 §2.3.1).
    #[error("request retry status (RRS): the function is not ready yet, try again later")]
    RetryStatus,
    /// EP: the data came marked as bad (PCIe 5.0 §2.7.2).
    #[error("poisoned data (EP) for the request at {address:#x}")]
    Poisoned {
        /// First byte of the request that failed.
        address: u64,
    },
    /// No, or not every, completion came in time (PCIe 5.0 §2.8).
    #[error("completion timeout: the request at {address:#x}, tag {tag}, was not answered within {after}")]
    Timeout {
        /// First byte that did not come.
        address: u64,
        /// Its tag.
        tag: Tag,
        /// The time limit.
        after: Duration,
    },
    /// The carrier of the TLPs says that the request did not arrive: a link that is down does not, a network may.
    #[error("the request at {address:#x}, tag {tag}, was not delivered: {why}")]
    Undelivered {
        /// First byte that did not come.
        address: u64,
        /// Its tag.
        tag: Tag,
        /// The carrier's reason.
        why: Undeliverable,
    },
    /// A completion has the right ID but contradicts the request, and is malformed therefore (PCIe 5.0 §2.3.2).
    #[error(
        "malformed completion for tag {tag}: {field} is {found:#x}, expected {expected:#x} (PCIe 5.0 §2.3.2)"
    )]
    Mismatch {
        /// Its tag.
        tag: Tag,
        /// The field of the completion.
        field: Field,
        /// The value that the request lets expect.
        expected: u32,
        /// The value found.
        found: u32,
    },
}

/// The reason that a request did not reach its receiver over a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undeliverable {
    /// Nobody listens at that port (ICMP port unreachable, `ECONNREFUSED`).
    #[error("no program listens on the peer's UDP port (connection refused)")]
    PortRefused,
    /// Nobody is at that address, or there is no way to it (`EHOSTUNREACH`, `ENETUNREACH`).
    #[error("no route to the peer's address (host unreachable)")]
    HostUnreachable,
}

/// A field by which a completion is checked against its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Byte Count: bytes that remain.
    ByteCount,
    /// Lower Address.
    LowerAddress,
    /// Length, in bytes of payload; 0 for a completion without data.
    Length,
    /// Traffic Class.
    TrafficClass,
    /// Attr\[1:0\]: Relaxed Ordering and No Snoop.
    Attributes,
    /// 1 for `CplLk` and `CplDLk`.
    Locked,
    /// Status: RRS answers configuration requests only.
    Status,
}

impl core::fmt::Display for Field {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::ByteCount => "Byte Count",
            Self::LowerAddress => "Lower Address",
            Self::Length => "payload length",
            Self::TrafficClass => "TC",
            Self::Attributes => "Attr",
            Self::Locked => "Lk",
            Self::Status => "Status",
        })
    }
}

/// The reason that a TLP is not an expected completion (PCIe 5.0 §2.3.2): it is dropped, and no operation is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unexpected {
    /// It is a request.
    #[error("{0} is not a completion")]
    NotACompletion(&'static str),
    /// It answers somebody else's request.
    #[error("the completion is for requester {found}, not for {own}")]
    OtherRequester {
        /// The completion's requester ID.
        found: Bdf,
        /// This requester.
        own: Bdf,
    },
    /// This requester does not own the tag.
    #[error("tag {0} is outside the tags of this requester")]
    ForeignTag(Tag),
    /// No request with this tag is outstanding.
    #[error("no request with tag {0} is outstanding")]
    NotOutstanding(Tag),
    /// The request was abandoned (timed out, cancelled, or answered wrongly); its tag still rests.
    #[error("late completion: the request with tag {0} was given up")]
    Late(Tag),
}
