//! Flits: 256 bytes of which 236 carry TLPs (PCIe 6.0).
//!
//! ```text
//! 0                                        236    242     250    256
//! | TLP bytes (236)                        | DLP 6 | CRC 8 | FEC 6 |
//!                                          | flit header 2, DLLP 4 |
//! ```
//!
//! # Sourced and unsourced parts
//! The four regions, their sizes and their order, that the CRC covers TLP and DLP bytes and the FEC everything before it, are public
//! (PCI-SIG's presentations of 6.0), and so is the purpose of the six DLP bytes: two of flit header, four of DLLP, which needs no CRC of its own
//! since the flit has one. The fields of a flit-mode TLP's first DW ([`HeaderDw0`]) are those that the documentation of the crate
//! `rtlp-lib` 0.5 gives; that of TS, the size of the trailer behind the payload, differs there from other public descriptions and is passed on
//! uninterpreted.
//!
//! Not sourced, and therefore carried as opaque bytes: the bits of the flit header (usage, replay command, sequence number), the
//! code that makes the eight CRC bytes and the one that makes the six FEC bytes, the type codes of flit mode and its orthogonal header
//! content, where the tags of 14 bits are. No function here computes or checks a flit's CRC; whoever
//! simulates a flit link decides by other means whether a flit arrived whole. [`tlp::Repr::emit`](crate::tlp::Repr::emit) writes the
//! headers of all generations before, and refuses tags that only flit mode has.

use crate::tlp::DwLength;
use crate::{Error, Problem, dllp};

/// Bytes of a flit.
pub const BYTES: usize = 256;
/// Bytes that carry TLPs. TLPs follow one another and may go on in the next flit.
pub const TLP_BYTES: usize = 236;
/// Bytes of data link payload: flit header and DLLP.
pub const DLP_BYTES: usize = 6;
/// Bytes of CRC, over TLP and DLP bytes.
pub const CRC_BYTES: usize = 8;
/// Bytes of forward error correction, over everything before.
pub const FEC_BYTES: usize = 6;

const _: () = assert!(TLP_BYTES + DLP_BYTES + CRC_BYTES + FEC_BYTES == BYTES);

const SECTION: &str = "PCIe 6.0 chapter 4, flit layout";

/// 256 bytes seen as a flit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    bytes: &'a [u8; BYTES],
}

impl<'a> Packet<'a> {
    /// Views `bytes`.
    ///
    /// # Errors
    /// Anything but 256 bytes.
    pub const fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        let have = bytes.len();
        match bytes.first_chunk::<BYTES>() {
            Some(bytes) if have == BYTES => Ok(Self { bytes }),
            Some(_) => {
                let what = Problem::TooLong { expected: BYTES, have };
                Err(Error { field: "Flit", section: SECTION, offset: Some(BYTES as u16), what })
            }
            None => Err(Error::truncated("Flit", SECTION, BYTES, have).at(have)),
        }
    }

    fn region<const N: usize>(&self, start: usize) -> [u8; N] {
        let mut region = [0; N];
        region.copy_from_slice(&self.bytes[start..start + N]);
        region
    }
    /// The 236 TLP bytes.
    pub fn tlp_bytes(&self) -> &'a [u8] {
        &self.bytes[..TLP_BYTES]
    }
    /// DLP bytes 0 and 1, opaque.
    pub fn flit_header(&self) -> [u8; 2] {
        self.region(TLP_BYTES)
    }
    /// DLP bytes 2 to 5: a DLLP without CRC, for [`dllp::Repr::from_content`].
    pub fn dllp(&self) -> [u8; 4] {
        self.region(TLP_BYTES + 2)
    }
    /// The CRC bytes, opaque.
    pub fn crc(&self) -> [u8; CRC_BYTES] {
        self.region(TLP_BYTES + DLP_BYTES)
    }
    /// The FEC bytes, opaque.
    pub fn fec(&self) -> [u8; FEC_BYTES] {
        self.region(TLP_BYTES + DLP_BYTES + CRC_BYTES)
    }
}

