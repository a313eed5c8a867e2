//! The core of a switch: what its rate, its egress buffers and its shared buffer cost, computed by hand first; and nothing is lost or overtaken.

use crate::bench::mover::{Base, Move, Mover};
use crate::bench::watch::Content;
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

/// A switch of 100 ns and a write of 64 B through it to memory; gen1 carries a byte in 4 ns per lane: 84 bytes with framing, 16 of which are there
/// with the header. By the core go 76 bytes, of them 12 of header.
fn through(
    forwarding: Forwarding,
    rate: Option<u64>,
    lanes: (u8, u8),
    change: impl Fn(&mut LinkConfig),
) -> Duration {
    let mut bench = Bench::new();
    let switch = bench.switch("sw0", "host.rp0", 1, lanes.1);
    (switch.forwarding, switch.core, switch.uplink.skp) =
        (forwarding, core(rate, None, None), SkpPolicy::Off);
    switch.latency = ns(100);
    let (mover, _) = Mover::new(Base::Address(0x1000), 1, vec![Move::Write { at: 0, bytes: 64 }]);
    bench
        .device("dev", "sw0", 1, lanes.0)
        .config(|d| {
            d.link.skp = SkpPolicy::Off;
            change(&mut d.link);
        })
        .finishing(Box::new(mover));
    bench.finish().1.transactions()[0].latency()
}

#[test]
fn a_header_goes_on_through_a_core_before_its_tail() {
    use Forwarding::{CutThrough, StoreAndForward};
    let latency = |forwarding, rate, lanes| through(forwarding, rate, lanes, |_| {});
    // Stored: all bytes, the latency, all bytes by the core, all bytes again.
    assert_eq!(latency(StoreAndForward, Some(8_000_000_000), (1, 1)), ns(336 + 100 + 76 + 336));
    // Without a rate as without a core.
    assert_eq!(latency(CutThrough, None, (1, 1)), ns(64 + 100 + 336));
    assert_eq!(latency(CutThrough, None, (1, 2)), ns(336 + 100));
    // A nanosecond a byte: the header passes in 12 ns, and the core is ahead of the egress.
    assert_eq!(latency(CutThrough, Some(8_000_000_000), (1, 1)), ns(64 + 100 + 12 + 336));
    // From two lanes: its header is there after 32 ns.
    assert_eq!(latency(CutThrough, Some(8_000_000_000), (2, 1)), ns(32 + 100 + 12 + 336));
    // Ten times as slow: 760 ns in all, and the last byte leaves with the core's.
    assert_eq!(latency(CutThrough, Some(800_000_000), (1, 1)), ns(64 + 100 + 760));
    // A faster egress waits: the core takes the TLP when what is still to come fits, and the header is 12 ns on its way.
    assert_eq!(latency(CutThrough, Some(8_000_000_000), (1, 2)), ns(336 + 100 + 12));
}

/// The way of a switch's port, and of a chip that stores for faster ports.
#[test]
fn a_port_forwards_in_its_own_way() {
    use Forwarding::{CutThrough, CutThroughUnlessFaster, StoreAndForward};
    let own = |forwarding, port| {
        let latency = |lanes| through(forwarding, None, lanes, |link| link.upper.forwarding = port);
        [latency((1, 1)), latency((1, 2)), latency((2, 1))]
    };
    let cut = [ns(64 + 100 + 336), ns(336 + 100), ns(32 + 100 + 336)];
    let stored = [ns(336 + 100 + 336), ns(336 + 100 + 168), ns(168 + 100 + 336)];
    assert_eq!(own(CutThrough, None), cut);
    assert_eq!(own(CutThrough, Some(StoreAndForward)), stored);
    assert_eq!(own(StoreAndForward, Some(CutThrough)), cut);
    let chip = [cut[0], stored[1], cut[2]];
    assert_eq!(own(CutThroughUnlessFaster, None), chip);
    assert_eq!(own(StoreAndForward, Some(CutThroughUnlessFaster)), chip);
    // What other ports do is no matter.
    assert_eq!(
        through(CutThrough, None, (1, 1), |link| link.lower.forwarding = Some(StoreAndForward)),
        cut[0]
    );
}

