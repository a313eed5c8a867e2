//! The core of a switch: what its rate, its egress buffers and its shared buffer cost, computed by hand first; and nothing is lost or overtaken.

use crate::bench::mover::{Base, Move, Mover};
use crate::bench::{Bench, Watch, flow, ns, writes_to};
use tlplab_fabric::config::*;
use tlplab_fabric::results::Level;
use tlplab_units::{Duration, Time};

fn core(rate: Option<u64>, egress: Option<u16>, shared: Option<u16>) -> Option<SwitchCoreConfig> {
    Some(SwitchCoreConfig { rate, egress, shared })
}

fn one_write(core: Option<SwitchCoreConfig>) -> Duration {
    let mut bench = Bench::new();
    let switch = bench.switch("sw0", "host.rp0", 1, 1);
    (switch.forwarding, switch.core, switch.uplink.skp) = (Forwarding::StoreAndForward, core, SkpPolicy::Off);
    let (mover, _) = Mover::new(Base::Address(0x1000), 1, vec![Move::Write { at: 0, bytes: 64 }]);
    bench.device("dev", "sw0", 1, 1).config(|d| d.link.skp = SkpPolicy::Off).finishing(Box::new(mover));
    bench.finish().1.transactions()[0].latency()
}

/// 76 bytes of header and data.
#[test]
fn a_core_takes_a_tlp_at_its_rate() {
    let without = one_write(None);
    assert_eq!(one_write(core(None, Some(4), Some(4))), without);
    assert_eq!(one_write(core(Some(8_000_000_000), None, None)), without + ns(76));
}

/// GB/s of writes without end, each from a device to a memory below the same switch: (writer, target, lanes of the target).
fn rates(core: Option<SwitchCoreConfig>, pairs: &[(&str, &str)], targets: &[(&str, u8)]) -> Vec<f64> {
    let mut bench = Bench::new();
    bench.warmup(Duration::from_us(30));
    let switch = bench.switch("sw0", "host.rp0", 3, 8);
    (switch.forwarding, switch.core) = (Forwarding::StoreAndForward, core);
    for (name, target) in pairs {
        bench.device(name, "sw0", 3, 8).load(writes_to(target, 64));
    }
    for (name, lanes) in targets {
        bench.device(name, "sw0", 3, *lanes).memory(1 << 20);
    }
    let mut fabric = bench.build();
    fabric.run_until(Time::ZERO + Duration::from_us(230));
    pairs.iter().map(|(name, _)| flow(&fabric, name).bytes as f64 / 200e-6 / 1e9).collect()
}

#[test]
fn all_ingresses_share_the_rate_of_the_core() {
    let pairs = [("a", "x"), ("b", "y"), ("c", "z")];
    let targets = [("x", 8), ("y", 8), ("z", 8)];
    // 9 GB/s for three, of which 256 of 272 bytes are data.
    let found = rates(core(Some(72_000_000_000), None, None), &pairs, &targets);
    let each = 3.0 * 256.0 / 272.0;
    assert!(found.iter().all(|rate| (rate / each - 1.0).abs() < 0.01), "{found:?} {each}");
    let free = rates(core(None, None, None), &pairs, &targets);
    assert!(free.iter().all(|rate| *rate > 7.0), "{free:?}");
}

/// Two flows of one ingress, one of them to a target with a lane: the ingress's queue stands still behind it.
#[test]
fn a_full_egress_holds_up_what_is_behind_in_the_same_queue_and_nothing_else() {
    let mut found = Vec::new();
    for core in [None, core(None, Some(4), None)] {
        let mut bench = Bench::new();
        bench.warmup(Duration::from_us(200));
        let switch = bench.switch("sw0", "host.rp0", 3, 8);
        (switch.forwarding, switch.core) = (Forwarding::StoreAndForward, core);
        let mut below = LinkConfig::clone(&crate::bench::link("sw0", 3, 8));
        // What an ingress holds is limited, so that a queue that stands still stops its link.
        below.upper.buffers = Some(Buffers {
            posted_headers: 32,
            posted_data: 512,
            non_posted_headers: 32,
            non_posted_data: 32,
            completion_headers: 0,
            completion_data: 0,
        });
        bench.config.switches.push(SwitchConfig::new("sw1", below));
        for (name, under, target) in [("a", "sw1", "fast"), ("b", "sw1", "slow"), ("c", "sw0", "fast")] {
            bench.device(name, under, 3, 8).load(writes_to(target, 8));
        }
        bench.device("fast", "sw0", 3, 8).memory(1 << 20);
        bench.device("slow", "sw0", 3, 1).memory(1 << 20);
        let mut fabric = bench.build();
        fabric.run_until(Time::ZERO + Duration::from_us(600));
        found.push(["a", "b", "c"].map(|name| flow(&fabric, name).bytes as f64 / 400e-6 / 1e9));
    }
    let [free, held] = found[..] else { unreachable!() };
    // a goes in turn with b, which has 0.9 GB/s; c has the rest of the fast target's link.
    assert!((held[0] / held[1] - 1.0).abs() < 0.1, "{held:?}");
    assert!(held[2] > 5.5 && held[1] > 0.85, "{held:?} {free:?}");
}

