//! Resets: what a function, or everything below a link that went down, forgets (PCIe 5.0 §6.6).
//!
//! Of what was asked for before, nothing is heard any more at the requester; every transaction of it ends as lost, unless it has left in
//! full and arrives. Completions that are still on their way find nobody.

use crate::kernel::ids::{NodeId, PortId};
use crate::kernel::queue::{Event as Pending, EventKind};
use crate::node::Node;
use crate::node::config_request::FunctionAt;
use crate::node::initiator::{OperationKind, Ticket};
use crate::node::routing::{BridgeRegisters, registers_of};
use crate::node::switch::Switch;
use crate::packet::slab::TlpHandle;
use crate::packet::transactions::Ending;
use crate::sim::{Fabric, Task};
use tlplab_cfgspace::Reset;
use tlplab_units::{Bdf, FcClass};

impl Fabric {
    /// The link of `lower` and all links below it, from the top down, each by its lower end.
    pub(crate) fn links_below(&self, lower: PortId) -> Vec<PortId> {
        let mut links = vec![lower];
        let mut next = 0;
        while let Some(&link) = links.get(next) {
            next += 1;
            let below = match self.node_of(link) {
                Node::Switch(switch) => &switch.ports[1..],
                Node::Bridge(bridge) => &bridge.ports[1..],
                Node::Root(_) | Node::EndPoint(_) => &[],
            };
            links.extend(below.iter().map(|port| self.ports[port.index()].peer));
        }
        links
    }

    /// All that waits or is being processed in the node below a link is gone. Its links are down.
    pub(crate) fn empty_node(&mut self, lower: PortId) {
        let ports = self.own_ports(self.ports[lower.index()].node).to_vec();
        for &port in &ports {
            self.waits_in_vain(port);
            let waiting = self.ports[port.index()].drain_waiting();
            self.ports[port.index()].counters.discarded += waiting.len() as u64;
            for entry in waiting {
                match entry.ingress {
                    Some(ingress) => self.consume(ingress, entry.tlp),
                    None => self.lose_tlp(port, entry.tlp),
                }
            }
        }
        let mut gone = Vec::new();
        let at_ports = |event: &Pending| ports.iter().any(|port| u32::from(port.0) == event.at);
        let within =
            |kind| matches!(kind, EventKind::Processed | EventKind::ForwardEarly | EventKind::Answer);
        for event in self.queue.pending_mut().filter(|event| within(event.kind) && at_ports(event)) {
            gone.push(*event);
            event.kind = EventKind::Cancelled;
        }
        for event in gone {
            let (port, handle) = (PortId(event.at as u16), TlpHandle::from_event(event.data & 0xFFFF_FFFF));
            let is_copy = event.kind == EventKind::ForwardEarly && event.data >> 32 & 1 == 1;
            // Requests that are answered, and copies to be nullified, occupy no receive buffer.
            if event.kind == EventKind::Answer || is_copy {
                self.drop_tlp(handle);
            } else {
                self.consume(port, handle);
            }
        }
    }

    /// The node below a link is reset, with all its functions.
    pub(crate) fn hot_reset(&mut self, lower: PortId) {
        let node = self.ports[lower.index()].node;
        match &mut self.nodes[node.index()] {
            Node::EndPoint(end_point) => {
                for (_, function) in end_point.functions.clone() {
                    self.reset_function(function, Reset::Hot);
                }
            }
            Node::Switch(switch) => {
                switch.reset();
                for &port in &switch.ports {
                    self.topology.ports[port.index()].bridge = Some(BridgeRegisters::RESET);
                }
                self.topology.nodes[node.index()].id = Bdf(0);
                // Of its own resets it knows nothing any more.
                self.secondary_bus_reset(FunctionAt { node, index: 0 });
            }
            Node::Bridge(_) => self.reset_bridge(node),
            Node::Root(_) => {}
        }
    }

    /// The functions below a link that came up need their time before they can be configured (PCIe 5.0 §6.6.1).
    pub(crate) fn leave_reset(&mut self, lower: PortId) {
        let now = self.now;
        let Node::EndPoint(end_point) = self.node_of(lower) else { return };
        for (_, function) in end_point.functions.clone() {
            let end_point = self.end_point(function);
            end_point.function.ready = now + end_point.ready;
        }
    }

    /// A function that is reset forgets what it does and what it was asked. Posted TLPs that wait for the wire still go, if it is there.
    pub(crate) fn forget_work(&mut self, node: NodeId, reset: Reset) {
        let own = self.node_event(node);
        for event in self.queue.pending_mut().filter(|event| event.at == own) {
            if matches!(event.kind, EventKind::ProgramTimer | EventKind::Submit) {
                event.kind = EventKind::Cancelled;
            }
        }
        self.agenda.retain(|task| !matches!(task, Task::Tell { node: of, .. } if *of == node));
        let end_point = self.end_point(node);
        end_point.first_op = end_point.next_op;
        let id = end_point.function.id;
        let forgets_requests = reset != Reset::FunctionLevel && id != Bdf(0);
        let mut unanswered = Vec::new();
        for (handle, tlp) in self.tlps.all_mut() {
            if tlp.asks == Some(node) {
                (tlp.asks, tlp.question) = (None, 0);
                unanswered.push(handle);
            }
            let returns = tlp.shape.class != FcClass::Posted && tlp.repr.transaction_id().requester == id;
            tlp.orphaned |= forgets_requests && returns;
        }
        unanswered.into_iter().for_each(|request| self.drop_tlp(request));
        self.cancel_operations(node, reset);
    }

    /// All operations of a node end, but those of which nothing is left to be sent or answered.
    fn cancel_operations(&mut self, node: NodeId, reset: Reset) {
        let now = self.now;
        let initiator = self.initiator(node);
        let submissions = std::mem::take(&mut initiator.submissions);
        let mut cancelled = Vec::new();
        if reset == Reset::FunctionLevel {
            initiator.requester.cancel_all(now, |ticket| cancelled.push(ticket));
        } else {
            initiator.requester.reset(now, |ticket| cancelled.push(ticket));
        }
        for ticket in cancelled {
            let transaction = match ticket {
                Ticket::Transaction(transaction) => transaction,
                // Other resets come with a link that is down, above which everything is forgotten.
                Ticket::Wire { wire, .. } if reset == Reset::FunctionLevel => {
                    self.wire_not_told(node, wire);
                    continue;
                }
                _ => continue,
            };
            let record = self.transactions.get(transaction);
            (record.issuing, record.ending) = (false, Ending::Lost);
            // Parts of a write that are under way end it.
            if record.pending == 0 {
                self.end_transaction(transaction, None, Ending::Lost);
            }
        }
        for operation in submissions {
            let (address, bytes, read) = match operation.kind {
                OperationKind::Read { address, bytes, .. } => (address, bytes, true),
                OperationKind::Write { address, data, .. } => (address, data.len(), false),
                OperationKind::Interrupt { .. } | OperationKind::Intx { .. } => continue,
            };
            let flow = self.initiator(node).flow(operation.stream);
            let transaction = self.transactions.open(node, flow, operation.asked, read, address, bytes);
            let record = self.transactions.get(transaction);
            (record.issuing, record.submitted) = (false, now);
            self.end_transaction(transaction, None, Ending::Lost);
        }
        self.arm_requester(node);
    }
}

impl Switch {
    fn reset(&mut self) {
        for function in &mut self.functions {
            function.space.reset(Reset::Hot);
            (function.id, function.slot_interrupt) = (Bdf(0), false);
        }
        self.bridges = self.functions.iter().map(|function| registers_of(&function.space)).collect();
        self.id = Bdf(0);
    }
}
