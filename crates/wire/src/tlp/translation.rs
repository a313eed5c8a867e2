//! The content of address translation services (PCIe 5.0 chapter 10): translations, and invalidations of them.
//!
//! ```
//! use tlplab_wire::tlp::Translation;
//! let superpage = Translation { address: 0x4020_0000, bytes: 2 << 20, read: true, write: true, ..Translation::NONE };
//! assert_eq!(superpage.to_bytes(), [0, 0, 0, 0, 0x40, 0x2F, 0xF8, 0x03]);
//! assert_eq!(Translation::from_bytes(superpage.to_bytes()), superpage);
//! ```

use super::field::TransactionId;
use super::message::{Code, Message, Routing};
use crate::Error;
use tlplab_units::{Bdf, Tag};

/// The smallest range that a translation covers.
const PAGE: u64 = 4096;
/// Bit 11: the range is larger than a page, and the address says how large.
const SIZE: u64 = 1 << 11;
const NON_SNOOPED: u64 = 1 << 10;
const GLOBAL: u64 = 1 << 5;
const PRIVILEGED: u64 = 1 << 4;
const EXECUTE: u64 = 1 << 3;
const UNTRANSLATED_ONLY: u64 = 1 << 2;
const WRITE: u64 = 1 << 1;
const READ: u64 = 1 << 0;

/// A translation, one of those in a translation completion (PCIe 5.0 §10.2.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Translation {
    /// The start of the range: a multiple of its size.
    pub address: u64,
    /// The size of the range: a power of two from 4 KiB.
    pub bytes: u64,
    /// Accesses must not be snooped (N).
    pub non_snooped: bool,
    /// The same in all process address spaces.
    pub global: bool,
    /// With privilege (of a request with a process address space).
    pub privileged: bool,
    /// Code may be fetched.
    pub execute: bool,
    /// The range may only be accessed by untranslated requests (U).
    pub untranslated_only: bool,
    /// Writes are allowed.
    pub write: bool,
    /// Reads are allowed, those of no length, too.
    pub read: bool,
}

impl Translation {
    /// The answer where there is no translation: no access is allowed.
    pub const NONE: Self = Self {
        address: 0,
        bytes: PAGE,
        non_snooped: false,
        global: false,
        privileged: false,
        execute: false,
        untranslated_only: false,
        write: false,
        read: false,
    };

    /// The eight bytes, as a translation completion carries them.
    pub const fn to_bytes(self) -> [u8; 8] {
        let bits = with_size(self.address, self.bytes)
            | flag(self.non_snooped, NON_SNOOPED)
            | flag(self.global, GLOBAL)
            | flag(self.privileged, PRIVILEGED)
            | flag(self.execute, EXECUTE)
            | flag(self.untranslated_only, UNTRANSLATED_ONLY)
            | flag(self.write, WRITE)
            | flag(self.read, READ);
        bits.to_be_bytes()
    }

    /// The content of eight bytes of a translation completion; reserved bits are ignored.
    pub const fn from_bytes(bytes: [u8; 8]) -> Self {
        let bits = u64::from_be_bytes(bytes);
        let (address, bytes) = range_of(bits);
        Self {
            address,
            bytes,
            non_snooped: bits & NON_SNOOPED != 0,
            global: bits & GLOBAL != 0,
            privileged: bits & PRIVILEGED != 0,
            execute: bits & EXECUTE != 0,
            untranslated_only: bits & UNTRANSLATED_ONLY != 0,
            write: bits & WRITE != 0,
            read: bits & READ != 0,
        }
    }
}

/// Untranslated addresses whose translations a function is to forget: the payload of an `Invalidate_Request` (PCIe 5.0 §10.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Invalidation {
    /// The start of the range: a multiple of its size.
    pub address: u64,
    /// The size of the range: a power of two from 4 KiB.
    pub bytes: u64,
}

