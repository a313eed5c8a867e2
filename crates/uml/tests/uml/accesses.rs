//! Commands, what comes of them, and the time they take.

use crate::dialogue::{Dialogue, NO_REPLY, REQUEST, Said, command, longs};
use crate::ring::Part;
use crate::script::Script;
use tlplab_uml::Machine;
use tlplab_uml::pcidev::Access;
use tlplab_units::{Duration, Time};

const BELL: Said = Said::Answer { request: 35, number: 0 };

fn up(fs: impl IntoIterator<Item = u64>) -> Dialogue {
    Dialogue::up(Script::new(fs.into_iter().map(Duration::from_fs)))
}

fn accesses(d: &Dialogue) -> Vec<Access> {
    d.machine.done.iter().map(|(access, _)| access.clone()).collect()
}

#[test]
fn configuration_is_read_with_every_size() {
    let mut d = up([]);
    let offset = 2 << 20 | 3 << 15 | 1 << 12 | 0x44;
    for (number, bytes) in [1, 2, 4, 8].into_iter().enumerate() {
        let head = d.offer_read(1, offset, bytes);
        d.bell(0).expect("a bell");
        assert_eq!(d.done(), Some((head, Script::data(number, bytes))));
        let read = Access::ConfigRead { offset: offset as u32, bytes };
        assert_eq!(accesses(&d)[number], read);
    }
}

/// `struct { hdr; u8 data[8]; }` goes out whole, whatever the size.
#[test]
fn configuration_is_written_with_every_size() {
    let mut d = up([]);
    for (number, bytes) in [1u32, 2, 4, 8].into_iter().enumerate() {
        let data = [1, 2, 3, 4, 5, 6, 7, 8];
        let head = d.offer(&[Part::Sent(command(2, 0, bytes, 0x10_0004, &data))]);
        d.bell(0).expect("a bell");
        assert_eq!(d.done(), Some((head, Vec::new())));
        let data = data[..bytes as usize].to_vec();
        assert_eq!(accesses(&d)[number], Access::ConfigWrite { offset: 0x10_0004, data });
    }
}

#[test]
fn memory_is_read() {
    let mut d = up([]);
    for (number, bytes) in [1, 3, 64, 4096].into_iter().enumerate() {
        let head = d.offer_read(3, 0x40_1234_5678, bytes);
        d.bell(0).expect("a bell");
        assert_eq!(d.done(), Some((head, Script::data(number, bytes))));
        assert_eq!(accesses(&d)[number], Access::MemoryRead { address: 0x40_1234_5678, bytes });
    }
}

/// What is read goes into the parts of a buffer one after the other.
#[test]
fn a_read_fills_several_parts() {
    let mut d = up([]);
    let read = command(3, 7, 100, 0x1000, &[]);
    let head = d.offer(&[Part::Sent(read), Part::Room(1), Part::Room(59), Part::Room(40)]);
    d.bell(0).expect("a bell");
    assert_eq!(d.done(), Some((head, Script::data(0, 100))));
}

/// Short data follow the command, long data are a part of their own.
#[test]
fn memory_is_written() {
    let mut d = up([]);
    let data: Vec<u8> = (0..200).map(|at| at as u8 ^ 0x5A).collect();
    d.offer(&[Part::Sent(command(4, 7, 8, 0x2000, &data[..8]))]);
    d.offer(&[Part::Sent(command(4, 7, 200, 0x3000, &[])), Part::Sent(data.clone())]);
    d.offer(&[
        Part::Sent(command(4, 7, 200, 0x3000, &data[..10])),
        Part::Sent(data[10..11].to_vec()),
        Part::Sent(data[11..].to_vec()),
    ]);
    d.bell(0).expect("a bell");
    let write = |address, data: &[u8]| Access::MemoryWrite { address, data: data.to_vec() };
    assert_eq!(accesses(&d), [write(0x2000, &data[..8]), write(0x3000, &data), write(0x3000, &data)]);
    assert_eq!(std::iter::from_fn(|| d.done()).count(), 3);
}

#[test]
fn memory_is_set() {
    let mut d = up([]);
    d.offer(&[Part::Sent(command(5, 7, 33, 0x2001, &[0x77]))]);
    d.bell(0).expect("a bell");
    assert_eq!(accesses(&d), [Access::MemoryWrite { address: 0x2001, data: vec![0x77; 33] }]);
}

#[test]
fn a_bell_without_a_command_is_answered() {
    let mut d = up([5_000_000]);
    d.bell(0).expect("a bell");
    assert_eq!(d.said(), [BELL]);
    assert!(accesses(&d).is_empty());
}

/// The clock first, then the bell: the kernel polls the bell's socket before the calendar's.
#[test]
fn a_read_takes_its_time() {
    let mut d = up([713_000_000]);
    d.offer_read(3, 0x1000, 4);
    d.bell(0).expect("a bell");
    assert_eq!(d.said(), [Said::Run { sequence: 1, time: 713 }]);
    // What was not sent needs no answer; neither does the kernel's word about something else.
    d.ack(0);
    assert_eq!(d.said(), []);
    let sequence = d.calendar(REQUEST, 5000).expect("a request");
    assert_eq!(d.said(), [Said::Ack { sequence, time: 0 }]);
    d.ack(1);
    assert_eq!(d.said(), [BELL]);
    d.ack(1);
    assert_eq!(d.said(), []);
}

