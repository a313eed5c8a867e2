//! Bytes and meaning: TLPs, DLLPs, flits, CRCs, the NetTLP header.
#![no_std]

pub mod crc;
pub mod dllp;
mod error;
pub mod nettlp;
pub mod tlp;

pub use error::{Error, Problem};
