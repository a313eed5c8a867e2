//! Links that go down and come up again under traffic, with whatever is below them: every transaction is accounted for once, software
//! configures what comes back, and work goes on.

use crate::bench::any::strategies::{any_fabric, any_faults};
use crate::bench::any::{AnyFabric, Built, cases};
use crate::bench::{Bench, Watch, ns};
use proptest::prelude::*;
use std::collections::BTreeSet;
use tlplab_device::nic::{OpenEnd, Signal};
use tlplab_device::{LoadConfig, LoadOp, Nic, NicConfig, NicDriver, NicLoad, Target};
use tlplab_fabric::config::*;
use tlplab_fabric::{Ending, Fabric, MSI_ADDRESS};
use tlplab_units::{Bdf, Duration, Time, Width};
use tlplab_wire::tlp::{Kind, Repr};

pub(crate) fn downs() -> impl Strategy<Value = Vec<(usize, Fault)>> {
    let down = (0u64..30_000, 1u64..40_000).prop_map(|(at, long)| {
        let at = Time::ZERO + ns(at);
        Fault { direction: Direction::Up, kind: FaultKind::Down { at, until: Some(at + ns(long)) } }
    });
    prop::collection::vec((any::<usize>(), down), 1..4)
}

/// Answers may be slow: links may be left with one lane, or a flit may have to wait for the Ack of the one before it.
fn build(any: &AnyFabric, interrupts: InterruptPolicy) -> Built {
    let timeout = Duration::from_ms(10);
    any.build_with(|config| {
        config.host.interrupts = interrupts;
        config.host.completion_timeout = timeout;
        config.devices.iter_mut().for_each(|d| d.completion_timeout = timeout);
    })
}

fn run(built: &mut Built) {
    built.run(Duration::from_ms(4000));
    // Software may still be configuring, and wait for the answer of somebody who is gone.
    let go_on = |built: &mut Built, ms| {
        built.fabric.run_until(built.fabric.now() + Duration::from_ms(ms));
        built.rest(Duration::from_us(200));
    };
    go_on(built, 50);
    // The root complex may still have pieces to ask for, once its tags have rested, for a requester that has given up.
    if built.fabric.tlps_live() > 0 {
        go_on(built, 600);
    }
}

/// Names of the links above a component, its own first.
fn links_above(fabric: &Fabric, name: &str) -> BTreeSet<String> {
    let topology = fabric.topology();
    let (mut links, mut name) = (BTreeSet::new(), name.to_owned());
    while let Some(link) = topology.links.iter().find(|link| link.name == name) {
        links.insert(name);
        let above = topology.ports[link.ports[1].index()].node;
        name = topology.nodes[above.index()].name.clone();
    }
    links
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn surprise_down_leaves_nothing_in_limbo(
        mut any in any_fabric(),
        downs in downs(),
        faults in any_faults(),
        (second_function, wires) in any::<(bool, bool)>(),
    ) {
        // With three devices or more the second is no memory that others aim at.
        any.second_function = second_function && any.devices.len() > 2;
        let interrupts = if wires { InterruptPolicy::Intx } else { InterruptPolicy::MsiX };
        let idle = any.idle();
        let any = any.with_faults(&faults).with_faults(&downs);
        let mut built = build(&any, interrupts);
        let before = built.fabric.devices().to_vec();
        run(&mut built);
        built.check_accounted();
        built.check_quiet(&idle);
        built.watch.check_attribution(&built.fabric);
        let mut again = build(&any, interrupts);
        run(&mut again);
        prop_assert_eq!(built.fabric.trace_hash(), again.fabric.trace_hash(), "the same again");
        // All is configured as it was before.
        let fabric = &built.fabric;
        prop_assert_eq!(fabric.devices(), &before[..]);
        let outages = fabric.outages();
        for (i, outage) in outages.iter().enumerate() {
            // It may go down again before it has come up.
            let again = outages[i + 1..].iter().any(|later| later.link == outage.link);
            prop_assert!(again || outage.up.is_some() && outage.configured.is_some(), "{:?}", outages);
        }
        // Whoever has nothing to do with it does not notice.
        let down = outages.iter().map(|o| fabric.topology().links[o.link.index()].name.clone());
        let down: BTreeSet<String> = down.collect();
        for (worker, (own, peer)) in built.workers.iter().zip(&built.places) {
            let moved = worker.lock().unwrap();
            let is_safe = |name: &String| links_above(fabric, name).is_disjoint(&down);
            if own.iter().all(is_safe) {
                prop_assert_eq!(moved.cancelled, 0);
                prop_assert!(moved.failed.is_empty() || !peer.iter().all(is_safe), "{:?}", moved.failed);
            }
        }
    }
}

