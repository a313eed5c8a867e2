//! Legacy interrupts: four virtual wires to every link, which messages raise and lower. Every bridge joins the wires below it and turns
//! them by the number of the device they come from (PCIe 5.0 §2.2.8.1, §6.1.2); at the root complex they are levels.

use crate::kernel::ids::{NodeId, PortId};
use crate::kernel::queue::EventKind;
use crate::link::egress::Waiting;
use crate::node::Node;
use crate::node::config_request::FunctionAt;
use crate::node::initiator::{Operation, OperationKind, Ticket};
use crate::packet::slab::{TlpHandle, shape_of};
use crate::sim::Fabric;
use tlplab_cfgspace::ConfigSpace;
use tlplab_device::HostEvent;
use tlplab_transaction::Payload;
use tlplab_units::{Bdf, Duration};
use tlplab_wire::tlp::{Kind, Message, Repr, message::Code};

/// What a handler of the host takes: if its wire is still asserted then, the interrupt controller calls it again.
const HANDLER: Duration = Duration::from_us(2);
/// So often the handlers of a wire are called that nobody lowers; then the host gives it up.
const NOBODY_CARED: u32 = 100_000;

/// Which of INTA to INTD are asserted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wires(u8);

impl Wires {
    pub(crate) const NONE: Self = Self(0);

    /// The wire that the function asserts, if it does.
    fn of(space: &ConfigSpace) -> Self {
        space.asserted_intx().map_or(Self::NONE, |pin| Self(1 << (pin - 1)))
    }

    fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn set(&mut self, wire: u8, asserted: bool) {
        self.0 = self.0 & !(1 << wire) | u8::from(asserted) << wire;
    }

    /// As they arrive on the bus of the bridge above, coming from `device` there (PCIe 5.0 §2.2.8.1).
    fn turned(self, device: u8) -> Self {
        let by = device % 4;
        Self((self.0 << by | self.0 >> (4 - by)) & 0b1111)
    }

    fn is_asserted(self, wire: u8) -> bool {
        self.0 >> wire & 1 == 1
    }

    /// The wires that differ, and how they are now.
    fn changes_since(self, before: Self) -> impl Iterator<Item = (u8, bool)> {
        let differs = move |wire: &u8| (self.0 ^ before.0) >> wire & 1 == 1;
        (0..4).filter(differs).map(move |wire| (wire, self.is_asserted(wire)))
    }
}

/// The interrupt controller's side of the wires, after the turn at the root ports.
#[derive(Default)]
pub(crate) struct WireController {
    wires: Wires,
    /// By wire: how often it was raised, and how often its handlers were called since.
    raised: [u32; 4],
    calls: [u32; 4],
}

const ASSERT: [Code; 4] = [Code::AssertIntA, Code::AssertIntB, Code::AssertIntC, Code::AssertIntD];
const DEASSERT: [Code; 4] = [Code::DeassertIntA, Code::DeassertIntB, Code::DeassertIntC, Code::DeassertIntD];

/// The message that tells of a wire. Of the requester's ID bus and device count.
fn message(requester: Bdf, wire: u8, asserted: bool) -> Repr {
    let code = if asserted { ASSERT } else { DEASSERT }[usize::from(wire)];
    let message = Message::simple(requester, code).expect("these codes have no content");
    Repr::from(Kind::Message(message))
}

/// The wire a message tells of, and its level.
pub(crate) fn wire_of(code: Code) -> Option<(u8, bool)> {
    let find = |codes: [Code; 4]| (0..4).find(|wire| codes[usize::from(*wire)] == code);
    find(ASSERT).map(|wire| (wire, true)).or_else(|| find(DEASSERT).map(|wire| (wire, false)))
}

impl Fabric {
    /// A device sets the level of its interrupt, behind the earlier writes of `stream`.
    pub(crate) fn set_intx(&mut self, node: NodeId, stream: u16, asserted: bool) {
        let operation =
            Operation { owner: 0, stream, asked: self.now, kind: OperationKind::Intx { asserted } };
        self.begin(node, operation);
    }

