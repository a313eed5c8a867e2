//! The headers: layouts and macros in C and C++, and what programs in C read in TLPs that `wire` wrote.

use std::fmt::Write as _;

use crate::programs::{ADDRESS, C, CPP, SHARED, compile, run_on};
use tlplab_transaction::{Completer, CompletionPolicy};
use tlplab_units::{Bdf, Mps, Rcb, Tag, TrafficClass};
use tlplab_wire::tlp::CompletionStatus::{CompleterAbort, RetryStatus, UnsupportedRequest};
use tlplab_wire::tlp::{Attributes, Kind, Repr, TransactionId};

#[test]
fn layouts_and_macros_are_the_published_ones() {
    for variant in [C, SHARED, CPP].into_iter().filter(|variant| variant.works()) {
        run_on(&compile("layout.c", variant), &[], "");
    }
}

/// What `decode.c` must print of a TLP, from the fields of the value it was written from.
fn description(repr: &Repr) -> String {
    let id = repr.transaction_id();
    let parts = |id: Bdf| format!("{:02x}:{:02x}", id.0 >> 8, id.0 & 0xff);
    let (requester, tag) = (parts(id.requester), id.tag.value());
    let mut text = match repr.kind() {
        Kind::MemRead { span, .. } | Kind::MemWrite { span, .. } => {
            let is_write = matches!(repr.kind(), Kind::MemWrite { .. });
            let (enables, first_byte) = (span.enables(), span.first_byte());
            let count = if is_write && span.is_zero_length() { 0 } else { span.byte_count() };
            let mut text = format!(
                "{} len {} requester {requester} tag {tag:02x} last {:x} first {:x} addr {first_byte:x} bytes {count}",
                if is_write { "MWr" } else { "MRd" },
                span.length().dw(),
                enables.last(),
                enables.first(),
            );
            if is_write {
                let _ = write!(text, " data at {}", u64::from(repr.header_bytes()) + first_byte % 4);
            }
            text
        }
        Kind::Completion(completion) => {
            let mut text = format!(
                "{} completer {} status {:x} count {} requester {requester} tag {tag:02x} low {:02x}",
                completion.name(),
                parts(completion.completer()),
                completion.status() as u8,
                completion.byte_count(),
                completion.lower_address()
            );
            if let Some(length) = completion.length() {
                let skipped = completion.lower_address() & 3;
                let _ = write!(
                    text,
                    " len {} bytes {} data at {}",
                    length.dw(),
                    completion.data_bytes(),
                    12 + skipped
                );
            }
            text
        }
        other => panic!("no case for {other:?}"),
    };
    let Attributes { tc, relaxed_ordering, no_snoop, poisoned, digest, .. } = *repr.attributes();
    let attributes = u8::from(relaxed_ordering) << 1 | u8::from(no_snoop);
    let _ = writeln!(
        text,
        " td {} ep {} attr {attributes:x} tc {}",
        u8::from(digest),
        u8::from(poisoned),
        tc.value()
    );
    text
}

/// Requests of many lengths at all offsets, on both sides of 4 GiB, and the completions of some.
fn samples() -> Vec<Repr> {
    let mut samples = Vec::new();
    let host =
        Completer { id: Bdf(0x0008), rcb: Rcb::ALL[0], mps: Mps::ALL[1], policy: CompletionPolicy::Rcb };
    for base in [0xa000_0000, 0x12_3456_7000] {
        for offset in [0, 1, 2, 3, 4, 63, 125, 2047] {
            for bytes in [0, 1, 2, 3, 4, 5, 7, 8, 64, 255, 256, 1021, 2048, 4096 - offset] {
                let id = TransactionId::new(Bdf(0x1b03), Tag::from(bytes as u8));
                let address = base + u64::from(offset);
                samples.extend(Repr::mem_write(id, address, bytes).ok());
                let Ok(read) = Repr::mem_read(id, address, bytes) else { continue };
                samples.push(read);
                samples.extend(host.succeed(&read).map(|completion| completion.repr));
                samples.extend(
                    host.refuse(&read, [UnsupportedRequest, RetryStatus, CompleterAbort][bytes as usize % 3]),
                );
            }
        }
    }
    let attributes = Attributes {
        tc: TrafficClass::new(5).expect("of eight"),
        relaxed_ordering: true,
        poisoned: true,
        ..Attributes::default()
    };
    let write = Repr::mem_write(TransactionId::new(Bdf(0x1b03), Tag::from(1)), 0x1000, 64).expect("valid");
    samples.push(write.with_attributes(attributes).expect("a write may have them"));
    samples
}

#[test]
fn c_headers_decode_the_tlps_of_wire() {
    let mut lines = String::new();
    let mut wanted = String::new();
    for repr in samples() {
        let mut buffer = [0; 4096 + 32];
        let size = repr.emit(&mut buffer, &vec![0; repr.payload_bytes() as usize]).expect("valid");
        for byte in &buffer[..size] {
            let _ = write!(lines, "{byte:02x}");
        }
        lines.push('\n');
        wanted += &description(&repr);
    }
    for variant in [C, CPP, ADDRESS].into_iter().filter(|variant| variant.works()) {
        let printed = run_on(&compile("decode.c", variant), &[], &lines);
        for ((found, wanted), bytes) in printed.lines().zip(wanted.lines()).zip(lines.lines()) {
            assert_eq!(found, wanted, "of {}…", &bytes[..bytes.len().min(48)]);
        }
        assert_eq!(printed.lines().count(), wanted.lines().count());
    }
}
