//! Requests that nobody claims, answers that come too late, and what a root complex does between its ports.

use crate::bench::mover::{Base, Move, Moved, Mover, byte_at, bytes_at};
use crate::bench::{Bench, Watch, ns};
use std::sync::{Arc, Mutex};
use tlplab_device::{BarSpec, Context, Device, DmaError, Event, Identity, Refusal, ReplyToken};
use tlplab_fabric::config::*;
use tlplab_fabric::{Ending, Fabric};
use tlplab_transaction::CompletionError;
use tlplab_units::{Duration, Time};
use tlplab_wire::tlp::Kind;

fn unsupported(error: &DmaError) -> bool {
    matches!(error, DmaError::Completion(CompletionError::UnsupportedRequest { .. }))
}

/// A device behind a switch at addresses that are neither memory nor a BAR.
#[test]
fn unclaimed_addresses_are_unsupported_requests() {
    // Beyond memory; in the hole for device registers below 4 GiB; across the end of memory.
    for (address, good) in [(1 << 34, 0), (0xD000_0000, 0), ((1 << 33) - 4, 12)] {
        let mut bench = Bench::new();
        bench.config.host.memory.size = 1 << 33;
        bench.switch("sw0", "host.rp0", 3, 4);
        let moves = vec![
            Move::Read { at: 0, bytes: 8 },
            Move::Write { at: 0, bytes: 8 },
            Move::Read { at: 0, bytes: 8 },
        ];
        let (mover, moved) = Mover::new(Base::Address(address), 1, moves);
        bench.device("dev", "sw0", 3, 4).finishing(Box::new(mover));
        let (fabric, watch) = bench.finish();
        let moved = moved.lock().unwrap();
        assert_eq!((moved.failed.len(), moved.read, moved.accepted), (2, 0, 1), "{address:#x}");
        assert!(moved.failed.iter().all(unsupported), "{:?}", moved.failed);
        let mut endings: Vec<_> = watch.transactions().iter().map(|t| (t.number, t.ending)).collect();
        endings.sort_by_key(|(number, _)| *number);
        let endings: Vec<_> = endings.into_iter().map(|(_, ending)| ending).collect();
        assert_eq!(endings, [Ending::Unsupported, Ending::Lost, Ending::Unsupported]);
        assert_eq!(fabric.refused(), 3);
        let flow = crate::bench::flow(&fabric, "dev");
        // No request crosses 4 KiB, so the half of each operation that is in memory succeeds.
        assert_eq!((flow.transactions, flow.bytes), (0, good));
    }
}

fn host_moves(moves: Vec<Move>, base: Base, bar: u64) -> (Fabric, Arc<Mutex<Moved>>) {
    let mut bench = Bench::new();
    bench.switch("sw0", "host.rp0", 3, 4);
    bench.device("mem", "sw0", 3, 4).memory(bar);
    let (mover, moved) = Mover::new(base, 1, moves);
    bench.finishing_program(Box::new(mover));
    (bench.finish().0, moved)
}

#[test]
fn the_host_hears_of_it_too() {
    // Bridge windows are multiples of 1 MiB, the BAR has 4 KiB: behind it the end point refuses.
    let moves = vec![
        Move::Read { at: 0x2000, bytes: 4 },
        Move::Write { at: 0x2000, bytes: 4 },
        Move::Read { at: 0, bytes: 0 },
    ];
    let (fabric, moved) = host_moves(moves, Base::Bar("mem".into(), 0), 4096);
    let moved = moved.lock().unwrap();
    assert_eq!((moved.read, moved.accepted, moved.failed.len()), (1, 1, 1));
    assert!(unsupported(&moved.failed[0]));
    assert_eq!(fabric.refused(), 2);
    // No bridge claims it at all.
    let moves = vec![Move::Read { at: 0, bytes: 4 }, Move::Write { at: 0, bytes: 4 }];
    let (_, moved) = host_moves(moves, Base::Address(0xF800_0000), 4096);
    let moved = moved.lock().unwrap();
    assert_eq!((moved.read, moved.accepted, moved.failed.len()), (0, 1, 1));
    assert!(unsupported(&moved.failed[0]));
}

