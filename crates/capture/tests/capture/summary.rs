//! What is said about captures that were made for it.

use crate::support::{Pcap, frame};
use std::net::Ipv4Addr;
use tlplab_capture::Operation;
use tlplab_capture::dump::{Filter, Loading};
use tlplab_capture::summary::points::Points;
use tlplab_capture::summary::{Pieces, Sequences, Summary};
use tlplab_units::{Bdf, Duration, Tag};
use tlplab_wire::tlp::{CompletionStatus, Repr, TransactionId};

/// Frames of a capture that is being made: time in ns, frame.
#[derive(Default)]
struct Frames(Vec<(u32, Vec<u8>)>);

impl Frames {
    /// Adds a TLP from host `from` to host `to`, at `ns`.
    fn tlp(&mut self, ns: u32, (from, to): (u8, u8), port: u16, repr: &Repr) {
        let mut bytes = vec![0; repr.wire_bytes() as usize];
        let payload = vec![0; repr.payload_bytes() as usize];
        repr.emit(&mut bytes, &payload).unwrap();
        let mut frame = frame(0, port, &bytes);
        frame[26..30].copy_from_slice(&Ipv4Addr::new(10, 0, 0, from).octets());
        frame[30..34].copy_from_slice(&Ipv4Addr::new(10, 0, 0, to).octets());
        frame[42..48].fill(0);
        self.0.push((ns, frame));
    }

    fn read(&self) -> (Summary, Points) {
        let frames: Vec<_> =
            self.0.iter().map(|(ns, frame)| (0, *ns, frame.len(), frame.as_slice())).collect();
        let file = std::io::Cursor::new(Pcap::NANO.file(&frames));
        let read = Loading::reading(file, "made", Filter::parse::<&str>(&[]).unwrap(), true)
            .and_then(Loading::finish)
            .unwrap();
        assert_eq!(read.0.problems, []);
        read
    }

    fn summary(&self) -> Summary {
        self.read().0
    }
}

fn id(bus: u8, tag: u8) -> TransactionId {
    TransactionId::new(Bdf::new(bus, 0, 0).unwrap(), Tag::from(tag))
}

fn read(id: TransactionId, address: u64, bytes: u32) -> Repr {
    Repr::mem_read(id, address, bytes).unwrap()
}

fn data(id: TransactionId, left: u32, bytes: u32) -> Repr {
    Repr::completion_with_data(Bdf::new(0, 0, 0).unwrap(), id, left, 0, bytes).unwrap()
}

const UP: (u8, u8) = (1, 2);
const DOWN: (u8, u8) = (2, 1);

#[test]
fn a_tag_that_is_used_again_is_another_request() {
    let mut frames = Frames::default();
    // Tag 24 three times; the second is never answered. Tag 249 waits meanwhile.
    frames.tlp(0, UP, 0x3018, &read(id(5, 24), 0x1000, 512));
    frames.tlp(100, UP, 0x30f9, &read(id(5, 249), 0x2000, 512));
    frames.tlp(1000, DOWN, 0x3018, &data(id(5, 24), 512, 256));
    frames.tlp(1100, DOWN, 0x3018, &data(id(5, 24), 256, 256));
    frames.tlp(2000, UP, 0x3018, &read(id(5, 24), 0x1000, 64));
    frames.tlp(3000, UP, 0x3018, &read(id(5, 24), 0x1000, 64));
    frames.tlp(3400, DOWN, 0x3018, &data(id(5, 24), 64, 64));
    // Late: the answer to the second.
    frames.tlp(3500, DOWN, 0x3018, &data(id(5, 24), 64, 64));
    frames.tlp(5100, DOWN, 0x30f9, &data(id(5, 249), 512, 512));
    let found = frames.summary();
    let flow = &found.directions[0];
    assert_eq!(flow.tags.iter().map(|(t, n)| (t.value(), *n)).collect::<Vec<_>>(), [(24, 3), (249, 1)]);
    assert_eq!((flow.completed, flow.unanswered, flow.max_outstanding), (3, 1, 2));
    assert_eq!(found.directions[1].unexpected, 1);
    let latency = flow.latency.unwrap();
    let [min, p50, max] = [400, 1100, 5000].map(Duration::from_ns);
    assert_eq!((latency.count, latency.min, latency.p50, latency.p99, latency.max), (3, min, p50, max, max));
    assert_eq!(flow.ports.iter().map(|(p, l)| (*p, l.count)).collect::<Vec<_>>(), [(0x3018, 2), (0x30f9, 1)]);
    // Two wait from 0.1 to 1.1 and from 2 to 3.4 µs; one does otherwise.
    assert!((flow.mean_outstanding - (5.1 + 1.0 + 1.4) / 5.1).abs() < 0.03, "{}", flow.mean_outstanding);
    let points = frames.read().1;
    assert_eq!(points.outstanding, [1, 2, 2, 1, 2, 2, 1, 1, 0]);
    assert_eq!(points.latency_ns.iter().filter(|l| !l.is_nan()).count(), 3);
}

