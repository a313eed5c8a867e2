//! The kernel sleeps, and time passes.

use crate::dialogue::{Dialogue, GET, REQUEST, Said, WAIT};
use crate::script::{Broken, Script};
use tlplab_uml::{Failure, Machine};
use tlplab_units::Time;

#[test]
fn a_kernel_waits_until_the_time_that_it_requested() {
    let mut d = Dialogue::up(Script::default());
    d.sleep(4_000_000);
    d.advance().expect("time passes");
    assert_eq!(d.said(), [Said::Run { sequence: 1, time: 4_000_000 }]);
    assert_eq!(d.machine.now(), Time::from_fs(4_000_000_000_000));
    assert!(!d.guest.waits());
    let sequence = d.calendar(GET, 0).expect("GET");
    assert_eq!(d.said(), [Said::Ack { sequence, time: 4_000_000 }]);
}

#[test]
fn only_the_latest_request_counts() {
    let mut d = Dialogue::up(Script::default());
    for until in [300, 100, 200] {
        d.calendar(REQUEST, until).expect("a request");
    }
    d.calendar(WAIT, 0).expect("it waits");
    d.said();
    d.advance().expect("time passes");
    assert_eq!(d.said(), [Said::Run { sequence: 1, time: 200 }]);
}

/// A timer that was due while the processor waited for a device.
#[test]
fn a_request_for_the_past_is_granted_at_once() {
    let mut d = Dialogue::up(Script::default());
    d.machine.advance(Time::from_fs(5_000_000_000)).expect("time passes");
    for until in [5000, 4999, 0] {
        d.sleep(until);
        d.advance().expect("leave");
        let said = d.said();
        assert!(matches!(said[..], [Said::Run { time: 5000, .. }]), "{said:?}");
    }
}

#[test]
fn leaves_to_run_are_numbered() {
    let mut d = Dialogue::up(Script::default());
    for number in 1..100 {
        d.sleep(u64::from(number) * 10);
        d.advance().expect("time passes");
        assert_eq!(d.said(), [Said::Run { sequence: number, time: u64::from(number) * 10 }]);
    }
}

#[test]
fn a_kernel_that_sleeps_for_ever_is_asleep() {
    // What the kernel says when it has no timer, and times that the simulator does not have.
    let (for_ever, beyond) = (Failure::Asleep, Failure::EndOfTime);
    for (until, failure) in [
        (i64::MAX as u64, for_ever),
        (u64::MAX, for_ever),
        (1 << 62, beyond),
        (u64::MAX / 1_000_000 + 1, beyond),
    ] {
        let mut d = Dialogue::up(Script::default());
        d.sleep(until);
        assert_eq!(d.advance(), Err(failure));
        assert_eq!(d.machine.now(), Time::ZERO);
        assert_eq!(d.said(), []);
    }
}

/// The last nanosecond that the simulator has.
#[test]
fn a_kernel_may_wait_for_five_hours() {
    let until = u64::MAX / 1_000_000;
    let mut d = Dialogue::up(Script::default());
    d.sleep(until);
    d.advance().expect("time passes");
    assert_eq!(d.said(), [Said::Run { sequence: 1, time: until }]);
}

#[test]
fn a_failing_machine_is_reported() {
    let mut d = Dialogue::up(Script::default());
    d.sleep(10);
    d.machine.broken = true;
    assert_eq!(d.advance(), Err(Failure::Machine(Broken)));
    let mut d = Dialogue::up(Script::default());
    d.offer_read(3, 0, 4);
    d.machine.broken = true;
    assert_eq!(d.bell(0), Err(Failure::Machine(Broken)));
    assert_eq!(d.done(), None);
}

/// As far as the wall clock has come.
#[test]
fn a_machine_goes_no_further_than_its_limit() {
    let mut d = Dialogue::up(Script::default());
    d.sleep(1000);
    assert_eq!(d.guest.wanted(), Time::from_fs(1_000_000_000));
    for limit in [300, 300, 999] {
        let limit = Time::from_fs(limit * 1_000_000);
        d.guest.advance(&mut d.machine, &mut d.memory, limit).expect("it goes on");
        assert_eq!((d.machine.now(), d.guest.waits()), (limit, true));
        assert_eq!(d.said(), []);
    }
    d.guest.advance(&mut d.machine, &mut d.memory, Time::from_fs(5_000_000_000)).expect("it goes on");
    assert_eq!(d.said(), [Said::Run { sequence: 1, time: 1000 }]);
    d.sleep(u64::MAX);
    assert_eq!(d.guest.wanted(), Time::NEVER);
    // Who sleeps for ever may yet be woken.
    d.guest.advance(&mut d.machine, &mut d.memory, Time::from_fs(2_000_000_000)).expect("it goes on");
    assert_eq!(d.machine.now(), Time::from_fs(2_000_000_000));
}
