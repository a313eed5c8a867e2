//! Enumeration over the links: the same software and the same outcome as before time 0, by requests that are seen, in time, and whatever
//! is absent, slow or broken.

use crate::bench::any::cases;
use crate::bench::any::strategies::any_fabric;
use crate::bench::script::{Card, Place, Script, read};
use crate::bench::{Bench, Watch, ns};
use proptest::prelude::*;
use tlplab_cfgspace::enumerate::{Function, ProblemKind};
use tlplab_cfgspace::{ConfigSpace, PortType};
use tlplab_device::{BarSpec, Identity};
use tlplab_fabric::config::*;
use tlplab_fabric::errors::ErrorKind;
use tlplab_fabric::{Ending, Fabric};
use tlplab_units::{Bdf, Duration, Generation, Rcb, Time};
use tlplab_wire::tlp::{Kind, Repr};

/// Runs until software has enumerated; when that was.
fn enumerate(fabric: &mut Fabric) -> Time {
    while fabric.hierarchy().is_none() {
        assert!(fabric.next_event().is_some(), "enumeration stands still");
        fabric.step();
    }
    fabric.now()
}

/// The register is the log of correctable errors, or a part of it: late acknowledgements leave their marks.
fn is_log(function: &Function, at: u16) -> bool {
    let device_control = function.capability(0x10).map(|at| at + 0x08);
    let (status, root) = (0x10, [0x30, 0x34]);
    let aer = function.extended_capability(0x0001);
    Some(at) == device_control
        || aer.is_some_and(|aer| at == aer + status || root.map(|r| aer + r).contains(&at))
}

fn assert_same_registers(before: &mut Fabric, simulated: &mut Fabric) {
    let found = simulated.hierarchy().unwrap().clone();
    let (before, simulated) = (before.config_spaces(), simulated.config_spaces());
    let ids = |spaces: &[(Bdf, ConfigSpace)]| spaces.iter().map(|(id, _)| *id).collect::<Vec<_>>();
    assert_eq!(ids(&before), ids(&simulated));
    for ((id, before), (_, simulated)) in before.iter().zip(&simulated) {
        let function = found.function(*id).unwrap();
        for at in (0..4096).step_by(4) {
            let mask = if !is_log(function, at) {
                u32::MAX
            } else if at < 0x100 {
                0xFFFF
            } else {
                0
            };
            assert_eq!(before.read(at) & mask, simulated.read(at) & mask, "{id}: register {at:#x}");
        }
    }
}

proptest! {
    #![proptest_config(cases(48))]

    /// In any tree, with links as narrow and buffers as small as may be, the registers and the later traffic are the same.
    #[test]
    fn simulated_enumeration_sets_the_registers_of_instant_enumeration(any in any_fabric(), ready in 0u64..50) {
        let mut before = any.build();
        let mut simulated = any.build_with(|config| {
            config.host.enumeration = EnumerationTime::Simulated;
            config.devices.iter_mut().for_each(|device| device.ready = ns(ready));
        });
        prop_assert!(before.fabric.hierarchy().is_some());
        let over = enumerate(&mut simulated.fabric);
        prop_assert!(over > Time::ZERO);
        assert_same_registers(&mut before.fabric, &mut simulated.fabric);
        prop_assert_eq!(before.fabric.devices(), simulated.fabric.devices());
        prop_assert_eq!(&simulated.fabric.hierarchy().unwrap().problems, &[]);
        simulated.run(Duration::from_ms(400));
        simulated.check_quiet(&any.idle());
        for worker in &simulated.workers {
            let moved = worker.lock().unwrap();
            prop_assert!(moved.failed.is_empty() && moved.wrong.is_empty());
            prop_assert_eq!(moved.started, moved.read + moved.accepted);
        }
    }
}

/// Two switches in a row, cards at the end and beside it.
fn tree(simulated: bool) -> Bench {
    let mut bench = Bench::new();
    if simulated {
        bench.config.host.enumeration = EnumerationTime::Simulated;
    }
    bench.switch("sw0", "host.rp0", 3, 4).latency = ns(50);
    bench.switch("sw1", "sw0", 3, 4).latency = ns(50);
    bench.device("deep", "sw1", 3, 4).model(Card::new().0);
    bench.device("high", "sw0", 3, 2).model(Card::new().0);
    bench.device("alone", "host.rp3", 2, 1).memory(1 << 20);
    bench
}

