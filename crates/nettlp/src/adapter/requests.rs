//! TLPs that come from devices: requests to memory, to other devices and to nobody, interrupts, and answers.

use super::Adapter;
use super::function::INTERRUPTS;
use super::host::{Answer, Host, HostInterrupt, HostRead, HostReadId, HostWrite};
use super::port::{Errand, Port};
use crate::early::Turn;
use crate::endpoint::Runs;
use crate::engine::Datagram;
use crate::link::{Came, Link, message_of};
use crate::sequence::Arrival;
use tlplab_device::Refusal;
use tlplab_transaction::{Access, CompletionError, Outcome, memory_access};
use tlplab_units::{FcClass, Time};
use tlplab_wire::nettlp::link::{Numbers, open};
use tlplab_wire::nettlp::{Header, parse_udp_payload};
use tlplab_wire::tlp::{Completion, Kind, Packet, ParseOptions, Repr, Span, TagWidth};

/// The destination of a request.
enum Target {
    Device(usize),
    Interrupt,
    Host,
    Nowhere,
}

/// A request to memory.
pub(super) struct Request<'a> {
    pub(super) repr: Repr,
    pub(super) access: Access,
    pub(super) packet: Packet<'a>,
}

impl Request<'_> {
    /// The data of a write, from the first to the last enabled byte.
    pub(super) fn data(&self) -> &[u8] {
        let first = (self.access.address % 4) as usize;
        self.packet.payload().get(first..first + self.access.bytes as usize).unwrap_or_default()
    }
}

impl<H: Host> Adapter<H> {
    /// A datagram on a TLP port.
    pub(super) fn tlp(&mut self, now: Time, from: usize, datagram: Datagram<'_>) {
        if let Some((numbers, tlp)) = open(datagram.payload) {
            return self.sealed(now, from, datagram, numbers, tlp);
        }
        let Ok((header, packet)) = parse_udp_payload(datagram.payload) else {
            self.ports[from].counters.malformed += 1;
            return;
        };
        let Some(repr) = self.parse(from, &packet) else { return };
        let port = &mut self.ports[from];
        if port.arrivals.note(datagram.port, header) == Arrival::Duplicate {
            port.counters.duplicates += 1;
            return;
        }
        if let Some(message) = message_of(&packet, &repr) {
            port.counters.control += 1;
            return port.lanes.handle(now, datagram.port, message);
        }
        // Another program has taken the place of one that had a link.
        port.lanes.end(datagram.port);
        self.carry_out(now, from, repr, packet);
    }

    /// A TLP on an acknowledged link.
    fn sealed(&mut self, now: Time, from: usize, datagram: Datagram<'_>, numbers: Numbers, tlp: &[u8]) {
        let (port, to) = (&mut self.ports[from], datagram.port);
        let Ok(header) = Header::parse(datagram.payload) else { return };
        if port.arrivals.note(to, header) == Arrival::Duplicate {
            port.counters.duplicates += 1;
            return;
        }
        let Some(link) = port.lanes.link(to) else { return port.lanes.refuse(to, numbers.sequence) };
        match link.handle_tlp(now, numbers, to, tlp, |()| {}) {
            Came::InTurn => self.unsealed(now, from, tlp),
            Came::Early => {}
            Came::Twice => port.counters.duplicates += 1,
        }
        while let Some((_, tlp)) = self.ports[from].lanes.link(to).and_then(Link::take) {
            self.unsealed(now, from, &tlp);
        }
    }

    fn unsealed(&mut self, now: Time, from: usize, tlp: &[u8]) {
        let packet = Packet::new(tlp);
        if let Some(repr) = self.parse(from, &packet) {
            self.carry_out(now, from, repr, packet);
        }
    }

    /// The request that a TLP makes, if it is whole.
    fn parse(&mut self, from: usize, packet: &Packet<'_>) -> Option<Repr> {
        let options = ParseOptions { tags: TagWidth::Eight, truncated: false };
        let parsed = Repr::parse_with(packet, options).ok();
        let whole = parsed.filter(|_| packet.ecrc_matches() != Some(false));
        self.ports[from].counters.malformed += u64::from(whole.is_none());
        whole
    }

    fn carry_out(&mut self, now: Time, from: usize, repr: Repr, packet: Packet<'_>) {
        if repr.payload_bytes() > self.config.mps.bytes() {
            self.ports[from].counters.oversized += 1;
        }
        match (*repr.kind(), memory_access(&repr)) {
            (Kind::Completion(completion), _) => self.completion(now, from, &repr, &completion, &packet),
            (Kind::MemRead { locked: false, .. }, Some(access)) => {
                self.read(now, from, &Request { repr, access, packet });
            }
            (Kind::MemWrite { span, .. }, Some(access)) => {
                self.write(now, from, span, &Request { repr, access, packet });
            }
            _ if repr.fc_class() == FcClass::NonPosted => {
                self.ports[from].refuse(&repr, Refusal::UnsupportedRequest);
            }
            _ => self.ports[from].counters.ignored += 1,
        }
    }

