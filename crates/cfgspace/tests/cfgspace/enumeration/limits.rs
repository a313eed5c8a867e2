//! The reaction of software to functions that say odd things, and to too few numbers and addresses.

use super::machine::{Machine, Node};
use super::registers::{PCIE, at, bridge, card, check, same, settings};
use tlplab_cfgspace::enumerate::{Answer, Enumerator, Hierarchy, ProblemKind, Request, Settings, Step};
use tlplab_cfgspace::*;
use tlplab_units::{Duration, Mps};

pub(super) fn root(below: Node) -> Node {
    Node::new(&bridge(PortType::RootPort, same)).with(0, below)
}

pub(super) fn enumerate(
    machine: &mut Machine,
    settings: Settings,
) -> (Hierarchy, Vec<(String, ProblemKind)>) {
    let found = machine.run(Enumerator::new(settings));
    let problems =
        found.problems.iter().map(|problem| (problem.function.to_string(), problem.kind)).collect();
    (found, problems)
}

fn names(found: &Hierarchy) -> Vec<String> {
    found.functions.iter().map(|function| function.bdf.to_string()).collect()
}

#[test]
fn chains_of_capabilities_end_where_they_are_broken() {
    let layout = card(&[], Mps::ALL[0])
        .extended(Aer::default())
        .extended_at(0x200, ExtendedCapability::SerialNumber(7));
    let (pcie, aer, serial) = ((0x10, false, 0x40), (0x01, true, 0x100), (0x03, true, 0x200));
    let chain = ProblemKind::CapabilityChain;
    type Broken = &'static [(u16, u32)];
    let cases: [(Broken, &[_], &[ProblemKind]); 8] = [
        (&[], &[pcie, aer, serial], &[]),
        // The two lowest bits of the pointer are reserved.
        (&[(0x34, 0x43)], &[pcie, aer, serial], &[]),
        // A pointer, and a status that says that there is none.
        (&[(0x04, 0)], &[], &[]),
        (&[(0x100, 0)], &[pcie], &[]),
        (&[(0x100, u32::MAX)], &[pcie], &[]),
        (&[(0x100, 0x0801_0001)], &[pcie, aer], &[chain(0x80)]),
        (&[(0x200, u32::MAX)], &[pcie, aer], &[chain(0x200)]),
        (&[(0x200, 0x1001_0003)], &[pcie, aer, serial], &[chain(0x100)]),
    ];
    for (broken, chains, expected) in cases {
        let mut node = Node::new(&layout);
        node.broken.extend(broken.iter().copied());
        let (found, problems) = enumerate(&mut Machine::new([((1, 0), root(node))]), settings());
        let capabilities = &at(&found, "01:00.0").capabilities;
        let seen: Vec<_> = capabilities.iter().map(|c| (c.id, c.extended, c.offset)).collect();
        assert_eq!(seen, chains, "{broken:x?}");
        let expected: Vec<_> = expected.iter().map(|kind| ("01:00.0".to_owned(), *kind)).collect();
        assert_eq!(problems, expected, "{broken:x?}");
    }
}

#[test]
fn malformed_base_addresses_are_reported() {
    let cases = [
        // 64 bits wide, and there is no place for the upper ones.
        (0x24, 0xFFFF_000C, ProblemKind::BarSize { index: 5, mask: 0xFFFF_000C }, None),
        // 16 bits of I/O address: 32 bytes, which do not keep what is written.
        (0x14, 0x0000_FFE1, ProblemKind::BarUnkept { index: 1, found: 0xFFE1 }, Some((1, 32))),
    ];
    for (register, reads, problem, expected) in cases {
        let mut node = Node::new(&card(&[], Mps::ALL[0]));
        node.broken.insert(register, reads);
        let (found, problems) = enumerate(&mut Machine::new([((1, 0), root(node))]), settings());
        assert_eq!(problems, [("01:00.0".to_owned(), problem)]);
        let bars = &at(&found, "01:00.0").bars;
        assert_eq!(bars.first().map(|bar| (bar.index, bar.size)), expected);
    }
}

