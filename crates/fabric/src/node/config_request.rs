//! Configuration requests: routed by bus numbers, turned from type 1 into type 0 at their bus, answered by the functions they name
//! (PCIe 5.0 §7.3.3).

use crate::kernel::ids::{NodeId, PortId};
use crate::node::Node;
use crate::node::routing::{BridgeRegisters, Route};
use crate::node::switch::Switch;
use crate::packet::attribution::Cause;
use crate::packet::slab::TlpHandle;
use crate::sim::Fabric;
use tlplab_datalink::Integrity;
use tlplab_transaction::Payload;
use tlplab_units::{Bdf, Time};
use tlplab_wire::tlp::{CfgTarget, CompletionStatus, Kind, Repr};

/// Where a switch or the root complex sends a configuration request for a function below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfigWay {
    /// It is one of the node's own functions.
    Own(usize),
    /// Down this port (an index among the node's).
    Down {
        /// The port.
        port: usize,
        /// It goes on as type 1: its bus is further down.
        type1: bool,
    },
    /// Nobody has that number.
    Nowhere,
}

/// Below a downstream port there is one device, number 0, unless what would be its number belongs to the function's (PCIe 5.0 §6.13).
pub(crate) fn way_down(port: usize, bridge: &BridgeRegisters, function: Bdf) -> ConfigWay {
    let type1 = function.bus() != bridge.secondary;
    let no_device = !type1 && function.device() != 0 && !bridge.ari;
    if no_device { ConfigWay::Nowhere } else { ConfigWay::Down { port, type1 } }
}

/// A function within its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FunctionAt {
    pub(crate) node: NodeId,
    /// 0 at an end point; at a switch the port; at the root complex 0 is the host bridge and root ports follow.
    pub(crate) index: usize,
}

impl Switch {
    /// The way of a request that comes from above.
    pub(crate) fn config_way(&self, function: Bdf, type1: bool) -> ConfigWay {
        if !type1 {
            // What would be a device number may be the upper bits of a function's: there is function 0 only.
            return if function.0 as u8 == 0 { ConfigWay::Own(0) } else { ConfigWay::Nowhere };
        }
        if function.bus() == self.bridges[0].secondary {
            let port = usize::from(function.device()) + 1;
            let exists = port < self.ports.len() && function.function() == 0;
            return if exists { ConfigWay::Own(port) } else { ConfigWay::Nowhere };
        }
        let claims = |port: &usize| self.bridges[*port].claims_bus(function.bus());
        match (1..self.bridges.len()).find(claims) {
            Some(port) => way_down(port, &self.bridges[port], function),
            None => ConfigWay::Nowhere,
        }
    }
}

/// The target of a configuration request.
pub(crate) fn config_target(repr: &Repr) -> Option<CfgTarget> {
    match repr.kind() {
        Kind::CfgRead { target, .. } | Kind::CfgWrite { target, .. } => Some(*target),
        _ => None,
    }
}

impl Fabric {
    /// A configuration request has passed the switch's processing.
    pub(crate) fn switch_config(&mut self, ingress: PortId, handle: TlpHandle, target: CfgTarget) {
        let port = &self.ports[ingress.index()];
        let (node, index) = (port.node, port.index);
        let Node::Switch(switch) = &self.nodes[node.index()] else { return };
        let way = if index == 0 {
            switch.config_way(target.function(), target.is_type1())
        } else {
            ConfigWay::Nowhere // configuration requests only go down
        };
        match way {
            ConfigWay::Own(index) => self.function_takes(ingress, handle, FunctionAt { node, index }, target),
            ConfigWay::Down { port, type1 } => {
                let egress = switch.ports[port];
                let forwarded = if type1 { handle } else { self.convert(ingress, handle, target) };
                self.forward_to(ingress, egress, forwarded, Integrity::Good, Time::ZERO);
            }
            ConfigWay::Nowhere => {
                let id = self.answers_for(ingress);
                self.refuse(ingress, handle, id, CompletionStatus::UnsupportedRequest);
            }
        }
    }

    /// A type 1 request has reached its bus: it goes on as type 0.
    pub(crate) fn convert(&mut self, ingress: PortId, handle: TlpHandle, target: CfgTarget) -> TlpHandle {
        let original = self.tlps.get(handle);
        let target = target.with_type1(false);
        let kind = match *original.repr.kind() {
            Kind::CfgWrite { id, .. } => Kind::CfgWrite { id, target },
            _ => Kind::CfgRead { id: original.repr.transaction_id(), target },
        };
        let repr = Repr::from(kind).with_attributes(*original.repr.attributes());
        let repr = repr.expect("the attributes of a request of the same kind");
        self.replace_tlp(ingress, handle, repr)
    }

    /// A TLP goes on as another one. The replay buffer behind keeps the original.
    pub(crate) fn replace_tlp(&mut self, ingress: PortId, handle: TlpHandle, repr: Repr) -> TlpHandle {
        let original = self.tlps.get(handle);
        let (payload, flow, carry) = (original.payload.clone(), original.flow, original.carry);
        let copy = self.tlps.insert(repr, payload, flow);
        self.tlps.get_mut(copy).carry = carry;
        self.pass_history(handle, copy, Cause::Processing, self.ports[ingress.index()].node);
        self.drop_tlp(handle);
        copy
    }