    fn route(&self, from: usize, access: Access) -> Target {
        if !self.ports[from].function.masters_bus() {
            return Target::Nowhere;
        }
        let Access { address, bytes } = access;
        if self.host.claims(address, bytes) {
            return Target::Host;
        }
        if INTERRUPTS.contains(&address) && address % 4 == 0 && bytes == 4 {
            return Target::Interrupt;
        }
        // What is below the same bridge does not come back down.
        let mut others = (0..self.ports.len()).filter(|to| *to != from);
        match others.find(|to| self.ports[*to].function.claims(address, bytes)) {
            Some(to) => Target::Device(to),
            None => Target::Nowhere,
        }
    }

    fn read(&mut self, now: Time, from: usize, request: &Request<'_>) {
        match self.route(from, request.access) {
            Target::Host => self.read_host(now, from, &request.repr, request.access),
            Target::Device(to) => self.peer_request(now, from, to, request),
            Target::Interrupt | Target::Nowhere => {
                self.ports[from].refuse(&request.repr, Refusal::UnsupportedRequest);
            }
        }
    }

    fn read_host(&mut self, now: Time, from: usize, repr: &Repr, access: Access) {
        let port = &mut self.ports[from];
        if port.room().is_err() {
            return;
        }
        port.counters.reads += 1;
        port.counters.bytes_read += u64::from(access.bytes);
        let id = HostReadId(self.next_read);
        self.next_read += 1;
        let requester = repr.transaction_id().requester;
        let request = HostRead { id, device: from, requester, address: access.address, bytes: access.bytes };
        match self.host.read(now, request) {
            Answer::Now(result) => port.reply(repr, result),
            Answer::Later => {
                port.waiting += 1;
                self.waiting.insert(id, (from, *repr));
            }
        }
    }

    fn write(&mut self, now: Time, from: usize, span: Span, request: &Request<'_>) {
        let Request { repr, access, packet } = request;
        if repr.attributes().poisoned {
            self.ports[from].counters.poisoned += 1;
            return;
        }
        let target = self.route(from, *access);
        let counters = &mut self.ports[from].counters;
        match target {
            Target::Host => {
                counters.writes += 1;
                counters.bytes_written += u64::from(access.bytes);
                let requester = repr.transaction_id().requester;
                for (address, bytes) in Runs::of(span) {
                    let start = (address - span.address()) as usize;
                    let data = packet.payload()[start..start + bytes as usize].into();
                    self.host.write(now, HostWrite { device: from, requester, address, data });
                }
            }
            Target::Interrupt => {
                counters.interrupts += 1;
                let data = request.data().try_into().map_or(0, u32::from_le_bytes);
                let address = access.address;
                let vector = self.ports[from].function.vector_of(address, data);
                self.host.interrupt(now, HostInterrupt { device: from, vector, address, data });
            }
            Target::Device(to) => self.peer_request(now, from, to, request),
            Target::Nowhere => counters.lost_writes += 1,
        }
    }

    /// An answer: to the host, or to another device.
    fn completion(
        &mut self,
        now: Time,
        from: usize,
        repr: &Repr,
        completion: &Completion,
        packet: &Packet<'_>,
    ) {
        if completion.id().requester == self.config.requester {
            let Port { requester, early, counters, .. } = &mut self.ports[from];
            match early.turn(requester, *completion, repr, packet.payload()) {
                Turn::Now => {}
                Turn::Early => return,
                Turn::Twice => return counters.duplicates += 1,
            }
            let outcome = requester.handle_completion(now, repr, Some(packet.payload()));
            self.outcome(now, from, outcome);
            while let Port { requester, early, .. } = &mut self.ports[from]
                && let Some((repr, data)) = early.next(requester, completion.id())
            {
                let outcome = requester.handle_completion(now, &repr, Some(&data));
                self.outcome(now, from, outcome);
            }
        } else {
            self.pass_completion(from, completion, packet.bytes());
        }
    }

    /// The result of a request by the host to device `at`.
    pub(super) fn outcome(&mut self, now: Time, at: usize, outcome: Outcome<Errand>) {
        let Port { counters, early, .. } = &mut self.ports[at];
        early.conclude(&outcome);
        match outcome {
            Outcome::Unexpected(_) => counters.unexpected += 1,
            Outcome::Partial(_) | Outcome::RequestDone(_) | Outcome::Again(_) => {}
            Outcome::OperationDone(progress, result) => {
                match &result {
                    Err(CompletionError::Timeout { .. }) => counters.timeouts += 1,
                    Err(_) => counters.failed += 1,
                    Ok(_) => {}
                }
                match progress.op {
                    Errand::Mmio(token) => self.host.mmio_done(now, token, result.map_err(Into::into)),
                    Errand::Piece { split, offset } => self.piece_done(at, split, offset, result),
                    // Posted: over when they have left.
                    Errand::Table | Errand::PeerWrite { .. } => {}
                }
            }
        }
    }
}