/// Ten bits of tag need a completer above with a second set of capabilities, and eight bits of one's own.
#[test]
fn tags_are_as_wide_as_both_ends_can() {
    let plain = || card(&[], Mps::ALL[0]);
    let narrow = || {
        let mut layout = plain();
        for (_, capability) in &mut layout.capabilities {
            if let Capability::Pcie(pcie) = capability {
                pcie.extended_tag = false;
            }
        }
        layout
    };
    // Where the second set would be there is another capability, with a one where the bit would be.
    let first = bridge(PortType::RootPort, |_, pcie| pcie.version = PcieVersion::V1);
    let first = first.capability_at(PCIE + 0x24, Capability::Vendor(vec![0, 0]));
    let second = bridge(PortType::RootPort, same);
    let cases =
        [(&second, plain(), 0x1000), (&second, narrow(), 0), (&first, plain(), 0), (&first, narrow(), 0)];
    for (port, end, expected) in cases {
        let port = Node::new(port).with(0, Node::new(&end));
        let mut machine = Machine::new([((1, 0), port)]);
        let (found, problems) = enumerate(&mut machine, settings());
        assert_eq!(problems, []);
        check(&mut machine, &found, "01:00.0", &[(PCIE + 0x28, expected)]);
    }
    // A part of the root complex has no root port above it.
    let header = Type0::new(Identity::new(0x71AB, 1, 0xFF_00_00));
    let part = Layout::new(header).capability_at(PCIE, Pcie::new(PortType::RcIntegrated, None));
    let mut machine = Machine::new([((1, 0), Node::new(&part))]);
    let (found, _) = enumerate(&mut machine, settings());
    check(&mut machine, &found, "00:01.0", &[(PCIE + 0x28, 0)]);
}

#[test]
fn empty_bridges_take_no_addresses() {
    let mut header = Type0::new(Identity::new(0x71AB, 1, 0xFF_00_00));
    (header.bars[0], header.bars[1]) = (Some(Bar::memory32(4096)), Some(Bar::io(4)));
    let part = Layout::new(header).capability_at(PCIE, Pcie::new(PortType::RcIntegrated, None));
    let empty = Node::new(&bridge(PortType::RootPort, same));
    let mut machine = Machine::new([((1, 0), empty), ((2, 0), Node::new(&part))]);
    let settings = Settings { memory: (0xC120_1000, 0xE000_0000), io: (0x1004, 0x1_0000), ..settings() };
    let (found, problems) = enumerate(&mut machine, settings);
    assert_eq!(problems, []);
    let addresses: Vec<_> = at(&found, "00:02.0").bars.iter().map(|bar| bar.address).collect();
    assert_eq!(addresses, [Some(0xC120_1000), Some(0x1004)]);
}

/// A bridge that asks for more than there is has the range that is left, in whole granules.
#[test]
fn a_bridge_takes_the_rest_of_a_scarce_range() {
    let machine = || {
        let card = || Node::new(&card(&[(0, Bar::memory32(1 << 20)), (1, Bar::io(32))], Mps::ALL[0]));
        let switch = Node::new(&bridge(PortType::Upstream, same))
            .with(0, Node::new(&bridge(PortType::Downstream, same)).with(0, card()))
            .with(1, Node::new(&bridge(PortType::Downstream, same)).with(0, card()));
        Machine::new([((1, 0), root(switch))])
    };
    let windows = |memory, io| {
        let (found, problems) = enumerate(&mut machine(), Settings { memory, io, ..settings() });
        let top = at(&found, "00:01.0").bridge.clone().unwrap();
        (top.memory, top.io, problems.len())
    };
    let (most, least) = ((0xC000_0000, 0xE000_0000), (0xC000_0000, 0xC018_0000));
    assert_eq!(windows(most, (0x1000, 0x3000)), (Some(0xC000_0000..=0xC01F_FFFF), Some(0x1000..=0x2FFF), 0));
    assert_eq!(windows(least, (0x1000, 0x2800)), (Some(0xC000_0000..=0xC00F_FFFF), Some(0x1000..=0x1FFF), 2));
    // Less than a granule is nothing.
    assert_eq!(windows((0xC000_0000, 0xC008_0000), (0x1000, 0x1800)), (None, None, 4));
}

