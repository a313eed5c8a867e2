//! Conversations of two ports without credits, unit by unit with times, each of which ends in silence.
//!
//! Gen1 x1: a byte takes 4 ns, an Ack 32 ns, a write of 8 bytes (28 on the wire) 112 ns. The replay timer is 3 us, Acks wait 1 us.

mod pair;

use pair::{Fate, GOOD, Pair, slow, write};
use tlplab_datalink::{AckLatency, Blocked, Config, FlowControl, LinkLayer};
use tlplab_units::{Duration, Generation, LinkMode, Mps, Time, Width};

fn ns(ns: u64) -> Time {
    Time::ZERO + Duration::from_ns(ns)
}

fn lossy(replay_tlps: u32) -> Config {
    let mut config = Config { flow_control: FlowControl::DropAndReplay, ..slow() };
    config.replay.tlps = Some(replay_tlps);
    config
}

#[test]
fn the_link_is_active_as_soon_as_it_is_up_and_an_idle_wire_acknowledges_at_once() {
    let mut pair = Pair::down(lossy(4), lossy(4)).logged();
    assert_eq!(pair.ends[0].admit(&write(8)), Err(Blocked::LinkDown));
    pair.link_up();
    assert!(pair.ends[0].is_active() && pair.ends[1].is_active());
    pair.send(0, 7, write(8));
    pair.run_until(ns(20_000));
    pair.expect(&["0s A TLP 7 seq 0", "112ns B - Deliver(7)", "112ns B Ack, seq 0", "144ns A - Acked(7)"]);
    pair.expect_silence();
    pair.link_down();
    pair.expect(&["20us A - Down", "20us B - Down"]);
}

/// Where the wire never rests, the Ack waits for its timer, and then goes before TLPs.
#[test]
fn a_busy_wire_acknowledges_when_the_timer_says_so() {
    let mut pair = Pair::up(lossy(40), lossy(40)).logged();
    (10..22).for_each(|handle| pair.send(1, handle, write(8)));
    pair.send(0, 7, write(8));
    pair.faults = Box::new(|side, unit| match unit {
        tlplab_datalink::Unit::Tlp(_) if side == 1 => Fate::Drop,
        _ => GOOD,
    });
    pair.run_until(ns(1200));
    let log: Vec<_> = pair.take_log().into_iter().filter(|line| !line.contains("B TLP")).collect();
    assert_eq!(
        log,
        ["0s A TLP 7 seq 0", "112ns B - Deliver(7)", "1.12us B Ack, seq 0", "1.152us A - Acked(7)"]
    );
}

/// No word about what is lost: the timer runs out, and all of the replay buffer comes again, before anything new.
#[test]
fn a_timeout_sends_the_whole_buffer_again_and_again() {
    let mut pair = Pair::up(lossy(2), lossy(2)).logged();
    let mut count = 0;
    pair.faults = Box::new(move |side, _| {
        count += u32::from(side == 0);
        if side == 0 && [1, 3, 4, 5, 6, 7, 8, 9, 11].contains(&count) { Fate::Drop } else { GOOD }
    });
    pair.send(0, 1, write(8));
    pair.send(0, 2, write(8));
    assert_eq!(pair.ends[0].admit(&write(8)), Err(Blocked::ReplayBuffer));
    pair.run_until(ns(3_300));
    // The timer starts with the first unacknowledged TLP, and anew with each expiry.
    pair.expect(&[
        "0s A TLP 1 seq 0",
        "112ns A TLP 2 seq 1",
        "224ns B - Discarded { handle: 2, reason: OutOfSequence }",
        "3.112us A TLP 1 seq 0 again",
        "3.224us A TLP 2 seq 1 again",
    ]);
    pair.run_until(ns(50_000));
    let log = pair.take_log();
    let timeouts = pair.ends[0].counters().replay_timeouts;
    // More than the four attempts that REPLAY_NUM counts, and no retraining.
    assert_eq!((timeouts, pair.ends[0].counters().retrains), (6, 0), "{log:#?}");
    assert_eq!(log.iter().filter(|line| line.ends_with("Acked(1)") || line.ends_with("Acked(2)")).count(), 2);
    pair.expect_silence();
}

#[test]
fn a_lost_ack_is_repeated_for_the_duplicate() {
    let mut pair = Pair::up(lossy(4), lossy(4)).logged();
    let mut acks = 0;
    pair.faults = Box::new(move |side, _| {
        acks += side;
        if acks == 1 && side == 1 { Fate::Corrupt } else { GOOD }
    });
    pair.send(0, 7, write(8));
    pair.run_until(ns(20_000));
    pair.expect(&[
        "0s A TLP 7 seq 0",
        "112ns B - Deliver(7)",
        "112ns B Ack, seq 0",
        "3.112us A TLP 7 seq 0 again",
        "3.224us B - Discarded { handle: 7, reason: Duplicate }",
        "3.224us B Ack, seq 0",
        "3.256us A - Acked(7)",
    ]);
    pair.expect_silence();
}

/// ((128 + 28) / width · AckFactor) · 3 symbol times of 2 ns, and a third of it.
#[test]
fn timers_are_those_of_the_formula() {
    for (lanes, timeout_ps) in
        [(1, 1_310_400), (2, 655_200), (4, 327_600), (8, 292_500), (12, 234_000), (16, 175_500)]
    {
        let width = Width::new(lanes).unwrap();
        let mut config = Config::new(Generation::Gen2, width, Mps::new(128).unwrap());
        config.flow_control = FlowControl::DropAndReplay;
        assert_eq!(config.replay_timeout(), Duration::from_ps(timeout_ps), "x{lanes}");
        assert_eq!(config.ack_latency(), Duration::from_ps(timeout_ps / 3));
        config.replay_timer = Some(Duration::from_us(3));
        assert_eq!(config.ack_latency(), Duration::from_us(1), "a third of what is said");
        config.ack.latency = AckLatency::Fixed(Duration::from_ns(5));
        assert_eq!(config.ack_latency(), Duration::from_ns(5));
        config.mode = LinkMode::Flit;
        assert_eq!(config.check().unwrap_err().field, "flow_control");
    }
}