/// 10-bit tags come with 16 GT/s, the read completion boundary is the host's, and no two slots have the same number.
#[test]
fn registers_show_links_slots_and_host() {
    for (rcb, boundary) in Rcb::ALL.iter().copied().zip([0, 1]) {
        let mut bench = tree(false);
        bench.config.host.rcb = rcb;
        bench.device("fast", "host.rp5", 4, 4).model(Card::new().0);
        let mut fabric = bench.build();
        let found = fabric.hierarchy().unwrap().clone();
        let mut slots = Vec::new();
        for (id, space) in fabric.config_spaces() {
            let Some(at) = found.function(id).unwrap().capability(0x10) else { continue };
            let (port, link) = (space.pcie().unwrap().port.unwrap(), space.link().unwrap());
            let is_fast = link.capable.0 >= Generation::Gen4;
            assert_eq!(space.read(at + 0x24) >> 16 & 1 == 1, is_fast, "{id}: 10-bit tag completer");
            let shows = if matches!(port, PortType::RootPort | PortType::EndPoint) { boundary } else { 0 };
            assert_eq!(space.read(at + 0x10) >> 3 & 1, shows, "{id}: read completion boundary");
            if port.is_downstream() {
                slots.push(space.read(at + 0x14) >> 19);
            }
        }
        let count = slots.len();
        slots.sort();
        slots.dedup();
        assert_eq!((count, slots.len()), (6, 6));
    }
}

/// The devices that software found.
fn names(fabric: &Fabric) -> Vec<&str> {
    let hierarchy = fabric.hierarchy().unwrap();
    // Who was never asked for does not know its own ID.
    let found =
        fabric.devices().iter().filter(|info| info.id != Bdf(0) && hierarchy.function(info.id).is_some());
    found.map(|info| info.name.as_str()).collect()
}

/// (type 1, bus, device) of the configuration requests that went down a link.
fn targets(watch: &Watch, fabric: &Fabric, link: &str) -> Vec<(bool, u8, u8)> {
    let target = |repr: &Repr| match repr.kind() {
        Kind::CfgRead { target, .. } | Kind::CfgWrite { target, .. } => {
            Some((target.is_type1(), target.function().bus(), target.function().device()))
        }
        _ => None,
    };
    watch.tlps(fabric, link, 1).iter().filter_map(|(_, repr)| target(repr)).collect()
}

#[test]
fn requests_are_of_type_1_until_they_reach_their_bus() {
    let watch = Watch::everything();
    let mut fabric = tree(true).build_watched(watch.probe());
    let over = enumerate(&mut fabric);
    assert_same_registers(&mut tree(false).build(), &mut fabric);
    assert_eq!(names(&fabric), ["alone", "deep", "high"]);
    // The root port has bus 1 below it; sw0 has 2 inside, sw1 is on 4 behind "high" on 3, 5 is inside it, and "deep" is on 6.
    let bus_of = |name: &str| fabric.id_of(name).unwrap().bus();
    assert_eq!(["sw0", "high", "sw1", "deep", "alone"].map(bus_of), [1, 3, 4, 6, 7]);
    let mut all = 0;
    for (link, bus) in [("sw0", 1), ("high", 3), ("sw1", 4), ("deep", 6), ("alone", 7)] {
        let targets = targets(&watch, &fabric, link);
        all += targets.len();
        for (type1, target, device) in &targets {
            assert_eq!(*type1, *target != bus, "bus {target} on the link of {link}");
            assert!(*type1 || *device == 0, "device {device} at the end of a link");
        }
        let ahead = targets.iter().filter(|(_, target, _)| *target > bus).count();
        assert_eq!(ahead > 0, link.starts_with("sw"), "{link}");
    }
    // One request at a time, and no reply takes less than the way there and back.
    assert!(over > Time::ZERO + ns(100) * (all as u64 / 4), "{all} requests in {over}");
    // Inside sw0 there are devices 0 and 1: the other 30 are asked for and refused.
    let refused = |name: &str| -> u64 {
        let errors =
            fabric.errors().filter(|error| matches!(error.kind, ErrorKind::UnsupportedRequest { .. }));
        errors.filter(|error| fabric.topology().ports[error.port.index()].name == name).map(|e| e.count).sum()
    };
    assert_eq!((refused("sw0"), refused("sw1")), (30, 31));
    // Which is what software wanted to know: none of its requests has failed.
    assert!(watch.transactions().iter().all(|transaction| transaction.ending == Ending::Done));
    watch.check_attribution(&fabric);
}

