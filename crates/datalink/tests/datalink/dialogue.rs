//! Conversations of two non-flit ports, unit by unit with times, each of which ends in silence.
//!
//! Gen1 x1: a byte takes 4 ns, a DLLP 32 ns, a write of 8 bytes (28 on the wire) 112 ns. Acks wait 1 us, REPLAY_TIMER is 3 us.

use crate::pair::{Fate, GOOD, Pair, read, slow, write};
use tlplab_datalink::{
    AckLatency, Blocked, ClassBuffer, Config, Event, Integrity, LinkLayer, ProtocolError, ReceiveBuffers,
    TlpShape, TlpUnit, Unit, UpdateFcLatency, UpdateFcPolicy, VcBuffers, dllp,
};
use tlplab_units::{Duration, FcClass, LinkMode, Time, Vc};

fn ns(ns: u64) -> Time {
    Time::ZERO + Duration::from_ns(ns)
}

/// The n-th unit of A (0) or B (1), from 0, meets this fate; all others pass.
fn nth(side: usize, n: usize, fate: Fate) -> crate::pair::Faults {
    let mut count = 0;
    Box::new(move |from, _| {
        if from != side {
            return GOOD;
        }
        count += 1;
        if count - 1 == n { fate } else { GOOD }
    })
}

#[test]
fn link_up() {
    let mut pair = Pair::down(slow(), slow()).logged();
    pair.run_until(ns(500));
    pair.expect_silence();
    pair.flight = Duration::from_ns(10);
    pair.link_up();
    assert_eq!(pair.ends[0].admit(&write(8)), Err(Blocked::LinkDown));
    pair.run_until(ns(5000));
    assert!(pair.ends[0].is_active() && pair.ends[1].is_active());
    pair.expect(&[
        "500ns A InitFC1-P, vc 0, hdr 8, data 64",
        "500ns B InitFC1-P, vc 0, hdr 8, data 64",
        "532ns A InitFC1-NP, vc 0, hdr 8, data 8",
        "532ns B InitFC1-NP, vc 0, hdr 8, data 8",
        "564ns A InitFC1-Cpl, vc 0, hdr 0, data 0",
        "564ns B InitFC1-Cpl, vc 0, hdr 0, data 0",
        "606ns A InitFC2-P, vc 0, hdr 8, data 64",
        "606ns B InitFC2-P, vc 0, hdr 8, data 64",
        "638ns A InitFC2-NP, vc 0, hdr 8, data 8",
        "638ns B InitFC2-NP, vc 0, hdr 8, data 8",
        "648ns B - Up",
        "648ns B - CreditsArrived { vc: Vc(0), class: Posted }",
        "648ns B - CreditsArrived { vc: Vc(0), class: NonPosted }",
        "648ns B - CreditsArrived { vc: Vc(0), class: Completion }",
        "648ns A - Up",
        "648ns A - CreditsArrived { vc: Vc(0), class: Posted }",
        "648ns A - CreditsArrived { vc: Vc(0), class: NonPosted }",
        "648ns A - CreditsArrived { vc: Vc(0), class: Completion }",
        "670ns A InitFC2-Cpl, vc 0, hdr 0, data 0",
        "670ns B InitFC2-Cpl, vc 0, hdr 0, data 0",
    ]);
    pair.expect_silence();
    pair.link_down();
    pair.expect(&["5us A - Down", "5us B - Down"]);
    pair.run_until(ns(100_000));
    pair.expect_silence();
}

#[test]
fn a_port_that_hears_nothing_repeats_itself() {
    let mut pair = Pair::down(slow(), slow()).logged();
    pair.ends[0].link_up(Time::ZERO);
    pair.faults = Box::new(|_, _| Fate::Drop);
    pair.run_until(ns(1100));
    pair.expect(&[
        "0s A InitFC1-P, vc 0, hdr 8, data 64",
        "32ns A InitFC1-NP, vc 0, hdr 8, data 8",
        "64ns A InitFC1-Cpl, vc 0, hdr 0, data 0",
        "1.064us A InitFC1-P, vc 0, hdr 8, data 64",
        "1.096us A InitFC1-NP, vc 0, hdr 8, data 8",
    ]);
}