/// A flit's contents beside its TLP bytes, which are the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Repr {
    /// DLP bytes 0 and 1, opaque.
    pub flit_header: [u8; 2],
    /// The DLLP that travels along.
    pub dllp: dllp::Repr,
    /// The CRC bytes, opaque.
    pub crc: [u8; CRC_BYTES],
    /// The FEC bytes, opaque.
    pub fec: [u8; FEC_BYTES],
}

impl Repr {
    /// Reads everything but the TLP bytes.
    ///
    /// # Errors
    /// A DLLP of a reserved type.
    pub fn parse(packet: &Packet<'_>) -> Result<Self, Error> {
        let dllp = dllp::Repr::from_content(packet.dllp()).map_err(|error| error.at(TLP_BYTES + 2))?;
        Ok(Self { flit_header: packet.flit_header(), dllp, crc: packet.crc(), fec: packet.fec() })
    }

    /// The 256 bytes around `tlp_bytes`.
    pub fn emit(&self, tlp_bytes: &[u8; TLP_BYTES]) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let (tlp, rest) = bytes.split_at_mut(TLP_BYTES);
        let (dlp, rest) = rest.split_at_mut(DLP_BYTES);
        let (crc, fec) = rest.split_at_mut(CRC_BYTES);
        tlp.copy_from_slice(tlp_bytes);
        dlp[..2].copy_from_slice(&self.flit_header);
        dlp[2..].copy_from_slice(&self.dllp.content());
        crc.copy_from_slice(&self.crc);
        fec.copy_from_slice(&self.fec);
        bytes
    }
}

/// The first DW of a TLP in flit mode, seen field by field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeaderDw0([u8; 4]);

impl HeaderDw0 {
    /// Views four bytes.
    pub const fn new(bytes: [u8; 4]) -> Self {
        Self(bytes)
    }
    /// Type\[7:0\]: takes the place of Fmt and Type.
    pub const fn type_bits(self) -> u8 {
        self.0[0]
    }
    /// TC.
    pub const fn tc(self) -> u8 {
        self.0[1] >> 5
    }
    /// OHC\[4:0\]: one bit for each DW of orthogonal header content behind the header base.
    pub const fn ohc(self) -> u8 {
        self.0[1] & 31
    }
    /// TS\[2:0\]: the size of the trailer behind the payload.
    pub const fn ts(self) -> u8 {
        self.0[2] >> 5
    }
    /// Attr\[2:0\]: IDO, RO, NS.
    pub const fn attr(self) -> u8 {
        self.0[2] >> 2 & 7
    }
    /// Length in DW: a field of 0 means 1024.
    pub const fn length(self) -> DwLength {
        DwLength::from_field(u16::from_be_bytes([self.0[2], self.0[3]]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_lie_where_they_should() {
        let mut bytes = [0u8; BYTES];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = at as u8;
        }
        bytes[238..242].copy_from_slice(&[0x00, 0, 0x01, 0x23]);
        let packet = Packet::new(&bytes).unwrap();
        assert_eq!((packet.tlp_bytes().len(), packet.tlp_bytes()[235]), (236, 235));
        assert_eq!(packet.flit_header(), [236, 237]);
        assert_eq!((packet.crc()[0], packet.crc()[7]), (242, 249));
        assert_eq!((packet.fec()[0], packet.fec()[5]), (250, 255));
        let repr = Repr::parse(&packet).unwrap();
        assert_eq!(repr.dllp, dllp::Repr::Ack(dllp::Sequence::new(0x123)));
        assert_eq!(repr.emit(packet.tlp_bytes().try_into().unwrap()), bytes);
    }

    #[test]
    fn the_first_dw_in_flit_mode() {
        let dw0 = HeaderDw0::new([0x03, 0b1010_0001, 0b0011_1001, 0x04]);
        assert_eq!((dw0.type_bits(), dw0.tc(), dw0.ohc(), dw0.ts(), dw0.attr()), (3, 5, 1, 1, 6));
        assert_eq!(dw0.length().dw(), 0x104);
        assert_eq!(HeaderDw0::new([0x40, 0, 0, 0]).length().dw(), 1024);
    }

    #[test]
    fn only_256_bytes_are_a_flit() {
        for len in [0, 1, 255, 257] {
            let error = Packet::new(&[0; 300][..len]).unwrap_err();
            assert_eq!(error.field, "Flit", "{len} bytes");
        }
    }
}