#[test]
fn a_bridge_without_a_bus_number_forwards_nothing() {
    let slot = Slot { number: 7, hot_plug: true, ..Slot::default() };
    let greedy = bridge(PortType::RootPort, |_, pcie| pcie.slot = Some(slot));
    let mut second = root(Node::new(&card(&[(0, Bar::memory32(4096))], Mps::ALL[0])));
    // Firmware has left limits far up, by which windows would be open whatever their lower halves say.
    for register in [0x2C, 0x30] {
        second.space.write(register, 0xF, 0x0001_0000);
    }
    let mut machine = Machine::new([((1, 0), Node::new(&greedy)), ((2, 0), second)]);
    let (found, problems) = enumerate(&mut machine, Settings { hot_plug_buses: 255, ..settings() });
    assert_eq!(problems, [("00:02.0".to_owned(), ProblemKind::NoBusNumber)]);
    assert_eq!(names(&found), ["00:01.0", "00:02.0"]);
    let closed = [
        (0x18, 0),
        (0x1C, 0x0000_01F1),
        (0x20, 0x0000_FFF0),
        (0x24, 0x0001_FFF1),
        (0x28, 0),
        (0x2C, 0),
        (0x30, 0),
    ];
    check(&mut machine, &found, "00:02.0", &closed);
    assert_eq!(at(&found, "00:02.0").bridge, None, "nothing goes through it");
}

#[test]
fn a_list_of_functions_that_leads_back_ends() {
    let next = |next_function| {
        Node::new(&card(&[], Mps::ALL[0]).extended(ExtendedCapability::Ari { next_function }))
    };
    let machine = |change: fn(&mut Type1, &mut Pcie), last| {
        let mut port = Node::new(&bridge(PortType::RootPort, change));
        port.space.write(PCIE + 0x28, 0b11, 0x0005);
        port.below.extend([((0, 0), next(5)), ((0, 5), next(9)), ((1, 1), next(last))]);
        Machine::new([((1, 0), port)])
    };
    for last in [0, 5, 9] {
        let mut machine = machine(same, last);
        let (found, _) = enumerate(&mut machine, settings());
        assert_eq!(names(&found), ["00:01.0", "01:00.0", "01:00.5", "01:01.1"], "after {last}");
        check(&mut machine, &found, "00:01.0", &[(PCIE + 0x28, 0x0000_0025)]);
    }
    // A port that cannot forward to such numbers.
    let mut machine = machine(|_, pcie| pcie.ari_forwarding = false, 0);
    let (found, _) = enumerate(&mut machine, settings());
    assert_eq!(names(&found), ["00:01.0", "01:00.0"]);
    assert!(!at(&found, "00:01.0").bridge.as_ref().unwrap().ari_forwarding);
    check(&mut machine, &found, "00:01.0", &[(PCIE + 0x28, 0x0000_0005)]);
}

fn with_virtual(total: u16, first_offset: u16, stride: u16) -> Node {
    let functions = SrIov { total, first_offset, stride, device: 2, bars: [None; 6] };
    let mut node = Node::new(&card(&[], Mps::ALL[0]).extended(functions));
    // Somebody has used them before.
    node.space.write(0x108, 0b11, 0x10);
    node.space.write(0x110, 0b11, 5);
    node.space.write(0x120, 0xF, 0x10);
    node
}

