//! What software for NetTLP gets wrong, point by point. Each test says what a naive implementation does, and fails on it.

use crate::raw::*;
use std::net::{Ipv4Addr, SocketAddrV4};
use tlplab_device::{DmaError, Refusal};
use tlplab_nettlp::endpoint::*;
use tlplab_nettlp::{Datagram, Engine, Undeliverable};
use tlplab_transaction::{CompletionError, Payload};
use tlplab_units::{Bdf, Duration, Mps, Mrrs, Rcb, Time};

fn config() -> EndpointConfig {
    let config = EndpointConfig::new(ADAPTER, Bdf(DEVICE));
    EndpointConfig { completion_timeout: Duration::from_us(100), numbered: false, ..config }
}
fn with_window(base: u64, size: u64) -> EndpointConfig {
    EndpointConfig { windows: vec![Window { base, size }], ..config() }
}
type Device = Endpoint<u32>;

fn results(device: &mut Device) -> Vec<(u32, Result<Payload, DmaError>)> {
    std::iter::from_fn(|| device.poll_event())
        .map(|event| match event {
            Event::ReadDone { token, result } => (token, result),
            other => panic!("{other:?}"),
        })
        .collect()
}
fn error(device: &mut Device) -> CompletionError {
    match results(device).as_slice() {
        [(_, Err(DmaError::Completion(error)))] => *error,
        other => panic!("one failed read, not {other:?}"),
    }
}

/// Point 1. Naive: whole payloads are put one behind the other, so that the padding before an unaligned start is taken for data, and the
/// length is that of the doublewords.
#[test]
fn unaligned_reads_of_several_completions() {
    for skew in 0..4 {
        let mut device = Device::new(config());
        let (address, count) = (0x1_0000_1000 + skew, 300);
        device.read(Time::ZERO, 7, address, count).unwrap();
        let [request] = &sent(&mut device, Time::ZERO)[..] else { panic!("one request") };
        assert_eq!((request.fmt_type, request.address, request.port), (0x20, 0x1_0000_1000, 0x3000));
        assert_eq!(u64::from(request.first), 15 << skew & 15);
        let first = 128 - skew as u32;
        Cpl::of_memory(0, address, 300, first).deliver(&mut device, us(1));
        Cpl::of_memory(0, address + u64::from(first), 300 - first, 128).deliver(&mut device, us(1));
        Cpl::of_memory(0, address + u64::from(first) + 128, 172 - first, 172 - first)
            .deliver(&mut device, us(1));
        assert_eq!(results(&mut device), [(7, Ok(bytes(address, count).into()))]);
        assert!(device.is_idle());
    }
}

/// Point 2. Naive: who waits takes the next datagram that comes to its port.
#[test]
fn a_late_completion_is_nobodys_data() {
    let quarantine = Duration::from_us(50);
    let mut device = Device::new(EndpointConfig { tags: 9..=9, quarantine, ..config() });
    device.read(Time::ZERO, 1, 0x1000, 64).unwrap();
    assert_eq!(sent(&mut device, Time::ZERO)[0].port, 0x3009);
    device.handle_timeout(us(100));
    assert!(matches!(error(&mut device), CompletionError::Timeout { address: 0x1000, .. }));
    // The only tag rests; the next read waits for it, and is sent when it may.
    device.read(us(101), 2, 0x2000, 64).unwrap();
    assert_eq!(sent(&mut device, us(101)), []);
    assert_eq!(device.deadline(), Some(us(150)));
    Cpl::of_memory(9, 0x1000, 64, 64).deliver(&mut device, us(120));
    assert_eq!((results(&mut device), device.counters().late), (vec![], 1));
    // That was the last completion, but a network may have others still.
    assert_eq!(sent(&mut device, us(149)), []);
    assert_eq!(sent(&mut device, us(150))[0].address, 0x2000);
    // Somebody else's completion for the same tag, and one that came to another port.
    Cpl { requester: DEVICE + 8, ..Cpl::of_memory(9, 0x3000, 64, 64) }.deliver(&mut device, us(151));
    deliver(&mut device, us(151), 0x3008, &Cpl::of_memory(9, 0x3000, 64, 64).udp());
    assert_eq!(results(&mut device), []);
    assert_eq!((device.counters().unexpected, device.counters().wrong_port), (1, 1));
    Cpl::of_memory(9, 0x2000, 64, 64).deliver(&mut device, us(152));
    assert_eq!(results(&mut device), [(2, Ok(bytes(0x2000, 64).into()))]);
}

