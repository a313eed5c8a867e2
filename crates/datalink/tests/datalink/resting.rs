//! Ports that rest, and refreshes that are left out: the traffic after them is as if they had been sent.

use crate::pair::{Pair, read, slow, write};
use proptest::prelude::*;
use tlplab_datalink::{Config, CreditBatch, Engine, FlowControl, LinkLayer, Timer, UpdateFcLatency};
use tlplab_units::{Duration, FcClass, Generation, Mps, Time, Vc, Width};

const REFRESH: Duration = Duration::from_us(30);

fn at(us: u64) -> Time {
    Time::ZERO + Duration::from_us(us)
}

fn flits() -> Config {
    let mut config = Config::new(Generation::Gen6, Width::new(16).unwrap(), Mps::new(256).unwrap());
    config.receive = slow().receive;
    config
}

fn kinds() -> [Config; 3] {
    [slow(), flits(), Config { flow_control: FlowControl::DropAndReplay, ..slow() }]
}

fn rests(pair: &Pair) -> [bool; 2] {
    pair.ends.each_ref().map(Engine::is_resting)
}

#[test]
fn a_port_rests_once_all_is_acknowledged_and_freed() {
    for config in kinds() {
        let mut pair = Pair::up(config.clone(), config.clone());
        pair.flight = Duration::from_ns(100);
        assert_eq!(rests(&pair), [true, true]);
        pair.send(0, 1, write(64));
        let mut steps = 0;
        while !pair.is_quiet() {
            // One of them waits for the other, or sends, or a unit is under way: then both may rest.
            assert!(pair.step(at(1000)), "it goes on");
            steps += 1;
        }
        assert!(steps > 1);
        assert_eq!(rests(&pair), [true, true], "{config:?}");
    }
}

#[test]
fn a_port_that_waits_for_an_acknowledgement_does_not_rest() {
    for config in kinds() {
        let mut pair = Pair::up(config.clone(), config);
        pair.faults = Box::new(|_, _| crate::pair::Fate::Drop);
        pair.send(0, 1, write(64));
        pair.run_until(at(1));
        assert!(!pair.ends[0].is_resting(), "{:?}", pair.ends[0].deadline());
        assert!(pair.ends[1].is_resting());
    }
}

#[test]
fn a_port_that_owes_an_acknowledgement_does_not_rest() {
    let mut pair = Pair::up(slow(), slow());
    pair.send(0, 1, write(64));
    // 84 B of 4 ns; the Ack waits for 1 us.
    pair.run_until(Time::ZERO + Duration::from_ns(400));
    assert_eq!(pair.ends[1].deadline().map(|(_, timer)| timer), Some(Timer::Ack));
    assert_eq!(rests(&pair), [false, false]);
}

#[test]
fn a_port_with_a_pending_update_timer_does_not_rest() {
    let mut config = slow();
    config.fc.batch = CreditBatch::Unlimited;
    config.fc.latency = UpdateFcLatency::Fixed(Duration::from_us(5));
    config.fc.unblock = false;
    let mut pair = Pair::up(config.clone(), config);
    pair.send(0, 1, write(64));
    pair.run_until(at(10));
    assert_eq!(rests(&pair), [true, true]);
    pair.release(1, write(64));
    pair.run_until(at(12));
    assert_eq!(pair.ends[1].deadline().map(|(_, timer)| timer), Some(Timer::Update));
    assert_eq!(rests(&pair), [true, false]);
    pair.run_until(at(20));
    assert_eq!(rests(&pair), [true, true]);
}

/// One header of eight: no batch, and no urgency. The next refresh announces it.
#[test]
fn a_port_with_unannounced_credits_does_not_rest() {
    let mut config = slow();
    config.fc.batch = CreditBatch::Part(2);
    config.fc.latency = UpdateFcLatency::Unlimited;
    let mut pair = Pair::up(config.clone(), config);
    pair.send(0, 1, write(64));
    pair.run_until(at(10));
    assert_eq!(rests(&pair), [true, true]);
    pair.release(1, write(64));
    pair.run_until(at(20));
    assert_eq!(rests(&pair), [true, false]);
    let left = |pair: &Pair| pair.ends[0].credits(Vc::ZERO, FcClass::Posted).header;
    assert_eq!(left(&pair), Some(7));
    pair.run_until(at(35));
    assert_eq!(left(&pair), Some(8));
    assert_eq!(rests(&pair), [true, true]);
}

