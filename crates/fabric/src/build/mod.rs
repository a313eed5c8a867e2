//! From a configuration to a fabric that runs.

mod config_space;
pub(crate) mod numbering;
mod ports;

use crate::build::numbering::Numbering;
use crate::config::{
    DeviceConfig, EnumerationTime, FabricConfig, FaultKind, Fidelity, Forwarding, HEADER_CHECK,
    HostMemoryError,
};
use crate::kernel::ids::{FlowId, LinkId, NodeId, PortId};
use crate::kernel::queue::EventQueue;
use crate::link::port_buffer::PortBuffers;
use crate::node::Node;
use crate::node::bus::{self, Bridge, Bus};
use crate::node::end_point::EndPoint;
use crate::node::end_point::core::Core;
use crate::node::errors::ErrorLog;
use crate::node::function::Function;
use crate::node::initiator::Initiator;
use crate::node::intx::WireController;
use crate::node::root::host_memory::{self, CachedMemory, MemorySystem};
use crate::node::root::host_path::{self, HostPath};
use crate::node::root::memory::MemoryServer;
use crate::node::root::processor::RegisterAccesses;
use crate::node::root::{Program, Root, Worker};
use crate::node::routing::BridgeRegisters;
use crate::node::switch::Switch;
use crate::observe::probe::{Probe, TraceHash};
use crate::observe::sample::Samples;
use crate::observe::timeline::Timeline;
use crate::packet::transactions::{FlowStatistics, Transactions};
use crate::sim::Fabric;
use crate::software::enumeration::Enumeration;
use crate::software::link_state::{DOWN, UP};
use crate::topology::{FlowInfo, LinkInfo, NodeInfo, NodeKind, PortInfo, Topology};
use std::collections::{BTreeMap, VecDeque};
use tlplab_cfgspace::LayoutError;
use tlplab_device::{
    Context, Device, DeviceInfo, Event, HostMemory, HostProgram, HostRam, Identity, IdentityError, Random,
    TlpDevice, TlpIdentity,
};
use tlplab_transaction::{Completer, Requester, RequesterConfig, TagBits, TagConfig};
use tlplab_units::{Bdf, Mps, Mrrs, Rcb, Time};
use tlplab_wire::tlp::Attributes;

