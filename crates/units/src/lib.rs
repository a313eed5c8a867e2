//! Time, link rates, sizes and the identifiers every layer shares.
//!
//! No floats: a run must give the same trace on every machine. [`Time`] counts femtoseconds in a checked `u64` (5.1 hours),
//! [`LinkRate`] is an exact rational that rounds once per packet, up, and quantities written by people (`"4KiB"`, `"25Gb/s"`,
//! `"1.5us"`) are read as exact decimals by [`quantity`].
//!
//! * [`time`]: [`Time`], [`Duration`]
//! * [`link`]: [`Generation`], [`Width`], [`LinkMode`], [`LinkRate`]
//! * [`id`]: [`Bdf`], [`Tag`], [`TrafficClass`], [`Vc`], [`FcClass`]
//! * [`size`]: [`Mps`], [`Mrrs`], [`Rcb`]
//! * [`quantity`]: parsing and printing with units
#![no_std]
extern crate alloc;

pub mod id;
pub mod link;
pub mod quantity;
pub mod size;
pub mod time;

pub use id::{Bdf, FcClass, Tag, TrafficClass, Vc};
pub use link::{Generation, LinkMode, LinkRate, Width};
pub use quantity::QuantityError;
pub use size::{Mps, Mrrs, Rcb};
pub use time::{Duration, Time};