/// B's InitFC2s for channel 0 are all lost, and its InitFC1s for channel 3 follow each other without a pause, as a flit takes longer than the time between
/// two rounds. The UpdateFC that tells A to go on has its turn among them.
#[test]
fn an_update_fc_brings_channel_0_up_while_another_channel_speaks() {
    let vc3 = Vc::new(3).unwrap();
    let mut config = Config { mode: LinkMode::Flit, ..slow() };
    config.receive = config.receive.with(vc3, VcBuffers([ClassBuffer::finite(2, 32); 3]));
    let mut pair = Pair::down(config.clone(), config);
    pair.faults = Box::new(|side, unit| {
        let Unit::Flit(flit) = unit else { return GOOD };
        let lost = matches!(&flit.dllp, Some(dllp::Repr::FlowControl(fc)) if fc.phase == dllp::FcPhase::Init2 && fc.vc == Vc::ZERO);
        if side == 1 && lost { Fate::Drop } else { GOOD }
    });
    pair.link_up();
    pair.run_until(ns(200_000));
    assert!(pair.ends[0].is_active() && pair.ends[1].is_active());
    for vc in [Vc::ZERO, vc3] {
        for end in &pair.ends {
            assert_eq!(end.admit(&TlpShape { vc, ..write(8) }), Ok(()));
        }
    }
}

/// B lost all of A's InitFC2, stays in FC_INIT2 and says so again; any UpdateFC tells it that A is ready.
#[test]
fn lost_init_fc2() {
    let mut config = slow();
    config.receive = ReceiveBuffers::vc0(ClassBuffer::INFINITE, ClassBuffer::INFINITE, ClassBuffer::INFINITE);
    let mut pair = Pair::down(config.clone(), config);
    let mut count = 0;
    pair.faults = Box::new(move |side, _| {
        count += u32::from(side == 0);
        if side == 0 && (4..=6).contains(&count) { Fate::Drop } else { GOOD }
    });
    pair.link_up();
    pair.run_until(ns(400));
    assert!(pair.ends[0].is_active() && !pair.ends[1].is_active());
    let mut pair = pair.logged();
    pair.run_until(ns(5000));
    pair.expect(&[
        "1.16us B InitFC2-P, vc 0, hdr 0, data 0",
        "1.192us A UpdateFC-P, vc 0, hdr 0, data 0",
        "1.192us B InitFC2-NP, vc 0, hdr 0, data 0",
        "1.224us B - Up",
        "1.224us B - CreditsArrived { vc: Vc(0), class: Posted }",
        "1.224us B - CreditsArrived { vc: Vc(0), class: NonPosted }",
        "1.224us B - CreditsArrived { vc: Vc(0), class: Completion }",
        "1.224us B InitFC2-Cpl, vc 0, hdr 0, data 0",
    ]);
    pair.expect_silence();
}

#[test]
fn scaled_credits_need_a_feature_exchange() {
    let mut config = slow();
    config.scaled_flow_control = true;
    config.receive = ReceiveBuffers::vc0(
        ClassBuffer::finite(500, 20_000),
        ClassBuffer::finite(8, 8),
        ClassBuffer::INFINITE,
    );
    let mut pair = Pair::down(config.clone(), config.clone()).logged();
    pair.link_up();
    pair.run_until(ns(150));
    pair.expect(&[
        "0s A Feature, ack false, supported 0x1",
        "0s B Feature, ack false, supported 0x1",
        "32ns A Feature, ack true, supported 0x1",
        "32ns B Feature, ack true, supported 0x1",
        "64ns A InitFC1-P, vc 0, hdr 125<<2, data 1250<<4",
        "64ns B InitFC1-P, vc 0, hdr 125<<2, data 1250<<4",
        "96ns A InitFC1-NP, vc 0, hdr 8<<0, data 8<<0",
        "96ns B InitFC1-NP, vc 0, hdr 8<<0, data 8<<0",
        "128ns A InitFC1-Cpl, vc 0, hdr 0<<0, data 0<<0",
        "128ns B InitFC1-Cpl, vc 0, hdr 0<<0, data 0<<0",
    ]);
    pair.run_until(ns(5000));
    let left = pair.ends[0].credits(write(8).vc, FcClass::Posted);
    assert_eq!((left.header, left.data), (Some(500), Some(20_000)));

    // A peer without the feature: advertised as far as unscaled fields go.
    let mut pair = Pair::down(config, slow());
    pair.link_up();
    pair.run_until(ns(5000));
    let left = pair.ends[1].credits(write(8).vc, FcClass::Posted);
    assert_eq!((left.header, left.data), (Some(127), Some(2047)));
}

