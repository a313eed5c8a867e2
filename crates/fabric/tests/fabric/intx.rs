//! Legacy interrupts: messages that raise and lower wires, turned and joined on their way, levels at the host.

use crate::bench::any::cases;
use crate::bench::{Bench, Watch, ns};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tlplab_cfgspace::enumerate::InterruptPolicy;
use tlplab_device::{
    BarSpec, Context, Device, Event, HostContext, HostEvent, HostProgram, Identity, Payload, ecam_address,
};
use tlplab_fabric::Fabric;
use tlplab_fabric::config::{Direction, Fault, FaultKind};
use tlplab_units::{Duration, Time};
use tlplab_wire::tlp::{Kind, message::Code};

/// Raises its interrupt at some times, after a write that counts them, and lowers it when the host has seen them all.
struct Bell {
    rings: Vec<Time>,
    counter: u64,
    rung: u64,
    asserted: bool,
}

impl Bell {
    fn new(rings: &[u64], counter: u64) -> Box<Self> {
        let rings = rings.iter().map(|t| Time::ZERO + ns(*t)).collect();
        Box::new(Self { rings, counter, rung: 0, asserted: false })
    }
}

impl Device for Bell {
    fn identity(&self) -> Identity {
        Identity {
            bars: vec![BarSpec::memory(0, 4096)],
            intx: true,
            ..Identity::new(0x71AB, 0x00BE, 0x08_80_00)
        }
    }
    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::Start => {
                for (id, at) in (0..).zip(&self.rings) {
                    cx.timer(*at, id);
                }
            }
            Event::Timer { .. } => {
                self.rung += 1;
                cx.dma_write(0, self.counter, self.rung.to_le_bytes().into());
                if !std::mem::replace(&mut self.asserted, true) {
                    cx.assert_intx(0);
                }
            }
            Event::MmioWrite { data, .. } => {
                let all = data.bytes() == Some(&self.rung.to_le_bytes());
                if all && std::mem::replace(&mut self.asserted, false) {
                    cx.deassert_intx(0);
                }
            }
            Event::MmioRead { bytes, reply, .. } => cx.reply(reply, vec![0; bytes as usize].into()),
            Event::Reset => self.asserted = false,
            Event::DmaReadDone { .. } | Event::DmaWriteAccepted { .. } => {}
        }
    }
}

/// What the host heard: of each device how often its handler was called, and what its counter said at the last call.
type Heard = Arc<Mutex<BTreeMap<String, (u64, u64)>>>;

/// Calls everybody's handler; writes registers at some times.
struct Handler {
    counters: BTreeMap<String, u64>,
    writes: Vec<(Time, u64, u16)>,
    answers: bool,
    heard: Heard,
}

impl HostProgram for Handler {
    fn handle(&mut self, cx: &mut HostContext<'_>, event: HostEvent) {
        match event {
            HostEvent::Start => {
                for (id, (at, ..)) in (0..).zip(&self.writes) {
                    cx.timer(*at, id);
                }
            }
            HostEvent::Timer { id } => {
                let (_, address, value) = self.writes[id as usize];
                cx.mmio_write(0, address, value.to_le_bytes().into());
            }
            HostEvent::Interrupt { device, .. } => {
                let info = cx.devices()[device].clone();
                let mut count = [0; 8];
                cx.memory().read(self.counters[&info.name], &mut count);
                let mut heard = self.heard.lock().unwrap();
                let entry = heard.entry(info.name).or_default();
                *entry = (entry.0 + 1, u64::from_le_bytes(count));
                if self.answers {
                    cx.mmio_write(0, info.bars[0].unwrap().0, Payload::from(count));
                }
            }
            HostEvent::PortInterrupt { .. }
            | HostEvent::Message { .. }
            | HostEvent::Wire { .. }
            | HostEvent::MmioReadDone { .. }
            | HostEvent::MmioWriteAccepted { .. } => {}
        }
    }
}

/// A tree with two levels of switches. Each device has its times.
struct Tree {
    bench: Bench,
    counters: BTreeMap<String, u64>,
    writes: Vec<(Time, u64, u16)>,
    answers: bool,
}

impl Tree {
    fn new() -> Self {
        let mut bench = Bench::new();
        bench.config.host.interrupts = InterruptPolicy::Intx;
        bench.switch("sw0", "host.rp0", 3, 4);
        bench.switch("sw1", "sw0", 3, 4);
        Self { bench, counters: BTreeMap::new(), writes: Vec::new(), answers: true }
    }
    fn bell(mut self, name: &str, under: &str, rings: &[u64]) -> Self {
        let counter = 0x1000 + 0x100 * self.counters.len() as u64;
        self.counters.insert(name.into(), counter);
        self.bench.device(name, under, 3, 1).model(Bell::new(rings, counter));
        self
    }
    fn run(mut self, until: Duration) -> (Fabric, Watch, BTreeMap<String, (u64, u64)>) {
        let heard = Heard::default();
        self.bench.program(Box::new(Handler {
            counters: self.counters,
            writes: self.writes,
            answers: self.answers,
            heard: heard.clone(),
        }));
        let watch = Watch::everything();
        let mut fabric = self.bench.build_watched(watch.probe());
        fabric.run_until(Time::ZERO + until);
        let heard = heard.lock().unwrap().clone();
        (fabric, watch, heard)
    }
}