/// The lanes of a link fail while it initialises, before software has looked at it: that is no event of its slot, and nothing below is configured anew.
#[test]
fn lanes_that_fail_before_a_link_is_up_are_no_event_of_its_slot() {
    let mut bench = Bench::new();
    let switch = bench.switch("sw0", "host.rp0", 1, 4);
    switch.uplink.trained = false;
    let kind = FaultKind::Narrow { at: Time::ZERO + ns(1), width: Width::X1 };
    switch.uplink.faults.push(Fault { direction: Direction::Up, kind });
    let load = LoadConfig { op: LoadOp::Read, count: Some(20), ..LoadConfig::default() };
    bench.device("dev", "sw0", 1, 4).load(load);
    let mut fabric = bench.build();
    fabric.run_until(Time::ZERO + Duration::from_ms(2));
    assert_eq!((fabric.refused(), fabric.interrupts(), fabric.outages().len()), (0, 0, 0));
    assert_eq!((fabric.transactions_ended(), fabric.errors().count()), (20, 0));
    let ports = fabric.topology().links.iter().find(|link| link.name == "sw0").expect("its link").ports;
    assert_eq!(fabric.data_link_config(ports[0]).width, Width::X1);
}

/// A card comes back while software configures the switch above it: its slot interrupts once more, and software configures it a second time, for which it takes Bus Master
/// Enable away. The load waits for that, and issues all it was to issue.
#[test]
fn a_load_goes_on_when_its_function_is_configured_twice() {
    for op in [LoadOp::Read, LoadOp::Write, LoadOp::Both] {
        for (size, outstanding) in [(1500, 1), (256, 16)] {
            let mut bench = Bench::new();
            let switch = bench.switch("sw0", "host.rp0", 4, 4);
            switch.latency = ns(100);
            let down = |at: u64, until: u64| {
                let (at, until) = (Time::ZERO + ns(at), Some(Time::ZERO + ns(until)));
                Fault { direction: Direction::Up, kind: FaultKind::Down { at, until } }
            };
            switch.uplink.faults.push(down(1_000, 1_500));
            let load = LoadConfig { op, size, outstanding, count: Some(1_000), ..LoadConfig::default() };
            let device = bench.device("a", "sw0", 3, 4).config(|d| {
                d.link.flight = ns(2_000);
                d.link.faults.push(down(91_000, 96_000));
            });
            device.load(load);
            let mut fabric = bench.build();
            while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(200)) {}
            let flows = fabric.topology().flows.clone();
            for (id, flow) in fabric.flow_ids().zip(flows).filter(|(_, flow)| flow.owner == "a") {
                let result = fabric.flow_results(id);
                let lost: u64 = result.failed.iter().map(|failures| failures.count).sum();
                assert_eq!(
                    result.transactions + lost,
                    1_000,
                    "{op:?} of {size} B: {}, {lost} lost",
                    flow.name
                );
                assert!(lost < 100, "{op:?} of {size} B: {}, {lost} lost", flow.name);
            }
        }
    }
}

/// The downstream port above the device in the tree below.
const PORT: Bdf = Bdf(2 << 8);

/// Of the port: whether the data link layer is active, a card is present, presence and link have changed, and interrupts are enabled
/// (PCIe 5.0 §7.5.3.8, §7.5.3.10, §7.5.3.11).
fn slot(fabric: &mut Fabric) -> (bool, bool, bool, bool, bool) {
    let spaces = fabric.config_spaces();
    let (_, space) = spaces.iter().find(|(id, _)| *id == PORT).expect("the port is not what is taken out");
    let mut at = space.read(0x34) as u16 & 0xFC;
    while space.read(at) as u8 != 0x10 {
        at = (space.read(at) >> 8) as u16 & 0xFC;
    }
    let (link, slot) = (space.read(at + 0x10) >> 16, space.read(at + 0x18));
    let is = |register: u32, bit: u32| register >> bit & 1 == 1;
    (
        is(link, 13),
        is(slot, 16 + 6),
        is(slot, 16 + 3),
        is(slot, 16 + 8),
        is(slot, 3) && is(slot, 5) && is(slot, 12),
    )
}

/// A device that goes, and a neighbour that writes so often.
fn tree(down: Time, up: Option<Time>, count: Option<u64>, watch: &Watch) -> Fabric {
    let mut bench = Bench::new();
    bench.switch("sw0", "host.rp0", 3, 4);
    let load =
        |op| LoadConfig { op, target: Target::Address(1 << 32), outstanding: 8, ..LoadConfig::default() };
    bench
        .device("dev", "sw0", 3, 4)
        .config(|d| {
            let kind = FaultKind::Down { at: down, until: up };
            d.link.faults.push(Fault { direction: Direction::Up, kind });
        })
        .load(load(LoadOp::Both));
    bench.device("other", "sw0", 3, 1).load(LoadConfig { count, ..load(LoadOp::Write) });
    bench.build_watched(watch.probe())
}

