//! The nodes that links connect: switches, the root complex, end points, bridges to parallel buses, and custom nodes.
//!
//! Each owns its state. Its handlers get a [`Context`] besides; they reach other nodes by links only.
//! [`initiator`] is about what nodes ask for, [`answer`] about what they answer, [`function`] about their registers.

pub(crate) mod answer;
pub(crate) mod bridge;
pub(crate) mod bridges;
pub(crate) mod config_request;
pub(crate) mod custom;
pub(crate) mod end_point;
pub(crate) mod error_messages;
pub(crate) mod function;
pub(crate) mod hardware;
pub(crate) mod history;
pub(crate) mod initiator;
pub(crate) mod link_state;
pub(crate) mod root;
pub(crate) mod snapshot;
pub(crate) mod switch;
pub(crate) mod switch_core;
pub(crate) mod wires;

use crate::kernel::ids::{NodeId, PortId};
use crate::link::context::Context;
use crate::packet::slab::TlpHandle;
use answer::Answer;
use bridge::Bridge;
use bridges::Bridges;
use custom::CustomNode;
use end_point::EndPoint;
use function::Functions;
use initiator::Initiate;
use root::Root;
use std::ops::{Index, IndexMut};
use switch::Switch;
use tlplab_transaction::memory_access;
use tlplab_units::{Bdf, Duration};
use tlplab_wire::tlp::{Kind, Repr};

pub(crate) enum Node {
    Switch(Box<Switch>),
    Root(Box<Root>),
    EndPoint(Box<EndPoint>),
    Bridge(Box<Bridge>),
    Custom(Box<CustomNode>),
}

impl Node {
    /// From the arrival of a TLP to the node's decision about it.
    pub(crate) fn latency(&self) -> Duration {
        match self {
            Self::Switch(switch) => switch.latency,
            Self::Root(root) => root.latency,
            Self::EndPoint(end_point) => end_point.latency,
            Self::Bridge(bridge) => bridge.latency,
            Self::Custom(own) => own.latency,
        }
    }

    /// True if it has a requester.
    pub(crate) fn requests(&self) -> bool {
        matches!(self, Self::Root(_) | Self::EndPoint(_))
    }

    pub(crate) fn ports(&self) -> &[PortId] {
        match self {
            Self::EndPoint(end_point) => std::slice::from_ref(&end_point.port),
            Self::Root(root) => &root.ports,
            Self::Switch(switch) => &switch.ports,
            Self::Bridge(bridge) => &bridge.ports,
            Self::Custom(own) => &own.ports,
        }
    }

    /// The node as one with functions, which all have but custom nodes.
    pub(crate) fn functions(&mut self) -> &mut dyn Functions {
        match self {
            Self::EndPoint(end_point) => &mut **end_point,
            Self::Root(root) => &mut **root,
            Self::Switch(switch) => &mut **switch,
            Self::Bridge(bridge) => &mut **bridge,
            Self::Custom(_) => unreachable!("software sees no function of it"),
        }
    }

    /// The node as one that answers requests.
    pub(crate) fn answerer(&mut self) -> &mut dyn Answer {
        match self {
            Self::Custom(own) => &mut **own,
            other => other.functions(),
        }
    }

    /// The node as one whose functions are bridges with links below.
    pub(crate) fn bridges(&mut self) -> Option<&mut dyn Bridges> {
        match self {
            Self::Root(root) => Some(&mut **root),
            Self::Switch(switch) => Some(&mut **switch),
            Self::EndPoint(_) | Self::Bridge(_) | Self::Custom(_) => None,
        }
    }

    /// The node as one with a requester.
    pub(crate) fn initiate(&mut self) -> Option<&mut dyn Initiate> {
        match self {
            Self::Root(root) => Some(&mut **root),
            Self::EndPoint(end_point) => Some(&mut **end_point),
            Self::Switch(_) | Self::Bridge(_) | Self::Custom(_) => None,
        }
    }

    /// The legacy interrupts of the node may have changed, because of one of its functions or a component below it.
    pub(crate) fn update_wires(&mut self, cx: &mut Context, index: usize) {
        match self {
            Self::EndPoint(end_point) => end_point.update_wires(cx, 0),
            Self::Switch(switch) => switch.update_wires(cx, index),
            Self::Bridge(bridge) => bridge.update_wires(cx),
            Self::Root(root) => root.update_wires(cx, index),
            // Messages about wires pass it as they are.
            Self::Custom(_) => {}
        }
    }
}

/// All nodes, in the order of their numbers.
pub(crate) struct Nodes {
    pub(crate) all: Vec<Node>,
    root: NodeId,
}

impl Index<NodeId> for Nodes {
    type Output = Node;
    fn index(&self, node: NodeId) -> &Node {
        &self.all[node.index()]
    }
}

