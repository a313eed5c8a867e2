//! One end of a link of each kind, by itself: its reaction to every unit, its counters, its standstill while the link recovers.

use crate::pair::{Pair, read, slow, write};
use tlplab_datalink::{
    AckLatency, Blocked, ClassBuffer, Config, Counters, CreditBatch, Credits, Discard, Engine, Event,
    FlitAck, FlitTlp, FlitUnit, FlowControl, Integrity, LinkLayer, Occupancy, ProtocolError, ReceiveBuffers,
    Timer, TlpShape, TlpUnit, Unit, UpdateFcLatency, UpdateFcPolicy, VcBuffers,
    dllp::{self, FcPhase, FeatureBits, Sequence},
};
use tlplab_units::{Duration, FcClass, Generation, LinkMode, Mps, Time, Vc, Width};

const NOW: Time = Time::ZERO;

fn us(us: u64) -> Time {
    Time::ZERO + Duration::from_us(us)
}
fn kind(flow_control: FlowControl) -> Config {
    Config { flow_control, ..slow() }
}
fn flits() -> Config {
    let mut config = Config::new(Generation::Gen6, Width::new(16).unwrap(), Mps::new(256).unwrap());
    config.receive = slow().receive;
    config.ack.latency = AckLatency::Fixed(Duration::from_us(1));
    config.replay_timer = Some(Duration::from_us(3));
    config
}
/// One end of a link that is up.
fn up(config: Config) -> Engine<u32> {
    Engine::established(config.clone(), config).0
}
fn tlp(handle: u32, sequence: u16) -> TlpUnit<u32> {
    TlpUnit { handle, shape: write(8), sequence, replay: false, nullified: false }
}
fn hand(end: &mut Engine<u32>, unit: &Unit<u32>, integrity: Integrity) -> Vec<Event<u32>> {
    let mut events = Vec::new();
    end.handle_unit(NOW, unit, integrity, &mut |event| events.push(event));
    events
}
fn discarded(handle: u32, reason: Discard) -> Vec<Event<u32>> {
    vec![Event::Discarded { handle, reason }]
}
fn ack(sequence: u16) -> Unit<u32> {
    Unit::Dllp(dllp::Repr::Ack(Sequence::new(sequence)))
}
fn nak(sequence: u16) -> Unit<u32> {
    Unit::Dllp(dllp::Repr::Nak(Sequence::new(sequence)))
}
fn update(header: u8) -> Unit<u32> {
    let fc = dllp::FlowControl::new(FcPhase::Update, FcClass::Posted, Vc::ZERO, header, 64);
    Unit::Dllp(dllp::Repr::FlowControl(fc))
}
fn flit(sequence: u16, handles: &[u32], ack: FlitAck) -> FlitUnit<u32> {
    let ends = handles.iter().map(|&handle| FlitTlp { handle, shape: write(8), nullified: false }).collect();
    let used = 20 * handles.len() as u16;
    FlitUnit { sequence, used, begins: handles.len() as u8, ends, dllp: None, ack, replay: false }
}
fn boxed(flit: FlitUnit<u32>) -> Unit<u32> {
    Unit::Flit(Box::new(flit))
}

/// The reaction of a receiver to each framed TLP, by kind of port: in order, again, too early, damaged, nullified.
#[test]
fn framed_tlps_that_arrive() {
    for flow_control in [FlowControl::Credits, FlowControl::DropAndReplay] {
        let mut end = up(kind(flow_control));
        let mut expected = Counters::default();
        for round in 0..2 {
            let next = round as u16;
            let bad = hand(&mut end, &Unit::Tlp(tlp(1, next)), Integrity::Bad);
            assert_eq!(bad, discarded(1, Discard::BadLcrc));
            let nullified = TlpUnit { nullified: true, ..tlp(2, next) };
            assert_eq!(
                hand(&mut end, &Unit::Tlp(nullified), Integrity::Good),
                discarded(2, Discard::Nullified)
            );
            let early = hand(&mut end, &Unit::Tlp(tlp(3, next + 1)), Integrity::Good);
            assert_eq!(early, discarded(3, Discard::OutOfSequence));
            let units = [tlp(4, next), nullified, tlp(4, next + 1), tlp(4, next + 4000)];
            assert_eq!(units.map(|tlp| end.expects(&tlp)), [true, false, false, false]);
            assert_eq!(hand(&mut end, &Unit::Tlp(tlp(4, next)), Integrity::Good), [Event::Deliver(4)]);
            assert_eq!(
                hand(&mut end, &Unit::Tlp(tlp(4, next)), Integrity::Good),
                discarded(4, Discard::Duplicate)
            );
            assert_eq!(hand(&mut end, &ack(4095), Integrity::Bad), []);
            let got = ProtocolError::WrongMode { got: "flit", mode: "non-flit" };
            let wrong = hand(&mut end, &boxed(flit(1, &[1], FlitAck::Ack(1023))), Integrity::Good);
            assert_eq!(wrong, [Event::Error(got)]);
            for count in [
                &mut expected.bad_lcrc,
                &mut expected.nullified_received,
                &mut expected.out_of_sequence,
                &mut expected.tlps_received,
                &mut expected.duplicates,
                &mut expected.bad_dllps,
                &mut expected.protocol_errors,
            ] {
                *count += 1;
            }
            assert_eq!(*end.counters(), expected, "{flow_control:?}");
        }
    }
}

