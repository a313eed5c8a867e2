//! Functions: configuration space, what follows from it, and which function of a device a TLP is for.

use crate::kernel::ids::NodeId;
use crate::node::Node;
use crate::node::config_request::FunctionAt;
use crate::node::routing::{Route, registers_of};
use crate::packet::slab::TlpHandle;
use crate::sim::{Fabric, Task};
use std::sync::PoisonError;
use tlplab_cfgspace::MsixMemory;
use tlplab_cfgspace::{ConfigSpace, Reset, Written};
use tlplab_device::Event;
use tlplab_transaction::memory_access;
use tlplab_units::{Bdf, Time};
use tlplab_wire::tlp::{Kind, Repr};

/// A function of a node.
pub(crate) struct Function {
    pub(crate) space: ConfigSpace,
    /// Table and pending bits of MSI-X, if it has that.
    pub(crate) msix: Option<MsixMemory>,
    /// As the last configuration write told it (PCIe 5.0 §2.2.6.2).
    pub(crate) id: Bdf,
    /// Until then it answers configuration requests with Retry Status.
    pub(crate) ready: Time,
    /// Its last error message of each severity, which may be on its way still.
    pub(crate) reports: [Option<TlpHandle>; 3],
    /// Its slot wants an interrupt: the level that was last looked at.
    pub(crate) slot_interrupt: bool,
}

impl Function {
    pub(crate) fn new(space: ConfigSpace, id: Bdf, ready: Time) -> Self {
        let msix = MsixMemory::of(&space);
        Self { space, msix, id, ready, reports: [None; 3], slot_interrupt: false }
    }
}

impl Fabric {
    pub(crate) fn function(&mut self, at: FunctionAt) -> &mut Function {
        match &mut self.nodes[at.node.index()] {
            Node::Switch(switch) => &mut switch.functions[at.index],
            Node::Bridge(bridge) => &mut bridge.function,
            Node::Root(root) => &mut root.functions[at.index],
            Node::EndPoint(end_point) => &mut end_point.function,
        }
    }

    /// The node that is the function with that ID of the device whose function 0 is `device`. (A device number that gets here is part
    /// of the function's: without ARI it is 0.)
    pub(crate) fn function_numbered(&self, device: NodeId, function: Bdf) -> Option<NodeId> {
        let Node::EndPoint(end_point) = &self.nodes[device.index()] else { return None };
        // On a bus the device number says which device it is.
        let number = if end_point.on_bus { function.function() } else { function.0 as u8 };
        end_point.functions.iter().find(|(n, _)| *n == number).map(|(_, node)| *node)
    }

    /// Which function of a device a TLP is for, or from. Function 0, if none.
    pub(crate) fn function_for(&self, device: NodeId, repr: &Repr) -> NodeId {
        match &self.nodes[device.index()] {
            Node::EndPoint(end_point) if end_point.functions.len() > 1 => {
                self.claimant(device, repr).unwrap_or(device)
            }
            _ => device,
        }
    }

    /// The function of a device that a TLP is for, or from: by its IDs, or by the address that a function claims.
    pub(crate) fn claimant(&self, device: NodeId, repr: &Repr) -> Option<NodeId> {
        let Node::EndPoint(end_point) = &self.nodes[device.index()] else { return None };
        let is =
            |test: &dyn Fn(&crate::node::end_point::EndPoint) -> bool| {
                end_point.functions.iter().map(|(_, node)| *node).find(
                    |node| matches!(&self.nodes[node.index()], Node::EndPoint(function) if test(function)),
                )
            };
        let id = repr.transaction_id().requester;
        match repr.kind() {
            Kind::CfgRead { target, .. } | Kind::CfgWrite { target, .. } => {
                self.function_numbered(device, target.function())
            }
            Kind::Completion(_) => is(&|function| function.function.id == id),
            Kind::IoRead { port, .. } | Kind::IoWrite { port, .. } => {
                is(&|function| function.bar_of(port.address().into(), true).is_some())
            }
            _ => is(&|function| function.function.id == id).or_else(|| {
                let address = memory_access(repr)?.address;
                is(&|function| function.bar_of(address, false).is_some())
            }),
        }
    }

    /// A function learns its ID.
    pub(crate) fn set_function_id(&mut self, at: FunctionAt, id: Bdf) {
        if at.node == self.root_node || self.function(at).id == id {
            return;
        }
        let function = self.function(at);
        function.id = id;
        match &mut self.nodes[at.node.index()] {
            Node::EndPoint(end_point) => {
                let mut mrrs = self.enumeration.mrrs.lock().unwrap_or_else(PoisonError::into_inner);
                mrrs.insert(id, end_point.mrrs);
                drop(mrrs);
                self.limits_changed(at.node);
            }
            Node::Switch(switch) if at.index == 0 => switch.id = id,
            Node::Bridge(_) => {}
            _ => return,
        }
        self.topology.nodes[at.node.index()].id = id;
    }

