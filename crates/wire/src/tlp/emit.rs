//! From meaning to bytes.

use super::completion::Completion;
use super::field::{DwLength, ProcessingHint, TransactionId};
use super::kind::{AtomicOp, CfgTarget, IoPort, Kind};
use super::repr::Repr;
use crate::{Error, Problem, crc};

/// The largest header with the most prefixes.
pub const MAX_HEADER_BYTES: usize = 16 + 4 * super::Prefixes::MAX;

impl Repr {
    /// Writes prefixes, header, `payload` and, where TD is set, a freshly computed digest. Returns the bytes written.
    ///
    /// # Errors
    /// A payload whose length is not [`Repr::payload_bytes`], a buffer that is too short, a tag of more than ten bits (which only
    /// flit mode has).
    pub fn emit(&self, buffer: &mut [u8], payload: &[u8]) -> Result<usize, Error> {
        let end = self.emit_without_digest(buffer, payload)?;
        if !self.attributes().digest {
            return Ok(end);
        }
        let digest = crc::ecrc(&buffer[..end]);
        buffer[end..end + 4].copy_from_slice(&digest.to_le_bytes());
        Ok(end + 4)
    }

    /// As [`Repr::emit`] with a digest that came from elsewhere: a switch passes the ECRC on as it is, right or wrong (PCIe 5.0
    /// §2.7.1). It is ignored where TD is not set.
    ///
    /// # Errors
    /// As [`Repr::emit`].
    pub fn emit_with_digest(&self, buffer: &mut [u8], payload: &[u8], digest: u32) -> Result<usize, Error> {
        let end = self.emit_without_digest(buffer, payload)?;
        if !self.attributes().digest {
            return Ok(end);
        }
        buffer[end..end + 4].copy_from_slice(&digest.to_le_bytes());
        Ok(end + 4)
    }

    /// Writes prefixes and header only, the part of a TLP that a length-only trace keeps; returns the bytes written.
    ///
    /// # Errors
    /// A buffer that is too short, a tag of more than ten bits.
    pub fn emit_header(&self, buffer: &mut [u8]) -> Result<usize, Error> {
        let needed = self.header_bytes() as usize;
        if buffer.len() < needed {
            return Err(Error::truncated("Buffer", "PCIe 5.0 §2.2.1", needed, buffer.len()));
        }
        let mut at = 0;
        for prefix in self.prefixes().iter() {
            buffer[at..at + 4].copy_from_slice(&prefix.bytes());
            at += 4;
        }
        let header = self.header()?;
        buffer[at..needed].copy_from_slice(&header[..needed - at]);
        Ok(needed)
    }

    fn emit_without_digest(&self, buffer: &mut [u8], payload: &[u8]) -> Result<usize, Error> {
        let (expected, have) = (self.payload_bytes() as usize, payload.len());
        if have != expected {
            let what = match have < expected {
                true => Problem::Truncated { needed: expected, have },
                false => Problem::TooLong { expected, have },
            };
            return Err(Error { field: "Payload", section: "PCIe 5.0 §2.2.2", offset: None, what });
        }
        if buffer.len() < self.wire_bytes() as usize {
            let needed = self.wire_bytes() as usize;
            return Err(Error::truncated("Buffer", "PCIe 5.0 §2.2.1", needed, buffer.len()));
        }
        let start = self.emit_header(buffer)?;
        buffer[start..start + expected].copy_from_slice(payload);
        Ok(start + expected)
    }

    fn header(&self) -> Result<[u8; 16], Error> {
        let tag = self.transaction_id().tag.value();
        if tag > 0x3ff {
            let wanted = "a tag of ten bits: wider ones need flit mode";
            return Err(Error::value("Tag", "PCIe 5.0 §2.2.6.2", tag.into(), wanted));
        }
        let mut header = [0; 16];
        let dw0 = self.dw0(tag).to_be_bytes();
        header[..4].copy_from_slice(&dw0);
        let hints = self.attributes().hints;
        match *self.kind() {
            Kind::MemRead { id, span, .. } => {
                let byte7 = hints.map_or(span.enables().byte(), |h| h.steering_tag);
                put_request(&mut header, id, byte7);
                put_address(&mut header, span.address(), hints);
            }
            Kind::MemWrite { id, span } => {
                put_request(&mut header, id, span.enables().byte());
                if let Some(hint) = hints {
                    header[6] = hint.steering_tag;
                }
                put_address(&mut header, span.address(), hints);
            }
            Kind::DeferrableMemWrite { id, span } => {
                put_request(&mut header, id, span.enables().byte());
                put_address(&mut header, span.address(), None);
            }
            Kind::IoRead { id, port } | Kind::IoWrite { id, port } => put_io(&mut header, id, port),
            Kind::CfgRead { id, target } | Kind::CfgWrite { id, target } => put_cfg(&mut header, id, target),
            Kind::AtomicOp { id, target } => {
                put_request(&mut header, id, hints.map_or(0, |h| h.steering_tag));
                put_address(&mut header, target.address(), hints);
            }
            Kind::Message(message) => {
                put_request(&mut header, message.id(), message.code() as u8);
                header[8..].copy_from_slice(&message.content());
            }
            Kind::Completion(completion) => put_completion(&mut header, completion),
        }
        Ok(header)
    }

