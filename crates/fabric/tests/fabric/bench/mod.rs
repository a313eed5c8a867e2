//! A fabric in a few lines, for tests.
#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

pub mod any;
pub mod mover;
pub mod script;
pub mod watch;

pub use watch::Watch;

use tlplab_device::{Device, HostProgram, Load, LoadConfig, LoadOp, Memory, Target};
use tlplab_fabric::config::*;
use tlplab_fabric::probe::TlpRecord;
use tlplab_fabric::topology::FlowInfo;
use tlplab_fabric::{Builder, Fabric, FlowStatistics, NodeContext, NodeModel, Side, Verdict};
use tlplab_units::{Duration, Generation, Time, Width};

pub const SEED: u64 = 7;

pub fn ns(n: u64) -> Duration {
    Duration::from_ns(n)
}

pub struct Bench {
    pub config: FabricConfig,
    devices: Vec<Behaviour>,
    programs: Vec<(Box<dyn HostProgram>, Vec<FlowInfo>, bool)>,
    own: Vec<Custom>,
}

/// A node that lets everything by.
#[derive(Clone)]
pub struct Tap;

impl NodeModel for Tap {
    fn handle_tlp(&mut self, _: &mut NodeContext<'_>, _: Side, _: &TlpRecord<'_>) -> Verdict {
        Verdict::Forward
    }
    fn snapshot(&self) -> Option<Box<dyn NodeModel>> {
        Some(Box::new(self.clone()))
    }
}

/// Puts a node without latency above a component, in the middle of a link as there was.
pub fn put_above(config: &mut FabricConfig, name: &str) -> NodeConfig {
    let switch = config.switches.iter_mut().find(|s| s.name == name).map(|s| &mut s.uplink);
    let device = config.devices.iter_mut().find(|d| d.name == name).map(|d| &mut d.link);
    let link = switch.or(device).expect("a component with a link");
    let second = if link.under.starts_with("above") { "right " } else { "" };
    let node = NodeConfig::new(&format!("{second}above {name}"), link.clone());
    link.under = node.name.clone();
    link.upper.acs = None;
    node
}

/// Adds custom parts.
type Custom = Box<dyn FnOnce(&mut Builder)>;

/// Name, model, flows, and whether it finishes.
type Behaviour = (String, Box<dyn Device>, Vec<FlowInfo>, bool);

pub struct DeviceSlot<'a> {
    bench: &'a mut Bench,
    name: String,
}

pub fn link(under: &str, generation: u8, lanes: u8) -> LinkConfig {
    LinkConfig::new(under, Generation::new(generation).unwrap(), Width::new(lanes).unwrap())
}

pub fn flow_info(name: &str, owner: &str, operation: &str) -> FlowInfo {
    let text = |s: &str| s.to_string();
    FlowInfo { name: text(name), owner: text(owner), operation: text(operation), target: text("host") }
}

fn flows_of(name: &str, owner: &str, op: LoadOp) -> Vec<FlowInfo> {
    match op {
        LoadOp::Read => vec![flow_info(name, owner, "read")],
        LoadOp::Write => vec![flow_info(name, owner, "write")],
        LoadOp::Both => vec![
            flow_info(&format!("{name}.read"), owner, "read"),
            flow_info(&format!("{name}.write"), owner, "write"),
        ],
    }
}

impl Bench {
    pub fn new() -> Self {
        let config = FabricConfig { seed: SEED, ..FabricConfig::new() };
        Self { config, devices: Vec::new(), programs: Vec::new(), own: Vec::new() }
    }

    pub fn warmup(&mut self, time: Duration) -> &mut Self {
        self.config.warmup = Time::ZERO + time;
        self
    }

    /// Custom parts.
    pub fn own(&mut self, add: impl FnOnce(&mut Builder) + 'static) -> &mut Self {
        self.own.push(Box::new(add));
        self
    }

    /// A custom node in the middle of the link above a component.
    pub fn node_above(&mut self, name: &str, model: impl NodeModel + 'static) -> &mut Self {
        let node = put_above(&mut self.config, name);
        self.own(|builder| {
            builder.node(node, Box::new(model));
        })
    }

    pub fn switch(&mut self, name: &str, under: &str, generation: u8, lanes: u8) -> &mut SwitchConfig {
        self.config.switches.push(SwitchConfig::new(name, link(under, generation, lanes)));
        self.config.switches.last_mut().unwrap()
    }

