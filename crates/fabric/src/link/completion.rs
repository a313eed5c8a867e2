//! The handling of received TLPs at a port: it ends them, passes them on, refuses them, or completes them.

use crate::kernel::ids::{NodeId, PortId};
use crate::link::agenda::Task;
use crate::link::context::Context;
use crate::link::egress::Waiting;
use crate::observe::errors::{ErrorKind, PeerRefusal};
use crate::observe::topology::NodeKind;
use crate::packet::attribution::Cause;
use crate::packet::slab::{TlpHandle, shape_of};
use tlplab_datalink::Integrity;
use tlplab_transaction::{Completer, CompletionPolicy, CompletionTlp, Payload};
use tlplab_units::{Bdf, Mps, Rcb, Time};
use tlplab_wire::tlp::{CompletionStatus, Repr};

impl Context {
    /// A TLP ends at `ingress`: its buffer is free, its transaction is not touched.
    pub(crate) fn consume(&mut self, ingress: PortId, tlp: TlpHandle) {
        let shape = self.tlps.get(tlp).shape;
        self.leave_request_queue(tlp);
        self.leave_hold(tlp);
        self.drop_tlp(tlp);
        self.release_buffer(ingress, &shape);
    }

    /// A TLP goes to the data link layer of the port by which it leaves its node, or ends before.
    #[inline]
    pub(crate) fn leave_hold(&mut self, tlp: TlpHandle) {
        if self.links.holds
            && let Some(hold) = self.tlps.get_mut(tlp).held.take()
        {
            self.agenda.push(Task::LeftHold(hold));
        }
    }

    /// Nobody claims a request, or the completer gives up: non-posted requests are answered, posted ones are lost.
    pub(crate) fn refuse(&mut self, ingress: PortId, handle: TlpHandle, id: Bdf, status: CompletionStatus) {
        self.detect_refusal(ingress, handle, status);
        self.refuse_quietly(ingress, handle, id, status);
    }

    /// Access control forbids a request its way (PCIe 5.0 §6.12.4).
    #[cold]
    pub(crate) fn refuse_access(&mut self, ingress: PortId, handle: TlpHandle, id: Bdf, reason: PeerRefusal) {
        self.note_refused_peer(ingress, handle, reason);
        self.detect(ingress, ErrorKind::AcsViolation, Some(handle));
        self.refuse_quietly(ingress, handle, id, CompletionStatus::CompleterAbort);
    }

    /// As [`refuse`](Self::refuse), for an error that has been detected already.
    pub(crate) fn refuse_quietly(
        &mut self,
        ingress: PortId,
        handle: TlpHandle,
        id: Bdf,
        status: CompletionStatus,
    ) {
        let completer = Completer { id, rcb: Rcb::ALL[0], mps: Mps::ALL[0], policy: CompletionPolicy::Max };
        self.observe.counts.refused += 1;
        if let Some(repr) = completer.refuse(&self.tlps.get(handle).repr, status) {
            let repr = self.with_digest(ingress, repr);
            let (flow, orphaned) = (self.tlps.get(handle).flow, self.tlps.get(handle).orphaned);
            let answer = self.tlps.insert(repr, Payload::EMPTY, flow);
            self.tlps.get_mut(answer).orphaned = orphaned;
            self.pass_history(handle, answer, Cause::Completer, self.links.ports[ingress.index()].node);
            let port = &self.links.ports[ingress.index()];
            let source = port.index;
            let shape = shape_of(&repr);
            self.enqueue_at_egress(ingress, source, Waiting::own(answer, shape));
        }
        self.consume(ingress, handle);
    }

    /// The critical path goes on from a request to its completion; what the node took since the last charge is `cause`.
    pub(crate) fn pass_history(&mut self, from: TlpHandle, to: TlpHandle, cause: Cause, node: NodeId) {
        let (now, place) = (self.kernel.now(), self.place_of(node));
        let (request, completion) = self.tlps.pair_mut(from, to);
        completion.transaction = request.transaction.take();
        completion.tracked = request.tracked;
        if request.tracked {
            completion.ledger.inherit(&mut request.ledger);
            completion.ledger.charge(now, place, cause);
            request.tracked = false;
        }
    }

