//! Points about what the device asks of the host.

use super::*;

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

/// Point 3. Naive: every failure is -1, or worse, the bytes that came so far are a shorter read.
#[test]
fn failed_reads_have_distinct_errors() {
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
