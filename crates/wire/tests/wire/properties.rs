//! Properties of every packet: there and back, bit flips, checksums.

use crate::any::{dllp, emit, repr, reserved_bits, span};
use proptest::prelude::*;
use tlplab_wire::tlp::{Packet, Repr};
use tlplab_wire::{crc, dllp as link, flit, nettlp};

/// Reads bytes and, if they are valid, writes what they mean: it must be the bytes again, but for reserved bits.
fn assert_exact(bytes: &[u8]) -> Option<Repr> {
    let packet = Packet::new(bytes);
    let repr = Repr::parse(&packet).ok()?;
    let mut written = vec![0; bytes.len()];
    let digest = packet.digest().unwrap_or(0);
    let end = repr.emit_with_digest(&mut written, packet.payload(), digest).expect("as long as before");
    assert_eq!(end, bytes.len());
    let mask = reserved_bits(&repr);
    let expected: Vec<u8> = bytes.iter().zip(&mask).map(|(byte, reserved)| byte & !reserved).collect();
    assert_eq!(written, expected, "{repr}");
    Some(repr)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn there_and_back(repr in repr()) {
        let (bytes, payload) = emit(&repr);
        let packet = Packet::new(&bytes);
        prop_assert_eq!(Repr::parse(&packet), Ok(repr));
        prop_assert_eq!(packet.payload(), payload);
        prop_assert_eq!(packet.ecrc_matches(), repr.attributes().digest.then_some(true));
        prop_assert_eq!(packet.expected_len(), Some(bytes.len()));
        prop_assert_eq!(repr.data_credits(), (repr.payload_bytes().div_ceil(16)) as u16);
        prop_assert!(repr.to_string().starts_with(repr.name()));
    }

    /// Every single flip in prefixes and header is an error or means something else that is written as the same bytes.
    #[test]
    fn every_flipped_bit_counts(repr in repr()) {
        let (mut bytes, _) = emit(&repr);
        let mask = reserved_bits(&repr);
        for bit in 0..repr.header_bytes() as usize * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let other = assert_exact(&bytes);
            if mask[bit / 8] >> (bit % 8) & 1 != 0 {
                prop_assert_eq!(other, Some(repr), "reserved bit {} is not ignored", bit);
            } else {
                prop_assert_ne!(other, Some(repr), "bit {} is ignored", bit);
            }
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn random_bytes_are_read_exactly_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        assert_exact(&bytes);
        let _ = link::Repr::parse(&link::Packet::new(&bytes));
        let _ = nettlp::parse_udp_payload(&bytes);
        let _ = flit::Packet::new(&bytes);
    }

    /// Random bytes behind a first byte and a length that are right get further.
    #[test]
    fn random_fields_are_read_exactly_or_refused(
        kind in prop::sample::select(&[0x00u8, 0x20, 0x40, 0x60, 0x02, 0x42, 0x04, 0x45, 0x0a, 0x4a, 0x34, 0x74, 0x4c, 0x6e, 0x5b]),
        fields in any::<[u8; 15]>(),
        dw in 1u16..=16,
    ) {
        let mut bytes = vec![kind];
        bytes.extend(fields);
        bytes[2] &= 0x7c;
        bytes[3] = dw as u8;
        bytes.resize(Packet::new(&bytes).expected_len().unwrap(), 0xa5);
        assert_exact(&bytes);
    }

    #[test]
    fn truncated_tlps_are_refused(repr in repr(), cut in any::<prop::sample::Index>()) {
        let (bytes, _) = emit(&repr);
        let end = cut.index(bytes.len());
        let error = Repr::parse(&Packet::new(&bytes[..end])).unwrap_err();
        prop_assert!(["TLP Header", "Length"].contains(&error.field), "{}", error);
    }

    /// Byte enables, address and length say exactly which bytes were asked for.
    #[test]
    fn a_span_covers_exactly_the_requested_bytes(address in any::<u64>(), len in 1u32..=4096) {
        match tlplab_wire::tlp::Span::new(address, len) {
            Ok(span) => {
                prop_assert_eq!(span.first_byte(), address);
                prop_assert_eq!(span.byte_count(), len);
                prop_assert!(span.length().bytes() < len + 7);
                let again = tlplab_wire::tlp::Span::with_enables(span.address(), span.length(), span.enables());
                prop_assert_eq!(again, Ok(span));
            }
            Err(error) => {
                prop_assert!((address & 0xfff) + u64::from(len) > 4096);
                prop_assert_eq!(error.field, "Length");
            }
        }
    }

    #[test]
    fn a_byte_count_is_at_least_one_and_fits(span in span()) {
        prop_assert!((1..=span.length().bytes()).contains(&span.byte_count()));
        prop_assert!(span.first_byte() - span.address() < 4);
    }

    #[test]
    fn dllps_there_and_back(repr in dllp()) {
        prop_assert_eq!(link::Repr::parse(&link::Packet::new(&repr.emit())), Ok(repr));
        prop_assert_eq!(link::Repr::from_content(repr.content()), Ok(repr));
    }

    #[test]
    fn one_or_two_flipped_bits_break_the_crc_of_a_dllp(repr in dllp()) {
        let bytes = repr.emit();
        for (first, second) in pairs(48) {
            let flipped = flip(&bytes, first, second);
            let error = link::Repr::parse(&link::Packet::new(&flipped)).unwrap_err();
            prop_assert_eq!(error.field, "CRC");
        }
    }

    #[test]
    fn flits_there_and_back(tlps in any::<[u8; 32]>(), flit_header in any::<[u8; 2]>(), dllp in dllp(), crc in any::<[u8; 8]>()) {
        let repr = flit::Repr { flit_header, dllp, crc, fec: [1, 2, 3, 4, 5, 6] };
        let mut tlp_bytes = [0; flit::TLP_BYTES];
        tlp_bytes[..32].copy_from_slice(&tlps);
        let bytes = repr.emit(&tlp_bytes);
        let packet = flit::Packet::new(&bytes).unwrap();
        prop_assert_eq!(packet.tlp_bytes(), tlp_bytes);
        prop_assert_eq!(flit::Repr::parse(&packet), Ok(repr));
    }
}

