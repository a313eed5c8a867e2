//! Known answers, computed by hand from the specification.

use tlplab_units::{Bdf, FcClass, Tag, Vc};
use tlplab_wire::dllp::{FcPhase, FlowControl, Scale, Sequence};
use tlplab_wire::tlp::{
    AtomicOp, Attributes, ByteEnables, CfgTarget, CfgType, Code, Completion, CompletionStatus, DwLength,
    Hint, Kind, Latency, Message, Pasid, Prefix, Prefixes, ProcessingHint, Repr, Routing, Span,
    TransactionId,
};
use tlplab_wire::{crc, dllp, nettlp};

fn id() -> TransactionId {
    TransactionId::new(Bdf::new(1, 0, 0).unwrap(), Tag::from(9))
}

/// PCIe 5.0 §2.2.5 in prose: one DW may have any first and no last enables; more DW have both; an aligned QW may have holes;
/// otherwise the bytes are contiguous.
#[test]
fn every_pair_of_byte_enables() {
    for byte in 0..=255u8 {
        let (first, last) = (byte & 15, byte >> 4);
        let enables = ByteEnables::new(first, last);
        let contiguous_first = first != 0 && first.count_ones() == 4 - first.trailing_zeros();
        let contiguous_last = last != 0 && last.count_ones() == 8 - last.leading_zeros();
        for (dw, address) in
            [(1, 0x1000u64), (1, 0x1004), (2, 0x1000), (2, 0x1004), (3, 0x1000), (64, 0x1008)]
        {
            let allowed = match (dw, address & 7) {
                (1, _) => last == 0,
                (2, 0) => first != 0 && last != 0,
                _ => contiguous_first && contiguous_last,
            };
            let span = Span::with_enables(address, DwLength::new(dw).unwrap(), enables);
            assert_eq!(span.is_ok(), allowed, "{dw} DW at {address:#x}, last {last:04b}, first {first:04b}");
        }
    }
}

/// The rows of the table of byte counts in PCIe 5.0 §2.3.1.1, and the low address bits beside it.
#[test]
fn byte_counts_of_the_specification() {
    // first, last, DW, byte count, low two bits of the address
    for (first, last, dw, count, low) in [
        (0b1111, 0, 1, 4, 0),
        (0b0111, 0, 1, 3, 0),
        (0b1110, 0, 1, 3, 1),
        (0b0011, 0, 1, 2, 0),
        (0b0110, 0, 1, 2, 1),
        (0b1100, 0, 1, 2, 2),
        (0b0001, 0, 1, 1, 0),
        (0b0010, 0, 1, 1, 1),
        (0b0100, 0, 1, 1, 2),
        (0b1000, 0, 1, 1, 3),
        (0b0000, 0, 1, 1, 0),
        (0b1001, 0, 1, 4, 0),
        (0b1111, 0b1111, 10, 40, 0),
        (0b1111, 0b0111, 10, 39, 0),
        (0b1111, 0b0011, 10, 38, 0),
        (0b1111, 0b0001, 10, 37, 0),
        (0b1110, 0b1111, 10, 39, 1),
        (0b1110, 0b0001, 10, 36, 1),
        (0b1100, 0b0011, 10, 36, 2),
        (0b1000, 0b1111, 10, 37, 3),
        (0b1000, 0b0001, 10, 34, 3),
        (0b0100, 0b0010, 2, 4, 2),
    ] {
        let enables = ByteEnables::new(first, last);
        let span = Span::with_enables(0x2000, DwLength::new(dw).unwrap(), enables).unwrap();
        assert_eq!((span.byte_count(), span.first_byte() & 3), (count, low), "{first:04b} {last:04b}");
    }
}