#[test]
fn a_write_and_its_ack() {
    let mut pair = Pair::up(slow(), slow()).logged();
    pair.send(0, 7, write(8));
    pair.run_until(ns(20_000));
    pair.expect(&[
        "0s A TLP 7 seq 0",
        "112ns B - Deliver(7)",
        "1.112us B Ack, seq 0",
        "1.144us A - Acked(7)",
    ]);
    pair.expect_silence();
}

#[test]
fn one_ack_covers_two_tlps_behind_the_tlp_on_the_wire() {
    let mut pair = Pair::up(slow(), slow()).logged();
    pair.send(0, 1, write(8));
    pair.send(0, 2, read());
    pair.run_until(ns(1110));
    pair.send(1, 9, write(8));
    pair.run_until(ns(20_000));
    pair.expect(&[
        "0s A TLP 1 seq 0",
        "112ns B - Deliver(1)",
        "112ns A TLP 2 seq 1",
        "192ns B - Deliver(2)",
        "1.11us B TLP 9 seq 0",
        "1.222us A - Deliver(9)",
        "1.222us B Ack, seq 1",
        "1.254us A - Acked(1)",
        "1.254us A - Acked(2)",
        "2.222us A Ack, seq 0",
        "2.254us B - Acked(9)",
    ]);
    pair.expect_silence();
}

#[test]
fn ack_policies() {
    let mut config = slow();
    config.ack.latency = AckLatency::AtOnce;
    let mut pair = Pair::up(slow(), config).logged();
    pair.send(0, 1, write(8));
    pair.run_until(ns(20_000));
    pair.expect(&["0s A TLP 1 seq 0", "112ns B - Deliver(1)", "112ns B Ack, seq 0", "144ns A - Acked(1)"]);

    let mut config = slow();
    config.ack.every = Some(2);
    let mut pair = Pair::up(slow(), config).logged();
    for handle in 1..=3 {
        pair.send(0, handle, write(8));
    }
    pair.run_until(ns(20_000));
    pair.expect(&[
        "0s A TLP 1 seq 0",
        "112ns B - Deliver(1)",
        "112ns A TLP 2 seq 1",
        "224ns B - Deliver(2)",
        "224ns A TLP 3 seq 2",
        "224ns B Ack, seq 1",
        "256ns A - Acked(1)",
        "256ns A - Acked(2)",
        "336ns B - Deliver(3)",
        "1.336us B Ack, seq 2",
        "1.368us A - Acked(3)",
    ]);
    pair.expect_silence();
}

#[test]
fn a_damaged_tlp_is_replayed_with_all_after_it() {
    let mut pair = Pair::up(slow(), slow()).logged();
    pair.faults = nth(0, 0, Fate::Corrupt);
    for handle in 1..=3 {
        pair.send(0, handle, write(8));
    }
    pair.run_until(ns(20_000));
    pair.expect(&[
        "0s A TLP 1 seq 0",
        "112ns B - Discarded { handle: 1, reason: BadLcrc }",
        "112ns A TLP 2 seq 1",
        "112ns B Nak, seq 4095",
        "224ns B - Discarded { handle: 2, reason: OutOfSequence }",
        "224ns A TLP 1 seq 0 again",
        "336ns B - Deliver(1)",
        "336ns A TLP 2 seq 1 again",
        "448ns B - Deliver(2)",
        "448ns A TLP 3 seq 2",
        "560ns B - Deliver(3)",
        "1.336us B Ack, seq 2",
        "1.368us A - Acked(1)",
        "1.368us A - Acked(2)",
        "1.368us A - Acked(3)",
    ]);
    pair.expect_silence();
    assert_eq!(pair.ends[0].counters().replays, 1);
    assert_eq!(pair.ends[0].counters().tlps_replayed, 2);
}

