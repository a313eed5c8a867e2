//! How fast the event queue is, for `make bench`: PENDING events, each of which is followed by another when it is due.
//!
//! ```text
//! queue ours|std PENDING COUNT
//! ```
//! `std` is `std::collections::BinaryHeap` with the same order. CPU time is for the caller to measure (`getrusage`).

#[allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "the simulator's own queue, which is no part of its interface"
)]
#[path = "../src/kernel/queue.rs"]
mod queue;

use queue::{Event, EventKind, EventQueue};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::process::ExitCode;
use tlplab_units::Time;

/// A linear congruential generator: the distance to the following event, up to a microsecond.
struct Distances(u64);

impl Distances {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 34
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| arguments.get(i).and_then(|n| n.parse::<u64>().ok());
    let (Some(what), Some(pending), Some(count)) = (arguments.first(), number(1), number(2)) else {
        eprintln!("usage: queue ours|std PENDING COUNT");
        return ExitCode::FAILURE;
    };
    let end = match what.as_str() {
        "ours" => ours(pending, count),
        "std" => standard(pending, count),
        other => {
            eprintln!("{other:?} is neither ours nor std");
            return ExitCode::FAILURE;
        }
    };
    println!(r#"{{"count": {count}, "end_fs": {end}}}"#);
    ExitCode::SUCCESS
}

fn event(i: u64) -> Event {
    Event { kind: EventKind::TransmitDone, at: (i % 8) as u32, data: i }
}

fn ours(pending: u64, count: u64) -> u64 {
    let (mut queue, mut distances, mut now) = (EventQueue::default(), Distances(1), 0);
    for i in 0..pending {
        queue.push(Time::from_fs(distances.next()), event(i));
    }
    for _ in 0..count {
        let Some((time, event)) = queue.pop_until(Time::NEVER) else { break };
        now = time.as_fs();
        queue.push(Time::from_fs(now + distances.next()), event);
    }
    now
}

fn standard(pending: u64, count: u64) -> u64 {
    let (mut queue, mut distances, mut now) = (BinaryHeap::new(), Distances(1), 0);
    for i in 0..pending {
        queue.push(Reverse((distances.next(), i % 8, i)));
    }
    for _ in 0..count {
        let Some(Reverse((time, at, data))) = queue.pop() else { break };
        now = time;
        queue.push(Reverse((now + distances.next(), at, data)));
    }
    now
}
