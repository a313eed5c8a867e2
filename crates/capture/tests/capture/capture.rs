//! Captures built by hand: every container, every layer, every way to be wrong.

#[path = "../../../../fuzz/capture.rs"]
mod fuzz;
use crate::support::{Pcap, Pcapng, READ, frame, id};
use proptest::prelude::*;
use tlplab_capture::{self as capture, Capture, Format, Operation, Reason, Unit};
use tlplab_units::{Duration, Time};
use tlplab_wire::tlp::Repr;

fn read(bytes: &[u8]) -> Capture {
    capture::read(bytes).unwrap_or_else(|error| panic!("{error}"))
}

fn reasons(capture: &Capture) -> Vec<(u64, Reason)> {
    capture.problems.iter().map(|p| (p.frame, p.reason)).collect()
}

#[test]
fn pcap_in_both_byte_orders_and_resolutions() {
    let frame = frame(1, 0x3002, &READ);
    for big_endian in [false, true] {
        for (nanoseconds, gap) in [(true, 4_313), (false, 4_313_000)] {
            let pcap = Pcap { big_endian, nanoseconds, link_type: 1 };
            let file = pcap.file(&[(7, 999_000, frame.len(), &frame), (7, 1_003_313, frame.len(), &frame)]);
            let capture = read(&file);
            assert_eq!((capture.format, capture.frames, capture.problems.len()), (Format::Pcap, 2, 0));
            let unit = if nanoseconds { 1 } else { 1_000 };
            assert_eq!(capture.start_fs, 7_000_000_000_000_000 + 999_000 * 1_000_000 * unit);
            assert_eq!(capture.records[1].time - capture.records[0].time, Duration::from_ns(gap));
            let Unit::Tlp { repr, header, port, .. } = capture.records[0].unit else { panic!() };
            assert_eq!(*repr.kind(), *Repr::mem_read(id(2), 0x9000_0000, 512).unwrap().kind());
            assert!(repr.attributes().relaxed_ordering);
            assert_eq!((header.sequence, header.timestamp, port), (598, 2_572_026_849, 0x3002));
            assert_eq!(capture.directions[0].to_string(), "192.168.10.1 → 192.168.10.3");
        }
    }
}

#[test]
fn pcapng_in_any_resolution() {
    let frame = frame(0, 0x3002, &READ);
    // Ticks per second: the default, decimal from seconds to 10^-15, binary.
    for (resolution, ticks, fs) in [
        (None, 3, 3_000_000_000),
        (Some(0), 3, 3_000_000_000_000_000),
        (Some(9), 3, 3_000_000),
        (Some(12), 3, 3_000),
        (Some(15), 3, 3),
        (Some(0x80 | 10), 3, 2_929_687_500_000),
        (Some(0x80 | 30), 3 << 20, 2_929_687_500_000),
    ] {
        for big_endian in [false, true] {
            let mut file = Pcapng::new(big_endian);
            file.interface(1, resolution, Some(100));
            file.packet(0, 0, &frame);
            file.packet(0, ticks, &frame);
            let capture = read(&file.bytes);
            assert_eq!(capture.format, Format::Pcapng);
            assert_eq!(capture.start_fs, 100 * 1_000_000_000_000_000, "if_tsoffset");
            assert_eq!(capture.records[1].time, Time::from_fs(fs), "{resolution:?}");
        }
    }
}

#[test]
fn pcapng_sections_have_their_own_interfaces_and_byte_order() {
    let frame = frame(0, 0x3002, &READ);
    let mut file = Pcapng::new(false);
    file.interface(1, Some(9), None);
    file.packet(0, 5, &frame);
    let mut second = Pcapng::new(true);
    second.interface(113, Some(9), None);
    second.interface(1, Some(9), None);
    second.packet(1, 9, &frame);
    second.packet(2, 9, &frame);
    file.bytes.extend(second.bytes);
    let capture = read(&file.bytes);
    assert_eq!(capture.records.len(), 2);
    assert_eq!(capture.records[1].time, Time::from_fs(4_000_000));
    assert_eq!(reasons(&capture), [(3, Reason::NoInterface(2))]);
}

#[test]
fn packets_without_a_time_are_reported() {
    let frame = frame(0, 0x3002, &READ);
    let mut file = Pcapng::new(false);
    file.interface(1, Some(40), None);
    file.packet(0, 5, &frame);
    file.block(3, &[&(frame.len() as u32).to_le_bytes(), frame.as_slice()].concat());
    assert_eq!(reasons(&read(&file.bytes)), [(1, Reason::Resolution), (2, Reason::NoTime)]);
}

#[test]
fn tags_and_cooked_headers_are_taken_off() {
    let whole = frame(0, 0x4002, &READ);
    let mut frames =
        vec![(1, frame(0, 0x4002, &READ)), (1, frame(1, 14198, &READ)), (1, frame(2, 0x30ff, &READ))];
    let ip = &whole[14..];
    frames.push((101, ip[..20 + 8 + 6 + 12].to_vec()));
    frames.push((113, [&[0; 14], &[8, 0][..], ip].concat()));
    frames.push((276, [&[8, 0][..], &[0; 18], ip].concat()));
    for (link_type, frame) in frames {
        let pcap = Pcap { link_type, ..Pcap::NANO };
        let capture = read(&pcap.file(&[(0, 0, frame.len(), &frame)]));
        assert_eq!(capture.records.len(), 1, "link type {link_type}: {:?}", capture.problems);
    }
}

