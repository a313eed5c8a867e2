//! The files that a run writes. Nothing is read here.
//!
//! While it goes on (each takes the plain data of [`record`]):
//! * [`pcapng`]: captures of simulated links, for Wireshark and the tools of NetTLP; [`linkunit`]: what in them is no TLP
//! * [`perfetto`]: traces for <https://ui.perfetto.dev>
//! * [`recorder`]: both, attached to a fabric
//!
//! At the end:
//! * [`report`]: the page that shows a run
//! * [`output`]: files that are whole or not there
//!
//! Errors ([`Error`]) name the file, what is wrong and what would be right.

mod error;
pub mod linkunit;
pub mod output;
pub mod pcapng;
pub mod perfetto;
pub mod record;
pub mod recorder;
pub mod report;

pub use error::Error;
