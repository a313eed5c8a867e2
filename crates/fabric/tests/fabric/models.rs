//! Devices and their drivers, end to end: data, doorbells, interrupts.

use crate::bench::{Bench, Watch, ns};
use tlplab_device::{Dma, DmaDriver, Ring, RingConfig, RingDriver, RingLoad};
use tlplab_fabric::config::*;
use tlplab_units::{Duration, Time};

/// A copier and a ring behind a switch, with a bad uplink if asked for.
fn run(fidelity: Fidelity, bad: bool) -> (u64, u64) {
    let mut bench = Bench::new();
    bench.config.fidelity = fidelity;
    bench.config.host.latency = ns(50);
    bench.config.host.memory =
        MemoryConfig { latency: ns(80), bandwidth: Some(50_000_000_000), size: 1 << 36 };
    let switch = bench.switch("sw0", "host.rp0", 3, 4);
    switch.latency = ns(100);
    if bad {
        let numerator = u64::MAX / 100_000;
        for direction in [Direction::Up, Direction::Down] {
            switch.uplink.faults.push(Fault { direction, kind: FaultKind::BitErrors { numerator } });
        }
    }
    bench.device("copier", "sw0", 3, 4).config(|d| d.latency = ns(40)).model(Box::new(Dma::new()));
    bench.device("nic", "sw0", 2, 8).model(Box::new(Ring::new(RingConfig::default())));
    bench.finishing_program(Box::new(DmaDriver::new("copier", 5000, 20)));
    let load = RingLoad { entries: 32, bytes: 700, receive: true, interrupt_every: 4, count: Some(150) };
    bench.finishing_program(Box::new(RingDriver::new("nic", load)));
    let watch = Watch::transactions_only();
    let mut fabric = bench.build_watched(watch.probe());
    while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(20)) {}
    // The drivers compare every byte that was copied, and end the run with a message if one is wrong.
    assert_eq!(fabric.fault(), None);
    assert!(fabric.is_done());
    fabric.run_until(fabric.now() + Duration::from_us(100));
    assert_eq!((fabric.tlps_live(), fabric.refused(), fabric.unexpected_completions()), (0, 0, 0));
    watch.check_attribution(&fabric);
    if bad {
        let links = fabric.topology().links.iter().find(|l| l.name == "sw0").unwrap().ports;
        assert!(links.into_iter().any(|port| fabric.direction_result(port).transmitter.tlps_replayed > 0));
    }
    (fabric.trace_hash(), fabric.interrupts())
}

#[test]
fn copies_are_right_and_every_interrupt_comes() {
    let (_, interrupts) = run(Fidelity::Payload, false);
    // One for each copy. Of the ring: one for every fourth descriptor and the last, fewer where the head moves over several at once.
    assert!((21..=20 + 38).contains(&interrupts), "{interrupts}");
}

#[test]
fn a_bad_link_changes_only_the_time() {
    let (_, interrupts) = run(Fidelity::Payload, true);
    assert!(interrupts >= 21, "{interrupts}");
}

#[test]
fn lengths_alone_give_the_same_trace() {
    assert_eq!(run(Fidelity::Payload, true), run(Fidelity::LengthOnly, true));
}