#[test]
fn a_lost_tlp_is_noticed_by_the_next() {
    let mut pair = Pair::up(slow(), slow()).logged();
    pair.faults = nth(0, 0, Fate::Drop);
    pair.send(0, 1, write(8));
    pair.send(0, 2, write(8));
    pair.run_until(ns(20_000));
    pair.expect(&[
        "0s A TLP 1 seq 0",
        "112ns A TLP 2 seq 1",
        "224ns B - Discarded { handle: 2, reason: OutOfSequence }",
        "224ns B Nak, seq 4095",
        "256ns A TLP 1 seq 0 again",
        "368ns B - Deliver(1)",
        "368ns A TLP 2 seq 1 again",
        "480ns B - Deliver(2)",
        "1.368us B Ack, seq 1",
        "1.4us A - Acked(1)",
        "1.4us A - Acked(2)",
    ]);
    pair.expect_silence();
}

/// A Nak acknowledges what came before it.
#[test]
fn a_nak_also_acknowledges() {
    let mut pair = Pair::up(slow(), slow()).logged();
    pair.faults = nth(0, 1, Fate::Corrupt);
    pair.send(0, 1, write(8));
    pair.send(0, 2, write(8));
    pair.run_until(ns(300));
    pair.expect(&[
        "0s A TLP 1 seq 0",
        "112ns B - Deliver(1)",
        "112ns A TLP 2 seq 1",
        "224ns B - Discarded { handle: 2, reason: BadLcrc }",
        "224ns B Nak, seq 0",
        "256ns A - Acked(1)",
        "256ns A TLP 2 seq 1 again",
    ]);
}

#[test]
fn a_lost_ack_costs_a_timeout_and_a_duplicate() {
    let mut pair = Pair::up(slow(), slow()).logged();
    pair.faults = nth(1, 0, Fate::Drop);
    pair.send(0, 7, write(8));
    pair.run_until(ns(20_000));
    pair.expect(&[
        "0s A TLP 7 seq 0",
        "112ns B - Deliver(7)",
        "1.112us B Ack, seq 0",
        "3.112us A TLP 7 seq 0 again",
        "3.224us B - Discarded { handle: 7, reason: Duplicate }",
        "3.224us B Ack, seq 0",
        "3.256us A - Acked(7)",
    ]);
    pair.expect_silence();
}

#[test]
fn four_replays_without_progress_retrain_the_link() {
    let mut pair = Pair::up(slow(), slow()).logged();
    let mut dropped = 0;
    pair.faults = Box::new(move |side, _| {
        dropped += u32::from(side == 1);
        if side == 1 && dropped <= 4 { Fate::Drop } else { GOOD }
    });
    pair.send(0, 7, write(8));
    pair.run_until(ns(3_100));
    pair.expect(&["0s A TLP 7 seq 0", "112ns B - Deliver(7)", "1.112us B Ack, seq 0"]);
    pair.run_until(ns(12_400));
    let again = |at, end| {
        [
            format!("{at} A TLP 7 seq 0 again"),
            format!("{end} B - Discarded {{ handle: 7, reason: Duplicate }}"),
            format!("{end} B Ack, seq 0"),
        ]
    };
    let tries =
        [again("3.112us", "3.224us"), again("6.224us", "6.336us"), again("9.336us", "9.448us")].concat();
    pair.expect(&tries.iter().map(String::as_str).collect::<Vec<_>>());
    pair.run_until(ns(20_000));
    pair.expect(&[
        "12.448us A - Retrain(ReplayNumRollover)",
        "13.448us A TLP 7 seq 0 again",
        "13.56us B - Discarded { handle: 7, reason: Duplicate }",
        "13.56us B Ack, seq 0",
        "13.592us A - Acked(7)",
    ]);
    pair.expect_silence();
    let counters = pair.ends[0].counters();
    assert_eq!((counters.replay_timeouts, counters.replays, counters.retrains), (4, 4, 1));
}

