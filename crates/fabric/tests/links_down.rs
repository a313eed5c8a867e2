//! Links that go down and come up again under traffic, and links that retrain: every transaction is accounted for.

mod bench;

use bench::any::{any_fabric, any_faults, cases};
use bench::mover::{Base, Move, Mover};
use bench::{Bench, Watch, ns};
use proptest::prelude::*;
use tlplab_device::{LoadConfig, LoadOp, Target};
use tlplab_fabric::Ending;
use tlplab_fabric::attribution::Cause;
use tlplab_fabric::config::*;
use tlplab_units::{Duration, Time};

fn downs() -> impl Strategy<Value = Vec<(usize, Fault)>> {
    let down = (0u64..30_000, 1u64..40_000).prop_map(|(at, long)| {
        let at = Time::ZERO + ns(at);
        Fault { direction: Direction::Up, kind: FaultKind::Down { at, until: Some(at + ns(long)) } }
    });
    prop::collection::vec((any::<usize>(), down), 1..4)
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn surprise_down_leaves_nothing_in_limbo(any in any_fabric(), downs in downs(), faults in any_faults()) {
        let any = any.with_faults(&faults).with_faults(&downs);
        let mut built = any.build_with(|config| {
            config.host.completion_timeout = Duration::from_ms(1);
            config.devices.iter_mut().for_each(|d| d.completion_timeout = Duration::from_ms(1));
        });
        built.run(Duration::from_ms(400));
        // The root complex may still have pieces to ask for, once its tags have rested, for a requester that has given up.
        if built.fabric.tlps_live() > 0 {
            built.rest(Duration::from_ms(60));
        }
        built.check_accounted();
        built.check_quiet(&any.idle());
        built.watch.check_attribution(&built.fabric);
    }
}

/// Acks get lost for a while: REPLAY_NUM rolls over, the link retrains, and still nothing is lost or repeated.
#[test]
fn retraining_loses_nothing() {
    for forwarding in [Forwarding::CutThrough, Forwarding::StoreAndForward] {
        for (generation, lanes) in [(1, 1), (3, 4), (6, 4)] {
            let mut bench = Bench::new();
            let switch = bench.switch("sw0", "host.rp0", generation, lanes);
            switch.forwarding = forwarding;
            switch.uplink.flight = ns(300);
            let flit = bench::any::is_flit(generation);
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

/// Writes go on after the link is up again, what was lost is counted as lost, and waiting for the link has a name.
#[test]
fn the_run_continues_after_the_link_is_up() {
    let mut bench = Bench::new();
    let (down, up) = (Time::ZERO + Duration::from_us(5), Time::ZERO + Duration::from_us(25));
    bench
        .device("dev", "host.rp0", 3, 4)
        .config(|d| {
            let kind = FaultKind::Down { at: down, until: Some(up) };
            d.link.faults.push(Fault { direction: Direction::Up, kind });
        })
        .load(LoadConfig {
            op: LoadOp::Write,
            target: Target::Address(1 << 32),
            count: Some(400),
            outstanding: 8,
            ..LoadConfig::default()
        });
    let watch = Watch::transactions_only();
    let mut fabric = bench.build_watched(watch.probe());
    while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(5)) {}
    let flow = bench::only_flow(&fabric);
    let lost = flow.count_of(Ending::Lost);
    assert_eq!(flow.transactions + lost, 400);
    // At most the replay buffer's and the staged ones; an outstanding write is one not yet accepted.
    assert!(lost > 0 && lost < 60, "{lost}");
    let transactions = watch.transactions();
    let during = |t: &&bench::watch::Transaction| t.end > down && t.end < up;
    assert_eq!(transactions.iter().filter(|t| t.ending == Ending::Done).filter(during).count(), 0);
    let waited = transactions.iter().map(|t| t.time_of(Cause::LinkDown)).max().unwrap();
    assert!(waited > Duration::from_us(19) && waited < Duration::from_us(22), "{waited}");
    watch.check_attribution(&fabric);
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
    transactions.sort_by_key(|t| t.number);
    let endings: Vec<_> = transactions.iter().map(|t| t.ending).collect();
    // The switch answers requests routed to a port that is down as unsupported (PCIe 5.0 §2.9.1).
    assert_eq!(endings, [Ending::Lost, Ending::Unsupported, Ending::Unsupported]);
    fabric.run_until(fabric.now() + Duration::from_us(100));
    assert_eq!(fabric.tlps_live(), 0);
}