    pub fn device(&mut self, name: &str, under: &str, generation: u8, lanes: u8) -> DeviceSlot<'_> {
        let link = link(under, generation, lanes);
        self.config.devices.push(DeviceConfig { tags: 256, ..DeviceConfig::new(name, link) });
        DeviceSlot { bench: self, name: name.into() }
    }

    pub fn mmio(&mut self, load: LoadConfig) -> &mut Self {
        let flows = flows_of("cpu", "host", load.op);
        let finishes = load.count.is_some();
        self.programs.push((Box::new(Load::new(load, SEED, "cpu").unwrap()), flows, finishes));
        self
    }

    pub fn program(&mut self, program: Box<dyn HostProgram>) -> &mut Self {
        self.programs.push((program, vec![flow_info("cpu", "host", "mmio")], false));
        self
    }

    /// A program whose end the run waits for.
    pub fn finishing_program(&mut self, program: Box<dyn HostProgram>) -> &mut Self {
        self.programs.push((program, vec![flow_info("cpu", "host", "mmio")], true));
        self
    }

    /// What a device does that is in the configuration already.
    pub fn behaviour(&mut self, name: &str, device: Box<dyn Device>, finishes: bool) {
        self.devices.push((name.into(), device, vec![flow_info(name, name, "dma")], finishes));
    }

    /// Runs until all that finishes has finished: nothing is left, nobody broke the protocol, and all causes sum to the latencies.
    pub fn finish(self) -> (Fabric, Watch) {
        let watch = Watch::everything();
        let mut fabric = self.build_watched(watch.probe());
        while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(20)) {}
        assert!(fabric.is_done(), "{} transactions under way", fabric.transactions_live());
        fabric.run_until(fabric.now() + Duration::from_us(150));
        assert_eq!((fabric.tlps_live(), fabric.transactions_live()), (0, 0));
        assert_eq!(fabric.protocol_errors().count(), 0);
        watch.check_attribution(&fabric);
        (fabric, watch)
    }

    pub fn build(self) -> Fabric {
        self.build_watched(None)
    }

    pub fn build_watched(mut self, probe: Option<Box<dyn tlplab_fabric::Probe>>) -> Fabric {
        let taps = std::mem::take(&mut self.config.nodes);
        let mut builder = Builder::new(self.config);
        for (name, device, flows, finishes) in self.devices {
            builder.device(&name, device).flows(flows).finishes_if(finishes);
        }
        for (program, flows, finishes) in self.programs {
            builder.program(program).flows(flows).finishes_if(finishes);
        }
        for node in taps {
            builder.node(node, Box::new(Tap));
        }
        self.own.into_iter().for_each(|add| add(&mut builder));
        if let Some(probe) = probe {
            builder.probe(probe);
        }
        builder.build().unwrap()
    }
}

impl DeviceSlot<'_> {
    pub fn config(self, change: impl FnOnce(&mut DeviceConfig)) -> Self {
        change(self.bench.config.devices.last_mut().unwrap());
        self
    }
    pub fn load(self, load: LoadConfig) {
        let flows = flows_of(&self.name, &self.name, load.op);
        let finishes = load.count.is_some();
        let device = Box::new(Load::new(load, SEED, &self.name).unwrap());
        self.bench.devices.push((self.name, device, flows, finishes));
    }
    pub fn memory(self, size: u64) {
        self.model(Box::new(Memory::new(size)));
    }
    pub fn model(self, device: Box<dyn Device>) {
        self.bench.behaviour(&self.name, device, false);
    }
    /// A device whose end the run waits for.
    pub fn finishing(self, device: Box<dyn Device>) {
        self.bench.behaviour(&self.name, device, true);
    }
}

/// Writes into the first MiB of a device's BAR 0, without end, so many at a time.
pub fn writes_to(device: &str, outstanding: u32) -> LoadConfig {
    let target = Target::Bar { device: device.into(), bar: 0 };
    LoadConfig { op: LoadOp::Write, target, outstanding, window: 1 << 20, ..LoadConfig::default() }
}

pub fn flow<'a>(fabric: &'a Fabric, name: &str) -> &'a FlowStatistics {
    let id = fabric.flow_ids().find(|id| fabric.topology().flows[id.index()].name == name);
    fabric.flow_results(id.unwrap_or_else(|| panic!("a flow called {name}")))
}

pub fn only_flow(fabric: &Fabric) -> &FlowStatistics {
    let mut used = fabric.flow_ids().map(|id| fabric.flow_results(id)).filter(|f| f.transactions > 0);
    let flow = used.next().expect("a flow with transactions");
    assert!(used.next().is_none(), "only one flow");
    flow
}