#[test]
fn ids_of_virtual_functions_are_apart() {
    for (total, offset, stride, fine) in
        [(1, 1, 0, true), (2, 1, 1, true), (2, 1, 0, false), (1, 0, 1, false)]
    {
        let mut machine = Machine::new([((1, 0), root(with_virtual(total, offset, stride)))]);
        let (found, problems) = enumerate(&mut machine, settings());
        assert_eq!(at(&found, "01:00.0").virtual_functions.is_some(), fine);
        let expected = ("01:00.0".to_owned(), ProblemKind::VirtualIds { offset, stride });
        assert_eq!(problems, if fine { vec![] } else { vec![expected] });
        // Off, and none there; pages of 4 KiB where they are used.
        let page = if fine { 1 } else { 0x10 };
        check(&mut machine, &found, "01:00.0", &[(0x108, 0), (0x110, 0), (0x120, page)]);
    }
}

#[test]
fn virtual_functions_have_buses_of_their_own() {
    let machine = |first: Node, second: Node| {
        let switch = Node::new(&bridge(PortType::Upstream, same)).with(0, first).with(1, second);
        Machine::new([((1, 0), root(switch))])
    };
    let port = || Node::new(&bridge(PortType::Downstream, same));
    // 02:01.0 and 256 behind it is on bus 3, which is the port's.
    let (found, problems) = enumerate(&mut machine(port(), with_virtual(1, 0x100, 1)), settings());
    assert_eq!(problems, [("02:01.0".to_owned(), ProblemKind::NoVirtualBus)]);
    assert_eq!(at(&found, "02:01.0").virtual_functions, None);
    // In the other order the port is behind it.
    let (found, problems) = enumerate(&mut machine(with_virtual(1, 0x100, 1), port()), settings());
    assert_eq!(problems, []);
    assert_eq!(at(&found, "02:00.0").virtual_functions.as_ref().unwrap().last.to_string(), "03:00.0");
    assert_eq!(at(&found, "02:01.0").bridge.as_ref().unwrap().secondary, 4);
}

#[test]
fn a_card_that_comes_later_has_the_buses_of_its_slot_and_lowers_payloads() {
    let slot = Slot { number: 7, hot_plug: true, ..Slot::default() };
    let port = bridge(PortType::RootPort, |_, pcie| pcie.slot = Some(slot));
    let mut machine = Machine::new([((1, 0), Node::new(&port))]);
    let kept = |settle| Settings { hot_plug_buses: 0, settle, ..settings() };
    let found = machine.run(Enumerator::new(kept(Duration::ZERO)));
    check(&mut machine, &found, "00:01.0", &[(PCIE + 0x08, 0x0000_497F)]);
    let above = at(&found, "00:01.0").bdf;
    machine.node(above).unwrap().below.insert((0, 0), with_virtual(1, 0x100, 1));
    // The link settles first, if it has to.
    let first = |settle| match Enumerator::rescan(kept(settle), found.clone(), above).step(None) {
        Step::Ask(request) => request,
        Step::Done(_) => panic!("it has done nothing"),
    };
    let settle = Duration::from_ms(3);
    assert_eq!(first(settle), Request::Wait(settle));
    assert!(matches!(first(Duration::ZERO), Request::Write { .. }));
    let found = machine.run(Enumerator::rescan(kept(settle), found, above));
    let kinds: Vec<_> = found.problems.iter().map(|problem| problem.kind).collect();
    assert_eq!(kinds, [ProblemKind::NoVirtualBus]);
    check(&mut machine, &found, "00:01.0", &[(PCIE + 0x08, 0x0000_491F)]);
    check(&mut machine, &found, "01:00.0", &[(PCIE + 0x08, 0x0000_491F)]);
}

