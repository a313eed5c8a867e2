//! The events of an end point for its owner.

use tlplab_device::DmaError;
use tlplab_transaction::Payload;
use tlplab_units::Bdf;
use tlplab_wire::tlp::Repr;

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<T> {
    /// A read is over: its data (none, of a flush), or why there are none.
    ReadDone {
        /// As given to [`read`](super::Endpoint::read).
        token: T,
        /// As many bytes as were asked for.
        result: Result<Payload, DmaError>,
    },
    /// The last TLP of a write was handed over for sending. Nobody says when it arrives: it is posted. On an
    /// [acknowledged](super::EndpointConfig::acknowledged) link it has arrived.
    WriteSent {
        /// As given to [`write`](super::Endpoint::write).
        token: T,
    },
    /// The acknowledged link was lost, or the adapter does not give one: nobody knows what became of this read or write.
    Failed {
        /// As given to [`read`](super::Endpoint::read) or [`write`](super::Endpoint::write).
        token: T,
        /// The reason.
        error: DmaError,
    },
    /// The host reads from a window: to be answered with [`answer`](super::Endpoint::answer).
    HostRead(HostRead),
    /// The host writes to a window.
    HostWrite(HostWrite),
    /// Any other TLP that came to a port of this end point. If it wants a completion it was answered with UR already.
    Other {
        /// Its header.
        repr: Repr,
        /// Its payload, in whole doublewords.
        data: Payload,
    },
}

/// A read that waits for its answer. Of a read with holes in its byte enables each run of bytes is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRead {
    /// To answer with.
    pub token: AnswerToken,
    /// The requester.
    pub requester: Bdf,
    /// Number of the window in [`EndpointConfig::windows`](super::EndpointConfig::windows).
    pub window: usize,
    /// First byte.
    pub address: u64,
    /// Bytes, 0 to 4096; none in a flush, which is to be answered with no data when all writes before it are done.
    pub bytes: u32,
}

/// Bytes to be written. A write with holes in its byte enables comes as one for each run of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostWrite {
    /// The writer.
    pub requester: Bdf,
    /// Number of the window in [`EndpointConfig::windows`](super::EndpointConfig::windows).
    pub window: usize,
    /// First byte.
    pub address: u64,
    /// The bytes.
    pub data: Payload,
    /// The data are marked as bad (EP).
    pub poisoned: bool,
}

/// Names a read of the host until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AnswerToken {
    pub(super) slot: u32,
    pub(super) part: u16,
    pub(super) generation: u16,
}

impl AnswerToken {
    /// As one number, for drivers in other languages.
    pub const fn to_bits(self) -> u64 {
        (self.slot as u64) << 32 | (self.part as u64) << 16 | self.generation as u64
    }
    /// Back from [`to_bits`](Self::to_bits).
    pub const fn from_bits(bits: u64) -> Self {
        Self { slot: (bits >> 32) as u32, part: (bits >> 16) as u16, generation: bits as u16 }
    }
}
