//! Copies of nodes as they stand: all of their state, or a refusal if part of it is elsewhere.

use super::end_point::EndPoint;
use super::root::Root;
use super::root::host_memory::CachedMemory;
use super::root::programs::Program;
use super::{Node, Nodes};
use crate::observe::topology::Topology;

/// The reason that a run cannot be copied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSnapshot {
    /// A device.
    #[error(
        "device {0} cannot be copied: part of its state is outside of the simulation, as that of a device in Python, C or RTL, or with a \
         file or a network behind it"
    )]
    Device(String),
    /// A program of the host, by its first flow.
    #[error(
        "host program {0} cannot be copied: part of its state is outside of the simulation, as that of a driver in Python or a guest"
    )]
    Program(String),
    /// A custom node.
    #[error("node {0} cannot be copied: its model gives no copy of itself (NodeModel::snapshot)")]
    Node(String),
    /// A link by the component below it: it has a custom channel or data link layer.
    #[error(
        "the link above {0} cannot be copied: its channel or data link layer gives no copy of itself (ChannelModel::snapshot, \
         CustomLinkLayer::snapshot)"
    )]
    Link(String),
    /// Host memory.
    #[error("host memory cannot be copied: a guest shares it")]
    Memory,
}

impl Nodes {
    /// A copy of all nodes. `software` is the host program that is the fabric's own.
    pub(crate) fn snapshot(&self, topology: &Topology, software: Option<usize>) -> Result<Self, NoSnapshot> {
        let copy = |node: &Node| {
            Ok(match node {
                Node::Switch(switch) => Node::Switch(switch.clone()),
                Node::Bridge(bridge) => Node::Bridge(bridge.clone()),
                Node::Custom(own) => {
                    let name = || topology.nodes[own.node.index()].name.clone();
                    Node::Custom(Box::new(own.snapshot().ok_or_else(|| NoSnapshot::Node(name()))?))
                }
                Node::Root(root) => Node::Root(Box::new(root.snapshot(topology, software)?)),
                Node::EndPoint(end_point) => {
                    let name = || topology.nodes[end_point.node.index()].name.clone();
                    let copy = end_point.snapshot().ok_or_else(|| NoSnapshot::Device(name()))?;
                    Node::EndPoint(Box::new(copy))
                }
            })
        };
        Ok(Self { all: self.all.iter().map(copy).collect::<Result<_, _>>()?, root: self.root })
    }
}

impl EndPoint {
    fn snapshot(&self) -> Option<Self> {
        if self.core.is_some() {
            return None; // the state of RTL is in its library
        }
        Some(Self {
            device: Some(self.device.as_ref()?.snapshot()?),
            core: None,
            node: self.node,
            port: self.port,
            source: self.source,
            number: self.number,
            functions: self.functions.clone(),
            latency: self.latency,
            answer_time: self.answer_time,
            mrrs: self.mrrs,
            ready: self.ready,
            function: self.function.clone(),
            started: self.started,
            stopped: self.stopped.clone(),
            next_op: self.next_op,
            first_op: self.first_op,
            bars: self.bars,
            bus_master: self.bus_master,
            interrupt_mode: self.interrupt_mode,
            completer: self.completer,
            initiator: self.initiator.clone(),
            posted_writes: self.posted_writes,
            on_bus: self.on_bus,
            ats: self.ats.clone(),
        })
    }
}

impl Root {
    fn snapshot(&self, topology: &Topology, software: Option<usize>) -> Result<Self, NoSnapshot> {
        let program = |(number, slot): (usize, &Program)| {
            let program = slot.program.as_ref().and_then(|program| program.snapshot());
            if program.is_none() && software != Some(number) {
                let flow = self.initiator.flow(slot.streams.0);
                return Err(NoSnapshot::Program(topology.flows[flow.index()].name.clone()));
            }
            Ok(Program { program, ..*slot })
        };
        let ram = self.memory.ram.snapshot().ok_or(NoSnapshot::Memory)?;
        Ok(Self {
            memory: CachedMemory { ram, cache: self.memory.cache.clone() },
            programs: self.programs.iter().enumerate().map(program).collect::<Result<_, _>>()?,
            node: self.node,
            latency: self.latency,
            ports: self.ports.clone(),
            functions: self.functions.clone(),
            bridges: self.bridges.clone(),
            registers: self.registers.clone(),
            completer: self.completer,
            memory_system: self.memory_system.clone(),
            agent: self.agent.clone(),
            path: self.path.clone(),
            domains: self.domains.clone(),
            turns: self.turns.clone(),
            server: self.server.clone(),
            initiator: self.initiator.clone(),
            peer_to_peer: self.peer_to_peer,
            splitter: self.splitter.clone(),
            controller: self.controller.clone(),
            pmes: self.pmes.clone(),
            addresses: self.addresses.clone(),
        })
    }
}
