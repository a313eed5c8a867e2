//! Datagrams that travel together: what one system call brought, and what the next one takes.

use std::net::{Ipv4Addr, SocketAddrV4};
use tlplab_nettlp::{Datagram, MAX_DATAGRAM, Outgoing};

/// Most datagrams in a batch.
pub const BATCH: usize = 64;

/// Before every payload, for the headers of those transports that write them.
pub(super) const HEADROOM: usize = 48;
/// One byte more than a datagram may have, so that one that is cut off is still too long.
const ROOM: usize = HEADROOM + MAX_DATAGRAM + 1;
/// Not a multiple of the page, so that the beginnings of the datagrams do not share a cache set.
const STRIDE: usize = ROOM.next_multiple_of(64);

/// One datagram's way: who is at the other end, and the UDP port here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Envelope {
    /// The sender of what came, the receiver of what goes.
    pub(super) peer: SocketAddrV4,
    /// The UDP port at this end.
    pub(super) port: u16,
    /// The start of the UDP payload in its buffer.
    pub(super) start: usize,
    /// Bytes of UDP payload.
    pub(super) len: usize,
}

impl Envelope {
    /// Of a buffer that holds nothing for us.
    pub(super) const NONE: Self =
        Self { peer: SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0), port: 0, start: 0, len: 0 };
}

/// Up to [`BATCH`] datagrams in memory that is taken once.
pub struct Batch {
    bytes: Box<[u8]>,
    envelopes: Vec<Envelope>,
}

impl Default for Batch {
    fn default() -> Self {
        Self { bytes: vec![0; STRIDE * BATCH].into(), envelopes: Vec::with_capacity(BATCH) }
    }
}

impl Batch {
    /// Number of datagrams.
    pub fn len(&self) -> usize {
        self.envelopes.len()
    }
    /// True if it has no datagrams.
    pub fn is_empty(&self) -> bool {
        self.envelopes.is_empty()
    }
    /// True if it has no room for more.
    pub fn is_full(&self) -> bool {
        self.len() == BATCH
    }
    /// Forgets all datagrams.
    pub fn clear(&mut self) {
        self.envelopes.clear();
    }

    /// The datagrams that came, in order.
    pub fn datagrams(&self) -> impl Iterator<Item = Datagram<'_>> {
        self.iter().filter(|(e, _)| e.port != 0).map(|(e, payload)| Datagram {
            from: e.peer,
            port: e.port,
            payload,
        })
    }

    /// Lets `fill` write the next datagram to be sent into its place; if it says `None`, there is none. True if one was added.
    ///
    /// # Panics
    /// If the batch is full.
    pub fn push_with(&mut self, fill: impl FnOnce(&mut [u8]) -> Option<Outgoing>) -> bool {
        let at = self.len() * STRIDE + HEADROOM;
        let Some(out) = fill(&mut self.bytes[at..at + MAX_DATAGRAM]) else { return false };
        let (peer, port, len) = (out.to, out.from_port, out.len);
        self.envelopes.push(Envelope { peer, port, start: HEADROOM, len });
        true
    }

    /// Envelopes and payloads, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Envelope, &[u8])> {
        let buffers = self.bytes.chunks_exact(STRIDE);
        self.envelopes.iter().zip(buffers).map(|(e, bytes)| (*e, &bytes[e.start..e.start + e.len]))
    }

    /// Envelopes and whole buffers, in order.
    pub(super) fn buffers(&mut self) -> impl Iterator<Item = (&mut Envelope, &mut [u8])> {
        self.envelopes.iter_mut().zip(self.bytes.chunks_exact_mut(STRIDE))
    }

    /// The envelopes, and the buffers of the datagrams that are not there yet, from `start` on. Who fills the first of them adds its
    /// envelope.
    pub(super) fn free(&mut self, start: usize) -> (&mut Vec<Envelope>, impl Iterator<Item = &mut [u8]>) {
        let from = self.len() * STRIDE;
        let buffers = self.bytes[from..].chunks_exact_mut(STRIDE).map(move |bytes| &mut bytes[start..ROOM]);
        (&mut self.envelopes, buffers)
    }
}