    /// Format, type, tag's upper bits, attributes, length (PCIe 5.0 §2.2.1, figure 2-17).
    fn dw0(&self, tag: u16) -> u32 {
        let a = self.attributes();
        let flag = |on: bool, bit: u32| u32::from(on) << bit;
        u32::from(fmt_type(self.kind())) << 24
            | u32::from(tag >> 9) << 23
            | u32::from(a.tc.value()) << 20
            | u32::from(tag >> 8 & 1) << 19
            | flag(a.id_based_ordering, 18)
            | flag(a.hints.is_some(), 16)
            | flag(a.digest, 15)
            | flag(a.poisoned, 14)
            | flag(a.relaxed_ordering, 13)
            | flag(a.no_snoop, 12)
            | (a.at as u32) << 10
            | length_field(self.kind())
    }
}

/// Length as the header says it: of the payload, or of the bytes read. Reserved, so 0, in messages and completions without data.
fn length_field(kind: &Kind) -> u32 {
    let length = match kind {
        Kind::MemRead { span, .. } => Some(span.length()),
        Kind::IoRead { .. } | Kind::CfgRead { .. } => Some(DwLength::ONE),
        _ => DwLength::new(kind.payload_dw()),
    };
    length.map_or(0, |length| length.field().into())
}

/// Byte 0 (PCIe 5.0 table 2-3).
fn fmt_type(kind: &Kind) -> u8 {
    let four_dw = if kind.header_bytes() == 16 { 0x20 } else { 0 };
    let data = if kind.payload_dw() > 0 { 0x40 } else { 0 };
    let bits = match kind {
        Kind::MemRead { locked, .. } => u8::from(*locked),
        Kind::MemWrite { .. } => 0x00,
        Kind::DeferrableMemWrite { .. } => 0x1b,
        Kind::IoRead { .. } | Kind::IoWrite { .. } => 0x02,
        Kind::CfgRead { target, .. } | Kind::CfgWrite { target, .. } => 0x04 | u8::from(target.is_type1()),
        Kind::Message(message) => 0x10 | message.routing() as u8,
        Kind::Completion(completion) => 0x0a | u8::from(completion.is_locked()),
        Kind::AtomicOp { target, .. } => match target.op() {
            AtomicOp::FetchAdd => 0x0c,
            AtomicOp::Swap => 0x0d,
            AtomicOp::CompareAndSwap => 0x0e,
        },
    };
    four_dw | data | bits
}

fn put_request(header: &mut [u8; 16], id: TransactionId, byte7: u8) {
    header[4..6].copy_from_slice(&id.requester.0.to_be_bytes());
    header[6] = id.tag.value() as u8;
    header[7] = byte7;
}

fn put_address(header: &mut [u8; 16], address: u64, hints: Option<ProcessingHint>) {
    let word = address | hints.map_or(0, |h| h.hint as u64);
    match address >> 32 {
        0 => header[8..12].copy_from_slice(&(word as u32).to_be_bytes()),
        _ => header[8..].copy_from_slice(&word.to_be_bytes()),
    }
}

fn put_io(header: &mut [u8; 16], id: TransactionId, port: IoPort) {
    put_request(header, id, port.enables());
    header[8..12].copy_from_slice(&port.address().to_be_bytes());
}

fn put_cfg(header: &mut [u8; 16], id: TransactionId, target: CfgTarget) {
    put_request(header, id, target.enables());
    header[8..10].copy_from_slice(&target.function().0.to_be_bytes());
    header[10..12].copy_from_slice(&target.register().to_be_bytes());
}

fn put_completion(header: &mut [u8; 16], completion: Completion) {
    let word = (completion.status() as u16) << 13
        | u16::from(completion.is_byte_count_modified()) << 12
        | (completion.byte_count() & 0xfff) as u16;
    header[4..6].copy_from_slice(&completion.completer().0.to_be_bytes());
    header[6..8].copy_from_slice(&word.to_be_bytes());
    header[8..10].copy_from_slice(&completion.id().requester.0.to_be_bytes());
    header[10] = completion.id().tag.value() as u8;
    header[11] = completion.lower_address();
}