    /// Puts a TLP in the queue of an egress of the same node.
    pub(crate) fn forward_to(
        &mut self,
        ingress: PortId,
        egress: PortId,
        tlp: TlpHandle,
        integrity: Integrity,
        tail: Time,
    ) {
        let source = self.links.source(ingress, egress);
        let shape = self.tlps.get(tlp).shape;
        let nullified = integrity == Integrity::Bad;
        if !nullified {
            self.note_poison(ingress, tlp);
        }
        // A nullified copy occupies no receive buffer: the original will come again and take it.
        let ingress = (!nullified).then_some(ingress);
        self.enqueue_at_egress(egress, source, Waiting { tlp, shape, ingress, tail, nullified });
    }

    /// The ID that answers for the node behind `ingress`: of a node that software does not see, the one beyond.
    pub(crate) fn answers_for(&self, ingress: PortId) -> Bdf {
        let info = &self.topology.nodes[self.links.ports[ingress.index()].node.index()];
        if info.kind == NodeKind::Custom { self.id_beyond(self.other_port(ingress)) } else { info.id }
    }

    /// The ID of the first component that software sees, out by `port`.
    pub(crate) fn id_beyond(&self, port: PortId) -> Bdf {
        self.answers_for(self.links.peer(port))
    }

    /// The other port of a node that has two.
    fn other_port(&self, port: PortId) -> PortId {
        let node = self.links.node(port);
        let mut others = self.links.all().filter(|other| *other != port && self.links.node(*other) == node);
        others.next().unwrap_or(port)
    }

    /// A TLP goes on as another one. The replay buffer behind keeps the original.
    pub(crate) fn replace_tlp(&mut self, ingress: PortId, handle: TlpHandle, repr: Repr) -> TlpHandle {
        let original = self.tlps.get(handle);
        let (payload, flow, carry) = (original.payload.clone(), original.flow, original.carry);
        let copy = self.tlps.insert(repr, payload, flow);
        let held = self.tlps.get_mut(handle).held.take();
        let tlp = self.tlps.get_mut(copy);
        (tlp.carry, tlp.held) = (carry, held);
        self.pass_history(handle, copy, Cause::Processing, self.links.ports[ingress.index()].node);
        self.drop_tlp(handle);
        copy
    }

    /// A request goes on to another address.
    pub(crate) fn readdress(&mut self, ingress: PortId, handle: TlpHandle, repr: Repr) -> TlpHandle {
        let tlp = self.tlps.get_mut(handle);
        let (awaited, queued) = (std::mem::take(&mut tlp.awaited), tlp.queued.take());
        let (orphaned, flaw, refusal) = (tlp.orphaned, tlp.flaw, tlp.refusal);
        let copy = self.replace_tlp(ingress, handle, repr);
        let tlp = self.tlps.get_mut(copy);
        (tlp.awaited, tlp.queued, tlp.orphaned, tlp.flaw, tlp.refusal) =
            (awaited, queued, orphaned, flaw, refusal);
        copy
    }

    /// A completion of a request, to wait for `egress`.
    pub(crate) fn make_completion(
        &mut self,
        egress: PortId,
        request: TlpHandle,
        repr: Repr,
        payload: Payload,
        last: bool,
    ) -> Waiting {
        let repr = self.with_digest(egress, repr);
        let tlp = self.tlps.get(request);
        let (flow, transaction, carry, orphaned) = (tlp.flow, tlp.transaction, tlp.carry, tlp.orphaned);
        let answer = self.tlps.insert(repr, payload, flow);
        let tlp = self.tlps.get_mut(answer);
        (tlp.transaction, tlp.carry, tlp.orphaned) = (transaction, carry, orphaned);
        if last {
            // The critical path of the last byte goes on from the request.
            self.pass_history(request, answer, Cause::Processing, self.links.ports[egress.index()].node);
        }
        Waiting::own(answer, shape_of(&repr))
    }

    /// The same with a digest, if `egress` adds them.
    pub(crate) fn with_digest(&self, egress: PortId, repr: Repr) -> Repr {
        if !self.links.ports[egress.index()].checks_digests {
            return repr;
        }
        let attributes = tlplab_wire::tlp::Attributes { digest: true, ..*repr.attributes() };
        repr.with_attributes(attributes).unwrap_or(repr)
    }
}

/// The part of an answer that a completion carries.
pub(crate) fn part_of(data: &Payload, completion: &CompletionTlp) -> Payload {
    let (offset, bytes) = (u64::from(completion.offset), u64::from(completion.bytes));
    // A zero-length read is answered with a doubleword nobody looks at; a short reply is the device's mistake.
    let held = data.len().saturating_sub(offset).min(bytes);
    if held == bytes { data.slice(offset, bytes) } else { Payload::Length(bytes) }
}