/// Point 3. Naive: whatever goes wrong is -1, or worse, the bytes that came so far are a shorter read.
#[test]
fn errors_are_told_apart() {
    let fail = |act: &dyn Fn(&mut Device)| {
        let mut device = Device::new(config());
        device.read(Time::ZERO, 1, 0x1000, 512).unwrap();
        assert_eq!(sent(&mut device, Time::ZERO).len(), 1);
        Cpl::of_memory(0, 0x1000, 512, 256).deliver(&mut device, us(1));
        assert_eq!(results(&mut device), []);
        act(&mut device);
        let error = error(&mut device);
        assert_eq!(device.in_flight(), 0);
        error
    };
    let tag = 0u8.into();
    let address = 0x1100; // the first byte that did not come
    assert_eq!(
        fail(&|device| Cpl::failed(0, 1).deliver(device, us(2))),
        CompletionError::UnsupportedRequest { address }
    );
    assert_eq!(
        fail(&|device| Cpl::failed(0, 4).deliver(device, us(2))),
        CompletionError::CompleterAbort { address }
    );
    // Retry status is for configuration requests.
    let retry = fail(&|device| Cpl::failed(0, 2).deliver(device, us(2)));
    assert!(matches!(retry, CompletionError::Mismatch { .. }), "{retry}");
    let poisoned =
        fail(&|device| Cpl { poisoned: true, ..Cpl::of_memory(0, 0x1100, 256, 256) }.deliver(device, us(2)));
    assert_eq!(poisoned, CompletionError::Poisoned { address });
    let after = Duration::from_us(100);
    assert_eq!(
        fail(&|device| device.handle_timeout(us(100))),
        CompletionError::Timeout { address, tag, after }
    );
    for why in [Undeliverable::PortRefused, Undeliverable::HostUnreachable] {
        let to = |port| SocketAddrV4::new(ADAPTER, port);
        assert_eq!(
            fail(&|device| {
                device.handle_undeliverable(us(2), to(0x3001), why); // another tag's port
                device.handle_undeliverable(us(2), SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0x3000), why);
                assert_eq!(results(device), []);
                device.handle_undeliverable(us(2), to(0x3000), why);
            }),
            CompletionError::Undelivered { address, tag, why }
        );
    }
}

/// Point 4. Naive: length and byte count fields of 0 are nothing.
#[test]
fn requests_of_4096_bytes_both_ways() {
    let (mps, mrrs) = (Mps::new(4096).unwrap(), Mrrs::new(4096).unwrap());
    let mut device = Device::new(EndpointConfig { mps, mrrs, ..with_window(0x8000, 0x2000) });
    device.read(Time::ZERO, 1, 0x1000, 4096).unwrap();
    device.write(Time::ZERO, 2, 0x2000, bytes(0x2000, 4096).into()).unwrap();
    let requests = sent(&mut device, Time::ZERO);
    let shape = |s: &Sent| (s.fmt_type, s.dw, s.last, s.first, s.data.len());
    assert_eq!(
        requests.iter().map(shape).collect::<Vec<_>>(),
        [(0x00, 1024, 15, 15, 0), (0x40, 1024, 15, 15, 4096)]
    );
    assert_eq!(requests[1].data, bytes(0x2000, 4096));
    assert_eq!(device.poll_event(), Some(Event::WriteSent { token: 2 }));
    Cpl::of_memory(0, 0x1000, 4096, 4096).deliver(&mut device, us(1));
    assert_eq!(results(&mut device), [(1, Ok(bytes(0x1000, 4096).into()))]);

    deliver(&mut device, us(2), 0x4003, &host_request(3, 0x9000, 0, 0xFF, None));
    let Some(Event::HostRead(read)) = device.poll_event() else { panic!("a read") };
    assert_eq!((read.address, read.bytes), (0x9000, 4096));
    device.answer(read.token, Ok(bytes(0x9000, 4096).into())).unwrap();
    let answers = sent_bytes(&mut device, us(2));
    let expected = Cpl { requester: 0, ..Cpl::of_memory(3, 0x9000, 4096, 4096) };
    let mut expected = expected.udp();
    expected[10..12].copy_from_slice(&DEVICE.to_be_bytes()); // completer ID
    assert_eq!(answers, [(0x4003, expected)]);
    deliver(&mut device, us(2), 0x400F, &host_request(15, 0x8000, 0, 0xFF, Some(&bytes(0x8000, 4096))));
    let Some(Event::HostWrite(write)) = device.poll_event() else { panic!("a write") };
    assert_eq!((write.address, write.data), (0x8000, bytes(0x8000, 4096).into()));
}