/// Why a configuration is not a fabric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Two components have one name.
    #[error("there are two components called {0:?}")]
    DuplicateName(String),
    /// The parent does not exist, or is no switch or root port.
    #[error("{component}: there is no switch, bus or root port called {under:?} that it can be under")]
    UnknownParent {
        /// The component.
        component: String,
        /// What it names.
        under: String,
    },
    /// A parallel bus that cannot be.
    #[error("{bus}: {why}")]
    Bus {
        /// The bus.
        bus: String,
        /// Why it cannot.
        why: &'static str,
    },
    /// Two components under one root port, which is one end of one link.
    #[error("{first} and {second} are both under {port}; a root port has one link: put a switch between")]
    PortTaken {
        /// The root port.
        port: String,
        /// One.
        first: String,
        /// The other.
        second: String,
    },
    /// Switches under each other in a circle.
    #[error("{0} is not connected to the host: its parents form a loop")]
    Loop(String),
    /// A function of a device that it cannot be.
    #[error("{component}: it cannot be a function of {device:?}: {why}")]
    Function {
        /// The component.
        component: String,
        /// Whose function it would be.
        device: String,
        /// Why it cannot.
        why: &'static str,
    },
    /// A function's configuration space cannot be laid out.
    #[error("{component}: configuration space: {error}")]
    ConfigSpace {
        /// The component.
        component: String,
        /// What is wrong.
        error: LayoutError,
    },
    /// A device's identity cannot be.
    #[error("{component}: {error}")]
    Identity {
        /// The component.
        component: String,
        /// What is wrong.
        error: IdentityError,
    },
    /// A port's buffers or policies cannot be.
    #[error("{component}, {end} port: {error}")]
    Port {
        /// The component below the link.
        component: String,
        /// "upper" or "lower".
        end: &'static str,
        /// What is wrong.
        error: tlplab_datalink::ConfigError,
    },
    /// What the host has before its memory cannot be.
    #[error("host: {0}")]
    HostMemory(#[from] HostMemoryError),
    /// More than bus numbers or address space allow.
    #[error("{0}")]
    TooLarge(&'static str),
    /// A device was given without its configuration or the other way round.
    #[error("device {0:?} has a model but no configuration, or a configuration but no model")]
    Unpaired(String),
}

impl BuildError {
    /// The component that it is about, if it is about one.
    pub fn component(&self) -> Option<&str> {
        match self {
            Self::DuplicateName(component) | Self::Loop(component) | Self::Unpaired(component) => {
                Some(component)
            }
            Self::UnknownParent { component, .. }
            | Self::Bus { bus: component, .. }
            | Self::PortTaken { second: component, .. }
            | Self::Function { component, .. }
            | Self::ConfigSpace { component, .. }
            | Self::Identity { component, .. }
            | Self::Port { component, .. } => Some(component),
            Self::HostMemory(_) | Self::TooLarge(_) => None,
        }
    }
}

/// Collects what a fabric is made of.
pub struct Builder {
    config: FabricConfig,
    devices: BTreeMap<String, Behaviour>,
    programs: Vec<(HostBehaviour, Vec<FlowInfo>)>,
    probe: Option<Box<dyn Probe>>,
    memory: Option<Box<dyn HostMemory + Send>>,
}

struct Behaviour {
    device: Box<dyn Device>,
    outside: bool,
    core: Option<Box<dyn TlpDevice>>,
    flows: Vec<FlowInfo>,
    finishes: bool,
}

struct HostBehaviour {
    program: Option<Box<dyn HostProgram>>,
    finishes: bool,
}

impl Builder {
    /// A fabric of this configuration, whose devices follow.
    pub fn new(config: FabricConfig) -> Self {
        Self { config, devices: BTreeMap::new(), programs: Vec::new(), probe: None, memory: None }
    }

    /// What the device `name` does. `flows` are its streams, from 0; the last serves all further streams, and one is made if there
    /// is none. A run may wait for a device that `finishes`.
    pub fn device(
        &mut self,
        name: &str,
        device: Box<dyn Device>,
        flows: Vec<FlowInfo>,
        finishes: bool,
    ) -> &mut Self {
        self.devices.insert(name.into(), Behaviour { device, outside: false, core: None, flows, finishes });
        self
    }

    /// A device at the level of TLPs. `flows` are its reads and its writes.
    pub fn tlp_device(&mut self, name: &str, core: Box<dyn TlpDevice>, flows: Vec<FlowInfo>) -> &mut Self {
        let identity = core.identity();
        if let Some(config) = self.config.devices.iter_mut().find(|config| config.name == name) {
            config.link.mps = config.link.mps.min(identity.max_payload);
            config.tags = if identity.extended_tags { 256 } else { 32 };
        }
        let device = Box::new(Shown(identity));
        let behaviour = Behaviour { device, outside: false, core: Some(core), flows, finishes: false };
        self.devices.insert(name.into(), behaviour);
        self
    }

    /// A device that is driven from outside: its events are taken with [`Fabric::take_device_events`], its actions given with
    /// [`Fabric::inject`]. `device` only tells its identity.
    pub fn outside_device(&mut self, name: &str, device: Box<dyn Device>, flows: Vec<FlowInfo>) -> &mut Self {
        self.devices
            .insert(name.into(), Behaviour { device, outside: true, core: None, flows, finishes: false });
        self
    }

    /// From now on a device is driven from outside. What it is, if it is there.
    pub fn drive_from_outside(&mut self, name: &str) -> Option<Identity> {
        let behaviour = self.devices.get_mut(name)?;
        behaviour.outside = true;
        behaviour.core = None;
        behaviour.finishes = false;
        Some(behaviour.device.identity())
    }

    /// A program on the host, with the flows of its streams.
    pub fn program(
        &mut self,
        program: Box<dyn HostProgram>,
        flows: Vec<FlowInfo>,
        finishes: bool,
    ) -> &mut Self {
        self.programs.push((HostBehaviour { program: Some(program), finishes }, flows));
        self
    }

    /// A program that is driven from outside; see [`Fabric::take_host_events`]. A run waits for it to say that it has finished.
    pub fn outside_program(&mut self, flows: Vec<FlowInfo>) -> &mut Self {
        self.programs.push((HostBehaviour { program: None, finishes: true }, flows));
        self
    }

    /// The contents of host memory are somebody else's, such as a guest's.
    pub fn memory(&mut self, memory: Box<dyn HostMemory + Send>) -> &mut Self {
        self.memory = Some(memory);
        self
    }

    /// Who watches.
    pub fn probe(&mut self, probe: Box<dyn Probe>) -> &mut Self {
        self.probe = Some(probe);
        self
    }

    /// Builds the fabric and starts its devices and programs at time 0.
    ///
    /// # Errors
    /// [`BuildError`] names the component and what is wrong.
    pub fn build(mut self) -> Result<Fabric, BuildError> {
        for device in &self.config.devices {
            let Some(behaviour) = self.devices.get(&device.name) else {
                return Err(BuildError::Unpaired(device.name.clone()));
            };
            let identity = behaviour.device.identity();
            identity
                .check()
                .map_err(|error| BuildError::Identity { component: device.name.clone(), error })?;
        }
        if let Some(name) =
            self.devices.keys().find(|name| !self.config.devices.iter().any(|d| d.name == **name))
        {
            return Err(BuildError::Unpaired(name.clone()));
        }
        host_memory::check(&self.config.host)?;
        bus::prepare(&mut self.config)?;
        let numbering = Numbering::of(&self.config)?;
        let mut fabric = self.empty_fabric(&numbering)?;
        self.add_nodes(&numbering, &mut fabric)?;
        fabric.show_trained_links();
        fabric.start_buses();
        self.start_links(&numbering, &mut fabric);
        match self.config.host.enumeration {
            EnumerationTime::Before => fabric.enumerate_before(),
            EnumerationTime::Simulated => fabric.enumerate_in_time(),
            EnumerationTime::Outside => fabric.hand_over(),
        }
        if let Some(probe) = &mut fabric.probe {
            probe.begin(&fabric.topology);
        }
        fabric.settle();
        Ok(fabric)
    }

    fn empty_fabric(&mut self, numbering: &Numbering) -> Result<Fabric, BuildError> {
        let config = &self.config;
        let mut host_stages = host_path::names_of(&config.host);
        host_stages.extend(host_memory::names_of(&config.host));
        let mut topology = Topology { host_stages, ..Topology::default() };
        for (i, name) in numbering.nodes.iter().enumerate() {
            let kind = numbering.kind(i);
            topology.nodes.push(NodeInfo { name: name.clone(), kind, id: Bdf(0) });
        }
        for slot in &numbering.ports {
            topology.ports.push(PortInfo {
                name: slot.name.clone(),
                node: NodeId(slot.node as u16),
                link: LinkId(slot.link as u16),
                direction: slot.direction,
                bridge: None,
            });
        }
        for (i, link) in numbering.links.iter().enumerate() {
            let c = numbering.link_config(config, i);
            let bus = config.buses.iter().find(|bus| bus.name == c.under);
            topology.links.push(LinkInfo {
                name: link.name.clone(),
                generation: c.generation,
                width: c.width,
                mode: c.mode,
                mps: link.mps,
                rate: c.rate(),
                recovery: c.recovery,
                bus: bus.map(|bus| bus.mode),
                ports: [PortId(link.lower as u16), PortId(link.upper as u16)],
            });
        }
        let mut timeline = Timeline::new();
        let mut ports = Vec::new();
        for (i, slot) in numbering.ports.iter().enumerate() {
            ports.push(ports::make_port(config, numbering, i, slot, &mut timeline)?);
        }
        ports::establish(config, numbering, &mut ports)?;
        Ok(Fabric {
            now: Time::ZERO,
            queue: EventQueue::default(),
            tlps: Default::default(),
            transactions: Transactions::default(),
            port_buffers: PortBuffers::new(config, numbering),
            ports,
            nodes: Vec::new(),
            root_node: NodeId(numbering.root as u16),
            topology,
            device_infos: Vec::new(),
            enumeration: Enumeration::new(&config.host),
            length_only: config.fidelity == Fidelity::LengthOnly,
            warmup: config.warmup,
            flows: Vec::new(),
            timeline,
            samples: Samples::new(Random::keyed(config.seed, "fabric", "samples")),
            hash: TraceHash::default(),
            probe: self.probe.take(),
            agenda: VecDeque::new(),
            pumps: VecDeque::new(),
            clocked: Vec::new(),
            workers: Vec::new(),
            outside: Vec::new(),
            outside_host: Vec::new(),
            protocol_errors: Vec::new(),
            errors: ErrorLog::default(),
            outages: Vec::new(),
            fault: None,
            events: 0,
            ended: 0,
            refused: 0,
            unexpected: 0,
            interrupts: 0,
            messages: 0,
            link_events: Vec::new(),
            actions: Vec::new(),
            host_actions: Vec::new(),
        })
    }

    fn add_nodes(&mut self, numbering: &Numbering, fabric: &mut Fabric) -> Result<(), BuildError> {
        for (i, name) in numbering.nodes.iter().enumerate() {
            let ports: Vec<_> = numbering.ports_of(i).map(|p| PortId(p as u16)).collect();
            let node = match numbering.kind(i) {
                NodeKind::Root => Node::Root(Box::new(self.make_root(numbering, ports, fabric)?)),
                NodeKind::Switch => {
                    let switch = self.config.switches.iter().find(|s| s.name == *name).expect("laid out");
                    let (latency, forwarding) = (switch.latency, switch.forwarding);
                    let functions = config_space::of_switch(switch, numbering, &self.config, &ports)?;
                    let bridges = vec![BridgeRegisters::RESET; ports.len()];
                    Node::Switch(Switch { latency, forwarding, ports, functions, bridges, id: Bdf(0) })
                }
                NodeKind::Bridge => {
                    let bus = self.config.buses.iter().find(|b| b.name == *name).expect("laid out");
                    let function = config_space::of_bridge(bus, numbering, &self.config, ports[0])?;
                    let on_bus = Bus::new(bus, &bus::members(&self.config, numbering, &ports));
                    Node::Bridge(Box::new(Bridge::new(bus, ports, function, on_bus)))
                }
                NodeKind::EndPoint => {
                    let device = self.config.devices.iter().find(|d| d.name == *name).expect("laid out");
                    let device = device.clone();
                    Node::EndPoint(Box::new(self.make_end_point(i, &device, numbering, fabric)?))
                }
            };
            fabric.nodes.push(node);
        }
        fabric.add_stages(|link| numbering.link_config(&self.config, link));
        for i in 0..fabric.ports.len() {
            let peer = fabric.ports[i].peer;
            let forwarding = |port| match fabric.node_of(port) {
                Node::Switch(switch) => switch.forwarding,
                _ => Forwarding::StoreAndForward,
            };
            let cuts = forwarding(peer) != Forwarding::StoreAndForward;
            let checked = [peer, PortId(i as u16)].map(forwarding).contains(&Forwarding::HeaderChecked);
            fabric.ports[i].header_check = if checked { HEADER_CHECK } else { 0 };
            // Whether there is room for a TLP is known when all of it is there.
            let drops = fabric.ports[i].engine.config().flow_control.drops();
            fabric.ports[i].peer_cuts_through = cuts && !drops;
        }
        let (places, flows) = (fabric.topology.places(), fabric.topology.flows.len());
        for _ in 0..flows {
            let statistics = FlowStatistics::new(places, flows, &mut fabric.timeline);
            fabric.flows.push(statistics);
        }
        Ok(())
    }

    fn make_root(
        &mut self,
        numbering: &Numbering,
        ports: Vec<PortId>,
        fabric: &mut Fabric,
    ) -> Result<Root, BuildError> {
        let host = self.config.host.clone();
        let id = Bdf(0);
        let mps = numbering.links.iter().map(|l| l.mps).min().unwrap_or(Mps::ALL[0]);
        let requester = RequesterConfig {
            tags: tag_config(
                host.tags.min(host.bridge.and_then(|bridge| bridge.entries).unwrap_or(u16::MAX)),
            ),
            mps,
            mrrs: Mrrs::new(mps.bytes()).unwrap_or(Mrrs::ALL[0]),
            completion_timeout: Some(host.completion_timeout),
            attributes: Attributes { digest: host.ecrc, ..Attributes::default() },
            ..RequesterConfig::new(id)
        };
        let (mut flows, mut programs) = (Vec::new(), Vec::new());
        for (i, (behaviour, infos)) in std::mem::take(&mut self.programs).into_iter().enumerate() {
            let first = flows.len() as u16;
            let infos = some_flow(infos, &host.name, &format!("{}.cpu{i}", host.name), "mmio", "device");
            flows.extend(infos.into_iter().map(|info| add_flow(fabric, info)));
            let streams = (first, flows.len() as u16 - first);
            if behaviour.finishes {
                fabric.workers.push(Worker {
                    node: NodeId(numbering.root as u16),
                    owner: i,
                    finished: false,
                });
            }
            programs.push(Program { program: behaviour.program, next_op: 0, streams });
        }
        let enumerates = match host.enumeration {
            EnumerationTime::Simulated => true,
            EnumerationTime::Before => may_go_down(&self.config),
            EnumerationTime::Outside => false,
        };
        if enumerates {
            let name = format!("{}.enumeration", host.name);
            let infos = some_flow(Vec::new(), &host.name, &name, "configuration", "device");
            fabric.enumeration.program = Some(programs.len());
            fabric.enumeration.stream = flows.len() as u16;
            programs.push(Program { program: None, next_op: 0, streams: (flows.len() as u16, 1) });
            flows.extend(infos.into_iter().map(|info| add_flow(fabric, info)));
        }
        let stream = flows.len() as u16;
        if flows.is_empty() {
            flows = some_flow(Vec::new(), &host.name, &host.name, "peer", "device")
                .into_iter()
                .map(|info| add_flow(fabric, info))
                .collect();
        }
        let tags = fabric.timeline.add_gauge();
        let peer_split = crate::node::root::peer::Splitter::new(stream);
        let places = (numbering.ports.len() + numbering.nodes.len()) as u16;
        let stages = host_path::names_of(&host).len() as u16;
        let own = || Box::new(HostRam::new(0x10_0000, 0xBFF0_0000));
        let memory = self.memory.take().unwrap_or_else(|| own());
        Ok(Root {
            latency: host.latency,
            functions: config_space::of_root(&host, numbering, &self.config, &ports)?,
            bridges: vec![BridgeRegisters::RESET; ports.len()],
            ports,
            registers: RegisterAccesses::default(),
            completer: Completer { id, rcb: host.rcb, mps, policy: host.completions },
            memory: CachedMemory::new(&host, memory),
            memory_system: MemorySystem::new(&host, self.config.seed, places + stages),
            path: HostPath::new(&host, places),
            addresses: host.addresses,
            server: MemoryServer::new(host.memory),
            initiator: Initiator {
                requester: Requester::new(requester),
                submissions: VecDeque::new(),
                flows,
                timer: Time::NEVER,
                tags,
            },
            programs,
            peer_to_peer: host.peer_to_peer,
            splitter: peer_split,
            controller: WireController::default(),
        })
    }

    fn make_end_point(
        &mut self,
        node: usize,
        config: &DeviceConfig,
        numbering: &Numbering,
        fabric: &mut Fabric,
    ) -> Result<EndPoint, BuildError> {
        let behaviour = self.devices.remove(&config.name).expect("checked before");
        let id = Bdf(0);
        let (device, source) = numbering.function(node);
        let port = numbering.ports_of(device).next().expect("function 0 has a port");
        let link = numbering.link_config(&self.config, numbering.ports[port].link);
        let mps = numbering.links[numbering.ports[port].link].mps;
        let functions: Vec<_> =
            numbering.functions[node].iter().map(|f| (f.number, NodeId(f.node as u16))).collect();
        let first = &numbering.nodes[device];
        let on_bus = self.config.devices.iter().any(|d| d.name == *first && d.bus.is_some());
        let numbers: Vec<u8> = numbering.functions[device].iter().map(|f| f.number).collect();
        let space =
            config_space::of_device(&*behaviour.device, config, link, &numbers, &self.config, on_bus)?;
        let attributes = Attributes {
            relaxed_ordering: config.relaxed_ordering,
            id_based_ordering: config.id_based_ordering,
            digest: self.config.host.ecrc,
            ..Attributes::default()
        };
        let requester = RequesterConfig {
            tags: tag_config(config.tags),
            mps,
            mrrs: config.mrrs,
            split: config.cut.unwrap_or_else(|| behaviour.device.request_policy()),
            completion_timeout: Some(config.completion_timeout),
            attributes,
            ..RequesterConfig::new(id)
        };
        let infos = some_flow(behaviour.flows, &config.name, &config.name, "dma", "host");
        let flows = infos.into_iter().map(|info| add_flow(fabric, info)).collect();
        if behaviour.finishes {
            fabric.workers.push(Worker { node: NodeId(node as u16), owner: 0, finished: false });
        }
        let core = behaviour.core.map(|device| Box::new(Core::new(device, config.completion_timeout)));
        let mut function = Function::new(space, id, Time::ZERO + config.ready);
        if core.is_some() {
            fabric.clocked.push(NodeId(node as u16));
            function.msix = None; // the table is the core's
        }
        Ok(EndPoint {
            port: PortId(port as u16),
            source,
            functions,
            latency: config.latency,
            mrrs: config.mrrs,
            ready: config.ready,
            interrupt_mode: function.space.interrupt_mode(),
            function,
            started: false,
            device: (!behaviour.outside).then_some(behaviour.device),
            core,
            next_op: 0,
            first_op: 0,
            bars: [None; 6],
            bus_master: false,
            completer: Completer {
                id,
                rcb: Rcb::ALL[1],
                mps,
                policy: tlplab_transaction::CompletionPolicy::Max,
            },
            initiator: Initiator {
                requester: Requester::new(requester),
                submissions: VecDeque::new(),
                flows,
                timer: Time::NEVER,
                tags: fabric.timeline.add_gauge(),
            },
            posted_writes: config.posted_writes,
            on_bus,
        })
    }

    fn start_links(&mut self, numbering: &Numbering, fabric: &mut Fabric) {
        for (i, link) in numbering.links.iter().enumerate() {
            let config = numbering.link_config(&self.config, i);
            let lower = PortId(link.lower as u16);
            if !config.trained {
                fabric.link_up(lower);
                fabric.link_up(PortId(link.upper as u16));
            }
            for fault in &config.faults {
                if let FaultKind::Down { at, until } = fault.kind {
                    fabric.plan_link_state(lower, at, DOWN);
                    if let Some(until) = until {
                        fabric.plan_link_state(lower, until, UP);
                    }
                }
            }
        }
        for i in 0..fabric.ports.len() {
            fabric.try_transmit(PortId(i as u16));
            fabric.arm(PortId(i as u16));
        }
    }
}

/// What a device at the level of TLPs shows to those who build configuration spaces.
struct Shown(TlpIdentity);

impl Device for Shown {
    fn identity(&self) -> Identity {
        self.0.function.clone()
    }
    fn layout(&self) -> tlplab_cfgspace::Layout {
        self.0.layout()
    }
    fn handle(&mut self, _: &mut Context<'_>, _: Event) {}
}

/// Software that configures what comes back works in simulated time.
fn may_go_down(config: &FabricConfig) -> bool {
    let links = config.switches.iter().map(|switch| &switch.uplink);
    let links = links.chain(config.buses.iter().map(|bus| &bus.uplink));
    let mut faults =
        links.chain(config.devices.iter().map(|device| &device.link)).flat_map(|link| &link.faults);
    faults.any(|fault| matches!(fault.kind, FaultKind::Down { .. }))
}

fn some_flow(infos: Vec<FlowInfo>, owner: &str, name: &str, operation: &str, target: &str) -> Vec<FlowInfo> {
    if !infos.is_empty() {
        return infos;
    }
    let text = |s: &str| s.to_string();
    vec![FlowInfo { name: text(name), owner: text(owner), operation: text(operation), target: text(target) }]
}

fn add_flow(fabric: &mut Fabric, info: FlowInfo) -> FlowId {
    fabric.topology.flows.push(info);
    FlowId(fabric.topology.flows.len() as u16 - 1)
}

fn tag_config(tags: u16) -> TagConfig {
    let bits = match tags {
        0..=32 => TagBits::Five,
        33..=256 => TagBits::Eight,
        257..=768 => TagBits::Ten,
        _ => TagBits::Fourteen,
    };
    TagConfig { bits, limit: Some(tags), ..TagConfig::default() }
}

impl Fabric {
    /// What can be told of devices and links, for results.
    pub fn devices(&self) -> &[DeviceInfo] {
        &self.device_infos
    }

    /// The ID a component answers with.
    pub fn id_of(&self, name: &str) -> Option<Bdf> {
        self.topology.nodes.iter().find(|n| n.name == name).map(|n| n.id)
    }
}
