//! From a configuration to a fabric that runs.

mod config_space;
mod parts;

use crate::config::numbering::Numbering;
use crate::config::{
    BuildError, DeviceConfig, Direction, DomainConfig, EnumerationTime, FabricConfig, FaultKind, Fidelity,
    Forwarding, HostMemoryError, MapError, NodeConfig, SwitchConfig,
};
use crate::kernel::Kernel;
use crate::kernel::ids::{FlowId, LinkId, NodeId, PortId};
use crate::link::agenda::Agenda;
use crate::link::bus::{self, Bus};
use crate::link::channel_model::ChannelModel;
use crate::link::context::{Context, Host, Worker};
use crate::link::port_buffer::PortBuffers;
use crate::link::state::{DOWN, RESET, UP, narrowed};
use crate::link::{Links, PortSetup, make};
use crate::node::bridge::Bridge;
use crate::node::custom::{CustomNode, NodeModel};
use crate::node::end_point::EndPoint;
use crate::node::end_point::ats::Ats;
use crate::node::end_point::core::Core;
use crate::node::function::Function;
use crate::node::hardware::Hardware;
use crate::node::initiator::Initiator;
use crate::node::root::Root;
use crate::node::root::domains::{self, Domains};
use crate::node::root::host_memory::{self, CachedMemory, MemorySystem};
use crate::node::root::host_path::{self, HostPath};
use crate::node::root::memory::MemoryServer;
use crate::node::root::peer::Splitter;
use crate::node::root::processor::RegisterAccesses;
use crate::node::root::programs::Program;
use crate::node::root::translation::{self, TranslationAgent};
use crate::node::root::turns::Turns;
use crate::node::switch::Switch;
use crate::node::switch_core::SwitchCore;
use crate::node::wires::WireController;
use crate::node::{Node, Nodes};
use crate::observe::Observe;
use crate::observe::probe::Probe;
use crate::observe::sample::Samples;
use crate::observe::statistics::FlowStatistics;
use crate::observe::topology::{FlowInfo, LinkInfo, NodeInfo, NodeKind, PortInfo, Topology};
use crate::packet::routing::BridgeRegisters;
use crate::packet::slab::TlpHandle;
use crate::packet::transactions::Transactions;
use crate::run::Fabric;
use crate::run::driven::Told;
use crate::software::Software;
pub use parts::Streams;
use parts::{Behaviour, CustomParts, HostBehaviour, Owner};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use tlplab_datalink::{CustomLinkLayer, Engine};
use tlplab_device::{
    Context as DeviceContext, Device, Event, HostMemory, HostProgram, HostRam, Identity, Random, TlpDevice,
    TlpIdentity,
};
use tlplab_transaction::{Completer, Requester, RequesterConfig, TagBits, TagConfig};
use tlplab_units::{Bdf, Duration, Mps, Mrrs, Rcb, Time};
use tlplab_wire::tlp::Attributes;

/// Collects what a fabric is made of: a configuration, and the objects that do something in it.
pub struct Builder {
    config: FabricConfig,
    devices: BTreeMap<String, Behaviour>,
    programs: Vec<HostBehaviour>,
    probe: Option<Box<dyn Probe>>,
    history: bool,
    memory: Option<Box<dyn HostMemory + Send>>,
    own: CustomParts,
}

impl Default for Builder {
    /// A host and nothing below it, as [`FabricConfig::new`] says; [`switch`](Self::switch) and [`attach`](Self::attach) add the rest.
    fn default() -> Self {
        Self::new(FabricConfig::new())
    }
}

impl Builder {
    /// A fabric of this configuration, whose devices follow.
    pub fn new(config: FabricConfig) -> Self {
        Self {
            config,
            devices: BTreeMap::new(),
            programs: Vec::new(),
            probe: None,
            history: false,
            memory: None,
            own: CustomParts::default(),
        }
    }

    /// The configuration so far, to change it.
    pub fn config(&mut self) -> &mut FabricConfig {
        &mut self.config
    }

    /// Adds a switch to the configuration.
    pub fn switch(&mut self, config: SwitchConfig) -> &mut Self {
        self.config.switches.push(config);
        self
    }

