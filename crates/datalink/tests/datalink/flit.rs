//! Conversations of two ports in flit mode. Gen6 x16: a flit takes 2 ns; a lone acknowledgement waits 16 of them, 32 ns.

use crate::pair::{Fate, GOOD, Pair, read, write};
use tlplab_datalink::{Blocked, Config, Event, LinkLayer};
use tlplab_units::{Duration, Generation, Mps, Time, Width};

fn ns(ns: u64) -> Time {
    Time::ZERO + Duration::from_ns(ns)
}

fn fast() -> Config {
    Config::new(Generation::Gen6, Width::new(16).unwrap(), Mps::new(256).unwrap())
}

#[test]
fn two_tlps_share_a_flit() {
    let mut pair = Pair::up(fast(), fast()).logged();
    pair.send(0, 1, write(8));
    pair.send(0, 2, read());
    pair.run_until(ns(1000));
    pair.expect(&[
        "0s A flit 1 32 B [1, 2] ack 1023",
        "2ns B - Deliver(1)",
        "2ns B - Deliver(2)",
        "34ns B flit 1023 0 B [] ack 1",
        "36ns A - Acked(1)",
        "36ns A - Acked(2)",
    ]);
    pair.expect_silence();
}

#[test]
fn tlps_run_on_over_flit_boundaries() {
    let mut pair = Pair::up(fast(), fast()).logged();
    pair.send(0, 1, write(256));
    assert_eq!(pair.ends[0].admit(&write(256)), Err(Blocked::Staging));
    pair.run_until(ns(1));
    pair.send(0, 2, write(256));
    pair.run_until(ns(1000));
    pair.expect(&[
        "0s A flit 1 236 B [] ack 1023",
        "2ns A flit 2 236 B [1] ack 1023",
        "4ns B - Deliver(1)",
        "4ns A flit 3 64 B [2] ack 1023",
        "6ns B - Deliver(2)",
        "34ns B flit 1023 0 B [] ack 3",
        "36ns A - Acked(1)",
        "36ns A - Acked(2)",
    ]);
    pair.expect_silence();
}

#[test]
fn a_bad_flit_is_replayed_with_all_after_it() {
    let mut pair = Pair::up(fast(), fast()).logged();
    let mut first = true;
    pair.faults = Box::new(move |_, _| if std::mem::take(&mut first) { Fate::Corrupt } else { GOOD });
    pair.send(0, 1, write(256));
    pair.run_until(ns(1000));
    pair.expect(&[
        "0s A flit 1 236 B [] ack 1023",
        "2ns A flit 2 32 B [1] ack 1023",
        "2ns B flit 1023 0 B [] nak 1023",
        "4ns B - Discarded { handle: 1, reason: OutOfSequence }",
        "4ns A flit 1 236 B [] ack 1023 again",
        "6ns A flit 2 32 B [1] ack 1023 again",
        "8ns B - Deliver(1)",
        "38ns B flit 1023 0 B [] ack 2",
        "40ns A - Acked(1)",
    ]);
    pair.expect_silence();
}

/// A flit that goes the other way anyway carries the acknowledgement and a DLLP.
#[test]
fn acknowledgements_and_credits_ride_along() {
    let mut pair = Pair::up(fast(), fast()).logged();
    pair.send(0, 1, write(8));
    pair.run_until(ns(10));
    pair.send(1, 2, write(8));
    pair.run_until(ns(1000));
    pair.expect(&[
        "0s A flit 1 20 B [1] ack 1023",
        "2ns B - Deliver(1)",
        "10ns B flit 1 20 B [2] ack 1",
        "12ns A - Acked(1)",
        "12ns A - Deliver(2)",
        "44ns A flit 1 0 B [] ack 1",
        "46ns B - Acked(2)",
    ]);
    pair.expect_silence();
}

#[test]
fn link_up_in_flits() {
    let mut pair = Pair::down(fast(), fast()).logged();
    pair.link_up();
    pair.run_until(ns(3));
    pair.expect(&[
        "0s A flit 1023 0 B [] ack 1023 (Feature, ack false, supported 0x1)",
        "0s B flit 1023 0 B [] ack 1023 (Feature, ack false, supported 0x1)",
        "2ns A flit 1023 0 B [] ack 1023 (Feature, ack true, supported 0x1)",
        "2ns B flit 1023 0 B [] ack 1023 (Feature, ack true, supported 0x1)",
    ]);
    pair.run_until(ns(1000));
    assert!(pair.ends.iter().all(|end| end.is_active()));
}

/// Many times around the 1 023 sequence numbers, with every flit full: 12-byte reads, of which 19 2/3 fit a flit.
#[test]
fn sequence_numbers_wrap_and_flits_are_full() {
    let mut pair = Pair::up(fast(), fast());
    let (mut next, mut delivered) = (0, 0);
    while delivered < 59_000 {
        while next < 59_000 && pair.ends[0].admit(&read()).is_ok() {
            pair.send(0, next, read());
            next += 1;
        }
        assert!(pair.step(Time::NEVER), "stuck at TLP {delivered}");
        while let Some((side, event)) = pair.events.pop_front() {
            match event {
                Event::Deliver(handle) => {
                    assert_eq!((side, handle), (1, delivered));
                    delivered += 1;
                    pair.release(1, read());
                }
                Event::Error(error) => panic!("{error}"),
                _ => {}
            }
        }
    }
    let sent = pair.ends[0].counters();
    assert_eq!((sent.flits_sent - sent.nop_flits_sent, sent.tlps_replayed), (3000, 0));
}

/// A nullified TLP is in the flit, and in its replay only as dead bytes.
#[test]
fn a_nullified_tlp_costs_its_bytes() {
    let mut pair = Pair::up(fast(), fast()).logged();
    let mut first = true;
    pair.faults = Box::new(move |_, _| if std::mem::take(&mut first) { Fate::Corrupt } else { GOOD });
    pair.ends[0].send_nullified(Time::ZERO, 1, write(8));
    pair.send(0, 2, write(8));
    pair.run_until(ns(1000));
    pair.expect(&[
        "0s A flit 1 40 B [1, 2] ack 1023",
        "2ns B - Discarded { handle: 1, reason: BadLcrc }",
        "2ns B - Discarded { handle: 2, reason: BadLcrc }",
        "2ns B flit 1023 0 B [] nak 1023",
        "4ns A flit 1 40 B [2] ack 1023 again",
        "6ns B - Deliver(2)",
        "38ns B flit 1023 0 B [] ack 1",
        "40ns A - Acked(2)",
    ]);
    pair.expect_silence();
}
