//! The forward bridge: a node with a link above and a bus below.
//!
//! Towards its link it is like the upstream port of a switch. Reads from the bus it makes its own: a conventional bus knows neither
//! requester nor tag, so what goes up carries the bridge's (PCI Express to PCI/PCI-X Bridge 1.0 §2.2.3), and what comes down is given
//! back to the one who asked. On PCI-X both are in the attributes and go through.

use super::Bus;
use crate::kernel::ids::{NodeId, PortId};
use crate::link::egress::Waiting;
use crate::link::port_buffer::ends_its_request;
use crate::node::Node;
use crate::node::config_request::config_target;
use crate::node::function::Function;
use crate::node::routing::{BridgeRegisters, Route, claims, registers_of, route_of};
use crate::packet::slab::TlpHandle;
use crate::sim::Fabric;
use tlplab_cfgspace::Reset;
use tlplab_units::{Bdf, Duration, FcClass, Tag};
use tlplab_wire::tlp::{CfgTarget, CompletionStatus, Kind, TransactionId};

/// A bridge: port 0 is its link's, the others lead to one device each on the bus.
pub(crate) struct Bridge {
    pub(crate) latency: Duration,
    pub(crate) ports: Vec<PortId>,
    pub(crate) function: Function,
    /// What its registers say of routing.
    pub(crate) registers: BridgeRegisters,
    pub(super) bus: Bus,
    /// Posted requests from the bus that it may hold.
    posted: usize,
    /// By class: what it has taken from the bus and is processing.
    arriving: [usize; 3],
    /// Requests from the bus whose completions it waits for, by the tag it has given them; a free place is `None`.
    reads: Vec<Option<TransactionId>>,
}

/// The source in its egress towards the link of what comes from the bus, whichever device it is from: it stays in order.
const FROM_BUS: usize = 1;

impl Bridge {
    pub(crate) fn new(
        config: &crate::config::BusConfig,
        ports: Vec<PortId>,
        function: Function,
        bus: Bus,
    ) -> Self {
        Self {
            latency: config.bridge.latency,
            ports,
            function,
            registers: BridgeRegisters::RESET,
            bus,
            posted: usize::from(config.bridge.posted.max(1)),
            arriving: [0; 3],
            reads: vec![None; usize::from(config.bridge.reads.clamp(1, 256))],
        }
    }

    /// What comes from the bus goes up, unless it is for the bus itself or a register forbids it.
    pub(super) fn passes_up(&self, route: Route) -> bool {
        self.registers.passes_up(route) && !claims(&self.registers, route)
    }

    /// The way of a configuration request from above: the port of the device that its number names.
    pub(crate) fn config_way(&self, function: Bdf, type1: bool) -> crate::node::config_request::ConfigWay {
        use crate::node::config_request::ConfigWay;
        if !type1 {
            return if function.0 as u8 == 0 { ConfigWay::Own(0) } else { ConfigWay::Nowhere };
        }
        let port = usize::from(function.device()) + 1;
        let exists = function.bus() == self.registers.secondary && port < self.ports.len();
        if exists { ConfigWay::Down { port, type1: false } } else { ConfigWay::Nowhere }
    }
}

impl Fabric {
    /// Can the bridge hold a TLP of this class from the bus? It has kept room for the answers to what it has asked.
    pub(super) fn bridge_has_room(&self, bridge: &Bridge, class: FcClass) -> bool {
        match class {
            FcClass::Posted => {
                let egress = &self.ports[bridge.ports[0].index()].egress;
                egress.len_of(FROM_BUS, class) + bridge.arriving[class.index()] < bridge.posted
            }
            FcClass::NonPosted => {
                let free = bridge.reads.iter().filter(|read| read.is_none()).count();
                bridge.arriving[class.index()] < free
            }
            FcClass::Completion => true,
        }
    }

    /// It takes one.
    pub(super) fn arrives_at_bridge(&mut self, node: NodeId, class: FcClass) {
        self.bridge(node).arriving[class.index()] += 1;
    }

    fn bridge(&mut self, node: NodeId) -> &mut Bridge {
        match &mut self.nodes[node.index()] {
            Node::Bridge(bridge) => bridge,
            _ => unreachable!("this node is a bridge"),
        }
    }

    /// A TLP has passed the bridge's processing.
    pub(crate) fn bridge_takes(&mut self, ingress: PortId, handle: TlpHandle) {
        let (node, index) = (self.ports[ingress.index()].node, self.ports[ingress.index()].index);
        let repr = self.tlps.get(handle).repr;
        let route = route_of(&repr);
        let class = self.tlps.get(handle).shape.class;
        let bridge = self.bridge(node);
        let registers = bridge.registers;
        if index > 0 && !matches!(repr.kind(), Kind::Message(_)) {
            let arriving = &mut bridge.arriving[class.index()];
            *arriving = arriving.saturating_sub(1); // a reset has forgotten them
        }
        match (config_target(&repr), repr.kind()) {
            (Some(target), _) if index == 0 => self.bridge_config(node, ingress, handle, target),
            (_, Kind::Message(_)) if index == 0 => self.consume(ingress, handle),
            (_, Kind::Message(_)) if route == Route::ToRoot => self.pass_to_root(ingress, handle),
            (_, Kind::Message(_)) => self.local_message(ingress, handle),
            (None, _) if index == 0 && claims(&registers, route) => self.goes_to_bus(node, ingress, handle),
            (None, _) if index > 0 && self.bridge(node).passes_up(route) => {
                self.comes_from_bus(node, ingress, handle);
            }
            _ => {
                let id = self.answers_for(ingress);
                self.refuse(ingress, handle, id, CompletionStatus::UnsupportedRequest);
            }
        }
    }