/// Memory answers after 1 µs, the device waits for 500 ns: nothing of what comes then is data.
#[test]
fn late_completions_never_become_data() {
    let mut bench = Bench::new();
    bench.config.host.memory.latency = ns(1000);
    let moves = (0..6).map(|i| Move::Read { at: i * 512, bytes: 512 }).collect();
    let (mover, moved) = Mover::new(Base::Address(0x10_0000), 2, moves);
    bench
        .device("dev", "host.rp0", 3, 8)
        .config(|d| (d.completion_timeout, d.tags) = (ns(500), 4))
        .finishing(Box::new(mover));
    let (fabric, watch) = bench.finish();
    let moved = moved.lock().unwrap();
    assert_eq!((moved.read, moved.failed.len()), (0, 6));
    let late = |e: &DmaError| matches!(e, DmaError::Completion(CompletionError::Timeout { .. }));
    assert!(moved.failed.iter().all(late));
    assert!(watch.transactions().iter().all(|t| t.ending == Ending::TimedOut && t.latency() >= ns(500)));
    // Two completions of 256 B each.
    assert_eq!(fabric.unexpected_completions(), 12);
    assert_eq!(crate::bench::flow(&fabric, "dev").bytes, 0);
}

/// `a` and `b` under one switch, or each under a root port. `a` reads 512 B of `b` that it has written before.
fn between(policy: PeerToPeer, under: [&str; 2]) -> (Fabric, Watch, Arc<Mutex<Moved>>) {
    let moves = vec![
        Move::Write { at: 0, bytes: 512 },
        Move::Read { at: 0, bytes: 512 },
        Move::Read { at: 7, bytes: 90 },
    ];
    moved_between(policy, under, moves)
}

fn moved_between(
    policy: PeerToPeer,
    under: [&str; 2],
    moves: Vec<Move>,
) -> (Fabric, Watch, Arc<Mutex<Moved>>) {
    let mut bench = Bench::new();
    bench.config.host.peer_to_peer = policy;
    if under.contains(&"sw0") {
        bench.switch("sw0", "host.rp0", 3, 4);
    }
    let (mover, moved) = Mover::new(Base::Bar("b".into(), 0), 1, moves);
    bench.device("a", under[0], 3, 4).finishing(Box::new(mover));
    bench.device("b", under[1], 3, 4).memory(1 << 16);
    let (fabric, watch) = bench.finish();
    (fabric, watch, moved)
}

fn check_read(moved: &Mutex<Moved>) {
    let moved = moved.lock().unwrap();
    assert_eq!((moved.read, moved.failed.len(), moved.wrong.len()), (2, 0, 0), "{:?}", moved.failed);
}

/// Bytes of the reads and writes, or of the completions, on a link.
fn sizes(fabric: &Fabric, watch: &Watch, link: &str, direction: u8, name: &str) -> Vec<u32> {
    let bytes = |repr: &tlplab_wire::tlp::Repr| match repr.kind() {
        Kind::MemRead { span, .. } | Kind::MemWrite { span, .. } => span.byte_count(),
        Kind::Completion(completion) => completion.data_bytes(),
        _ => 0,
    };
    let tlps = watch.tlps(fabric, link, direction);
    tlps.iter().filter(|(_, repr)| repr.name() == name).map(|(_, repr)| bytes(repr)).collect()
}

#[test]
fn peers_below_a_switch_do_not_use_its_uplink() {
    let (fabric, watch, moved) = between(PeerToPeer::Refuse, ["sw0", "sw0"]);
    check_read(&moved);
    assert!(watch.tlps(&fabric, "sw0", 0).is_empty() && watch.tlps(&fabric, "sw0", 1).is_empty());
    assert_eq!(sizes(&fabric, &watch, "b", 1, "MRd"), [512, 90]);
}

#[test]
fn a_root_complex_may_forward() {
    for under in [["host.rp0", "host.rp1"], ["sw0", "host.rp1"], ["host.rp1", "sw0"]] {
        let (fabric, watch, moved) = between(PeerToPeer::Forward, under);
        check_read(&moved);
        assert_eq!(sizes(&fabric, &watch, "b", 1, "MRd"), [512, 90]);
        let id = fabric.id_of("a").unwrap();
        let requesters = watch.tlps(&fabric, "b", 1);
        assert!(requesters.iter().all(|(_, repr)| repr.transaction_id().requester == id));
    }
}