/// A bell may be heard before the answer to the RUN that came before it.
#[test]
fn the_answer_to_an_earlier_run_does_not_answer_the_bell() {
    let mut d = up([10_000_000, 20_000_000]);
    d.sleep(1000);
    d.advance().expect("time passes");
    assert_eq!(d.said(), [Said::Run { sequence: 1, time: 1000 }]);
    d.offer_read(3, 0x1000, 4);
    d.bell(0).expect("a bell");
    assert_eq!(d.said(), [Said::Run { sequence: 2, time: 1010 }]);
    d.ack(1);
    assert_eq!(d.said(), []);
    d.ack(2);
    assert_eq!(d.said(), [BELL]);
}

#[test]
fn fractions_of_a_nanosecond_are_rounded_up() {
    let mut d = up([1, 999_999, 1_000_000, 1_500_001]);
    for (sequence, time) in [(1, 1), (2, 2), (3, 3), (4, 5)] {
        d.offer_read(1, 0, 4);
        d.bell(0).expect("a bell");
        assert_eq!(d.said(), [Said::Run { sequence, time }]);
        assert_eq!(d.machine.now(), Time::from_fs(time * 1_000_000));
        d.ack(sequence);
        assert_eq!(d.said(), [BELL]);
    }
}

/// An interrupt on the way to the next nanosecond does not end the way.
#[test]
fn interrupts_within_a_nanosecond_do_not_stop_the_clock() {
    let wire = tlplab_uml::Interrupt::Wire;
    let script = Script::new([Duration::from_fs(100)])
        .interrupt(Time::from_fs(300_000), wire)
        .interrupt(Time::from_fs(700_000), wire);
    let mut d = Dialogue::up(script);
    d.offer_read(1, 0, 4);
    d.bell(0).expect("a bell");
    assert_eq!(d.said(), [Said::Run { sequence: 1, time: 1 }]);
    assert_eq!(d.machine.interrupts().len(), 2);
}

#[test]
fn a_posted_write_takes_no_time_if_it_leaves_at_once() {
    let mut d = up([0]);
    let head = d.offer(&[Part::Sent(command(4, 7, 4, 0x2000, &[1, 2, 3, 4]))]);
    d.bell(0).expect("a bell");
    assert_eq!(d.said(), [BELL]);
    assert_eq!(d.done(), Some((head, Vec::new())));
}

#[test]
fn commands_of_one_bell_are_carried_out_one_after_the_other() {
    let mut d = up([0, 400_000, 400_000, 0]);
    let heads = [
        d.offer(&[Part::Sent(command(4, 7, 4, 0x2000, &[1, 2, 3, 4]))]),
        d.offer_read(3, 0x1000, 8),
        d.offer(&[Part::Sent(command(5, 7, 4, 0x3000, &[9]))]),
        d.offer_read(1, 0, 2),
    ];
    d.bell(0).expect("a bell");
    // One RUN for all; the second begins where the first ended, within the nanosecond.
    assert_eq!(d.said(), [Said::Run { sequence: 1, time: 1 }]);
    let times: Vec<_> = d.machine.done.iter().map(|(_, over)| over.as_fs()).collect();
    assert_eq!(times, [0, 400_000, 800_000, 800_000]);
    let done: Vec<_> = std::iter::from_fn(|| d.done()).collect();
    assert_eq!(done.iter().map(|(head, _)| *head).collect::<Vec<_>>(), heads);
    assert_eq!(done[1].1, Script::data(1, 8));
    assert_eq!(done[3].1, Script::data(3, 2));
    d.ack(1);
    assert_eq!(d.said(), [BELL]);
}

/// Indices count without end: to 65536 and on.
#[test]
fn a_queue_goes_round_many_times() {
    let mut d = up([]);
    for number in 0..70_000 {
        let head = d.offer_read(3, number, 2);
        d.bell(0).expect("a bell");
        assert_eq!(d.done(), Some((head, Script::data(number as usize, 2))));
        d.said();
    }
}

/// The kernel asks for no answer before it has agreed to answers.
#[test]
fn a_bell_that_wants_no_answer_gets_none() {
    let mut d = up([7_000_000]);
    d.offer_read(3, 0, 2);
    d.device_with(35, NO_REPLY, &longs(&[0]), 0).expect("a bell");
    assert_eq!(d.said(), [Said::Run { sequence: 1, time: 7 }]);
    d.ack(1);
    assert_eq!(d.said(), []);
}

/// The bell's payload may say that there is no descriptor.
#[test]
fn a_bell_names_its_queue_in_eight_bits() {
    let mut d = up([]);
    d.offer_read(3, 0, 2);
    d.device(35, &longs(&[1 << 8])).expect("a bell");
    assert_eq!(d.said(), [BELL]);
    assert!(d.done().is_some());
}
