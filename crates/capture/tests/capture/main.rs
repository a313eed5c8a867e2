//! The tests of tlplab-capture, in one program.
//!
//! * [`capture`]: Captures built by hand: every container, every layer, every way to be wrong.
//! * [`dump`]: Frames as lines, and which of them are shown.
//! * [`every_tlp`]: Random experiments: every TLP of every link is in the capture, as the fabric had it, and as often as the fabric counted.
//! * [`pcapng`]: The pcapng writer, judged by tshark and by our own reader.
//! * [`real_captures`]: The captures of the NetTLP paper (https://github.com/NetTLP/captured), where `TLPLAB_DATA` names a folder with them in `captures`.
//! * [`recorder`]: A run of the fabric, recorded and read back; a captured trace, replayed.
//! * [`summary`]: What is said about captures that were made for it.
//! * [`table`]: The trace table, and the traces that come with the project.

mod capture;
mod dump;
mod every_tlp;
mod pcapng;
mod real_captures;
mod recorder;
mod summary;
mod support;
mod table;