#[test]
fn credits_run_out_and_come_back() {
    let mut config = slow();
    config.receive =
        ReceiveBuffers::vc0(ClassBuffer::finite(2, 64), ClassBuffer::finite(8, 8), ClassBuffer::INFINITE);
    let mut pair = Pair::up(slow(), config).logged();
    pair.send(0, 1, write(8));
    pair.send(0, 2, write(8));
    assert_eq!(pair.ends[0].admit(&write(8)), Err(Blocked::Credits));
    assert_eq!(pair.ends[0].admit(&read()), Ok(()), "another class has its own");
    pair.run_until(ns(300));
    pair.release(1, write(8));
    pair.run_until(ns(320));
    assert_eq!(pair.ends[0].admit(&write(8)), Err(Blocked::Credits));
    pair.run_until(ns(20_000));
    assert_eq!(pair.ends[0].admit(&write(8)), Ok(()));
    pair.expect(&[
        "0s A TLP 1 seq 0",
        "112ns B - Deliver(1)",
        "112ns A TLP 2 seq 1",
        "224ns B - Deliver(2)",
        "300ns B UpdateFC-P, vc 0, hdr 3, data 65",
        "332ns A - CreditsArrived { vc: Vc(0), class: Posted }",
        "1.112us B Ack, seq 1",
        "1.144us A - Acked(1)",
        "1.144us A - Acked(2)",
    ]);
    pair.expect_silence();
}

fn halves() -> Config {
    Config { fc: UpdateFcPolicy::HALVES, ..slow() }
}

/// Eight header credits: the UpdateFC waits until four are free. But once the peer may be blocked it goes at once.
#[test]
fn credits_return_by_half_or_when_the_peer_may_be_blocked() {
    let mut pair = Pair::up(halves(), halves());
    for handle in 0..4 {
        pair.send(0, handle, read());
    }
    pair.run_until(ns(10_000));
    let mut pair = pair.logged();
    for _ in 0..3 {
        pair.release(1, read());
    }
    pair.expect_silence();
    pair.release(1, read());
    pair.run_for(Duration::from_ns(1000));
    pair.expect(&[
        "10us B UpdateFC-NP, vc 0, hdr 12, data 8",
        "10.032us A - CreditsArrived { vc: Vc(0), class: NonPosted }",
    ]);
    let mut pair = Pair::up(halves(), halves());
    for handle in 0..8 {
        pair.send(0, handle, read());
    }
    pair.run_until(ns(570));
    let mut pair = pair.logged();
    pair.release(1, read());
    pair.run_until(ns(700));
    // The eighth read arrives at 640 ns and leaves the peer with nothing, while one buffer is free.
    pair.expect(&[
        "640ns B - Deliver(7)",
        "640ns B UpdateFC-NP, vc 0, hdr 9, data 8",
        "672ns A - CreditsArrived { vc: Vc(0), class: NonPosted }",
    ]);
}

/// Seven header credits: half of them, rounded down, are three, so that two batches of three are always under way.
#[test]
fn half_of_an_odd_number_of_credits_is_rounded_down() {
    let mut config = halves();
    config.receive = ReceiveBuffers::vc0(
        ClassBuffer::finite(7, 64),
        ClassBuffer::finite(7, 8),
        ClassBuffer::finite(7, 64),
    );
    let mut pair = Pair::up(config.clone(), config);
    for handle in 0..4 {
        pair.send(0, handle, read());
    }
    pair.run_until(ns(10_000));
    let mut pair = pair.logged();
    pair.release(1, read());
    pair.release(1, read());
    pair.expect_silence();
    pair.release(1, read());
    pair.run_for(Duration::from_ns(1000));
    pair.expect(&[
        "10us B UpdateFC-NP, vc 0, hdr 10, data 8",
        "10.032us A - CreditsArrived { vc: Vc(0), class: NonPosted }",
    ]);
}

/// Data credits for three and a half of the largest TLPs: half of them hold one such TLP and not two, so each is told at once.
#[test]
fn a_batch_is_whole_tlps() {
    let mut config = halves();
    let largest = config.max_data_credits(FcClass::Posted);
    let posted = ClassBuffer::finite(8, largest * 7 / 2);
    config.receive = ReceiveBuffers::vc0(posted, posted, posted);
    let write = || write(u32::from(largest) * 16);
    let mut pair = Pair::up(config.clone(), config);
    pair.send(0, 1, write());
    pair.run_until(ns(10_000));
    let mut pair = pair.logged();
    pair.release(1, write());
    pair.run_for(Duration::from_ns(1000));
    let data = largest * 7 / 2 + largest;
    pair.expect(&[
        &format!("10us B UpdateFC-P, vc 0, hdr 9, data {data}"),
        "10.032us A - CreditsArrived { vc: Vc(0), class: Posted }",
    ]);
}