/// Its peer is silent: it will say again what it has.
#[test]
fn a_link_that_is_not_up_yet_does_not_rest() {
    let mut pair = Pair::down(slow(), slow());
    assert_eq!(rests(&pair), [true, true], "a link that is down has nothing to do");
    pair.link_up();
    pair.faults = Box::new(|_, _| crate::pair::Fate::Drop);
    pair.run_until(at(20));
    assert_eq!(pair.ends[0].deadline().map(|(_, timer)| timer), Some(Timer::Init));
    assert_eq!(rests(&pair), [false, false]);
    pair.faults = Box::new(|_, _| crate::pair::GOOD);
    pair.run_until(at(100));
    assert_eq!(rests(&pair), [true, true]);
}

/// Two classes are finite; each has missed one for every 30 us.
#[test]
fn refreshes_are_left_out_by_whole_intervals() {
    for config in [slow(), flits()] {
        let mut pair = Pair::up(config.clone(), config);
        let end = &mut pair.ends[0];
        assert_eq!(end.skip_refreshes(at(29)), 0);
        assert_eq!(end.deadline(), Some((at(30), Timer::Refresh)));
        assert_eq!(end.skip_refreshes(at(3001)), 2 * 100);
        assert_eq!(end.deadline(), Some((at(3030), Timer::Refresh)));
        assert_eq!(end.skip_refreshes(at(3001)), 0);
        assert_eq!(end.counters().update_fcs_sent, 0, "they are not sent");
        let mut again = Pair::up(end.config().clone(), end.config().clone());
        again.run_until(at(3001));
        assert_eq!(again.ends[0].counters().update_fcs_sent, 200, "this is how many there are");
    }
}

#[test]
fn ports_without_refreshes_leave_nothing_out() {
    let mut without = slow();
    without.fc.refresh = None;
    for config in [without, Config { flow_control: FlowControl::DropAndReplay, ..slow() }] {
        let mut pair = Pair::up(config.clone(), config);
        assert_eq!(pair.ends[0].skip_refreshes(at(1_000_000)), 0);
        assert_eq!(pair.ends[0].deadline(), None);
    }
}

fn traffic(pair: &mut Pair, writes: u32, reads: u32) {
    for handle in 0..writes {
        pair.send((handle % 2) as usize, handle, write(8));
    }
    for handle in 0..reads {
        pair.send(0, 100 + handle, read());
    }
    pair.run_for(Duration::from_us(20));
    for handle in 0..writes {
        pair.release(1 - (handle % 2) as usize, write(8));
    }
    for _ in 0..reads {
        pair.release(1, read());
    }
    pair.run_for(Duration::from_us(20));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// Traffic, rest with or without refreshes, traffic: the counts are those of all refreshes, the phases too, and so are the credits.
    #[test]
    fn skipped_refreshes_leave_later_traffic_unchanged(writes in 0u32..8, reads in 0u32..6, idle in 60u64..3000, flit: bool) {
        let config = if flit { flits() } else { slow() };
        let mut skipped = [0; 2];
        let mut run = |skip: bool| {
            let mut pair = Pair::up(config.clone(), config.clone());
            traffic(&mut pair, writes, reads);
            while !pair.is_quiet() {
                pair.run_for(Duration::from_ns(500));
            }
            let until = at(50 + idle);
            if skip {
                assert_eq!(rests(&pair), [true, true]);
                skipped = pair.ends.each_mut().map(|end| end.skip_refreshes(until));
                pair.now = until;
            } else {
                pair.run_until(until);
            }
            let due = pair.ends.each_ref().map(|end| end.deadline());
            let sent = pair.ends.each_ref().map(|end| end.counters().update_fcs_sent);
            traffic(&mut pair, writes, reads);
            let credits = [FcClass::Posted, FcClass::NonPosted, FcClass::Completion]
                .map(|class| pair.ends.each_ref().map(|end| end.credits(Vc::ZERO, class)));
            let delivered = pair.ends.each_ref().map(|end| end.counters().tlps_received);
            (due, sent, credits, delivered)
        };
        let (with, without) = (run(true), run(false));
        for (side, skipped) in skipped.into_iter().enumerate() {
            prop_assert!((with.1[side] + skipped).abs_diff(without.1[side]) <= 2, "one per class");
            let late = |due: Option<(Time, Timer)>| due.expect("a refresh").0;
            prop_assert!(late(with.0[side]).saturating_since(late(without.0[side])) <= REFRESH);
        }
        prop_assert_eq!(with.2, without.2);
        prop_assert_eq!(with.3, without.3);
    }
}