#[test]
fn refused_and_unanswered_reads_are_counted() {
    let mut frames = Frames::default();
    frames.tlp(0, UP, 0x3001, &read(id(5, 1), 0x1000, 4));
    frames.tlp(50, UP, 0x3002, &read(id(5, 2), 0x1000, 4));
    let completer = Bdf::new(0, 0, 0).unwrap();
    let refused = Repr::completion(completer, id(5, 1), CompletionStatus::CompleterAbort, 4, 0).unwrap();
    frames.tlp(900, DOWN, 0x3001, &refused);
    let found = frames.summary();
    assert_eq!((found.directions[0].completed, found.directions[0].unanswered), (1, 1));
    assert_eq!(found.directions[1].refused.iter().collect::<Vec<_>>(), [(&"CA", &1)]);
}

#[test]
fn a_root_complex_splits_and_a_switch_does_not() {
    let mut frames = Frames::default();
    // From 1 to 2; behind the root complex from 3 to 4, in parts that come out of order.
    let (before, behind, answers, rebuilt) = ((1, 2), (3, 4), (4, 3), (2, 1));
    frames.tlp(0, before, 0x3000, &read(id(0x1a, 0), 0xc000_0000, 256));
    for (n, part) in [2u32, 0, 3, 1].into_iter().enumerate() {
        let address = 0xc000_0000 + u64::from(part) * 64;
        frames.tlp(100 + n as u32, behind, 0x3000, &read(id(0x64, part as u8), address, 64));
    }
    for part in 0..4 {
        frames.tlp(500 + u32::from(part), answers, 0x3000, &data(id(0x64, part), 64, 64));
    }
    frames.tlp(900, rebuilt, 0x3000, &data(id(0x1a, 0), 256, 128));
    frames.tlp(901, rebuilt, 0x3000, &data(id(0x1a, 0), 128, 128));
    // A write that passes as it is, and one that passes in the name of another.
    for (ns, address, to) in [(2000, 0x1000, 0x1a), (2100, 0x2000, 0x64)] {
        frames.tlp(ns, before, 0x3000, &Repr::mem_write(id(0x1a, 0), address, 64).unwrap());
        frames.tlp(ns + 10, behind, 0x3000, &Repr::mem_write(id(to, 0), address, 64).unwrap());
    }
    // The host writes elsewhere: no part of anything.
    frames.tlp(3000, rebuilt, 0x3000, &Repr::mem_write(id(0, 0), 0x9000, 64).unwrap());
    let found = frames.summary();
    let [crossing] = &found.crossings[..] else { panic!("{:?}", found.crossings) };
    assert_eq!(
        (crossing.before.to_string(), crossing.behind.to_string()),
        ("10.0.0.1 → 10.0.0.2".into(), "10.0.0.3 → 10.0.0.4".into())
    );
    let some = |count, bytes| Pieces { count, bytes, mixed: false };
    let passed: Vec<_> = crossing
        .passages
        .iter()
        .map(|(p, n)| (p.operation, p.requests, p.unmodified, p.completions_behind, p.completions_before, *n))
        .collect();
    let none = Pieces::default();
    let expected = [
        (Operation::Read, some(4, 64), false, some(4, 64), some(2, 128), 1),
        (Operation::Write, some(1, 64), false, none, none, 1),
        (Operation::Write, some(1, 64), true, none, none, 1),
    ];
    assert_eq!(passed, expected);
    let delay = crossing.delay.unwrap();
    assert_eq!((delay.count, delay.min, delay.max), (3, Duration::from_ns(10), Duration::from_ns(100)));
}