    /// It has passed the device's processing.
    pub(crate) fn submit_intx(&mut self, node: NodeId, stream: u16, asserted: bool) {
        self.end_point(node).function.space.set_interrupt_status(asserted);
        self.device_wires_changed(node, stream);
    }

    /// What a function asserts may have changed: by its device, by software, or by a reset.
    pub(crate) fn wires_changed(&mut self, at: FunctionAt) {
        match &self.nodes[at.node.index()] {
            Node::EndPoint(_) => self.device_wires_changed(at.node, 0),
            Node::Switch(_) => self.switch_wires_changed(at.node, at.index),
            Node::Bridge(_) => self.bridge_wires_changed(at.node),
            Node::Root(_) => self.root_wires_changed(),
        }
    }

    /// The link of a port went down: nobody below asserts anything, and whoever is above has forgotten what it was told.
    pub(crate) fn wires_lost(&mut self, port: PortId) {
        self.ports[port.index()].wires_told = Wires::NONE;
        if std::mem::take(&mut self.ports[port.index()].wires_below) != Wires::NONE {
            self.wires_below_changed(port);
        }
    }

    /// A message that ends at its receiver has reached a switch or the processor.
    pub(crate) fn local_message(&mut self, port: PortId, handle: TlpHandle) {
        let told = match self.tlps.get(handle).repr.kind() {
            Kind::Message(message) => wire_of(message.code()),
            _ => None,
        };
        self.consume(port, handle);
        if let Some((wire, asserted)) = told {
            self.ports[port.index()].wires_below.set(wire, asserted);
            self.wires_below_changed(port);
        }
    }

    fn wires_below_changed(&mut self, port: PortId) {
        let (node, index) = (self.ports[port.index()].node, self.ports[port.index()].index);
        match &self.nodes[node.index()] {
            Node::Switch(_) => self.switch_wires_changed(node, index),
            Node::Bridge(_) => self.bridge_wires_changed(node),
            Node::Root(_) => self.root_wires_changed(),
            Node::EndPoint(_) => {}
        }
    }

    /// The link of a port came up: whoever is above hears what is asserted.
    pub(crate) fn wires_up(&mut self, port: PortId) {
        let node = self.ports[port.index()].node;
        if self.ports[port.index()].direction == 0 {
            self.wires_changed(FunctionAt { node, index: 0 });
        }
    }

    /// The functions of a device share the wires of its link.
    fn device_wires_changed(&mut self, node: NodeId, stream: u16) {
        let port = self.end_point(node).port;
        let Node::EndPoint(device) = &self.nodes[self.ports[port.index()].node.index()] else { return };
        let asserted = |(_, function): &(u8, NodeId)| match &self.nodes[function.index()] {
            Node::EndPoint(function) => Wires::of(&function.function.space),
            _ => Wires::NONE,
        };
        let wires = device.functions.iter().map(asserted).fold(Wires::NONE, Wires::with);
        let Some(before) = self.tell_wires(port, wires) else { return };
        let now = self.now;
        let id = self.end_point(node).function.id;
        for (wire, level) in wires.changes_since(before) {
            let initiator = self.initiator(node);
            let ticket = Ticket::Wire { flow: initiator.flow(stream), wire };
            // A message without data is a request that cannot be refused.
            let _ = initiator.requester.request(now, stream, ticket, message(id, wire, level), None);
            self.pump_soon(node);
        }
    }

    /// What the upstream port of a switch asserts, after a change at its port `cause`: the message goes behind the writes from there.
    fn switch_wires_changed(&mut self, node: NodeId, cause: usize) {
        let Node::Switch(switch) = &self.nodes[node.index()] else { return };
        let mut wires = Wires::of(&switch.functions[0].space);
        for (device, (port, function)) in (0..).zip(switch.ports.iter().zip(&switch.functions).skip(1)) {
            let below = self.ports[port.index()].wires_below.with(Wires::of(&function.space));
            wires = wires.with(below.turned(device));
        }
        let (upstream, id) = (switch.ports[0], switch.id);
        self.tell_above(upstream, cause, id, wires);
    }

