//! What limits a flow: memory, tags, credits, arbitration; and what goes over the wire while it does. Computed by hand first.

use crate::bench::mover::{Base, Move, Mover};
use crate::bench::watch::Content;
use crate::bench::{Bench, Watch, ns};
use tlplab_device::{LoadConfig, LoadOp, Pattern, Target};
use tlplab_fabric::Fabric;
use tlplab_fabric::attribution::Cause;
use tlplab_fabric::config::*;
use tlplab_transaction::CompletionPolicy;
use tlplab_units::{Duration, Mps, Time};
use tlplab_wire::tlp::Kind;

const INFINITE: Buffers = Buffers {
    posted_headers: 0,
    posted_data: 0,
    non_posted_headers: 0,
    non_posted_data: 0,
    completion_headers: 0,
    completion_data: 0,
};

/// Gigabits per second that arrive in 400 µs after 20 µs.
fn rate_of(mut bench: Bench, flow: &str) -> f64 {
    bench.warmup(Duration::from_us(20));
    let mut fabric = bench.build();
    fabric.run_until(Time::ZERO + Duration::from_us(420));
    crate::bench::flow(&fabric, flow).bytes as f64 * 8.0 / 400e3
}

fn close(found: f64, expected: f64, tolerance: f64) {
    assert!((found / expected - 1.0).abs() < tolerance, "{found} against {expected}");
}

#[test]
fn memory_bandwidth_bounds_reads_and_writes() {
    for op in [LoadOp::Read, LoadOp::Write] {
        let mut bench = Bench::new();
        bench.config.host.memory.bandwidth = Some(8_000_000_000);
        bench.device("dev", "host.rp0", 3, 8).load(LoadConfig { op, ..LoadConfig::default() });
        close(rate_of(bench, "dev"), 8.0, 1e-3);
    }
}

/// Little's law: 4 tags of 512 B. A read takes 24 B up (3.047 ns), 1 µs in memory, 2 · 276 B down (70.078 ns): 1073.125 ns.
#[test]
fn tags_bound_reads() {
    let mut bench = Bench::new();
    bench.config.host.memory.latency = ns(1000);
    bench.device("dev", "host.rp0", 3, 8).config(|d| d.tags = 4).load(LoadConfig {
        op: LoadOp::Read,
        size: 512,
        outstanding: 64,
        ..LoadConfig::default()
    });
    close(rate_of(bench, "dev"), 4.0 * 512.0 * 8.0 / 1073.125, 3e-3);
}

/// One posted header credit over 500 ns of wire. A write of 64 B takes 336 ns on Gen1 x1; it arrives, and is in memory, at 836 ns, when
/// the UpdateFC leaves (8 B: 32 ns): 1368 ns from write to write. (The Ack, 416 symbols after a TLP, comes between.)
#[test]
fn one_credit_is_one_write_per_round_trip() {
    let mut bench = Bench::new();
    bench
        .device("dev", "host.rp0", 1, 1)
        .config(|d| {
            (d.link.flight, d.link.skp) = (ns(500), SkpPolicy::Off);
            d.link.upper.buffers = Some(Buffers { posted_headers: 1, ..INFINITE });
        })
        .load(LoadConfig {
            size: 64,
            target: Target::Address(0x1000),
            outstanding: 1,
            count: Some(10),
            ..LoadConfig::default()
        });
    let watch = Watch::transactions_only();
    let mut fabric = bench.build_watched(watch.probe());
    fabric.run_until(Time::ZERO + Duration::from_us(20));
    let flow = crate::bench::only_flow(&fabric);
    assert_eq!(flow.last_arrival, Time::ZERO + ns(9 * 1368 + 836));
    // It asks when the one before has left its queue: 1368 ns before its own start, of which 336 ns have the wire.
    for transaction in &watch.transactions()[2..] {
        assert_eq!(transaction.latency(), ns(1368 + 836));
        assert_eq!(transaction.time_of(Cause::CreditWait), ns(1368 - 336));
        assert_eq!(transaction.time_of(Cause::Queueing), ns(336));
    }
    watch.check_attribution(&fabric);
}