/// Damaged TLPs are cut through as well as good ones, and nullified behind the core; each comes in the end, and no place is kept.
#[test]
fn damaged_tlps_are_nullified_behind_a_switch_core() {
    for core in [
        core(None, Some(2), Some(3)),
        core(Some(30_000_000_000), Some(1), None),
        core(Some(1_000_000_000), None, None),
    ] {
        let mut bench = Bench::new();
        bench.config.host.error_reporting = false;
        let switch = bench.switch("sw0", "host.rp0", 1, 4);
        (switch.latency, switch.core) = (ns(30), core);
        let (mover, moved) =
            Mover::new(Base::Address(0x1000), 4, vec![Move::Write { at: 0, bytes: 64 }; 1000]);
        let numerator = (u64::MAX / (84 * 8)) / 3;
        let fault = Fault { direction: Direction::Up, kind: FaultKind::BitErrors { numerator } };
        bench.device("dev", "sw0", 1, 4).config(|d| d.link.faults = vec![fault]).finishing(Box::new(mover));
        let (fabric, watch) = bench.finish();
        assert_eq!((watch.transactions().len(), moved.lock().unwrap().accepted), (1000, 1000));
        let nullified = watch.units(&fabric, "sw0", 0);
        let nullified = nullified
            .iter()
            .filter(|unit| matches!(unit.content, Content::Tlp { nullified: true, .. }))
            .count();
        let damaged = watch.units(&fabric, "dev", 0).iter().filter(|unit| unit.bad).count();
        assert!(damaged > 200 && nullified > 200, "{damaged} {nullified}");
    }
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

/// Writers a, b and c to a memory below the same switch, a with weight 2: shares of 1/2, 1/4 and 1/4 of its link, whether the egress chooses or, with
/// few places there, the core.
#[test]
fn weights_are_shares_of_a_downstream_port() {
    for core in [None, core(None, Some(2), None), core(Some(1_000_000_000_000), None, Some(4))] {
        let mut bench = Bench::new();
        bench.warmup(Duration::from_us(30));
        let switch = bench.switch("sw0", "host.rp0", 3, 8);
        (switch.core, switch.arbitration) = (core, Arbitration::Weighted(vec![("a".into(), 2)]));
        for name in ["a", "b", "c"] {
            bench.device(name, "sw0", 3, 8).load(writes_to("x", 64));
        }
        bench.device("x", "sw0", 3, 8).memory(1 << 20);
        let mut fabric = bench.build();
        fabric.run_until(Time::ZERO + Duration::from_us(230));
        let found = ["a", "b", "c"].map(|name| flow(&fabric, name).bytes as f64 / 200e-6 / 1e9);
        let all: f64 = found.iter().sum();
        let shares = found.map(|rate| rate / all);
        let close =
            shares.iter().zip([0.5, 0.25, 0.25]).all(|(found, share)| (found / share - 1.0).abs() < 0.02);
        assert!(close && all > 7.0, "{core:?}: {found:?}");
    }
}

/// Two flows of one ingress, one of them to a target with a lane: the ingress's queue stands still behind it.
#[test]
fn a_full_egress_holds_up_only_its_own_ingress_queue() {
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
    let cores =
        [core(Some(30_000_000_000), Some(1), None), core(None, Some(3), Some(4)), core(None, None, Some(1))];
    let ways = [Forwarding::StoreAndForward, Forwarding::CutThrough, Forwarding::CutThroughUnlessFaster];
    for (core, forwarding) in cores.into_iter().flat_map(|core| ways.map(|way| (core, way))) {
        let mut bench = Bench::new();
        let switch = bench.switch("sw0", "host.rp0", 3, 2);
        (switch.forwarding, switch.core) = (forwarding, core);
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
    let ways = [Forwarding::StoreAndForward, Forwarding::CutThrough];
    for (link, forwarding) in ["sw0", "t", "a"].into_iter().flat_map(|link| ways.map(|way| (link, way))) {
        let mut bench = Bench::new();
        let kind = FaultKind::Down { at: at(5), until: Some(at(12)) };
        let down = Fault { direction: Direction::Down, kind };
        let faults = |name: &str| if name == link { vec![down.clone()] } else { Vec::new() };
        let switch = bench.switch("sw0", "host.rp0", 3, 8);
        switch.forwarding = forwarding;
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
