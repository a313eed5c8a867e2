//! Enumeration on a small machine in memory, whose bridges route by their registers only.

use std::collections::BTreeMap;
use tlplab_config::enumerate::{
    Answer, Enumerator, Function, Hierarchy, ProblemKind, Request, Settings, Step,
};
use tlplab_config::*;
use tlplab_units::{Bdf, Duration, Generation, Mps, Width};

/// A function, what is below it, and what is odd about it.
struct Node {
    space: ConfigSpace,
    below: BTreeMap<(u8, u8), Node>,
    /// Reads that are answered "not ready" before the first proper one.
    not_ready: u32,
    /// Dwords that read as something else.
    broken: BTreeMap<u16, u32>,
}

impl Node {
    fn new(layout: &Layout) -> Self {
        let space = ConfigSpace::new(layout).expect("a layout that fits");
        Self { space, below: BTreeMap::new(), not_ready: 0, broken: BTreeMap::new() }
    }
    fn with(mut self, device: u8, node: Self) -> Self {
        self.below.insert((device, 0), node);
        self
    }
}

/// Finds who is meant, as configuration requests of type 0 and 1 do.
fn route(bus: &mut BTreeMap<(u8, u8), Node>, number: u8, target: Bdf) -> Option<&mut Node> {
    if target.bus() == number {
        return bus.get_mut(&(target.device(), target.function()));
    }
    let bridge =
        bus.values_mut().find(|node| node.space.bridge().is_some_and(|b| b.holds_bus(target.bus())))?;
    let secondary = bridge.space.bridge()?.secondary;
    route(&mut bridge.below, secondary, target)
}

type Machine = BTreeMap<(u8, u8), Node>;

fn answer(machine: &mut Machine, request: Request) -> Answer {
    match request {
        Request::Read { function, offset } => {
            let Some(node) = route(machine, 0, function) else { return Answer::Value(u32::MAX) };
            if offset == 0 && node.not_ready > 0 {
                node.not_ready -= 1;
                return Answer::Value(0xFFFF_0001);
            }
            Answer::Value(node.broken.get(&offset).copied().unwrap_or_else(|| node.space.read(offset)))
        }
        Request::Write { function, offset, enables, value } => {
            if let Some(node) = route(machine, 0, function) {
                node.space.write(offset, enables, value);
            }
            Answer::Done
        }
        Request::WriteMemory { .. } | Request::Wait(_) => Answer::Done,
    }
}

fn run(mut software: Enumerator, machine: &mut Machine) -> Hierarchy {
    let mut next = None;
    for _ in 0..1_000_000 {
        match software.step(next) {
            Step::Ask(request) => next = Some(answer(machine, request)),
            Step::Done(hierarchy) => return hierarchy,
        }
    }
    panic!("enumeration does not end");
}

fn link() -> LinkPart {
    LinkPart::new(Generation::Gen3, Width::new(4).unwrap())
}

fn port(port: PortType, slot: Option<Slot>) -> Layout {
    let header = Type1::new(Identity::new(0x1DE5, 0x0010 + port as u16, 0x06_04_00));
    Layout::new(header).capability(Pcie { slot, mps: Mps::ALL[3], ..Pcie::new(port, link()) })
}

fn end_point(bars: &[(usize, Bar)], mps: Mps) -> Layout {
    let mut header = Type0 { interrupt_pin: 1, ..Type0::new(Identity::new(0x1DE5, 1, 0xFF_00_00)) };
    for (index, bar) in bars {
        header.bars[*index] = Some(*bar);
    }
    let table = MsiX { vectors: 4, table: (0, 0), pending: (0, 0x800) };
    Layout::new(header).capability(Pcie { mps, ..Pcie::new(PortType::EndPoint, link()) }).capability(table)
}

/// Two root ports: a device; and a switch with a device, a slow device, and an empty slot.
fn machine() -> Machine {
    let nic =
        end_point(&[(0, Bar::memory32(1 << 17)), (2, Bar::io(32)), (3, Bar::memory32(1 << 14))], Mps::ALL[1]);
    let accelerator =
        end_point(&[(0, Bar::memory32(1 << 12)), (2, Bar::memory64(1 << 33).prefetchable())], Mps::ALL[2]);
    let mut slow = Node::new(&end_point(
        &[(0, Bar::memory64(1 << 20)), (2, Bar::memory64(1 << 21).prefetchable())],
        Mps::ALL[2],
    ));
    slow.not_ready = 5;
    let slot = Slot { number: 7, hot_plug: true, surprise: true, power_limit: 25 };
    let switch = Node::new(&port(PortType::Upstream, None))
        .with(0, Node::new(&port(PortType::Downstream, None)).with(0, Node::new(&accelerator)))
        .with(3, Node::new(&port(PortType::Downstream, None)).with(0, slow))
        .with(9, Node::new(&port(PortType::Downstream, Some(slot))));
    let root = |below| Node::new(&port(PortType::RootPort, None)).with(0, below);
    BTreeMap::from([((1, 0), root(Node::new(&nic))), ((4, 0), root(switch))])
}

/// No two overlap, all are aligned, and each is inside every window above it.
fn check(machine: &mut Machine, found: &Hierarchy) {
    let mut taken: Vec<(bool, u64, u64)> = Vec::new();
    for function in &found.functions {
        let node = route(machine, 0, function.bdf).expect("a function that was found is there");
        let decoded = node.space.bars();
        for bar in &function.bars {
            let Some(base) = bar.address else { continue };
            assert_eq!(base % bar.size, 0, "{}: {bar:?}", function.bdf);
            let seen = decoded[usize::from(bar.index)].expect("it decodes");
            assert_eq!((seen.base, seen.size, seen.kind), (base, bar.size, bar.kind), "{}", function.bdf);
            let (io, last) = (bar.kind.is_io(), base + bar.size - 1);
            let clash = taken.iter().find(|(o, b, l)| *o == io && base <= *l && *b <= last);
            assert_eq!(clash, None, "{}: {bar:?}", function.bdf);
            taken.push((io, base, last));
            inside_windows(machine, found, function, io, (base, last));
        }
    }
}

