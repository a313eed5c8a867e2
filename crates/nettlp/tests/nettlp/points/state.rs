//! What an end point says of itself while it works, and settings that change under way.

use super::*;
use tlplab_nettlp::endpoint::AnswerToken;

/// The host reads a doubleword at `address`.
fn host_reads(device: &mut Device, tag: u8, address: u64) -> Option<AnswerToken> {
    deliver(device, us(1), 0x4000 + u16::from(tag & 15), &host_request(tag, address, 1, 0x0F, None));
    match device.poll_event() {
        Some(Event::HostRead(read)) => Some(read.token),
        _ => None,
    }
}

/// Queued, in flight, resting, free: each tag is in one of these, and only an end point with nothing in any of them is idle.
#[test]
fn each_tag_is_queued_in_flight_resting_or_free() {
    let mut device = Device::new(EndpointConfig { tags: 4..=6, ..config() });
    let state = |device: &Device| {
        (device.queued(), device.in_flight(), device.free_tags(), device.resting_tags(), device.is_idle())
    };
    assert_eq!(state(&device), (0, 0, 3, 0, true));
    device.read(us(0), 1, 0x1000, 4).unwrap();
    assert_eq!(state(&device), (1, 0, 3, 0, false));
    device.read(us(0), 2, 0x2000, 4).unwrap();
    assert_eq!(sent(&mut device, us(0)).len(), 2);
    assert_eq!(state(&device), (0, 2, 1, 0, false));
    Cpl::of_memory(4, 0x1000, 4, 4).deliver(&mut device, us(1));
    assert_eq!(state(&device), (0, 1, 2, 0, false));
    device.handle_timeout(us(100));
    // The tag rests: its completion may still come.
    assert_eq!(state(&device), (0, 0, 2, 1, false));
    assert_eq!(results(&mut device).len(), 2);
    assert_eq!(state(&device), (0, 0, 2, 1, true));
}

/// With events to be told, or a read of the host to be answered, it is not idle, though it has nothing in flight.
#[test]
fn open_host_reads_and_events_are_work() {
    let mut device = Device::new(with_window(0x8000, 0x1000));
    let first = host_reads(&mut device, 1, 0x8000).expect("a read");
    let second = host_reads(&mut device, 2, 0x8004).expect("another");
    assert_eq!((device.host_reads_open(), device.is_idle()), (2, false));
    for (token, open) in [(first, 1), (second, 0)] {
        device.answer(token, Ok(vec![0; 4].into())).unwrap();
        assert_eq!(sent(&mut device, us(2)).len(), 1);
        assert_eq!((device.host_reads_open(), device.is_idle()), (open, open == 0));
    }
    deliver(&mut device, us(3), 0x4003, &host_request(3, 0x8000, 1, 0x0F, Some(&[1; 4])));
    assert!(!device.is_idle(), "a write of the host waits to be told");
    assert!(matches!(device.poll_event(), Some(Event::HostWrite(_))));
    assert!(device.is_idle());
}

/// Software moves the function, its limits and its windows: what is submitted from then on obeys.
#[test]
fn a_function_is_configured_anew() {
    let mut device = Device::new(with_window(0x8000, 0x1000));
    let mps = Mps::new(128).unwrap();
    device.reconfigure(Bdf(0x2C08), mps, Mrrs::new(256).unwrap());
    device.read(us(0), 1, 0x1000, 512).unwrap();
    device.write(us(0), 2, 0x2000, vec![7; 256].into()).unwrap();
    let sent: Vec<(u16, u8, u32)> =
        sent(&mut device, us(0)).iter().map(|tlp| (tlp.requester, tlp.fmt_type, tlp.dw)).collect();
    assert_eq!(sent, [(0x2C08, 0, 64), (0x2C08, 0, 64), (0x2C08, 0x40, 32), (0x2C08, 0x40, 32)]);
    assert_eq!((device.config().requester, device.config().mps), (Bdf(0x2C08), mps));
    device.set_windows(vec![Window { base: 0x10_0000, size: 0x1000 }]);
    assert_eq!(host_reads(&mut device, 1, 0x8000), None);
    assert_eq!(device.counters().refused, 1);
    assert!(host_reads(&mut device, 2, 0x10_0FFC).is_some());
}

/// Other limits are those of requests that leave from then on; tags rest as long as is said.
#[test]
fn time_limits_change_under_way() {
    let mut device = Device::new(EndpointConfig { tags: 0..=0, ..config() });
    device.set_time_limits(Duration::from_us(20), Duration::from_us(5));
    device.read(us(0), 1, 0x1000, 4).unwrap();
    sent(&mut device, us(0));
    assert_eq!(device.deadline(), Some(us(20)));
    device.handle_timeout(us(20));
    assert!(matches!(error(&mut device), CompletionError::Timeout { .. }));
    device.read(us(20), 2, 0x1000, 4).unwrap();
    assert_eq!((sent(&mut device, us(24)).len(), device.deadline()), (0, Some(us(25))), "the tag rests");
    device.handle_timeout(us(25));
    assert_eq!(sent(&mut device, us(25)).len(), 1);
}

/// Lanes of one device give their datagrams numbers of one sequence.
#[test]
fn lanes_number_together() {
    let numbered = EndpointConfig { numbered: true, ..config() };
    let mut lanes = [0, 1].map(|lane| Device::new(numbered.lane(lane, 2)));
    let [first, second] = &mut lanes;
    second.count_with(first);
    let mut numbers = Vec::new();
    for turn in 0..4 {
        let lane = &mut lanes[turn % 2];
        lane.read(us(0), 1, 0x1000, 4).unwrap();
        numbers.extend(sent_bytes(lane, us(0)).iter().map(|(_, udp)| u16::from_be_bytes([udp[0], udp[1]])));
    }
    assert_eq!(numbers, [1, 2, 3, 4]);
}

/// A request of the host at another port than its tag's, at one that this lane does not answer, or beyond what may wait, is counted once and not taken.
#[test]
fn host_requests_that_are_not_taken_are_counted() {
    let host_writes = |device: &mut Device, port: u16, tag: u8| {
        deliver(device, us(1), port, &host_request(tag, 0x8000, 1, 0x0F, Some(&[1; 4])));
    };
    let mut device = Device::new(EndpointConfig { host_ports: 0b10, ..with_window(0x8000, 0x1000) });
    for (port, tag) in [(0x4002, 1), (0x4001, 2), (0x4002, 2)] {
        host_writes(&mut device, port, tag);
    }
    assert_eq!((device.counters().wrong_port, device.counters().host_writes), (3, 0));
    for _ in 0..4098 {
        host_writes(&mut device, 0x4001, 1);
    }
    let counters = device.counters();
    assert_eq!((counters.wrong_port, counters.host_writes, counters.overload), (3, 4096, 2));
}
