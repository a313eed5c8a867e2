//! Answers to the host: not before what was written, and not held up by what is never answered.

use crate::raw::*;
use tlplab_device::Refusal;
use tlplab_nettlp::Engine;
use tlplab_nettlp::endpoint::*;
use tlplab_transaction::Payload;
use tlplab_units::{Bdf, Duration, Time};
use tlplab_wire::tlp::{Code, Repr};

const BASE: u64 = 0x8000;

fn device(tags: std::ops::RangeInclusive<u8>) -> Endpoint<u32> {
    Endpoint::new(EndpointConfig {
        windows: vec![Window { base: BASE, size: 0x1000 }],
        completion_timeout: Duration::from_us(100),
        numbered: false,
        tags,
        ..EndpointConfig::new(ADAPTER, Bdf(DEVICE))
    })
}

/// The host reads a doubleword.
fn ask(device: &mut Endpoint<u32>, now: Time, tag: u8, address: u64) {
    let port = 0x4000 + u16::from(tag & 15);
    deliver(device, now, port, &host_request(tag, address, 1, 0x0F, None));
}

fn asked(device: &mut Endpoint<u32>) -> Option<AnswerToken> {
    match device.poll_event() {
        Some(Event::HostRead(read)) => Some(read.token),
        _ => None,
    }
}

/// PCIe 5.0 table 2-39: no completion passes a posted request. A driver reads a register to know that the device's writes are there.
#[test]
fn an_answer_does_not_pass_writes() {
    let mut device = device(0..=0);
    // The only tag is taken: reads wait, writes do not.
    device.read(us(0), 0, 0, 4).unwrap();
    assert_eq!(sent(&mut device, us(0)).len(), 1);
    device.write(us(0), 1, 0x1000, vec![1; 1000].into()).unwrap();
    device.read(us(0), 2, 0, 4).unwrap();
    ask(&mut device, us(1), 3, BASE);
    let token = asked(&mut device).expect("a read");
    device.answer(token, Ok(vec![0; 4].into())).unwrap();
    device.write(us(1), 4, 0x2000, vec![1; 4].into()).unwrap();
    let kinds: Vec<u8> = sent(&mut device, us(1)).iter().map(|tlp| tlp.fmt_type).collect();
    assert_eq!(kinds, [0x40, 0x40, 0x40, 0x40, 0x4A, 0x40], "four writes, the answer, a later write");
}

/// Naive: a place for each read until it is answered, so that a device that drops some is silent one day.
#[test]
fn a_device_that_never_answers_is_asked_on() {
    let mut device = device(0..=255);
    let mut ignored = Vec::new();
    for number in 0..2000 {
        ask(&mut device, us(1000), number as u8, BASE);
        ignored.extend(asked(&mut device));
    }
    assert_eq!((ignored.len(), device.counters().overload), (1024, 976));
    // What is refused needs no place.
    ask(&mut device, us(1001), 1, 0);
    assert_eq!(sent(&mut device, us(1001)).len(), 1, "UR");
    ask(&mut device, us(1400), 1, BASE);
    assert_eq!(asked(&mut device), None, "the host may still wait");
    device.rebase(Duration::from_us(300));
    ask(&mut device, us(1101), 2, BASE);
    let token = asked(&mut device).expect("there is room again");
    assert_eq!(device.counters().unanswered, 1024);
    device.answer(token, Ok(Payload::from(vec![7; 4]))).unwrap();
    assert_eq!(sent(&mut device, us(1101))[0].fmt_type, 0x4A);
    assert_eq!(device.answer(ignored[0], Err(Refusal::CompleterAbort)), Err(AnswerError::GivenUp));
    assert!(device.is_idle());
}

/// While there is room, a read of the host waits for its answer as long as the device likes.
#[test]
fn a_read_is_not_given_up_while_there_is_room() {
    let mut device = device(0..=255);
    let mut tokens = Vec::new();
    for tag in 0..3 {
        ask(&mut device, us(1 + 1_000_000 * u64::from(tag)), tag, BASE);
        tokens.extend(asked(&mut device));
    }
    assert_eq!((tokens.len(), device.counters().unanswered, device.host_reads_open()), (3, 0, 3));
    for token in tokens {
        device.answer(token, Ok(vec![7; 4].into())).unwrap();
    }
    assert_eq!(sent(&mut device, us(3_000_000)).len(), 3);
}

/// Every port that a lane sends from is its own.
#[test]
fn messages_leave_by_a_port_of_the_lane() {
    let mut device = device(64..=127);
    let message = Repr::message(Bdf(DEVICE), Code::AssertIntA).unwrap();
    device.requester().request(us(0), 0, 1, message, None).unwrap();
    device.write(us(0), 2, 0x1000, vec![1; 4].into()).unwrap();
    let sent = sent_bytes(&mut device, us(0));
    assert_eq!(sent.iter().map(|(port, _)| *port).collect::<Vec<_>>(), [0x3040, 0x3040]);
    assert_eq!(sent[1].1[6 + 6], 0x40, "a write has the tag of its port");
}
