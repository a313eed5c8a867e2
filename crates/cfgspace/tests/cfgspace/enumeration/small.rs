//! Enumeration of one small machine, and the results it must have, step by step.

use super::machine::{Machine, Node, end_point, port};
use tlplab_cfgspace::enumerate::{Enumerator, Hierarchy, ProblemKind, Settings};
use tlplab_cfgspace::*;
use tlplab_units::{Duration, Mps};

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
    Machine::new([((1, 0), root(Node::new(&nic))), ((4, 0), root(switch))])
}

fn names(found: &Hierarchy) -> Vec<String> {
    found.functions.iter().map(|function| function.bdf.to_string()).collect()
}

#[test]
fn everything_is_found_and_has_its_place() {
    let mut machine = machine();
    let found = machine.run(Enumerator::new(Settings::default()));
    assert_eq!(found.problems, []);
    let expected =
        ["00:01.0", "01:00.0", "00:04.0", "02:00.0", "03:00.0", "04:00.0", "03:03.0", "05:00.0", "03:09.0"];
    assert_eq!(names(&found), expected);
    machine.check_addresses(&found);
    let at = |name: &str| found.functions.iter().find(|f| f.bdf.to_string() == name).unwrap();
    // Each root port has the payload that everything below it can.
    assert_eq!((at("01:00.0").mps, at("05:00.0").mps), (Mps::ALL[1], Mps::ALL[2]));
    assert_eq!(machine.node(at("03:09.0").bdf).unwrap().space.pcie().unwrap().mps, Mps::ALL[2]);
    // 64-bit prefetchable memory goes high; other memory stays low, even if it could go there.
    assert!(at("05:00.0").bars[1].address >= Some(0x100_0000_0000));
    assert!(at("05:00.0").bars[0].address < Some(1 << 32));
    // INTA of a device at 03:03's end: device 0, then 3 on the switch's bus, 0 above it, and 4 on bus 0.
    assert_eq!(at("05:00.0").intx, Some((1, 3)));
    assert_eq!(at("05:00.0").interrupts, InterruptMode::MsiX);
    assert_eq!(machine.node(at("05:00.0").bdf).unwrap().space.interrupt_mode(), InterruptMode::MsiX);
    // The empty slot has a bus number and memory to spare.
    let slot = at("03:09.0").bridge.clone().unwrap();
    assert!(slot.subordinate > slot.secondary && slot.memory.is_some() && slot.prefetchable.is_some());
}

/// An end point uses tags as wide as both it and the root port can, and knows the root port's read completion boundary.
#[test]
fn end_points_take_tag_width_and_rcb_of_their_root_port() {
    type Change = fn(&mut Pcie);
    let change = |mut layout: Layout, change: Change| {
        layout.capabilities.iter_mut().for_each(|(_, capability)| {
            if let Capability::Pcie(pcie) = capability {
                change(pcie);
            }
        });
        layout
    };
    let same: Change = |_| ();
    let cases: [(Change, Change, u8, bool); 6] = [
        (same, same, 10, false),
        (|root| root.ten_bit_completer = false, same, 8, false),
        (same, |card| card.ten_bit_requester = false, 8, false),
        (same, |card| (card.extended_tag, card.ten_bit_requester) = (false, false), 5, false),
        (same, |card| card.version = PcieVersion::V1, 8, false),
        (|root| root.read_boundary_128 = true, same, 10, true),
    ];
    for (root, card, tag_bits, boundary_128) in cases {
        let root = Node::new(&change(port(PortType::RootPort, None), root));
        let card = Node::new(&change(end_point(&[(0, Bar::memory32(1 << 12))], Mps::ALL[0]), card));
        let switch = Node::new(&port(PortType::Upstream, None))
            .with(0, Node::new(&port(PortType::Downstream, None)).with(0, card));
        let mut machine = Machine::new([((1, 0), root.with(0, switch))]);
        let found = machine.run(Enumerator::new(Settings::default()));
        let card = found.functions.last().unwrap();
        let space = &machine.node(card.bdf).unwrap().space;
        let link_control = space.read(card.capability(0x10).unwrap() + 0x10);
        assert_eq!((space.pcie().unwrap().tag_bits, link_control >> 3 & 1 == 1), (tag_bits, boundary_128));
    }
}

