//! The parts of a fabric, for those who show results: names, rates, and the hierarchy.

use crate::config::BusMode;
pub use crate::config::numbering::NodeKind;
use crate::kernel::ids::{LinkId, NodeId, PortId};
use crate::packet::attribution::Place;
use crate::packet::routing::BridgeRegisters;
use tlplab_units::{Bdf, Duration, Generation, LinkMode, LinkRate, Mps, Width};

/// The whole fabric.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// By `NodeId`.
    pub nodes: Vec<NodeInfo>,
    /// By `LinkId`, in the order of their names.
    pub links: Vec<LinkInfo>,
    /// By `PortId`.
    pub ports: Vec<PortInfo>,
    /// By `FlowId`.
    pub flows: Vec<FlowInfo>,
    /// Names of the stages between the root complex, memory and the processor.
    pub host_stages: Vec<String>,
    /// Names of the stages at the ends of links.
    pub link_stages: Vec<String>,
}

/// A node.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    /// The component's name.
    pub name: String,
    /// The kind of component.
    pub kind: NodeKind,
    /// The ID it answers with.
    pub id: Bdf,
}

/// A link.
#[derive(Clone, Debug)]
pub struct LinkInfo {
    /// The name of the component below it.
    pub name: String,
    /// Data rate.
    pub generation: Generation,
    /// Lanes.
    pub width: Width,
    /// Framed or flits.
    pub mode: LinkMode,
    /// Payload limit in force.
    pub mps: Mps,
    /// Bytes to time.
    pub rate: LinkRate,
    /// Time in recovery.
    pub recovery: Duration,
    /// It is no link: a device's way over the parallel bus of this mode, which it shares with the others there.
    pub bus: Option<BusMode>,
    /// The port that transmits upwards, then the one that transmits downwards.
    pub ports: [PortId; 2],
}

/// A port.
#[derive(Clone, Debug)]
pub struct PortInfo {
    /// `ssd`, `sw0`, `host.rp0`: the component, and of the host the root port.
    pub name: String,
    /// Its node.
    pub node: NodeId,
    /// Its link.
    pub link: LinkId,
    /// 0: it transmits towards the root complex.
    pub direction: u8,
    /// Max_Payload_Size as software sets it.
    pub mps: Mps,
    /// Registers of its bridge, if it is a bridge's.
    pub bridge: Option<BridgeRegisters>,
}

/// A flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowInfo {
    /// Its name.
    pub name: String,
    /// The component that owns it.
    pub owner: String,
    /// `read`, `write`, `mmio-read`, …
    pub operation: String,
    /// Its target: `host` or a component.
    pub target: String,
}

impl Topology {
    /// The name of a place: `ssd → sw0` for an egress and its wire, the component's for a node, `host.io_cache` for a stage of the host,
    /// `ssd → sw0: tx_transaction` for one of a link.
    pub fn place_name(&self, place: Place) -> String {
        let index = usize::from(place.0);
        match self.ports.get(index) {
            Some(_) => self.direction_name(PortId(place.0)),
            None => match self.nodes.get(index - self.ports.len()) {
                Some(node) => node.name.clone(),
                None => {
                    let mut stages = self.host_stages.iter().chain(&self.link_stages);
                    stages.nth(index - self.ports.len() - self.nodes.len()).cloned().unwrap_or_default()
                }
            },
        }
    }

    /// The names of all places.
    pub fn place_names(&self) -> Vec<String> {
        (0..self.places()).map(|i| self.place_name(Place(i as u16))).collect()
    }

    /// The number of places.
    pub(crate) fn places(&self) -> usize {
        self.ports.len() + self.nodes.len() + self.host_stages.len() + self.link_stages.len()
    }

    /// `ssd → sw0`: from a port to its peer.
    pub fn direction_name(&self, port: PortId) -> String {
        let from = &self.ports[port.index()];
        let link = &self.links[from.link.index()];
        let to = link.ports[usize::from(1 - from.direction)];
        format!("{} → {}", from.name, self.ports[to.index()].name)
    }

    /// The link and direction of a place, if it is an egress.
    pub fn place_link(&self, place: Place) -> Option<(LinkId, u8)> {
        self.ports.get(usize::from(place.0)).map(|port| (port.link, port.direction))
    }
}