fn inside_windows(
    machine: &mut Machine,
    found: &Hierarchy,
    function: &Function,
    io: bool,
    (base, last): (u64, u64),
) {
    let mut above = function.parent;
    while let Some(bdf) = above {
        let bridge = route(machine, 0, bdf).unwrap().space.bridge().unwrap();
        let windows = if io { vec![&bridge.io] } else { vec![&bridge.memory, &bridge.prefetchable] };
        let holds = windows.into_iter().flatten().any(|w| w.contains(&base) && w.contains(&last));
        assert!(holds, "{}: {base:#x}..={last:#x} is not in a window of {bridge:x?} {bdf}", function.bdf);
        assert!(bridge.holds_bus(function.bdf.bus()));
        above = found.function(bdf).unwrap().parent;
    }
}

fn names(found: &Hierarchy) -> Vec<String> {
    found.functions.iter().map(|function| function.bdf.to_string()).collect()
}

#[test]
fn everything_is_found_and_has_its_place() {
    let mut machine = machine();
    let found = run(Enumerator::new(Settings::default()), &mut machine);
    assert_eq!(found.problems, []);
    let expected =
        ["00:01.0", "01:00.0", "00:04.0", "02:00.0", "03:00.0", "04:00.0", "03:03.0", "05:00.0", "03:09.0"];
    assert_eq!(names(&found), expected);
    check(&mut machine, &found);
    let at = |name: &str| found.functions.iter().find(|f| f.bdf.to_string() == name).unwrap();
    // Each root port has the payload that everything below it can.
    assert_eq!((at("01:00.0").mps, at("05:00.0").mps), (Mps::ALL[1], Mps::ALL[2]));
    assert_eq!(route(&mut machine, 0, at("03:09.0").bdf).unwrap().space.pcie().unwrap().mps, Mps::ALL[2]);
    // 64-bit prefetchable memory goes high; other memory stays low, even if it could go there.
    assert!(at("05:00.0").bars[1].address >= Some(0x100_0000_0000));
    assert!(at("05:00.0").bars[0].address < Some(1 << 32));
    // INTA of a device at 03:03's end: device 0, then 3 on the switch's bus, 0 above it, and 4 on bus 0.
    assert_eq!(at("05:00.0").intx, Some((1, 3)));
    assert_eq!(at("05:00.0").interrupts, InterruptMode::MsiX);
    assert_eq!(
        route(&mut machine, 0, at("05:00.0").bdf).unwrap().space.interrupt_mode(),
        InterruptMode::MsiX
    );
    // The empty slot has a bus number and memory to spare.
    let slot = at("03:09.0").bridge.clone().unwrap();
    assert!(slot.subordinate > slot.secondary && slot.memory.is_some() && slot.prefetchable.is_some());
}

#[test]
fn a_card_is_added_and_removed() {
    let mut machine = machine();
    let found = run(Enumerator::new(Settings::default()), &mut machine);
    let slot = found.functions.last().unwrap().bdf;
    let card =
        end_point(&[(0, Bar::memory32(1 << 16)), (2, Bar::memory64(1 << 20).prefetchable())], Mps::ALL[2]);
    route(&mut machine, 0, slot).unwrap().below.insert((0, 0), Node::new(&card));
    let settings = || Settings { settle: Duration::from_ms(100), ..Settings::default() };
    let with = run(Enumerator::rescan(settings(), found.clone(), slot), &mut machine);
    assert_eq!(with.problems, []);
    assert_eq!(with.functions.len(), found.functions.len() + 1);
    check(&mut machine, &with);
    route(&mut machine, 0, slot).unwrap().below.clear();
    let without = run(Enumerator::rescan(settings(), with, slot), &mut machine);
    assert_eq!(names(&without), names(&found));
}

#[test]
fn broken_devices_are_named_and_the_rest_goes_on() {
    type Damage = fn(&mut Node);
    let cases: [(Damage, ProblemKind); 6] = [
        (|node| node.not_ready = u32::MAX, ProblemKind::NeverReady),
        (|node| _ = node.broken.insert(0x0C, 0x007E_0000), ProblemKind::HeaderType(0x7E)),
        (|node| _ = node.broken.insert(0x40, 0x0000_4010), ProblemKind::CapabilityChain(0x40)),
        (|node| _ = node.broken.insert(0x34, 0x0000_0010), ProblemKind::CapabilityChain(0x10)),
        (
            |node| _ = node.broken.insert(0x10, 0xFF0F_0000),
            ProblemKind::BarSize { index: 0, mask: 0xFFFF_FFFF_FF0F_0000 },
        ),
        (
            |node| _ = node.broken.insert(0x10, 0x8000_0000),
            ProblemKind::NoAddress { index: 0, size: 1 << 31 },
        ),
    ];
    for (damage, expected) in cases {
        let mut machine = machine();
        let nic = machine.get_mut(&(1, 0)).unwrap().below.get_mut(&(0, 0)).unwrap();
        damage(nic);
        let found = run(Enumerator::new(Settings::default()), &mut machine);
        let kinds: Vec<ProblemKind> = found.problems.iter().map(|problem| problem.kind).collect();
        assert_eq!(kinds, [expected]);
        assert!(found.problems[0].to_string().starts_with("01:00.0: "));
        assert!(names(&found).contains(&"05:00.0".to_owned()), "{expected:?} hides the others");
    }
}
