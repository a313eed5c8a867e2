//! Links that go down and come up, with all that is below them; and what the registers of the ports above show of that.

use crate::kernel::ids::{FunctionAt, PortId};
use crate::kernel::queue::EventKind;
use crate::link::context::Context;
use crate::link::state::{DOWN, NARROWED, RESET, UP};
use crate::node::Node;
use crate::node::end_point::EndPoint;
use crate::node::function::Function;
use crate::node::hardware::Hardware;
use crate::node::wires::told_by;
use crate::observe::errors::ErrorKind;
use crate::observe::registers::ChangedBy;
use crate::packet::slab::TlpHandle;
use tlplab_cfgspace::{LinkState, Reset};
use tlplab_units::Width;

impl Hardware {
    /// A fault, or the end of a recovery. The event is kept by one port and concerns both.
    pub(crate) fn link_state(&mut self, id: PortId, what: u64) {
        let changed = match what & 0xFF {
            DOWN => self.take_down(id, true),
            RESET => self.take_down(id, false),
            UP => self.train_again(id),
            NARROWED => {
                if let Some(width) = Width::new((what >> 8) as u8) {
                    self.cx.narrow(id, width);
                    let upper = self.cx.links.peer(id);
                    // A link that initialises shows its width when it is up.
                    if self.cx.links.is_active(upper) {
                        self.cx.ends(id).into_iter().for_each(|end| self.show_link(end));
                    }
                }
                vec![id]
            }
            _ => {
                self.cx.ends(id).into_iter().for_each(|end| self.cx.recovered(end));
                vec![id]
            }
        };
        for link in changed {
            for end in self.cx.ends(link) {
                self.cx.try_transmit(end);
                self.cx.arm(end);
            }
        }
    }

    /// The link of `lower` goes down, and with it all links below: what is there is reset (PCIe 5.0 §2.9.1, §6.6.1). Returns the links
    /// that were up. By surprise it is an error of the port above.
    fn take_down(&mut self, lower: PortId, by_surprise: bool) -> Vec<PortId> {
        let mut down = self.links_below(lower);
        down.retain(|link| self.cx.links.hold_down(*link));
        let upper = self.cx.links.peer(lower);
        let surprised = by_surprise && self.cx.links.is_active(upper);
        // One after the other for all links, as nothing may start on one because another has gone.
        let ends: Vec<_> = down.iter().flat_map(|link| self.cx.ends(*link)).collect();
        ends.iter().for_each(|end| self.cx.cut(*end));
        ends.iter().for_each(|end| self.cx.stop_wire(*end));
        ends.iter().for_each(|end| self.cx.link_down(*end));
        down.iter().for_each(|link| self.empty_node(*link));
        ends.iter().for_each(|end| self.cx.discard_waiting(*end));
        self.forget_wire_messages(&down);
        ends.iter().for_each(|end| self.forget_wires(*end));
        self.nodes.record_detections(&mut self.cx);
        for &link in &down {
            self.hot_reset(link);
            if by_surprise {
                self.of_functions(link, |function, _| function.stop_time());
            }
            self.show_link(self.cx.links.peer(link));
        }
        if down.contains(&lower) {
            self.cx.observe.outages.begin(self.cx.links.link(lower), self.cx.kernel.now());
        }
        if surprised {
            self.cx.detect(upper, ErrorKind::SurpriseDown, None);
        }
        down
    }

    /// A cause that held the link of `lower` down is gone. Returns the links that come up.
    fn train_again(&mut self, lower: PortId) -> Vec<PortId> {
        let mut up = self.links_below(lower);
        up.retain(|link| self.cx.links.let_up(*link));
        for &link in &up {
            self.leave_reset(link);
            self.cx.ends(link).into_iter().for_each(|end| self.cx.link_up(end));
            self.show_link(self.cx.links.peer(link));
        }
        up
    }

