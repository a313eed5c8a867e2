//! Switches: routing by bridge registers, forwarding, and what becomes of TLPs nobody claims.

use crate::config::Forwarding;
use crate::kernel::ids::{NodeId, PortId};
use crate::link::egress::Waiting;
use crate::node::Node;
use crate::node::config_request::config_target;
use crate::node::function::Function;
use crate::node::routing::{BridgeRegisters, Route, claims, route_of};
use crate::packet::attribution::Cause;
use crate::packet::slab::{TlpHandle, shape_of};
use crate::sim::Fabric;
use tlplab_datalink::Integrity;
use tlplab_transaction::{Completer, CompletionPolicy, Payload};
use tlplab_units::{Bdf, Duration, Mps, Rcb, Time};
use tlplab_wire::tlp::CompletionStatus;

/// A switch: port 0 is the upstream port, the others are downstream ports with a bridge each.
pub(crate) struct Switch {
    pub(crate) latency: Duration,
    pub(crate) forwarding: Forwarding,
    pub(crate) ports: Vec<PortId>,
    /// By port: its function, a bridge.
    pub(crate) functions: Vec<Function>,
    /// By port: what its function's registers say of routing.
    pub(crate) bridges: Vec<BridgeRegisters>,
    /// ID of the upstream port, which answers for the switch.
    pub(crate) id: Bdf,
}

/// Where a TLP goes from an ingress.
enum Way {
    To(usize),
    /// Up, unless a bridge stops it: a message to the root complex.
    ToRoot,
    /// To every downstream port.
    Broadcast,
    /// It ends here.
    Here,
    /// Nobody claims it.
    Nowhere,
}

impl Switch {
    fn way(&self, ingress: usize, route: Route) -> Way {
        match route {
            Route::ToRoot if ingress != 0 => return Way::ToRoot,
            Route::FromRoot if ingress == 0 => return Way::Broadcast,
            Route::ToRoot | Route::FromRoot => return Way::Nowhere,
            Route::Here => return Way::Here,
            _ => {}
        }
        if ingress != 0 && !self.bridges[ingress].passes_up(route) {
            return Way::Nowhere;
        }
        let down = (1..self.bridges.len()).find(|&port| claims(&self.bridges[port], route));
        match down {
            // A bridge does not send back what came from below.
            Some(port) if port == ingress => Way::Nowhere,
            Some(port) => Way::To(port),
            None if ingress != 0 && !claims(&self.bridges[0], route) && self.bridges[0].passes_up(route) => {
                Way::To(0)
            }
            None => Way::Nowhere,
        }
    }
}

impl Fabric {
    pub(crate) fn switch(&self, node: NodeId) -> Option<&Switch> {
        match &self.nodes[node.index()] {
            Node::Switch(switch) => Some(switch),
            _ => None,
        }
    }

    /// The egress of a TLP in the switch at `ingress`, if it has just one.
    pub(crate) fn route(&self, ingress: PortId, tlp: TlpHandle) -> Option<PortId> {
        let port = &self.ports[ingress.index()];
        let switch = self.switch(port.node)?;
        let repr = &self.tlps.get(tlp).repr;
        if config_target(repr).is_some() {
            return None; // it may have to be changed on the way
        }
        match switch.way(port.index, route_of(repr)) {
            Way::To(egress) => Some(switch.ports[egress]),
            _ => None,
        }
    }

