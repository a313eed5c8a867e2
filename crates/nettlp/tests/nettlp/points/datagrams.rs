//! Points about datagrams, and about end points beside each other.

use super::*;

/// Point 8. Naive: one flag stops every context of the process. An end point is a value: nothing is shared, and it goes where its thread goes.
#[test]
fn end_points_share_nothing() {
    fn moves<T: Send + 'static>(_: &T) {}
    let (mut one, mut other) = (Device::new(config()), Device::new(config()));
    moves(&one);
    for device in [&mut one, &mut other] {
        device.read(Time::ZERO, 1, 0x1000, 4).unwrap();
        assert_eq!(sent(device, Time::ZERO)[0].tag, 0);
    }
    one.cancel_all(us(1), |_| {});
    Cpl::of_memory(0, 0x1000, 4, 4).deliver(&mut other, us(2));
    assert_eq!(results(&mut other), [(1, Ok(bytes(0x1000, 4).into()))]);
    assert_eq!(results(&mut one), []);
}

/// Point 9. Naive: the NetTLP header is skipped, and a length that does not fit is believed.
#[test]
fn lost_duplicate_and_malformed_datagrams_are_counted() {
    let mut device = Device::new(config());
    let nobody = |sequence: u16| Cpl::of_memory(0, 0, 4, 4).numbered(sequence, u32::from(sequence) * 100);
    // Across the wrap: 65533, 65534, then 0 and 1 are missing, 3 before 2, 2 twice.
    for sequence in [65533, 65534, 65535, 3, 2, 2, 4] {
        nobody(sequence).deliver(&mut device, us(1));
    }
    let counters = device.counters();
    assert_eq!((counters.lost(), counters.reordered, counters.duplicates), (2, 1, 1));
    assert_eq!((counters.datagrams_in, counters.unexpected), (7, 6));
    // The same number with another time stamp is another datagram: the adapter began anew.
    nobody(4).numbered(4, 1).deliver(&mut device, us(1));
    assert_eq!(device.counters().duplicates, 1);

    device.read(us(2), 1, 0x1000, 64).unwrap();
    assert_eq!(sent(&mut device, us(2)).len(), 1);
    let good = Cpl::of_memory(0, 0x1000, 64, 64).numbered(5, 500).udp();
    let mut reserved = good.clone();
    reserved[6] = 0x4F; // no such type
    let damaged: [&[u8]; 5] =
        [&[], &good[..17], &good[..good.len() - 4], &[&good[..], &[0; 4]].concat(), &reserved];
    for payload in damaged {
        deliver(&mut device, us(2), 0x3000, payload);
    }
    let c = device.counters();
    assert_eq!(
        (c.malformed_header, c.malformed_truncated, c.malformed_too_long, c.malformed_field, c.malformed()),
        (2, 1, 1, 1, 5)
    );
    let from = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 99), 0x3000);
    device.handle_datagram(us(2), Datagram { from, port: 0x3000, payload: &good });
    assert_eq!((results(&mut device), device.counters().foreign_address), (vec![], 1));
    // None of them spoilt the good one, which has the number that the damaged had.
    deliver(&mut device, us(2), 0x3000, &good);
    assert_eq!(results(&mut device), [(1, Ok(bytes(0x1000, 64).into()))]);
}

/// Point 9. Naive: each lane sees the numbers of the others as lost.
#[test]
fn lanes_count_together() {
    let mut lanes: Vec<_> = (0..3).map(|lane| Device::new(config().lane(lane, 3))).collect();
    if let [first, others @ ..] = &mut lanes[..] {
        others.iter_mut().for_each(|other| other.count_with(first));
    }
    for number in 0..3000u32 {
        let sequence = 60_000u16.wrapping_add(number as u16);
        if number % 100 != 50 {
            // Every hundredth is lost.
            let lane = &mut lanes[number as usize % 3];
            let tag = *lane.config().tags.start();
            Cpl::of_memory(tag, 0, 4, 4).numbered(sequence, number + 1).deliver(lane, us(1));
        }
    }
    assert!(lanes[0].counters().lost() > 1900, "the others' numbers");
    let mut all = Counters::default();
    lanes.iter().for_each(|lane| all.add(&lane.counters()));
    assert_eq!((all.lost(), all.datagrams_in, all.unexpected, all.reordered), (30, 2970, 2970, 0));
    let ports: std::collections::BTreeSet<u16> =
        lanes.iter().flat_map(|lane| lane.config().ports()).collect();
    assert_eq!(ports.len(), 256 + 16, "every port belongs to one lane");
}

/// A network may double a request, and its answer then comes twice, the second time perhaps for another read under the same tag. The adapter
/// must be able to see it. Naive: sequence number and time stamp 0, always.
#[test]
fn datagrams_are_numbered() {
    let mut device = Device::new(EndpointConfig { numbered: true, ..config() });
    let header = |udp: &[u8]| (udp[..2].to_vec(), udp[2..6].to_vec());
    device.read(us(64), 1, 0x1000, 1024).unwrap();
    let [a, b] = &sent_bytes(&mut device, us(64))[..] else { panic!("two requests") };
    let ticks = 10_000u32.to_be_bytes().to_vec(); // of 6.4 ns
    assert_eq!(header(&a.1), (vec![0, 1], ticks.clone()));
    assert_eq!(header(&b.1), (vec![0, 2], ticks));
    let mut device = Device::new(config());
    device.read(us(64), 1, 0x1000, 4).unwrap();
    assert_eq!(sent_bytes(&mut device, us(64))[0].1[..6], [0; 6], "as the published library has it");
}

/// The end point lives for days: its time does not end after 5.1 hours.
#[test]
fn time_begins_anew() {
    let mut device = Device::new(EndpointConfig { tags: 0..=0, ..config() });
    let now = Time::from_fs(u64::MAX - Duration::from_ms(1).as_fs());
    device.read(now, 1, 0x1000, 4).unwrap();
    sent(&mut device, now);
    let by = now - Time::ZERO;
    device.rebase(by);
    assert_eq!(device.deadline(), Some(us(100)));
    device.handle_timeout(us(100));
    assert!(matches!(error(&mut device), CompletionError::Timeout { .. }));
    device.read(us(100), 2, 0x2000, 4).unwrap();
    device.rebase(Duration::from_us(100));
    assert_eq!(device.deadline(), Some(Time::ZERO + Duration::from_ms(50)), "when the tag has rested");
}

/// Whoever stands behind a gate counts with its counters.
#[test]
fn a_gate_counts_for_the_program_behind_it() {
    let mut gate = Gate::new(ADAPTER);
    gate.counters_mut().other += 2;
    let from = SocketAddrV4::new(ADAPTER, 0x3000);
    let payload = Cpl::of_memory(0, 0, 4, 4).udp();
    assert!(gate.admit(Datagram { from, port: 0x3000, payload: &payload }).is_some());
    assert_eq!((gate.counters().other, gate.counters().datagrams_in), (2, 1));
}

/// Tags have eight bits: the two that ten-bit tags have besides are reserved, and ignored (PCIe 5.0 §2.2.6.2).
#[test]
fn reserved_bits_of_tags_are_ignored() {
    let mut device = Device::new(config());
    device.read(us(0), 1, 0x1000, 4).unwrap();
    assert_eq!(sent(&mut device, us(0)).len(), 1);
    let mut completion = Cpl::of_memory(0, 0x1000, 4, 4).udp();
    completion[7] |= 0x88;
    deliver(&mut device, us(1), 0x3000, &completion);
    assert_eq!(results(&mut device), [(1, Ok(bytes(0x1000, 4).into()))]);
}