    /// The link of `lower` and all links below it, from the top down, each by its lower end.
    pub(crate) fn links_below(&self, lower: PortId) -> Vec<PortId> {
        let mut links = vec![lower];
        let mut next = 0;
        while let Some(&link) = links.get(next) {
            next += 1;
            let below = match &self.nodes[self.cx.links.node(link)] {
                Node::Switch(switch) => &switch.ports[1..],
                Node::Bridge(bridge) => &bridge.ports[1..],
                Node::Custom(own) => &own.ports[1..],
                Node::Root(_) | Node::EndPoint(_) => &[],
            };
            links.extend(below.iter().map(|port| self.cx.links.peer(*port)));
        }
        links
    }

    /// Removes the TLPs that wait or are processed in the node below a link. Its links are down.
    fn empty_node(&mut self, lower: PortId) {
        let cx = &mut self.cx;
        let node = cx.links.node(lower);
        if let Node::Switch(switch) = &mut self.nodes[node] {
            switch.empty_core(cx);
        }
        let ports = self.nodes[node].ports();
        for &port in ports {
            cx.empty_port(port);
        }
        let gone = cx.kernel.cancel(|event| {
            let within = matches!(
                event.kind,
                EventKind::Processed
                    | EventKind::NodeWaited
                    | EventKind::ForwardEarly
                    | EventKind::CoreEarly
                    | EventKind::Answer
            );
            within && ports.iter().any(|port| u32::from(port.0) == event.at)
        });
        for event in gone {
            let (port, handle) = (PortId(event.at as u16), TlpHandle::from_event(event.data & 0xFFFF_FFFF));
            let early = matches!(event.kind, EventKind::ForwardEarly | EventKind::CoreEarly);
            let is_copy = early && event.data >> 32 & 1 == 1;
            // Requests that are answered, and copies to be nullified, occupy no receive buffer.
            if event.kind == EventKind::Answer || is_copy {
                cx.drop_tlp(handle);
            } else {
                cx.consume(port, handle);
            }
        }
    }

    /// The node below a link is reset, with all its functions.
    fn hot_reset(&mut self, lower: PortId) {
        let node = self.cx.links.node(lower);
        match &mut self.nodes[node] {
            Node::EndPoint(_) => self.of_functions(lower, |function, cx| function.reset(cx, Reset::Hot)),
            Node::Switch(switch) => switch.reset(&mut self.cx),
            Node::Bridge(bridge) => bridge.reset(&mut self.cx),
            Node::Custom(own) => own.reset(&mut self.cx),
            Node::Root(_) => {}
        }
    }

    /// The functions below a link that came up need their time before they can be configured (PCIe 5.0 §6.6.1).
    fn leave_reset(&mut self, lower: PortId) {
        self.of_functions(lower, |function, cx| {
            function.leave_reset(cx);
            function.go_on(cx);
        });
    }

    /// Each function of the end point below a link, if there is one.
    fn of_functions(&mut self, lower: PortId, mut each: impl FnMut(&mut EndPoint, &mut Context)) {
        let node = self.cx.links.node(lower);
        if let Node::EndPoint(_) = &self.nodes[node] {
            for function in self.nodes.functions_of(node) {
                each(self.nodes.end_point_mut(function), &mut self.cx);
            }
        }
    }

    /// The link of a port went down: nobody below asserts anything, and whoever is above has forgotten what it was told.
    fn forget_wires(&mut self, port: PortId) {
        if self.cx.links.forget_wires(port) {
            let (node, index) = (self.cx.links.node(port), self.cx.links.index(port));
            if !matches!(self.nodes[node], Node::EndPoint(_)) {
                self.nodes[node].update_wires(&mut self.cx, index);
            }
        }
    }