/// The messages on the link below which `name` is: wire and level.
fn told(fabric: &Fabric, watch: &Watch, name: &str) -> Vec<(u8, bool)> {
    let of = |kind: &Kind| match kind {
        Kind::Message(message) => match message.code() as u8 {
            code @ 0x20..=0x27 => Some((code & 3, message.code() < Code::DeassertIntA)),
            _ => None,
        },
        _ => None,
    };
    watch.tlps(fabric, name, 0).iter().filter_map(|(_, repr)| of(repr.kind())).collect()
}

#[test]
fn every_bridge_turns_the_wire_by_the_number_of_its_port() {
    for ringing in ["a", "b", "c", "d", "e"] {
        let rings = |name: &str| if name == ringing { vec![1000] } else { vec![] };
        let tree = Tree::new()
            .bell("a", "sw0", &rings("a"))
            .bell("b", "sw0", &rings("b"))
            .bell("c", "sw0", &rings("c"))
            .bell("d", "sw1", &rings("d"))
            .bell("e", "sw1", &rings("e"));
        let (fabric, watch, heard) = tree.run(ns(10_000));
        // The way up, from its own link on: INTA there, and then what each downstream port makes of it.
        let found = fabric.hierarchy().unwrap();
        let device = |name: &str| {
            let index = fabric.topology().nodes.iter().position(|node| node.name == name).unwrap();
            found.function(fabric.topology().nodes[index].id).unwrap()
        };
        let port_above = |name: &str| device(name).parent.unwrap().device();
        let mut expected = vec![(ringing, 0)];
        let under_sw1 = matches!(ringing, "d" | "e");
        let mut wire = port_above(ringing);
        if under_sw1 {
            expected.push(("sw1", wire % 4));
            wire += port_above("sw1");
        }
        expected.push(("sw0", wire % 4));
        for (link, wire) in &expected {
            assert_eq!(told(&fabric, &watch, link), [(*wire, true), (*wire, false)], "{ringing} at {link}");
        }
        // At the host it ends on the wire that software works out; whoever shares that is asked, too.
        let ends_on = |name: &str| device(name).intx.unwrap().1;
        let sharing = ["a", "b", "c", "d", "e"].into_iter().filter(|name| ends_on(name) == ends_on(ringing));
        assert_eq!(heard.keys().collect::<Vec<_>>(), sharing.collect::<Vec<_>>());
        assert_eq!(heard[ringing], (1, 1), "once, with the data before it in memory");
        assert_eq!(fabric.interrupts(), 1);
    }
}

#[test]
fn shared_wires_join_and_a_wire_that_stays_asserted_calls_again() {
    // The first and the fifth port of a switch share a wire.
    let tree = || {
        Tree::new()
            .bell("a", "sw0", &[1000])
            .bell("b", "sw0", &[])
            .bell("c", "sw0", &[])
            .bell("d", "sw0", &[])
            .bell("e", "sw0", &[1005])
    };
    let (fabric, watch, heard) = tree().run(ns(20_000));
    let once = [(0, true), (0, false)];
    assert_eq!((told(&fabric, &watch, "a"), told(&fabric, &watch, "e")), (once.to_vec(), once.to_vec()));
    assert_eq!(told(&fabric, &watch, "sw0"), once, "raised by the first, lowered by the last");
    assert_eq!((heard["a"].1, heard["e"].1), (1, 1));

    // Handlers that lower nothing are called every two microseconds: from about 1.2 us on, ten times.
    let mut deaf = tree();
    deaf.answers = false;
    let (fabric, watch, heard) = deaf.run(ns(20_000));
    assert_eq!(told(&fabric, &watch, "sw0"), [(0, true)]);
    assert_eq!((heard["a"].0, heard["e"].0, fabric.interrupts()), (10, 10, 1));
}

#[test]
fn software_can_silence_the_wire_and_hear_it_later() {
    let command = |value: u16| move |bdf| (ecam_address(bdf, 4), value);
    let mut tree = Tree::new().bell("a", "sw0", &[1000]).bell("b", "sw1", &[]);
    tree.answers = false;
    let id = {
        let probe = Tree::new().bell("a", "sw0", &[]).bell("b", "sw1", &[]);
        let fabric = probe.bench.build();
        let nodes = &fabric.topology().nodes;
        nodes.iter().find(|node| node.name == "a").unwrap().id
    };
    let at = |t: u64, (address, value): (u64, u16)| (Time::ZERO + ns(t), address, value);
    // Memory, bus master and SERR#, first with Interrupt Disable, then without.
    tree.writes = vec![at(3000, command(0x506)(id)), at(6000, command(0x106)(id))];
    let (fabric, watch, _) = tree.run(ns(9000));
    assert_eq!(told(&fabric, &watch, "a"), [(0, true), (0, false), (0, true)]);
    assert_eq!(told(&fabric, &watch, "sw0").len(), 3);
    assert_eq!(fabric.interrupts(), 2);
}

