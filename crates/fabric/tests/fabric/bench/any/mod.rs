//! Random fabrics with random work, for property tests.

pub mod strategies;

use super::mover::{Base, Move, Moved, Mover, bytes_at};
use super::{Bench, Watch, link, ns};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::sync::{Arc, Mutex};
use tlplab_device::Memory;
use tlplab_fabric::config::*;
use tlplab_fabric::{Builder, Driven, Ending, Fabric, FlowId};
use tlplab_transaction::CompletionPolicy;
use tlplab_units::{Duration, FcClass, Generation, LinkMode, Mps, Mrrs, Rcb, Time, Width};

/// So many cases, the same in every run; `PROPTEST_CASES` and `PROPTEST_RNG_SEED` ask for others.
pub fn cases(usual: u32) -> ProptestConfig {
    let given = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok());
    let mut config =
        ProptestConfig { failure_persistence: None, max_shrink_iters: 600, ..ProptestConfig::default() };
    config.cases = given.unwrap_or(usual);
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(1);
    }
    config
}

#[derive(Clone, Debug)]
pub struct AnyLink {
    generation: u8,
    flit: bool,
    width: Width,
    mps: Mps,
    flight: u64,
    trained: bool,
    skp: SkpPolicy,
    flow_control: FlowControl,
    upper: AnyPort,
    lower: AnyPort,
    pub faults: Vec<Fault>,
}

#[derive(Clone, Debug)]
struct AnyPort {
    /// Headers and spare data credits beyond the largest TLP.
    buffers: Option<(u32, u32)>,
    infinite_completions: bool,
    replay_tlps: Option<u32>,
    replay_spare: Option<u32>,
    ack: Option<u64>,
    ack_every: Option<u16>,
}

#[derive(Clone, Debug)]
pub struct AnySwitch {
    parent: usize,
    link: AnyLink,
    latency: u64,
    forwarding: Forwarding,
    weights: Option<u16>,
    port_buffer: Option<u16>,
}

#[derive(Clone, Debug)]
pub struct AnyDevice {
    parent: usize,
    link: AnyLink,
    mrrs: Mrrs,
    tags: u16,
    latency: u64,
    /// Which peer, if any, its work goes to.
    peer: Option<usize>,
    outstanding: usize,
    moves: Vec<(bool, u16, u16)>,
    ordering: (bool, bool),
    posted_writes: bool,
    ats: Option<AtsConfig>,
}

/// What a host has before its memory.
#[derive(Clone, Debug)]
struct BeforeMemory {
    cache: Option<CacheConfig>,
    numa: Option<NumaConfig>,
    iommu: Option<IommuConfig>,
    jitter: Option<JitterConfig>,
    commit: u64,
    line_interval: Option<u64>,
    reads: Option<u16>,
}

#[derive(Clone, Debug)]
pub struct AnyFabric {
    root_ports: usize,
    pub switches: Vec<AnySwitch>,
    pub devices: Vec<AnyDevice>,
    host_latency: u64,
    memory: (u64, Option<u64>),
    /// I/O cache, memory bus, bridge.
    stages: [Option<HostStageConfig>; 3],
    before_memory: BeforeMemory,
    rcb: Rcb,
    completions: CompletionPolicy,
    peer_to_peer: PeerToPeer,
    mmio: Vec<(bool, u16, u16)>,
    port_buffer: Option<u16>,
    /// The second device is a function of the first, on its link.
    pub second_function: bool,
    peers: AnyPeers,
}

/// What traffic between devices passes.
#[derive(Clone, Debug, Default)]
struct AnyPeers {
    core: Option<SwitchCoreConfig>,
    /// Domains: which of two each root port is in, by a bit, and memory by the highest two; one in the other, or not.
    domains: Option<(u8, bool, DomainConfig)>,
    acs: Option<AcsControls>,
    /// Between writes to different root ports, if domains have no entries.
    turnaround: Option<u64>,
    /// All switches are partitions of one chip.
    one_chip: bool,
}

