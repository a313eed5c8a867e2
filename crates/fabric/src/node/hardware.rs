//! The machine that software runs on: the nodes, and what they share. Here events find the node they are for.

use crate::kernel::ids::{FunctionAt, NodeId, PortId};
use crate::kernel::queue::{Event, EventKind};
use crate::link::channel::InFlight;
use crate::link::context::Context;
use crate::node::config_request::{ConfigWay, way_down};
use crate::node::{Node, Nodes};
use crate::packet::routing::{Route, route_of};
use crate::packet::slab::{Queue, TlpHandle};
use tlplab_datalink::{TlpUnit, Unit};
use tlplab_units::{Bdf, Time};

pub(crate) struct Hardware {
    pub(crate) cx: Context,
    pub(crate) nodes: Nodes,
}

impl Hardware {
    /// Carries out an event, unless it is a program's.
    pub(crate) fn dispatch(&mut self, event: Event) {
        let cx = &mut self.cx;
        let port = PortId(event.at as u16);
        let tlp = TlpHandle::from_event(event.data & 0xFFFF_FFFF);
        let high_port = PortId((event.data >> 32) as u16);
        match event.kind {
            EventKind::TransmitDone => cx.transmit_done(port, Time::from_fs(event.data)),
            EventKind::UnitArrived => self.unit_arrived(port),
            EventKind::Processed => self.nodes.take(cx, port, tlp),
            EventKind::LinkTimer => self.link_timer(port, Time::from_fs(event.data)),
            EventKind::HeaderArrived => self.header_arrived(port),
            EventKind::ForwardEarly => cx.forward_early(port, event.data),
            EventKind::CoreEarly => {
                let node = cx.links.node(port);
                if let Node::Switch(switch) = &mut self.nodes[node] {
                    switch.enter_core_early(cx, port, event.data);
                }
            }
            EventKind::Entered => cx.leave_tx_stage(port),
            EventKind::Released => cx.released(port, event.data),
            EventKind::LinkState => self.link_state(port, event.data),
            EventKind::Answer => self.answer(port, tlp),
            EventKind::Submit => {
                if let Some(node) = self.nodes[cx.event_node(event.at)].initiate() {
                    node.submit(cx);
                }
            }
            EventKind::RequesterTimer => self.handle_requester_timeout(event.at, Time::from_fs(event.data)),
            EventKind::MemoryDone => self.nodes.root_mut().complete_memory_access(cx, tlp, high_port),
            EventKind::MemoryAccept => self.nodes.root_mut().complete_memory_write(cx, tlp, high_port),
            EventKind::LineReady => cx.try_transmit(port),
            EventKind::Translated => {
                let counted = event.data >> 48 & 1 == 1;
                self.nodes.root_mut().put_off_is_over(cx, high_port, tlp, counted);
            }
            EventKind::MapChange => self.nodes.root_mut().change_tables(cx, event.data),
            EventKind::OwnAnswer => self.nodes.root_mut().own_answer(cx),
            EventKind::PassageFree => self.nodes.root_mut().passage_free(cx, event.data),
            EventKind::PassedDomain => self.nodes.root_mut().passed_domain(cx, event.data),
            EventKind::PassedCore | EventKind::CoreFree => {
                let node = cx.event_node(event.at);
                if let Node::Switch(switch) = &mut self.nodes[node] {
                    match event.kind {
                        EventKind::PassedCore => switch.passed_core(cx, event.data),
                        _ => switch.free_core(cx),
                    }
                }
            }
            EventKind::HostStage => self.nodes.root_mut().leave_stage(cx, event.data),
            EventKind::HandlerOver => self.nodes.root_mut().handler_over(cx, event.data),
            EventKind::Terminated => self.nodes.root_mut().terminated(cx, port, tlp),
            EventKind::Clocked => {
                let node = cx.event_node(event.at);
                self.nodes.end_point_mut(node).clocked(cx, Time::from_fs(event.data));
            }
            EventKind::NodeTimer => {
                let node = cx.event_node(event.at);
                if let Node::Custom(own) = &mut self.nodes[node] {
                    own.handle_timer(cx, event.data);
                }
            }
            EventKind::NodeWaited => {
                let node = cx.links.node(port);
                if let Node::Custom(own) = &mut self.nodes[node] {
                    cx.charge_node(port, tlp);
                    own.handle_tlp(cx, port, tlp);
                }
            }
            EventKind::Bus => {
                if let Some(bridge) = cx.bus_event(port, event.data) {
                    self.take_arrivals();
                    self.cx.serve_bus(bridge);
                }
            }
            EventKind::Cancelled | EventKind::ProgramTimer => {}
        }
        self.take_arrivals();
    }

    /// Nodes without latency take what has come to them.
    #[inline]
    pub(crate) fn take_arrivals(&mut self) {
        while let Some((port, tlp)) = self.cx.links.next_arrival() {
            self.nodes.take(&mut self.cx, port, tlp);
        }
    }

    /// The first unit in flight to `id` has arrived.
    fn unit_arrived(&mut self, id: PortId) {
        let Some(flying) = self.cx.take_off_wire(id) else { return };
        if self.has_room_for(id, &flying) {
            let mut events = self.cx.links.borrow_events();
            self.cx.hand_to_data_link_layer(id, &flying, &mut events);
            for event in events.drain(..) {
                if self.cx.link_event(id, event, Some(&flying)) {
                    self.announce_link_up(id);
                }
                self.take_arrivals();
            }
            self.cx.links.give_back(events);
        } else {
            self.cx.links.count_no_room(id);
        }
        if let Unit::Tlp(TlpUnit { handle, nullified: true, .. }) = flying.unit {
            self.cx.drop_tlp(handle);
        }
        self.cx.try_transmit(id);
        self.cx.arm(id);
    }

