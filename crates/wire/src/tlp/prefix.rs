//! TLP prefixes: double words in front of the header (PCIe 5.0 §2.2.10).

use crate::Error;

const SECTION: &str = "PCIe 5.0 §2.2.10";

/// One prefix. Local ones mean something to one link; end-to-end ones travel with the TLP and are covered by the ECRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prefix {
    /// Local: multi-root IO virtualisation, three opaque bytes.
    MrIov([u8; 3]),
    /// Local: vendor-defined, type 0 or 1 (`second`), three opaque bytes.
    VendorLocal {
        /// VendPrefixL1 rather than VendPrefixL0.
        second: bool,
        /// Bytes 1 to 3.
        body: [u8; 3],
    },
    /// End-to-end: the steering tag's upper eight bits.
    Tph {
        /// ST\[15:8\].
        steering_tag_high: u8,
    },
    /// End-to-end: the process address space a memory request belongs to.
    Pasid(Pasid),
    /// End-to-end: vendor-defined, type 0 or 1 (`second`), three opaque bytes.
    VendorEndToEnd {
        /// VendPrefixE1 rather than VendPrefixE0.
        second: bool,
        /// Bytes 1 to 3.
        body: [u8; 3],
    },
}

/// A process address space identifier and its two qualifiers (PCIe 5.0 §6.20).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pasid {
    value: u32,
    /// Privileged Mode Requested.
    pub privileged: bool,
    /// Execute Requested.
    pub execute: bool,
}

impl Pasid {
    /// A PASID of 20 bits, neither [`privileged`](Self::privileged) nor [`execute`](Self::execute).
    ///
    /// # Errors
    /// A value of more than 20 bits.
    pub const fn new(value: u32) -> Result<Self, Error> {
        if value >> 20 != 0 {
            return Err(Error::value("PASID", "PCIe 5.0 §6.20.1", value as u64, "a value of 20 bits"));
        }
        Ok(Self { value, privileged: false, execute: false })
    }
    /// The same with that value of [`privileged`](Self::privileged).
    pub const fn with_privileged(self, privileged: bool) -> Self {
        Self { privileged, ..self }
    }
    /// The same with that value of [`execute`](Self::execute).
    pub const fn with_execute(self, execute: bool) -> Self {
        Self { execute, ..self }
    }
    /// The PASID.
    pub const fn value(self) -> u32 {
        self.value
    }
}

impl Prefix {
    /// Local prefixes come before end-to-end ones.
    pub const fn is_end_to_end(self) -> bool {
        matches!(self, Self::Tph { .. } | Self::Pasid(_) | Self::VendorEndToEnd { .. })
    }

    /// The four bytes on the wire.
    pub const fn bytes(self) -> [u8; 4] {
        match self {
            Self::MrIov([a, b, c]) => [0x80, a, b, c],
            Self::VendorLocal { second, body: [a, b, c] } => [0x8e | second as u8, a, b, c],
            Self::Tph { steering_tag_high } => [0x90, steering_tag_high, 0, 0],
            Self::Pasid(Pasid { value, privileged, execute }) => {
                let word = value | (execute as u32) << 20 | (privileged as u32) << 21;
                [0x91, (word >> 16) as u8, (word >> 8) as u8, word as u8]
            }
            Self::VendorEndToEnd { second, body: [a, b, c] } => [0x9e | second as u8, a, b, c],
        }
    }

    /// Reads a prefix; reserved bits are ignored.
    ///
    /// # Errors
    /// A type that is not defined, or that is not a prefix at all.
    pub const fn from_bytes([kind, a, b, c]: [u8; 4]) -> Result<Self, Error> {
        Ok(match kind {
            0x80 => Self::MrIov([a, b, c]),
            0x8e | 0x8f => Self::VendorLocal { second: kind & 1 != 0, body: [a, b, c] },
            0x90 => Self::Tph { steering_tag_high: a },
            0x91 => Self::Pasid(Pasid {
                value: (a as u32 & 15) << 16 | (b as u32) << 8 | c as u32,
                privileged: a & 0x20 != 0,
                execute: a & 0x10 != 0,
            }),
            0x9e | 0x9f => Self::VendorEndToEnd { second: kind & 1 != 0, body: [a, b, c] },
            _ => return Err(Error::value("Prefix Type", SECTION, kind as u64, "a defined prefix")),
        })
    }
}

/// The prefixes of a TLP: at most one local and four end-to-end.
///
/// The specification bounds the end-to-end ones by four (§2.2.10.2) and leaves local ones to the two ports of a link; one is what
/// fits here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Prefixes {
    words: [[u8; 4]; Self::MAX],
    count: u8,
    local: u8,
}

impl Prefixes {
    /// The most a TLP can have.
    pub const MAX: usize = 5;
    /// None at all, as nearly every TLP.
    pub const NONE: Self = Self { words: [[0; 4]; Self::MAX], count: 0, local: 0 };

    /// Adds a prefix behind those there are.
    ///
    /// # Errors
    /// A local prefix behind an end-to-end one, a second local or a fifth end-to-end one.
    pub const fn push(&mut self, prefix: Prefix) -> Result<(), Error> {
        if prefix.is_end_to_end() {
            if self.count - self.local == 4 {
                return Err(Error::conflict("Prefix", SECTION, "more than four end-to-end prefixes"));
            }
        } else if self.count > self.local {
            return Err(Error::conflict("Prefix", SECTION, "a local prefix behind an end-to-end one"));
        } else if self.local == 1 {
            return Err(Error::conflict("Prefix", SECTION, "more than one local prefix"));
        } else {
            self.local = 1;
        }
        self.words[self.count as usize] = prefix.bytes();
        self.count += 1;
        Ok(())
    }

    /// Number of prefixes.
    pub const fn len(&self) -> usize {
        self.count as usize
    }
    /// True if there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
    /// Bytes on the wire.
    pub const fn bytes(&self) -> u32 {
        self.count as u32 * 4
    }
    /// The prefixes in the order of the wire.
    pub fn iter(&self) -> impl Iterator<Item = Prefix> + '_ {
        self.words[..self.len()].iter().filter_map(|&word| Prefix::from_bytes(word).ok())
    }
}

impl core::fmt::Debug for Prefixes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