#[test]
fn sizes_and_credits() {
    let small = Repr::mem_write(id(), 0x1000, 4).unwrap();
    assert_eq!((small.header_bytes(), small.payload_bytes(), small.wire_bytes()), (12, 4, 16));
    assert_eq!((small.data_credits(), small.fc_class()), (1, FcClass::Posted));
    let large = Repr::mem_write(id(), 0x1_0000_0000, 256).unwrap();
    assert_eq!((large.header_bytes(), large.wire_bytes(), large.data_credits()), (16, 272, 16));
    let page = Repr::mem_write(id(), 0x3000, 4096).unwrap();
    assert_eq!((page.payload_dw(), page.data_credits()), (1024, 256));
    let read = Repr::mem_read(id(), 0x3001, 4095).unwrap();
    assert_eq!((read.wire_bytes(), read.data_credits(), read.fc_class()), (12, 0, FcClass::NonPosted));
    // 17 bytes from offset 3 touch five DW: 20 bytes, two credits.
    assert_eq!(Repr::mem_write(id(), 0x1003, 17).unwrap().data_credits(), 2);
    let swap = Repr::atomic(id(), AtomicOp::CompareAndSwap, 0x40, 16).unwrap();
    assert_eq!((swap.payload_bytes(), swap.fc_class(), swap.data_credits()), (32, FcClass::NonPosted, 2));
    let message = Repr::message(Bdf(0), Code::ErrFatal).unwrap();
    assert_eq!((message.wire_bytes(), message.fc_class()), (16, FcClass::Posted));
    let mut prefixes = Prefixes::NONE;
    prefixes.push(Prefix::Pasid(Pasid::new(7).unwrap())).unwrap();
    let full =
        small.with_prefixes(prefixes).with_attributes(Attributes { digest: true, ..Attributes::default() });
    assert_eq!(full.unwrap().wire_bytes(), 4 + 12 + 4 + 4);
    // Four doublewords behind one local and four end-to-end prefixes.
    assert_eq!(tlplab_wire::tlp::emit::MAX_HEADER_BYTES, 36);
}

#[test]
fn a_tlp_is_one_cache_line() {
    assert!(size_of::<Repr>() <= 64, "{} bytes", size_of::<Repr>());
    assert!(size_of::<dllp::Repr>() <= 16, "{} bytes", size_of::<dllp::Repr>());
}

/// 200 bytes at 0x103C with RCB 64 and MPS 128: 68, 128 and 4 bytes.
#[test]
fn a_read_in_three_completions() {
    let pieces = [(200, 0x3c, 68, 17, false), (132, 0x00, 128, 32, false), (4, 0x00, 4, 1, true)];
    for (count, low, bytes, dw, last) in pieces {
        let repr = Repr::completion_with_data(Bdf(0), id(), count, low, bytes).unwrap();
        let Kind::Completion(completion) = repr.kind() else { panic!("{repr} is no completion") };
        assert_eq!((completion.data_bytes(), repr.payload_dw()), (bytes, dw));
        assert_eq!(completion.is_last(), last, "{repr}");
    }
    // One byte at offset 3 in a DW: valid bytes are what remains, not what the DW could hold.
    let byte = Completion::with_data(Bdf(0), id(), 1, 0x43, DwLength::ONE).unwrap();
    assert_eq!((byte.data_bytes(), byte.is_last()), (1, true));
    let three = Completion::with_data(Bdf(0), id(), 3, 0x40, DwLength::ONE).unwrap();
    assert_eq!((three.data_bytes(), three.is_last()), (3, true));
    let error = Completion::new(Bdf(0), id(), CompletionStatus::UnsupportedRequest, 200, 0).unwrap();
    assert!(error.is_last());
}