/// A tag each: the second of two reads of 176 ns waits for all of the first.
#[test]
fn waiting_for_a_tag_has_a_name() {
    let mut bench = Bench::new();
    bench.device("dev", "host.rp0", 1, 1).config(|d| d.tags = 1).load(LoadConfig {
        op: LoadOp::Read,
        size: 4,
        target: Target::Address(0x1000),
        outstanding: 2,
        count: Some(2),
        ..LoadConfig::default()
    });
    let watch = Watch::transactions_only();
    let mut fabric = bench.build_watched(watch.probe());
    fabric.run_until(Time::ZERO + Duration::from_us(1));
    let second = &watch.transactions()[1];
    assert_eq!((second.latency(), second.time_of(Cause::TagWait)), (ns(352), ns(176)));
    watch.check_attribution(&fabric);
}

/// A replay buffer of one TLP, acknowledged at once: the second write waits for the wire (336 ns) and for the Ack (32 ns).
#[test]
fn waiting_for_the_replay_buffer_has_a_name() {
    let mut bench = Bench::new();
    bench
        .device("dev", "host.rp0", 1, 1)
        .config(|d| {
            d.link.lower.replay_tlps = Some(1);
            d.link.upper.ack_latency = Some(Duration::ZERO);
        })
        .load(LoadConfig {
            size: 64,
            target: Target::Address(0x1000),
            outstanding: 2,
            count: Some(2),
            ..LoadConfig::default()
        });
    let watch = Watch::transactions_only();
    let mut fabric = bench.build_watched(watch.probe());
    fabric.run_until(Time::ZERO + Duration::from_us(3));
    let second = &watch.transactions()[1];
    assert_eq!(second.latency(), ns(336 + 32 + 336));
    assert_eq!(second.time_of(Cause::ReplayBufferWait), ns(32));
    assert_eq!(second.time_of(Cause::Queueing), ns(336));
    watch.check_attribution(&fabric);
}

#[test]
fn weights_are_shares_of_the_uplink() {
    let mut bench = Bench::new();
    bench.switch("sw0", "host.rp0", 3, 8).arbitration = Arbitration::Weighted(vec![("a".into(), 2)]);
    bench.warmup(Duration::from_us(20));
    for name in ["a", "b"] {
        bench.device(name, "sw0", 3, 8).load(LoadConfig::default());
    }
    let mut fabric = bench.build();
    fabric.run_until(Time::ZERO + Duration::from_us(420));
    let bytes = |name| crate::bench::flow(&fabric, name).bytes as f64;
    close(bytes("a") / bytes("b"), 2.0, 2e-3);
    close((bytes("a") + bytes("b")) * 8.0 / 400e3, 63.015384615 * 256.0 / 280.0 * 375.0 / 376.0, 1e-3);
}

/// One read of a device at an address of host memory.
fn one_read(address: u64, bytes: u64, mps: u32, policy: CompletionPolicy) -> (Fabric, Watch) {
    let mut bench = Bench::new();
    bench.config.host.completions = policy;
    let (mover, _) = Mover::new(Base::Address(address), 1, vec![Move::Read { at: 0, bytes }]);
    bench
        .device("dev", "host.rp0", 3, 8)
        .config(|d| d.link.mps = Mps::new(mps).unwrap())
        .finishing(Box::new(mover.unchecked()));
    let watch = Watch::everything();
    let mut fabric = bench.build_watched(watch.probe());
    fabric.run_until(Time::ZERO + Duration::from_us(5));
    assert!(fabric.is_done());
    (fabric, watch)
}

/// (bytes, byte count, lower address) of each CplD on the wire.
fn completions(fabric: &Fabric, watch: &Watch) -> Vec<(u32, u32, u8)> {
    let tlps = watch.tlps(fabric, "dev", 1);
    let completion = |repr: &tlplab_wire::tlp::Repr| match repr.kind() {
        Kind::Completion(c) => Some((c.data_bytes(), c.byte_count(), c.lower_address())),
        _ => None,
    };
    tlps.iter().filter_map(|(_, repr)| completion(repr)).collect()
}

#[test]
fn a_read_of_200_bytes_at_0x103c() {
    let (fabric, watch) = one_read(0x103C, 200, 128, CompletionPolicy::Max);
    assert_eq!(completions(&fabric, &watch), [(68, 200, 0x3C), (128, 132, 0), (4, 4, 0)]);
    let request = watch.tlps(&fabric, "dev", 0)[0].1;
    assert_eq!((request.name(), request.wire_bytes()), ("MRd", 12));
}

