//! A TLP and its data as the payload of a datagram.

use tlplab_transaction::{Payload, lay_out};
use tlplab_wire::nettlp::{HEADER_BYTES, Header};
use tlplab_wire::tlp::{Attributes, Repr};
use tlplab_wire::{Error, Problem, crc};

/// The same TLP with a digest, or without. Whoever asks with one is answered with one: what it protects on the way there it protects on the
/// way back.
pub(crate) fn with_digest(repr: Repr, digest: bool) -> Repr {
    let attributes = Attributes { digest, ..*repr.attributes() };
    repr.with_attributes(attributes).expect("every TLP may have a digest")
}

/// Writes NetTLP header and TLP into `buffer`; returns the bytes written. `data` is what the TLP carries: exactly its valid bytes, or
/// whole doublewords; what is missing, as in a length-only run or in the answer to a flush, is zeros.
///
/// # Errors
/// A buffer that is too short ([`MAX_DATAGRAM`](crate::MAX_DATAGRAM) is enough for any), a tag of more than ten bits, more data than the TLP
/// carries.
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
    lay_out(repr, data.bytes().unwrap_or_default(), &mut tlp[start..end])?;
    if repr.attributes().digest {
        let digest = crc::ecrc(&tlp[..end]);
        tlp[end..].copy_from_slice(&digest.to_le_bytes());
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_DATAGRAM;
    use tlplab_units::Bdf;
    use tlplab_wire::tlp::TransactionId;

    #[test]
    fn data_are_no_more_than_the_tlp_carries() {
        let id = TransactionId::new(Bdf(0x1B00), 7u8.into());
        let (read, write) = (Repr::mem_read(id, 0x1000, 4).unwrap(), Repr::mem_write(id, 0x1000, 4).unwrap());
        let mut buffer = [0; MAX_DATAGRAM];
        let mut written =
            |repr, bytes: &[u8]| emit(&mut buffer, Header::default(), repr, &Payload::from(bytes)).ok();
        assert_eq!((written(&read, &[]), written(&read, &[1; 4])), (Some(18), None));
        assert_eq!((written(&write, &[1; 4]), written(&write, &[1; 8])), (Some(22), None));
    }

    /// NetTLP 6, four DW of header behind five prefixes, 4 KiB, a digest, the seal of 12.
    #[test]
    fn the_longest_datagram() {
        assert_eq!(MAX_DATAGRAM, 6 + 36 + 4096 + 4 + 12);
    }
}
