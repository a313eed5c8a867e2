//! Switches that are partitions of one chip: what goes between them stays inside, and takes no longer than within one of them.

use crate::bench::mover::{Base, Move, Mover};
use crate::bench::{Bench, Watch, flow, ns, writes_to};
use tlplab_fabric::Builder;
use tlplab_fabric::config::*;
use tlplab_units::{Duration, Mps, Time};

/// `sw1` with `a`, `sw2` with `b`, each on a root port of its own.
fn two(chips: [Option<&str>; 2], under: [&str; 2], forwarding: Forwarding) -> Bench {
    let mut bench = Bench::new();
    bench.config.host.latency = ns(300);
    for (i, chip) in chips.into_iter().enumerate() {
        let switch = bench.switch(&format!("sw{}", i + 1), &format!("host.rp{i}"), 3, 4);
        (switch.latency, switch.forwarding, switch.chip) = (ns(100), forwarding, chip.map(str::to_string));
    }
    let moves = vec![Move::Write { at: 64, bytes: 64 }, Move::Read { at: 64, bytes: 64 }];
    let (mover, _) = Mover::new(Base::Bar("b".into(), 0), 1, moves);
    bench.device("a", under[0], 3, 4).finishing(Box::new(mover));
    bench.device("b", under[1], 3, 4).memory(1 << 16);
    bench
}

/// The latencies of a write and of a read, and the TLPs on both uplinks.
fn latencies(chips: [Option<&str>; 2], under: [&str; 2], forwarding: Forwarding) -> (Vec<Duration>, usize) {
    let (fabric, watch) = two(chips, under, forwarding).finish();
    let uplinks =
        ["sw1", "sw2"].iter().flat_map(|link| [0, 1].map(|way| watch.tlps(&fabric, link, way).len()));
    let transactions = watch.transactions();
    assert_eq!(transactions.len(), 2);
    (transactions.iter().map(|t| t.latency()).collect(), uplinks.sum())
}

#[test]
fn traffic_between_partitions_of_a_chip_passes_as_in_one_switch() {
    for forwarding in [Forwarding::CutThrough, Forwarding::StoreAndForward] {
        let within = latencies([None, None], ["sw1", "sw1"], forwarding);
        assert_eq!(within.1, 0);
        let inside = latencies([Some("x"), Some("x")], ["sw1", "sw2"], forwarding);
        assert_eq!(inside, within, "{forwarding:?}");
        for apart in [[None, None], [Some("x"), Some("y")], [Some("x"), None]] {
            let (found, uplinks) = latencies(apart, ["sw1", "sw2"], forwarding);
            // A write, a read and a completion, over two uplinks each.
            assert_eq!(uplinks, 6);
            assert!(found[0] > within.0[0] + ns(400), "{found:?}");
        }
    }
}

#[test]
fn traffic_for_host_and_other_ports_takes_the_uplink() {
    let mut bench = two([Some("x"), Some("x")], ["sw1", "sw2"], Forwarding::CutThrough);
    let (to_host, at_host) =
        Mover::new(Base::Address(0x10_0000), 1, vec![Move::Write { at: 0, bytes: 64 }; 3]);
    bench.device("c", "sw1", 3, 4).finishing(Box::new(to_host));
    let (away, at_d) = Mover::new(Base::Bar("d".into(), 0), 1, vec![Move::Write { at: 0, bytes: 64 }; 5]);
    bench.device("e", "sw2", 3, 4).finishing(Box::new(away));
    bench.device("d", "host.rp7", 3, 4).memory(1 << 16);
    let (fabric, watch) = bench.finish();
    assert_eq!((at_host.lock().unwrap().accepted, at_d.lock().unwrap().accepted), (3, 5));
    let up =
        |link: &str| watch.tlps(&fabric, link, 0).iter().filter(|(_, repr)| repr.name() == "MWr").count();
    assert_eq!((up("sw1"), up("sw2")), (3, 5));
}

/// Writers below both partitions share the link of a target as those of one switch do: each ingress has its turn.
#[test]
fn ingresses_of_all_partitions_take_turns() {
    let mut bench = Bench::new();
    bench.warmup(Duration::from_us(20));
    for i in 0..3 {
        bench.switch(&format!("sw{i}"), &format!("host.rp{i}"), 3, 8).chip = Some("x".into());
    }
    for (name, under) in [("a", "sw0"), ("b", "sw0"), ("c", "sw1"), ("d", "sw2")] {
        bench.device(name, under, 3, 8).load(writes_to("t", 16));
    }
    bench.device("t", "sw2", 3, 8).memory(1 << 20);
    let mut fabric = bench.build();
    fabric.run_until(Time::ZERO + Duration::from_us(120));
    let found = ["a", "b", "c", "d"].map(|name| flow(&fabric, name).bytes as f64 / 100e-6 / 1e9);
    assert!(found.iter().all(|rate| (rate / (7.18 / 4.0) - 1.0).abs() < 0.01), "{found:?}");
}

/// Links go down under traffic inside of a chip: nothing is left, and what comes back goes on.
#[test]
fn links_go_down_under_traffic_inside() {
    let at = |us| Time::ZERO + Duration::from_us(us);
    for link in ["sw1", "sw2", "a", "b"] {
        let mut bench = Bench::new();
        let kind = FaultKind::Down { at: at(5), until: Some(at(12)) };
        let down = Fault { direction: Direction::Down, kind };
        let faults = |name: &str| if name == link { vec![down.clone()] } else { Vec::new() };
        for (i, name) in ["sw1", "sw2"].into_iter().enumerate() {
            let switch = bench.switch(name, &format!("host.rp{i}"), 3, 8);
            (switch.chip, switch.uplink.faults) = (Some("x".into()), faults(name));
        }
        let moves = (0..300).map(|i| match i % 3 {
            0 => Move::Read { at: 256 * (i % 16), bytes: 256 },
            _ => Move::Write { at: 256 * (i % 16), bytes: 256 },
        });
        let (mover, _) = Mover::new(Base::Bar("b".into(), 0), 8, moves.collect());
        bench.device("a", "sw1", 3, 8).config(|d| d.link.faults = faults("a")).model(Box::new(mover));
        bench.device("b", "sw2", 3, 1).config(|d| d.link.faults = faults("b")).memory(1 << 16);
        let watch = Watch::everything();
        let mut fabric = bench.build_watched(watch.probe());
        fabric.run_until(at(20_000));
        assert_eq!((fabric.tlps_live(), fabric.transactions_live()), (0, 0), "{link}");
        assert_eq!(fabric.protocol_errors().count(), 0, "{link}");
    }
}

#[test]
fn partitions_of_a_chip_have_one_payload() {
    let mut bench = two([Some("x"), Some("x")], ["sw1", "sw2"], Forwarding::CutThrough);
    bench.config.devices[1].link.mps = Mps::ALL[0];
    let mut builder = Builder::new(bench.config);
    for name in ["a", "b"] {
        builder.device(name, Box::new(tlplab_device::Memory::new(1 << 12)));
    }
    let Err(error) = builder.build() else { panic!("payloads of 256 B and 128 B") };
    assert_eq!(
        error.to_string(),
        "sw1 and sw2 share chip \"x\", and have payloads of 256 B and 128 B; inside a chip TLPs are not cut: give both hierarchies the same mps"
    );
}
