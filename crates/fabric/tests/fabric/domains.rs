//! Domains of the host: what traffic between root ports costs that leaves one and enters another, computed by hand first; and nothing is lost or
//! overtakes on the way.

use crate::bench::mover::{Base, Move, Moved, Mover};
use crate::bench::{Bench, flow, ns, writes_to};
use std::sync::{Arc, Mutex};
use tlplab_device::{Dma, DmaDriver, LoadConfig, LoadOp};
use tlplab_fabric::Builder;
use tlplab_fabric::attribution::Cause;
use tlplab_fabric::config::*;
use tlplab_units::{Duration, Time};
use tlplab_wire::tlp::Kind;

fn domain(name: &str, under: Option<&str>, ports: &[u8], latency: u64) -> DomainConfig {
    DomainConfig {
        under: under.map(str::to_string),
        ports: ports.iter().map(|port| format!("host.rp{port}")).collect(),
        latency: ns(latency),
        ..DomainConfig::new(name)
    }
}

/// Two sockets: quadrants q0 and q1 in the first, with two ports in q1.
fn sockets() -> Vec<DomainConfig> {
    vec![
        domain("q0", Some("s0"), &[0], 10),
        domain("q1", Some("s0"), &[1, 2], 20),
        domain("s0", None, &[], 100),
        domain("s1", None, &[3], 200),
    ]
}

/// A write from below one root port to below another, each with a device: rp0 to rp4.
fn one_write(domains: Vec<DomainConfig>, from: u8, to: u8) -> (Duration, Arc<Mutex<Moved>>) {
    let mut bench = Bench::new();
    bench.config.host.domains = domains;
    let (mover, moved) =
        Mover::new(Base::Bar(format!("d{to}"), 0), 1, vec![Move::Write { at: 0, bytes: 64 }]);
    let mut mover = Some(Box::new(mover));
    for port in 0..5 {
        let slot = bench.device(&format!("d{port}"), &format!("host.rp{port}"), 1, 1);
        let slot = slot.config(|d| d.link.skp = SkpPolicy::Off);
        if port == from { slot.finishing(mover.take().unwrap()) } else { slot.memory(1 << 16) }
    }
    let (_, watch) = bench.finish();
    (watch.transactions()[0].latency(), moved)
}

#[test]
fn each_domain_that_is_left_or_entered_takes_its_latency() {
    let direct = one_write(Vec::new(), 0, 1).0;
    for (from, to, added) in [
        (0, 1, 10 + 20),
        (1, 2, 0),
        (1, 0, 20 + 10),
        (2, 3, 20 + 100 + 200),
        (3, 0, 200 + 100 + 10),
        (0, 4, 10 + 100),
        (4, 3, 200),
    ] {
        let (latency, _) = one_write(sockets(), from, to);
        assert_eq!(latency, direct + ns(added), "from rp{from} to rp{to}");
    }
}

/// A write to memory and a read of it, of 64 B, by a device below a root port: the latencies of both.
fn to_memory(domains: Vec<DomainConfig>, memory: Option<&str>, port: u8) -> [Duration; 2] {
    let mut bench = Bench::new();
    bench.config.host.domains = domains;
    bench.config.host.memory_domain = memory.map(str::to_string);
    let moves = vec![Move::Write { at: 0, bytes: 64 }, Move::Read { at: 0, bytes: 64 }];
    let (mover, _) = Mover::new(Base::Address(0x1000), 1, moves);
    let mut mover = Some(Box::new(mover));
    for rp in 0..5 {
        let slot = bench.device(&format!("d{rp}"), &format!("host.rp{rp}"), 1, 1);
        let slot = slot.config(|d| d.link.skp = SkpPolicy::Off);
        if rp == port { slot.finishing(mover.take().unwrap()) } else { slot.memory(1 << 16) }
    }
    let (_, watch) = bench.finish();
    let found = watch.transactions();
    [found[0].latency(), found[1].latency()]
}

/// A write pays the way in, a read the way in and the way back.
#[test]
fn memory_is_as_far_as_the_domains_between() {
    let [write, read] = to_memory(Vec::new(), None, 0);
    // Without a place of its own memory is equally near to all.
    assert_eq!(to_memory(sockets(), None, 3), [write, read]);
    for (memory, port, in_and_back) in [
        ("q1", 0, [10 + 20, 20 + 10]),
        ("q1", 1, [0, 0]),
        ("q1", 3, [200 + 100 + 20, 20 + 100 + 200]),
        ("s0", 0, [10, 10]),
        ("s0", 4, [100, 100]),
        ("s1", 2, [20 + 100 + 200, 200 + 100 + 20]),
    ] {
        let [way_in, back] = in_and_back;
        let found = to_memory(sockets(), Some(memory), port);
        assert_eq!(found, [write + ns(way_in), read + ns(way_in + back)], "rp{port} to {memory}");
    }
}