    /// A switch passes on a TLP that has arrived in full.
    pub(crate) fn forward(&mut self, ingress: PortId, tlp: TlpHandle, integrity: Integrity) {
        let port = &self.ports[ingress.index()];
        let (node, index) = (port.node, port.index);
        if let Some(target) = config_target(&self.tlps.get(tlp).repr) {
            return self.switch_config(ingress, tlp, target);
        }
        let Some(switch) = self.switch(node) else { return };
        match switch.way(index, route_of(&self.tlps.get(tlp).repr)) {
            Way::To(egress) => {
                let egress = switch.ports[egress];
                self.forward_to(ingress, egress, tlp, integrity, Time::ZERO);
            }
            Way::ToRoot => self.pass_to_root(ingress, tlp),
            Way::Broadcast => self.broadcast(ingress, tlp),
            Way::Here => self.local_message(ingress, tlp),
            Way::Nowhere => {
                let id = switch.id;
                self.refuse(ingress, tlp, id, CompletionStatus::UnsupportedRequest);
            }
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
        let source = self.ports[ingress.index()].index;
        let shape = self.tlps.get(tlp).shape;
        let nullified = integrity == Integrity::Bad;
        if !nullified {
            self.note_poison(ingress, tlp);
        }
        // A nullified copy occupies no receive buffer: the original will come again and take it.
        let ingress = (!nullified).then_some(ingress);
        self.enqueue(egress, source, Waiting { tlp, shape, ingress, tail, nullified });
    }

    /// The ID that answers for the node behind `ingress`.
    pub(crate) fn answers_for(&self, ingress: PortId) -> Bdf {
        self.topology.nodes[self.ports[ingress.index()].node.index()].id
    }

    fn broadcast(&mut self, ingress: PortId, tlp: TlpHandle) {
        let node = self.ports[ingress.index()].node;
        let ports = self.switch(node).map_or(Vec::new(), |s| s.ports[1..].to_vec());
        let source = self.ports[ingress.index()].index;
        for egress in ports {
            let original = self.tlps.get(tlp);
            let (repr, payload, flow) = (original.repr, original.payload.clone(), original.flow);
            let copy = self.tlps.insert(repr, payload, flow);
            let shape = shape_of(&repr);
            self.enqueue(egress, source, Waiting::own(copy, shape));
        }
        self.consume(ingress, tlp);
    }

    /// A TLP ends at `ingress`: its buffer is free, its transaction is not touched.
    pub(crate) fn consume(&mut self, ingress: PortId, tlp: TlpHandle) {
        let shape = self.tlps.get(tlp).shape;
        self.leaves_queue(tlp);
        self.drop_tlp(tlp);
        self.release_buffer(ingress, &shape);
    }

    /// Nobody claims a request, or the completer gives up: non-posted requests are answered, posted ones are lost.
    pub(crate) fn refuse(&mut self, ingress: PortId, handle: TlpHandle, id: Bdf, status: CompletionStatus) {
        self.detect_refusal(ingress, handle, status);
        self.refuse_quietly(ingress, handle, id, status);
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
        self.refused += 1;
        if let Some(repr) = completer.refuse(&self.tlps.get(handle).repr, status) {
            let repr = self.with_digest(ingress, repr);
            let (flow, orphaned) = (self.tlps.get(handle).flow, self.tlps.get(handle).orphaned);
            let answer = self.tlps.insert(repr, Payload::EMPTY, flow);
            self.tlps.get_mut(answer).orphaned = orphaned;
            self.pass_history(handle, answer, Cause::Completer, self.ports[ingress.index()].node);
            let port = &self.ports[ingress.index()];
            let source = port.index;
            let shape = shape_of(&repr);
            self.enqueue(ingress, source, Waiting::own(answer, shape));
        }
        self.consume(ingress, handle);
    }

    /// The critical path goes on from a request to its completion; what the node took since the last charge is `cause`.
    pub(crate) fn pass_history(&mut self, from: TlpHandle, to: TlpHandle, cause: Cause, node: NodeId) {
        let (now, place) = (self.now, self.place_of(node));
        let (request, completion) = self.tlps.pair_mut(from, to);
        completion.transaction = request.transaction.take();
        completion.tracked = request.tracked;
        if request.tracked {
            completion.ledger.inherit(&mut request.ledger);
            completion.ledger.charge(now, place, cause);
            request.tracked = false;
        }
    }
}
