//! Conversations of two ports without credits, unit by unit with times, each of which ends in silence.
//!
//! Gen1 x1: a byte takes 4 ns, an Ack 32 ns, a write of 8 bytes (28 on the wire) 112 ns. The replay timer is 3 us, Acks wait 1 us.

use crate::pair::{Fate, GOOD, Pair, slow, write};
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

/// A busy wire carries the Ack next, before TLPs. From then on Acks are 1 us apart, for as long as TLPs come: the one at 1.112 us, which the
/// wire carries at 1.232 us, is for TLP 8, and after the next nothing is left to say.
#[test]
fn acks_on_a_busy_wire_follow_the_ack_timer() {
    let mut pair = Pair::up(lossy(40), lossy(40)).logged();
    (10..30).for_each(|handle| pair.send(1, handle, write(40)));
    pair.send(0, 7, write(8));
    pair.send(0, 8, write(8));
    pair.faults = Box::new(|side, unit| match unit {
        tlplab_datalink::Unit::Tlp(_) if side == 1 => Fate::Drop,
        _ => GOOD,
    });
    pair.run_until(ns(4000));
    let log: Vec<_> = pair.take_log().into_iter().filter(|line| !line.contains("B TLP")).collect();
    assert_eq!(
        log,
        [
            "0s A TLP 7 seq 0",
            "112ns B - Deliver(7)",
            "112ns A TLP 8 seq 1",
            "224ns B - Deliver(8)",
            "240ns B Ack, seq 1",
            "272ns A - Acked(7)",
            "272ns A - Acked(8)",
            "1.232us B Ack, seq 1",
        ]
    );
}

/// Acks stay a whole interval apart: TLP 9, at 1.412 us, comes after the Ack that the timer made at 1.112 us, so its own waits until 2.112 us.
#[test]
fn acks_of_a_busy_wire_are_an_interval_apart() {
    let mut pair = Pair::up(lossy(60), lossy(60)).logged();
    (10..50).for_each(|handle| pair.send(1, handle, write(40)));
    pair.send(0, 7, write(8));
    pair.send(0, 8, write(8));
    pair.run_until(ns(1300));
    pair.send(0, 9, write(8));
    pair.run_until(ns(4000));
    let log: Vec<_> = pair.take_log().into_iter().filter(|line| line.contains("B Ack")).collect();
    assert_eq!(log.len(), 3, "{log:#?}");
    let third = log[2].split_once("us ").unwrap().0.parse::<f64>().unwrap();
    assert!((2.112..2.4).contains(&third), "{log:#?}");
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
    // The Ack of what is out of sequence brings nothing but a new start of the timer; while the replay lasts nothing is admitted.
    pair.expect(&[
        "0s A TLP 1 seq 0",
        "112ns A TLP 2 seq 1",
        "224ns B - Discarded { handle: 2, reason: OutOfSequence }",
        "224ns B Ack, seq 4095",
        "3.256us A TLP 1 seq 0 again",
    ]);
    assert_eq!(pair.ends[0].admit(&write(8)), Err(Blocked::ReplayBuffer));
    pair.run_until(ns(50_000));
    let log = pair.take_log();
    let timeouts = pair.ends[0].counters().replay_timeouts;
    // More than the four attempts that REPLAY_NUM counts, and no retraining.
    assert_eq!((timeouts, pair.ends[0].counters().retrains), (6, 0), "{log:#?}");
    assert_eq!(pair.ends[0].counters().replays, 6);
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
    assert_eq!((pair.ends[1].counters().acks_sent, pair.ends[0].counters().acks_received), (2, 1));
}

/// TLPs 1 to 4; the first is dropped, so all four go again at 3.48 us: 3 us after the Ack of the last. The first copy's Ack, at 3.624 us,
/// takes TLP 1 from the buffer while TLP 2 is on the wire. The replay as it should be goes on with TLP 3; the one that counts places goes
/// on with the third of what is left, TLP 4, which the peer cannot use.
#[test]
fn a_slipping_replay_skips_a_tlp_after_an_ack() {
    let again = |flow_control| {
        let config = Config { flow_control, ..lossy(4) };
        let mut pair = Pair::up(config.clone(), config).logged();
        let mut count = 0;
        pair.faults = Box::new(move |side, _| {
            count += u32::from(side == 0);
            if side == 0 && count == 1 { Fate::Drop } else { GOOD }
        });
        (1..5).for_each(|handle| pair.send(0, handle, write(8)));
        pair.run_until(ns(50_000));
        let timeouts = pair.ends[0].counters().replay_timeouts;
        let log = pair.take_log().into_iter();
        let copies: Vec<u64> = log
            .filter_map(|line| {
                line.split_once("A TLP ")?.1.strip_suffix(" again")?.split(' ').next()?.parse().ok()
            })
            .collect();
        (timeouts, copies)
    };
    assert_eq!(again(FlowControl::DropAndReplay), (1, vec![1, 2, 3, 4]));
    assert_eq!(again(FlowControl::DropAndReplaySlipping), (2, vec![1, 2, 4, 3, 4]));
}

/// ((128 + 20) / width · AckFactor) · 3 symbol times of 2 ns, and a third of it.
#[test]
fn replay_and_ack_timers_follow_the_formula() {
    for (lanes, timeout_ps) in
        [(1, 1_243_200), (2, 621_600), (4, 310_800), (8, 277_500), (12, 222_000), (16, 166_500)]
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

/// TLPs 1 to 4 are dropped and go again. TLP 9 of the peer arrives while the copy of TLP 1 is on the wire. A replay that slips passes over
/// the TLP before which its Ack goes, 2, and over one more, because the peer's Ack takes TLP 1 away.
#[test]
fn a_replay_that_slips_passes_over_one_tlp_for_each_ack() {
    for (flow_control, after_ack) in [
        (FlowControl::DropAndReplay, "TLP 2 seq 1 again"),
        (FlowControl::DropAndReplaySlipping, "TLP 4 seq 3 again"),
    ] {
        let config = Config { flow_control, ..lossy(4) };
        let mut pair = Pair::up(config.clone(), config).logged();
        let mut count = 0;
        pair.faults = Box::new(move |side, _| {
            count += u32::from(side == 0);
            if side == 0 && count <= 4 { Fate::Drop } else { GOOD }
        });
        (1..=4).for_each(|handle| pair.send(0, handle, write(8)));
        pair.run_until(ns(3_050));
        pair.send(1, 9, write(8));
        pair.run_until(ns(20_000));
        let log = pair.take_log();
        let ack = log.iter().position(|line| line.contains("A Ack, seq 0")).expect("TLP 9 is acknowledged");
        assert!(log[..ack].iter().any(|line| line.ends_with("TLP 1 seq 0 again")));
        let next = log[ack..].iter().find(|line| line.contains("A TLP")).expect("the replay goes on");
        assert!(next.ends_with(after_ack), "{flow_control:?}: {log:#?}");
        pair.expect_silence();
    }
}