/// What a card does by itself, without a word from the host, it does while it has power: a NIC's transceiver is off from the moment in which it is
/// pulled out until it is back. One that is only held in reset negotiates with its partner meanwhile.
#[test]
fn a_card_that_is_pulled_out_does_nothing() {
    let at = |us| Time::ZERO + Duration::from_us(us);
    let until = Some(at(400));
    let cases =
        [(FaultKind::Down { at: at(200), until }, 410), (FaultKind::Reset { at: at(200), until }, 210)];
    for (kind, back) in cases {
        let mut bench = Bench::new();
        bench.switch("sw0", "host.rp0", 3, 4);
        let end = OpenEnd::new();
        let nic = Nic::with_open_end(NicConfig::default(), end.clone());
        let fault = Fault { direction: Direction::Up, kind };
        bench.device("nic", "sw0", 3, 4).config(|d| d.link.faults.push(fault)).model(Box::new(nic));
        let load = NicLoad { receive: 1, ..NicLoad::default() };
        bench.finishing_program(Box::new(NicDriver::new("nic", load)));
        let mut fabric = bench.build();
        fabric.run_until(at(190));
        end.take_sent();
        fabric.run_until(at(405));
        let mut said: Vec<_> = end.take_sent().into();
        fabric.run_until(at(440));
        said.extend(end.take_sent());
        assert_eq!(said[0], (at(200), Signal::Ready(false)));
        // A driver that configures it anew has it negotiate once more.
        let (again, signal) = said[1].clone();
        assert!((at(back)..at(back + 5)).contains(&again), "{again:?}");
        assert_eq!(signal, Signal::Ready(true));
    }
}

/// A card below a switch is taken out and put back: what its port shows, when software hears, and what it does.
#[test]
fn a_card_is_taken_out_and_put_back() {
    let at = |us| Time::ZERO + Duration::from_us(us);
    let watch = Watch::everything();
    let mut fabric = tree(at(20), Some(at(40)), None, &watch);
    let before = fabric.devices().to_vec();
    fabric.run_until(at(20) - ns(1));
    assert_eq!(slot(&mut fabric), (true, true, false, false, true));
    fabric.run_until(at(20));
    assert_eq!(slot(&mut fabric), (false, false, true, true, true));
    assert!(fabric.hierarchy().unwrap().function(before[0].id).is_some(), "software has not heard");
    assert!(fabric.config_spaces().iter().all(|(id, _)| *id != before[0].id), "but its registers are gone");
    assert_eq!((fabric.id_of("dev"), fabric.interrupts()), (Some(Bdf(0)), 0));
    fabric.run_until(at(40) - ns(1));
    assert_eq!(slot(&mut fabric), (false, false, false, false, true), "acknowledged");
    assert!(fabric.hierarchy().unwrap().children(Some(PORT)).next().is_none());
    assert_eq!(fabric.devices()[0].bars, [None; 6]);
    fabric.run_until(at(40));
    let (active, present, presence_changed, ..) = slot(&mut fabric);
    assert_eq!((active, present, presence_changed), (false, true, true), "the physical layer is first");
    fabric.run_until(at(100));
    assert_eq!(slot(&mut fabric), (true, true, false, false, true));
    assert_eq!(fabric.devices(), &before[..], "the same numbers and addresses");
    // The interrupts of the slot are writes of its port, behind which come software's requests.
    let message = MSI_ADDRESS + 16 * u64::from(PORT.0);
    let interrupts: Vec<Time> = watch
        .tlps(&fabric, "sw0", 0)
        .iter()
        .filter(|(_, repr)| matches!(repr.kind(), Kind::MemWrite { span, .. } if span.address() == message))
        .map(|(unit, _)| unit.arrive)
        .collect();
    let [outage] = fabric.outages() else { panic!("{:?}", fabric.outages()) };
    assert_eq!(outage.heard, interrupts.first().copied());
    let (up, configured) = (outage.up.unwrap(), outage.configured.unwrap());
    assert!(outage.down == at(20) && up > at(40) && up < at(41) && configured > up && configured < at(60));
    assert!(interrupts.len() >= 2 && interrupts[1] >= at(40) && interrupts.len() <= 3, "{interrupts:?}");
    let configuring = watch.tlps(&fabric, "dev", 1);
    assert!(configuring.iter().any(|(u, r)| r.name() == "CfgWr0" && u.start >= up && u.end <= configured));
    // Work goes on from then on, at the rate it had; what was under way is lost. The neighbour does not notice.
    let flows = &fabric.topology().flows;
    let transactions = watch.transactions();
    let of = |flow: &str, ending, from, to| {
        let is = |t: &&crate::bench::watch::Transaction| {
            flows[t.flow.index()].name == flow && t.ending == ending && t.end > from && t.end <= to
        };
        transactions.iter().filter(is).count()
    };
    for flow in ["dev.read", "dev.write"] {
        // What had got as far as the switch still arrives.
        assert_eq!(of(flow, Ending::Done, at(25), configured), 0, "{flow}");
        assert!((1..=16).contains(&of(flow, Ending::Lost, at(0), at(100))), "{flow}");
        let rate = of(flow, Ending::Done, at(10), at(20));
        assert!(of(flow, Ending::Done, at(80), at(90)).abs_diff(rate) <= 2, "{flow}: {rate} in 10 us before");
    }
    assert_eq!(of("other", Ending::Lost, at(0), at(100)), 0);
    watch.check_attribution(&fabric);
}