#[test]
fn payloads_cut_by_a_snap_length() {
    let repr = Repr::mem_write(id(5), 0xa000_0003, 6).unwrap();
    let mut tlp = [0; 24];
    assert_eq!(repr.emit(&mut tlp, b"\0\0\0hello\0\0\0\0").unwrap(), 24);
    let frame = frame(0, 0x3005, &tlp);
    let capture =
        read(&Pcap::NANO.file(&[(0, 0, frame.len(), &frame), (0, 1, 64, &frame), (0, 2, 50, &frame)]));
    let payloads: Vec<&[u8]> = capture.records.iter().map(|record| capture.payload(record)).collect();
    assert_eq!(payloads, [&b"\0\0\0hello\0\0\0\0"[..], b"\0\0\0h"]);
    assert!(matches!(reasons(&capture)[..], [(3, Reason::Tlp(_))]), "{:?}", capture.problems);
    let requests = capture::requests(&capture, None);
    assert_eq!(
        (requests[1].operation, requests[1].address, requests[1].bytes),
        (Operation::Write, 0xa000_0003, 6)
    );
}

#[test]
fn malformed_frames_are_reported_and_reading_goes_on() {
    let good = frame(0, 0x3002, &READ);
    let change = |at: usize, value: u8| {
        let mut frame = good.clone();
        frame[at] = value;
        frame
    };
    let shorter = good[..58].to_vec();
    let longer = [good.as_slice(), &[0; 4]].concat();
    let reserved = frame(0, 0x3002, &[0xa0; 12]);
    let cases: [(Vec<u8>, &str); 9] = [
        (shorter, "frame 1: the datagram should end at byte 60, but the frame has only 58 bytes"),
        (longer, "frame 1: 4 bytes follow the datagram, more than Ethernet padding"),
        (change(14, 0x65), "frame 1: IPv4: the version is not 4"),
        (change(14, 0x44), "frame 1: IPv4: the header length is below 20 bytes"),
        (change(17, 10), "frame 1: IPv4: the total length is below the header's"),
        (change(20, 0x20), "frame 1: an IPv4 fragment; NetTLP datagrams are never fragmented"),
        (change(39, 9), "frame 1: the UDP length is 9 bytes, but the IPv4 header leaves 26"),
        (good[..30].to_vec(), "frame 1: the IPv4 header is cut: only 30 bytes were captured"),
        (reserved, "frame 1: not a TLP: "),
    ];
    for (bad, message) in cases {
        let capture = read(&Pcap::NANO.file(&[(0, 0, bad.len(), &bad), (0, 1, good.len(), &good)]));
        assert_eq!((capture.records.len(), capture.problems.len()), (1, 1), "{message}");
        let problem = capture.problems[0].to_string();
        assert!(problem.starts_with(message), "{problem}");
    }
}

#[test]
fn a_cut_header_and_length_that_disagree() {
    // The TLP claims 64 DW; the datagram has room for 2, of which one was captured.
    let tlp = [&[0x40, 0, 0, 64, 0x19, 0, 2, 0xff, 0x90, 0, 0, 0][..], &[0; 8]].concat();
    let frame = frame(0, 0x3002, &tlp);
    let capture = read(&Pcap::NANO.file(&[(0, 0, 64, &frame)]));
    assert_eq!(reasons(&capture), [(1, Reason::TlpLength { header: 268, datagram: 20 })]);
}

#[test]
fn other_traffic_is_counted_apart() {
    let arp = [&[0xff; 12][..], &[8, 6], &[0; 46]].concat();
    let tcp = {
        let mut f = frame(0, 0x3002, &READ);
        f[23] = 6;
        f
    };
    let dns = frame(0, 53, &READ);
    let frames: Vec<_> = [&arp, &tcp, &dns].map(|f| (0, 0, f.len(), f.as_slice())).to_vec();
    let capture = read(&Pcap::NANO.file(&frames));
    assert_eq!((capture.frames, capture.others, capture.records.len()), (3, 3, 0));
    assert!(capture.problems.is_empty(), "{:?}", capture.problems);
}

