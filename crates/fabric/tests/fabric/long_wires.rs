//! Wires that are longer than the specification's limit for the replay timer: the timer waits for the Ack.

use crate::bench::any::cases;
use crate::bench::{Bench, ns};
use proptest::prelude::*;
use tlplab_device::{LoadConfig, LoadOp};
use tlplab_fabric::config::{DeviceConfig, Direction, Fault, FaultKind, SkpPolicy};
use tlplab_units::{Duration, LinkMode, Mps, Time, Width};

const EARLY: Duration = Duration::from_us(200);

/// TLPs sent again in both directions of a link without errors, before `middle` and in the 200 µs after, and the transactions that ended.
fn replays(
    generation: u8,
    lanes: u8,
    middle: Duration,
    change: impl FnOnce(&mut DeviceConfig),
) -> ([u64; 2], u64) {
    let mut bench = Bench::new();
    let load = LoadConfig { op: LoadOp::Both, size: 512, outstanding: 16, ..LoadConfig::default() };
    bench.device("dev", "host.rp0", generation, lanes).config(change).load(load);
    let mut fabric = bench.build();
    let ports = fabric.topology().links[0].ports;
    let [early, all] = [Duration::ZERO, Duration::from_us(200)].map(|later| {
        fabric.run_until(Time::ZERO + middle + later);
        ports.map(|port| fabric.direction_result(port).wire.replayed).iter().sum::<u64>()
    });
    ([early, all - early], fabric.transactions_ended())
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn a_link_without_errors_never_replays_however_long_its_wire_is(
        generation in 1u8..=6,
        lanes in prop::sample::select(&[1u8, 2, 4, 8, 16][..]),
        flight in 0u64..20_000,
        mps in prop::sample::select(&Mps::ALL[..4]),
        ack_latency in prop::option::of(0u64..4_000),
        alignment in prop::sample::select(&[4u32, 16, 128][..]),
        skp in prop::option::of((1u32..100, 1u32..2_000)),
    ) {
        let ([early, late], ended) = replays(generation, lanes, EARLY, |device| {
            (device.link.mps, device.link.flight) = (mps, ns(flight));
            device.link.tlp_alignment = alignment;
            if let Some((length, rest)) = skp {
                device.link.skp = SkpPolicy::Custom { length, interval: length + rest };
            }
            if generation == 6 {
                device.link.mode = LinkMode::Flit;
            }
            for port in [&mut device.link.upper, &mut device.link.lower] {
                port.ack_latency = ack_latency.map(ns);
            }
        });
        prop_assert_eq!((early, late), (0, 0));
        prop_assert!(ended > 0);
    }
}

#[test]
fn a_replay_timer_of_the_experiment_that_is_shorter_than_the_wire_replays() {
    let ([_, replayed], _) = replays(3, 8, EARLY, |device| {
        device.link.flight = ns(3_000);
        device.link.lower.replay_timer = Some(ns(2_000));
    });
    assert!(replayed > 100, "{replayed}");
}

/// REPLAY_NUM rolls over again and again, but a link that goes into recovery does not take away the TLPs that have left.
#[test]
fn transactions_end_on_a_wire_so_long_that_no_ack_comes_before_a_recovery() {
    for (generation, timer) in [(1, 2_000), (3, 500), (3, 4_000), (6, 500)] {
        let ([early, late], ended) = replays(generation, 8, EARLY, |device| {
            device.link.flight = ns(20_000);
            device.link.recovery = ns(1_000);
            if generation == 6 {
                device.link.mode = LinkMode::Flit;
            }
            for port in [&mut device.link.upper, &mut device.link.lower] {
                port.replay_timer = Some(ns(timer));
            }
        });
        assert!(early > 0 && late > 0 && ended >= 32, "gen{generation}, {timer} ns: {early} {late} {ended}");
    }
}

/// Only the TLPs that the recovery cut off are sent again: on fewer lanes an Ack takes longer, and the timer with it.
#[test]
fn the_replay_timer_grows_where_lanes_fail_on_a_long_wire() {
    let ([early, late], _) = replays(3, 8, EARLY, |device| {
        device.link.flight = ns(250);
        let kind = FaultKind::Narrow { at: Time::ZERO + Duration::from_us(50), width: Width::X1 };
        device.link.faults.push(Fault { direction: Direction::Up, kind });
    });
    assert!(early < 40 && late == 0, "{early} {late}");
}

proptest! {
    #![proptest_config(cases(40))]

    /// The TLPs that the recovery cut off take their time on the lanes that are left; after them nothing is sent again.
    #[test]
    fn failing_lanes_replay_no_longer_than_the_tlps_cut_off_take(
        generation in 1u8..=5,
        lanes in prop::sample::select(&[2u8, 4, 8, 16][..]),
        left in prop::sample::select(&[1u8, 2, 4, 8][..]),
        flight in 0u64..20_000,
        mps in prop::sample::select(&Mps::ALL[..4]),
        ack_latency in prop::option::of(0u64..4_000),
    ) {
        prop_assume!(left < lanes);
        let ([_, late], ended) = replays(generation, lanes, Duration::from_ms(1), |device| {
            (device.link.mps, device.link.flight) = (mps, ns(flight));
            for port in [&mut device.link.upper, &mut device.link.lower] {
                port.ack_latency = ack_latency.map(ns);
            }
            let kind = FaultKind::Narrow {
                at: Time::ZERO + Duration::from_us(50),
                width: Width::new(left).expect("a width of PCIe"),
            };
            device.link.faults.push(Fault { direction: Direction::Up, kind });
        });
        prop_assert_eq!(late, 0);
        prop_assert!(ended > 0);
    }
}