/// The reaction of a sender of framed TLPs to acknowledgements, by kind of port; without credits there is no Nak.
#[test]
fn framed_tlps_that_leave() {
    for flow_control in [FlowControl::Credits, FlowControl::DropAndReplay] {
        let naks = flow_control == FlowControl::Credits;
        let mut end = up(kind(flow_control));
        (0..4).for_each(|handle| end.send(NOW, handle, write(8)));
        (4..6).for_each(|handle| end.send_nullified(NOW, handle, write(8)));
        assert_eq!(end.replay_occupancy(), Occupancy { tlps: 4, bytes: 4 * 28 });
        let mut left = Vec::new();
        let poll = |end: &mut Engine<u32>, left: &mut Vec<_>| {
            while let Some(unit) = end.poll_transmit(NOW) {
                let Unit::Tlp(tlp) = unit else { panic!("{unit:?}") };
                left.push((tlp.handle, tlp.sequence, tlp.replay, tlp.nullified));
            }
        };
        poll(&mut end, &mut left);
        let first = [(4, 4, false, true), (5, 4, false, true)];
        assert_eq!(left[..2], first, "nullified ones go first, and take no number from those after them");
        assert_eq!(left[2..], [0, 1, 2, 3].map(|handle| (handle, handle as u16, false, false)));
        let mut expected = Counters { tlps_sent: 4, nullified_sent: 2, ..Counters::default() };
        assert_eq!(*end.counters(), expected);
        left.clear();
        assert_eq!(hand(&mut end, &nak(4095), Integrity::Good), []);
        assert_eq!(
            hand(&mut end, &nak(0), Integrity::Good),
            if naks { vec![Event::Acked(0)] } else { vec![] }
        );
        poll(&mut end, &mut left);
        if naks {
            assert_eq!(left, [1, 2, 3].map(|handle| (handle, handle as u16, true, false)));
            (expected.naks_received, expected.replays, expected.tlps_replayed) = (2, 2, 3);
        } else {
            assert_eq!(left, []);
        }
        for (sequence, acked) in [(1, if naks { vec![1] } else { vec![0, 1] }), (1, vec![]), (2, vec![2])] {
            let acked: Vec<_> = acked.into_iter().map(Event::Acked).collect();
            assert_eq!(hand(&mut end, &ack(sequence), Integrity::Good), acked);
            expected.acks_received += 1;
        }
        for _ in 0..2 {
            let error = ProtocolError::AckOfUnsent { got: 9, last: 3 };
            assert_eq!(hand(&mut end, &ack(9), Integrity::Good), [Event::Error(error)]);
            expected.acks_received += 1;
            expected.protocol_errors += 1;
        }
        assert_eq!(*end.counters(), expected, "{flow_control:?}");
        assert_eq!(end.replay_occupancy(), Occupancy { tlps: 1, bytes: 28 });
    }
}

/// Acks, Naks and UpdateFCs that an end sends, and credits that it is told of.
#[test]
fn dllps_are_counted_by_kind() {
    let mut end = up(slow());
    let mut said = Vec::new();
    for sequence in 0..2 {
        hand(&mut end, &Unit::Tlp(tlp(1, sequence)), Integrity::Good);
        end.handle_timeout(us(1), &mut |event| panic!("{event:?}"));
        hand(&mut end, &Unit::Tlp(tlp(1, sequence)), Integrity::Bad);
        said.extend(end.poll_transmit(NOW).into_iter().chain(end.poll_transmit(NOW)));
        hand(&mut end, &Unit::Tlp(tlp(1, sequence)), Integrity::Good);
        said.extend(end.poll_transmit(NOW));
    }
    assert_eq!(said, [nak(0), ack(0), nak(1), ack(1)]);
    (0..2).for_each(|_| end.release(NOW, &write(8)));
    for header in [8, 9, 10] {
        let arrived = Event::CreditsArrived { vc: Vc::ZERO, class: FcClass::Posted };
        let expected = if header == 8 { vec![] } else { vec![arrived] };
        assert_eq!(hand(&mut end, &update(header), Integrity::Good), expected);
    }
    for time in [us(30), us(60)] {
        end.handle_timeout(time, &mut |event| panic!("{event:?}"));
        (0..2).for_each(|_| assert!(matches!(end.poll_transmit(time), Some(Unit::Dllp(_)))));
        assert_eq!(end.poll_transmit(time), None);
    }
    let expected = Counters {
        tlps_received: 2,
        bad_lcrc: 2,
        duplicates: 2,
        naks_sent: 2,
        acks_sent: 2,
        update_fcs_received: 3,
        update_fcs_sent: 4,
        ..Counters::default()
    };
    assert_eq!(*end.counters(), expected);
    // Three InitFC1 of the first round, before an answer.
    let mut end = Engine::<u32>::new(slow());
    end.link_up(NOW);
    while end.poll_transmit(NOW).is_some() {}
    assert_eq!(*end.counters(), Counters { init_dllps_sent: 3, ..Counters::default() });
}