    /// Adds an end point to the configuration, and its [`device`](Self::device).
    pub fn attach(&mut self, config: DeviceConfig, device: Box<dyn Device>) -> Streams<'_> {
        let name = config.name.clone();
        self.config.devices.push(config);
        self.device(&name, device)
    }

    /// The model of the device `name`, which the configuration has.
    pub fn device(&mut self, name: &str, device: Box<dyn Device>) -> Streams<'_> {
        self.place(name, Behaviour { device, outside: false, core: None, streams: Owner::default() })
    }

    /// A device at the level of TLPs. Its flows are its reads and its writes.
    pub fn tlp_device(&mut self, name: &str, core: Box<dyn TlpDevice>) -> Streams<'_> {
        let identity = core.identity();
        if let Some(config) = self.config.devices.iter_mut().find(|config| config.name == name) {
            let link = &mut config.link;
            for payload in std::iter::once(&mut link.mps).chain(&mut link.lower.max_payload) {
                *payload = identity.max_payload.min(*payload);
            }
            config.tags = if identity.extended_tags { 256 } else { 32 };
        }
        let device = Box::new(Shown(identity));
        self.place(name, Behaviour { device, outside: false, core: Some(core), streams: Owner::default() })
    }

    /// A device that is driven from outside: see [`Driven`](crate::Driven). `device` only tells its identity.
    pub fn outside_device(&mut self, name: &str, device: Box<dyn Device>) -> Streams<'_> {
        self.place(name, Behaviour { device, outside: true, core: None, streams: Owner::default() })
    }

    fn place(&mut self, name: &str, behaviour: Behaviour) -> Streams<'_> {
        let slot = match self.devices.entry(name.into()) {
            Entry::Vacant(slot) => slot.insert(behaviour),
            Entry::Occupied(slot) => {
                let slot = slot.into_mut();
                *slot = behaviour;
                slot
            }
        };
        Streams(&mut slot.streams)
    }

    /// From now on a device is driven from outside. What it is, if it is there.
    pub fn drive_from_outside(&mut self, name: &str) -> Option<Identity> {
        let behaviour = self.devices.get_mut(name)?;
        behaviour.outside = true;
        behaviour.core = None;
        behaviour.streams.finishes = false;
        Some(behaviour.device.identity())
    }

    /// A program on the host.
    pub fn program(&mut self, program: Box<dyn HostProgram>) -> Streams<'_> {
        self.add_program(HostBehaviour { program: Some(program), streams: Owner::default() })
    }

    /// A program that is driven from outside; see [`Driven`](crate::Driven). A run waits for it to say that it has finished.
    pub fn outside_program(&mut self) -> Streams<'_> {
        self.add_program(HostBehaviour { program: None, streams: Owner::default() }).finishes()
    }

    fn add_program(&mut self, behaviour: HostBehaviour) -> Streams<'_> {
        self.programs.push(behaviour);
        Streams(&mut self.programs.last_mut().expect("just pushed").streams)
    }

    /// The contents of host memory are somebody else's, such as a guest's.
    pub fn memory(&mut self, memory: Box<dyn HostMemory + Send>) -> &mut Self {
        self.memory = Some(memory);
        self
    }

    /// The observer. One that is shared, to be read while the fabric runs, is an `Arc<Mutex<_>>`; several are a `Vec<Box<dyn Probe>>`.
    pub fn probe(&mut self, probe: Box<dyn Probe>) -> &mut Self {
        self.probe = Some(probe);
        self
    }

    /// Keeps, besides what every run keeps, the configuration space of every function over time ([`Fabric::register_histories`]) and the
    /// number of transactions of each flow that are under way ([`Fabric::outstanding_series`]). Nothing that happens depends on it.
    pub fn keep_history(&mut self) -> &mut Self {
        self.history = true;
        self
    }

    /// Adds a custom node to the configuration, between `config.link.under` and the one component that names the node in `under`.
    pub fn node(&mut self, config: NodeConfig, model: Box<dyn NodeModel>) -> &mut Self {
        self.own.nodes.insert(config.name.clone(), model);
        self.config.nodes.push(config);
        self
    }

    /// A custom channel for one direction of the link above the component `link`. It decides about each unit when the unit starts on the wire,
    /// after the faults of the configuration.
    pub fn channel(&mut self, link: &str, direction: Direction, model: Box<dyn ChannelModel>) -> &mut Self {
        self.own.channels.push((link.into(), direction, model));
        self
    }

    /// A custom data link layer for both ends of the link above the component `link`. `make` is called for the lower end and then for the upper end,
    /// with the configuration of that end.
    pub fn link_layer<L: CustomLinkLayer<TlpHandle>>(
        &mut self,
        link: &str,
        mut make: impl FnMut(&tlplab_datalink::Config) -> L + Send + 'static,
    ) -> &mut Self {
        let make = move |config: tlplab_datalink::Config| {
            let layer = make(&config);
            Engine::custom(config, layer)
        };
        self.own.layers.push((link.into(), Box::new(make)));
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
        translation::check(&self.config).map_err(HostMemoryError::from)?;
        let own_tlps =
            |device: &&DeviceConfig| self.devices.get(&device.name).is_some_and(|d| d.core.is_some());
        if let Some(device) = self.config.devices.iter().filter(own_tlps).find(|device| device.ats.is_some())
        {
            return Err(HostMemoryError::from(MapError::OwnTlps(device.name.clone())).into());
        }
        self.own.check(&self.config)?;
        bus::prepare(&mut self.config)?;
        let numbering = Numbering::of(&self.config)?;
        let mut fabric = self.empty_fabric(&numbering)?;
        self.add_nodes(&numbering, &mut fabric)?;
        let Fabric { hardware, software, .. } = &mut fabric;
        hardware.show_trained_links();
        hardware.cx.start_buses();
        self.start_links(&numbering, &mut hardware.cx);
        match self.config.host.enumeration {
            EnumerationTime::Before => software.enumerate_before(hardware),
            EnumerationTime::Simulated => software.enumerate_in_time(hardware),
            EnumerationTime::Outside => software.hand_over(hardware),
        }
        if self.history {
            hardware.keep_register_histories();
        }
        if let Some(probe) = &mut hardware.cx.observe.probe {
            probe.begin(&hardware.cx.topology);
        }
        fabric.settle();
        Ok(fabric)
    }

    fn empty_fabric(&mut self, numbering: &Numbering) -> Result<Fabric, BuildError> {
        let config = &self.config;
        let mut host_stages = host_path::names_of(&config.host);
        host_stages.extend(host_memory::names_of(&config.host));
        host_stages.extend(domains::names_of(&config.host));
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
                mps: slot.mps,
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
        let samples = Samples::new(Random::keyed(config.seed, "fabric", "samples"));
        let mut observe = Observe::new(self.probe.take(), samples, config.warmup);
        let mut ports = Vec::new();
        for (i, slot) in numbering.ports.iter().enumerate() {
            ports.push(make::make_port(config, numbering, i, slot, &mut observe.timeline)?);
        }
        make::establish(config, numbering, &mut ports)?;
        self.own.join_links(config, numbering, &mut ports)?;
        let places = (numbering.ports.len() + numbering.nodes.len()) as u16;
        let root = NodeId(numbering.root as u16);
        let buffers = PortBuffers::new(config, numbering);
        let limited = |domain: &DomainConfig| domain.entries.is_some();
        let holds = config.host.domains.iter().any(limited)
            || config.host.write_turnaround.is_some()
            || config.switches.iter().any(|s| s.core.is_some());
        let links = Links::new(ports, buffers, numbering.nodes.len(), holds);
        let host = Host {
            node: root,
            processor_stages: HostPath::new(&config.host, places).of_processor(),
            interrupt_addresses: config.host.addresses.interrupts.clone(),
            messages: FlowId(0),
            interrupts: FlowId(0),
            lets_start: config.host.enumeration == EnumerationTime::Outside,
            translators: Vec::new(),
        };
        let cx = Context {
            kernel: Kernel::default(),
            tlps: Default::default(),
            transactions: Transactions::default(),
            links,
            observe,
            agenda: Agenda::default(),
            topology,
            host,
            length_only: config.fidelity == Fidelity::LengthOnly,
            devices: Vec::new(),
            workers: Vec::new(),
            fault: None,
        };
        Ok(Fabric {
            hardware: Hardware { cx, nodes: Nodes::new(root) },
            software: Software::new(&config.host),
            clocked: Vec::new(),
            told: Told::default(),
        })
    }

    fn add_nodes(&mut self, numbering: &Numbering, fabric: &mut Fabric) -> Result<(), BuildError> {
        for (i, name) in numbering.nodes.iter().enumerate() {
            let ports: Vec<_> = numbering.ports_of(i).map(|p| PortId(p as u16)).collect();
            let node = match numbering.kind(i) {
                NodeKind::Root => Node::Root(Box::new(self.make_root(numbering, ports, fabric)?)),
                NodeKind::Switch => {
                    let switch = self.config.switches.iter().find(|s| s.name == *name).expect("laid out");
                    let latency = switch.latency;
                    let forwarding = forwarding_of(switch, numbering, &self.config, &ports)?;
                    let others = numbering.other_partitions(&self.config, i).into_iter();
                    let inside = others.flat_map(|other| numbering.ports_of(other).skip(1));
                    let inside = inside.map(|port| PortId(port as u16)).collect();
                    let weights = numbering.sources(&self.config, i);
                    let core = switch.core.map(|core| SwitchCore::new(core, &weights[..ports.len()]));
                    let functions = config_space::of_switch(switch, numbering, &self.config, &ports)?;
                    let bridges = vec![BridgeRegisters::RESET; ports.len()];
                    let node = NodeId(i as u16);
                    Node::Switch(Box::new(Switch {
                        node,
                        latency,
                        forwarding,
                        ports,
                        functions,
                        bridges,
                        id: Bdf(0),
                        core,
                        inside,
                    }))
                }
                NodeKind::Bridge => {
                    let bus = self.config.buses.iter().find(|b| b.name == *name).expect("laid out");
                    let function = config_space::of_bridge(bus, numbering, &self.config, ports[0])?;
                    let members = bus::members(&self.config, numbering, &ports);
                    let (node, latency) = (NodeId(i as u16), bus.bridge.latency);
                    let below = Bus::new(bus, ports.clone(), &members);
                    fabric.hardware.cx.links.add_bus(node, below);
                    let registers = BridgeRegisters::RESET;
                    Node::Bridge(Box::new(Bridge { node, latency, ports, function, registers }))
                }
                NodeKind::Custom => {
                    let config = self.config.nodes.iter().find(|n| n.name == *name).expect("laid out");
                    let model = self.own.nodes.remove(name).expect("checked before");
                    let ends = ports.try_into().expect("one component is below it");
                    Node::Custom(Box::new(CustomNode::new(NodeId(i as u16), config.latency, ends, model)))
                }
                NodeKind::EndPoint => {
                    let device = self.config.devices.iter().find(|d| d.name == *name).expect("laid out");
                    let device = device.clone();
                    Node::EndPoint(Box::new(self.make_end_point(i, &device, numbering, fabric)?))
                }
            };
            fabric.hardware.nodes.all.push(node);
        }
        let Hardware { cx, nodes } = &mut fabric.hardware;
        cx.host.messages = nodes.root().initiator.flow(0);
        for port in cx.links.all() {
            let slot = &numbering.ports[port.index()];
            let link = numbering.link_config(&self.config, slot.link);
            let end = if slot.direction == 0 { &link.lower } else { &link.upper };
            set_up_port(cx, nodes, port, end.latency);
        }
        cx.add_stages(|link| numbering.link_config(&self.config, link));
        for end_point in nodes.end_points() {
            end_point.note_payload(cx);
            end_point.show_bars(cx);
        }
        cx.observe.counts_outstanding = self.history;
        let (places, flows) = (cx.topology.places(), cx.topology.flows.len());
        for _ in 0..flows {
            let timeline = &mut cx.observe.timeline;
            let mut statistics = FlowStatistics::new(places, flows, timeline);
            statistics.outstanding = self.history.then(|| timeline.add_gauge());
            cx.observe.flows.push(statistics);
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
        for (i, behaviour) in std::mem::take(&mut self.programs).into_iter().enumerate() {
            let first = flows.len() as u16;
            let HostBehaviour { program, streams } = behaviour;
            let infos =
                some_flow(streams.flows, &host.name, &format!("{}.cpu{i}", host.name), "mmio", "device");
            flows.extend(infos.into_iter().map(|info| add_flow(fabric, info)));
            if streams.finishes {
                fabric.hardware.cx.workers.push(Worker {
                    node: NodeId(numbering.root as u16),
                    owner: i,
                    finished: false,
                });
            }
            let streams = (first, flows.len() as u16 - first);
            programs.push(Program { program, next_op: 0, streams });
        }
        let enumerates = match host.enumeration {
            EnumerationTime::Simulated => true,
            EnumerationTime::Before => may_go_down(&self.config),
            EnumerationTime::Outside => false,
        };
        if enumerates {
            let name = format!("{}.enumeration", host.name);
            let infos = some_flow(Vec::new(), &host.name, &name, "configuration", "device");
            fabric.software.program = Some(programs.len());
            programs.push(Program { program: None, next_op: 0, streams: (flows.len() as u16, 1) });
            let first = flows.len();
            flows.extend(infos.into_iter().map(|info| add_flow(fabric, info)));
            fabric.hardware.cx.host.interrupts = flows[first];
        }
        let stream = flows.len() as u16;
        if flows.is_empty() {
            flows = some_flow(Vec::new(), &host.name, &host.name, "peer", "device")
                .into_iter()
                .map(|info| add_flow(fabric, info))
                .collect();
        }
        let tags = fabric.hardware.cx.observe.timeline.add_gauge();
        let peer_split = Splitter::new(stream);
        let places = (numbering.ports.len() + numbering.nodes.len()) as u16;
        let stages = host_path::names_of(&host).len() as u16;
        let passages = places + stages + host_memory::names_of(&host).count() as u16;
        let port_names: Vec<_> =
            ports.iter().map(|port| numbering.ports[port.index()].name.as_str()).collect();
        let domains = Domains::new(&host, &port_names, passages)?;
        let payload = |port: &PortId| numbering.ports[port.index()].mps;
        if let (Some(domain), Some(first)) = (host.domains.first(), ports.first())
            && let Some(other) = ports.iter().find(|port| payload(port) != payload(first))
        {
            // Payloads would have to be cut to size, and what the root complex cuts it issues itself.
            let (one, two) = (payload(first).bytes(), payload(other).bytes());
            let why = format!(
                "{} and {} have payloads of {one} B and {two} B; with domains all hierarchies must have the same, for example by mps = \"{}B\" in [defaults.link]",
                numbering.ports[first.index()].name,
                numbering.ports[other.index()].name,
                one.min(two)
            );
            return Err(BuildError::Domain { domain: domain.name.clone(), why });
        }
        let end_points: Vec<_> = (0..numbering.nodes.len())
            .filter(|node| numbering.kind(*node) == NodeKind::EndPoint)
            .map(|node| (numbering.nodes[node].as_str(), NodeId(node as u16)))
            .collect();
        let own = || Box::new(HostRam::new(0x10_0000, 0xBFF0_0000));
        let memory = self.memory.take().unwrap_or_else(|| own());
        Ok(Root {
            node: NodeId(numbering.root as u16),
            latency: host.latency,
            functions: config_space::of_root(&host, numbering, &self.config, &ports)?,
            bridges: vec![BridgeRegisters::RESET; ports.len()],
            turns: Turns::new(host.write_turnaround, ports.len()),
            ports,
            registers: RegisterAccesses::default(),
            completer: Completer { id, rcb: host.rcb, mps, policy: host.completions },
            memory: CachedMemory::new(&host, memory),
            memory_system: MemorySystem::new(&host, self.config.seed, places + stages),
            agent: TranslationAgent::new(&self.config, &end_points),
            path: HostPath::new(&host, places),
            domains,
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
            pmes: VecDeque::new(),
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
        let mps = numbering.ports[port].mps;
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
        let infos = some_flow(behaviour.streams.flows, &config.name, &config.name, "dma", "host");
        let flows = infos.into_iter().map(|info| add_flow(fabric, info)).collect();
        if behaviour.streams.finishes {
            fabric.hardware.cx.workers.push(Worker { node: NodeId(node as u16), owner: 0, finished: false });
        }
        let core = behaviour.core.map(|device| Box::new(Core::new(device, config.completion_timeout)));
        let mut function = Function::new(space, id, Time::ZERO + config.ready);
        if core.is_some() {
            fabric.clocked.push(NodeId(node as u16));
            function.msix = None; // the table is the core's
        }
        Ok(EndPoint {
            node: NodeId(node as u16),
            number: config.function_of.as_ref().map_or(0, |of| of.number),
            port: PortId(port as u16),
            source,
            functions,
            latency: config.latency,
            answer_time: self.latency_of(&numbering.nodes[device]),
            mrrs: config.mrrs,
            ready: config.ready,
            interrupt_mode: function.space.interrupt_mode(),
            function,
            started: false,
            stopped: None,
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
                tags: fabric.hardware.cx.observe.timeline.add_gauge(),
            },
            posted_writes: config.posted_writes,
            on_bus,
            ats: config.ats.filter(|_| !on_bus).map(|ats| Box::new(Ats::new(ats))),
        })
    }

    fn latency_of(&self, device: &str) -> Duration {
        let config = self.config.devices.iter().find(|config| config.name == device);
        config.map_or(Duration::ZERO, |config| config.latency)
    }

    fn start_links(&mut self, numbering: &Numbering, cx: &mut Context) {
        for (i, link) in numbering.links.iter().enumerate() {
            let config = numbering.link_config(&self.config, i);
            let lower = PortId(link.lower as u16);
            if !config.trained {
                cx.link_up(lower);
                cx.link_up(PortId(link.upper as u16));
            }
            for fault in &config.faults {
                let (away, until) = match fault.kind {
                    FaultKind::Down { at, until } => ((at, DOWN), until),
                    FaultKind::Reset { at, until } => ((at, RESET), until),
                    FaultKind::Narrow { at, width } => ((at, narrowed(width)), None),
                    _ => continue,
                };
                for (at, what) in [away].into_iter().chain(until.map(|until| (until, UP))) {
                    cx.plan_link_state(lower, at, what);
                }
            }
        }
        for i in 0..cx.links.count() {
            cx.try_transmit(PortId(i as u16));
            cx.arm(PortId(i as u16));
        }
    }
}

/// By port of a switch: when it starts to forward what comes in there.
fn forwarding_of(
    switch: &SwitchConfig,
    numbering: &Numbering,
    config: &FabricConfig,
    ports: &[PortId],
) -> Result<Vec<Forwarding>, BuildError> {
    let of = |port: &PortId| {
        let slot = &numbering.ports[port.index()];
        let link = numbering.link_config(config, slot.link);
        let (own, end) = if slot.direction == 0 { (&link.lower, "lower") } else { (&link.upper, "upper") };
        let Some(forwarding) = own.forwarding else { return Ok(switch.forwarding) };
        if [forwarding, switch.forwarding].contains(&Forwarding::HeaderChecked) {
            let (field, why) =
                ("forwarding".into(), "either all ports of a switch check headers, or none".into());
            let component = numbering.links[slot.link].name.clone();
            return Err(BuildError::Port {
                component,
                end,
                error: tlplab_datalink::ConfigError { field, why },
            });
        }
        Ok(forwarding)
    };
    ports.iter().map(of).collect()
}

/// Gives a port the properties of its node and of the node at the other end.
fn set_up_port(cx: &mut Context, nodes: &Nodes, id: PortId, own_latency: Option<Duration>) {
    let forwarding = |port| match &nodes[cx.links.node(port)] {
        Node::Switch(switch) => switch.forwarding[cx.links.index(port)],
        _ => Forwarding::StoreAndForward,
    };
    let (own, peer) = (cx.links.node(id), cx.links.peer(id));
    let setup = PortSetup {
        latency: own_latency.unwrap_or(nodes[own].latency()),
        requester: nodes[own].requests().then_some(own),
        header_checked: [peer, id].map(forwarding).contains(&Forwarding::HeaderChecked),
        peer_cuts_through: forwarding(peer) != Forwarding::StoreAndForward,
        stores_for_faster: forwarding(id) == Forwarding::CutThroughUnlessFaster,
    };
    cx.links.set_up(id, setup);
}

/// The identity of a device at the level of TLPs, for the builder of configuration spaces.
struct Shown(TlpIdentity);

impl Device for Shown {
    fn identity(&self) -> Identity {
        self.0.function.clone()
    }
    fn layout(&self) -> tlplab_cfgspace::Layout {
        self.0.layout()
    }
    fn handle(&mut self, _: &mut DeviceContext<'_>, _: Event) {}
}

/// Software that configures what comes back works in simulated time.
fn may_go_down(config: &FabricConfig) -> bool {
    let links = config.switches.iter().map(|switch| &switch.uplink);
    let links = links.chain(config.buses.iter().map(|bus| &bus.uplink));
    let links = links.chain(config.nodes.iter().map(|node| &node.link));
    let mut faults =
        links.chain(config.devices.iter().map(|device| &device.link)).flat_map(|link| &link.faults);
    faults.any(|fault| fault.kind.takes_down())
}

fn some_flow(infos: Vec<FlowInfo>, owner: &str, name: &str, operation: &str, target: &str) -> Vec<FlowInfo> {
    if !infos.is_empty() {
        return infos;
    }
    let text = |s: &str| s.to_string();
    vec![FlowInfo { name: text(name), owner: text(owner), operation: text(operation), target: text(target) }]
}

fn add_flow(fabric: &mut Fabric, info: FlowInfo) -> FlowId {
    fabric.hardware.cx.topology.flows.push(info);
    FlowId(fabric.hardware.cx.topology.flows.len() as u16 - 1)
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
