//! Links that retrain, and links that go down for good. Those that come up again are in `hotplug`.

use crate::bench::mover::{Base, Move, Mover};
use crate::bench::{Bench, Watch, flow, ns, only_flow};
use tlplab_cfgspace::ErrorKind;
use tlplab_device::LoadConfig;
use tlplab_fabric::config::*;
use tlplab_fabric::{Ending, Fabric};
use tlplab_units::{Bdf, Duration, Generation, Time, Width};

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

/// A switch goes away while a device below it, on a crossbar, reads and writes: no TLP and no transaction is left.
#[test]
fn crossbar_tlps_are_lost_with_the_link_above() {
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

/// A link of sixteen lanes that has one from some time on carries a sixteenth, loses nothing, and its timers wait for the slower lane: nothing is
/// sent again for a timer's sake.
#[test]
fn a_narrowed_link_carries_the_rate_of_its_lanes() {
    for generation in [1, 3, 6] {
        let at = Duration::from_us(20);
        let mut bench = Bench::new();
        let load = LoadConfig { size: 4096, ..LoadConfig::default() };
        let width = Width::ALL[0];
        bench
            .device("dev", "host.rp0", generation, 16)
            .config(|device| {
                let kind = FaultKind::Narrow { at: Time::ZERO + at, width };
                device.link.faults.push(Fault { direction: Direction::Up, kind });
                device.link.recovery = Duration::from_us(1);
            })
            .load(load);
        let mut fabric = bench.build();
        let carried = |fabric: &mut Fabric, from: Duration, until: Duration| {
            fabric.run_until(Time::ZERO + from);
            let before = only_flow(fabric).bytes;
            fabric.run_until(Time::ZERO + until);
            (only_flow(fabric).bytes - before) as f64 / (until - from).as_ns() as f64
        };
        let wide = carried(&mut fabric, Duration::from_us(5), Duration::from_us(19));
        let narrow = carried(&mut fabric, Duration::from_us(400), Duration::from_us(2000));
        assert!((wide / narrow - 16.0).abs() < 0.6, "gen{generation}: {wide} and {narrow} B/ns");
        let ends = fabric.topology().links[0].ports;
        let sent = ends.map(|port| fabric.direction_result(port).transmitter);
        assert_eq!(sent.map(|end| end.replay_timeouts), [0, 0], "gen{generation}");
        let port = fabric.config_spaces().into_iter().find(|(id, _)| *id == Bdf(8)).expect("a root port").1;
        assert_eq!(port.link().expect("a link").current, (Generation::new(generation).unwrap(), width));
        assert_eq!(fabric.protocol_errors().count(), 0);
    }
}

/// Both ends of a link that has lost lanes show its width: a switch's port, and every function of a card, also when it has been down since.
#[test]
fn both_ends_of_a_narrowed_link_show_its_width() {
    let at = |us| Time::ZERO + Duration::from_us(us);
    let fault = |kind| Fault { direction: Direction::Up, kind };
    let narrow = |width| fault(FaultKind::Narrow { at: at(5), width });
    let mut bench = Bench::new();
    bench.switch("sw0", "host.rp0", 3, 16).uplink.faults = vec![narrow(Width::X4)];
    bench
        .device("dev", "sw0", 3, 8)
        .config(|device| {
            let down = fault(FaultKind::Down { at: at(20), until: Some(at(40)) });
            device.link.faults = vec![narrow(Width::X2), down];
        })
        .load(LoadConfig { size: 512, ..LoadConfig::default() });
    let mut fabric = bench.build();
    let widths = |fabric: &mut Fabric| {
        let links = fabric.config_spaces().into_iter().filter_map(|(_, space)| space.link());
        links.map(|link| link.current.1.lanes()).collect::<Vec<_>>()
    };
    // From the root port down, before software knows any of them by another number.
    assert_eq!(widths(&mut fabric), [16, 16, 8, 8]);
    for us in [10, 2_000] {
        fabric.run_until(at(us));
        assert_eq!(widths(&mut fabric), [4, 4, 2, 2], "{us} us");
    }
}

/// The port above resets what is below: nobody detects an error, software hears of the slot, and the device starts anew.
#[test]
fn a_reset_by_the_port_above_is_no_error() {
    for (kind, errors) in [(true, 0), (false, 1)] {
        let (at, until) = (Time::ZERO + Duration::from_us(20), Some(Time::ZERO + Duration::from_us(40)));
        let kind = if kind { FaultKind::Reset { at, until } } else { FaultKind::Down { at, until } };
        let mut bench = Bench::new();
        bench
            .device("dev", "host.rp0", 3, 4)
            .config(|device| device.link.faults.push(Fault { direction: Direction::Up, kind }))
            .load(LoadConfig { size: 512, ..LoadConfig::default() });
        let mut fabric = bench.build();
        fabric.run_until(Time::ZERO + Duration::from_us(30));
        let before = flow(&fabric, "dev").bytes;
        assert!(before > 0);
        fabric.run_until(Time::ZERO + Duration::from_us(39));
        assert_eq!(flow(&fabric, "dev").bytes, before, "nothing passes meanwhile");
        let mut rest = (0..150).map(|ms| Time::ZERO + Duration::from_ms(ms + 1));
        let works_again = rest.any(|until| {
            fabric.run_until(until);
            flow(&fabric, "dev").bytes > before
        });
        assert!(works_again);
        assert_eq!(fabric.outages().len(), 1);
        let surprises = fabric.errors().filter(|error| error.kind == ErrorKind::SurpriseDown).count();
        assert_eq!(surprises, errors);
    }
}

/// Each fault counts its hits, and a fault that was never due has none.
#[test]
fn faults_count_their_hits() {
    let tlp = |n, count| FaultKind::Nth { unit: FaultUnit::Tlp, n, count, damage: Damage::Corrupt };
    let tamper = FaultKind::Tamper { only: Some("MWr"), n: 4, count: 1, how: Tamper::Poison };
    let dllp = FaultKind::Nth { unit: FaultUnit::Called("Ack"), n: 2, count: 2, damage: Damage::Drop };
    let up = |kind| Fault { direction: Direction::Up, kind };
    let mut bench = Bench::new();
    bench
        .device("dev", "host.rp0", 3, 4)
        .config(|device| {
            let faults = [up(tlp(3, 2)), up(tlp(100_000, 5)), up(tamper)];
            device
                .link
                .faults
                .extend(faults.into_iter().chain([Fault { direction: Direction::Down, kind: dllp }]));
        })
        .load(LoadConfig { size: 512, count: Some(60), ..LoadConfig::default() });
    let mut fabric = bench.build();
    let told = |fabric: &Fabric| {
        let mut told: Vec<_> = fabric.fault_strikes().map(|(_, place, hits)| (place, hits)).collect();
        told.sort_unstable();
        told
    };
    assert_eq!(told(&fabric), [(0, 0), (1, 0), (2, 0), (3, 0)]);
    while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(5)) {}
    assert_eq!(told(&fabric), [(0, 2), (1, 0), (2, 1), (3, 2)]);
    let ends = fabric.topology().links[0].ports.map(|port| fabric.direction_result(port));
    assert_eq!(ends.iter().map(|end| end.receiver.bad_lcrc).sum::<u64>(), 2, "as the receiver counts");
}
