//! Hot-plug: what a port's registers say of its link and slot, its interrupt, and the software that acts on it.
//!
//! Root ports and downstream ports of switches have slots for hot-plug. A card is present while the physical layer finds somebody at
//! the other end of the link (in-band presence, PCIe 5.0 §7.5.3.11). When the link goes down, what is below it is reset; software hears of
//! it by the slot's interrupt and forgets what was there. When the link is up, it hears again, and configures what it finds, by
//! configuration requests that take their time. Then devices start again, as if they were new.

use crate::kernel::ids::{LinkId, PortId};
use crate::link::egress::Waiting;
use crate::node::Node;
use crate::node::config_request::FunctionAt;
use crate::packet::slab::shape_of;
use crate::sim::Fabric;
use tlplab_cfgspace::interrupt::raise;
use tlplab_cfgspace::{LinkState, MessageWrite, Signal};
use tlplab_datalink::LinkLayer;
use tlplab_transaction::Payload;
use tlplab_units::{Bdf, Tag, Time};
use tlplab_wire::tlp::{Repr, TransactionId};

/// Of so many outages the times are kept.
const OUTAGES_KEPT: usize = 1000;

/// A link that went down, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The link.
    pub link: LinkId,
    /// When it went down.
    pub down: Time,
    /// When the interrupt of its slot reached software; `None` if it never did.
    pub heard: Option<Time>,
    /// When its data link layer was active again.
    pub up: Option<Time>,
    /// When software had configured what is below it.
    pub configured: Option<Time>,
}

impl Fabric {
    /// The links that went down, in the order in which they did; of very many the first.
    pub fn outages(&self) -> &[Outage] {
        &self.outages
    }

    pub(crate) fn outage_begins(&mut self, port: PortId) {
        if self.outages.len() < OUTAGES_KEPT {
            let link = self.ports[port.index()].link;
            self.outages.push(Outage { link, down: self.now, heard: None, up: None, configured: None });
        }
    }

    /// The latest outage of a link.
    fn outage(&mut self, link: LinkId) -> Option<&mut Outage> {
        self.outages.iter_mut().rev().find(|outage| outage.link == link)
    }

    /// The bridge whose link leads down from `port`; `None` if it leads up.
    fn bridge_above(&self, port: PortId) -> Option<FunctionAt> {
        let port = &self.ports[port.index()];
        let host_bridge = usize::from(port.node == self.root_node);
        (port.direction == 1 && !port.on_bus)
            .then_some(FunctionAt { node: port.node, index: port.index + host_bridge })
    }

    /// Before the run begins all links have trained, or nobody has looked while they had not.
    pub(crate) fn show_trained_links(&mut self) {
        for id in (0..self.ports.len()).map(|id| PortId(id as u16)) {
            if let Some(at) = self.bridge_above(id) {
                let state = self.link_shown(id, true);
                let space = &mut self.function(at).space;
                space.set_presence(true);
                space.set_link(state);
            }
        }
    }

    fn link_shown(&self, port: PortId, active: bool) -> LinkState {
        let link = &self.topology.links[self.ports[port.index()].link.index()];
        LinkState { speed: link.generation, width: link.width, active, training: false }
    }

    /// The registers of the port above a link follow how the link is.
    pub(crate) fn show_link(&mut self, id: PortId) {
        let Some(at) = self.bridge_above(id) else { return };
        let (now, port) = (self.now, &self.ports[id.index()]);
        let (present, active, link) = (port.wire_up || port.recovering, port.engine.is_active(), port.link);
        let state = self.link_shown(id, active);
        let space = &mut self.function(at).space;
        space.set_presence(present);
        space.set_link(state);
        if let Some(outage) = self.outage(link).filter(|_| active) {
            outage.up.get_or_insert(now);
        }
        self.slot_changed(at);
    }