    /// A configuration request has passed the end point's processing.
    pub(crate) fn end_point_config(&mut self, ingress: PortId, handle: TlpHandle, target: CfgTarget) {
        let device = self.ports[ingress.index()].node;
        match self.function_numbered(device, target.function()) {
            Some(node) if !target.is_type1() => {
                self.function_takes(ingress, handle, FunctionAt { node, index: 0 }, target);
            }
            _ => {
                let id = self.answers_for(ingress);
                self.refuse(ingress, handle, id, CompletionStatus::UnsupportedRequest);
            }
        }
    }

    /// A function is read or written, and answers.
    pub(crate) fn function_takes(
        &mut self,
        ingress: PortId,
        handle: TlpHandle,
        at: FunctionAt,
        target: CfgTarget,
    ) {
        let now = self.now;
        let tlp = self.tlps.get(handle);
        let shape = tlp.shape;
        let written = match tlp.repr.kind() {
            Kind::CfgWrite { .. } => Some(dword(&tlp.payload)),
            _ => None,
        };
        let answer = if self.function(at).ready > now {
            Err(CompletionStatus::RetryStatus)
        } else {
            let value = self.access_function(at, target, written);
            Ok(if written.is_none() { Payload::from(value.to_le_bytes()) } else { Payload::EMPTY })
        };
        self.release_buffer(ingress, &shape);
        self.answer(ingress, handle, answer);
    }

    /// Reads a register, or writes it; a write tells the function its ID (PCIe 5.0 §2.2.6.2).
    pub(crate) fn access_function(&mut self, at: FunctionAt, target: CfgTarget, written: Option<u32>) -> u32 {
        let Some(value) = written else { return self.function(at).space.read(target.register()) };
        self.set_function_id(at, target.function());
        let written = self.function(at).space.write(target.register(), target.enables(), value);
        if written.any() {
            self.config_changed(at, written);
        }
        0
    }

    /// A register of the root complex's own functions, on bus 0; `None` if there is no such function.
    pub(crate) fn root_register(
        &mut self,
        function: Bdf,
        register: u16,
        enables: u8,
        written: Option<u32>,
    ) -> Option<u32> {
        let at = self.function_on_bus_0(function)?;
        let target = CfgTarget::new(function, register, enables, false).ok()?;
        Some(self.access_function(at, target, written))
    }

    fn function_on_bus_0(&mut self, function: Bdf) -> Option<FunctionAt> {
        let index = usize::from(function.device());
        let exists = function.function() == 0 && index <= self.root().ports.len();
        exists.then_some(FunctionAt { node: self.root_node, index })
    }

    /// The component that has this function, and which of its ports it is, if it is a bridge; by the bus numbers as they are.
    pub fn component_at(&mut self, function: Bdf) -> Option<(NodeId, Option<PortId>)> {
        let FunctionAt { node, index } = self.find_function(function)?;
        let port = match &self.nodes[node.index()] {
            Node::Switch(switch) => Some(switch.ports[index]),
            Node::Root(root) => index.checked_sub(1).map(|port| root.ports[port]),
            Node::Bridge(bridge) => Some(bridge.ports[0]),
            Node::EndPoint(_) => None,
        };
        Some((node, port))
    }

    /// The function that a configuration request would reach, by the bus numbers as they are.
    pub(crate) fn find_function(&mut self, function: Bdf) -> Option<FunctionAt> {
        if function.bus() == 0 {
            return self.function_on_bus_0(function);
        }
        let index = self.root().port_for(Route::Id(function))?;
        let mut way = way_down(index, &self.root().bridges[index], function);
        let mut node = self.root_node;
        loop {
            let (port, type1) = match way {
                ConfigWay::Own(index) => return Some(FunctionAt { node, index }),
                ConfigWay::Nowhere => return None,
                ConfigWay::Down { port, type1 } => (port, type1),
            };
            let peer = self.ports[self.own_ports(node)[port].index()].peer;
            node = self.ports[peer.index()].node;
            way = match &self.nodes[node.index()] {
                Node::Switch(switch) => switch.config_way(function, type1),
                Node::Bridge(bridge) => bridge.config_way(function, type1),
                _ if type1 => ConfigWay::Nowhere,
                _ => {
                    let node = self.function_numbered(node, function)?;
                    return Some(FunctionAt { node, index: 0 });
                }
            };
        }
    }
}

/// The doubleword that a register is written with, or that its read brought.
pub(crate) fn dword(payload: &Payload) -> u32 {
    let mut dword = [0; 4];
    if let Some(bytes) = payload.bytes() {
        let count = bytes.len().min(4);
        dword[..count].copy_from_slice(&bytes[..count]);
    }
    u32::from_le_bytes(dword)
}