impl IndexMut<NodeId> for Nodes {
    fn index_mut(&mut self, node: NodeId) -> &mut Node {
        &mut self.all[node.index()]
    }
}

impl Nodes {
    pub(crate) fn new(root: NodeId) -> Self {
        Self { all: Vec::new(), root }
    }

    pub(crate) fn root(&self) -> &Root {
        match &self[self.root] {
            Node::Root(root) => root,
            _ => unreachable!("the fabric has a root complex"),
        }
    }

    pub(crate) fn root_mut(&mut self) -> &mut Root {
        match &mut self.all[self.root.index()] {
            Node::Root(root) => root,
            _ => unreachable!("the fabric has a root complex"),
        }
    }

    pub(crate) fn end_points(&self) -> impl Iterator<Item = &EndPoint> {
        self.all.iter().filter_map(|node| match node {
            Node::EndPoint(end_point) => Some(&**end_point),
            _ => None,
        })
    }

    pub(crate) fn end_point(&self, node: NodeId) -> &EndPoint {
        match &self[node] {
            Node::EndPoint(end_point) => end_point,
            _ => unreachable!("this node is an end point"),
        }
    }

    pub(crate) fn end_point_mut(&mut self, node: NodeId) -> &mut EndPoint {
        match &mut self[node] {
            Node::EndPoint(end_point) => end_point,
            _ => unreachable!("this node is an end point"),
        }
    }

    /// The functions of a device, as nodes; the node itself, if it is no device.
    pub(crate) fn functions_of(&self, device: NodeId) -> Vec<NodeId> {
        match &self[device] {
            Node::EndPoint(end_point) => end_point.functions.iter().map(|(_, node)| *node).collect(),
            _ => vec![device],
        }
    }

    /// The node that is the function with that ID of the device whose function 0 is `device`.
    pub(crate) fn function_numbered(&self, device: NodeId, function: Bdf) -> Option<NodeId> {
        let Node::EndPoint(end_point) = &self[device] else { return None };
        end_point
            .functions
            .iter()
            .map(|(_, node)| *node)
            .find(|node| self.end_point(*node).is_named(function))
    }

    /// The function of a device that a TLP is for, or from. Function 0, if none.
    #[inline]
    pub(crate) fn function_for(&self, device: NodeId, repr: &Repr) -> NodeId {
        match &self[device] {
            Node::EndPoint(end_point) if end_point.functions.len() > 1 => {
                self.claimant(device, repr).unwrap_or(device)
            }
            _ => device,
        }
    }

    /// The function of a device that a TLP is for, or from: by its IDs, or by the address that a function claims.
    pub(crate) fn claimant(&self, device: NodeId, repr: &Repr) -> Option<NodeId> {
        let Node::EndPoint(end_point) = &self[device] else { return None };
        let is = |test: &dyn Fn(&EndPoint) -> bool| {
            let mut functions = end_point.functions.iter().map(|(_, node)| *node);
            functions.find(|node| test(self.end_point(*node)))
        };
        let id = repr.transaction_id().requester;
        match repr.kind() {
            Kind::CfgRead { target, .. } | Kind::CfgWrite { target, .. } => {
                self.function_numbered(device, target.function())
            }
            Kind::Completion(_) => is(&|function| function.function.id == id),
            Kind::Message(message) if message.target().is_some() => {
                is(&|function| Some(function.function.id) == message.target())
            }
            Kind::IoRead { port, .. } | Kind::IoWrite { port, .. } => {
                is(&|function| function.bar_of(port.address().into(), true).is_some())
            }
            // What a function asks of its neighbour comes back from the root complex: it is for the one whose BAR it names.
            _ => memory_access(repr)
                .and_then(|access| is(&|function| function.bar_of(access.address, false).is_some()))
                .or_else(|| is(&|function| function.function.id == id)),
        }
    }

    /// A TLP has passed the processing of the node behind `ingress`.
    #[inline]
    pub(crate) fn take(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        cx.charge_processing(ingress, handle);
        let node = cx.links.node(ingress);
        match &mut self.all[node.index()] {
            Node::Switch(switch) => switch.handle_tlp(cx, ingress, handle),
            Node::Root(root) => root.handle_tlp(cx, ingress, handle),
            Node::Bridge(bridge) => bridge.handle_tlp(cx, ingress, handle),
            Node::Custom(own) => own.handle_tlp(cx, ingress, handle),
            Node::EndPoint(_) => {
                let function = self.function_for(node, &cx.tlps.get(handle).repr);
                let end_point = self.end_point_mut(function);
                if !end_point.rejects(cx, ingress, handle) {
                    end_point.handle_tlp(cx, ingress, handle);
                }
            }
        }
    }
}
