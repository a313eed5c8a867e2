//! The check of received datagrams: those that are not TLPs of the adapter are counted and go no further.

use super::counters::Counters;
use crate::engine::Datagram;
use crate::sequence::{Arrival, FromAdapter, Numbering};
use std::net::Ipv4Addr;
use tlplab_wire::nettlp::{Header, parse_udp_payload};
use tlplab_wire::tlp::{Packet, ParseOptions, Repr, TagWidth};

/// Stands before an [`Endpoint`](super::Endpoint), and before programs that want the TLPs as they are.
#[derive(Clone, Debug)]
pub struct Gate {
    adapter: Ipv4Addr,
    arrivals: FromAdapter,
    /// Except for the sequence numbers.
    pub(super) counters: Counters,
}

impl Gate {
    /// Lets in what comes from `adapter`.
    pub fn new(adapter: Ipv4Addr) -> Self {
        Self { adapter, arrivals: FromAdapter::default(), counters: Counters::default() }
    }

    /// The sequence numbers received so far.
    pub fn counters(&self) -> Counters {
        Counters { sequence: self.arrivals.seen, ..self.counters }
    }

    /// The state that the lanes of the device share.
    pub(super) fn numbering(&mut self) -> &mut Numbering {
        &mut self.arrivals.numbering
    }

    /// For what whoever stands behind it counts.
    pub fn counters_mut(&mut self) -> &mut Counters {
        &mut self.counters
    }

    /// The TLP in a datagram, if it is one, is whole, and did not come before.
    pub fn admit<'a>(&mut self, datagram: Datagram<'a>) -> Option<(Packet<'a>, Repr)> {
        self.counters.datagrams_in += 1;
        if *datagram.from.ip() != self.adapter {
            self.counters.foreign_address += 1;
            return None;
        }
        let (header, packet) = parse_udp_payload(datagram.payload)
            .map_err(|error| self.counters.count_malformed(&error))
            .ok()?;
        let (packet, repr) = self.read(packet)?;
        // Only now: a damaged copy must not make a duplicate of the good one.
        self.is_first(datagram.port, header).then_some((packet, repr))
    }

    /// True if a datagram of an acknowledged link comes from the adapter, and for the first time.
    pub(super) fn admit_sealed(&mut self, datagram: Datagram<'_>) -> bool {
        self.counters.datagrams_in += 1;
        if *datagram.from.ip() != self.adapter {
            self.counters.foreign_address += 1;
            return false;
        }
        Header::parse(datagram.payload).is_ok_and(|header| self.is_first(datagram.port, header))
    }

    /// A TLP, if it is whole.
    pub(super) fn read<'a>(&mut self, packet: Packet<'a>) -> Option<(Packet<'a>, Repr)> {
        let options = ParseOptions { tags: TagWidth::Eight, ..ParseOptions::default() };
        let repr =
            Repr::parse_with(&packet, options).map_err(|error| self.counters.count_malformed(&error)).ok()?;
        if packet.ecrc_matches() == Some(false) {
            self.counters.malformed_digest += 1;
            return None;
        }
        Some((packet, repr))
    }

    fn is_first(&mut self, port: u16, header: Header) -> bool {
        match self.arrivals.note(port, header) {
            Arrival::Uncounted | Arrival::New => true,
            Arrival::Late => {
                self.counters.reordered += 1;
                true
            }
            Arrival::Duplicate => {
                self.counters.duplicates += 1;
                false
            }
        }
    }
}
