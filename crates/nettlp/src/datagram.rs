//! A TLP and its data as the payload of a datagram.

use tlplab_transaction::{Payload, data_bytes, padding_before};
use tlplab_wire::nettlp::{HEADER_BYTES, Header};
use tlplab_wire::tlp::Repr;
use tlplab_wire::{Error, Problem, crc};

/// Writes NetTLP header and TLP into `buffer`; returns the bytes written. `data` is what the TLP carries: exactly its valid bytes, or
/// whole doublewords; what is missing, as in a length-only run or in the answer to a flush, is zeros.
///
/// # Errors
/// A buffer that is too short ([`MAX_DATAGRAM`](crate::MAX_DATAGRAM) is enough for any), a tag of more than ten bits.
///
/// # Panics
/// More data than the TLP carries.
pub fn emit(buffer: &mut [u8], header: Header, repr: &Repr, data: &Payload) -> Result<usize, Error> {
    let len = HEADER_BYTES + repr.wire_bytes() as usize;
    let have = buffer.len();
    let Some(buffer) = buffer.get_mut(..len) else {
        let what = Problem::Truncated { needed: len, have };
        return Err(Error { field: "Buffer", section: "PCIe 5.0 §2.2.1", offset: None, what });
    };
    let (head, tlp) = buffer.split_at_mut(HEADER_BYTES);
    head.copy_from_slice(&header.emit());
    let start = repr.emit_header(tlp)?;
    let end = start + repr.payload_bytes() as usize;
    let field = &mut tlp[start..end];
    if !field.is_empty() {
        let data = data.bytes().unwrap_or_default();
        let before = if data.len() == data_bytes(repr) as usize { padding_before(repr) as usize } else { 0 };
        let (padding, rest) = field.split_at_mut(before);
        let (body, after) = rest.split_at_mut(data.len());
        padding.fill(0);
        body.copy_from_slice(data);
        after.fill(0);
    }
    if repr.attributes().digest {
        let digest = crc::ecrc(&tlp[..end]);
        tlp[end..].copy_from_slice(&digest.to_le_bytes());
    }
    Ok(len)
}