impl AnyPeers {
    fn apply(&self, config: &mut FabricConfig) {
        let switches = config.switches.iter_mut().map(|switch| &mut switch.uplink);
        let links: Vec<_> =
            switches.chain(config.devices.iter_mut().map(|device| &mut device.link)).collect();
        let mut ports = Vec::new();
        for link in links {
            if link.under.starts_with("host.") {
                ports.push(link.under.clone());
            }
            link.upper.acs = self.acs.map(|enabled| AcsConfig { enabled, forbidden: Vec::new() });
        }
        ports.sort();
        let entries = self.domains.as_ref().is_some_and(|(.., domain)| domain.entries.is_some());
        config.host.write_turnaround = self.turnaround.filter(|_| !entries).map(ns);
        let Some((bits, nested, domain)) = &self.domains else { return };
        for (name, side) in [("x", 0), ("y", 1)] {
            let inside = ports.iter().enumerate().filter(|(i, _)| bits >> i & 1 == side);
            config.host.domains.push(DomainConfig {
                name: name.into(),
                under: (*nested && side == 1).then(|| "x".to_string()),
                ports: inside.map(|(_, port)| port.clone()).collect(),
                ..domain.clone()
            });
        }
        let memory = [None, None, Some("x"), Some("y")][usize::from(bits >> 6)];
        // Answers line by line pass no domains.
        let memory = memory.filter(|_| config.host.line_interval.is_none());
        config.host.memory_domain = memory.map(str::to_string);
    }
}

impl AnyPort {
    fn config(&self, mps: Mps) -> PortConfig {
        let largest = mps.bytes() / 16;
        let buffers = self.buffers.map(|(headers, spare)| Buffers {
            posted_headers: headers,
            posted_data: largest + spare,
            non_posted_headers: headers.div_ceil(2),
            non_posted_data: 8 + spare,
            completion_headers: if self.infinite_completions { 0 } else { headers },
            completion_data: if self.infinite_completions { 0 } else { largest + spare },
        });
        PortConfig {
            buffers,
            replay_tlps: self.replay_tlps,
            replay_bytes: self.replay_spare.map(|spare| (mps.bytes() + 36 + spare).max(256)),
            replay_timer: None,
            ack_latency: self.ack.map(ns),
            ack_every: self.ack_every,
            ..PortConfig::default()
        }
    }
}

impl AnyLink {
    fn config(&self, under: &str) -> LinkConfig {
        let mut config = link(under, self.generation, self.width.lanes());
        if self.flit {
            config.mode = LinkMode::Flit;
        }
        config.mps = self.mps;
        config.flight = ns(self.flight);
        config.trained = self.trained;
        (config.skp, config.flow_control) = (self.skp, self.flow_control);
        (config.upper, config.lower) = (self.upper.config(self.mps), self.lower.config(self.mps));
        config.faults = self.faults.clone();
        config
    }
}

/// Where the work of device or program `i` in host memory happens: reads find `bytes_at` here…
pub const READ_BASE: u64 = 0x1_0000_0000;
/// … and writes leave it here, every worker in a region of its own.
pub const WRITE_BASE: u64 = 0x2_0000_0000;
const REGION: u64 = 1 << 20;

/// A fabric made of an `AnyFabric`, and what its workers report.
pub struct Built {
    pub fabric: Fabric,
    pub watch: Watch,
    pub workers: Vec<Arc<Mutex<Moved>>>,
    /// For each of them: the device, unless it is a program on the host, and the peer that it works with; of a device with two functions
    /// function 0, which has the link.
    pub places: Vec<(Option<String>, Option<String>)>,
    /// Writes to host memory: (address, bytes).
    pub writes: Vec<(u64, u64)>,
    /// Transactions to expect, and their bytes.
    pub expected: (u64, u64),
}

impl AnyFabric {
    /// Distributes faults over all links.
    pub fn with_faults(mut self, faults: &[(usize, Fault)]) -> Self {
        let mut links: Vec<&mut AnyLink> = self.switches.iter_mut().map(|s| &mut s.link).collect();
        links.extend(self.devices.iter_mut().map(|d| &mut d.link));
        for (at, fault) in faults {
            let count = links.len();
            links[at % count].faults.push(fault.clone());
        }
        self
    }