#[test]
fn a_card_is_added_and_removed() {
    let mut machine = machine();
    let found = machine.run(Enumerator::new(Settings::default()));
    let slot = found.functions.last().unwrap().bdf;
    let card =
        end_point(&[(0, Bar::memory32(1 << 16)), (2, Bar::memory64(1 << 20).prefetchable())], Mps::ALL[2]);
    machine.node(slot).unwrap().below.insert((0, 0), Node::new(&card));
    let settings = || Settings { settle: Duration::from_ms(100), ..Settings::default() };
    let with = machine.run(Enumerator::rescan(settings(), found.clone(), slot));
    assert_eq!(with.problems, []);
    assert_eq!(with.functions.len(), found.functions.len() + 1);
    machine.check_addresses(&with);
    machine.node(slot).unwrap().below.clear();
    let without = machine.run(Enumerator::rescan(settings(), with, slot));
    assert_eq!(names(&without), names(&found));
}

#[test]
fn broken_devices_are_named_and_the_rest_goes_on() {
    type Damage = fn(&mut Node);
    let cases: [(Damage, &[ProblemKind]); 9] = [
        (|node| node.not_ready = u32::MAX, &[ProblemKind::NeverReady]),
        (|node| _ = node.broken.insert(0x0C, 0x007E_0000), &[ProblemKind::HeaderType(0x7E)]),
        (|node| _ = node.broken.insert(0x40, 0x0000_4010), &[ProblemKind::CapabilityChain(0x40)]),
        (|node| _ = node.broken.insert(0x34, 0x0000_0010), &[ProblemKind::CapabilityChain(0x10)]),
        // Without a BAR there is no table, either.
        (
            |node| _ = node.broken.insert(0x10, 0xFF0F_0000),
            &[ProblemKind::BarSize { index: 0, mask: 0xFFFF_FFFF_FF0F_0000 }, ProblemKind::MsixTable],
        ),
        (
            |node| _ = node.broken.insert(0x10, u32::MAX),
            &[ProblemKind::BarSize { index: 0, mask: 0xFFFF_FFFF }, ProblemKind::MsixTable],
        ),
        (
            |node| _ = node.broken.insert(0x10, 0x8000_0000),
            &[ProblemKind::NoAddress { index: 0, size: 1 << 31, low_memory: true }],
        ),
        // It has the right size, and then another address than it was given.
        (
            |node| _ = node.broken.insert(0x10, 0xFFFE_0000),
            &[ProblemKind::BarUnkept { index: 0, found: 0xFFFE_0000 }],
        ),
        (|node| _ = node.broken.insert(0x7C + 4, 0x0002_0000), &[ProblemKind::MsixTable]),
    ];
    for (damage, expected) in cases {
        let mut machine = machine();
        let nic = machine.bus_0.get_mut(&(1, 0)).unwrap().below.get_mut(&(0, 0)).unwrap();
        damage(nic);
        let found = machine.run(Enumerator::new(Settings::default()));
        let kinds: Vec<ProblemKind> = found.problems.iter().map(|problem| problem.kind).collect();
        assert_eq!(kinds, expected);
        assert!(found.problems[0].to_string().starts_with("01:00.0: "));
        assert!(names(&found).contains(&"05:00.0".to_owned()), "{expected:?} hides the others");
    }
}

