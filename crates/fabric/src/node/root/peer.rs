//! Peer-to-peer requests that the root complex splits: it issues the pieces in its own name and rebuilds the answer, as captures of
//! real root complexes show.

use crate::kernel::ids::PortId;
use crate::link::context::Context;
use crate::node::answer::Answer;
use crate::node::initiator::Ticket;
use crate::node::root::Root;
use crate::packet::attribution::Cause;
use crate::packet::slab::TlpHandle;
use tlplab_transaction::{CompletionError, Payload, RequestPolicy, memory_access, split_request};
use tlplab_wire::tlp::{CompletionStatus, Kind, Repr};

/// Requests under way, in a slab.
#[derive(Clone)]
pub(crate) struct Splitter {
    requests: Vec<Option<SplitRequest>>,
    /// Stream of the processor's requester that the pieces go through.
    pub(crate) stream: u16,
}

impl Splitter {
    pub(crate) fn new(stream: u16) -> Self {
        Self { requests: Vec::new(), stream }
    }
}

#[derive(Clone)]
struct SplitRequest {
    request: TlpHandle,
    ingress: PortId,
    /// Pieces without an answer yet; of a write, pieces that have not left.
    left: u32,
    data: Vec<u8>,
    failed: bool,
}

impl Root {
    pub(crate) fn split_peer_request(
        &mut self,
        cx: &mut Context,
        ingress: PortId,
        handle: TlpHandle,
        limit: u32,
    ) {
        let tlp = cx.tlps.get(handle);
        let (repr, shape, payload) = (tlp.repr, tlp.shape, tlp.payload.clone());
        let Some(access) = memory_access(&repr) else { return self.refuse_request(cx, ingress, handle) };
        let read = matches!(repr.kind(), Kind::MemRead { .. });
        let chunks = split_request(access.address, u64::from(access.bytes), limit, RequestPolicy::Aligned);
        let pieces = chunks.clone().count() as u32;
        let request =
            SplitRequest { request: handle, ingress, left: pieces, data: Vec::new(), failed: false };
        let now = cx.now();
        let splitter = &mut self.splitter;
        let index = splitter.requests.iter().position(Option::is_none).unwrap_or_else(|| {
            splitter.requests.push(None);
            splitter.requests.len() - 1
        });
        splitter.requests[index] = Some(request);
        let stream = splitter.stream;
        let requester = &mut self.initiator.requester;
        let ticket = |offset: u64| Ticket::Piece { request: index as u32, offset: offset as u32 };
        // The pieces lie within a request that was valid, so they are valid too.
        for chunk in chunks {
            let _ = if read {
                requester.read(now, stream, ticket(chunk.offset), chunk.address, u64::from(chunk.bytes))
            } else {
                let part = payload.slice(chunk.offset, u64::from(chunk.bytes));
                requester.write(now, stream, ticket(chunk.offset), chunk.address, part)
            };
        }
        cx.release_buffer(ingress, &shape);
        let node = self.node;
        cx.agenda.pump(node);
    }

    /// A piece becomes a TLP that carries on the history of its request.
    pub(crate) fn send_piece(
        &mut self,
        cx: &mut Context,
        index: u32,
        repr: Repr,
        payload: Payload,
    ) -> TlpHandle {
        let node = self.node;
        let (place, now) = (cx.place_of(node), cx.now());
        let Some(split) = self.splitter.requests[index as usize].as_mut() else {
            unreachable!("a request lives until its last piece")
        };
        let original = split.request;
        let write = repr.fc_class() == tlplab_units::FcClass::Posted;
        if write {
            split.left -= 1;
        }
        let over = write && split.left == 0;
        let flow = cx.tlps.get(original).flow;
        let piece = cx.tlps.insert(repr, payload, flow);
        let (request, tlp) = cx.tlps.pair_mut(original, piece);
        (tlp.tracked, tlp.carry, tlp.transaction) = (request.tracked, request.carry, request.transaction);
        if request.tracked {
            tlp.ledger.copy_from(&request.ledger);
            tlp.ledger.charge(now, place, Cause::Processing);
        }
        if write {
            let transaction = tlp.transaction.filter(|_| request.awaited);
            tlp.awaited = transaction.is_some();
            if over {
                request.awaited = false;
            } else if let Some(transaction) = transaction {
                cx.transactions.get(transaction).pending += 1;
            }
        }
        if over {
            self.splitter.requests[index as usize] = None;
            cx.drop_tlp(original);
        }
        piece
    }

    /// A piece of a read has its data.
    pub(crate) fn piece_completed(
        &mut self,
        cx: &mut Context,
        index: u32,
        offset: u32,
        completion: Option<TlpHandle>,
        result: Result<Payload, CompletionError>,
    ) {
        let slot = &mut self.splitter.requests[index as usize];
        let Some(split) = slot.as_mut() else { return };
        split.left -= 1;
        match result {
            Ok(Payload::Bytes(bytes)) => {
                let end = offset as usize + bytes.len();
                if split.data.len() < end {
                    split.data.resize(end, 0);
                }
                split.data[offset as usize..end].copy_from_slice(&bytes);
            }
            Ok(Payload::Length(_)) => {}
            Err(_) => split.failed = true,
        }
        if split.left > 0 {
            return;
        }
        let Some(split) = slot.take() else { return };
        // The critical path goes through the piece that came last, or did not come: a completion that came too late for an earlier request had its tag.
        let transaction = cx.tlps.get(split.request).transaction;
        match completion.filter(|completion| cx.tlps.get(*completion).transaction == transaction) {
            Some(completion) => {
                let (request, last) = cx.tlps.pair_mut(split.request, completion);
                if last.tracked && request.tracked {
                    request.ledger.inherit(&mut last.ledger);
                    last.tracked = false;
                }
            }
            None => {
                let (now, place) = (cx.now(), cx.place_of(self.node));
                let request = cx.tlps.get_mut(split.request);
                if request.tracked {
                    request.ledger.charge(now, place, Cause::NoAnswer);
                }
            }
        }
        let bytes = memory_access(&cx.tlps.get(split.request).repr).map_or(0, |a| u64::from(a.bytes));
        let carries = split.data.len() as u64 == bytes;
        let data = if carries { Payload::from(split.data) } else { Payload::Length(bytes) };
        // The root complex's time for this way has passed: it was the pieces' completions'.
        let tlp = cx.tlps.get_mut(split.request);
        tlp.refusal = split.failed.then_some(CompletionStatus::UnsupportedRequest);
        tlp.payload = data;
        self.send_completions(cx, split.ingress, split.request);
    }
}
