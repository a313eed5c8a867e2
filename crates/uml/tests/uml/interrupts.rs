//! Interrupts: a buffer is filled, the kernel is called, asks for the time and for leave to run, answers, and runs.

use crate::dialogue::{Dialogue, GET, REQUEST, Said};
use crate::ring::Part;
use crate::script::Script;
use tlplab_uml::{Interrupt, Machine};
use tlplab_units::{Duration, Time};

const CALL: Said = Said::Call { queue: 1 };
const BELL: Said = Said::Answer { request: 35, number: 0 };

fn message(data: u32) -> Interrupt {
    Interrupt::Message { data }
}

/// `struct virtio_pcidev_msg` of a message: operation 7, size 4, the data.
fn written(data: u32) -> Vec<u8> {
    let mut bytes = vec![7, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend(data.to_le_bytes());
    bytes
}

/// The kernel hears the call: it asks for the time, for leave to run at once, and answers.
fn hears_the_call(d: &mut Dialogue, now: u64) {
    let sequence = d.calendar(GET, u64::MAX).expect("GET");
    assert_eq!(d.said(), [Said::Ack { sequence, time: now }]);
    let sequence = d.calendar(REQUEST, now).expect("REQUEST");
    assert_eq!(d.said(), [Said::Ack { sequence, time: 0 }]);
    assert!(!d.guest.waits());
    d.answer_call(0).expect("an answer");
    assert_eq!(d.said(), []);
    assert!(d.guest.waits());
}

#[test]
fn an_interrupt_ends_a_wait() {
    let mut d = Dialogue::up(Script::default().interrupt(Time::from_fs(2_500_001), message(0xBEEF)));
    d.sleep(1000);
    d.advance().expect("an interrupt");
    assert_eq!(d.said(), [CALL]);
    assert_eq!(d.machine.now(), Time::from_fs(3_000_000), "the clock has whole nanoseconds");
    assert_eq!(d.taken_interrupts(), [written(0xBEEF)]);
    hears_the_call(&mut d, 3);
    d.advance().expect("leave");
    assert_eq!(d.said(), [Said::Run { sequence: 1, time: 3 }]);
    d.ack(1);
    // The rest of its sleep.
    d.interrupts.offer(&mut d.memory, &[Part::Room(64)]);
    d.bell(1).expect("a buffer");
    assert_eq!(d.said(), [BELL]);
    d.sleep(1000);
    d.advance().expect("time passes");
    assert_eq!(d.said(), [Said::Run { sequence: 2, time: 1000 }]);
    assert!(d.taken_interrupts().is_empty());
}

#[test]
fn a_wire_is_an_interrupt_without_data() {
    let mut d = Dialogue::up(Script::default().interrupt(Time::from_fs(7), Interrupt::Wire));
    d.sleep(1000);
    d.advance().expect("an interrupt");
    assert_eq!(d.said(), [CALL]);
    assert_eq!(d.taken_interrupts(), [[6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].to_vec()]);
}

#[test]
fn an_interrupt_at_the_requested_time_comes_first() {
    let mut d = Dialogue::up(Script::default().interrupt(Time::from_fs(10_000_000), message(1)));
    d.sleep(10);
    d.advance().expect("an interrupt");
    assert_eq!(d.said(), [CALL]);
    hears_the_call(&mut d, 10);
    d.advance().expect("leave");
    assert_eq!(d.said(), [Said::Run { sequence: 1, time: 10 }]);
}

/// The processor is stalled: it takes no interrupt until the read is over and it waits.
#[test]
fn an_interrupt_during_a_read_comes_after_it() {
    let script = Script::new([Duration::from_ns(500)]);
    let mut d = Dialogue::up(script.interrupt(Time::from_fs(100_000_000), message(5)));
    d.offer_read(3, 0x1000, 4);
    d.bell(0).expect("a bell");
    assert_eq!(d.said(), [Said::Run { sequence: 1, time: 500 }]);
    assert!(d.taken_interrupts().is_empty());
    d.ack(1);
    assert_eq!(d.said(), [BELL]);
    assert!(d.done().is_some());
    d.sleep(9999);
    d.advance().expect("an interrupt");
    assert_eq!(d.said(), [CALL]);
    assert_eq!(d.taken_interrupts(), [written(5)]);
    hears_the_call(&mut d, 500);
    d.advance().expect("leave");
    assert_eq!(d.said(), [Said::Run { sequence: 2, time: 500 }]);
}

/// Buffers for four: the others wait for buffers, and none is lost.
#[test]
fn more_interrupts_than_buffers() {
    let mut script = Script::new([Duration::from_ns(100)]);
    for number in 0..10 {
        script = script.interrupt(Time::from_fs(number), message(number as u32));
    }
    let mut d = Dialogue::up(script);
    d.offer_read(3, 0x1000, 4);
    d.bell(0).expect("a bell");
    d.ack(1);
    d.said();
    let mut taken = Vec::new();
    for some in [4, 4, 2] {
        d.sleep(5000);
        d.advance().expect("interrupts");
        assert_eq!(d.said(), [CALL]);
        let new = d.taken_interrupts();
        assert_eq!(new.len(), some);
        taken.extend(new);
        hears_the_call(&mut d, 100);
        d.advance().expect("leave");
        let said = d.said();
        assert!(matches!(said[..], [Said::Run { time: 100, .. }]), "{said:?}");
        for _ in 0..some {
            d.interrupts.offer(&mut d.memory, &[Part::Room(64)]);
        }
        d.bell(1).expect("buffers");
        d.said();
    }
    assert_eq!(taken, (0..10).map(written).collect::<Vec<_>>());
    d.sleep(5000);
    d.advance().expect("time passes");
    assert!(matches!(d.said()[..], [Said::Run { time: 5000, .. }]));
}

/// Without a buffer an interrupt waits, and the kernel's timer still comes.
#[test]
fn an_interrupt_without_a_buffer_does_not_end_a_wait() {
    let mut script = Script::default();
    for number in 0..5 {
        script = script.interrupt(Time::from_fs(1_000_000 * (number + 1)), message(number as u32));
    }
    let mut d = Dialogue::up(script);
    for number in 0..4 {
        d.sleep(100);
        d.advance().expect("an interrupt");
        assert_eq!(d.said(), [CALL]);
        assert_eq!(d.taken_interrupts(), [written(number)]);
        hears_the_call(&mut d, u64::from(number) + 1);
        d.advance().expect("leave");
        d.said();
    }
    d.sleep(100);
    for _ in 0..2 {
        d.advance().expect("time passes");
    }
    assert_eq!(d.said(), [Said::Run { sequence: 5, time: 100 }]);
    d.interrupts.offer(&mut d.memory, &[Part::Room(64)]);
    d.sleep(200);
    d.advance().expect("an interrupt");
    assert_eq!(d.said(), [CALL]);
    assert_eq!(d.taken_interrupts(), [written(4)]);
}

#[test]
fn a_kernel_that_sleeps_for_ever_is_woken_by_an_interrupt() {
    let mut d = Dialogue::up(Script::default().interrupt(Time::from_fs(9_000_000), message(3)));
    d.sleep(i64::MAX as u64);
    d.advance().expect("an interrupt");
    assert_eq!(d.said(), [CALL]);
    hears_the_call(&mut d, 9);
    d.advance().expect("leave");
    assert_eq!(d.said(), [Said::Run { sequence: 1, time: 9 }]);
}

/// Before the kernel has its queue of interrupts, there is nobody who would hear one.
#[test]
fn an_interrupt_before_its_queue_waits() {
    let mut d = Dialogue::bare(Script::default().interrupt(Time::from_fs(1_000_000), message(3)));
    d.sleep(50);
    for _ in 0..2 {
        d.advance().expect("time passes");
    }
    assert_eq!(d.said(), [Said::Run { sequence: 1, time: 50 }]);
    d.set_up(1, 4).expect("a queue");
    d.interrupts.offer(&mut d.memory, &[Part::Room(20)]);
    d.said();
    d.sleep(60);
    d.advance().expect("an interrupt");
    assert_eq!(d.said(), [CALL]);
    assert_eq!(d.taken_interrupts(), [written(3)]);
}

/// Somebody has pressed a key: the kernel is called without an interrupt, runs, and sleeps on.
#[test]
fn a_kernel_that_waits_is_woken() {
    let mut d = Dialogue::up(Script::default());
    d.guest.wake();
    assert_eq!(d.said(), [], "it runs");
    d.machine.advance(Time::from_fs(7_000_000)).expect("time passes");
    d.sleep(1000);
    d.guest.wake();
    d.guest.wake();
    assert_eq!(d.said(), [CALL]);
    assert!(d.taken_interrupts().is_empty());
    hears_the_call(&mut d, 7);
    d.advance().expect("leave");
    assert_eq!(d.said(), [Said::Run { sequence: 1, time: 7 }]);
    d.sleep(1000);
    d.advance().expect("time passes");
    assert_eq!(d.said(), [Said::Run { sequence: 2, time: 1000 }]);
}

/// Nobody would hear it.
#[test]
fn a_kernel_without_a_queue_of_interrupts_is_not_woken() {
    let mut d = Dialogue::bare(Script::default());
    d.sleep(1000);
    d.guest.wake();
    assert_eq!(d.said(), []);
    assert!(d.guest.waits());
}
