//! The input of nodes' handlers besides their own state: the clock, the TLPs, the links, and the recorders.

use super::Links;
use super::agenda::Agenda;
use crate::kernel::Kernel;
use crate::kernel::ids::{FlowId, NodeId, PortId};
use crate::kernel::queue::EventKind;
use crate::observe::Observe;
use crate::observe::probe::Probe;
use crate::observe::topology::Topology;
use crate::packet::attribution::Place;
use crate::packet::slab::TlpSlab;
use crate::packet::transactions::Transactions;
use std::ops::Range;
use tlplab_device::DeviceInfo;
use tlplab_transaction::Access;
use tlplab_units::{Bdf, Duration, Mps, Time};

/// All of a fabric but its nodes and the host's software. A node reaches others by links only, which are here.
pub(crate) struct Context {
    pub(crate) kernel: Kernel,
    pub(crate) tlps: TlpSlab,
    pub(crate) transactions: Transactions,
    pub(crate) links: Links,
    pub(crate) observe: Observe,
    pub(crate) agenda: Agenda,
    pub(crate) topology: Topology,
    pub(crate) host: Host,
    /// TLPs have lengths, and no data unless somebody needs them.
    pub(crate) length_only: bool,
    /// The description of devices for devices and programs.
    pub(crate) devices: Vec<DeviceInfo>,
    pub(crate) workers: Vec<Worker>,
    /// The reason that the run cannot go on: the component and its message.
    pub(crate) fault: Option<String>,
}

/// The properties of the host that other nodes need.
#[derive(Clone)]
pub(crate) struct Host {
    /// The root complex.
    pub(crate) node: NodeId,
    /// The stages that the processor's own requests pass before the root complex has them.
    pub(crate) processor_stages: [Option<(Place, Duration)>; 2],
    /// The addresses of its interrupt controller.
    pub(crate) interrupt_addresses: Range<u64>,
    /// The flow of messages of bridges.
    pub(crate) messages: FlowId,
    /// The flow of interrupts of bridges.
    pub(crate) interrupts: FlowId,
    /// Devices that may master the bus may start: the host's software is not just configuring them.
    pub(crate) lets_start: bool,
    /// Functions that may ask for translations and use them, as software has told the IOMMU and them.
    pub(crate) translators: Vec<Translator>,
}

/// A function that may ask for translations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Translator {
    pub(crate) function: NodeId,
    /// Invalidations that it can queue.
    pub(crate) queue_depth: u8,
    /// Since when.
    pub(crate) since: Time,
}

impl Host {
    /// True if a write goes to the interrupt controller.
    pub(crate) fn is_interrupt(&self, access: Access) -> bool {
        self.interrupt_addresses.contains(&access.address)
    }
}

/// A program or device whose end a run may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Worker {
    pub(crate) node: NodeId,
    pub(crate) owner: usize,
    pub(crate) finished: bool,
}

impl Context {
    /// A copy, which `probe` observes.
    pub(crate) fn snapshot(&self, probe: Option<Box<dyn Probe>>) -> Self {
        Self {
            kernel: self.kernel.clone(),
            tlps: self.tlps.clone(),
            transactions: self.transactions.clone(),
            links: self.links.clone(),
            observe: self.observe.snapshot(probe),
            agenda: self.agenda.clone(),
            topology: self.topology.clone(),
            host: self.host.clone(),
            length_only: self.length_only,
            devices: self.devices.clone(),
            workers: self.workers.clone(),
            fault: self.fault.clone(),
        }
    }

    /// The present.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        self.kernel.now()
    }

    #[inline]
    pub(crate) fn schedule(&mut self, time: Time, kind: EventKind, at: u32, data: u64) {
        self.kernel.schedule(time, kind, at, data);
    }

    /// Nodes are numbered after the ports in events and places.
    pub(crate) fn node_event(&self, node: NodeId) -> u32 {
        self.links.count() as u32 + u32::from(node.0)
    }

    /// The node of an event at a node.
    pub(crate) fn event_node(&self, at: u32) -> NodeId {
        NodeId((at - self.links.count() as u32) as u16)
    }

    pub(crate) fn place_of(&self, node: NodeId) -> Place {
        Place(self.links.count() as u16 + node.0)
    }

    /// A function, if it may ask for translations.
    pub(crate) fn translator(&self, function: NodeId) -> Option<Translator> {
        self.host.translators.iter().find(|other| other.function == function).copied()
    }

    /// The component with a function that has this ID.
    pub(crate) fn function_with(&self, id: Bdf) -> Option<NodeId> {
        let at = self.topology.nodes.iter().position(|node| node.id == id && id != Bdf(0))?;
        Some(NodeId(at as u16))
    }

    /// The run cannot go on, says a node.
    pub(crate) fn fail(&mut self, node: NodeId, message: String) {
        let name = &self.topology.nodes[node.index()].name;
        self.fault.get_or_insert_with(|| format!("{name}: {message}"));
    }

    /// A program or device says that it has finished.
    pub(crate) fn finished(&mut self, node: NodeId, owner: usize) {
        if let Some(worker) = self.workers.iter_mut().find(|w| w.node == node && w.owner == owner) {
            worker.finished = true;
        }
    }

    /// The Max_Payload_Size that software sets at a port.
    pub(crate) fn planned_payload(&self, port: PortId) -> Mps {
        self.topology.ports[port.index()].mps
    }
}
