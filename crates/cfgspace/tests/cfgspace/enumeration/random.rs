//! Enumeration of any machine: trees of switches and devices, in any order, some of them broken.

use super::machine::{Bus, Machine, Node, all_bars, link};
use proptest::prelude::*;
use std::collections::BTreeMap;
use tlplab_cfgspace::enumerate::{
    Answer, Enumerator, Function, Hierarchy, InterruptPolicy, ProblemKind, Request, Settings, Step,
};
use tlplab_cfgspace::*;
use tlplab_units::{Bdf, Mps};

/// The device or switch at the end of a link, if any.
#[derive(Clone, Debug)]
enum Below {
    Nothing,
    Device(Vec<Card>, Odd),
    Switch(Vec<(u8, Below)>),
}

/// A function of a device: its number, and its registers.
#[derive(Clone, Debug)]
struct Card {
    number: u8,
    bars: [Option<Bar>; 6],
    mps: Mps,
    vectors: u16,
    msi: Option<u8>,
    virtual_functions: Option<SrIov>,
}

/// The oddity of function 0 of a device.
#[derive(Clone, Copy, Debug)]
enum Odd {
    Nothing,
    NotReady(u32),
    DiesAfter(u32),
    Reads(u16, u32),
}

impl Odd {
    fn is_broken(self) -> bool {
        matches!(self, Self::DiesAfter(_) | Self::Reads(..))
    }
}

fn any_bar() -> impl Strategy<Value = Option<Bar>> {
    prop_oneof![
        3 => Just(None),
        1 => (2u32..7).prop_map(|bits| Some(Bar::io(1 << bits))),
        2 => (4u32..22).prop_map(|bits| Some(Bar::memory32(1 << bits))),
        1 => (4u32..22).prop_map(|bits| Some(Bar::memory32(1 << bits).prefetchable())),
        1 => (4u32..22).prop_map(|bits| Some(Bar::memory64(1 << bits))),
        2 => (4u32..38).prop_map(|bits| Some(Bar::memory64(1 << bits).prefetchable())),
    ]
}

/// Base addresses as they may stand beside each other.
fn any_bars() -> impl Strategy<Value = [Option<Bar>; 6]> {
    proptest::array::uniform6(any_bar()).prop_map(|mut bars| {
        for index in 0..6 {
            let wide = |bar: Option<Bar>| bar.is_some_and(|bar| bar.kind.is_wide());
            if index == 5 && wide(bars[5]) || index > 0 && wide(bars[index - 1]) {
                bars[index] = None;
            }
        }
        bars
    })
}

fn any_virtual_functions() -> impl Strategy<Value = SrIov> {
    let bar = proptest::option::of((12u32..16).prop_map(|bits| Bar::memory64(1 << bits)));
    (1u16..40, 1u16..300, 1u16..10, bar).prop_map(|(total, first_offset, stride, bar)| {
        let bars = [None, None, bar, None, None, None];
        SrIov { total, first_offset, stride, device: 0x77, bars }
    })
}

fn any_card() -> impl Strategy<Value = Card> {
    let msi = proptest::option::of(0u8..6);
    let virtual_functions = proptest::option::weighted(0.1, any_virtual_functions());
    (any_bars(), 0usize..6, 0u16..20, msi, virtual_functions).prop_map(
        |(bars, mps, vectors, msi, virtual_functions)| Card {
            number: 0,
            bars,
            mps: Mps::ALL[mps],
            vectors,
            msi,
            virtual_functions,
        },
    )
}

/// A device: one function, several of eight, or several of 256.
fn any_cards() -> impl Strategy<Value = Vec<Card>> {
    let numbers = prop_oneof![
        3 => Just(vec![0]),
        1 => proptest::collection::btree_set(1u8..8, 1..4).prop_map(|set| set.into_iter().collect()),
        1 => proptest::collection::btree_set(1u8..=255, 1..5).prop_map(|set| set.into_iter().collect()),
    ];
    numbers.prop_flat_map(|mut numbers: Vec<u8>| {
        if numbers[0] != 0 {
            numbers.insert(0, 0);
        }
        proptest::collection::vec(any_card(), numbers.len()).prop_map(move |mut cards| {
            for (card, number) in cards.iter_mut().zip(&numbers) {
                card.number = *number;
            }
            cards
        })
    })
}

fn any_odd() -> impl Strategy<Value = Odd> {
    prop_oneof![
        8 => Just(Odd::Nothing),
        1 => (1u32..5).prop_map(Odd::NotReady),
        1 => (0u32..60).prop_map(Odd::DiesAfter),
        1 => (0u16..80, any::<u32>()).prop_map(|(dword, value)| Odd::Reads(4 * dword, value)),
    ]
}

fn any_below() -> impl Strategy<Value = Below> {
    let device = (any_cards(), any_odd()).prop_map(|(cards, odd)| Below::Device(cards, odd));
    let leaf = prop_oneof![1 => Just(Below::Nothing), 4 => device];
    leaf.prop_recursive(4, 24, 4, |inner| {
        proptest::collection::btree_map(0u8..32, inner, 1..4)
            .prop_map(|ports| Below::Switch(ports.into_iter().collect()))
    })
}