    fn link_timer(&mut self, id: PortId, due: Time) {
        let mut events = self.cx.links.borrow_events();
        if self.cx.link_timer(id, due, &mut events) {
            for event in events.drain(..) {
                if self.cx.link_event(id, event, None) {
                    self.announce_link_up(id);
                }
            }
            self.cx.try_transmit(id);
            self.cx.arm(id);
        }
        self.cx.links.give_back(events);
    }

    /// May the node behind `id` take what has arrived? If it is a request that has to find room, its places are taken.
    #[inline]
    fn has_room_for(&mut self, id: PortId, flying: &InFlight<TlpHandle>) -> bool {
        let Some(handle) = self.cx.needs_room(id, flying) else { return true };
        let queue = self.queue_for(id, handle);
        self.cx.take_places(id, handle, queue)
    }

    /// The queue that a request will wait in; `None` if it ends at this node.
    fn queue_for(&self, ingress: PortId, handle: TlpHandle) -> Option<Queue> {
        let repr = &self.cx.tlps.get(handle).repr;
        match &self.nodes[self.cx.links.node(ingress)] {
            Node::Switch(switch) => {
                switch.route(&self.cx.topology, self.cx.links.index(ingress), repr).map(|port| Queue(port.0))
            }
            Node::Root(root) => {
                let port = root.port_for(route_of(repr));
                Some(Queue(port.map_or(self.cx.links.count() as u16, |port| root.ports[port].0)))
            }
            Node::EndPoint(_) | Node::Bridge(_) | Node::Custom(_) => None,
        }
    }

    /// The header of the first unit in flight to a switch has arrived: forwarding begins, if it has one egress.
    fn header_arrived(&mut self, id: PortId) {
        let Some(unit) = self.cx.header_arrived(id) else { return };
        let Node::Switch(switch) = &self.nodes[self.cx.links.node(id)] else { return };
        let repr = &self.cx.tlps.get(unit.handle).repr;
        if let Some(egress) = switch.route(&self.cx.topology, self.cx.links.index(id), repr) {
            let event = if switch.core.is_none() { EventKind::ForwardEarly } else { EventKind::CoreEarly };
            self.cx.begin_forwarding(id, unit, egress, event);
        }
    }

    /// A node has processed the answer to a request.
    fn answer(&mut self, port: PortId, request: TlpHandle) {
        let node = self.nodes.function_for(self.cx.links.node(port), &self.cx.tlps.get(request).repr);
        self.nodes[node].answerer().send_completions(&mut self.cx, port, request);
    }

    fn handle_requester_timeout(&mut self, at: u32, due: Time) {
        let node = self.cx.event_node(at);
        let Some(initiator) = self.nodes[node].initiate() else { return };
        if initiator.handle_requester_timeout(&mut self.cx, due)
            && let Node::EndPoint(end_point) = &mut self.nodes[node]
            && end_point.core.is_some()
        {
            end_point.time_out_core_reads(&mut self.cx);
        }
    }

    /// The component that has this function, and which of its ports it is, if it is a bridge; by the bus numbers as they are.
    pub(crate) fn component_at(&self, function: Bdf) -> Option<(NodeId, Option<PortId>)> {
        let FunctionAt { node, index } = self.find_function(function)?;
        let port = match &self.nodes[node] {
            Node::Switch(switch) => Some(switch.ports[index]),
            Node::Root(root) => index.checked_sub(1).map(|port| root.ports[port]),
            Node::Bridge(bridge) => Some(bridge.ports[0]),
            Node::EndPoint(_) | Node::Custom(_) => None,
        };
        Some((node, port))
    }

    /// The first node at the lower end of a link, or below it, that software sees.
    pub(crate) fn below(&self, mut lower: PortId) -> NodeId {
        loop {
            let node = self.cx.links.node(lower);
            let Node::Custom(own) = &self.nodes[node] else { return node };
            lower = self.cx.links.peer(own.ports[1]);
        }
    }

    /// The function that a configuration request would reach, by the bus numbers as they are.
    pub(crate) fn find_function(&self, function: Bdf) -> Option<FunctionAt> {
        let root = self.nodes.root();
        let mut node = root.node;
        if function.bus() == 0 {
            return root.function_on_bus_0(function).map(|index| FunctionAt { node, index });
        }
        let index = root.port_for(Route::Id(function))?;
        let mut way = way_down(index, &root.bridges[index], function);
        loop {
            let (port, type1) = match way {
                ConfigWay::Own(index) => return Some(FunctionAt { node, index }),
                ConfigWay::Nowhere => return None,
                ConfigWay::Down { port, type1 } => (port, type1),
            };
            node = self.below(self.cx.links.peer(self.nodes[node].ports()[port]));
            way = match &self.nodes[node] {
                Node::Switch(switch) => switch.config_way(function, type1),
                Node::Bridge(bridge) => bridge.config_way(function, type1),
                _ if type1 => ConfigWay::Nowhere,
                _ => {
                    let node = self.nodes.function_numbered(node, function)?;
                    return Some(FunctionAt { node, index: 0 });
                }
            };
        }
    }
}