#[test]
fn the_same_memory_again_is_no_crossing() {
    let mut frames = Frames::default();
    // A ring that is read over and over, in one direction; the other one writes next to it.
    for n in 0..20u8 {
        frames.tlp(u32::from(n) * 100, UP, 0x3000, &read(id(5, n), 0x1000, 16));
        frames.tlp(u32::from(n) * 100 + 50, DOWN, 0x3000, &data(id(5, n), 16, 16));
        frames.tlp(u32::from(n) * 100 + 60, DOWN, 0x4000, &Repr::mem_write(id(0, 0), 0x1010, 4).unwrap());
    }
    // Another device reads a part of it.
    frames.tlp(5000, UP, 0x3000, &read(id(5, 30), 0x4000, 512));
    frames.tlp(5010, (7, UP.1), 0x3000, &read(id(6, 0), 0x4000, 64));
    assert!(frames.summary().crossings.is_empty());
}

/// Writes of one port by a counting adapter, a microsecond apart: what is done to each, and then the capture summed up with a filter.
fn numbered(filter: &[&str], change: impl Fn(u16, &mut Vec<u8>)) -> Summary {
    let mut frames = Frames::default();
    for number in 1..200u16 {
        let write = Repr::mem_write(id(5, (number % 4) as u8), 0x1000, 8).unwrap();
        frames.tlp(u32::from(number) * 1000, UP, 0x3000 + number % 4, &write);
        let frame = &mut frames.0.last_mut().unwrap().1;
        frame[42..44].copy_from_slice(&number.to_be_bytes());
        frame[44..48].copy_from_slice(&(u32::from(number) * 156).to_be_bytes());
        change(number, frame);
    }
    let frames: Vec<_> = frames.0.iter().filter(|(_, frame)| !frame.is_empty()).collect();
    let frames: Vec<_> = frames.iter().map(|(ns, frame)| (0, *ns, frame.len(), frame.as_slice())).collect();
    let file = std::io::Cursor::new(Pcap::NANO.file(&frames));
    let loading = Loading::reading(file, "made", Filter::parse(filter).unwrap(), false);
    loading.and_then(Loading::finish).unwrap().0
}

#[test]
fn malformed_and_filtered_frames_are_not_missing() {
    let clean = Sequences { adapters: 1, ..Sequences::default() };
    assert_eq!(numbered(&["tag=2"], |_, _| ()).directions[0].sequences, clean);
    // A type that is none; behind it, the number stands as ever.
    let broken = numbered(&[], |number, frame| frame[48] = if number % 7 == 3 { 0x7f } else { frame[48] });
    assert_eq!((broken.problems.len(), broken.directions[0].sequences), (29, clean));
    // Frames that contradict themselves: their numbers are not known.
    let unread = |number: u16, frame: &mut Vec<u8>| {
        if number % 50 == 7 {
            frame[39] += 4;
        }
    };
    let found = numbered(&[], unread);
    assert_eq!(
        (found.problems.len(), found.directions[0].sequences),
        (4, Sequences { unproven: 4, ..clean })
    );
    // What is not there at all is missing, with the filter or without.
    let lost = |number: u16, frame: &mut Vec<u8>| {
        if (80..85).contains(&number) {
            frame.clear();
        }
    };
    for filter in [&[][..], &["tag=2"]] {
        let found = numbered(filter, lost).directions[0].sequences;
        assert_eq!(found, Sequences { gaps: 1, missing: 5, ..clean }, "{filter:?}");
    }
}