    /// What a bridge asserts: its own, and the wires of the devices on its bus. The message goes behind the writes from there.
    fn bridge_wires_changed(&mut self, node: NodeId) {
        let Node::Bridge(bridge) = &self.nodes[node.index()] else { return };
        let mut wires = Wires::of(&bridge.function.space);
        for (device, port) in (0..).zip(&bridge.ports[1..]) {
            wires = wires.with(self.ports[port.index()].wires_below.turned(device));
        }
        let (upstream, id) = (bridge.ports[0], bridge.function.id);
        self.tell_above(upstream, 1, id, wires);
    }

    /// Tells the port above what a switch or bridge asserts, by messages behind what came from the source `cause`.
    fn tell_above(&mut self, upstream: PortId, cause: usize, id: Bdf, wires: Wires) {
        let Some(before) = self.tell_wires(upstream, wires) else { return };
        let flow = self.root().initiator.flow(0);
        for (wire, level) in wires.changes_since(before) {
            let repr = self.with_digest(upstream, message(id, wire, level));
            let tlp = self.tlps.insert(repr, Payload::EMPTY, flow);
            self.enqueue(upstream, cause, Waiting::own(tlp, shape_of(&repr)));
        }
    }

    /// Notes what the port above is to be told; what it knew before, unless the link is down and will tell all when it comes up.
    fn tell_wires(&mut self, port: PortId, wires: Wires) -> Option<Wires> {
        let port = &mut self.ports[port.index()];
        (!port.discards).then(|| std::mem::replace(&mut port.wires_told, wires))
    }

    /// A message that was to tell of a wire is not sent: whoever is above knows the level before it. Each message of a wire changes it.
    pub(crate) fn wire_not_told(&mut self, node: NodeId, wire: u8) {
        let port = self.end_point(node).port;
        let told = &mut self.ports[port.index()].wires_told;
        told.set(wire, !told.is_asserted(wire));
    }

    fn root_wires_changed(&mut self) {
        let Node::Root(root) = &self.nodes[self.root_node.index()] else { return };
        let mut wires = Wires::NONE;
        for (device, (port, function)) in (1..).zip(root.ports.iter().zip(&root.functions[1..])) {
            let below = self.ports[port.index()].wires_below.with(Wires::of(&function.space));
            wires = wires.with(below.turned(device));
        }
        let before = std::mem::replace(&mut self.root().controller.wires, wires);
        for (wire, asserted) in wires.changes_since(before) {
            if asserted {
                self.interrupts += 1;
                let controller = &mut self.root().controller;
                controller.raised[usize::from(wire)] += 1;
                controller.calls[usize::from(wire)] = 0;
                self.call_handlers(wire);
            }
        }
    }

    /// Calls the handlers of all functions that share the wire, and looks again when they should have lowered it.
    fn call_handlers(&mut self, wire: u8) {
        let controller = &mut self.root().controller;
        let calls = &mut controller.calls[usize::from(wire)];
        *calls += 1;
        if *calls == NOBODY_CARED {
            return;
        }
        let raised = controller.raised[usize::from(wire)];
        if self.enumeration.outside {
            self.tell_programs(&HostEvent::Wire { wire });
        } else {
            let sharing = self.enumeration.sharing[usize::from(wire)].clone();
            sharing.into_iter().for_each(|function| self.interrupted(function, 0));
        }
        let at = self.node_event(self.root_node);
        let data = u64::from(wire) | u64::from(raised) << 8;
        self.schedule(self.now + HANDLER, EventKind::HandlerOver, at, data);
    }

    /// The handlers of a wire have had their time.
    pub(crate) fn handler_over(&mut self, data: u64) {
        let (wire, raised) = (data as u8, (data >> 8) as u32);
        let controller = &self.root().controller;
        if controller.wires.is_asserted(wire) && controller.raised[usize::from(wire)] == raised {
            self.call_handlers(wire);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wires_turn_by_the_number_of_the_device() {
        for device in 0..32 {
            for pin in 0..4 {
                assert_eq!(Wires(1 << pin).turned(device), Wires(1 << ((pin + device) % 4)));
            }
        }
    }
}