    fn bridge_config(&mut self, node: NodeId, ingress: PortId, handle: TlpHandle, target: CfgTarget) {
        use crate::node::config_request::{ConfigWay, FunctionAt};
        let bridge = self.bridge(node);
        let (function, secondary) = (target.function(), bridge.registers.secondary);
        match bridge.config_way(function, target.is_type1()) {
            ConfigWay::Own(index) => self.function_takes(ingress, handle, FunctionAt { node, index }, target),
            // On the bus nobody may be there either; then nobody claims it.
            _ if target.is_type1() && function.bus() == secondary => {
                let type0 = self.convert(ingress, handle, target);
                self.goes_to_bus(node, ingress, type0);
            }
            _ => {
                let id = self.answers_for(ingress);
                self.refuse(ingress, handle, id, CompletionStatus::UnsupportedRequest);
            }
        }
    }

    /// What has come from above waits for the bus, a completion as what its requester asked for.
    fn goes_to_bus(&mut self, node: NodeId, ingress: PortId, mut handle: TlpHandle) {
        let repr = self.tlps.get(handle).repr;
        if let Kind::Completion(completion) = repr.kind() {
            let (id, last) = (completion.id(), ends_its_request(&repr));
            let Some(asked) = self.asked_by(node, id, last) else {
                let function = self.answers_for(ingress);
                return self.refuse(ingress, handle, function, CompletionStatus::UnsupportedRequest);
            };
            if asked != id {
                handle = self.replace_tlp(ingress, handle, repr.with_transaction_id(asked));
            }
        }
        self.note_poison(ingress, handle);
        let shape = self.tlps.get(handle).shape;
        let bus = self.bridge(node).bus.members[0].port;
        let waiting = Waiting { ingress: Some(ingress), ..Waiting::own(handle, shape) };
        self.enqueue(bus, 0, waiting);
    }

    /// Whom a completion from above is for: a device's request that went up, which is over with its last one.
    fn asked_by(&mut self, node: NodeId, id: TransactionId, last: bool) -> Option<TransactionId> {
        let bridge = self.bridge(node);
        let own = !bridge.bus.rules.pci_x;
        let place = match own {
            true => bridge.reads.get_mut(usize::from(id.tag.value())).filter(|read| read.is_some())?,
            false => bridge.reads.iter_mut().find(|read| **read == Some(id))?,
        };
        if last { place.take() } else { *place }
    }

    /// What a device has sent goes up; of a conventional bus, as the bridge's own.
    fn comes_from_bus(&mut self, node: NodeId, ingress: PortId, handle: TlpHandle) {
        self.note_poison(ingress, handle);
        let bridge = self.bridge(node);
        let up = bridge.ports[0];
        let secondary = bridge.registers.secondary;
        let own = !bridge.bus.rules.pci_x;
        let tlp = self.tlps.get(handle);
        let (repr, shape) = (tlp.repr, tlp.shape);
        let mut tag = Tag::default();
        if shape.class == FcClass::NonPosted {
            let bridge = self.bridge(node);
            let Some(place) = bridge.reads.iter().position(Option::is_none) else {
                let id = self.answers_for(ingress);
                return self.refuse(ingress, handle, id, CompletionStatus::CompleterAbort);
            };
            bridge.reads[place] = Some(repr.transaction_id());
            tag = Tag::new(place as u16).unwrap_or_default();
        }
        if own && shape.class != FcClass::Completion {
            let id = TransactionId::new(Bdf(u16::from(secondary) << 8), tag);
            self.tlps.get_mut(handle).repr = repr.with_transaction_id(id);
        }
        let waiting = Waiting { ingress: Some(ingress), ..Waiting::own(handle, shape) };
        self.enqueue(up, FROM_BUS, waiting);
    }

    /// A bridge is reset, and nothing is on its bus any more.
    pub(crate) fn reset_bridge(&mut self, node: NodeId) {
        let now = self.now;
        let bridge = self.bridge(node);
        bridge.function.space.reset(Reset::Hot);
        bridge.function.id = Bdf(0);
        bridge.registers = registers_of(&bridge.function.space);
        bridge.reads.iter_mut().for_each(|read| *read = None);
        bridge.arriving = [0; 3];
        let (up, gone) = (bridge.ports[0], bridge.bus.reset(now));
        self.topology.ports[up.index()].bridge = Some(BridgeRegisters::RESET);
        self.topology.nodes[node.index()].id = Bdf(0);
        gone.into_iter().for_each(|waiting| self.release_waiting(waiting));
        self.bus_taken(node, None);
    }
}