/// One TLP of eight is no half, but its credit may wait for 500 ns only; the next waits anew.
#[test]
fn a_freed_credit_waits_for_the_latency_of_the_policy() {
    let mut config = halves();
    config.fc.latency = UpdateFcLatency::Fixed(Duration::from_ns(500));
    let mut pair = Pair::up(config.clone(), config);
    for handle in 0..3 {
        pair.send(0, handle, read());
    }
    pair.run_until(ns(10_000));
    let mut pair = pair.logged();
    pair.release(1, read());
    pair.run_for(Duration::from_ns(200));
    pair.release(1, read());
    pair.run_for(Duration::from_ns(2000));
    pair.release(1, read());
    pair.run_for(Duration::from_ns(2000));
    pair.expect(&[
        "10.5us B UpdateFC-NP, vc 0, hdr 10, data 8",
        "10.532us A - CreditsArrived { vc: Vc(0), class: NonPosted }",
        "12.7us B UpdateFC-NP, vc 0, hdr 11, data 8",
        "12.732us A - CreditsArrived { vc: Vc(0), class: NonPosted }",
    ]);
}

#[test]
fn finite_credits_are_repeated_every_30_us() {
    let mut pair = Pair::up(slow(), slow()).logged();
    pair.run_until(ns(61_000));
    pair.expect(&[
        "30us A UpdateFC-P, vc 0, hdr 8, data 64",
        "30us B UpdateFC-P, vc 0, hdr 8, data 64",
        "30.032us A UpdateFC-NP, vc 0, hdr 8, data 8",
        "30.032us B UpdateFC-NP, vc 0, hdr 8, data 8",
        "60us A UpdateFC-P, vc 0, hdr 8, data 64",
        "60us B UpdateFC-P, vc 0, hdr 8, data 64",
        "60.032us A UpdateFC-NP, vc 0, hdr 8, data 8",
        "60.032us B UpdateFC-NP, vc 0, hdr 8, data 8",
    ]);
    let mut config = slow();
    config.receive = ReceiveBuffers::vc0(ClassBuffer::INFINITE, ClassBuffer::INFINITE, ClassBuffer::INFINITE);
    let mut pair = Pair::up(config.clone(), config).logged();
    assert_eq!(pair.ends[0].deadline(), None);
    pair.run_until(ns(100_000));
    pair.expect_silence();
}

#[test]
fn a_nullified_tlp_takes_time_and_nothing_else() {
    let mut pair = Pair::up(slow(), slow()).logged();
    let before = pair.ends[0].credits(write(8).vc, FcClass::Posted);
    pair.ends[0].send_nullified(Time::ZERO, 1, write(8));
    assert_eq!(pair.ends[0].credits(write(8).vc, FcClass::Posted), before);
    pair.run_until(ns(112));
    pair.send(0, 2, write(8));
    pair.run_until(ns(20_000));
    pair.expect(&[
        "0s A TLP 1 seq 0 nullified",
        "112ns B - Discarded { handle: 1, reason: Nullified }",
        "112ns A TLP 2 seq 0",
        "224ns B - Deliver(2)",
        "1.224us B Ack, seq 0",
        "1.256us A - Acked(2)",
    ]);
    pair.expect_silence();
}

