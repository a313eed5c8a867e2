//! The values that header fields hold, each of which can only be valid.

use crate::Error;
use core::fmt;
use tlplab_units::{Bdf, Tag, TrafficClass};

/// Requester and tag, by which a completion is matched to its request (PCIe 5.0 §2.2.6.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId {
    /// The function that issued the request.
    pub requester: Bdf,
    /// Its tag. Posted requests carry one that means nothing.
    pub tag: Tag,
}

impl TransactionId {
    /// `requester` and `tag`.
    pub const fn new(requester: Bdf, tag: Tag) -> Self {
        Self { requester, tag }
    }
}

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tag {}", self.requester, self.tag)
    }
}

/// Length in DW, 1 to 1024 (PCIe 5.0 §2.2.2). On the wire 1024 is written as 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DwLength(u16);

impl DwLength {
    /// One DW.
    pub const ONE: Self = Self(1);

    /// `dw` double words, 1 to 1024.
    pub const fn new(dw: u32) -> Option<Self> {
        if dw >= 1 && dw <= 1024 { Some(Self(dw as u16)) } else { None }
    }
    /// The field's ten bits: 0 means 1024.
    pub const fn from_field(bits: u16) -> Self {
        let bits = bits & 0x3ff;
        Self(if bits == 0 { 1024 } else { bits })
    }
    /// The field's ten bits.
    pub const fn field(self) -> u16 {
        self.0 & 0x3ff
    }
    /// Double words, 1 to 1024.
    pub const fn dw(self) -> u32 {
        self.0 as u32
    }
    /// Bytes, 4 to 4096.
    pub const fn bytes(self) -> u32 {
        self.0 as u32 * 4
    }
}

/// First and last DW byte enables, four bits each; bit 0 enables the byte at the lowest address (PCIe 5.0 §2.2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ByteEnables(u8);

impl ByteEnables {
    /// `first` and `last`, of which the low four bits count.
    pub const fn new(first: u8, last: u8) -> Self {
        Self(last << 4 | first & 15)
    }
    /// The header's byte 7: last in the high nibble, first in the low one.
    pub const fn from_byte(byte: u8) -> Self {
        Self(byte)
    }
    /// The header's byte 7.
    pub const fn byte(self) -> u8 {
        self.0
    }
    /// First DW byte enables.
    pub const fn first(self) -> u8 {
        self.0 & 15
    }
    /// Last DW byte enables; 0 in a request of one DW.
    pub const fn last(self) -> u8 {
        self.0 >> 4
    }
    /// Every byte of `length` DW.
    pub const fn full(length: DwLength) -> Self {
        Self(if length.0 == 1 { 0x0f } else { 0xff })
    }
}

/// The AT field: the state of the address's translation (PCIe 5.0 §2.2.4.1, ATS).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AddressType {
    /// The address has not been translated.
    #[default]
    Untranslated = 0,
    /// A read that asks the translation agent for a translation.
    TranslationRequest = 1,
    /// The address comes from an earlier translation.
    Translated = 2,
}

/// Processing hint (PCIe 5.0 §2.2.7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hint {
    /// Host and device both read and write often.
    Bidirectional = 0,
    /// The device accesses it often.
    Requester = 1,
    /// The host accesses it soon.
    Target = 2,
    /// The host accesses it soon and again.
    TargetWithPriority = 3,
}

/// TPH: a hint and the low eight bits of the steering tag (PCIe 5.0 §2.2.7.1). The upper eight travel in a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcessingHint {
    /// The PH field.
    pub hint: Hint,
    /// ST\[7:0\]: in the tag of a write, in the byte enables of a read or atomic.
    pub steering_tag: u8,
}

/// The header fields of a TLP that its kind does not have (PCIe 5.0 §2.2.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attributes {
    /// TC.
    pub tc: TrafficClass,
    /// Attr\[1\], RO: may pass posted requests.
    pub relaxed_ordering: bool,
    /// Attr\[2\], IDO: ordered only against the same requester or completer.
    pub id_based_ordering: bool,
    /// Attr\[0\], NS: the host need not snoop its caches.
    pub no_snoop: bool,
    /// AT, of memory requests.
    pub at: AddressType,
    /// EP: the payload is known to be bad.
    pub poisoned: bool,
    /// TD: a TLP digest (ECRC) follows the payload.
    pub digest: bool,
    /// TH and PH, of memory requests and atomics.
    pub hints: Option<ProcessingHint>,
}

/// The completion status of a request (PCIe 5.0 §2.2.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompletionStatus {
    /// SC.
    Success = 0,
    /// UR: nobody claims the request.
    UnsupportedRequest = 1,
    /// CRS (RRS since 6.0): a configuration request came too early; try again.
    RetryStatus = 2,
    /// CA: the completer gave up.
    CompleterAbort = 4,
}

impl CompletionStatus {
    /// `SC`, `UR`, `CRS` or `CA`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "SC",
            Self::UnsupportedRequest => "UR",
            Self::RetryStatus => "CRS",
            Self::CompleterAbort => "CA",
        }
    }
    /// The name in full: `unsupported request`.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Success => "successful completion",
            Self::UnsupportedRequest => "unsupported request",
            Self::RetryStatus => "configuration request retry status",
            Self::CompleterAbort => "completer abort",
        }
    }
    /// The status that three bits stand for; reserved values are to be taken as UR (PCIe 5.0 §2.3.2) and give `None` here.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            0 => Some(Self::Success),
            1 => Some(Self::UnsupportedRequest),
            2 => Some(Self::RetryStatus),
            4 => Some(Self::CompleterAbort),
            _ => None,
        }
    }
}

