//! Slots: cards that come and go, and the reaction of software.

use super::machine::{Machine, Node, end_point, port};
use std::collections::BTreeMap;
use tlplab_cfgspace::enumerate::{Answer, Enumerator, Hierarchy, Request, Settings, Step};
use tlplab_cfgspace::*;
use tlplab_units::{Bdf, Generation, Mps, Width};

/// The link below a slot goes up or down, as its port sees it; `true`: that is a new reason to interrupt.
fn link_state(machine: &mut Machine, slot: Bdf, active: bool) -> bool {
    let space = &mut machine.node(slot).unwrap().space;
    let (speed, width) = (Generation::Gen3, Width::new(4).unwrap());
    let before = space.slot_interrupt();
    space.set_presence(active);
    space.set_link(LinkState { speed, width, active, training: false });
    !before && space.slot_interrupt()
}

/// A card with a switch, a device on it, and a slot for another card like it.
fn card(inner: Option<Node>) -> Node {
    let slot = Slot { number: 8, hot_plug: true, ..Slot::default() };
    let device = end_point(&[(0, Bar::memory32(1 << 22)), (2, Bar::io(64))], Mps::ALL[2]);
    let mut port_below = Node::new(&port(PortType::Downstream, Some(slot)));
    port_below.below.extend(inner.map(|inner| ((0, 0), inner)));
    Node::new(&port(PortType::Upstream, None))
        .with(0, port_below)
        .with(1, Node::new(&port(PortType::Downstream, None)).with(0, Node::new(&device)))
}

#[test]
fn the_last_bus_is_below_a_slot_too() {
    let settings = || Settings { hot_plug_buses: 255, ..Settings::default() };
    let slot = Slot { number: 7, hot_plug: true, ..Slot::default() };
    let device = end_point(&[(0, Bar::memory32(1 << 17))], Mps::ALL[2]);
    let root = Node::new(&port(PortType::RootPort, Some(slot))).with(0, Node::new(&device));
    let mut machine = Machine::new([((1, 0), root)]);
    let mut found = machine.run(Enumerator::new(settings()));
    let slot = found.functions[0].bdf;
    assert_eq!(found.functions[0].bridge.as_ref().map(|windows| windows.subordinate), Some(255));
    found.functions[1].bdf = Bdf::new(255, 0, 0).unwrap();
    machine.node(slot).unwrap().below.clear();
    link_state(&mut machine, slot, true);
    link_state(&mut machine, slot, false);
    let gone = machine.run(Enumerator::serve_slot(settings(), found, slot));
    assert_eq!(gone.functions.iter().map(|function| function.bdf).collect::<Vec<_>>(), [slot]);
}

#[test]
fn a_slot_is_served_when_it_interrupts_and_everything_fits_again() {
    // Nothing is reserved but what was there.
    let settings = || Settings { hot_plug_buses: 0, hot_plug_memory: (0, 0), ..Settings::default() };
    let serve = |machine: &mut Machine, found: &Hierarchy, slot| {
        machine.run(Enumerator::serve_slot(settings(), found.clone(), slot))
    };
    let slot = Slot { number: 7, hot_plug: true, ..Slot::default() };
    let root = |slot| Node::new(&port(PortType::RootPort, slot));
    let mut machine = Machine::new([
        ((1, 0), root(None).with(0, Node::new(&end_point(&[(0, Bar::memory32(1 << 17))], Mps::ALL[2])))),
        ((4, 0), root(Some(slot)).with(0, card(Some(card(None))))),
    ]);
    let full = machine.run(Enumerator::new(settings()));
    assert_eq!((full.problems.len(), full.functions.len()), (0, 11));
    let slots = full.functions.iter().filter(|f| f.bridge.as_ref().is_some_and(|windows| windows.hot_plug));
    let [slot, inner, _] = slots.map(|f| f.bdf).collect::<Vec<_>>()[..] else { panic!("three slots") };
    let places = |found: &Hierarchy| -> BTreeMap<Bdf, _> {
        found.functions.iter().map(|f| (f.bdf, (f.bridge.clone(), f.bars.clone()))).collect()
    };
    // Taken out: nothing is left of it.
    machine.node(slot).unwrap().below.clear();
    link_state(&mut machine, slot, true);
    assert!(machine.node(slot).unwrap().space.slot_interrupt(), "the interrupt is enabled");
    link_state(&mut machine, slot, false);
    let gone = serve(&mut machine, &full, slot);
    assert_eq!(gone.functions.len(), 3);
    assert!(!machine.node(slot).unwrap().space.slot_interrupt(), "acknowledged");
    // Back again, but the card on the card comes later: it finds the room it had.
    machine.node(slot).unwrap().below.insert((0, 0), card(None));
    assert!(link_state(&mut machine, slot, true));
    let half = serve(&mut machine, &gone, slot);
    assert_eq!(half.functions.len(), 7);
    machine.check_addresses(&half);
    machine.node(inner).unwrap().below.insert((0, 0), card(None));
    assert!(link_state(&mut machine, inner, true));
    let again = serve(&mut machine, &half, inner);
    assert_eq!(again.problems, []);
    assert_eq!(places(&again), places(&full));
    machine.check_addresses(&again);
    // Nothing has happened, or its port is gone too: nothing is touched.
    for status in [0, u32::MAX] {
        let mut software = Enumerator::serve_slot(settings(), again.clone(), slot);
        let asked = software.step(None);
        assert!(matches!(asked, Step::Ask(Request::Read { function, .. }) if function == slot), "{asked:?}");
        assert!(matches!(software.step(Some(Answer::Value(status))), Step::Done(_)));
    }
}

/// A card may be in its slot, and its link down: nobody asks it anything.
#[test]
fn a_card_is_there_when_its_link_is_up() {
    let slot = Slot { number: 7, hot_plug: true, ..Slot::default() };
    let device = end_point(&[(0, Bar::memory32(1 << 17))], Mps::ALL[2]);
    let root = Node::new(&port(PortType::RootPort, Some(slot))).with(0, Node::new(&device));
    let mut machine = Machine::new([((1, 0), root)]);
    let full = machine.run(Enumerator::new(Settings::default()));
    let slot = full.functions[0].bdf;
    link_state(&mut machine, slot, true);
    link_state(&mut machine, slot, false);
    let down = machine.run(Enumerator::serve_slot(Settings::default(), full, slot));
    assert_eq!(down.functions.len(), 1);
    assert!(link_state(&mut machine, slot, true));
    let up = machine.run(Enumerator::serve_slot(Settings::default(), down, slot));
    assert_eq!(up.functions.len(), 2);
}