/// Point 5. Naive: requests are cut every so many bytes from where the transfer starts; and what is told is the length of the last piece.
#[test]
fn no_request_crosses_4_kib() {
    for split in [tlplab_transaction::RequestPolicy::Aligned, tlplab_transaction::RequestPolicy::Packed] {
        let mut device = Device::new(EndpointConfig { split, ..config() });
        let (address, count) = (0x1F83, 9000);
        device.read(Time::ZERO, 1, address, count).unwrap();
        device.write(Time::ZERO, 2, address, bytes(address, count).into()).unwrap();
        let mut next = [address; 2];
        for request in sent(&mut device, Time::ZERO) {
            let write = request.fmt_type == 0x40;
            let (skip, limit) = (request.first.trailing_zeros(), if write { 256 } else { 512 });
            let ends = if request.dw == 1 { request.first } else { request.last };
            let (start, end) =
                (request.address + u64::from(skip), u64::from(request.dw * 4) + request.address);
            let end = end - u64::from((ends << 4).leading_zeros());
            assert!(request.dw * 4 <= limit && start >> 12 == (end - 1) >> 12, "{request:?}");
            assert_eq!(start, next[usize::from(write)]);
            next[usize::from(write)] = end;
            if write {
                assert_eq!(request.port, 0x3000, "writes keep their order only if they go one way");
                let skip = skip as usize;
                assert_eq!(request.data[skip..skip + (end - start) as usize], bytes(start, end - start));
            } else {
                let missing = (end - start) as u32;
                Cpl::of_memory(request.tag, start, missing, missing).deliver(&mut device, us(1));
            }
        }
        assert_eq!(next, [address + count; 2]);
        assert_eq!(device.poll_event(), Some(Event::WriteSent { token: 2 }));
        assert_eq!(results(&mut device), [(1, Ok(bytes(address, count).into()))]);
    }
}

/// Point 6. Naive: a read that nobody wants to answer is not answered, and the host waits until its own time is over.
#[test]
fn outside_every_window_is_refused_at_once() {
    let mut device = Device::new(with_window(0x8000, 0x1000));
    // Below, above, and over the end.
    for (address, dw) in [(0x7FFC, 1), (0x9000, 1), (0x1_0000_8000, 1), (0x8FFC, 1)] {
        deliver(
            &mut device,
            us(1),
            0x4001,
            &host_request(0xF1, address, dw, if dw == 1 { 0x0F } else { 0xFF }, None),
        );
    }
    // The last was inside.
    let Some(Event::HostRead(read)) = device.poll_event() else { panic!("a read") };
    assert_eq!(read.address, 0x8FFC);
    device.answer(read.token, Err(Refusal::CompleterAbort)).unwrap();
    let answers = sent_bytes(&mut device, us(1));
    // Cpl, completer 1b:00.0, status UR, byte count 4, requester 00:00.0, tag f1, lower address.
    let refusal = |status: u8, lower| {
        let mut udp = Cpl { requester: 0, lower, ..Cpl::failed(0xF1, status) }.udp();
        udp[10..12].copy_from_slice(&DEVICE.to_be_bytes());
        (0x4001, udp)
    };
    assert_eq!(answers, [refusal(1, 0x7C), refusal(1, 0), refusal(1, 0), refusal(4, 0x7C)]);
    // A write outside is dropped; an atomic, which nobody here does, is refused and told of.
    deliver(&mut device, us(1), 0x4000, &host_request(0, 0x9000, 1, 0x0F, Some(&[1; 4])));
    let mut fetch_add = host_request(2, 0x8000, 1, 0, Some(&[1; 4]));
    fetch_add[6] = 0x4C;
    deliver(&mut device, us(1), 0x4002, &fetch_add);
    assert!(matches!(device.poll_event(), Some(Event::Other { repr, .. }) if repr.name() == "FetchAdd"));
    assert_eq!(sent_bytes(&mut device, us(1))[0].1[12] >> 5, 1, "UR");
    assert_eq!((device.counters().refused, device.host_reads_open()), (5, 0));
}