#[test]
fn a_root_complex_may_split() {
    let (fabric, watch, moved) = between(PeerToPeer::Split(64), ["host.rp0", "host.rp1"]);
    check_read(&moved);
    // 512 B are eight pieces; 90 B from byte 7 on end at 97, in the second.
    assert_eq!(sizes(&fabric, &watch, "b", 1, "MRd"), [64, 64, 64, 64, 64, 64, 64, 64, 57, 33]);
    assert_eq!(sizes(&fabric, &watch, "b", 1, "MWr"), [64; 8]);
    assert_eq!(sizes(&fabric, &watch, "b", 0, "CplD").len(), 10);
    assert_eq!(sizes(&fabric, &watch, "a", 0, "MRd"), [512, 90]);
    // Rebuilt, and cut as the root complex cuts.
    assert_eq!(sizes(&fabric, &watch, "a", 1, "CplD"), [256, 256, 90]);
    let host = fabric.id_of("host").unwrap();
    let requests = watch.tlps(&fabric, "b", 1);
    assert!(requests.iter().all(|(_, repr)| repr.transaction_id().requester == host));
    let flow = crate::bench::flow(&fabric, "a");
    assert_eq!((flow.transactions, flow.bytes), (3, 512 + 512 + 90));
}

/// Two requests for one read would be answered twice, the second time in the place of whatever is asked for next.
#[test]
fn a_zero_length_read_is_one_request_behind_a_root_complex_that_splits() {
    let moves = vec![
        Move::Write { at: 0, bytes: 4 },
        Move::Read { at: 0, bytes: 0 },
        Move::Read { at: 0, bytes: 4 },
        Move::Read { at: 0, bytes: 0 },
    ];
    let (fabric, watch, moved) = moved_between(PeerToPeer::Split(64), ["host.rp0", "host.rp1"], moves);
    for link in ["a", "b"] {
        assert_eq!(sizes(&fabric, &watch, link, u8::from(link == "b"), "MRd").len(), 3, "{link}");
    }
    let moved = moved.lock().unwrap();
    assert_eq!((moved.read, moved.failed.len(), moved.wrong.len()), (3, 0, 0));
}

#[test]
fn a_root_complex_may_refuse() {
    let (fabric, watch, moved) = between(PeerToPeer::Refuse, ["host.rp0", "host.rp1"]);
    let moved = moved.lock().unwrap();
    assert_eq!((moved.read, moved.accepted, moved.failed.len()), (0, 1, 2));
    assert!(moved.failed.iter().all(unsupported));
    assert!(watch.tlps(&fabric, "b", 1).is_empty());
    // The write is two TLPs.
    assert_eq!(fabric.refused(), 4);
}

#[test]
fn the_memory_pattern_is_a_function_of_the_address() {
    assert_eq!(bytes_at(5, 3), [byte_at(5), byte_at(6), byte_at(7)]);
    assert!((0..4096).any(|a| byte_at(a) != byte_at(a + 64)), "a displaced block is seen");
}

type Behaviour = fn(&mut Context<'_>, &Event);

/// A device with mistakes, which the fabric tells.
struct Wrong(Behaviour);

impl Device for Wrong {
    fn identity(&self) -> Identity {
        let bars = vec![BarSpec::registers(0, 4096)];
        Identity { bars, msix_vectors: 2, ..Identity::new(0x71AB, 1, 0xFF_00_00) }
    }
    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        self.0(cx, &event);
    }
}

#[test]
fn the_mistakes_of_a_device_end_the_run() {
    let mistakes: [(Behaviour, _); 4] = [
        (
            |cx, event| {
                if let Event::Start = event {
                    cx.msix(0, 5);
                }
            },
            "dev: raised MSI-X vector 5, but it has 2: from 0 to 1",
        ),
        (
            |cx, event| {
                if let Event::MmioRead { reply, .. } = event {
                    cx.reply(*reply, [0; 4].into());
                }
            },
            "dev: answered a read of 8 B with 4 B; the answer must have the requested size",
        ),
        (
            |cx, event| {
                if let Event::MmioRead { reply, .. } = event {
                    cx.reply(*reply, [0; 8].into());
                    cx.reply(*reply, [0; 8].into());
                }
            },
            "dev: answered a read that has ended; each read must be answered once",
        ),
        (
            |cx, event| {
                if let Event::MmioRead { .. } = event {
                    cx.reply_error(ReplyToken(1 << 32 | 7), Refusal::CompleterAbort);
                }
            },
            "dev: answered a read that has ended; each read must be answered once",
        ),
    ];
    for (behaviour, expected) in mistakes {
        let mut bench = Bench::new();
        bench.device("dev", "host.rp0", 3, 4).model(Box::new(Wrong(behaviour)));
        let (mover, _) = Mover::new(Base::Bar("dev".into(), 0), 1, vec![Move::Read { at: 0, bytes: 8 }]);
        bench.finishing_program(Box::new(mover));
        let mut fabric = bench.build();
        fabric.run_events(u64::MAX, Time::ZERO + Duration::from_us(100));
        assert_eq!(fabric.fault(), Some(expected));
    }
}
