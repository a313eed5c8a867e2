//! Links that retrain, and links that go down for good. Those that come up again are in `hotplug`.

use crate::bench::mover::{Base, Move, Mover};
use crate::bench::{Bench, Watch, ns};
use tlplab_fabric::Ending;
use tlplab_fabric::config::*;
use tlplab_units::{Duration, Time};

/// Acks get lost for a while: REPLAY_NUM rolls over, the link retrains, and still nothing is lost or repeated.
#[test]
fn retraining_loses_nothing() {
    for forwarding in [Forwarding::CutThrough, Forwarding::StoreAndForward] {
        for (generation, lanes) in [(1, 1), (3, 4), (6, 4)] {
            let mut bench = Bench::new();
            let switch = bench.switch("sw0", "host.rp0", generation, lanes);
            switch.forwarding = forwarding;
            switch.uplink.flight = ns(300);
            let flit = crate::bench::any::is_flit(generation);
            let unit = if flit { FaultUnit::Flit } else { FaultUnit::Dllp };
            switch.uplink.faults.extend((3..if flit { 130 } else { 80 }).map(|n| {
                let kind = FaultKind::Nth { unit, n, count: 1, damage: Damage::Drop };
                Fault { direction: Direction::Up, kind }
            }));
            switch.uplink.recovery = ns(2000);
            let (mover, moved) = Mover::new(
                Base::Bar("mem".into(), 0),
                4,
                (0..40)
                    .flat_map(|i| {
                        [Move::Write { at: i * 700, bytes: 700 }, Move::Read { at: i * 700, bytes: 700 }]
                    })
                    .collect(),
            );
            bench.device("mem", "sw0", 2, 4).memory(1 << 20);
            bench.finishing_program(Box::new(mover));
            let watch = Watch::transactions_only();
            let mut fabric = bench.build_watched(watch.probe());
            while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(50)) {}
            fabric.run_until(fabric.now() + Duration::from_us(200));
            let moved = moved.lock().unwrap();
            assert_eq!((moved.read, moved.accepted, moved.failed.len(), moved.wrong.len()), (40, 40, 0, 0));
            assert!(watch.transactions().iter().all(|t| t.ending == Ending::Done));
            let link = fabric.topology().links.iter().find(|l| l.name == "sw0").unwrap().ports;
            let ends = link.map(|port| fabric.direction_result(port).transmitter);
            assert!(ends.iter().any(|c| c.retrains > 0 && c.tlps_replayed > 0), "gen{generation}: {ends:?}");
            assert_eq!((fabric.tlps_live(), fabric.transactions_live()), (0, 0));
            assert_eq!(fabric.protocol_errors().count(), 0);
            assert_eq!((fabric.unexpected_completions(), fabric.refused()), (0, 0));
            watch.check_attribution(&fabric);
        }
    }
}

/// A link that never comes up: reads across it end with a completion timeout or UR, and the run ends.
#[test]
fn a_link_that_stays_down_answers_for_the_device_behind_it() {
    let mut bench = Bench::new();
    bench.config.host.completion_timeout = Duration::from_us(50);
    bench.switch("sw0", "host.rp0", 3, 4);
    bench
        .device("mem", "sw0", 3, 4)
        .config(|d| {
            let kind = FaultKind::Down { at: Time::ZERO + ns(10), until: None };
            d.link.faults.push(Fault { direction: Direction::Down, kind });
        })
        .memory(1 << 16);
    let moves = vec![
        Move::Write { at: 0, bytes: 64 },
        Move::Read { at: 0, bytes: 64 },
        Move::Read { at: 64, bytes: 4 },
    ];
    let (mover, moved) = Mover::new(Base::Bar("mem".into(), 0), 1, moves);
    bench.finishing_program(Box::new(mover));
    let watch = Watch::transactions_only();
    let mut fabric = bench.build_watched(watch.probe());
    while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(5)) {}
    assert!(fabric.is_done());
    assert_eq!(moved.lock().unwrap().failed.len(), 2);
    let mut transactions = watch.transactions();
    transactions.retain(|t| fabric.topology().flows[t.flow.index()].name == "cpu");
    transactions.sort_by_key(|t| t.number);
    let endings: Vec<_> = transactions.iter().map(|t| t.ending).collect();
    // The switch answers requests routed to a port that is down as unsupported (PCIe 5.0 §2.9.1).
    assert_eq!(endings, [Ending::Lost, Ending::Unsupported, Ending::Unsupported]);
    fabric.run_until(fabric.now() + Duration::from_us(100));
    assert_eq!(fabric.tlps_live(), 0);
}

/// A switch goes away in the middle of what a device below it, on a crossbar, reads and writes: nothing is left of it.
#[test]
fn what_a_crossbar_carried_is_lost_with_the_link_above() {
    let mut lost = 0;
    for at in (600..1200).step_by(20) {
        let mut bench = Bench::new();
        let switch = bench.switch("sw0", "host.rp0", 3, 4);
        let kind = FaultKind::Down { at: Time::ZERO + ns(at), until: None };
        switch.uplink.faults.push(Fault { direction: Direction::Up, kind });
        let moves = (0..20)
            .flat_map(|i| [Move::Write { at: i * 512, bytes: 512 }, Move::Read { at: i * 512, bytes: 512 }]);
        let (mover, _) = Mover::new(Base::Address(0x10_0000), 8, moves.collect());
        let device = bench.device("dev", "sw0", 3, 4).config(|d| {
            (d.link.crossbar, d.link.flight) = (Some(128_000_000_000), ns(30));
            d.completion_timeout = Duration::from_us(50);
        });
        device.finishing(Box::new(mover.unchecked()));
        let watch = Watch::transactions_only();
        let mut fabric = bench.build_watched(watch.probe());
        while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(1)) {}
        fabric.run_until(fabric.now() + Duration::from_us(200));
        assert_eq!((fabric.tlps_live(), fabric.transactions_live()), (0, 0), "down at {at} ns");
        lost += watch.transactions().iter().filter(|t| t.ending == Ending::Lost).count();
    }
    assert!(lost > 0);
}