/// At 8 Gb/s out of the port's domain a write of 64 B to memory below 4 GiB takes 76 ns, with 12 of header; a read's request 12 ns, and its answer,
/// with a header of 12 B, 76 ns in.
#[test]
fn memory_accesses_are_serialised_at_the_rate_of_each_passage() {
    let domains = |rate| {
        let mut domains = vec![domain("a", None, &[0], 0), domain("m", None, &[], 0)];
        domains[0].rate = rate;
        domains
    };
    let [write, read] = to_memory(domains(None), Some("m"), 0);
    let found = to_memory(domains(Some(8_000_000_000)), Some("m"), 0);
    assert_eq!(found, [write + ns(76), read + ns(12 + 76)]);
}

/// Reads of two devices of one domain share its entrance with what a peer sends there: 2 GB/s for all.
#[test]
fn answers_of_memory_and_peers_share_an_entrance() {
    let mut bench = Bench::new();
    let mut here = domain("here", None, &[0, 1, 3], 0);
    here.rate = Some(16_000_000_000);
    bench.config.host.domains = vec![here, domain("there", None, &[2], 0), domain("memory", None, &[], 0)];
    bench.config.host.memory_domain = Some("memory".into());
    bench.warmup(Duration::from_us(20));
    for (name, port) in [("r0", 0), ("r1", 1)] {
        let read = LoadConfig { op: LoadOp::Read, outstanding: 32, window: 1 << 20, ..LoadConfig::default() };
        bench.device(name, &format!("host.rp{port}"), 3, 8).load(read);
    }
    bench.device("w", "host.rp2", 3, 8).load(writes_to("t", 64));
    bench.device("t", "host.rp3", 3, 8).memory(1 << 20);
    let mut fabric = bench.build();
    fabric.run_until(Time::ZERO + Duration::from_us(120));
    let found = ["r0", "r1", "w"].map(|name| flow(&fabric, name).bytes as f64 / 100e-6 / 1e9);
    // What comes from memory's domain has a turn, 256 of 268 bytes, and so have the writes, 256 of 272.
    let turn = 2.0 / (268.0 + 272.0) * 256.0;
    let expected = [turn / 2.0, turn / 2.0, turn];
    let close = found.iter().zip(expected).all(|(found, expected)| (found / expected - 1.0).abs() < 0.02);
    assert!(close, "{found:?} {expected:?}");
}

/// An interrupt comes after the data that it tells of, however far memory is: the driver compares every byte. All entries come back.
#[test]
fn interrupts_do_not_pass_writes_that_are_on_their_way_to_memory() {
    for entries in [None, Some(1), Some(3)] {
        let mut bench = Bench::new();
        let far = DomainConfig { entries, rate: Some(8_000_000_000), ..domain("far", None, &[], 400) };
        bench.config.host.domains = vec![far];
        bench.config.host.memory_domain = Some("far".into());
        bench.device("copier", "host.rp0", 3, 4).model(Box::new(Dma::new()));
        bench.finishing_program(Box::new(DmaDriver::new("copier", 5000, 4)));
        let (fabric, _) = bench.finish();
        assert_eq!((fabric.fault(), fabric.interrupts()), (None, 4));
    }
}

/// An answer for the processor waits until the writes that left the device before it are in memory.
#[test]
fn answers_for_the_processor_do_not_pass_writes_that_are_on_their_way_to_memory() {
    let mut bench = Bench::new();
    bench.config.host.domains = vec![domain("far", None, &[], 5000)];
    bench.config.host.memory_domain = Some("far".into());
    let writes = (0..200).map(|i| Move::Write { at: 64 * i, bytes: 64 }).collect();
    let (mover, _) = Mover::new(Base::Address(0x10_0000), 16, writes);
    bench.device("dev", "host.rp0", 1, 1).finishing(Box::new(mover));
    let (reader, _) = Mover::new(Base::Bar("dev".into(), 0), 1, vec![Move::Read { at: 0, bytes: 4 }]);
    bench.finishing_program(Box::new(reader.unchecked()));
    let (fabric, watch) = bench.finish();
    let up = watch.tlps(&fabric, "dev", 0);
    let before = up.iter().position(|(_, repr)| matches!(repr.kind(), Kind::Completion(_))).unwrap();
    let transactions = watch.transactions();
    let answered = transactions.iter().find(|t| t.read).unwrap().end;
    let mut writes: Vec<_> = transactions.iter().filter(|t| !t.read).collect();
    writes.sort_by_key(|t| t.number);
    assert!(before > 0 && writes[..before].iter().all(|write| write.end <= answered), "{before}");
    assert!(answered > Time::ZERO + ns(5000));
}