    pub fn links(&self) -> usize {
        self.switches.len() + self.devices.len()
    }

    /// Names of parents: every root port has one link; switches are at most three deep.
    fn bench(&self) -> (Bench, Vec<(usize, String)>) {
        let mut bench = Bench::new();
        bench.config.host = HostConfig {
            latency: ns(self.host_latency),
            memory: MemoryConfig {
                latency: ns(self.memory.0),
                bandwidth: self.memory.1,
                ..MemoryConfig::default()
            },
            io_cache: self.stages[0],
            memory_bus: self.stages[1],
            bridge: self.stages[2],
            cache: self.before_memory.cache,
            numa: self.before_memory.numa,
            iommu: self.before_memory.iommu,
            jitter: self.before_memory.jitter.clone(),
            commit: ns(self.before_memory.commit),
            line_interval: self.before_memory.line_interval.map(ns),
            reads: self.before_memory.reads,
            rcb: self.rcb,
            completions: self.completions,
            peer_to_peer: self.peer_to_peer,
            completion_timeout: Duration::from_ms(500),
            port_buffer: self.port_buffer,
            ..HostConfig::default()
        };
        let mut free: Vec<_> = (0..self.root_ports).map(|i| format!("host.rp{i}")).collect();
        // Possible parents with their depth and root port.
        let mut switches: Vec<(String, usize, String)> = Vec::new();
        for (i, switch) in self.switches.iter().enumerate() {
            let deep: Vec<_> = switches.iter().filter(|(_, depth, _)| *depth < 3).cloned().collect();
            let count = free.len() + deep.len();
            let pick = switch.parent % count;
            let (under, depth, top) = if pick < free.len() {
                let port = free.remove(pick);
                (port.clone(), 1, port)
            } else {
                let (name, depth, top) = deep[pick - free.len()].clone();
                (name, depth + 1, top)
            };
            let name = format!("sw{i}");
            bench.config.switches.push(SwitchConfig {
                name: name.clone(),
                uplink: switch.link.config(&under),
                latency: ns(switch.latency),
                forwarding: switch.forwarding,
                arbitration: switch.weights.map_or(Arbitration::RoundRobin, |weight| {
                    Arbitration::Weighted(vec![("dev0".into(), weight), (under, 2), ("sw2".into(), weight)])
                }),
                port_buffer: switch.port_buffer,
                core: self.peers.core,
                chip: self.peers.one_chip.then(|| "chip".to_string()),
            });
            switches.push((name, depth, top));
        }
        let mut tops = Vec::new();
        for (i, device) in self.devices.iter().enumerate() {
            let function = self.second_function && i == 1;
            let count = free.len() + switches.len();
            if count == 0 && !function {
                break;
            }
            let pick = device.parent % count.max(1);
            let (under, top) = if let Some((_, top)) = tops.first().filter(|_| function).cloned() {
                ("of dev0".into(), top)
            } else if pick < free.len() {
                let port = free.remove(pick);
                (port.clone(), port)
            } else {
                let (name, _, top) = &switches[pick - free.len()];
                (name.clone(), top.clone())
            };
            bench.config.devices.push(DeviceConfig {
                bus: None,
                name: format!("dev{i}"),
                link: device.link.config(&under),
                function_of: function.then(|| FunctionOf { device: "dev0".into(), number: 1 }),
                ready: Duration::ZERO,
                mrrs: device.mrrs,
                tags: device.tags,
                latency: ns(device.latency),
                completion_timeout: Duration::from_ms(500),
                relaxed_ordering: device.ordering.0,
                id_based_ordering: device.ordering.1,
                cut: None,
                posted_writes: device.posted_writes,
                // Below a switch that does not redirect, a request for the translation of a peer's address would go to the peer.
                ats: device.ats.filter(|_| device.peer.is_none()),
            });
            if function {
                bench.config.devices[i].link.faults.clear();
            }
            tops.push((i, top));
        }
        self.peers.apply(&mut bench.config);
        (bench, tops)
    }

