//! What an end point says of itself while it works, and settings that change under way.

use super::*;
use tlplab_nettlp::endpoint::AnswerToken;
use tlplab_transaction::RequestPolicy;

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

/// Transfers are cut where the configuration says: at multiples of MRRS and MPS, or every so many bytes.
#[test]
fn transfers_are_cut_by_the_configured_policy() {
    for (split, expected) in
        [(RequestPolicy::Aligned, [112, 16, 48, 16]), (RequestPolicy::Packed, [128, 0, 64, 0])]
    {
        let mut device = Device::new(EndpointConfig { split, ..config() });
        device.read(us(0), 1, 0x1040, 512).unwrap();
        device.write(us(0), 2, 0x2040, vec![7; 256].into()).unwrap();
        let lengths: Vec<u32> = sent(&mut device, us(0)).iter().map(|tlp| tlp.dw).collect();
        assert_eq!(lengths, expected.into_iter().filter(|dw| *dw > 0).collect::<Vec<_>>());
    }
}

/// Lanes share out all tags, in order and by at most one more or less, and all ports of the host's requests, in turn.
#[test]
fn lanes_share_out_tags_and_ports() {
    for (tags, lanes) in
        [(0..=255u8, 1u8), (0..=255, 16), (0..=255, 3), (16..=35, 3), (200..=204, 5), (7..=7, 1)]
    {
        let whole = EndpointConfig { tags: tags.clone(), host_ports: 0x7FFE, ..config() };
        let shares: Vec<EndpointConfig> = (0..lanes).map(|lane| whole.lane(lane, lanes)).collect();
        let lengths = shares.iter().map(|share| share.tags.len());
        let (least, most) = (lengths.clone().min().unwrap(), lengths.max().unwrap());
        assert!(least > 0 && most - least <= 1, "{tags:?} for {lanes}");
        assert!(shares.iter().flat_map(|share| share.tags.clone()).eq(tags.clone()), "{tags:?} for {lanes}");
        for port in 0..16 {
            let lane = |lane: u8| lane == port % lanes && (1..15).contains(&port);
            let has = |share: &EndpointConfig| share.host_ports >> port & 1 == 1;
            assert!(shares.iter().map(has).eq((0..lanes).map(lane)), "port {port} of {lanes}");
        }
        let mut ports: Vec<u16> = shares.iter().flat_map(EndpointConfig::ports).collect();
        ports.sort();
        let host = (0x4001..0x400F).collect::<Vec<u16>>();
        assert_eq!(ports, [tags.map(|tag| 0x3000 + u16::from(tag)).collect(), host].concat());
    }
}

/// A lane needs a tag, and a port of the host's requests.
#[test]
fn lanes_without_a_tag_or_a_port_are_refused() {
    for (tags, lane, lanes, possible) in [
        (0..=255, 15, 16, true),
        (0..=255, 16, 16, false),
        (0..=255, 16, 17, false),
        (0..=255, 0, 17, false),
        (0..=3, 3, 4, true),
        (0..=3, 0, 5, false),
    ] {
        let share = std::panic::catch_unwind(|| EndpointConfig { tags, ..config() }.lane(lane, lanes));
        assert_eq!(share.is_ok(), possible, "lane {lane} of {lanes}");
    }
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

/// Refusals that wait to be sent are bounded, too: what is beyond gets no answer, and is counted.
#[test]
fn refusals_without_room_are_counted() {
    let mut device = Device::new(with_window(0x8000, 0x1000));
    for tag in 0..1027u32 {
        assert_eq!(host_reads(&mut device, tag as u8, 0x1000), None);
    }
    assert_eq!((device.counters().refused, device.counters().overload), (1027, 3));
    assert_eq!(sent(&mut device, us(1)).len(), 1024);
}

/// A window holds a range if it holds its first and its last byte; of no bytes, their address.
#[test]
fn a_window_contains_ranges_up_to_its_last_byte() {
    let window = Window { base: 0x8000, size: 0x1000 };
    for (address, bytes, inside) in [
        (0x8000, 0x1000, true),
        (0x8000, 0x1001, false),
        (0x8001, 0x1000, false),
        (0x8FFF, 1, true),
        (0x8FFF, 2, false),
        (0x8FFF, 0, true),
        (0x9000, 0, false),
        (0x9000, 1, false),
        (0x7FFF, 0, false),
        (0x7FFF, 2, false),
        (0, 1, false),
        (u64::MAX, 2, false),
    ] {
        assert_eq!(window.contains(address, bytes), inside, "{bytes} B at {address:#x}");
    }
    assert!(Window::EVERYTHING.contains(0, u32::MAX) && Window::EVERYTHING.contains(u64::MAX - 1, 1));
    let end = Window { base: u64::MAX - 7, size: 8 };
    assert!(end.contains(u64::MAX, 1) && !end.contains(u64::MAX, 2) && !end.contains(u64::MAX - 8, 1));
}

/// The token of a read is one number that leads back to it: that of each part of each read, also where a place is used again.
#[test]
fn answer_tokens_are_numbers_that_lead_back() {
    let mut device = Device::new(with_window(0x8000, 0x1000));
    let mut seen = std::collections::BTreeMap::new();
    for _ in 0..3 {
        let mut tokens = Vec::new();
        for tag in 0..3 {
            deliver(&mut device, us(1), 0x4000 + u16::from(tag), &host_request(tag, 0x8000, 1, 0b0101, None));
            tokens.extend(std::iter::from_fn(|| device.poll_event()).map(|event| match event {
                Event::HostRead(read) => read.token,
                other => panic!("{other:?}"),
            }));
        }
        for token in tokens {
            assert_eq!(AnswerToken::from_bits(token.to_bits()), token);
            assert_eq!(seen.insert(token.to_bits(), token), None);
            device.answer(AnswerToken::from_bits(token.to_bits()), Ok(vec![1].into())).unwrap();
        }
        assert_eq!(sent(&mut device, us(1)).len(), 3);
    }
    assert_eq!(seen.len(), 18);
}
