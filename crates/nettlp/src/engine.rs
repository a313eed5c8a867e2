//! The interface of an end of NetTLP to its driver: datagrams and time in, datagrams and deadlines out.

use std::net::{Ipv4Addr, SocketAddrV4};
pub use tlplab_transaction::Undeliverable;
use tlplab_units::{Duration, Time};
use tlplab_wire::nettlp::HEADER_BYTES;
use tlplab_wire::nettlp::link::SEAL_BYTES;
use tlplab_wire::tlp::emit::MAX_HEADER_BYTES;

/// The longest datagram: NetTLP header, the longest header of a TLP with all prefixes, 4096 bytes of payload, digest, the seal of an
/// acknowledged link.
pub const MAX_DATAGRAM: usize = HEADER_BYTES + MAX_HEADER_BYTES + 4096 + 4 + SEAL_BYTES;

/// A datagram that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The sender, as its IP and UDP headers name it, unauthenticated.
    pub from: SocketAddrV4,
    /// The local UDP port that it came to.
    pub port: u16,
    /// The UDP payload.
    pub payload: &'a [u8],
}

/// A datagram to be sent; its payload stands in the caller's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The destination.
    pub to: SocketAddrV4,
    /// The local UDP port that it leaves from.
    pub from_port: u16,
    /// Bytes of payload.
    pub len: usize,
}

impl Outgoing {
    /// To `peer`, from and to the same port: as NetTLP has it throughout.
    pub fn same_port(peer: Ipv4Addr, port: u16, len: usize) -> Self {
        Self { to: SocketAddrV4::new(peer, port), from_port: port, len }
    }
}

/// An end of NetTLP as a state machine: one per thread, which owns it and shares nothing.
///
/// The driver hands over every datagram that came, then asks for what is to be sent until there is nothing, then waits for the
/// next datagram or the deadline, whichever is first.
pub trait Engine {
    /// A datagram came. It may hold anything, from anybody: what makes no sense is counted and forgotten.
    fn handle_datagram(&mut self, now: Time, datagram: Datagram<'_>);

    /// Writes the next datagram to be sent into `buffer`, which has room for [`MAX_DATAGRAM`] bytes.
    fn poll_transmit(&mut self, now: Time, buffer: &mut [u8]) -> Option<Outgoing>;

    /// The time at which [`handle_timeout`](Self::handle_timeout) or [`poll_transmit`](Self::poll_transmit) has work without other input.
    fn deadline(&self) -> Option<Time>;

    /// The deadline has come, or passed.
    fn handle_timeout(&mut self, now: Time);

    /// A datagram to `to` could not be delivered; `to.port()` tells the requests that wait for it in vain.
    fn handle_undeliverable(&mut self, now: Time, to: SocketAddrV4, why: Undeliverable);

    /// The origin of time moves: every instant that is stored is now `by` earlier, or at zero if it was less. `Time` ends after 5.1
    /// hours, so a server that runs for days calls this now and then.
    fn rebase(&mut self, by: Duration);
}