#[test]
fn constructors_refuse_with_a_reason() {
    for (repr, text) in [
        (Repr::mem_read(id(), 0xffe, 4), "Length: the request crosses a 4 KiB boundary (PCIe 5.0 §2.2.7)"),
        (
            Repr::mem_write(id(), 0x1000, 4097),
            "Length: 0x1001 is not a length of at most 4096 bytes (PCIe 5.0 §2.2.2)",
        ),
        (Repr::msi(Bdf(0), 0xfee0_0002), "Address: 0xfee00002 is not a multiple of 4 (PCIe 5.0 §2.2.4.1)"),
        (Repr::io_read(id(), 3, 2), "Length: an IO request stays within one DW (PCIe 5.0 §2.2.7)"),
        (
            Repr::atomic(id(), AtomicOp::Swap, 0, 16),
            "Length: 0x10 is not an operand of 4 or 8 bytes (PCIe 5.0 §2.2.7)",
        ),
        (
            Repr::completion(Bdf(0), id(), CompletionStatus::Success, 0, 0),
            "Byte Count: 0x0 is not between 1 and 4096 (PCIe 5.0 §2.2.9)",
        ),
        (
            Repr::completion_with_data(Bdf(0), id(), 4, 0, 8),
            "Length: more data than the byte count leaves (PCIe 5.0 §2.2.9)",
        ),
        (
            Repr::completion_with_data(Bdf(0), id(), 4, 0, 0),
            "Length: 0x0 is not a payload of 1 to 4096 bytes (PCIe 5.0 §2.2.2)",
        ),
        (
            Repr::message(Bdf(0), Code::VendorType0),
            "Message Code: 0x7e is not a code without contents (PCIe 5.0 §2.2.8)",
        ),
    ] {
        assert_eq!(repr.unwrap_err().to_string(), text);
    }
    assert!(
        CfgTarget::new(Bdf(0), 0x1000, 15, CfgType::Type0).is_err()
            && CfgTarget::new(Bdf(0), 2, 15, CfgType::Type0).is_err()
    );
}

#[test]
fn attributes_that_a_kind_cannot_have() {
    let poisoned = Attributes { poisoned: true, ..Attributes::default() };
    assert_eq!(Repr::mem_read(id(), 0, 4).unwrap().with_attributes(poisoned).unwrap_err().field, "EP");
    assert!(Repr::mem_write(id(), 0, 4).unwrap().with_attributes(poisoned).is_ok());
    let hints = Some(ProcessingHint { hint: Hint::Target, steering_tag: 0xab });
    let hinted = Attributes { hints, ..Attributes::default() };
    assert_eq!(Repr::mem_read(id(), 1, 4).unwrap().with_attributes(hinted).unwrap_err().field, "TH");
    for (repr, why) in [
        (Repr::mem_read(id(), 1, 4), "a read with a hint reads whole DW"),
        (Repr::deferrable_mem_write(id(), 0, 4), "a deferrable write has no room for a steering tag"),
        (Repr::io_read(id(), 0, 4), "only memory requests and atomics carry hints"),
    ] {
        let error = repr.unwrap().with_attributes(hinted).unwrap_err();
        assert_eq!(error.to_string(), format!("TH: {why} (PCIe 5.0 §2.2.7.1)"));
    }
    let write = Repr::mem_write(id(), 1, 4).unwrap().with_attributes(hinted).unwrap();
    assert_eq!(write.transaction_id().tag.value(), 0, "the steering tag takes the tag's place");
}

#[test]
fn tags_of_fourteen_bits_are_for_flit_mode() {
    let wide = TransactionId::new(Bdf(0), Tag::new(1024).unwrap());
    let repr = Repr::mem_read(wide, 0x1000, 4).unwrap();
    let error = repr.emit(&mut [0; 12], &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Tag: 0x400 is not a tag of ten bits: wider ones need flit mode (PCIe 5.0 §2.2.6.2)"
    );
    let narrow = Repr::mem_read(id(), 0x1000, 4).unwrap();
    assert_eq!(narrow.emit(&mut [0; 11], &[]).unwrap_err().field, "Buffer");
    assert_eq!(narrow.emit(&mut [0; 16], &[0; 4]).unwrap_err().field, "Payload");
}