fn bridge(kind: PortType, slot: bool) -> Node {
    let slot = slot.then_some(Slot { number: 1, hot_plug: true, surprise: true, power_limit: 25 });
    let header = Type1::new(Identity::new(0x71AB, 0x0010, 0x06_04_00));
    let pcie = Pcie { slot, mps: Mps::ALL[4], ..Pcie::new(kind, link()) };
    let msi = Msi { vectors: 1, wide: true, masking: false };
    Node::new(&Layout::new(header).capability(msi).capability(pcie))
}

fn function(card: &Card, multi_function: bool, next: u8, ari: bool) -> Node {
    let header = Type0 {
        bars: card.bars,
        interrupt_pin: card.number % 5,
        multi_function,
        ..Type0::new(Identity::new(0x71AB, 1, 0xFF_00_00))
    };
    let mut layout =
        Layout::new(header).capability(Pcie { mps: card.mps, ..Pcie::new(PortType::EndPoint, link()) });
    let table_bytes = 16 * u32::from(card.vectors);
    let holds_table = |bar: &Bar| !bar.kind.is_io() && bar.size >= u64::from(table_bytes) + 8;
    let table = (0u8..).zip(&card.bars).find(|(_, bar)| bar.as_ref().is_some_and(holds_table));
    if let Some((bar, _)) = table.filter(|_| card.vectors > 0) {
        layout =
            layout.capability(MsiX { vectors: card.vectors, table: (bar, 0), pending: (bar, table_bytes) });
    }
    if let Some(exponent) = card.msi {
        layout = layout.capability(Msi { vectors: 1 << exponent, wide: exponent % 2 == 0, masking: true });
    }
    if ari {
        layout = layout.extended(ExtendedCapability::Ari { next_function: next });
    }
    if let Some(virtual_functions) = card.virtual_functions {
        layout = layout.extended(virtual_functions);
    }
    Node::new(&layout)
}

fn fill(bus: &mut Bus, below: &Below) {
    match below {
        Below::Nothing => {}
        Below::Device(cards, odd) => {
            let ari = cards.iter().any(|card| card.number > 7);
            let next = cards.iter().skip(1).map(|card| card.number).chain([0]);
            for (card, next) in cards.iter().zip(next) {
                let node = function(card, cards.len() > 1, next, ari);
                bus.insert((card.number >> 3, card.number & 7), node);
            }
            let first = bus.get_mut(&(0, 0)).unwrap();
            match *odd {
                Odd::Nothing => {}
                Odd::NotReady(reads) => first.not_ready = reads,
                Odd::DiesAfter(reads) => first.lives = reads,
                Odd::Reads(offset, value) => _ = first.broken.insert(offset, value),
            }
        }
        Below::Switch(ports) => {
            let mut upstream = bridge(PortType::Upstream, false);
            for (device, below) in ports {
                let mut downstream = bridge(PortType::Downstream, *device % 3 == 0);
                fill(&mut downstream.below, below);
                upstream.below.insert((*device, 0), downstream);
            }
            bus.insert((0, 0), upstream);
        }
    }
}

fn machine(ports: &[Below]) -> Machine {
    let mut bus_0 = BTreeMap::new();
    for (device, below) in (1..).zip(ports) {
        let mut port = bridge(PortType::RootPort, device % 2 == 0);
        fill(&mut port.below, below);
        bus_0.insert((device, 0), port);
    }
    Machine::new(bus_0)
}

/// Functions that nothing is wrong with.
fn healthy(below: &Below) -> usize {
    match below {
        Below::Nothing => 0,
        Below::Device(_, odd) if odd.is_broken() => 0,
        Below::Device(cards, _) => cards.len(),
        Below::Switch(ports) => 1 + ports.iter().map(|(_, below)| 1 + healthy(below)).sum::<usize>(),
    }
}

fn is_sound(below: &Below) -> bool {
    match below {
        Below::Nothing => true,
        Below::Device(_, odd) => !odd.is_broken(),
        Below::Switch(ports) => ports.iter().all(|(_, below)| is_sound(below)),
    }
}

fn any_machine() -> impl Strategy<Value = Vec<Below>> {
    proptest::collection::vec(any_below(), 1..4)
}

fn any_interrupts() -> impl Strategy<Value = InterruptPolicy> {
    prop_oneof![Just(InterruptPolicy::MsiX), Just(InterruptPolicy::Msi), Just(InterruptPolicy::Intx)]
}