/// An interrupt of a slot has an end-to-end CRC like every other TLP, and the wire for as long as that takes.
#[test]
fn a_slot_interrupt_carries_its_digest() {
    let at = |us| Time::ZERO + Duration::from_us(us);
    let watch = Watch::everything();
    let mut bench = Bench::new();
    bench.config.host.ecrc = true;
    bench.switch("sw0", "host.rp0", 3, 4);
    let kind = FaultKind::Down { at: at(20), until: Some(at(40)) };
    bench
        .device("dev", "sw0", 3, 4)
        .config(|d| d.link.faults.push(Fault { direction: Direction::Up, kind }))
        .memory(1 << 16);
    let mut fabric = bench.build_watched(watch.probe());
    fabric.run_until(at(100));
    let message = MSI_ADDRESS + 16 * u64::from(PORT.0);
    let is = |repr: &Repr| matches!(repr.kind(), Kind::MemWrite { span, .. } if span.address() == message);
    let interrupts: Vec<_> = watch.tlps(&fabric, "sw0", 0).into_iter().filter(|(_, repr)| is(repr)).collect();
    assert!(interrupts.len() >= 2 && interrupts.iter().all(|(_, repr)| repr.attributes().digest));
    // 3 DW of header, one of data, the digest, framing and LCRC; the message is below 4 GiB.
    assert!(interrupts.iter().all(|(unit, _)| unit.bytes == 4 * (3 + 1 + 1) + 8), "{interrupts:?}");
}

/// Two cards bounce at once, before software has forgotten either: it looks after one slot after the other.
#[test]
fn each_card_is_configured_by_the_job_of_its_own_slot() {
    let at = |us| Time::ZERO + Duration::from_us(us);
    let watch = Watch::everything();
    let mut bench = Bench::new();
    bench.switch("sw0", "host.rp0", 3, 4);
    let load = LoadConfig { op: LoadOp::Write, target: Target::Address(1 << 32), ..LoadConfig::default() };
    for name in ["a", "b"] {
        let kind = FaultKind::Down { at: at(20), until: Some(at(20) + ns(500)) };
        let fault = Fault { direction: Direction::Up, kind };
        bench.device(name, "sw0", 3, 4).config(|d| d.link.faults.push(fault)).load(load.clone());
    }
    let mut fabric = bench.build_watched(watch.probe());
    fabric.run_until(at(200));
    let [first, second] = fabric.outages() else { panic!("{:?}", fabric.outages()) };
    assert!(first.configured.unwrap() < second.configured.unwrap(), "{first:?} {second:?}");
    for outage in [first, second] {
        let (up, configured) = (outage.up.unwrap(), outage.configured.unwrap());
        let down = watch.tlps(&fabric, &fabric.topology().links[outage.link.index()].name, 1);
        let writes: Vec<_> =
            down.iter().filter(|(_, repr)| repr.name() == "CfgWr0").map(|(unit, _)| unit.end).collect();
        assert!(
            !writes.is_empty() && writes.iter().all(|end| (up..=configured).contains(end)),
            "{outage:?}: {writes:?}"
        );
    }
}

/// Nothing comes back: all that was asked for has ended, and nothing is left of it.
#[test]
fn a_card_that_stays_away_leaves_nothing_behind() {
    let watch = Watch::transactions_only();
    let down = Time::ZERO + Duration::from_us(20);
    let mut fabric = tree(down, None, Some(200), &watch);
    fabric.run_until(down + Duration::from_us(200));
    let [outage] = fabric.outages() else { panic!("{:?}", fabric.outages()) };
    assert!(outage.heard.is_some() && outage.up.is_none() && outage.configured.is_none());
    let flows = &fabric.topology().flows;
    let mine = |t: &&crate::bench::watch::Transaction| flows[t.flow.index()].owner == "dev";
    let late = watch.transactions().iter().filter(mine).filter(|t| t.end > down + ns(5000)).count();
    assert_eq!(late, 0);
    assert_eq!((fabric.transactions_live(), fabric.tlps_live()), (0, 0));
}
