//! A view of bytes as a TLP: every field, no judgement.

use super::field::DwLength;
use super::prefix::Prefix;
use crate::{Error, Problem, crc};
use tlplab_units::{Bdf, Tag};

/// Bytes seen as a TLP: prefixes, header, payload, digest; no framing, sequence number or LCRC.
///
/// Every accessor returns `None` where the bytes end before the field; none panics. To judge the fields together is
/// [`Repr::parse`](super::Repr::parse)'s business. Offsets in the names below count from the header's first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    prefixes: usize,
    local: usize,
}

impl<'a> Packet<'a> {
    /// Views `bytes`, whatever they are.
    pub const fn new(bytes: &'a [u8]) -> Self {
        let (mut prefixes, mut local) = (0, 0);
        while prefixes + 4 <= bytes.len() && bytes[prefixes] >> 5 == 0b100 {
            if bytes[prefixes] & 0x10 == 0 && local == prefixes {
                local += 4;
            }
            prefixes += 4;
        }
        Self { bytes, prefixes, local }
    }

    /// All the bytes.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
    /// Offset of the header: bytes of prefixes.
    pub const fn header_offset(&self) -> usize {
        self.prefixes
    }
    /// The prefixes as they stand, each four bytes.
    pub fn raw_prefixes(&self) -> impl Iterator<Item = [u8; 4]> + 'a {
        let (prefixes, _) = self.bytes.split_at(self.prefixes);
        prefixes.chunks_exact(4).map(|c| [c[0], c[1], c[2], c[3]])
    }
    /// The prefixes, each read or refused.
    pub fn prefixes(&self) -> impl Iterator<Item = Result<Prefix, Error>> + 'a {
        self.raw_prefixes().map(Prefix::from_bytes)
    }

    const fn byte(&self, offset: usize) -> Option<u8> {
        let at = self.prefixes + offset;
        if at < self.bytes.len() { Some(self.bytes[at]) } else { None }
    }
    const fn half(&self, offset: usize) -> Option<u16> {
        match (self.byte(offset), self.byte(offset + 1)) {
            (Some(high), Some(low)) => Some(u16::from_be_bytes([high, low])),
            _ => None,
        }
    }
    const fn word(&self, offset: usize) -> Option<u32> {
        match (self.half(offset), self.half(offset + 2)) {
            (Some(high), Some(low)) => Some((high as u32) << 16 | low as u32),
            _ => None,
        }
    }
    const fn bit(&self, offset: usize, bit: u8) -> Option<bool> {
        match self.byte(offset) {
            Some(byte) => Some(byte >> bit & 1 != 0),
            None => None,
        }
    }

    /// Byte 0: format and type together.
    pub const fn fmt_type(&self) -> Option<u8> {
        self.byte(0)
    }
    /// Fmt\[2:0\].
    pub const fn fmt(&self) -> Option<u8> {
        match self.byte(0) {
            Some(byte) => Some(byte >> 5),
            None => None,
        }
    }
    /// Type\[4:0\].
    pub const fn type_bits(&self) -> Option<u8> {
        match self.byte(0) {
            Some(byte) => Some(byte & 31),
            None => None,
        }
    }
    /// Fmt says that a payload follows.
    pub const fn has_data(&self) -> Option<bool> {
        self.bit(0, 6)
    }
    /// TC.
    pub const fn tc(&self) -> Option<u8> {
        match self.byte(1) {
            Some(byte) => Some(byte >> 4 & 7),
            None => None,
        }
    }
    /// LN: lightweight notification, gone since 6.0.
    pub const fn ln(&self) -> Option<bool> {
        self.bit(1, 1)
    }
    /// TH: hints are present.
    pub const fn th(&self) -> Option<bool> {
        self.bit(1, 0)
    }
    /// TD: a digest follows.
    pub const fn td(&self) -> Option<bool> {
        self.bit(2, 7)
    }
    /// EP: poisoned.
    pub const fn ep(&self) -> Option<bool> {
        self.bit(2, 6)
    }
    /// Attr\[2:0\]: IDO, RO, NS.
    pub const fn attr(&self) -> Option<u8> {
        match (self.byte(1), self.byte(2)) {
            (Some(high), Some(low)) => Some(high & 4 | low >> 4 & 3),
            _ => None,
        }
    }
    /// AT.
    pub const fn at(&self) -> Option<u8> {
        match self.byte(2) {
            Some(byte) => Some(byte >> 2 & 3),
            None => None,
        }
    }
    /// Length\[9:0\] as it stands; 0 means 1024.
    pub const fn length_field(&self) -> Option<u16> {
        match self.half(2) {
            Some(half) => Some(half & 0x3ff),
            None => None,
        }
    }
    /// Length in DW.
    pub const fn length(&self) -> Option<DwLength> {
        match self.length_field() {
            Some(bits) => Some(DwLength::from_field(bits)),
            None => None,
        }
    }
    /// Type says that this is a completion, whose IDs lie elsewhere than a request's.
    pub const fn is_completion(&self) -> Option<bool> {
        match self.type_bits() {
            Some(bits) => Some(bits & 0b11110 == 0b01010),
            None => None,
        }
    }
    /// Requester ID: bytes 4 and 5 of a request, 8 and 9 of a completion.
    pub const fn requester(&self) -> Option<Bdf> {
        let id = match self.is_completion() {
            Some(true) => self.half(8),
            _ => self.half(4),
        };
        match id {
            Some(id) => Some(Bdf(id)),
            None => None,
        }
    }
    /// Tag\[7:0\]: byte 6 of a request, 10 of a completion.
    pub const fn tag_byte(&self) -> Option<u8> {
        match self.is_completion() {
            Some(true) => self.byte(10),
            _ => self.byte(6),
        }
    }
    /// T9 and T8: the tag's upper bits where ten are enabled (PCIe 4.0 §2.2.6.2).
    pub const fn t9_t8(&self) -> Option<u8> {
        match self.byte(1) {
            Some(byte) => Some(byte >> 6 & 2 | byte >> 3 & 1),
            None => None,
        }
    }
    /// The tag with all its ten bits.
    pub const fn tag(&self) -> Option<Tag> {
        match (self.t9_t8(), self.tag_byte()) {
            (Some(high), Some(low)) => Tag::new((high as u16) << 8 | low as u16),
            _ => None,
        }
    }
    /// Byte 7: last and first DW byte enables of a request, the code of a message.
    pub const fn byte7(&self) -> Option<u8> {
        self.byte(7)
    }
    /// Address of a memory, IO or atomic request: 32 or 64 bits as Fmt says, low two bits zero.
    pub const fn address(&self) -> Option<u64> {
        match self.bit(0, 5) {
            Some(true) => match (self.word(8), self.word(12)) {
                (Some(high), Some(low)) => Some((high as u64) << 32 | (low & !3) as u64),
                _ => None,
            },
            Some(false) => match self.word(8) {
                Some(low) => Some((low & !3) as u64),
                None => None,
            },
            None => None,
        }
    }
    /// PH: the low two bits of the address's last byte.
    pub const fn ph(&self) -> Option<u8> {
        let byte = match self.bit(0, 5) {
            Some(true) => self.byte(15),
            _ => self.byte(11),
        };
        match byte {
            Some(byte) => Some(byte & 3),
            None => None,
        }
    }
    /// Bytes 8 and 9: the function a configuration request or a message routed by ID goes to.
    pub const fn target(&self) -> Option<Bdf> {
        match self.half(8) {
            Some(id) => Some(Bdf(id)),
            None => None,
        }
    }
    /// Register of a configuration request as a byte offset: extended register number, register number.
    pub const fn register(&self) -> Option<u16> {
        match self.half(10) {
            Some(half) => Some(half & 0xffc),
            None => None,
        }
    }
    /// Completer ID of a completion.
    pub const fn completer(&self) -> Option<Bdf> {
        match self.half(4) {
            Some(id) => Some(Bdf(id)),
            None => None,
        }
    }
    /// Completion Status\[2:0\].
    pub const fn status(&self) -> Option<u8> {
        match self.byte(6) {
            Some(byte) => Some(byte >> 5),
            None => None,
        }
    }
    /// BCM.
    pub const fn bcm(&self) -> Option<bool> {
        self.bit(6, 4)
    }
    /// Byte Count, 1 to 4096: a field of 0 means 4096.
    pub const fn byte_count(&self) -> Option<u32> {
        match self.half(6) {
            Some(half) if half & 0xfff == 0 => Some(4096),
            Some(half) => Some(half as u32 & 0xfff),
            None => None,
        }
    }
    /// Lower Address\[6:0\].
    pub const fn lower_address(&self) -> Option<u8> {
        match self.byte(11) {
            Some(byte) => Some(byte & 0x7f),
            None => None,
        }
    }
    /// Bytes 8 to 15, which a message's code gives a meaning.
    pub const fn message_content(&self) -> Option<[u8; 8]> {
        match (self.word(8), self.word(12)) {
            (Some(high), Some(low)) => Some(((high as u64) << 32 | low as u64).to_be_bytes()),
            _ => None,
        }
    }

    /// Header size without prefixes, as Fmt says: 12 or 16.
    pub const fn header_len(&self) -> Option<usize> {
        match self.bit(0, 5) {
            Some(true) => Some(16),
            Some(false) => Some(12),
            None => None,
        }
    }
    /// Bytes that prefixes, header, payload and digest should have together.
    pub const fn expected_len(&self) -> Option<usize> {
        match (self.header_len(), self.length(), self.has_data(), self.td()) {
            (Some(header), Some(length), Some(data), Some(digest)) => {
                let payload = if data { length.bytes() as usize } else { 0 };
                Some(self.prefixes + header + payload + if digest { 4 } else { 0 })
            }
            _ => None,
        }
    }

    /// Checks that there are as many bytes as Fmt, Length and TD say.
    ///
    /// # Errors
    /// Too few or too many.
    pub const fn check_len(&self) -> Result<(), Error> {
        let have = self.bytes.len();
        let section = "PCIe 5.0 §2.2.2";
        let Some(expected) = self.expected_len() else {
            return Err(Error::truncated("TLP Header", "PCIe 5.0 §2.2.1", self.prefixes + 12, have).at(have));
        };
        if have < expected {
            return Err(Error::truncated("Length", section, expected, have).at(self.prefixes + 2));
        }
        if have > expected {
            let what = Problem::TooLong { expected, have };
            return Err(Error { field: "Length", section, offset: None, what }.at(self.prefixes + 2));
        }
        Ok(())
    }

    /// The payload, as much of it as there is.
    pub fn payload(&self) -> &'a [u8] {
        let (Some(header), Some(true), Some(length)) = (self.header_len(), self.has_data(), self.length())
        else {
            return &[];
        };
        let start = (self.prefixes + header).min(self.bytes.len());
        let end = (start + length.bytes() as usize).min(self.bytes.len());
        &self.bytes[start..end]
    }

    /// The digest's four bytes as a little-endian word, as [`crc::ecrc`] counts.
    pub fn digest(&self) -> Option<u32> {
        let end = self.expected_len()?;
        let bytes = self.bytes.get(end.checked_sub(4)?..end)?;
        match self.td()? {
            true => Some(u32::from_le_bytes(bytes.try_into().ok()?)),
            false => None,
        }
    }

    /// True if the digest matches the TLP; `None` if there is none.
    pub fn ecrc_matches(&self) -> Option<bool> {
        let digest = self.digest()?;
        let end = self.expected_len()?;
        Some(crc::ecrc(self.bytes.get(..end - 4)?) == digest)
    }

    /// Bytes of local prefixes at the front, which the ECRC does not cover.
    pub const fn local_prefix_len(&self) -> usize {
        self.local
    }
}