/// A frame check sequence is no part of the datagram: where the file tells of it, and where it is right.
#[test]
fn frames_with_a_check_sequence() {
    let long = [&[0x40, 0, 0, 64, 0x19, 0, 2, 0xff, 0x90, 0, 0, 0][..], &[7; 256]].concat();
    let checked = |tlp: &[u8]| {
        let mut frame = frame(0, 0x3002, tlp);
        let check = tlplab_wire::crc::Crc32::new().update(&frame).finish();
        frame.extend(check.to_le_bytes());
        frame
    };
    let (short, long) = (checked(&READ), checked(&long));
    let frames = [&short, &long].map(|frame| (0, 0, frame.len(), frame.as_slice()));
    assert_eq!((reasons(&read(&Pcap::NANO.file(&frames))), short.len()), (vec![], 64));
    // Not checked, but announced: bit 26 and two half words; and cut by the snap length.
    let mut wrong = long.clone();
    *wrong.last_mut().unwrap() ^= 1;
    let frames = [(0, 0, wrong.len(), wrong.as_slice()), (0, 1, 96, long.as_slice())];
    let told = Pcap { link_type: 0x2400_0001, ..Pcap::NANO };
    assert_eq!(reasons(&read(&told.file(&frames))), []);
    // Where it is not, what was captured whole is found wrong; of what was cut it is believed, but no other number of bytes.
    let frames = [frames[0], frames[1], (0, 2, 96, &[&long[..], &[0]].concat())];
    let found = reasons(&read(&Pcap::NANO.file(&frames)));
    let (frame, datagram) = (wrong.len(), wrong.len() - 4);
    let reason = |frame| Reason::FrameLength { frame, datagram };
    assert_eq!(found, [(1, reason(frame)), (3, reason(frame + 1))]);
}

#[test]
fn damaged_files_are_read_up_to_the_damage() {
    let frame = frame(0, 0x3002, &READ);
    let file = Pcap::NANO.file(&[(0, 0, frame.len(), &frame), (0, 1, frame.len(), &frame)]);
    let capture = read(&file[..file.len() - 1]);
    assert_eq!((capture.records.len(), reasons(&capture)), (1, vec![(2, Reason::FileCut)]));
    let mut file = Pcapng::new(false);
    file.interface(1, None, None);
    file.packet(0, 0, &frame);
    file.bytes.extend([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    let capture = read(&file.bytes);
    assert_eq!((capture.records.len(), reasons(&capture)), (1, vec![(2, Reason::FileCut)]));
}

/// Found by fuzzing: a journal block that says it is 8 bytes long overflowed in the parser of all blocks.
#[test]
fn blocks_too_short_for_their_own_frame_end_the_reading() {
    for kind in [1, 2, 3, 4, 5, 6, 9, 10, 0xbad, 0x8000_0001, 77_u32] {
        for length in (0..12).chain([14, 1 << 20, u32::MAX]) {
            let mut file = Pcapng::new(false);
            file.bytes.extend([kind.to_le_bytes(), length.to_le_bytes()].concat());
            file.bytes.extend([0; 64]);
            assert_eq!(
                reasons(&read(&file.bytes)),
                [(1, Reason::FileCut)],
                "block type {kind}, {length} bytes"
            );
        }
    }
    let mut file = Pcapng::new(false);
    file.interface(1, None, None);
    file.block(6, &[&[0; 12][..], &[0xff; 8], &[0; 8]].concat());
    assert_eq!(reasons(&read(&file.bytes)), [(1, Reason::Block)]);
}

#[test]
fn times_are_relative_to_the_earliest_record_and_end_after_five_hours() {
    let frame = frame(0, 0x3002, &READ);
    let at = |seconds, ns| (seconds, ns, frame.len(), frame.as_slice());
    let capture = read(&Pcap::NANO.file(&[at(100, 5), at(100, 0), at(18_446, 0), at(18_546 + 1, 0)]));
    let times: Vec<u64> = capture.records.iter().map(|r| r.time.as_fs()).collect();
    assert_eq!(times, [5_000_000, 0, 18_346_000_000_000_000_000]);
    assert_eq!(reasons(&capture), [(4, Reason::TooLate)]);
    let requests = capture::requests(&capture, None);
    assert_eq!(requests.iter().map(|r| r.frame).collect::<Vec<_>>(), [2, 1, 3], "in the order of time");
}

#[test]
fn a_file_that_is_not_a_capture_is_an_error() {
    for bytes in [&b""[..], b"PK\x03\x04", b"\x0a\x0d\x0d\x0a", b"\xd4\xc3\xb2\xa1\x02"] {
        assert!(capture::read(bytes).is_err(), "{bytes:?}");
    }
    let error = capture::read_file("/no/such/file.pcap").unwrap_err().to_string();
    assert!(error.starts_with("/no/such/file.pcap: cannot read: "), "{error}");
    let error = capture::read(b"hello").unwrap_err().to_string();
    assert!(error.contains("expected pcap, pcapng or a trace table"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever the bytes: no panic, and every frame is accounted for once.
    #[test]
    fn nothing_panics_and_no_frame_is_lost(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        cut in any::<prop::sample::Index>(),
        pcapng in any::<bool>(),
    ) {
        let frame = frame(1, 0x3002, &READ);
        let mut bytes = if pcapng {
            let mut file = Pcapng::new(false);
            file.interface(1, Some(9), Some(3));
            (0..4).for_each(|ticks| file.packet(0, ticks, &frame));
            file.bytes
        } else {
            Pcap::NANO.file(&[(0, 0, frame.len(), &frame), (0, 1, 60, &frame), (0, 9, frame.len(), &frame)])
        };
        for (index, value) in flips {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        fuzz::capture(&bytes);
    }
}