/// Everything that holds whatever is broken.
fn check(machine: &mut Machine, found: &Hierarchy) -> BTreeMap<(u64, u32), Bdf> {
    machine.check_buses(found);
    machine.check_addresses(found);
    machine.messages(found)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_sound_machine_becomes_usable(ports in any_machine(), interrupts in any_interrupts()) {
        prop_assume!(ports.iter().all(is_sound));
        let mut machine = machine(&ports);
        let found = machine.run(Enumerator::new(Settings { interrupts, ..Settings::default() }));
        prop_assert_eq!(found.functions.len(), ports.iter().map(|below| 1 + healthy(below)).sum::<usize>());
        check(&mut machine, &found);
        machine.check_order(&found);
        machine.check_payloads(&found);
        for problem in &found.problems {
            // 64 KiB of I/O, in windows of 4 KiB, are soon given away.
            let io = |index: u8| {
                let function = found.function(problem.function).unwrap();
                all_bars(function).any(|(bar, _)| bar.index == index && bar.kind.is_io())
            };
            prop_assert!(matches!(problem.kind, ProblemKind::NoAddress { index, .. } if io(index)), "{}", problem);
        }
    }

    #[test]
    fn broken_functions_harm_no_other_function(ports in any_machine(), interrupts in any_interrupts()) {
        let mut machine = machine(&ports);
        let found = machine.run(Enumerator::new(Settings { interrupts, ..Settings::default() }));
        prop_assert!(found.functions.len() >= ports.iter().map(|below| 1 + healthy(below)).sum::<usize>());
        check(&mut machine, &found);
    }

    /// Cards come and go below a port: those that stay keep their messages, and all can still receive what the others send.
    #[test]
    fn cards_come_and_go(ports in any_machine(), cards in proptest::collection::vec((any_cards(), any_odd()), 1..4)) {
        let settings = || Settings { hot_plug_memory: (64 << 20, 1 << 36), hot_plug_buses: 8, ..Settings::default() };
        let mut machine = machine(&ports);
        let mut found = machine.run(Enumerator::new(settings()));
        for (cards, odd) in cards {
            let may = |f: &&Function| f.bridge.as_ref().is_some_and(|windows| windows.hot_plug);
            let Some(slot) = found.functions.iter().filter(may).map(|f| f.bdf).next_back() else { break };
            let before = machine.messages(&found);
            let windows = found.function(slot).unwrap().bridge.clone().unwrap();
            let below = windows.secondary..=windows.subordinate;
            let bus = &mut machine.node(slot).unwrap().below;
            bus.clear();
            fill(bus, &Below::Device(cards, odd));
            found = machine.run(Enumerator::rescan(settings(), found, slot));
            let after = check(&mut machine, &found);
            for (message, bdf) in before.into_iter().filter(|(_, bdf)| !below.contains(&bdf.bus())) {
                if machine.node(bdf).is_none_or(|node| node.lives == 0) {
                    continue; // it died meanwhile
                }
                prop_assert_eq!(after.get(&message), Some(&bdf), "{} has kept its message", bdf);
            }
            if !odd.is_broken() && ports.iter().all(is_sound) {
                machine.check_payloads(&found);
            }
        }
    }

    /// A copy taken anywhere asks for the same as the original, and finds the same.
    #[test]
    fn a_copy_goes_on_as_the_original_does(ports in any_machine(), at in 0usize..5000) {
        let (mut machine, mut its) = (machine(&ports), machine(&ports));
        let mut original = Enumerator::new(Settings::default());
        let (mut copy, mut answer, mut step) = (original.clone(), None, 0);
        loop {
            if step == at {
                copy = original.clone();
            }
            match (original.step(answer), copy.step(answer)) {
                (Step::Ask(request), Step::Ask(same)) => {
                    prop_assert_eq!(request, same);
                    answer = Some(machine.answer(request));
                    prop_assert_eq!(answer, Some(its.answer(same)));
                }
                (Step::Done(found), Step::Done(same)) => {
                    prop_assert_eq!(format!("{found:?}"), format!("{same:?}"));
                    break;
                }
                (one, other) => prop_assert!(false, "{one:?}, but the copy: {other:?}"),
            }
            step += 1;
        }
    }

    /// Enumeration comes to an end with any answers.
    #[test]
    fn enumeration_ends_under_arbitrary_answers(answers in proptest::collection::vec(any::<u32>(), 1..200)) {
        let mut answers = answers.into_iter();
        prop_assert!(steps_with(|| answers.next().unwrap_or(u32::MAX)) < 10_000);
    }
}

/// The same at every read: bridges on every bus, until bus numbers run out; then functions that look like nothing.
#[test]
fn it_ends_if_all_is_the_same() {
    for (answer, least) in [(0x0001_8086, 32 * 256 * 10), (0x0000_8086, 32 * 10), (0, 32), (0x8086_0001, 32)]
    {
        let steps = steps_with(|| answer);
        assert!((least..100 << 13).contains(&steps), "{steps} for {answer:#x}");
    }
}

/// The number of requests that software makes if those are the answers.
fn steps_with(mut value: impl FnMut() -> u32) -> u64 {
    let mut software = Enumerator::new(Settings::default());
    let mut answer = None;
    let mut steps = 0;
    while let Step::Ask(request) = software.step(answer) {
        let read = matches!(request, Request::Read { .. });
        answer = Some(if read { Answer::Value(value()) } else { Answer::Done });
        steps += 1;
    }
    steps
}