    /// Software has written registers of a function.
    pub(crate) fn config_changed(&mut self, at: FunctionAt, written: Written) {
        let registers = registers_of(&self.function(at).space);
        if written.device_control {
            self.payload_limit_changed(at);
        }
        match &mut self.nodes[at.node.index()] {
            Node::Root(root) if at.index > 0 => {
                root.bridges[at.index - 1] = registers;
                let port = root.ports[at.index - 1];
                self.topology.ports[port.index()].bridge = Some(registers);
                self.slot_changed(at);
            }
            Node::Root(_) => {}
            Node::Switch(switch) => {
                switch.bridges[at.index] = registers;
                let port = switch.ports[at.index];
                self.topology.ports[port.index()].bridge = Some(registers);
                self.slot_changed(at);
            }
            Node::Bridge(bridge) => {
                bridge.registers = registers;
                let port = bridge.ports[0];
                self.topology.ports[port.index()].bridge = Some(registers);
            }
            Node::EndPoint(end_point) => {
                end_point.look_again();
                self.limits_changed(at.node);
                self.start_if_configured(at.node);
                if written.function_level_reset {
                    self.reset_function(at.node, Reset::FunctionLevel);
                }
                if written.interrupts {
                    self.interrupts_changed(at.node);
                }
            }
        }
        if written.bridge_control {
            self.secondary_bus_reset(at);
        }
        if written.interrupts {
            self.wires_changed(at);
        }
    }

    /// What a port takes, and what the root complex puts into a completion behind it, follow Max_Payload_Size (PCIe 5.0 §2.2.2). Where
    /// the functions of a device differ, its port takes what one of them does.
    fn payload_limit_changed(&mut self, at: FunctionAt) {
        let limit = |node: NodeId| match &self.nodes[node.index()] {
            Node::EndPoint(end_point) => end_point.function.space.pcie().map(|pcie| pcie.mps),
            Node::Root(root) => root.functions[at.index].space.pcie().map(|pcie| pcie.mps),
            Node::Switch(switch) => switch.functions[at.index].space.pcie().map(|pcie| pcie.mps),
            Node::Bridge(bridge) => bridge.function.space.pcie().map(|pcie| pcie.mps),
        };
        let (port, mps) = match &self.nodes[at.node.index()] {
            Node::EndPoint(end_point) => {
                let of_device = self.nodes.iter().enumerate().filter_map(|(i, node)| match node {
                    Node::EndPoint(other) if other.port == end_point.port => limit(NodeId(i as u16)),
                    _ => None,
                });
                (Some(&end_point.port), of_device.max())
            }
            Node::Root(root) => (at.index.checked_sub(1).and_then(|i| root.ports.get(i)), limit(at.node)),
            Node::Switch(switch) => (switch.ports.get(at.index), limit(at.node)),
            Node::Bridge(bridge) => (bridge.ports.first(), limit(at.node)),
        };
        if let (Some(port), Some(mps)) = (port, mps) {
            self.ports[port.index()].max_payload = mps;
        }
    }

    /// ID and limits of an end point's requester and completer follow its registers.
    pub(crate) fn limits_changed(&mut self, node: NodeId) {
        let end_point = self.end_point(node);
        let id = end_point.function.id;
        let (mps, mrrs) = match end_point.function.space.pcie() {
            Some(pcie) => (pcie.mps, pcie.mrrs),
            // A device on a bus has no registers for them.
            None if end_point.on_bus => (end_point.completer.mps, end_point.mrrs),
            None => return,
        };
        (end_point.completer.id, end_point.completer.mps) = (id, mps);
        end_point.initiator.requester.reconfigure(id, mps, mrrs);
        self.tell_registers(node, false);
    }

    /// A function is reset: its registers as far as the reset reaches, and all that its device does.
    pub(crate) fn reset_function(&mut self, node: NodeId, reset: Reset) {
        let now = self.now;
        self.forget_work(node, reset);
        let end_point = self.end_point(node);
        end_point.function.space.reset(reset);
        let keeps_table = end_point.core.is_none();
        end_point.function.msix = MsixMemory::of(&end_point.function.space).filter(|_| keeps_table);
        end_point.function.ready = now + end_point.ready;
        end_point.look_again();
        end_point.started = false;
        if reset != Reset::FunctionLevel {
            end_point.function.id = Bdf(0);
            self.topology.nodes[node.index()].id = Bdf(0);
        }
        self.reset_core(node);
        self.limits_changed(node);
        self.wires_changed(FunctionAt { node, index: 0 });
        self.agenda.push_back(Task::Tell { node, event: Event::Reset });
    }

    /// Does the root port above a function show Retry Status to software?
    pub(crate) fn crs_visible(&mut self, function: Bdf) -> bool {
        let root = self.root();
        let port = root.port_for(Route::Id(function));
        let space = port.map(|index| &root.functions[index + 1].space);
        space.and_then(ConfigSpace::pcie).is_some_and(|pcie| pcie.retry_visibility)
    }
}
