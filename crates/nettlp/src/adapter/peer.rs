//! From device to device: through a switch, which passes TLPs as they are, or through a root complex, which reads in pieces in its own
//! name and makes completions of its own.

use super::Adapter;
use super::config::PeerToPeer;
use super::host::Host;
use super::port::{Errand, Port};
use super::requests::Request;
use std::iter;
use tlplab_device::Refusal;
use tlplab_transaction::{CompletionError, Payload, RequestPolicy, split_request};
use tlplab_units::Time;
use tlplab_wire::tlp::{Completion, CompletionStatus, Kind, Repr};

/// The addresses at which a root complex cuts reads between devices, as the captures show.
const PIECE: u32 = 64;

/// A read that was passed on to a device, and what is still to come of its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    /// The reader.
    from: usize,
    /// Address of the next byte.
    address: u64,
    /// Bytes that remain; 1 for a zero-length read, as in its completion.
    left: u32,
}

impl Passed {
    /// True if this is the next completion.
    fn expects(&self, completion: &Completion) -> bool {
        completion.status() != CompletionStatus::Success
            || completion.length().is_some()
                && completion.byte_count() == self.left
                && u64::from(completion.lower_address()) == self.address & 0x7F
                && completion.data_bytes() <= self.left
    }
}

/// A read that goes through a root complex, until its last piece.
#[derive(Debug)]
pub(super) struct Split {
    from: usize,
    request: Repr,
    /// Pieces without an answer.
    left: usize,
    data: Vec<u8>,
    failed: Option<Refusal>,
}

impl<H: Host> Adapter<H> {
    /// Device `from` reads or writes in the memory of device `to`.
    pub(super) fn peer_request(&mut self, now: Time, from: usize, to: usize, request: &Request<'_>) {
        self.ports[from].counters.peer_requests += 1;
        match self.config.peer_to_peer {
            PeerToPeer::Switch => self.pass(from, to, request),
            PeerToPeer::RootComplex => self.split(now, from, to, request),
        }
    }

    /// A switch passes it on. The answer finds its way by the requester ID, so nobody may use another's (ACS Source Validation, PCIe 5.0
    /// §6.12.1.1). A switch has no completion timeout (§2.8): the requester alone decides when it waits no longer.
    fn pass(&mut self, from: usize, to: usize, request: &Request<'_>) {
        let Request { repr, access, packet } = request;
        let id = repr.transaction_id();
        let read = matches!(repr.kind(), Kind::MemRead { .. });
        if id.requester != self.ports[from].bdf {
            match read {
                true => self.ports[from].refuse(repr, Refusal::CompleterAbort),
                false => self.ports[from].counters.lost_writes += 1,
            }
            return;
        }
        if self.ports[to].egress.pass(from, packet.bytes()).is_err() {
            self.ports[from].counters.overflows += 1;
            return;
        }
        if read {
            let passed = Passed { from, address: access.address, left: access.bytes.max(1) };
            self.ports[to].passed.insert((id.requester, id.tag), passed);
        }
    }

    /// Device `at` answers another device.
    pub(super) fn pass_completion(&mut self, at: usize, completion: &Completion, tlp: &[u8]) {
        let key = (completion.id().requester, completion.id().tag);
        let Port { passed, counters, .. } = &mut self.ports[at];
        let Some(mut state) = passed.get(&key).copied().filter(|p| p.expects(completion)) else {
            counters.unexpected += 1;
            return;
        };
        let bytes = completion.data_bytes();
        let over = completion.status() != CompletionStatus::Success || bytes == state.left;
        if over {
            passed.remove(&key);
        } else {
            (state.address, state.left) = (state.address.wrapping_add(bytes.into()), state.left - bytes);
            passed.insert(key, state);
        }
        if self.ports[state.from].egress.pass(at, tlp).is_err() {
            self.ports[at].counters.overflows += 1;
        }
    }

    /// A root complex takes it, and asks in its own name.
    fn split(&mut self, now: Time, from: usize, to: usize, request: &Request<'_>) {
        let Request { repr, access, .. } = request;
        let stream = 1 + from as u16;
        let limit = self.config.queue;
        let split = self.next_split;
        let [source, port] = self.two_ports(from, to);
        if port.load[from] >= limit {
            source.counters.overflows += 1;
            return;
        }
        if source.room().is_err() {
            return; // it has counted that
        }
        port.load[from] += 1;
        if let Kind::MemWrite { .. } = repr.kind() {
            let errand = Errand::PeerWrite { from };
            // The same request in another's name: as valid as it was.
            let _ = port.requester.request(now, stream, errand, *repr, Some(request.data().into()));
            return;
        }
        let bytes = u64::from(access.bytes);
        let chunks = split_request(access.address, bytes, PIECE, RequestPolicy::Aligned);
        let mut left = 0;
        for chunk in chunks {
            left += 1;
            let errand = Errand::Piece { split, offset: chunk.offset as u32 };
            let _ = port.requester.read(now, stream, errand, chunk.address, chunk.bytes.into());
        }
        let data = iter::repeat_n(0, access.bytes as usize).collect();
        port.splits.insert(split, Split { from, request: *repr, left, data, failed: None });
        self.ports[from].waiting += 1;
        self.next_split = split.wrapping_add(1);
    }

    /// Device `at` has answered a piece, or has not.
    pub(super) fn piece_done(
        &mut self,
        at: usize,
        id: u32,
        offset: u32,
        result: Result<Payload, CompletionError>,
    ) {
        let port = &mut self.ports[at];
        let Some(split) = port.splits.get_mut(&id) else { return };
        split.left -= 1;
        match result {
            Ok(data) => {
                let place = split.data[offset as usize..].iter_mut();
                place.zip(data.bytes().unwrap_or(&[])).for_each(|(to, from)| *to = *from);
            }
            Err(CompletionError::UnsupportedRequest { .. }) => {
                split.failed = Some(Refusal::UnsupportedRequest)
            }
            Err(_) => split.failed = split.failed.or(Some(Refusal::CompleterAbort)),
        }
        if split.left > 0 {
            return;
        }
        let Some(split) = port.splits.remove(&id) else { return };
        port.load[split.from] -= 1;
        let source = &mut self.ports[split.from];
        source.waiting -= 1;
        source.reply(&split.request, split.failed.map_or(Ok(split.data.into()), Err));
    }

    fn two_ports(&mut self, from: usize, to: usize) -> [&mut Port; 2] {
        self.ports.get_disjoint_mut([from, to]).expect("a device does not reach itself through the host")
    }
}