#[test]
fn contents_of_messages() {
    // 100 ns without snoop: 100 times 32^0; snoop 2.048 us: 2 times 32^2.
    let (fast, slow) = (Latency::new(100, 0).unwrap(), Latency::new(2, 2).unwrap());
    assert_eq!((fast.ns(), slow.ns(), Latency::new(1, 5).unwrap().ns()), (100, 2048, 33_554_432));
    let ltr = Message::latency_tolerance(Bdf(0x100), Some(fast), Some(slow));
    assert_eq!(ltr.content(), [0, 0, 0, 0, 0x80, 0x64, 0x88, 0x02]);
    assert_eq!(ltr.latencies(), Some((Some(fast), Some(slow))));
    assert_eq!(Message::latency_tolerance(Bdf(0), None, None).latencies(), Some((None, None)));
    assert!(Latency::new(1024, 0).is_err() && Latency::new(0, 6).is_err());
    let to = (Routing::ById, Some(Bdf(0x500)));
    let vendor = Message::vendor(id(), Code::VendorType1, to, 0x8086, [1, 2, 3, 4], 2).unwrap();
    assert_eq!(vendor.content(), [5, 0, 0x80, 0x86, 1, 2, 3, 4]);
    assert_eq!((vendor.vendor_id(), vendor.target()), (Some(0x8086), Some(Bdf(0x500))));
    let nowhere = Message::vendor(id(), Code::VendorType1, (Routing::ById, None), 0x8086, [0; 4], 0);
    assert_eq!(nowhere.unwrap_err().field, "Destination ID");
    let time = Message::ptm_response_with_delay(Bdf(8), 0x0123_4567_89ab_cdef);
    assert_eq!((time.ptm_master_time_ns(), time.payload_dw()), (Some(0x0123_4567_89ab_cdef), 1));
    for &code in Code::ALL {
        assert_eq!(Code::from_byte(code as u8), Some(code), "{}", code.name());
    }
}

#[test]
fn scaled_credits_and_sequence_numbers() {
    assert_eq!([Scale::Off, Scale::By1, Scale::By4, Scale::By16].map(Scale::shift), [0, 0, 2, 4]);
    let vc = Vc::new(1).unwrap();
    let fc = FlowControl::scaled(
        FcPhase::Update,
        FcClass::Posted,
        vc,
        (Scale::By4, 0x404),
        (Scale::By16, 0x1_2340),
    );
    assert_eq!((fc.header, fc.data()), (0x01, 0x234), "scaled down, then modulo 256 and 4096");
    assert_eq!(Sequence::new(4095).next(), Sequence::new(0));
    assert_eq!(Sequence::new(1).since(Sequence::new(4094)), 3);
    assert_eq!(Sequence::new(4094).since(Sequence::new(1)), 4093);
}

#[test]
fn nettlp_clock_wraps() {
    let before = nettlp::Header { sequence: 0, timestamp: u32::MAX };
    let after = nettlp::Header { sequence: 1, timestamp: 4 };
    assert_eq!(after.since(before).as_fs(), 5 * 6_400_000);
}

/// A byte at a time, as programs in other languages do with the tables: the check values of both CRCs over "123456789" (CRC-32/ISO-HDLC; the
/// DLLP's polynomial 100Bh, PCIe 5.0 §3.5.1, complemented).
#[test]
fn tables_of_the_crcs() {
    let data = b"123456789";
    let long =
        data.iter().fold(u32::MAX, |crc, byte| crc >> 8 ^ crc::table_32()[usize::from(crc as u8 ^ byte)]);
    assert_eq!(!long, 0xcbf4_3926);
    let short = data[..4]
        .iter()
        .fold(u16::MAX, |crc, byte| crc >> 8 ^ crc::table_16()[usize::from(crc as u8 ^ byte)]);
    assert_eq!(!short, crc::dllp([b'1', b'2', b'3', b'4']));
}
