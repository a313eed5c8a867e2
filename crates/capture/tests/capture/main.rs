//! The tests of tlplab-bridge, in one program.
//!
//! * [`capture`]: Captures built by hand: every container, every layer, every way to be wrong.
//! * [`dump`]: Frames as lines, and which of them are shown.
//! * [`every_tlp`]: Random experiments: every TLP of every link is in the capture, as the fabric had it, and as often as the fabric counted.
//! * [`net`]: DMA over UDP on the loopback interface, and what goes wrong there.
//! * [`pcapng`]: The pcapng writer, judged by tshark and by our own reader.
//! * [`perfetto`]: The Perfetto writer: decoded with a reader of our own, and by Perfetto's own Python package where it is installed.
//! * [`probe`]: The differential method on a made-up machine: a tree of files as the kernel shows it, and a reader that stands in for the functions.
//! * [`real_captures`]: The captures of the NetTLP paper (https://github.com/NetTLP/captured), where `TLPLAB_DATA` names a folder with them in `captures`.
//! * [`recorder`]: A run of the fabric, recorded and read back; a captured trace, replayed.
//! * [`rtl`]: Devices made of RTL, by a stand-in in C (`copier.c`): it has the registers of the built-in copier, so that its driver, which checks every
//! * [`rtl_package`]: `rtl/tlpdma_pkg.sv` is what `wire` says: each position in it is found by setting the bits of a header alone and looking which of them
//! * [`summary`]: What is said about captures that were made for it.
//! * [`table`]: The trace table, and the traces that come with the project.

mod capture;
mod dump;
mod every_tlp;
mod net;
mod pcapng;
mod perfetto;
mod probe;
mod real_captures;
mod recorder;
mod rtl;
mod rtl_package;
mod summary;
mod support;
mod table;
