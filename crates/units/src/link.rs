//! Link generations, widths and exact rates.

use crate::time::Duration;
use core::fmt;

/// The generations, each in one row: transfers per lane in mega-transfers per second, the lane encoding, and the time of one byte on one lane in quarter
/// femtoseconds, which is exact for all (Gen5: 253 906.25 fs).
macro_rules! generations {
    ($($(#[$doc:meta])* $name:ident: $mega_transfers:literal, $encoding:ident, $quarter_fs:literal;)+) => {
        /// A link's data rate, as a generation of PCIe.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Generation {
            $($(#[$doc])* $name,)+
        }

        impl Generation {
            /// All generations, in order.
            pub const ALL: [Self; [$(stringify!($name)),+].len()] = [$(Self::$name),+];

            /// Transfers per lane in mega-transfers per second.
            pub const fn mega_transfers(self) -> u32 {
                match self {
                    $(Self::$name => $mega_transfers,)+
                }
            }
            /// The lane encoding of this rate.
            pub const fn encoding(self) -> Encoding {
                match self {
                    $(Self::$name => Encoding::$encoding,)+
                }
            }
            const fn lane_byte_quarter_fs(self) -> u64 {
                match self {
                    $(Self::$name => $quarter_fs,)+
                }
            }
        }
    };
}

generations! {
    /// 2.5 GT/s, 8b/10b
    Gen1: 2_500, B8b10b, 16_000_000;
    /// 5 GT/s, 8b/10b
    Gen2: 5_000, B8b10b, 8_000_000;
    /// 8 GT/s, 128b/130b
    Gen3: 8_000, B128b130b, 4_062_500;
    /// 16 GT/s, 128b/130b
    Gen4: 16_000, B128b130b, 2_031_250;
    /// 32 GT/s, 128b/130b
    Gen5: 32_000, B128b130b, 1_015_625;
    /// 64 GT/s, flit mode only
    Gen6: 64_000, B1b1b, 500_000;
    /// 128 GT/s, flit mode only
    Gen7: 128_000, B1b1b, 250_000;
}

impl Generation {
    /// The first.
    pub const FIRST: Self = Self::ALL[0];
    /// The last.
    pub const LAST: Self = Self::ALL[Self::ALL.len() - 1];

    /// The generation with this number, counted from 1.
    pub fn new(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
    /// Counted from 1.
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }
    /// Without a line code there are flits only: 64 GT/s and above (PCIe 6.0 §4.2.3).
    pub const fn requires_flit_mode(self) -> bool {
        match self.encoding() {
            Encoding::B8b10b | Encoding::B128b130b => false,
            Encoding::B1b1b => true,
        }
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gen{}", self.number())
    }
}

/// The line coding of bytes on a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Ten bits carry a byte.
    B8b10b,
    /// 130 bits carry a block of 16 bytes.
    B128b130b,
    /// PAM4, no line code; flits carry their own protection.
    B1b1b,
}

/// A link's width in lanes: 1, 2, 4, 8, 12, 16 or 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Width(u8);

impl Width {
    /// One lane.
    pub const X1: Self = Self(1);
    /// Two lanes.
    pub const X2: Self = Self(2);
    /// Four lanes.
    pub const X4: Self = Self(4);
    /// Eight lanes.
    pub const X8: Self = Self(8);
    /// Twelve lanes.
    pub const X12: Self = Self(12);
    /// Sixteen lanes.
    pub const X16: Self = Self(16);
    /// Thirty-two lanes.
    pub const X32: Self = Self(32);
    /// The widths the specification defines.
    pub const ALL: [Self; 7] = [Self::X1, Self::X2, Self::X4, Self::X8, Self::X12, Self::X16, Self::X32];

    /// A width of `lanes`, if there is one.
    pub fn new(lanes: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|w| w.0 == lanes)
    }
    /// Number of lanes.
    pub const fn lanes(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "x{}", self.0)
    }
}

/// The framing of TLPs on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkMode {
    /// Framed TLPs and DLLPs, each with its own sequence number and CRC.
    NonFlit,
    /// 256-byte flits (PCIe 6.0).
    Flit,
}

/// The exact rate of a link: bytes (after line coding) to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkRate {
    quarter_fs: u64,
    lanes: u64,
}

impl LinkRate {
    /// The rate of a link of `width` lanes at `generation`.
    pub fn new(generation: Generation, width: Width) -> Self {
        Self { quarter_fs: generation.lane_byte_quarter_fs(), lanes: u64::from(width.lanes()) }
    }
    /// So many bits per second, at least 1, as a bus has that is no link.
    pub const fn of_bits_per_second(rate: u64) -> Self {
        // A byte takes 8e15 / rate fs, which is quarter_fs / (4 * lanes).
        let (mut whole, mut rest) = (32_000_000_000_000_000, rate);
        while rest > 0 {
            (whole, rest) = (rest, whole % rest);
        }
        Self { quarter_fs: 32_000_000_000_000_000 / whole, lanes: rate / whole }
    }
    /// Time on the wire of `bytes` spread over all lanes, rounded up to a femtosecond.
    pub const fn time_of(self, bytes: u64) -> Duration {
        let parts = 4 * self.lanes;
        // All widths but x12 are powers of two, and this is asked several times per TLP.
        Duration::from_fs(if parts.is_power_of_two() {
            (bytes * self.quarter_fs + (parts - 1)) >> parts.trailing_zeros()
        } else {
            (bytes as u128 * self.quarter_fs as u128).div_ceil(parts as u128) as u64
        })
    }
    /// Time of `symbols` symbol times: each is one byte on every lane, so the width does not matter.
    pub const fn symbol_times(self, symbols: u64) -> Duration {
        Duration::from_fs((symbols * self.quarter_fs).div_ceil(4))
    }
    /// Bits per second after line coding, rounded down: Gen3 x8 gives 63 015 384 615.
    pub const fn bits_per_second(self) -> u64 {
        (8 * self.lanes as u128 * 4_000_000_000_000_000 / self.quarter_fs as u128) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bus_has_any_rate() {
        for (bps, bytes, fs) in [
            (128_000_000_000, 128, 8_000_000),
            (8, 1, 1_000_000_000_000_000),
            (3_000_000_007, 4096, 10_922_666_642),
        ] {
            let rate = LinkRate::of_bits_per_second(bps);
            assert_eq!((rate.time_of(bytes), rate.bits_per_second()), (Duration::from_fs(fs), bps));
        }
    }

    fn rate(generation: u8, lanes: u8) -> LinkRate {
        LinkRate::new(Generation::new(generation).unwrap(), Width::new(lanes).unwrap())
    }

    #[test]
    fn known_rates() {
        assert_eq!(rate(1, 1).time_of(44), Duration::from_ns(176));
        assert_eq!(rate(3, 8).time_of(24), Duration::from_fs(3_046_875));
        assert_eq!(rate(5, 1).time_of(1), Duration::from_fs(253_907));
        assert_eq!(rate(5, 1).time_of(4), Duration::from_fs(1_015_625));
        assert_eq!(rate(3, 8).bits_per_second(), 63_015_384_615);
        assert_eq!(rate(6, 16).bits_per_second(), 1_024_000_000_000);
    }

    #[test]
    fn no_odd_widths() {
        assert!(Width::new(3).is_none() && Width::new(0).is_none() && Width::new(12).is_some());
        assert!(Generation::new(0).is_none() && Generation::new(8).is_none());
    }
}