/// A card with functions 0, 5 and 9, and 40 virtual functions of function 0.
fn virtual_card(mps: Mps) -> [((u8, u8), Node); 3] {
    let bars =
        [Some(Bar::memory64(1 << 14).prefetchable()), None, Some(Bar::memory32(1 << 13)), None, None, None];
    let virtual_functions = SrIov { total: 40, first_offset: 16, stride: 8, device: 2, bars };
    let with_next = |next_function| {
        end_point(&[(0, Bar::memory32(1 << 12))], mps).extended(ExtendedCapability::Ari { next_function })
    };
    let first = with_next(5).extended(virtual_functions);
    [((0, 0), Node::new(&first)), ((0, 5), Node::new(&with_next(9))), ((1, 1), Node::new(&with_next(0)))]
}

#[test]
fn virtual_functions_have_their_room_and_stay_off() {
    let slot = Slot { number: 7, hot_plug: true, surprise: true, power_limit: 25 };
    let mut port = Node::new(&port(PortType::RootPort, Some(slot)));
    port.below.extend(virtual_card(Mps::ALL[2]));
    let mut machine = Machine::new([((1, 0), port)]);
    let settings = || Settings { hot_plug_buses: 2, ..Settings::default() };
    let found = machine.run(Enumerator::new(settings()));
    assert_eq!(found.problems, []);
    assert_eq!(names(&found), ["00:01.0", "01:00.0", "01:00.5", "01:01.1"]);
    machine.check_addresses(&found);
    machine.check_buses(&found);
    let functions = found.functions[1].virtual_functions.clone().unwrap();
    // 16 and 39 steps of 8 behind 01:00.0: the last is on a bus of its own.
    assert_eq!(
        (functions.first.to_string(), functions.last.to_string()),
        ("01:02.0".into(), "02:09.0".into())
    );
    let sizes: Vec<(u8, u64)> = functions.bars.iter().map(|bar| (bar.index, bar.size)).collect();
    assert_eq!(sizes, [(7, 1 << 14), (9, 1 << 13)]);
    // All of them have room in the windows of the port above.
    let windows = found.functions[0].bridge.clone().unwrap();
    assert!(windows.subordinate >= 2 && windows.ari_forwarding);
    let room = |window: Option<core::ops::RangeInclusive<u64>>| window.map(|w| w.end() - w.start() + 1);
    assert!(room(windows.prefetchable) >= Some(40 << 14) && room(windows.memory) >= Some(40 << 13));
    let space = &machine.node(found.functions[1].bdf).unwrap().space;
    let at = found.functions[1].extended_capability(0x10).unwrap();
    // Neither enabled nor decoding; the hierarchy knows ARI; none of them is there; pages of 4 KiB; the addresses are written.
    assert_eq!((space.read(at + 0x08) & 0xFFFF, space.read(at + 0x10) & 0xFFFF), (0x10, 0));
    assert_eq!(space.read(at + 0x20), 1);
    let prefetchable = functions.bars[0].address.unwrap();
    let written = u64::from(space.read(at + 0x28)) << 32 | u64::from(space.read(at + 0x24) & !0xF);
    assert_eq!(written, prefetchable);

    // A plain card in its place: the port forwards to device 0 only, as there is nobody else.
    let bus = &mut machine.node(found.functions[0].bdf).unwrap().below;
    bus.clear();
    bus.insert((0, 0), Node::new(&end_point(&[(0, Bar::memory32(1 << 12))], Mps::ALL[1])));
    let slot = found.functions[0].bdf;
    let found = machine.run(Enumerator::rescan(settings(), found, slot));
    assert_eq!(names(&found), ["00:01.0", "01:00.0"]);
    assert!(!machine.node(slot).unwrap().space.pcie().unwrap().ari_forwarding);
    // It can receive less than the card before it: the port above sends no more.
    assert_eq!(machine.node(slot).unwrap().space.pcie().unwrap().mps, Mps::ALL[1]);
    // And back again: what was lowered is not raised.
    machine.node(slot).unwrap().below.clear();
    machine.node(slot).unwrap().below.extend(virtual_card(Mps::ALL[2]));
    let found = machine.run(Enumerator::rescan(settings(), found, slot));
    assert_eq!(found.problems, []);
    assert!(found.functions.iter().all(|function| function.mps == Mps::ALL[1]));
    machine.check_payloads(&found);
}
