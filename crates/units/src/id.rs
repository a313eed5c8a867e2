//! Identifiers that travel in headers or name a queue.

use core::fmt;

/// Bus, device and function number: the 16-bit ID of a requester or completer (PCIe 5.0 §2.2.4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bdf(pub u16);

impl Bdf {
    /// `bus`:`device`.`function`; `None` if the device is above 31 or the function above 7.
    pub const fn new(bus: u8, device: u8, function: u8) -> Option<Self> {
        if device > 31 || function > 7 {
            return None;
        }
        Some(Self((bus as u16) << 8 | (device as u16) << 3 | function as u16))
    }
    /// Bus number.
    pub const fn bus(self) -> u8 {
        (self.0 >> 8) as u8
    }
    /// Device number, 0 to 31.
    pub const fn device(self) -> u8 {
        (self.0 >> 3) as u8 & 31
    }
    /// Function number, 0 to 7.
    pub const fn function(self) -> u8 {
        self.0 as u8 & 7
    }
}

impl fmt::Display for Bdf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}:{:02x}.{:x}", self.bus(), self.device(), self.function())
    }
}

/// A transaction's tag: 8 bits, 10 with the 10-bit extension, 14 in flit mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(u16);

impl Tag {
    /// A tag of at most 14 bits.
    pub const fn new(tag: u16) -> Option<Self> {
        if tag < 1 << 14 { Some(Self(tag)) } else { None }
    }
    /// The tag's value.
    pub const fn value(self) -> u16 {
        self.0
    }
}

impl From<u8> for Tag {
    fn from(tag: u8) -> Self {
        Self(u16::from(tag))
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:02x}", self.0)
    }
}

/// Traffic class, 0 to 7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrafficClass(u8);

/// Virtual channel, 0 to 7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vc(u8);

macro_rules! three_bits {
    ($name:ident) => {
        impl $name {
            /// Zero, which every device has.
            pub const ZERO: Self = Self(0);
            /// A value of at most 7.
            pub const fn new(value: u8) -> Option<Self> {
                if value < 8 { Some(Self(value)) } else { None }
            }
            /// 0 to 7.
            pub const fn value(self) -> u8 {
                self.0
            }
        }
    };
}
three_bits!(TrafficClass);
three_bits!(Vc);

/// The three classes of flow control and of the ordering table (PCIe 5.0 §2.4, §2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FcClass {
    /// Memory writes and messages.
    Posted = 0,
    /// Requests that are answered by a completion.
    NonPosted = 1,
    /// Completions.
    Completion = 2,
}

impl FcClass {
    /// All three, in the order of their discriminants.
    pub const ALL: [Self; 3] = [Self::Posted, Self::NonPosted, Self::Completion];
    /// 0, 1 or 2.
    pub const fn index(self) -> usize {
        self as usize
    }
}
