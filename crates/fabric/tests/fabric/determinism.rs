//! The same experiment and seed give the same trace: whatever the order of declaration, the thread, the profile, the fidelity.

use crate::bench::any::cases;
use crate::bench::any::strategies::{any_fabric, any_faults, any_peers};
use crate::bench::{Bench, ns};
use proptest::prelude::*;
use tlplab_device::{LoadConfig, LoadOp, Pattern, Target};
use tlplab_fabric::config::*;
use tlplab_units::{Duration, Time};

proptest! {
    #![proptest_config(cases(32))]

    #[test]
    fn a_run_is_a_function_of_experiment_and_seed(any in prop_oneof![any_fabric(), any_peers()], faults in any_faults()) {
        let any = any.with_faults(&faults);
        let run = |change: fn(&mut FabricConfig)| {
            let mut built = any.build_with(change);
            built.run(Duration::from_ms(50));
            let fabric = &built.fabric;
            (fabric.trace_hash(), fabric.events(), fabric.now(), fabric.tlp_hops())
        };
        let first = run(|_| {});
        prop_assert_eq!(first, run(|_| {}), "the same again");
        let reordered = run(|config| {
            config.devices.reverse();
            config.switches.reverse();
        });
        prop_assert_eq!(first, reordered, "declared in another order");
        prop_assert_eq!(first, run(|config| config.fidelity = Fidelity::LengthOnly), "lengths only");
        let other = run(|config| config.devices.iter_mut().for_each(|d| d.link.flight += ns(1)));
        prop_assert_ne!(first.0, other.0, "the hash sees a nanosecond");
    }
}

/// A bit of everything.
fn experiment() -> (u64, u64) {
    let mut bench = Bench::new();
    bench.config.host.latency = ns(60);
    bench.config.host.memory =
        MemoryConfig { latency: ns(85), bandwidth: Some(60_000_000_000), size: 1 << 38 };
    let switch = bench.switch("sw0", "host.rp0", 4, 4);
    (switch.latency, switch.uplink.flight) = (ns(110), ns(3));
    let numerator = u64::MAX / 3_000_000;
    switch.uplink.faults.push(Fault { direction: Direction::Up, kind: FaultKind::BitErrors { numerator } });
    let load = LoadConfig { count: Some(200), pattern: Pattern::Random, offset: 20, ..LoadConfig::default() };
    bench.device("nic", "sw0", 3, 8).load(LoadConfig { op: LoadOp::Both, size: 1500, ..load.clone() });
    bench.device("ssd", "sw0", 4, 4).load(LoadConfig { op: LoadOp::Write, size: 4096, ..load.clone() });
    bench.device("gpu", "host.rp1", 6, 8).load(LoadConfig { op: LoadOp::Read, size: 2048, ..load.clone() });
    bench.device("mem", "sw0", 1, 2).memory(1 << 20);
    let target = Target::Bar { device: "mem".into(), bar: 0 };
    bench.mmio(LoadConfig { op: LoadOp::Both, size: 8, target, count: Some(50), ..load });
    let mut fabric = bench.build();
    while fabric.run_events(10_000, Time::ZERO + Duration::from_ms(20)) {}
    assert!(fabric.is_done());
    (fabric.trace_hash(), fabric.tlp_hops())
}

/// The trace of [`experiment`], in every profile and on every machine. It changes when behaviour does: a change log entry, then.
const TRACE: (u64, u64) = (668_644_408_854_526_176, 15_900);

#[test]
fn the_trace_is_the_one_it_always_was() {
    assert_eq!(experiment(), TRACE);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "threads must not matter, which takes threads to see")]
fn two_threads_see_the_same() {
    let both = std::thread::scope(|scope| {
        let runs = [scope.spawn(experiment), scope.spawn(experiment)];
        runs.map(|run| run.join().unwrap())
    });
    assert_eq!(both[0], both[1]);
    assert_eq!(both[0], experiment());
}
