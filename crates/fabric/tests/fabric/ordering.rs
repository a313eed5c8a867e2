//! The ordering rules across a fabric (PCIe 5.0 §2.4).

use crate::bench::mover::{Base, Move, Mover, bytes_at};
use crate::bench::{Bench, Watch, ns};
use tlplab_fabric::Driven;
use tlplab_fabric::config::*;
use tlplab_units::{Duration, Time};

/// The device takes a microsecond per request and has room for one non-posted: reads pile up, and the write behind them goes past, in
/// the root complex and in a switch.
#[test]
fn posted_requests_pass_blocked_non_posted_ones() {
    for through_switch in [false, true] {
        let mut bench = Bench::new();
        let mut under = "host.rp0";
        if through_switch {
            bench.switch("sw0", "host.rp0", 3, 4);
            under = "sw0";
        }
        bench
            .device("mem", under, 3, 4)
            .config(|d| {
                d.latency = ns(1000);
                d.link.lower.buffers = Some(Buffers {
                    posted_headers: 8,
                    posted_data: 64,
                    non_posted_headers: 1,
                    non_posted_data: 2,
                    completion_headers: 0,
                    completion_data: 0,
                });
            })
            .memory(1 << 16);
        let read = |at| Move::Read { at, bytes: 8 };
        let moves = vec![read(0), read(8), read(16), Move::Write { at: 64, bytes: 32 }, read(64)];
        let (mover, moved) = Mover::new(Base::Bar("mem".into(), 0), 5, moves);
        bench.finishing_program(Box::new(mover.unchecked()));
        let watch = Watch::everything();
        let mut fabric = bench.build_watched(watch.probe());
        fabric.run_until(Time::ZERO + Duration::from_us(50));
        let names: Vec<_> = watch.tlps(&fabric, "mem", 1).iter().map(|(_, repr)| repr.name()).collect();
        assert_eq!(names, ["MRd", "MWr", "MRd", "MRd", "MRd"], "through a switch: {through_switch}");
        let moved = moved.lock().unwrap();
        assert_eq!(moved.read, 4);
        // The last read does not pass the write, which it sees.
        let base = fabric.devices()[0].bars[0].unwrap().0;
        assert_eq!(moved.data[3].bytes().unwrap(), bytes_at(base + 64, 8));
        watch.check_attribution(&fabric);
    }
}

/// Memory takes 4 µs for the writes. A zero-length read behind them returns when they are done, not before.
#[test]
fn a_flush_sees_the_writes_before_it() {
    let mut bench = Bench::new();
    bench.config.host.memory.bandwidth = Some(8_000_000_000);
    bench.switch("sw0", "host.rp0", 3, 4);
    let mut moves: Vec<_> = (0..8).map(|i| Move::Write { at: i * 512, bytes: 512 }).collect();
    moves.push(Move::Read { at: 0, bytes: 0 });
    let (mover, moved) = Mover::new(Base::Address(0x20_0000), 16, moves);
    bench.device("dev", "sw0", 3, 4).finishing(Box::new(mover));
    let watch = Watch::transactions_only();
    let mut fabric = bench.build_watched(watch.probe());
    while !fabric.is_done() {
        fabric.step();
        if moved.lock().unwrap().read == 1 {
            break;
        }
    }
    let mut found = vec![0; 4096];
    fabric.host_memory().read(0x20_0000, &mut found);
    assert_eq!(found, bytes_at(0x20_0000, 4096), "all of it is there when the flush returns");
    assert!(fabric.now() > Time::ZERO + ns(4096), "{}", fabric.now());
    let transactions = watch.transactions();
    let flush = transactions.last().unwrap();
    assert!(flush.read && transactions[..8].iter().all(|t| !t.read && t.end <= flush.end));
}

/// Writes of one device to another arrive in order, whatever happens on the way.
#[test]
fn writes_keep_their_order_over_a_bad_link() {
    let mut bench = Bench::new();
    let numerator = u64::MAX / 20_000;
    let switch = bench.switch("sw0", "host.rp0", 3, 4);
    switch.uplink.faults.push(Fault { direction: Direction::Up, kind: FaultKind::BitErrors { numerator } });
    let moves = (0..200).map(|i| Move::Write { at: i * 128, bytes: 128 }).collect();
    let (mover, _) = Mover::new(Base::Address(0x20_0000), 16, moves);
    bench.device("dev", "sw0", 4, 4).finishing(Box::new(mover));
    let watch = Watch::transactions_only();
    let mut fabric = bench.build_watched(watch.probe());
    fabric.run_until(Time::ZERO + Duration::from_ms(5));
    let transactions = watch.transactions();
    assert_eq!(transactions.len(), 200);
    assert!(transactions.is_sorted_by_key(|t| (t.number, t.end)));
    let up = fabric.topology().links.iter().find(|l| l.name == "sw0").unwrap().ports[0];
    assert!(fabric.direction_result(up).transmitter.tlps_replayed > 0);
    watch.check_attribution(&fabric);
}