    /// The slot's interrupt is a level, as its wire is; a message goes when it rises (PCIe 5.0 §6.7.3.4).
    pub(crate) fn slot_changed(&mut self, at: FunctionAt) {
        let function = self.function(at);
        let level = function.space.slot_interrupt();
        if level == std::mem::replace(&mut function.slot_interrupt, level) {
            return;
        }
        let signal = if level { raise(&mut function.space, None, 0) } else { Signal::Nothing };
        function.space.set_interrupt_status(level);
        match signal {
            Signal::Write(message) => self.send_port_message(at, message),
            _ => self.wires_changed(at),
        }
    }

    /// A bridge's own interrupt goes up; that of a root port is there at once.
    pub(crate) fn send_port_message(&mut self, at: FunctionAt, message: MessageWrite) {
        let Node::Switch(switch) = &self.nodes[at.node.index()] else {
            self.interrupts += 1;
            return self.message_came(message.address, message.data);
        };
        if !switch.bridges[0].upstream {
            return; // what goes up over the switch's bus needs its upstream port's Bus Master Enable
        }
        let (egress, id) = (switch.ports[0], switch.functions[at.index].id);
        let Ok(repr) = Repr::mem_write(TransactionId::new(id, Tag::default()), message.address, 4) else {
            return;
        };
        let stream = self.enumeration.stream;
        let flow = self.root().initiator.flow(stream);
        let data = Payload::from(message.data.to_le_bytes());
        let tlp = self.tlps.insert(self.with_digest(egress, repr), data, flow);
        self.enqueue(egress, at.index, Waiting::own(tlp, shape_of(&repr)));
    }

    /// The interrupt of a port has reached software.
    pub(crate) fn slot_interrupted(&mut self, port: Bdf) {
        let now = self.now;
        let Some(at) = self.find_function(port) else { return };
        if at.node == self.root_node && !self.function(at).slot_interrupt {
            return; // its registers are next to the processor: it is about something else
        }
        let Some(id) = self.downstream_port(at) else { return };
        if let Some(outage) = self.outage(self.ports[id.index()].link) {
            outage.heard.get_or_insert(now);
        }
        self.enumeration.jobs.retain(|job| *job != port);
        self.enumeration.jobs.push_back(port);
        self.next_job();
    }

    /// The port whose bridge this is, if its link leads down.
    fn downstream_port(&self, at: FunctionAt) -> Option<PortId> {
        let mut ports = self.own_ports(at.node).iter().copied();
        ports.find(|port| self.bridge_above(*port) == Some(at))
    }

    /// Is the link below a bridge down? Inside a switch there is none.
    pub(crate) fn is_cut_off_below(&self, bridge: FunctionAt) -> bool {
        let peer = |port: PortId| self.ports[port.index()].peer;
        self.downstream_port(bridge).is_some_and(|port| self.ports[peer(port).index()].held_down > 0)
    }

    /// Software has configured what it found below the slot that it looked after, or everywhere.
    pub(crate) fn note_configured(&mut self, served: Option<Bdf>) {
        let slots = match served {
            Some(bridge) => {
                self.find_function(bridge).and_then(|at| self.downstream_port(at)).into_iter().collect()
            }
            None => self.own_ports(self.root_node).to_vec(),
        };
        for slot in slots {
            for lower in self.links_below(self.ports[slot.index()].peer) {
                self.note_configured_below(lower);
            }
        }
    }

    /// The latest outage of a link is over, if there is somebody below it who has an ID and whom software knows.
    fn note_configured_below(&mut self, lower: PortId) {
        let (now, port) = (self.now, &self.ports[lower.index()]);
        let (link, upper, has_id) =
            (port.link, port.peer, self.topology.nodes[port.node.index()].id != Bdf(0));
        let Some(bridge) = self.bridge_above(upper).map(|at| self.function(at).id) else { return };
        let known = self.hierarchy().is_some_and(|found| found.children(Some(bridge)).next().is_some());
        let active = self.ports[upper.index()].engine.is_active();
        if let Some(outage) =
            self.outage(link).filter(|outage| has_id && known && active && outage.up.is_some())
        {
            outage.configured.get_or_insert(now);
        }
    }
}