/// All pairs of bits below `bits`, each bit with itself standing for a single flip.
fn pairs(bits: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..bits).flat_map(move |first| (first..bits).map(move |second| (first, second)))
}

fn flip(bytes: &[u8], first: usize, second: usize) -> Vec<u8> {
    let mut flipped = bytes.to_vec();
    flipped[first / 8] ^= 1 << (first % 8);
    if second != first {
        flipped[second / 8] ^= 1 << (second % 8);
    }
    flipped
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// LCRC and ECRC notice every one and every two flipped bits, those of the checksum included.
    #[test]
    fn checksums_notice_one_and_two_flips(repr in repr(), sequence in 0u16..4096) {
        let (bytes, _) = emit(&repr);
        let bytes = &bytes[..bytes.len().min(40)];
        let mut framed = sequence.to_be_bytes().to_vec();
        framed.extend(bytes);
        framed.extend(crc::lcrc(sequence, bytes).to_le_bytes());
        let end = framed.len() - 4;
        for (first, second) in pairs(framed.len() * 8) {
            let flipped = flip(&framed, first, second);
            let sum = crc::Crc32::new().update(&flipped[..end]).finish();
            prop_assert_ne!(&sum.to_le_bytes()[..], &flipped[end..], "bits {} and {}", first, second);
        }
    }

    /// The ECRC does not cover local prefixes and the two variant bits; all other flips it notices.
    #[test]
    fn ecrc_notices_one_and_two_flips(repr in repr(), payload_dw in 0usize..5) {
        let (mut bytes, _) = emit(&repr.with_prefixes(Default::default()));
        bytes.truncate(bytes.len().min(12 + 4 * payload_dw));
        let digest = crc::ecrc(&bytes);
        let variant = |bit: usize| bit == 0 || bit == 2 * 8 + 6;
        // Fmt 100 would turn the header into a prefix.
        let is_fmt = |bit: usize| (5..8).contains(&bit);
        for (first, second) in pairs(bytes.len() * 8) {
            if is_fmt(first) || is_fmt(second) {
                continue;
            }
            let changed = crc::ecrc(&flip(&bytes, first, second)) != digest;
            prop_assert_eq!(changed, !(variant(first) && variant(second)), "bits {} and {}", first, second);
        }
    }
}