    /// The smallest MPS below each root port is the same for both.
    fn same_payload_limit(&self, bench: &Bench, tops: &[(usize, String)], a: &str, b: &str) -> bool {
        let _ = tops;
        let top_of = |mut under: String| {
            while let Some(switch) = bench.config.switches.iter().find(|s| s.name == under) {
                under = switch.uplink.under.clone();
            }
            under
        };
        let least = |top: &str| {
            let switches = bench.config.switches.iter().map(|s| &s.uplink);
            let devices = bench.config.devices.iter().map(|d| &d.link);
            switches.chain(devices).filter(|l| top_of(l.under.clone()) == top).map(|l| l.mps).min()
        };
        least(a) == least(b)
    }

    pub fn build(&self) -> Built {
        self.build_with(|_| {})
    }

    pub fn build_with(&self, change: impl FnOnce(&mut FabricConfig)) -> Built {
        self.build_both(change, |_| {})
    }

    /// With custom parts.
    pub fn build_own(&self, add: impl FnOnce(&mut Builder) + 'static) -> Built {
        self.build_both(|_| {}, add)
    }

    pub fn build_both(
        &self,
        change: impl FnOnce(&mut FabricConfig),
        add: impl FnOnce(&mut Builder) + 'static,
    ) -> Built {
        let (mut bench, tops) = self.bench();
        let (mut workers, mut writes, mut expected) = (Vec::new(), Vec::new(), (0, 0));
        let mut places = Vec::new();
        let count = tops.len();
        for (i, (number, top)) in tops.iter().enumerate() {
            let device = &self.devices[*number];
            let name = format!("dev{number}");
            // The last device is a memory, so that there is something to aim at.
            if i + 1 == count && count > 1 {
                bench.behaviour(&name, Box::new(Memory::new(1 << 20)), false);
                continue;
            }
            let memory_top = &tops[count - 1].1;
            let reachable = count > 1
                && (top == memory_top
                    || self.peer_to_peer != PeerToPeer::Forward
                    || self.same_payload_limit(&bench, &tops, top, memory_top));
            let peer = device.peer.filter(|_| reachable).map(|_| format!("dev{}", tops[count - 1].0));
            let (base, moves) = plan(i as u64, &device.moves, peer.as_deref(), &mut writes);
            expected.0 += moves.len() as u64;
            expected.1 += moves.iter().map(bytes_of).sum::<u64>();
            let (mover, moved) = Mover::new(base, device.outstanding, moves);
            bench.behaviour(&name, Box::new(mover), true);
            workers.push(moved);
            places.push((Some(name), peer));
        }
        if count > 1 {
            let memory = format!("dev{}", tops[count - 1].0);
            let (base, moves) = plan(9, &self.mmio, Some(&memory), &mut writes);
            expected.0 += moves.len() as u64;
            expected.1 += moves.iter().map(bytes_of).sum::<u64>();
            let (mover, moved) = Mover::new(base, 4, moves);
            bench.finishing_program(Box::new(mover));
            workers.push(moved);
            places.push((None, Some(memory)));
        }
        for name in places.iter_mut().flat_map(|(own, peer)| [own, peer]).flatten() {
            let device = bench.config.devices.iter().find(|device| device.name == *name);
            if let Some(of) = device.and_then(|device| device.function_of.as_ref()) {
                name.clone_from(&of.device);
            }
        }
        change(&mut bench.config);
        bench.own(add);
        let watch = Watch::transactions_only();
        let mut fabric = bench.build_watched(watch.probe());
        fabric.host_memory().write(READ_BASE, &bytes_at(READ_BASE, 16 << 10));
        fabric.place_remote(READ_BASE + (4 << 10), 8 << 10);
        fabric.place_remote(WRITE_BASE + REGION, 2 * REGION);
        Built { fabric, watch, workers, places, writes, expected }
    }