    /// Messages about the wires of components below these links are void: one that still waits in the component above would raise a wire that nobody
    /// lowers again (PCIe 5.0 §2.2.8.1).
    fn forget_wire_messages(&mut self, down: &[PortId]) {
        let nodes = down.iter().map(|link| self.cx.links.node(*link));
        let below: Vec<_> = nodes.flat_map(|node| self.nodes.functions_of(node)).collect();
        for (_, tlp) in self.cx.tlps.all_mut() {
            tlp.orphaned |=
                tlp.maker.is_some_and(|maker| below.contains(&maker)) && told_by(&tlp.repr).is_some();
        }
    }

    /// The link of a port is up: whoever is above hears what is asserted, and the registers show it.
    pub(crate) fn announce_link_up(&mut self, port: PortId) {
        if self.cx.links.leads_up(port) {
            self.nodes[self.cx.links.node(port)].update_wires(&mut self.cx, 0);
        }
        self.show_link(port);
    }

    /// The bridge whose link leads down from `port`; `None` if it leads up, or if software sees no bridge there.
    pub(crate) fn bridge_above(&self, port: PortId) -> Option<FunctionAt> {
        let node = self.cx.links.node(port);
        if let Node::Custom(_) = &self.nodes[node] {
            return None;
        }
        let host_bridge = usize::from(node == self.cx.host.node);
        let index = self.cx.links.index(port) + host_bridge;
        self.cx.links.has_slot(port).then_some(FunctionAt { node, index })
    }

    /// The port whose bridge this is, if its link leads down.
    pub(crate) fn downstream_port(&self, at: FunctionAt) -> Option<PortId> {
        let mut ports = self.nodes[at.node].ports().iter().copied();
        ports.find(|port| self.bridge_above(*port) == Some(at))
    }

    /// True if the link below a bridge is down. Inside a switch there is none.
    pub(crate) fn is_cut_off_below(&self, bridge: FunctionAt) -> bool {
        self.downstream_port(bridge).is_some_and(|port| self.cx.links.is_held_down(self.cx.links.peer(port)))
    }

    pub(crate) fn function(&mut self, at: FunctionAt) -> &mut Function {
        self.nodes[at.node].functions().function(at.index)
    }

    /// Before the run begins all links have trained, or nobody has looked while they had not.
    pub(crate) fn show_trained_links(&mut self) {
        for port in self.cx.links.all() {
            if let Some(at) = self.bridge_above(port) {
                let state = self.link_shown(port, true);
                let now = self.cx.now();
                let space = self.function(at).space.change(now, ChangedBy::Hardware);
                space.set_presence(true);
                space.set_link(state);
            }
        }
    }

    fn link_shown(&self, port: PortId, active: bool) -> LinkState {
        let (speed, width) = self.cx.links.speed_and_width(port);
        LinkState { speed, width, active, training: false }
    }

    /// The registers of the component at one end of a link follow how the link is.
    fn show_link(&mut self, port: PortId) {
        if self.cx.links.leads_up(port) {
            return self.show_link_below(port);
        }
        let Some(at) = self.bridge_above(port) else { return };
        let now = self.cx.now();
        let (present, active) = (self.cx.links.is_present(port), self.cx.links.is_active(port));
        let state = self.link_shown(port, active);
        let outage = self.cx.observe.outages.latest(self.cx.links.link(port));
        if let Some(outage) = outage.filter(|_| active) {
            outage.up.get_or_insert(now);
        }
        if let Some(bridges) = self.nodes[at.node].bridges() {
            bridges.show_link(&mut self.cx, at.index, present, state);
        }
    }

    /// All functions of the component below a link show its speed and width.
    fn show_link_below(&mut self, lower: PortId) {
        let (node, now) = (self.cx.links.node(lower), self.cx.now());
        if matches!(self.nodes[node], Node::Custom(_)) || !self.cx.links.is_active(lower) {
            return;
        }
        let state = self.link_shown(lower, true);
        for node in self.nodes.functions_of(node) {
            let function = self.function(FunctionAt { node, index: 0 });
            function.space.change(now, ChangedBy::Hardware).set_link(state);
        }
    }
}