/// While a TLP is on B's wire, all kinds of work become due: Nak, then UpdateFC, then the replay, then the new TLP.
#[test]
fn priorities() {
    let mut pair = Pair::up(slow(), slow());
    pair.faults = nth(1, 0, Fate::Corrupt);
    // B's first TLP, of 528 ns, is damaged. Meanwhile four reads arrive from A, and are released.
    pair.send(1, 1, write(112));
    for handle in 10..14 {
        pair.send(0, handle, read());
    }
    pair.run_until(ns(400));
    for _ in 0..4 {
        pair.release(1, read());
    }
    // At 528 ns A says Nak. B has an UpdateFC to send, and when that is out a replay; then comes TLP 2.
    pair.send(1, 2, write(8));
    let mut pair = pair.logged();
    pair.run_until(ns(1300));
    pair.expect(&[
        "528ns A - Discarded { handle: 1, reason: BadLcrc }",
        "528ns A Nak, seq 4095",
        "528ns B UpdateFC-NP, vc 0, hdr 12, data 8",
        "560ns A - CreditsArrived { vc: Vc(0), class: NonPosted }",
        "560ns B TLP 1 seq 0 again",
        "1.088us A - Deliver(1)",
        "1.088us B Ack, seq 3",
        "1.12us A - Acked(10)",
        "1.12us A - Acked(11)",
        "1.12us A - Acked(12)",
        "1.12us A - Acked(13)",
        "1.12us B TLP 2 seq 1",
        "1.232us A - Deliver(2)",
    ]);
}

#[test]
fn a_down_link_returns_its_unacknowledged_tlps_as_lost() {
    let mut pair = Pair::up(slow(), slow()).logged();
    pair.send(0, 1, write(8));
    pair.send(0, 2, write(8));
    pair.run_until(ns(150));
    pair.link_down();
    assert_eq!(pair.ends[0].admit(&write(8)), Err(Blocked::LinkDown));
    pair.expect(&[
        "0s A TLP 1 seq 0",
        "112ns B - Deliver(1)",
        "112ns A TLP 2 seq 1",
        "150ns A - Lost(1)",
        "150ns A - Lost(2)",
        "150ns A - Down",
        "150ns B - Down",
    ]);
    pair.run_until(ns(100_000));
    pair.expect_silence();
    // TLP 1 still sits in B's buffer. Its release after the link is back adds no credit to the new count.
    pair.link_up();
    pair.run_for(Duration::from_us(5));
    pair.release(1, write(8));
    pair.run_for(Duration::from_us(40));
    assert_eq!(pair.ends[0].credits(write(8).vc, FcClass::Posted).header, Some(8));
}

fn hand(config: Config, unit: dllp::Repr) -> Vec<Event<u32>> {
    let mut pair = Pair::up(config.clone(), config);
    let mut events = Vec::new();
    let unit = Unit::Dllp(unit);
    pair.ends[0].handle_unit(Time::ZERO, &unit, Integrity::Good, &mut |event| events.push(event));
    events
}

#[test]
fn broken_rules_are_reported() {
    let ack = |sequence| dllp::Repr::Ack(dllp::Sequence::new(sequence));
    assert_eq!(hand(slow(), ack(5)), [Event::Error(ProtocolError::AckOfUnsent { got: 5, last: 4095 })]);
    assert_eq!(hand(slow(), ack(4095)), []);
    let update = |class, header| {
        let fc = dllp::FlowControl::new(dllp::FcPhase::Update, class, write(8).vc, header, 64);
        dllp::Repr::FlowControl(fc)
    };
    let events = hand(slow(), update(FcClass::Posted, 200));
    let [Event::Error(error)] = events[..] else { panic!("{events:?}") };
    assert_eq!(
        error.to_string(),
        "VC0 Posted header credits: UpdateFC grants more than half the counter's range at once, or takes credits back \
         (PCIe 5.0 §2.6.1)"
    );
    let events = hand(slow(), update(FcClass::Completion, 1));
    assert!(matches!(events[..], [Event::Error(ProtocolError::UpdateOfInfinite { .. })]), "{events:?}");
}

#[test]
fn a_tlp_without_credit_is_an_overflow() {
    let mut pair = Pair::up(slow(), slow());
    let mut errors = Vec::new();
    for sequence in 0..9 {
        let unit = Unit::Tlp(TlpUnit { handle: 0, shape: read(), sequence, replay: false, nullified: false });
        pair.ends[0].handle_unit(Time::ZERO, &unit, Integrity::Good, &mut |event| {
            if let Event::Error(error) = event {
                errors.push((sequence, error));
            }
        });
    }
    assert!(
        matches!(errors[..], [(8, ProtocolError::ReceiverOverflow { class: FcClass::NonPosted, .. })]),
        "{errors:?}"
    );
}