#[test]
fn completions_by_policy() {
    let (fabric, watch) = one_read(0x2000, 512, 256, CompletionPolicy::Max);
    assert_eq!(completions(&fabric, &watch), [(256, 512, 0), (256, 256, 0)]);
    let (fabric, watch) = one_read(0x2000, 512, 256, CompletionPolicy::Rcb);
    let right: Vec<_> = (0..8).map(|i| (64, 512 - 64 * i, (64 * (i % 2)) as u8)).collect();
    assert_eq!(completions(&fabric, &watch), right);
}

/// A flit of 256 B takes 32 ns on Gen6 x1 and 8 ns on x4: one there with the MRd, one back with the CplD.
#[test]
fn a_read_in_flit_mode_is_two_flits() {
    for (lanes, flit) in [(1, 32), (4, 8), (16, 2)] {
        let mut bench = Bench::new();
        bench.device("dev", "host.rp0", 6, lanes).load(LoadConfig {
            op: LoadOp::Read,
            size: 4,
            target: Target::Address(0x1000),
            outstanding: 1,
            count: Some(3),
            ..LoadConfig::default()
        });
        let mut fabric = bench.build();
        fabric.run_until(Time::ZERO + Duration::from_us(2));
        let flow = crate::bench::only_flow(&fabric);
        assert_eq!((flow.latency_min, flow.transactions), (ns(2 * flit), 3));
    }
}

/// Acks after every fourth TLP, UpdateFCs after every fourth freed header of eight: 25 each for 100 writes, well before the 30 µs of
/// the periodic UpdateFC.
#[test]
fn acks_and_update_fcs_are_counted() {
    let mut bench = Bench::new();
    bench
        .device("dev", "host.rp0", 3, 8)
        .config(|d| {
            d.link.upper.buffers = Some(Buffers { posted_headers: 8, ..INFINITE });
            d.link.upper.update_fc = UpdateFcPolicy::HALVES;
            d.link.upper.ack_every = Some(4);
            d.link.upper.ack_latency = Some(Duration::from_us(500));
            d.link.lower.replay_timer = Some(Duration::from_ms(5));
        })
        .load(LoadConfig { count: Some(100), pattern: Pattern::Fixed, ..LoadConfig::default() });
    let watch = Watch::everything();
    let mut fabric = bench.build_watched(watch.probe());
    fabric.run_until(Time::ZERO + Duration::from_us(20));
    let down = fabric.topology().links[0].ports[1];
    let wire = fabric.direction_result(down).wire;
    assert_eq!((wire.acks, wire.update_fcs, wire.naks, wire.tlps), (25, 25, 0, 0));
    let seen = watch.units(&fabric, "dev", 1);
    assert_eq!(seen.iter().filter(|u| matches!(u.content, Content::Dllp(_))).count(), 50);
    assert!(seen.iter().all(|u| u.bytes == 8 && u.end - u.start == Duration::from_fs(1_015_625)));
    assert_eq!(wire.dllp, 400);
}

/// One posted header credit at the root port and 3 µs of memory traffic: what the writes wait for is memory, seen as credit wait.
#[test]
fn slow_memory_is_felt_as_credit_wait() {
    let mut bench = Bench::new();
    bench.config.host.memory.bandwidth = Some(1_000_000_000);
    bench
        .device("dev", "host.rp0", 3, 8)
        .config(|d| d.link.upper.buffers = Some(Buffers { posted_headers: 2, ..INFINITE }))
        .load(LoadConfig { count: Some(40), outstanding: 4, ..LoadConfig::default() });
    let watch = Watch::transactions_only();
    let mut fabric = bench.build_watched(watch.probe());
    fabric.run_until(Time::ZERO + Duration::from_us(200));
    // 256 B at 1 Gb/s: 2048 ns each.
    let last = watch.transactions().pop().unwrap();
    assert_eq!(watch.transactions().len(), 40);
    assert!(last.time_of(Cause::CreditWait) > ns(2000), "{last:?}");
    let elapsed = (last.end - Time::ZERO).as_fs() as f64 / 1e6;
    close(elapsed, 40.0 * 2048.0, 1e-3);
    watch.check_attribution(&fabric);
}