#[test]
fn a_link_that_goes_down_lowers_the_wires_below_it() {
    let mut tree = Tree::new().bell("a", "sw1", &[1000]).bell("b", "sw0", &[]);
    tree.answers = false;
    let switch = tree.bench.config.switches.iter_mut().find(|switch| switch.name == "sw1").unwrap();
    let kind = FaultKind::Down { at: Time::ZERO + ns(3000), until: None };
    switch.uplink.faults.push(Fault { direction: Direction::Up, kind });
    let (fabric, watch, heard) = tree.run(ns(20_000));
    assert_eq!(told(&fabric, &watch, "sw1").iter().map(|(_, level)| *level).collect::<Vec<_>>(), [true]);
    // Then the port above asserts its own, until hot-plug software has seen to its slot.
    assert_eq!(
        told(&fabric, &watch, "sw0").iter().map(|(_, level)| *level).collect::<Vec<_>>(),
        [true, false, true, false]
    );
    assert_eq!(heard["a"].0, 2);
}

/// Raises its interrupt, and lowers it behind writes that take a quarter of a millisecond.
struct Busy;

impl Device for Busy {
    fn identity(&self) -> Identity {
        Bell::new(&[], 0).identity()
    }
    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::Start => {
                cx.assert_intx(0);
                cx.timer(Time::ZERO + ns(2000), 0);
            }
            Event::Timer { .. } => {
                for _ in 0..64 {
                    cx.dma_write(0, 0x8000, vec![0; 4096].into());
                }
                cx.deassert_intx(0);
            }
            _ => {}
        }
    }
}

#[test]
fn a_function_level_reset_lowers_the_wire_behind_queued_tlps() {
    let tree = || {
        let mut tree = Tree::new().bell("b", "sw1", &[]);
        tree.counters.insert("a".into(), 0x1000);
        tree.bench.device("a", "sw0", 3, 1).model(Box::new(Busy));
        tree.answers = false;
        tree
    };
    // Device Control of the PCI Express capability (PCIe 5.0 §7.5.3.4): bit 15 starts the reset.
    let register = {
        let mut fabric = tree().bench.build();
        let id = fabric.id_of("a").unwrap();
        let spaces = fabric.config_spaces();
        let (_, space) = spaces.iter().find(|(function, _)| *function == id).unwrap();
        let mut at = space.read(0x34) as u16 & 0xFC;
        while space.read(at) as u8 != 0x10 {
            at = (space.read(at) >> 8) as u16 & 0xFC;
        }
        ecam_address(id, at + 8)
    };
    for reset in [None, Some(10_000)] {
        let mut tree = tree();
        tree.writes = reset.into_iter().map(|at| (Time::ZERO + ns(at), register, 0x8000)).collect();
        let (fabric, watch, _) = tree.run(ns(50_000));
        let levels: Vec<bool> = told(&fabric, &watch, "a").iter().map(|(_, level)| *level).collect();
        assert_eq!(levels, if reset.is_some() { vec![true, false] } else { vec![true] });
    }
}

proptest! {
    #![proptest_config(cases(48))]

    /// However devices ring and share wires: every ring is heard with its data, every wire ends low, and every link hears of a wire only
    /// when it changes.
    #[test]
    fn every_ring_is_heard(
        under in proptest::collection::vec(any::<bool>(), 2..8),
        rings in proptest::collection::vec(proptest::collection::vec(100u64..20_000, 0..6), 8),
        seed in 0u64..100,
    ) {
        let mut tree = Tree::new();
        tree.bench.config.seed = seed;
        let mut links = vec!["sw0".to_string(), "sw1".to_string()];
        for (index, deep) in under.iter().enumerate() {
            let name = format!("d{index}");
            tree = tree.bell(&name, if *deep { "sw1" } else { "sw0" }, &rings[index]);
            links.push(name);
        }
        let (fabric, watch, heard) = tree.run(ns(200_000));
        for (index, rings) in rings.iter().enumerate().take(under.len()) {
            let count = rings.len() as u64;
            let last = heard.get(&format!("d{index}")).map_or(0, |heard| heard.1);
            prop_assert_eq!(last, count, "device {}: {:?}", index, heard);
        }
        for link in &links {
            let mut levels = [false; 4];
            for (wire, level) in told(&fabric, &watch, link) {
                prop_assert_ne!(std::mem::replace(&mut levels[usize::from(wire)], level), level);
            }
            prop_assert_eq!(levels, [false; 4], "{}", link);
        }
    }
}