/// A slow target takes a shared buffer for itself, but for the place that each egress has; one of one TLP leaves just those.
#[test]
fn a_shared_buffer_is_for_all_egresses_together() {
    let waiting = |core: Option<SwitchCoreConfig>| {
        let mut bench = Bench::new();
        let switch = bench.switch("sw0", "host.rp0", 3, 8);
        (switch.forwarding, switch.core) = (Forwarding::StoreAndForward, core);
        for (name, target) in [("a", "x"), ("b", "y")] {
            bench.device(name, "sw0", 3, 8).load(writes_to(target, 16));
            bench.device(if name == "a" { "x" } else { "y" }, "sw0", 3, 1).memory(1 << 20);
        }
        let mut fabric = bench.build();
        fabric.run_until(Time::ZERO + Duration::from_us(100));
        // As each TLP leaves: what waits behind it.
        let levels = fabric.level_results();
        let depth = |place: &str| {
            let level = levels.iter().find(|level| level.of == Level::Queue && level.place == place).unwrap();
            level.max.iter().copied().max().unwrap_or(0)
        };
        (depth("sw0 → x"), depth("sw0 → y"))
    };
    assert_eq!(waiting(core(None, Some(3), None)), (2, 2));
    assert_eq!(waiting(core(None, None, Some(1))), (0, 0));
    let (x, y) = waiting(core(None, None, Some(6)));
    // Both ask for more than their half of six, of which one is leaving.
    assert_eq!((x, y), (2, 2));
}

/// Every byte arrives, in order, from everybody to everybody, whatever the limits; and all places come back.
#[test]
fn nothing_is_lost_or_overtaken_in_a_core() {
    for core in
        [core(Some(30_000_000_000), Some(1), None), core(None, Some(3), Some(4)), core(None, None, Some(1))]
    {
        let mut bench = Bench::new();
        let switch = bench.switch("sw0", "host.rp0", 3, 2);
        (switch.forwarding, switch.core) = (Forwarding::StoreAndForward, core);
        let mut moves = Vec::new();
        for i in 0..150 {
            moves.push(Move::Write { at: 64 * i, bytes: 64 });
            moves.push(Move::Read { at: 64 * i, bytes: 64 });
        }
        let mut all = Vec::new();
        for (from, to) in [("a", "x"), ("b", "x"), ("c", "y")] {
            let base = Base::Bar(to.into(), if from == "b" { 2 } else { 0 });
            let base = if from == "b" { Base::Address(0x10_0000) } else { base };
            let (mover, moved) = Mover::new(base, 1, moves.clone());
            bench.device(from, "sw0", 3, 4).finishing(Box::new(mover));
            all.push((from, moved));
        }
        bench.device("x", "sw0", 3, 1).memory(1 << 16);
        bench.device("y", "sw0", 3, 1).memory(1 << 16);
        bench.finish();
        for (from, moved) in all {
            let moved = moved.lock().unwrap();
            assert_eq!(
                (moved.accepted, moved.read, moved.failed.len(), moved.wrong.len()),
                (150, 150, 0, 0),
                "{from}"
            );
        }
    }
}

/// Links fail and come back under traffic through a core, and the switch is reset: nothing keeps a place.
#[test]
fn a_core_survives_links_that_go_down() {
    let at = |us| Time::ZERO + Duration::from_us(us);
    for link in ["sw0", "t", "a"] {
        let mut bench = Bench::new();
        let kind = FaultKind::Down { at: at(5), until: Some(at(12)) };
        let down = Fault { direction: Direction::Down, kind };
        let faults = |name: &str| if name == link { vec![down.clone()] } else { Vec::new() };
        let switch = bench.switch("sw0", "host.rp0", 3, 8);
        switch.forwarding = Forwarding::StoreAndForward;
        (switch.core, switch.uplink.faults) = (core(Some(50_000_000_000), Some(2), Some(3)), faults("sw0"));
        let writes: Vec<_> = (0..300).map(|i| Move::Write { at: 256 * (i % 16), bytes: 256 }).collect();
        let (to_peer, _) = Mover::new(Base::Bar("t".into(), 0), 8, writes.clone());
        let (to_host, _) = Mover::new(Base::Address(0x10_0000), 8, writes);
        bench.device("a", "sw0", 3, 8).config(|d| d.link.faults = faults("a")).model(Box::new(to_peer));
        bench.device("b", "sw0", 3, 8).model(Box::new(to_host));
        bench.device("t", "sw0", 3, 1).config(|d| d.link.faults = faults("t")).memory(1 << 16);
        let watch = Watch::everything();
        let mut fabric = bench.build_watched(watch.probe());
        fabric.run_until(at(2_000));
        assert_eq!((fabric.tlps_live(), fabric.transactions_live()), (0, 0), "{link}");
        assert_eq!(fabric.protocol_errors().count(), 0, "{link}");
        // What has come back still passes the core: a place that was kept would stop it.
        let late = watch.transactions().iter().filter(|t| t.start > at(20)).count();
        assert!(link == "sw0" || late > 100, "{link}: {late}");
    }
}