/// The memory a request touches: a DW-aligned address, a length in DW, byte enables that fit it, no 4 KiB crossing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    address: u64,
    length: DwLength,
    enables: ByteEnables,
}

const ADDRESS: &str = "PCIe 5.0 §2.2.4.1";
const LENGTH: &str = "PCIe 5.0 §2.2.7";
const ENABLES: &str = "PCIe 5.0 §2.2.5";

impl Span {
    /// `len` bytes from `addr`, all enabled; 0 bytes are one DW with none enabled (a flush, when read).
    ///
    /// # Errors
    /// More than 4096 bytes, or a 4 KiB boundary inside.
    pub const fn new(addr: u64, len: u32) -> Result<Self, Error> {
        if len > 4096 {
            return Err(Error::value(
                "Length",
                "PCIe 5.0 §2.2.2",
                len as u64,
                "a length of at most 4096 bytes",
            ));
        }
        let page_offset = (addr & 0xfff) as u32;
        if page_offset + len > 4096 {
            return Err(CROSSES);
        }
        let skipped = page_offset & 3;
        let used = skipped + len;
        let dw = if used <= 4 { 1 } else { used.div_ceil(4) };
        let first = if len == 0 {
            0
        } else if used < 4 {
            (1 << used) - (1 << skipped)
        } else {
            (15 << skipped) & 15
        };
        let last = if dw == 1 { 0 } else { 15u8 >> (dw * 4 - used) };
        Ok(Self {
            address: addr & !3,
            length: DwLength(dw as u16),
            enables: ByteEnables::new(first as u8, last),
        })
    }

    /// A DW-aligned `address`, a length and byte enables that may be non-contiguous where the specification lets them.
    ///
    /// # Errors
    /// A misaligned address, a 4 KiB crossing, or byte enables that break the rules of PCIe 5.0 §2.2.5: one DW has no last
    /// enables; more have both; holes only within one DW or one aligned QW.
    pub const fn with_enables(address: u64, length: DwLength, enables: ByteEnables) -> Result<Self, Error> {
        if address & 3 != 0 {
            return Err(Error::value("Address", ADDRESS, address, "a multiple of 4"));
        }
        if (address & 0xfff) as u32 + length.bytes() > 4096 {
            return Err(CROSSES);
        }
        if let Err(error) = check_enables(address, length, enables) {
            return Err(error);
        }
        Ok(Self { address, length, enables })
    }

    /// The DW-aligned address.
    pub const fn address(self) -> u64 {
        self.address
    }
    /// Length in DW.
    pub const fn length(self) -> DwLength {
        self.length
    }
    /// First and last byte enables.
    pub const fn enables(self) -> ByteEnables {
        self.enables
    }
    /// Address of the first enabled byte (of the DW, if none is).
    pub const fn first_byte(self) -> u64 {
        let first = self.enables.first();
        if first == 0 { self.address } else { self.address + first.trailing_zeros() as u64 }
    }
    /// Bytes from the first to the last enabled one: the byte count of the completion (PCIe 5.0 §2.3.1.1). A zero-length
    /// read counts 1.
    pub const fn byte_count(self) -> u32 {
        let (first, last) = (self.enables.first(), self.enables.last());
        if first == 0 {
            return 1;
        }
        let end = if last == 0 { first } else { last };
        self.length.bytes() - first.trailing_zeros() - (end.leading_zeros() - 4)
    }
    /// No byte is enabled: a read of nothing flushes the writes before it.
    pub const fn is_zero_length(self) -> bool {
        self.enables.first() == 0
    }
    /// The same bytes of another page of 4 KiB, which `page` is in.
    pub const fn in_page(self, page: u64) -> Self {
        Self { address: page & !0xfff | self.address & 0xfff, ..self }
    }
    /// Needs a 4DW header: the address is at or above 4 GiB.
    pub const fn is_64_bit(self) -> bool {
        self.address >> 32 != 0
    }
}

const CROSSES: Error = Error::conflict("Length", LENGTH, "the request crosses a 4 KiB boundary");

const fn check_enables(address: u64, length: DwLength, enables: ByteEnables) -> Result<(), Error> {
    let (first, last) = (enables.first(), enables.last());
    let dw = length.dw();
    if dw == 1 {
        if last != 0 {
            return Err(Error::value("Last DW BE", ENABLES, last as u64, "0, which a request of one DW has"));
        }
        return Ok(());
    }
    if first == 0 {
        return Err(Error::value("First DW BE", ENABLES, 0, "non-zero, as two or more DW need"));
    }
    if last == 0 {
        return Err(Error::value("Last DW BE", ENABLES, 0, "non-zero, as two or more DW need"));
    }
    if dw == 2 && address & 7 == 0 {
        return Ok(());
    }
    if !matches!(first, 0b1111 | 0b1110 | 0b1100 | 0b1000) {
        return Err(Error::value("First DW BE", ENABLES, first as u64, "contiguous up to the DW's end"));
    }
    if !matches!(last, 0b1111 | 0b0111 | 0b0011 | 0b0001) {
        return Err(Error::value("Last DW BE", ENABLES, last as u64, "contiguous from the DW's start"));
    }
    Ok(())
}
