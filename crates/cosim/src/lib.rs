//! All input and output of tlplab. No other room opens files.
//!
//! * [`net`]: NetTLP over networks: sockets, wall time, DMA for programs that call and wait
//! * [`machine`]: a simulated machine for drivers that call and wait, in simulated time
//! * [`rtl`]: devices made of RTL, from libraries
//! * [`probe`]: reads of the functions of this machine, timed
//!
//! What goes in:
//! * [`capture`]: pcap and pcapng captures of NetTLP, and trace tables: TLPs with their times, requests to replay, and for every
//!   frame that is no TLP the reason
//! * [`memory_image`]: files that are the contents of memory
//!
//! What comes out, while a run goes on (each takes the plain data of [`record`]):
//! * [`pcapng`]: captures of simulated links, for Wireshark and the tools of NetTLP
//! * [`perfetto`]: traces for <https://ui.perfetto.dev>
//! * [`recorder`]: both, attached to a fabric
//!
//! What comes out at the end:
//! * [`report`]: the page that shows a run
//! * [`dissector`]: what Wireshark needs to read the captures
//! * [`output`]: files that are whole or not there
//!
//! Errors ([`Error`]) name the file, what is wrong and what would be right.

pub mod capture;
pub mod dissector;
mod error;
mod linkunit;
pub mod machine;
pub mod memory_image;
pub mod net;
pub mod output;
pub mod pcapng;
pub mod perfetto;
pub mod probe;
pub mod record;
pub mod recorder;
pub mod report;
pub mod rtl;

pub use error::Error;