#[test]
fn a_slot_keeps_nothing_that_its_bridge_does_not_forward() {
    let windows = |prefetchable| {
        let slot = Slot { number: 7, hot_plug: true, ..Slot::default() };
        let port = bridge(PortType::RootPort, move |header, pcie| {
            (header.prefetchable, pcie.slot) = (prefetchable, Some(slot));
        });
        let (found, problems) = enumerate(&mut Machine::new([((1, 0), Node::new(&port))]), settings());
        assert_eq!(problems, []);
        let windows = at(&found, "00:01.0").bridge.clone().unwrap();
        (windows.memory, windows.prefetchable)
    };
    let memory = Some(0xC120_0000..=0xC13F_FFFF);
    assert_eq!(windows(true), (memory.clone(), Some(0x123_4000_0000..=0x123_401F_FFFF)));
    assert_eq!(windows(false), (memory, None));
}

/// Enumerates, with somebody who sees each request and its answer, and may change the answer.
pub(super) fn watch(
    machine: &mut Machine,
    settings: Settings,
    mut see: impl FnMut(&mut Machine, Request, Answer) -> Answer,
) -> Hierarchy {
    let (mut software, mut answer) = (Enumerator::new(settings), None);
    loop {
        let request = match software.step(answer) {
            Step::Ask(request) => request,
            Step::Done(found) => return found,
        };
        let value = machine.answer(request);
        answer = Some(see(machine, request, value));
    }
}

/// The slot's bit stands beside the interrupt vector of the port, which may be any.
#[test]
fn hot_plug_slots_are_found_at_any_interrupt_vector() {
    for interrupt_vector in [0, 1, 0x1F] {
        for hot_plug in [None, Some(false), Some(true)] {
            let port = bridge(PortType::RootPort, move |_, pcie| {
                pcie.interrupt_vector = interrupt_vector;
                pcie.slot = hot_plug.map(|hot_plug| Slot { hot_plug, ..Slot::default() });
            });
            let (found, _) = enumerate(&mut Machine::new([((1, 0), Node::new(&port))]), settings());
            let windows = at(&found, "00:01.0").bridge.as_ref().unwrap();
            assert_eq!(windows.hot_plug, hot_plug == Some(true), "vector {interrupt_vector}, {hot_plug:?}");
        }
    }
}

/// Offset and stride may depend on the number of virtual functions (PCIe 5.0 §9.3.3.9, §9.3.3.10): they are read with all of them there.
#[test]
fn offset_and_stride_are_read_with_all_virtual_functions() {
    let mut machine = Machine::new([((1, 0), root(with_virtual(3, 1, 1)))]);
    let found = watch(&mut machine, settings(), |machine, request, value| {
        if let Request::Read { function, offset: 0x114 } = request
            && let Some(node) = machine.node(function).filter(|_| function.bus() == 1)
            && node.space.read(0x110) & 0xFFFF == 3
        {
            return Answer::Value(0x0004_0010);
        }
        value
    });
    let functions = at(&found, "01:00.0").virtual_functions.as_ref().unwrap();
    assert_eq!(
        (functions.first.to_string(), functions.last.to_string()),
        ("01:02.0".into(), "01:03.0".into())
    );
}

#[test]
fn problems_vanish_with_the_removed_function() {
    let broken = || {
        let mut node = Node::new(&card(&[], Mps::ALL[0]));
        node.broken.insert(0x0C, 0x007E_0000);
        root(node)
    };
    let mut machine = Machine::new([((1, 0), broken()), ((2, 0), broken())]);
    let (found, problems) = enumerate(&mut machine, settings());
    let [first, second] = ["01:00.0", "02:00.0"].map(|name| (name.to_owned(), ProblemKind::HeaderType(0x7E)));
    assert_eq!(problems, [first, second.clone()]);
    let above = at(&found, "00:01.0").bdf;
    machine.node(above).unwrap().below.clear();
    let found = machine.run(Enumerator::rescan(settings(), found, above));
    let left: Vec<_> =
        found.problems.iter().map(|problem| (problem.function.to_string(), problem.kind)).collect();
    assert_eq!(left, [second]);
}
