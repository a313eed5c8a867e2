//! Points about what the host asks of the device.

use super::*;
use tlplab_wire::tlp::{ByteEnables, DwLength, Span};

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

/// The runs of each pattern of byte enables are its enabled bytes in as few pieces as there are; of none, one empty run. It is told whether
/// there is but one.
#[test]
fn runs_of_byte_enables_are_as_few_as_possible() {
    let mut patterns = 0;
    for enables in 0..=u8::MAX {
        for dw in 1..=2 {
            let enables = ByteEnables::from_byte(enables);
            let Ok(span) = Span::with_enables(0x1008, DwLength::new(dw).unwrap(), enables) else { continue };
            let bits = if dw == 1 { enables.first() } else { enables.last() << 4 | enables.first() };
            // An enabled byte in front of which none is begins a run.
            let starts = bits & !(bits << 1);
            let runs: Vec<(u64, u32)> = Runs::of(span).collect();
            assert_eq!(runs.len() as u32, starts.count_ones().max(1), "{bits:08b}");
            assert_eq!(Runs::of(span).is_single(), runs.len() == 1, "{bits:08b}");
            let bytes = runs
                .iter()
                .flat_map(|(address, bytes)| *address - 0x1008..address - 0x1008 + u64::from(*bytes));
            assert_eq!(bytes.fold(0, |found, at| found | 1u8 << at), bits, "{runs:x?}");
            patterns += 1;
        }
    }
    assert!(patterns > 200, "{patterns}");
    let long = Runs::of(Span::new(0x1003, 4000).unwrap());
    assert!(long.is_single() && long.eq([(0x1003, 4000)]));
}
