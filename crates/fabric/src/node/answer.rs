//! Completions: what end points and the root complex answer to requests.

use crate::kernel::ids::PortId;
use crate::kernel::queue::EventKind;
use crate::link::egress::Waiting;
use crate::link::port::Port;
use crate::node::Node;
use crate::node::config_request::config_target;
use crate::node::initiator::data_bytes;
use crate::packet::attribution::Cause;
use crate::packet::slab::{TlpHandle, shape_of};
use crate::sim::Fabric;
use tlplab_transaction::{Completer, CompletionPolicy, CompletionTlp, Payload};
use tlplab_units::{Mps, Rcb};
use tlplab_wire::tlp::{CfgTarget, CompletionStatus, Kind, Repr};

impl Fabric {
    /// The answer to a request is there: data, or a refusal. Its completions reach the queues of `egress` after the node's processing.
    pub(crate) fn answer(
        &mut self,
        egress: PortId,
        request: TlpHandle,
        answer: Result<Payload, CompletionStatus>,
    ) {
        let node = self.ports[egress.index()].node;
        let (now, place) = (self.now, self.place_of(node));
        let mut latency = self.nodes[node.index()].latency();
        if let Err(status) = answer {
            self.detect_refusal(egress, request, status);
        }
        let tlp = self.tlps.get_mut(request);
        if tlp.tracked {
            tlp.ledger.charge(now, place, Cause::Completer);
        }
        tlp.refusal = answer.as_ref().err().copied();
        tlp.payload = answer.unwrap_or(Payload::EMPTY);
        latency += self.response_time(egress, request);
        if latency.is_zero() {
            self.send_completions(egress, request);
        } else {
            self.schedule(now + latency, EventKind::Answer, u32::from(egress.0), request.to_event());
        }
    }

    /// The data of a deferrable write are where they should be: it is completed.
    pub(crate) fn deferrable_write_done(&mut self, egress: PortId, request: TlpHandle) {
        let tlp = self.tlps.get(request);
        let (flow, bytes) = (tlp.flow, data_bytes(&tlp.repr));
        self.payload_arrived(flow, bytes);
        self.answer(egress, request, Ok(Payload::EMPTY));
    }

    /// The node has processed the answer; the request is over.
    pub(crate) fn send_completions(&mut self, egress: PortId, request: TlpHandle) {
        let (completer, source) = self.completer_at(egress, request);
        if self.ports[egress.index()].node == self.root_node {
            self.host_answers();
        }
        let tlp = self.tlps.get_mut(request);
        let (repr, data) = (tlp.repr, std::mem::replace(&mut tlp.payload, Payload::EMPTY));
        match tlp.refusal {
            Some(status) => {
                if let Some(refused) = completer.refuse(&repr, status) {
                    self.send_completion(egress, source, request, refused, Payload::EMPTY, true);
                }
            }
            None if matches!(repr.kind(), Kind::MemRead { .. })
                && self.ports[egress.index()].lines.is_some() =>
            {
                self.tlps.get_mut(request).payload = data;
                return self.answer_by_lines(egress, request, completer.succeed(&repr));
            }
            None => {
                for completion in completer.succeed(&repr) {
                    let part = part_of(&data, &completion);
                    self.send_completion(egress, source, request, completion.repr, part, completion.last);
                }
            }
        }
        self.drop_tlp(request);
    }

    fn send_completion(
        &mut self,
        egress: PortId,
        source: usize,
        request: TlpHandle,
        repr: Repr,
        payload: Payload,
        last: bool,
    ) {
        let waiting = self.make_completion(egress, request, repr, payload, last);
        self.enqueue(egress, source, waiting);
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
            self.pass_history(request, answer, Cause::Processing, self.ports[egress.index()].node);
        }
        Waiting::own(answer, shape_of(&repr))
    }

    /// The same with a digest, if `egress` adds them.
    pub(crate) fn with_digest(&self, egress: PortId, repr: Repr) -> Repr {
        if !self.ports[egress.index()].checks_digests {
            return repr;
        }
        let attributes = tlplab_wire::tlp::Attributes { digest: true, ..*repr.attributes() };
        repr.with_attributes(attributes).unwrap_or(repr)
    }

    /// Who answers a request at a port, and which source of its egress queues that is.
    fn completer_at(&self, port: PortId, request: TlpHandle) -> (Completer, usize) {
        let repr = &self.tlps.get(request).repr;
        let Port { node, index, max_payload, .. } = self.ports[port.index()];
        match &self.nodes[self.function_for(node, repr).index()] {
            Node::EndPoint(end_point) => (end_point.completer, end_point.source),
            Node::Root(root) => {
                // Payloads are limited by the hierarchy behind the root port.
                (Completer { mps: max_payload, ..root.completer }, root.ports.len())
            }
            Node::Bridge(bridge) => {
                let id = bridge.function.id;
                (Completer { id, rcb: Rcb::ALL[0], mps: Mps::ALL[0], policy: CompletionPolicy::Max }, index)
            }
            // Its ports answer configuration requests.
            Node::Switch(switch) => {
                let id = config_target(repr).map_or(switch.id, CfgTarget::function);
                (Completer { id, rcb: Rcb::ALL[0], mps: Mps::ALL[0], policy: CompletionPolicy::Max }, index)
            }
        }
    }
}

/// The part of an answer that a completion carries.
pub(crate) fn part_of(data: &Payload, completion: &CompletionTlp) -> Payload {
    let (offset, bytes) = (u64::from(completion.offset), u64::from(completion.bytes));
    // A zero-length read is answered with a doubleword nobody looks at; a short reply is the device's mistake.
    let held = data.len().saturating_sub(offset).min(bytes);
    if held == bytes { data.slice(offset, bytes) } else { Payload::Length(bytes) }
}