/// 80 bytes, 16 of header and 64 of data, in 80 ns at 8 Gb/s, when a TLP leaves and when it enters; framing stays on the wire.
#[test]
fn a_tlp_takes_its_bytes_at_the_rate_of_each_passage() {
    let direct = one_write(Vec::new(), 0, 1).0;
    let mut domains = vec![domain("a", None, &[0], 0), domain("b", None, &[1], 0)];
    (domains[0].rate, domains[1].rate) = (Some(8_000_000_000), Some(4_000_000_000));
    let (latency, _) = one_write(domains, 0, 1);
    assert_eq!(latency, direct + ns(80) + ns(2 * 80));
}

/// Writers below rp0 and rp1 write to below rp2; all in domains of their own.
fn rates(domains: Vec<DomainConfig>, writers: &[(&str, u8, u8)], targets: &[u8]) -> Vec<f64> {
    let mut bench = Bench::new();
    bench.config.host.domains = domains;
    bench.warmup(Duration::from_us(20));
    for (name, port, to) in writers {
        bench.device(name, &format!("host.rp{port}"), 3, 8).load(writes_to(&format!("t{to}"), 64));
    }
    for to in targets {
        bench.device(&format!("t{to}"), &format!("host.rp{to}"), 3, 8).memory(1 << 20);
    }
    let mut fabric = bench.build();
    fabric.run_until(Time::ZERO + Duration::from_us(120));
    writers.iter().map(|(name, ..)| flow(&fabric, name).bytes as f64 / 100e-6 / 1e9).collect()
}

/// Gen3 x8 carries 7.88 GB/s, of which 256 of 280 or 276 bytes are data.
#[test]
fn flows_from_outside_share_the_entrance_of_a_domain() {
    let alone = rates(Vec::new(), &[("a", 0, 3)], &[3])[0];
    assert!((7.0..7.3).contains(&alone), "{alone}");
    let writers = [("a", 0, 3), ("b", 1, 3), ("c", 2, 3)];
    let near = |found: &[f64], shares: [f64; 3]| {
        let expected = shares.map(|share| share * alone);
        let close = found.iter().zip(expected).all(|(found, expected)| (found / expected - 1.0).abs() < 0.02);
        assert!(close, "{found:?} {expected:?}");
    };
    // Without domains each root port has its turn.
    near(&rates(Vec::new(), &writers, &[3]), [1.0 / 3.0; 3]);
    // c is in the target's domain: the others come in by one entrance, which has its turn as c has.
    let inside = vec![domain("here", None, &[2, 3], 0), domain("there", None, &[0, 1], 0)];
    near(&rates(inside, &writers, &[3]), [0.25, 0.25, 0.5]);
    // Three domains: at an entrance that is the narrowest, of 4 GB/s, what comes from each has its turn; one that is not has no queue.
    let mut apart =
        vec![domain("x", None, &[0, 1], 0), domain("y", None, &[2], 0), domain("z", None, &[3], 0)];
    near(&rates(apart.clone(), &writers, &[3]), [1.0 / 3.0; 3]);
    apart[2].rate = Some(32_000_000_000);
    let data = 4.0 * 256.0 / 272.0 / alone;
    near(&rates(apart, &writers, &[3]), [0.25, 0.25, 0.5].map(|share| share * data));
}

/// An exit of 2 GB/s, for headers and data.
#[test]
fn the_exit_of_a_domain_limits_its_outgoing_flows() {
    let mut domains = vec![domain("x", None, &[0, 1], 50), domain("z", None, &[3], 50)];
    domains[0].rate = Some(16_000_000_000);
    let found = rates(domains, &[("a", 0, 3), ("b", 1, 3)], &[3]);
    let data = 2.0 * 256.0 / 272.0;
    assert!((found.iter().sum::<f64>() / data - 1.0).abs() < 0.01, "{found:?}");
    assert!((found[0] / found[1] - 1.0).abs() < 0.02, "{found:?}");
}

/// With few entries a passage stands still while its TLPs wait for a slow target, and so do those for others: head-of-line blocking.
#[test]
fn few_entries_let_a_slow_target_hold_up_the_others() {
    let carried = |entries: Option<u16>| -> Vec<f64> {
        let mut bench = Bench::new();
        bench.config.host.domains = vec![DomainConfig { entries, ..domain("x", None, &[0, 1], 50) }];
        bench.warmup(Duration::from_us(20));
        for (name, port, to) in [("a", 0, 2), ("b", 1, 3)] {
            bench.device(name, &format!("host.rp{port}"), 3, 8).load(writes_to(&format!("t{to}"), 64));
        }
        bench.device("t2", "host.rp2", 3, 8).memory(1 << 20);
        bench.device("t3", "host.rp3", 3, 1).memory(1 << 20);
        let mut fabric = bench.build();
        fabric.run_until(Time::ZERO + Duration::from_us(120));
        ["a", "b"].map(|name| flow(&fabric, name).bytes as f64 / 100e-6 / 1e9).to_vec()
    };
    let free = carried(None);
    assert!(free[0] > 7.0 && free[1] < 1.0, "{free:?}");
    // In turn, each as fast as the slow one.
    let held = carried(Some(8));
    assert!(held[0] < 1.2 * held[1] && held[1] > 0.95 * free[1], "{held:?} {free:?}");
}