impl Invalidation {
    /// The eight bytes.
    pub const fn to_bytes(self) -> [u8; 8] {
        with_size(self.address, self.bytes).to_be_bytes()
    }
    /// The content of eight bytes of an `Invalidate_Request`; reserved bits, and the one about process address spaces, are ignored.
    pub const fn from_bytes(bytes: [u8; 8]) -> Self {
        let (address, bytes) = range_of(u64::from_be_bytes(bytes));
        Self { address, bytes }
    }
    /// The fewest ranges of this form that cover `bytes` from `address` on, whole pages, and nothing else.
    pub fn covering(address: u64, bytes: u64) -> impl Iterator<Item = Self> {
        let (mut from, end) = (address / PAGE * PAGE, address.saturating_add(bytes).div_ceil(PAGE) * PAGE);
        core::iter::from_fn(move || {
            let left = end.checked_sub(from).filter(|left| *left > 0)?;
            let aligned = if from == 0 { 1 << 63 } else { 1 << from.trailing_zeros() };
            let bytes = aligned.min(1 << left.ilog2());
            let range = Self { address: from, bytes };
            from += bytes;
            Some(range)
        })
    }
}

impl Message {
    /// `Invalidate_Request` number `itag` (0 to 31) to `function`; its [`Invalidation`] is the payload (PCIe 5.0 §10.3.1).
    ///
    /// # Errors
    /// A number of more than five bits.
    pub fn invalidate_request(requester: Bdf, function: Bdf, itag: u8) -> Result<Self, Error> {
        if itag > 31 {
            return Err(Error::value("ITag", "PCIe 5.0 §10.3.1", itag.into(), "five bits"));
        }
        let mut content = [0; 8];
        content[..2].copy_from_slice(&function.0.to_be_bytes());
        let id = TransactionId::new(requester, Tag::from(itag));
        Self::new(id, Code::InvalidateRequest, Routing::ById, content, 2)
    }

    /// `Invalidate_Completion` to `requester` of the invalidations in `itags`, bit n that of number n; `copies` of it are sent, 1 to 8, one in each
    /// traffic class in use (PCIe 5.0 §10.3.2).
    ///
    /// # Errors
    /// No copies, or more than eight.
    pub fn invalidate_completion(
        function: Bdf,
        requester: Bdf,
        itags: u32,
        copies: u8,
    ) -> Result<Self, Error> {
        if !(1..=8).contains(&copies) {
            return Err(Error::value("CC", "PCIe 5.0 §10.3.2", copies.into(), "one to eight copies"));
        }
        let mut content = [0; 8];
        content[..2].copy_from_slice(&requester.0.to_be_bytes());
        content[3] = copies & 7;
        content[4..].copy_from_slice(&itags.to_be_bytes());
        let id = TransactionId { requester: function, ..TransactionId::default() };
        Self::new(id, Code::InvalidateCompletion, Routing::ById, content, 0)
    }

    /// The number of an `Invalidate_Request`.
    pub fn itag(&self) -> Option<u8> {
        (self.code() == Code::InvalidateRequest).then_some(self.id().tag.value() as u8 & 31)
    }

    /// The invalidations that an `Invalidate_Completion` completes, and how many copies of it there are.
    pub fn completed_itags(&self) -> Option<(u32, u8)> {
        let [_, _, _, copies, itags @ ..] = self.content();
        let copies = if copies & 7 == 0 { 8 } else { copies & 7 };
        (self.code() == Code::InvalidateCompletion).then_some((u32::from_be_bytes(itags), copies))
    }
}

const fn flag(on: bool, bit: u64) -> u64 {
    if on { bit } else { 0 }
}

/// An address with its size: below the lowest zero from bit 12 on are as many ones as the size has bits more than a page (PCIe 5.0 table 10-4).
const fn with_size(address: u64, bytes: u64) -> u64 {
    if bytes <= PAGE { address & !(PAGE - 1) } else { address & !(bytes - 1) | (bytes / 2 - PAGE) | SIZE }
}

