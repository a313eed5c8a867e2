//! The speed of the codec, for `make bench`: one memory write of 256 B, again and again.
//!
//! ```text
//! codec parse|emit|lcrc COUNT
//! ```
//! CPU time is for the caller to measure (`getrusage`).

use std::hint::black_box;
use std::process::ExitCode;
use tlplab_units::{Bdf, Tag};
use tlplab_wire::crc;
use tlplab_wire::tlp::{Packet, Repr, TransactionId};

const PAYLOAD: usize = 256;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let count = arguments.get(1).and_then(|n| n.parse::<u64>().ok());
    let (Some(what), Some(count)) = (arguments.first(), count) else {
        eprintln!("usage: codec parse|emit|lcrc COUNT");
        return ExitCode::FAILURE;
    };
    let id = TransactionId::new(Bdf(0x0100), Tag::new(5).expect("a tag"));
    let repr = Repr::mem_write(id, 0x1_2345_6000, PAYLOAD as u32).expect("a write within a page");
    let payload: [u8; PAYLOAD] = std::array::from_fn(|i| (i * 167 + 13) as u8);
    let mut buffer = [0; 16 + PAYLOAD];
    let bytes = repr.emit(&mut buffer, &payload).expect("a buffer that is long enough");
    let mut sum = 0u64;
    for i in 0..count {
        sum = sum.wrapping_add(match what.as_str() {
            "parse" => parse(&buffer[..bytes]),
            "emit" => emit(black_box(&repr), &mut buffer, &payload),
            "lcrc" => u64::from(crc::lcrc(i as u16, black_box(&buffer[..bytes]))),
            other => {
                eprintln!("{other:?} is none of parse, emit, lcrc");
                return ExitCode::FAILURE;
            }
        });
    }
    println!(r#"{{"count": {count}, "bytes": {}, "sum": {sum}}}"#, count * bytes as u64);
    ExitCode::SUCCESS
}

/// Reads the header, and checks that the payload it promises follows.
fn parse(bytes: &[u8]) -> u64 {
    let repr = Repr::parse(&Packet::new(black_box(bytes))).expect("what emit() wrote");
    u64::from(black_box(repr).payload_bytes())
}

fn emit(repr: &Repr, buffer: &mut [u8], payload: &[u8]) -> u64 {
    repr.emit(black_box(buffer), payload).expect("a buffer that is long enough") as u64
}