    /// The same fabric without any work.
    pub fn idle(&self) -> Fabric {
        let (mut bench, tops) = self.bench();
        for (number, _) in tops {
            bench.behaviour(&format!("dev{number}"), Box::new(Memory::new(1 << 20)), false);
        }
        bench.config.devices.iter_mut().for_each(|d| d.link.faults.clear());
        bench.config.switches.iter_mut().for_each(|s| s.uplink.faults.clear());
        let mut fabric = bench.build();
        fabric.run_until(Time::ZERO + Duration::from_us(100));
        fabric
    }
}

fn bytes_of(step: &Move) -> u64 {
    match step {
        Move::Read { bytes, .. } | Move::Write { bytes, .. } => *bytes,
    }
}

/// Reads and writes of host memory, or of a peer: there, what is read was written before by the same worker.
fn plan(
    worker: u64,
    moves: &[(bool, u16, u16)],
    peer: Option<&str>,
    writes: &mut Vec<(u64, u64)>,
) -> (Base, Vec<Move>) {
    let (mut plan, region) = (Vec::new(), worker * REGION);
    for &(write, at, bytes) in moves {
        let (at, bytes) = (u64::from(at), u64::from(bytes));
        match peer {
            Some(_) => {
                let at = at + worker * (1 << 14);
                plan.extend([Move::Write { at, bytes }, Move::Read { at, bytes }]);
            }
            None if write => {
                let at = WRITE_BASE - READ_BASE + region + at;
                plan.push(Move::Write { at, bytes });
                writes.push((READ_BASE + at, bytes));
            }
            None => plan.push(Move::Read { at, bytes }),
        }
    }
    let base = peer.map_or(Base::Address(READ_BASE), |peer| Base::Bar(peer.into(), 0));
    (base, plan)
}

impl Built {
    /// Runs until all work is done, then until the fabric is quiet.
    pub fn run(&mut self, limit: Duration) {
        let end = Time::ZERO + limit;
        while self.fabric.run_events(100_000, end) {}
        self.rest(Duration::from_us(200));
    }

    /// Nothing new is asked for, and no fault has struck for so long: what is struck late is reported late.
    pub fn rest(&mut self, time: Duration) {
        loop {
            let before = self.fabric.tlp_hops();
            self.fabric.run_until(self.fabric.now() + time);
            if self.fabric.tlp_hops() == before {
                return;
            }
        }
    }

    /// Everything arrived exactly once, with the right bytes.
    pub fn check_complete(&mut self) {
        let Self { fabric, watch, workers, writes, expected, .. } = self;
        assert_eq!(fabric.fault(), None);
        assert!(fabric.is_done(), "still {} transactions under way", fabric.transactions_live());
        for worker in workers.iter() {
            let moved = worker.lock().unwrap();
            assert!(moved.failed.is_empty(), "{:?}", moved.failed);
            assert!(moved.wrong.is_empty(), "wrong data: {:?}", moved.wrong);
            assert_eq!(moved.started, moved.read + moved.accepted);
        }
        let transactions = watch.transactions();
        assert_eq!(transactions.len() as u64, expected.0);
        assert!(transactions.iter().all(|t| t.ending == Ending::Done));
        let flows = || fabric.flow_ids().map(|id| fabric.flow_results(id));
        assert_eq!(flows().map(|f| f.transactions).sum::<u64>(), expected.0);
        assert_eq!(flows().map(|f| f.bytes).sum::<u64>(), expected.1, "bytes that arrived");
        assert_eq!((fabric.unexpected_completions(), fabric.refused()), (0, 0));
        // Each region holds what was written, and nothing else.
        for worker in 0..10 {
            let start = WRITE_BASE + worker * REGION;
            let mut found = vec![0; 12_500];
            fabric.host_memory().read(start, &mut found);
            let mut right = vec![0; found.len()];
            for &(address, bytes) in writes.iter().filter(|(a, _)| (start..start + REGION).contains(a)) {
                let at = (address - start) as usize;
                right[at..at + bytes as usize].copy_from_slice(&bytes_at(address, bytes));
            }
            assert!(found == right, "host memory of worker {worker}");
        }
    }