#[test]
fn the_replay_buffer_is_a_limit() {
    let mut config = slow();
    config.replay.tlps = Some(2);
    let mut pair = Pair::up(config, slow());
    pair.send(0, 1, write(8));
    pair.send(0, 2, write(8));
    assert_eq!(pair.ends[0].admit(&write(8)), Err(Blocked::ReplayBuffer));
    pair.run_until(ns(5000));
    assert_eq!(pair.ends[0].admit(&write(8)), Ok(()));

    let mut config = slow();
    config.replay.bytes = Some(200);
    let mut pair = Pair::up(config, slow());
    pair.send(0, 1, write(128));
    assert_eq!(pair.ends[0].replay_occupancy().bytes, 148);
    assert_eq!(pair.ends[0].admit(&write(128)), Err(Blocked::ReplayBuffer));
    assert_eq!(pair.ends[0].admit(&write(32)), Ok(()));

    // Half the sequence numbers, whatever the buffer.
    let mut free = slow();
    free.receive = ReceiveBuffers::vc0(ClassBuffer::INFINITE, ClassBuffer::INFINITE, ClassBuffer::INFINITE);
    let mut pair = Pair::up(slow(), free);
    for handle in 0..2048 {
        pair.send(0, handle, read());
    }
    assert_eq!(pair.ends[0].admit(&read()), Err(Blocked::ReplayBuffer));
}

/// More TLPs than sequence numbers and credits than counters have values.
#[test]
fn everything_wraps() {
    let mut pair = Pair::up(slow(), slow());
    let mut next = 0;
    let mut delivered = 0;
    while delivered < 10_000 {
        while next < 10_000 && pair.ends[0].admit(&write(64)).is_ok() {
            pair.send(0, next, write(64));
            next += 1;
        }
        assert!(pair.step(Time::NEVER), "stuck at TLP {delivered}");
        while let Some((side, event)) = pair.events.pop_front() {
            match event {
                Event::Deliver(handle) => {
                    assert_eq!((side, handle), (1, delivered));
                    delivered += 1;
                    pair.release(1, write(64));
                }
                Event::Error(error) => panic!("{error}"),
                _ => {}
            }
        }
    }
    let counters = pair.ends[0].counters();
    assert_eq!((counters.tlps_sent, counters.tlps_replayed), (10_000, 0));
}

#[test]
fn an_established_link_equals_one_after_initialisation() {
    for (scaled, peer_scaled, feature_dllps) in [(false, false, 0), (true, false, 1), (true, true, 4)] {
        let mut config = slow();
        config.scaled_flow_control = scaled;
        config.receive = ReceiveBuffers::vc0(
            ClassBuffer::finite(300, 5000),
            ClassBuffer::finite(8, 8),
            ClassBuffer::INFINITE,
        );
        let mut peer = slow();
        peer.scaled_flow_control = peer_scaled;
        let mut real = Pair::down(config.clone(), peer.clone());
        real.link_up();
        real.run_until(ns(1000));
        let mut short_cut = Pair::up(config, peer);
        short_cut.run_until(ns(1000));
        let [a, b] = [&mut real, &mut short_cut].map(|pair| {
            for class in FcClass::ALL {
                for side in 0..2 {
                    let left = pair.ends[side].credits(write(8).vc, class);
                    pair.events.push_back((side, Event::Deliver(left.header.map_or(9999, |n| n))));
                    pair.events.push_back((side, Event::Deliver(left.data.map_or(9999, |n| n))));
                }
            }
            let script: [(usize, TlpShape); 5] =
                [(0, write(8)), (1, read()), (0, read()), (1, write(128)), (1, write(128))];
            pair.events.retain(|(_, event)| matches!(event, Event::Deliver(_)));
            for (handle, (side, shape)) in script.into_iter().enumerate() {
                pair.send(side, handle as u32, shape);
                pair.run_for(Duration::from_ns(50));
            }
            pair.run_until(ns(8000));
            pair.release(1, write(8));
            pair.run_until(ns(20_000));
            pair.events.iter().map(|event| format!("{event:?}")).collect::<Vec<_>>()
        });
        assert_eq!(a, b);
        // Six InitFC each, and the features.
        assert_eq!(real.units - short_cut.units, 12 + feature_dllps);
    }
}