/// A device that is not ready answers with Retry Status, and the software comes again.
#[test]
fn a_device_that_is_slow_is_found_when_it_is_ready() {
    for (ready, found, retries) in [(20, true, 1), (150, true, 2), (1500, false, 11)] {
        let ready = Duration::from_ms(ready);
        let mut bench = tree(true);
        let slow = bench.config.devices.iter_mut().find(|device| device.name == "deep").unwrap();
        slow.ready = ready;
        let watch = Watch::everything();
        let mut fabric = bench.build_watched(watch.probe());
        let over = enumerate(&mut fabric);
        let hierarchy = fabric.hierarchy().unwrap();
        let problems: Vec<_> = hierarchy.problems.iter().map(|problem| problem.kind).collect();
        if found {
            assert_eq!(names(&fabric), ["alone", "deep", "high"]);
            assert_eq!(problems, []);
            // The next time that it is asked after it is ready: every 100 ms.
            assert!(
                over > Time::ZERO + ready && over < Time::ZERO + ready + Duration::from_ms(101),
                "{over}"
            );
            assert_same_registers(&mut tree(false).build(), &mut fabric);
        } else {
            assert_eq!(names(&fabric), ["alone", "high"]);
            assert_eq!(problems, [ProblemKind::NeverReady]);
            assert_eq!(hierarchy.problems[0].function.to_string(), "06:00.0");
        }
        let retry = |repr: &Repr| match repr.kind() {
            Kind::Completion(completion) => completion.status() == CompletionStatus::RetryStatus,
            _ => false,
        };
        let seen = watch.tlps(&fabric, "deep", 0);
        assert_eq!(seen.iter().filter(|(_, repr)| retry(repr)).count(), retries);
    }
}

/// A link goes down for good while software is at work: functions behind it are named, and the rest works.
#[test]
fn a_link_down_during_enumeration_hides_only_functions_behind_it() {
    let mut usual = tree(true).build();
    let usual_end = enumerate(&mut usual) - Time::ZERO;
    for part in 0..40 {
        let mut bench = tree(true);
        bench.config.host.completion_timeout = Duration::from_us(50);
        let at = Time::ZERO + Duration::from_fs(usual_end.as_fs() / 40 * part);
        let down = Fault { direction: Direction::Up, kind: FaultKind::Down { at, until: None } };
        let sw1 = bench.config.switches.iter_mut().find(|switch| switch.name == "sw1").unwrap();
        sw1.uplink.faults.push(down);
        let (script, heard) =
            Script::new(vec![read(Place::Bar("alone", 0, 8), 4), read(Place::Bar("high", 0, 8), 4)]);
        bench.finishing_program(script);
        let mut fabric = bench.build();
        let over = enumerate(&mut fabric);
        assert!(over < Time::ZERO + Duration::from_ms(20), "{over}");
        while fabric.run_events(10_000, over + Duration::from_ms(1)) {}
        assert!(fabric.is_done(), "down at {at}");
        // Whether or not "deep" was found before, the others are where they should be and answer.
        assert_eq!(heard.lock().unwrap().values(), [0, 0], "down at {at}");
        let found = names(&fabric);
        assert!(found.contains(&"alone") && found.contains(&"high"));
    }
}

/// More BARs than there are addresses below 4 GiB: named, left off, and the others get theirs.
#[test]
fn a_bar_without_addresses_is_named_as_a_problem() {
    let mut bench = tree(true);
    let bars = vec![BarSpec::registers(0, 1 << 30)];
    let identity = Identity { bars, ..Identity::new(0x71AB, 0x00FB, 0x12_00_00) };
    bench.device("greedy", "sw1", 3, 4).model(Card::with(identity).0);
    let mut fabric = bench.build();
    enumerate(&mut fabric);
    let greedy = fabric.id_of("greedy").unwrap();
    let problems: Vec<_> =
        fabric.hierarchy().unwrap().problems.iter().map(|p| (p.function, p.kind)).collect();
    assert_eq!(problems, [(greedy, ProblemKind::NoAddress { index: 0, size: 1 << 30, low_memory: true })]);
    assert_eq!(fabric.devices().iter().filter(|info| info.bars[0].is_some()).count(), 3);
}

/// Enumeration over the links takes part in the trace: the same experiment has the same one.
#[test]
fn it_is_deterministic() {
    let hash = || {
        let mut fabric = tree(true).build();
        enumerate(&mut fabric);
        fabric.trace_hash()
    };
    assert_eq!(hash(), hash());
}
