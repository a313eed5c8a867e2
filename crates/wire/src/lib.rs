//! Bytes and meaning: TLPs, DLLPs, flits, CRCs, the NetTLP header.
#![no_std]

mod error;
pub mod tlp;

pub use error::{Error, Problem};