/// Point 7. Naive: a read of no bytes is an error, or never ends.
#[test]
fn zero_length_reads_are_flushes() {
    let mut device = Device::new(with_window(0x8000, 0x1000));
    device.write(Time::ZERO, 1, 0x1235, bytes(0, 2).into()).unwrap();
    device.read(Time::ZERO, 2, 0x1235, 0).unwrap();
    let [write, flush] = &sent(&mut device, Time::ZERO)[..] else { panic!("a write and a read") };
    assert_eq!((write.fmt_type, write.first, write.last), (0x40, 0b0110, 0));
    assert_eq!((flush.fmt_type, flush.dw, flush.first, flush.last, flush.address), (0, 1, 0, 0, 0x1234));
    assert_eq!(device.poll_event(), Some(Event::WriteSent { token: 1 }));
    Cpl::new(0, 1, 0x34, vec![0xAA; 4]).deliver(&mut device, us(1));
    assert_eq!(results(&mut device), [(2, Ok(Payload::EMPTY))]);

    deliver(&mut device, us(2), 0x4000, &host_request(0, 0x8010, 1, 0x00, None));
    let Some(Event::HostRead(read)) = device.poll_event() else { panic!("a read") };
    assert_eq!((read.address, read.bytes), (0x8010, 0));
    device.answer(read.token, Ok(Payload::EMPTY)).unwrap();
    let udp = &sent_bytes(&mut device, us(2))[0].1;
    assert_eq!((udp[6], udp[9], &udp[12..14], udp[17], udp.len()), (0x4A, 1, &[0, 1][..], 0x10, 6 + 12 + 4));
    assert_eq!(udp[18..], [0; 4], "nothing of the buffer's earlier contents");
}

/// Point 7, where each port is a way of its own. Naive: a flush takes any tag that is free, and overtakes the writes.
#[test]
fn a_flush_takes_the_way_of_the_writes() {
    let mut device = Device::new(config());
    device.read(Time::ZERO, 1, 0x1000, 4).unwrap();
    device.write(Time::ZERO, 2, 0x2000, bytes(0, 4).into()).unwrap();
    device.read(Time::ZERO, 3, 0x2000, 0).unwrap();
    device.read(Time::ZERO, 4, 0x3000, 4).unwrap();
    let ports = |device: &mut Device| sent(device, us(1)).iter().map(|sent| sent.port).collect::<Vec<_>>();
    assert_eq!(ports(&mut device), [0x3000, 0x3000], "a read, the write; the flush waits for the tag");
    Cpl::of_memory(0, 0x1000, 4, 4).deliver(&mut device, us(2));
    assert_eq!(ports(&mut device), [0x3000, 0x3001], "the flush, and the read behind it");
    // A tag that rests is waited for, too, and no longer.
    let limit = Time::ZERO + device.config().completion_timeout + Duration::from_us(10);
    device.handle_timeout(limit);
    device.read(limit, 5, 0x2000, 0).unwrap();
    assert_eq!(sent(&mut device, limit).len(), 0);
    let rested = device.deadline().expect("when the tag has rested");
    assert!(rested <= limit + device.config().quarantine);
    assert_eq!(sent(&mut device, rested)[0].port, 0x3000);
}

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
fn what_is_lost_doubled_or_malformed_is_counted() {
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
    for number in 0..3000u32 {
        let sequence = 60_000u16.wrapping_add(number as u16);
        if number % 100 != 50 {
            // Every hundredth is lost.
            let lane = &mut lanes[number as usize % 3];
            let tag = *lane.config().tags.start();
            Cpl::of_memory(tag, 0, 4, 4).numbered(sequence, number + 1).deliver(lane, us(1));
        }
    }
    assert!(lanes[0].counters().lost() > 1900);
    let mut all = Counters::default();
    lanes.iter().for_each(|lane| all.add(&lane.counters()));
    assert_eq!((all.lost(), all.datagrams_in, all.unexpected, all.reordered), (30, 2970, 2970, 0));
    let ports: std::collections::BTreeSet<u16> =
        lanes.iter().flat_map(|lane| lane.config().ports()).collect();
    assert_eq!(ports.len(), 256 + 16, "every port belongs to one lane");
}