/// A flit whole, again, too early, damaged, without TLPs; one with an acknowledgement.
#[test]
fn flits_that_arrive() {
    let mut end = up(flits());
    let mut expected = Counters::default();
    let good = |end: &mut Engine<u32>, flit| hand(end, &boxed(flit), Integrity::Good);
    for round in 1..3 {
        let nothing = FlitAck::Ack(1023);
        let both = |reason| [1, 2].map(|handle| Event::Discarded { handle, reason });
        assert_eq!(
            hand(&mut end, &boxed(flit(round, &[1, 2], nothing)), Integrity::Bad),
            both(Discard::BadLcrc)
        );
        assert_eq!(good(&mut end, flit(round + 1, &[1, 2], nothing)), both(Discard::OutOfSequence));
        assert_eq!(good(&mut end, flit(round, &[1, 2], nothing)), [Event::Deliver(1), Event::Deliver(2)]);
        assert_eq!(good(&mut end, flit(round, &[1, 2], nothing)), both(Discard::Duplicate));
        assert!(!end.expects(&tlp(1, round + 1)), "a TLP in flits has no check of its own");
        for (unit, got) in [(Unit::Tlp(tlp(1, 0)), "framed TLP"), (ack(0), "framed DLLP")] {
            let error = ProtocolError::WrongMode { got, mode: "flit" };
            assert_eq!(hand(&mut end, &unit, Integrity::Good), [Event::Error(error)]);
        }
        expected.bad_lcrc += 1;
        expected.out_of_sequence += 1;
        expected.tlps_received += 2;
        expected.duplicates += 1;
        expected.protocol_errors += 2;
        assert_eq!(*end.counters(), expected);
    }
    // One without TLPs names the last that had some: nothing is missing, or the third is.
    let mut says = |sequence| {
        assert_eq!(good(&mut end, flit(sequence, &[], FlitAck::Ack(1023))), []);
        end.poll_transmit(NOW).map(|unit| match unit {
            Unit::Flit(flit) => flit.ack,
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(
        [says(2), says(2), says(3), says(3)],
        [Some(FlitAck::Nak(2)), None, Some(FlitAck::Nak(2)), None]
    );
    (expected.naks_sent, expected.flits_sent, expected.nop_flits_sent) = (2, 2, 2);
    assert_eq!(*end.counters(), expected);
}

/// A nullified TLP is dropped, those beside it are not; one of a channel that is not up is dropped, too.
#[test]
fn tlps_in_flits_are_judged_one_by_one() {
    let mut end = up(flits());
    let mut expected = Counters::default();
    for round in 1..3 {
        let mut mixed = flit(round, &[1, 2, 3], FlitAck::Ack(1023));
        mixed.ends[0].nullified = true;
        mixed.ends[2].shape.vc = Vc::new(3).unwrap();
        let nullified = Event::Discarded { handle: 1, reason: Discard::Nullified };
        let elsewhere = Event::Discarded { handle: 3, reason: Discard::NotActive };
        assert_eq!(hand(&mut end, &boxed(mixed), Integrity::Good), [nullified, Event::Deliver(2), elsewhere]);
        (expected.tlps_received, expected.nullified_received) = (u64::from(round), u64::from(round));
        assert_eq!(*end.counters(), expected);
    }
}

/// Flits that leave, and come again after a Nak; those without TLPs are told apart, nullified TLPs do not come again.
#[test]
fn flits_that_leave() {
    let mut end = up(flits());
    for handle in [0, 1] {
        end.send(NOW, handle, write(8));
        end.send_nullified(NOW, handle + 2, write(8));
    }
    let mut next = || match end.poll_transmit(NOW) {
        Some(Unit::Flit(flit)) => {
            let handles: Vec<_> = flit.ends.iter().map(|tlp| (tlp.handle, tlp.nullified)).collect();
            Some((flit.sequence, flit.used, flit.begins, handles, flit.replay))
        }
        None => None,
        other => panic!("{other:?}"),
    };
    let all = vec![(0, false), (2, true), (1, false), (3, true)];
    assert_eq!(next(), Some((1, 80, 4, all, false)));
    assert_eq!(next(), None);
    let mut expected = Counters { tlps_sent: 2, nullified_sent: 2, flits_sent: 1, ..Counters::default() };
    assert_eq!(*end.counters(), expected);
    assert_eq!(end.replay_occupancy(), Occupancy { tlps: 1, bytes: 256 });
    for round in 1..3 {
        assert_eq!(hand(&mut end, &boxed(flit(1023, &[], FlitAck::Nak(1023))), Integrity::Good), []);
        let Some(Unit::Flit(again)) = end.poll_transmit(NOW) else { panic!() };
        let handles: Vec<_> = again.ends.iter().map(|tlp| tlp.handle).collect();
        assert_eq!((again.sequence, handles, again.replay), (1, vec![0, 1], true));
        (expected.naks_received, expected.replays) = (round, round);
        (expected.tlps_replayed, expected.flits_sent) = (round, 1 + round);
        assert_eq!(*end.counters(), expected);
    }
    let acked = hand(&mut end, &boxed(flit(1, &[9], FlitAck::Ack(1))), Integrity::Good);
    assert_eq!(acked, [Event::Acked(0), Event::Acked(1), Event::Deliver(9)]);
    assert_eq!(hand(&mut end, &boxed(flit(1, &[], FlitAck::Ack(1))), Integrity::Good), []);
    end.handle_timeout(us(1), &mut |event| panic!("{event:?}"));
    let Some(Unit::Flit(alone)) = end.poll_transmit(us(1)) else { panic!() };
    assert_eq!((alone.sequence, alone.used, alone.ack), (1, 0, FlitAck::Ack(1)));
    (expected.acks_received, expected.tlps_received) = (1, 1);
    (expected.acks_sent, expected.nop_flits_sent, expected.flits_sent) = (1, 1, 4);
    assert_eq!(*end.counters(), expected);
    let error = ProtocolError::AckOfUnsent { got: 5, last: 1 };
    assert_eq!(hand(&mut end, &boxed(flit(1, &[], FlitAck::Ack(5))), Integrity::Good), [Event::Error(error)]);
}

/// No more than a flit's worth of TLPs waits for the wire.
#[test]
fn a_flits_worth_is_staged() {
    let mut end = up(flits());
    end.send(NOW, 1, write(128));
    end.send(NOW, 2, write(256));
    assert_eq!(end.admit(&read()), Err(Blocked::Staging), "140 and 268 bytes");
    assert!(end.poll_transmit(NOW).is_some());
    // 172 bytes are left; with 64 more it is a flit.
    end.send(NOW, 3, write(51));
    assert_eq!(end.admit(&read()), Err(Blocked::Staging));
    assert!(end.poll_transmit(NOW).is_some());
    assert_eq!((end.admit(&read()), end.poll_transmit(NOW)), (Ok(()), None));
}

/// 128 header credits are granted by fours: fewer that are free are not told, whether a batch is due or the peer may be blocked.
#[test]
fn grants_wait_for_a_whole_unit_of_the_scale() {
    for (batch, unblock, delivered) in [(CreditBatch::EachTlp, false, 8), (CreditBatch::Part(2), true, 128)] {
        let mut config = slow();
        config.scaled_flow_control = true;
        config.receive = buffers(ClassBuffer { data: Credits::Infinite, ..ClassBuffer::finite(128, 8) });
        (config.fc.batch, config.fc.unblock) = (batch, unblock);
        let mut end = up(config);
        for sequence in 0..delivered {
            hand(&mut end, &Unit::Tlp(tlp(1, sequence)), Integrity::Good);
        }
        let mut told = Vec::new();
        for _ in 0..4 {
            end.release(NOW, &write(8));
            told.push(end.poll_transmit(NOW).is_some());
        }
        assert_eq!(told, [false, false, false, true], "{batch:?}, {unblock}");
    }
}

/// An acknowledgement that rides along with TLPs or a DLLP costs no flit, and is not counted as one.
#[test]
fn only_lone_acknowledgements_are_counted() {
    let mut end = up(Config {
        ack: tlplab_datalink::AckPolicy { latency: AckLatency::AtOnce, every: None },
        ..flits()
    });
    hand(&mut end, &boxed(flit(1, &[1], FlitAck::Ack(1023))), Integrity::Good);
    end.send(NOW, 1, write(8));
    let Some(Unit::Flit(both)) = end.poll_transmit(NOW) else { panic!() };
    assert_eq!((both.used, both.ack, end.counters().acks_sent), (20, FlitAck::Ack(1), 0));
    hand(&mut end, &boxed(flit(2, &[2], FlitAck::Ack(1023))), Integrity::Good);
    let Some(Unit::Flit(alone)) = end.poll_transmit(NOW) else { panic!() };
    assert_eq!((alone.used, alone.ack, end.counters().acks_sent), (0, FlitAck::Ack(2), 1));
}

/// Before a link is up nothing is taken, and nothing expected.
#[test]
fn a_port_that_is_down_takes_nothing() {
    for config in [slow(), kind(FlowControl::DropAndReplay), kind(FlowControl::Crossbar), flits()] {
        let mut end = Engine::<u32>::new(config.clone());
        let refused = [end.admit(&write(8)), end.admit(&read())];
        assert_eq!((end.is_active(), refused), (false, [Err(Blocked::LinkDown); 2]));
        assert_eq!(end.deadline(), None);
        let (first, unit) = match config.mode {
            LinkMode::Flit => (1, boxed(flit(1, &[7], FlitAck::Ack(1023)))),
            LinkMode::NonFlit => (0, Unit::Tlp(tlp(7, 0))),
        };
        assert!(!end.expects(&tlp(7, first)));
        if config.flow_control != FlowControl::Crossbar {
            assert_eq!(hand(&mut end, &unit, Integrity::Good), discarded(7, Discard::NotActive));
            assert_eq!(*end.counters(), Counters::default());
        }
        let mut events = Vec::new();
        end.link_down(NOW, &mut |event| events.push(event));
        assert_eq!(events, [], "it was down before");
    }
}

/// In Recovery nothing is sent and no replay is due; afterwards REPLAY_TIMER begins anew, and there is one only for what was sent.
#[test]
fn a_link_that_recovers_stands_still() {
    for config in [slow(), kind(FlowControl::DropAndReplay), flits()] {
        let mut end =
            up(Config { fc: tlplab_datalink::UpdateFcPolicy { refresh: None, ..slow().fc }, ..config });
        end.send(NOW, 1, write(8));
        assert!(end.poll_transmit(NOW).is_some());
        end.transmitted(NOW);
        assert_eq!(end.deadline(), Some((us(3), Timer::Replay)));
        end.send(us(1), 2, write(8));
        end.link_recovering(us(1));
        assert_eq!((end.deadline(), end.poll_transmit(us(1))), (None, None));
        end.link_recovered(us(2));
        assert_eq!(end.deadline(), Some((us(5), Timer::Replay)));
        assert!(end.poll_transmit(us(2)).is_some());
        // Acks of what has left come on; the timer begins when recovery is over, if anything is unacknowledged still.
        end.link_recovering(us(3));
        let flit_mode = end.config().mode == LinkMode::Flit;
        let first = if flit_mode { boxed(flit(1023, &[], FlitAck::Ack(1))) } else { ack(0) };
        assert_eq!(hand(&mut end, &first, Integrity::Good), [Event::Acked(1)]);
        assert_eq!(end.deadline(), None);
        end.link_recovered(us(4));
        assert_eq!(end.deadline(), Some((us(7), Timer::Replay)));
        // What was on the wire when the link went away is not what leaves it afterwards.
        let mut end = up(end.config().clone());
        end.send(NOW, 1, write(8));
        assert!(end.poll_transmit(NOW).is_some());
        end.link_recovering(us(1));
        end.transmitted(us(1));
        assert_eq!(end.deadline(), None);
        end.link_down(us(2), &mut |_| {});
        end.link_up(us(2));
        assert!(!matches!(end.deadline(), Some((_, Timer::Replay))));
    }
}

/// A Nak that comes in Recovery has everything sent again after it, but counts as no further attempt: nothing was tried meanwhile.
#[test]
fn a_nak_in_recovery_replays_after_it() {
    for (config, refused) in [(slow(), nak(4095)), (flits(), boxed(flit(1023, &[], FlitAck::Nak(1023))))] {
        let mut end = up(config);
        end.send(NOW, 1, write(8));
        assert!(end.poll_transmit(NOW).is_some());
        end.link_recovering(NOW);
        for _ in 0..9 {
            assert_eq!(hand(&mut end, &refused, Integrity::Good), []);
            assert_eq!(end.poll_transmit(NOW), None);
        }
        end.link_recovered(us(1));
        match end.poll_transmit(us(1)) {
            Some(Unit::Tlp(tlp)) => assert!(tlp.replay),
            Some(Unit::Flit(flit)) => assert!(flit.replay),
            other => panic!("{other:?}"),
        }
        assert_eq!((end.counters().naks_received, end.counters().retrains), (9, 0));
    }
}

/// A crossbar's port passes TLPs as they are, and tells both owners of their fate.
#[test]
fn a_crossbar_passes_tlps_as_they_are() {
    let config = kind(FlowControl::Crossbar);
    let (mut end, mut peer) = Engine::<u32>::established(config.clone(), config.clone());
    assert!(end.is_active() && peer.is_active());
    assert_eq!((end.admit(&write(8)), end.deadline()), (Ok(()), None));
    let left = end.credits(Vc::ZERO, FcClass::Posted);
    assert_eq!((left.header, left.data), (None, None));
    for handle in 0..4 {
        end.send(NOW, handle, write(8));
        end.send_nullified(NOW, handle + 4, write(8));
    }
    assert_eq!(end.replay_occupancy(), Occupancy::default());
    for handle in 0..2 {
        let Some(Unit::Tlp(unit)) = end.poll_transmit(NOW) else { panic!() };
        assert_eq!(unit, tlp(handle, 0));
        assert!(peer.expects(&unit));
        let (damaged, whole) = ([Integrity::Bad, Integrity::Good], Unit::Tlp(unit));
        let [bad, good] = damaged.map(|integrity| hand(&mut peer, &whole, integrity));
        assert_eq!(bad, [discarded(handle, Discard::BadLcrc), vec![Event::Acked(handle)]].concat());
        assert_eq!(good, [Event::Deliver(handle), Event::Acked(handle)]);
        let Some(Unit::Tlp(unit)) = end.poll_transmit(NOW) else { panic!() };
        assert!(unit.nullified && !peer.expects(&unit));
        let dropped = hand(&mut peer, &Unit::Tlp(unit), Integrity::Good);
        assert_eq!(dropped, discarded(handle + 4, Discard::Nullified));
        assert_eq!(hand(&mut peer, &ack(0), Integrity::Good), []);
    }
    assert_eq!(*end.counters(), Counters { tlps_sent: 2, nullified_sent: 2, ..Counters::default() });
    let received = Counters { tlps_received: 2, bad_lcrc: 2, nullified_received: 2, ..Counters::default() };
    assert_eq!(*peer.counters(), received);
    let mut events = Vec::new();
    end.link_down(NOW, &mut |event| events.push(event));
    let lost = [2, 6, 3, 7].map(Event::Lost);
    assert_eq!(events, [&lost[..], &[Event::Down]].concat());
    assert!(!end.is_active() && !end.expects(&tlp(0, 0)) && end.poll_transmit(NOW).is_none());
    end.link_up(NOW);
    assert!(end.is_active() && end.expects(&tlp(0, 0)));
}

/// Of deadlines at the same instant the one is named that is dealt with first.
#[test]
fn timers_that_run_out_together() {
    let mut config = slow();
    config.ack.latency = AckLatency::Fixed(Duration::from_us(3));
    config.fc.refresh = Some(Duration::from_us(3));
    let mut end = up(config);
    assert_eq!(end.deadline(), Some((us(3), Timer::Refresh)));
    end.send(NOW, 1, write(8));
    end.poll_transmit(NOW);
    end.transmitted(NOW);
    assert_eq!(end.deadline(), Some((us(3), Timer::Replay)));
    hand(&mut end, &Unit::Tlp(tlp(1, 0)), Integrity::Good);
    assert_eq!(end.deadline(), Some((us(3), Timer::Ack)));
}

/// A peer whose features lack scaled flow control is initialised without.
#[test]
fn a_peer_of_other_features_does_not_scale() {
    for (features, scaled) in [(0, false), (1, true), (2, false), (3, true)] {
        let mut config = slow();
        config.scaled_flow_control = true;
        let mut end = Engine::<u32>::new(config);
        end.link_up(NOW);
        let supported = FeatureBits::new(features).unwrap();
        hand(&mut end, &Unit::Dllp(dllp::Repr::Feature { ack: true, supported }), Integrity::Good);
        let Some(Unit::Dllp(dllp)) = end.poll_transmit(NOW) else { panic!() };
        let text = if scaled { "hdr 8<<0, data 64<<0" } else { "hdr 8, data 64" };
        assert_eq!(dllp.to_string(), format!("InitFC1-P, vc 0, {text}"), "features {features}");
    }
}

/// The field of a port's description that cannot work, and the values that would.
#[test]
fn descriptions_that_cannot_work() {
    type Change = fn(&mut Config);
    let rows: [(Change, &str); 16] = [
        (|_| {}, ""),
        (|c| c.generation = Generation::Gen6, "mode: gen6 exists in flit mode only"),
        (
            |c| (c.mode, c.flow_control) = (LinkMode::Flit, FlowControl::DropAndReplaySlipping),
            "flow_control: links in flit mode use credits",
        ),
        (|c| c.receive.vcs[0] = None, "receive: virtual channel 0 must have buffers"),
        (
            |c| c.receive = buffers(ClassBuffer::finite(0, 64)),
            "receive VC0 Posted header credits: 0 is out of range; expected 1 to 2032, or infinite",
        ),
        (
            |c| c.receive = buffers(ClassBuffer::finite(2033, 64)),
            "receive VC0 Posted header credits: 2033 is out of range; expected 1 to 2032, or infinite",
        ),
        (
            |c| c.receive = buffers(ClassBuffer::finite(1, 7)),
            "receive VC0 Posted data credits: 7 is out of range; expected 8 to 32752, or infinite",
        ),
        (|c| c.receive = buffers(ClassBuffer::finite(2032, 8)), ""),
        (|c| c.replay.tlps = Some(0), "replay.tlps: the replay buffer must hold at least one TLP"),
        (|c| c.replay.bytes = Some(163), "replay.bytes: the largest TLP (MPS 128 B) needs 164 bytes"),
        (
            |c| c.fc.batch = CreditBatch::Part(1),
            "fc.batch: a batch above half of the buffer leaves no room for a second one",
        ),
        (
            |c| (c.fc.batch, c.fc.latency) = (CreditBatch::Unlimited, UpdateFcLatency::Unlimited),
            "fc: UpdateFCs need a batch of credits or a latency",
        ),
        (
            |c| (c.flow_control, c.ack.every) = (FlowControl::DropAndReplay, Some(2)),
            "ack.every: without credits Acks are scheduled by time only",
        ),
        (|c| c.ack.every = Some(0), "ack.every: it must be at least 1"),
        (|c| c.init_repeat = Duration::ZERO, "init_repeat, fc.refresh: the interval must be above 0"),
        (|c| c.fc.refresh = Some(Duration::ZERO), "init_repeat, fc.refresh: the interval must be above 0"),
    ];
    for (change, wrong) in rows {
        let mut config = slow();
        change(&mut config);
        let said = config.check().err().map_or(String::new(), |error| error.to_string());
        assert_eq!(said, wrong);
    }
    // A non-posted request carries 32 bytes at most, others MPS.
    let mut config = slow();
    config.mps = Mps::new(512).unwrap();
    assert_eq!(FcClass::ALL.map(|class| config.max_data_credits(class)), [32, 2, 32]);
    let posted = ClassBuffer::finite(8, 32);
    config.receive = ReceiveBuffers::vc0(posted, ClassBuffer::finite(8, 2), ClassBuffer::INFINITE);
    assert_eq!(config.check(), Ok(()));
    config.receive = ReceiveBuffers::vc0(posted, ClassBuffer::finite(8, 1), ClassBuffer::INFINITE);
    assert!(config.check().is_err());
    let generous = |generation| ReceiveBuffers::generous(generation).vcs[0].unwrap().0[0];
    assert_eq!(generous(Generation::Gen3), ClassBuffer::finite(127, 2047));
    assert_eq!(generous(Generation::Gen4), ClassBuffer::finite(508, 8188));
}

fn buffers(posted: ClassBuffer) -> ReceiveBuffers {
    ReceiveBuffers::vc0(posted, ClassBuffer::finite(8, 8), ClassBuffer::INFINITE)
}

/// Virtual channel 1 beside 0.
fn two_channels() -> Config {
    let mut config = slow();
    let vc1 = VcBuffers([ClassBuffer::finite(4, 32), ClassBuffer::finite(4, 8), ClassBuffer::INFINITE]);
    config.receive = config.receive.with(Vc::new(1).unwrap(), vc1);
    config
}
fn on_vc1() -> TlpShape {
    TlpShape { vc: Vc::new(1).unwrap(), ..write(8) }
}
/// UpdateFCs that the periodic timer makes at 30 us.
fn refreshed(end: &mut Engine<u32>) -> Vec<String> {
    assert_eq!(end.deadline(), Some((us(30), Timer::Refresh)));
    end.handle_timeout(us(30), &mut |event| panic!("{event:?}"));
    std::iter::from_fn(|| end.poll_transmit(us(30)))
        .map(|unit| match unit {
            Unit::Dllp(dllp) => dllp.to_string(),
            other => panic!("{other:?}"),
        })
        // A channel that waits for the peer goes on with its InitFCs.
        .filter(|text| !text.starts_with("InitFC1"))
        .collect()
}

/// A channel carries TLPs where both ends have it, and is refreshed only then.
#[test]
fn a_channel_needs_both_ends() {
    for (own, peer, open) in [
        (two_channels(), two_channels(), true),
        (two_channels(), slow(), false),
        (slow(), two_channels(), false),
    ] {
        let (mut end, _) = Engine::<u32>::established(own, peer);
        assert_eq!(end.admit(&write(8)), Ok(()));
        assert_eq!(end.admit(&on_vc1()), if open { Ok(()) } else { Err(Blocked::LinkDown) });
        assert_eq!(end.expects(&TlpUnit { shape: on_vc1(), ..tlp(1, 0) }), open);
        let mut expected = vec!["UpdateFC-P, vc 0, hdr 8, data 64", "UpdateFC-NP, vc 0, hdr 8, data 8"];
        if open {
            expected.extend(["UpdateFC-P, vc 1, hdr 4, data 32", "UpdateFC-NP, vc 1, hdr 4, data 8"]);
        }
        assert_eq!(refreshed(&mut end), expected);
        // A channel that is not there is not due for ever.
        assert!(end.deadline().is_some_and(|(at, _)| at > us(30)), "{:?}", end.deadline());
    }
}

/// Finite credits are refreshed: on any channel, and if only headers or only data are counted.
#[test]
fn finite_credits_are_refreshed_wherever_they_are() {
    let headers = ClassBuffer { data: Credits::Infinite, ..ClassBuffer::finite(8, 8) };
    let data = ClassBuffer { header: Credits::Infinite, ..ClassBuffer::finite(8, 8) };
    let infinite = ClassBuffer::INFINITE;
    let mut config = slow();
    config.receive = ReceiveBuffers::vc0(headers, data, infinite);
    let told = ["UpdateFC-P, vc 0, hdr 8, data 0", "UpdateFC-NP, vc 0, hdr 0, data 8"];
    assert_eq!(refreshed(&mut up(config.clone())), told);
    config.receive = ReceiveBuffers::vc0(infinite, infinite, infinite);
    assert_eq!(up(config.clone()).deadline(), None);
    let vc1 = VcBuffers([ClassBuffer::finite(4, 32), infinite, infinite]);
    config.receive = config.receive.with(Vc::new(1).unwrap(), vc1);
    assert_eq!(refreshed(&mut up(config)), ["UpdateFC-P, vc 1, hdr 4, data 32"]);
}

/// Channel 1 is initialised as soon as channel 0 is, not with the next repetition; then no repetition is due.
#[test]
fn a_second_channel_follows_the_first() {
    let mut pair = Pair::down(two_channels(), two_channels()).logged();
    pair.link_up();
    pair.run_until(Time::ZERO + Duration::from_ns(900));
    for end in &pair.ends {
        assert_eq!((end.admit(&write(8)), end.admit(&on_vc1())), (Ok(()), Ok(())));
        assert_eq!(end.counters().init_dllps_sent, 12, "each of the six once, on each channel");
        assert!(matches!(end.deadline(), Some((_, Timer::Refresh))), "{:?}", end.deadline());
    }
    let log = pair.take_log();
    let place = |text: &str| log.iter().position(|line| line.contains(text));
    assert!(place("A - Up") < place("A InitFC1-P, vc 1"), "{log:#?}");
}

#[test]
fn a_link_that_goes_down_gives_nullified_tlps_back() {
    for config in [slow(), kind(FlowControl::DropAndReplay), flits()] {
        let mut end = up(config);
        end.send_nullified(NOW, 1, write(8));
        end.send_nullified(NOW, 2, write(8));
        let mut events = Vec::new();
        end.link_down(NOW, &mut |event| events.push(event));
        assert_eq!(events, [Event::Lost(1), Event::Lost(2), Event::Down]);
        end.link_up(NOW);
        assert!(!matches!(end.poll_transmit(NOW), Some(Unit::Tlp(_))));
    }
}

/// A unit that arrives before the link is up, or on a channel that is not enabled, is as if it had never come.
#[test]
fn units_before_link_up_change_nothing() {
    let init = |vc: u8| {
        FcClass::ALL.map(|class| {
            let vc = Vc::new(vc).unwrap();
            Unit::Dllp(dllp::Repr::FlowControl(dllp::FlowControl::new(FcPhase::Init1, class, vc, 8, 64)))
        })
    };
    let mut end = Engine::<u32>::new(slow());
    init(0).iter().for_each(|unit| assert_eq!(hand(&mut end, unit, Integrity::Good), []));
    assert_eq!(end.poll_transmit(NOW), None);
    end.link_up(NOW);
    init(3).iter().for_each(|unit| assert_eq!(hand(&mut end, unit, Integrity::Good), []));
    let said = std::iter::from_fn(|| end.poll_transmit(NOW)).count();
    assert_eq!((said, end.is_active()), (3, false), "InitFC1 of channel 0, no InitFC2");
    let mut end = Engine::<u32>::new(flits());
    let first = boxed(flit(1, &[7], FlitAck::Ack(1023)));
    assert_eq!(hand(&mut end, &first, Integrity::Good), discarded(7, Discard::NotActive));
    end.activate_with(NOW, &flits());
    assert_eq!(hand(&mut end, &first, Integrity::Good), [Event::Deliver(7)]);
}

/// A TLP is a sign that the peer has all it needs: whoever waits for its InitFC2 waits no longer.
#[test]
fn a_tlp_brings_the_link_up() {
    for config in [slow(), flits()] {
        let mut end = Engine::<u32>::new(config.clone());
        end.link_up(NOW);
        for class in FcClass::ALL {
            let fc = dllp::FlowControl::new(FcPhase::Init1, class, Vc::ZERO, 8, 64);
            let dllp = dllp::Repr::FlowControl(fc);
            let unit = match config.mode {
                LinkMode::Flit => boxed(FlitUnit { dllp: Some(dllp), ..flit(1023, &[], FlitAck::Ack(1023)) }),
                LinkMode::NonFlit => Unit::Dllp(dllp),
            };
            assert_eq!(hand(&mut end, &unit, Integrity::Good), []);
        }
        assert!(!end.is_active());
        let first = match config.mode {
            LinkMode::Flit => boxed(flit(1, &[7], FlitAck::Ack(1023))),
            LinkMode::NonFlit => Unit::Tlp(tlp(7, 0)),
        };
        let events = hand(&mut end, &first, Integrity::Good);
        assert_eq!((events.first(), events.last()), (Some(&Event::Up), Some(&Event::Deliver(7))));
        assert!(end.is_active());
    }
}

/// Of 32 headers: an UpdateFC after each, when 4, 8 or 16 are free, or when the first has waited.
#[test]
fn named_policies_decide_when_an_updatefc_is_due() {
    let after = |policy: UpdateFcPolicy, released: usize| {
        let mut config = kind(FlowControl::Credits);
        config.receive = buffers(ClassBuffer { header: Credits::Finite(32), data: Credits::Infinite });
        config.fc = UpdateFcPolicy { refresh: None, ..policy };
        config.ack.latency = AckLatency::Fixed(Duration::from_ms(1));
        let mut end = up(config);
        for handle in 0..20 {
            hand(&mut end, &Unit::Tlp(tlp(handle, handle as u16)), Integrity::Good);
        }
        (0..released).for_each(|_| end.release(NOW, &write(8)));
        let now = end.poll_transmit(NOW).is_some();
        (now, end.deadline().is_some_and(|(_, timer)| timer == Timer::Update))
    };
    let batches = [
        (UpdateFcPolicy::EACH_TLP, 1),
        (UpdateFcPolicy::EIGHTHS, 4),
        (UpdateFcPolicy::QUARTERS, 8),
        (UpdateFcPolicy::HALVES, 16),
    ];
    for (policy, batch) in batches {
        assert_eq!(after(policy, batch - 1), (false, false), "{policy:?}");
        assert_eq!(after(policy, batch), (true, false), "{policy:?}");
    }
    assert_eq!(after(UpdateFcPolicy::SPECIFICATION, 20), (false, true));
}

/// An UpdateFC that leaves early for another reason takes the timer of its class along.
#[test]
fn an_early_update_ends_the_wait() {
    let mut config = kind(FlowControl::Credits);
    config.receive = buffers(ClassBuffer { header: Credits::Finite(2), data: Credits::Infinite });
    config.fc = UpdateFcPolicy { refresh: None, ..UpdateFcPolicy::SPECIFICATION };
    config.ack.latency = AckLatency::Fixed(Duration::from_ms(1));
    let mut end = up(config);
    hand(&mut end, &Unit::Tlp(tlp(0, 0)), Integrity::Good);
    end.release(NOW, &write(8));
    assert!(matches!(end.deadline(), Some((_, Timer::Update))));
    hand(&mut end, &Unit::Tlp(tlp(1, 1)), Integrity::Good);
    assert!(end.poll_transmit(NOW).is_some(), "the peer has no header left");
    assert!(!matches!(end.deadline(), Some((_, Timer::Update))));
}

/// A peer that acknowledges what is still being sent leaves nothing to time.
#[test]
fn an_ack_before_the_last_symbol_leaves_no_timer() {
    for flow_control in [FlowControl::Credits, FlowControl::DropAndReplay] {
        let mut config = kind(flow_control);
        config.fc.refresh = None;
        let mut end = up(config);
        end.send(NOW, 0, write(8));
        assert!(matches!(end.poll_transmit(NOW), Some(Unit::Tlp(_))));
        assert_eq!(hand(&mut end, &ack(4095), Integrity::Good), []);
        assert_eq!(end.deadline(), None, "{flow_control:?}: it is being sent");
        assert_eq!(hand(&mut end, &ack(0), Integrity::Good), [Event::Acked(0)]);
        end.transmitted(NOW);
        assert_eq!(end.deadline(), None, "{flow_control:?}");
    }
}