/// Every byte arrives, in order, whatever the sizes, with links that fail under way; and all entries come back.
#[test]
fn nothing_is_lost_or_overtaken_with_few_entries() {
    for entries in [1, 2, 7] {
        let mut bench = Bench::new();
        bench.config.host.domains = sockets();
        bench.config.host.domains.iter_mut().for_each(|domain| {
            (domain.entries, domain.rate) = (Some(entries), Some(20_000_000_000));
        });
        let mut moves = Vec::new();
        for i in 0..200 {
            moves.push(Move::Write { at: 64 * i, bytes: 64 });
            moves.push(Move::Read { at: 64 * i, bytes: 64 });
        }
        let mut all = Vec::new();
        for (from, to) in [(0, 2), (1, 3), (3, 0), (2, 4), (4, 1)] {
            let (mover, moved) = Mover::new(Base::Bar(format!("m{to}"), 0), 1, moves.clone());
            bench.switch(&format!("s{from}"), &format!("host.rp{from}"), 3, 4);
            bench.device(&format!("a{from}"), &format!("s{from}"), 3, 2).finishing(Box::new(mover));
            bench.device(&format!("m{from}"), &format!("s{from}"), 3, 1).memory(1 << 16);
            all.push(moved);
        }
        bench.finish();
        for moved in all {
            let moved = moved.lock().unwrap();
            assert_eq!((moved.accepted, moved.read, moved.failed.len(), moved.wrong.len()), (200, 200, 0, 0));
        }
    }
}

/// A target whose link goes down takes TLPs out of the queue behind the passage: their entries are free again.
#[test]
fn a_link_that_goes_down_gives_entries_back() {
    let mut bench = Bench::new();
    bench.config.host.domains = vec![DomainConfig { entries: Some(2), ..domain("x", None, &[0], 20) }];
    let writes = (0..400).map(|i| Move::Write { at: 256 * (i % 16), bytes: 256 });
    let (mover, moved) = Mover::new(Base::Bar("t".into(), 0), 8, writes.collect());
    bench.device("a", "host.rp0", 3, 8).finishing(Box::new(mover));
    let down = FaultKind::Down {
        at: Time::ZERO + Duration::from_us(5),
        until: Some(Time::ZERO + Duration::from_us(12)),
    };
    let fault = Fault { direction: Direction::Down, kind: down };
    bench.device("t", "host.rp1", 3, 1).config(|d| d.link.faults = vec![fault]).memory(1 << 16);
    let (fabric, _) = bench.finish();
    assert_eq!(moved.lock().unwrap().accepted, 400);
    let waited = fabric.topology().place_names();
    assert!(waited.contains(&"host.x.exit".to_string()), "{waited:?}");
}

#[test]
fn hierarchies_with_different_payloads_have_no_domains() {
    let mut bench = Bench::new();
    bench.config.host.domains = vec![domain("x", None, &[0], 75)];
    bench.device("a", "host.rp0", 3, 8).config(|d| d.link.mps = tlplab_units::Mps::ALL[0]).memory(1 << 16);
    bench.device("t", "host.rp1", 3, 8).memory(1 << 16);
    let mut builder = Builder::new(bench.config);
    for name in ["a", "t"] {
        builder.device(name, Box::new(tlplab_device::Memory::new(1 << 12)));
    }
    let Err(error) = builder.build() else { panic!("payloads of 128 B and 256 B") };
    let message = "host domain x: host.rp0 and host.rp1 have payloads of 128 B and 256 B; with domains all hierarchies must have the same, for example by mps = \"128B\" in [defaults.link]";
    assert_eq!(error.to_string(), message);
}

/// Waiting for a passage and passing it have a place of their own.
#[test]
fn the_ledger_names_the_passage() {
    let mut bench = Bench::new();
    bench.config.host.domains = vec![domain("x", None, &[0], 75)];
    let (mover, _) = Mover::new(Base::Bar("t".into(), 0), 1, vec![Move::Write { at: 0, bytes: 64 }]);
    bench.device("a", "host.rp0", 3, 8).finishing(Box::new(mover));
    bench.device("t", "host.rp1", 3, 8).memory(1 << 16);
    let (_, watch) = bench.finish();
    assert_eq!(watch.transactions()[0].time_of(Cause::Processing), ns(75));
}