/// Point 10. Naive: an answer is cut every MPS from where the read starts, so that every completion but the last ends off the boundary.
#[test]
fn the_first_split_honours_rcb() {
    // Data bytes, byte count, lower address.
    type Completion = (u32, u32, u8);
    // RCB, MPS, address, bytes.
    let cases: [(u32, u32, u64, u32, &[Completion]); 5] = [
        (128, 128, 0x8010, 256, &[(112, 256, 0x10), (128, 144, 0), (16, 16, 0)]),
        (64, 128, 0x8010, 256, &[(112, 256, 0x10), (128, 144, 0), (16, 16, 0)]),
        (64, 256, 0x8030, 512, &[(208, 512, 0x30), (256, 304, 0), (48, 48, 0)]),
        (128, 256, 0x8001, 256, &[(255, 256, 1), (1, 1, 0)]),
        (128, 256, 0x8000, 512, &[(256, 512, 0), (256, 256, 0)]),
    ];
    for (rcb, mps, address, count, expected) in cases {
        let (rcb, mps) = (Rcb::new(rcb).unwrap(), Mps::new(mps).unwrap());
        let mut device = Device::new(EndpointConfig { rcb, mps, ..with_window(0x8000, 0x1000) });
        let (skip, end) = ((address & 3) as u32, (address + u64::from(count)) as u32);
        let dw = (skip + count).div_ceil(4);
        let enables = 15 << skip & 15 | (15 >> (end.wrapping_neg() & 3)) << 4;
        deliver(&mut device, us(1), 0x4000, &host_request(0, address & !3, dw, enables as u8, None));
        let Some(Event::HostRead(read)) = device.poll_event() else { panic!("a read") };
        assert_eq!((read.address, read.bytes), (address, count));
        device.answer(read.token, Ok(bytes(address, count.into()).into())).unwrap();
        assert!(device.answer(read.token, Ok(Payload::EMPTY)).is_err(), "once is enough");
        let mut at = address;
        let mut found = Vec::new();
        for (_, udp) in sent_bytes(&mut device, us(1)) {
            let (missing, lower) = (u32::from(udp[12] & 15) << 8 | u32::from(udp[13]), udp[17]);
            let skip = usize::from(lower & 3);
            let carried = (udp.len() - 18 - skip).min(missing as usize);
            assert_eq!(udp[18 + skip..][..carried], bytes(at, carried as u64));
            at += carried as u64;
            found.push((carried as u32, missing, lower));
        }
        assert_eq!(found, expected);
    }
}

/// Point 11. Naive: one read at a time; a second one waits, or takes the first one's answer.
#[test]
fn many_reads_wait_at_once() {
    let mut device = Device::new(config());
    for token in 0..300 {
        device.read(Time::ZERO, token, u64::from(token) * 0x1000, 4).unwrap();
    }
    let mut requests = sent(&mut device, Time::ZERO);
    assert_eq!((requests.len(), device.free_tags()), (256, 0));
    requests.reverse();
    for request in requests {
        Cpl::of_memory(request.tag, request.address, 4, 4).deliver(&mut device, us(1));
    }
    assert_eq!(sent(&mut device, us(1)).len(), 44);
    let results = results(&mut device);
    assert!(results.iter().all(|(token, result)| *result == Ok(bytes(u64::from(*token) * 0x1000, 4).into())));
    assert_eq!(
        results.iter().map(|(token, _)| *token).collect::<Vec<_>>(),
        (0..256).rev().collect::<Vec<_>>()
    );
}

/// Point 11. Naive: what is lost is lost, or is asked for again although reading it twice may do harm.
#[test]
fn reads_are_asked_for_again_only_if_wanted() {
    for (retry, requests) in [(Retry::Never, 1), (Retry::Reads(2), 3)] {
        let mut device = Device::new(EndpointConfig { retry, ..config() });
        device.write(Time::ZERO, 0, 0x1000, bytes(0, 4).into()).unwrap();
        device.read(Time::ZERO, 1, 0x1000, 512).unwrap();
        assert_eq!(sent(&mut device, Time::ZERO).len(), 2);
        // Half of it comes; only the other half is asked for again, under another tag.
        Cpl::of_memory(0, 0x1000, 512, 256).deliver(&mut device, us(1));
        let mut seen = 1;
        for round in 1..=3 {
            device.handle_timeout(us(101 * round));
            for again in sent(&mut device, us(101 * round)) {
                assert_eq!((again.fmt_type, again.address, again.dw), (0, 0x1100, 64));
                assert_eq!(u64::from(again.tag), round);
                seen += 1;
            }
        }
        assert_eq!(seen, requests);
        assert_eq!(device.poll_event(), Some(Event::WriteSent { token: 0 }));
        assert!(matches!(error(&mut device), CompletionError::Timeout { address: 0x1100, .. }));
    }
    let mut device = Device::new(EndpointConfig { retry: Retry::Reads(1), ..config() });
    device.read(Time::ZERO, 1, 0x1000, 512).unwrap();
    sent(&mut device, Time::ZERO);
    Cpl::of_memory(0, 0x1000, 512, 256).deliver(&mut device, us(1));
    device.handle_timeout(us(101));
    sent(&mut device, us(101));
    Cpl::of_memory(0, 0x1100, 256, 256).deliver(&mut device, us(102)); // late, of the first try
    assert_eq!((results(&mut device), device.counters().late), (vec![], 1));
    Cpl::of_memory(1, 0x1100, 256, 256).deliver(&mut device, us(103));
    assert_eq!(results(&mut device), [(1, Ok(bytes(0x1000, 512).into()))]);
}

