//! Bytes and meaning: TLPs, DLLPs, flits, CRCs, the NetTLP header.
//!
//! Each layout comes twice: as a `Packet`, a view of bytes that shows every field without judging and never panics, and as a `Repr`, a
//! value that can only be valid. `Repr::parse` goes from one to the other, `emit` back. An [`Error`] names the field, where it is and
//! the section of the specification that it breaks. Nothing here allocates, waits or knows the carrier of the bytes.
//!
//! The tour, from the transaction layer down:
//! * [`tlp`]: transaction layer packets; start with [`tlp::Repr`]
//! * [`dllp`]: acknowledgements, credits, power management
//! * [`flit`]: the 256 bytes that carry both from PCIe 6.0 on
//! * [`crc`]: LCRC, ECRC and the DLLP's CRC
//! * [`nettlp`]: TLPs in UDP datagrams, and in the captures that are made of them
//!
//! `vectors/` at the root of the repository holds bytes with their meaning from independent sources, in JSON, for this and every other
//! implementation of these layouts.
#![no_std]

pub mod crc;
pub mod dllp;
mod error;
pub mod flit;
pub mod nettlp;
pub mod tlp;

pub use error::{Error, Problem};
