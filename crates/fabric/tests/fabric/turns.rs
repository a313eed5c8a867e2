//! A root complex that keeps writes in order across its root ports by waiting: what each change of destination costs, computed by hand first.

use crate::bench::mover::{Base, Move, Mover};
use crate::bench::{Bench, flow, ns};
use tlplab_device::{LoadConfig, LoadOp, Target};
use tlplab_fabric::Builder;
use tlplab_fabric::attribution::Cause;
use tlplab_fabric::config::*;
use tlplab_units::{Duration, Time};

/// The BAR of `y` is behind that of `x`, which is as large.
const BAR: u64 = 1 << 20;
const X: u64 = 0;
const Y: u64 = BAR;

/// A device below rp0, and memories below rp1 and rp2; gen1 x1.
fn bench(turnaround: Option<u64>) -> Bench {
    let mut bench = Bench::new();
    bench.config.host.write_turnaround = turnaround.map(ns);
    for (name, port) in [("x", 1), ("y", 2)] {
        let slot = bench.device(name, &format!("host.rp{port}"), 1, 1);
        slot.config(|d| d.link.skp = SkpPolicy::Off).memory(BAR);
    }
    bench
}

/// When the last of these writes of 64 B is over, and what was spent queueing in the root complex.
fn last(mut bench: Bench, at: &[u64], change: impl Fn(&mut DeviceConfig)) -> (Time, Duration) {
    let moves = at.iter().map(|at| Move::Write { at: *at, bytes: 64 }).collect();
    let (mover, _) = Mover::new(Base::Bar("x".into(), 0), at.len(), moves);
    let slot = bench.device("a", "host.rp0", 1, 1).config(|d| d.link.skp = SkpPolicy::Off);
    slot.config(change).finishing(Box::new(mover));
    let (_, watch) = bench.finish();
    let transactions = watch.transactions();
    let queueing = transactions.iter().map(|t| t.time_of(Cause::Queueing)).fold(Duration::ZERO, |a, b| a + b);
    (transactions.iter().map(|t| t.end).max().unwrap(), queueing)
}

/// A byte takes 4 ns: 88 B with framing and a header of 16 B take 352 ns to the root complex, and as long from there, where they leave at once.
#[test]
fn each_change_of_destination_takes_the_turnaround() {
    let at = |nanoseconds| Time::ZERO + ns(nanoseconds);
    let alternating: Vec<_> = [X, Y].into_iter().cycle().take(8).collect();
    assert_eq!(last(bench(None), &alternating, |_| {}).0, at(8 * 352 + 352));
    // The first goes on as it comes; each further one, there by then, a microsecond after the one before.
    let (end, queueing) = last(bench(Some(1000)), &alternating, |_| {});
    assert_eq!(end, at(352 + 7 * 1000 + 352));
    // The n-th waited n · 352 ns behind the others in the device, and n · (1000 - 352) ns for its turn.
    assert_eq!(queueing, ns((1..8).map(|n| n * 1000).sum()));
    // Runs of four: the last of the first leaves as it comes, and the second run goes at once and full speed, a microsecond later.
    assert_eq!(last(bench(Some(1000)), &[X, X, X, X, Y, Y, Y, Y], |_| {}).0, at(4 * 352 + 1000 + 4 * 352));
    // One destination never waits, and nor does what needs no order.
    assert_eq!(last(bench(Some(1000)), &[X; 8], |_| {}).0, at(8 * 352 + 352));
    assert_eq!(last(bench(Some(1000)), &alternating, |d| d.relaxed_ordering = true).0, at(8 * 352 + 352));
    // A turnaround that is shorter than a TLP takes costs nothing.
    assert_eq!(last(bench(Some(352)), &alternating, |_| {}).0, at(8 * 352 + 352));
}

/// Two devices below a switch, each to its own root port: what they carry together is a TLP's payload in each turnaround; below root ports of
/// their own they do not wait for each other.
#[test]
fn flows_of_one_root_port_to_several_share_the_turnaround() {
    let rates = |apart: bool, op: LoadOp| {
        let mut bench = Bench::new();
        bench.config.host.write_turnaround = Some(ns(100));
        bench.warmup(Duration::from_us(20));
        bench.switch("sw", "host.rp0", 3, 8);
        for (name, to, own) in [("a", "x", "sw"), ("b", "y", if apart { "host.rp3" } else { "sw" })] {
            let target = Target::Bar { device: to.into(), bar: 0 };
            let load = LoadConfig { op, target, outstanding: 16, window: 1 << 20, ..LoadConfig::default() };
            bench.device(name, own, 3, 8).load(load);
        }
        bench.device("x", "host.rp1", 3, 8).memory(1 << 20);
        bench.device("y", "host.rp2", 3, 8).memory(1 << 20);
        let mut fabric = bench.build();
        fabric.run_until(Time::ZERO + Duration::from_us(120));
        ["a", "b"].map(|name| flow(&fabric, name).bytes as f64 / 100e-6 / 1e9)
    };
    // 256 B in 100 ns for both.
    let together = rates(false, LoadOp::Write);
    assert!(together.iter().all(|rate| (rate / 1.28 - 1.0).abs() < 0.02), "{together:?}");
    assert!(rates(true, LoadOp::Write).iter().all(|rate| *rate > 7.0));
    let reads = rates(false, LoadOp::Read);
    assert!(reads.iter().sum::<f64>() > 7.0, "{reads:?}");
}

/// Reads see the data written before them, even where TLPs wait; and a target whose link goes down does not hold up the others.
#[test]
fn waiting_for_a_turn_loses_and_reorders_nothing() {
    for down in [false, true] {
        let mut bench = bench(Some(700));
        if down {
            let kind = FaultKind::Down {
                at: Time::ZERO + Duration::from_us(5),
                until: Some(Time::ZERO + Duration::from_us(15)),
            };
            bench.config.devices[0].link.faults = vec![Fault { direction: Direction::Down, kind }];
        }
        let mut moves = Vec::new();
        for i in 0..60 {
            let at = 64 * i + [X, Y, Y][i as usize % 3];
            moves.extend([Move::Write { at, bytes: 64 }, Move::Read { at, bytes: 64 }]);
        }
        let (mover, moved) = Mover::new(Base::Bar("x".into(), 0), if down { 8 } else { 1 }, moves);
        let mover = if down { mover.unchecked() } else { mover };
        let slot =
            bench.device("a", "host.rp0", 2, 1).config(|d| d.completion_timeout = Duration::from_us(60));
        slot.finishing(Box::new(mover));
        bench.finish();
        let moved = moved.lock().unwrap();
        assert_eq!((moved.accepted, moved.wrong.len()), (60, 0));
        assert_eq!(moved.read == 60, !down, "{moved:?}");
    }
}

#[test]
fn a_write_has_one_place() {
    let mut bench = bench(Some(5));
    bench.config.host.domains =
        vec![DomainConfig { entries: Some(4), ports: vec!["host.rp1".into()], ..DomainConfig::new("x") }];
    let mut builder = Builder::new(bench.config);
    for name in ["x", "y"] {
        builder.device(name, Box::new(tlplab_device::Memory::new(BAR)));
    }
    let Err(error) = builder.build() else { panic!("entries and turns") };
    assert_eq!(
        error.to_string(),
        "host domain x: it has entries, and the host a write_turnaround: set one of them"
    );
}