/// The network's order is not PCI Express's: completions of one request that overtake each other still make the read, and copies of
/// them do no harm. Naive: they fail it, or are put where they do not belong.
#[test]
fn completions_may_overtake_each_other() {
    let mut device = Device::new(config());
    device.read(Time::ZERO, 1, 0x1040, 448).unwrap();
    sent(&mut device, Time::ZERO);
    let parts = [(0x1040u64, 448, 64), (0x1080, 384, 128), (0x1100, 256, 128), (0x1180, 128, 128)];
    for part in [2, 3, 3, 0, 0, 1] {
        assert_eq!(results(&mut device), []);
        let (address, missing, carried) = parts[part];
        Cpl::of_memory(0, address, missing, carried).deliver(&mut device, us(1));
    }
    assert_eq!(results(&mut device), [(1, Ok(bytes(0x1040, 448).into()))]);
    let counters = device.counters();
    assert_eq!((counters.early, counters.duplicates, counters.completions), (2, 2, 4));
    // What waited for a request that failed is forgotten with it.
    device.read(us(2), 2, 0x1000, 512).unwrap();
    let tag = sent(&mut device, us(2))[0].tag;
    Cpl::of_memory(tag, 0x1100, 256, 256).deliver(&mut device, us(3));
    device.handle_timeout(us(102));
    assert!(matches!(error(&mut device), CompletionError::Timeout { address: 0x1000, .. }));
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

/// Byte enables with holes: the bytes between are neither read nor written. Naive: they are.
#[test]
fn holes_in_byte_enables_are_left_alone() {
    let mut device = Device::new(with_window(0x8000, 0x1000));
    let eight: Vec<u8> = (1..=8).collect();
    deliver(&mut device, us(1), 0x4000, &host_request(0, 0x8000, 1, 0b1001, Some(&eight[..4])));
    deliver(&mut device, us(1), 0x4000, &host_request(0, 0x8008, 2, 0b1010_0101, Some(&eight)));
    deliver(&mut device, us(1), 0x4000, &host_request(0, 0x8010, 1, 0, Some(&eight[..4]))); // none enabled
    let writes: Vec<_> = std::iter::from_fn(|| device.poll_event())
        .map(|event| match event {
            Event::HostWrite(write) => (write.address, write.data.bytes().unwrap().to_vec()),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected: [(u64, &[u8]); 6] =
        [(0x8000, &[1]), (0x8003, &[4]), (0x8008, &[1]), (0x800A, &[3]), (0x800D, &[6]), (0x800F, &[8])];
    assert!(writes.iter().map(|(address, data)| (*address, &data[..])).eq(expected), "{writes:?}");

    deliver(&mut device, us(2), 0x4005, &host_request(5, 0x8000, 2, 0b1011_0010, None));
    let reads: Vec<_> = std::iter::from_fn(|| device.poll_event())
        .map(|event| match event {
            Event::HostRead(read) => read,
            other => panic!("{other:?}"),
        })
        .collect();
    let spans: Vec<_> = reads.iter().map(|read| (read.address, read.bytes)).collect();
    assert_eq!(spans, [(0x8001, 1), (0x8004, 2), (0x8007, 1)]);
    for read in reads.iter().rev() {
        assert_eq!(sent_bytes(&mut device, us(2)), [], "not before all have been answered");
        device.answer(read.token, Ok(bytes(read.address, read.bytes.into()).into())).unwrap();
        assert!(device.answer(read.token, Ok(Payload::Length(read.bytes.into()))).is_err());
    }
    let udp = &sent_bytes(&mut device, us(2))[0].1;
    // Byte count from the first to the last enabled byte, lower address of the first (PCIe 5.0 tables 2-39 and 2-40).
    assert_eq!((udp[12] & 15, udp[13], udp[17]), (0, 7, 1));
    let b = byte;
    assert_eq!(udp[18..], [0, b(0x8001), 0, 0, b(0x8004), b(0x8005), 0, b(0x8007)]);
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