const fn range_of(bits: u64) -> (u64, u64) {
    if bits & SIZE == 0 {
        return (bits & !(PAGE - 1), PAGE);
    }
    let ones = (bits >> 12).trailing_ones();
    let bytes = if ones >= 51 { 1 << 63 } else { PAGE << (ones + 1) };
    (bits & !(bytes - 1), bytes)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    /// Table 10-4 of PCIe 5.0: 8 KiB has bit 12 zero, 2 MiB bits 19:12 one and bit 20 zero.
    #[test]
    fn sizes_are_ones_below_a_zero() {
        let cases = [
            (0x1234_5000, PAGE, 0x1234_5000),
            (0x1234_4000, 2 * PAGE, 0x1234_4800),
            (0x1234_4000, 4 * PAGE, 0x1234_5800),
            (0x4020_0000, 2 << 20, 0x402F_F800),
            (0x1_4000_0000, 1 << 30, 0x1_5FFF_F800),
            (1 << 63, 1 << 63, 1 << 63 | ((1 << 62) - PAGE) | SIZE),
        ];
        for (address, bytes, bits) in cases {
            let range = Invalidation { address, bytes };
            assert_eq!(u64::from_be_bytes(range.to_bytes()), bits, "{bytes:#x}");
            assert_eq!(Invalidation::from_bytes(range.to_bytes()), range);
        }
        let all = Invalidation::from_bytes(u64::MAX.to_be_bytes());
        assert_eq!((all.address, all.bytes), (1 << 63, 1 << 63));
    }

    #[test]
    fn every_flag_has_its_bit() {
        let all = u64::from_be_bytes(
            Translation {
                address: 0,
                bytes: PAGE,
                non_snooped: true,
                global: true,
                privileged: true,
                execute: true,
                untranslated_only: true,
                write: true,
                read: true,
            }
            .to_bytes(),
        );
        assert_eq!(all, 0x43F);
        for bit in [0, 1, 2, 3, 4, 5, 10] {
            let bytes = (1u64 << bit).to_be_bytes();
            assert_eq!(Translation::from_bytes(bytes).to_bytes(), bytes);
            assert_ne!(Translation::from_bytes(bytes), Translation::NONE);
        }
        assert_eq!(Translation::from_bytes(0x3C0u64.to_be_bytes()), Translation::NONE, "reserved");
    }

    #[test]
    fn invalidation_ranges_cover_exactly_the_touched_pages() {
        let cover = |address, bytes| {
            Invalidation::covering(address, bytes).map(|r| (r.address, r.bytes)).collect::<Vec<_>>()
        };
        assert_eq!(cover(0x1000, 0x1000), [(0x1000, 0x1000)]);
        assert_eq!(cover(0x1800, 0x1000), [(0x1000, 0x1000), (0x2000, 0x1000)]);
        assert_eq!(cover(0x3000, 0x6000), [(0x3000, 0x1000), (0x4000, 0x4000), (0x8000, 0x1000)]);
        assert_eq!(cover(0, 3 << 20), [(0, 2 << 20), (2 << 20, 1 << 20)]);
        assert_eq!(cover(0x5000, 0), []);
    }

    #[test]
    fn messages_name_function_and_number() {
        let (root, function) = (Bdf(0), Bdf::new(3, 0, 1).unwrap());
        let request = Message::invalidate_request(root, function, 31).unwrap();
        assert_eq!(
            (request.target(), request.itag(), request.completed_itags()),
            (Some(function), Some(31), None)
        );
        assert!(Message::invalidate_request(root, function, 32).is_err());
        let completion = Message::invalidate_completion(function, root, 1 << 31, 8).unwrap();
        assert_eq!((completion.target(), completion.completed_itags()), (Some(root), Some((1 << 31, 8))));
        assert_eq!(completion.content(), [0, 0, 0, 0, 0x80, 0, 0, 0]);
        assert!(Message::invalidate_completion(function, root, 1, 9).is_err());
    }
}
