//! The outcome of a transaction of a bus: its claimer, and the state of its target and its master at its end.

use super::transaction::{Current, Response, Transaction};
use super::{Answer, BACK_OFF, Delayed};
use crate::kernel::ids::{NodeId, PortId};
use crate::link::context::Context;
use crate::link::egress::Waiting;
use crate::packet::attribution::Cause;
use crate::packet::routing::{BridgeRegisters, Route, claims, route_of};
use tlplab_transaction::{Completer, CompletionPolicy, Payload};
use tlplab_units::{Bdf, Mps, Rcb};
use tlplab_wire::tlp::{CompletionStatus, Repr};

impl Context {
    /// The member that claims what a master sends: a device by its number or its BARs, or the bridge for what is above.
    pub(super) fn claimant_on_bus(&self, node: NodeId, master: usize, repr: &Repr) -> Option<usize> {
        let bus = self.bus_below(node);
        let registers = self.topology.ports[bus.ports[0].index()].bridge.unwrap_or(BridgeRegisters::RESET);
        let route = route_of(repr);
        let up = (master > 0).then_some(0);
        // What comes from the bus goes up, unless it is for the bus itself or a register forbids it.
        let passes_up = registers.passes_up(route) && !claims(&registers, route);
        let decoder = |address, io| {
            let decodes = |member: &usize| {
                *member != master && bus.decoders[*member].iter().any(|decoder| decoder.claims(address, io))
            };
            (1..bus.members.len()).find(decodes).or_else(|| up.filter(|_| passes_up))
        };
        match route {
            Route::Id(id) if id.bus() == registers.secondary => {
                let member = usize::from(id.device()) + 1;
                let decoders = bus.decoders.get(member)?;
                decoders.iter().any(|decoder| decoder.function == id.function()).then_some(member)
            }
            Route::Id(_) => up,
            Route::Memory(address) => decoder(address, false),
            Route::Io(address) => decoder(address, true),
            Route::ToRoot | Route::FromRoot | Route::Here => None,
        }
    }

    /// The bus is idle again: the transaction has done its part.
    pub(super) fn end_on_bus(&mut self, node: NodeId) {
        let Some(current) = self.bus(node).current.take() else { return };
        self.note_bus_master(node, None);
        let Current { what, answer, .. } = current;
        match what.response {
            Response::Accept | Response::Split => {
                self.release_from_master(&what);
                self.deliver_to_target(node, &what);
            }
            Response::Delay => {
                self.delay_on_bus(node, &what);
                self.deliver_to_target(node, &what);
            }
            Response::Immediate => {
                self.release_from_master(&what);
                self.deliver_to_master(node, what.master, answer);
            }
            Response::Data => {
                self.bus(node).members[what.master].delayed = None;
                self.unblock_reads(node, what.master);
                self.release_from_master(&what);
                self.deliver_to_master(node, what.master, answer);
            }
            Response::NotYet | Response::Refuse => self.back_off(node, &what),
            Response::Abort => self.abort_on_bus(node, &what),
        }
    }

    /// A TLP that a master has sent leaves the receive buffer that held it.
    fn release_from_master(&mut self, what: &Transaction) {
        if let Some(ingress) = what.sent.ingress {
            self.release_buffer(ingress, &what.sent.shape);
        }
    }

    fn deliver_to_target(&mut self, node: NodeId, what: &Transaction) {
        let Some(target) = what.target else { return };
        let bus = self.bus(node);
        let port = bus.members[target].port;
        let synchronisation = bus.synchronisation;
        if target == 0 {
            self.bus(node).room.arriving[what.sent.shape.class.index()] += 1;
            self.received_after(port, what.sent.tlp, synchronisation);
        } else {
            self.received(port, what.sent.tlp);
        }
    }

    fn deliver_to_master(&mut self, node: NodeId, master: usize, answer: Answer) {
        let port = self.bus(node).members[master].port;
        for completion in answer.completions {
            if let Some(ingress) = completion.ingress {
                self.release_buffer(ingress, &completion.shape);
            }
            self.received(port, completion.tlp);
        }
    }

    /// A target has taken a request, and its master will come again.
    fn delay_on_bus(&mut self, node: NodeId, what: &Transaction) {
        let now = self.kernel.now();
        let Transaction { master, sent, target: Some(target), .. } = *what else { return };
        let bus = self.bus(node);
        let next = now + bus.clocks(BACK_OFF);
        let answer = Answer::default();
        bus.members[master].delayed = Some(Delayed { request: *what, target, answer, next });
        let port = bus.members[master].port;
        let partition = &mut self.links.ports[port.index()].partition;
        let slot = partition.cause_slot(Cause::Retry);
        partition.block(now, sent.shape.class.index(), Some(slot));
    }

    /// The master's next request may go.
    fn unblock_reads(&mut self, node: NodeId, master: usize) {
        let now = self.kernel.now();
        let port = self.bus(node).members[master].port;
        let class = tlplab_units::FcClass::NonPosted.index();
        self.links.ports[port.index()].partition.block(now, class, None);
    }

    /// A master was told to come again.
    fn back_off(&mut self, node: NodeId, what: &Transaction) {
        let now = self.kernel.now();
        let bus = self.bus(node);
        let next = now + bus.clocks(BACK_OFF);
        let member = &mut bus.members[what.master];
        match &mut member.delayed {
            Some(delayed) if what.response == Response::NotYet => delayed.next = next,
            _ => member.not_before = next,
        }
    }

    /// Nobody has claimed it: the master gives up. What the bridge was asked for is answered above; a device answers itself.
    fn abort_on_bus(&mut self, node: NodeId, what: &Transaction) {
        let status = CompletionStatus::UnsupportedRequest;
        let port = self.bus(node).members[what.master].port;
        match what.sent.ingress {
            Some(ingress) => {
                let id = self.answers_for(ingress);
                self.refuse(ingress, what.sent.tlp, id, status);
            }
            None => self.refuse_on_bus(port, what.sent, status),
        }
    }

    /// A request of a device ends on the bus: it has its refusal at once.
    fn refuse_on_bus(&mut self, port: PortId, sent: Waiting, status: CompletionStatus) {
        self.observe.counts.refused += 1;
        let request = self.tlps.get(sent.tlp);
        let (flow, node) = (request.flow, self.links.ports[port.index()].node);
        let completer =
            Completer { id: Bdf(0), rcb: Rcb::ALL[0], mps: Mps::ALL[0], policy: CompletionPolicy::Max };
        if let Some(repr) = completer.refuse(&request.repr, status) {
            let answer = self.tlps.insert(repr, Payload::EMPTY, flow);
            self.pass_history(sent.tlp, answer, Cause::Completer, node);
            self.received(port, answer);
        }
        self.drop_tlp(sent.tlp);
    }
}
