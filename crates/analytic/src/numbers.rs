//! A connection in plain numbers, as command lines and grids have it.

use crate::compat::Mistakes;
use crate::connection::Connection;
use crate::cut::{Completions, Requests};
use crate::link::Link;
use std::fmt;
use tlplab_units::{Generation, LinkMode, Mps, Mrrs, Width};

/// The numbers of a transfer and a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Bytes of a transfer.
    pub size: i64,
    /// The start in a page of 4 KiB.
    pub offset: i64,
    /// 1 to 7.
    pub generation: i64,
    /// Lanes.
    pub width: i64,
    /// Maximum payload size in bytes.
    pub mps: i64,
    /// Maximum read request size in bytes.
    pub mrrs: i64,
    /// Read completion boundary in bytes.
    pub rcb: i64,
    /// 32 or 64.
    pub address_bits: i64,
    /// 0 or 1.
    pub ecrc: i64,
    /// 0 or 1: flit mode, in which generations 6 and 7 are in any case.
    pub flit: i64,
}

/// A number that is out of range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Of which quantity.
    pub name: &'static str,
    /// The given value.
    pub given: i64,
    /// The expected values.
    pub right: &'static str,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}; expected {}", self.name, self.given, self.right)
    }
}

impl std::error::Error for Invalid {}

/// The most that a transfer may have: 1 TiB.
const LARGEST: i64 = 1 << 40;

impl Numbers {
    /// The quantities, in the order of [`Self::from_values`].
    pub const NAMES: [&str; 10] =
        ["size", "offset", "generation", "width", "mps", "mrrs", "rcb", "address_bits", "ecrc", "flit"];

    /// In the order of [`Self::NAMES`].
    pub fn from_values(
        [size, offset, generation, width, mps, mrrs, rcb, address_bits, ecrc, flit]: [i64; 10],
    ) -> Self {
        Self { size, offset, generation, width, mps, mrrs, rcb, address_bits, ecrc, flit }
    }

    /// Bytes of a transfer.
    pub fn size(&self) -> Result<u64, Invalid> {
        ranged("size", self.size, 1..=LARGEST, "1 byte to 1 TiB")
    }

    /// The start.
    pub fn offset(&self) -> Result<u64, Invalid> {
        ranged("offset", self.offset, 0..=4095, "0 to 4095 bytes into a page")
    }

    /// The connection.
    pub fn connection(
        &self,
        requests: Requests,
        completions: Completions,
        mistakes: Mistakes,
    ) -> Result<Connection, Invalid> {
        let small = |value: i64| u8::try_from(value).ok();
        let bytes = |value: i64| u32::try_from(value).ok();
        let generation = small(self.generation).and_then(Generation::new);
        let width = small(self.width).and_then(Width::new);
        let sizes = "128, 256, 512, 1024, 2048 or 4096 B";
        let mut link = Link::new(
            generation.ok_or(Invalid { name: "generation", given: self.generation, right: "1 to 7" })?,
            width.ok_or(Invalid {
                name: "width",
                given: self.width,
                right: "1, 2, 4, 8, 12, 16 or 32 lanes",
            })?,
        );
        if either("flit", self.flit, 0, 1, "0 or 1")? && !link.is_flit() {
            if mistakes.framed_flits {
                let right = "0 below 64 GT/s in the public model, which has framed flits at 64 and 128 GT/s";
                return Err(Invalid { name: "flit", given: 1, right });
            }
            link.mode = LinkMode::Flit;
        }
        if mistakes == Mistakes::PCIE_MODEL && self.width == 12 {
            let right = "1, 2, 4, 8, 16 or 32 lanes in the public model";
            return Err(Invalid { name: "width", given: 12, right });
        }
        let rcb = match self.rcb {
            64 | 128 => self.rcb as u64,
            256 | 512 if mistakes == Mistakes::PCIE_MODEL => self.rcb as u64,
            given => {
                let right = "64 or 128 B (PCIe 5.0 §2.3.1.1); the public model also takes 256 and 512";
                return Err(Invalid { name: "rcb", given, right });
            }
        };
        let mps = bytes(self.mps).and_then(Mps::new);
        let mrrs = bytes(self.mrrs).and_then(Mrrs::new);
        Ok(Connection {
            wide_addresses: either("address_bits", self.address_bits, 32, 64, "32 or 64")?,
            ecrc: either("ecrc", self.ecrc, 0, 1, "0 or 1")?,
            rcb,
            requests,
            completions,
            mistakes,
            ..Connection::new(
                link,
                mps.ok_or(Invalid { name: "mps", given: self.mps, right: sizes })?,
                mrrs.ok_or(Invalid { name: "mrrs", given: self.mrrs, right: sizes })?,
            )
        })
    }
}

fn ranged(
    name: &'static str,
    given: i64,
    range: std::ops::RangeInclusive<i64>,
    right: &'static str,
) -> Result<u64, Invalid> {
    if range.contains(&given) { Ok(given as u64) } else { Err(Invalid { name, given, right }) }
}

/// True if it is the second.
fn either(
    name: &'static str,
    given: i64,
    first: i64,
    second: i64,
    right: &'static str,
) -> Result<bool, Invalid> {
    if given == first || given == second { Ok(given == second) } else { Err(Invalid { name, given, right }) }
}