    /// Whatever was hit was sent again.
    pub fn check_replays(&mut self) {
        let ports: Vec<_> = self.fabric.topology().links.iter().flat_map(|l| l.ports).collect();
        let counters = ports.into_iter().map(|port| self.fabric.direction_result(port).wire);
        let replayed: u64 = counters.map(|wire| wire.replayed).sum();
        let hit = self.watch.seen().hit;
        assert!(replayed >= hit.min(1), "{hit} hit, {replayed} sent again");
    }

    /// Links went down: all that was started has ended in some way, and what is said to be right is right.
    pub fn check_accounted(&mut self) {
        let Self { fabric, watch, workers, writes, expected, .. } = self;
        assert_eq!(fabric.fault(), None);
        assert!(fabric.is_done(), "still {} transactions under way", fabric.transactions_live());
        for worker in workers.iter() {
            let moved = worker.lock().unwrap();
            let ended = moved.read + moved.accepted + moved.failed.len() as u64 + moved.cancelled;
            assert_eq!(moved.started, ended);
            // What a peer returns may never have been written.
            let wrong = moved.wrong.iter().filter(|(address, _)| *address < WRITE_BASE);
            assert_eq!(wrong.count(), 0, "wrong data: {:?}", moved.wrong);
        }
        // Software's own, which configures what comes back, are not the workers'.
        let works = |id: &FlowId| fabric.topology().flows[id.index()].operation != "configuration";
        let transactions = watch.transactions().into_iter().filter(|t| works(&t.flow));
        assert_eq!(transactions.count() as u64, expected.0, "transactions that ended");
        let flows = || fabric.flow_ids().filter(works).map(|id| fabric.flow_results(id));
        let done = flows().map(|f| f.transactions).sum::<u64>();
        let failed = flows().flat_map(|f| &f.failed).map(|failures| failures.count).sum::<u64>();
        assert_eq!(done + failed, expected.0);
        assert!(flows().map(|f| f.bytes).sum::<u64>() <= expected.1, "nothing arrives twice");
        for &(address, bytes) in writes.iter() {
            let mut found = vec![0; bytes as usize];
            fabric.host_memory().read(address, &mut found);
            let right = bytes_at(address, bytes);
            assert!(found.iter().zip(&right).all(|(found, right)| *found == 0 || found == right));
        }
    }

    /// Nothing is left anywhere: no TLP, no transaction, and all credits are where they were.
    pub fn check_quiet(&mut self, idle: &Fabric) {
        let fabric = &mut self.fabric;
        assert_eq!(fabric.protocol_errors().collect::<Vec<_>>(), []);
        assert_eq!((fabric.transactions_live(), fabric.tlps_live()), (0, 0), "transactions, TLPs");
        let ports: Vec<_> = fabric.topology().links.iter().flat_map(|l| l.ports).collect();
        for port in ports {
            assert!(fabric.is_active(port));
            assert_eq!(
                fabric.replay_buffer(port),
                0,
                "replay buffer of {}",
                fabric.topology().direction_name(port)
            );
            for class in FcClass::ALL {
                let (left, all) = (fabric.credits_left(port, class), idle.credits_left(port, class));
                let data = (fabric.data_credits_left(port, class), idle.data_credits_left(port, class));
                for ((left, all), unscaled) in [((left, all), 127), (data, 2047)] {
                    // Scaled credits are returned in units of 4 or 16: what is short of one is kept back.
                    let unit = all.map_or(1, |all| {
                        if all <= unscaled {
                            1
                        } else if all <= 4 * unscaled {
                            4
                        } else {
                            16
                        }
                    });
                    let back = left.zip(all).is_none_or(|(left, all)| left <= all && left + unit > all);
                    let name = fabric.topology().direction_name(port);
                    assert!(back && left.is_some() == all.is_some(), "{name} {class:?}: {left:?} of {all:?}");
                }
            }
        }
    }
}

/// True if this generation is a flit mode one.
pub fn is_flit(generation: u8) -> bool {
    Generation::new(generation).is_some_and(|g| g.requires_flit_mode())
}
